"""How true a reduced motion is to the full one: errors of trajectories, and what an eye would notice of them.

Trajectories are displacements (f, n, 3) in metres at f equally spaced frames, `rate` frames a second. Norms are
mass-weighted, ‖u‖² = Σ_v m_v |u_v|², so that they do not depend on how finely a part is meshed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numba import njit

from softrig.errors import InputError, require_finite

QUIETEST = 0.02
"""Swings below this share of the largest are not used to measure a decay."""
FINER = 4
"""Lines of a spectrum in which a peak is looked for, for one of the signal's own."""
_RANK = 1e-12
"""Directions of a basis whose share of the Gram matrix is below this do not count."""


@dataclass(frozen=True)
class FidelityReport:
    """A reduced motion beside the full one, everything in SI units; NaN where a measure does not apply."""

    error: float
    """‖u_reduced − u_full‖ / ‖u_full‖ over all frames."""
    worst_frame: int
    """The frame of the largest difference."""
    worst_distance: float
    """The largest distance between the two at one vertex, metre."""
    peak: tuple[float, float]
    """The largest displacement of any vertex, reduced and full, metre."""
    frequency: tuple[float, float]
    """Dominant frequency, reduced and full, hertz."""
    half_life: tuple[float, float]
    """Time in which the swing after the motion halves, reduced and full, second."""
    volume_drift: tuple[float, float]
    """The largest change of the whole volume by u, relative, reduced and full."""
    inverted: tuple[float, float]
    """The largest number of inverted tets in a frame, reduced and full."""

    @property
    def peak_ratio(self) -> float:
        """The reduced peak over the full one."""
        return _ratio(*self.peak)

    @property
    def frequency_ratio(self) -> float:
        """The reduced frequency over the full one."""
        return _ratio(*self.frequency)

    @property
    def half_life_ratio(self) -> float:
        """The reduced half-life over the full one."""
        return _ratio(*self.half_life)

    def rows(self) -> list[tuple[str, str, str]]:
        """A table: what, reduced, full."""
        return [
            ("trajectory error", _number(100 * self.error, "%"), "–"),
            ("largest distance", f"{1e3 * self.worst_distance:.3g} mm (frame {self.worst_frame})", "–"),
            ("peak", *_numbers(self.peak, "mm", 1e3)),
            ("frequency", *_numbers(self.frequency, "Hz")),
            ("half-life", *_numbers(self.half_life, "s")),
            ("volume drift", *_numbers(self.volume_drift, "%", 100.0)),
            ("inverted tets", *_numbers(self.inverted, "")),
        ]


def compare(
    reduced: np.ndarray,
    full: np.ndarray,
    vertex_mass: np.ndarray,
    rate: float,
    *,
    stop: int | None = None,
    rest: np.ndarray | None = None,
    tets: np.ndarray | None = None,
) -> FidelityReport:
    """All measures of a reduced trajectory against the full one, both (f, n, 3).

    `stop`: the frame from which the rig stands still; the decay is measured there, and the frequency too (else over
    all frames). `rest` (f, n, 3) and `tets` (e, 4): the moving rest shape, for volumes.
    """
    _require_alike(reduced, full, vertex_mass)
    worst = int(np.argmax(frame_norms(reduced - full, vertex_mass)))
    swings = reduced[stop or 0 :], full[stop or 0 :]
    shape = dominant_shape(swings[1], vertex_mass)
    one, other = (component(swing, shape, vertex_mass) for swing in swings)
    nothing = (np.nan, np.nan)
    return FidelityReport(
        error=trajectory_error(reduced, full, vertex_mass),
        worst_frame=worst,
        worst_distance=peak(reduced - full),
        peak=(peak(reduced), peak(full)),
        frequency=(dominant_frequency(one, rate), dominant_frequency(other, rate)),
        half_life=nothing if stop is None else (half_life(one, rate), half_life(other, rate)),
        volume_drift=nothing if rest is None or tets is None else _both(volume_drift, reduced, full, rest, tets),
        inverted=nothing if rest is None or tets is None else _both(inverted_tets, reduced, full, rest, tets),
    )


def trajectory_error(reduced: np.ndarray, full: np.ndarray, vertex_mass: np.ndarray) -> float:
    """√(Σ_t ‖u_reduced − u_full‖² / Σ_t ‖u_full‖²) of trajectories (f, n, 3); 0 where both never move."""
    _require_alike(reduced, full, vertex_mass)
    return _ratio(_whole(reduced - full, vertex_mass), _whole(full, vertex_mass))


def projection_error(
    full: np.ndarray,
    basis: Callable[[int], np.ndarray] | Iterable[np.ndarray] | np.ndarray,
    vertex_mass: np.ndarray,
) -> float:
    """How much of a trajectory (f, n, 3) a basis cannot show: relative RMS distance to its span, mass-weighted.

    `basis`: (n, 3, r) for all frames, or one a frame as an array (f, n, 3, r), an iterable or a function of the frame.
    Columns need be neither orthonormal nor independent. A lower bound of the trajectory error with that basis.
    """
    _require_alike(full, full, vertex_mass)
    remainder = np.empty_like(full, dtype=np.float64)
    for frame, shapes in enumerate(_bases(basis, len(full))):
        if shapes.shape[:2] != full.shape[1:]:
            raise InputError(f"a basis of shape {shapes.shape} for displacements {full.shape[1:]}", [frame])
        remainder[frame] = full[frame] - _projected(full[frame], shapes, vertex_mass)
    return _ratio(_whole(remainder, vertex_mass), _whole(full, vertex_mass))


def frame_norms(trajectory: np.ndarray, vertex_mass: np.ndarray) -> np.ndarray:
    """(f,) √(Σ_v m_v |u_v|² / Σ_v m_v), metre: the RMS displacement of each frame."""
    return np.sqrt(np.einsum("fni,fni,n->f", trajectory, trajectory, vertex_mass) / vertex_mass.sum())


def peak(trajectory: np.ndarray) -> float:
    """The largest displacement of any vertex in any frame, metre."""
    return float(np.linalg.norm(trajectory, axis=2).max())


def dominant_shape(trajectory: np.ndarray, vertex_mass: np.ndarray) -> np.ndarray:
    """(n, 3) the mass-orthonormal shape that carries most of the motion about its mean (first mode of a mass-PCA)."""
    moved = trajectory - trajectory.mean(axis=0)
    gram = np.einsum("fni,gni,n->fg", moved, moved, vertex_mass, optimize=True)
    values, vectors = np.linalg.eigh(gram)
    if values[-1] <= 0.0:
        return np.zeros(trajectory.shape[1:])
    shape = np.tensordot(vectors[:, -1], moved, axes=1) / np.sqrt(values[-1])
    # The sign is open: the largest entry is made positive, for repeatability.
    return shape * np.sign(shape.ravel()[np.argmax(np.abs(shape))])


def component(trajectory: np.ndarray, shape: np.ndarray, vertex_mass: np.ndarray) -> np.ndarray:
    """(f,) how much of a shape (n, 3) each frame holds, Σ_v m_v shape_v · u_v."""
    return np.einsum("fni,ni,n->f", trajectory, shape, vertex_mass, optimize=True)


def dominant_frequency(signal: np.ndarray, rate: float) -> float:
    """The frequency of the largest peak in the spectrum of a signal (f,) sampled at `rate`, hertz; NaN if none.

    Hann window, lines `FINER` times as dense as the signal's own, and the top of the parabola through the logarithms of
    the largest and its neighbours, the ends left out. The peak of a sine that decays is broad but as steep to either
    side, so it is found as well: once the signal holds three periods, to a fortieth of rate/f where half is gone in a
    tenth of it, to a sixth where it is gone in a twentieth; of five periods and more, to a fiftieth in either case.
    """
    signal = np.asarray(signal, dtype=np.float64)
    count = len(signal)
    if count < 8:
        return float("nan")
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(count) / count)
    lines = np.abs(np.fft.rfft(window * (signal - window @ signal / window.sum()), FINER * count))
    slowest = 3 * FINER // 2  # less than one and a half periods is a drift, which may be larger than any swing
    here = lines[slowest:-1]
    peaks = slowest + np.flatnonzero((here >= lines[slowest - 1 : -2]) & (here > lines[slowest + 1 :]))
    if not len(peaks):
        return float("nan")
    k = int(peaks[np.argmax(lines[peaks])])
    if lines[k] <= 1e-12 * max(float(np.abs(signal).max()), 1e-300) * count:
        return float("nan")
    below, top, above = np.log(lines[k - 1 : k + 2])
    return float((k + 0.5 * (below - above) / (below - 2.0 * top + above)) * rate / (FINER * count))


def first_swing_frequency(signal: np.ndarray, rate: float) -> float:
    """That of the first whole swing of a signal (f,) sampled at `rate` about zero, hertz; NaN if there is none.

    From the first crossing, later than the very start, to the second after it.
    """
    changes = np.flatnonzero(np.diff(np.asarray(signal) >= 0.0))  # a sample at zero is no crossing of its own
    changes = changes[changes > 3]
    if len(changes) < 3:
        return float("nan")
    exact = changes + signal[changes] / (signal[changes] - signal[changes + 1])
    return float(rate / (exact[2] - exact[0]))


def half_life(signal: np.ndarray, rate: float) -> float:
    """The time in which the swing of a signal (f,) sampled at `rate` halves, second; NaN if it swings less than twice.

    A damped sine about any offset has its turning points at equal distances, and the strokes between them shrink by
    one factor: their logarithms over time are a straight line. Fitted with the strokes as weights, down to `QUIETEST`
    of the largest. Infinite or negative where the swing does not shrink.
    """
    times, values = _turning_points(np.asarray(signal, dtype=np.float64))
    strokes = np.abs(np.diff(values))
    if len(strokes) < 3:
        return float("nan")
    middles = 0.5 * (times[1:] + times[:-1]) / rate
    loud = strokes > QUIETEST * strokes.max()
    if loud.sum() < 3:
        return float("nan")
    slope = float(np.polyfit(middles[loud], np.log(strokes[loud]), 1, w=strokes[loud])[0])
    return float("inf") if slope == 0.0 else -np.log(2.0) / slope


def volume_drift(rest: np.ndarray, trajectory: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """(f,) relative change of the whole volume of tets (e, 4) by displacements from the moving rest shape (f, n, 3)."""
    volumes = np.array(
        [[_volumes(x, tets)[0], _volumes(x + u, tets)[0]] for x, u in zip(rest, trajectory, strict=True)]
    )
    return volumes[:, 1] / volumes[:, 0] - 1.0


def inverted_tets(rest: np.ndarray, trajectory: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """(f,) how many tets each frame turns inside out."""
    return np.array([_volumes(x + u, tets)[1] for x, u in zip(rest, trajectory, strict=True)])


@njit(cache=True)
def _volumes(x: np.ndarray, tets: np.ndarray) -> tuple[float, int]:
    """The sum of signed volumes, cubic metre, and how many are negative."""
    total, negative = 0.0, 0
    for e in range(tets.shape[0]):
        o = tets[e, 0]
        a0, a1, a2 = x[tets[e, 1], 0] - x[o, 0], x[tets[e, 1], 1] - x[o, 1], x[tets[e, 1], 2] - x[o, 2]
        b0, b1, b2 = x[tets[e, 2], 0] - x[o, 0], x[tets[e, 2], 1] - x[o, 1], x[tets[e, 2], 2] - x[o, 2]
        c0, c1, c2 = x[tets[e, 3], 0] - x[o, 0], x[tets[e, 3], 1] - x[o, 1], x[tets[e, 3], 2] - x[o, 2]
        six = a0 * (b1 * c2 - b2 * c1) - a1 * (b0 * c2 - b2 * c0) + a2 * (b0 * c1 - b1 * c0)
        total += six / 6.0
        if six < 0.0:
            negative += 1
    return total, negative


def _turning_points(signal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times (in samples) and values of the extrema, each by the parabola through three samples."""
    before, here, after = signal[:-2], signal[1:-1], signal[2:]
    extreme = (here - before) * (after - here) < 0.0
    b, m, a = before[extreme], here[extreme], after[extreme]
    curvature = b - 2.0 * m + a
    offset = 0.5 * (b - a) / curvature
    return np.flatnonzero(extreme) + 1.0 + offset, m - 0.25 * (b - a) * offset


def _bases(basis: Callable[[int], np.ndarray] | Iterable[np.ndarray] | np.ndarray, frames: int) -> Iterable[np.ndarray]:
    if callable(basis):
        return (basis(frame) for frame in range(frames))
    if isinstance(basis, np.ndarray) and basis.ndim == 3:
        return (basis for _ in range(frames))
    given = list(basis)
    if len(given) != frames:
        raise InputError(f"{len(given)} bases for {frames} frames")
    return given


def _projected(u: np.ndarray, shapes: np.ndarray, vertex_mass: np.ndarray) -> np.ndarray:
    """The nearest field to u (n, 3) in the span of shapes (n, 3, r), mass-weighted."""
    columns = shapes.reshape(-1, shapes.shape[2])
    mass = np.repeat(vertex_mass, 3)
    gram = columns.T @ (mass[:, None] * columns)
    # Unit columns: a basis in mixed units would lose its small ones to the rank test.
    scale = np.sqrt(np.diagonal(gram))
    scale = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    kept = vectors[:, values > _RANK * max(values[-1], 1e-300)] / scale[:, None]
    right = kept.T @ (columns.T @ (mass * u.ravel()))
    inverse = 1.0 / values[values > _RANK * max(values[-1], 1e-300)]
    return (columns @ (kept @ (inverse * right))).reshape(u.shape)


def _whole(trajectory: np.ndarray, vertex_mass: np.ndarray) -> float:
    return float(np.sqrt(np.einsum("fni,fni,n->", trajectory, trajectory, vertex_mass, optimize=True)))


def _require_alike(reduced: np.ndarray, full: np.ndarray, vertex_mass: np.ndarray) -> None:
    if full.ndim != 3 or full.shape[2] != 3 or reduced.shape != full.shape or not len(full):
        raise InputError(f"trajectories must both be (frames, n, 3), got {reduced.shape} and {full.shape}")
    if np.shape(vertex_mass) != (full.shape[1],):
        raise InputError(f"vertex masses {np.shape(vertex_mass)} for {full.shape[1]} vertices")
    require_finite(reduced, "reduced trajectory")
    require_finite(full, "full trajectory")


def _ratio(part: float, whole: float) -> float:
    if whole == 0.0:
        return 0.0 if part == 0.0 else float("inf")
    return part / whole


def _both(
    measure: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    reduced: np.ndarray,
    full: np.ndarray,
    rest: np.ndarray,
    tets: np.ndarray,
) -> tuple[float, float]:
    """The largest size of a measure over the frames, of both trajectories."""
    one, other = (float(np.abs(measure(rest, part, tets)).max()) for part in (reduced, full))
    return one, other


def _numbers(values: tuple[float, float], unit: str, factor: float = 1.0) -> tuple[str, str]:
    return _number(factor * values[0], unit), _number(factor * values[1], unit)


def _number(value: float, unit: str) -> str:
    return "–" if np.isnan(value) else f"{value:.3g} {unit}".rstrip()
