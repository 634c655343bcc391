"""Blend shapes, bend, wire, callables and chains."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BSpline
from scipy.spatial.transform import Rotation

from rigs_for_tests import (
    RIGS,
    random_parameters,
)
from softrig.errors import InputError, NotFiniteError
from softrig.numerics.rotations import (
    quaternion_matrices,
)
from softrig.rig.deformers import Bend, BlendShapes, CallableRig, RigChain, Wire, carried_by_root
from softrig.rig.parameters import Parameters

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None, derandomize=True)


class TestBlendShapes:
    def test_are_linear(self):
        shapes = RIGS["shapes"]
        rng = np.random.default_rng(1)
        a, b = rng.normal(size=(2, 3))
        moved = [shapes.positions(p) - shapes.rest_positions for p in (a, b, 2.0 * a - 3.0 * b)]
        assert np.abs(moved[2] - (2.0 * moved[0] - 3.0 * moved[1])).max() < 1e-13
        for target in range(3):
            one = shapes.positions(np.eye(3)[target]) - shapes.rest_positions
            assert np.abs(one - shapes.targets[target]).max() < 1e-15

    def test_rest_weights_and_faults(self):
        points = np.zeros((4, 3))
        shapes = BlendShapes(points, np.ones((2, 4, 3)), ("a", "b"), np.array([0.0, 0.5]))
        assert shapes.positions(shapes.parameters.rest) == pytest.approx(np.full((4, 3), 0.5))
        with pytest.raises(InputError, match="targets"):
            BlendShapes(points, np.ones((2, 5, 3)), ("a", "b"))


def plainly_bent(bend: Bend, angle: float) -> np.ndarray:
    """(n, 3) the bend's points by the definition."""
    arms = bend.rest_positions - bend.origin
    s, u = arms @ bend.axis, arms @ bend.direction
    c = np.clip(s, bend.low, bend.high)
    turn = angle / (bend.high - bend.low) * c
    along = c * np.sinc(turn / np.pi) - u * np.sin(turn) + (s - c) * np.cos(turn)
    aside = 0.5 * c * turn * np.sinc(0.5 * turn / np.pi) ** 2 + u * np.cos(turn) + (s - c) * np.sin(turn)
    return bend.rest_positions + np.outer(along - s, bend.axis) + np.outer(aside - u, bend.direction)


class TestBend:
    def bar(self):
        x = np.linspace(-1.0, 3.0, 401)
        return Bend(np.stack([x, 0 * x, 0 * x], axis=1), (0, 0, 0), (1, 0, 0), (0, 1, 0), 0.0, 2.0)

    @pytest.mark.parametrize("angle", [1e-9, 0.3, -2.0, np.pi, 5.0])
    def test_keeps_arc_length(self, angle):
        bar = self.bar()
        out = bar.positions(np.array([angle]))
        steps = np.linalg.norm(np.diff(out, axis=0), axis=1)
        assert steps.sum() == pytest.approx(4.0, rel=1e-4)
        chord = 2.0 * (2.0 / angle) * np.sin(angle / 400.0)  # of a two-hundredth of an arc of 2 m
        assert steps[100:300] == pytest.approx(chord, rel=1e-9)

    def test_quarter_circle_by_hand(self):
        bar = self.bar()
        out = bar.positions(np.array([np.pi / 2.0]))
        radius = 2.0 / (np.pi / 2.0)
        assert out[300] == pytest.approx([radius, radius, 0.0], abs=1e-12)  # the end of the arc, at x = 2
        assert out[400] == pytest.approx([radius, radius + 1.0, 0.0], abs=1e-12)  # straight on, upwards
        assert out[0] == pytest.approx([-1.0, 0.0, 0.0], abs=1e-15)
        assert bar.positions(np.zeros(1)) == pytest.approx(bar.rest_positions, abs=1e-15)

    @given(seeds, st.sampled_from([0.0, 1e-9, 1e-3, 0.9, 1.999, 2.0, 2.001, 7.0, 60.0]))
    @few
    def test_is_the_definition_in_plain_numpy(self, seed, largest):
        """Angles on both sides of where the compiled series begin to be doubled."""
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(rng.integers(1, 40), 3))
        low, high = -rng.uniform(0.0, 1.0), rng.uniform(0.1, 1.0)
        bend = Bend(points, *rng.normal(size=(3, 3)), low, high)
        angle = largest * rng.choice([-1.0, 1.0])
        out = bend.positions(np.array([angle]))
        assert np.abs(out - plainly_bent(bend, angle)).max() < 2e-14 * (1.0 + abs(angle))

    def test_takes_points_in_any_order_of_memory_and_leaves_them(self):
        bend = RIGS["bend"]
        points = np.asfortranarray(bend.rest_positions)
        before = points.copy()
        assert np.array_equal(bend.deform(np.array([0.7]), points, None), bend.positions(np.array([0.7])))
        assert np.array_equal(points, before)

    @pytest.mark.parametrize("angle", [np.nan, np.inf, -np.inf])
    def test_an_angle_that_is_no_number_gives_none(self, angle):
        assert np.isnan(self.bar().positions(np.array([angle]))[300]).any()

    def test_inner_side_is_nearer_to_the_centre(self):
        bend = replace(self.bar(), rest_positions=np.array([[1.0, 0.1, 0.5], [1.0, -0.1, 0.5]]))
        radius = 2.0
        out = bend.positions(np.array([1.0]))
        distances = np.linalg.norm(out[:, :2] - [0.0, radius], axis=1)
        assert distances == pytest.approx([radius - 0.1, radius + 0.1], abs=1e-12)
        assert out[:, 2] == pytest.approx(0.5)

    def test_faults(self):
        with pytest.raises(InputError, match="not along it"):
            Bend(np.zeros((1, 3)), (0, 0, 0), (1, 0, 0), (2, 0, 0), 0.0, 1.0)
        with pytest.raises(InputError, match="must contain 0"):
            Bend(np.zeros((1, 3)), (0, 0, 0), (1, 0, 0), (0, 1, 0), 0.5, 1.0)


class TestWire:
    def test_rest_and_translation(self):
        wire = RIGS["wire"]
        assert np.abs(wire.positions(wire.parameters.rest) - wire.rest_positions).max() < 1e-13
        shift = np.array([1.0, -2.0, 0.5])
        assert np.abs(wire.positions(np.tile(shift, 5)) - wire.rest_positions - shift).max() < 1e-12

    def test_points_on_the_curve_stay_on_it(self):
        controls = np.stack([np.linspace(0.0, 4.0, 5), np.zeros(5), np.zeros(5)], axis=1)
        x = np.linspace(0.0, 4.0, 33)
        wire = Wire(np.stack([x, 0 * x, 0 * x], axis=1), controls)
        p = np.zeros(15)
        p[7] = 1.0  # the middle control point rises
        out = wire.positions(p)
        curve = BSpline([0, 0, 0, 0, 0.5, 1, 1, 1, 1], controls + p.reshape(-1, 3), 3)(np.linspace(0, 1, 20001))
        gaps = np.linalg.norm(out[:, None] - curve[None], axis=2).min(axis=1)
        assert gaps.max() < 3e-4  # half the spacing of the sampled curve
        assert out[16, 1] == pytest.approx(0.5, abs=1e-9)
        assert out[0] == pytest.approx([0, 0, 0], abs=1e-12)
        assert out[-1] == pytest.approx([4, 0, 0], abs=1e-12)

    def test_rotation_of_a_straight_wire_across_its_axis(self):
        controls = np.stack([np.linspace(0.0, 3.0, 4), np.zeros(4), np.zeros(4)], axis=1)
        points = np.random.default_rng(0).uniform([-0.5, -0.3, -0.3], [3.5, 0.3, 0.3], (50, 3))
        wire = Wire(points, controls)
        R = Rotation.from_rotvec([0.0, 0.0, 1.1]).as_matrix()
        out = wire.positions((controls @ R.T - controls).ravel())
        assert np.abs(out - points @ R.T).max() < 1e-9

    def test_frames_do_not_twist(self):
        """A helix-free bend out of plane and back: offsets stay perpendicular to the curve and of equal length."""
        controls = np.stack([np.linspace(0.0, 4.0, 6), np.zeros(6), np.zeros(6)], axis=1)
        x = np.linspace(0.0, 4.0, 60)
        p = np.random.default_rng(1).normal(0.0, 0.3, 18)
        middle = Wire(np.stack([x, 0 * x, 0 * x], axis=1), controls).positions(p)
        up = Wire(np.stack([x, 0 * x + 0.1, 0 * x], axis=1), controls).positions(p)
        arms = up - middle
        assert np.linalg.norm(arms, axis=1) == pytest.approx(0.1, abs=1e-9)
        tangents = np.gradient(middle, axis=0)
        tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
        assert np.abs(np.sum(arms * tangents, axis=1))[1:-1].max() < 2e-3
        # Parallel transport: the offset changes along the tangent alone.
        change = np.gradient(arms, axis=0)
        along = np.sum(change * tangents, axis=1, keepdims=True) * tangents
        assert np.abs(change - along)[2:-2].max() < 0.03 * np.abs(change).max()

    def test_offsets_stay_exactly_across_the_curve(self):
        """At parameters between the samples too; a straight rest curve of even speed makes them known."""
        knots = np.array([0.0, 0, 0, 0, 1, 1, 1, 1])
        controls = np.stack([np.linspace(0.0, 3.0, 4), np.zeros(4), np.zeros(4)], axis=1)
        where = np.linspace(0.0, 1.0, 30)
        points = np.stack([3.0 * where, 0 * where + 0.1, 0 * where], axis=1)
        p = np.random.default_rng(4).normal(0.0, 0.4, 12)
        curve = BSpline(knots, controls + p.reshape(-1, 3), 3)
        arms = Wire(points, controls).positions(p) - curve(where)
        slopes = curve(where, nu=1)
        cosines = np.sum(arms * slopes, axis=1) / np.linalg.norm(slopes, axis=1) / 0.1
        assert np.abs(cosines).max() < 1e-9

    def test_weights_scale_the_motion(self):
        wire, other = RIGS["wire"], RIGS["weighted wire"]
        p = np.random.default_rng(2).normal(0.0, 0.3, 15)
        motion = wire.positions(p) - wire.rest_positions
        assert np.abs(other.positions(p) - other.rest_positions - other.weights[:, None] * motion).max() < 1e-13

    def test_threads_may_ask_for_different_vertices(self, monkeypatch):
        """More choices than are remembered, so that tables come and go all the time."""
        monkeypatch.setattr("softrig.rig.wires.REMEMBERED", 2)
        wire = RIGS["wire"]
        p = np.random.default_rng(2).normal(0.0, 0.3, 15)
        whole = wire.positions(p)

        def ask(seed):
            random = np.random.default_rng(seed)
            some = [np.sort(random.choice(len(whole), 3, replace=False)) for _ in range(300)]
            return all(np.allclose(wire.positions(p, vertices), whole[vertices], atol=1e-12) for vertices in some)

        with ThreadPoolExecutor(6) as pool:
            assert all(pool.map(ask, range(6)))

    def test_coinciding_control_points_are_harmless(self):
        wire = RIGS["wire"]
        collapsed = (wire.controls[:1] - wire.controls).ravel()
        assert np.isfinite(wire.positions(collapsed)).all()


class TestCallableRig:
    def test_costs_only_the_subset(self):
        seen = []

        def function(p, points, vertices):
            seen.append(len(points))
            return points + p[0]

        rig = CallableRig(function, Parameters(("a",), ("m",), np.zeros(1), np.zeros(0)), np.zeros((100, 3)))
        assert rig.positions(np.ones(1), np.array([3, 5])) == pytest.approx(np.ones((2, 3)))
        assert seen == [2]

    def test_wrong_answers_are_refused(self):
        parameters = Parameters(("a",), ("m",), np.zeros(1), np.zeros(0))
        with pytest.raises(InputError, match="returned"):
            CallableRig(lambda p, x, v: x[:, :2], parameters, np.zeros((4, 3))).positions(np.zeros(1))
        with pytest.raises(NotFiniteError) as fault:
            CallableRig(lambda p, x, v: np.where(v[:, None] == 2, np.nan, x), parameters, np.zeros((4, 3))).positions(
                np.zeros(1)
            )
        assert fault.value.indices.tolist() == [2]


class TestChain:
    def test_order_matters_and_is_first_to_last(self):
        bend = RIGS["bend"]
        shapes = BlendShapes(bend.rest_positions, np.tile([0.0, 1.0, 0.0], (1, 40, 1)), ("up",))
        p = np.array([1.0])
        angle = np.array([0.8])
        up_then_bend = RigChain((shapes, bend)).positions(np.concatenate([p, angle]))
        bend_then_up = RigChain((bend, shapes)).positions(np.concatenate([angle, p]))
        by_hand = replace(bend, rest_positions=bend.rest_positions + np.eye(3)[1]).positions(angle)
        assert np.abs(up_then_bend - by_hand).max() < 1e-14
        assert np.abs(bend_then_up - (bend.positions(angle) + np.eye(3)[1])).max() < 1e-14
        assert np.abs(up_then_bend - bend_then_up).max() > 0.1

    def test_parameters_are_concatenated(self):
        chain = RIGS["shapes and skin"]
        assert chain.parameters.names[2:4] == ("smile#2.weight", "node0.translation.x")
        assert chain.parameters.quaternions[0] == 6
        assert chain.starts == (0, 3, 63)

    def test_faults(self):
        bend = RIGS["bend"]
        with pytest.raises(InputError, match="same name"):
            RigChain((bend, bend))
        with pytest.raises(InputError, match="different numbers"):
            RigChain((bend, replace(bend, rest_positions=np.zeros((2, 3)), name="b")))
        with pytest.raises(InputError, match="needs a rig"):
            RigChain(())

    @few
    @given(seed=seeds, name=st.sampled_from(["bend", "wire", "callable", "bend and wire"]))
    def test_root_motion_is_rigid_motion_of_any_rig(self, seed, name):
        rng = np.random.default_rng(seed)
        rig = carried_by_root(RIGS[name])
        p = random_parameters(rig.parameters, rng)
        p[-3:] = 1.0
        R = quaternion_matrices(p[-7:-3])
        inner = RIGS[name].positions(p[:-10])
        assert np.abs(rig.positions(p) - (inner @ R.T + p[-10:-7])).max() < 1e-12
