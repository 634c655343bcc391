"""PSSD Figure 5: a bent elbow whose flesh may not enter itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from softrig.bench.record import Row, model_sizes
from softrig.characters import built_in
from softrig.console import Update
from softrig.fem.meshes import VolumeMesh
from softrig.figures.chart import OTHER, OURS, THIRD, Line, line_chart
from softrig.figures.figure import Figure, made
from softrig.figures.look import framing, heat, lengths, shot
from softrig.figures.sheet import Panel, sheet
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.compare import RATE, default_damping, reduced_trajectory
from softrig.poses.contact import self_contacts
from softrig.project import Project
from softrig.render import Mesh
from softrig.rig.character import Character

FPS = 60.0
SECONDS = 0.8
EVERY = 8
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

NAMES = {"none": "no contact", "springs": "springs", "constraints": "constraints"}


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
    contacts: int
    poses: np.ndarray
    moved: dict[str, np.ndarray]
    over: dict[str, list[Overlap]]
    into: dict[str, float]
    still: Overlap
    """Of the pose itself."""


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
    turns = [_shoulder(parts, q) @ first.T for q in inner_poses(poses, len(rest))]
    into = {
        name: into_contact(
            contacts.normals, np.stack([u[contacts.vertices] @ R for u, R in zip(field, turns, strict=True)])
        )
        for name, field in moved.items()
    }
    still = overlap(mesh, rest[0], rest[0][crook].mean(axis=0))
    return Study(parts.model, len(contacts), poses, moved, over, into, still)


def contact_of_an_elbow(update: Update) -> Figure:
    """PSSD Fig. 5: penetration with and without contact in the basis."""
    character = built_in("arm")
    studies = {}
    with TemporaryDirectory() as folder:
        for done, (name, time) in enumerate(BENDS.items()):
            studies[name] = studied(character, time, Path(folder))
            update(done + 1, len(BENDS) + 1)
    rows = [row for name, study in studies.items() for row in _rows(name, study)]
    far = studies["bent far"]
    worse = [
        f"{way} when {name}"
        for name, study in studies.items()
        for way in ("springs", "constraints")
        if _added(study, way) > _added(study, "none")
    ]
    told = f" They do not help everywhere: more overlap than without contact with {', '.join(worse)}." if worse else ""
    return made(
        "pssd-5",
        "PSSD Figure 5: contact in the basis",
        sheet([_pictures(far), [Panel(_chart(study), name) for name, study in studies.items()]]),
        rows,
        "An arm with the elbow bent, thrown up and down from the shoulder; forearm and upper arm touch. Above: bent "
        "far, at the moment when the flesh without contact is deepest in itself, coloured by how far it moved "
        "(yellow: 30 mm). Below: the volume that is inside twice, at two bends. Constraints take the motion of "
        "touching vertices along the normal out of the basis of that pose, springs resist it in the one basis that "
        f"serves all poses (the default).{told}",
        remark="The rig itself folds the flesh into itself before anything moves: "
        + ", ".join(f"{name} {1e6 * s.still.volume:.0f} ml with {s.contacts} contacts" for name, s in studies.items())
        + ". Contact in the basis may keep that from growing; it does not undo it.",
        sizes={"arm": model_sizes(far.model)},
    )


def _added(study: Study, way: str) -> float:
    """Millilitres that the motion adds to the overlap of the pose, at most."""
    return max(0.0, 1e6 * (max(o.volume for o in study.over[way]) - study.still.volume))


def _rows(name: str, study: Study) -> list[Row]:
    def row(what: str, unit: str, values: dict[str, float]) -> Row:
        others = {NAMES[way]: values[way] for way in ("springs", "none")}
        return Row(f"{name}: {what}", unit, values["constraints"], others=others)

    deepest = {way: 1e3 * (max(o.depth for o in found) - study.still.depth) for way, found in study.over.items()}
    return [
        row("touching vertices move into what they touch by", "mm", {way: 1e3 * v for way, v in study.into.items()}),
        row("added depth", "mm", {way: max(0.0, value) for way, value in deepest.items()}),
        row("added overlap", "ml", {way: _added(study, way) for way in NAMES}),
    ]


def _pictures(study: Study) -> list[Panel]:
    size = (380, 290)
    worst = int(np.argmax([o.volume for o in study.over["none"]])) * EVERY
    model = study.model
    plain = model.rig.positions(model.corrected(inner_poses(study.poses, len(study.moved["none"]))[worst]))
    near = np.linalg.norm(model.rig.positions(model.rig.parameters.rest) - CROOK, axis=1) < 0.2
    camera = framing([plain[near]], (0.1, 0.12, 1.0), size, margin=1.0)
    panels = []
    for way, heading in NAMES.items():
        u, found = study.moved[way][worst], study.over[way][worst // EVERY]
        drawn = np.einsum("na,nak->nk", model.embedding_weights, u[model.embedding_nodes])
        image = shot([Mesh(plain + drawn, model.triangles, heat(lengths(drawn), 0.03))], camera, size)
        panels.append(Panel(image, heading, f"{1e3 * found.depth:.1f} mm deep, {1e6 * found.volume:.0f} ml"))
    return panels


def _chart(study: Study) -> np.ndarray:
    times = np.arange(len(study.over["none"])) * EVERY / RATE
    colours = {"none": OTHER, "springs": THIRD, "constraints": OURS}
    lines = [
        Line(NAMES[way], times, np.array([1e6 * o.volume for o in study.over[way]]), colours[way]) for way in NAMES
    ]
    return line_chart(lines, x_label="time, s", y_label="overlap, ml", size=(580, 320))


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
