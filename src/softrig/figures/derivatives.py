"""StVK05 Figures 6 and 7: modal derivatives, and how far shapes made at rest reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softrig.bases.derivatives import derivative_basis, derivative_samples, modal_derivatives
from softrig.bases.modes import linear_modes
from softrig.bench.record import Row, body_sizes, number
from softrig.console import Update
from softrig.fem.material import Material
from softrig.figures.figure import Figure, made
from softrig.figures.look import CLAY, GHOST, framing, heat, key, lengths, shot, skin
from softrig.figures.look import wrong as wrong_colour
from softrig.figures.sheet import Panel, sheet
from softrig.figures.spoons import (
    UP,
    SoftSpoon,
    bending_force,
    difference,
    full_answer,
    reduced_answer,
    soft_spoon,
)
from softrig.meshing.boxes import box_bricks
from softrig.models.full import FullBody
from softrig.numerics.pca import mass_pca
from softrig.render import scale_end

SHOWN = 3
SWING = 0.36
"""Of the spoon's length: the largest motion of the modes drawn."""
MODES, SIZE = 6, 15
REACH = 0.7
"""Of the spoon's length: how far the linear model would move the tip under the strong pull."""
BEAM, BEAM_SIDE = 0.6, 0.06
"""Metres."""
TWIST = 1.5 * np.pi


def missed_share(body: FullBody, basis: np.ndarray, u: np.ndarray) -> float:
    """‖u − UUᵀMu‖ / ‖u‖, mass-weighted: what a mass-orthonormal basis (3·free, r) cannot show of u (n, 3)."""
    q = body.restrict(u)
    rest = q - basis @ (basis.T @ (body.mass @ q))
    return float(np.sqrt((rest @ (body.mass @ rest)) / (q @ (body.mass @ q))))


def modes_and_derivatives(update: Update) -> Figure:
    """StVK05 Fig. 6: linear modes of a spoon and their derivatives."""
    spoon = soft_spoon()
    body = spoon.body
    modes = linear_modes(body, MODES)
    derivatives = modal_derivatives(body, modes)
    update(1, 3)
    _, sigma = mass_pca(derivative_samples(body, modes, derivatives), body.mass, MODES + len(derivatives.pairs))
    energy = np.cumsum(sigma**2) / np.sum(sigma**2)
    length = float(np.ptp(body.mesh.vertices[:, 0]))
    load = spoon.pull(spoon.tip, (0.0, 0.0, bending_force(body, spoon.tip, REACH * length)))
    bent = full_answer(body, load)
    update(2, 3)
    with_derivatives, only = derivative_basis(body, SIZE, modes=MODES).shapes, linear_modes(body, SIZE).shapes
    rows = [Row(f"mode {k + 1}: frequency", "Hz", float(modes.frequencies[k])) for k in range(SHOWN)] + [
        Row("modes and derivatives before the mass-PCA", "", MODES + len(derivatives.pairs)),
        Row("vectors that hold 99.99 % of their weight", "", int(np.searchsorted(energy, 0.9999) + 1)),
        *(
            Row(f"missed of a strongly bent shape, {SIZE} {what}", "%", 100.0 * missed_share(body, basis, bent))
            for what, basis in (("of modes and derivatives", with_derivatives), ("linear modes", only))
        ),
    ]
    pairs = [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)]
    place = {(int(i), int(j)): k for k, (i, j) in enumerate(derivatives.pairs)}
    top = [(f"mode {k + 1}", modes.shapes[:, k]) for k in range(SHOWN)]
    below = [(f"derivative {i + 1}, {j + 1}", derivatives.shapes[:, place[i, j]]) for i, j in pairs]
    picture = sheet(_shapes(spoon, [top, below[:3], below[3:]], length))
    update(3, 3)
    return made(
        "stvk05-6",
        "StVK05 Figure 6: linear modes and their derivatives",
        picture,
        rows,
        "The first three linear modes of a soft spoon held at its handle (up, sideways, up with a knee), and the "
        "six derivatives that say how each changes along another. The spoon at rest stands grey behind each; all are "
        f"drawn with a largest motion of {100.0 * SWING:.0f} % of its length. Where a mode bends, its derivative draws "
        "the bowl back along the handle: what a linear mode lacks when the bend grows.",
        alt=f"Three modes of a spoon and six derivatives: {SIZE} vectors of both miss {rows[-2].told()} of a strongly "
        f"bent shape, {SIZE} linear modes {rows[-1].told()}",
        remark="Weight: the squared singular values of the scaled samples.",
        sizes={"spoon": body_sizes(body)},
    )


def _shapes(spoon: SoftSpoon, rows: list[list[tuple[str, np.ndarray]]], length: float) -> list[list[Panel]]:
    size = (370, 215)
    swing = SWING * length
    rest = spoon.drawn(np.zeros_like(spoon.body.mesh.vertices), GHOST, gloss=0.0)
    fields = [[spoon.body.expand(shape) for _, shape in row] for row in rows]
    # Signs are open: bends go up, or to the left.
    fields = [
        [u * (swing / lengths(u).max()) * (1.0 if u[spoon.tip].sum() >= 0.0 else -1.0) for u in row] for row in fields
    ]
    shapes = [spoon.places(u) for row in fields for u in row]
    camera = framing([rest.vertices, *shapes], (0.35, -1.0, 0.75), size, up=UP, margin=1.0)
    # Twice as far from the eye and twice as large: it looks the same, and is behind all.
    rest = replace(rest, vertices=2.0 * rest.vertices - np.asarray(camera.eye))
    panels = [
        [
            Panel(shot([rest, spoon.drawn(u, heat(lengths(u), swing))], camera, size), "", name)
            for (name, _), u in zip(row, moved, strict=True)
        ]
        for row, moved in zip(rows, fields, strict=True)
    ]
    return [*panels, [key(heat, swing, "mm moved", unit=1e3)]]


def twisted(vertices: np.ndarray, angle: float, length: float) -> np.ndarray:
    """(n, 3) displacements that turn the sections of a beam along x about its axis (0, 0) evenly, up to `angle`."""
    turn = angle * vertices[:, 0] / length
    y, z = vertices[:, 1], vertices[:, 2]
    c, s = np.cos(turn), np.sin(turn)
    return np.stack([np.zeros_like(turn), y * (c - 1.0) - z * s, y * s + z * (c - 1.0)], axis=1)


def section_angles(vertices: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(k,) radians by which each section of constant x turned about the axis, unwrapped along the beam."""
    found = []
    for x in np.unique(np.round(vertices[:, 0], 9)):
        here = np.abs(vertices[:, 0] - x) < 1e-8
        a, b = vertices[here, 1:], (vertices + u)[here, 1:]
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        found.append(np.arctan2((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum(), (a * b).sum()))
    return np.unwrap(np.array(found))


def twist_modes(body: FullBody, count: int, among: int) -> np.ndarray:
    """(3·free, count) the lowest linear modes that turn sections rather than move them."""
    shapes = linear_modes(body, among).shapes
    vertices = body.mesh.vertices
    twisting = np.stack([np.zeros(len(vertices)), -vertices[:, 2], vertices[:, 1]], axis=1)
    fields = body.expand(shapes)
    share = np.abs(np.einsum("nxk,nx->nk", fields, twisting)).sum(axis=0) / np.linalg.norm(fields, axis=1).sum(axis=0)
    return shapes[:, np.sort(np.argsort(-share)[:count])]


def beam_of_bricks(counts: tuple[int, int, int] = (30, 4, 4)) -> FullBody:
    """A square beam along x, its axis through the origin, held at one end."""
    box = box_bricks((BEAM, BEAM_SIDE, BEAM_SIDE), counts)
    vertices = box.vertices - np.array([0.0, 0.5 * BEAM_SIDE, 0.5 * BEAM_SIDE])
    mesh = type(box).build(vertices, box.elements)
    return FullBody(mesh, Material(1e6, 0.3, 1000.0), fixed=vertices[:, 0] < 1e-9)


def twist_bases(body: FullBody, among: int = 16) -> dict[str, np.ndarray]:
    """Five vectors each: two twists with their derivatives, and the five lowest twists (3·free, 5)."""
    from softrig.bases.modes import LinearModes

    two = twist_modes(body, 2, among)
    modes = LinearModes(np.ones(2), two, None)
    samples = np.concatenate([two, modal_derivatives(body, modes).shapes], axis=1)
    sizes = np.sqrt(np.einsum("ik,ik->k", samples, body.mass @ samples))
    return {
        "2 twists and their derivatives": mass_pca(samples / sizes, body.mass, 5)[0],
        "5 linear twists": twist_modes(body, 5, 3 * among),
    }


def extreme_shapes(update: Update) -> Figure:
    """StVK05 Fig. 7: a spoon bent hard and a beam twisted by 270°."""
    spoon = soft_spoon()
    body = spoon.body
    length = float(np.ptp(body.mesh.vertices[:, 0]))
    load = spoon.pull(spoon.tip, (0.0, 0.0, bending_force(body, spoon.tip, 2.0 * REACH * length)))
    truth = full_answer(body, load, load_steps=10)
    update(1, 4)
    answers = {
        "full body": truth,
        f"{MODES} modes and derivatives": reduced_answer(
            body, derivative_basis(body, SIZE, modes=MODES).shapes, load, load_steps=10
        ),
        f"{SIZE} linear modes": reduced_answer(body, linear_modes(body, SIZE).shapes, load, load_steps=10),
    }
    update(2, 4)
    beam = beam_of_bricks()
    target = twisted(beam.mesh.vertices, TWIST, BEAM)
    held = {name: beam.expand(U @ (U.T @ (beam.mass @ beam.restrict(target)))) for name, U in twist_bases(beam).items()}
    turned = {name: float(np.degrees(section_angles(beam.mesh.vertices, u)[-1])) for name, u in held.items()}
    update(3, 4)
    errors = {name: 100.0 * difference(u, truth) for name, u in answers.items()}
    ours, others = f"{MODES} modes and derivatives", f"{SIZE} linear modes"
    first, second = held
    rows = [
        *(Row(f"spoon, {name}, r = {SIZE}: error of the bent shape", "%", errors[name]) for name in (ours, others)),
        Row("spoon: the tip moves, of its length", "%", 100.0 * float(lengths(truth)[spoon.tip].mean()) / length),
        *(Row(f"beam, {name}: missed of the twist", "%", 100.0 * difference(held[name], target)) for name in held),
        Row(f"beam, {first}: the end turns by", "°", turned[first], others={"StVK05": 270.0}),
        Row(f"beam, {second}: the end turns by", "°", turned[second]),
    ]
    most = scale_end(0.3 * length)
    size = (370, 300)
    camera = framing([spoon.places(u) for u in answers.values()], (0.15, -1.0, 0.25), size, up=UP, margin=1.0)
    top = [
        Panel(
            shot(
                [spoon.drawn(u, GHOST if u is truth else wrong_colour(lengths(u - truth), most))],
                camera,
                size,
            ),
            name,
            f"tip {1e3 * lengths(u)[spoon.tip].mean():.0f} mm"
            + ("" if u is truth else f", error {errors[name]:.0f} %"),
        )
        for name, u in answers.items()
    ]
    size = (370, 170)
    camera = framing([beam.mesh.vertices + target], (0.5, 0.5, 1.0), size, margin=1.05)
    bottom = [
        Panel(
            shot([skin(beam.mesh, beam.mesh.vertices + u, CLAY, wire=False)], camera, size),
            name,
            f"end turned by {angle:.0f}°",
        )
        for name, u, angle in [
            ("turned evenly by 270°", target, np.degrees(TWIST)),
            *((n, held[n], turned[n]) for n in held),
        ]
    ]
    update(4, 4)
    return made(
        "stvk05-7",
        "StVK05 Figure 7: extreme shapes from modes made at rest",
        sheet([top, [key(wrong_colour, most, "mm and more from the full body", unit=1e3)], bottom]),
        rows,
        f"Above: the spoon pulled up hard at its tip; {SIZE} vectors from {MODES} modes and their derivatives follow "
        "the full body, as many linear modes lock. Red is the distance to the full body. Below: a beam turned "
        "evenly by 270°, and the nearest shape in five dimensions: two twist modes with their three derivatives "
        "hold it, five linear twist modes cannot turn a section beyond its own plane and flatten it.",
        alt=f"A spoon bent hard: {number(errors[ours])} % off the full body with {ours}, {number(errors[others])} % "
        f"with {others}; a beam turned by 270 degrees, of which {first} hold {turned[first]:.0f}",
        sizes={"spoon": body_sizes(body), "beam": body_sizes(beam)},
    )
