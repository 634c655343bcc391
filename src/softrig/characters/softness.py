"""Softness painted by joints: some stiff, the rest soft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from softrig.rig.anatomy import mixed_by_skin
from softrig.rig.bones import skin_of
from softrig.rig.character import Character


def painted_softness(character: Character, softness: Mapping[str, float], name: str = "softness") -> Character:
    """`character` with a map called `name`: the softness of the joints' names, mixed as the skin mixes the joints.

    1 where no name ends as one of `softness` does.
    """
    skin = skin_of(character.rig)
    assert skin is not None
    names = skin.skeleton.names
    of_node = np.array([next((x for end, x in softness.items() if each.endswith(end)), 1.0) for each in names])
    return replace(character, maps={**character.maps, name: mixed_by_skin(skin, of_node)})
