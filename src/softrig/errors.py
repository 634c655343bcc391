"""What softrig says when something is wrong: one class a kind of trouble, each naming the culprit.

Every error is a `SoftrigError`. Input errors are also `ValueError`s and carry `indices`, the
elements, vertices, faces or groups at fault (empty where no index applies).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

import numpy as np


class SoftrigError(Exception):
    """Base of everything softrig raises on purpose."""


class Notice(UserWarning):
    """Something was repaired or assumed; the result is usable and the message says what was done."""


class InputError(SoftrigError, ValueError):
    """The input cannot be used. `indices` names the culprits, `message` says what and why."""

    def __init__(self, message: str, indices: Iterable[int] | np.ndarray = ()) -> None:
        self.indices = np.atleast_1d(np.asarray(indices, dtype=np.int64)).ravel()
        super().__init__(message + some_of(self.indices))


class EmptyMeshError(InputError):
    """No vertices, no elements or no triangles."""


class IndexRangeError(InputError):
    """An element or a triangle names a vertex that does not exist, or the same one twice."""


class NotFiniteError(InputError):
    """NaN or infinity where a number belongs."""


class FlatElementError(InputError):
    """Elements without volume."""


class InvertedElementError(InputError):
    """Elements turned inside out, or overlapping a neighbour."""


class UnreferencedVertexError(InputError):
    """Vertices that no element uses."""


class MaterialError(InputError):
    """A modulus, Poisson ratio or density outside its physical range."""


class AnchorError(InputError):
    """A part of the body has no fixed vertex where one is needed."""


class ModeCountError(InputError):
    """More modes asked for than the body or the basis has; `most`: how many those are, where that is known."""

    def __init__(self, message: str, indices: Iterable[int] | np.ndarray = (), *, most: int | None = None) -> None:
        self.most = most
        super().__init__(message, indices)


class StepSizeError(InputError):
    """A time step that is not positive, or beyond the stable limit of an explicit integrator."""


class SolverError(SoftrigError):
    """A solve failed: the matrix is singular, or the iteration did not converge."""


class ModelFileError(SoftrigError):
    """A model file is truncated, foreign, newer than this softrig, or inconsistent."""


def some_of(indices: np.ndarray, most: int = 8) -> str:
    """The first few of `indices` as the tail of a message, with how many more there are."""
    if indices.size == 0:
        return ""
    shown = ", ".join(str(i) for i in indices[:most])
    more = f" and {indices.size - most} more" if indices.size > most else ""
    return f" [index {shown}{more}]"


def notice(message: str, indices: Iterable[int] | np.ndarray = ()) -> None:
    """Warn with a `Notice`, naming the indices the way errors do.

    It is printed as one line: a place in softrig's own code would tell nobody anything. Filters see whose module it is.
    """
    told = message + some_of(np.asarray(list(indices), dtype=np.int64))
    module = sys._getframe(1).f_globals
    registry = module.setdefault("__warningregistry__", {})
    # There is no line 0 of anything, so that none is looked up and printed below the message.
    warnings.warn_explicit(told, Notice, "softrig", 0, module.get("__name__", "softrig"), registry)


def require_indices(indices: object, count: int, what: str) -> np.ndarray:
    """(k,) `indices` as integers, if all lie within 0 to count − 1; `what` they are, for the message."""
    array = np.atleast_1d(np.asarray(indices))
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise IndexRangeError(f"{what} must be integers, got {array.dtype}")
    outside = (array < 0) | (array >= count)
    if outside.any():
        raise IndexRangeError(f"{what} outside 0 to {count - 1}", array[outside])
    return array.astype(np.int64)


def require_vectors(vectors: object, count: int, what: str) -> np.ndarray:
    """(count, 3) finite vectors; a single (3,) serves for all."""
    array = np.asarray(vectors, dtype=np.float64)
    if array.shape not in ((3,), (1, 3), (count, 3)):
        raise InputError(f"{what} have shape {array.shape}, not ({count}, 3) or (3,)")
    array = np.array(np.broadcast_to(array, (count, 3)))
    require_finite(array, what)
    return array


def require_output(out: np.ndarray, shape: tuple[int, ...], dtype: type) -> None:
    """Raise an `InputError` unless compiled code may write `shape` numbers of `dtype` into `out`."""
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.writeable:
        raise InputError(f"`out` must be contiguous {np.dtype(dtype)} of shape {shape}, not {out.dtype} of {out.shape}")


def require_finite(array: np.ndarray, what: str) -> None:
    """Raise `NotFiniteError` naming the first axis' rows of `array` that hold NaN or infinity."""
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.unique(np.nonzero(~finite)[0]) if array.ndim else np.zeros(0, np.int64)
        raise NotFiniteError(f"{what}: NaN or infinite", bad)
