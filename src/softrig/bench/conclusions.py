"""What the rows of `softrig compare` mean, in a sentence each: what would bring a model nearer to the full body."""

from __future__ import annotations

from collections.abc import Sequence

from softrig.bench.record import Record, Row

BEST, ALONE = "best of these shapes, %", "the same modes alone, exact forces"
"""A figure, and the row of modes beside which nothing yields."""
EVERY_TET = "ours, forces of every tet"
"""The row of ours without what the choice of tets costs."""
SAME = 1e-3
"""Errors nearer than this, of themselves, are those of one motion."""
MOSTLY = 0.5
"""Share of the error that no motion of the modes could avoid: from here on the modes are what limits."""
WHY_STIFFER = (
    "The same modes alone err more than ours, although their forces are exact: flesh that can do nothing but its "
    "modes is too stiff (it locks), and in ours the rest yields beside them."
)
WHY_NEARER = (
    "The same modes alone err less than ours here: they hold nearly all of the motion, so that nothing needs to yield "
    "beside them, and their forces are exact, where ours are learned, or those of a few tets."
)
WHY_NEARER_ALTHOUGH = (
    "The same modes alone err less than ours here: their forces are exact, where ours are learned, and in this clip "
    "that counts for more than the rest of the flesh, which yields in ours alone."
)
WHY_TETS = (
    "Nothing yields beside these modes: the same modes alone are ours with the forces of every tet, and ours asks a "
    "few tets only. More of them (count under [cubature] in the project file) bring it nearer."
)
MODES_LIMIT = "More modes (--modes, or basis.modes in the project file) bring it nearer."
MAPS_LIMIT = (
    "The modes are not what limits it, and more of them hardly help: what is off is how stiff the flesh is taken to be "
    "between the poses, or where it turns far. Poses or clips in the build that come near to this clip help; moments "
    "that are worth a pose, if any are, 'softrig info' of the built model names."
)

TETS_LIMIT = (
    "The modes are not what limits it, and nothing yields beside them: more tets that are asked for their force (count "
    "under [cubature] in the project file) bring it nearer, as far as those of every tet do."
)


def conclusion(record: Record) -> str:
    """How far ours is from the full simulation, how near its modes could come, and what helps."""
    ours, (sizes,) = record.rows[0], record.sizes.values()
    told = f"The flesh is {ours.told()} of its motion off the full simulation"
    best = ours.also.get(BEST)
    if best is None or ours.ours is None:
        return f"{told}."
    limit = TETS_LIMIT if _is_alone({row.what: row for row in record.rows}) else MAPS_LIMIT
    helps = MODES_LIMIT if best >= MOSTLY * ours.ours else limit
    return f"{told}; its {sizes['modes']} modes and what follows them could come as near as {best:.3g} %. {helps}"


def told_row(row: Row) -> str:
    """A row in a line: "ours: 7.29 %", or why there is no figure."""
    return f"{row.what}: {row.told() if row.ours is not None else row.note or 'not measured'}"


def _is_alone(by_name: dict[str, Row]) -> bool:
    """Whether nothing yields beside the modes: ours with the forces of every tet are the same modes alone."""
    every, alone = (row.ours if (row := by_name.get(name)) is not None else None for name in (EVERY_TET, ALONE))
    return every is not None and alone is not None and abs(every - alone) <= SAME * alone


def why_alone(rows: Sequence[Row]) -> str:
    """Why the same modes alone are further from the full simulation than ours, or nearer; "" where neither is so."""
    by_name = {row.what: row for row in rows}
    ours, alone = by_name.get("ours"), by_name.get(ALONE)
    if ours is None or alone is None or ours.ours is None or alone.ours is None:
        return ""
    if abs(alone.ours - ours.ours) <= SAME * alone.ours:
        return ""
    if _is_alone(by_name):
        return WHY_TETS if alone.ours < ours.ours else ""
    if alone.ours > ours.ours:
        return WHY_STIFFER
    best = ours.also.get(BEST)
    return WHY_NEARER if best is not None and best < MOSTLY * ours.ours else WHY_NEARER_ALTHOUGH
