"""Trees of domains in model files, what `info` tells of them, and meshes that are cut into domains."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from softrig.bodies import divide
from softrig.bodies.divided import Limb, LimbShape, PlantedTree
from softrig.errors import InputError, ModelFileError
from softrig.inspection import inspect_file
from softrig.meshing.boxes import box_bricks, box_tets
from softrig.models.file import load_character_model, load_model, model_kind, save_model
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.substructuring import substructure

BAR = box_tets((0.9, 0.1, 0.1), (9, 2, 2))
PARTS = (3.3 * BAR.vertices[BAR.elements].mean(axis=1)[:, 0]).astype(int)


@cache
def planted() -> SubstructuredModel:
    """A post with two twigs of one shape, one twice as large, and a rigid knob on one of them."""
    rod = box_tets((0.06, 0.06, 0.5), (1, 1, 5))
    rod_shape = LimbShape(rod, rod.vertices[:, 2] == 0.0, 1e7, 0.3, 700.0, np.full((len(rod.vertices), 3), 0.4))
    turn = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    limbs = (
        Limb("post", -1, np.zeros(3), np.eye(3), 1.0),
        Limb("twig", 0, np.array([0.03, 0.03, 0.4]), turn, 0.5),
        Limb("twig", 0, np.array([0.03, 0.03, 0.2]), turn.T, 1.0),
        Limb("knob", 2, np.array([0.03, 0.03, 0.45]), np.eye(3), 0.3),
    )
    tree = PlantedTree("plant", {"post": rod_shape, "twig": rod_shape, "knob": rod_shape}, limbs)
    return substructure(tree, modes={"post": 6, "twig": 4, "knob": 0})


def test_a_model_comes_back_as_it_was(tmp_path):
    path = tmp_path / "plant.softrig"
    save_model(planted().with_stiffness({"twig 1": 0.5}), path)
    assert model_kind(path) == "substructured"
    again = load_model(path)
    assert isinstance(again, SubstructuredModel)
    assert again.name == "plant"
    assert [domain.name for domain in again.domains] == ["post 0", "twig 1", "twig 2", "knob 3"]
    assert [shape.name for shape in again.shapes] == ["post", "twig", "knob"]
    assert again.domains[1].stiffness == 0.5
    one, other = (SubstructuredSimulation(model, 1e-3, gravity=(0.0, 0.0, -9.81)) for model in (planted(), again))
    for table, same in zip(one.model.tables, other.model.with_stiffness({"twig 1": 1.0}).tables, strict=True):
        np.testing.assert_array_equal(table, same)
    other.edit_stiffness("twig 1", 1.0)
    one.run(20)
    other.run(20)
    np.testing.assert_array_equal(one.positions(), other.positions())


@pytest.mark.parametrize(
    ("tensor", "spoil"),
    [
        ("domains.parent", lambda a: a + 3),
        ("domains.shape", lambda a: a + 5),
        ("domains.scale", lambda a: -a),
        ("domains.scale", lambda a: a[:1]),
        ("domains.turn", lambda a: 2.0 * a),
        ("domains.centre", lambda a: a[:-1]),
        ("domains.slopes", lambda a: a[:-9]),
        ("shape.0.basis", lambda a: a[:-3]),
        ("shape.0.basis", lambda a: a.ravel()),
        ("shape.1.coefficients", lambda a: a[:-1]),
        ("shape.1.products", lambda a: a[:-1]),
        ("shape.1.drag", lambda a: a[:-1]),
        ("shape.1.triangles", lambda a: a + 10_000),
        ("drawn", lambda a: a + 1),
        ("drawn", lambda a: a[:-1]),
        ("triangles", lambda a: a - 1),
        ("names", lambda a: a[:4]),
        ("names", lambda a: np.full_like(a, 255)),
        ("floating", lambda a: a.astype(np.float32)),
        ("shape.0.vertices", lambda a: np.where(a == a.max(), np.nan, a)),
    ],
)
def test_what_does_not_fit_is_told_to_be_inconsistent(tmp_path, tensor, spoil):
    path = tmp_path / "plant.softrig"
    save_model(planted(), path)
    tensors = load_file(path)
    metadata = {"format": "softrig", "kind": "substructured", "version": "1"}
    save_file({**tensors, tensor: np.ascontiguousarray(spoil(tensors[tensor]))}, path, metadata)
    with pytest.raises(ModelFileError, match="inconsistent"):
        load_model(path)
    del tensors[tensor]
    save_file(tensors, path, metadata)
    with pytest.raises(ModelFileError, match="inconsistent"):
        load_model(path)


def test_a_cut_off_and_a_newer_file_are_told(tmp_path):
    path = tmp_path / "plant.softrig"
    save_model(planted(), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="damaged or truncated"):
        load_model(path)
    save_file({"x": np.zeros(1)}, path, {"format": "softrig", "kind": "substructured", "version": "2"})
    with pytest.raises(ModelFileError, match="newer softrig"):
        load_model(path)


def test_a_tree_is_no_character(tmp_path):
    path = tmp_path / "plant.softrig"
    save_model(planted(), path)
    with pytest.raises(ModelFileError, match="holds a body in a tree of domains, not a soft character"):
        load_character_model(path)


def test_info_tells_domains_and_shapes(tmp_path):
    path = tmp_path / "plant.softrig"
    save_model(planted(), path)
    told = inspect_file(path)
    facts = dict(told.facts)
    assert facts["domains"] == "4, at most 3 in a row"
    assert facts["modes"] == "14 together"
    head, rows = told.tables[0][1:]
    assert head[:4] == ("shape", "instances", "scale", "modes")
    assert rows[1][:4] == ("twig", "2", "0.5 to 1", "4")
    assert rows[2][5] == "rigid"


def test_divide_makes_the_held_domain_the_root():
    body = divide(BAR, PARTS, young=(1e6, 2e6, 3e6), poisson=0.3, density=1e3, fixed=BAR.vertices[:, 0] == 0.9)
    assert body.domain_names == ("domain 2", "domain 0", "domain 1")
    assert body.young.tolist() == [3e6, 1e6, 2e6]
    np.testing.assert_array_equal(np.array([2, 0, 1])[body.domains], PARTS)
    model = substructure(body, modes=2)
    assert [domain.name for domain in model.domains] == ["domain 2", "domain 1", "domain 0"]
    assert not model.floating


def test_divide_makes_the_heaviest_the_root_of_what_floats():
    uneven = np.where(PARTS == 2, 1, PARTS)
    body = divide(BAR, uneven, young=1e6, poisson=0.3, density=1e3, names=("short", "long"))
    assert body.domain_names == ("long", "short")
    assert substructure(body, modes=2).floating


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"domains": PARTS[:-1]}, "one an element"),
        ({"domains": PARTS - 1}, "one an element"),
        ({"domains": PARTS.astype(float)}, "one an element"),
        ({"young": (1e6, 2e6)}, "2 Young's moduli for 3 domains"),
        ({"names": ("a", "b")}, "3 different names"),
        ({"names": ("a", "b", "a")}, "3 different names"),
        ({"fixed": (BAR.vertices[:, 0] == 0.0) | (BAR.vertices[:, 0] == 0.9)}, "held in several domains"),
        ({"mesh": box_bricks((1.0, 1.0, 1.0), (2, 1, 1)), "domains": np.array([0, 1])}, "tets"),
    ],
)
def test_divide_names_what_is_wrong(wrong, named):
    given = {"mesh": BAR, "domains": PARTS, "young": 1e6, "poisson": 0.3, "density": 1e3} | wrong
    with pytest.raises(InputError, match=named):
        divide(given.pop("mesh"), given.pop("domains"), **given)
