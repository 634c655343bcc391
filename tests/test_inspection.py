"""What `softrig info` says of characters and models."""

import numpy as np
import pytest
from typer.testing import CliRunner

from bodies_for_tests import beam
from gltf_files_for_tests import everything
from softrig.bases.modes import linear_modes
from softrig.bodies.closedness import closedness
from softrig.cli import app
from softrig.forces.polynomial import reduce_body
from softrig.inspection import inspect_file, readable_endings
from softrig.models.file import save_model

TETRAHEDRON = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])


@pytest.mark.parametrize(
    ("triangles", "open_edges", "crowded", "flat", "words"),
    [
        (TETRAHEDRON, 0, 0, 0, "closed"),
        (TETRAHEDRON[:3], 3, 0, 0, "3 open edges"),
        (np.vstack([TETRAHEDRON, [[0, 1, 4]]]), 2, 1, 0, "2 open edges, 1 crowded edges"),
        (np.vstack([TETRAHEDRON, [[1, 1, 2]]]), 0, 0, 1, "closed"),
        (np.zeros((0, 3), int), 0, 0, 0, "closed"),
    ],
)
def test_closedness_counts_edges(triangles, open_edges, crowded, flat, words):
    found = closedness(triangles)
    assert (found.open_edges, found.crowded_edges, found.degenerate) == (open_edges, crowded, flat)
    assert found.words() == words


def test_a_model_is_described_with_its_materials(tmp_path):
    body = beam()
    model = reduce_body(body, linear_modes(body, 3).shapes, notes={"made by": "a test"})
    path = tmp_path / "beam.softrig"
    save_model(model.with_material("body", young=12345.0, poisson=0.25), path)
    found = inspect_file(path)
    facts = dict(found.facts)
    assert facts["modes"] == "3"
    assert facts["note: made by"] == "a test"
    (title, _, rows) = found.tables[0]
    assert title == "Materials"
    assert rows[0][:3] == ("body", "1.234e+04 Pa", "0.25")
    result = CliRunner().invoke(app, ["info", str(path)])
    assert result.exit_code == 0
    assert "anchored" in result.stdout


def test_a_character_is_described_with_its_parts_and_clips(tmp_path):
    path = tmp_path / "everything.glb"
    path.write_bytes(everything().glb())
    found = inspect_file(path)
    titles = [title for title, _, _ in found.tables]
    assert titles == ["Parts", "Clips"]
    assert dict(found.facts)["triangles"].replace(",", "").isdigit()
    result = CliRunner().invoke(app, ["info", str(path)])
    assert result.exit_code == 0
    assert found.title.split()[0] in result.stdout


def test_what_can_be_read_is_listed():
    assert ".glb" in readable_endings()
    assert ".softrig" in readable_endings()
