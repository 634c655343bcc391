"""The tet mesher on the built-in characters, at the element counts of PSSD Table 3."""

from __future__ import annotations

import time
import warnings

from softrig.bench.record import Record, Row, Sizes
from softrig.characters import built_in
from softrig.console import Update
from softrig.errors import Notice
from softrig.machine import this_machine
from softrig.volume import character_volume

PSSD = "PSSD Table 3"
TETS = {"arm": 8122, "x": 9303, "bear": 12762, "gorilla": 16297}
TET_VERTICES = {"arm": 2364, "x": 3077, "bear": 4018, "gorilla": 3771}


def mesher(update: Update) -> Record:
    """Count, time and quality of each character's volume mesh."""
    rows: list[Row] = []
    sizes: Sizes = {}
    character_volume(built_in("x"), tets=500)  # compiles
    for done, (name, tets) in enumerate(TETS.items()):
        character = built_in(name)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Notice)  # thin places are in the rows
            quality = character_volume(character, tets=tets).lattice.quality
        seconds = time.perf_counter() - start
        rows += [
            Row(f"{name}: tets", "", quality.tets, others={PSSD: tets}),
            Row(f"{name}: vertices", "", quality.vertices, others={PSSD: TET_VERTICES[name]}),
            Row(f"{name}: time", "s", seconds),
            Row(f"{name}: smallest dihedral angle", "°", quality.smallest_dihedral),
            Row(f"{name}: mesh over surface volume", "", quality.volume_ratio),
            Row(f"{name}: surface under two cells thick", "%", 100.0 * quality.thin_share),
            Row(f"{name}: gaps fused", "", quality.fused_pairs),
        ]
        sizes[name] = {"tets": quality.tets, "tet vertices": quality.vertices}
        update(done + 1, len(TETS))
    return Record("mesher", "Tet meshes of the built-in characters", this_machine(), rows, "Each timed once.", sizes)
