"""A clip in, a clip out: the character's own motion, without dynamics, in any format we write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.errors import InputError
from softrig.files import write_bytes
from softrig.io import caches, usd
from softrig.io.glb_bake import bake_glb
from softrig.rig.character import Character

USD_ENDINGS = (".usd", ".usda", ".usdc")
ENDINGS = (".glb", ".pc2", ".mdd", ".npz", ".obj", *USD_ENDINGS)


@dataclass(frozen=True)
class Conversion:
    """What was written."""

    frames: int
    error: float
    """Largest distance between what the file shows and the clip, metres."""
    bytes_added: int
    """Beyond the input, of a GLB; else the size of the file."""


def convert_clip(
    character: Character,
    clip: str | None,
    output: Path,
    *,
    fps: float = 60.0,
    progress: Callable[[int, int], None] | None = None,
) -> Conversion:
    """Write the vertices of `clip` (the first by default) at `fps` to `output`; its ending says the format.

    .glb adds an animation to the input file and keeps everything else; .pc2, .mdd, .npz and .usd hold the points
    of all frames; .obj writes a sequence `name_0001.obj` … beside each other.
    """
    ending = output.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"{output}: cannot write {ending or 'a file without ending'}; there are {', '.join(ENDINGS)}")
    if not character.clips:
        raise InputError(f"'{character.name}' has no clips to convert")
    chosen = character.clip(clip) if clip else character.clips[0]
    times, parameters = chosen.resample(fps)
    positions = np.empty((len(times), character.rig.vertex_count, 3), np.float32)
    for frame, pose in enumerate(parameters):
        positions[frame] = character.rig.positions(pose)
        if progress:
            progress(frame + 1, len(times))
    if ending == ".glb":
        return _baked(character, chosen.name, times, positions, output)
    cache = caches.PointCache(positions, times, character.triangles)
    if ending == ".obj":
        written = caches.write_obj_sequence(output.parent, output.stem, cache)
        return Conversion(len(times), 0.0, sum(path.stat().st_size for path in written))
    if ending in USD_ENDINGS:
        usd.write_usd(output, cache, name="character", colours=character.colours)
    else:
        {".pc2": caches.write_pc2, ".mdd": caches.write_mdd, ".npz": caches.write_npz}[ending](output, cache)
    return Conversion(len(times), 0.0, output.stat().st_size)


def _baked(character: Character, clip: str, times: np.ndarray, positions: np.ndarray, output: Path) -> Conversion:
    if character.source is None or character.source.suffix.lower() == ".gltf":
        raise InputError(f"{output}: only a .glb or .vrm can have an animation added; '{character.name}' is none")
    source = character.source.read_bytes()
    content, report = bake_glb(source, character, clip, times, positions.astype(np.float64))
    write_bytes(output, content)
    return Conversion(len(times), report.error, report.bytes_added)
