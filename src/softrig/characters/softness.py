"""Softness painted by joints: some stiff, the rest soft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from softrig.rig.bones import skin_of
from softrig.rig.character import Character


def painted_softness(character: Character, softness: Mapping[str, float], name: str = "softness") -> Character:
    """`character` with a map called `name`: the softness of the joints' names, mixed as the skin mixes the joints.

    1 where no name ends as one of `softness` does.
    """
    skin = skin_of(character.rig)
    assert skin is not None
    names = [skin.skeleton.names[bone] for bone in skin.bones]
    of_bone = np.array([next((x for end, x in softness.items() if each.endswith(end)), 1.0) for each in names])
    values = (skin.weights * of_bone[skin.joints]).sum(axis=1) / skin.weights.sum(axis=1)
    return replace(character, maps={**character.maps, name: values})
