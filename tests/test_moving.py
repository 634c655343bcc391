"""The full simulation on a moving rest shape: rigid motions with known answers, exact rates, order, covariance."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import pose_models_for_tests as pose_models
from bodies_for_tests import RUBBER, relative, slopes
from softrig.dynamics import Integrator, Rayleigh, State, kinetic_energy, static_equilibrium
from softrig.errors import InputError, NotFiniteError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.fidelity import trajectory_error
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody
from softrig.models.kernels.posed_tets import posed_gradients
from softrig.models.moving import FullSimulation, MovingBody, MovingIntegrator
from softrig.models.pose_space import REST_CLAMP
from softrig.models.stepper import Stepper
from softrig.models.tet_motion import BlackBoxCarriers, SkinCarriers, polar_derivatives
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors, skew

LENGTHS = (0.5, 0.12, 0.1)
BAR = box_tets(LENGTHS, (6, 2, 2))
SOFT = Material(young=2e4, poisson=0.4, density=1000.0)


def lumped(mesh: VolumeMesh, density: float = 1000.0) -> np.ndarray:
    return np.bincount(mesh.elements.ravel(), np.repeat(density * mesh.volumes / 4.0, 4), len(mesh.vertices))


def held_bar(law: str = "stable-neo-hookean", material: Material = SOFT, mesh: VolumeMesh = BAR) -> MovingBody:
    """A bar held at its end x = 0."""
    return MovingBody(
        mesh.elements,
        mesh.vertices,
        fixed=mesh.vertices[:, 0] == 0.0,
        vertex_mass=lumped(mesh, float(material.density)),
        young=material.young,
        poisson=material.poisson,
        law=law,
        solver="superlu",
    )


def rotation(vector) -> np.ndarray:
    return quaternion_matrices(quaternions_from_vectors(np.asarray(vector, dtype=np.float64)))


# A constant pose: nothing but a full body


def bent(vertices: np.ndarray) -> np.ndarray:
    """A smooth pose that is no rigid motion of the neutral shape."""
    x, y, z = vertices.T
    return np.stack([1.1 * x + 0.3 * y * x, y + 0.8 * x**2, 0.9 * z - 0.2 * x], axis=1)


@pytest.mark.parametrize("iterations", [1, 2, None])
@pytest.mark.parametrize("method", ["newmark", "backward-euler"])
def test_at_a_constant_pose_it_is_the_full_body_built_there(method, iterations):
    posed = VolumeMesh.build(bent(BAR.vertices), BAR.elements)
    still = FullBody(posed, SOFT, law="stvk", fixed=BAR.vertices[:, 0] == 0.0, mass="lumped", solver="superlu")
    moving = MovingBody(
        BAR.elements,
        BAR.vertices,
        fixed=still.fixed,
        vertex_mass=still.vertex_mass,
        young=SOFT.young,
        poisson=SOFT.poisson,
        law="stvk",
        solver="superlu",
    )
    moving.place(posed.vertices)
    damping = Rayleigh(0.7, 0.004)
    load = still.restrict(still.vertex_mass[:, None] * np.array([1.0, -9.81, 3.0]))
    reference = Integrator(still, 1 / 60, method, damping=damping, iterations=iterations)
    integrator = MovingIntegrator(moving, 1 / 60, method, damping=damping, iterations=iterations)
    one, other = State.rest(still.size), State.rest(still.size)
    one, other = reference.start(one, load), integrator.start(other, load)
    for _ in range(12):
        one, other = reference.step(one, load), integrator.step(other, load)
    assert relative(other.q, one.q) < 1e-9
    assert relative(other.v, one.v) < 1e-9
    assert relative(other.a, one.a) < 1e-8
    assert np.abs(one.q).max() > 0.02


def test_material_can_change_from_step_to_step():
    body = held_bar()
    u = 0.01 * np.random.default_rng(0).standard_normal(body.size)
    young = np.random.default_rng(1).uniform(1e4, 5e4, len(BAR.elements))
    body.set_material(young, 0.3)
    wanted = FullBody(
        BAR, Material(young, 0.3, 1000.0), law="stable-neo-hookean", fixed=body.fixed, mass="lumped", solver="superlu"
    )
    assert relative(body.force(u), wanted.force(u)) < 1e-12
    assert relative(body.mass.toarray(), wanted.mass.toarray()) < 1e-12
    system = body.system(2.0, body.rest_stiffness, 3.0).toarray()
    assert relative(system, (2.0 * wanted.mass + 3.0 * wanted.rest_stiffness).toarray()) < 1e-12
    assert relative(body.mass_times(u), wanted.mass @ u) < 1e-12


# Rest tets


def posed(positions: np.ndarray, mesh: VolumeMesh = BAR) -> tuple[np.ndarray, np.ndarray, int]:
    points = mesh.stiffness_points
    gradients, volumes = np.empty_like(points.gradients), np.empty_like(points.volumes)
    inverse = np.ascontiguousarray(points.gradients[:, 0, :3])
    count = posed_gradients(mesh.elements, inverse, points.volumes[:, 0].copy(), positions, gradients, volumes)
    return gradients, volumes, count


def test_gradients_of_an_honest_pose_are_those_of_a_mesh_built_there():
    gradients, volumes, clamped = posed(bent(BAR.vertices))
    wanted = VolumeMesh.build(bent(BAR.vertices), BAR.elements).stiffness_points
    assert clamped == 0
    assert relative(gradients, wanted.gradients) < 1e-12
    assert relative(volumes, wanted.volumes) < 1e-12


@pytest.mark.parametrize("stretches", [(1.0, 1.0, 0.05), (1.3, 0.8, -0.4), (0.1, 0.1, 0.1), (2.5, 1.0, 0.21)])
def test_squeezed_and_inverted_rest_tets_are_kept_open(stretches):
    """F_rest = U diag(s) Vᵀ of known factors: the clamped one has max(s, 0.2)."""
    U, V = rotation((0.3, -0.8, 0.5)), rotation((-0.4, 0.2, 0.9))
    gradients, volumes, clamped = posed(BAR.vertices @ (U @ np.diag(stretches) @ V.T).T)
    open_stretches = np.maximum(stretches, REST_CLAMP)
    wanted = BAR.vertices @ (U @ np.diag(open_stretches) @ V.T).T
    reference = VolumeMesh.build(wanted, BAR.elements).stiffness_points
    assert clamped == (len(BAR.elements) if min(stretches) < REST_CLAMP else 0)
    assert relative(gradients, reference.gradients) < 1e-9
    assert relative(volumes, reference.volumes) < 1e-9


def test_a_collapsed_rest_shape_has_no_force_at_zero_displacement():
    body = held_bar()
    body.place(BAR.vertices * np.array([1.0, -0.3, 1.0]))
    assert body.clamped == len(BAR.elements)
    assert np.abs(body.force(np.zeros(body.size))).max() < 1e-9
    assert np.linalg.eigvalsh(body.rest_stiffness.toarray()).min() > 0.0


# Rigid motions with known answers


def test_constant_velocity_leaves_the_flesh_at_rest():
    body = held_bar()
    integrator = MovingIntegrator(body, 1 / 100, damping=Rayleigh(1.0, 0.01))
    state = State.rest(body.size)
    for i in range(20):
        body.place(BAR.vertices + 0.01 * i * np.array([30.0, -4.0, 7.0]))
        state = integrator.step(state, np.zeros(body.size))
    assert np.abs(state.q).max() < 1e-12


def test_constant_acceleration_ends_at_the_gravity_solution():
    """Accelerated by a, the flesh ends where a weight of −a would hold it."""
    model = bar_model(fixed=BAR.vertices[:, 0] == 0.0)
    acceleration = np.array([0.5, 2.0, -1.0])
    simulation = FullSimulation(
        model, 2e5, 0.4, damping=Rayleigh(14.0, 0.02), gravity=(0, 0, 0), solver="superlu", rate=30
    )
    for i in range(1, 80):
        simulation.step(*translation(acceleration, i / 30))
    load = -simulation.body.restrict(model.vertex_mass[:, None] * acceleration)
    simulation.body.place(BAR.vertices)
    wanted = static_equilibrium(simulation.body, load)
    assert np.abs(wanted).max() > 0.01
    assert relative(simulation.state.q, wanted) < 1e-5


SPIN = np.array([0.0, 2.0, 5.5])


def spun_equilibrium(body: MovingBody, spin: np.ndarray, step: float) -> np.ndarray:
    """(3·free,) in the spinning frame: R(u) = −M Ω×(Ω×(X + u)), with the Ω that Newmark's u sees."""
    size = np.linalg.norm(spin)
    seen = spin * np.tan(0.5 * size * step) / (0.5 * size * step)
    flat, flat_seen = (skew(rate) @ skew(rate) for rate in (spin, seen))
    u = np.zeros(body.size)
    for _ in range(30):
        field = body.mesh.vertices @ flat.T + body.expand(u) @ flat_seen.T
        u = static_equilibrium(body, -body.restrict(body.vertex_mass[:, None] * field), start=u)
    return u


@pytest.mark.parametrize("damping", [Rayleigh(0.0, 0.0), Rayleigh(20.0, 0.01)])
def test_constant_spin_keeps_the_centrifugal_solution_whatever_the_damping(damping):
    """The world's u turns with the body and is not slowed: damping is objective."""
    body, step = held_bar(material=replace(SOFT, young=4e5)), 1 / 180
    wanted = body.expand(spun_equilibrium(body, SPIN, step))
    assert np.abs(wanted).max() > 0.002
    seen = SPIN * np.tan(0.5 * np.linalg.norm(SPIN) * step) / (0.5 * np.linalg.norm(SPIN) * step)
    v, a = np.cross(seen, wanted), np.cross(seen, np.cross(seen, wanted))
    start = State(body.restrict(wanted), body.restrict(v), body.restrict(a))

    def error_after(steps: int, spin: np.ndarray | None) -> float:
        integrator = MovingIntegrator(body, step, damping=damping)
        state = start
        for i in range(1, steps + 1):
            R = rotation(SPIN * i * step)
            body.place(BAR.vertices @ R.T)
            acceleration = body.positions @ (skew(SPIN) @ skew(SPIN)).T
            load = -body.restrict(body.vertex_mass[:, None] * acceleration)
            state = integrator.step(state, load, spin)
        return relative(body.expand(state.q), wanted @ R.T)

    spins = np.broadcast_to(SPIN, (int(body.free.sum()), 3))
    assert error_after(25, spins) < (1e-4 if damping.mass else 1e-8)
    if damping.mass:
        assert error_after(25, None) > 0.02


def test_energy_is_kept_without_damping_in_a_uniformly_accelerated_bar():
    """Elastic + kinetic energy of u + m a·u is constant: the frame's acceleration is a weight."""
    body = held_bar()
    acceleration = np.array([0.0, 4.0, 0.0])
    load = -body.restrict(body.vertex_mass[:, None] * acceleration)
    integrator = MovingIntegrator(body, 1 / 400)
    state = integrator.start(State.rest(body.size), load)
    totals, kinetic = [], []
    for i in range(1, 200):
        body.place(BAR.vertices + 0.5 * acceleration * (i / 400) ** 2)
        state = integrator.step(state, load)
        kinetic.append(kinetic_energy(body, state))
        totals.append(body.energy(state.q) + kinetic[-1] - load @ state.q)
    assert max(kinetic) > 1e-3
    assert np.abs(totals).max() < 0.01 * max(kinetic)
    damped = MovingIntegrator(body, 1 / 400, damping=Rayleigh(2.0, 0.0))
    for _ in range(100):
        state = damped.step(state, load)
    assert body.energy(state.q) + kinetic_energy(body, state) - load @ state.q < -0.1 * max(kinetic)


# Carriers: exact rates


@dataclass(frozen=True)
class Jet:
    """A matrix that moves: value and two rates."""

    value: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def __matmul__(self, other: Jet) -> Jet:
        return Jet(
            self.value @ other.value,
            self.first @ other.value + self.value @ other.first,
            self.second @ other.value + 2.0 * self.first @ other.first + self.value @ other.second,
        )


def turning(axis, angle: tuple[float, float, float], about=(0.0, 0.0, 0.0)) -> Jet:
    """(4, 4) rotation by θ about an axis through a point, with θ̇ and θ̈."""
    k = skew(np.asarray(axis) / np.linalg.norm(axis))
    R = rotation(np.asarray(axis) / np.linalg.norm(axis) * angle[0])
    parts = (R, angle[1] * k @ R, (angle[2] * k + angle[1] ** 2 * k @ k) @ R)
    matrices = []
    for i, part in enumerate(parts):
        M = np.zeros((4, 4))
        M[:3, :3] = part
        M[:3, 3] = (np.asarray(about) if i == 0 else 0.0) - part @ np.asarray(about)
        M[3, 3] = i == 0
        matrices.append(M)
    return Jet(*matrices)


def sliding(offset: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> Jet:
    matrices = [np.eye(4), np.zeros((4, 4)), np.zeros((4, 4))]
    for matrix, part in zip(matrices, (offset, velocity, acceleration), strict=True):
        matrix[:3, 3] = part
    return Jet(*matrices)


def rise(amplitude: float, rate: float, t: float) -> tuple[float, float, float]:
    """A rise from rest without a jerk: amplitude · (1 − cos)²/4 and its rates."""
    c, s = np.cos(rate * t), np.sin(rate * t)
    return (
        0.25 * amplitude * (1 - c) ** 2,
        0.5 * amplitude * rate * (1 - c) * s,
        0.5 * amplitude * rate**2 * (s * s + (1 - c) * c),
    )


def carriers_of(bones: list[Jet], weights: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[np.ndarray, ...]:
    parts = zip(("value", "first", "second"), weights, strict=True)
    return tuple(np.concatenate([*(getattr(bone, name)[:3].ravel() for bone in bones), w]) for name, w in parts)


def swing(t: float, turn: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z, ż, z̈ of a two-bone bar that swings about its end and bends in the middle while its end slides."""
    offset, speed, push = rise(0.1, 5.0, t)
    way = np.array([0.3, 1.0, 0.5])
    upper = sliding(offset * way, speed * way, push * way) @ turning((0.1, 0.3, 1.0), rise(0.9, 6.0, t))
    lower = upper @ turning((0.0, 0.2, 1.0), rise(0.7, 7.0, t), about=(0.25, 0.06, 0.05))
    bones = [upper, lower]
    if turn is not None:
        fixed = np.eye(4)
        fixed[:3, :3] = turn
        zero = np.zeros((4, 4))
        bones = [Jet(fixed, zero, zero) @ bone for bone in bones]
    w = [np.array([1.0 - a if i == 0 else -a, a]) for i, a in enumerate(rise(0.8, 7.0, t))]
    return carriers_of(bones, tuple(w))


def translation(acceleration: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    bone = sliding(0.5 * acceleration * t**2, acceleration * t, acceleration)
    return carriers_of([bone, bone], (np.array([1.0, 0.0]), np.zeros(2), np.zeros(2)))


def bar_model(mesh: VolumeMesh = BAR, *, fixed: np.ndarray | None = None, interpolation: str = "bind"):
    """A two-bone bar held along its axis and at one end, two poses: what a full simulation needs of a model."""
    x, y, z = mesh.vertices.T
    share = np.clip((x / LENGTHS[0] - 0.3) / 0.4, 0.0, 1.0)
    if fixed is None:
        fixed = (np.abs(y - 0.5 * LENGTHS[1]) < 1e-9) & (np.abs(z - 0.5 * LENGTHS[2]) < 1e-9) | (x == 0.0)
    bulge = 0.02 * np.stack([np.sin(9 * x), y * np.cos(5 * x), x * z], axis=1)
    corrections = np.stack([np.zeros_like(bulge), bulge])
    weights = csr_array(np.stack([1.0 - share, share], axis=1))
    rig = SimpleNamespace(kind="skin", weights=weights, corrections=corrections, root_bone=0, root_sample=None)
    return SimpleNamespace(
        tets=mesh.elements,
        vertices=mesh.vertices,
        fixed=fixed,
        vertex_mass=lumped(mesh),
        law="stable-neo-hookean",
        tet_rig=rig,
        interpolation=interpolation,
    )


def black_box_track(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A rig that bends, spins and stretches: positions A(t) X + B(t) X², every rate exact."""
    X = BAR.vertices
    a = turning((0.3, 1.0, -0.4), rise(1.2, 4.0, t)) @ sliding(*(np.outer(rise(0.2, 3.0, t), [1.0, 2.0, 0.5])))
    stretch = rise(0.6, 5.0, t)
    parts = []
    for A, b, w in zip((a.value, a.first, a.second), stretch, rise(0.7, 6.0, t), strict=True):
        x = X @ A[:3, :3].T + A[:3, 3] + b * np.stack([X[:, 1] * X[:, 0], X[:, 0] ** 2, X[:, 2] * X[:, 1]], axis=1)
        parts.append(np.concatenate([x.ravel(), [w, 0.3 * w]]))
    return tuple(parts)


def general_track(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The swing with bones that also shear, so that their rotation is a polar factor in earnest."""
    parts = swing(t)
    shear = np.random.default_rng(2).uniform(-0.3, 0.3, len(parts[0]))
    return tuple(part + shear * s for part, s in zip(parts, rise(1.0, 5.5, t), strict=True))


def skin_carriers() -> SkinCarriers:
    rig = bar_model().tet_rig
    return SkinCarriers(BAR.vertices, rig.weights, rig.corrections)


def black_box_carriers() -> BlackBoxCarriers:
    rng = np.random.default_rng(5)
    corrections = 0.05 * rng.standard_normal((2, *BAR.vertices.shape))
    return BlackBoxCarriers(BAR.vertices, lumped(BAR), np.arange(0, len(BAR.vertices), 3), corrections)


KINDS = {"skin": (skin_carriers, general_track), "black-box": (black_box_carriers, black_box_track)}


@pytest.mark.parametrize("kind", KINDS)
def test_rates_are_the_derivatives_of_positions(kind, slope):
    make, track = KINDS[kind]
    carriers, t = make(), 0.37
    motion = carriers.motion(*track(t))
    velocity = slope(lambda s: carriers.motion(*track(t + s)).positions)
    acceleration = slope(lambda s: carriers.motion(*track(t + s)).velocities)
    assert relative(motion.velocities, velocity) < 1e-8
    assert relative(motion.accelerations, acceleration) < 1e-8


@pytest.mark.parametrize("kind", KINDS)
def test_spin_is_the_rate_of_the_vertex_rotations(kind, slope):
    make, track = KINDS[kind]
    carriers, t = make(), 0.37
    motion = carriers.motion(*track(t))
    rate = slope(lambda s: carriers.motion(*track(t + s)).rotations)
    assert np.abs(motion.spin).max() > 1.0
    assert relative(skew(motion.spin) @ motion.rotations, rate) < 1e-8
    identity = motion.rotations @ np.swapaxes(motion.rotations, 1, 2)
    assert np.abs(identity - np.eye(3)).max() < 1e-12


def test_skin_positions_by_the_definition_vertex_by_vertex():
    carriers = skin_carriers()
    z, *_ = general_track(0.3)
    motion = carriers.motion(*general_track(0.3))
    matrices, w = z[:24].reshape(2, 3, 4), z[24:]
    table = carriers.weights.toarray()
    for v in range(0, len(BAR.vertices), 7):
        point = np.append(BAR.vertices[v] + w[0] * carriers.corrections[0, v] + w[1] * carriers.corrections[1, v], 1.0)
        wanted = sum(table[v, b] * matrices[b] @ point for b in range(2))
        assert np.abs(motion.positions[v] - wanted).max() < 1e-14


def test_vertex_rotations_follow_the_nearer_sign_of_a_quaternion():
    """Bones 200° and 10° about one axis: half-way is 285° the shorter way (through 0), and never the long way."""
    carriers = SkinCarriers(np.zeros((1, 3)), csr_array(np.array([[0.5, 0.5]])), np.zeros((1, 1, 3)))
    bones = [turning((0, 0, 1), (np.radians(angle), 0.0, 0.0)) for angle in (200.0, 10.0)]
    z = carriers_of(bones, (np.ones(1), np.zeros(1), np.zeros(1)))
    got = carriers.motion(*z).rotations[0]
    assert np.abs(got - rotation((0, 0, np.radians(285.0)))).max() < 1e-12


def test_polar_derivatives_of_a_known_rotation_times_a_moving_stretch(slope):
    A = np.random.default_rng(0).standard_normal((3, 3, 3)) * 0.3 + np.array([np.eye(3), np.zeros((3, 3)), np.eye(3)])
    R, R1, R2, omega = polar_derivatives(*A)

    def at(s: float):
        return polar_derivatives(A[0] + s * A[1] + 0.5 * s * s * A[2], A[1] + s * A[2], A[2])

    assert relative(R1, slope(lambda s: at(s)[0])) < 1e-8
    assert relative(R2, slope(lambda s: at(s)[1])) < 1e-8
    assert np.abs(R1 - skew(omega) @ R).max() < 1e-12


def test_a_bone_shrunk_to_nothing_does_not_spin():
    carriers = skin_carriers()
    z, first, second = (part.copy() for part in swing(0.3))
    z[12:24] = first[12:24] = second[12:24] = 0.0
    motion = carriers.motion(z, first, second)
    assert np.isfinite(motion.spin).all()
    assert np.isfinite(motion.accelerations).all()
    own = np.flatnonzero(carriers.weights.toarray()[:, 0] == 1.0)
    upper = carriers.motion(*swing(0.3))
    assert relative(motion.spin[own], upper.spin[own]) < 1e-12


# The simulation


def swung(rate: float, duration: float = 0.4, **options) -> np.ndarray:
    """(n, 3) displacements of the swinging bar at the end."""
    turn = options.pop("turn", None)
    settings = {"iterations": None, "damping": Rayleigh(1.0, 0.004), "sag_free": False, "solver": "superlu"}
    simulation = FullSimulation(bar_model(), 2e4, 0.4, rate=rate, **{**settings, **options})
    for i in range(1, round(duration * rate) + 1):
        simulation.step(*swing(i / rate, turn))
    return simulation.displacements()


def test_the_swing_is_covariant_under_a_constant_rotation_of_everything():
    turn = rotation((0.7, -1.1, 0.4))
    gravity = np.array([0.0, -9.81, 0.0])
    one = swung(60, gravity=gravity)
    other = swung(60, gravity=turn @ gravity, turn=turn)
    assert np.abs(one).max() > 0.005
    assert relative(other, one @ turn.T) < 1e-7


@pytest.mark.parametrize(("method", "order"), [("newmark", 2.0), ("backward-euler", 1.0)])
def test_order_of_the_step_on_a_smooth_motion(method, order):
    """Without gravity, so that the start is in balance but for the swing, whose load rises from rest."""
    quiet = {"gravity": (0, 0, 0), "duration": 0.2, "method": method}
    results = [started_swing(rate, **quiet) for rate in (80, 160, 320, 640)]
    differences = [float(np.linalg.norm(a - b)) for a, b in itertools.pairwise(results)]
    assert slopes(differences)[-1] == pytest.approx(order, abs=0.25)


def started_swing(rate: float, duration: float, **options) -> np.ndarray:
    """As `swung`, with the acceleration of a start in balance: Newmark keeps its order only then."""
    simulation = FullSimulation(
        bar_model(), 2e4, 0.4, rate=rate, iterations=None, damping=Rayleigh(1.0, 0.004), solver="superlu", **options
    )
    simulation.start(*swing(0.0))
    for i in range(1, round(duration * rate) + 1):
        simulation.step(*swing(i / rate))
    return simulation.displacements()


def test_one_iteration_comes_close_to_the_converged_step():
    converged = swung(180)
    assert relative(swung(180, iterations=1), converged) < 0.01
    assert relative(swung(180, iterations=3), converged) < 1e-4


def test_sag_free_gravity_vanishes_at_rest_and_full_gravity_does_not():
    still = carriers_of([turning((0, 0, 1), (0.0, 0.0, 0.0))] * 2, (np.array([1.0, 0.0]), np.zeros(2), np.zeros(2)))
    for sag_free in (True, False):
        simulation = FullSimulation(bar_model(), 2e4, 0.4, sag_free=sag_free, solver="superlu")
        for _ in range(5):
            simulation.step(*still)
        size = np.abs(simulation.displacements()).max()
        assert (size < 1e-12) if sag_free else (size > 1e-4)


@pytest.mark.parametrize("interpolation", ["bind", "world"])
def test_sag_free_gravity_of_a_turned_bar(interpolation):
    """Upside down, the change of gravity in the bar's frame is twice its weight: g − R g."""
    model = bar_model(interpolation=interpolation)
    over = turning((0, 0, 1), (np.pi, 0.0, 0.0))
    z = carriers_of([over, over], (np.array([1.0, 0.0]), np.zeros(2), np.zeros(2)))[0]
    simulation = FullSimulation(model, 2e4, 0.4, solver="superlu")
    simulation.settle(z)
    load = simulation.body.restrict(model.vertex_mass[:, None] * np.array([0.0, -2 * 9.81, 0.0]))
    wanted = static_equilibrium(simulation.body, load)
    assert relative(simulation.state.q, wanted) < 1e-9
    assert simulation.displacements()[:, 1].min() < -1e-3


def test_sag_free_frames_of_the_two_interpolations():
    """Bent by 90° in the middle: "bind" turns gravity by each vertex' own bones, "world" by the root's alone."""
    still, bend = turning((0, 0, 1), (0.0, 0, 0)), turning((0, 0, 1), (0.5 * np.pi, 0, 0), about=(0.25, 0.06, 0.05))
    z = carriers_of([still, bend], (np.array([1.0, 0.0]), np.zeros(2), np.zeros(2)))
    tip = np.argmax(BAR.vertices[:, 0])
    for interpolation, wanted in (("bind", (-9.81, -9.81, 0.0)), ("world", (0.0, 0.0, 0.0))):
        simulation = FullSimulation(bar_model(interpolation=interpolation), 2e4, 0.4, solver="superlu")
        simulation.step(*z)
        load = simulation.body.expand(simulation._load(simulation.carriers.motion(*z)))
        mass = simulation.body.vertex_mass
        assert load[tip] / mass[tip] == pytest.approx(wanted, abs=1e-12)


def test_fixed_vertices_do_not_leave_the_rest_shape_and_loads_pull():
    simulation = FullSimulation(bar_model(), 2e4, 0.4, gravity=(0, 0, 0), solver="superlu")
    simulation.point_loads(np.array([-1 + len(BAR.vertices)]), np.array([[0.0, 0.0, -1.0]]))
    simulation.settle(swing(0.0)[0])
    u = simulation.displacements()
    assert np.abs(u[simulation.body.fixed]).max() == 0.0
    assert u[-1, 2] < -1e-4
    assert np.abs(simulation.positions() - simulation.body.positions - u).max() < 1e-15


def test_placing_elsewhere_takes_the_displacements_along():
    """A pull that turns with the body: the settled shape turned by R is the settled shape under the turned pull."""
    turn = rotation((0.4, 0.9, -0.2))
    simulation = FullSimulation(bar_model(), 2e4, 0.4, gravity=(0, 0, 0), solver="superlu")
    simulation.external[-1] = (0.0, 0.0, -1.0)
    simulation.settle(swing(0.0)[0])
    before = simulation.displacements()
    simulation.place(swing(0.0, rotation((-0.8, 0.3, 0.6)))[0])
    simulation.place(swing(0.0, turn)[0])
    assert relative(simulation.displacements(), before @ turn.T) < 1e-12
    simulation.external[-1] = turn @ (0.0, 0.0, -1.0)
    placed = simulation.displacements()
    simulation.settle(swing(0.0, turn)[0])
    assert relative(placed, simulation.displacements()) < 1e-7
    simulation.reset()
    assert not simulation.displacements().any()


def test_materials_of_poses_are_mixed_by_positive_weights():
    young = np.stack([np.full(len(BAR.elements), 2e4), np.full(len(BAR.elements), 6e4)])
    simulation = FullSimulation(bar_model(), young, 0.4, solver="superlu")
    z = swing(0.0)[0].copy()
    for w, wanted in (((0.75, 0.25), 3e4), ((-0.2, 1.2), 6e4), ((0.5, 0.0), 2e4)):
        z[-2:] = w
        simulation.place(z)
        assert simulation.body.mu == pytest.approx(np.full(len(BAR.elements), wanted / 2.8))


def test_black_box_and_skin_agree_where_they_carry_the_same_motion():
    model = bar_model()
    model.tet_rig.corrections[:] = 0.0
    box = SimpleNamespace(**vars(model))
    box.tet_rig = SimpleNamespace(
        kind="black-box", corrections=model.tet_rig.corrections, root_sample=np.arange(len(BAR.vertices))
    )
    options = {"sag_free": False, "solver": "superlu", "rate": 90}
    one, other = FullSimulation(model, 2e4, 0.4, **options), FullSimulation(box, 2e4, 0.4, **options)
    for i in range(1, 8):
        z = swing(i / 90)
        one.step(*z)
        motion = one.carriers.motion(*z)
        parts = zip((motion.positions, motion.velocities, motion.accelerations), z, strict=True)
        other.step(*(np.concatenate([field.ravel(), part[-2:]]) for field, part in parts))
    # Only the damping-free start of Newton differs (other frames), which one iteration leaves a trace of.
    assert relative(other.displacements(), one.displacements()) < 1e-3


def squeezed_bar(law: str, squeeze: float) -> tuple[MovingBody, State]:
    """A bar held at one end and pressed together: it wants to buckle, its exact system is indefinite."""
    body = held_bar(law)
    field = np.zeros_like(BAR.vertices)
    field[:, 0] = -squeeze * BAR.vertices[:, 0]
    return body, replace(State.rest(body.size), q=body.restrict(field))


def test_indefinite_systems_are_stepped_with_projected_hessians():
    body, state = squeezed_bar("stable-neo-hookean", 0.3)
    internal, stiffness = body.force_and_stiffness(state.q)
    assert np.linalg.eigvalsh(body.system(1.0 / 0.1**2, stiffness, 1.0).toarray()).min() < 0.0
    system = body.system(1.0 / 0.1**2, body.force_and_stiffness(state.q, projected=True)[1], 1.0)
    wanted = state.q - np.linalg.solve(system.toarray(), internal)
    after = MovingIntegrator(body, 0.1, "backward-euler", iterations=1).step(state, np.zeros(body.size))
    assert relative(after.q, wanted) < 1e-9
    assert body.energy(after.q) < 0.5 * body.energy(state.q)


@pytest.mark.parametrize("squeeze", [0.3, 0.5])
def test_a_step_that_overshoots_is_halved_until_it_converges(squeeze):
    body, state = squeezed_bar("stvk", squeeze)
    after = MovingIntegrator(body, 0.5, "backward-euler").step(state, np.zeros(body.size))
    residual = body.mass_times((after.q - state.q) / 0.5**2) + body.force(after.q)
    assert np.linalg.norm(residual) < 1e-6 * np.linalg.norm(body.force(state.q))
    assert body.energy(after.q) < 0.01 * body.energy(state.q)


def test_the_start_is_in_balance():
    """M ü + (αM + βK)(u̇ − ω × u) + f_int = f_ext − M ẍ, term by term, in the middle of a swing."""
    damping = Rayleigh(2.0, 0.01)
    simulation = FullSimulation(bar_model(), 2e4, 0.4, damping=damping, solver="superlu")
    body, rng, z = simulation.body, np.random.default_rng(0), swing(0.35)
    q, v = 0.003 * rng.standard_normal(body.size), 0.1 * rng.standard_normal(body.size)
    simulation.state = State(q, v, np.zeros(body.size))
    simulation.start(*z)
    motion = simulation.carriers.motion(*z)
    slip = v - body.restrict(np.cross(motion.spin, body.expand(q)))
    internal, stiffness = body.force_and_stiffness(q)
    inertia = body.restrict(body.vertex_mass[:, None] * (motion.accelerations + body.expand(simulation.state.a)))
    pull = np.array([0.0, -9.81, 0.0])
    weight = body.restrict(body.vertex_mass[:, None] * (pull - motion.turned @ pull))
    balance = inertia + (2.0 * body.mass + 0.01 * stiffness) @ slip + internal - weight
    assert np.abs(slip - v).max() > 0.005
    assert np.linalg.norm(balance) < 1e-10 * np.linalg.norm(internal)


# Beside the reduced model


@pytest.mark.parametrize("options", [{}, {"interpolation": "world"}, {"black_box": True}], ids=["bind", "world", "box"])
def test_carriers_of_a_pose_give_the_models_rest_shape_and_rotations(options):
    model = pose_models.bar_model(3, **options)
    simulation = FullSimulation(model, model.cubature.young, model.cubature.poisson, solver="superlu")
    turn = {"angle": 0.7} if "black_box" in options else {"turn": (0.4, -0.5, 0.6)}
    p = pose_models.pose(model.rig, root_turn=(0.3, -1.2, 0.5), root_move=(0.1, 0.4, -0.2), **turn)
    simulation.place(simulation.carriers_at(p))
    assert np.abs(simulation.body.positions - model.tet_rest(p)).max() < 1e-12
    if "interpolation" not in options:
        assert np.abs(simulation.frames - model.vertex_rotations(p)).max() < 1e-12


@pytest.mark.parametrize("sag_free", [True, False])
@pytest.mark.parametrize("interpolation", ["bind", "world"])
def test_at_the_poses_the_load_is_the_one_the_reduced_model_projects(interpolation, sag_free):
    """−V_iᵀ R_vᵀ (f_ext − M ẍ) = C_i a with a = R_fᵀ(M̈_b − [0 0 0 g]), or g − R_b g, for any M̈."""
    model = pose_models.bar_model(2, interpolation)
    p, gravity = model.poses.parameters[1], np.array([1.0, -9.81, 2.0])
    simulation = FullSimulation(model, 2e4, 0.4, gravity=gravity, sag_free=sag_free, solver="superlu")
    z = simulation.carriers_at(p)
    second = np.random.default_rng(0).standard_normal(len(z))
    second[-2:] = 0.0
    load = simulation.body.expand(simulation._load(simulation.carriers.motion(z, 0.0 * z, second)))
    local = np.einsum("nji,nj->ni", model.vertex_rotations(p), load)
    wanted = -np.einsum("nir,ni->r", model.shapes[1], local)
    rotations = np.broadcast_to(model.frame_rotations(p), (2, 3, 3))
    accelerations = second[:24].reshape(2, 3, 4).copy()
    accelerations[:, :, 3] -= gravity - (rotations @ gravity if sag_free else 0.0)
    vector = np.concatenate([np.einsum("bji,bjk->bik", rotations, accelerations).ravel(), np.zeros(2)])
    assert relative(model.inertia[1] @ vector, wanted) < 1e-7  # kept in single precision


def test_the_reduced_step_with_a_complete_basis_converges_to_this_one():
    """Two implementations of one equation: they differ by the reduced step's explicit gyroscopic terms, O(step)."""
    model = pose_models.bar_model(1, modes=192, corrections=0.0, law="stable-neo-hookean")
    assert model.mode_count == 3 * (~model.fixed).sum()
    errors = []
    for rate in (60, 120):
        options = {"rate": rate, "damping": Rayleigh(1.0, 0.002)}
        reduced = Stepper(model, **options)
        full = FullSimulation(model, model.cubature.young, model.cubature.poisson, solver="superlu", **options)
        trajectories = []
        for i in range(1, 4 * rate // 10 + 1):
            bone = turning((0.1, 0.3, 1.0), rise(1.2, 6.0, i / rate))
            z = carriers_of([bone, bone], (np.ones(1), np.zeros(1), np.zeros(1)))
            reduced.step(*z)
            full.step(*z)
            trajectories.append((reduced.vertex_displacements(None).copy(), full.displacements()))
        errors.append(
            trajectory_error(*(np.array(part) for part in zip(*trajectories, strict=True)), full.body.vertex_mass)
        )
    assert errors[1] < 0.01
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.5)


# What is refused


def test_faults_are_named():
    mass = lumped(BAR)
    mass[4] = 0.0
    with pytest.raises(InputError, match="positive mass") as caught:
        MovingBody(BAR.elements, BAR.vertices, fixed=None, vertex_mass=mass, young=1e4, poisson=0.3)
    assert caught.value.indices.tolist() == [4]
    body = held_bar(material=RUBBER)
    with pytest.raises(InputError, match="rest positions"):
        body.place(BAR.vertices[:-1])
    broken = BAR.vertices.copy()
    broken[3, 1] = np.nan
    with pytest.raises(NotFiniteError) as caught:
        body.place(broken)
    assert caught.value.indices.tolist() == [3]
    with pytest.raises(InputError, match="no implicit method"):
        MovingIntegrator(body, 0.01, "central-differences")
    with pytest.raises(InputError, match="at least one"):
        MovingIntegrator(body, 0.01, iterations=0)
    with pytest.raises(InputError, match="carrier rates"):
        skin_carriers().motion(swing(0.0)[0], np.zeros(3), swing(0.0)[2])
    with pytest.raises(InputError, match="Young's modulus has shape"):
        FullSimulation(bar_model(), np.full((3, len(BAR.elements)), 1e4), 0.3, solver="superlu")
    rows = csr_array(np.array([[1.0, 0.0], [0.0, 0.0]]))
    rows.eliminate_zeros()
    with pytest.raises(InputError, match="no bone carries") as caught:
        SkinCarriers(np.zeros((2, 3)), rows, np.zeros((1, 2, 3)))
    assert caught.value.indices.tolist() == [1]


@pytest.mark.parametrize("interpolation", ["bind", "world"])
def test_sag_free_gravity_turns_with_the_same_frames_reduced_and_full(interpolation: str) -> None:
    model = pose_models.bar_model(interpolation=interpolation, modes=24)
    stepper = Stepper(model)
    full = FullSimulation(model, 1e5, 0.4)
    bent = model.poses.parameters[1]
    stepper.settle(stepper.carriers(bent))
    full.settle(full.carriers_at(bent))
    reduced, truth = (np.abs(u).max() for u in (stepper.vertex_displacements(None), full.displacements()))
    if interpolation == "world":  # the root has not turned: nothing sags
        assert reduced < 1e-9
        assert truth < 1e-9
    else:
        assert reduced > 1e-5
        assert truth > 1e-5
