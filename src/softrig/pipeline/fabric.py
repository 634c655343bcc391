"""What the flesh is made of, tet by tet and pose by pose (PSSD §8)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.errors import InputError
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.maps import paint_map
from softrig.pipeline.posing import Posing
from softrig.poses.materials import PRESETS, painted_field, stiffness_from_softness
from softrig.project import PoseMaterial, Project
from softrig.rig.character import Character


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


def make_fabric(
    character: Character, flesh: Flesh, posing: Posing, project: Project, *, folder: Path | None = None
) -> Fabric:
    """The project's material at every pose; a pose without its own is like the others.

    `folder`: where maps painted into files lie.
    """
    settings = project.material
    preset = PRESETS[settings.preset]
    unknown = [name for name in settings.poses if name not in posing.table.names]
    if unknown:
        known = ", ".join(f"'{name}'" for name in posing.table.names)
        raise InputError(f"materials for poses that do not exist: {', '.join(unknown)}; the poses: {known}")
    young, poisson = [], []
    for name in posing.table.names:
        own = settings.poses.get(name, PoseMaterial())
        base = _first(own.young, settings.young, preset.young)
        ratio = _first(own.poisson, settings.poisson, preset.poisson)
        young.append(base * _stiffening(character, flesh, project, own, folder))
        poisson.append(np.full(len(flesh.mesh.elements), ratio))
    wanted = project.simulation.damping_ratio
    return Fabric(
        law=settings.law,
        density=_first(settings.density, preset.density),
        young=np.stack(young),
        poisson=np.stack(poisson),
        damping_ratio=preset.damping_ratio if wanted is None else wanted,
    )


def _first(*values: float | None) -> float:
    return next(float(value) for value in values if value is not None)


def _stiffening(
    character: Character, flesh: Flesh, project: Project, own: PoseMaterial, folder: Path | None
) -> np.ndarray:
    """(e,) what the painted maps multiply Young's modulus with."""
    factor = np.ones(len(flesh.mesh.elements))
    soft = own.softness_map or project.material.softness_map
    if soft is not None:
        paint = stiffness_from_softness(paint_map(character, soft, folder)[flesh.soft_vertices])
        factor = factor * painted_field(flesh.mesh, flesh.soft_embedding, paint, smoothing=project.material.smoothing)
    stiff = own.stiffness_map or project.material.stiffness_map
    if stiff is not None:
        most = (own if own.stiffness_map else project.material).stiffness_range
        paint = most ** np.clip(paint_map(character, stiff, folder)[flesh.soft_vertices], 0.0, 1.0)
        factor = factor * painted_field(flesh.mesh, flesh.soft_embedding, paint, smoothing=project.material.smoothing)
    return factor
