"""Pictures of a clip, plain skinning beside soft flesh: which moments, from where, and files that show them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.spatial import ConvexHull

from pose_models_for_tests import bar_model
from softrig.errors import InputError, Notice
from softrig.pipeline import showing
from softrig.pipeline.baking import model_simulation
from softrig.pipeline.showing import (
    BESIDE,
    LIGHT,
    NARROWEST,
    PIXELS,
    TURN,
    TURNS,
    WIDEST,
    BesidePlain,
    outermost,
    show_clip,
    shown_part,
    telling_frames,
    telling_turn,
    whole_camera,
)
from softrig.pipeline.showing import towards as camera_stands
from softrig.render import Ground


@pytest.mark.parametrize("lift", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("turn", [26.6, 180.0])
def test_the_camera_sees_a_jumper_and_its_shadow(lift: float, turn: float) -> None:
    body = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 3))
    body[:, 1] += 1.0 + lift
    camera, shape = whole_camera(body, Ground(0.0), turn)
    assert NARROWEST <= shape <= WIDEST
    half = np.tan(camera.field_of_view / 2) * np.array([shape, 1.0])
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
        return np.asarray(image.convert("RGB")).astype(int)


def lifted(by: float = 0.3):
    """The bar's bake as if flesh hung that much higher than plain skinning, metres, all the time."""
    model = bar_model()
    bake = model_simulation(model).bake(model.clips[0], 10.0, plain=True)
    return model, replace(bake, vertices=bake.plain + np.array([0.0, by, 0.0], np.float32))


def height_of_the_bar(picture: np.ndarray) -> float:
    """The mean row of what is darker and more colourful than sky and ground are; pictures (h, w, 3)."""
    return float(np.mean(np.nonzero(picture[..., 0].astype(int) > picture[..., 2].astype(int) + 12)[0]))


def test_plain_stands_left_of_soft_and_above_it() -> None:
    model, bake = lifted()
    pictures = BesidePlain(model, bake)
    frames, rate = pictures.animation(5.0)
    assert (len(frames), rate) == (6, 5.0)
    width, height = pictures.moving_size
    left, right = frames[2][:height, :width], frames[2][:height, -width:]
    assert height_of_the_bar(right) < height_of_the_bar(left) - 20, "rows count downwards"
    sheet = pictures.sheet(1)
    below, height = sheet.shape[0] // 3, pictures.size[1]
    assert height_of_the_bar(sheet[below : below + height]) < height_of_the_bar(sheet[:height]) - 15


def test_nothing_that_juts_out_is_cut_off() -> None:
    """One vertex, such as the tip of an ear, in one frame, such as the top of a leap."""
    model, bake = lifted(0.0)
    vertices = bake.vertices.copy()
    vertices[7, 13] += np.array([0.2, 1.5, 0.3], np.float32)
    pictures = BesidePlain(model, replace(bake, vertices=vertices))
    camera, shape = pictures.camera, pictures.size[0] / pictures.size[1]
    x, y, away = camera.axes() @ (vertices.reshape(-1, 3) - camera.eye).T
    half = np.tan(camera.field_of_view / 2)
    assert (np.abs(y / away) < half).all()
    assert (np.abs(x / away) < half * shape * 1.01).all()
    found = outermost(vertices)
    assert (found == vertices[7, 13]).all(axis=1).any()
    assert len(found) < 27 * len(vertices)


def test_a_picture_is_as_wide_as_what_it_shows() -> None:
    long = np.random.default_rng(1).uniform(-1.0, 1.0, (200, 3)) * [3.0, 0.3, 0.3]
    assert whole_camera(long, Ground(-0.5), 0.0)[1] == WIDEST
    assert whole_camera(long, Ground(-0.5), 90.0)[1] < 1.3


@pytest.mark.parametrize("turn", TURNS)
def test_it_is_seen_from_where_most_of_the_motion_is(turn: float) -> None:
    """Flesh of a ball rises where one of the cameras sees it; where that is no different it is seen from before."""
    rng = np.random.default_rng(2)
    ball = rng.normal(size=(400, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    triangles = ConvexHull(ball).simplices
    corners = ball[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = np.einsum("ti,ti->t", normals, corners.mean(axis=1)) < 0.0
    triangles[inwards] = triangles[inwards][:, ::-1]
    plain = ball[None].astype(np.float32)
    facing = np.maximum(ball @ np.array(camera_stands(turn)), 0.0) ** 40

    def turn_for(moves: np.ndarray) -> float:
        return telling_turn(triangles, plain[0], plain[0] + moves[0].astype(np.float32))

    assert turn_for(facing[None, :, None] * np.array([0.0, 0.1, 0.0])) == turn
    assert turn_for(np.full((1, 400, 3), [0.0, 0.1, 0.0])) == TURN
    # All of it moves sideways: from beside it would seem to stand still.
    assert turn_for(np.full((1, 400, 3), np.array(camera_stands(BESIDE)) * 0.1)) != BESIDE


def test_the_camera_stands_where_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = []

    def render(meshes, camera, size, **_):
        seen.append(camera)
        return np.full((size[1], size[0], 3), 255, np.uint8)

    monkeypatch.setattr(showing, "render", render)
    show_clip(bar_model(), "wave", tmp_path / "wave.png", moments=1, turn=90.0)
    x, _, z = (np.asarray(seen[0].eye) - np.asarray(seen[0].target)).tolist()
    assert x > 10.0 * abs(z)
    assert show_clip(bar_model(), "wave", tmp_path / "wave.png", moments=1).turn in TURNS


def test_a_sheet_has_a_column_a_moment_and_its_last_row_is_coloured_by_the_offset(tmp_path: Path) -> None:
    told = show_clip(bar_model(), "wave", tmp_path / "wave.png", moments=2)
    assert 1e-3 < told.most < 0.3
    assert told.joint in bar_model().rig.skeleton.names
    picture = colours_of(tmp_path / "wave.png")
    third = picture.shape[0] // 3
    assert picture.shape[1] * third > 2 * PIXELS
    colourful = np.ptp(picture, axis=2)
    assert colourful[: third // 2].max() < 90, "skin"
    assert np.percentile(colourful[-third:], 99.9) > 110, "the scale of colours"


def played(path: Path) -> tuple[int, int]:
    """Frames of an animation, and milliseconds that they last."""
    with Image.open(path) as animation:
        count, lasts = getattr(animation, "n_frames", 1), 0
        for frame in range(count):
            animation.seek(frame)
            lasts += animation.info["duration"]
    return count, lasts


def test_an_animation_lasts_as_long_as_its_clip(tmp_path: Path) -> None:
    show_clip(bar_model(), "wave", tmp_path / "wave.gif", fps=5.0)
    assert played(tmp_path / "wave.gif") == (6, 1200)


@pytest.mark.parametrize(("fps", "frames"), [(7.0, 7), (50.0, 50)])
def test_a_loop_lasts_as_long_as_its_cycle(tmp_path: Path, fps: float, frames: int) -> None:
    clip = replace(bar_model().clips[0], looping=True)
    model = replace(bar_model(), clips=(clip,))
    show_clip(model, "wave", tmp_path / "wave.gif", fps=fps)
    count, lasts = played(tmp_path / "wave.gif")
    assert lasts == 1000
    show_clip(bar_model(), "wave", tmp_path / "asked.gif", fps=fps, loop=True)
    assert (tmp_path / "asked.gif").read_bytes() == (tmp_path / "wave.gif").read_bytes()
    assert count <= frames
    short = replace(model, clips=(replace(clip.trimmed(0.0, 0.51), looping=True),))
    bake = model_simulation(short).bake(short.clips[0], 60.0, loop=True, plain=True)
    pictures, rate = BesidePlain(short, bake).animation(fps)
    assert len(pictures) / rate == pytest.approx(0.51)
    assert rate <= 50.0


def test_a_part_of_a_clip_is_moved_by_what_comes_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(showing, "BesidePlain", lambda model, bake, **_: seen.append(bake) or BesidePlain(model, bake))
    model = bar_model()
    show_clip(model, "wave", tmp_path / "part.png", span=(0.4, 0.7), moments=1)
    whole = model_simulation(model).bake(model.clips[0], 60.0, plain=True)
    assert seen[0].times[0] == pytest.approx(0.4)
    assert seen[0].times[-1] == pytest.approx(0.7)
    np.testing.assert_allclose(seen[0].vertices, whole.vertices[24:43], atol=1e-6)
    monkeypatch.setattr(showing, "LEAD", 0.1)
    show_clip(model, "wave", tmp_path / "part.png", span=(0.4, 0.7), moments=1)
    assert seen[1].times[[0, -1]] == pytest.approx([0.4, 0.7])
    np.testing.assert_allclose(seen[1].plain, seen[0].plain, atol=1e-5)
    assert np.abs(seen[1].vertices - seen[0].vertices).max() > 1e-4, "it began later"
    show_clip(model, "wave", tmp_path / "part.png", span=(0.52, 0.53), moments=1)
    assert len(seen[2]) == 1, "between two frames, the nearest"


def test_only_so_much_of_a_clip_is_shown() -> None:
    clip = bar_model().clips[0]
    assert shown_part(clip, None, 1000).clip is clip
    with pytest.warns(Notice, match="'wave' lasts 1 s: its first 0.5 are shown"):
        part = shown_part(clip, None, int(1e8 / 60))
    assert (part.begin, part.start, part.end, part.clip.duration) == pytest.approx((0.0, 0.0, 0.5, 0.5))
    with pytest.raises(InputError, match=r"from 0 to 0\.9 s is too long to be shown at once: at most 0\.5 s"):
        shown_part(clip, (0.0, 0.9), int(1e8 / 60))
    assert shown_part(clip, (0.2, 1.008), 1000).end == 1.0, "as `info` rounds it"
    for span in ((-1.0, 0.5), (0.5, 2.0), (np.nan, 0.5)):
        with pytest.raises(InputError, match="s is no part of clip 'wave', which lasts 1 s"):
            shown_part(clip, span, 1000)
    for span in ((0.5, 0.5), (0.7, 0.4)):
        with pytest.raises(InputError, match="the end must come after the start"):
            shown_part(clip, span, 1000)


def test_what_cannot_be_shown_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(showing, "model_simulation", None)
    model = bar_model()
    with pytest.raises(InputError, match=r"cannot write \.mp4; there are \.png, \.gif"):
        show_clip(model, "wave", tmp_path / "wave.mp4")
    with pytest.raises(FileNotFoundError):
        show_clip(model, "wave", tmp_path / "nowhere" / "wave.png")
    for options, told in (
        ({"fps": 60.0}, "60 frames a second is not within"),
        ({"fps": 0.1}, "0.1 frames a second is not within"),
        ({"moments": 0}, "a sheet of 0 moments"),
        ({"turn": np.inf}, "a camera cannot stand inf degrees"),
        ({"loop": True, "span": (0.1, 0.5)}, "a part of a clip does not loop"),
    ):
        with pytest.raises(InputError, match=told):
            show_clip(model, "wave", tmp_path / "wave.gif", **options)
    for name in ("jump", "all", ""):
        with pytest.raises(InputError, match=f"no clip '{name}'"):
            show_clip(model, name, tmp_path / "wave.png")
    monkeypatch.setattr(showing, "MOST_FRAMES", 12)
    with pytest.raises(InputError, match="1 s at 15 frames a second are more than 12 pictures"):
        show_clip(model, "wave", tmp_path / "wave.gif")
    assert not list(tmp_path.iterdir())
