"""Where the drawn surface is: points that hang on tets, whose corners may have a copy in several domains."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST


@njit(cache=True, fastmath=FAST)
def surface(
    starts: np.ndarray,
    places: np.ndarray,
    entries: np.ndarray,
    owners: np.ndarray,
    shares: np.ndarray,
    points: np.ndarray,
    rows: np.ndarray,
    rows_at: np.ndarray,
    q: np.ndarray,
    rotations: np.ndarray,
    translations: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write Σ_i R_i (P_i + Ψ_i q_i) + ω_i t_i, the sum over the domains i that carry a drawn vertex, into `out`.

    `places` (s,) rows of `out` (n̄, 3) that are written; entries of vertex k are those from `entries`[k] to
    `entries`[k + 1], each with its domain in `owners`, ω in `shares` (g,), P in `points` (g, 3) metres, and Ψ in `rows`
    from `rows_at` on, three rows of r_i in single precision. Copies on a seam weigh alike, which averages them.
    """
    local = np.empty(3)
    for k in range(len(places)):
        x, y, z = 0.0, 0.0, 0.0
        for entry in range(entries[k], entries[k + 1]):
            d = owners[entry]
            s, e = starts[d], starts[d + 1]
            r, begin = e - s, rows_at[entry]
            for i in range(3):
                total = 0.0
                row = rows[begin + i * r : begin + (i + 1) * r]
                for m in range(r):
                    total += row[m] * q[s + m]
                local[i] = points[entry, i] + total
            R, w = rotations[d], shares[entry]
            x += R[0, 0] * local[0] + R[0, 1] * local[1] + R[0, 2] * local[2] + w * translations[d, 0]
            y += R[1, 0] * local[0] + R[1, 1] * local[1] + R[1, 2] * local[2] + w * translations[d, 1]
            z += R[2, 0] * local[0] + R[2, 1] * local[1] + R[2, 2] * local[2] + w * translations[d, 2]
        out[places[k], 0], out[places[k], 1], out[places[k], 2] = x, y, z
