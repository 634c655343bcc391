"""Which tet vertices touch another part of the body at each pose of a model: as built, or found again."""

from __future__ import annotations

import numpy as np

from softrig.fem.meshes import VolumeMesh
from softrig.models.pose_space import PoseSpaceModel
from softrig.poses.contact import self_contacts


def contact_vertices(model: PoseSpaceModel) -> list[np.ndarray]:
    """Of each pose the tet vertices (c,) in contact, as the model's notes have them.

    Models of before these were noted, and notes that do not fit, are looked at anew, which takes a second.
    """
    noted = _noted(model)
    return _found(model) if noted is None else noted


def _noted(model: PoseSpaceModel) -> list[np.ndarray] | None:
    basis = model.notes.get("basis", {})
    kept, counts = basis.get("contact vertices"), basis.get("contacts")
    if not isinstance(kept, list) or not isinstance(counts, list) or not len(kept) == len(counts) == len(model.poses):
        return None
    arrays = []
    for vertices, count in zip(kept, counts, strict=True):
        if not isinstance(vertices, list) or len(vertices) != count:
            return None
        if not all(isinstance(v, int) and 0 <= v < len(model.vertices) for v in vertices):
            return None
        arrays.append(np.array(vertices, np.int64))
    return arrays


def _found(model: PoseSpaceModel) -> list[np.ndarray]:
    """At the poses themselves, as the build looks for them; nothing where it was told not to."""
    wanted = model.notes.get("project", {}).get("basis", {})
    if isinstance(wanted, dict) and wanted.get("contact", True) is False:
        return [np.zeros(0, np.int64) for _ in model.poses.names]
    mesh = VolumeMesh(model.vertices, model.tets, np.zeros(len(model.tets), np.int32), ("body",))
    arrays = []
    for p in model.poses.parameters:
        contacts = self_contacts(mesh, model.tet_rest(p))
        arrays.append(contacts.vertices[~model.fixed[contacts.vertices]])
    return arrays
