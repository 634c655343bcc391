"""Which joints carry mostly bone, by their names."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.sparse import csr_array, hstack

from characters_for_tests import limb
from pose_models_for_tests import bar_model, mapped
from softrig.characters import built_in
from softrig.errors import InputError
from softrig.inspection import soft_facts
from softrig.pipeline.coarse import coarse_body
from softrig.pipeline.fabric import firm_joints, is_painted, require_material, softness_by_joints
from softrig.poses.materials import PRESETS
from softrig.project import PoseMaterial, Project
from softrig.rig.anatomy import END, HEAD, bony_joints, bony_softness, joint_softness, node_softness, outer_joints
from softrig.rig.bones import carrying_joint, skin_of
from softrig.rig.deformers import RigChain
from softrig.rig.skeleton import Skeleton

FINGERS = [
    "LeftHand",
    "lefthand",
    "LHAND",
    "rfoot",
    "Paws",
    "mixamorig:LeftHandIndex1",
    "hand.L",
    "J_Bip_L_Hand",
    "CC_Base_R_Foot",
    "RightToeBase",
    "L_wrist",
]
HEADS = ["Head", "b_Head_05", "mixamorig:Head", "jaw_master", "HEAD"]
SOFT = ["ForeArm", "Chest", "Spine_02", "shoulder.R", "breast.L", "HairHead1", "head_ponytail", "handle", "Shirt", "",
        "arm_joint_L__3_", "ahead", "footage", "bone_index_3", "HeadHorn", "Head_Ears"]  # fmt: skip


def test_joints_at_the_ends_are_those_that_nothing_carries_on_from() -> None:
    skin = skin_of(built_in("gorilla").rig)
    found = outer_joints(skin)
    assert {"Head", "LeftHand", "RightHand", "LeftFoot", "RightFoot"} <= set(found)
    assert not {"Spine", "LeftForearm", "LeftShin"} & set(found)
    assert len(found) < len(skin.skeleton.names) / 2


def test_joints_that_skins_share_and_meshes_that_hang_on_joints_do_not_hide_ends() -> None:
    skin = skin_of(built_in("gorilla").rig)
    table, bones = skin.binding.table, np.asarray(skin.binding.bones)
    nothing = csr_array(table.shape)
    # A second skin of the same joints in which they carry nothing, and a mesh that hangs on one below a hand.
    shared = Mock(skeleton=skin.skeleton, bones=np.concatenate([bones, bones]))
    shared.binding.table = hstack([table, nothing, csr_array(np.ones((table.shape[0], 1)))]).tocsr()
    shared.binding.bones = np.concatenate([bones, bones, bones[:1]])
    assert outer_joints(shared) == outer_joints(skin)


def test_a_vertex_is_carried_by_the_joint_that_has_most_of_it() -> None:
    rig = built_in("gorilla").rig
    skin = skin_of(rig)
    names = [skin.skeleton.names[bone] for bone in skin.binding.bones]
    for vertex in (0, 4000, 15000):
        assert carrying_joint(rig, vertex) == names[skin.binding.table.toarray()[vertex].argmax()]
    assert carrying_joint(rig, -1) == ""


@pytest.mark.parametrize("name", FINGERS)
def test_hands_and_feet_are_known(name: str) -> None:
    assert joint_softness(name) == END


@pytest.mark.parametrize("name", HEADS)
def test_heads_are_known(name: str) -> None:
    assert joint_softness(name) == HEAD


@pytest.mark.parametrize("name", SOFT)
def test_all_else_is_as_soft_as_the_material(name: str) -> None:
    assert joint_softness(name) == 1.0


def test_fingers_are_known_by_their_hand_whatever_they_are_called() -> None:
    names = ("arm_l", "hand_l", "index_01_l", "middle_01_l", "ring_01_l", "weapon_l", "sleeve_l", "bone_index_3")
    skeleton = Skeleton.from_heads(names, (-1, 0, 1, 1, 4 - 1, 1, 1, 0), np.arange(24.0).reshape(8, 3))
    assert node_softness(skeleton).tolist() == [1.0, END, END, END, END, 1.0, 1.0, 1.0]


@pytest.mark.filterwarnings("ignore:vertices without skin weights")
def test_vertices_without_weights_and_unused_joints_of_any_number_are_no_trouble() -> None:
    gorilla = built_in("gorilla")
    *before, skin = gorilla.rig.stages
    joints, weights = skin.joints.copy(), skin.weights.copy()
    weights[5] = 0.0
    joints[weights == 0.0] = 65535
    joints[5] = 0
    odd = replace(gorilla, rig=RigChain((*before, replace(skin, joints=joints, weights=weights))))
    softness, usual = bony_softness(odd), bony_softness(gorilla)
    assert softness is not None
    assert usual is not None
    others = np.arange(len(usual)) != 5
    np.testing.assert_allclose(softness[others], usual[others], rtol=1e-12)
    assert 0.0 <= softness.min() <= softness.max() <= 1.0


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # so coarse a mesh has thin places
def test_hands_are_firm_in_the_fabric_and_in_the_model_that_is_built() -> None:
    character = replace(built_in("gorilla"), clips=())
    tiny = Project().changed(
        mesh={"tets": 700}, basis={"modes": 6, "contact": False, "rehearsal": 0.0}, poses={"count": 1}
    )
    firm, soft = coarse_body(character, tiny, 700), coarse_body(character, tiny.changed(material={"bony": False}), 700)
    factor = firm.fabric.young[0] / soft.fabric.young[0]
    centres = firm.model.vertices[firm.model.tets].mean(axis=1)
    bones = {bone.name: 0.5 * (bone.head + bone.tail) for bone in character.bones()}

    def at(name: str) -> float:
        return float(factor[np.linalg.norm(centres - bones[name], axis=1).argmin()])

    assert at("LeftHand") > 20.0
    assert at("RightFoot") > 10.0
    assert at("Head") > 20.0
    assert at("Spine") == pytest.approx(1.0, abs=0.1)
    np.testing.assert_allclose(soft.fabric.young, PRESETS["muscle"].young)
    painted = replace(character, maps={"paint": np.ones(character.rig.vertex_count)})
    even = coarse_body(painted, tiny.changed(material={"softness_map": "paint"}), 700)
    np.testing.assert_allclose(even.fabric.young, PRESETS["muscle"].young)


def test_the_model_says_which_joints_are_firm() -> None:
    model = mapped(bar_model())
    model.notes["firm joints"] = [f"Hand{i}" for i in range(12)]
    facts = dict(soft_facts(model))
    assert facts["firm"].startswith("Hand0, Hand1, ")
    assert "(12)" in facts["firm"]
    for nothing in ([], "Hand", [{"x": 1}], None):
        model.notes["firm joints"] = nothing
        assert "firm" not in dict(soft_facts(model))
    model.notes["firm joints"] = ["a\x1b[31m\nb" + "c" * 500]
    assert "\n" not in dict(soft_facts(model))["firm"]
    assert len(dict(soft_facts(model))["firm"]) < 200


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
    assert not is_painted(Project())
    assert not is_painted(Project().changed(material={"young": 8e3}), PoseMaterial(young=1e5))
    assert is_painted(Project().changed(material={"softness_map": "softness"}))
    assert is_painted(Project().changed(material={"young": "young.npy"}))
    assert is_painted(Project(), PoseMaterial(softness_map="bent"))
    assert is_painted(Project(), PoseMaterial(young="bent.npy"))
    gorilla = built_in("gorilla")
    assert softness_by_joints(gorilla, Project()) is not None
    assert softness_by_joints(gorilla, Project(), PoseMaterial(softness_map="bent")) is None
    assert softness_by_joints(gorilla, Project().changed(material={"bony": False})) is None
    assert firm_joints(gorilla, Project().changed(material={"young": "young.npy"})) == []


def test_joints_that_the_project_calls_firm_are_like_hands() -> None:
    project = Project().changed(material={"firm": ["lower"]})
    assert firm_joints(limb(), project) == ["lower"]
    softness = softness_by_joints(limb(), project)
    assert softness is not None
    along = limb().rest_positions[:, 0]
    np.testing.assert_allclose(softness[along > 0.55], END)
    np.testing.assert_allclose(softness[along < 0.25], 1.0)
    # Beside those that names tell, or alone.
    gorilla = built_in("gorilla")
    both = firm_joints(gorilla, Project().changed(material={"firm": ["Chest"]}))
    assert set(both) == {*bony_joints(gorilla), "Chest"}
    assert firm_joints(gorilla, Project().changed(material={"firm": ["Chest"], "bony": False})) == ["Chest"]


def test_a_firm_joint_that_is_not_there_is_named() -> None:
    project = Project().changed(material={"firm": ["Lower"]})
    with pytest.raises(InputError, match=r"material.firm: no joint of the skin .*'Lower', did you mean 'lower'"):
        require_material(limb(), project, ["rest"])
    painted = Project().changed(material={"firm": ["lower"], "softness_map": "softness"})
    with pytest.warns(UserWarning, match="firm does nothing where softness"):
        require_material(limb(), painted, ["rest"])
