"""Point caches: the same vertices at many times, in the formats other programs read.

PC2 and MDD hold positions only and go onto a mesh that the other program already has, vertex by vertex;
an OBJ sequence and NPZ also hold the triangles. Positions are written as they are: metres and y up, where
the other program's importer may have turned the mesh (Blender's Mesh Cache modifier has axis settings).
Numbers are stored as float32; reading gives exactly those back.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from softrig.errors import IndexRangeError, InputError, require_finite
from softrig.files import write_bytes

_PC2_MAGIC = b"POINTCACHE2\0"
_PC2_HEADER = np.dtype(
    [("magic", "S12"), ("version", "<i4"), ("points", "<i4"), ("start", "<f4"), ("rate", "<f4"), ("samples", "<i4")]
)
_MDD_HEADER = np.dtype([("frames", ">i4"), ("points", ">i4")])
_UNEVEN = 1e-3  # of a frame: times that differ by less from an even spacing are even
_MOST_NUMBERS = 1 << 31  # 8 GB of float32: beyond it a header is taken for damage


class CacheFileError(InputError):
    """A point cache file is truncated, foreign or inconsistent."""


@dataclass(frozen=True)
class PointCache:
    """Vertices at many times.

    positions: (frames, n, 3) float32 [m]; times: (frames,) increasing [s]; triangles: (t, 3) int32 or None.
    """

    positions: np.ndarray
    times: np.ndarray
    triangles: np.ndarray | None = None

    def __post_init__(self) -> None:
        positions = np.ascontiguousarray(self.positions, np.float32)
        times = np.asarray(self.times, np.float64)
        if positions.ndim != 3 or positions.shape[2] != 3 or positions.size == 0:
            raise InputError(f"point cache: positions of shape {positions.shape} are not (frames, n, 3)")
        if times.shape != positions.shape[:1]:
            raise InputError(f"point cache: {times.size} times for {len(positions)} frames")
        require_finite(positions, "point cache: positions by frame")
        require_finite(times, "point cache: times")
        late = np.nonzero(np.diff(times) <= 0.0)[0] + 1
        if late.size:
            raise InputError("point cache: times do not increase at frames", late)
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "times", times)
        if self.triangles is not None:
            object.__setattr__(self, "triangles", _checked_triangles(self.triangles, positions.shape[1]))

    @property
    def fps(self) -> float:
        """Frames a second; `InputError` where the frames are not evenly spaced. One frame counts as 1/s."""
        if len(self.times) == 1:
            return 1.0
        step = (self.times[-1] - self.times[0]) / (len(self.times) - 1)
        uneven = np.nonzero(np.abs(np.diff(self.times) - step) > _UNEVEN * step)[0]
        if uneven.size:
            raise InputError("point cache: frames are not evenly spaced after frames", uneven)
        return float(1.0 / step)


def write_pc2(path: str | os.PathLike[str], cache: PointCache) -> None:
    """Write a PC2 file (3ds Max, Blender, LightWave): evenly spaced frames, one sample a frame, little-endian.

    The file counts time in frames; the frame rate (`cache.fps`) is not in it.
    """
    frames, points, _ = cache.positions.shape
    header = np.array((_PC2_MAGIC, 1, points, cache.times[0] * cache.fps, 1.0, frames), _PC2_HEADER)
    write_bytes(path, header.tobytes() + cache.positions.astype("<f4").tobytes())


def read_pc2(path: str | os.PathLike[str], *, fps: float) -> PointCache:
    """Read a PC2 file. The format does not hold its frame rate: `fps` [1/s]."""
    content = Path(path).read_bytes()
    if len(content) < _PC2_HEADER.itemsize or content[:12] != _PC2_MAGIC:
        raise CacheFileError(f"{path}: not a PC2 file")
    header = np.frombuffer(content, _PC2_HEADER, 1)[0]
    if header["version"] != 1:
        raise CacheFileError(f"{path}: PC2 version {header['version']} is unknown, 1 is read")
    positions = _body(path, content, _PC2_HEADER.itemsize, int(header["samples"]), int(header["points"]), "<f4")
    start, rate = float(header["start"]), float(header["rate"])
    if not (np.isfinite(start) and 0.0 < rate < np.inf and fps > 0.0):
        raise CacheFileError(f"{path}: start {start}, {rate} frames a sample at {fps} frames a second is no time")
    return PointCache(positions, (start + rate * np.arange(len(positions))) / fps)


def write_mdd(path: str | os.PathLike[str], cache: PointCache) -> None:
    """Write an MDD file (LightWave, Blender): any times, in seconds as float32, big-endian throughout."""
    frames, points, _ = cache.positions.shape
    header = np.array((frames, points), _MDD_HEADER)
    write_bytes(path, header.tobytes() + cache.times.astype(">f4").tobytes() + cache.positions.astype(">f4").tobytes())


def read_mdd(path: str | os.PathLike[str]) -> PointCache:
    """Read an MDD file."""
    content = Path(path).read_bytes()
    if len(content) < _MDD_HEADER.itemsize:
        raise CacheFileError(f"{path}: not an MDD file")
    header = np.frombuffer(content, _MDD_HEADER, 1)[0]
    frames, points = int(header["frames"]), int(header["points"])
    start = _MDD_HEADER.itemsize + 4 * max(frames, 0)
    positions = _body(path, content, start, frames, points, ">f4")
    times = np.frombuffer(content, ">f4", frames, _MDD_HEADER.itemsize).astype(np.float64)
    return PointCache(positions, times)


def write_npz(path: str | os.PathLike[str], cache: PointCache) -> None:
    """Write a compressed NPZ file with the arrays `positions`, `times` and, where known, `triangles`."""
    arrays = {"positions": cache.positions, "times": cache.times}
    if cache.triangles is not None:
        arrays["triangles"] = cache.triangles
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_bytes(path, buffer.getvalue())


def read_npz(path: str | os.PathLike[str]) -> PointCache:
    """Read an NPZ file written by `write_npz`, or any with `positions` and `times`."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            triangles = arrays.get("triangles")
            return PointCache(arrays["positions"], arrays["times"], triangles)
    except (KeyError, zipfile.BadZipFile, EOFError, TypeError, AttributeError) as error:
        raise CacheFileError(f"{path}: not an NPZ point cache ({error})") from error
    except InputError:
        raise
    except ValueError as error:
        raise CacheFileError(f"{path}: not an NPZ point cache ({error})") from error


def write_obj_sequence(folder: str | os.PathLike[str], name: str, cache: PointCache) -> list[Path]:
    """Write `name_0001.obj` … into `folder` (made if missing), one a frame; returns their paths.

    Nine digits tell every float32 from its neighbours, so reading gives the same numbers back.
    """
    if cache.triangles is None:
        raise InputError("OBJ sequence: the cache has no triangles")
    if not name or Path(name).name != name:
        raise InputError(f"OBJ sequence: {name!r} is not a plain file name")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    faces = "".join(f"f {a} {b} {c}\n" for a, b, c in (cache.triangles + 1).tolist())
    digits = max(4, len(str(len(cache.positions))))
    paths = []
    for frame, positions in enumerate(cache.positions, start=1):
        lines = "".join(f"v {x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in positions.tolist())
        paths.append(target / f"{name}_{frame:0{digits}d}.obj")
        write_bytes(paths[-1], (lines + faces).encode("ascii"))
    return paths


def read_obj_sequence(folder: str | os.PathLike[str], name: str, *, fps: float) -> PointCache:
    """Read the frames `name_<number>.obj` of `folder` in the order of their numbers, evenly spaced at `fps` [1/s]."""
    if not fps > 0.0:
        raise InputError(f"OBJ sequence: {fps} frames a second is not positive")
    pattern = re.compile(re.escape(name) + r"_(\d+)\.obj")
    numbered = sorted((int(m[1]), p) for p in Path(folder).iterdir() if (m := pattern.fullmatch(p.name)))
    if not numbered:
        raise CacheFileError(f"{folder}: no file {name}_<number>.obj")
    read = [read_obj(path) for _, path in numbered]
    odd = [number for (number, _), (p, t) in zip(numbered, read, strict=True) if len(p) != len(read[0][0])]
    if odd:
        raise CacheFileError(f"{folder}: frames with other vertex counts than the first", odd)
    return PointCache(np.stack([p for p, _ in read]), np.arange(len(read)) / fps, read[0][1])


def read_obj(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) float32, metres, and triangles (t, 3) int32 of an OBJ file; all else in it is passed over."""
    vertices: list[list[float]] = []
    triangles: list[list[int]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        fields = line.split()
        try:
            if fields[:1] == ["v"]:
                vertices.append([float(field) for field in fields[1:4]])
            elif fields[:1] == ["f"]:
                corners = [_corner(field, len(vertices)) for field in fields[1:]]
                triangles += [[corners[0], b, c] for b, c in pairwise(corners[1:])]
        except (ValueError, IndexError) as error:
            raise CacheFileError(f"{path}: line cannot be read ({error})", [number]) from error
    if not vertices or any(len(vertex) != 3 for vertex in vertices):
        raise CacheFileError(f"{path}: no vertices, or some without three numbers")
    return np.array(vertices, np.float32), np.array(triangles, np.int32).reshape(-1, 3)


def _corner(field: str, vertex_count: int) -> int:
    """The vertex of a face's corner `v/vt/vn`; negative numbers count back from the last vertex."""
    number = int(field.split("/", 1)[0])
    return number - 1 if number > 0 else vertex_count + number


def _body(path: str | os.PathLike[str], content: bytes, start: int, frames: int, points: int, kind: str) -> np.ndarray:
    """(frames, points, 3) float32 from `start` to the end of `content`, which must be exactly that long."""
    if frames <= 0 or points <= 0 or 3 * frames * points > _MOST_NUMBERS:
        raise CacheFileError(f"{path}: {frames} frames of {points} points is no point cache")
    if len(content) != start + 12 * frames * points:
        raise CacheFileError(f"{path}: {len(content)} bytes, where the header asks {start + 12 * frames * points}")
    return np.frombuffer(content, kind, 3 * frames * points, start).astype(np.float32).reshape(frames, points, 3)


def _checked_triangles(triangles: np.ndarray, vertex_count: int) -> np.ndarray:
    checked = np.asarray(triangles)
    if checked.ndim != 2 or checked.shape[1] != 3 or checked.dtype.kind not in "iu":
        raise InputError(f"point cache: triangles of shape {checked.shape} are not integers (t, 3)")
    bad = np.nonzero(((checked < 0) | (checked >= vertex_count)).any(axis=1))[0]
    if bad.size:
        raise IndexRangeError("point cache: triangles name vertices that do not exist", bad)
    return np.ascontiguousarray(checked, np.int32)
