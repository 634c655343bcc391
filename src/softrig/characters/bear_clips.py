"""How the bear moves: she walks, shakes herself dry and waves a paw. Times in seconds, lengths in metres."""

from __future__ import annotations

import numpy as np

from softrig.characters.bear_rig import LEGS, SPINE, WireMotion
from softrig.characters.timing import frames, hold, keyed, step_cycle

WALK_PERIOD = 1.5
WALK_SUPPORT = 0.66
"""Share of the cycle during which a paw stands."""
WALK_STRIDE = 0.46
"""Metres a standing paw travels backwards under the body."""
WALK_SPEED = WALK_STRIDE / (WALK_SUPPORT * WALK_PERIOD)
"""Metres a second; the clip walks on the spot, as on a belt."""
WALK_OFFSETS = {"LeftHindleg": 0.0, "LeftForeleg": 0.78, "RightHindleg": 0.5, "RightForeleg": 0.28}
"""Share of the cycle by which each paw's landing comes before time 0: hind, fore of the same side, then the other."""

ALONG = (SPINE[:, 2] - SPINE[0, 2]) / (SPINE[-1, 2] - SPINE[0, 2])
"""(10,) places of the spine's control points, 0 at the tail, 1 at the nose."""
HEAD = np.clip((ALONG - 0.62) / 0.25, 0.0, 1.0)
"""(10,) share of the head's own motion: the neck bends, the head stays stiff."""


def walk() -> WireMotion:
    """A four-beat walk on the spot, one cycle; the left hind paw lands at time 0."""
    motion = WireMotion(frames(WALK_PERIOD))
    phase = motion.times / WALK_PERIOD
    spine = motion.controls["Spine"]
    # Rump and shoulders sway and bob with their own legs; between them the spine is a travelling wave.
    lag = 0.28 * np.minimum(ALONG / 0.6, 1.0)
    swing = phase[:, None] - lag
    rolling = np.where(ALONG < 0.62, 1.0, 0.65)
    spine[:, :, 0] = 0.030 * rolling * np.cos(2.0 * np.pi * (swing - 0.33))
    spine[:, :, 1] = -0.030 + 0.014 * np.cos(4.0 * np.pi * (swing - 0.33))
    spine[:, :, 1] += HEAD * (-0.10 + 0.022 * np.cos(4.0 * np.pi * (phase - 0.20))[:, None])
    spine[:, :, 0] += 0.030 * HEAD * np.cos(2.0 * np.pi * (phase - 0.72))[:, None]
    _keep_head_stiff(motion)
    motion.follow()
    belly = motion.controls["Belly"]
    belly[:, :, 0] += 0.016 * np.cos(2.0 * np.pi * (phase - 0.48))[:, None]
    belly[:, :, 1] += 0.008 * np.cos(4.0 * np.pi * (phase - 0.45))[:, None]
    for leg in LEGS:
        _walking_paw(motion, leg, phase + WALK_OFFSETS[leg])
    _ears(motion, 0.006 * np.cos(4.0 * np.pi * (phase - 0.3)))
    return motion


def shake() -> WireMotion:
    """Seven twists that run from the head to the rump, back and belly in turn, paws on the ground."""
    motion = WireMotion(frames(3.0))
    t = motion.times
    envelope = hold(t, 0.35, 0.75, 1.5, 2.5)
    beat = 2.0 * np.pi * 7.0 * (t - 0.4) / 1.9
    low = keyed(t, [(0.0, 0.0), (0.40, 1.0), (2.3, 0.8), (2.75, -0.10), (3.0, 0.0)])
    lag = 1.9 * (1.0 - ALONG)
    width = 0.050 + 0.040 * ALONG
    spine = motion.controls["Spine"]
    spine[:, :, 0] = envelope[:, None] * width * np.sin(beat[:, None] - lag)
    spine[:, :, 1] = -0.055 * low[:, None] - 0.10 * HEAD * low[:, None]
    spine[:, :, 2] = 0.02 * low[:, None]
    _keep_head_stiff(motion)
    motion.follow()
    belly = motion.controls["Belly"]
    place = np.linspace(0.25, 0.65, belly.shape[1])
    belly[:, :, 0] -= 0.120 * envelope[:, None] * np.sin(beat[:, None] - 1.9 * (1.0 - place) - 0.6)
    belly[:, :, 1] += 0.012 * envelope[:, None] * np.sin(2.0 * beat[:, None])
    for leg in LEGS:
        motion.step(leg, np.zeros((len(t), 3)))
    _ears(motion, 0.030 * envelope * np.sin(beat - 0.5))
    return motion


def wave() -> WireMotion:
    """She leans back, lifts the left forepaw, waves it three times and sets it down where it was."""
    motion = WireMotion(frames(4.0))
    t = motion.times
    lean = keyed(t, [(0.0, 0.0), (0.55, 1.0), (3.1, 1.0), (3.65, -0.06), (4.0, 0.0)])
    up = keyed(t, [(0.45, 0.0), (0.62, 0.06), (1.15, 1.05), (1.35, 1.0), (2.75, 1.0), (3.25, 0.0), (4.0, 0.0)])
    waving = hold(t, 1.0, 1.35, 2.45, 2.80)
    beat = 2.0 * np.pi * 2.0 * (t - 1.05)
    spine = motion.controls["Spine"]
    front = np.clip((ALONG - 0.1) / 0.5, 0.0, 1.0)
    spine[:, :, 0] = -0.075 * lean[:, None] * front - 0.03 * lean[:, None]
    spine[:, :, 2] = -0.060 * lean[:, None]
    spine[:, :, 1] = -0.030 * lean[:, None] * (1.0 - front) + 0.030 * up[:, None] * front
    spine[:, :, 1] += HEAD * (0.10 * up + 0.012 * waving * np.sin(beat - 0.9))[:, None]
    spine[:, :, 0] += HEAD * (0.14 * up + 0.020 * waving * np.sin(beat - 0.6))[:, None]
    _keep_head_stiff(motion)
    motion.follow()
    for leg in LEGS:
        if leg != "LeftForeleg":
            motion.step(leg, np.zeros((len(t), 3)))
    _waving_paw(motion, up, waving, beat)
    _ears(motion, 0.012 * waving * np.sin(beat))
    return motion


def look(side: float, height: float) -> WireMotion:
    """One pose: the head turned by `side` (−1 right … 1 left) and raised by `height` (−1 … 1)."""
    motion = WireMotion(np.zeros(1))
    spine = motion.controls["Spine"]
    spine[0, :, 0] = 0.30 * side * HEAD**1.2
    spine[0, :, 1] = 0.22 * height * HEAD
    spine[0, -1] += np.array([0.20 * side, 0.12 * height, -0.10 * abs(side) - 0.03 * abs(height)])
    motion.follow()
    for leg in LEGS:
        motion.step(leg, np.zeros((1, 3)))
    return motion


def stretch(amount: float) -> WireMotion:
    """One pose: shoulders down and forepaws ahead, rump high, as after a nap."""
    motion = WireMotion(np.zeros(1))
    spine = motion.controls["Spine"]
    front = np.clip((ALONG - 0.15) / 0.5, 0.0, 1.0)
    spine[0, :, 1] = -0.30 * amount * front + 0.02 * amount * (1.0 - front) + 0.10 * amount * HEAD
    spine[0, :, 2] = -0.05 * amount * front
    motion.follow()
    for leg in LEGS:
        ahead = 0.20 * amount if "Fore" in leg else 0.0
        motion.step(leg, np.array([[0.0, 0.0, ahead]]))
    return motion


def _keep_head_stiff(motion: WireMotion) -> None:
    """The nose follows the head's turn: the last control point keeps its place along the neck's direction."""
    spine = motion.controls["Spine"]
    neck = SPINE[8] + spine[:, 8] - SPINE[7] - spine[:, 7]
    rest = SPINE[8] - SPINE[7]
    head = SPINE[9] - SPINE[8]
    # The smallest turn from the neck's rest direction, to first order: enough for the small turns of the clips.
    turn = np.cross(rest, neck) / (rest @ rest)
    spine[:, 9] = spine[:, 8] + 0.6 * np.cross(turn, head)


def _walking_paw(motion: WireMotion, leg: str, phase: np.ndarray) -> None:
    place, lift = step_cycle(phase, WALK_SUPPORT)
    side = 1.0 if leg.startswith("Left") else -1.0
    pitch = keyed(np.mod(phase, 1.0), [(0.0, -0.06), (0.05, 0.0), (0.52, 0.0), (0.72, 0.75), (0.88, 0.20),
                                       (0.97, -0.06), (1.0, -0.06)])  # fmt: skip
    inward = -0.035 * side * np.ones_like(place)
    roll = np.where(pitch > 0.0, 0.17 * np.sin(pitch), 0.0)
    ankle = np.stack([inward, 0.11 * lift + roll, WALK_STRIDE * place + 0.185 * (1.0 - np.cos(pitch))], axis=1)
    motion.step(leg, ankle, pitch)


def _waving_paw(motion: WireMotion, up: np.ndarray, waving: np.ndarray, beat: np.ndarray) -> None:
    swing = waving * np.sin(beat)
    ankle = np.stack([0.06 * up + 0.11 * swing, 0.52 * up + 0.03 * waving * np.cos(2.0 * beat), 0.30 * up], axis=1)
    motion.step("LeftForeleg", ankle, -1.15 * up, 0.0)


def _ears(motion: WireMotion, flick: np.ndarray) -> None:
    """Tips of the ears forward and back, m."""
    for ear in ("LeftEar", "RightEar"):
        motion.controls[ear][:, -1, 2] += flick
