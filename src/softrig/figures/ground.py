"""PSSD Figure 14: a basis for each pose against one for all, free and on the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.bases.contact import constraint_rows
from softrig.bases.load_modes import paper_recipe, sample_basis
from softrig.bench.record import Row, body_sizes, number
from softrig.characters import built_in
from softrig.console import Update
from softrig.dynamics import Integrator, Rayleigh, State, static_equilibrium
from softrig.fidelity import trajectory_error
from softrig.figures.chart import OTHER, OURS, THIRD, TRUTH, Line, line_chart
from softrig.figures.figure import Figure, made
from softrig.figures.look import GHOST, LIGHT, framing, key, lengths, shot, skin, white_ground
from softrig.figures.look import wrong as wrong_colour
from softrig.figures.sheet import Panel, sheet
from softrig.forces.polynomial import reduce_body
from softrig.models.full import FullBody
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.numerics.null_space import null_space
from softrig.numerics.pca import mass_pca
from softrig.pipeline.shapes import posed_body
from softrig.render import scale_end
from softrig.volume import character_volume

MODES = 20
YOUNG, POISSON, DENSITY = 2e5, 0.45, 1000.0
STRETCH = 1.18
"""How much longer the X hangs at pose 2, where it reaches the ground."""
STEP, SECONDS = 1.0 / 180.0, 1.2
DAMPING = Rayleigh(0.0, 5e-4)


@dataclass(frozen=True, eq=False)
class Standing:
    """Contacts with the ground at some vertices: they slide, but move neither up nor down."""

    vertices: np.ndarray
    normals: np.ndarray
    sliding: np.ndarray


@dataclass(frozen=True, eq=False)
class HangingX:
    """The letter X held at its top, in the air and on the ground, with a basis at each."""

    free: FullBody
    grounded: FullBody
    touching: np.ndarray
    """Vertices on the ground at pose 2."""
    own: tuple[np.ndarray, np.ndarray]
    """(3·free, r) bases of the two poses; the second moves no touching vertex up or down."""

    def pooled(self, size: int) -> np.ndarray:
        """(3·free, size) the principal components of both bases together (PSSD §9)."""
        return mass_pca(np.concatenate(self.own, axis=1), self.free.mass, size)[0]


def hanging_x(tets: int = 2000, modes: int = MODES) -> HangingX:
    """The X at both poses."""
    mesh = character_volume(built_in("x"), tets=tets).lattice.mesh
    x = mesh.vertices
    top = float(x[:, 1].max())
    fixed = x[:, 1] > top - 0.12
    lower = x.copy()
    lower[:, 1] = top - 0.12 - STRETCH * (top - 0.12 - x[:, 1])
    lower[fixed] = x[fixed]
    young, poisson = np.full(len(mesh.elements), YOUNG), np.full(len(mesh.elements), POISSON)
    free, grounded = (
        posed_body(x, places, mesh.elements, fixed, "stvk", young, poisson, DENSITY) for places in (x, lower)
    )
    touching = np.flatnonzero(lower[:, 1] < lower[:, 1].min() + 0.03)
    normals = np.tile([0.0, 1.0, 0.0], (len(touching), 1))
    rows = constraint_rows(Standing(touching, normals, np.ones(len(touching), bool)), grounded.free)
    bases = (
        sample_basis(free, paper_recipe(free, modes), modes).shapes,
        sample_basis(grounded, paper_recipe(grounded, modes, null_space=null_space(rows)), modes).shapes,
    )
    return HangingX(free, grounded, touching, bases)


def side_kick(body: FullBody, newton: float) -> tuple[np.ndarray, np.ndarray]:
    """(3·free,) a force on the left foot, sideways and forwards, and its size (steps,): a half sine of 0.1 s."""
    x = body.mesh.vertices
    foot = (x[:, 1] < x[:, 1].min() + 0.12) & (x[:, 0] > 0.0)
    load = np.zeros_like(x)
    load[foot] = np.array([0.6, 0.35, 0.7]) / foot.sum()
    times = STEP * np.arange(1, round(SECONDS / STEP) + 1)
    return body.restrict(load), np.where(times < 0.1, newton * np.sin(np.pi * times / 0.1), 0.0)


def full_swing(body: FullBody, load: np.ndarray, pulse: np.ndarray) -> np.ndarray:
    """(steps, n, 3) metres."""
    integrator = Integrator(body, STEP, damping=DAMPING, iterations=2)
    state, found = State.rest(body.size), []
    for force in pulse:
        state = integrator.step(state, force * load)
        found.append(body.expand(state.q))
    return np.stack(found)


def reduced_swing(body: FullBody, basis: np.ndarray, load: np.ndarray, pulse: np.ndarray) -> np.ndarray:
    """(steps, n, 3) metres, in the span of a basis."""
    simulation = ReducedSimulation(reduce_body(body, basis), STEP, damping=DAMPING, iterations=2)
    found = simulation.run(len(pulse), pulse[:, None] * (basis.T @ load), record=True)
    return np.moveaxis(body.expand(basis @ found.T), 2, 0)


def moved_off(body: FullBody, basis: np.ndarray, touching: np.ndarray, gravity: float) -> tuple[np.ndarray, float]:
    """(n, 3) the shape under gravity, m/s², and how far the feet leave the plane of the ground, up or down, metres."""
    load = np.zeros_like(body.mesh.vertices)
    load[:, 1] = -gravity * body.vertex_mass
    q = static_equilibrium(reduce_body(body, basis), basis.T @ body.restrict(load), load_steps=3, tolerance=1e-7)
    u = body.expand(basis @ q)
    return u, float(np.abs(u[touching, 1]).max())


def one_basis_for_all(update: Update) -> Figure:
    """PSSD Fig. 14: a basis for each pose against one for all, free and on the ground."""
    x = hanging_x()
    update(1, 4)
    load, pulse = side_kick(x.free, 150.0)
    truth = full_swing(x.free, load, pulse)
    update(2, 4)
    names = {
        f"{MODES}, of the pose": x.own,
        f"{MODES} for all poses (default)": (x.pooled(MODES),) * 2,
        f"{2 * MODES} for all poses": (x.pooled(2 * MODES),) * 2,
    }
    swings = {name: reduced_swing(x.free, bases[0], load, pulse) for name, bases in names.items()}
    update(3, 4)
    errors = {name: 100.0 * trajectory_error(u, truth, x.free.vertex_mass) for name, u in swings.items()}
    presses = {name: moved_off(x.grounded, bases[1], x.touching, 9.81) for name, bases in names.items()}
    first, *rest = names
    rows = [
        Row(
            "in the air: trajectory error against the full body",
            "%",
            errors[first],
            others={name: errors[name] for name in rest},
        ),
        Row(
            "on the ground, under its weight: feet move off it",
            "mm",
            1e3 * presses[first][1],
            others={name: 1e3 * presses[name][1] for name in rest},
        ),
    ]
    update(4, 4)
    return made(
        "pssd-14",
        "PSSD Figure 14: a basis for each pose, or one for all",
        _sheet(x, truth, swings, errors, presses, load, pulse),
        rows,
        "A letter X of rubber, held at its top. Above: in the air, kicked at a foot; the moment of the largest swing, "
        "red where it is off the full body. Middle: its foot over time. Below: the same X hung lower, so that its two "
        "feet stand on the ground, and loaded by its own weight; red as far as the sole moves up or down, which "
        f"the ground forbids. {_told(errors, presses)}",
        alt=f"The X, kicked and standing: {number(errors[first])} % off the full body with {MODES} modes of the pose, "
        f"{number(errors[rest[0]])} % with {MODES} for all poses",
        value=first,
        remark="softrig's default is one basis for all poses, with more modes and contacts kept by springs "
        "([Figure 5](#pssd-5)); here both are the paper's.",
        sizes={"X": body_sizes(x.free)},
    )


def _told(errors: dict[str, float], presses: dict[str, tuple[np.ndarray, float]]) -> str:
    """What the errors say of each basis: how far it is from the motion, and where the feet go."""
    parts = [
        f"{name}: {number(errors[name])} % off the full body's motion, "
        f"feet {1e3 * presses[name][1]:.1f} mm off the ground"
        for name in errors
    ]
    return (
        f"With {'; '.join(parts)}. Modes of the pose on the ground cannot move its feet; a basis for all poses holds "
        "motions of the free pose, too, and these move the feet where there are enough of them."
    )


def _feet(places: np.ndarray, touching: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """(n,) metres: how far the soles `moved` (c,), seen on the feet above them, too, less and less up to 0.25 m."""
    nearest = np.argmin(np.linalg.norm(places[:, None, [0, 2]] - places[touching][None][..., [0, 2]], axis=2), axis=1)
    height = places[:, 1] - places[touching, 1].min()
    return moved[nearest] * np.clip(1.25 - height / 0.2, 0.0, 1.0)


def _sheet(
    x: HangingX,
    truth: np.ndarray,
    swings: dict[str, np.ndarray],
    errors: dict[str, float],
    presses: dict[str, tuple[np.ndarray, float]],
    load: np.ndarray,
    pulse: np.ndarray,
) -> np.ndarray:
    size = (290, 270)
    mesh, places = x.free.mesh, x.free.mesh.vertices
    when = int(np.argmax(np.linalg.norm(truth, axis=2).mean(axis=1)))
    most = scale_end(0.5 * float(lengths(truth[when]).max()))
    camera = framing([places, places + truth[when]], (0.25, 0.15, 1.0), size, margin=1.03)
    top = [Panel(shot([skin(mesh, places + truth[when], GHOST)], camera, size), "in the air,\nfull body", "no error")]
    for name, field in swings.items():
        image = shot(
            [skin(mesh, places + field[when], wrong_colour(lengths(field[when] - truth[when]), most))],
            camera,
            size,
        )
        top.append(Panel(image, f"in the air,\n{name}", f"error {errors[name]:.0f} %"))
    foot = int(np.argmax(lengths(x.free.expand(load)) - 1e-3 * places[:, 1]))
    times = STEP * np.arange(1, len(pulse) + 1)
    colours = dict(zip(swings, (OURS, OTHER, THIRD), strict=True))
    lines = [Line("full body", times, 1e3 * truth[:, foot, 2], TRUTH, width=4.0)]
    lines += [Line(n, times, 1e3 * u[:, foot, 2], colours[n], dashed=True) for n, u in swings.items()]
    chart = line_chart(lines, x_label="time, s", y_label="foot forwards, mm", size=(1180, 300))
    lower = x.grounded.mesh.vertices
    floor = white_ground(lower, float(np.ptp(lower[:, 1])))
    camera = framing([lower, LIGHT.shadow(lower, floor.height)], (0.25, 0.10, 1.0), size, margin=1.10)
    deepest = scale_end(max(depth for _, depth in presses.values()))
    bottom = []
    for name, (u, depth) in presses.items():
        body = skin(mesh, lower + u, wrong_colour(_feet(lower, x.touching, np.abs(u[x.touching, 1])), deepest))
        image = shot([body], camera, size, ground=floor)
        bottom.append(Panel(image, f"on the ground,\n{name}", f"feet move {1e3 * depth:.0f} mm"))
    return sheet(
        [
            top,
            [key(wrong_colour, most, "mm and more from the full body", unit=1e3)],
            [Panel(chart)],
            bottom,
            [key(wrong_colour, deepest, "mm, the sole up or down", unit=1e3)],
        ]
    )
