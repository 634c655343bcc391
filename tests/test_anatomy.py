"""Which joints carry mostly bone, by their names."""

import numpy as np
import pytest

from characters_for_tests import limb
from softrig.characters import built_in
from softrig.pipeline.fabric import is_bony
from softrig.project import PoseMaterial, Project
from softrig.rig.anatomy import END, HEAD, bony_joints, bony_softness, joint_softness

FINGERS = [
    "LeftHand",
    "mixamorig:LeftHandIndex1",
    "hand.L",
    "J_Bip_L_Hand",
    "CC_Base_R_Foot",
    "RightToeBase",
    "L_wrist",
]
HEADS = ["Head", "b_Head_05", "mixamorig:Head", "jaw_master", "HEAD"]
SOFT = ["ForeArm", "Chest", "Spine_02", "shoulder.R", "breast.L", "HairHead1", "head_ponytail", "handle", "Shirt", "",
        "arm_joint_L__3_", "ahead", "footage"]  # fmt: skip


@pytest.mark.parametrize("name", FINGERS)
def test_hands_and_feet_are_known(name: str) -> None:
    assert joint_softness(name) == END


@pytest.mark.parametrize("name", HEADS)
def test_heads_are_known(name: str) -> None:
    assert joint_softness(name) == HEAD


@pytest.mark.parametrize("name", SOFT)
def test_all_else_is_as_soft_as_the_material(name: str) -> None:
    assert joint_softness(name) == 1.0


def test_softness_is_mixed_as_the_skin_mixes_the_joints() -> None:
    gorilla = built_in("gorilla")
    assert set(bony_joints(gorilla)) == {"Head", "LeftHand", "RightHand", "LeftFoot", "RightFoot"}
    softness = bony_softness(gorilla)
    assert softness is not None
    assert softness.min() == pytest.approx(END)
    skin = gorilla.rig.stages[-1]
    names = np.array([skin.skeleton.names[bone] for bone in skin.bones])[skin.joints]
    torso = np.isin(names, ["Hips", "Spine", "Chest"]) | (skin.weights == 0.0)
    np.testing.assert_allclose(softness[torso.all(axis=1)], 1.0, rtol=1e-12)


def test_rigs_without_such_names_or_without_joints_say_nothing() -> None:
    assert bony_softness(limb()) is None
    assert bony_softness(built_in("bear")) is None


def test_what_is_painted_counts_instead() -> None:
    assert is_bony(Project())
    assert is_bony(Project().changed(material={"young": 8e3}), PoseMaterial(young=1e5))
    assert not is_bony(Project().changed(material={"bony": False}))
    assert not is_bony(Project().changed(material={"softness_map": "softness"}))
    assert not is_bony(Project().changed(material={"young": "young.npy"}))
    assert not is_bony(Project(), PoseMaterial(softness_map="bent"))
    assert not is_bony(Project(), PoseMaterial(young="bent.npy"))
