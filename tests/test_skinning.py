"""Skinning against double loops, its linear map, rigid motion, scale; dual quaternions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from rigs_for_tests import (
    RIGS,
    random_parameters,
    random_skin,
    two_bone_bar,
)
from softrig.errors import IndexRangeError, InputError, Notice
from softrig.numerics.rotations import (
    quaternion_matrices,
    quaternion_product,
    quaternions_from_vectors,
)
from softrig.rig.skinning import DualQuaternionSkin, LinearBlendSkin

SKINS = [LinearBlendSkin, DualQuaternionSkin]
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None, derandomize=True)


def homogeneous(points):
    return np.concatenate([points, np.ones((len(points), 1))], axis=1)


class TestLinearBlendSkin:
    @few
    @given(seed=seeds, influences=st.integers(1, 9))
    def test_against_a_double_loop(self, seed, influences):
        rng = np.random.default_rng(seed)
        skin = random_skin(rng, influences=influences)
        p = random_parameters(skin.parameters, rng)
        world = skin.skeleton.world_matrices(p)
        expected = np.zeros((skin.vertex_count, 3))
        for vertex, point in enumerate(homogeneous(skin.rest_positions)):
            if skin.weights[vertex].sum() == 0.0:
                expected[vertex] = (world[skin.attach[vertex]] @ point)[:3]
                continue
            for bone, weight in zip(skin.joints[vertex], skin.weights[vertex], strict=True):
                expected[vertex] += weight * (world[skin.bones[bone]] @ skin.inverse_binds[bone] @ point)[:3]
        assert np.abs(skin.positions(p) - expected).max() < 1e-11
        blended = skin.blended_matrices(p)
        assert np.abs(np.einsum("nij,nj->ni", blended, homogeneous(skin.rest_positions)) - expected).max() < 1e-11

    @few
    @given(seed=seeds)
    def test_linear_map_is_exact(self, seed):
        rng = np.random.default_rng(seed)
        skin = random_skin(rng)
        p = random_parameters(skin.parameters, rng)
        M = skin.bone_matrices(p)
        full = skin.positions(p)
        assert np.abs(skin.linear_map().positions(M) - full).max() < 1e-11
        chosen = rng.integers(0, skin.vertex_count, 6)
        dense = skin.linear_map(chosen).dense()
        assert np.abs(np.einsum("bij,nbj->ni", M[:, :3], dense) - full[chosen]).max() < 1e-11
        nodes = rng.integers(0, skin.vertex_count, (11, 4))
        weights = rng.uniform(-0.5, 1.0, (11, 4))
        carried = np.einsum("mk,mki->mi", weights, full[nodes])
        assert np.abs(skin.embedded_map(nodes, weights).positions(M) - carried).max() < 1e-11

    def test_vector_map_gives_chains_of_blend_shapes(self):
        rng = np.random.default_rng(5)
        chain = RIGS["shapes and skin"]
        shapes, skin = chain.stages
        p = random_parameters(chain.parameters, rng)
        M = skin.bone_matrices(chain.stage_parameters(p, 1))
        nodes, weights = rng.integers(0, skin.vertex_count, (7, 3)), rng.uniform(0, 1, (7, 3))
        whole = skin.linear_map().positions(M)
        carried = skin.embedded_map(nodes, weights).positions(M)
        for weight, target in zip(p[:3], shapes.targets, strict=True):
            whole += weight * skin.vector_map(target).positions(M)
            carried += weight * skin.vector_map(target, nodes, weights).positions(M)
        full = chain.positions(p)
        assert np.abs(whole - full).max() < 1e-12
        assert np.abs(carried - np.einsum("mk,mki->mi", weights, full[nodes])).max() < 1e-12

    def test_second_differences_pass_through_the_map(self):
        rng = np.random.default_rng(6)
        skin = random_skin(rng)
        poses = [random_parameters(skin.parameters, rng) for _ in range(3)]
        a, b, c = (skin.bone_matrices(p) for p in poses)
        x, y, z = (skin.positions(p) for p in poses)
        assert np.abs(skin.linear_map().positions(a - 2 * b + c) - (x - 2 * y + z)).max() < 1e-11

    def test_uneven_weights_are_normalised_with_a_notice(self):
        bar = two_bone_bar(LinearBlendSkin)
        with pytest.warns(Notice, match="normalised"):
            uneven = replace(bar, weights=3.0 * bar.weights)
        p = random_parameters(bar.parameters, np.random.default_rng(0))
        assert np.abs(uneven.positions(p) - bar.positions(p)).max() < 1e-13
        replace(bar, weights=np.round(bar.weights * 255) / 255 * 0.995)  # as bytes are: no notice

    def test_vertices_without_any_carrier(self):
        bar = two_bone_bar(LinearBlendSkin)
        weights = bar.weights.copy()
        weights[3] = 0.0
        joints = bar.joints.copy()
        joints[3] = [1, 0]
        with pytest.warns(Notice, match="first bone") as caught:
            lost = replace(bar, weights=weights, joints=joints)
        assert "[index 3]" in str(caught[0].message)
        p = random_parameters(bar.parameters, np.random.default_rng(0))
        assert lost.positions(p, [3])[0] == pytest.approx((lost.bone_matrices(p)[1] @ [*bar.rest_positions[3], 1])[:3])

    def test_unused_influences_may_name_anything(self):
        bar = two_bone_bar(LinearBlendSkin)
        padded = replace(
            bar,
            joints=np.concatenate([bar.joints, np.full((len(bar.joints), 1), 999)], axis=1),
            weights=np.concatenate([bar.weights, np.zeros((len(bar.joints), 1))], axis=1),
        )
        p = random_parameters(bar.parameters, np.random.default_rng(1))
        assert (padded.positions(p) == bar.positions(p)).all()

    def test_faults_are_named(self):
        bar = two_bone_bar(LinearBlendSkin)
        weights, joints = bar.weights.copy(), bar.joints.copy()
        weights[5, 0] = -0.1
        with pytest.raises(InputError, match="negative") as fault:
            replace(bar, weights=weights)
        assert fault.value.indices.tolist() == [5]
        joints[100] = 2
        with pytest.raises(IndexRangeError) as fault:
            replace(bar, joints=joints)
        assert fault.value.indices.tolist() == [100]
        with pytest.raises(IndexRangeError, match="a bone names a node"):
            replace(bar, bones=np.array([0, 7]))
        with pytest.raises(IndexRangeError, match="follow a node"):
            replace(bar, attach=np.full(bar.vertex_count, 2))
        with pytest.raises(InputError, match="must be"):
            replace(bar, weights=bar.weights[:-1])


@pytest.mark.parametrize("kind", SKINS)
class TestBothSkins:
    @few
    @given(seed=seeds)
    def test_root_motion_is_rigid_motion(self, kind, seed):
        rng = np.random.default_rng(seed)
        skin = random_skin(rng, kind)
        p = random_parameters(skin.parameters, rng)
        turn, shift = quaternions_from_vectors(rng.normal(size=3)), rng.normal(size=3)
        R = quaternion_matrices(turn)
        moved = p.copy()
        moved[:3] = R @ p[:3] + shift
        moved[3:7] = quaternion_product(turn, p[3:7])
        assert np.abs(skin.positions(moved) - (skin.positions(p) @ R.T + shift)).max() < 1e-9

    def test_rest_pose_returns_the_bind_pose(self, kind):
        bar = two_bone_bar(kind)
        assert np.abs(bar.positions(bar.parameters.rest) - bar.rest_positions).max() < 1e-14

    def test_weights_zero_and_one(self, kind):
        rng = np.random.default_rng(4)
        skin = random_skin(rng, kind, influences=2)
        weights = np.zeros_like(skin.weights)
        weights[np.arange(40), rng.integers(0, 2, 40)] = 1.0
        skin = replace(skin, weights=weights, attach=None)
        p = random_parameters(skin.parameters, rng)
        M = skin.bone_matrices(p)[skin.joints[weights == 1.0]]
        expected = np.einsum("nij,nj->ni", M[:, :3], homogeneous(skin.rest_positions))
        assert np.abs(skin.positions(p) - expected).max() < 1e-10

    @pytest.mark.parametrize("factor", [2.5, 0.1, -1.0])
    def test_uniform_scale_of_the_root(self, kind, factor):
        rng = np.random.default_rng(7)
        bar = two_bone_bar(kind)
        p = bar.parameters.rest.copy()
        p[bar.skeleton.rotation(1)] = quaternions_from_vectors(np.array([0.3, 0.7, -0.4]))
        p[3:7] = quaternions_from_vectors(rng.normal(size=3))
        scaled = p.copy()
        scaled[7:10] *= factor
        # The root stands at (−1, 0, 0): the body grows, or is mirrored, about that point.
        expected = p[:3] + factor * (bar.positions(p) - p[:3])
        assert np.abs(bar.positions(scaled) - expected).max() < 1e-12

    def test_non_uniform_scale_of_one_bone(self, kind):
        bar = two_bone_bar(kind)
        p = bar.parameters.rest.copy()
        p[bar.skeleton.scale(1)] = [1.0, 2.0, -3.0]
        end = bar.rest_positions[:, 0] == 1.0
        expected = bar.rest_positions[end] * [1.0, 2.0, -3.0]
        assert np.abs(bar.positions(p)[end] - expected).max() < 1e-12
        start = bar.rest_positions[:, 0] == -1.0
        assert np.abs(bar.positions(p)[start] - bar.rest_positions[start]).max() < 1e-12


class TestDualQuaternions:
    def test_rigid_motion_of_all_bones_is_exact(self):
        bar = two_bone_bar(DualQuaternionSkin)
        rng = np.random.default_rng(0)
        for _ in range(5):
            p = bar.parameters.rest.copy()
            p[:3], p[3:7] = rng.normal(0, 3, 3), quaternions_from_vectors(rng.normal(0, 2, 3))
            R = quaternion_matrices(p[3:7])
            expected = (bar.rest_positions - [-1.0, 0, 0]) @ R.T + p[:3]
            assert np.abs(bar.positions(p) - expected).max() < 1e-13

    def radii_in_the_middle(self, kind, angle):
        bar = two_bone_bar(kind)
        p = bar.parameters.rest.copy()
        p[bar.skeleton.rotation(1)] = quaternions_from_vectors(np.array([angle, 0.0, 0.0]))
        middle = np.abs(bar.rest_positions[:, 0]) < 1e-12
        return np.linalg.norm(bar.positions(p)[middle][:, 1:], axis=1)

    def test_no_candy_wrapper_at_half_a_turn(self):
        assert self.radii_in_the_middle(LinearBlendSkin, np.pi).max() < 1e-12
        assert self.radii_in_the_middle(DualQuaternionSkin, np.pi) == pytest.approx(0.2, abs=1e-12)
        assert self.radii_in_the_middle(LinearBlendSkin, 2.0) == pytest.approx(0.2 * np.cos(1.0), abs=1e-12)
        assert self.radii_in_the_middle(DualQuaternionSkin, 2.0) == pytest.approx(0.2, abs=1e-12)

    def test_twist_goes_halfway_in_the_middle(self):
        bar = two_bone_bar(DualQuaternionSkin)
        p = bar.parameters.rest.copy()
        p[bar.skeleton.rotation(1)] = -quaternions_from_vectors(np.array([1.0, 0.0, 0.0]))
        middle = np.abs(bar.rest_positions[:, 0]) < 1e-12
        R = Rotation.from_rotvec([0.5, 0, 0]).as_matrix()
        assert np.abs(bar.positions(p)[middle] - bar.rest_positions[middle] @ R.T).max() < 1e-12
