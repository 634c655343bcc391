"""The model file: `safetensors` with versioned metadata. No code in it, readable from any language.

Kinds: a reduced body, whose tensors are named as the fields of `ReducedBody`, a pose-space character
(`models.pose_space_file`), a multi-domain character (`models.multi_domain_file`) and a body in a tree of domains
(`models.substructured_file`). The metadata holds `format` ("softrig"), `kind`, `version`, and of a reduced body as JSON
`group_names` and `notes`.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from softrig.errors import ModelFileError, SoftrigError
from softrig.fem.embedding import Embedding
from softrig.files import replacing
from softrig.models.kinds import TOLD
from softrig.models.multi_domain import MultiDomainModel
from softrig.models.multi_domain_file import domain_dtype, domain_tensors, model_from_domain_tensors
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.pose_space_file import dtype_of, model_from_tensors, tensors_of
from softrig.models.reduced import ReducedBody, StvkCoefficients
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_file import (
    substructured_dtype,
    substructured_from_tensors,
    substructured_tensors,
)
from softrig.numerics.symmetric_tensors import entry_count
from softrig.rig.protocol import Rig

FORMAT = "softrig"
REDUCED_BODY, POSE_SPACE, MULTI_DOMAIN, SUBSTRUCTURED = "reduced-body", "pose-space", "multi-domain", "substructured"
VERSIONS = {REDUCED_BODY: 1, POSE_SPACE: 11, MULTI_DOMAIN: 1, SUBSTRUCTURED: 1}
"""By kind, the newest version that is written and read."""
MAX_HEADER_BYTES = 1 << 20

_COEFFICIENTS = ("linear", "cubic", "quartic", "mass")
_ARRAYS = ("vertices", "basis", "lam", "mu", "density", "uniform_products", "surface_triangles")
_OPTIONAL = ("surface_colours", "rigid_products")
_INTEGERS = ("surface_triangles", "surface_nodes")


Model = ReducedBody | PoseSpaceModel | MultiDomainModel | SubstructuredModel
_Model = TypeVar("_Model", PoseSpaceModel, MultiDomainModel, SubstructuredModel)


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write the model; the file appears whole or not at all."""
    if isinstance(model, PoseSpaceModel):
        tensors, metadata = tensors_of(model), _head(POSE_SPACE)
    elif isinstance(model, MultiDomainModel):
        tensors, metadata = domain_tensors(model), _head(MULTI_DOMAIN)
    elif isinstance(model, SubstructuredModel):
        tensors, metadata = substructured_tensors(model), _head(SUBSTRUCTURED)
    else:
        tensors, metadata = _reduced_tensors(model, Path(path))
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata)


def _reduced_tensors(model: ReducedBody, path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    tensors = {f"coefficients.{name}": getattr(model.coefficients, name) for name in _COEFFICIENTS}
    tensors |= {name: getattr(model, name) for name in _ARRAYS}
    tensors |= {name: getattr(model, name) for name in _OPTIONAL if getattr(model, name) is not None}
    if model.surface is not None:
        tensors |= {"surface_nodes": model.surface.nodes, "surface_weights": model.surface.weights}
    metadata = {
        **_head(REDUCED_BODY),
        "group_names": json.dumps(list(model.group_names)),
        "notes": json.dumps(model.notes),
    }
    if len(json.dumps(metadata)) > MAX_HEADER_BYTES // 2:
        raise ModelFileError(
            f"{path}: group names and notes beyond {MAX_HEADER_BYTES // 2} bytes do not fit a model file"
        )
    _check(model, path)
    return {name: np.ascontiguousarray(array, _dtype(name)) for name, array in tensors.items()}, metadata


def _head(kind: str) -> dict[str, str]:
    """What the metadata of every kind begins with."""
    return {"format": FORMAT, "kind": kind, "version": str(VERSIONS[kind])}


def _dtype(name: str) -> type:
    return np.int32 if name in _INTEGERS else np.float64


def load_model(path: str | os.PathLike[str], *, rig: Rig | None = None) -> Model:
    """Read a model of any kind; `rig` as in `load_character_model`."""
    kind = model_kind(path)
    if kind == POSE_SPACE:
        return load_character_model(path, rig=rig)
    if kind == MULTI_DOMAIN:
        return load_multi_domain_model(path, rig=rig)
    return load_substructured(path) if kind == SUBSTRUCTURED else load_reduced_body(path)


def load_reduced_body(path: str | os.PathLike[str]) -> ReducedBody:
    """Read a reduced body; a truncated, foreign, newer or inconsistent file raises `ModelFileError` saying which."""
    path = Path(path)
    metadata = _metadata(path)
    _require_kind(metadata, REDUCED_BODY, path)
    try:
        model = _assemble(metadata, _tensors(path, _dtype))
    except (KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"{path}: inconsistent, {type(error).__name__}: {error}") from error
    _check(model, path)
    return model


def load_character_model(path: str | os.PathLike[str], *, rig: Rig | None = None) -> PoseSpaceModel:
    """Read a pose-space character, with the same care. `rig` takes the place of the rig in the file."""
    return _read(
        path, POSE_SPACE, dtype_of, lambda tensors, metadata: model_from_tensors(tensors, rig, int(metadata["version"]))
    )


def load_multi_domain_model(path: str | os.PathLike[str], *, rig: Rig | None = None) -> MultiDomainModel:
    """Read a multi-domain character, with the same care. `rig` takes the place of the rig in the file."""
    return _read(path, MULTI_DOMAIN, domain_dtype, lambda tensors, _: model_from_domain_tensors(tensors, rig))


def load_substructured(path: str | os.PathLike[str]) -> SubstructuredModel:
    """Read a body in a tree of domains, with the same care."""
    return _read(path, SUBSTRUCTURED, substructured_dtype, lambda tensors, _: substructured_from_tensors(tensors))


def _read(
    path: str | os.PathLike[str],
    kind: str,
    dtype: Callable[[str], type],
    make: Callable[[dict[str, np.ndarray], dict[str, str]], _Model],
) -> _Model:
    """What `make` makes of a file of one kind; whatever does not fit is told to be inconsistent."""
    path = Path(path)
    metadata = _metadata(path)
    _require_kind(metadata, kind, path)
    try:
        return make(_tensors(path, dtype), metadata)
    except ModelFileError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, SoftrigError, RecursionError) as error:
        raise ModelFileError(f"{path}: inconsistent, {type(error).__name__}: {error}") from error


def model_kind(path: str | os.PathLike[str]) -> str:
    """What a model file holds: "reduced-body", "pose-space", "multi-domain" or "substructured"."""
    return _metadata(Path(path))["kind"]


def _require_kind(metadata: dict[str, str], kind: str, path: Path) -> None:
    if metadata["kind"] != kind:
        raise ModelFileError(
            f"{path}: holds {TOLD[metadata['kind']]}, not {TOLD[kind]}, and this is for the latter alone"
        )


def _tensors(path: Path, dtype: Callable[[str], type]) -> dict[str, np.ndarray]:
    try:
        tensors = load_file(path)
    except (SafetensorError, TypeError, KeyError) as error:  # the latter for types NumPy does not have
        raise ModelFileError(f"{path}: damaged or truncated ({error})") from error
    for name, array in tensors.items():
        if array.dtype != dtype(name):
            raise ModelFileError(f"{path}: inconsistent, tensor {name} is {array.dtype}, not {np.dtype(dtype(name))}")
        if array.ndim == 0:
            raise ModelFileError(f"{path}: inconsistent, tensor {name} has no shape")
        if not np.isfinite(array).all():
            raise ModelFileError(f"{path}: inconsistent, tensor {name} holds NaN or infinity")
    return tensors


def _foreign(path: Path) -> ModelFileError:
    return ModelFileError(
        f"{path}: this is not a softrig model, whatever its name says; 'softrig build' makes one of a character"
    )


def _metadata(path: Path) -> dict[str, str]:
    """The header's metadata, read by hand so that each way of being wrong gets its own message."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        if len(start) < 8:
            raise ModelFileError(f"{path}: truncated, only {size} bytes")
        (length,) = struct.unpack("<Q", start)
        if length > MAX_HEADER_BYTES:
            raise _foreign(path)
        raw = file.read(length)
    if len(raw) < length:
        raise ModelFileError(f"{path}: truncated within its header, only {size} bytes")
    try:
        header = json.loads(raw)
        metadata = header["__metadata__"]
        recognised = metadata["format"] == FORMAT
    except (ValueError, KeyError, TypeError, RecursionError):
        recognised = False
    if not recognised:
        raise _foreign(path)
    version = str(metadata.get("version", ""))
    if not version.isdecimal() or len(version) > 9:
        raise ModelFileError(f"{path}: a softrig file without a usable version ({version[:20]!r})")
    newest = VERSIONS.get(metadata.get("kind", ""), max(VERSIONS.values()))
    if int(version) > newest:
        raise ModelFileError(
            f"{path}: written by a newer softrig (file version {version}, this one reads up to {newest}): "
            "update softrig"
        )
    if metadata.get("kind") not in VERSIONS:
        raise ModelFileError(f"{path}: holds a {metadata.get('kind')!r}, not one of {', '.join(VERSIONS)}")
    return metadata


def _assemble(metadata: dict[str, str], tensors: dict[str, np.ndarray]) -> ReducedBody:
    surface = None
    if "surface_nodes" in tensors:
        surface = Embedding(tensors["surface_nodes"], tensors["surface_weights"])
    names, notes = json.loads(metadata["group_names"]), json.loads(metadata["notes"])
    if not isinstance(names, list) or not isinstance(notes, dict):
        raise ValueError("group_names must be a list and notes a table")
    return ReducedBody(
        coefficients=StvkCoefficients(*(tensors[f"coefficients.{name}"] for name in _COEFFICIENTS)),
        group_names=tuple(str(name) for name in names),
        surface=surface,
        notes={str(key): str(value) for key, value in notes.items()},
        surface_colours=tensors.get("surface_colours"),
        rigid_products=tensors.get("rigid_products"),
        **{name: tensors[name] for name in _ARRAYS},
    )


def _check(model: ReducedBody, path: Path) -> None:
    """Every shape follows from the vertices, the modes and the groups: refuse what does not fit."""
    n, g = len(model.vertices), len(model.group_names)
    r = model.basis.shape[1] if model.basis.ndim == 2 else 0
    drawn = n if model.surface is None else len(model.surface.nodes)
    parts = model.coefficients
    fits = {
        "vertices": model.vertices.shape == (n, 3),
        "basis": model.basis.shape == (3 * n, r) and r > 0,
        "lam": model.lam.shape == (g,),
        "mu": model.mu.shape == (g,),
        "density": model.density.shape == (g,),
        "uniform_products": model.uniform_products.shape == (g, 3, r),
        "coefficients.linear": parts.linear.shape == (g, 2, entry_count(2, r)),
        "coefficients.cubic": parts.cubic.shape == (g, 2, entry_count(3, r)),
        "coefficients.quartic": parts.quartic.shape == (g, 2, entry_count(4, r)),
        "coefficients.mass": parts.mass.shape == (g, entry_count(2, r)),
        "surface_nodes": model.surface is None or _within(model.surface.nodes, n),
        "surface_triangles": model.surface_triangles.shape[1:] == (3,) and _within(model.surface_triangles, drawn),
        "surface_colours": model.surface_colours is None or model.surface_colours.shape == (drawn, 3),
        "rigid_products": model.rigid_products is None or model.rigid_products.shape == (g, r + 2, r + 2, 3, 3),
    }
    wrong = [name for name, right in fits.items() if not right]
    if wrong:
        raise ModelFileError(f"{path}: inconsistent, wrong shape or range of {', '.join(wrong)}")


def _within(indices: np.ndarray, count: int) -> bool:
    return indices.size == 0 or bool(indices.min() >= 0 and indices.max() < count)
