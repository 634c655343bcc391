"""Files that only Blender reads or writes: FBX, .blend and USD characters in, Alembic out, and what Blender shows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from softrig.errors import InputError, notice
from softrig.files import write_bytes
from softrig.io.blender import SECONDS, Blender, BlenderError, find_blender, run_job
from softrig.io.caches import PointCache, write_pc2
from softrig.io.format_error import FileFormatError
from softrig.io.gltf import load_gltf
from softrig.io.processes import job_folder
from softrig.rig.character import Character

ENDINGS = (".blend", ".fbx", ".usd", ".usda", ".usdc", ".usdz")
"""Character files that come in through Blender."""

MOST_BYTES = 2 << 30
"""Of an input, and of what Blender makes of it."""

_SHOWN_FPS = 60.0
_ALEMBIC_MAGIC = (b"Ogawa", b"\x89HDF")


@dataclass(frozen=True)
class ConvertedGlb:
    """A character file as GLB."""

    content: bytes
    metres_per_unit: float
    notes: tuple[str, ...]
    """What was left out, in words."""


@dataclass(frozen=True)
class ShownDifference:
    """How far what Blender shows of a GLB is from what softrig computes."""

    clip: str
    frames: int
    largest: float
    """Metres, over all vertices and frames compared."""


def load_with_blender(path: str | Path, *, scale: float = 1.0) -> Character:
    """The character in an .fbx, .blend or .usd file, all actions as clips, turned to y up and metres by Blender.

    Lengths are multiplied by `scale` on top of the file's own unit. Raises `FileFormatError` for what Blender or
    softrig cannot read and draws a `Notice` for what had to be left out.
    """
    source = Path(path)
    converted = glb_of(source)
    for note in converted.notes:
        notice(f"{source}: {note}")
    with job_folder() as folder:
        glb = folder / f"{source.stem}.glb"
        glb.write_bytes(converted.content)
        try:
            character = load_gltf(glb, scale=scale * converted.metres_per_unit)
        except FileFormatError as trouble:
            reason = str(trouble).removeprefix(f"{glb}: ")
            raise FileFormatError(source, f"as Blender reads it: {reason}", trouble.indices) from trouble
    return replace(character, name=source.stem, source=source)


def glb_of(path: Path, *, seconds: float = SECONDS, blender: Blender | None = None) -> ConvertedGlb:
    """A character file as GLB: Blender opens a copy, so that nothing beside the file is found, and runs no script."""
    if path.suffix.lower() not in ENDINGS:
        raise FileFormatError(path, f"ending {path.suffix}: Blender reads {', '.join(ENDINGS)} for softrig")
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise FileFormatError(path, f"{size} bytes are more than {MOST_BYTES}")
    chosen = blender or find_blender()
    with job_folder() as folder:
        copy, output = folder / f"input{path.suffix.lower()}", folder / "output.glb"
        shutil.copyfile(path, copy)
        try:
            request = {"job": "to_glb", "input": str(copy), "output": str(output)}
            answer = run_job(chosen, folder, request, seconds=seconds)
            content = _made(output, (b"glTF",))
        except BlenderError as trouble:
            raise FileFormatError(path, str(trouble)) from trouble
    unit = answer.get("metres_per_unit")
    if not isinstance(unit, float) or not 1e-9 < unit < 1e9:
        raise FileFormatError(path, f"Blender says that its unit is {unit} m")
    notes = answer.get("notes", [])
    return ConvertedGlb(content, unit, tuple(str(note) for note in notes) if isinstance(notes, list) else ())


def write_alembic(
    path: str | os.PathLike[str],
    cache: PointCache,
    *,
    name: str = "character",
    colours: np.ndarray | None = None,
    seconds: float | None = None,
    blender: Blender | None = None,
) -> None:
    """Write an Alembic (.abc) mesh with a sample a frame, y up, metres; frames must be evenly spaced.

    colours: (n, 4) linear red, green, blue, alpha. seconds: how long Blender may take, by default according to the
    size.
    """
    target = Path(path)
    if cache.triangles is None:
        raise InputError("Alembic: the cache has no triangles")
    start = cache.times[0] * cache.fps
    if start < -1e-3 or abs(start - round(start)) > 1e-3:
        raise InputError(f"Alembic: the first frame is at {cache.times[0]} s, which is no frame from 0 on")
    chosen = blender or find_blender()
    # Blender's z is up: (x, y, z) becomes (x, −z, y), and its exporter turns back.
    turned = np.stack([cache.positions[..., 0], -cache.positions[..., 2], cache.positions[..., 1]], axis=2)
    with job_folder() as folder:
        points, mesh, output = folder / "points.pc2", folder / "mesh.npz", folder / "output.abc"
        write_pc2(points, PointCache(turned, cache.times))
        arrays = {"first": turned[0], "triangles": cache.triangles}
        if colours is not None:
            arrays["colours"] = _checked_colours(colours, turned.shape[1])
        np.savez(mesh, allow_pickle=False, **arrays)
        request = {
            "job": "to_alembic",
            "input": str(points),
            "mesh": str(mesh),
            "output": str(output),
            "name": name,
            "fps": cache.fps,
            "start": round(start),
            "frames": len(turned),
        }
        run_job(chosen, folder, request, seconds=seconds or SECONDS + turned.size / 1e6)
        write_bytes(target, _made(output, _ALEMBIC_MAGIC))


def blender_vertices(
    path: Path,
    times: Sequence[float] | np.ndarray,
    *,
    clip: str | None = None,
    fps: float = _SHOWN_FPS,
    seconds: float = SECONDS,
    blender: Blender | None = None,
) -> dict[str, np.ndarray]:
    """What Blender shows of a .glb or .abc: by mesh object the vertices (frames, n, 3), y up, metres, at `times` [s].

    clip: the one to play, by its name in the file. fps: of Blender's scene; times need not be on its frames.
    """
    chosen = blender or find_blender()
    with job_folder() as folder:
        copy, output = folder / f"input{path.suffix.lower()}", folder / "output.npz"
        shutil.copyfile(path, copy)
        when = [float(time) for time in times]
        request = {"job": "vertices", "input": str(copy), "output": str(output), "clip": clip, "times": when}
        answer = run_job(chosen, folder, {**request, "fps": fps}, seconds=seconds)
        _made(output, (b"PK",), read=False)
        names = answer.get("meshes", [])
        try:
            with np.load(output, allow_pickle=False) as arrays:
                shown = {str(name): arrays[f"mesh{index}"] for index, name in enumerate(names)}
        except (OSError, ValueError, KeyError) as error:
            raise BlenderError(f"Blender's vertices cannot be read: {error}") from error
    wrong = [name for name, array in shown.items() if array.ndim != 3 or array.shape[::2] != (len(when), 3)]
    if wrong:
        raise BlenderError(f"Blender's vertices of '{wrong[0]}' have shape {shown[wrong[0]].shape}")
    return shown


def compare_with_blender(
    path: Path, *, clip: str | None = None, frames: int = 10, blender: Blender | None = None
) -> ShownDifference:
    """Open a GLB in Blender and in softrig and compare all vertices at `frames` times of a clip, the first by default.

    Meshes are told apart by their vertex counts and where they are, because Blender renames them.
    """
    character = load_gltf(path)
    if not character.clips:
        raise InputError(f"{path}: has no clip to compare")
    chosen = character.clip(clip) if clip else character.clips[0]
    times = np.linspace(0.0, chosen.duration, frames)
    ours = np.stack([character.rig.positions(pose) for pose in chosen.sample(times)])
    shown = list(blender_vertices(path, times, clip=chosen.name, blender=blender).values())
    largest = 0.0
    for part in _shown_apart(character):
        fitting = [index for index, array in enumerate(shown) if array.shape[1] == len(part)]
        if not fitting:
            raise InputError(f"{path}: Blender shows no mesh with {len(part)} vertices")
        off = [float(np.linalg.norm(shown[index] - ours[:, part], axis=2).max()) for index in fitting]
        largest = max(largest, min(off))
        shown.pop(fitting[int(np.argmin(off))])
    return ShownDifference(chosen.name, frames, largest)


def _shown_apart(character: Character) -> list[np.ndarray]:
    """The vertices of each mesh object: all primitives of a node, without vertices that no triangle uses."""
    nodes: dict[int, list[tuple[int, np.ndarray]]] = {}
    for part in character.parts:
        used = np.unique(character.triangles[part.triangles])
        nodes.setdefault(part.source.get("node", -1), []).append((part.source.get("primitive", 0), used))
    return [np.concatenate([used for _, used in sorted(found, key=lambda e: e[0])]) for found in nodes.values()]


def _checked_colours(colours: np.ndarray, count: int) -> np.ndarray:
    checked = np.asarray(colours, np.float32)
    if checked.shape != (count, 4):
        raise InputError(f"Alembic: colours of shape {checked.shape} for {count} vertices")
    return checked


def _made(path: Path, starts: tuple[bytes, ...], *, read: bool = True) -> bytes:
    """The file that Blender was asked for, if it is one."""
    if not path.is_file() or path.is_symlink():
        raise BlenderError("Blender wrote no file")
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise BlenderError(f"Blender wrote {size} bytes, more than {MOST_BYTES}")
    with path.open("rb") as stream:
        content = stream.read(-1 if read else 8)
    if not content.startswith(starts):
        raise BlenderError(f"Blender wrote something else than was asked: it starts with {content[:4]!r}")
    return content
