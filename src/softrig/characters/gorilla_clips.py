"""How the gorilla moves: he walks, jumps and beats his chest. Times in seconds, angles in radians."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation

from softrig.characters.posing import Motion
from softrig.characters.timing import ease, frames, hold, keyed, step_cycle
from softrig.rig.skeleton import Skeleton

WALK_PERIOD = 1.2
WALK_SUPPORT = 0.62
"""Share of the cycle during which a foot stands."""
WALK_STRIDE = 0.46
"""Metres a standing foot travels backwards under the body."""
WALK_SPEED = WALK_STRIDE / (WALK_SUPPORT * WALK_PERIOD)
"""Metres a second; the clip walks on the spot, as on a belt."""

TOES = np.array([0.01, -0.105, 0.24])
HEEL = np.array([0.0, -0.105, -0.08])
"""From the left ankle to the points the foot rolls over, m."""

GRAVITY = 9.81
JUMP_LEAVES, JUMP_LANDS = 0.92, 1.42
ARM_DOWN = -0.42
"""From the rest pose to arms that hang beside the body."""


def walk(skeleton: Skeleton) -> Motion:
    """A rolling upright walk on the spot, one cycle; the left foot lands at time 0."""
    motion = Motion(skeleton, frames(WALK_PERIOD))
    phase = motion.times / WALK_PERIOD
    wave = _wave(phase)
    over = wave(1, 0.31)
    motion.move("Hips", x=0.040 * over, y=-0.045 + 0.016 * wave(2, 0.31), z=0.012 * wave(2, 0.10))
    motion.turn("Hips", x=0.10 + 0.02 * wave(2, 0.05), y=-0.16 * wave(1, 0.0), z=0.055 * over)
    motion.turn("Spine", x=0.06, y=0.12 * wave(1, 0.03), z=-0.05 * wave(1, 0.33))
    motion.turn("Chest", x=0.09 + 0.025 * wave(2, 0.12), y=0.20 * wave(1, 0.05), z=-0.055 * wave(1, 0.36))
    motion.turn("Head", x=-0.20 - 0.03 * wave(2, 0.18), y=-0.13 * wave(1, 0.06), z=0.035 * wave(1, 0.38))
    for side, shift in (("Left", 0.0), ("Right", 0.5)):
        flip = 1.0 if side == "Left" else -1.0
        swing = _wave(phase + shift)
        out = ARM_DOWN + 0.05 * swing(2, 0.1)
        motion.turn(f"{side}UpperArm", x=-0.05 + 0.38 * swing(1, 0.04), y=-0.25 * flip, z=flip * out)
        motion.turn(f"{side}Forearm", x=-0.26 + 0.16 * swing(1, 0.11))
        motion.turn(f"{side}Hand", x=0.05 + 0.16 * swing(1, 0.18), z=-0.12 * flip)
        _step(motion, side, phase + shift)
    return motion


def jump(skeleton: Skeleton) -> Motion:
    """Crouch, leap thirty centimetres, land, sink, settle."""
    motion = Motion(skeleton, frames(2.6))
    t = motion.times
    crouch = keyed(t, [(0.0, 0.0), (0.55, 1.0), (1.02, -0.06), (1.22, 0.22), (JUMP_LANDS, 0.20), (1.72, 1.0),
                       (2.2, -0.05), (2.6, 0.0)])  # fmt: skip
    height, feet = _leap(t)
    motion.move("Hips", y=height, z=-0.09 * crouch)
    motion.turn("Hips", x=0.36 * crouch)
    motion.turn("Spine", x=0.20 * crouch + 0.02)
    motion.turn("Chest", x=0.16 * crouch - 0.10 * hold(t, 0.75, 1.0, 1.2, 1.45))
    motion.turn("Head", x=-0.50 * crouch - 0.12 * hold(t, 0.8, 1.0, 1.15, 1.4))
    swing = keyed(t, [(0.0, 0.0), (0.42, 0.58), (1.18, -1.50), (1.30, -1.42), (1.86, 0.20), (2.15, -0.08), (2.6, 0.0)])
    down = 0.75 * ARM_DOWN * hold(t, 0.0, 0.5, 0.60, 1.15) + 0.26 * hold(t, 0.65, 1.20, 1.3, 1.75)
    motion.turn_both("LeftUpperArm", x=swing, y=-0.25 * hold(t, 0.0, 0.5, 2.0, 2.6), z=down)
    motion.turn_both(
        "LeftForearm", x=keyed(t, [(0.0, 0.0), (0.62, -0.35), (1.1, -0.60), (1.35, -0.5), (1.75, -0.55), (2.6, 0.0)])
    )
    motion.turn_both("LeftHand", x=keyed(t, [(0.0, 0.0), (0.66, 0.2), (1.05, -0.25), (1.75, 0.2), (2.6, 0.0)]))
    pitch = keyed(
        t, [(0.0, 0.0), (0.70, 0.0), (JUMP_LEAVES, 0.55), (1.15, 0.50), (1.36, 0.12), (1.50, 0.0), (2.6, 0.0)]
    )
    for side in ("Left", "Right"):
        _stand(motion, side, np.zeros_like(t), feet, 0.03 * np.sin(np.pi * ease(t, JUMP_LEAVES, JUMP_LANDS)), pitch)
    return motion


def beat(skeleton: Skeleton) -> Motion:
    """He draws himself up, drums on his chest with both hands in turn, and lets the arms sink."""
    motion = Motion(skeleton, frames(3.6))
    t = motion.times
    up = hold(t, 0.0, 0.6, 2.7, 3.5)
    drum = hold(t, 0.55, 0.85, 2.35, 2.7)
    beats = 2.0 * np.pi * 4.0 * (t - 0.6)
    wind = keyed(t, [(0.0, 0.0), (0.25, 1.0), (0.6, 0.0), (3.6, 0.0)])
    motion.move("Hips", x=0.02 * drum * np.sin(0.5 * beats), y=-0.05 * up - 0.04 * wind, z=-0.02 * up)
    motion.turn("Hips", x=0.04 * up + 0.08 * wind, y=0.035 * drum * np.sin(beats))
    motion.turn("Spine", x=-0.06 * up + 0.10 * wind, y=0.03 * drum * np.sin(beats - 0.5))
    motion.turn("Chest", x=-0.12 * up + 0.06 * wind, y=0.05 * drum * np.sin(beats - 0.9), z=0.02 * drum * np.sin(beats))
    motion.turn(
        "Head", x=-0.16 * up + 0.14 * wind + 0.03 * drum * np.sin(2.0 * beats), y=0.30 * drum * np.sin(0.25 * beats)
    )
    for side in ("Left", "Right"):
        _drum(motion, side, t, beats if side == "Left" else beats + np.pi)
        _stand(motion, side, np.zeros_like(t), np.zeros_like(t), np.zeros_like(t), np.zeros_like(t))
    return motion


def _wave(phase: np.ndarray) -> Callable[[int, float], np.ndarray]:
    """Cosines of `phase`, cycles: so many times a cycle, first at their top at a given phase."""

    def wave(times_a_cycle: int, top: float) -> np.ndarray:
        return np.cos(2.0 * np.pi * times_a_cycle * (phase - top))

    return wave


def _step(motion: Motion, side: str, phase: np.ndarray) -> None:
    """One foot of the walk: heel first, flat, off over the toes."""
    place, lift = step_cycle(phase, WALK_SUPPORT)
    pitch = keyed(np.mod(phase, 1.0), [(0.0, -0.20), (0.09, 0.0), (0.42, 0.0), (0.64, 0.52), (0.84, 0.05),
                                       (0.95, -0.20), (1.0, -0.20)])  # fmt: skip
    _stand(motion, side, 0.02 + WALK_STRIDE * place, 0.085 * lift, np.full_like(place, -0.035), pitch)


def _stand(
    motion: Motion, side: str, ahead: np.ndarray, lift: np.ndarray, outward: np.ndarray, pitch: np.ndarray
) -> None:
    """Put a foot m ahead of, above and outward of its rest place, rolled over heel or toes.

    `pitch`, rad: below zero the toes are up and the foot stands on its heel, above zero on its toes.
    """
    flip = np.array([1.0 if side == "Left" else -1.0, 1.0, 1.0])
    skeleton = motion.skeleton
    ankle = skeleton.rest_world_matrices[skeleton.index(f"{side}Foot"), :3, 3]
    facing = Rotation.from_euler("x", pitch[:, None])
    pivot = np.where(pitch[:, None] > 0.0, TOES * flip, HEEL * flip)
    path = ankle + np.stack([outward * flip[0], lift, ahead], axis=1)
    motion.reach(f"{side}Foot", path + pivot - facing.apply(pivot), facing)


def _leap(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(f,) heights of hips and feet above rest, m: pushed, in free flight, caught."""
    speed = 0.5 * GRAVITY * (JUMP_LANDS - JUMP_LEAVES)
    keys = np.array([(0.0, 0.0, 0.0), (0.60, -0.25, 0.0), (JUMP_LEAVES, 0.04, speed), (JUMP_LANDS, 0.03, -speed),
                     (1.66, -0.25, 0.0), (2.12, 0.008, 0.0), (2.6, 0.0, 0.0)])  # fmt: skip
    hips = CubicHermiteSpline(keys[:, 0], keys[:, 1], keys[:, 2])(t)
    flown = np.clip(t - JUMP_LEAVES, 0.0, JUMP_LANDS - JUMP_LEAVES)
    flight = speed * flown - 0.5 * GRAVITY * flown**2
    flying = (t > JUMP_LEAVES) & (t < JUMP_LANDS)
    hips = np.where(flying, 0.04 - 0.01 * flown / (JUMP_LANDS - JUMP_LEAVES) + flight, hips)
    tucked = 0.10 * np.sin(np.pi * flown / (JUMP_LANDS - JUMP_LEAVES)) ** 2
    return hips, np.where(flying, flight + tucked, 0.0)


def _drum(motion: Motion, side: str, t: np.ndarray, beats: np.ndarray) -> None:
    """One hand: up to the chest, there and back with each beat, and down again."""
    flip = np.array([1.0 if side == "Left" else -1.0, 1.0, 1.0])
    chest, turned = motion.place("Chest"), motion.facing("Chest")
    struck = np.array([0.275, 0.0, 0.235]) * flip
    away = np.array([0.05, -0.02, 0.19]) * flip
    drum = hold(t, 0.55, 0.85, 2.35, 2.7)
    swing = (0.5 - 0.5 * np.cos(beats)) ** 1.5
    spot = chest + turned.apply(struck + away * (drum * swing + (1.0 - drum) * 0.9)[:, None])
    hanging = motion.place(f"{side}Hand")
    share = hold(t, 0.10, 0.72, 2.5, 3.45)
    arc = np.array([0.12, 0.0, 0.12]) * flip * np.sin(np.pi * share)[:, None]
    target = hanging + share[:, None] * (spot - hanging) + turned.apply(arc)
    facing = turned * Rotation.from_rotvec(share[:, None] * _palm_on_chest(flip))
    pole = turned.apply(np.array([1.0, -0.55, -0.30]) * flip * np.ones((len(t), 1)))
    rest_pole = turned.apply(np.array([0.2, 0.0, -1.0]) * flip * np.ones((len(t), 1)))
    motion.reach(f"{side}Hand", target, facing, rest_pole + share[:, None] * (pole - rest_pole))


def _palm_on_chest(flip: np.ndarray) -> np.ndarray:
    """(3,) rotation vector from a hanging hand to one laid on the chest: fingers inwards, thumb up."""
    columns = np.array([[0.0, 0.0, 1.0], [0.80, -0.60, 0.0], [0.60, 0.80, 0.0]]).T
    mirror = np.diag(flip)
    return Rotation.from_matrix(mirror @ columns @ mirror).as_rotvec()
