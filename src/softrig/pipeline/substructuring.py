"""A body in domains that form a tree → the model that simulates it, one reduced body a domain (SUB11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from softrig.bodies.divided import DividedBody, PlantedTree
from softrig.errors import InputError
from softrig.models.substructured import SubstructuredModel
from softrig.pipeline.divided import divided_model
from softrig.pipeline.planted import planted_model

MODES = 20
"""Modes of a domain in the mean, as SUB11's flower has them."""
CARRYING = "carrying"
BASES = (CARRYING, "modal-derivatives")


def substructure(
    body: DividedBody | PlantedTree,
    *,
    modes: int | Mapping[str, int] = MODES,
    basis: str = CARRYING,
    progress: Callable[[int, int], None] | None = None,
) -> SubstructuredModel:
    """The reduced model of a body in domains that form a tree.

    `modes`: how many a domain has in the mean, shared by the logarithm of its elements (SUB11 §5), or how many
    each has by name (of a `PlantedTree`, by shape); 0 makes a domain rigid. A body without held vertices floats; its
    root is the domain that `body.domains` numbers 0. `basis`: "carrying" (ours) has the answers to what hangs on a
    domain beside its modes and derivatives, "modal-derivatives" these alone, as the paper has it.
    `progress(done, total)` counts the shapes that are reduced.
    """
    if basis not in BASES:
        raise InputError(f"no basis called {basis!r}; there are {', '.join(BASES)}")
    if isinstance(body, PlantedTree):
        return planted_model(body, modes, basis == CARRYING, progress)
    return divided_model(body, modes, basis == CARRYING, progress)
