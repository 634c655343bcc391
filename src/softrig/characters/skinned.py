"""Characters on bones: the skin, and corrections that give bent joints their flesh back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softrig.characters.assembly import Sculpt, Surface
from softrig.characters.corrections import Bulge, bulged
from softrig.characters.paint import inside_softly
from softrig.characters.sculpture import Sculpture, other_side
from softrig.characters.weights import skin_weights
from softrig.numerics.rotations import quaternions_from_vectors
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import DualQuaternionSkin, LinearBlendSkin

DUAL_SHARE = 0.6
"""Share of dual quaternions in a relieved joint: linear skinning alone collapses, they alone swell like a ball."""


@dataclass(frozen=True)
class BentJoint:
    """A pose of one joint that wants a correction.

    name     of the correction
    joint    which is turned
    turn     rotation vector, rad, in the parent's frame
    bulges   flesh that swells or gives way at the pose
    relief   radius around the joint, m, within which linear skinning's collapse is undone
    """

    name: str
    joint: str
    turn: tuple[float, float, float]
    bulges: tuple[Bulge, ...]
    relief: float

    def mirrored(self) -> BentJoint:
        """The same on the other side."""
        x, y, z = self.turn
        bulges = tuple(bulge.mirrored() for bulge in self.bulges)
        return BentJoint(other_side(self.name), other_side(self.joint), (x, -y, -z), bulges, self.relief)


def skin_of_body(
    body: Sculpture, surface: Surface, skeleton: Skeleton, rounds: int
) -> tuple[LinearBlendSkin, DualQuaternionSkin]:
    """The skin a character uses, and the one without collapsing joints its corrections are sculpted after."""
    joints, weights = skin_weights(body, skeleton.names, surface.vertices, surface.triangles, rounds=rounds)
    inverse_binds = np.linalg.inv(skeleton.rest_world_matrices)
    bones = np.arange(len(skeleton))
    linear = LinearBlendSkin(skeleton, surface.vertices, bones, inverse_binds, joints, weights)
    return linear, DualQuaternionSkin(skeleton, surface.vertices, bones, inverse_binds, joints, weights)


def bent(skeleton: Skeleton, joint: str, turn: Sequence[float]) -> np.ndarray:
    """(P,) the skeleton at rest but for one joint, turned by a rotation vector, rad."""
    p = skeleton.parameters.rest.copy()
    p[skeleton.rotation(skeleton.index(joint))] = quaternions_from_vectors(np.array(turn))
    return p


def sculpted_joint(bend: BentJoint, surface: Surface, linear: LinearBlendSkin, dual: DualQuaternionSkin) -> Sculpt:
    """The correction of one bent joint: collapse undone around it, then the bulges."""
    skeleton = linear.skeleton
    p = bent(skeleton, bend.joint, bend.turn)
    posed = linear.positions(p)
    head = skeleton.rest_world_matrices[skeleton.index(bend.joint), :3, 3]
    centre = (float(head[0]), float(head[1]), float(head[2]))
    relief = DUAL_SHARE * inside_softly(surface.vertices, centre, 0.5 * bend.relief, 1.0)[:, None]
    full = posed + relief * (dual.positions(p) - posed)
    positions = bulged(surface.vertices, full, surface.triangles, bend.bulges)
    # Outside all regions the sculpture is the posed skin to the last bit, so that the target stays sparse.
    touched = np.abs(positions - posed).max(axis=1) > 1e-6
    return Sculpt(bend.name, p, (f"{bend.joint}.rotation",), np.where(touched[:, None], positions, posed))
