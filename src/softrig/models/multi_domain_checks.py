"""What must hold of a multi-domain model, whoever made it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softrig.errors import FlatElementError, InputError, require_finite, require_indices

if TYPE_CHECKING:
    from softrig.models.multi_domain import Domain, MultiDomainModel, Seam


def check_model(model: MultiDomainModel) -> None:
    """Refuse what does not fit together, and name it."""
    n, drawn = len(model.vertices), len(model.embedding_nodes)
    if not model.domains:
        raise InputError(f"'{model.name}' has no domain")
    shapes = {
        "vertices": (model.vertices, (n, 3)),
        "tets": (model.tets, (len(model.tets), 4)),
        "domain_of_tet": (model.domain_of_tet, (len(model.tets),)),
        "triangles": (model.triangles, (len(model.triangles), 3)),
        "embedding_nodes": (model.embedding_nodes, (drawn, 4)),
        "embedding_weights": (model.embedding_weights, (drawn, 4)),
    }
    if model.colours is not None:
        shapes["colours"] = (model.colours, (drawn, 4))
    _require_shapes(shapes, "the model")
    require_finite(model.vertices, "vertices")
    require_finite(model.embedding_weights, "embedding weights")
    require_indices(model.tets.ravel(), n, "tets")
    require_indices(model.domain_of_tet, len(model.domains), "domains of tets")
    require_indices(model.embedding_nodes.ravel(), n, "embedding nodes")
    require_indices(model.triangles.ravel(), drawn, "triangles")
    if model.rig.vertex_count != drawn:
        raise InputError(f"a rig of {model.rig.vertex_count} vertices for a surface of {drawn}")
    bones = len(model.skin.binding.bones)
    for index, domain in enumerate(model.domains):
        _check_domain(domain, f"domain {index} '{domain.name}'", model, bones)
    if (model.copies == 0).any():
        raise InputError("vertices that belong to no domain", np.flatnonzero(model.copies == 0))
    for index, seam in enumerate(model.seams):
        _check_seam(seam, f"seam {index}", model)
    pairs = [(seam.first, seam.second) for seam in model.seams]
    twice = [index for index, pair in enumerate(pairs) if pair in pairs[:index]]
    if twice:
        raise InputError("seams between domains that have one already", twice)
    for what in ("spring", "spring_damping", "damping_ratio", "frequency", "size"):
        value = getattr(model, what)
        if not (np.isfinite(value) and value >= 0.0):
            raise InputError(f"{what} must be a number that is not negative, got {value}")
    if model.frequency == 0.0 or model.size == 0.0:
        raise InputError("frequency and size must be positive")


def _check_domain(domain: Domain, what: str, model: MultiDomainModel, bones: int) -> None:
    count, rank, chosen = len(domain.vertices), domain.shapes.shape[-1], len(domain.tets)
    _require_shapes(
        {
            "centre": (domain.centre, (3,)),
            "vertices": (domain.vertices, (count,)),
            "mass": (domain.mass, (count,)),
            "shapes": (domain.shapes, (count, 3, rank)),
            "stiffness": (domain.stiffness, (rank, rank)),
            "tets": (domain.tets, (chosen,)),
            "weights": (domain.weights, (chosen,)),
            "lam": (domain.lam, (chosen,)),
            "mu": (domain.mu, (chosen,)),
        },
        what,
    )
    if rank == 0:
        raise InputError(f"{what} has no shapes")
    if not 0 <= domain.bone < bones:
        raise InputError(f"{what}: bone {domain.bone} of {bones}")
    require_indices(domain.vertices, len(model.vertices), f"vertices of {what}")
    if (np.diff(domain.vertices) <= 0).any():
        raise InputError(f"vertices of {what} must rise")
    require_indices(domain.tets, len(model.tets), f"cubature tets of {what}")
    for name in ("centre", "mass", "shapes", "stiffness", "weights", "lam", "mu"):
        require_finite(getattr(domain, name), f"{name} of {what}")
    if (domain.mass <= 0.0).any() or (domain.weights < 0.0).any():
        raise InputError(f"{what}: masses must be positive and cubature weights not negative")
    if not np.isin(model.tets[domain.tets], domain.vertices).all():
        raise InputError(f"{what}: a cubature tet has a corner outside the domain")
    if (domain.mu <= 0.0).any() or (domain.lam < 0.0).any():
        raise InputError(f"{what}: μ must be positive and λ not negative")
    corners = model.vertices[model.tets[domain.tets]]
    flat = np.nonzero(~(np.linalg.det(corners[:, 1:] - corners[:, :1]) > 0.0))[0]
    if flat.size:
        raise FlatElementError(f"{what}: cubature tets without volume, or inverted", domain.tets[flat])


def _check_seam(seam: Seam, what: str, model: MultiDomainModel) -> None:
    count = len(model.domains)
    if not 0 <= seam.first < seam.second < count:
        raise InputError(f"{what} joins domains {seam.first} and {seam.second} of {count}")
    k = len(seam.areas)
    parts: dict[str, tuple[np.ndarray, tuple[int, ...]]] = {
        "first_rows": (seam.first_rows, (k,)),
        "second_rows": (seam.second_rows, (k,)),
        "areas": (seam.areas, (k,)),
    }
    _require_shapes(parts, what)
    sides = [model.domains[seam.first].vertices, model.domains[seam.second].vertices]
    for side, rows in zip(sides, (seam.first_rows, seam.second_rows), strict=True):
        require_indices(rows, len(side), f"rows of {what}")
    if not np.array_equal(sides[0][seam.first_rows], sides[1][seam.second_rows]):
        raise InputError(f"{what} joins vertices that are not copies of each other")
    require_finite(seam.areas, f"areas of {what}")
    if (seam.areas < 0.0).any():
        raise InputError(f"areas of {what} must not be negative", np.flatnonzero(seam.areas < 0.0))


def _require_shapes(parts: dict[str, tuple[np.ndarray, tuple[int, ...]]], what: str) -> None:
    wrong = [f"{name} {np.shape(array)}" for name, (array, shape) in parts.items() if np.shape(array) != shape]
    if wrong:
        raise InputError(f"{what}: wrong shape of {', '.join(wrong)}")
