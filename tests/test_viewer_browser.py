"""The viewer in a real browser: what is drawn, what a mouse does, and what is left behind. Never how fast it is."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from browser_for_tests import CHROMIUM
from characters_for_tests import limb
from softrig import load_character
from softrig.io.glb_writer import write_character_glb
from softrig.models.file import load_character_model, save_model
from softrig.pipeline.build import build
from softrig.project import Project, save_project
from softrig.viewer.takes import Take
from softrig.viewer.view import Viewer, view
from viewer_screen_for_tests import PATIENCE, SIZE, Screen, chromium, screen_of

if CHROMIUM is None:
    pytest.skip("the viewer in a browser is not tested: chromium is not installed", allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="the viewer in a browser is not tested: playwright is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb

SMALL = Project().changed(
    mesh={"tets": 500},
    basis={"modes": 20, "regions": 2, "contact": False, "derivatives": 4, "rehearsal": 0.0},
    poses={"count": 2},
    cubature={"samples": 12},
    material={"preset": "fat"},
)


@pytest.fixture(scope="module")
def viewer(tmp_path_factory) -> Iterator[Viewer]:
    """A server with a small limb: character, project and model side by side in a folder."""
    folder = tmp_path_factory.mktemp("limb")
    write_character_glb(limb(), folder / "limb.glb")
    save_project(SMALL, folder / "limb.toml")
    save_model(build(load_character(folder / "limb.glb"), SMALL, jobs=1), folder / "limb.softrig")
    with view(folder / "limb.softrig") as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(browser, viewer) -> Iterator[Screen]:
    with screen_of(browser, viewer) as made:
        yield made


@pytest.fixture
def screen(shared) -> Iterator[Screen]:
    """The page, whose console must stay empty."""
    yield shared
    assert shared.errors == []


def test_the_page_opens_and_shows_the_character(screen):
    screen.choose(None)
    screen.still()
    assert screen.page.title() == "limb · softrig"
    picture = screen.pixels()
    height, width = picture.shape[:2]
    # The character covers the middle of what is drawn, and differs from the backdrop beside it.
    vertex = screen.in_sight(0.5)
    box = screen.page.locator("#picture").bounding_box()
    x, y = screen.place(vertex)
    column = int((x - box["x"]) * width / box["width"])
    row = int((y - box["y"]) * height / box["height"])
    assert 0.25 < column / width < 0.75
    assert 0.25 < row / height < 0.75
    patch = picture[row - 3 : row + 4, column - 3 : column + 4].mean(axis=(0, 1))
    backdrop = picture[: height // 12, : width // 3].mean(axis=(0, 1))
    assert np.abs(patch - backdrop).max() > 40.0
    covered = (np.abs(picture - backdrop).max(axis=2) > 40.0).mean()
    assert 0.01 < covered < 0.6


def test_the_overlay_is_offered_where_there_is_one(screen):
    """In the view "both" alone: elsewhere "Ghost" would seem to be on."""
    screen.open("play")
    ghost = screen.page.get_by_text("Ghost", exact=True)
    assert not ghost.is_visible()
    screen.page.keyboard.press("b")
    ghost.wait_for(state="visible")
    screen.page.get_by_text("Soft", exact=True).first.click()
    ghost.wait_for(state="hidden")


def test_what_was_hidden_at_rest_is_not_black_in_another_pose(browser, viewer):
    """Openness is found once, at rest: here it is nought everywhere, as it is in an armpit under a hanging arm."""
    with screen_of(browser, viewer, color_scheme="light") as screen:
        screen.page.add_init_script(
            """const read = WebGL2RenderingContext.prototype.readPixels;
            WebGL2RenderingContext.prototype.readPixels = function (...given) {
                if (!this.getParameter(this.FRAMEBUFFER_BINDING)) read.apply(this, given);
            };"""
        )
        screen.page.reload()
        screen.look(30)
        screen.choose(None)
        picture = screen.pixels()
    backdrop = picture[: len(picture) // 12].mean(axis=(0, 1))
    body = picture[np.abs(picture - backdrop).max(axis=2) > 60.0]
    assert len(body) > 0.01 * picture[..., 0].size
    assert np.quantile(body.mean(axis=1), 0.02) > 60.0


def test_play_moves_the_vertices(screen):
    screen.choose("bend")
    screen.play(False)
    before, frames = screen.still(), screen.page.evaluate("softrig.frames")
    screen.play(True)
    screen.wait(
        "([before, frames]) => softrig.frames > frames"
        " && softrig.lastFrame().positions.some((x, i) => Math.abs(x - before[i]) > 0.1)",
        [before.ravel().tolist(), frames],
    )


def test_a_mouse_pulls_the_flesh_and_it_settles_again(screen):
    screen.choose(None)
    screen.tool("Pull")
    rest = screen.still()
    vertex = screen.in_sight(0.75)
    x, y = screen.place(vertex)
    mouse = screen.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + 20, y - 90, steps=4)
    screen.until(lambda: len(screen.viewer.runner.stage.touch.pulls) == 1)
    pulled = screen.still()
    moved = np.linalg.norm(pulled - rest, axis=1)
    apart = np.linalg.norm(rest - rest[vertex], axis=1)
    near, far = moved[apart < 0.06].mean(), moved[apart > 0.4].mean()
    assert moved[vertex] > 0.005
    assert near > 5.0 * far
    mouse.up()
    screen.until(lambda: not screen.viewer.runner.stage.touch.pulls)
    assert np.abs(screen.still() - rest).max() < 0.05 * moved[vertex]


def test_a_slider_changes_the_motion(screen):
    """The limb goes up and down: flesh without inertia follows it exactly, with three times as much it does not."""
    screen.choose("shake")
    screen.play(True)
    screen.open("tune")
    stage = screen.viewer.runner.stage
    offsets = {}
    for press, inertia in (("Home", 0.0), ("End", 3.0)):
        screen.slide("inertia", press)
        screen.wait("inertia => softrig.state.settings.inertia === inertia", inertia)
        assert stage.tuning.now.inertia == inertia
        # What was before must have died away; then more than a whole period, as the page shows it.
        begun = screen.page.evaluate("softrig.lastFrame().time")
        screen.wait("begun => softrig.lastFrame().time > begun + 4", begun)
        offsets[inertia] = screen.page.evaluate(
            """async () => {
                const number = document.querySelectorAll("#transport .number b")[3], begun = softrig.lastFrame().time;
                let largest = 0;
                while (softrig.lastFrame().time < begun + 1) {
                    largest = Math.max(largest, Number(number.textContent));
                    await new Promise(requestAnimationFrame);
                }
                return largest;
            }"""
        )
    assert offsets[3.0] > 5.0, "millimetres"
    assert offsets[0.0] < 0.2 * offsets[3.0]
    screen.page.get_by_title("All settings as the model was built").click()
    screen.wait("softrig.state.settings.inertia === 1")


def test_what_is_painted_is_in_the_model_after_a_build(screen):
    stage, version = screen.viewer.runner.stage, screen.viewer.runner.stage.version
    before = stage.subject.model.cubature.young
    assert np.ptp(before) < 1e-6 * before.max(), "as soft as the preset everywhere"
    screen.choose(None)
    screen.still()
    screen.tool("Paint")
    screen.wait("softrig.state.paint.on")
    screen.slide("brush-value", "Home", *["ArrowRight"] * 4)  # softness 0.2
    screen.slide("brush-radius", "End")
    screen.slide("brush-strength", "End")
    mouse = screen.page.mouse
    for share in (0.3, 0.6, 0.9):
        x, y = screen.place(screen.in_sight(share))
        mouse.move(x, y)
        if share == 0.3:
            mouse.down()
    mouse.up()
    screen.wait("softrig.state.paint.can_undo && softrig.state.unsaved.decisions")
    assert not screen.page.evaluate("softrig.state.unsaved.settings"), "the paint is no setting"
    assert screen.page.locator("[aria-controls=section-tune] em").inner_text() == ""
    assert stage.studio.painting().map().min() == pytest.approx(0.2)
    screen.page.locator("#section-build").get_by_role("button", name="Build", exact=True).click()
    screen.until(lambda: screen.viewer.runner.stage.version > version)
    assert screen.page.evaluate("softrig.state.build.message") is None
    frames = screen.page.evaluate("softrig.frames")
    screen.wait("frames => softrig.frames > frames && !softrig.state.build.running", frames)
    after = stage.subject.model.cubature.young
    assert after.max() > 1.5 * before.max()
    kept = load_character_model(stage.studio.workshop.model_path)
    assert np.array_equal(kept.cubature.young, after)
    screen.tool("Pull")
    screen.wait("!softrig.state.paint.on")


def test_a_bake_comes_down_as_a_file_that_loads(screen, tmp_path: Path):
    section = screen.open("take")
    section.get_by_label("Clip", exact=True).select_option("bend")
    section.get_by_label("As", exact=True).select_option(".glb")
    section.get_by_role("button", name="Bake", exact=True).click()
    link = section.locator("a.download")
    link.wait_for(timeout=1e3 * PATIENCE)
    with screen.page.expect_download(timeout=1e3 * PATIENCE) as coming:
        link.click()
    assert coming.value.suggested_filename.endswith(".glb")
    coming.value.save_as(tmp_path / "baked.glb")
    baked = load_character(tmp_path / "baked.glb")
    assert "bend.soft" in [clip.name for clip in baked.clips]
    assert len(baked.triangles) == len(limb().triangles)


REPLAYED = """async () => {
    const seen = {};
    while (softrig.state.replaying === null) await new Promise(requestAnimationFrame);
    while (softrig.state.replaying !== null) {
        const { replay, positions } = softrig.lastFrame();
        if (replay !== undefined) seen[replay.toFixed(4)] = Array.from(positions);
        await new Promise(requestAnimationFrame);
    }
    return seen;
}"""
"""Of one replay, by seconds into the take, the vertices of each frame that was drawn."""


def test_live_play_is_recorded_replayed_exactly_and_baked(screen, tmp_path: Path):
    screen.choose("shake")
    screen.play(True)
    screen.tool("Pull")
    section = screen.open("take")
    section.get_by_role("button", name="Record live play").click()
    screen.wait("softrig.state.recording.on")
    mouse = screen.page.mouse
    mouse.move(*screen.place(screen.in_sight(0.75)))
    mouse.down()
    mouse.move(500, 200, steps=5)
    screen.wait("softrig.state.recording.seconds > 0.6")
    mouse.up()
    screen.wait("softrig.state.recording.seconds > 1.2")
    section.get_by_role("button", name="Stop").click()
    screen.wait("softrig.state.recording.takes.length === 1")
    recorded = screen.viewer.runner.stage.studio.recordings.takes["take 1"]
    assert len(recorded.arrays["pull_patches"]) > 10, "the hand is in the take"

    replays = []
    for _ in range(2):
        section.get_by_title("Replay take 1 exactly").click()
        replays.append(screen.page.evaluate(REPLAYED))
    wanted = recorded.vertices(screen.viewer.runner.stage.subject.model)
    both = sorted(set(replays[0]) & set(replays[1]))
    assert len(both) >= 3
    for when in both:
        one, other = (np.array(replay[when]).reshape(-1, 3) for replay in replays)
        assert np.array_equal(one, other)
        frame = int(np.abs(recorded.times - float(when)).argmin())
        # Pages are sent 16 bits a coordinate.
        assert np.abs(one - wanted[frame]).max() < 2e-5 * np.ptp(one, axis=0).max()

    section.get_by_label("As", exact=True).select_option(".glb")
    section.get_by_title("Bake take 1, with all that was pulled and tuned in it").click()
    link = section.get_by_title("Download take 1.glb")
    link.wait_for(timeout=1e3 * PATIENCE)
    with screen.page.expect_download(timeout=1e3 * PATIENCE) as coming:
        link.click()
    coming.value.save_as(tmp_path / "take.glb")
    assert "take 1.soft" in [clip.name for clip in load_character(tmp_path / "take.glb").clips]


def test_a_take_is_saved_forgotten_and_dropped_in_again(screen, tmp_path: Path):
    section = screen.open("take")
    section.get_by_title("Save take 1 itself").click()
    link = section.get_by_title("Download take 1.npz")
    link.wait_for(timeout=1e3 * PATIENCE)
    with screen.page.expect_download(timeout=1e3 * PATIENCE) as coming:
        link.click()
    coming.value.save_as(tmp_path / "take 1.npz")
    before = screen.viewer.runner.stage.studio.recordings.takes["take 1"]
    assert np.array_equal(Take.load(tmp_path / "take 1.npz").arrays["poses"], before.arrays["poses"])
    section.get_by_role("button", name="Forget take 1", exact=True).click()
    screen.wait("softrig.state.recording.takes.length === 0")
    screen.drop(tmp_path / "take 1.npz")
    screen.wait("softrig.state.recording.takes[0] === 'take 1'")
    section.get_by_title("Replay take 1 exactly").click()
    screen.wait("softrig.state.replaying === 'take 1'")
    # Within the page: on a busy machine the replay is over before a click from outside has found its place.
    screen.wait(
        "(() => { const stop = document.querySelector('#section-take [title=\"Stop the replay\"]'); "
        "if (stop) stop.click(); return stop !== null; })()"
    )
    screen.wait("softrig.state.replaying === null")


def test_every_layer_and_a_mode_can_be_looked_at(screen):
    screen.choose(None)
    screen.still()
    section = screen.open("look")
    plain = screen.pixels()
    names = screen.page.evaluate("softrig.hello.layers")
    assert {"tets", "cut", "regions", "fixed", "contact", "cubature", "magnitude", "softness"} <= set(names)
    for tile in section.locator(".tiles").get_by_role("radio").all()[1:]:
        tile.click()
        screen.wait("softrig.state.layer !== null")
        frames = screen.page.evaluate("softrig.frames")
        screen.wait("frames => softrig.frames > frames + 2", frames)
        assert np.abs(screen.pixels() - plain).max() > 20.0, tile.inner_text()
    section.get_by_role("radio").filter(has_text="Skin").first.click()
    screen.wait("softrig.state.layer === null")
    still = screen.positions()
    section.get_by_role("switch", name="Show a mode by itself").click()
    screen.wait("softrig.state.mode === 0")
    screen.wait(
        "still => softrig.lastFrame().positions.some((x, i) => Math.abs(x - still[i]) > 0.01)", still.ravel().tolist()
    )
    section.get_by_role("button", name="Next").click()
    screen.wait("softrig.state.mode === 1")
    section.get_by_role("switch", name="Show a mode by itself").click()
    screen.wait("softrig.state.mode === null")


def test_pictures_and_videos_come_down(screen, tmp_path: Path):
    section = screen.open("take")
    with screen.page.expect_download(timeout=1e3 * PATIENCE) as coming:
        section.get_by_role("button", name="Picture").click()
    coming.value.save_as(tmp_path / "picture.png")
    with Image.open(tmp_path / "picture.png") as picture:
        assert min(picture.size) > 300
        assert np.ptp(np.asarray(picture.convert("L"))) > 50
    video = section.get_by_role("button", name="Video")
    video.click()
    screen.page.wait_for_timeout(1500)
    with screen.page.expect_download(timeout=1e3 * PATIENCE) as coming:
        video.click()
    coming.value.save_as(tmp_path / "film.webm")
    content = (tmp_path / "film.webm").read_bytes()
    assert content[:4] == b"\x1aE\xdf\xa3", "the mark of a WebM"
    assert len(content) > 5000


def test_a_browser_without_the_token_sees_nothing(browser, viewer):
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    address = viewer.url.partition("?")[0]
    for query in ("", "?token=wrong"):
        assert page.goto(address + query).status == 403
        assert not page.evaluate("'softrig' in window")
    assert page.goto(f"{address}page/main.js").status == 403
    context.close()


def test_no_address_leads_out_of_the_page(screen):
    """Asked by the page itself, whose cookie opens everything that there is."""
    found = screen.page.evaluate(
        """paths => Promise.all(paths.map(async path => {
            const answer = await fetch(path);
            return [answer.status, await answer.text()];
        }))""",
        ["/page/style.css", "/page/..%2fserver.py", "/page/%2e%2e%2f%2e%2e%2fcli.py", "/files/..%2f..%2fetc%2fpasswd"],
    )
    assert found[0][0] == 200
    assert [status for status, _ in found[1:]] == [404] * 3
    assert all("import" not in text and "root:" not in text for _, text in found[1:])
    screen.errors[:] = [error for error in screen.errors if "404" not in error]  # chromium notes those it asked for


def test_twenty_reloads_leave_nothing_behind(screen):
    pages, page = screen.viewer._server.pages, screen.page

    def reload(times: int) -> None:
        for _ in range(times):
            page.reload()
            screen.look(1)

    reload(2)  # what is made once is made now
    screen.until(lambda: len(pages) == 1)
    gc.collect()
    threads, memory = threading.active_count(), resident()
    reload(20)
    screen.until(lambda: len(pages) == 1)
    screen.until(lambda: threading.active_count() <= threads)
    gc.collect()
    assert resident() - memory < 10e6
    assert screen.viewer.runner.is_running


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
