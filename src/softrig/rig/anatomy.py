"""Which joints carry mostly bone, by their names: hands, feet and heads do, and rigs seldom have bones inside them.

A hand that hangs on a wrist joint alone is a lump of flesh around a short segment: as soft as the rest it would flap.
"""

from __future__ import annotations

import re

import numpy as np

from softrig.rig.bones import skin_of
from softrig.rig.character import Character

HEAD, END = 0.1, 0.05
"""Softness, of the material's: a skull under skin; fingers and toes."""
_WORDS = {
    HEAD: "head skull cranium jaw chin snout muzzle",
    END: "hand wrist palm finger fingers thumb index pinky pinkie knuckle foot feet ankle toe toes hoof paw claw",
}
_SOFTNESS = {word: value for value, words in _WORDS.items() for word in words.split()}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LOOSE = {"hair", "ear", "tail", "pony", "ponytail", "bang", "bangs", "hat", "cloth", "sleeve", "bag", "weapon", "prop"}
"""What hangs on a head or a hand and is no part of it."""


def joint_softness(name: str) -> float:
    """What flesh that follows a joint of that name should be painted: 1 where the name tells nothing.

    "LeftHandIndex1", "hand.L", "J_Bip_L_Hand" and "mixamorig:RightToeBase" are understood.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if _LOOSE & set(words):
        return 1.0
    return min((_SOFTNESS[word] for word in words if word in _SOFTNESS), default=1.0)


def bony_joints(character: Character) -> dict[str, float]:
    """The joints of the skin that carry mostly bone, and how soft what follows them is."""
    skin = skin_of(character.rig)
    names = [] if skin is None else [skin.skeleton.names[bone] for bone in skin.bones]
    return {name: softness for name in names if (softness := joint_softness(name)) < 1.0}


def bony_softness(character: Character) -> np.ndarray | None:
    """(n̄,) softness by the names of the joints, mixed as the skin mixes them; None where no name tells anything."""
    skin, bony = skin_of(character.rig), bony_joints(character)
    if skin is None or not bony:
        return None
    of_bone = np.array([bony.get(skin.skeleton.names[bone], 1.0) for bone in skin.bones])
    return np.asarray((skin.weights * of_bone[skin.joints]).sum(axis=1) / skin.weights.sum(axis=1))
