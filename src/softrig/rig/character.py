"""A character: surface, rig, clips and parts, as one file or one generator gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from softrig.errors import EmptyMeshError, IndexRangeError, InputError, require_finite
from softrig.numerics.rotations import quaternion_product, quaternions_from_vectors
from softrig.rig.bones import Bone, rest_bones, skin_of
from softrig.rig.clip import Clip
from softrig.rig.corrections import Correction, check_corrections, corrected
from softrig.rig.features import bounding_size, vertex_areas
from softrig.rig.parameters import Parameters
from softrig.rig.protocol import Rig
from softrig.rig.roles import ROLES, PartFacts, Role, guess_roles
from softrig.rig.skeleton import Skeleton
from softrig.rig.weld import TOLERANCE, Weld, weld
from softrig.words import has_no

_APART = 1e-3
"""Co-located vertices that a pose parts by more than this times the size (closed lips) are not welded."""


@dataclass(frozen=True, eq=False)
class Part:
    """One mesh of a character: a run of its vertices and of its triangles."""

    name: str
    vertices: slice
    triangles: slice
    role: Role = "soft"
    """"soft" is simulated, "rigid" (eyes, teeth) keeps its shape, "follows" (clothes) moves with the body."""
    node: int = -1
    """Node of the skeleton that holds the mesh, −1: none."""
    colours: np.ndarray | None = None
    """(vertices of the part, 4) red, green, blue, alpha in 0 … 1, linear."""
    maps: dict[str, np.ndarray] = field(default_factory=dict)
    """Painted maps by name, (vertices of the part,) each."""
    source: dict[str, Any] = field(default_factory=dict)
    """Where it comes from: indices of mesh and primitive in the file."""

    def __repr__(self) -> str:
        counts = [span.stop - span.start for span in (self.vertices, self.triangles)]
        return f"Part({self.name!r}, {self.role}, {counts[0]:,} vertices, {counts[1]:,} triangles)"


@dataclass(frozen=True, eq=False)
class Character:
    """Surface, rig, clips and parts. Positions in metres, y up."""

    name: str
    rig: Rig
    skeleton: Skeleton | None
    """Nodes of the rig, if it has any; its parameters are among those of the rig, under the same names."""
    triangles: np.ndarray
    """(t, 3) int32."""
    parts: tuple[Part, ...]
    clips: tuple[Clip, ...] = ()
    colours: np.ndarray | None = None
    """(n, 4) red, green, blue, alpha in 0 … 1, linear."""
    maps: dict[str, np.ndarray] = field(default_factory=dict)
    """Painted maps by name, (n,) each."""
    source: Path | None = None
    corrections: tuple[Correction, ...] = ()
    """Sculpted poses; each is also a morph target of the rig."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "triangles", np.asarray(self.triangles, dtype=np.int32).reshape(-1, 3))
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "clips", tuple(self.clips))
        object.__setattr__(self, "corrections", tuple(self.corrections))
        _check(self)

    def __repr__(self) -> str:
        counts = {
            "vertices": self.rig.vertex_count,
            "triangles": len(self.triangles),
            "parts": len(self.parts),
            "clips": len(self.clips),
            "corrections": len(self.corrections),
        }
        return f"{type(self).__name__}({self.name!r}, {', '.join(f'{n:,} {what}' for what, n in counts.items())})"

    @cached_property
    def rest_positions(self) -> np.ndarray:
        """(n, 3) metres: the rig at rest."""
        positions = self.rig.positions(self.rig.parameters.rest)
        require_finite(positions, f"rest positions of '{self.name}'")
        return positions

    @cached_property
    def size(self) -> float:
        """Metres: the diagonal of the bounding box at rest."""
        return bounding_size(self.rest_positions)

    @cached_property
    def areas(self) -> np.ndarray:
        """(n,) square metres: a third of the triangles around each vertex at rest."""
        return vertex_areas(self.rest_positions, self.triangles)

    @cached_property
    def part_of_vertex(self) -> np.ndarray:
        """(n,) int32 the part each vertex belongs to, −1: none."""
        owners = np.full(self.rig.vertex_count, -1, dtype=np.int32)
        for index, part in enumerate(self.parts):
            owners[part.vertices] = index
        return owners

    @cached_property
    def welded(self) -> Weld:
        """Co-located vertices joined, among soft parts, among following parts, and within each rigid part.

        Vertices that lie together at rest but part in motion (closed lips) stay apart.
        """
        groups = np.array([self._weld_group(i) for i in range(len(self.parts))] + [-1], dtype=np.int64)
        return self._weld(groups[self.part_of_vertex])

    def _weld_group(self, index: int) -> int:
        role = self.parts[index].role
        return index + len(ROLES) if role == "rigid" else ROLES.index(role)

    def _weld(self, groups: np.ndarray | None) -> Weld:
        together = weld(self.rest_positions, TOLERANCE * self.size, groups)
        posed = self.rig.positions(_stirred(self.rig.parameters, self.size))
        if not np.isfinite(posed).all():
            return together
        return weld(posed, _APART * self.size, together.unique_of_vertex)

    @cached_property
    def skeleton_start(self) -> int:
        """Where the skeleton's parameters begin among the rig's."""
        if self.skeleton is None or len(self.skeleton) == 0:
            return 0
        return self.rig.parameters.index(self.skeleton.parameters.names[0])

    def skeleton_parameters(self, p: np.ndarray) -> np.ndarray:
        """(..., 10 j) the skeleton's share of the rig's parameters p (..., P)."""
        if self.skeleton is None:
            raise InputError(f"'{self.name}' has no skeleton")
        return p[..., self.skeleton_start : self.skeleton_start + len(self.skeleton.parameters)]

    def clip(self, name: str) -> Clip:
        """The clip called `name`."""
        for clip in self.clips:
            if clip.name == name:
                return clip
        raise InputError(has_no(self.name, "clip", [name], [clip.name for clip in self.clips]))

    def part(self, name: str) -> Part:
        """The part called `name`."""
        for part in self.parts:
            if part.name == name:
                return part
        raise InputError(has_no(self.name, "part", [name], [part.name for part in self.parts]))

    def corrected(self, p: np.ndarray) -> np.ndarray:
        """(..., P) a copy of parameters `p` with the weights of the corrections that belong to the pose."""
        return corrected(self.rig.parameters, self.corrections, p)

    def bones(self) -> list[Bone]:
        """(name, head, tail, node) of the bones that carry vertices, in rest pose; heads and tails (3,) in metres."""
        return rest_bones(self.rig, self.skeleton, self.rest_positions)

    def with_guessed_roles(self) -> Character:
        """The same character with a guess of what each part is; see `guess_roles`."""
        if not self.parts:
            return self
        return self.with_roles(dict(enumerate(guess_roles(self._part_facts()))))

    def with_roles(self, roles: Mapping[str, Role] | Mapping[int, Role]) -> Character:
        """The same character with the roles of some parts, by name or index, changed."""
        parts = list(self.parts)
        for key, role in roles.items():
            if role not in ROLES:
                raise InputError(f"a part is soft, rigid or follows, not '{role}'")
            index = self.parts.index(self.part(key)) if isinstance(key, str) else key
            parts[index] = replace(parts[index], role=role)
        return replace(self, parts=tuple(parts))

    def _part_facts(self) -> list[PartFacts]:
        """Names, areas, single bones, and which parts share places with which."""
        skin = skin_of(self.rig)
        owners = self.part_of_vertex
        unique = self._weld(None).unique_of_vertex
        pairs = np.unique(np.stack([unique, owners], axis=1), axis=0)
        joined: list[set[int]] = [set() for _ in self.parts]
        for same in np.split(pairs[:, 1], np.flatnonzero(np.diff(pairs[:, 0])) + 1):
            for owner in same[same >= 0] if len(same) > 1 else ():
                joined[owner].update(set(same[same >= 0].tolist()) - {int(owner)})
        facts = []
        for index, part in enumerate(self.parts):
            one_bone = False
            if skin is not None:
                rows = skin.binding.table[part.vertices]
                one_bone = len(set(skin.binding.bones[rows.indices].tolist())) == 1
            area = float(self.areas[part.vertices].sum())
            facts.append(PartFacts(part.name, area, one_bone, frozenset(joined[index])))
        return facts


def _check(character: Character) -> None:
    count = character.rig.vertex_count
    if count == 0:
        raise EmptyMeshError(f"'{character.name}' has no vertices")
    wrong = ((character.triangles < 0) | (character.triangles >= count)).any(axis=1)
    if wrong.any():
        raise IndexRangeError("triangles name vertices that do not exist", np.flatnonzero(wrong))
    for index, part in enumerate(character.parts):
        spans = ((part.vertices, count), (part.triangles, len(character.triangles)))
        if any(not 0 <= span.start <= span.stop <= most for span, most in spans):
            raise IndexRangeError(f"part '{part.name}' reaches beyond the character", [index])
        if part.role not in ROLES:
            raise InputError(f"a part is soft, rigid or follows, not '{part.role}'", [index])
    for name, values in character.maps.items():
        if np.shape(values) != (count,):
            raise InputError(f"map '{name}' must be ({count},), not {np.shape(values)}")
    if character.colours is not None and np.shape(character.colours) != (count, 4):
        raise InputError(f"colours must be ({count}, 4), not {np.shape(character.colours)}")
    wrong_clips = [
        i for i, clip in enumerate(character.clips) if clip.parameters.names != character.rig.parameters.names
    ]
    if wrong_clips:
        raise InputError("clips of another rig's parameters", wrong_clips)
    check_corrections(character.rig.parameters, count, character.corrections)


def _stirred(parameters: Parameters, size: float) -> np.ndarray:
    """(P,) a pose that moves everything a little, each parameter its own way, the same on every run."""
    rng = np.random.default_rng(3)
    p = parameters.normalised(parameters.rest)
    steps = rng.uniform(0.5, 1.0, len(p))
    for index, (name, unit) in enumerate(zip(parameters.names, parameters.units, strict=True)):
        if unit == "m":
            p[index] += 0.02 * size * steps[index]
        elif unit == "rad":
            p[index] += 0.3 * steps[index]
        elif name.endswith(".weight"):
            p[index] += steps[index]
    for start in parameters.quaternions:
        axis = rng.standard_normal(3)
        turn = quaternions_from_vectors(0.3 * axis / np.linalg.norm(axis))
        p[start : start + 4] = quaternion_product(p[start : start + 4], turn)
    return p
