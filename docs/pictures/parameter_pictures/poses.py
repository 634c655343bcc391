"""The poses at which a model is prepared."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import softrig as sr
from parameter_pictures.look import Panel, chart, lengths, row
from parameter_pictures.moments import named
from parameter_pictures.picture import Picture
from parameter_pictures.studio import Studio
from softrig.characters.smoothing import vertex_normals
from softrig.figures.muscle import BELLY, BICEPS
from softrig.render import Series


def misfit(model: sr.PoseSpaceModel, poses: np.ndarray) -> np.ndarray:
    """(f,) millimetres, root mean square: how far the tets' skin is off the rig's at poses (f, P)."""
    found = []
    for p in poses:
        carried = np.einsum("na,nak->nk", model.embedding_weights, model.tet_rest(p)[model.embedding_nodes])
        found.append(np.sqrt((lengths(carried - model.rig.positions(model.corrected(p))) ** 2).mean()))
    return 1e3 * np.array(found)


def count(studio: Studio) -> Picture:
    """How well the tets follow the skin along a clip."""
    lines = []
    times, poses = studio.arm.clip("bend").resample(30.0)
    values = (1, 2, 4)
    for value in values:
        model = studio.model(poses={"count": value})
        name = f"count = {value}" + (" (default)" if value == sr.Project().poses.count else "")
        lines.append(Series(name, times, misfit(model, poses)))
    caption = (
        "The clip 'bend': tets that only follow the bones lie {low:.1f} mm off the rig's skin in the root mean square "
        "where it is worst; prepared at {middle_value:g} poses {middle:.1f} mm, at {high_value:g} poses {high:.1f} mm."
    )
    numbers = named([line.y.max() for line in lines]) | named(values, "_value")
    return Picture(chart(lines, "time, s", "tets off the skin, mm (r.m.s.)"), ("poses.count",), caption, numbers)


def corrections(studio: Studio) -> Picture:
    """A pose that does not say the weights of morphs."""
    arm = studio.arm
    bent = arm.clip("bend").sample(0.72)[0]
    bent[[arm.rig.parameters.index(name) for each in arm.corrections for name in each.weights]] = 0.0
    places = []
    for value in (False, True):
        model = studio.model(poses={"corrections": value})
        places.append(sr.model_simulation(model, gravity="off").step(bent).copy())
    moved = 1e3 * lengths(places[1] - places[0])
    panels = [
        Panel(places[0], "corrections = false (default)", np.zeros(len(moved))),
        Panel(places[1], "corrections = true", moved),
    ]
    image = row(arm.triangles, panels, "mm and more moved by the correction", height=260)
    caption = (
        "The elbow bent by its joint alone: the morph that was sculpted for it moves the skin by up to {most:.0f} mm "
        "if corrections follow the pose."
    )
    return Picture(image, ("poses.corrections",), caption, {"most": float(moved.max())})


def sculpt(studio: Studio) -> Picture:
    """A flexed biceps, sculpted; before, at and after its pose."""
    arm, at = studio.arm, 0.72
    clip = arm.clip("bend")
    pose = clip.sample(at)[0]
    posed = arm.rig.positions(pose)
    bulge = np.clip(1.0 - (lengths((arm.rest_positions - BICEPS) / BELLY) / 1.2) ** 2, 0.0, 1.0) ** 2
    shape = posed + 0.02 * bulge[:, None] * vertex_normals(posed, arm.triangles)
    given = ({"name": "flexed", "clip": "bend", "time": at, "sculpt": "flexed.obj"},)
    with TemporaryDirectory() as folder:
        write_obj(Path(folder) / "flexed.obj", shape, arm.triangles)
        model = studio.built(poses={"given": given, "count": 2}, folder=Path(folder)).model
    simulation = sr.model_simulation(model, gravity="off")
    panels, most = [], []
    times = (0.0, 0.45, at)
    own = next(each for each in model.clips if each.name == clip.name)  # its rig has a morph more: the sculpt
    for time in times:
        simulation.reset()
        soft = simulation.step(own.sample(time)[0]).copy()
        moved = 1e3 * lengths(soft - arm.rig.positions(clip.sample(time)[0]))
        words = f"{time:.2f} s" + (': its pose, "flexed"' if time == at else "")
        panels.append(Panel(soft, words, moved))
        most.append(float(moved.max()))
    caption = (
        "A biceps sculpted for the pose at {at:.2f} s of the clip 'bend': it moves the skin by {low:.1f}, {middle:.1f} "
        "and {high:.1f} mm at these moments; sculpted were {sculpted:.1f} mm."
    )
    numbers = named(most) | {"at": at, "sculpted": 1e3 * float(lengths(shape - posed).max())}
    image = row(arm.triangles, panels, "mm and more moved by the sculpt", height=220)
    return Picture(image, ("given pose.sculpt",), caption, numbers)


def write_obj(path: Path, vertices: np.ndarray, triangles: np.ndarray) -> None:
    """Vertices and triangles as an OBJ."""
    lines = [f"v {x:.7f} {y:.7f} {z:.7f}" for x, y, z in vertices]
    lines += [f"f {a} {b} {c}" for a, b, c in triangles + 1]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
