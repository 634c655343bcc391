"""Young's modulus and Poisson ratio as maps of vertices or of tets, for all poses or for one (PSSD §8)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from characters_for_tests import limb
from softrig.errors import InputError, MaterialError, NotFiniteError
from softrig.io.glb_writer import write_character_glb
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.baking import model_simulation
from softrig.pipeline.build import build
from softrig.pipeline.cache import StageCache
from softrig.pipeline.fabric import Fabric, make_fabric
from softrig.pipeline.flesh import Flesh, make_flesh
from softrig.poses.materials import PRESETS, painted_field
from softrig.project import Project

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb

BENT = {"clip": "bend", "time": 0.8, "name": "bent"}
SMALL = Project().changed(
    mesh={"tets": 700},
    basis={"modes": 12, "regions": 1, "contact": False, "derivatives": 4, "rehearsal": 0.0},
    poses={"count": 2, "given": [BENT]},
    material={"preset": "fat"},
)
POSING: Any = SimpleNamespace(table=SimpleNamespace(names=("rest", "bent")))


@pytest.fixture(scope="module")
def flesh() -> Flesh:
    return make_flesh(limb(), SMALL, StageCache(None))


def fabric_of(flesh: Flesh, folder: Path, **material: Any) -> Fabric:
    return make_fabric(limb(), flesh, POSING, SMALL.changed(material=material), folder=folder)


def test_the_same_paint_is_the_same_flesh_at_all_poses(
    flesh: Flesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several threads may solve for it in another order each time, to other last bits."""
    random = np.random.default_rng(1)

    def rough(*args: Any, **settings: Any) -> np.ndarray:
        field = painted_field(*args, **settings)
        return np.asarray(field * (1.0 + 1e-15 * random.integers(-2, 3, len(field))))

    monkeypatch.setattr("softrig.pipeline.fabric.painted_field", rough)
    assert fabric_of(flesh, tmp_path, softness_map="softness").is_same_at_all_poses
    assert not fabric_of(flesh, tmp_path, softness_map="softness", poses={"bent": {"young": 1e5}}).is_same_at_all_poses
    own = {"bent": {"stiffness_map": "softness"}}
    assert not fabric_of(flesh, tmp_path, softness_map="softness", poses=own).is_same_at_all_poses


def test_a_map_of_tets_arrives_unchanged(flesh: Flesh, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    young = random.uniform(1e3, 1e6, len(flesh.mesh.elements))
    poisson = random.uniform(-0.9, 0.499, len(flesh.mesh.elements))
    np.save(tmp_path / "young.npy", young)
    np.save(tmp_path / "poisson.npy", poisson)
    fabric = fabric_of(flesh, tmp_path, young="young.npy", poisson="poisson.npy")
    assert np.array_equal(fabric.young, [young, young])
    assert np.array_equal(fabric.poisson, [poisson, poisson])


def test_a_map_of_vertices_is_carried_as_softness_is(flesh: Flesh, tmp_path: Path) -> None:
    """Moduli by their logarithm, Poisson ratios by themselves."""
    x = limb().rest_positions[:, 0] / 0.8
    np.save(tmp_path / "young.npy", 1e4 * 10.0**x)
    np.save(tmp_path / "poisson.npy", 0.1 + 0.3 * x)
    fabric = fabric_of(flesh, tmp_path, young="young.npy", poisson="poisson.npy", smoothing=0.5)
    paint = x[flesh.soft_vertices]
    wanted = painted_field(flesh.mesh, flesh.soft_embedding, 1e4 * 10.0**paint, smoothing=0.5)
    np.testing.assert_array_equal(fabric.young[0], wanted)
    wanted = painted_field(flesh.mesh, flesh.soft_embedding, 0.1 + 0.3 * paint, smoothing=0.5, positive=False)
    np.testing.assert_array_equal(fabric.poisson[1], wanted)
    assert np.ptp(fabric.poisson[0]) > 0.2


def test_a_pose_may_have_a_map_and_an_attribute_may_be_one(flesh: Flesh, tmp_path: Path) -> None:
    values = np.linspace(2e4, 5e4, len(flesh.mesh.elements))
    np.save(tmp_path / "flexed.npy", values)
    poses = {"bent": {"young": "flexed.npy", "poisson": "softness"}}
    with pytest.raises(MaterialError, match=r"'softness'.*between -1 and 0\.5, at vertices"):
        fabric_of(flesh, tmp_path, poses=poses)
    character = limb()
    character = replace(character, maps={"ratio": 0.4 * character.maps["softness"]})
    poses["bent"]["poisson"] = "ratio"
    fabric = make_fabric(character, flesh, POSING, SMALL.changed(material={"poses": poses}), folder=tmp_path)
    assert (fabric.young[0] == PRESETS["fat"].young).all()
    assert np.array_equal(fabric.young[1], values)
    assert (fabric.poisson[0] == PRESETS["fat"].poisson).all()
    assert 0.0 <= fabric.poisson[1].min() < 0.1
    assert 0.3 < fabric.poisson[1].max() <= 0.4


def test_softness_multiplies_a_map(flesh: Flesh, tmp_path: Path) -> None:
    values = np.linspace(2e4, 5e4, len(flesh.mesh.elements))
    np.save(tmp_path / "young.npy", values)
    painted = fabric_of(flesh, tmp_path, young="young.npy", softness_map="softness")
    plain = fabric_of(flesh, tmp_path, young=1.0, softness_map="softness")
    assert plain.young.max() > 50.0
    np.testing.assert_allclose(painted.young, values * plain.young)


def arrays_of(model: PoseSpaceModel) -> list[np.ndarray]:
    cubature = model.cubature
    return [model.shapes, model.frequencies, cubature.tets, cubature.weights, cubature.young, cubature.poisson]


def test_a_constant_map_gives_the_model_of_the_number(flesh: Flesh, tmp_path: Path) -> None:
    numbers = SMALL.changed(material={"young": 12345.6, "poisson": 0.431})
    wanted = arrays_of(build(limb(), numbers, jobs=1))
    for kind, count in (("vertices", limb().rig.vertex_count), ("tets", len(flesh.mesh.elements))):
        np.save(tmp_path / f"young {kind}.npy", np.full(count, 12345.6))
        np.save(tmp_path / f"poisson {kind}.npy", np.full(count, 0.431))
        maps = SMALL.changed(material={"young": f"young {kind}.npy", "poisson": f"poisson {kind}.npy"})
        found = arrays_of(build(limb(), maps, folder=tmp_path, jobs=1))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    np.save(tmp_path / "young tets.npy", np.linspace(1e4, 4e4, len(flesh.mesh.elements)))
    other = build(limb(), SMALL.changed(material={"young": "young tets.npy"}), folder=tmp_path, jobs=1)
    assert not np.array_equal(other.frequencies, wanted[1])
    assert other.notes["project"]["material"]["young"] == "young tets.npy"


def test_softness_zero_is_plain_skinning_whatever_the_map(flesh: Flesh, tmp_path: Path) -> None:
    np.save(tmp_path / "young.npy", np.linspace(5e3, 2e4, len(flesh.mesh.elements)))
    project = SMALL.changed(material={"young": "young.npy", "softness_map": "softness"})
    character = limb()
    model = build(character, project, folder=tmp_path, jobs=1)
    made = model_simulation(model).bake(character.clip("shake"), 30.0, plain=True)
    zero = character.maps["softness"] == 0.0
    assert np.array_equal(made.vertices[:, zero], made.plain[:, zero])
    assert np.abs(made.vertices - made.plain).max() > 1e-4


def test_what_does_not_fit_is_named(flesh: Flesh, tmp_path: Path) -> None:
    vertices, tets = limb().rig.vertex_count, len(flesh.mesh.elements)
    np.save(tmp_path / "short.npy", np.ones(7))
    with pytest.raises(InputError, match=rf"short.npy: 7 values.*{vertices:,} vertices.*{tets:,} tets"):
        fabric_of(flesh, tmp_path, young="short.npy")
    with pytest.raises(InputError, match=r"gone\.npy is not there"):
        fabric_of(flesh, tmp_path, poisson="gone.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(InputError, match=r"folder\.npy cannot be read"):
        fabric_of(flesh, tmp_path, poisson="folder.npy")
    with pytest.raises(InputError, match="no painted map '40000'"):
        fabric_of(flesh, tmp_path, young="40000")


@pytest.mark.parametrize(
    ("what", "value", "error", "told"),
    [
        ("young", 0.0, MaterialError, "Young's modulus must be positive, at tets"),
        ("young", np.nan, NotFiniteError, "bad.npy"),
        ("poisson", 0.5, MaterialError, "Poisson ratio must lie between -1 and 0.5, at tets"),
        ("poisson", -1.0, MaterialError, "Poisson ratio"),
        ("poisson", np.inf, NotFiniteError, "bad.npy"),
    ],
)
def test_values_outside_their_range_are_named(
    flesh: Flesh, tmp_path: Path, what: str, value: float, error: type[InputError], told: str
) -> None:
    values = np.full(len(flesh.mesh.elements), 0.4)
    values[[3, 11]] = value
    np.save(tmp_path / "bad.npy", values)
    with pytest.raises(error, match=told) as caught:
        fabric_of(flesh, tmp_path, **{what: "bad.npy"})
    assert caught.value.indices.tolist() == [3, 11]


def test_culprits_among_vertices_have_the_characters_numbers(flesh: Flesh, tmp_path: Path) -> None:
    values = np.full(limb().rig.vertex_count, 1e4)
    culprit = flesh.soft_vertices[-1]
    values[culprit] = -1.0
    np.save(tmp_path / "bad.npy", values)
    with pytest.raises(MaterialError, match="at vertices") as caught:
        fabric_of(flesh, tmp_path, young="bad.npy")
    assert caught.value.indices.tolist() == [culprit]


def test_as_many_tets_as_vertices_are_ambiguous(flesh: Flesh, tmp_path: Path) -> None:
    tets = len(flesh.mesh.elements)
    character: Any = SimpleNamespace(rig=SimpleNamespace(vertex_count=tets))
    np.save(tmp_path / "young.npy", np.full(tets, 1e4))
    with pytest.raises(InputError, match=rf"young.npy: {tets:,} values could be of the vertices or of the tets"):
        make_fabric(character, flesh, POSING, SMALL.changed(material={"young": "young.npy"}), folder=tmp_path)


def test_how_stiff_flesh_usually_is_counts_its_volume() -> None:
    """Nine tenths of the flesh are one soft tet, at both poses; a hundred small ones are stiff."""
    young = np.tile(np.concatenate([[1e4], np.full(100, 8e4)]), (2, 1))
    young[1, 1:] = 9e4
    fabric = Fabric("stvk", 1000.0, young, np.full_like(young, 0.45), 0.2)
    volumes = np.concatenate([[0.9], np.full(100, 1e-3)])
    assert fabric.usual_young(volumes) == [1e4, 1e4, 8e4]
    assert fabric.usual_young(np.ones(101)) == [8e4, 8e4, 9e4]


def test_the_mesh_command_writes_the_tets_of_the_build(tmp_path: Path) -> None:
    """By the project file beside the character: its scale, its tets, the roles of its parts."""
    from typer.testing import CliRunner

    from softrig.cli import app
    from softrig.io.characters import load_character

    write_character_glb(limb(), tmp_path / "hero.glb")
    (tmp_path / "hero.toml").write_text("scale = 0.5\n[mesh]\ntets = 900\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["mesh", str(tmp_path / "hero.glb")])
    assert result.exit_code == 0, result.output
    character = load_character(tmp_path / "hero.glb", scale=0.5)
    wanted = make_flesh(character, Project().changed(mesh={"tets": 900}), StageCache(None)).mesh
    with np.load(tmp_path / "hero-tets.npz") as found:
        assert np.array_equal(found["vertices"], wanted.vertices)
        assert np.array_equal(found["tets"], wanted.elements)
    (tmp_path / "hero.toml").write_text(f'[parts]\n"{character.parts[0].name}" = "rigid"\n', encoding="utf-8")
    result = CliRunner().invoke(app, ["mesh", str(tmp_path / "hero.glb")])
    assert "no soft part" in str(result.exception)
