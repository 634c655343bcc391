"""Whether a rig bends what it carries at all."""

from __future__ import annotations

from collections.abc import Sequence

from softrig.rig.clip import Clip
from softrig.rig.deformers import BlendShapes
from softrig.rig.protocol import Rig
from softrig.rig.skinning import Skin


def rig_trouble(rig: Rig, clips: Sequence[Clip]) -> str:
    """That nothing bends the flesh, where no bones, several nodes or deformers do; "" if something does.

    What moves as a whole by its clips swings nevertheless. Morphs in front of a skin move the surface and no tets.
    """
    if not _is_one_piece(rig):
        return ""
    if any(isinstance(stage, BlendShapes) for stage in getattr(rig, "stages", ())):
        return "there is no skeleton, and morphs alone bend the surface: flesh does not feel them"
    moved = "its clips move it as a whole" if clips else "pulls and wind alone can move it (softrig view, or Python)"
    return f"there is no skeleton and no other rig, so nothing drives the flesh: {moved}"


def _is_one_piece(rig: Rig) -> bool:
    if isinstance(rig, Skin):
        # The binding has bones for nodes that hold a mesh: several of them move parts against each other.
        return not len(rig.bones) and len(rig.binding.bones) < 2
    stages = getattr(rig, "stages", ())
    if any(isinstance(stage, Skin) for stage in stages):
        stages = tuple(stage for stage in stages if not isinstance(stage, BlendShapes))
    return all(map(_is_one_piece, stages)) if stages else not len(rig.parameters)
