"""Tets for any triangle soup: isosurface stuffing on a lattice of the right spacing, checked and mended.

soup → signed distance → spacing for the wanted count → stuffed lattice → mended mesh → embedding
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softrig.errors import InputError, notice
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.bones import checked_segments
from softrig.meshing.closeness import close_pairs, clusters, half_thickness
from softrig.meshing.distance_field import SurfaceField
from softrig.meshing.embedding import TetEmbedding, embed_points
from softrig.meshing.lattice_body import PHASES, StuffedBody, grown_body, stuff
from softrig.meshing.notices import KnownBones, tell_quality
from softrig.meshing.quality import MeshQuality, dihedral_angles, tet_volumes
from softrig.meshing.repair import Mended, hinge_count, mend, part_count
from softrig.meshing.spacing import MOST_PASSES, SpacingSearch, expected_tets, first_spacing
from softrig.meshing.thickness import SurfaceSamples, sample_surface

FEWEST_TETS, MOST_TETS = 50, 1 << 20

REACHES = (0.7, 0.9)
"""b: how far a thin part is grown, in spacings; the second is tried where the first leaves hinges or breaks."""

NEARLY = 0.08
"""How far from the target a count may be before mending, which may take tets away: other lattices are tried beyond."""

Phase = tuple[float, float, float]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LatticeMesh:
    """Tets that fill a surface, and how the surface hangs in them."""

    mesh: VolumeMesh
    """The tets, metres."""
    quality: MeshQuality
    embedding: TetEmbedding
    """The soup's vertices in the tets."""
    density_factor: float
    """Surface over mesh volume: times this, a density gives the body its true mass."""
    spacing: float
    """Edge of the lattice's cubes, metres; edges inside are this or √3/2 of it."""


def tet_mesh(
    vertices: np.ndarray,
    triangles: np.ndarray,
    *,
    tets: int = 16000,
    bones: np.ndarray | None = None,
    bone_names: Sequence[str] = (),
    progress: Progress | None = None,
) -> LatticeMesh:
    """Fill a triangle soup with about `tets` well-shaped tets.

    `vertices` (n, 3) in metres, `triangles` (m, 3). The soup may be open, doubled, crossing, inside
    out or a mere sheet; inside is where it winds around by more than half a turn. Around `bones`
    (b, 2, 3), head and tail in metres, thin parts are kept whole; notices call them by their
    `bone_names`. The count is met within 10 % or a notice says why not; further notices
    name thin and fused places and parts that do not hang together. `progress(done, total)` counts
    lattices tried.
    """
    if not FEWEST_TETS <= tets <= MOST_TETS:
        raise InputError(f"tets must be within {FEWEST_TETS} and {MOST_TETS}, not {tets}")
    field = SurfaceField.of(vertices, triangles)
    segments = field.local(checked_segments(np.zeros((0, 2, 3)) if bones is None else bones, "bones"))
    body = _Attempts(field, segments, tets, progress).best_body()
    mended = mend(body.places, body.tets, crumb=body.spacing**3)
    mesh = VolumeMesh.build(field.metres(mended.vertices), mended.tets.astype(np.int32))
    embedding = embed_points(mesh, np.asarray(vertices, np.float64))
    quality = _quality(field, body, mended, mesh, embedding, segments)
    known = KnownBones(bone_names, field.metres(segments))
    tell_quality(quality, tets, mended, known, enough=tets_for_half(field, body, len(mended.tets)))
    factor = 1.0
    if quality.surface_volume > 0.01 * quality.mesh_volume:
        factor = quality.surface_volume / quality.mesh_volume
    else:
        notice(
            "the surface encloses next to nothing: the mass is that of the tets around it; let a sheet of cloth follow"
            ' the body instead ([parts] in the project file: its name = "follows")'
        )
    if progress:
        progress(MOST_PASSES, MOST_PASSES)
    return LatticeMesh(mesh, quality, embedding, factor, body.spacing * field.scale)


@dataclass
class _Attempts:
    """The lattices tried for one surface; samples are kept while the spacing hardly changes."""

    field: SurfaceField
    bones: np.ndarray
    target: int
    progress: Progress | None
    samples: SurfaceSamples | None = None
    sampled_at: float = 0.0
    done: int = 0

    def best_body(self) -> StuffedBody:
        """The body nearest to the target count; with a longer reach if that mends hinges and breaks."""
        spacing = first_spacing(abs(self.field.signed_volume), self.field.area, self.target)
        chosen, trouble = None, 0
        for reach in REACHES:
            body = self._search(reach, spacing)
            broken = max(0, part_count(body.tets) - self.field.pieces) + hinge_count(body.tets)
            if chosen is None or broken < trouble:
                chosen, trouble = body, broken
            if trouble == 0:
                break
            spacing = body.spacing
        assert chosen is not None
        return chosen

    def _search(self, reach: float, spacing: float) -> StuffedBody:
        """The best of one lattice, or of others shifted against it where a flat side makes the count jump."""
        bodies: list[StuffedBody] = []
        for phase in PHASES:
            found: dict[float, StuffedBody] = {}

            def count(h: float, phase: Phase = phase, found: dict[float, StuffedBody] = found) -> int:
                found[h] = self._stuffed(h, reach, phase)
                return len(found[h].tets)

            spacing = SpacingSearch(self.target).run(spacing, count)
            bodies.append(found[spacing])
            if self._miss(bodies[-1]) <= NEARLY:
                break
        return min(bodies, key=self._miss)

    def _miss(self, body: StuffedBody) -> float:
        return abs(len(body.tets) / self.target - 1.0)

    def _stuffed(self, spacing: float, reach: float, phase: Phase) -> StuffedBody:
        if self.samples is None or not 0.85 < spacing / self.sampled_at < 1.15:
            self.samples, self.sampled_at = sample_surface(self.field, spacing), spacing
        body = stuff(grown_body(self.field, self.samples, spacing, reach, self.bones), phase)
        self.done += 1
        if self.progress:
            self.progress(min(self.done, MOST_PASSES - 1), MOST_PASSES)
        return body


def tets_for_half(field: SurfaceField, body: StuffedBody, tets: int) -> int | None:
    """About how many tets make half of what is under two cells thick thicker than that; None where none do.

    Cells as small as half of it is deep, about as many as the volume and the surface then hold.
    """
    depths, areas = half_thickness(body.samples), body.samples.areas
    thin = np.flatnonzero(depths < body.spacing)
    if not len(thin):
        return None
    order = thin[np.argsort(-depths[thin])]
    share = np.cumsum(areas[order]) / areas[order].sum()
    wanted = float(depths[order[np.searchsorted(share, 0.5)]])
    if wanted <= 0.0:
        return None  # a sheet
    more, now = (expected_tets(abs(field.signed_volume), field.area, h) for h in (wanted, body.spacing))
    return round(tets * more / now)


def _quality(
    field: SurfaceField,
    body: StuffedBody,
    mended: Mended,
    mesh: VolumeMesh,
    embedding: TetEmbedding,
    bones: np.ndarray,
) -> MeshQuality:
    angles = dihedral_angles(mended.vertices, mended.tets)
    thin = half_thickness(body.samples) < body.spacing
    areas = body.samples.areas
    gaps = body.samples.places[close_pairs(field, body.samples, body.spacing)].mean(axis=1)
    if len(gaps):
        gaps = gaps[~embed_points(mesh, field.metres(gaps)).outside]
    return MeshQuality(
        tets=len(mended.tets),
        vertices=len(mended.vertices),
        smallest_dihedral=float(angles.min()),
        largest_dihedral=float(angles.max()),
        surface_volume=_surface_volume(field, mended) * field.scale**3,
        mesh_volume=float(mesh.volumes.sum()),
        parts=int(mended.part_of_tet.max()) + 1,
        parted_vertices=mended.parted,
        removed_tets=mended.removed,
        pinched_edges=mended.pinched_edges,
        smallest_weight=embedding.smallest_weight,
        share_outside=embedding.share_outside,
        thin_share=float(areas[thin].sum() / areas.sum()),
        thin_places=field.metres(clusters(body.samples.places[thin], body.spacing)),
        thin_bones=_thin_bones(field, bones, body.spacing),
        fused_pairs=len(gaps),
        fused_places=field.metres(clusters(gaps, body.spacing)),
    )


def _thin_bones(field: SurfaceField, bones: np.ndarray, spacing: float) -> np.ndarray:
    """Bones that are inside somewhere, but nowhere a cell deep."""
    at = bones[:, :1] + np.linspace(0.1, 0.9, 5)[:, None] * (bones[:, 1:] - bones[:, :1])
    depth = field.signed(at.reshape(-1, 3), 2.0 * spacing).reshape(-1, 5).max(axis=1)
    return np.nonzero((depth > 0.0) & (depth < spacing))[0]


def _points_in_tet(count: int) -> np.ndarray:
    """(count, 4) barycentric weights spread evenly over a tet: Halton's points of the cube, sorted into it."""
    in_cube = np.empty((count, 3))
    for axis, base in enumerate((2, 3, 5)):
        for k in range(count):
            left, share, value = k + 1, 1.0 / base, 0.0
            while left:
                value, left, share = value + share * (left % base), left // base, share / base
            in_cube[k, axis] = value
    steps = np.sort(in_cube, axis=1)
    return np.diff(steps, axis=1, prepend=0.0, append=1.0)


def _surface_volume(field: SurfaceField, mended: Mended) -> float:
    """What the soup encloses, overlaps once: by the divergence theorem where it is closed and nothing overlaps.

    Otherwise the share of some points of each tet around which it winds, which is good to about a
    percent.
    """
    if field.closed and not field.overlapping:
        return abs(field.signed_volume)
    corners = mended.vertices[mended.tets]
    middles = corners.mean(axis=1)
    radii = np.linalg.norm(corners - middles[:, None], axis=2).max(axis=1)
    crossed = field.distances(middles, float(radii.max()))[0] < radii
    share = field.inside(middles).astype(np.float64)
    weights = _points_in_tet(16)
    points = np.einsum("pk,tkd->tpd", weights, corners[crossed])
    share[crossed] = field.inside(points.reshape(-1, 3)).reshape(-1, len(weights)).mean(axis=1)
    return float(tet_volumes(mended.vertices, mended.tets) @ share)
