"""What the prompt shows: names and counts, never a page of numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bars_for_tests import bar_character
from bodies_for_tests import beam
from gltf_files_for_tests import everything
from softrig.bases.modes import linear_modes
from softrig.characters import built_in
from softrig.forces.polynomial import reduce_body
from softrig.io.gltf import load_gltf
from softrig.meshing import box_bricks
from softrig.rig.skinning import DualQuaternionSkin


def reduced():
    body = beam()
    return reduce_body(body, linear_modes(body, 3).shapes)


BAR = bar_character()


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (lambda: box_bricks((1, 1, 1), (2, 1, 1)), "VolumeMesh(12 vertices, 2 bricks, groups=('body',))"),
        (lambda: box_bricks((1, 1, 1), (2, 1, 1)).mass_points, "IntegrationPoints(2 elements, 8 points each)"),
        (lambda: BAR, "Character('bar', 143 vertices, 240 triangles, 1 parts, 2 clips, 0 corrections)"),
        (lambda: BAR.parts[0], "Part('bar', soft, 143 vertices, 240 triangles)"),
        (lambda: BAR.clips[0], "Clip('bend', 1 s, 2 tracks)"),
        (lambda: BAR.clips[0].tracks[1], "Track(parameters 1 to 3, 3 linear keys)"),
        (lambda: BAR.skeleton, "Skeleton(3 nodes)"),
        (lambda: BAR.welded, "Weld(143 vertices into 130)"),
        (lambda: BAR.rig.stages[1], "LinearBlendSkin(143 vertices, 30 parameters)"),
        (lambda: BAR.rig.stages[1].binding, "SkinBinding(143 vertices, 3 bones)"),
        (lambda: BAR.rig.stages[1].linear_map(np.arange(4)), "SkinMap(4 points, 3 bones)"),
        (lambda: BAR.rig.parameters, "Parameters(31: bulge.weight, bone0.translation.x, bone0.translation.y, …)"),
        (lambda: BAR.rig.pose_features, "PoseFeatures(28 features of 31 parameters)"),
        (
            lambda: BAR.rig,
            "RigChain(BlendShapes(143 vertices, 1 parameters), LinearBlendSkin(143 vertices, 30 parameters))",
        ),
    ],
)
def test_what_is_shown(made, shown):
    assert repr(made()) == shown


def test_models_are_shown_with_their_modes():
    model = reduced()
    assert repr(model).startswith("ReducedBody(3 modes, ")
    assert repr(model).endswith(" vertices, anchored, groups=('body',))")
    assert repr(model.coefficients) == "StvkCoefficients(3 modes, 1 groups)"


def test_other_rigs_and_characters_are_short_too(tmp_path):
    skin = BAR.rig.stages[1]
    twin = DualQuaternionSkin(
        skin.skeleton, skin.rest_positions, skin.bones, skin.inverse_binds, skin.joints, skin.weights
    )
    assert repr(twin).startswith("DualQuaternionSkin(143 ")
    x = built_in("x")
    assert repr(x).startswith("BuiltInCharacter('x', 2,362 vertices")
    assert repr(x.rig).count("Bend(") == 2
    assert repr(x.corrections[0]) == "Correction('LeanLeft', drivers=('bend.angle',), 2,362 vertices)"
    assert len(repr(load_gltf(everything().save(tmp_path / "a.glb")))) < 120
