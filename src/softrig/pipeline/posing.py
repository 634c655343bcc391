"""The poses of a model: which ones, how the tets follow the rig, and where they are at each pose (PSSD §3, §4.1)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from softrig.errors import InputError
from softrig.fem.embedding import Embedding
from softrig.fem.meshes import VolumeMesh
from softrig.io.caches import read_obj
from softrig.models.pose_space import PoseTable, TetRig, blended_rotations, fitted_matrices, polar_rotations
from softrig.pipeline.cache import Arrays, StageCache, content_hash, text_array, text_value
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.parallel import Progress, cached_each
from softrig.pipeline.rigging import Bones
from softrig.poses.fit import fit_tets
from softrig.poses.fitted_frames import FittedFrames, fitted_frames
from softrig.poses.selection import Pose, farthest_poses, pose_at, pose_of
from softrig.poses.tet_rig import bind_correction, carried, shepard, skinned, tet_skin
from softrig.project import GivenPose, Project
from softrig.rig.character import Character
from softrig.rig.corrections import Correction
from softrig.rig.pose_space import PoseSpaceRig, sculpted_correction, with_corrections
from softrig.rig.protocol import Rig

ROOT_SAMPLE = 32
"""Tet vertices whose motion tells how a rig without bones turns as a whole."""


@dataclass(frozen=True, eq=False)
class Posing:
    """m poses and the rest shape of the tets at each."""

    rig: Rig
    """The character's, with a morph more for every sculpt of the project."""
    corrective: tuple[tuple[str, int], ...]
    table: PoseTable
    tet_rig: TetRig
    bones: Bones | None
    positions: np.ndarray
    """(m, n, 3) metres: fitted rest shapes, root motion included."""
    bind: bool
    """Whether shapes turn with the bones, or the frames that stand for them; otherwise with the root."""
    reports: list[dict[str, float]]
    """Of each pose's fit."""
    frame_parents: np.ndarray = field(default_factory=lambda: np.full(1, -1))
    """(frames,) the frame above each in a hierarchy, −1: none."""

    @property
    def frame_weights(self) -> csr_array:
        """(n, frames): which frames turn a vertex' shapes."""
        if self.bind:
            assert self.tet_rig.weights is not None
            return self.tet_rig.weights
        return csr_array(np.ones((len(self.positions[0]), 1)))

    def frames(self, p: np.ndarray, vertices: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """(frames, 3, 3) rotations at parameters p (P,)."""
        if self.tet_rig.kind == "skin":
            rotations = polar_rotations(self.matrices(p)[:, :3, :3])
            return rotations if self.bind else rotations[self.tet_rig.root_bone][None]
        sample = self.tet_rig.root_sample
        arms = mass[sample, None] * (vertices[sample] - np.average(vertices[sample], axis=0, weights=mass[sample]))
        places = self.carried_by_black_box(p, vertices, sample)
        return polar_rotations(np.einsum("sk,sl->kl", places, arms))[None]

    def matrices(self, p: np.ndarray) -> np.ndarray:
        """(B, 4, 4) of the bones, or of the frames that stand for them, at parameters p (P,); identities at rest."""
        if self.bones is not None:
            return self.bones.matrices(p)
        fit, sample = self.tet_rig.frame_fit, self.tet_rig.frame_sample
        assert fit is not None
        assert sample is not None
        whole = np.tile(np.eye(4), (len(fit), 1, 1))
        whole[:, :3] = fitted_matrices(fit, self._uncorrected.positions(p, sample))
        return whole

    def vertex_rotations(self, p: np.ndarray, vertices: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """(n, 3, 3) R_v at parameters p (P,)."""
        return blended_rotations(self.frame_weights, self.frames(p, vertices, mass))

    def carried_by_black_box(self, p: np.ndarray, vertices: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """(n, 3) tets of a black box at p, without corrections, metres, or (len(chosen), 3) of some."""
        if self.tet_rig.weights is not None:
            every = skinned(self.tet_rig.weights, self.matrices(p), vertices)
            return every if chosen is None else every[chosen]
        weights = self.tet_rig.shepard_weights
        assert weights is not None
        if chosen is None:
            used, nodes, rest = self._carrying
        else:
            used, nodes, rest = self._carrying_of(chosen)
            vertices, weights = vertices[chosen], weights[chosen]
        return carried(vertices, nodes, weights, self._uncorrected.positions(p, used) - rest)

    @cached_property
    def _uncorrected(self) -> PoseSpaceRig:
        """The surface with its own correctives, without those of the tets."""
        return PoseSpaceRig(self.rig, self.corrective, self.table.parameters, ignored=_morphs(self.rig))

    @cached_property
    def _carrying(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._carrying_of(np.arange(len(self.positions[0])))

    def _carrying_of(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Surface vertices that carry tets (k,), which of them carry each chosen one (c, 4), and their rest places."""
        nodes = self.tet_rig.shepard_nodes
        assert nodes is not None
        used, places = np.unique(nodes[chosen], return_inverse=True)
        rest = self._uncorrected.positions(self.rig.parameters.rest, used)
        return used, places.reshape(-1, nodes.shape[1]), rest


@dataclass(frozen=True, eq=False)
class Choice:
    """Which m poses, and the rig with a morph more for every sculpt: all that is known of them without tets."""

    names: tuple[str, ...]
    parameters: np.ndarray
    """(m, P)."""
    rig: Rig
    corrective: tuple[tuple[str, int], ...]


def choose_poses(character: Character, project: Project, folder: Path | None = None) -> Choice:
    """The poses of a project; one that the character does not have is refused. `folder`: where sculpts lie."""
    names, parameters = chosen_poses(character, project)
    rig, corrective = _with_sculpts(character, project, names, parameters, folder)
    return Choice(names, _widened(character.rig, rig, parameters), rig, corrective)


def pose_character(
    character: Character,
    flesh: Flesh,
    project: Project,
    cache: StageCache,
    *,
    bones: Bones | None,
    choice: Choice | None = None,
    folder: Path | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Posing:
    """Fit the tets to the surface at each pose of `choice`, by default those of `choose_poses`."""
    choice = choice or choose_poses(character, project, folder)
    names, parameters, rig, corrective = choice.names, choice.parameters, choice.rig, choice.corrective
    table = pose_table(rig, names, parameters)
    surface = PoseSpaceRig(rig, corrective, parameters, ignored=_morphs(rig))
    targets = np.stack([surface.positions(p)[flesh.soft_vertices] for p in parameters])
    bind = project.basis.interpolation != "world"
    frames = fitted_frames_of(character, flesh) if bind and bones is None else None
    base = _tet_rig(character, flesh, bones, frames, len(names))
    parents = _frame_parents(bones, frames, bind)
    posing = Posing(rig, corrective, table, base, bones, np.zeros((0, 0, 3)), bind, [], parents)
    starts = np.stack([_start(posing, surface, p, flesh.mesh.vertices) for p in parameters])
    areas = character.areas[flesh.soft_vertices]
    tasks = [
        FitTask(flesh.mesh, flesh.soft_embedding, areas, *pair) for pair in zip(targets[1:], starts[1:], strict=True)
    ]
    fits = cached_each(cache, "fit", [task.key() for task in tasks], fit_pose, tasks, jobs, progress)
    positions = np.stack([starts[0], *(fit["positions"] for fit in fits)])  # at rest the tets are where they were made
    reports = [{}, *(text_value(fit["report"]) for fit in fits)]
    return _with_tet_corrections(replace(posing, positions=positions, reports=reports), flesh, starts)


def chosen_poses(character: Character, project: Project) -> tuple[tuple[str, ...], np.ndarray]:
    """Names and parameters (m, P): the rest pose, those given, and others from the clips, far from each other.

    With `poses.corrections`, the poses that the character's own correctives belong to come right after the given ones.
    """
    settings = project.poses
    clips = character.clips if settings.clips is None else tuple(character.clip(name) for name in settings.clips)
    given = [Pose(_pose_name(pose, index), _given(character, pose)) for index, pose in enumerate(settings.given)]
    repeated = sorted({pose.name for pose in given if [other.name for other in given].count(pose.name) > 1})
    if repeated:
        raise InputError(f"given poses of the same name: {', '.join(repeated)}; name them apart")
    if settings.corrections:
        given += [Pose(correction.name, correction.pose) for correction in character.corrections]
    count = max(settings.count, 1 + len(given))
    return farthest_poses(character.rig, clips, count, given=given, ignored=_morphs(character.rig))


def _morphs(rig: Rig) -> list[str]:
    """Parameters that are no pose: correctives follow from the pose, faces move no tets."""
    return [name for name in rig.parameters.names if name.endswith(".weight")]


def pose_table(rig: Rig, names: tuple[str, ...], parameters: np.ndarray) -> PoseTable:
    """The poses in feature space; morph weights do not count."""
    features = rig.pose_features  # type: ignore[attr-defined]
    morphs = set(_morphs(rig))
    weights = features.weights * np.array([name not in morphs for name in features.names])
    return PoseTable(names, parameters, weights * features.raw(parameters), weights)


def _given(character: Character, pose: GivenPose) -> np.ndarray:
    if pose.clip is not None:
        return pose_at(character.clip(pose.clip), pose.time).parameters
    return pose_of(character.rig.parameters, pose.parameters, "").parameters


def _pose_name(pose: GivenPose, index: int) -> str:
    if pose.name is not None:
        return pose.name
    return f"{pose.clip} @ {pose.time:.2f} s" if pose.clip else f"given {index}"


def _with_sculpts(
    character: Character, project: Project, names: tuple[str, ...], parameters: np.ndarray, folder: Path | None
) -> tuple[Rig, tuple[tuple[str, int], ...]]:
    """The rig with a corrective morph for every sculpted OBJ, and which pose each belongs to."""
    rig: Rig = character.rig
    deltas, titles = [], []
    corrective: list[tuple[str, int]] = []
    for index, pose in enumerate(project.poses.given):
        if pose.sculpt is None:
            continue
        place = 1 + index  # the rest pose is the first
        positions = project.metres_per_unit * read_obj(_beside(folder, pose.sculpt))[0].astype(np.float64)
        deltas.append(sculpted_correction(rig, parameters[place], positions))  # type: ignore[arg-type]
        titles.append(f"sculpt.{names[place]}")
        corrective.append((f"sculpt.{names[place]}.weight", place))
    if project.poses.corrections:
        first = 1 + len(project.poses.given)
        for index, correction in enumerate(character.corrections):
            corrective += [(name, first + index) for name in _correction_weights(character, correction)]
    if not deltas:
        return rig, tuple(corrective)
    return with_corrections(rig, np.stack(deltas), titles), tuple(corrective)  # type: ignore[arg-type]


def _correction_weights(character: Character, correction: Correction) -> list[str]:
    """The morph weights that a correction switches on at its pose."""
    names = correction.weights or (f"{correction.name}.weight",)
    return [name for name in names if name in character.rig.parameters.names]


def _beside(folder: Path | None, name: str) -> Path:
    """The file called `name` beside the project file, and nowhere else."""
    if folder is None:
        raise InputError(f"sculpt '{name}': sculpts are looked for beside the project file, and there is none")
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f"sculpt '{name}' lies outside the project's folder")
    return path


def _widened(old: Rig, new: Rig, parameters: np.ndarray) -> np.ndarray:
    """(m, P') the poses of a rig that got more morphs."""
    if old is new:
        return parameters
    wide = np.tile(new.parameters.rest, (len(parameters), 1))
    wide[:, [new.parameters.index(name) for name in old.parameters.names]] = parameters
    return wide


def fitted_frames_of(character: Character, flesh: Flesh) -> FittedFrames:
    """Frames that stand for the bones of a character without any."""
    rest = character.rest_positions[flesh.soft_vertices]
    return fitted_frames(flesh.mesh, flesh.soft_embedding, flesh.soft_vertices, rest)


def _frame_parents(bones: Bones | None, frames: FittedFrames | None, bind: bool) -> np.ndarray:
    if not bind:
        return np.full(1, -1)
    known = bones if bones is not None else frames
    assert known is not None
    return known.parents


def _tet_rig(
    character: Character, flesh: Flesh, bones: Bones | None, frames: FittedFrames | None, poses: int
) -> TetRig:
    """How tets follow, not yet corrected."""
    rest = character.rest_positions[flesh.soft_vertices]
    nothing = np.zeros((poses, *flesh.mesh.vertices.shape))
    if bones is not None:
        table = bones.table[flesh.soft_vertices]
        weights = tet_skin(flesh.mesh.vertices, rest, table, tets=flesh.mesh.elements)
        return TetRig("skin", weights, None, None, nothing, bones.root)
    if frames is not None:
        none = np.zeros(0, np.int32)
        return TetRig("skin", frames.weights, None, None, nothing, frames.root, none, frames.sample, frames.fit)
    nodes, weights = shepard(flesh.mesh.vertices, rest)
    sample = farthest_vertices(flesh.mesh.vertices, ROOT_SAMPLE)
    return TetRig("black-box", None, flesh.soft_vertices[nodes].astype(np.int32), weights, nothing, 0, sample)


def farthest_vertices(points: np.ndarray, count: int) -> np.ndarray:
    """(≤ count,) int32 points, each the farthest from those before it; the first is the farthest from the centre."""
    distances = np.linalg.norm(points - points.mean(axis=0), axis=1)
    chosen = [int(distances.argmax())]
    nearest = np.full(len(points), np.inf)
    while len(chosen) < min(count, len(points)):
        nearest = np.minimum(nearest, np.linalg.norm(points - points[chosen[-1]], axis=1))
        chosen.append(int(nearest.argmax()))
    return np.array(chosen, np.int32)


def _start(posing: Posing, surface: PoseSpaceRig, p: np.ndarray, X: np.ndarray) -> np.ndarray:
    tet_rig = posing.tet_rig
    if tet_rig.weights is not None:
        return skinned(tet_rig.weights, posing.matrices(p), X)
    assert tet_rig.shepard_nodes is not None
    assert tet_rig.shepard_weights is not None
    moved = surface.positions(p) - surface.positions(surface.parameters.rest)
    return carried(X, tet_rig.shepard_nodes, tet_rig.shepard_weights, moved)


@dataclass(frozen=True, eq=False)
class FitTask:
    """What the fit of one pose follows from; sent to a worker."""

    mesh: VolumeMesh
    embedding: Embedding
    areas: np.ndarray
    target: np.ndarray
    start: np.ndarray

    def key(self) -> str:
        """A hash of all of it."""
        mesh, hung = self.mesh, self.embedding
        parts = (mesh.vertices, mesh.elements, hung.nodes, hung.weights, self.areas, self.target, self.start)
        return content_hash(*parts)


def fit_pose(task: FitTask) -> Arrays:
    """The fitted tets of one pose (n, 3), and how well they fit."""
    with warnings.catch_warnings(record=True):
        report = fit_tets(task.mesh, task.embedding, task.target, task.start, surface_weights=task.areas)
    told = {
        "error": report.error,
        "start error": report.start_error,
        "inverted": float(len(report.inverted)),
        "thinnest": report.thinnest,
        "raised": float((report.raised > 1.0).sum()),
    }
    return {"positions": report.positions, "report": text_array(told)}


def _with_tet_corrections(posing: Posing, flesh: Flesh, starts: np.ndarray) -> Posing:
    """Corrections δ (m, n, 3) that take the plainly carried tets to the fitted ones, and what they then really are."""
    X = flesh.mesh.vertices
    corrections, reached = np.zeros_like(starts), posing.positions.copy()
    for i, p in enumerate(posing.table.parameters):
        if posing.tet_rig.weights is not None:
            matrices = posing.matrices(p)
            with warnings.catch_warnings(record=True):
                corrections[i] = bind_correction(posing.tet_rig.weights, matrices, X, posing.positions[i])
            reached[i] = skinned(posing.tet_rig.weights, matrices, X + corrections[i])
        else:
            turn = posing.frames(p, X, flesh.unit_mass)[0]
            corrections[i] = (posing.positions[i] - starts[i]) @ turn
    tet_rig = replace(posing.tet_rig, corrections=corrections)
    return replace(posing, tet_rig=tet_rig, positions=reached)
