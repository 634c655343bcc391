"""Pictures of a clip, plain skinning beside soft flesh: which moments, from where, and files that show them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pose_models_for_tests import bar_model
from softrig.errors import InputError, Notice
from softrig.pipeline import showing
from softrig.pipeline.baking import model_simulation
from softrig.pipeline.showing import (
    LIGHT,
    MOVING_SIZE,
    SIZE,
    BesidePlain,
    from_time,
    show_clip,
    telling_frames,
    whole_camera,
)
from softrig.pipeline.showing import towards as camera_stands
from softrig.render import Ground


@pytest.mark.parametrize("lift", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("turn", [26.6, 180.0])
def test_the_camera_sees_a_jumper_and_its_shadow(lift: float, turn: float) -> None:
    body = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 3))
    body[:, 1] += 1.0 + lift
    camera = whole_camera(body, Ground(0.0), turn)
    half = np.tan(camera.field_of_view / 2) * np.array([MOVING_SIZE[0] / MOVING_SIZE[1], 1.0])
    for seen in (body, LIGHT.shadow(body)):
        x, y, away = camera.axes() @ (seen - camera.eye).T
        assert (np.abs(np.stack([x, y]) / away) < half[:, None]).all()


def test_the_camera_goes_round_to_the_characters_left() -> None:
    """Who looks along +z has the left hand at +x."""
    for turn, (x, z) in {0.0: (0, 1), 90.0: (1, 0), 180.0: (0, -1), -90.0: (-1, 0)}.items():
        stands = np.array(camera_stands(turn))
        np.testing.assert_allclose(stands[[0, 2]], [x, z], atol=1e-12)
        assert stands[1] > 0.0


def test_telling_moments_are_large_and_apart_and_in_order() -> None:
    sizes = np.zeros(100)
    sizes[[20, 21, 22, 70]] = [5.0, 6.0, 5.5, 3.0]
    assert telling_frames(sizes, 2) == [21, 70]
    assert telling_frames(sizes, 1) == [21]
    assert telling_frames(np.array([1.0, 2.0]), 4) == [1]


def colours_of(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def test_a_sheet_has_a_column_a_moment_and_its_last_row_is_coloured_by_the_offset(tmp_path: Path) -> None:
    most = show_clip(bar_model(), "wave", tmp_path / "wave.png", moments=2)
    assert 1e-3 < most < 0.3
    picture = colours_of(tmp_path / "wave.png").astype(int)
    assert picture.shape[1] >= 2 * SIZE[0]
    assert picture.shape[0] >= 3 * SIZE[1]
    colourful = np.ptp(picture, axis=2)
    assert colourful[: SIZE[1]].max() < 90, "skin"
    assert np.percentile(colourful[-SIZE[1] - 100 :], 99.9) > 110, "the scale of colours"
    with pytest.raises(InputError, match="a sheet of 0 moments"):
        show_clip(bar_model(), "wave", tmp_path / "wave.png", moments=0)


def test_an_animation_lasts_as_long_as_its_clip_and_only_flesh_differs(tmp_path: Path) -> None:
    show_clip(bar_model(), "wave", tmp_path / "wave.gif", fps=5.0)
    with Image.open(tmp_path / "wave.gif") as animation:
        count = getattr(animation, "n_frames", 1)
        lasts = 0
        for frame in range(count):
            animation.seek(frame)
            lasts += animation.info["duration"]
        animation.seek(count // 2)
        both = np.asarray(animation.convert("RGB")).astype(int)
    assert count == 6
    assert lasts == 1200
    left, right = both[: MOVING_SIZE[1], : MOVING_SIZE[0]], both[: MOVING_SIZE[1], -MOVING_SIZE[0] :]
    differs = (np.abs(left - right).max(axis=2) > 30).mean()
    assert 0.0 < differs < 0.2


def test_a_part_of_a_clip_is_moved_by_what_comes_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(showing, "BesidePlain", lambda model, bake, **_: seen.append(bake) or BesidePlain(model, bake))
    model = bar_model()
    show_clip(model, "wave", tmp_path / "part.png", span=(0.4, 0.7), moments=1)
    whole = model_simulation(model).bake(model.clips[0], 60.0, plain=True)
    assert seen[0].times[0] == pytest.approx(0.4)
    assert seen[0].times[-1] == pytest.approx(0.7)
    np.testing.assert_allclose(seen[0].vertices, whole.vertices[24:43], atol=1e-6)
    np.testing.assert_allclose(from_time(whole, 0.4).vertices[:19], seen[0].vertices, atol=1e-6)
    for span in ((0.5, 0.5), (-1.0, 0.5), (0.7, 0.4)):
        with pytest.raises(InputError, match="is no part of a clip"):
            show_clip(model, "wave", tmp_path / "part.png", span=span)
    with pytest.raises(InputError, match="lasts 1"):
        show_clip(model, "wave", tmp_path / "part.png", span=(0.5, 2.0))


def test_of_a_long_clip_the_beginning_is_shown_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(showing, "LONGEST", 0.4)
    with pytest.warns(Notice, match="'wave' lasts 1 s: its first 0.4 are shown"):
        show_clip(bar_model(), "wave", tmp_path / "wave.gif", fps=10.0)
    with Image.open(tmp_path / "wave.gif") as animation:
        assert getattr(animation, "n_frames", 1) == 5


def test_what_cannot_be_shown_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(showing, "model_simulation", None)
    model = bar_model()
    with pytest.raises(InputError, match=r"cannot write \.mp4; there are \.png, \.gif"):
        show_clip(model, "wave", tmp_path / "wave.mp4")
    with pytest.raises(FileNotFoundError):
        show_clip(model, "wave", tmp_path / "nowhere" / "wave.png")
    with pytest.raises(InputError, match="60 frames a second is not within"):
        show_clip(model, "wave", tmp_path / "wave.gif", fps=60.0)
    with pytest.raises(InputError, match="no clip 'jump'"):
        show_clip(model, "jump", tmp_path / "wave.png")
    with pytest.raises(InputError, match="one clip at a time, not 2"):
        show_clip(replace(model, clips=model.clips * 2), "all", tmp_path / "wave.png")
    assert not list(tmp_path.iterdir())
