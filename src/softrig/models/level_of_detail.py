"""A pose-space model with fewer modes: all that depends on them, cut or brought over to those kept (`fewer_modes`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from softrig.errors import ModeCountError
from softrig.models.fewer_modes import (
    carried_by_kept,
    force_on_kept,
    foretold_by_kept,
    least_share,
    likely_motion,
    most_important,
    yielding_of_kept,
)
from softrig.models.followers import Followers

if TYPE_CHECKING:
    from softrig.models.pose_space import PoseSpaceModel


def model_of_modes(model: PoseSpaceModel, count: int) -> PoseSpaceModel:
    """`model` with `count` modes: the most important of each region, in proportion to what it has."""
    r = model.mode_count
    if not 1 <= count <= r:
        raise ModeCountError(f"{count} modes asked of a model that has {r}")
    if count == r:
        return model
    keep = most_important(model.region_of_mode, model.modes_order, count)
    known, inertial = model.cubature.stiffness_map, model.inertia_map
    if inertial is not None:
        inertial = replace(
            inertial,
            components=np.ascontiguousarray(inertial.components[:, keep]),
            turning=inertial.turning[keep],
            turned=np.ascontiguousarray(inertial.turned[:, keep]),
        )
    mass, cubature, followers = model.mass_products[0, 0], model.cubature, model.followers
    yielding, inertia = None if model.yielding is None else model.yielding[keep], model.inertia[:, keep]
    carried = None if model.carried_mass is None else model.carried_mass[keep[:, None], keep]
    if known is not None and known.flexible:
        springs = (known.springs(model.positive_weights(p)) for p in model.poses.parameters)
        held = [model.linear_part(p) - own for p, own in zip(model.poses.parameters, springs, strict=True)]
        cubature = cubature.softened(min(least_share(np.linalg.inv(k), mass, keep) for k in held))
        if model.yielding is not None:
            yielding = yielding_of_kept(mean_bone_inertia(model), model.inertia, known.components[0], mass, keep)
        elif inertial is None:
            inertia = force_on_kept(known.components[0], mass, keep) @ model.inertia
        foretold = foretold_by_kept(known.components[0], mass, keep)
        carried = carried_by_kept(model.moved_mass[0, 0], foretold, mass, keep)
        likely = foretold_by_kept(likely_motion(known.components[0], mean_bone_inertia(model)), mass, keep)
        others = followers or Followers.none(len(model.vertices), r, known.coefficients.shape[1])
        followers = others.of_modes(likely, keep, model.shapes[0], model.region_of_mode)
    cubature = replace(
        cubature,
        stiffness_correction=_pairs(cubature.stiffness_correction, keep),
        stiffness_map=None if known is None else known.of_modes(keep, mass),
    )
    return replace(
        model,
        shapes=np.ascontiguousarray(model.shapes[..., keep]),
        region_of_mode=model.region_of_mode[keep],
        mass_products=_pairs(model.mass_products, keep),
        inertia=np.ascontiguousarray(inertia),
        wind=np.ascontiguousarray(model.wind[:, keep]),
        gyro=_pairs(model.gyro, keep),
        modes_order=model.modes_order[keep],
        cubature=cubature,
        inertia_map=inertial,
        yielding=yielding,
        carried_mass=carried,
        followers=followers,
    )


def mean_bone_inertia(model: PoseSpaceModel) -> np.ndarray:
    """(r, l) C for the bones, or what stands for them, with what the rest adds: the mean over the poses."""
    mean = model.inertia[:, :, : model.load_count - len(model.poses)].mean(axis=0)
    return np.asarray(mean if model.yielding is None else mean + model.yielding)


def _pairs(matrices: np.ndarray, keep: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(matrices[..., keep[:, None], keep])
