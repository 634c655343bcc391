"""Every rig: subsets, names, units; skeletons, quaternions and pose features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from rigs_for_tests import (
    IDENTITY,
    RIGS,
    random_parameters,
    random_skeleton,
    rig_of_each_kind,
    two_bone_bar,
)
from softrig.errors import IndexRangeError, InputError, NotFiniteError
from softrig.numerics.rotations import (
    quaternion_matrices,
    quaternion_product,
    quaternions_between,
    quaternions_from_matrices,
    quaternions_from_vectors,
    rotation_vectors,
    slerp,
)
from softrig.rig.features import PoseFeatures, vertex_areas
from softrig.rig.parameters import Parameters, unique_names
from softrig.rig.protocol import Deformer, Rig
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None, derandomize=True)


class TestQuaternions:
    def test_against_scipy(self):
        rng = np.random.default_rng(0)
        vectors = rng.normal(0.0, 1.5, (50, 3))
        rotations = Rotation.from_rotvec(vectors)
        q = quaternions_from_vectors(vectors)
        assert np.abs(quaternion_matrices(q) - rotations.as_matrix()).max() < 1e-14
        assert np.abs(quaternion_matrices(3.0 * q) - rotations.as_matrix()).max() < 1e-14
        assert np.abs(rotation_vectors(q) - rotations.as_rotvec()).max() < 1e-13
        assert np.abs(np.abs(np.sum(quaternions_from_matrices(rotations.as_matrix()) * q, axis=1)) - 1.0).max() < 1e-14
        product = quaternion_product(q[:-1], q[1:])
        assert np.abs(quaternion_matrices(product) - (rotations[:-1] * rotations[1:]).as_matrix()).max() < 1e-14

    def test_half_turns_and_tiny_ones(self):
        for vector in ([np.pi, 0, 0], [0, -np.pi, 0], [0, 0, np.pi], [1e-9, -2e-9, 0], [0, 0, 0]):
            matrix = Rotation.from_rotvec(vector).as_matrix()
            back = rotation_vectors(quaternions_from_matrices(matrix))
            assert np.abs(Rotation.from_rotvec(back).as_matrix() - matrix).max() < 1e-14
            assert np.linalg.norm(back) == pytest.approx(np.linalg.norm(vector), abs=1e-15)

    def test_smallest_rotation_between_directions(self):
        rng = np.random.default_rng(1)
        a, b = rng.normal(size=(30, 3)), rng.normal(size=(30, 3))
        b[0], b[1], a[2], b[2] = -a[0], 2.0 * a[1], [1, 0, 0], [-1, 0, 0]
        turned = np.einsum("nij,nj->ni", quaternion_matrices(quaternions_between(a, b)), a)
        assert np.abs(np.cross(turned, b)).max() < 1e-12
        assert (np.sum(turned * b, axis=1) > 0.0).all()
        angles = np.linalg.norm(rotation_vectors(quaternions_between(a, b)), axis=1)
        cosines = np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        assert angles == pytest.approx(np.arccos(np.clip(cosines, -1, 1)), abs=1e-7)

    def test_slerp_takes_the_shorter_way(self):
        a, b = IDENTITY, quaternions_from_vectors(np.array([0.0, 0.0, 1.0]))
        assert rotation_vectors(slerp(a, -b, 0.25)) == pytest.approx([0.0, 0.0, 0.25], abs=1e-14)


class TestParameters:
    def test_names_units_and_rest(self):
        skeleton = random_skeleton(np.random.default_rng(0), 2)
        parameters = skeleton.parameters
        assert parameters.names[:10] == (
            *("node0.translation.x", "node0.translation.y", "node0.translation.z"),
            *("node0.rotation.x", "node0.rotation.y", "node0.rotation.z", "node0.rotation.w"),
            *("node0.scale.x", "node0.scale.y", "node0.scale.z"),
        )
        assert parameters.units[:4] == ("m", "m", "m", "1")
        assert parameters.quaternions.tolist() == [3, 13]
        assert parameters.rest[10:13] == pytest.approx(skeleton.translations[1])
        assert parameters.rest[skeleton.rotation(1)] == pytest.approx(skeleton.rotations[1])
        assert parameters.rest[skeleton.scale(1)] == pytest.approx(skeleton.scales[1])
        assert parameters.index("node1.scale.z") == 19
        assert RIGS["bend"].parameters.names == ("bend.angle",)
        assert RIGS["bend"].parameters.units == ("rad",)
        assert RIGS["wire"].parameters.names[4] == "wire.1.y"
        assert set(RIGS["wire"].parameters.units) == {"m"}
        assert RIGS["shapes"].parameters.names == ("smile.weight", "frown.weight", "smile#2.weight")

    def test_normalised(self):
        parameters = random_skeleton(np.random.default_rng(0), 3).parameters
        p = parameters.rest + 0.5
        p[13:17] = 0.0
        out = parameters.normalised(p)
        assert np.linalg.norm(out[3:7]) == pytest.approx(1.0)
        assert out[3:7] == pytest.approx(p[3:7] / np.linalg.norm(p[3:7]))
        assert out[13:17] == pytest.approx(IDENTITY)
        assert out[:3] == pytest.approx(p[:3])
        assert parameters.normalised(np.stack([p, p])).shape == (2, len(p))

    def test_unique_names(self):
        assert unique_names(["a", "b", "a", "a#2", "a"]) == ("a", "b", "a#3", "a#2", "a#4")

    def test_faults_are_named(self):
        with pytest.raises(InputError, match="same name") as fault:
            Parameters(("a", "b", "a"), ("1",) * 3, np.zeros(3), np.zeros(0))
        assert fault.value.indices.tolist() == [2]
        with pytest.raises(InputError, match="quaternion outside"):
            Parameters(("a", "b", "c", "d"), ("1",) * 4, np.zeros(4), np.array([1]))
        with pytest.raises(InputError, match="no parameter is called 'x'"):
            RIGS["bend"].parameters.index("x")
        with pytest.raises(InputError, match="1 parameters, not"):
            RIGS["bend"].positions(np.zeros(2))


@pytest.mark.parametrize("name", RIGS)
class TestEveryRig:
    def test_is_a_rig(self, name):
        assert isinstance(RIGS[name], Rig)
        assert isinstance(RIGS[name], Deformer)

    @few
    @given(seed=seeds)
    def test_subset_equals_full(self, name, seed):
        rng = np.random.default_rng(seed)
        rig = RIGS[name]
        p = random_parameters(rig.parameters, rng)
        full = rig.positions(p)
        assert full.shape == (rig.vertex_count, 3)
        chosen = rng.integers(0, rig.vertex_count, rng.integers(0, 9))
        assert np.abs(rig.positions(p, chosen) - full[chosen]).max(initial=0.0) < 1e-12

    def test_does_not_change_its_input(self, name):
        rig = RIGS[name]
        p = random_parameters(rig.parameters, np.random.default_rng(2))
        before, rest = p.copy(), rig.rest_positions.copy()
        rig.positions(p)[:] = 7.0
        assert (p == before).all()
        assert (rig.rest_positions == rest).all()

    def test_missing_vertices_are_named(self, name):
        rig = RIGS[name]
        with pytest.raises(IndexRangeError) as fault:
            rig.positions(rig.parameters.rest, np.array([0, 40, 3, -1]))
        assert fault.value.indices.tolist() == [40, -1]

    def test_features_have_names_and_vanish_at_rest(self, name):
        rig = RIGS[name]
        features = rig.features(rig.parameters.rest)
        assert features.shape == (len(rig.feature_names),)
        assert np.abs(features).max() < 1e-12
        p = random_parameters(rig.parameters, np.random.default_rng(3))
        assert np.linalg.norm(rig.features(p)) > 1e-3


class TestSkeleton:
    @few
    @given(seed=seeds)
    def test_world_matrices_by_recursion(self, seed):
        rng = np.random.default_rng(seed)
        skeleton = random_skeleton(rng)
        p = random_parameters(skeleton.parameters, rng)

        def world(node):
            t, q, s = p[skeleton.translation(node)], p[skeleton.rotation(node)], p[skeleton.scale(node)]
            matrix = np.eye(4)
            matrix[:3, :3] = Rotation.from_quat(q).as_matrix() @ np.diag(s)
            matrix[:3, 3] = t
            parent = skeleton.parents[node]
            return matrix if parent < 0 else world(parent) @ matrix

        expected = np.stack([world(i) for i in range(len(skeleton))])
        assert np.abs(skeleton.world_matrices(p) - expected).max() < 1e-12
        stacked = skeleton.world_matrices(np.stack([skeleton.parameters.rest, p]))
        assert np.abs(stacked[1] - expected).max() < 1e-12

    def test_fixed_matrix_ignores_its_parameters(self):
        shear = np.eye(4)
        shear[0, 1] = 0.5
        skeleton = replace(random_skeleton(np.random.default_rng(0), 3), fixed_matrices={0: shear})
        p = skeleton.parameters.rest.copy()
        p[:10] += 0.3
        assert skeleton.world_matrices(p)[0] == pytest.approx(shear)

    def test_from_heads(self):
        heads = np.array([[0, 1.0, 0], [0, 2.0, 0], [1.0, 2.0, 3.0]])
        skeleton = Skeleton.from_heads(("a", "b", "c"), (-1, 0, 1), heads)
        assert skeleton.rest_world_matrices[:, :3, 3] == pytest.approx(heads)
        assert skeleton.children == ((1,), (2,), ())
        assert skeleton.ancestors(2) == [1, 0]

    def test_faults_are_named(self):
        good = random_skeleton(np.random.default_rng(0), 3)
        with pytest.raises(IndexRangeError, match="parent must come before") as fault:
            replace(good, parents=np.array([-1, 1, 0]))
        assert fault.value.indices.tolist() == [1]
        with pytest.raises(NotFiniteError):
            replace(good, scales=np.full((3, 3), np.nan))
        with pytest.raises(InputError, match="no node is called"):
            good.index("elbow")
        assert replace(good, names=("a", "a", "b")).names == ("a", "a#2", "b")


class TestFeatures:
    def test_rotation_vectors_lengths_and_weights(self):
        bar = two_bone_bar(LinearBlendSkin)
        plain = PoseFeatures(bar.parameters, 2.0, np.ones(18))
        p = bar.parameters.rest.copy()
        p[bar.skeleton.rotation(1)] = -quaternions_from_vectors(np.array([0.1, -0.2, 0.3]))
        p[0] += 0.5
        raw = plain.raw(p)
        assert raw[plain.names.index("left.translation.x")] == pytest.approx(0.25)
        at = plain.names.index("right.rotation.x")
        assert raw[at : at + 3] == pytest.approx([0.1, -0.2, 0.3])
        assert "right.rotation.w" not in plain.names
        assert np.abs(np.delete(raw, [0, at, at + 1, at + 2])).max() < 1e-15

    def test_rotations_are_relative_to_rest(self):
        skeleton = random_skeleton(np.random.default_rng(0), 2)
        features = PoseFeatures(skeleton.parameters, 1.0, np.ones(18))
        p = skeleton.parameters.rest.copy()
        p[3:7] = quaternion_product(p[3:7], quaternions_from_vectors(np.array([0.0, 0.4, 0.0])))
        assert features.raw(p)[3:6] == pytest.approx([0.0, 0.4, 0.0], abs=1e-14)

    def test_the_root_does_not_count_and_a_shape_does(self):
        bar = two_bone_bar(LinearBlendSkin)
        p = bar.parameters.rest.copy()
        p[:3], p[3:7] = [5.0, 1.0, -2.0], quaternions_from_vectors(np.array([1.0, 2.0, 0.5]))
        assert np.abs(bar.features(p)).max() == 0.0
        p[bar.skeleton.rotation(1)] = quaternions_from_vectors(np.array([0.0, 0.5, 0.0]))
        assert np.linalg.norm(bar.features(p)) > 0.02

    def test_weight_of_a_joint_by_hand(self):
        """Two points on a lever: turning the hinge by a radian moves the far one by its arm."""
        skeleton = Skeleton.from_heads(("base", "hinge"), (-1, 0), np.zeros((2, 3)))
        points = np.array([[-1.0, -1.0, -1.0], [-1.0, 1.0, 1.0], [-1.0, 0.0, 1.0], [-1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
        joints = np.array([[0], [0], [0], [0], [1]])
        rig = LinearBlendSkin(skeleton, points, [0, 1], np.tile(np.eye(4), (2, 1, 1)), joints, np.ones((5, 1)))
        features = rig.pose_features
        names = features.names
        # Displacement per radian about y is (0, 0, −1), about z (0, 1, 0), about x nothing; rigid part removed.
        arms = points - points.mean(axis=0)
        rigid = [np.tile(axis, (5, 1)) for axis in np.eye(3)] + [np.cross(axis, arms) for axis in np.eye(3)]
        basis = np.linalg.qr(np.stack([field.ravel() for field in rigid], axis=1))[0]
        squares = []
        for move in ([0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]):
            field = np.zeros((5, 3))
            field[4] = move
            left = field.ravel() - basis @ (basis.T @ field.ravel())
            squares.append(left @ left / 5.0)
        expected = np.sqrt(np.mean(squares)) / features.size
        got = features.weights[names.index("hinge.rotation.x") : names.index("hinge.rotation.x") + 3]
        assert got == pytest.approx(expected, rel=1e-5)

    def test_areas_and_the_users_weights(self):
        bar = two_bone_bar(LinearBlendSkin)
        heavy = np.where(bar.rest_positions[:, 0] > 0.9, 50.0, 1.0)
        assert not np.allclose(replace(bar, areas=heavy).pose_features.weights, bar.pose_features.weights)
        mine = replace(bar, feature_weights=np.arange(18.0))
        p = bar.parameters.rest.copy()
        p[2] += mine.pose_features.size
        assert mine.features(p)[2] == pytest.approx(2.0)
        with pytest.raises(InputError, match="as many weights"):
            _ = replace(bar, feature_weights=np.ones(3)).pose_features

    def test_vertex_areas(self):
        square = np.array([[0, 0, 0], [2.0, 0, 0], [2.0, 2.0, 0], [0, 2.0, 0]])
        areas = vertex_areas(square, np.array([[0, 1, 2], [0, 2, 3]]))
        assert areas == pytest.approx([4.0 / 3.0, 2.0 / 3.0, 4.0 / 3.0, 2.0 / 3.0])


def test_rigs_are_deterministic():
    again = rig_of_each_kind()
    for name, rig in RIGS.items():
        p = random_parameters(rig.parameters, np.random.default_rng(9))
        assert (again[name].positions(p) == rig.positions(p)).all()
