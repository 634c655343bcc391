"""Tets that follow a surface closely: fTetWild (Hu et al. 2020) through the package pytetwild, the extra `wild`.

Slower than the lattice by an order of magnitude, the count is met only roughly, and two runs differ. It runs in a
process of its own with a time limit, because it may take minutes and compiled code may crash.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.errors import InputError, SoftrigError, notice
from softrig.fem.meshes import VolumeMesh
from softrig.io.processes import job_folder, run_bounded
from softrig.io.usd import MissingExtraError
from softrig.meshing.bones import checked_segments
from softrig.meshing.distance_field import SurfaceField
from softrig.meshing.embedding import embed_points
from softrig.meshing.lattice import FEWEST_TETS, MOST_TETS, LatticeMesh, _quality
from softrig.meshing.lattice_body import StuffedBody
from softrig.meshing.notices import IF_IT_MATTERS, KnownBones, tell_quality
from softrig.meshing.quality import tet_volumes
from softrig.meshing.repair import mend
from softrig.meshing.spacing import SpacingSearch
from softrig.meshing.thickness import sample_surface

VARIABLE = "SOFTRIG_WILD"
"""Environment variable: a Python that has pytetwild, where it is not the one that runs softrig."""

SCRIPT = Path(__file__).with_name("wild_side.py")
SECONDS = 1200.0
"""How long all passes together may take by default."""

MOST_PASSES = 4
CLOSE_ENOUGH = 0.1
"""Relative distance from the wanted count at which no further pass is made."""

ENVELOPE = 0.1
"""How far the tets' boundary may be from the surface, in edge lengths; less costs tets and time."""

_MOST_POINTS = 8 * MOST_TETS


class WildMeshError(SoftrigError):
    """fTetWild failed, took too long, or gave back no tets."""


@dataclass(frozen=True)
class _Tets:
    places: np.ndarray  # (n, 3) in the field's units
    tets: np.ndarray  # (t, 4) positively wound
    edge_length: float  # wanted, in the field's units


def wild_tet_mesh(
    vertices: np.ndarray,
    triangles: np.ndarray,
    *,
    tets: int = 16000,
    edge_length: float | None = None,
    bones: np.ndarray | None = None,
    bone_names: Sequence[str] = (),
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> LatticeMesh:
    """Fill a triangle soup with about `tets` tets by fTetWild, or with tets of about `edge_length` in metres.

    `vertices` (n, 3) in metres, `triangles` (m, 3); the soup may be open or crossing. The boundary of the tets stays
    within a tenth of the edge length of the surface, where `tet_mesh` grows it. fTetWild knows no count: it
    is run up to four times, and a notice says how far from `tets` the best came. `bones` (b, 2, 3) are only
    reported on, by their `bone_names`. After `seconds` the best so far counts, or a `WildMeshError` is raised. The
    result is that of `tet_mesh`; its `spacing` is the edge length asked of fTetWild. `progress(done, total)` counts
    passes.
    """
    if not FEWEST_TETS <= tets <= MOST_TETS:
        raise InputError(f"tets must be within {FEWEST_TETS} and {MOST_TETS}, not {tets}")
    field = SurfaceField.of(vertices, triangles)
    if edge_length is not None and not 1e-3 * field.scale <= edge_length <= field.scale:
        raise InputError(
            f"edge_length must be within {1e-3 * field.scale:.3g} and {field.scale:.3g} m for this body,"
            f" not {edge_length}"
        )
    segments = field.local(checked_segments(np.zeros((0, 2, 3)) if bones is None else bones, "bones"))
    wild = _Passes(field, time.monotonic() + seconds, progress)
    if edge_length is None:
        found = wild.nearest(tets)
        if abs(len(found.tets) / tets - 1.0) > CLOSE_ENOUGH:
            notice(f"{len(found.tets)} tets instead of {tets}: fTetWild came no closer; {IF_IT_MATTERS}")
    else:
        found = wild.run(edge_length / field.scale)
    if progress:
        progress(MOST_PASSES, MOST_PASSES)
    return _finished(field, found, np.asarray(vertices, np.float64), segments, bone_names)


def _finished(
    field: SurfaceField, found: _Tets, vertices: np.ndarray, segments: np.ndarray, bone_names: Sequence[str]
) -> LatticeMesh:
    h = found.edge_length
    mended = mend(found.places, found.tets, crumb=0.1 * h**3)
    mesh = VolumeMesh.build(field.metres(mended.vertices), mended.tets.astype(np.int32))
    embedding = embed_points(mesh, vertices)
    body = StuffedBody(found.places, found.tets, h, sample_surface(field, h))
    quality = _quality(field, body, mended, mesh, embedding, segments)
    tell_quality(quality, quality.tets, mended, KnownBones(bone_names, field.metres(segments)))
    factor = quality.surface_volume / quality.mesh_volume if quality.surface_volume > 0.0 else 1.0
    return LatticeMesh(mesh, quality, embedding, factor, h * field.scale)


@dataclass
class _Passes:
    """Runs of fTetWild on one surface, all before `deadline` on the monotonic clock."""

    field: SurfaceField
    deadline: float
    progress: Callable[[int, int], None] | None
    done: int = 0

    def nearest(self, target: int) -> _Tets:
        """The pass whose count came nearest to `target`; later passes may run out of time, the first may not."""
        search = SpacingSearch(target)
        spacing = first_edge_length(abs(self.field.signed_volume), self.field.area, target)
        found: dict[float, _Tets] = {}
        for _ in range(MOST_PASSES):
            spacing = float(np.clip(spacing, 1e-3, 1.0))
            if spacing in found:
                break
            try:
                found[spacing] = self.run(spacing)
            except WildMeshError:
                if not found:
                    raise
                break
            search.tried[spacing] = len(found[spacing].tets)
            if search.miss(search.tried[spacing]) <= CLOSE_ENOUGH:
                break
            spacing = search.following()
        return found[search.best]

    def run(self, edge_length: float) -> _Tets:
        """One pass with this edge length in the field's units."""
        points, faces = self.field.points, _outward(self.field)
        used = np.unique(faces)
        place = np.full(len(points), -1, np.int32)
        place[used] = np.arange(len(used))
        diagonal = float(np.linalg.norm(np.ptp(points[used], axis=0)))
        with job_folder() as folder:
            job = folder / "job.npz"
            np.savez(
                job,
                vertices=points[used],
                triangles=place[faces],
                edge_length=np.array(min(edge_length / diagonal, 1.0)),
                epsilon=np.array(np.clip(ENVELOPE * edge_length / diagonal, 1e-4, 1e-2)),
            )
            self._run_script(job)
            result = _checked_tets(folder / "tets.npz")
        self.done += 1
        if self.progress:
            self.progress(min(self.done, MOST_PASSES - 1), MOST_PASSES)
        return _Tets(*result, edge_length)

    def _run_script(self, job: Path) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0.0:
            raise WildMeshError("fTetWild: no time is left")
        # -P: modules beside the script must not be taken for installed ones.
        command = [wild_python(), "-P", str(SCRIPT), str(job)]
        try:
            outcome = run_bounded(command, job.parent, os.environ, left)
        except OSError as error:
            raise WildMeshError(f"{command[0]} cannot be run: {error.strerror or error}") from error
        complaint = job.with_name("error.txt")
        if complaint.is_file():
            reason = complaint.read_text(encoding="utf-8", errors="replace")[:300]
            raise MissingExtraError(
                f"the mesher 'wild' needs pytetwild: pip install 'softrig[wild]', or name a Python that has it in"
                f" {VARIABLE} ({reason})"
            )
        if outcome.code is None:
            raise WildMeshError(f"fTetWild did not finish within {left:.0f} s and was ended; fewer tets are faster")
        if outcome.code != 0:
            words = f": {outcome.last_words}" if outcome.last_words else ""
            raise WildMeshError(f"fTetWild ended {outcome.ending}{words}")


def wild_python() -> str:
    """The Python that runs fTetWild."""
    named = os.environ.get(VARIABLE, "").strip()
    if not named:
        return sys.executable
    found = shutil.which(named)
    if found is None:
        raise MissingExtraError(f"{VARIABLE} is '{named}', which is no program that can be run")
    return str(Path(found).absolute())


def first_edge_length(volume: float, area: float, target: int) -> float:
    """The edge length l at which a body holds about `target` tets: 8.5 V/l³ inside and some 3 A/l² at the skin."""
    length = 1.0
    for _ in range(60):
        length = float(np.cbrt((8.5 * volume + 3.0 * length * area) / target) * 0.5 + length * 0.5)
    return length


def _outward(field: SurfaceField) -> np.ndarray:
    """(m, 3) the field's triangles, wound so that they face away from the inside: fTetWild asks how they wind."""
    a, b, c = (field.points[field.faces[:, corner]] for corner in range(3))
    inward = np.einsum("td,td->t", np.cross(b - a, c - a), field.normals) < 0.0
    return np.where(inward[:, None], field.faces[:, ::-1], field.faces)


def _checked_tets(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) and tets (t, 4) of a result file, all points used; what is not a mesh is refused."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            points, tets = arrays["points"], arrays["tets"]
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise WildMeshError(f"fTetWild's result cannot be read: {error}") from error
    if points.ndim != 2 or points.shape[1] != 3 or tets.ndim != 2 or tets.shape[1] != 4 or tets.dtype.kind not in "iu":
        raise WildMeshError(f"fTetWild gave points {points.shape} and tets {tets.shape} of {tets.dtype}")
    if len(tets) == 0:
        raise WildMeshError("fTetWild gave no tets: the surface encloses nothing, or less than the edge length")
    if len(points) > _MOST_POINTS or tets.min() < 0 or tets.max() >= len(points) or not np.isfinite(points).all():
        raise WildMeshError("fTetWild gave tets of points that do not exist or are not finite")
    points, tets = points.astype(np.float64), tets.astype(np.int64)
    turned = tet_volumes(points, tets) < 0.0
    if turned.any():
        raise WildMeshError(f"fTetWild turned {int(turned.sum())} of {len(tets)} tets inside out")
    used, tets = np.unique(tets, return_inverse=True)
    return points[used], tets.reshape(-1, 4)
