"""Rigs and clips as plain tables and arrays, so that a model file can hold them. No code is stored.

A table is JSON-able and names its arrays by the keys of a second dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.rig.clip import Clip, Track
from softrig.rig.deformers import Bend, BlendShapes, RigChain, Wire
from softrig.rig.parameters import Parameters
from softrig.rig.protocol import Rig
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import DualQuaternionSkin, LinearBlendSkin, Skin

Table = dict[str, Any]
Arrays = dict[str, np.ndarray]

_SKINS: dict[str, type[LinearBlendSkin] | type[DualQuaternionSkin]] = {
    "linear blend skin": LinearBlendSkin,
    "dual quaternion skin": DualQuaternionSkin,
}
_SKIN_ARRAYS = ("rest_positions", "bones", "inverse_binds", "joints", "weights", "attach")
_SKELETON_ARRAYS = ("parents", "translations", "rotations", "scales")
_INTEGERS = ("bones", "joints", "attach", "parents")
_BEND_NUMBERS = ("origin", "axis", "direction", "low", "high")
MOST_ROWS = 1 << 26
"""Targets times vertices."""
_DEEPEST = 8
"""Chains within chains: more is not a rig anybody made."""


def rig_record(rig: Rig, arrays: Arrays, prefix: str = "rig") -> Table | None:
    """The table of `rig`; its arrays are put into `arrays` under names that begin with `prefix`.

    None for a rig that is a Python function (or holds one): it cannot be written down.
    """
    table: Table | None = None
    if isinstance(rig, RigChain):
        stages = [rig_record(stage, arrays, f"{prefix}.{place}") for place, stage in enumerate(rig.stages)]
        table = None if None in stages else {"kind": "chain", "stages": stages}
    elif isinstance(rig, Skin):
        kind = next(kind for kind, cls in _SKINS.items() if isinstance(rig, cls))
        table = {"kind": kind, **_skeleton_record(rig.skeleton, arrays, f"{prefix}.skeleton")}
        arrays.update({f"{prefix}.{name}": np.asarray(getattr(rig, name)) for name in _SKIN_ARRAYS})
    elif isinstance(rig, BlendShapes):
        table = {"kind": "blend shapes", "names": list(rig.names)}
        arrays[f"{prefix}.rest_positions"] = rig.rest_positions
        arrays[f"{prefix}.rest_weights"] = rig.parameters.rest
        _put_sparse(rig.targets, arrays, f"{prefix}.targets")
    elif isinstance(rig, Bend):
        numbers = {name: np.asarray(getattr(rig, name)).tolist() for name in _BEND_NUMBERS}
        table = {"kind": "bend", "name": rig.name, **numbers}
        arrays[f"{prefix}.rest_positions"] = rig.rest_positions
    elif isinstance(rig, Wire):
        table = {"kind": "wire", "name": rig.name}
        arrays[f"{prefix}.rest_positions"] = rig.rest_positions
        arrays[f"{prefix}.controls"] = rig.controls
        if rig.weights is not None:
            arrays[f"{prefix}.weights"] = np.asarray(rig.weights, np.float64)
    return table


def rig_from_record(table: Mapping[str, Any], arrays: Mapping[str, np.ndarray], prefix: str = "rig") -> Any:
    """The rig that `rig_record` wrote; every constructor checks what it is given."""
    if prefix.count(".") > _DEEPEST:
        raise InputError(f"a chain of rigs more than {_DEEPEST} deep")
    kind = table["kind"]
    if kind == "chain":
        stages = tuple(
            rig_from_record(stage, arrays, f"{prefix}.{place}") for place, stage in enumerate(table["stages"])
        )
        return RigChain(stages)
    if kind in _SKINS:
        skeleton = _skeleton_from_record(table, arrays, f"{prefix}.skeleton")
        return _SKINS[kind](skeleton, *(arrays[f"{prefix}.{name}"] for name in _SKIN_ARRAYS))
    rest = arrays[f"{prefix}.rest_positions"]
    if kind == "blend shapes":
        names = tuple(str(name) for name in table["names"])
        targets = _take_sparse(arrays, f"{prefix}.targets", (len(names), len(rest), 3))
        return BlendShapes(rest, targets, names, arrays[f"{prefix}.rest_weights"])
    if kind == "bend":
        origin, axis, direction = (np.array(table[name], np.float64) for name in _BEND_NUMBERS[:3])
        low, high = float(table["low"]), float(table["high"])
        return Bend(rest, origin, axis, direction, low, high, str(table["name"]))
    if kind == "wire":
        return Wire(rest, arrays[f"{prefix}.controls"], arrays.get(f"{prefix}.weights"), name=str(table["name"]))
    raise InputError(f"no rig is of the kind {kind!r}")


def clips_record(clips: tuple[Clip, ...], arrays: Arrays, prefix: str = "clip") -> list[Table]:
    """The tables of `clips`; key times and values go into `arrays`."""
    tables = []
    for c, clip in enumerate(clips):
        tracks = []
        for t, track in enumerate(clip.tracks):
            arrays[f"{prefix}.{c}.{t}.times"] = track.times
            arrays[f"{prefix}.{c}.{t}.values"] = track.values
            tracks.append([track.start, track.width, track.interpolation, track.quaternion])
        tables.append({"name": clip.name, "duration": clip.duration, "looping": clip.looping, "tracks": tracks})
    return tables


def clips_from_record(
    tables: list[Table], arrays: Mapping[str, np.ndarray], parameters: Parameters, prefix: str = "clip"
) -> tuple[Clip, ...]:
    """The clips that `clips_record` wrote, of a rig with these `parameters`."""
    clips = []
    for c, table in enumerate(tables):
        tracks = tuple(
            Track(
                int(start),
                int(width),
                arrays[f"{prefix}.{c}.{t}.times"],
                arrays[f"{prefix}.{c}.{t}.values"],
                how,
                bool(quaternion),
            )
            for t, (start, width, how, quaternion) in enumerate(table["tracks"])
        )
        clips.append(Clip(str(table["name"]), parameters, tracks, float(table["duration"]), bool(table["looping"])))
    return tuple(clips)


def integer_arrays(name: str) -> bool:
    """Whether the array called `name` holds integers."""
    return name.rpartition(".")[2] in (*_INTEGERS, "fixed_nodes", "where")


def _skeleton_record(skeleton: Skeleton, arrays: Arrays, prefix: str) -> Table:
    arrays.update({f"{prefix}.{name}": getattr(skeleton, name) for name in _SKELETON_ARRAYS})
    if skeleton.fixed_matrices:
        arrays[f"{prefix}.fixed_nodes"] = np.array(list(skeleton.fixed_matrices), np.int32)
        arrays[f"{prefix}.fixed_matrices"] = np.stack(list(skeleton.fixed_matrices.values()))
    return {"joints": list(skeleton.names)}


def _skeleton_from_record(table: Mapping[str, Any], arrays: Mapping[str, np.ndarray], prefix: str) -> Skeleton:
    fixed = {}
    if f"{prefix}.fixed_nodes" in arrays:
        nodes = arrays[f"{prefix}.fixed_nodes"].tolist()
        fixed = dict(zip(nodes, arrays[f"{prefix}.fixed_matrices"], strict=True))
    names = tuple(str(name) for name in table["joints"])
    parents, translations, rotations, scales = (arrays[f"{prefix}.{name}"] for name in _SKELETON_ARRAYS)
    return Skeleton(names, parents, translations, rotations, scales, fixed)


def _put_sparse(values: np.ndarray, arrays: Arrays, prefix: str) -> None:
    """Rows (…, 3) that are not zero: corrections touch few vertices."""
    rows = values.reshape(-1, 3)
    where = np.flatnonzero(rows.any(axis=1))
    arrays[f"{prefix}.where"] = where.astype(np.int32)
    arrays[f"{prefix}.rows"] = rows[where]


def _take_sparse(arrays: Mapping[str, np.ndarray], prefix: str, shape: tuple[int, ...]) -> np.ndarray:
    where, rows = arrays[f"{prefix}.where"], arrays[f"{prefix}.rows"]
    if int(np.prod(shape[:-1])) > MOST_ROWS:
        raise InputError(f"{prefix}: {shape[0]} targets of {shape[1]} vertices are too many")
    values = np.zeros((int(np.prod(shape[:-1])), 3))
    if len(where) and not 0 <= int(where.min()) <= int(where.max()) < len(values):
        raise InputError(f"{prefix}: rows outside the table")
    values[where] = rows
    return values.reshape(shape)
