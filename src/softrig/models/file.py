"""The model file: `safetensors` with versioned metadata. No code in it, readable from any language.

Tensors are named as the fields of `ReducedBody`. The metadata holds `format` ("softrig"), `kind`,
`version`, and as JSON `group_names` and `notes`.
"""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from softrig.errors import ModelFileError
from softrig.fem.embedding import Embedding
from softrig.files import replacing
from softrig.models.reduced import ReducedBody, StvkCoefficients
from softrig.numerics.symmetric_tensors import entry_count

FORMAT = "softrig"
KIND = "reduced-body"
VERSION = 1
MAX_HEADER_BYTES = 1 << 20

_COEFFICIENTS = ("linear", "cubic", "quartic", "mass")
_ARRAYS = ("vertices", "basis", "lam", "mu", "density", "uniform_products", "surface_triangles")
_OPTIONAL = ("surface_colours", "rigid_products")
_INTEGERS = ("surface_triangles", "surface_nodes")


def save_model(model: ReducedBody, path: str | os.PathLike[str]) -> None:
    """Write the model; the file appears whole or not at all."""
    tensors = {f"coefficients.{name}": getattr(model.coefficients, name) for name in _COEFFICIENTS}
    tensors |= {name: getattr(model, name) for name in _ARRAYS}
    tensors |= {name: getattr(model, name) for name in _OPTIONAL if getattr(model, name) is not None}
    if model.surface is not None:
        tensors |= {"surface_nodes": model.surface.nodes, "surface_weights": model.surface.weights}
    metadata = {
        "format": FORMAT,
        "kind": KIND,
        "version": str(VERSION),
        "group_names": json.dumps(list(model.group_names)),
        "notes": json.dumps(model.notes),
    }
    if len(json.dumps(metadata)) > MAX_HEADER_BYTES // 2:
        raise ModelFileError(
            f"{path}: group names and notes beyond {MAX_HEADER_BYTES // 2} bytes do not fit a model file"
        )
    _check(model, Path(path))
    with replacing(path) as temporary:
        save_file(
            {name: np.ascontiguousarray(array, _dtype(name)) for name, array in tensors.items()}, temporary, metadata
        )


def _dtype(name: str) -> type:
    return np.int32 if name in _INTEGERS else np.float64


def load_model(path: str | os.PathLike[str]) -> ReducedBody:
    """Read a model; a truncated, foreign, newer or inconsistent file raises `ModelFileError` saying which."""
    path = Path(path)
    metadata = _metadata(path)
    try:
        tensors = load_file(path)
    except (SafetensorError, TypeError, KeyError) as error:  # the latter for types NumPy does not have
        raise ModelFileError(f"{path}: damaged or truncated ({error})") from error
    try:
        model = _assemble(metadata, tensors)
    except (KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"{path}: inconsistent, {type(error).__name__}: {error}") from error
    _check(model, path)
    return model


def _metadata(path: Path) -> dict[str, str]:
    """The header's metadata, read by hand so that each way of being wrong gets its own message."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        if len(start) < 8:
            raise ModelFileError(f"{path}: truncated, only {size} bytes")
        (length,) = struct.unpack("<Q", start)
        if length > MAX_HEADER_BYTES:
            raise ModelFileError(f"{path}: not a softrig model (its header would be {length} bytes)")
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
        raise ModelFileError(f"{path}: not a softrig model")
    version = str(metadata.get("version", ""))
    if not version.isdecimal() or len(version) > 9:
        raise ModelFileError(f"{path}: a softrig file without a usable version ({version[:20]!r})")
    if int(version) > VERSION:
        raise ModelFileError(
            f"{path}: written by a newer softrig (file version {version}, this one reads up to {VERSION}): "
            "update softrig"
        )
    if metadata.get("kind") != KIND:
        raise ModelFileError(f"{path}: holds a {metadata.get('kind')!r}, not a {KIND}")
    return metadata


def _assemble(metadata: dict[str, str], tensors: dict[str, np.ndarray]) -> ReducedBody:
    for name, array in tensors.items():
        if array.dtype != _dtype(name):
            raise ValueError(f"tensor {name} is {array.dtype}, not {np.dtype(_dtype(name))}")
        if array.ndim == 0:
            raise ValueError(f"tensor {name} has no shape")
        if not np.isfinite(array).all():
            raise ValueError(f"tensor {name} holds NaN or infinity")
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
