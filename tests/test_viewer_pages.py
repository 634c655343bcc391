"""The viewer in a real browser, beyond the mouse on a model: dropped files, fingers, handles, sketches, coats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser_for_tests import CHROMIUM
from characters_for_tests import limb
from softrig.bases.modes import linear_modes
from softrig.dynamics import Rayleigh
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.forces.polynomial import reduce_body
from softrig.io.glb_writer import write_character_glb
from softrig.meshing import box_bricks
from softrig.models.file import save_model
from softrig.models.full import FullBody
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.project import load_project
from softrig.viewer.view import view
from textured_for_tests import textured_sheet
from viewer_for_tests import soft_bar
from viewer_screen_for_tests import Screen, chromium, screen_of

if CHROMIUM is None:
    pytest.skip("the viewer in a browser is not tested: chromium is not installed", allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="the viewer in a browser is not tested: playwright is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


# Small things that newcomers meet first


@pytest.fixture(scope="module")
def bar(browser) -> Iterator[Screen]:
    """A page that looks at the soft bar; its console must stay empty."""
    with view(soft_bar()) as viewer, screen_of(browser, viewer) as screen:
        yield screen
        assert screen.errors == []


def test_the_hint_for_newcomers_goes_with_the_first_pull(browser, bar):
    with screen_of(browser, bar.viewer) as newcomer:  # in a context of its own: nothing is remembered there
        newcomer.choose(None)
        hint = newcomer.page.locator("#hint")
        assert "Drag the flesh to pull it" in hint.inner_text()
        newcomer.page.mouse.move(*newcomer.place(newcomer.in_sight(0.7)))
        newcomer.page.mouse.down()
        newcomer.until(lambda: not hint.is_visible())
        newcomer.page.mouse.up()
        newcomer.page.reload()
        newcomer.look()
        assert not hint.is_visible(), "it does not come back"
        assert newcomer.errors == []


def test_the_first_view_shows_every_pose_of_the_first_clip(bar):
    bar.page.locator("#picture").press("Home")
    bar.choose("wave")
    bar.play(True)
    box = bar.page.locator("#picture").bounding_box()
    outside = bar.page.evaluate(
        """async ({ x, y, width, height }) => {
            const begun = softrig.lastFrame().time, outside = new Set();
            while (softrig.lastFrame().time < begun + 1.2) { // longer than the clip
                for (let v = 0; v < softrig.lastFrame().positions.length / 3; v++) {
                    const [px, py] = softrig.project(v);
                    if (px < x || px > x + width || py < y || py > y + height) outside.add(v);
                }
                await new Promise(requestAnimationFrame);
            }
            return [...outside];
        }""",
        box,
    )
    assert outside == []


def test_the_main_stiffness_slider_goes_back_with_an_undo(bar):
    bar.open("tune")
    shown = bar.page.locator("#panel [data-key='stiffness'] output")
    before, handle = shown.inner_text(), bar.page.locator("#panel [data-key='stiffness'] input")
    place = handle.input_value()
    bar.slide("stiffness", "End")
    bar.wait("Object.values(softrig.state.settings.stiffness).every(factor => factor > 9)")
    bar.until(lambda: shown.inner_text() == "×10.0")
    bar.page.keyboard.press("Control+z")
    bar.wait("Object.values(softrig.state.settings.stiffness).every(factor => factor === 1)")
    bar.until(lambda: shown.inner_text() == before)
    assert handle.input_value() == place


def test_the_space_bar_after_a_click_plays_or_pauses_once_and_presses_nothing(bar):
    for button in ("[title='Loop (L)']", ".primary", "[title='Loop (L)']"):
        bar.page.locator(f"#transport button{button}").click()
        bar.page.wait_for_timeout(300)
        playing, loop = bar.page.evaluate("[softrig.state.playing, softrig.state.loop]")
        bar.page.keyboard.press(" ")
        bar.wait("playing => softrig.state.playing !== playing", playing)
        bar.page.wait_for_timeout(300)  # a second press would be here by now
        assert bar.page.evaluate("[softrig.state.playing, softrig.state.loop]") == [not playing, loop]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_both_halves_of_the_split_view_have_a_name(browser, bar, theme):
    with screen_of(browser, bar.viewer, color_scheme=theme) as screen:
        names = [screen.page.get_by_text(name, exact=True) for name in ("plain skinning", "soft")]
        assert not any(name.is_visible() for name in names)
        screen.page.locator("#transport").get_by_role("radio", name="Split").click()
        screen.until(lambda: all(name.is_visible() for name in names))
        plain, soft, divider, hint = (
            each.bounding_box() for each in (*names, screen.page.locator("#divider"), screen.page.locator("#hint"))
        )
        assert plain["x"] + plain["width"] < divider["x"] + divider["width"] / 2 < soft["x"]
        assert hint["y"] + hint["height"] < min(plain["y"], soft["y"]), "nothing lies over them"
        screen.page.locator("#transport").get_by_role("radio", name="Soft").click()
        screen.until(lambda: not any(name.is_visible() for name in names))


# Files that fall onto the page


def test_a_dropped_character_plays_and_a_dropped_model_is_soft(browser, tmp_path: Path):
    write_character_glb(limb(), tmp_path / "limb.glb")
    save_model(soft_bar(), tmp_path / "bar.softrig")
    (tmp_path / "bad.glb").write_bytes(b"no glTF at all")
    (tmp_path / "notes.txt").write_text("hello")
    with view(soft_bar()) as viewer, screen_of(browser, viewer) as screen:
        screen.drop(tmp_path / "limb.glb")
        screen.wait("softrig.hello.name === 'limb' && !softrig.hello.flesh")
        frames = screen.page.evaluate("softrig.frames")
        screen.wait("frames => softrig.frames > frames + 2", frames)
        assert len(screen.positions()) == limb().rig.vertex_count
        assert screen.page.get_by_role("button", name="Build the flesh").is_visible()
        for wrong, words in (("bad.glb", "bad.glb: this is no 3D"), ("notes.txt", "notes.txt is neither a character")):
            screen.drop(tmp_path / wrong)
            screen.page.locator(".toast.error").filter(has_text=words).first.wait_for()
        assert screen.page.evaluate("softrig.hello.name") == "limb"
        screen.drop(tmp_path / "bar.softrig")
        screen.wait("softrig.hello.flesh")
        screen.until(lambda: len(screen.positions()) == len(soft_bar().embedding_nodes))
        folders = list(viewer._server._site._uploads.iterdir())
        assert len(folders) == 1, "of what is not shown any more nothing is kept"
        assert [error for error in screen.errors if "400" not in error] == []


# Handles


def test_a_region_is_marked_with_a_click_and_saved(browser, tmp_path: Path):
    write_character_glb(limb(), tmp_path / "limb.glb")
    with view(tmp_path / "limb.glb") as viewer, screen_of(browser, viewer) as screen:
        screen.choose(None)
        section = screen.open("build")
        for tool, name, share in (("Pull", "belly", 0.4), ("Orbit", "tip", 0.8)):
            screen.tool(tool)
            section.get_by_placeholder("Name of a new region").fill(name)
            section.get_by_role("button", name="Mark", exact=True).click()
            vertex = screen.in_sight(share)
            screen.page.mouse.click(*screen.place(vertex))
            screen.wait("name => softrig.state.handles.some(handle => handle.name === name)", name)
            point = screen.page.evaluate("name => softrig.state.handles.find(each => each.name === name).point", name)
            np.testing.assert_allclose(point, viewer.runner.stage.subject.geometry().rest[vertex], atol=1e-6)
        section.get_by_title("Remove the handle belly").click()
        screen.wait("softrig.state.handles.length === 1")
        screen.page.keyboard.press("Control+s")
        screen.until((tmp_path / "limb.toml").is_file)
        screen.wait("!softrig.state.unsaved.decisions")
        assert [handle.name for handle in load_project(tmp_path / "limb.toml").basis.handles] == ["tip"]
        assert screen.errors == []


# A plain body: the whole loop of StVK05 §5.2


def test_pulls_on_a_plain_body_become_a_basis_that_knows_them(browser):
    box = box_bricks((1.0, 0.1, 0.1), (8, 2, 2))
    mesh = VolumeMesh.build(box.vertices, box.elements)
    full = FullBody(mesh, Material(young=4e6, poisson=0.3, density=1000.0), fixed=mesh.vertices[:, 0] == 0.0)
    few = reduce_body(full, linear_modes(full, 2).shapes)
    simulation = ReducedSimulation(few, 1e-3, damping=Rayleigh(2.0, 0.01))
    with view(simulation, body=full) as viewer, screen_of(browser, viewer) as screen:
        section = screen.open("build")
        section.get_by_role("switch", name="Record my pulls").click()
        screen.wait("softrig.state.sketch.recording")
        screen.tool("Pull")
        mouse, vertex = screen.page.mouse, screen.in_sight(0.95)
        for across, up in ((0, -80), (60, 0), (0, 70)):
            before = screen.page.evaluate("softrig.state.sketch.pulls")
            screen.still()  # or it has swung away from where it is taken hold of
            x, y = screen.place(vertex)
            mouse.move(x, y)
            mouse.down()
            mouse.move(x + across, y + up, steps=4)
            screen.wait("before => softrig.state.sketch.pulls > before", before)
            mouse.up()
            screen.until(lambda: not viewer.runner.stage.touch.pulls)
        section.get_by_role("switch", name="Record my pulls").click()
        screen.wait("!softrig.state.sketch.recording")
        version = viewer.runner.stage.version
        section.get_by_role("button", name="Make the basis").click()
        screen.until(lambda: viewer.runner.stage.version > version)
        model = viewer.runner.stage.subject.model
        assert model.size > few.size
        assert "sketched pulls" in str(model.notes)
        assert viewer.runner.stage.subject.simulation.damping.mass == pytest.approx(2.0), "it is damped as before"
        # It plays on, and can be pulled again.
        frames = screen.page.evaluate("softrig.frames")
        screen.wait("frames => softrig.frames > frames + 3 && softrig.hello.modes.most > 2", frames)
        rest = screen.still()
        x, y = screen.place(vertex)
        mouse.move(x, y)
        mouse.down()
        mouse.move(x, y - 60, steps=3)
        screen.until(lambda: bool(np.abs(screen.positions() - rest).max() > 0.005))
        mouse.up()
        section.get_by_role("button", name="Forget pulls").click()
        screen.wait("softrig.state.sketch.pulls === 0")
        assert screen.errors == []


# Fingers


class Fingers:
    """Touches as a touch screen sends them."""

    def __init__(self, screen: Screen) -> None:
        self._line = screen.page.context.new_cdp_session(screen.page)

    def touch(self, kind: str, *points: tuple[float, float]) -> None:
        """`kind`: start, move or end; `points`: all fingers that lie on the glass then."""
        places = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        self._line.send("Input.dispatchTouchEvent", {"type": f"touch{kind.capitalize()}", "touchPoints": places})


def test_one_finger_pulls_or_turns_and_two_zoom(browser):
    with view(soft_bar()) as viewer, screen_of(browser, viewer, has_touch=True) as screen:
        screen.choose(None)
        screen.tool("Pull")
        rest, fingers = screen.still(), Fingers(screen)
        vertex = screen.in_sight(0.9)
        x, y = screen.place(vertex)
        fingers.touch("start", (x, y))
        fingers.touch("move", (x, y - 40))
        fingers.touch("move", (x, y - 80))
        screen.until(lambda: len(viewer.runner.stage.touch.pulls) == 1)
        screen.until(lambda: bool(np.linalg.norm(screen.positions() - rest, axis=1)[vertex] > 0.003))
        fingers.touch("end")
        screen.until(lambda: not viewer.runner.stage.touch.pulls)
        screen.still()

        box = screen.page.locator("#picture").bounding_box()
        left, top = box["x"] + 0.35 * box["width"], box["y"] + 0.12 * box["height"]
        assert screen.page.evaluate("([x, y]) => softrig.pick(x, y)", [left, top]) is None
        begin = screen.place(vertex)
        fingers.touch("start", (left, top))
        fingers.touch("move", (left + 60, top))
        fingers.touch("end")
        turned = screen.place(vertex)
        assert np.hypot(turned[0] - begin[0], turned[1] - begin[1]) > 5.0

        def span() -> float:
            ends = [screen.place(screen.in_sight(share)) for share in (0.2, 0.8)]
            return float(np.hypot(ends[0][0] - ends[1][0], ends[0][1] - ends[1][1]))

        before = span()
        middle = box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"]
        pair = lambda apart: [(middle[0] - apart, middle[1]), (middle[0] + apart, middle[1])]  # noqa: E731
        fingers.touch("start", pair(40)[0])
        fingers.touch("start", *pair(40))
        fingers.touch("move", *pair(60))
        fingers.touch("move", *pair(80))
        # One is lifted: the other goes on turning the view, and holds nothing.
        fingers.touch("end", pair(80)[0])
        fingers.touch("move", (pair(80)[0][0] + 5, middle[1]))
        fingers.touch("end")
        assert span() > 1.5 * before
        assert not viewer.runner.stage.touch.pulls
        assert screen.errors == []


# What it looks like


def test_the_pictures_of_the_file_are_on_the_skin(browser, tmp_path: Path):
    """A sheet that is red at one end and blue at the other, whose triangles look away: seen from both sides."""
    textured_sheet(tmp_path / "sheet.glb")
    with view(tmp_path / "sheet.glb") as viewer, screen_of(browser, viewer) as screen:
        coat = viewer.runner.stage.subject.coat
        assert [kind for kind, _ in coat.pictures] == ["image/jpeg"]
        screen.page.evaluate("softrig.renderer.level = 1")
        screen.until(lambda: _colour(screen, 0.1)[0] > 1.5 * _colour(screen, 0.1)[2])
        red, blue = _colour(screen, 0.1), _colour(screen, 0.9)
        assert red[0] > 1.5 * red[2]
        assert blue[2] > 1.5 * blue[0]
        assert red[0] > 90.0, "the side that is seen is lit"
        assert screen.errors == []


@pytest.mark.parametrize("size", [(1366, 768), (1280, 720), (900, 700), (420, 800)])
def test_nothing_runs_off_the_page(browser, size):
    with view(soft_bar()) as viewer:
        viewport = {"width": size[0], "height": size[1]}
        with screen_of(browser, viewer, viewport=viewport) as screen:
            for section in ("play", "tune", "look", "build", "take"):
                screen.open(section)
                beyond = screen.page.evaluate(
                    """() => ["#panel button", "#panel input", "#transport button", ".bar button"]
                        .flatMap(where => [...document.querySelectorAll(where)])
                        .filter(node => node.offsetParent && !node.closest("[hidden]"))
                        .filter(node => {
                            const box = node.getBoundingClientRect(), home = node.closest("#panel, #transport, .bar");
                            const room = home.getBoundingClientRect();
                            return box.left < room.left - 1 || box.right > room.right + 1 || box.right > innerWidth + 1;
                        }).map(node => node.textContent || node.title)"""
                )
                assert beyond == [], section
            stage = screen.page.locator("#picture").bounding_box()
            assert stage["width"] > 0.6 * size[0] or stage["height"] > 0.4 * size[1]
            assert stage["height"] > 200


def _colour(screen: Screen, share: float) -> np.ndarray:
    """(3,) what is drawn there."""
    x, y = screen.place(screen.in_sight(share))
    box, picture = screen.page.locator("#picture").bounding_box(), screen.pixels()
    height, width = picture.shape[:2]
    row, column = int((y - box["y"]) * height / box["height"]), int((x - box["x"]) * width / box["width"])
    return picture[row - 2 : row + 3, column - 2 : column + 3].mean(axis=(0, 1))
