"""StVK05 Figure 9: a basis from pulls that somebody drew on the linear model."""

from __future__ import annotations

import numpy as np

from softrig.bases.sketch import SketchPad, sketched_basis
from softrig.bench.record import Row, body_sizes, number
from softrig.console import Update
from softrig.fem.meshes import VolumeMesh
from softrig.figures.figure import Figure, made
from softrig.figures.look import GHOST, arrow, framing, key, lengths, shot
from softrig.figures.look import wrong as wrong_colour
from softrig.figures.sheet import Panel, sheet
from softrig.figures.spoons import (
    UP,
    bending_force,
    difference,
    full_answer,
    reduced_answer,
    sketched_pulls,
    soft_spoon,
)
from softrig.render import scale_end

SIZE = 15
LINEAR, FULL, REDUCED = "linear model", "full body", f"reduced, r = {SIZE}"
REACH = 1.1
"""Of the spoon's length: how far the linear model moves the tip under the hardest pull."""


def volume_change(mesh: VolumeMesh, u: np.ndarray) -> float:
    """Relative change of the volume that the bricks of `mesh` enclose under displacements (n, 3)."""

    def enclosed(places: np.ndarray) -> float:
        a, b, c = (places[mesh.boundary_triangles[:, k]] for k in range(3))
        return float(np.einsum("ni,ni->", a, np.cross(b, c)))

    return enclosed(mesh.vertices + u) / enclosed(mesh.vertices) - 1.0


def basis_from_a_sketch(update: Update) -> Figure:
    """StVK05 Fig. 9: a basis from sketched pulls."""
    spoon = soft_spoon()
    body = spoon.body
    length = float(np.ptp(body.mesh.vertices[:, 0]))
    hardest = bending_force(body, spoon.tip, REACH * length)
    pad = sketched_pulls(spoon, hardest)
    basis = sketched_basis(
        body, pad.pulls, SIZE, shape_separation=0.01, progress=lambda done, total: update(done, total + 2)
    ).shapes
    # A pull between those that were drawn: harder than three quarters, to another side.
    force = 0.9 * hardest * np.array([0.0, -0.1, 1.0])
    load = spoon.pull(spoon.tip, force)
    linear = SketchPad(body).pull(spoon.tip, np.tile(force / len(spoon.tip), (len(spoon.tip), 1)))
    truth = full_answer(body, load)
    reduced = reduced_answer(body, basis, load)
    update(len(pad.pulls) + 1, len(pad.pulls) + 2)
    rows = [
        Row("pulls drawn", "", len(pad.pulls), others={"StVK05": 353}),
        Row(
            "shape under a pull that was not drawn: error",
            "%",
            100.0 * difference(reduced, truth),
            others={LINEAR: 100.0 * difference(linear, truth)},
        ),
        Row(
            "volume of the spoon changes by",
            "%",
            100.0 * volume_change(body.mesh, reduced),
            others={
                LINEAR: 100.0 * volume_change(body.mesh, linear),
                FULL: 100.0 * volume_change(body.mesh, truth),
            },
        ),
    ]
    answers = [(LINEAR, linear), (FULL, truth), (REDUCED, reduced)]
    size = (370, 330)
    pulls = [
        (spoon.places(u), body.mesh.vertices[spoon.tip].mean(axis=0) + u[spoon.tip].mean(axis=0)) for _, u in answers
    ]
    along = force / np.linalg.norm(force)
    camera = framing(
        [places for places, _ in pulls] + [tip + 0.05 * along for _, tip in pulls], (0.15, -1.0, 0.25), size, up=UP
    )
    panels, most = [], scale_end(0.3 * length)
    for (name, u), (_, tip) in zip(answers, pulls, strict=True):
        colour: object = GHOST if u is truth else wrong_colour(lengths(u - truth), most)
        image = shot([spoon.drawn(u, colour), *arrow(tip, tip + 0.05 * along, 0.0016)], camera, size)
        note = f"volume {round(100.0 * volume_change(body.mesh, u)) + 0:+d} %"
        panels.append(
            Panel(image, name, note + ("" if u is truth else f", error {100.0 * difference(u, truth):.1f} %"))
        )
    update(1, 1)
    return made(
        "stvk05-9",
        "StVK05 Figure 9: a basis from a sketch",
        sheet([panels, [key(wrong_colour, most, "mm and more from the full body", unit=1e3)]]),
        rows,
        f"{len(pad.pulls)} pulls are drawn on the linear model of a spoon, which answers at once; the full nonlinear "
        f"body is solved under each, and the shapes become a basis of {SIZE} vectors. All three pictures show one pull "
        "(red arrow) that was not among them. Left: the linear model stretches and swells. Middle: the full body. "
        "Right: the reduced model, red where it is off the full body.",
        alt=f"A spoon under a pull that was not drawn: the reduced model is {rows[1].told()} off the full body, the "
        f"linear model {number(rows[1].others[LINEAR])} %",
        value=REDUCED,
        sizes={"spoon": body_sizes(body) | {"modes": SIZE}},
    )
