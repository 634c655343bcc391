"""Whether the arrays of a pose-space model fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softrig.errors import IndexRangeError, InputError, require_finite, require_indices

if TYPE_CHECKING:
    from softrig.models.pose_space import PoseSpaceModel


def require_shapes(owner: object, shapes: dict[str, tuple[int | None, ...]]) -> None:
    """Raise `InputError` for the first attribute of another shape than wanted; None there: any length."""
    for name, wanted in shapes.items():
        value = getattr(owner, name)
        if value is None:
            continue
        shape = np.shape(value)
        if len(shape) != len(wanted) or any(w not in (None, s) for s, w in zip(shape, wanted, strict=True)):
            text = ", ".join("any" if w is None else str(w) for w in wanted)
            raise InputError(f"{name} must have the shape ({text}), not {shape}")


def check_model(model: PoseSpaceModel) -> None:
    """Raise `InputError` where the arrays of a model disagree."""
    n, m, r = len(model.vertices), len(model.poses), model.mode_count
    c, basis, points = len(model.cubature.tets), len(model.shapes), len(model.embedding_nodes)
    groups = len(model.gyro_frames)
    require_shapes(
        model,
        {
            "vertices": (n, 3),
            "tets": (None, 4),
            "fixed": (n,),
            "vertex_mass": (n,),
            "triangles": (None, 3),
            "colours": (points, 4),
            "embedding_nodes": (points, 4),
            "embedding_weights": (points, 4),
            "shapes": (basis, n, 3, r),
            "region_of_mode": (r,),
            "mass_products": (basis, basis, r, r),
            "inertia": (m, r, model.load_count),
            "yielding": (r, model.load_count - m),
            "carried_mass": (r, r),
            "wind": (m, r, 3 * model.frame_count),
            "gyro": (groups, 9, r, r),
            "modes_order": (r,),
            "frequencies": (m, None),
        },
    )
    require_shapes(model.tet_rig, {"corrections": (m, n, 3), "weights": (n, None), "shepard_nodes": (n, None)})
    require_shapes(
        model.cubature, {"weights": (m, c), "young": (m, c), "poisson": (m, c), "stiffness_correction": (m, r, r)}
    )
    if model.cubature.stiffness_map is not None:
        model.cubature.stiffness_map.check(len(model.poses.feature_weights), r, m, basis)
    if model.inertia_map is not None:
        if model.interpolation != "bind":
            raise InputError("an inertia map is for shapes in bind space")
        model.inertia_map.check(len(model.poses.feature_weights), r, m, model.frame_count)
    if model.yielding is not None:
        if model.tet_rig.kind != "skin":
            raise InputError("what the rest of the body adds is known of bones only")
        require_finite(model.yielding, "what the rest of the body adds to the inertia")
    if model.carried_mass is not None:
        require_finite(model.mass_products, "mass_products")
        require_finite(model.carried_mass, "carried_mass")
        if basis > 1:
            raise InputError(f"carried_mass belongs to one basis, not to {basis}")
        if not np.allclose(model.carried_mass, model.carried_mass.T, rtol=1e-6, atol=0.0):
            raise InputError("carried_mass is not symmetric")
        if np.linalg.eigvalsh(model.moved_mass[0, 0])[0] <= 0.0:
            raise InputError("mass_products with carried_mass are not positive definite")
    if model.followers is not None:
        known = model.cubature.stiffness_map
        if known is None or not known.flexible:
            raise InputError("what follows the modes needs a map of their flexibility")
        model.followers.check(n, r, known.coefficients.shape[1])
    if model.tet_rig.frame_sample is not None:
        require_indices(model.tet_rig.frame_sample, model.rig.vertex_count, "surface vertices of fitted frames")
    require_indices(model.tets.ravel(), n, "vertices of tets")
    require_indices(model.embedding_nodes.ravel(), n, "tet vertices that carry the surface")
    require_indices(model.triangles.ravel(), points, "vertices of triangles")
    light = ~(model.vertex_mass > 0.0)
    if light.any():
        raise InputError("vertices without mass", np.flatnonzero(light))
    require_indices(model.cubature.tets, len(model.tets), "cubature tets")
    require_indices(model.region_of_mode, max(len(model.region_names), 1), "regions of modes")
    changes = np.flatnonzero(np.diff(model.region_of_mode)) + 1
    if len(changes) + 1 != len(np.unique(model.region_of_mode)):
        raise IndexRangeError("modes of one region must stand together; a region begins anew at modes", changes)
