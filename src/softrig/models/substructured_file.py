"""Substructured models as tensors, for the model file (`models.file`): each shape's arrays once, then the domains'."""

from __future__ import annotations

import numpy as np

from softrig.models.substructured import Domain, DomainShape, SubstructuredModel

_SHAPE = ("vertices", "basis", "coefficients", "products", "drag", "triangles", "colours")
_INTEGERS = ("triangles", "drawn", "domains.shape", "domains.parent", "floating")
NAMES = "names"
"""Of the model, of its shapes and of its domains, a line each, UTF-8."""


def substructured_dtype(name: str) -> type:
    """Of the tensor called `name`."""
    if name == NAMES:
        return np.uint8
    return np.int32 if name in _INTEGERS or name.endswith(".triangles") else np.float64


def substructured_tensors(model: SubstructuredModel) -> dict[str, np.ndarray]:
    """All tensors of `model`."""
    domains = model.domains
    arrays = {f"shape.{i}.{name}": getattr(shape, name) for i, shape in enumerate(model.shapes) for name in _SHAPE}
    arrays |= {
        "drawn": model.drawn,
        "triangles": model.triangles,
        "floating": np.array([int(model.floating)]),
        "domains.shape": np.array([domain.shape for domain in domains]),
        "domains.parent": np.array([domain.parent for domain in domains]),
        "domains.place": np.array([domain.place for domain in domains]),
        "domains.turn": np.array([domain.turn for domain in domains]),
        "domains.scale": np.array([domain.scale for domain in domains]),
        "domains.stiffness": np.array([domain.stiffness for domain in domains]),
        "domains.centre": np.concatenate([np.zeros(0), *(domain.centre.ravel() for domain in domains)]),
        "domains.slopes": np.concatenate([np.zeros(0), *(domain.slopes.ravel() for domain in domains)]),
    }
    lines = (model.name, *(shape.name for shape in model.shapes), *(domain.name for domain in domains))
    text = "\n".join(line.replace("\n", " ") for line in lines)
    arrays[NAMES] = np.frombuffer(text.encode(), np.uint8)
    return {name: np.ascontiguousarray(array, substructured_dtype(name)) for name, array in arrays.items()}


def substructured_from_tensors(tensors: dict[str, np.ndarray]) -> SubstructuredModel:
    """The model of these tensors; what does not fit raises `InputError`, `KeyError` or `ValueError`."""
    kinds, parents = tensors["domains.shape"], tensors["domains.parent"]
    count = len(kinds)
    lines = tensors[NAMES].tobytes().decode().split("\n")
    shape_count = len(lines) - 1 - count
    if shape_count < 1 or parents.shape != (count,):
        raise ValueError(f"{len(lines)} names for {count} domains")
    shapes = tuple(
        DomainShape(lines[1 + i], **{name: tensors[f"shape.{i}.{name}"] for name in _SHAPE}) for i in range(shape_count)
    )
    if ((kinds < 0) | (kinds >= shape_count)).any() or (parents >= np.arange(count)).any():
        raise ValueError("domains whose shape or parent does not exist")
    sizes = np.array([_size(shape) for shape in shapes])[kinds]
    above = np.where(parents >= 0, sizes[parents], 0)
    starts = np.concatenate([[0], np.cumsum(above)])
    centres, slopes = tensors["domains.centre"], tensors["domains.slopes"]
    if centres.shape != (3 * starts[-1],) or slopes.shape != (9 * starts[-1],):
        raise ValueError("interfaces that do not fit the modes of the parents")
    domains = tuple(
        Domain(
            lines[1 + shape_count + i],
            int(kinds[i]),
            int(parents[i]),
            tensors["domains.place"][i],
            tensors["domains.turn"][i],
            float(tensors["domains.scale"][i]),
            float(tensors["domains.stiffness"][i]),
            centres[3 * starts[i] : 3 * starts[i + 1]].reshape(3, above[i]),
            slopes[9 * starts[i] : 9 * starts[i + 1]].reshape(above[i], 3, 3),
        )
        for i in range(count)
    )
    floating = bool(tensors["floating"][0])
    return SubstructuredModel(shapes, domains, floating, tensors["drawn"], tensors["triangles"], lines[0])


def _size(shape: DomainShape) -> int:
    """Modes of a shape whose arrays are yet to be checked."""
    if shape.basis.ndim != 2:
        raise ValueError(f"the basis of shape {shape.name!r} is no matrix")
    return shape.size
