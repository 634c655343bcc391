"""The volume mesh of a character, by function and by command."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from characters_for_tests import limb
from softrig import volume as volumes
from softrig.characters import built_in
from softrig.cli import app
from softrig.errors import EmptyMeshError, Notice
from softrig.io.glb_writer import write_character_glb
from softrig.volume import character_volume, quality_lines, write_volume_picture


@pytest.fixture(scope="module")
def letter():
    return built_in("x")


def test_the_tets_carry_the_surface_and_have_its_mass(letter):
    volume = character_volume(letter, tets=3000)
    lattice = volume.lattice
    assert abs(lattice.quality.tets / 3000 - 1.0) < 0.1
    assert lattice.quality.smallest_dihedral > 10.0
    carried = lattice.embedding.carry(lattice.mesh.vertices)
    np.testing.assert_allclose(carried, volume.surface_vertices, atol=1e-9)
    np.testing.assert_allclose(volume.surface_vertices[volume.welded_of_vertex], letter.rest_positions, atol=1e-6)
    true = lattice.density_factor * lattice.mesh.volumes.sum()
    assert true == pytest.approx(lattice.quality.surface_volume, rel=1e-9)
    assert dict(quality_lines(volume))["parts"] == "1"


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # all of it is thin
def test_bones_are_told_by_the_names_of_their_joints():
    with pytest.warns(Notice, match="bones in parts under two cells thick: 'upper', 'lower'"):
        character_volume(limb(), tets=100)


def test_a_character_without_soft_parts_is_refused(letter):
    rigid = replace(letter, parts=tuple(replace(part, role="rigid") for part in letter.parts))
    with pytest.raises(EmptyMeshError, match="no soft part"):
        character_volume(rigid, tets=500)


def test_the_command_writes_mesh_and_picture(letter, tmp_path):
    write_character_glb(letter, tmp_path / "x.glb")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        result = CliRunner().invoke(app, ["mesh", str(tmp_path / "x.glb"), "--tets", "1500"])
    assert result.exit_code == 0, result.output
    assert "dihedral angles" in result.stdout
    with np.load(tmp_path / "x-tets.npz", allow_pickle=False) as arrays:
        assert arrays["tets"].shape[1] == 4
        assert arrays["tets"].max() < len(arrays["vertices"])
    with Image.open(tmp_path / "x-tets.png") as picture:
        assert np.asarray(picture.convert("L")).std() > 10.0


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # all of it is thin
@pytest.mark.parametrize("axis", [0, 2])
def test_the_picture_cuts_along_the_body_and_shows_its_whole_shadow(axis, tmp_path, monkeypatch):
    shots = []

    def shot(meshes, camera, size, *, light, ground):
        shots.append((meshes[0], camera, light, ground))
        return np.zeros((size[1], size[0], 3), np.uint8)

    monkeypatch.setattr(volumes, "render", shot)
    volume = character_volume(built_in("arm"), tets=300)
    order = [0, 1, 2] if axis == 0 else [2, 1, 0]  # the arm is long along x
    mesh = replace(volume.lattice.mesh, vertices=volume.lattice.mesh.vertices[:, order])
    turned = replace(
        volume, lattice=replace(volume.lattice, mesh=mesh), surface_vertices=volume.surface_vertices[:, order]
    )
    write_volume_picture(turned, tmp_path / "arm.png")
    (skin, camera, light, ground), (cut, *_) = shots
    shown = cut.vertices[np.unique(cut.triangles)]
    assert np.ptp(shown[:, axis]) > 0.95 * np.ptp(mesh.vertices[:, axis]), "from end to end"
    assert np.ptp(shown[:, 2 - axis]) < 0.85 * np.ptp(mesh.vertices[:, 2 - axis]), "without its near half"
    shadow = light.shadow(skin.vertices, ground.height)
    across, above, away = camera.axes() @ (np.concatenate([skin.vertices, shadow]) - camera.eye).T
    assert (np.maximum(abs(across), abs(above)) < away * np.tan(camera.field_of_view / 2)).all()
