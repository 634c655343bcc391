"""BVH: channels, orders, degrees, round trip, faults with their lines; and motion put onto another skeleton."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softrig.errors import InputError
from softrig.io.bvh import bvh_text, load_bvh, parse_bvh, save_bvh
from softrig.io.format_error import FileFormatError
from softrig.numerics.rotations import quaternion_matrices, quaternion_product, quaternions_from_vectors
from softrig.rig.clip import Clip
from softrig.rig.retarget import canonical_joint, guess_names, retarget
from softrig.rig.skeleton import Skeleton

FILE = """HIERARCHY
ROOT Hips
{
  OFFSET 0.0 90.0 0.0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Chest {
    OFFSET 0 20 5
    CHANNELS 3 Yrotation Xrotation Zrotation
    End Site
    {
      OFFSET 0 15 0
    }
  }
  JOINT Left Leg
  {
    OFFSET 10 -5 0
    CHANNELS 2 Xrotation Zposition
    End Site {
      OFFSET 0 -85 0
    }
  }
}
MOTION
Frames: 3
Frame Time: 0.5
0 90 0   0 0 0    0 0 0    0 0
1 91 2   90 0 0   90 0 0   45 3
2 92 4   10 20 30 40 50 60 -30 6
"""


def degrees(order, angles):
    return Rotation.from_euler(order, angles, degrees=True).as_matrix()


class TestReading:
    def test_hierarchy(self):
        skeleton = parse_bvh(FILE).skeleton
        assert skeleton.names == ("Hips", "Chest", "Chest.end", "Left Leg", "Left Leg.end")
        assert skeleton.parents.tolist() == [-1, 0, 1, 0, 3]
        assert skeleton.translations.tolist() == [[0, 90, 0], [0, 20, 5], [0, 15, 0], [10, -5, 0], [0, -85, 0]]

    def test_channel_order_and_degrees(self):
        motion = parse_bvh(FILE)
        skeleton = motion.skeleton
        values = motion.clip.sample([0.0, 0.5, 1.0])
        assert motion.clip.duration == pytest.approx(1.0)
        assert values[:, :3] == pytest.approx(np.array([[0, 90, 0], [1, 91, 2], [2, 92, 4]]))
        # Upper case: intrinsic turns, the first channel outermost, R = Rz Rx Ry.
        hips, chest = (quaternion_matrices(values[2, skeleton.rotation(i)]) for i in (0, 1))
        assert np.abs(hips - degrees("ZXY", [10, 20, 30])).max() < 1e-14
        assert np.abs(chest - degrees("YXZ", [40, 50, 60])).max() < 1e-14
        leg = quaternion_matrices(values[1, skeleton.rotation(3)])
        assert np.abs(leg - degrees("X", [45])).max() < 1e-14
        assert values[:, skeleton.translation(3)] == pytest.approx(np.array([[10, -5, 0], [10, -5, 3], [10, -5, 6]]))

    def test_by_hand(self):
        """A quarter turn about z takes the chest, above the hips, to the side of −x; its own about y takes z to x."""
        motion = parse_bvh(FILE)
        world = motion.skeleton.world_matrices(motion.clip.sample([0.5])[0])
        assert world[1, :3, 3] == pytest.approx([1 - 20, 91, 2 + 5])
        assert world[1, :3, :3] @ [0, 0, 1] == pytest.approx([0, 1, 0], abs=1e-14)

    def test_scale(self):
        metres, plain = parse_bvh(FILE, scale=0.01), parse_bvh(FILE)
        assert metres.skeleton.translations == pytest.approx(0.01 * plain.skeleton.translations)
        a = metres.skeleton.world_matrices(metres.clip.sample([0.7])[0])
        b = plain.skeleton.world_matrices(plain.clip.sample([0.7])[0])
        assert a[:, :3, 3] == pytest.approx(0.01 * b[:, :3, 3])
        assert a[:, :3, :3] == pytest.approx(b[:, :3, :3])

    def test_windows_lines_and_a_byte_order_mark(self, tmp_path):
        path = tmp_path / "walk.bvh"
        path.write_bytes(b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode())
        motion = load_bvh(path)
        assert motion.clip.name == "walk"
        assert motion.clip.sample([0.8]) == pytest.approx(parse_bvh(FILE).clip.sample([0.8]))

    @pytest.mark.parametrize(
        ("old", "new", "match", "line"),
        [
            ("HIERARCHY", "HIERARCHIE", "should be", 1),
            ("OFFSET 0 20 5", "OFFSET 0 x 5", "'x' where an offset", 7),
            ("OFFSET 0 20 5", "OFFSET 0 nan 5", "not finite", 7),
            ("CHANNELS 3 Yrotation", "CHANNELS 3 Wrotation", "'wrotation' is unknown", 8),
            ("3 Yrotation Xrotation", "3 Xrotation Xrotation", "given twice", 8),
            ("CHANNELS 3 Y", "CHANNELS 300 Y", "0 to 6", 8),
            ("      OFFSET 0 15 0\n", "", "no OFFSET", 11),
            ("Frames: 3", "Frames: -3", "frames of", 25),
            ("Frames: 3", "Frames: 99999999999", "too many", 25),
            ("Frames: 3", "Frames: 4", "need 44 numbers, not 33", 25),
            ("Frame Time: 0.5", "Frame Time: 0", "of 0.0 s", 25),
            ("2 92 4", "2 9x2 4", "motion data", 25),
            ("2 92 4", "2 inf 4", "frame 2 is not finite", 25),
            ("MOTION\n", "JOINT x\n", "does not belong", 23),
        ],
    )
    def test_faults_name_their_line(self, old, new, match, line):
        with pytest.raises(FileFormatError, match=match) as fault:
            parse_bvh(FILE.replace(old, new, 1))
        assert fault.value.indices.tolist() == [line]

    def test_truncated_anywhere(self):
        """Cut inside the hierarchy or the data: a clean refusal, never a crash."""
        end = FILE.index("2 92 4")
        for length in range(0, end, 3):
            with pytest.raises(FileFormatError):
                parse_bvh(FILE[:length])

    def test_deep_nesting_is_no_recursion(self):
        depth = 3000
        joints = "".join(f"JOINT j{i}\n{{\nOFFSET 0 1 0\nCHANNELS 0\n" for i in range(depth))
        text = f"HIERARCHY\nROOT r\n{{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n{joints}{'}' * 0}"
        text += "}\n" * (depth + 1) + "MOTION\nFrames: 1\nFrame Time: 1\n90\n"
        assert len(parse_bvh(text).skeleton) == depth + 1
        with pytest.raises(FileFormatError, match="more than"):
            parse_bvh("HIERARCHY\nROOT r\n{\nOFFSET 0 0 0\n" + "JOINT j\n{\nOFFSET 0 1 0\n" * 10_001)


class TestWriting:
    def test_round_trip(self, tmp_path):
        motion = parse_bvh(FILE)
        path = tmp_path / "again.bvh"
        save_bvh(path, motion.skeleton, motion.clip, fps=2.0)
        again = load_bvh(path)
        assert again.skeleton.names == motion.skeleton.names
        assert again.skeleton.parents.tolist() == motion.skeleton.parents.tolist()
        assert again.skeleton.translations == pytest.approx(motion.skeleton.translations)
        at = np.array([0.0, 0.5, 1.0])
        a, b = (m.skeleton.world_matrices(m.clip.sample(at)) for m in (motion, again))
        assert np.abs(a - b).max() < 1e-6

    def test_scale_goes_out_and_comes_back(self):
        motion = parse_bvh(FILE, scale=0.01)
        text = bvh_text(motion.skeleton, motion.clip, fps=2.0, scale=0.01)
        assert "OFFSET 0 90 0" in text
        again = parse_bvh(text, scale=0.01)
        assert again.clip.sample([0.5]) == pytest.approx(motion.clip.sample([0.5]), abs=1e-8)

    def test_rest_rotations_become_part_of_the_motion(self):
        motion = parse_bvh(FILE)
        turned = replace(motion.skeleton, rotations=quaternions_from_vectors(np.full((5, 3), 0.3)))
        clip = replace(motion.clip, parameters=turned.parameters)
        again = parse_bvh(bvh_text(turned, clip, fps=2.0))
        expected = turned.world_matrices(clip.sample([0.5])[0])[:, :3, 3]
        got = again.skeleton.world_matrices(again.clip.sample([0.5])[0])[:, :3, 3]
        names = [again.skeleton.index(name) for name in turned.names]
        assert np.abs(got[names] - expected).max() < 1e-5

    def test_gimbal_lock(self):
        skeleton = Skeleton.from_heads(("a", "b"), (-1, 0), np.array([[0, 0, 0], [0, 1.0, 0]]))
        values = np.tile(skeleton.parameters.rest, (2, 1))
        for frame, x in enumerate((np.pi / 2, -np.pi / 2)):
            q = Rotation.from_euler("ZXY", [0.4, x, 0.7]).as_quat()
            values[frame, skeleton.rotation(0)] = q
        clip = Clip.from_samples("lock", skeleton.parameters, np.array([0.0, 1.0]), values)
        again = parse_bvh(bvh_text(skeleton, clip, fps=1.0))
        got = again.skeleton.world_matrices(again.clip.sample([0.0, 1.0]))[:, :2]
        assert np.abs(got - skeleton.world_matrices(values)).max() < 1e-7

    def test_scale_is_refused(self):
        motion = parse_bvh(FILE)
        scaled = replace(motion.skeleton, scales=np.full((5, 3), 2.0))
        with pytest.raises(InputError, match="no scale"):
            bvh_text(scaled, replace(motion.clip, parameters=scaled.parameters))


def biped(names, *, size=1.0, arms=(1.0, 0.0), turns=None):
    """Hips, chest, head, left arm, hand, left leg, foot; arms stretched along `arms` (x, y)."""
    along = np.array([*arms, 0.0])
    heads = np.array([[0, 1, 0], [0, 1.3, 0], [0, 1.6, 0], [0.2, 1.5, 0], [0.2, 1.5, 0], [0.1, 0.9, 0], [0.1, 0, 0]])
    heads[4] += 0.5 * along
    skeleton = Skeleton.from_heads(names, (-1, 0, 1, 1, 3, 0, 5), size * heads)
    if turns is None:
        return skeleton
    # The same joints in the world, with turned local frames.
    world = quaternions_from_vectors(turns)
    parents = skeleton.parents
    local = world.copy()
    translations = skeleton.translations.copy()
    for node in range(1, 7):
        back = world[parents[node]] * [-1, -1, -1, 1]
        local[node] = quaternion_product(back, world[node])
        translations[node] = quaternion_matrices(back) @ translations[node]
    return replace(skeleton, rotations=local, translations=translations)


SOURCE = ("Hips", "Chest", "Head", "LeftArm", "LeftHand", "LeftUpLeg", "LeftFoot")
TARGET = ("mixamorig:Hips", "Spine01", "head", "upperarm_l", "hand.L", "thigh_l", "Foot_L")


def moving_clip(skeleton, seed=0):
    rng = np.random.default_rng(seed)
    values = np.tile(skeleton.parameters.rest, (5, 1))
    for node in range(7):
        turn = quaternions_from_vectors(rng.normal(0.0, 0.5, (5, 3)))
        values[:, skeleton.rotation(node)] = quaternion_product(skeleton.rotations[node], turn)
    values[:, :3] += rng.normal(0.0, 0.2, (5, 3))
    values[0] = skeleton.parameters.rest
    return Clip.from_samples("move", skeleton.parameters, np.arange(5.0), values)


class TestRetarget:
    def test_names(self):
        assert canonical_joint("mixamorig:LeftUpLeg") == canonical_joint("thigh_l") == "left upperleg"
        assert canonical_joint("RightForeArm") == canonical_joint("lowerarm.R") == "right lowerarm"
        assert canonical_joint("LeftShoulder") == canonical_joint("clavicle_l")
        assert canonical_joint("LeftHandThumb1") != canonical_joint("LeftHand")
        assert canonical_joint("Pelvis") == canonical_joint("Hips") == "hips"
        assert canonical_joint("LeftLeg") == "left lowerleg"
        assert canonical_joint("LeftArm") == "left upperarm"
        guess = guess_names(biped(SOURCE), biped(TARGET))
        assert guess == dict(zip(SOURCE, TARGET, strict=True))

    def test_onto_itself_is_the_same_motion(self):
        skeleton = biped(SOURCE)
        clip = moving_clip(skeleton)
        out = retarget(clip, skeleton, skeleton)
        at = np.arange(5.0)
        a, b = (skeleton.world_matrices(c.sample(at)) for c in (clip, out))
        assert np.abs(a - b).max() < 1e-12

    def test_other_local_frames_and_another_size(self):
        source = biped(SOURCE)
        target = biped(TARGET, size=1.5, turns=np.random.default_rng(3).normal(0.0, 1.0, (7, 3)))
        clip = moving_clip(source)
        out = retarget(clip, source, target)
        at = np.arange(5.0)
        mine, theirs = target.world_matrices(out.sample(at)), source.world_matrices(clip.sample(at))
        assert np.abs(mine[..., :3, 3] - 1.5 * theirs[..., :3, 3]).max() < 1e-12

    def test_another_rest_pose(self):
        source, target = biped(SOURCE), biped(TARGET, arms=(0.6, -0.8))
        clip = moving_clip(source)
        at = np.arange(5.0)
        theirs = source.world_matrices(clip.sample(at))[..., :3, 3]
        aligned = target.world_matrices(retarget(clip, source, target).sample(at))[..., :3, 3]
        assert np.abs((aligned - theirs)[:, 4]).max() < 1e-12
        plain = target.world_matrices(retarget(clip, source, target, align=False).sample(at))[..., :3, 3]
        assert np.linalg.norm((plain - theirs)[0, 4]) > 0.3
        assert plain[0, 4] == pytest.approx(target.rest_world_matrices[4, :3, 3])

    def test_a_root_at_the_origin_stands_on_the_ground(self):
        standing = biped(SOURCE)
        source = replace(standing, translations=standing.translations - np.eye(7, 1) * [0, 1.0, 0])
        clip = moving_clip(standing)
        out = retarget(replace(clip, parameters=source.parameters), source, biped(TARGET, size=2.0))
        height = out.sample([0.0])[0, 1]
        assert height == pytest.approx(2.0)

    def test_only_mapped_joints_move_and_the_scale_is_the_users(self):
        skeleton = biped(SOURCE)
        clip = moving_clip(skeleton)
        out = retarget(clip, skeleton, skeleton, {"Hips": "Hips", "LeftArm": "LeftArm"}, scale=3.0).sample(
            np.arange(5.0)
        )
        moved = {
            name.split(".")[0] for name, column in zip(skeleton.parameters.names, out.T, strict=True) if np.ptp(column)
        }
        assert moved == {"Hips", "LeftArm"}
        rest = skeleton.parameters.rest
        assert out[:, :3] - rest[:3] == pytest.approx(3.0 * (clip.sample(np.arange(5.0))[:, :3] - rest[:3]))

    def test_faults(self):
        skeleton = biped(SOURCE)
        other = biped([f"x{i}y" for i in range(7)])
        with pytest.raises(InputError, match="give a map"):
            retarget(moving_clip(skeleton), skeleton, other)
        with pytest.raises(InputError, match="mapped to one"):
            retarget(moving_clip(skeleton), skeleton, skeleton, {"Hips": "Hips", "Head": "Hips"})
        with pytest.raises(InputError, match="no node is called 'Tail'"):
            retarget(moving_clip(skeleton), skeleton, skeleton, {"Hips": "Tail"})
