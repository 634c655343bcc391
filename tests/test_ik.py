"""Inverse kinematics: reachable targets are reached, others pointed at, poles and limits obeyed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rigs_for_tests import random_skeleton
from softrig.errors import IndexRangeError, InputError
from softrig.numerics.rotations import (
    quaternion_conjugate,
    quaternion_product,
    quaternions_from_vectors,
    rotation_vectors,
)
from softrig.rig.ik import chain, two_bone
from softrig.rig.skeleton import Skeleton

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None, derandomize=True)
LEG = (1, 2, 3)


def leg(*, bent: bool = True) -> Skeleton:
    """Pelvis, hip, knee, ankle, toe; a slight bend forward unless straight."""
    knee = [0.1, 0.5, 0.05 if bent else 0.0]
    heads = np.array([[0, 1.0, 0], [0.1, 0.95, 0], knee, [0.1, 0.05, 0], [0.1, 0.0, 0.15]])
    return Skeleton.from_heads(("pelvis", "hip", "knee", "ankle", "toe"), (-1, 0, 1, 2, 3), heads)


def heads_of(skeleton, p):
    return skeleton.world_matrices(p)[:, :3, 3]


def direction(rng):
    vector = rng.normal(size=3)
    return vector / np.linalg.norm(vector)


class TestTwoBone:
    @few
    @given(seed=seeds)
    def test_reaches_from_any_pose(self, seed):
        rng = np.random.default_rng(seed)
        skeleton = leg()
        p = skeleton.parameters.rest.copy()
        for node in range(4):
            p[skeleton.rotation(node)] = quaternions_from_vectors(rng.normal(0.0, 1.0, 3))
        p[:3] += rng.normal(size=3)
        before = heads_of(skeleton, p)
        upper, lower = np.linalg.norm(before[2] - before[1]), np.linalg.norm(before[3] - before[2])
        target = before[1] + direction(rng) * rng.uniform(abs(upper - lower) + 1e-3, upper + lower - 1e-9)
        out = two_bone(skeleton, p, LEG, target, pole=None if seed % 2 else before[1] + direction(rng))
        assert np.abs(heads_of(skeleton, out)[3] - target).max() < 1e-6
        changed = np.flatnonzero(np.abs(out - p) > 1e-12)
        allowed = {*range(13, 17), *range(23, 27)}
        assert set(changed.tolist()) <= allowed

    def test_the_knee_points_to_the_pole(self):
        skeleton = leg()
        hip = heads_of(skeleton, skeleton.parameters.rest)[1]
        target = hip - np.array([0.0, 0.7, 0.0])
        for pole in ([0.0, 0, 5.0], [0.0, 0, -5.0], [5.0, 0, 0], [-3.0, -2.0, 4.0]):
            out = two_bone(skeleton, skeleton.parameters.rest, LEG, target, pole=hip + pole)
            knee = heads_of(skeleton, out)[2] - hip
            across = np.array([pole[0], 0.0, pole[2]])
            assert knee[[0, 2]] @ across[[0, 2]] > 0.0
            assert abs(np.cross(knee, across)[1]) < 1e-9 * np.linalg.norm(across)

    def test_without_a_pole_the_bend_keeps_its_side(self):
        skeleton = leg()
        hip = heads_of(skeleton, skeleton.parameters.rest)[1]
        out = two_bone(skeleton, skeleton.parameters.rest, LEG, hip - np.array([0.0, 0.5, 0.0]))
        knee = heads_of(skeleton, out)[2] - hip
        assert knee[2] > 0.1
        assert abs(knee[0]) < 1e-12
        # The knee is a hinge about x.
        assert np.abs(rotation_vectors(out[skeleton.rotation(2)])[1:]).max() < 1e-9

    @few
    @given(seed=seeds)
    def test_a_target_already_reached_changes_nothing(self, seed):
        rng = np.random.default_rng(seed)
        skeleton = leg()
        p = skeleton.parameters.rest.copy()
        for node in range(4):
            p[skeleton.rotation(node)] = quaternions_from_vectors(rng.normal(0.0, 0.7, 3))
        out = two_bone(skeleton, p, LEG, heads_of(skeleton, p)[3])
        assert np.abs(skeleton.world_matrices(out) - skeleton.world_matrices(p)).max() < 1e-6

    def test_a_straight_leg_bends_somewhere(self):
        skeleton = leg(bent=False)
        hip = heads_of(skeleton, skeleton.parameters.rest)[1]
        target = hip - np.array([0.0, 0.6, 0.0])
        assert (
            np.abs(heads_of(skeleton, two_bone(skeleton, skeleton.parameters.rest, LEG, target))[3] - target).max()
            < 1e-9
        )

    def test_points_at_what_is_too_far_or_too_near(self):
        skeleton = leg()
        hip, knee, ankle = heads_of(skeleton, skeleton.parameters.rest)[1:4]
        upper, lower = np.linalg.norm(knee - hip), np.linalg.norm(ankle - knee)
        far = hip + np.array([3.0, 1.0, -2.0])
        out = heads_of(skeleton, two_bone(skeleton, skeleton.parameters.rest, LEG, far))
        unit = (far - hip) / np.linalg.norm(far - hip)
        assert out[3] == pytest.approx(hip + (upper + lower) * unit, abs=1e-9)
        assert out[2] == pytest.approx(hip + upper * unit, abs=1e-7)
        near = hip + 0.5 * abs(upper - lower) * unit
        out = heads_of(skeleton, two_bone(skeleton, skeleton.parameters.rest, LEG, near))
        assert np.linalg.norm(out[3] - hip) == pytest.approx(abs(upper - lower), abs=1e-7)

    def test_a_planted_foot_keeps_its_rotation(self):
        skeleton = leg()
        p = skeleton.parameters.rest.copy()
        p[skeleton.rotation(3)] = quaternions_from_vectors(np.array([0.2, 0.5, -0.1]))
        p[skeleton.scale(3)] = [1.0, -2.0, 3.0]
        before = skeleton.world_matrices(p)
        out = two_bone(skeleton, p, LEG, before[1, :3, 3] + [0.1, -0.6, 0.2], keep_end_rotation=True)
        after = skeleton.world_matrices(out)
        assert np.abs(after[3, :3, :3] - before[3, :3, :3]).max() < 1e-12
        assert np.abs(after[4, :3, 3] - after[3, :3, 3] - (before[4, :3, 3] - before[3, :3, 3])).max() < 1e-12

    @pytest.mark.parametrize("scale", [(2.0, 2.0, 2.0), (-1.0, -1.0, -1.0), (-1.0, 1.0, 1.0), (1.0, 1.5, 0.8)])
    def test_scaled_and_mirrored_ancestors(self, scale):
        skeleton = leg()
        p = skeleton.parameters.rest.copy()
        p[7:10] = scale
        p[3:7] = quaternions_from_vectors(np.array([0.3, -0.2, 0.1]))
        heads = heads_of(skeleton, p)
        target = heads[1] + 0.8 * (heads[3] - heads[1]) + [0.05, 0.0, 0.05]
        out = two_bone(skeleton, p, LEG, target)
        assert np.abs(heads_of(skeleton, out)[3] - target).max() < 1e-6

    def test_faults(self):
        skeleton = leg()
        rest = skeleton.parameters.rest
        with pytest.raises(IndexRangeError, match="not under"):
            two_bone(skeleton, rest, (2, 1, 3), np.zeros(3))
        with pytest.raises(IndexRangeError, match="joints of the skeleton"):
            two_bone(skeleton, rest, (1, 2, 9), np.zeros(3))
        with pytest.raises(InputError, match="target is a point"):
            two_bone(skeleton, rest, LEG, np.zeros(2))
        flat = replace(skeleton, translations=np.zeros_like(skeleton.translations))
        with pytest.raises(InputError, match="length zero"):
            two_bone(flat, flat.parameters.rest, LEG, np.ones(3))


def snake(count=6, *, straight=False):
    bends = np.zeros(count) if straight else 0.1 * (np.arange(count) % 2)
    heads = np.stack([bends, 0.3 * np.arange(count), np.zeros(count)], axis=1)
    return Skeleton.from_heads([f"s{i}" for i in range(count)], range(-1, count - 1), heads)


class TestChain:
    @few
    @given(seed=seeds)
    def test_reaches(self, seed):
        rng = np.random.default_rng(seed)
        skeleton = snake()
        target = direction(rng) * rng.uniform(0.2, 1.45)
        out = chain(skeleton, skeleton.parameters.rest, range(5), 5, target)
        assert np.abs(heads_of(skeleton, out)[5] - target).max() < 1e-6

    @few
    @given(seed=seeds)
    def test_reaches_in_any_tree_with_scales(self, seed):
        rng = np.random.default_rng(seed)
        skeleton = random_skeleton(rng, 5)
        end = 4
        joints = skeleton.ancestors(end)[::-1]
        p = skeleton.parameters.rest.copy()
        for joint in joints:
            p[skeleton.rotation(joint)] = quaternions_from_vectors(rng.normal(size=3))
        target = heads_of(skeleton, p)[end]  # where some pose is
        out = chain(skeleton, skeleton.parameters.rest, joints, end, target)
        assert np.abs(heads_of(skeleton, out)[end] - target).max() < 1e-6

    def test_a_straight_chain_shortens(self):
        skeleton = snake(straight=True)
        out = chain(skeleton, skeleton.parameters.rest, range(5), 5, np.array([0.0, 0.9, 0.0]))
        assert np.abs(heads_of(skeleton, out)[5] - [0.0, 0.9, 0.0]).max() < 1e-6

    def test_points_at_what_is_too_far(self):
        skeleton = snake()
        target = np.array([4.0, -1.0, 2.0])
        heads = heads_of(skeleton, chain(skeleton, skeleton.parameters.rest, range(5), 5, target))
        unit = target / np.linalg.norm(target)
        lengths = np.linalg.norm(np.diff(heads_of(skeleton, skeleton.parameters.rest), axis=0), axis=1)
        expected = np.concatenate([[0.0], np.cumsum(lengths)])[:, None] * unit
        assert np.abs(heads - expected).max() < 1e-9

    def test_only_named_joints_turn(self):
        skeleton = snake()
        out = chain(skeleton, skeleton.parameters.rest, (1, 3), 5, np.array([0.5, 0.8, 0.1]))
        turned = [i for i in range(6) if np.abs(out[skeleton.rotation(i)] - [0, 0, 0, 1]).max() > 1e-12]
        assert turned == [1, 3]
        assert np.abs(heads_of(skeleton, out)[5] - [0.5, 0.8, 0.1]).max() < 1e-6

    def test_limits_hold_and_a_reachable_target_is_reached(self):
        skeleton = snake()
        hinge = (np.array([0.0, 0.0, -0.6]), np.array([0.0, 0.0, 0.6]))
        limits = dict.fromkeys(range(5), hinge)
        angles = np.array([0.5, -0.3, -0.6, 0.2, 0.4])
        p = skeleton.parameters.rest.copy()
        for joint, angle in enumerate(angles):
            p[skeleton.rotation(joint)] = quaternions_from_vectors(np.array([0.0, 0.0, angle]))
        target = heads_of(skeleton, p)[5]
        out = chain(skeleton, skeleton.parameters.rest, range(5), 5, target, limits=limits)
        assert np.abs(heads_of(skeleton, out)[5] - target).max() < 1e-6
        for joint in range(5):
            vector = rotation_vectors(out[skeleton.rotation(joint)])
            assert np.abs(vector[:2]).max() < 1e-12
            assert abs(vector[2]) <= 0.6 + 1e-12

    @pytest.mark.parametrize("side", [1.0, -1.0])
    def test_limits_hold_where_the_target_is_out_of_reach(self, side):
        skeleton = snake(3, straight=True)
        low, high = sorted((-0.25 * side, 0.5 * side))
        limits = dict.fromkeys(range(2), (np.array([0.0, 0.0, low]), np.array([0.0, 0.0, high])))
        target = np.array([-0.3 * side, -2.0, 0.0])
        out = chain(skeleton, skeleton.parameters.rest, range(2), 2, target, limits=limits)
        # Turning by +z moves the tip towards −x: both joints at that limit are nearest.
        for joint in range(2):
            assert rotation_vectors(out[skeleton.rotation(joint)]) == pytest.approx([0.0, 0.0, 0.5 * side], abs=1e-6)

    def test_limits_are_relative_to_rest(self):
        rest_turn = quaternions_from_vectors(np.array([0.0, 0.0, 1.0]))
        skeleton = snake(3)
        skeleton = replace(skeleton, rotations=np.tile(rest_turn, (3, 1)))
        limits = {0: (np.full(3, -0.2), np.full(3, 0.2))}
        out = chain(skeleton, skeleton.parameters.rest, (0, 1), 2, np.array([0.4, -0.2, 0.1]), limits=limits)
        relative = quaternion_product(quaternion_conjugate(rest_turn), out[skeleton.rotation(0)])
        assert np.abs(rotation_vectors(relative)).max() <= 0.2 + 1e-12

    def test_faults(self):
        skeleton = snake()
        with pytest.raises(InputError, match="lowest angle") as fault:
            chain(
                skeleton,
                skeleton.parameters.rest,
                (0, 1),
                5,
                np.ones(3) * 0.3,
                limits={1: (np.ones(3), np.zeros(3))},
            )
        assert fault.value.indices.tolist() == [1]
        with pytest.raises(IndexRangeError, match="not under"):
            chain(skeleton, skeleton.parameters.rest, (3, 1), 5, np.ones(3))
