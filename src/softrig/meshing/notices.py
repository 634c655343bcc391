"""What a user should know before trusting a mesh, and what helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from softrig.errors import notice
from softrig.meshing.quality import MeshQuality
from softrig.meshing.repair import Mended

MOST_NAMES = 8
"""Bones that a notice calls by name; of more it tells the number."""

MOST_ASKED = 200_000
"""Tets that a project file may ask for."""

TOLERANCE = 0.1
"""A count further from the target than this draws a notice."""

MOST_PLACES = 4
"""That are listed."""

WHERE = ' ([mesh] tets in the project file, --tets, or mesh={"tets": …} in Python)'
IF_IT_MATTERS = f"ask for another number{WHERE} if that matters"


@dataclass(frozen=True)
class KnownBones:
    """Bones by which people know the places of a body."""

    names: Sequence[str] = ()
    segments: np.ndarray = field(default_factory=lambda: np.zeros((0, 2, 3)))
    """(b, 2, 3) heads and tails, metres."""

    def nearest(self, place: np.ndarray) -> str | None:
        """The name of the bone nearest to `place` (3,), metres; None where bones or their names are not known."""
        if not len(self.names) or len(self.segments) != len(self.names):
            return None
        heads, along = self.segments[:, 0], self.segments[:, 1] - self.segments[:, 0]
        lengths = np.maximum(np.einsum("bi,bi->b", along, along), 1e-300)
        shares = np.clip(np.einsum("bi,bi->b", place - heads, along) / lengths, 0.0, 1.0)
        return self.names[int(np.argmin(np.linalg.norm(heads + shares[:, None] * along - place, axis=1)))]


def tell_quality(
    quality: MeshQuality, target: int, mended: Mended, bones: KnownBones | None = None, *, enough: int | None = None
) -> None:
    """Notices about a mesh of `target` tets, each with what to do about it; the first also says how.

    `enough`: about how many tets would make half of what is thin thick enough, where that is known.
    """
    bones = bones or KnownBones()
    unsaid = [WHERE]

    def how() -> str:
        return unsaid.pop() if unsaid else ""

    if abs(quality.tets / target - 1.0) > TOLERANCE:
        notice(
            f"{quality.tets} tets instead of {target}: no lattice spacing comes closer on this surface; {IF_IT_MATTERS}"
        )
        unsaid.clear()
    if quality.parted_vertices or quality.removed_tets:
        doubled = _counted(quality.parted_vertices, "vertex", "vertices")
        notice(
            f"parts hung together by a vertex or an edge only: {doubled} doubled,"
            f" {_counted(quality.removed_tets, 'tet')} removed; if they should be one, take more tets{how()}"
        )
    if quality.parts > 1:
        sizes = np.bincount(mended.part_of_tet)
        most = ", ".join(str(n) for n in sizes[:5]) + (", …" if len(sizes) > 5 else "")
        first = np.unique(mended.part_of_tet, return_index=True)[1][1:]
        notice(
            f"{quality.parts} parts share no face ({most} tets); where a thin bridge should join them,"
            f" take more tets{how()}; first tet of each smaller part",
            first,
        )
    if quality.pinched_edges:
        shared = "is" if quality.pinched_edges == 1 else "are"
        notice(
            f"{_counted(quality.pinched_edges, 'edge')} {shared} shared by more than two boundary faces;"
            f" more tets{how()} may part them"
        )
    if quality.fused_pairs:
        notice(
            f"nearly touching parts are one in the mesh {_at(quality.fused_places, bones)}; more tets{how()} part them"
        )
    if quality.thin_share > 0.01:
        share = f"{100 * quality.thin_share:.0f} %"
        notice(
            f"{share} of the surface is under two cells thick, {_at(quality.thin_places, bones)}, and bends too"
            f" stiffly there; more tets{how()} help{_enough(enough, quality.tets)}"
        )
    if quality.thin_bones.size and len(bones.names) > quality.thin_bones.max():
        # A joint with several children is several bones of one name.
        names = list(dict.fromkeys(bones.names[index] for index in quality.thin_bones))
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        told = ", ".join(f"'{name}'" for name in names[:MOST_NAMES])
        notice(
            f"bones in parts under two cells thick: {told}{more}; they hold the flesh there, more tets{how()} free it"
        )
    elif quality.thin_bones.size:
        notice(
            f"bones in parts under two cells thick hold the flesh there, more tets{how()} free it; bones",
            quality.thin_bones,
        )


def _enough(enough: int | None, tets: int) -> str:
    """As ": about 30,000 would do for half of it", in two figures; no number is given that nobody would take."""
    if enough is None or enough <= tets:
        return ""
    if enough > MOST_ASKED:
        return f", though half of it would need more than {MOST_ASKED:,}"
    return f": about {round(enough, 2 - len(str(enough))):,} would do for half of it"


def _at(places: np.ndarray, bones: KnownBones) -> str:
    """As "at 1 place: (0, 1.2, 0.1) m", or "at 1 place: by 'tail' (0, 1.2, 0.1) m"; the largest first."""
    shown = [_place(place, bones.nearest(place)) for place in places[:MOST_PLACES]]
    more = ", …" if len(places) > MOST_PLACES else ""
    return f"at {_counted(len(places), 'place')}: {', '.join(shown)}{more} m"


def _place(place: np.ndarray, bone: str | None) -> str:
    coordinates = "(" + ", ".join(f"{x:.3g}" for x in place) + ")"
    return coordinates if bone is None else f"by '{bone}' {coordinates}"


def _counted(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"
