"""What the physics needs to know of a rig: whether bones carry it, which, and where they are at a pose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from softrig.bases.load_modes import skin_joints
from softrig.errors import InputError
from softrig.models.pose_space import rest_inverses
from softrig.rig.bones import skin_of
from softrig.rig.character import Character
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.protocol import Rig
from softrig.rig.skinning import Skin


def carrying_skin(rig: Rig) -> Skin | None:
    """The skin of a rig that is one, perhaps behind blend shapes; None for every other rig (a black box)."""
    stages = rig.stages if isinstance(rig, RigChain) else (rig,)
    *before, last = stages
    if isinstance(last, Skin) and all(isinstance(stage, BlendShapes) for stage in before):
        return skin_of(last)
    return None


@dataclass(frozen=True, eq=False)
class Bones:
    """The B bones of a skin."""

    skin: Skin
    first_parameter: int
    """Where the skeleton's parameters begin among the rig's."""
    parents: np.ndarray
    """(B,) the nearest bone above each, −1: none."""
    root: int
    """The bone that carries the most."""

    @property
    def table(self) -> csr_array:
        """(n̄, B) skin weights of the surface."""
        return self.skin.binding.table

    def matrices(self, p: np.ndarray) -> np.ndarray:
        """(B, 4, 4) rest positions to world, at the rig's parameters p (P,): identities at rest."""
        return self.skin.bone_matrices(self._own(p)) @ self._rest_inverses

    @cached_property
    def _rest_inverses(self) -> np.ndarray:
        return rest_inverses(self.skin)

    @property
    def names(self) -> tuple[str, ...]:
        """B names, of the nodes."""
        return tuple(self.skin.skeleton.names[node] for node in self.skin.binding.bones)

    def places(self, p: np.ndarray) -> np.ndarray:
        """(B, 3) metres: where each bone's joint is at the rig's parameters p (P,)."""
        return skin_joints(self.skin, self._own(p))[0]

    def _own(self, p: np.ndarray) -> np.ndarray:
        return p[self.first_parameter : self.first_parameter + len(self.skin.skeleton.parameters)]


def bones_of(character: Character) -> Bones | None:
    """The bones of a skinned character; None for a black box."""
    skin = carrying_skin(character.rig)
    if skin is None:
        return None
    if len(skin.skeleton) == 0:
        raise InputError(f"'{character.name}' is skinned to a skeleton without joints")
    parents = skin_joints(skin, skin.parameters.rest)[1]
    start = character.rig.parameters.index(skin.skeleton.parameters.names[0])
    return Bones(skin, start, parents, _root(parents, np.asarray(skin.binding.table.sum(axis=0)).ravel()))


def _root(parents: np.ndarray, carried: np.ndarray) -> int:
    """The bone without a parent whose whole branch carries the most vertices."""
    tops = np.arange(len(parents))
    for _ in range(len(parents)):
        above = np.where(parents[tops] >= 0, parents[tops], tops)
        if np.array_equal(above, tops):
            break
        tops = above
    return int(np.bincount(tops, carried, minlength=len(parents)).argmax())
