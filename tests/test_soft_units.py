"""The same motion whatever unit a file is in: metres, centimetres, or metres under an armature scaled by 100."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from characters_for_tests import SMALL, limb
from gltf_files_for_tests import glb_bytes
from softrig.io.characters import load_character
from softrig.io.glb import read_document
from softrig.io.glb_writer import write_character_glb
from softrig.pipeline.baking import model_simulation
from softrig.pipeline.build import build
from softrig.rig.character import Character

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb, 50 m long


def in_metres(folder: Path) -> Character:
    write_character_glb(limb(), folder / "metres.glb")
    return load_character(folder / "metres.glb")


def in_centimetres(folder: Path) -> Character:
    write_character_glb(limb(scale=100.0), folder / "centimetres.glb")
    return load_character(folder / "centimetres.glb", scale=0.01)


def under_an_armature(folder: Path) -> Character:
    """As exporters write it: everything in metres below a node that is scaled by 100."""
    write_character_glb(limb(), folder / "plain.glb")
    content = read_document(folder / "plain.glb")
    document = content.json
    scene = document["scenes"][document.get("scene", 0)]
    document["nodes"].append({"name": "Armature", "scale": [100.0] * 3, "children": scene["nodes"]})
    scene["nodes"] = [len(document["nodes"]) - 1]
    (folder / "armature.glb").write_bytes(glb_bytes(document, bytes(content.binary)))
    return load_character(folder / "armature.glb", scale=0.01)


def soft_motion(character: Character, cache: Path) -> tuple[np.ndarray, np.ndarray]:
    """(f, n, 3) metres of the clip "bend", soft, and what the flesh adds to plain skinning."""
    model = build(character, SMALL, cache=cache, jobs=1)
    _, poses = character.clip("bend").resample(60.0)
    moved = model_simulation(model, fps=60.0).run(poses).astype(np.float64)
    return moved, moved - np.stack([character.rig.positions(p) for p in poses])


@pytest.mark.parametrize("other", [in_centimetres, under_an_armature])
def test_a_file_in_another_unit_moves_the_same(other, tmp_path, cache):
    expected, soft = soft_motion(in_metres(tmp_path), cache)
    moved, added = soft_motion(other(tmp_path), cache)
    assert moved.shape == expected.shape
    assert np.abs(soft).max() > 1e-3, "flesh that does not move shows nothing"
    assert np.linalg.norm(added - soft) < 0.02 * np.linalg.norm(soft)
