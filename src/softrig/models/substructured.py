"""A body in a tree of reduced domains, each in a frame that its parent carries (SUB11).

Immutable. Domains that look alike share one `DomainShape`; each stands in its parent's axes by a place, a rotation and
a uniform scale s. A point X of a domain is at s(X + U q) in its own frame, so q has no unit of length and a shape
serves at any scale: mass goes with s³, frequencies with 1/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from softrig.errors import InputError, require_indices
from softrig.models.kernels.substructured_tables import Tables
from softrig.models.kernels.substructured_terms import product_table
from softrig.numerics.symmetric_tensors import unpack

DRAG_HEAD = 21
"""Numbers of a drag table before those of the modes."""


@dataclass(frozen=True, eq=False)
class DomainShape:
    """A reduced body that any number of domains are instances of. Its origin is that of their frames."""

    name: str
    vertices: np.ndarray
    """(n, 3) X, metres at scale 1."""
    basis: np.ndarray
    """(3n, r) U, mass-orthonormal; r = 0 makes the domain rigid."""
    coefficients: np.ndarray
    """K₀ | M | T₃ | T₄, as the compiled step reads them (`kernels.polynomial`)."""
    products: np.ndarray
    """(r+2, r+2, 3, 3) ∫ρ a ⊗ b of the fields {uniform, X, modes}, kilogram, metres."""
    drag: np.ndarray
    """(21 + 3 r,) ∫n⊗n dA | ∫(X×n)⊗n dA | ∫X dA / area | ∫(U·n)n dA over the surface."""
    triangles: np.ndarray
    """(t, 3) int32 of its boundary."""
    colours: np.ndarray
    """(n, 3) sRGB in 0 to 1."""

    def __repr__(self) -> str:
        return f"DomainShape({self.name!r}, {self.size} modes, {len(self.vertices):,} vertices)"

    @property
    def size(self) -> int:
        """Number of modes r."""
        return self.basis.shape[1]

    @property
    def mass(self) -> float:
        """Kilogram, at scale 1."""
        return float(self.products[0, 0, 0, 0])

    @cached_property
    def frequencies(self) -> np.ndarray:
        """(r,) hertz at scale 1, held where the shape is held, slowest first."""
        s = self.size * (self.size + 1) // 2
        if not s:
            return np.zeros(0)
        values = eigh(unpack(self.coefficients[:s]), unpack(self.coefficients[s : 2 * s]), eigvals_only=True)
        return np.sqrt(np.maximum(values, 0.0)) / (2.0 * np.pi)


@dataclass(frozen=True, eq=False)
class Domain:
    """An instance of a shape, and how it hangs on its parent."""

    name: str
    shape: int
    """Number in `SubstructuredModel.shapes`."""
    parent: int
    """Number of the domain that carries it, smaller than its own; -1 for the root, the first."""
    place: np.ndarray
    """(3,) its origin at rest in the parent's unscaled axes, metres; the root's in the world."""
    turn: np.ndarray
    """(3, 3) rotation at rest from its own axes to the parent's; the root's to the world's."""
    scale: float = 1.0
    stiffness: float = 1.0
    """By what its internal forces are multiplied; frequencies go with the root of it (SUB11 §5)."""
    centre: np.ndarray = field(default_factory=lambda: np.zeros((3, 0)))
    """(3, r of the parent) â: how the parent's modes move its origin (Eq. 1)."""
    slopes: np.ndarray = field(default_factory=lambda: np.zeros((0, 3, 3)))
    """(r of the parent, 3, 3): how they deform the interface, A = 1 + Σ slopes q (Eq. 2, without R̂)."""


class DisplayTables(NamedTuple):
    """See `kernels.substructured_display.drawn_positions`."""

    domains: np.ndarray
    starts: np.ndarray
    rest: np.ndarray
    modes: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True, eq=False)
class SubstructuredModel:
    """A tree of domains. Build one with `softrig.substructure`, or load it from a file."""

    shapes: tuple[DomainShape, ...]
    domains: tuple[Domain, ...]
    floating: bool
    """Whether the root flies freely; else its held vertices hold it in the world."""
    drawn: np.ndarray
    """(N,) int32 which drawn vertex each vertex of each domain is, domain after domain; seams share theirs."""
    triangles: np.ndarray
    """(t, 3) int32 of the drawn vertices."""
    name: str = "body"

    def __post_init__(self) -> None:
        _check(self)

    def __repr__(self) -> str:
        return (
            f"SubstructuredModel({self.name!r}, {len(self.domains):,} domains of {len(self.shapes)} shapes, "
            f"{self.size:,} modes, {'floating' if self.floating else 'anchored'})"
        )

    @cached_property
    def sizes(self) -> np.ndarray:
        """(d,) modes of each domain."""
        return np.array([self.shapes[domain.shape].size for domain in self.domains], np.int64)

    @cached_property
    def starts(self) -> np.ndarray:
        """(d + 1,) where the coordinates of each domain start."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def size(self) -> int:
        """Number of coordinates of all domains, r̂."""
        return int(self.starts[-1])

    @cached_property
    def vertex_starts(self) -> np.ndarray:
        """(d + 1,) where the vertices of each domain start."""
        return np.concatenate([[0], np.cumsum([len(self.shapes[domain.shape].vertices) for domain in self.domains])])

    @cached_property
    def depth(self) -> int:
        """Domains from the root to the farthest, both counted."""
        depths: list[int] = []
        for domain in self.domains:
            depths.append(1 + (depths[domain.parent] if domain.parent >= 0 else 0))
        return max(depths)

    @cached_property
    def mass(self) -> float:
        """Kilogram, of all domains."""
        return float(sum(self.shapes[domain.shape].mass * domain.scale**3 for domain in self.domains))

    @cached_property
    def drawn_count(self) -> int:
        """Number of drawn vertices."""
        return int(self.drawn.max()) + 1

    @cached_property
    def drawn_colours(self) -> np.ndarray:
        """(m, 3) sRGB of the drawn vertices."""
        colours = np.empty((self.drawn_count, 3))
        for i, domain in enumerate(self.domains):
            colours[self.drawn[self.vertex_starts[i] : self.vertex_starts[i + 1]]] = self.shapes[domain.shape].colours
        return colours

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {domain.name: i for i, domain in enumerate(self.domains)}

    def domain(self, name: str) -> int:
        """The number of the domain called `name`."""
        if name not in self._numbers:
            known = ", ".join(list(self._numbers)[:12]) + (", …" if len(self.domains) > 12 else "")
            raise InputError(f"no domain called {name!r}; there are {known}")
        return self._numbers[name]

    def with_stiffness(self, factors: dict[str, float]) -> SubstructuredModel:
        """The same model with internal forces of some domains multiplied, by name; exact, nothing is computed anew."""
        chosen = {self.domain(name): factor for name, factor in factors.items()}
        for number, factor in chosen.items():
            if not (np.isfinite(factor) and factor > 0.0):
                raise InputError(f"stiffness of {self.domains[number].name!r} must be positive, got {factor}")
        domains = (
            replace(domain, stiffness=chosen[i]) if i in chosen else domain for i, domain in enumerate(self.domains)
        )
        return replace(self, domains=tuple(domains))

    @cached_property
    def display(self) -> DisplayTables:
        """Shapes and seams as `kernels.substructured_display` reads them."""
        rest, rest_starts = _laid_out([shape.vertices for shape in self.shapes])
        modes, mode_starts = _laid_out([np.ascontiguousarray(shape.basis.T) for shape in self.shapes])
        shapes = [domain.shape for domain in self.domains]
        return DisplayTables(
            domains=np.stack(
                [self.starts[:-1], self.sizes, rest_starts[shapes, 0], mode_starts[shapes, 0]], axis=1
            ).astype(np.int64),
            starts=np.asarray(self.vertex_starts, np.int64),
            rest=rest,
            modes=modes,
            shares=1.0 / np.bincount(self.drawn)[self.drawn],
        )

    @cached_property
    def tables(self) -> Tables:
        """All of it, as the compiled step reads it."""
        shapes = [domain.shape for domain in self.domains]
        coefficients, coefficient_starts = _laid_out([shape.coefficients for shape in self.shapes])
        products, product_starts = _laid_out([product_table(shape.products) for shape in self.shapes])
        drags, drag_starts = _laid_out([shape.drag for shape in self.shapes])
        links, link_starts = _laid_out(
            [np.concatenate([domain.centre.ravel(), domain.slopes.ravel()]) for domain in self.domains]
        )
        return Tables(
            parents=np.array([domain.parent for domain in self.domains], np.int64),
            modes=np.asarray(self.starts, np.int64),
            scales=np.array([domain.scale for domain in self.domains], np.float64),
            stiffness=np.array([domain.stiffness for domain in self.domains], np.float64),
            coefficients=coefficients,
            coefficient_starts=np.ascontiguousarray(coefficient_starts[shapes]),
            products=products,
            product_starts=np.ascontiguousarray(product_starts[shapes]),
            drags=drags,
            drag_starts=np.ascontiguousarray(drag_starts[shapes]),
            places=np.array([domain.place for domain in self.domains], np.float64),
            turns=np.array([domain.turn for domain in self.domains], np.float64),
            links=links,
            link_starts=link_starts,
        )


def _laid_out(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Arrays one after another, flat, and (k, 2) where each starts and ends."""
    ends = np.cumsum([part.size for part in parts])
    starts = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1).astype(np.int64)
    return np.concatenate([np.zeros(0), *(part.ravel() for part in parts)]), starts


def _check(model: SubstructuredModel) -> None:
    """Refuse what does not fit together, by name."""
    if not model.domains:
        raise InputError("a substructured model needs at least one domain")
    for number, shape in enumerate(model.shapes):
        _check_shape(shape, number)
    _check_domains(model)
    if model.drawn.shape != (int(model.vertex_starts[-1]),):
        raise InputError(f"{len(model.drawn)} drawn vertices are named for {int(model.vertex_starts[-1])} vertices")
    if model.drawn.min(initial=0) < 0 or len(np.unique(model.drawn)) != model.drawn.max(initial=-1) + 1:
        raise InputError("drawn vertices must be numbered from 0 without gaps")
    if model.triangles.ndim != 2 or model.triangles.shape[1] != 3:
        raise InputError(f"triangles have shape {model.triangles.shape}, not (t, 3)")
    require_indices(model.triangles.ravel(), model.drawn_count, "drawn vertices of triangles")


def _check_shape(shape: DomainShape, number: int) -> None:
    n, r = len(shape.vertices), shape.size
    s = r * (r + 1) // 2
    fits = (
        shape.vertices.shape == (n, 3)
        and shape.basis.shape == (3 * n, r)
        and shape.coefficients.shape == (2 * s + s * r + s * s,)
        and shape.products.shape == (r + 2, r + 2, 3, 3)
        and shape.drag.shape == (DRAG_HEAD + 3 * r,)
        and shape.colours.shape == (n, 3)
        and shape.triangles.ndim == 2
        and shape.triangles.shape[1] == 3
    )
    if not fits:
        raise InputError(f"the arrays of shape {shape.name!r} do not fit its {n} vertices and {r} modes", [number])
    require_indices(shape.triangles.ravel(), n, f"vertices of triangles of {shape.name!r}")
    mass = unpack(shape.coefficients[s : 2 * s]) if r else np.ones((1, 1))
    if not (shape.mass > 0.0 and np.isfinite(mass).all() and np.linalg.eigvalsh(mass)[0] > 0.0):
        raise InputError(f"shape {shape.name!r} has no mass, or modes that have none", [number])


def _check_domains(model: SubstructuredModel) -> None:
    for i, domain in enumerate(model.domains):
        if not 0 <= domain.shape < len(model.shapes):
            raise InputError(f"domain {domain.name!r} is an instance of shape {domain.shape} of {len(model.shapes)}")
        if (domain.parent < 0) != (i == 0) or domain.parent >= i:
            raise InputError(f"domain {domain.name!r} ({i}) hangs on {domain.parent}: parents first, one root", [i])
        above = model.shapes[model.domains[domain.parent].shape].size if i else 0
        if domain.centre.shape != (3, above) or domain.slopes.shape != (above, 3, 3):
            raise InputError(f"the interface of domain {domain.name!r} does not fit its parent's {above} modes", [i])
        if domain.place.shape != (3,) or domain.turn.shape != (3, 3):
            raise InputError(f"domain {domain.name!r} needs a place (3,) and a turn (3, 3)", [i])
    if len(model._numbers) < len(model.domains):
        names = [domain.name for domain in model.domains]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two domains are called {twice!r}")
    numbers = np.array([(domain.scale, domain.stiffness, *domain.place) for domain in model.domains])
    turns = np.array([domain.turn for domain in model.domains])
    sound = np.isfinite(numbers).all(axis=1) & (numbers[:, :2] > 0.0).all(axis=1)
    turned = np.abs(turns @ np.swapaxes(turns, 1, 2) - np.eye(3)).max(axis=(1, 2)) <= 1e-9
    wrong = np.nonzero(~(sound & turned & (np.linalg.det(turns) > 0.0)))[0]
    if wrong.size:
        domain = model.domains[int(wrong[0])]
        if turned[wrong[0]] and not sound[wrong[0]]:
            raise InputError(
                f"stiffness or scale of domain {domain.name!r} is not positive, or its place not finite: "
                f"{domain.stiffness}, {domain.scale}, {domain.place}",
                wrong,
            )  # fmt: skip
        raise InputError(f"the rotation of domain {domain.name!r} is none", wrong)
