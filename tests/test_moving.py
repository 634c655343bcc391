"""The full body on a moving rest shape: what it is at a constant pose, and rigid motions with known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from bodies_for_tests import RUBBER, relative
from moving_bars_for_tests import BAR, bar_model, carriers_of, lumped, rotation, skin_carriers, sliding, swing
from softrig.dynamics import Integrator, Rayleigh, State, kinetic_energy, static_equilibrium
from softrig.errors import InputError, NotFiniteError
from softrig.fem.laws import LAWS
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.models.full import FullBody
from softrig.models.kernels.posed_tets import posed_gradients
from softrig.models.moving import FullSimulation, MovingBody, MovingIntegrator
from softrig.models.pose_space import REST_CLAMP
from softrig.models.tet_motion import SkinCarriers
from softrig.numerics.rotations import skew

SOFT = Material(young=2e4, poisson=0.4, density=1000.0)


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
    damping = Rayleigh(0.7)  # β damps by other matrices: K(u) there, the viscosity here
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
    # At u = 0 the viscosity is K.
    damping = Rayleigh(0.7, 0.004)
    thrown = np.random.default_rng(0).standard_normal(still.size)
    moved = State(np.zeros(still.size), thrown, np.zeros(still.size), 0.0)
    reference = Integrator(still, 1 / 60, method, damping=damping, iterations=1)
    integrator = MovingIntegrator(moving, 1 / 60, method, damping=damping, iterations=1)
    one, other = (each.step(each.start(moved, load), load) for each in (reference, integrator))
    for name in "qva":
        assert relative(getattr(other, name), getattr(one, name)) < 1e-12
    exact = MovingIntegrator(moving, 1 / 60, method, damping=damping)
    state = exact.start(State.rest(still.size), load)
    for _ in range(12):
        state = exact.step(state, load)
    damped = moving.mass_times(damping.mass * state.v) + damping.stiffness * (moving.viscosity(state.q) @ state.v)
    left = moving.mass_times(state.a) + damped + moving.force(state.q) - load
    assert np.linalg.norm(left) < 1e-7 * np.linalg.norm(load)


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


def translation(acceleration: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    bone = sliding(0.5 * acceleration * t**2, acceleration * t, acceleration)
    return carriers_of([bone, bone], (np.array([1.0, 0.0]), np.zeros(2), np.zeros(2)))


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


# Damping


@pytest.mark.parametrize("law", sorted(LAWS))
def test_viscosity_at_rest_is_the_stiffness_of_every_law(law):
    body = held_bar(law)
    body.place(bent(BAR.vertices))
    assert relative(body.viscosity(np.zeros(body.size)).toarray(), body.rest_stiffness.toarray()) < 1e-12


def test_viscosity_takes_by_the_rates_of_volume_and_of_green_strain():
    """vᵀ B v = ∫ λ J̇² + 2μ Ė : Ė, the rates by differences; forms of all v are the whole of a symmetric matrix."""
    body, rng = held_bar(), np.random.default_rng(0)
    q, points = 0.01 * rng.standard_normal(body.size), BAR.stiffness_points

    def gradients(q: np.ndarray) -> np.ndarray:
        return np.eye(3) + np.einsum("eai,eaj->eij", body.expand(q)[BAR.elements], points.gradients[:, 0])

    matrix = body.viscosity(q)
    assert relative(matrix.toarray(), matrix.toarray().T) < 1e-14
    for _ in range(5):
        v = rng.standard_normal(body.size)
        before, after = gradients(q - 1e-6 * v), gradients(q + 1e-6 * v)
        growth = (np.linalg.det(after) - np.linalg.det(before)) / 2e-6
        strain = 0.5 * (np.swapaxes(after, 1, 2) @ after - np.swapaxes(before, 1, 2) @ before) / 2e-6
        power = points.volumes[:, 0] @ (body.lam * growth**2 + 2.0 * body.mu * np.sum(strain**2, axis=(1, 2)))
        assert v @ (matrix @ v) == pytest.approx(power, rel=1e-7)


def test_viscosity_gives_no_energy_and_does_not_see_a_rotation_where_the_stiffness_does():
    body, state = squeezed_bar("stable-neo-hookean", 0.3)
    assert np.linalg.eigvalsh(body.force_and_stiffness(state.q)[1].toarray()).min() < -1.0
    assert np.linalg.eigvalsh(body.viscosity(state.q).toarray()).min() > 0.0
    loose = MovingBody(BAR.elements, BAR.vertices, fixed=None, vertex_mass=lumped(BAR), young=2e4, poisson=0.4)
    q = np.zeros_like(BAR.vertices)
    q[:, 0] = -0.3 * BAR.vertices[:, 0]
    turning = np.cross((0.3, -1.0, 2.0), BAR.vertices + q).ravel()
    viscosity, stiffness = loose.viscosity(q.ravel()), loose.force_and_stiffness(q.ravel())[1]
    assert np.linalg.norm(viscosity @ turning) < 1e-12 * np.linalg.norm(stiffness @ turning)


@pytest.mark.parametrize("iterations", [3, None])
def test_strong_damping_of_soft_flesh_does_not_feed_it(iterations):
    """A bar pressed together that turns as it opens: with D = βK(u) damping pushes it on until it flies off."""
    body, state = squeezed_bar("stable-neo-hookean", 0.3)
    side = np.zeros_like(BAR.vertices)
    side[:, 1] = 4.0 * BAR.vertices[:, 0]
    state = replace(state, v=body.restrict(side))
    integrator = MovingIntegrator(body, 1 / 180, damping=Rayleigh(0.4, 0.05), iterations=iterations)
    state = integrator.start(state, np.zeros(body.size))
    first = total = body.energy(state.q) + kinetic_energy(body, state)
    for _ in range(60):
        state = integrator.step(state, np.zeros(body.size))
        last, total = total, body.energy(state.q) + kinetic_energy(body, state)
        assert total < 1.001 * last
    assert total < 0.5 * first


# Steps that would go wrong


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


@pytest.mark.parametrize("iterations", [2, 3, None])
@pytest.mark.parametrize("squeeze", [0.3, 0.5])
def test_a_step_that_overshoots_is_halved_until_it_converges(squeeze, iterations):
    """Whether so many iterations are wanted or as many as it takes: the former come no nearer here."""
    body, state = squeezed_bar("stvk", squeeze)
    after = MovingIntegrator(body, 0.5, "backward-euler", iterations=iterations).step(state, np.zeros(body.size))
    residual = body.mass_times((after.q - state.q) / 0.5**2) + body.force(after.q)
    assert np.linalg.norm(residual) < 1e-6 * np.linalg.norm(body.force(state.q))
    assert body.energy(after.q) < 0.01 * body.energy(state.q)


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
