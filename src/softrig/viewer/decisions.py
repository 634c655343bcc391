"""What is decided while looking, put into the project: captured poses, handles of regions, poses that must stay."""

from __future__ import annotations

import numpy as np

from softrig.errors import InputError, require_indices
from softrig.models.pose_space import PoseSpaceModel
from softrig.poses.selection import REST, pose_of
from softrig.project import GivenPose, HandleSettings, Project
from softrig.rig.parameters import Parameters

SAME = 1e-6
"""Parameters nearer to rest than this, lengths in character sizes, are at rest."""
TOO_NEAR = 1e-4
"""Of the largest distance of a pose from rest: a pose this near to another one is the same pose."""
LONGEST_NAME = 80
MOST_POSES = 64


def captured(project: Project, model: PoseSpaceModel, pose: np.ndarray, name: str) -> Project:
    """`project` with the pose (P,) as one of its training poses; an older one of that name is replaced.

    There is one pose more than before: those chosen from the clips stay.
    """
    name = _checked_name(name, "pose")
    if name == REST:
        raise InputError(f"'{REST}' is the name of the rest pose: choose another")
    given = [other for other in project.poses.given if other.name != name]
    replaced = len(given) < len(project.poses.given)
    if 1 + len(given) >= MOST_POSES:
        raise InputError(f"{MOST_POSES} poses are the most; remove one first")
    values = pose_parameters(model, pose)
    if not values:
        raise InputError("this is the rest pose, which every model has")
    _require_new(model, pose, given)
    count = project.poses.count if replaced else min(project.poses.count + 1, MOST_POSES)
    return _with_poses(project, [*given, GivenPose(name=name, parameters=values)], count)


def without_pose(project: Project, name: str) -> Project:
    """`project` without the given pose called `name` and what it said about its material."""
    given = [pose for pose in project.poses.given if pose.name != name]
    if len(given) == len(project.poses.given):
        known = ", ".join(f"'{pose.name}'" for pose in project.poses.given if pose.name) or "none"
        raise InputError(f"no captured pose is called '{name}'; there are: {known}")
    changed = _with_poses(project, given, max(project.poses.count - 1, 1))
    materials = changed.model_dump()["material"]["poses"]
    materials.pop(name, None)
    return changed.changed(material={"poses": materials})


def pinned(project: Project, model: PoseSpaceModel, names: set[str]) -> Project:
    """`project` with the poses called `names`, as far as they were chosen from the clips, given by their parameters.

    What is said about a pose by its name must not lose it when the next build would choose other poses.
    """
    given = list(project.poses.given)
    known = {pose.name for pose in given} | {REST}
    for index, name in enumerate(model.poses.names):
        values = pose_parameters(model, model.poses.parameters[index])
        if name in names and name not in known and values:
            given.append(GivenPose(name=name, parameters=values))
    return _with_poses(project, given, project.poses.count) if len(given) > len(project.poses.given) else project


def with_handle(project: Project, name: str, point: np.ndarray) -> Project:
    """`project` with a region of that name around a point (3,), metres at rest; an older one is replaced."""
    name = _checked_name(name, "handle")
    place = np.asarray(point, np.float64)
    if place.shape != (3,) or not np.isfinite(place).all():
        raise InputError(f"a handle is a point of three coordinates, not {point}")
    handles = [handle for handle in project.basis.handles if handle.name != name]
    x, y, z = (_rounded(number) for number in place)
    handles.append(HandleSettings(name=name, point=(x, y, z)))
    return project.changed(basis={"handles": [handle.model_dump() for handle in handles]})


def handle_at(project: Project, name: str, rest: np.ndarray, vertex: int) -> Project:
    """As `with_handle`, at a vertex of the surface, whose vertices rest at (n, 3), metres."""
    index = int(require_indices([vertex], len(rest), "surface vertices")[0])
    return with_handle(project, name, rest[index])


def without_handle(project: Project, name: str) -> Project:
    """`project` without the handle called `name`."""
    handles = [handle for handle in project.basis.handles if handle.name != name]
    if len(handles) == len(project.basis.handles):
        known = ", ".join(f"'{handle.name}'" for handle in project.basis.handles) or "none"
        raise InputError(f"no handle is called '{name}'; there are: {known}")
    return project.changed(basis={"handles": [handle.model_dump() for handle in handles]})


def pose_parameters(model: PoseSpaceModel, pose: np.ndarray) -> dict[str, float]:
    """By name, what a pose (P,) has that rest has not; morph weights are no pose.

    Of a rotation all four numbers, on rest's side of the two that mean the same.
    """
    parameters = model.rig.parameters
    p = parameters.normalised(parameters.checked(np.asarray(pose)))
    if not np.isfinite(p).all():
        raise InputError("the pose holds NaN or infinite parameters", np.flatnonzero(~np.isfinite(p)))
    rest = parameters.normalised(parameters.rest)
    scales = np.array([model.size if unit == "m" else 1.0 for unit in parameters.units])
    moved = np.zeros(len(p), bool)
    for start in parameters.quaternions:
        four = slice(start, start + 4)
        if p[four] @ rest[four] < 0.0:
            p[four] = -p[four]
        moved[four] = np.abs(p[four] - rest[four]).max() > SAME
    alone = ~_inside_quaternions(parameters)
    moved[alone] = np.abs(p - rest)[alone] > SAME * scales[alone]
    names = parameters.names
    return {names[i]: _rounded(p[i]) for i in np.flatnonzero(moved) if not names[i].endswith(".weight")}


def _inside_quaternions(parameters: Parameters) -> np.ndarray:
    inside = np.zeros(len(parameters), bool)
    inside[(parameters.quaternions[:, None] + np.arange(4)).ravel()] = True
    return inside


def _require_new(model: PoseSpaceModel, pose: np.ndarray, given: list[GivenPose]) -> None:
    """A pose that another one already is cannot be told from it: the build would refuse it, after minutes."""
    parameters, features = model.rig.parameters, model.pose_features
    others = {REST: parameters.rest}
    for other in given:
        known = {name: value for name, value in other.parameters.items() if name in parameters.names}
        if known:
            others[str(other.name)] = pose_of(parameters, known, "").parameters
    rest, here = features(parameters.rest), features(np.asarray(pose, np.float64))
    reach = max(float(np.linalg.norm(features(p) - rest)) for p in (*model.poses.parameters, pose))
    for name, p in others.items():
        if np.linalg.norm(features(p) - here) <= TOO_NEAR * max(reach, 1e-12):
            raise InputError(f"this pose has the same shape as '{name}'; a root that moves alone is no new pose")


def _with_poses(project: Project, given: list[GivenPose], count: int) -> Project:
    return project.changed(poses={"given": [pose.model_dump() for pose in given], "count": count})


def _checked_name(name: str, what: str) -> str:
    plain = name.strip() if isinstance(name, str) else ""
    if not plain or len(plain) > LONGEST_NAME or not plain.isprintable():
        raise InputError(f"a {what} needs a name of 1 to {LONGEST_NAME} letters")
    return plain


def _rounded(value: float) -> float:
    """Nine digits: more than single precision has, short in a file that people read."""
    return float(f"{float(value):.9g}")
