"""Volume meshes from surfaces and boxes."""

from softrig.meshing.boxes import box_bricks, box_tets
from softrig.meshing.voxels import Voxelisation, resolution_for_bricks, voxelise

__all__ = ["Voxelisation", "box_bricks", "box_tets", "resolution_for_bricks", "voxelise"]
