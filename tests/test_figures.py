"""The frame of `softrig figures`: charts, sheets, records, the page of all, the command. See also test_figures_*.py."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from softrig.bench.record import Row
from softrig.characters import built_in
from softrig.characters.softness import painted_softness
from softrig.cli import app
from softrig.errors import InputError
from softrig.figures import FIGURES, clips, figure_line, run, run_figures
from softrig.figures.chart import OURS, Line, line_chart
from softrig.figures.figure import Figure, made, png_bytes, read_figures, write_index
from softrig.figures.look import heat, key
from softrig.figures.sheet import Panel, sheet, spelt
from softrig.render import scale_end
from softrig.simulation import Bake
from softrig.simulation.baking import BakeReport

BLUE = tuple(int(OURS[k : k + 2], 16) for k in (1, 3, 5))


def small(name: str, value: float = 1.25) -> Figure:
    picture = sheet([[Panel(np.full((20, 30, 3), 90, np.uint8), "heading", "note")]])
    rows = [Row("error", "%", value, others={"PSSD": 3.5})]
    return made(
        name, f"Title of {name}", picture, rows, "What one sees.", alt="Grey, 1.25 %", sizes={"beam": {"tets": 12}}
    )


def blue_rows(picture: np.ndarray) -> np.ndarray:
    """Mean row of the blue pixels in each column that has some."""
    blue = (np.abs(picture.astype(int) - np.array(BLUE)) < 40).all(axis=2)
    return np.array([np.flatnonzero(column).mean() for column in blue.T if column.any()])


def test_a_rising_line_rises_on_the_picture() -> None:
    x = np.linspace(0.0, 1.0, 20)
    picture = line_chart([Line("a", x, 3.0 * x, OURS)], x_label="x, m", y_label="y, m", legend="")
    rows = blue_rows(picture)
    assert len(rows) > 300
    assert rows[0] - rows[-1] > 150  # pixel rows count downwards
    assert np.all(np.diff(rows) < 1.0)


def test_a_logarithmic_axis_makes_powers_even() -> None:
    x = np.arange(5.0)
    even = blue_rows(line_chart([Line("a", x, 10.0**x, OURS)], x_label="", y_label="", legend="", logarithmic="y"))
    assert np.polyfit(np.arange(len(even)), even, 2)[0] == pytest.approx(0.0, abs=1e-4)
    with pytest.raises(InputError, match="cannot begin"):
        line_chart([Line("a", x, x, OURS)], x_label="", y_label="", logarithmic="y")


def test_a_dashed_line_has_gaps() -> None:
    x = np.linspace(0.0, 1.0, 5)
    full, dashed = (
        blue_rows(line_chart([Line("a", x, x, OURS, dashed=d)], x_label="", y_label="", legend=""))
        for d in (False, True)
    )
    assert 0.4 * len(full) < len(dashed) < 0.8 * len(full)


def test_a_sheet_holds_its_panels_on_white() -> None:
    dark = np.zeros((40, 60, 3), np.uint8)
    picture = sheet([[Panel(dark), Panel(dark)], [Panel(dark)]])
    assert ((picture == 0).all(axis=2)).sum() == 3 * 40 * 60
    assert (picture[0] == 255).all()
    assert spelt("3 × 4 − 1") == "3 x 4 - 1"
    with pytest.raises(InputError):
        sheet([])


def test_a_png_keeps_size_and_colour() -> None:
    picture = np.zeros((8, 9, 3), np.uint8)
    picture[:, 4:] = (10, 200, 30)
    back = np.asarray(Image.open(io.BytesIO(png_bytes(picture))).convert("RGB"))
    assert np.abs(back.astype(int) - picture).max() <= 2


def test_figures_are_written_read_back_and_listed_in_order(tmp_path: Path) -> None:
    for name, value in (("zebra", 0.5), ("ant", 12.0)):
        small(name, value).write(tmp_path, 3.2)
    found = {figure.record.name: figure for figure in read_figures(tmp_path)}
    assert found["zebra"].record.rows[0] == Row("error", "%", 0.5, others={"PSSD": 3.5})
    assert found["ant"].record.seconds == 3.2
    assert (tmp_path / found["ant"].picture).exists()
    text = write_index(tmp_path, ("zebra", "ant")).read_text(encoding="utf-8")
    assert text.index("## Title of zebra") < text.index("## Title of ant")
    assert "![Grey, 1.25 %](ant.png)" in text
    assert "| error | % | 12 | 3.5 |" in text
    assert "12 tets" in text
    assert "What one sees." in text


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"rows": []}))
    with pytest.raises(InputError, match=r"other\.json: not the record of a figure"):
        write_index(tmp_path, ())


def test_the_command_lists_makes_and_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = CliRunner().invoke(app, ["figures", "--list"])
    assert listed.exit_code == 0
    assert all(name in listed.stdout for name in FIGURES)
    beginnings = ("Clip: ", "PSSD Fig. ", "StVK05 Fig. ", "SUB11 Fig. ")
    assert all(figure_line(name).startswith(beginnings) for name in FIGURES)
    refused = CliRunner().invoke(app, ["figures", "pssd-99", "-o", str(tmp_path)])
    assert refused.exit_code != 0
    assert isinstance(refused.exception, InputError)
    assert "no figure called pssd-99; there are clip-gorilla-jump" in str(refused.exception)
    monkeypatch.setitem(run.FIGURES, "tiny", lambda update: small("tiny"))
    done = CliRunner().invoke(app, ["figures", "tiny", "-o", str(tmp_path)])
    assert done.exit_code == 0
    assert (tmp_path / "tiny.png").exists()
    assert "tiny.png" in (tmp_path / "index.md").read_text(encoding="utf-8")


def test_the_committed_page_is_what_its_records_say() -> None:
    folder = Path(__file__).parent.parent / "docs" / "gallery"
    if not (folder / "index.md").exists():
        pytest.skip("no gallery is committed")
    written = (folder / "index.md").read_text(encoding="utf-8")
    for figure in read_figures(folder):
        assert figure.record.folded() in written
        assert figure.caption in written
        assert figure.alt in written
        size = (folder / figure.picture).stat().st_size
        assert size < (2_000_000 if figure.record.name.startswith("clip-") else 250_000)
    assert sum(path.stat().st_size for path in folder.glob("clip-*.png")) < 8_000_000
    assert {figure.record.name for figure in read_figures(folder)} == set(FIGURES)


def test_a_clip_shows_plain_and_soft_side_by_side_and_where_the_flesh_went() -> None:
    arm = painted_softness(built_in("arm"), {"Forearm": 0.25})
    softness, rest = arm.maps["softness"], arm.rest_positions
    assert softness.min() == pytest.approx(0.25)
    assert softness.max() == pytest.approx(1.0)
    tip = rest[:, 0] > np.quantile(rest[:, 0], 0.9)
    assert softness[tip].max() == pytest.approx(0.25), "the hand follows the forearm"

    count = 2 * clips.SUBFRAMES
    plain = np.repeat(rest[None].astype(np.float32), count, axis=0)
    soft = plain.copy()
    soft[clips.SUBFRAMES :, tip, 1] += 0.05
    report = BakeReport(60.0, {}, 0.05)
    bake = Bake("still", np.arange(count) / 60.0, np.zeros((count, 0)), soft, plain, np.zeros((count, 0)), report)
    scene = clips.Scene("arm", "wave", (0.25, 0.25, 1.0), (200, 150), 5e3, {})
    # Where the flesh is farthest off, the clip begins.
    second, first = (picture.astype(int) for picture in clips.drawn(scene, arm, bake))
    half = first.shape[1] // 2
    redness = [(picture[..., 0] - picture[..., 2]).clip(60).sum() for picture in (first, second[:, :half], second)]
    np.testing.assert_array_equal(first[:, :half], second[:, :half])
    assert (first[:, half:] != second[:, half:]).any()
    assert redness[2] > redness[0]
    assert (first[0] == 255).all()


def test_a_clip_beside_the_full_simulation_reddens_what_is_off_it() -> None:
    arm = built_in("arm")
    plain = np.repeat(arm.rest_positions[None], 2, axis=0)
    full, reduced = plain.copy(), plain.copy()
    full[1, :, 1] += 0.02
    reduced[1] = full[1]
    reduced[0, :, 1] += 0.01
    scene = clips.Scene("arm", "wave", (0.25, 0.25, 1.0), (150, 110), 5e3, {}, floor=False)
    # The first is where the full simulation is farthest from plain skinning; there nothing is off it.
    right, off = (picture.astype(int) for picture in clips.drawn_beside_full(scene, arm, plain, full, reduced))
    width, bar = right.shape[1] // 3, right.shape[0] - 70
    reds = [(picture[:bar, 2 * width :, 0] - picture[:bar, 2 * width :, 2]).max() for picture in (right, off)]
    assert reds[1] > reds[0] + 60
    assert "young = 7000" in clips.made_soft(7e3)


def test_colour_bars_end_at_two_figures_and_say_what_they_are() -> None:
    assert [scale_end(x) for x in (0.0, 0.1341, 0.018, 176.0)] == pytest.approx([1.0, 0.14, 0.018, 180.0])
    bar = key(heat, 0.02, "mm moved", unit=1e3).image
    assert bar.shape[1] == 340
    np.testing.assert_allclose(bar[3, [0, -1]] / 255.0, heat(np.array([0.0, 0.02]), 0.02), atol=0.01)


def test_unknown_figures_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nonsense"):
        run_figures(["nonsense"], tmp_path)
    assert not list(tmp_path.iterdir())
