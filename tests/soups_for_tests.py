"""Triangle soups, sound and broken, that the mesher's tests share."""

from __future__ import annotations

import numpy as np


def sphere(rounds: int = 3, radius: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """An octahedron split `rounds` times onto the sphere, outward."""
    points = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], float)
    faces = np.array([[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]], np.int64)
    for _ in range(rounds):
        ends = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
        edges, which = np.unique(ends, axis=0, return_inverse=True)
        ab, bc, ca = which.reshape(3, -1) + len(points)
        points = np.concatenate([points, points[edges].mean(axis=1)])
        a, b, c = faces.T
        faces = np.concatenate([np.stack(f, axis=1) for f in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])
    return radius * points / np.linalg.norm(points, axis=1, keepdims=True), faces


def torus(major: float = 1.0, minor: float = 0.4, around: int = 48, across: int = 24) -> tuple[np.ndarray, np.ndarray]:
    u, v = np.meshgrid(np.arange(around), np.arange(across), indexing="ij")
    phi, psi = 2 * np.pi * u / around, 2 * np.pi * v / across
    ring = major + minor * np.cos(psi)
    points = np.stack([ring * np.cos(phi), ring * np.sin(phi), minor * np.sin(psi)], axis=-1).reshape(-1, 3)

    def at(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return ((i % around) * across + j % across).ravel()

    a, b, c, d = at(u, v), at(u + 1, v), at(u + 1, v + 1), at(u, v + 1)
    return points, np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])


def box(lengths: tuple[float, float, float] = (1.0, 0.7, 0.5), low: tuple[float, float, float] = (0, 0, 0)):
    corners = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], float)
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    faces = np.array([f for q in quads for f in ([q[0], q[1], q[2]], [q[0], q[2], q[3]])])
    return corners * lengths + np.asarray(low, float), faces


def joined(*soups: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0] + [len(points) for points, _ in soups[:-1]])
    return (
        np.concatenate([points for points, _ in soups]),
        np.concatenate([faces + start for (_, faces), start in zip(soups, starts, strict=True)]),
    )


def moved(soup: tuple[np.ndarray, np.ndarray], by: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    return soup[0] + np.asarray(by, float), soup[1]


def turned(soup: tuple[np.ndarray, np.ndarray], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The soup under a random rotation."""
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    q *= np.sign(np.diag(r))
    return soup[0] @ (q * np.sign(np.linalg.det(q))).T, soup[1]


def sheet(size: float = 1.0, cuts: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """A flat square without thickness."""
    i, j = np.meshgrid(np.arange(cuts), np.arange(cuts), indexing="ij")
    a, b = (i * (cuts + 1) + j).ravel(), ((i + 1) * (cuts + 1) + j).ravel()
    faces = np.concatenate([np.stack([a, b, b + 1], axis=1), np.stack([a, b + 1, a + 1], axis=1)])
    x, y = np.meshgrid(np.linspace(0, size, cuts + 1), np.linspace(0, size, cuts + 1), indexing="ij")
    return np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1), faces


def divergence_volume(points: np.ndarray, faces: np.ndarray) -> float:
    a, b, c = (points[faces[:, k]] for k in range(3))
    return float(np.einsum("td,td->", a, np.cross(b, c)) / 6.0)
