"""Morph targets from moving vertices: few targets, weights within [0, 1], to a stated error.

Displacements d (frames, n, 3) at rest, before skinning, become d ≈ u T: targets T (k, n, 3) and weights
u (frames, k). T spans the leading singular vectors of d. A plain SVD makes the sum of squares small; what
shows is the largest distance, so rows (frames) and columns (vertices) are weighted again and again by the
error they still have (Lawson's weights for the largest error).

Blender clamps shape keys to [0, 1]. A signed weight w with values in [lo, hi] is therefore written as
u = (w − lo) / (hi − lo) of a target (hi − lo) T, and all lo T go into one constant target of weight 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from softrig.errors import InputError, require_finite

ROUNDS = 10
_SHORT = 32767
_BLOCK = 1 << 22  # numbers a block: residuals are made in pieces, never whole
_STRETCH = 10.0  # a nearly flat skin matrix stretches what is pulled back at most this much


@dataclass(frozen=True)
class Morphs:
    """Morph targets and their weights over time.

    targets: (k, n, 3) float32, displacements at weight 1 [length unit of the input].
    weights: (frames, k) float32 within [0, 1].
    scales: (k,) float64 where the targets are quantised, targets = codes · scales / 32767; else None.
    codes: (k, n, 3) int16 or None.
    """

    targets: np.ndarray
    weights: np.ndarray
    scales: np.ndarray | None = None
    codes: np.ndarray | None = None

    @property
    def count(self) -> int:
        """How many targets there are."""
        return len(self.targets)

    def part(self, used: np.ndarray) -> Morphs:
        """Only the targets with these indices."""
        scales = None if self.scales is None else self.scales[used]
        return Morphs(
            self.targets[used], self.weights[:, used], scales, None if self.codes is None else self.codes[used]
        )

    def displacements(self, frame: int) -> np.ndarray:
        """(n, 3) float64: what the targets add up to in a frame."""
        return np.tensordot(self.weights[frame].astype(np.float64), self.targets.astype(np.float64), 1)


def stretches(linear: np.ndarray) -> np.ndarray:
    """(n,) at least the largest singular value of each of (n, 3, 3) matrices; equal to it for scaled rotations."""
    products = np.abs(np.swapaxes(linear, 1, 2) @ linear)
    return np.sqrt(products.sum(axis=2).max(axis=1))


def pull_back(linear: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(n, 3) displacements that the (n, 3, 3) matrices turn into `offsets` (n, 3).

    Where a matrix is nearly flat (a joint twisted by 180°), directions that it shrinks to less than a tenth of
    its stretch are followed only in part: the exact inverse would blow up there.
    """
    a, b, c = linear[:, 0], linear[:, 1], linear[:, 2]
    adjugate = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=2)
    volume = np.einsum("ni,ni->n", a, adjugate[:, :, 0])
    size = stretches(linear)
    # The smallest singular value is at least |det| / stretch², so these inverses stretch less than the guard.
    sound = np.abs(volume) * _STRETCH >= size**3
    sound &= size > 0.0
    inverse = adjugate / np.where(sound, volume, 1.0)[:, None, None]
    inverse[~sound] = _guarded_inverse(linear[~sound])
    return np.einsum("nij,nj->ni", inverse, offsets)


def _guarded_inverse(linear: np.ndarray) -> np.ndarray:
    u, s, vt = np.linalg.svd(linear)
    floor = np.maximum(s[:, :1] / _STRETCH, np.finfo(float).tiny)
    # A matrix of zeros moves nothing: its inverse is zero, not infinite.
    reciprocal = np.where(s[:, :1] > 0.0, 1.0 / np.maximum(s, floor), 0.0)
    return np.swapaxes(vt, 1, 2) * reciprocal[:, None, :] @ np.swapaxes(u, 1, 2)


def compress(
    displacements: np.ndarray,
    *,
    tolerance: float,
    most_targets: int = 96,
    gains: np.ndarray | None = None,
    quantise: bool = False,
) -> Morphs:
    """The fewest targets found that keep every vertex of every frame within `tolerance`, at most `most_targets`.

    displacements: (frames, n, 3). gains: (frames, n), how much a distance at rest grows on the way to the world
    (`stretches` of the skin matrices); the tolerance is a distance in the world [m]. Displacements within the
    tolerance everywhere give no target at all. quantise rounds targets to 16 bits.
    """
    problem = _Problem.build(displacements, gains, tolerance, quantise)
    most = min(most_targets, len(problem.moving_rows) + 1)
    if most_targets < 1 or not tolerance > 0.0:
        raise InputError(f"morphs: {most_targets} targets to an error of {tolerance} cannot be")
    if problem.largest <= tolerance:
        return problem.none()
    with threadpool_limits(1, user_api="blas"):  # many middling products: threads only cost
        return problem.whole(_fewest(problem, most))


def _fewest(problem: _Problem, most: int) -> Morphs:
    """Doubling until the tolerance is met, then halving the interval down to the first count that meets it."""
    failed, count = 0, min(8, most)
    best, reached = problem.best_of(count)
    while reached > problem.tolerance and count < most:
        failed, count = count, min(2 * count, most)
        best, reached = problem.best_of(count)
    while reached <= problem.tolerance and count - failed > 1:
        middle = (failed + count) // 2
        candidate, error = problem.best_of(middle)
        if error <= problem.tolerance:
            best, count = candidate, middle
        else:
            failed = middle
    return best


def one_target_a_frame(displacements: np.ndarray, *, quantise: bool = False) -> Morphs:
    """The plain bake: frame i is target i with weight 1 then and 0 at the other frames."""
    flat = _checked(displacements)
    targets = flat.reshape(len(flat), -1, 3)
    return _finished(np.eye(len(flat), dtype=np.float32), targets, quantise)


def fit_targets(weights: np.ndarray, changes: np.ndarray, *, negligible: float = 0.0) -> np.ndarray:
    """(k, n, 3) float32: targets of another quantity (normals) that follow given weights, by least squares.

    weights: (frames, k). changes: (frames, n, 3). Values below `negligible` become zero.
    """
    frames, vertices, _ = changes.shape
    solver = np.linalg.pinv(weights.astype(np.float64))
    targets = (solver @ changes.reshape(frames, -1)).astype(np.float32).reshape(-1, vertices, 3)
    targets[np.abs(targets).max(axis=2) <= negligible] = 0.0
    return targets


@dataclass(frozen=True)
class _Problem:
    """Displacements of the vertices that move, with what each round of fitting needs again."""

    flat: np.ndarray  # (f, 3m) float32
    gains: np.ndarray  # (f, m) float32
    vertices: np.ndarray  # (m,) the vertices that move
    vertex_count: int
    moving_rows: np.ndarray
    tolerance: float
    quantise: bool
    left: np.ndarray  # (f, r) orthonormal, and
    right: np.ndarray  # (r, 3m): left · right is `flat` up to a hundredth of the tolerance (root mean square)
    largest: float

    @classmethod
    def build(cls, displacements: np.ndarray, gains: np.ndarray | None, tolerance: float, quantise: bool) -> _Problem:
        flat = _checked(displacements)
        frames, vertex_count = len(flat), flat.shape[1] // 3
        points = flat.reshape(frames, vertex_count, 3)
        vertices = np.flatnonzero((points != 0.0).any(axis=(0, 2)))
        growth = np.ones((frames, vertex_count), np.float32) if gains is None else np.asarray(gains, np.float32)
        if growth.shape != (frames, vertex_count):
            raise InputError(f"morphs: gains of shape {growth.shape} for {frames} frames of {vertex_count} vertices")
        require_finite(growth, "morphs: gains by frame")
        moving = np.ascontiguousarray(points[:, vertices]).reshape(frames, -1)
        growth = np.ascontiguousarray(growth[:, vertices])
        largest = float(np.max(_lengths(moving) * growth, initial=0.0))
        left, right = _low_rank(moving, growth, 0.01 * tolerance)
        rows = np.flatnonzero((moving != 0.0).any(axis=1))
        return cls(moving, growth, vertices, vertex_count, rows, tolerance, quantise, left, right, largest)

    def none(self) -> Morphs:
        return Morphs(np.zeros((0, self.vertex_count, 3), np.float32), np.zeros((len(self.flat), 0), np.float32))

    def whole(self, morphs: Morphs) -> Morphs:
        """With zeros for the vertices that do not move."""

        def spread(part: np.ndarray | None) -> np.ndarray | None:
            if part is None:
                return None
            full = np.zeros((len(part), self.vertex_count, 3), part.dtype)
            full[:, self.vertices] = part
            return full

        targets = spread(morphs.targets)
        assert targets is not None
        return Morphs(targets, morphs.weights, morphs.scales, spread(morphs.codes))

    def best_of(self, count: int) -> tuple[Morphs, float]:
        """The best of some rounds of fitting `count` targets, the constant one included, and its largest error."""
        columns = np.maximum(self.gains.mean(axis=0, dtype=np.float64), 1e-30)
        columns /= columns.mean()
        rows = np.ones(len(self.flat))
        best: tuple[Morphs, float] | None = None
        for _ in range(ROUNDS):
            morphs = self.fit(count, columns, rows)
            by_frame, by_vertex = self.errors(morphs)
            error = float(by_frame.max())
            if best is None or error < best[1]:
                best = morphs, error
            if error <= self.tolerance:
                break
            # Small steps: square roots overshoot, and the rounds then swing between two poor fits.
            columns = columns * (by_vertex / error + 0.2) ** 0.25
            rows = rows * (by_frame / error + 0.2) ** 0.25
            columns, rows = columns / columns.mean(), rows / rows.mean()
        assert best is not None
        return best

    def fit(self, count: int, columns: np.ndarray, rows: np.ndarray) -> Morphs:
        """`count` − 1 weighted singular vectors and the constant one, pruned and mapped into [0, 1]."""
        weighted = self.right * np.repeat(columns, 3)
        values, vectors = np.linalg.eigh(weighted @ weighted.T)
        scores = rows[:, None] * (self.left @ (vectors * np.sqrt(np.maximum(values, 0.0))))
        constant = rows / np.linalg.norm(rows)
        scores -= constant[:, None] * (constant @ scores)
        modes = np.linalg.svd(scores, full_matrices=False)[0][:, : count - 1] / rows[:, None]
        # Singular vectors have no sign of their own; this one makes runs alike.
        modes *= np.where(modes[np.abs(modes).argmax(axis=0), np.arange(modes.shape[1])] < 0.0, -1.0, 1.0)
        low = modes.min(axis=0)
        span = modes.max(axis=0) - low
        used = span > 1e-12 * max(float(span.max(initial=0.0)), 1e-300)
        unit = (modes[:, used] - low[used]) / span[used]
        weights = np.clip(np.hstack([np.ones((len(unit), 1)), unit]), 0.0, 1.0).astype(np.float32)
        solver = np.linalg.pinv(rows[:, None] * weights) * rows
        targets = (solver.astype(np.float32) @ self.flat).reshape(weights.shape[1], -1, 3)
        negligible = 0.25 * self.tolerance / np.sqrt(len(targets)) / max(float(self.gains.max()), 1e-30)
        targets[np.linalg.norm(targets, axis=2) < negligible] = 0.0
        return _finished(weights, targets, self.quantise)

    def errors(self, morphs: Morphs) -> tuple[np.ndarray, np.ndarray]:
        """The largest distance in the world of each frame (f,) and of each vertex (m,)."""
        targets = morphs.targets.reshape(morphs.count, -1)
        frames, vertices = self.gains.shape
        by_frame, by_vertex = np.zeros(frames), np.zeros(vertices)
        step = max(1, _BLOCK // (3 * frames))
        for start in range(0, vertices, step):
            stop = min(start + step, vertices)
            rest = self.flat[:, 3 * start : 3 * stop] - morphs.weights @ targets[:, 3 * start : 3 * stop]
            distances = _lengths(rest) * self.gains[:, start:stop]
            by_vertex[start:stop] = distances.max(axis=0)
            np.maximum(by_frame, distances.max(axis=1), out=by_frame)
        return by_frame, by_vertex


def _finished(weights: np.ndarray, targets: np.ndarray, quantise: bool) -> Morphs:
    if not quantise:
        return Morphs(targets, weights)
    largest = np.abs(targets).max(axis=(1, 2), initial=0.0).astype(np.float64)
    scales = np.where(largest > 0.0, largest, 1.0)
    codes = np.rint(targets * (_SHORT / scales)[:, None, None]).astype(np.int16)
    return Morphs((codes * (scales / _SHORT)[:, None, None]).astype(np.float32), weights, scales, codes)


def _low_rank(flat: np.ndarray, gains: np.ndarray, accuracy: float) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal (f, r) and (r, 3m) whose product is `flat` to `accuracy` (root mean square, in the world).

    Long clips have many more frames than ways to move: the rounds then work on r rows instead of f.
    """
    growth = float(gains.mean()) if gains.size else 1.0
    frames, columns = flat.shape
    # Single precision would lose every mode below 1e-4 of the largest.
    products = np.zeros((min(frames, columns),) * 2)
    if columns < frames:
        for start in range(0, frames, step := max(1, _BLOCK // max(columns, 1))):
            block = flat[start : start + step].astype(np.float64)
            products += block.T @ block
    else:
        for start in range(0, columns, step := max(1, _BLOCK // frames)):
            block = flat[:, start : start + step].astype(np.float64)
            products += block @ block.T
    values, vectors = np.linalg.eigh(products)
    keep = np.cumsum(np.maximum(values, 0.0)) * growth**2 > accuracy**2 * max(gains.size, 1)
    left = vectors[:, keep]
    if columns < frames:
        left = np.linalg.qr(flat @ left)[0]
    return left, (left.T.astype(np.float32) @ flat).astype(np.float64)


def _lengths(flat: np.ndarray) -> np.ndarray:
    """(f, m) lengths of (f, 3m) vectors."""
    x, y, z = flat[:, 0::3], flat[:, 1::3], flat[:, 2::3]
    return np.sqrt(x * x + y * y + z * z)


def _checked(displacements: np.ndarray) -> np.ndarray:
    points = np.asarray(displacements)
    if points.ndim != 3 or points.shape[2] != 3 or len(points) == 0:
        raise InputError(f"morphs: displacements of shape {points.shape} are not (frames, n, 3)")
    require_finite(points, "morphs: displacements by frame")
    return np.ascontiguousarray(points, np.float32).reshape(len(points), -1)
