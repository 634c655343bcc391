"""PSSD Figures 6 and 7: bases of two poses must be turned to match before they are mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softrig.bases.alignment import align, vertex_rotations
from softrig.bases.modes import linear_modes
from softrig.bench.record import Row, body_sizes
from softrig.console import Update
from softrig.figures.figure import Figure, made
from softrig.figures.look import framing, heat, key, lengths, shot, skin
from softrig.figures.sheet import Panel, sheet
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody
from softrig.pipeline.shapes import posed_body

LENGTH, SIDE = 0.40, 0.06
"""Metres."""
YOUNG, POISSON, DENSITY = 1e6, 0.4, 1000.0
EPSILON = 0.02
"""By so much the one side of the beam is wider than the other."""
PAIR = [(0, 1)]
ALONE, FIRST = "pose 2, Procrustes alone", "pose 2, un-rotated first"


@dataclass(frozen=True, eq=False)
class TwoPoses:
    """A beam at two poses and between them, with its lowest modes (n, 3, r), mass-orthonormal."""

    one: FullBody
    other: FullBody
    middle: FullBody
    shapes: np.ndarray
    """(2, n, 3, r)."""

    @property
    def mass(self) -> np.ndarray:
        """(n,) kilogram."""
        return self.one.vertex_mass


def _beam(counts: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices, tets and which are fixed: a quarter of a beam and its mirror images, so that neither side is preferred.

    Kuhn's tets alone lean to one diagonal, and so would the modes. `counts`: cells along the quarter.
    """
    quarter = box_tets((LENGTH, 0.5 * SIDE, 0.5 * SIDE), counts)
    vertices: list[np.ndarray] = []
    tets: list[np.ndarray] = []
    for y in (1.0, -1.0):
        for z in (1.0, -1.0):
            vertices.append(quarter.vertices * np.array([1.0, y, z]))
            tets.append(
                quarter.elements[:, [0, 1, 2, 3] if y * z > 0.0 else [0, 2, 1, 3]] + len(tets) * len(vertices[0])
            )
    places, index = np.unique(np.round(np.concatenate(vertices), 9) + 0.0, axis=0, return_inverse=True)
    return places, index.ravel()[np.concatenate(tets)].astype(np.int32), places[:, 0] < 1e-9


def _posed(rest: np.ndarray, places: np.ndarray, tets: np.ndarray, fixed: np.ndarray) -> FullBody:
    young, poisson = np.full(len(tets), YOUNG), np.full(len(tets), POISSON)
    return posed_body(rest, places, tets, fixed, "stvk", young, poisson, DENSITY)


def _with_modes(bodies: list[FullBody], count: int) -> TwoPoses:
    shapes = []
    for body in bodies[:2]:
        fields = body.expand(linear_modes(body, count).shapes)
        # Signs of modes are open: the end moves towards positive y + z.
        end = body.mesh.vertices[:, 0] > LENGTH - 1e-9
        shapes.append(fields * np.where(fields[end][:, 1:].sum(axis=(0, 1)) < 0.0, -1.0, 1.0))
    return TwoPoses(bodies[0], bodies[1], bodies[2], np.stack(shapes))


def swapped_modes(counts: tuple[int, int, int] = (16, 2, 2), epsilon: float = EPSILON) -> TwoPoses:
    """A nearly square beam, wider at one pose and higher at the other: its first two modes swap (PSSD Fig. 6)."""
    rest, tets, fixed = _beam(counts)
    scales = [(1.0, 1.0, 1.0 + epsilon), (1.0, 1.0 + epsilon, 1.0), (1.0, 1.0 + 0.5 * epsilon, 1.0 + 0.5 * epsilon)]
    return _with_modes([_posed(rest, rest * np.array(scale), tets, fixed) for scale in scales], 2)


def turned_beam(counts: tuple[int, int, int] = (16, 2, 2), modes: int = 3) -> TwoPoses:
    """A flat beam, and the same turned by 90° about its own axis (PSSD Fig. 7)."""
    rest, tets, fixed = _beam(counts)
    flat = rest * np.array([1.0, 1.0, 0.65])
    bodies = []
    for angle in (0.0, 0.5 * np.pi, 0.25 * np.pi):
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        bodies.append(_posed(flat, flat @ turn.T, tets, fixed))
    return _with_modes(bodies, modes)


def aligned(poses: TwoPoses, *, turned: bool) -> np.ndarray:
    """(2, n, 3, r) the bases after Procrustes, un-rotated first if `turned` (PSSD Eqs. 11 – 13)."""
    tets = poses.one.mesh.elements
    rotations = [vertex_rotations(poses.one.mesh.vertices, poses.other.mesh.vertices, tets)] if turned else None
    regions = np.zeros(poses.shapes.shape[3], np.int32)
    return align(poses.shapes, poses.mass, regions, PAIR, rotations)[0]


def halfway(shapes: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """(n, 3, r) the mean of two bases column by column, each column of mass one."""
    mean = shapes.mean(axis=0)
    sizes = np.sqrt(np.einsum("nxk,nxk,n->k", mean, mean, mass))
    return mean / np.where(sizes > 1e-9, sizes, np.inf)


def likeness(one: np.ndarray, other: np.ndarray, mass: np.ndarray) -> float:
    """|aᵀMb| of two fields (n, 3) of mass one: 1 where they are the same, 0 where they have nothing in common."""
    return float(abs(np.einsum("nx,nx,n->", one, other, mass)))


def missed(basis: np.ndarray, wanted: np.ndarray, mass: np.ndarray) -> float:
    """The sine of the largest angle between the modes `wanted` (n, 3, k) and the span of `basis` (n, 3, r)."""
    weight = np.sqrt(np.repeat(mass, 3))[:, None]
    flat = weight * basis.reshape(-1, basis.shape[2])
    left, sigma, _ = np.linalg.svd(flat, full_matrices=False)
    left = left[:, sigma > 1e-6 * max(sigma[0], 1e-300)]
    target = weight * wanted.reshape(-1, wanted.shape[2])
    rest = target - left @ (left.T @ target)
    return float(np.linalg.norm(rest, 2) / np.linalg.norm(target, 2))


def rayleigh(body: FullBody, shapes: np.ndarray) -> np.ndarray:
    """(r,) hertz at which each field (n, 3, r) would swing by itself."""
    q = body.restrict(shapes)
    stiffness = np.einsum("ik,ik->k", q, body.rest_stiffness @ q)
    return np.sqrt(stiffness / np.einsum("ik,ik->k", q, body.mass @ q)) / (2.0 * np.pi)


def permuted_modes(update: Update) -> Figure:
    """PSSD Fig. 6: modes that swap places, mixed with and without alignment."""
    poses = swapped_modes()
    update(1, 3)
    plain, turned = halfway(poses.shapes, poses.mass), halfway(aligned(poses, turned=True), poses.mass)
    truth = poses.middle.expand(linear_modes(poses.middle, 2).shapes)
    rows = [
        Row(
            "first mode of pose 1 against first of pose 2",
            "likeness",
            likeness(poses.shapes[0, :, :, 0], poses.shapes[1, :, :, 0], poses.mass),
        ),
        *(
            Row(
                f"{way}: the two mixed modes against each other",
                "likeness",
                likeness(m[:, :, 0], m[:, :, 1], poses.mass),
            )
            for way, m in (("halfway, as they come", plain), ("halfway, aligned", turned))
        ),
        *(
            Row(f"{way}: missed of the true modes", "%", 100.0 * missed(m, truth, poses.mass))
            for way, m in (("halfway, as they come", plain), ("halfway, aligned", turned))
        ),
    ]
    update(2, 3)
    columns = [
        ("pose 1", poses.one, poses.shapes[0], ""),
        ("pose 2", poses.other, poses.shapes[1], ""),
        ("halfway,\nas they come", poses.middle, plain, f"likeness {rows[1].ours:.2f}"),
        ("halfway,\naligned", poses.middle, turned, f"likeness {rows[2].ours:.2f}"),
    ]
    picture = sheet(_mode_rows(columns, 2))
    update(3, 3)
    return made(
        "pssd-6",
        "PSSD Figure 6: modes that swap places",
        picture,
        rows,
        f"The two lowest modes of a beam that is {100.0 * EPSILON:.0f} % wider than high at pose 1 and as much "
        "higher than wide at pose 2: the same two bends, in the other order. Mixed column by column, half and half, "
        "both columns become the same diagonal bend and one direction of motion is lost. Turned to match first "
        "(Procrustes), the mixture holds both.",
        alt=f"Two modes of a beam at two poses, and halfway: mixed as they come they are alike by {rows[1].ours:.2f}, "
        f"aligned first by {rows[2].ours:.2f}",
        remark="Likeness: |aᵀMb| of two modes of mass one; 1 is the same mode, 0 nothing in common.",
        sizes={"beam": body_sizes(poses.one)},
    )


def rotated_pose(update: Update) -> Figure:
    """PSSD Fig. 7: a pose turned by 90°, matched with and without un-rotating it."""
    poses = turned_beam()
    update(1, 3)
    only, first = aligned(poses, turned=False), aligned(poses, turned=True)
    own = rayleigh(poses.one, poses.shapes[0])
    with_turn, without = rayleigh(poses.other, first[1]), rayleigh(poses.other, only[1])
    truth = poses.middle.expand(linear_modes(poses.middle, 1).shapes)
    rows = [
        Row(
            f"mode {k + 1}: frequency of its partner at pose 2",
            "Hz",
            with_turn[k],
            others={ALONE: without[k], "pose 1": own[k]},
        )
        for k in range(poses.shapes.shape[3])
    ]
    rows.append(
        Row(
            "missed of the first mode halfway by the first column",
            "%",
            100.0 * missed(halfway(first, poses.mass)[:, :, :1], truth, poses.mass),
            others={ALONE: 100.0 * missed(halfway(only, poses.mass)[:, :, :1], truth, poses.mass)},
        )
    )
    update(2, 3)
    columns = [
        ("pose 1", poses.one, poses.shapes[0], [f"{f:.2f} Hz" for f in own]),
        (ALONE, poses.other, only[1], [f"{f:.2f} Hz" for f in without]),
        (FIRST, poses.other, first[1], [f"{f:.2f} Hz" for f in with_turn]),
    ]
    picture = sheet(_mode_rows(columns, 2, size=(340, 210)))
    update(3, 3)
    return made(
        "pssd-7",
        "PSSD Figure 7: a pose turned by 90 degrees",
        picture,
        rows,
        "A flat beam, and the same beam turned by 90° about its axis; its modes turn with it. Matched as vectors in "
        "the world, the bend over the flat side finds the bend over the edge as its partner: a mode of another "
        "frequency. With the local rotation taken out first, every mode finds itself.",
        alt=f"A flat beam and the same turned by 90 degrees: its first mode has {own[0]:.2f} Hz, its partner "
        f"{without[0]:.2f} Hz with Procrustes alone and at {with_turn[0]:.2f} Hz un-rotated first",
        value=FIRST,
        sizes={"beam": body_sizes(poses.one)},
    )


def _mode_rows(
    columns: Sequence[tuple[str, FullBody, np.ndarray, str | list[str]]], count: int, size: tuple[int, int] = (275, 190)
) -> list[list[Panel]]:
    """A row a mode: the body bent by it, a quarter of its length at most, coloured by how far."""
    swing = 0.25 * LENGTH
    moved = [
        [shapes[:, :, k] * swing / max(float(lengths(shapes[:, :, k]).max()), 1e-300) for k in range(count)]
        for _, _, shapes, _ in columns
    ]
    places = [[body.mesh.vertices + u for u in fields] for (_, body, _, _), fields in zip(columns, moved, strict=True)]
    camera = framing([place for fields in places for place in fields], (0.9, 0.55, 0.75), size, margin=1.02)
    rows = []
    for k in range(count):
        panels = []
        for (name, body, _, note), fields, places_of in zip(columns, moved, places, strict=True):
            image = shot([skin(body.mesh, places_of[k], heat(lengths(fields[k]), swing))], camera, size)
            told = note[k] if isinstance(note, list) else (note if k == count - 1 else "")
            panels.append(Panel(image, name if k == 0 else "", f"mode {k + 1}" + (f", {told}" if told else "")))
        rows.append(panels)
    return [*rows, [key(heat, swing, "mm moved, every mode drawn equally large", unit=1e3, width=420)]]
