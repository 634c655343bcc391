"""Skin weights: each vertex moves with the bones whose lumps it lies on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softrig.characters.sculpture import Sculpture
from softrig.characters.smoothing import neighbour_average

INFLUENCES = 4
FLOOR = 0.012
"""Metres: nearer than this counts as lying on the bone's lumps."""


def skin_weights(
    body: Sculpture, bones: Sequence[str], vertices: np.ndarray, triangles: np.ndarray, *, rounds: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    """Bones (n, 4) int32 and weights (n, 4) of `vertices` (n, 3), m: each row sums to one, largest first.

    One over the fourth power of the distance to each bone's lumps, smoothed over the surface `rounds`
    times, the four largest kept.
    """
    shares = np.zeros((len(vertices), len(bones)))
    for column, bone in enumerate(bones):
        lumps = [lump for lump in body.lumps if lump.bone == bone]
        distance = np.min([lump.distance(vertices) for lump in lumps], axis=0)
        shares[:, column] = np.maximum(distance + FLOOR, FLOOR) ** -4.0
    shares /= shares.sum(axis=1, keepdims=True)
    average = neighbour_average(triangles, len(vertices))
    for _ in range(rounds):
        shares = 0.5 * (shares + average @ shares)
    kept = np.argsort(-shares, axis=1, kind="stable")[:, :INFLUENCES]
    weights = np.take_along_axis(shares, kept, axis=1)
    # The fifth largest is taken off all: a bone that drops out of the four does so without a jump.
    if shares.shape[1] > INFLUENCES:
        weights -= np.sort(shares, axis=1)[:, -INFLUENCES - 1, None]
    weights = np.where(weights < 1e-4, 0.0, weights)
    return kept.astype(np.int32), weights / weights.sum(axis=1, keepdims=True)
