"""PSSD Figure 12: an arm led by its hand, whose biceps stiffens as it bends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from softrig.bench.record import Row, model_sizes, number
from softrig.characters import built_in
from softrig.characters.arm_shape import JOINTS
from softrig.characters.assembly import skeleton_of
from softrig.console import Update
from softrig.figures.chart import OTHER, OURS, Line, line_chart
from softrig.figures.figure import Figure, made
from softrig.figures.look import GREEN, ball, framing, key, shot
from softrig.figures.look import wrong as wrong_colour
from softrig.figures.sheet import Panel, sheet
from softrig.pipeline.baking import model_simulation
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.timing import step_times
from softrig.poses.materials import PRESETS
from softrig.project import Project
from softrig.render import Mesh, scale_end
from softrig.rig.character import Character
from softrig.rig.corrections import corrected
from softrig.rig.ik import two_bone

FPS = 60.0
WRIST = (0.545, 0.0, 0.0)
BICEPS, BELLY = np.array([0.185, 0.040, 0.003]), np.array([0.085, 0.050, 0.055])
"""Centre and radii of the muscle, metres."""
STIFFER = 10.0
"""Times as stiff as at rest, flexed."""
STIFFENING, SAME = "stiffening", "same material at all poses (default)"
SETTINGS = Project().changed(
    mesh={"tets": 3000},
    basis={"modes": 45, "regions": 3, "contact": False, "rehearsal": 0.0},
    poses={"count": 2, "given": ({"name": "flexed", "clip": "bend", "time": 0.72},)},
    material={"preset": "fat"},
)


def with_biceps(character: Character) -> Character:
    """`character` with a painted map "biceps": 1 on the muscle, fading to 0."""
    away = (character.rest_positions - BICEPS) / BELLY
    paint = np.clip(2.0 * (1.25 - np.linalg.norm(away, axis=1)), 0.0, 1.0)
    return replace(character, maps={**character.maps, "biceps": paint})


def led_by_hand(character: Character, seconds: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """(f, P) poses and (f, 3) handle, m, at 60 a second: the hand is thrown up to the shoulder, stops, and back."""
    skeleton = skeleton_of({**JOINTS, "Wrist": ("Forearm", WRIST)})
    times = np.arange(round(seconds * FPS) + 1) / FPS
    share = _eased(times, 0.25, 0.5) - _eased(times, 1.2, 0.5)
    low, high = np.array([0.54, 0.02, 0.02]), np.array([0.14, 0.235, 0.05])
    handle = low + share[:, None] * (high - low)
    handle[:, 1] += 0.10 * np.sin(np.pi * share)
    names = character.rig.parameters.names
    start = names.index("Shoulder.translation.x")
    p, values = skeleton.parameters.rest, []
    pole = np.array([0.3, -0.6, 0.0])
    for place in handle:
        p = two_bone(skeleton, skeleton.parameters.rest, (1, 2, 3), place, pole=pole)
        row = character.rig.parameters.rest.copy()
        row[start : start + 30] = p[:30]
        values.append(row)
    return corrected(character.rig.parameters, character.corrections, np.stack(values)), handle


def _eased(times: np.ndarray, start: float, length: float) -> np.ndarray:
    x = np.clip((times - start) / length, 0.0, 1.0)
    return x * x * x * (10.0 + x * (6.0 * x - 15.0))


def built_arm(character: Character, stiffer: float, folder: Path) -> Built:
    """The arm whose biceps is `stiffer` times as stiff at the flexed pose."""
    own = {"stiffness_map": "biceps", "stiffness_range": stiffer}
    project = SETTINGS.changed(material={"poses": {"flexed": own}}) if stiffer != 1.0 else SETTINGS
    return build_parts(character, project, cache=folder, jobs=1)


def stiffness_along(built: Built, poses: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """(f,) Young's modulus of some tets along a motion, pascal, by the pose weights (PSSD Eq. 36)."""
    weights = np.stack([built.model.positive_weights(p) for p in poses])
    return weights @ built.fabric.young[:, tets].mean(axis=1)


def stiffening_muscle(update: Update) -> Figure:
    """PSSD Fig. 12: an arm led by its hand, with a muscle that stiffens."""
    character = with_biceps(built_in("arm"))
    poses, handle = led_by_hand(character)
    with TemporaryDirectory() as folder:
        built = {}
        for done, (name, stiffer) in enumerate(((STIFFENING, STIFFER), (SAME, 1.0))):
            built[name] = built_arm(character, stiffer, Path(folder))
            update(done + 1, 4)
    moved = {name: model_simulation(parts.model).run(poses, 1.0 / FPS) for name, parts in built.items()}
    plain = np.stack([parts_rig_positions(built[STIFFENING], p) for p in poses])
    on = character.maps["biceps"] > 0.7
    offset = {name: np.linalg.norm(v - plain, axis=2) for name, v in moved.items()}
    jiggle = {name: np.sqrt((field[:, on] ** 2).mean(axis=1)) for name, field in offset.items()}
    update(3, 4)
    times = np.arange(len(poses)) / FPS
    held = (times > 0.75) & (times < 1.2)
    down = times > 1.7
    timing = step_times(built[STIFFENING].model)
    tets = np.flatnonzero(built[STIFFENING].fabric.young[1] > 0.7 * built[STIFFENING].fabric.young[1].max())
    young = stiffness_along(built[STIFFENING], poses, tets)
    left = float(np.mean([built[STIFFENING].model.positive_weights(p)[1] for p in poses[down]]))

    def row(what: str, mask: np.ndarray) -> Row:
        values = {name: 1e3 * float(np.sqrt((part[mask] ** 2).mean())) for name, part in jiggle.items()}
        return Row(what, "mm", values[STIFFENING], others={SAME: values[SAME]})

    rows = [
        row("biceps moves, flexed and held (RMS)", held),
        row("biceps moves, stretched again (RMS)", down),
        Row("Young's modulus of the biceps, flexed", "kPa", 1e-3 * float(young[held].mean())),
        Row("Young's modulus of the biceps, stretched", "kPa", 1e-3 * float(young[down].mean())),
        Row("step and surface", "ms", 1e3 * timing["with surface"], others={"PSSD, 8 threads": 0.87}),
    ]
    update(4, 4)
    return made(
        "pssd-12",
        "PSSD Figure 12: led by the hand, with a muscle that stiffens",
        _sheet(character, built[STIFFENING], poses, handle, moved[STIFFENING], young, jiggle),
        rows,
        "An arm led by its hand (green handle, inverse kinematics): thrown up, stopped, thrown down. Above: the "
        "flesh, red by Young's modulus, which is painted for two poses and mixed between them. Below: how much "
        f"the biceps moves off plain skinning. {_told(rows, left)}",
        alt=f"An arm led by its hand: flexed, the biceps that stiffens moves {rows[0].told()}, "
        f"that of one material {number(rows[0].others[SAME])} mm",
        value=STIFFENING,
        sizes={"arm": model_sizes(built[STIFFENING].model)},
    )


def _told(rows: Sequence[Row], left: float) -> str:
    """What the rows of the biceps say; `left`: the weight of the flexed pose when the arm is stretched."""
    flexed, stretched, firm, soft, *_ = rows
    parts = [
        f"{where} it moves {row.told()}, {100.0 * row.ours / row.others[SAME]:.0f} % of what it does with one material"
        for where, row in (("Flexed and stiff", flexed), ("stretched", stretched))
        if row.ours is not None
    ]
    return (
        f"{'; '.join(parts)}. It has {firm.told()} flexed and {soft.told()} stretched again, more than the "
        f"{1e-3 * PRESETS[SETTINGS.material.preset].young:g} kPa unpainted: where the hand comes back to, the flexed "
        f"pose still has {100.0 * left:.0f} % of the weights that mix the two materials."
    )


def parts_rig_positions(built: Built, p: np.ndarray) -> np.ndarray:
    """(n̄, 3) the surface by skinning alone."""
    return built.model.rig.positions(built.model.corrected(p))


def _sheet(
    character: Character,
    built: Built,
    poses: np.ndarray,
    handle: np.ndarray,
    moved: np.ndarray,
    young: np.ndarray,
    jiggle: dict[str, np.ndarray],
) -> np.ndarray:
    size = (290, 280)
    moments = [int(t * FPS) for t in (0.2, 0.5, 0.85, 1.75)]
    camera = framing([moved[i] for i in moments] + [handle], (0.05, 0.2, 1.0), size, margin=1.02)
    most = scale_end(float(built.fabric.young.max()))
    panels = []
    for i in moments:
        field = built.model.positive_weights(poses[i]) @ built.fabric.young
        near = _on_surface(built, field)
        mesh = Mesh(moved[i], character.triangles, wrong_colour(near, most))
        image = shot([mesh, ball(handle[i] + np.array([0.0, 0.0, 0.07]), 0.028, GREEN)], camera, size)
        panels.append(Panel(image, "", f"{i / FPS:.2f} s, biceps {1e-3 * young[i]:.0f} kPa"))
    times = np.arange(len(poses)) / FPS
    lines = [
        Line(STIFFENING, times, 1e3 * jiggle[STIFFENING], OURS),
        Line(SAME, times, 1e3 * jiggle[SAME], OTHER),
    ]
    chart = line_chart(lines, x_label="time, s", y_label="biceps moves, mm", size=(1180, 300))
    return sheet([panels, [key(wrong_colour, 1e-3 * most, "kPa, Young's modulus")], [Panel(chart)]])


def _on_surface(built: Built, field: np.ndarray) -> np.ndarray:
    """(n̄,) a field over the tets (e,) carried to the surface by the vertices' mean."""
    tets = built.model.tets
    count = np.bincount(tets.ravel(), minlength=len(built.model.vertices))
    mean = np.bincount(tets.ravel(), np.repeat(field, 4), minlength=len(count)) / np.maximum(count, 1)
    return np.einsum("na,na->n", built.model.embedding_weights, mean[built.model.embedding_nodes])
