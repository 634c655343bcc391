"""Kinds of models in words, and what steps each."""

from __future__ import annotations

from softrig.errors import InputError

_STEPPED = {
    "PoseSpaceModel": ("a soft character", "sr.model_simulation"),
    "ReducedBody": ("a reduced body", "sr.ReducedSimulation, or sr.FreeFlight where it flies freely"),
    "SubstructuredModel": ("a body in a tree of domains", "sr.SubstructuredSimulation"),
    "MultiDomainModel": ("a multi-domain character", "sr.MultiDomainSimulation"),
}
"""By the name of the class."""
TOLD = {
    "pose-space": "a soft character",
    "reduced-body": "a reduced body",
    "substructured": "a body in a tree of domains",
    "multi-domain": "a multi-domain character",
}
"""By the kind of model file."""


def require_model(model: object, kind: type, what: str) -> None:
    """Raise an `InputError` unless `model` is of the `kind` that `what` steps, naming what would step it."""
    if isinstance(model, kind):
        return
    given, stepper = _STEPPED.get(type(model).__name__, (f"a {type(model).__name__}", ""))
    hint = f"; step it with {stepper}" if stepper else ""
    raise InputError(f"{what} steps {_STEPPED[kind.__name__][0]}, and this is {given}{hint}")
