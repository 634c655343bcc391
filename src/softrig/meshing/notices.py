"""What a user should know before trusting a mesh, and what helps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softrig.errors import notice
from softrig.meshing.quality import MeshQuality
from softrig.meshing.repair import Mended

MOST_NAMES = 8
"""Bones that a notice calls by name; of more it tells the number."""

TOLERANCE = 0.1
"""A count further from the target than this draws a notice."""

WHERE = "([mesh] tets in the project file, or --tets)"
MORE_TETS = f"more tets {WHERE}"
IF_IT_MATTERS = f"ask for another number {WHERE} if that matters"


def tell_quality(quality: MeshQuality, target: int, mended: Mended, bone_names: Sequence[str] = ()) -> None:
    """Notices about a mesh of `target` tets, each with what to do about it."""
    if abs(quality.tets / target - 1.0) > TOLERANCE:
        notice(
            f"{quality.tets} tets instead of {target}: no lattice spacing comes closer on this surface; {IF_IT_MATTERS}"
        )
    if quality.parted_vertices or quality.removed_tets:
        doubled = _counted(quality.parted_vertices, "vertex", "vertices")
        notice(
            f"parts hung together by a vertex or an edge only: {doubled} doubled,"
            f" {_counted(quality.removed_tets, 'tet')} removed; if they should be one, take {MORE_TETS}"
        )
    if quality.parts > 1:
        sizes = np.bincount(mended.part_of_tet)
        most = ", ".join(str(n) for n in sizes[:5]) + (", …" if len(sizes) > 5 else "")
        first = np.unique(mended.part_of_tet, return_index=True)[1][1:]
        notice(
            f"{quality.parts} parts share no face ({most} tets); where a thin bridge should join them,"
            f" take {MORE_TETS}; first tet of each smaller part",
            first,
        )
    if quality.pinched_edges:
        shared = "is" if quality.pinched_edges == 1 else "are"
        notice(
            f"{_counted(quality.pinched_edges, 'edge')} {shared} shared by more than two boundary faces;"
            f" {MORE_TETS} may part them"
        )
    if quality.fused_pairs:
        notice(f"nearly touching parts are one in the mesh {_at(quality.fused_places)}; {MORE_TETS} part them")
    if quality.thin_share > 0.01:
        share = f"{100 * quality.thin_share:.0f} %"
        notice(
            f"{share} of the surface is under two cells thick, {_at(quality.thin_places)}, and bends too stiffly there;"
            f" {MORE_TETS} help"
        )
    if quality.thin_bones.size and len(bone_names) > quality.thin_bones.max():
        # A joint with several children is several bones of one name.
        names = list(dict.fromkeys(bone_names[index] for index in quality.thin_bones))
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        told = ", ".join(f"'{name}'" for name in names[:MOST_NAMES])
        notice(f"bones in parts under two cells thick: {told}{more}; they hold the flesh there, {MORE_TETS} free it")
    elif quality.thin_bones.size:
        notice(
            f"bones in parts under two cells thick hold the flesh there, {MORE_TETS} free it; bones", quality.thin_bones
        )


def _at(places: np.ndarray, most: int = 4) -> str:
    """As "at 1 place: (0, 1.2, 0.1) m"; the largest first, `most` of them."""
    shown = ", ".join("(" + ", ".join(f"{x:.3g}" for x in place) + ")" for place in places[:most])
    return f"at {_counted(len(places), 'place')}: {shown}{', …' if len(places) > most else ''} m"


def _counted(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"
