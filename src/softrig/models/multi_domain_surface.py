"""The drawn surface of a multi-domain model: what of it hangs on the tets, gathered by domain."""

from __future__ import annotations

import numpy as np

from softrig.models.kernels.multi_domain_display import surface
from softrig.models.multi_domain import MultiDomainModel


class DomainSurface:
    """Moves the drawn vertices that tets carry; the others follow the rig alone."""

    def __init__(self, model: MultiDomainModel) -> None:
        carried = model.embedding_weights.any(axis=1)
        self.alone = np.flatnonzero(~carried)
        """(k,) drawn vertices that no tet carries."""
        self._places = np.flatnonzero(carried)
        self._starts = np.concatenate([[0], np.cumsum([domain.rank for domain in model.domains])])
        nodes, weights = model.embedding_nodes[carried], model.embedding_weights[carried]
        found = []
        for index, domain in enumerate(model.domains):
            row = np.full(len(model.vertices), -1)
            row[domain.vertices] = np.arange(len(domain.vertices))
            here = row[nodes]
            own = np.where(here >= 0, weights / model.copies[nodes], 0.0)
            chosen = np.flatnonzero(own.any(axis=1))
            here, own = here[chosen], own[chosen]
            rest = model.vertices[domain.vertices] - domain.centre
            points = np.einsum("ka,kai->ki", own, rest[here])
            shapes = np.einsum("ka,kaim->kim", own, domain.shapes[here], optimize=True)
            found.append((chosen, np.full(len(chosen), index), own.sum(axis=1), points, shapes))
        vertex = np.concatenate([each[0] for each in found])
        order = np.argsort(vertex, kind="stable")
        self._entries = np.searchsorted(vertex[order], np.arange(len(self._places) + 1))
        self._owners = np.concatenate([each[1] for each in found])[order]
        self._shares = np.concatenate([each[2] for each in found])[order]
        self._points = np.ascontiguousarray(np.concatenate([each[3] for each in found])[order])
        rows = [row.ravel().astype(np.float32) for each in found for row in each[4]]
        lengths = np.array([len(rows[entry]) for entry in order], np.int64)
        self._rows = np.concatenate([np.zeros(0, np.float32), *(rows[entry] for entry in order)])
        self._rows_at = np.concatenate([[0], np.cumsum(lengths)])

    def move(self, q: np.ndarray, rotations: np.ndarray, translations: np.ndarray, out: np.ndarray) -> None:
        """Write the carried vertices into `out` (n̄, 3) float32, metres; q (R,), frames (D, 3, 3) and (D, 3)."""
        surface(
            self._starts,
            self._places,
            self._entries,
            self._owners,
            self._shares,
            self._points,
            self._rows,
            self._rows_at,
            q,
            rotations,
            translations,
            out,
        )
