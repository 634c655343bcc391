"""The bear's wires: spine, belly, four legs and two ears, 144 numbers in all, and how to pose them.

Each vertex takes its share of each wire; shares sum to one, so that wires moved alike move the bear as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from softrig.characters.bear_shape import FORELEG, HINDLEG
from softrig.characters.posing import knee_places
from softrig.characters.sculpture import MIRROR, Sculpture
from softrig.characters.weights import skin_weights
from softrig.rig.deformers import Wire

LEGS = ("LeftForeleg", "RightForeleg", "LeftHindleg", "RightHindleg")
SPINE = np.array([
    (0.0, 0.97, -0.86), (0.0, 0.98, -0.62), (0.0, 0.97, -0.36), (0.0, 0.95, -0.08), (0.0, 0.96, 0.20),
    (0.0, 0.99, 0.46), (0.0, 1.04, 0.72), (0.0, 1.10, 0.94), (0.0, 1.14, 1.14), (0.0, 1.12, 1.46),
])  # fmt: skip
"""(10, 3) from the tail to the nose, m. The last two hold the head: move them together to keep it stiff."""
BELLY = np.array([(0.0, 0.64, z) for z in (-0.58, -0.34, -0.10, 0.14, 0.38, 0.60)])
EAR = np.array([(0.085, 1.245, 1.055), (0.150, 1.365, 1.065)])


def leg_controls(leg: str) -> np.ndarray:
    """(7, 3) sole, paw, ankle, shin, knee, thigh, hip at rest, m: from the ground up, so that a planted paw stays."""
    hip, knee, ankle = (np.array(place) for place in (FORELEG if "Fore" in leg else HINDLEG))
    sole = np.array([ankle[0], 0.0, ankle[2] + 0.06])
    paw = np.array([ankle[0], 0.085, ankle[2] + 0.04])
    controls = np.stack([sole, paw, ankle, 0.5 * (ankle + knee), knee, 0.5 * (knee + hip), hip])
    return controls if leg.startswith("Left") else controls * MIRROR


CONTROLS: dict[str, np.ndarray] = {
    "Spine": SPINE,
    "Belly": BELLY,
    **{leg: leg_controls(leg) for leg in LEGS},
    "LeftEar": EAR,
    "RightEar": EAR * MIRROR,
}
"""Control points of each wire at rest, m, in the order of the rig's parameters."""


def wires(body: Sculpture, vertices: np.ndarray, triangles: np.ndarray, rounds: int) -> list[Wire]:
    """The wires with each vertex' share of each."""
    names = list(CONTROLS)
    owners, shares = skin_weights(body, names, vertices, triangles, rounds=rounds)
    dense = np.zeros((len(vertices), len(names)))
    np.put_along_axis(dense, owners.astype(np.int64), shares, axis=1)
    return [Wire(vertices, CONTROLS[name], dense[:, column], name=name) for column, name in enumerate(names)]


@dataclass(frozen=True, eq=False)
class WireMotion:
    """Displacements of all control points at f times: first the spine, then `follow`, then the paws."""

    times: np.ndarray
    """(f,) s."""
    controls: dict[str, np.ndarray] = field(init=False)
    """(f, c, 3) displacements of each wire's control points, m."""

    def __post_init__(self) -> None:
        still = {name: np.zeros((len(self.times), *places.shape)) for name, places in CONTROLS.items()}
        object.__setattr__(self, "controls", still)

    def follow(self, belly: float = 1.0) -> None:
        """Carry belly, hips, shoulders and ears by the spine; `belly` 0 leaves the belly where it was."""
        followers = {name: (slice(-1, None) if name in LEGS else slice(None)) for name in CONTROLS if name != "Spine"}
        places = [CONTROLS[name][part] for name, part in followers.items()]
        moved = np.split(self.carried(np.concatenate(places)), np.cumsum([len(p) for p in places])[:-1], axis=1)
        for (name, part), offsets in zip(followers.items(), moved, strict=True):
            self.controls[name][:, part] += belly * offsets if name == "Belly" else offsets

    def carried(self, places: np.ndarray) -> np.ndarray:
        """(f, m, 3) how the spine displaces `places` (m, 3), m."""
        carrier = Wire(places, SPINE)
        return np.stack([carrier.positions(offsets.ravel()) - places for offsets in self.controls["Spine"]])

    def step(self, leg: str, ankle: np.ndarray, pitch: np.ndarray | float = 0.0, yaw: np.ndarray | float = 0.0) -> None:
        """Put the ankle of `leg` at `ankle` (f, 3), m from its rest place, and bend the knee (two-bone IK).

        `pitch` (toes down) and `yaw` (toes to the left) turn the paw about the ankle, rad.
        """
        rest = CONTROLS[leg]
        angles = np.stack([np.broadcast_to(angle, self.times.shape) for angle in (pitch, yaw)], axis=1)
        turned = Rotation.from_euler("xy", angles)
        joints = rest[[6, 4, 2]]
        hip, target = rest[6] + self.controls[leg][:, 6], rest[2] + ankle
        along = joints[2] - joints[0]
        pole = joints[1] - joints[0] - ((joints[1] - joints[0]) @ along) / (along @ along) * along
        knee = knee_places(hip, target, np.broadcast_to(pole, hip.shape), joints)
        places = np.stack(
            [
                target + turned.apply(rest[0] - rest[2]),
                target + turned.apply(rest[1] - rest[2]),
                target,
                0.5 * (target + knee),
                knee,
                0.5 * (knee + hip),
                hip,
            ],
            axis=1,
        )
        self.controls[leg][:] = places - rest

    def values(self) -> np.ndarray:
        """(f, 144) the wires' parameters."""
        return np.concatenate([part.reshape(len(self.times), -1) for part in self.controls.values()], axis=1)
