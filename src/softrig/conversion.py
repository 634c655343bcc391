"""A clip in, a clip out: the character's own motion, without dynamics, in any format we write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from softrig.errors import InputError
from softrig.files import require_writable, write_bytes
from softrig.io import blender_files, caches, usd
from softrig.io.blender import find_blender
from softrig.io.glb_bake import bake_glb
from softrig.rig.character import Character

USD_ENDINGS = (".usd", ".usda", ".usdc")
ENDINGS = (".glb", ".pc2", ".mdd", ".npz", ".obj", *USD_ENDINGS, ".abc")


@dataclass(frozen=True)
class GlbOptions:
    """How morph targets are written into a GLB."""

    tolerance: float | None = None
    """Metres; default 0.5 mm on a human-sized body."""
    per_frame: bool = False
    """One target a frame instead of a few for all."""
    quantise: bool = False
    """16 bits a number instead of 32."""
    normals: bool = False
    """Targets move normals too: twice the size."""


@dataclass(frozen=True)
class Conversion:
    """What was written."""

    frames: int
    what: str
    """What was written, in words."""
    error: float
    """Largest distance between what the file shows and the clip, metres."""
    bytes_added: int
    """Beyond the input, of a GLB; else the size of the file."""
    bytes_written: int
    """The size of the file, or of all files of a sequence."""

    def size_words(self) -> str:
        """How large it is, and how much of that is new where it is the input with something added."""
        size = f"{self.bytes_written / 1e3:,.0f} kB"
        if self.bytes_added == self.bytes_written:
            return size
        return f"{size}, of which {self.bytes_added / 1e3:,.0f} are new"


def convert_clip(
    character: Character,
    clip: str | None,
    output: Path,
    *,
    fps: float = 60.0,
    options: GlbOptions | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Conversion:
    """Write the vertices of `clip` (the first by default) at `fps` to `output`; its ending says the format.

    .glb adds an animation to the input file and keeps everything else; .pc2, .mdd, .npz, .usd and .abc (by Blender)
    hold the points of all frames; .obj writes a sequence `name_0001.obj` … beside each other.
    """
    check_output(output, character.source)
    if not character.clips:
        raise InputError(f"'{character.name}' has no clips to convert")
    chosen = character.clip(clip) if clip else character.clips[0]
    times, parameters = chosen.resample(fps)
    positions = np.empty((len(times), character.rig.vertex_count, 3), np.float32)
    for frame, pose in enumerate(parameters):
        positions[frame] = character.rig.positions(pose)
        if progress:
            progress(frame + 1, len(times))
    name = f"{chosen.name}.converted"
    return write_motion(character, chosen.name, times, positions, output, name=name, options=options)


def write_motion(
    character: Character,
    clip: str,
    times: np.ndarray,
    positions: np.ndarray,
    output: Path,
    *,
    name: str,
    options: GlbOptions | None = None,
) -> Conversion:
    """Write `positions` (f, n, 3), metres, at `times` (f,), seconds, of a character that moves by `clip`.

    `name` is that of the new animation in a GLB.
    """
    ending = check_output(output, character.source)
    if ending == ".glb":
        return _baked(character, clip, times, positions, output, name, options or GlbOptions())
    cache = caches.PointCache(positions, times, character.triangles)
    if ending == ".obj":
        written = caches.write_obj_sequence(output.parent, output.stem, cache)
        size = sum(path.stat().st_size for path in written)
        return Conversion(len(times), f"{written[0].name} to {written[-1].name}", 0.0, size, size)
    if ending in USD_ENDINGS:
        usd.write_usd(output, cache, name="character", colours=character.colours)
    elif ending == ".abc":
        blender_files.write_alembic(output, cache, colours=character.colours)
    else:
        {".pc2": caches.write_pc2, ".mdd": caches.write_mdd, ".npz": caches.write_npz}[ending](output, cache)
    size = output.stat().st_size
    return Conversion(len(times), output.name, 0.0, size, size)


def check_output(output: Path, source: Path | None) -> str:
    """The ending of `output`, if it can be written and is not the file that is read."""
    ending = output.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"{output}: cannot write {ending or 'a file without ending'}; there are {', '.join(ENDINGS)}")
    if source is not None and output.exists() and output.samefile(source):
        raise InputError(f"{output}: is the input; it stays as it is, write to another file")
    if ending != ".obj":
        require_writable(output)
    if ending == ".abc":
        find_blender()  # minutes of work should not end with the news that there is none
    return ending


def _baked(
    character: Character,
    clip: str,
    times: np.ndarray,
    positions: np.ndarray,
    output: Path,
    name: str,
    options: GlbOptions,
) -> Conversion:
    if character.source is None or character.source.suffix.lower() == ".gltf":
        raise InputError(f"{output}: only a .glb or .vrm can have an animation added; '{character.name}' is none")
    if character.source.suffix.lower() in blender_files.ENDINGS:
        source = blender_files.glb_of(character.source).content
    else:
        source = character.source.read_bytes()
    content, report = bake_glb(
        source, character, clip, times, positions.astype(np.float64), name=name, **asdict(options)
    )
    write_bytes(output, content)
    return Conversion(len(times), f"animation {report.animation!r}", report.error, report.bytes_added, len(content))
