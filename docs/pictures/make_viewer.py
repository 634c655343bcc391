"""The picture of the live viewer: a soft gorilla in the middle of its jump, as it plays, with plain skinning over it.

    .venv/bin/python docs/pictures/make_viewer.py gorilla.softrig

writes docs/pictures/viewer.png; the model is what `softrig characters gorilla && softrig build gorilla.glb` makes. It
needs playwright and chromium. A browser without a graphics card draws less while it plays; the one picture that is kept
is drawn with everything, as a graphics card would draw all of them. How long steps and pictures took is left out of it:
on such a machine they wait for each other.
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
"""Milliseconds of play after which nothing is compiled any more."""
QUICK = 3
"""How much is drawn until then: see quality.js."""
MOMENT = (1.0, 1.05)
"""Seconds of the clip between which the picture is taken."""
SCALE = " 50 mm"
"""Where the colours of the distance end in it: after the landing they reach farther for a while."""
HIDDEN = ".number.step, .number.fps, .chip.warn { display: none !important }"
FLAGS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
TAKEN = """([from, to, scale]) => {
    const time = document.querySelector("#scrub").valueAsNumber, legend = document.querySelector("#legend").innerText;
    if (!softrig.state.playing || !softrig.renderer.fps || time < from || time > to) return false;
    if (!` ${legend.replaceAll("\\n", " ")}`.includes(scale)) return false;
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
    """A picture of the page: plain skinning over flesh that is coloured by its distance, and the flesh's settings."""
    while not page.evaluate("() => softrig.state?.show === 'both'"):
        page.keyboard.press("b")
        page.wait_for_timeout(3000)
    page.locator("[aria-controls=section-look]").click()
    page.locator("#section-look").get_by_text("Motion", exact=True).click()
    page.locator("[aria-controls=section-tune]").click()
    page.evaluate("level => { softrig.renderer.level = level; }", QUICK)
    page.add_style_tag(content=HIDDEN)
    page.wait_for_timeout(WARMED)
    while not page.evaluate(TAKEN, [*MOMENT, SCALE]):
        page.wait_for_timeout(10)
    content: bytes = page.screenshot()
    return content


if __name__ == "__main__":
    main()
