"""Which joints carry mostly bone, by their names: hands, feet and heads do, and rigs seldom have bones inside them.
Others that somebody calls firm are like hands.

A hand that hangs on a wrist joint alone is a lump of flesh around a short segment: as soft as the rest it would flap.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

from softrig.rig.bones import carried_by_nodes, skin_of
from softrig.rig.character import Character
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import Skin

HEAD, END = 0.1, 0.05
"""Softness, as if painted: a skull under skin; hands and feet. Some 60 and 80 times as stiff as the material."""
_HEAD = "head|skull|cranium|jaw|chin|snout|muzzle"
_END = "hand|wrist|palm|finger|thumb|pinky|pinkie|knuckle|foot|feet|ankle|toe|hoof|paw|claw"
_SIDE = "left|right|l|r"
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_KNOWN = ((re.compile(f"({_SIDE})?({_HEAD})s?"), HEAD), (re.compile(f"({_SIDE})?({_END})s?"), END))
_LOOSE = re.compile("(hair|ear|tail|pony|ponytail|bang|horn|hat|cloth|sleeve|bag|weapon|prop|item)s?")
"""What hangs on a head or a hand and is no part of it."""


def joint_softness(name: str) -> float:
    """What flesh that follows a joint of that name should be painted: 1 where the name tells nothing.

    "LeftHand", "hand.L", "J_Bip_L_Hand", "mixamorig:RightToeBase" and "lefthand" are understood.
    """
    if _is_loose(name):
        return 1.0
    return min((value for word in _words(name) for known, value in _KNOWN if known.fullmatch(word)), default=1.0)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _is_loose(name: str) -> bool:
    return any(map(_LOOSE.fullmatch, _words(name)))


def node_softness(skeleton: Skeleton, *, bony: bool = True, firm: Collection[str] = ()) -> np.ndarray:
    """(j,) of all joints: by their names if `bony`, and those called `firm`, and no others, like hands.

    What is below a hand or a foot are fingers and toes, whatever they are called: of the same rig one finger may be
    called "index" and the next "middle", and only the hand says what they are.
    """
    softness = np.array([joint_softness(name) if bony else 1.0 for name in skeleton.names])
    for node, parent in enumerate(skeleton.parents):  # parents come first
        if parent >= 0 and softness[parent] == END and not _is_loose(skeleton.names[node]):
            softness[node] = END
    softness[[name in firm for name in skeleton.names]] = END
    return softness


def bony_joints(character: Character, *, bony: bool = True, firm: Collection[str] = ()) -> list[str]:
    """Names of the joints of the skin that carry mostly bone; see `node_softness`."""
    skin = skin_of(character.rig)
    if skin is None:
        return []
    softness = node_softness(skin.skeleton, bony=bony, firm=firm)
    return sorted({skin.skeleton.names[node] for node in skin.binding.bones if softness[node] < 1.0})


def outer_joints(skin: Skin) -> list[str]:
    """Names of the joints that carry vertices and below which none does: hands, feet and heads are among them."""
    parents, carries = skin.skeleton.parents, carried_by_nodes(skin) > 0.0
    below = np.zeros(len(parents), bool)
    for node in range(len(parents))[::-1]:  # parents come first
        if parents[node] >= 0:
            below[parents[node]] |= carries[node] or below[node]
    return [skin.skeleton.names[node] for node in np.flatnonzero(carries & ~below)]


def bony_softness(character: Character, *, bony: bool = True, firm: Collection[str] = ()) -> np.ndarray | None:
    """(n̄,) softness by the joints (`node_softness`), mixed as the skin mixes them; None where all are soft."""
    skin = skin_of(character.rig)
    if skin is None or not bony_joints(character, bony=bony, firm=firm):
        return None
    return mixed_by_skin(skin, node_softness(skin.skeleton, bony=bony, firm=firm))


def mixed_by_skin(skin: Skin, of_node: np.ndarray) -> np.ndarray:
    """(n̄,) numbers in 0 … 1 of the joints (j,) at the vertices that follow them."""
    table = skin.binding.table
    return np.clip(np.asarray(table @ of_node[np.asarray(skin.binding.bones)]), 0.0, 1.0)
