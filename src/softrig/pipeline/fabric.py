"""What the flesh is made of, tet by tet and pose by pose (PSSD §8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.errors import InputError, MaterialError, notice
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.maps import paint_map, require_map, vertex_or_tet_map
from softrig.pipeline.posing import Posing
from softrig.poses.materials import PRESETS, painted_field, stiffness_from_softness
from softrig.project import PoseMaterial, Project
from softrig.rig.anatomy import bony_joints, bony_softness
from softrig.rig.bones import skin_of
from softrig.rig.character import Character
from softrig.words import none_called


@dataclass(frozen=True, eq=False)
class Fabric:
    """Elastic constants of every tet at every pose."""

    law: str
    density: float
    """kg/m³."""
    young: np.ndarray
    """(m, e) pascal."""
    poisson: np.ndarray
    """(m, e)."""
    damping_ratio: float

    @property
    def is_same_at_all_poses(self) -> bool:
        """Whether no pose has a material of its own."""
        return not (np.ptp(self.young, axis=0).any() or np.ptp(self.poisson, axis=0).any())

    def usual_young(self, volumes: np.ndarray) -> list[float]:
        """Pascal: the modulus that 5, 50 and 95 % of the flesh do not exceed, tets (e,) counted by volume, m³."""
        order = np.argsort(self.young, axis=None, kind="stable")
        below = np.cumsum(np.tile(volumes, len(self.young))[order])
        places = np.searchsorted(below, np.array([0.05, 0.5, 0.95]) * below[-1])
        return [float(value) for value in self.young.ravel()[order][places]]


def make_fabric(
    character: Character, flesh: Flesh, posing: Posing, project: Project, *, folder: Path | None = None
) -> Fabric:
    """The project's material at every pose; a pose without its own is like the others.

    `folder`: where maps painted into files lie.
    """
    settings = project.material
    preset = PRESETS[settings.preset]
    _require_poses(project, posing.table.names)
    fields = ElasticFields(character, flesh, settings.smoothing, folder)
    young, poisson = [], []
    # Once for all poses without their own: a model whose materials seem to depend on the pose is another one.
    known: dict[str, np.ndarray] = {}
    for name in posing.table.names:
        own = settings.poses.get(name, PoseMaterial())
        base = fields.young(_first(own.young, settings.young, preset.young))
        wanted = own.model_dump_json()
        if wanted not in known:
            known[wanted] = _stiffening(character, flesh, project, own, folder)
        young.append(base * known[wanted])
        poisson.append(fields.poisson(_first(own.poisson, settings.poisson, preset.poisson)))
    damping = project.simulation.damping_ratio
    return Fabric(
        law=settings.law,
        density=preset.density if settings.density is None else settings.density,
        young=np.stack(young),
        poisson=np.stack(poisson),
        damping_ratio=preset.damping_ratio if damping is None else damping,
    )


def require_material(
    character: Character, project: Project, poses: Sequence[str], *, folder: Path | None = None
) -> None:
    """Refuse what `make_fabric` would for want of a pose or a map, without tets: `poses` by name.

    Whether a file has a value for every tet is only known when there are tets.
    """
    _require_poses(project, poses)
    _require_joints(character, project.material.firm)
    if project.material.firm and is_painted(project):
        notice("material.firm does nothing where softness or Young's modulus is painted: paint those joints, too")
    for own in (project.material, *project.material.poses.values()):
        for painted in (own.softness_map, own.stiffness_map):
            if painted is not None:
                paint_map(character, painted, folder)
        for constant in (own.young, own.poisson):
            if isinstance(constant, str):
                require_map(character, constant, folder)


def _require_poses(project: Project, poses: Sequence[str]) -> None:
    unknown = [name for name in project.material.poses if name not in poses]
    if unknown:
        known = ", ".join(f"'{name}'" for name in poses)
        raise InputError(f"materials for poses that do not exist: {', '.join(unknown)}; the poses: {known}")


def _require_joints(character: Character, names: Sequence[str]) -> None:
    skin = skin_of(character.rig)
    known = [] if skin is None else [skin.skeleton.names[node] for node in skin.binding.bones]
    for name in names:
        if name not in known:
            raise InputError(f"material.firm: {none_called('joint of the skin', name, known)}")


class ElasticFields:
    """Young's modulus and Poisson ratio of every tet from what a project may say: a number, or the name of a map.

    A map of the vertices is carried to the tets (PSSD Eq. 37), one of the tets is taken as it is.
    """

    def __init__(self, character: Character, flesh: Flesh, smoothing: float, folder: Path | None) -> None:
        self._character, self._flesh, self._smoothing, self._folder = character, flesh, smoothing, folder
        self._found: dict[tuple[str, bool], np.ndarray] = {}

    def young(self, given: float | str) -> np.ndarray:
        """(e,) pascal."""
        return self._field(given, "Young's modulus must be positive", lambda values: values > 0.0, positive=True)

    def poisson(self, given: float | str) -> np.ndarray:
        """(e,)."""

        def sound(values: np.ndarray) -> np.ndarray:
            return (values > -1.0) & (values < 0.5)

        return self._field(given, "the Poisson ratio must lie between -1 and 0.5", sound, positive=False)

    def _field(
        self, given: float | str, demand: str, sound: Callable[[np.ndarray], np.ndarray], *, positive: bool
    ) -> np.ndarray:
        mesh, soft = self._flesh.mesh, self._flesh.soft_vertices
        if not isinstance(given, str):
            return np.full(len(mesh.elements), float(given))
        if (given, positive) in self._found:
            return self._found[given, positive]
        values, of_tets = vertex_or_tet_map(self._character, given, len(mesh.elements), self._folder)
        # What is painted on parts that are not soft has no meaning, and is not asked to have one.
        used = np.arange(len(values)) if of_tets else soft
        wrong = used[~sound(values[used])]
        if len(wrong):
            raise MaterialError(f"map '{given}': {demand}, at {'tets' if of_tets else 'vertices'}", wrong)
        if not of_tets:
            values = painted_field(
                mesh, self._flesh.soft_embedding, values[soft], smoothing=self._smoothing, positive=positive
            )
        self._found[given, positive] = values
        return values


def _first(*values: float | str | None) -> float | str:
    return next(value for value in values if value is not None)


def is_painted(project: Project, own: PoseMaterial | None = None) -> bool:
    """Whether softness or Young's modulus is painted: there joints make nothing firm. `own`: of one pose."""
    settings = project.material
    given = (settings.softness_map, own and own.softness_map, settings.young, own and own.young)
    return any(isinstance(each, str) for each in given)


def firm_joints(character: Character, project: Project) -> list[str]:
    """Names of the joints whose flesh is firm: by their names, or because the project says so."""
    settings = project.material
    return [] if is_painted(project) else bony_joints(character, bony=settings.bony, firm=settings.firm)


def softness_by_joints(character: Character, project: Project, own: PoseMaterial | None = None) -> np.ndarray | None:
    """(n̄,) as if painted; None where no joint is firm. `own`: of one pose."""
    settings = project.material
    return None if is_painted(project, own) else bony_softness(character, bony=settings.bony, firm=settings.firm)


def _stiffening(
    character: Character, flesh: Flesh, project: Project, own: PoseMaterial, folder: Path | None
) -> np.ndarray:
    """(e,) what the painted maps multiply Young's modulus with."""
    factor = np.ones(len(flesh.mesh.elements))
    soft = own.softness_map or project.material.softness_map
    softness = softness_by_joints(character, project, own)
    if soft is not None:
        softness = paint_map(character, soft, folder)
    if softness is not None:
        paint = stiffness_from_softness(softness[flesh.soft_vertices])
        factor = factor * painted_field(flesh.mesh, flesh.soft_embedding, paint, smoothing=project.material.smoothing)
    stiff = own.stiffness_map or project.material.stiffness_map
    if stiff is not None:
        most = (own if own.stiffness_map else project.material).stiffness_range
        paint = most ** np.clip(paint_map(character, stiff, folder)[flesh.soft_vertices], 0.0, 1.0)
        factor = factor * painted_field(flesh.mesh, flesh.soft_embedding, paint, smoothing=project.material.smoothing)
    return factor
