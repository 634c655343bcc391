"""PSSD Figure 4: a beam bent to a U has other modes than the straight one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from softrig.bases.alignment import vertex_rotations
from softrig.bases.derivatives import derivative_basis
from softrig.bases.modes import linear_modes
from softrig.bench.record import Row, body_sizes, number
from softrig.console import Update
from softrig.dynamics import static_equilibrium
from softrig.figures.figure import Figure, made
from softrig.figures.look import GHOST, arrow, framing, key, lengths, shot, skin
from softrig.figures.look import wrong as wrong_colour
from softrig.figures.sheet import Panel, sheet
from softrig.forces.polynomial import reduce_body
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody
from softrig.pipeline.shapes import posed_body
from softrig.render import scale_end
from softrig.rig.deformers import Bend

LENGTH, SIDE = 0.60, 0.05
"""Metres."""
YOUNG, POISSON, DENSITY = 1e5, 0.4, 1000.0
MODES = 15
FREQUENCIES = 6
POSE, TRANSFERRED, NEUTRAL = "basis of the pose", "straight basis, carried over", "straight body, carried over"


@dataclass(frozen=True, eq=False)
class Bent:
    """The beam in both poses, and its bases."""

    straight: FullBody
    bent: FullBody
    turns: np.ndarray
    """(n, 3, 3) rotations of the vertices from straight to bent."""
    own: np.ndarray
    """(3·free, r) the bent beam's basis."""
    straight_basis: np.ndarray
    """(3·free, r) the straight beam's."""

    @property
    def carried(self) -> np.ndarray:
        """(3·free, r) the straight beam's basis turned with the vertices."""
        fields = self.straight.expand(self.straight_basis)
        return self.bent.restrict(np.einsum("nij,njk->nik", self.turns, fields))


def bent_beam(counts: tuple[int, int, int] = (24, 3, 3), modes: int = MODES, angle: float = np.pi) -> Bent:
    """A beam clamped at one end, straight and bent by `angle` radians, with a basis at each."""
    mesh = box_tets((LENGTH, SIDE, SIDE), counts)
    centre = np.array([0.0, 0.5 * SIDE, 0.5 * SIDE])
    bend = Bend(mesh.vertices, centre, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), 0.0, LENGTH)
    fixed = mesh.vertices[:, 0] < 1e-9
    young, poisson = np.full(len(mesh.elements), YOUNG), np.full(len(mesh.elements), POISSON)
    bodies = [
        posed_body(mesh.vertices, places, mesh.elements, fixed, "stvk", young, poisson, DENSITY)
        for places in (mesh.vertices, bend.positions(np.array([angle])))
    ]
    straight, bent = bodies
    turns = vertex_rotations(mesh.vertices, bent.mesh.vertices, mesh.elements)
    own, other = (derivative_basis(body, modes).shapes for body in (bent, straight))
    return Bent(straight, bent, turns, own, other)


def end_load(beam: Bent, force: tuple[float, float, float]) -> np.ndarray:
    """(n, 3) newton, spread over the free end."""
    end = beam.straight.mesh.vertices[:, 0] > LENGTH - 1e-9
    field = np.zeros_like(beam.straight.mesh.vertices)
    field[end] = np.asarray(force) / end.sum()
    return field


def answers(beam: Bent, load: np.ndarray) -> dict[str, np.ndarray]:
    """(n, 3) metres: static answers of the bent beam to `load` (n, 3), the full body's first (PSSD Fig. 4)."""
    force = beam.bent.restrict(load)
    found = {"full body": beam.bent.expand(static_equilibrium(beam.bent, force, load_steps=4))}
    for name, basis in ((POSE, beam.own), (TRANSFERRED, orthonormal(beam.carried, beam.bent))):
        found[name] = _reduced_answer(beam.bent, basis, force)
    # Fig. 4 (b): load and answer are carried to the straight beam and back.
    carried = np.einsum("nji,nj->ni", beam.turns, load)
    field = _reduced_answer(beam.straight, beam.straight_basis, beam.straight.restrict(carried))
    found[NEUTRAL] = np.einsum("nij,nj->ni", beam.turns, field)
    return found


def _reduced_answer(body: FullBody, basis: np.ndarray, force: np.ndarray) -> np.ndarray:
    reduced = reduce_body(body, basis)
    return body.expand(basis @ static_equilibrium(reduced, basis.T @ force, load_steps=4))


def orthonormal(basis: np.ndarray, body: FullBody) -> np.ndarray:
    """The same span, mass-orthonormal."""
    factor = np.linalg.cholesky(basis.T @ (body.mass @ basis))
    return np.asarray(np.linalg.solve(factor, basis.T).T)


def frequencies(body: FullBody, basis: np.ndarray, count: int = FREQUENCIES) -> np.ndarray:
    """(count,) hertz: the lowest of the body held to a basis."""
    values = eigh(basis.T @ (body.rest_stiffness @ basis), basis.T @ (body.mass @ basis), eigvals_only=True)
    return np.sqrt(np.maximum(values[:count], 0.0)) / (2.0 * np.pi)


def errors(found: dict[str, np.ndarray]) -> dict[str, float]:
    """‖u − u_full‖ / ‖u_full‖ by name."""
    truth = found["full body"]
    scale = float(np.linalg.norm(truth))
    return {name: float(np.linalg.norm(u - truth)) / scale for name, u in found.items() if name != "full body"}


def modes_under_a_bend(update: Update) -> Figure:
    """PSSD Fig. 4: modes of a beam bent to a U, against those of the straight one."""
    beam = bent_beam()
    update(1, 5)
    loads = {"pulled open": (0.06, 0.20, 0.0), "pulled aside": (0.0, 0.0, 0.10)}
    rows, panels = [], []
    size = (285, 290)
    for done, (what, force) in enumerate(loads.items()):
        load = end_load(beam, force)
        found = answers(beam, load)
        wrong = errors(found)
        rows.append(
            Row(
                f"static answer, {what}: error",
                "%",
                100.0 * wrong[POSE],
                others={name: 100.0 * wrong[name] for name in (TRANSFERRED, NEUTRAL)},
            )
        )
        panels += _row(beam, load, found, wrong, what, size)
        update(2 + done, 5)
    truth = linear_modes(beam.bent, FREQUENCIES).frequencies
    own, carried = (frequencies(beam.bent, basis) for basis in (beam.own, beam.carried))
    straight = linear_modes(beam.straight, FREQUENCIES).frequencies
    for label, place in (("first", 0), ("third", 2), ("sixth", 5)):
        rows.append(
            Row(
                f"{label} frequency of the U: error",
                "%",
                100.0 * (own[place] / truth[place] - 1.0),
                others={
                    TRANSFERRED: 100.0 * (carried[place] / truth[place] - 1.0),
                    NEUTRAL: 100.0 * (straight[place] / truth[place] - 1.0),
                },
            )
        )
    update(5, 5)
    return made(
        "pssd-4",
        "PSSD Figure 4: modes change when a body bends",
        sheet(panels),
        rows,
        "A soft beam bent to a U, held at one end and pulled at the other (red arrow) by two loads. Each reduced "
        f"answer has {MODES} modes: those made at the U, those of the straight beam turned with the flesh, and the "
        "straight beam itself with load and answer carried over. Red is the distance to the full body's answer, "
        "leftmost. Modes must know the pose they are used at: in the straight beam's basis the first frequency of "
        f"the U is {_off(rows[2].others[TRANSFERRED])}, in the straight beam itself {_off(rows[2].others[NEUTRAL])}.",
        alt=f"A beam bent to a U and pulled: {rows[0].told()} off the full body with the basis of the pose, "
        f"{number(rows[0].others[TRANSFERRED])} % with the straight beam's",
        value=POSE,
        remark="softrig's default makes one basis of the shapes of all poses, turned with the flesh "
        '([Figure 14](#pssd-14)); `between_poses = "interpolated"` keeps one for each, as here.',
        sizes={"beam": body_sizes(beam.bent) | {"modes": MODES}},
    )


def _off(percent: float) -> str:
    return f"{number(abs(percent))} % too {'high' if percent > 0.0 else 'low'}"


def _row(
    beam: Bent,
    load: np.ndarray,
    found: dict[str, np.ndarray],
    wrong: dict[str, float],
    what: str,
    size: tuple[int, int],
) -> list[list[Panel]]:
    """The answers to one load, and their colour bar beneath."""
    mesh, places = beam.bent.mesh, beam.bent.mesh.vertices
    pulled = np.flatnonzero(load.any(axis=1))
    along = load.sum(axis=0) / np.linalg.norm(load.sum(axis=0))
    truth = found["full body"]
    most = scale_end(float(lengths(truth).max()))
    pulls = {name: (places + u)[pulled].mean(axis=0) + np.outer([0.0, 0.12], along) for name, u in found.items()}
    direction = (0.25, 0.30, 1.0) if load[:, 1].any() else (-0.75, 0.45, 1.0)
    camera = framing([*(places + u for u in found.values()), *pulls.values()], direction, size)
    panels = []
    for name, u in found.items():
        exact = name == "full body"
        mesh_of = skin(mesh, places + u, GHOST if exact else wrong_colour(lengths(u - truth), most))
        note = f"tip moves {1e3 * lengths(u)[pulled].mean():.0f} mm"
        note += "" if exact else f", error {100.0 * wrong[name]:.0f} %"
        heading = f"{name},\n{what}" if exact else name.replace(", ", ",\n")
        panels.append(
            Panel(shot([mesh_of, *arrow(pulls[name][0], pulls[name][1], 0.005)], camera, size), heading, note)
        )
    return [panels, [key(wrong_colour, most, "mm and more from the full body", unit=1e3)]]
