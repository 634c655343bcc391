"""Painted softness and other decisions of the viewer, from the brush to the model."""

from __future__ import annotations

import io
import os
import struct
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from characters_for_tests import limb
from errands_for_tests import TINY
from pose_models_for_tests import bar_model, pose
from softrig.characters import built_in
from softrig.errors import InputError
from softrig.io.format_error import FileFormatError
from softrig.io.npy import read_npz, write_npy, write_npz
from softrig.pipeline.build import build, build_parts
from softrig.pipeline.maps import paint_map, read_map, write_map
from softrig.pipeline.posing import chosen_poses
from softrig.poses.materials import STIFFEST
from softrig.project import load_project, save_project
from softrig.rig.anatomy import bony_softness
from softrig.viewer.decisions import captured, handle_at, pinned, with_handle, without_handle, without_pose
from softrig.viewer.painting import Painting
from softrig.viewer.subjects import surface_geometry
from softrig.viewer.walks import Walks

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb


@dataclass
class Shown:
    """A subject that can be painted on."""

    rest: np.ndarray
    triangles: np.ndarray
    model: object = None

    def geometry(self):
        return surface_geometry(self.rest, self.triangles, None)


def sheet(width: int, height: int, spacing: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """A flat grid in x and y."""
    x, y = np.meshgrid(np.arange(width), np.arange(height), indexing="ij")
    points = spacing * np.stack([x.ravel(), y.ravel(), np.zeros(width * height)], axis=1)
    faces = []
    for i in range(width - 1):
        for j in range(height - 1):
            a, b, c, d = i * height + j, (i + 1) * height + j, (i + 1) * height + j + 1, i * height + j + 1
            faces += [[a, b, c], [a, c, d]]
    return points, np.array(faces)


def on_limb(**options) -> Painting:
    character = limb()
    return Painting(Shown(character.rest_positions, character.triangles), character, **options)


def test_walks_are_as_long_as_the_surface_is() -> None:
    points, faces = sheet(31, 31)
    walks = Walks(points, faces, np.arange(len(points)))
    middle = 15 * 31 + 15
    near, distances = walks.within(middle, 0.1)
    straight = np.linalg.norm(points[near] - points[middle], axis=1)
    assert (distances >= straight - 1e-9).all()
    assert (distances <= 1.09 * straight + 1e-9).all()
    inside = np.linalg.norm(points - points[middle], axis=1) < 0.09
    assert set(np.flatnonzero(inside)) <= set(near.tolist())


def test_a_walk_does_not_jump_to_the_other_thigh_but_crosses_a_seam() -> None:
    points, faces = sheet(61, 5)
    folded = points.copy()  # like a hairpin: both halves side by side, 2 mm apart
    over = points[:, 0] > 0.3
    folded[over, 0] = 0.6 - points[over, 0]
    folded[over, 2] = 0.002
    walks = Walks(folded, faces, np.arange(len(points)))
    start = 10 * 5 + 2
    opposite = 50 * 5 + 2
    assert np.linalg.norm(folded[start] - folded[opposite]) < 0.0021
    near, _ = walks.within(start, 0.15)
    assert opposite not in near
    assert 5 * 5 + 2 in near
    # The same sheet cut in two, its edges in one place: a seam.
    left, right = faces[(faces // 5 < 30).any(axis=1)], faces[(faces // 5 >= 30).all(axis=1)]
    twice = np.concatenate([points, points])
    weld = np.concatenate([np.arange(len(points))] * 2)
    near, _ = Walks(twice, np.concatenate([left, right + len(points)]), weld).within(28 * 5 + 2, 0.05)
    assert len(points) + 31 * 5 + 2 in near
    cut, _ = Walks(twice, np.concatenate([left, right + len(points)]), np.arange(len(twice))).within(28 * 5 + 2, 0.05)
    assert len(points) + 31 * 5 + 2 not in cut


def test_a_dab_is_exact_in_its_middle_and_fades_to_its_rim() -> None:
    points, faces = sheet(41, 41)
    painting = Painting(Shown(points, faces))
    assert (painting.map() == 1.0).all()
    middle = 20 * 41 + 20
    painting.dab(middle, 0.1, 0.25)
    values = painting.map()
    distances = np.linalg.norm(points - points[middle], axis=1)
    assert (values[distances < 0.045] == 0.25).all()
    assert (values[distances > 0.1] == 1.0).all()
    row = values.reshape(41, 41)[20, 20:]
    assert (np.diff(row) >= 0.0).all()
    assert np.diff(row).max() < 0.25  # no edge: the whole is 0.75
    assert ((row > 0.25) & (row < 1.0)).sum() >= 3
    for _ in range(30):
        painting.dab(middle, 0.1, 0.0, 0.3)
    assert (painting.map()[distances < 0.04] == 0.0).all()  # weak dabs arrive at exactly nothing
    colours = painting.colours()
    assert colours.dtype == np.uint8
    assert colours.shape == (len(points), 4)
    assert colours[middle, :3].astype(int).sum() < colours[0, :3].astype(int).sum()


@pytest.mark.parametrize(
    ("vertex", "radius", "value", "strength"),
    [(-1, 0.1, 0.5, 1.0), (10**6, 0.1, 0.5, 1.0), (0, np.nan, 0.5, 1.0), (0, -0.1, 0.5, 1.0), (0, 0.1, 1.5, 1.0),
     (0, 0.1, -0.1, 1.0), (0, 0.1, 0.5, 2.0), (0, 0.1, np.inf, 1.0)],
)  # fmt: skip
def test_a_brush_out_of_bounds_paints_nothing(vertex, radius, value, strength) -> None:
    painting = on_limb()
    with pytest.raises(InputError):
        painting.dab(vertex, radius, value, strength)
    assert not painting.can_undo
    assert (painting.map() == 1.0).all()


def test_undo_takes_back_whole_strokes() -> None:
    now = [0.0]
    painting = on_limb(clock=lambda: now[0])
    for k in range(4):
        now[0] += 0.1
        painting.dab(20 + k, 0.05, 0.0)
    first = painting.map()
    now[0] += 5.0
    painting.dab(300, 0.05, 0.5)
    painting.dab(300, 0.05, 0.5, pose="bent")
    assert "bent" in painting.painted
    painting.undo()
    assert "bent" not in painting.painted
    painting.undo()
    assert np.array_equal(painting.map(), first)
    painting.clear()
    assert (painting.map() == 1.0).all()
    painting.undo()
    assert np.array_equal(painting.map(), first)
    painting.undo()
    assert (painting.map() == 1.0).all()
    assert not painting.can_undo
    painting.undo()


def test_a_pose_begins_like_the_others_and_goes_its_own_way() -> None:
    painting = on_limb()
    painting.dab(20, 0.05, 0.0)
    painting.dab(300, 0.05, 0.3, pose="bent")
    assert painting.map("bent")[20] == 0.0
    assert painting.map("bent")[300] == pytest.approx(0.3)
    assert painting.map()[300] == 1.0
    assert np.array_equal(painting.map("stretched"), painting.map())


def test_the_brush_begins_with_firm_hands_and_clearing_goes_back_to_them(tmp_path: Path) -> None:
    gorilla = built_in("gorilla")
    shown = Shown(gorilla.rest_positions, gorilla.triangles, bar_model(1))
    firm = bony_softness(gorilla)
    assert firm is not None
    painting = Painting(shown, gorilla, tmp_path / "a.toml", TINY)
    np.testing.assert_allclose(painting.map(), firm, rtol=1e-6)
    assert painting.colours().shape == (len(firm), 4)
    soft = Painting(shown, gorilla, tmp_path / "a.toml", TINY.changed(material={"bony": False}))
    assert (soft.map() == 1.0).all()
    painted = replace(gorilla, maps={"even": np.full(len(firm), 0.5)})
    painting = Painting(shown, painted, tmp_path / "a.toml", TINY.changed(material={"softness_map": "even"}))
    assert (painting.map() == 0.5).all()
    painting.clear()
    np.testing.assert_allclose(painting.map(), firm, rtol=1e-6)


def test_paint_is_saved_beside_the_project_and_read_again(tmp_path: Path) -> None:
    path, character = tmp_path / "hero.toml", limb()
    model = bar_model(3)
    shown = Shown(character.rest_positions, character.triangles, model)
    painting = Painting(shown, character, path, TINY)
    painting.dab(20, 0.05, 0.0)
    painting.dab(300, 0.05, 0.3, pose="pose 1")
    project = TINY.changed(material={"poses": {"pose 2": {"young": 9e4}}})
    changed = project.changed(**painting.save(project))
    assert changed.material.softness_map == "hero-softness.npy"
    assert changed.material.poses["pose 1"].softness_map == "hero-softness-pose_1.npy"
    assert changed.material.poses["pose 2"].young == 9e4
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["hero-softness-pose_1.npy", "hero-softness.npy"]
    # Poses with a material of their own are given from now on: another build must have them, too.
    assert {given.name for given in changed.poses.given} == {"pose 1", "pose 2"}
    save_project(changed, path)
    again = Painting(shown, character, path, load_project(path))
    assert np.array_equal(again.map(), painting.map())
    assert np.array_equal(again.map("pose 1"), painting.map("pose 1"))
    assert again.unread == []
    again.clear("pose 1")
    last = changed.changed(**again.save(changed))
    assert list(last.material.poses) == ["pose 2"]
    assert last.material.softness_map == "hero-softness.npy"
    without = Painting(shown, None, path, last.changed(material={"softness_map": "gone.npy"}))
    assert len(without.unread) == 1
    assert last.changed(**without.save(last)) == last  # nothing was painted, nothing is touched
    with pytest.raises(InputError, match="project file"):
        on_limb().save()


def test_the_characters_own_map_is_painted_on(tmp_path: Path) -> None:
    character = limb()
    project = TINY.changed(material={"softness_map": "softness"})
    shown = Shown(character.rest_positions, character.triangles)
    painting = Painting(shown, character, tmp_path / "a.toml", project)
    assert np.allclose(painting.map(), character.maps["softness"])
    assert project.changed(**painting.save(project)).material.softness_map == "softness"
    painting.dab(300, 0.05, 0.5)
    assert project.changed(**painting.save(project)).material.softness_map == "a-softness.npy"


def test_painting_changes_the_flesh_where_it_was_painted(tmp_path: Path) -> None:
    """From the brush over the file to Young's modulus; and new paint under the same name is noticed."""
    character = limb()
    path, cache = tmp_path / "limb.toml", tmp_path / "cache"
    painting = Painting(Shown(character.rest_positions, character.triangles), character, path, TINY)
    for vertex in np.flatnonzero(character.rest_positions[:, 0] < 0.2):
        painting.dab(int(vertex), 0.06, 0.5)
    project = TINY.changed(**painting.save(TINY))
    bare = build_parts(character, TINY, cache=cache, jobs=1)
    built = build_parts(character, project, cache=cache, folder=tmp_path, jobs=1)
    ratio = built.fabric.young[0] / bare.fabric.young[0]
    x = bare.flesh.mesh.vertices[bare.flesh.mesh.elements].mean(axis=1)[:, 0]
    assert np.allclose(ratio[x < 0.1], np.sqrt(STIFFEST), rtol=0.3)  # paint is blurred over a few tets
    assert np.allclose(ratio[x > 0.5], 1.0, atol=0.05)
    model = built.model
    assert np.array_equal(model.cubature.young, built.fabric.young[:, model.cubature.tets])
    assert not np.array_equal(model.shapes, bare.model.shapes)
    assert model.frequencies[0, 0] > bare.model.frequencies[0, 0]
    assert "samples" in model.notes["stages"]["made"]
    same = build(character, project, cache=cache, folder=tmp_path, jobs=1)
    assert same.notes["stages"]["made"] == []
    values = read_map(tmp_path / "limb-softness.npy", character.rig.vertex_count)
    write_map(tmp_path / "limb-softness.npy", np.where(character.rest_positions[:, 0] < 0.2, 0.0, values))
    other = build(character, project, cache=cache, folder=tmp_path, jobs=1)
    assert {"samples", "cubature"} <= set(other.notes["stages"]["made"])
    assert other.fixed.sum() > model.fixed.sum()
    assert not other.shapes[:, other.fixed].any()


def test_one_pose_can_be_stiff(tmp_path: Path) -> None:
    character = limb()
    painting = Painting(Shown(character.rest_positions, character.triangles), character, tmp_path / "limb.toml")
    for vertex in range(character.rig.vertex_count):
        painting.dab(vertex, 0.08, 0.5, pose="rest")
    project = TINY.changed(**painting.save(TINY))
    fabric = build_parts(character, project, folder=tmp_path, jobs=1).fabric
    assert np.allclose(fabric.young[0] / fabric.young[1], np.sqrt(STIFFEST), rtol=0.05)


# Files from elsewhere


def header(text: str) -> bytes:
    padded = text.ljust(118 - len(text) % 2) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode()


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([print, None], dtype=object), allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (pickled(), "pickle"),
        (b"", "damaged"),
        (b"\x93NUMPY", "damaged"),
        (b"PK\x03\x04 something else", "damaged"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"), "asks for"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (402,), }") + bytes(12), "asks for"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "not plain numbers|damaged"),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }") + bytes(24), "pickle"),
        (header("{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }") + bytes(8), "not plain numbers"),
        (header("__import__('os').abort()"), "damaged"),
        (b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535, "damaged"),
        (b"\x93NUMPY\x09\x00" + bytes(200), "format 9"),
    ],
)
def test_hostile_maps_are_refused(tmp_path: Path, content: bytes, named: str) -> None:
    (tmp_path / "bad.npy").write_bytes(content)
    with pytest.raises(FileFormatError, match=named):
        paint_map(limb(), "bad.npy", tmp_path)


def test_maps_that_do_not_fit_are_named(tmp_path: Path) -> None:
    character = limb()
    count = character.rig.vertex_count
    write_map(tmp_path / "short.npy", np.ones(count - 1))
    with pytest.raises(InputError, match=rf"{count - 1:,} painted values, where the character has {count:,} vertices"):
        build(character, TINY.changed(material={"softness_map": "short.npy"}), folder=tmp_path, jobs=1)
    write_npy(tmp_path / "wide.npy", np.ones((count, 2), np.float32))
    write_npy(tmp_path / "whole.npy", np.ones(count, np.int32))
    write_map(tmp_path / "nan.npy", np.full(count, np.nan))
    (tmp_path / "large.npy").write_bytes(bytes(9 << 20))
    for name, told in (("wide", "one row"), ("whole", "one row"), ("nan", "NaN"), ("large", "at most"), ("no", "not")):
        with pytest.raises(InputError, match=told):
            paint_map(character, f"{name}.npy", tmp_path)
    with pytest.raises(InputError, match="there is none"):
        paint_map(character, "short.npy", None)


@pytest.mark.parametrize("name", ["../out.npy", "/etc/out.npy", "sub/out.npy", "..\\out.npy", "link.npy", "a\0.npy"])
def test_maps_outside_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "project"
    (inside / "sub").mkdir(parents=True)
    for path in (tmp_path / "out.npy", inside / "sub" / "out.npy"):
        write_map(path, np.ones(limb().rig.vertex_count))
    os.symlink(tmp_path / "out.npy", inside / "link.npy")
    with pytest.raises(InputError, match=r"plain name|outside"):
        paint_map(limb(), name, inside)


def test_archives_of_arrays_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_npz(path, {"a": np.zeros(1 << 20), "b": np.arange(3)})
    assert read_npz(path)["b"].tolist() == [0, 1, 2]
    assert path.stat().st_size < 1 << 16
    with pytest.raises(FileFormatError, match="more than it can be"):
        read_npz(path, most_bytes=1 << 20)
    np.savez(path, a=np.array([print], dtype=object))
    with pytest.raises(FileFormatError, match="pickle"):
        read_npz(path)
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(FileFormatError, match="damaged"):
        read_npz(path)


# Poses and handles


def test_a_captured_pose_is_the_same_pose_when_built() -> None:
    character = limb()
    model = build(character, TINY, jobs=1)
    p = character.clip("bend").sample(0.5)[0]
    start = character.rig.parameters.index("lower.rotation.x")
    p[start : start + 4] *= -1.0  # the same rotation
    p[character.rig.parameters.index("smile.weight")] = 1.0  # a face is no pose
    project = captured(TINY, model, p, "  half bent ")
    (given,) = project.poses.given
    assert given.name == "half bent"
    assert set(given.parameters) == {f"lower.rotation.{axis}" for axis in "xyzw"}
    assert project.poses.count == TINY.poses.count + 1
    names, parameters = chosen_poses(character, project)
    assert names[1] == "half bent"
    wanted = character.clip("bend").sample(0.5)[0]
    assert np.abs(character.rig.positions(parameters[1]) - character.rig.positions(wanted)).max() < 1e-7
    again = captured(project, model, character.clip("bend").sample(0.3)[0], "half bent")
    assert len(again.poses.given) == 1
    assert again.poses.count == project.poses.count
    with_material = again.changed(material={"poses": {"half bent": {"young": 5e4}}})
    assert without_pose(with_material, "half bent") == TINY


def test_poses_that_cannot_be_told_apart_are_refused_at_once() -> None:
    model = bar_model(3)
    rest = model.rig.parameters.rest
    bent = pose(model.rig, (0.0, 0.0, 0.7))
    project = captured(TINY, model, bent, "bent")
    with pytest.raises(InputError, match="same shape as 'bent'"):
        captured(project, model, pose(model.rig, (0.0, 0.0, 0.7), root_move=(0.0, 1.0, 0.0)), "again")
    with pytest.raises(InputError, match="rest pose"):
        captured(TINY, model, rest, "still")
    with pytest.raises(InputError, match="same shape as 'rest'"):
        captured(TINY, model, pose(model.rig, root_turn=(0.0, 0.5, 0.0)), "turned")
    for name in ("", "   ", "rest", "x" * 100, "a\nb", None):
        with pytest.raises(InputError, match="name"):
            captured(TINY, model, bent, name)
    with pytest.raises(InputError, match="no captured pose is called 'x'"):
        without_pose(TINY, "x")
    with pytest.raises(InputError, match="NaN"):
        captured(TINY, model, np.full_like(rest, np.nan), "lost")


def test_poses_that_were_chosen_can_be_pinned() -> None:
    model = bar_model(3)
    project = pinned(TINY, model, {"pose 2", "pose 0", "nothing"})
    assert [given.name for given in project.poses.given] == ["pose 2"]
    assert pinned(project, model, {"pose 2"}) == project


def test_handles_are_points_of_the_surface_at_rest() -> None:
    rest = limb().rest_positions
    project = handle_at(TINY, "belly", rest, 40)
    assert project.basis.handles[0].point == pytest.approx(tuple(rest[40]), abs=1e-8)
    project = with_handle(project, "belly", [1.0, 2.0, 3.0])
    assert len(project.basis.handles) == 1
    assert without_handle(project, "belly") == TINY
    with pytest.raises(InputError, match="no handle is called 'arm'"):
        without_handle(project, "arm")
    with pytest.raises(InputError, match="three coordinates"):
        with_handle(TINY, "a", [np.nan, 0.0, 0.0])
    with pytest.raises(InputError, match="surface vertices"):
        handle_at(TINY, "a", rest, len(rest))


def test_contacts_are_noted_in_the_model() -> None:
    model = build(limb(), TINY.changed(basis={"contact": True}), jobs=1)
    basis = model.notes["basis"]
    assert [len(own) for own in basis["contact vertices"]] == basis["contacts"]
