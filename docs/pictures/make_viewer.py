"""The picture of the live viewer: a soft gorilla in the middle of its jump, while it plays.

    .venv/bin/python docs/pictures/make_viewer.py gorilla.softrig

writes docs/pictures/viewer.png; the model is what `softrig characters gorilla && softrig build gorilla.glb` makes. It
needs playwright and chromium, and a machine that does nothing else: the numbers in the picture are what it plays at. A
browser without a graphics card draws less while it plays; the one picture that is kept is drawn with everything, as a
graphics card would draw all of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import ViewportSize, sync_playwright

import softrig as sr
from softrig.files import write_bytes

OUTPUT = Path(__file__).parent / "viewer.png"
SIZE = ViewportSize(width=1366, height=768)
WARMED = 20_000
"""Milliseconds of play after which nothing is compiled any more, and the numbers on show are none but of play."""
QUICK = 3
"""How much is drawn until then: see quality.js."""
MOMENT = (1.0, 1.1)
"""Seconds of the clip between which the picture is taken."""
FLAGS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
TAKEN = """([from, to]) => {
    const time = document.querySelector("#scrub").valueAsNumber;
    if (!softrig.state.playing || !softrig.renderer.fps || time < from || time > to) return false;
    // The page stays as it is now: no more frames, no more numbers.
    window.requestAnimationFrame = () => 0;
    for (let id = setInterval(() => 0, 1e6); id > 0; id--) clearInterval(id);
    softrig.renderer.pixels(true);
    return true;
}"""


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    with sr.view(parser.parse_args().model, clip="jump") as viewer, sync_playwright() as player:
        chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        browser = player.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport=SIZE, color_scheme="dark")
        page.goto(viewer.url)
        content = taken(page)
        print(page.locator("#transport").inner_text().replace("\n", " "))
        browser.close()
    write_bytes(OUTPUT, content)
    print(f"{OUTPUT}: {len(content) / 1e3:.0f} kB, {os.getloadavg()[0]:.1f} processes at work")


def taken(page: Any) -> bytes:
    """A picture of the page, with the panel open at the settings of the flesh."""
    page.wait_for_timeout(2000)
    page.locator("[aria-controls=section-play]").click()
    page.locator("[aria-controls=section-tune]").click()
    page.evaluate("level => { softrig.renderer.level = level; }", QUICK)
    page.wait_for_timeout(WARMED)
    while not page.evaluate(TAKEN, MOMENT):
        page.wait_for_timeout(10)
    content: bytes = page.screenshot()
    return content


if __name__ == "__main__":
    main()
