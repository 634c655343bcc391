"""What a rig's parameter vector means: names, units, rest values, and which four numbers are a quaternion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softrig.errors import InputError, require_finite
from softrig.numerics.rotations import unit_quaternions


@dataclass(frozen=True, eq=False)
class Parameters:
    """The layout of a parameter vector p of P numbers."""

    names: tuple[str, ...]
    """P different names: "Hip.translation.x", "Hip.rotation.w", "smile.weight", "bend.angle"."""
    units: tuple[str, ...]
    """P units: "m", "rad" or "1"."""
    rest: np.ndarray
    """(P,) float64 values at rest."""
    quaternions: np.ndarray
    """(k,) int64 index of the x of each x, y, z, w quadruple."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest", np.asarray(self.rest, dtype=np.float64))
        object.__setattr__(self, "quaternions", np.asarray(self.quaternions, dtype=np.int64).reshape(-1))
        count = len(self.names)
        if len(self.units) != count or self.rest.shape != (count,):
            raise InputError(f"{count} names, {len(self.units)} units and rest values {self.rest.shape} disagree")
        if len(self._indices) != count:
            raise InputError("two parameters of the same name", _repeated(self.names))
        outside = (self.quaternions < 0) | (self.quaternions > count - 4)
        if outside.any():
            raise InputError("a quaternion outside the parameters", np.flatnonzero(outside))
        require_finite(self.rest, "rest parameters")

    @classmethod
    def concatenated(cls, parts: Sequence[Parameters]) -> Parameters:
        """All of `parts`, one behind the other."""
        starts = np.cumsum([0, *(len(part) for part in parts)])
        return cls(
            tuple(name for part in parts for name in part.names),
            tuple(unit for part in parts for unit in part.units),
            np.concatenate([np.zeros(0), *(part.rest for part in parts)]),
            np.concatenate(
                [np.zeros(0, np.int64), *(part.quaternions + start for part, start in zip(parts, starts, strict=False))]
            ),
        )

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:3]) + (", …" if len(self) > 3 else "")
        return f"Parameters({len(self):,}: {shown})"

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """Where the parameter called `name` is."""
        try:
            return self._indices[name]
        except KeyError:
            raise InputError(f"no parameter is called '{name}'") from None

    def normalised(self, p: np.ndarray) -> np.ndarray:
        """(..., P) a copy of `p` with unit quaternions; one of length zero becomes the identity."""
        p = np.array(p, dtype=np.float64)
        if self.quaternions.size:
            where = self.quaternions[:, None] + np.arange(4)
            p[..., where] = unit_quaternions(p[..., where])
        return p

    def checked(self, p: np.ndarray) -> np.ndarray:
        """(..., P) `p` as float64, or an `InputError` if it has another length."""
        p = np.asarray(p, dtype=np.float64)
        if p.ndim < 1 or p.shape[-1] != len(self):
            raise InputError(f"the rig has {len(self)} parameters, not {p.shape}")
        return p


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """`names` with "#2", "#3" … behind the second, third … of the same name (files may repeat names)."""
    taken = set(names := list(names))
    seen: set[str] = set()
    result = []
    for name in names:
        unique, copy = name, 1
        while unique in seen or (copy > 1 and unique in taken):
            copy += 1
            unique = f"{name}#{copy}"
        seen.add(unique)
        result.append(unique)
    return tuple(result)


def _repeated(names: Sequence[str]) -> list[int]:
    seen: set[str] = set()
    return [index for index, name in enumerate(names) if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
