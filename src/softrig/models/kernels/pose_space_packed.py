"""The tables of a step as one structure: handed over in a microsecond, where 150 arrays one by one take twenty."""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.experimental import structref

from softrig.models.kernels.pose_space_tables import (
    BoneRuns,
    Carriers,
    Chunks,
    Gyro,
    Memory,
    Projection,
    Rows,
    Sums,
)


@structref.register
class StepTablesType(types.StructRef):
    """The compiler's type of `StepTables`."""

    def preprocess_fields(self, fields: Any) -> Any:
        """Values that happen to be known when it is made are not part of the type."""
        return tuple((name, types.unliteral(field)) for name, field in fields)


class StepTables(structref.StructRefProxy):
    """All that `step` reads and writes; holds the arrays themselves, so that a change of their entries is seen."""

    carriers: Carriers
    bones: BoneRuns
    sums: Sums
    gyro: Gyro
    inertia: Projection
    wind: Projection
    chunks: Chunks
    rows: Rows
    memory: Memory


structref.define_proxy(StepTables, StepTablesType, list(StepTables.__annotations__))

# Where each table begins among the arguments of `_packed`.
_BONES = len(Carriers._fields)
_SUMS = _BONES + len(BoneRuns._fields)
_GYRO = _SUMS + len(Sums._fields)
_INERTIA = _GYRO + len(Gyro._fields)
_WIND = _INERTIA + len(Projection._fields)
_CHUNKS = _WIND + len(Projection._fields)
_ROWS = _CHUNKS + len(Chunks._fields)
_MEMORY = _ROWS + len(Rows._fields)
_END = _MEMORY + len(Memory._fields)


def step_tables(
    carriers: Carriers,
    bones: BoneRuns,
    sums: Sums,
    gyro: Gyro,
    inertia: Projection,
    wind: Projection,
    chunks: Chunks,
    rows: Rows,
    memory: Memory,
) -> StepTables:
    """The tables as `step` takes them."""
    return _packed(*carriers, *bones, *sums, *gyro, *inertia, *wind, *chunks, *rows, *memory)


@njit(cache=True)
def _packed(*tables: Any) -> StepTables:
    # One by one, because a named tuple of arrays costs the compiler three times as much as its arrays.
    return StepTables(
        Carriers(*tables[:_BONES]),
        BoneRuns(*tables[_BONES:_SUMS]),
        Sums(*tables[_SUMS:_GYRO]),
        Gyro(*tables[_GYRO:_INERTIA]),
        Projection(*tables[_INERTIA:_WIND]),
        Projection(*tables[_WIND:_CHUNKS]),
        Chunks(*tables[_CHUNKS:_ROWS]),
        Rows(*tables[_ROWS:_MEMORY]),
        Memory(*tables[_MEMORY:_END]),
    )
