"""A body as triangles: what to draw, where it is held, how finely to cut it into bricks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softrig.meshing.voxels import Voxelisation, voxelise

Colour = tuple[float, float, float]
"""Red, green and blue in 0 to 1."""


@dataclass(frozen=True)
class AnchorBox:
    """An axis-aligned box, metres. Everything in it is held."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]

    def contains(self, points: np.ndarray) -> np.ndarray:
        """(n,) which of `points` (n, 3), metres, lie in the box, its faces included."""
        inside = (points >= np.array(self.low)) & (points <= np.array(self.high))
        return np.asarray(inside.all(axis=1))


@dataclass(frozen=True)
class Soup:
    """Triangles in metres, z up, with the boxes that hold the body and its usual resolution."""

    name: str
    vertices: np.ndarray
    """(n, 3) float64, metres."""
    triangles: np.ndarray
    """(m, 3) int32, outward."""
    colours: np.ndarray | None
    """(n, 3) red, green, blue in 0 to 1, or none."""
    anchors: tuple[AnchorBox, ...]
    """Where the body is held."""
    resolution: int
    """Cubes along the longest side by default."""

    def fixed_vertices(self, points: np.ndarray) -> np.ndarray:
        """(n,) bool: which of `points` (n, 3), metres, are held."""
        held = np.zeros(len(points), dtype=np.bool_)
        for box in self.anchors:
            held |= box.contains(points)
        return held

    def voxelised(self, resolution: int | None = None) -> Voxelisation:
        """The body in bricks, at its own resolution unless told otherwise."""
        return voxelise(self.vertices, self.triangles, resolution=resolution or self.resolution)


@dataclass(frozen=True)
class Piece:
    """One closed surface of one colour (or one a vertex), on the way into a soup."""

    vertices: np.ndarray
    """(n, 3) metres."""
    triangles: np.ndarray
    """(m, 3) outward."""
    colour: Colour | np.ndarray = (0.7, 0.7, 0.7)
    """One colour, or (n, 3)."""

    def mirrored(self, axis: int) -> Piece:
        """The piece on the other side of the plane through the origin across `axis`."""
        flip = np.ones(3)
        flip[axis] = -1.0
        return Piece(self.vertices * flip, self.triangles[:, ::-1], self.colour)


def pour(name: str, pieces: Sequence[Piece], anchors: Sequence[AnchorBox], resolution: int) -> Soup:
    """All pieces in one soup, side by side: where they cross, they stay crossed."""
    starts = np.cumsum([0] + [len(piece.vertices) for piece in pieces[:-1]])
    shifted = [piece.triangles + start for piece, start in zip(pieces, starts, strict=True)]
    colours = [np.broadcast_to(np.asarray(piece.colour), piece.vertices.shape) for piece in pieces]
    return Soup(
        name=name,
        vertices=np.ascontiguousarray(np.concatenate([piece.vertices for piece in pieces])),
        triangles=np.ascontiguousarray(np.concatenate(shifted), dtype=np.int32),
        colours=np.ascontiguousarray(np.concatenate(colours)),
        anchors=tuple(anchors),
        resolution=resolution,
    )
