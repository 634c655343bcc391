"""Pose-space models as tensors and a JSON document, for the model file (`models.file`).

Shapes are stored region by region, without the vertices a region does not reach; they are float32 by nature. Everything
that is a number per vertex, mode or tet is a tensor; names, the rig's structure and the report are the document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array

from softrig.errors import InputError
from softrig.models.followers import Followers
from softrig.models.inertia_map import InertiaMap
from softrig.models.pose_space import Cubature, PoseSpaceModel, PoseTable, TetRig
from softrig.models.stiffness_map import StiffnessMap
from softrig.rig.protocol import Rig
from softrig.rig.record import clips_from_record, clips_record, integer_arrays, rig_from_record, rig_record

Arrays = dict[str, np.ndarray]
_Map = TypeVar("_Map", StiffnessMap, InertiaMap)

_PLAIN = (
    "vertices",
    "tets",
    "vertex_mass",
    "triangles",
    "embedding_nodes",
    "embedding_weights",
    "region_of_mode",
    "mass_products",
    "inertia",
    "wind",
    "gyro_frames",
    "gyro",
    "modes_order",
    "frequencies",
)
_OPTIONAL = ("colours", "yielding", "carried_mass")
_CUBATURE = ("tets", "weights", "young", "poisson", "stiffness_correction", "inertial_vertices")
_TURNED = ("turners", "turned")
_KERNEL = ("columns", "groups", "lengths", "samples", "relevance")
_STIFFNESS = (*_KERNEL, "coefficients", "components", "touching")
_INERTIA = (*_KERNEL, "coefficients", "remainders", "owners", "components", "turning", *_TURNED)
_FOLLOWERS = ("mean", "left", "core", "right", "mixing", "steps", "regions")
_POSES = ("parameters", "features", "feature_weights")
_INTEGERS = ("tets", "triangles", "embedding_nodes", "region_of_mode", "gyro_frames", "inertial_vertices", "columns",
             "groups", "owners", "turners", "touching", "starts", "shepard_nodes", "root_sample", "frame_sample",
             "vertices_of_region", "regions")  # fmt: skip
MOST_PAIRS = 1e3
"""Of a kernel's pairs against its single joints."""
MOST_ENTRIES = 1 << 28
"""Vertices times modes times poses: a hundred times the largest sensible model; shapes are dense in memory."""
_SINGLE = ("gyro", "shape_rows", "components", "turning", "turned", "yielding", "carried_mass", "mean",
           "left", "core", "right", "mixing")  # fmt: skip
"""Stored in single precision: shapes and the components of maps are so by nature, gyroscopic terms are small."""


def tensors_of(model: PoseSpaceModel) -> Arrays:
    """All tensors of `model`, the document among them."""
    arrays: Arrays = {name: getattr(model, name) for name in _PLAIN}
    arrays["fixed"] = model.fixed
    for name in _OPTIONAL:
        if getattr(model, name) is not None:
            arrays[name] = getattr(model, name)
    arrays |= {f"poses.{name}": getattr(model.poses, name) for name in _POSES}
    arrays |= {f"cubature.{name}": getattr(model.cubature, name) for name in _CUBATURE}
    pairs: dict[str, float] = {}
    flexible = beside_tets = False
    for prefix, known, names in (
        ("stiffness", model.cubature.stiffness_map, _STIFFNESS),
        ("inertia_map", model.inertia_map, _INERTIA),
    ):
        if known is not None:
            arrays |= {f"{prefix}.{name}": getattr(known, name) for name in names}
            pairs[prefix] = known.pairs
            if isinstance(known, StiffnessMap):
                flexible, beside_tets = known.flexible, known.beside_tets
    _put_tet_rig(model.tet_rig, arrays)
    if model.followers is not None:
        _put_followers(model.followers, arrays)
    for region in range(len(model.region_names)):
        shapes = model.shapes[..., model.region_of_mode == region]
        reached = np.flatnonzero(shapes.any(axis=(0, 2, 3)))
        arrays[f"region.{region}.vertices_of_region"] = reached
        arrays[f"region.{region}.shape_rows"] = shapes[:, reached]
    document = {
        "name": model.name,
        "law": model.law,
        "interpolation": model.interpolation,
        "size": model.size,
        "beyond": model.cubature.beyond,
        "pairs": pairs,
        "flexible": flexible,
        "beside_tets": beside_tets,
        "corrective": [list(pair) for pair in model.corrective],
        "pose_names": list(model.poses.names),
        "region_names": list(model.region_names),
        "tet_rig": {"kind": model.tet_rig.kind, "root_bone": int(model.tet_rig.root_bone)},
        "rig": rig_record(model.rig, arrays),
        "clips": clips_record(model.clips, arrays),
        "notes": model.notes,
    }
    arrays["document"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    return {name: np.ascontiguousarray(array, dtype_of(name)) for name, array in arrays.items()}


def model_from_tensors(arrays: Mapping[str, np.ndarray], rig: Rig | None, version: int) -> PoseSpaceModel:
    """The model again, of a file of that version. `rig` is needed where it was a Python function, which no file can
    hold."""
    document = json.loads(arrays["document"].tobytes())
    rig = _rig(document, arrays, rig)
    names, regions = tuple(map(str, document["pose_names"])), tuple(map(str, document["region_names"]))
    return PoseSpaceModel(
        name=str(document["name"]),
        law=str(document["law"]),
        rig=rig,
        corrective=tuple((str(name), int(pose)) for name, pose in document["corrective"]),
        poses=PoseTable(names, *(arrays[f"poses.{name}"] for name in _POSES)),
        tet_rig=_tet_rig(document["tet_rig"], arrays, len(arrays["vertices"])),
        interpolation=str(document["interpolation"]),
        fixed=arrays["fixed"].astype(bool),
        colours=_optional(arrays, "colours"),
        yielding=_optional(arrays, "yielding"),
        carried_mass=_optional(arrays, "carried_mass"),
        shapes=_shapes(arrays, len(regions)),
        region_names=regions,
        cubature=Cubature(
            **{name: arrays[f"cubature.{name}"] for name in _CUBATURE},
            stiffness_map=_map(StiffnessMap, "stiffness", _STIFFNESS, arrays, document, version),
            beyond=_share(document.get("beyond", 1.0)),
        ),
        followers=_followers(arrays),
        inertia_map=_map(InertiaMap, "inertia_map", _INERTIA, arrays, document, version),
        clips=clips_from_record(document["clips"], arrays, rig.parameters),
        notes=_notes(document["notes"]),
        size=float(document["size"]),
        **{name: np.asarray(arrays[name], _wide(name)) for name in _PLAIN},
    )


def dtype_of(name: str) -> type:
    """What the tensor called `name` is stored as."""
    last = name.rpartition(".")[2]
    if name == "document":
        return np.uint8
    if name == "fixed":
        return np.bool_
    if name.startswith(("rig.", "clip.")):
        return np.int32 if integer_arrays(name) else np.float64
    if last == "follower_rows":
        return np.int8
    if last == "vertices" or last not in _INTEGERS:
        return np.float32 if last in _SINGLE else np.float64
    return np.int32


def _wide(name: str) -> type:
    return np.float64 if dtype_of(name) is np.float32 else dtype_of(name)


def _optional(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray | None:
    return np.asarray(arrays[name], _wide(name)) if name in arrays else None


def _notes(notes: Any) -> dict[str, Any]:
    """The report, of which only tables within the table are kept where tables are looked for."""
    if not isinstance(notes, dict):
        raise InputError("the notes are no table")
    tables = ("project", "source", "basis", "cubature", "inertia", "step")
    wrong = [name for name in tables if name in notes and not isinstance(notes[name], dict)]
    if wrong:
        raise InputError(f"notes that should be tables: {', '.join(wrong)}")
    return notes


def _map(
    kind: type[_Map],
    prefix: str,
    names: tuple[str, ...],
    arrays: Mapping[str, np.ndarray],
    document: Mapping[str, Any],
    version: int,
) -> _Map | None:
    if f"{prefix}.components" not in arrays:
        return None
    # Maps of files before version 5, which have no such table, know joints one by one only.
    table = document.get("pairs", {prefix: 0.0})
    pairs = table.get(prefix) if isinstance(table, dict) else None
    if not isinstance(pairs, int | float) or not 0.0 <= pairs <= MOST_PAIRS:
        raise InputError(f"the share of pairs in the map '{prefix}' is no number from 0 to {MOST_PAIRS:g}: {pairs!r}")
    found: dict[str, Any] = {
        name: np.asarray(arrays[f"{prefix}.{name}"], _wide(name)) for name in names if f"{prefix}.{name}" in arrays
    }
    if kind is InertiaMap and not found.keys() & set(_TURNED):
        # Files before version 6: what changing corrections do was that of the first pose everywhere.
        poses = arrays["poses.parameters"].shape[0]
        modes = arrays["region_of_mode"].shape[0]
        found |= {"turners": np.zeros(0, np.int32), "turned": np.zeros((0, modes, 3 * poses))}
    if version < 7:
        # All joints mattered alike, and springs of contacts were part of the poses' stiffness.
        found.setdefault("relevance", np.ones(np.shape(found.get("lengths", ()))))
        if kind is StiffnessMap:
            found.setdefault("touching", np.zeros(0, np.int32))
    if kind is StiffnessMap:
        # Before version 8 it was always the stiffness itself that was regressed, before 11 never what tets miss of it.
        for name, since in (("flexible", 8), ("beside_tets", 11)):
            found[name] = version >= since and document[name]
            if not isinstance(found[name], bool):
                raise InputError(f"'{name}' is neither true nor false: {found[name]!r}")
    missing = set(names) - found.keys()
    if missing:
        raise InputError(f"the map '{prefix}' lacks {', '.join(sorted(missing))}")
    return kind(**found, pairs=float(pairs))


def _rig(document: Mapping[str, Any], arrays: Mapping[str, np.ndarray], rig: Rig | None) -> Rig:
    if document["rig"] is None:
        if rig is None:
            raise InputError("its rig was a Python function, which no file can hold: load it with rig=…")
        if len(rig.parameters) != arrays["poses.parameters"].shape[1]:
            raise InputError(f"a rig of {len(rig.parameters)} parameters for a model built for another character")
        return rig
    return rig if rig is not None else rig_from_record(document["rig"], arrays)


def _put_tet_rig(tet_rig: TetRig, arrays: Arrays) -> None:
    arrays["tet_rig.corrections"] = tet_rig.corrections
    arrays["tet_rig.root_sample"] = tet_rig.root_sample
    if tet_rig.weights is not None:
        table = csr_array(tet_rig.weights)
        arrays["tet_rig.starts"], arrays["tet_rig.columns"] = table.indptr, table.indices
        arrays["tet_rig.values"] = table.data
        arrays["tet_rig.bones"] = np.arange(table.shape[1], dtype=np.float64)
    if tet_rig.shepard_nodes is not None and tet_rig.shepard_weights is not None:
        arrays["tet_rig.shepard_nodes"] = tet_rig.shepard_nodes
        arrays["tet_rig.shepard_weights"] = tet_rig.shepard_weights
    if tet_rig.frame_sample is not None and tet_rig.frame_fit is not None:
        arrays["tet_rig.frame_sample"] = tet_rig.frame_sample
        arrays["tet_rig.frame_fit"] = tet_rig.frame_fit


def _tet_rig(table: Mapping[str, Any], arrays: Mapping[str, np.ndarray], count: int) -> TetRig:
    weights = None
    if "tet_rig.values" in arrays:
        parts = (arrays["tet_rig.values"], arrays["tet_rig.columns"], arrays["tet_rig.starts"])
        weights = csr_array(parts, shape=(count, len(arrays["tet_rig.bones"])))
        weights.check_format()
    return TetRig(
        str(table["kind"]),
        weights,
        arrays.get("tet_rig.shepard_nodes"),
        arrays.get("tet_rig.shepard_weights"),
        arrays["tet_rig.corrections"],
        int(table["root_bone"]),
        arrays["tet_rig.root_sample"],
        arrays.get("tet_rig.frame_sample"),
        arrays.get("tet_rig.frame_fit"),
    )


def _shapes(arrays: Mapping[str, np.ndarray], regions: int) -> np.ndarray:
    """(m_b, n, 3, r) from the rows of each region."""
    region_of_mode, count = arrays["region_of_mode"], len(arrays["vertices"])
    poses = len(arrays["region.0.shape_rows"])
    if poses * count * len(region_of_mode) > MOST_ENTRIES:
        raise InputError(f"shapes of {poses} poses, {count} vertices and {len(region_of_mode)} modes: no character")
    shapes = np.zeros((poses, count, 3, len(region_of_mode)))
    for region in range(regions):
        reached, columns = arrays[f"region.{region}.vertices_of_region"], np.flatnonzero(region_of_mode == region)
        if len(reached) and not 0 <= int(reached.min()) <= int(reached.max()) < count:
            raise InputError(f"region {region} reaches vertices that do not exist")
        if len(columns):  # modes of one region stand together
            shapes[:, reached, :, columns[0] : columns[-1] + 1] = arrays[f"region.{region}.shape_rows"]
    return shapes


def _put_followers(followers: Followers, arrays: Arrays) -> None:
    arrays |= {f"followers.{name}": getattr(followers, name) for name in _FOLLOWERS}
    for region in np.unique(followers.regions).tolist():
        rows = followers.rows[..., followers.regions == region]
        reached = np.flatnonzero(rows.any(axis=(1, 2)))
        arrays[f"followers.{region}.vertices_of_region"] = reached
        arrays[f"followers.{region}.follower_rows"] = rows[reached]


def _followers(arrays: Mapping[str, np.ndarray]) -> Followers | None:
    """What follows the modes; files before version 9 have nothing that does."""
    if "followers.regions" not in arrays:
        return None
    known: Arrays = {name: np.asarray(arrays[f"followers.{name}"], _wide(name)) for name in _FOLLOWERS}
    count, regions = len(arrays["vertices"]), known["regions"]
    if count * len(regions) > MOST_ENTRIES:
        raise InputError(f"{len(regions)} followers of {count} vertices: no character")
    rows = np.zeros((count, 3, len(regions)), np.int8)
    for region in np.unique(regions).tolist():
        reached, columns = arrays[f"followers.{region}.vertices_of_region"], np.flatnonzero(regions == region)
        if len(reached) and not 0 <= int(reached.min()) <= int(reached.max()) < count:
            raise InputError(f"followers of region {region} reach vertices that do not exist")
        own = arrays[f"followers.{region}.follower_rows"]
        if own.shape != (len(reached), 3, len(columns)):
            raise InputError(f"followers of region {region}: rows {own.shape} for {len(reached)} vertices")
        rows[reached[:, None, None], np.arange(3)[:, None], columns] = own
    return Followers(rows=rows, **known)


def _share(value: object) -> float:
    """How much of what goes beyond the linear part counts: all, or less."""
    if not isinstance(value, int | float) or not 0.0 < value <= 1.0:
        raise InputError(f"'beyond' must be a share between 0 and 1, not {value!r}")
    return float(value)
