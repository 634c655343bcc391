"""PSSD Figure 5: a bent elbow whose flesh may not enter itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from softrig.bench.record import Row, model_sizes, number
from softrig.characters import built_in
from softrig.console import Update
from softrig.fem.meshes import VolumeMesh
from softrig.figures.chart import OTHER, OURS, THIRD, TRUTH, Line, line_chart
from softrig.figures.figure import Figure, made
from softrig.figures.sheet import Panel, sheet, swatches
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.compare import RATE, default_damping, reduced_trajectory
from softrig.poses.contact import self_contacts
from softrig.project import Project
from softrig.rig.character import Character

FPS = 60.0
SECONDS = 0.8
EVERY = 4
"""Inner steps a measured frame."""
GRID, REACH = 0.005, 0.10
"""Metres: the grid on which overlaps are measured, and how far around the crook of the elbow."""
CROOK = np.array([0.295, 0.04, 0.0])
BENDS = {"bent a little": 0.62, "bent far": 0.8}
"""Seconds of the clip 'bend': where flesh begins to touch, and where much of it does."""
SETTINGS = Project().changed(
    mesh={"tets": 6500},
    basis={"modes": 40, "regions": 3, "rehearsal": 0.0},
    poses={"count": 2},
    material={"preset": "fat"},
)
WAYS: dict[str, dict[str, Any]] = {
    "none": {"contact": False},
    "springs": {"contact": True, "between_poses": "pooled"},
    "constraints": {"contact": True, "between_poses": "interpolated"},
}

NAMES = {"none": "no contact", "springs": "springs (default)", "constraints": "constraints"}
CUT = {
    "flesh": (214, 206, 196),
    "overlap of the pose itself": (240, 168, 150),
    "overlap that motion adds": (196, 30, 24),
    "overlap that it takes away": (70, 120, 190),
}
"""Colours of a cut by what they mean."""


@dataclass(frozen=True)
class Overlap:
    """How far the flesh is inside itself."""

    depth: float
    """Deepest, metres."""
    volume: float
    """Cubic metres."""


def overlap(mesh: VolumeMesh, places: np.ndarray, centre: np.ndarray, *, reach: float = REACH) -> Overlap:
    """Where the body at `places` (n, 3) is inside itself, within `reach` of `centre` (3,), metres.

    Points that its boundary winds around twice, on a grid of `GRID`; depth: the farthest of them from the surface.
    """
    import igl

    ticks = [np.arange(middle - reach, middle + reach, GRID) for middle in centre]
    points = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, 3)
    faces = np.ascontiguousarray(mesh.boundary_triangles, dtype=np.int64)
    twice = points[igl.fast_winding_number(places, faces, points) > 1.5]
    if not len(twice):
        return Overlap(0.0, 0.0)
    squares = igl.point_mesh_squared_distance(twice, places, faces)[0]
    return Overlap(float(np.sqrt(squares.max())), GRID**3 * len(twice))


def shaken(character: Character, pose: np.ndarray, seconds: float, size: float = 0.22) -> np.ndarray:
    """(f, P) at 60 a second: the pose held, the whole arm thrown up and down from the shoulder."""
    skeleton = next(stage.skeleton for stage in character.rig.stages if hasattr(stage, "skeleton"))  # type: ignore[attr-defined]
    start = len(character.rig.parameters) - len(skeleton.parameters)
    where = start + skeleton.rotation(skeleton.names.index("Shoulder")).start
    times = np.arange(round(seconds * FPS) + 1) / FPS
    angle = size * np.sin(2.0 * np.pi * 3.0 * times) * np.minimum(1.0, times / 0.15)
    poses = np.repeat(pose[None], len(times), axis=0)
    turn = np.stack([np.zeros_like(angle), np.zeros_like(angle), np.sin(0.5 * angle), np.cos(0.5 * angle)], axis=1)
    poses[:, where : where + 4] = turn
    return poses


def trajectories(built: dict[str, Built], poses: np.ndarray) -> dict[str, np.ndarray]:
    """(steps, n, 3) displacements of each way."""
    return {
        name: reduced_trajectory(parts.model, poses, FPS, damping=default_damping(parts))
        for name, parts in built.items()
    }


def into_contact(normals: np.ndarray, moved: np.ndarray) -> float:
    """Metres: the farthest that contact vertices go against their normals (c, 3), by `moved` (f, c, 3)."""
    return float(np.maximum(-np.einsum("fcx,cx->fc", moved, normals), 0.0).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Study:
    """One bend of the elbow: how each way moved, and what overlapped."""

    model: PoseSpaceModel
    mesh: VolumeMesh
    contacts: int
    rest: np.ndarray
    """(steps, n, 3) metres: where the rig alone has the tet vertices."""
    turns: np.ndarray
    """(steps, 3, 3) how the whole arm turned from the first step on."""
    moved: dict[str, np.ndarray]
    """(steps, n, 3) metres, by way."""
    over: dict[str, list[Overlap]]
    """Every `EVERY` steps, by way."""
    into: dict[str, float]
    still: Overlap
    """Of the pose itself."""

    def worst(self, way: str) -> int:
        """The step at which most of the flesh is inside itself."""
        return EVERY * int(np.argmax([o.volume for o in self.over[way]]))

    def unturned(self, places: np.ndarray, step: int) -> np.ndarray:
        """(n, 3) metres: places at a step, the turn of the whole arm taken out."""
        return (places - self.rest[step].mean(axis=0)) @ self.turns[step] + self.rest[0].mean(axis=0)


def studied(character: Character, time: float, folder: Path) -> Study:
    """The arm held as the clip has it at `time`, s, and shaken, with each way of contact."""
    given = ({"name": "flexed", "clip": "bend", "time": time},)
    project = SETTINGS.changed(poses={"given": given})
    built = {
        name: build_parts(character, project.changed(basis=way), cache=folder, jobs=1) for name, way in WAYS.items()
    }
    parts = built["constraints"]
    mesh, p = parts.flesh.mesh, parts.model.poses.parameters[1]
    poses = shaken(character, p, SECONDS)
    moved = trajectories(built, poses)
    rest = rest_shapes(parts, poses, len(moved["none"]))
    crook = np.linalg.norm(mesh.vertices - CROOK, axis=1) < 0.03
    over = {
        name: [overlap(mesh, x + u, x[crook].mean(axis=0)) for x, u in zip(rest[::EVERY], field[::EVERY], strict=True)]
        for name, field in moved.items()
    }
    contacts = self_contacts(mesh, parts.posing.positions[1], mesh.vertices)
    first = _shoulder(parts, p)
    turns = np.stack([_shoulder(parts, q) @ first.T for q in inner_poses(poses, len(rest))])
    into = {
        name: into_contact(
            contacts.normals, np.stack([u[contacts.vertices] @ R for u, R in zip(field, turns, strict=True)])
        )
        for name, field in moved.items()
    }
    still = overlap(mesh, rest[0], rest[0][crook].mean(axis=0))
    return Study(parts.model, mesh, len(contacts), rest, turns, moved, over, into, still)


def contact_of_an_elbow(update: Update) -> Figure:
    """PSSD Fig. 5: penetration with and without contact in the basis."""
    character = built_in("arm")
    studies = {}
    with TemporaryDirectory() as folder:
        for done, (name, time) in enumerate(BENDS.items()):
            studies[name] = studied(character, time, Path(folder))
            update(done + 1, len(BENDS) + 1)
    rows = [row for name, study in studies.items() for row in _rows(name, study)]
    return made(
        "pssd-5",
        "PSSD Figure 5: contact in the basis",
        sheet([*(_pictures(name, study) for name, study in studies.items()), [swatches(CUT)], _charts(studies)]),
        rows,
        "An arm with the elbow bent, thrown up and down from the shoulder; forearm and upper arm touch. Above: cuts "
        "along the arm through the crook of the elbow, each at the moment when most of the flesh is inside itself. "
        "Below: the volume that is inside twice, over that of the pose itself. Constraints take the motion of touching "
        "vertices along the normal out of the basis of that pose, springs resist it in the one basis that serves all "
        f"poses (the default). {' '.join(_told(name, study) for name, study in studies.items())}",
        alt=_alt(studies["bent far"]),
        value=NAMES["springs"],
        remark="The rig itself folds the flesh into itself before anything moves: "
        + ", ".join(f"{name} {1e6 * s.still.volume:.0f} ml with {s.contacts} contacts" for name, s in studies.items())
        + ". Contact in the basis may keep that from growing; it does not undo it.",
        sizes={"arm": model_sizes(studies["bent far"].model)},
    )


def _added(study: Study, way: str) -> float:
    """Millilitres that the motion adds to the overlap of the pose, at most."""
    return max(0.0, 1e6 * (max(o.volume for o in study.over[way]) - study.still.volume))


def _deepened(study: Study, way: str) -> float:
    """Millimetres that the motion adds to the depth of the overlap of the pose, at most."""
    return max(0.0, 1e3 * (max(o.depth for o in study.over[way]) - study.still.depth))


def _told(name: str, study: Study) -> str:
    """What contact does to overlap and depth at one bend, against no contact."""
    parts = []
    for what, unit, measure in (("overlap", "ml", _added), ("depth", "mm", _deepened)):
        none = measure(study, "none")
        found = {way: measure(study, way) for way in ("springs", "constraints")}
        less = [way for way, value in found.items() if value < none]
        who = {0: "both springs and constraints add more", 2: "both springs and constraints add less"}.get(
            len(less), f"only {less[0]} add less" if less else ""
        )
        values = " and ".join(number(value) for value in found.values())
        parts.append(f"{who} {what} than no contact ({values} against {number(none)} {unit})")
    return f"When the elbow is {name}, {'; '.join(parts)}."


def _alt(study: Study) -> str:
    values = {way: number(_added(study, way)) for way in NAMES}
    return (
        f"Cuts through a bent elbow: motion adds {values['none']} ml of overlap without contact, "
        f"{values['springs']} ml with springs, {values['constraints']} ml with constraints"
    )


def _rows(name: str, study: Study) -> list[Row]:
    def row(what: str, unit: str, values: dict[str, float]) -> Row:
        others = {NAMES[way]: values[way] for way in ("constraints", "none")}
        return Row(f"{name}: {what}", unit, values["springs"], others=others)

    return [
        row("touching vertices move into what they touch by", "mm", {way: 1e3 * v for way, v in study.into.items()}),
        row("added depth", "mm", {way: _deepened(study, way) for way in NAMES}),
        row("added overlap", "ml", {way: _added(study, way) for way in NAMES}),
    ]


def cut(mesh: VolumeMesh, places: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(k,) how many times the boundary of the body at `places` (n, 3) winds around points (k, 3)."""
    import igl

    faces = np.ascontiguousarray(mesh.boundary_triangles, dtype=np.int64)
    return np.rint(igl.fast_winding_number(np.ascontiguousarray(places), faces, points)).astype(int)


def _pictures(name: str, study: Study) -> list[Panel]:
    size, fine = (380, 260), 2
    crook = study.rest[0][np.linalg.norm(study.mesh.vertices - CROOK, axis=1) < 0.03].mean(axis=0)
    width = 0.26
    across = crook[0] + width * (np.arange(fine * size[0]) / (fine * size[0]) - 0.5)
    upward = crook[1] - width * size[1] / size[0] * (np.arange(fine * size[1]) / (fine * size[1]) - 0.5)
    x, y = np.meshgrid(across, upward)
    points = np.stack([x, y, np.full_like(x, crook[2])], axis=-1).reshape(-1, 3)
    before = cut(study.mesh, study.rest[0], points)
    panels = []
    for way, heading in NAMES.items():
        step = study.worst(way)
        now = cut(study.mesh, study.unturned(study.rest[step] + study.moved[way][step], step), points)
        image = np.full((len(points), 3), 255.0)
        parts = (now == 1, (now > 1) & (before > 1), (now > 1) & (before < 2), (now < 2) & (before > 1))
        for part, colour in zip(parts, CUT.values(), strict=True):
            image[part] = colour
        shown = image.reshape(size[1], fine, size[0], fine, 3).mean(axis=(1, 3))
        found = study.over[way][step // EVERY]
        note = f"at {(step + 1) / RATE:.2f} s: {1e3 * found.depth:.1f} mm deep, {1e6 * found.volume:.0f} ml"
        panels.append(Panel(np.rint(shown).astype(np.uint8), f"{name},\n{heading}", note))
    return panels


def _charts(studies: dict[str, Study]) -> list[Panel]:
    colours = {"none": OTHER, "springs": OURS, "constraints": THIRD}
    over = {
        name: {way: 1e6 * (np.array([o.volume for o in found]) - s.still.volume) for way, found in s.over.items()}
        for name, s in studies.items()
    }
    values = np.concatenate([curve for curves in over.values() for curve in curves.values()])
    panels = []
    for name, curves in over.items():
        times = (np.arange(len(curves["none"])) * EVERY + 1) / RATE
        lines = [Line("the pose itself", times, np.zeros_like(times), TRUTH, width=1.4)]
        lines += [Line(NAMES[way], times, curves[way], colours[way]) for way in NAMES]
        chart = line_chart(
            lines,
            x_label="time, s",
            y_label="overlap over the pose's, ml",
            size=(580, 350),
            y_range=(float(values.min()), float(values.max())),
        )
        panels.append(Panel(chart, f"{name}: the pose itself has {1e6 * studies[name].still.volume:.0f} ml"))
    return panels


def _shoulder(parts: Built, p: np.ndarray) -> np.ndarray:
    """(3, 3) how the root turned: contacts and their normals turn with it."""
    return parts.model.frame_rotations(p)[parts.model.tet_rig.root_bone]


def inner_poses(poses: np.ndarray, steps: int) -> np.ndarray:
    """(steps, P) poses at the inner steps."""
    times = np.arange(1, steps + 1) / RATE * FPS
    low = np.minimum(times.astype(int), len(poses) - 2)
    share = (times - low)[:, None]
    return (1.0 - share) * poses[low] + share * poses[low + 1]


def rest_shapes(parts: Built, poses: np.ndarray, steps: int) -> np.ndarray:
    """(steps, n, 3) where the rig alone carries the tets at the inner steps."""
    return np.stack([parts.model.tet_rest(q) for q in inner_poses(poses, steps)])
