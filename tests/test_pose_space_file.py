"""Pose-space models come back from their files; damaged and foreign ones are refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from pose_models_for_tests import bar_model, inertia_mapped, mapped, with_more_mass
from softrig.errors import InputError, ModelFileError
from softrig.models.file import load_character_model, load_model, load_reduced_body, model_kind, save_model
from softrig.models.pose_space import PoseSpaceModel
from softrig.rig.deformers import CallableRig

METADATA = {"format": "softrig", "kind": "pose-space", "version": "1"}


def rounded(model: PoseSpaceModel) -> PoseSpaceModel:
    """As a build leaves it: shapes exactly representable in single precision."""
    yielding = None if model.yielding is None else model.yielding.astype(np.float32).astype(np.float64)
    return replace(model, shapes=model.shapes.astype(np.float32).astype(np.float64), yielding=yielding)


MODELS = {
    "bind": lambda: bar_model(poses=2, regions=2),
    "world": lambda: bar_model(poses=2, interpolation="world"),
    "black box": lambda: bar_model(black_box=True),
    "maps": lambda: inertia_mapped(mapped(bar_model(poses=2, regions=2))),
    "beside tets": lambda: mapped(bar_model(poses=2, regions=2, basis_poses=1), beside_tets=True),
    "flexible": lambda: with_more_mass(mapped(bar_model(poses=2, regions=2, basis_poses=1), flexible=True)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_models_come_back(kind: str, tmp_path: Path) -> None:
    model = rounded(MODELS[kind]())
    path = tmp_path / "bar.softrig"
    save_model(replace(model, notes={"recipe": "load", "angles": [0.1, 0.2]}), path)
    assert model_kind(path) == "pose-space"
    again = load_model(path)
    assert isinstance(again, PoseSpaceModel)
    assert again.notes == {"recipe": "load", "angles": [0.1, 0.2]}
    p = 0.3 * model.poses.parameters[0] + 0.7 * model.poses.parameters[-1]
    q = np.linspace(-0.02, 0.03, model.mode_count)
    assert np.allclose(again.tet_rest(p), model.tet_rest(p), rtol=0.0, atol=1e-14)
    assert np.allclose(again.displacement(p, q), model.displacement(p, q), rtol=0.0, atol=1e-14)
    for name in ("mass_products", "inertia", "wind", "tets", "fixed", "region_of_mode", "vertex_mass"):
        assert np.array_equal(getattr(again, name), getattr(model, name)), name
    assert np.allclose(again.gyro, model.gyro, rtol=1e-6, atol=1e-6 * np.abs(model.gyro).max())
    for name in ("tets", "weights", "young", "poisson", "stiffness_correction"):
        assert np.array_equal(getattr(again.cubature, name), getattr(model.cubature, name)), name
    assert (again.inertia_map is None) == (model.inertia_map is None)
    assert (again.yielding is None) == (model.yielding is None)
    assert (again.carried_mass is None) == (model.carried_mass is None)
    assert np.array_equal(again.moved_mass, model.moved_mass)
    assert np.array_equal(again.inertia_at(p), model.inertia_at(p))
    assert np.array_equal(again.linear_part(p), model.linear_part(p))
    assert again.cubature.holds_linear == model.cubature.holds_linear


def test_a_file_of_version_3_comes_back(tmp_path: Path) -> None:
    """Without what the rest adds to the inertia, which it did not know."""
    model = rounded(MODELS["maps"]())
    save_model(model, tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    del tensors["yielding"]
    save_file(tensors, tmp_path / "old.softrig", METADATA | {"version": "3"})
    again, p = load_character_model(tmp_path / "old.softrig"), model.poses.parameters[-1]
    assert again.yielding is None
    assert np.array_equal(again.inertia_at(p), replace(model, yielding=None).inertia_at(p))


def test_a_file_of_version_9_comes_back(tmp_path: Path) -> None:
    """Its modes carry nothing along."""
    model = rounded(MODELS["flexible"]())
    save_model(model, tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    del tensors["carried_mass"]
    save_file(tensors, tmp_path / "old.softrig", METADATA | {"version": "9"})
    again = load_character_model(tmp_path / "old.softrig")
    assert again.carried_mass is None
    assert np.array_equal(again.moved_mass, model.mass_products)


def test_maps_of_version_4_know_joints_one_by_one(tmp_path: Path) -> None:
    model = rounded(MODELS["maps"]())
    save_model(model, tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    document = json.loads(tensors["document"].tobytes())
    assert document["pairs"] == {"stiffness": 0.6, "inertia_map": 1.0}
    del document["pairs"]
    tensors["document"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    save_file(tensors, tmp_path / "old.softrig", METADATA | {"version": "4"})
    again, p = load_character_model(tmp_path / "old.softrig"), model.poses.parameters[-1]
    known = model.cubature.stiffness_map
    assert known is not None
    single = replace(model, cubature=replace(model.cubature, stiffness_map=replace(known, pairs=0.0)))
    assert np.array_equal(again.linear_part(p), single.linear_part(p))
    assert not np.allclose(again.linear_part(p), model.linear_part(p), rtol=1e-6)


def test_maps_of_version_5_keep_the_columns_of_changing_corrections(tmp_path: Path) -> None:
    model = rounded(MODELS["maps"]())
    save_model(model, tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    del tensors["inertia_map.turners"], tensors["inertia_map.turned"]
    save_file(tensors, tmp_path / "old.softrig", METADATA | {"version": "5"})
    again, p = load_character_model(tmp_path / "old.softrig"), model.poses.parameters[-1]
    count, known = model.load_count, model.inertia_map
    assert known is not None
    assert np.array_equal(again.inertia_at(p)[:, :count], model.inertia_at(p)[:, :count])
    assert np.array_equal(again.inertia_at(p)[:, count:], known.turning)
    assert not np.allclose(model.inertia_at(p)[:, count:], known.turning, rtol=1e-6)


def test_maps_of_version_6_have_springs_in_the_stiffness_of_the_poses(tmp_path: Path) -> None:
    model = rounded(inertia_mapped(mapped(bar_model(poses=2, regions=2), own=2)))
    known = model.cubature.stiffness_map
    assert known is not None
    learned = np.delete(known.components, known.own, axis=0)
    old = replace(known, components=learned, touching=np.zeros(0, np.int32))
    model = replace(model, cubature=replace(model.cubature, stiffness_map=old))
    save_model(model, tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    for name in ("stiffness.touching", "stiffness.relevance", "inertia_map.relevance"):
        del tensors[name]
    save_file(tensors, tmp_path / "old.softrig", METADATA | {"version": "6"})
    again, p = load_character_model(tmp_path / "old.softrig"), model.poses.parameters[-1]
    # All joints mattered alike.
    alike = replace(old, relevance=np.ones(len(old.lengths)))
    alike_model = replace(model, cubature=replace(model.cubature, stiffness_map=alike))
    assert np.array_equal(again.linear_part(p), alike_model.linear_part(p))
    assert not np.allclose(model.linear_part(p), alike_model.linear_part(p), rtol=1e-6)


def test_maps_of_version_7_are_of_the_stiffness_itself(tmp_path: Path) -> None:
    model = rounded(MODELS["maps"]())
    save_model(model, tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    document = json.loads(tensors["document"].tobytes())
    assert document.pop("flexible") is False
    tensors["document"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    save_file(tensors, tmp_path / "old.softrig", METADATA | {"version": "7"})
    again, p = load_character_model(tmp_path / "old.softrig"), model.poses.parameters[-1]
    assert np.array_equal(again.linear_part(p), model.linear_part(p))
    for strange in ({}, {"flexible": 1}):
        tensors["document"] = np.frombuffer(json.dumps(document | strange).encode(), np.uint8)
        save_file(tensors, tmp_path / "torn.softrig", METADATA | {"version": "8"})
        with pytest.raises(ModelFileError, match="flexible"):
            load_character_model(tmp_path / "torn.softrig")


def test_maps_of_version_10_are_never_of_what_tets_miss(tmp_path: Path) -> None:
    model = rounded(MODELS["maps"]())
    save_model(model, tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    document = json.loads(tensors["document"].tobytes())
    assert document.pop("beside_tets") is False
    tensors["document"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    save_file(tensors, tmp_path / "old.softrig", METADATA | {"version": "10"})
    assert not load_character_model(tmp_path / "old.softrig").cubature.holds_linear
    for strange in ({}, {"beside_tets": "yes"}):
        tensors["document"] = np.frombuffer(json.dumps(document | strange).encode(), np.uint8)
        save_file(tensors, tmp_path / "torn.softrig", METADATA | {"version": "11"})
        with pytest.raises(ModelFileError, match="beside_tets"):
            load_character_model(tmp_path / "torn.softrig")
    known = model.cubature.stiffness_map
    assert known is not None
    with pytest.raises(InputError, match="no flexibility"):
        replace(known, flexible=True, beside_tets=True)


def test_a_flexibility_that_is_none_is_refused(tmp_path: Path) -> None:
    save_model(rounded(MODELS["flexible"]()), tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    tensors["stiffness.components"] = -tensors["stiffness.components"]
    save_file(tensors, tmp_path / "b.softrig", METADATA | {"version": "8"})
    with pytest.raises(ModelFileError, match="positive definite"):
        load_character_model(tmp_path / "b.softrig")


@pytest.mark.parametrize("name", ["stiffness.touching", "stiffness.relevance", "inertia_map.relevance"])
def test_a_damaged_map_is_refused_by_name(tmp_path: Path, name: str) -> None:
    save_model(rounded(MODELS["maps"]()), tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    whole = tensors.pop(name)
    strange = [None, whole[None], np.full(whole.shape, 1000 if whole.dtype.kind == "i" else -1, whole.dtype)]
    for wrong in strange:
        given = tensors if wrong is None else tensors | {name: wrong}
        save_file(given, tmp_path / "wrong.softrig", METADATA | {"version": "7"})
        with pytest.raises(ModelFileError, match=r"relevance|touching|contact"):
            load_character_model(tmp_path / "wrong.softrig")


@pytest.mark.parametrize("wrong", [None, np.zeros((3, 1, 9), np.float32), np.zeros((3, 0, 1 << 40), np.float32)])
def test_a_map_with_half_of_what_turns_is_refused(tmp_path: Path, wrong: np.ndarray | None) -> None:
    save_model(rounded(MODELS["maps"]()), tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    del tensors["inertia_map.turned"]
    if wrong is not None:
        tensors["inertia_map.turned"] = wrong
    save_file(tensors, tmp_path / "wrong.softrig", METADATA)
    with pytest.raises(ModelFileError, match="turned"):
        load_character_model(tmp_path / "wrong.softrig")


NO_SHARES = ["all", float("inf"), -1.0, 1e308, 10**400, None]


@pytest.mark.parametrize("table", [[], "x", 3, None, {"inertia_map": 1.0}, *({"stiffness": x} for x in NO_SHARES)])
def test_a_share_of_pairs_that_is_none_is_refused(tmp_path: Path, table: object) -> None:
    save_model(MODELS["maps"](), tmp_path / "a.softrig")
    tensors = load_file(tmp_path / "a.softrig")
    document = json.loads(tensors["document"].tobytes())
    document["pairs"] = table
    tensors["document"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    save_file(tensors, tmp_path / "b.softrig", METADATA | {"version": "5"})
    with pytest.raises(ModelFileError, match="pairs"):
        load_character_model(tmp_path / "b.softrig")


def test_a_python_rig_must_be_given_again(tmp_path: Path) -> None:
    model = rounded(bar_model(black_box=True))
    rig = CallableRig(
        model.rig.deform,
        model.rig.parameters,
        model.rig.rest_positions,
    )
    save_model(replace(model, rig=rig), tmp_path / "a.softrig")
    with pytest.raises(ModelFileError, match="Python function"):
        load_model(tmp_path / "a.softrig")
    assert load_model(tmp_path / "a.softrig", rig=rig).rig is rig


def test_kinds_are_not_mixed_up(tmp_path: Path) -> None:
    save_model(rounded(bar_model()), tmp_path / "a.softrig")
    with pytest.raises(ModelFileError, match="not a reduced body"):
        load_reduced_body(tmp_path / "a.softrig")


def test_a_mass_that_is_none_is_named(tmp_path: Path) -> None:
    path, model = tmp_path / "a.softrig", rounded(MODELS["flexible"]())
    save_model(model, path)
    tensors = load_file(path)
    mass = tensors["carried_mass"]
    skew = mass.copy()
    skew[0, 1] += 5.0
    for changed, told in (
        (skew, "carried_mass is not symmetric"),
        (-50.0 * mass, "carried_mass are not positive definite"),
        (mass[:-1, :-1].copy(), "carried_mass must have the shape"),
        (mass * np.float32(np.nan), "NaN"),
    ):
        save_file(tensors | {"carried_mass": changed}, path, METADATA | {"version": "10"})
        with pytest.raises(ModelFileError, match=told):
            load_character_model(path)
    with pytest.raises(InputError, match="one basis, not to 2"):
        replace(bar_model(poses=2, regions=2), carried_mass=np.eye(bar_model(poses=2, regions=2).mode_count))


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.softrig"
    save_model(rounded(bar_model()), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1000])
    with pytest.raises(ModelFileError, match="truncated"):
        load_character_model(path)
    path.write_bytes(whole)
    tensors = load_file(path)

    def broken(**changes: np.ndarray | None) -> None:
        changed = {name: array for name, array in (tensors | changes).items() if array is not None}
        save_file(changed, path, METADATA)
        load_character_model(path)

    nan = tensors["mass_products"].copy()
    nan[0, 0, 0, 0] = np.nan
    far = tensors["region.0.vertices_of_region"].copy()
    far[-1] = 10**6
    document = json.loads(tensors["document"].tobytes())
    outside = tensors["embedding_nodes"].copy()
    outside[0, 0] = -5
    wide = tensors["triangles"].copy()
    wide[0, 0] = 10**6
    for changes, told in (
        ({"mass_products": nan}, "NaN"),
        ({"inertia": tensors["inertia"][:, :, :-1].copy()}, "inertia"),
        ({"vertices": None}, "vertices"),
        ({"embedding_nodes": outside}, "carry the surface"),
        ({"triangles": wide}, "triangles"),
        ({"vertex_mass": np.zeros_like(tensors["vertex_mass"])}, "without mass"),
        ({"document": np.frombuffer(json.dumps(document | {"notes": {"step": 3}}).encode(), np.uint8)}, "step"),
        ({"document": np.frombuffer(json.dumps(document | {"beyond": 0}).encode(), np.uint8)}, "'beyond' must be"),
        ({"tets": tensors["tets"].astype(np.float64)}, "tensor tets"),
        ({"region.0.vertices_of_region": far}, "region 0"),
        ({"document": np.frombuffer(b"{", np.uint8)}, "inconsistent"),
        ({"document": np.frombuffer(json.dumps(document | {"rig": {"kind": "x"}}).encode(), np.uint8)}, "inconsistent"),
    ):
        with pytest.raises(ModelFileError, match=told):
            broken(**changes)


def test_a_newer_file_asks_for_an_update(tmp_path: Path) -> None:
    save_model(rounded(bar_model()), tmp_path / "a.softrig")
    save_file(load_file(tmp_path / "a.softrig"), tmp_path / "b.softrig", METADATA | {"version": "99"})
    with pytest.raises(ModelFileError, match="newer"):
        load_model(tmp_path / "b.softrig")
