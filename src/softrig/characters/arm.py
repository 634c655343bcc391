"""The arm: three bones, a shoulder that turns all ways and an elbow that bends; linear blend skinning."""

from __future__ import annotations

import numpy as np

from softrig.characters.arm_shape import FOCUS, JOINTS, sculpture
from softrig.characters.assembly import BuiltInCharacter, Take, assembled, at, skeleton_of, surface_of
from softrig.characters.corrections import Bulge
from softrig.characters.paint import Stroke
from softrig.characters.posing import Motion
from softrig.characters.skinned import BentJoint, sculpted_joint, skin_of_body
from softrig.characters.timing import frames, hold, keyed, settled
from softrig.rig.skeleton import Skeleton

VERTICES = 10_525
SMOOTHING = 16

SKIN = (0.845, 0.640, 0.530)
RUDDY = (0.835, 0.520, 0.440)
PALE = (0.900, 0.720, 0.620)

STROKES = (
    Stroke(PALE, (0.58, 0.03, 0.0), (0.16, 0.05, 0.06), 0.5, 0.6, (0.0, 1.0, 0.0)),
    Stroke(PALE, (0.18, 0.0, 0.05), (0.16, 0.06, 0.05), 0.6, 0.5, (0.0, 0.3, 1.0)),
    Stroke(RUDDY, (0.305, -0.045, 0.0), (0.035, 0.022, 0.030), 0.9, 0.7),
    Stroke(RUDDY, (0.03, 0.06, -0.02), (0.09, 0.05, 0.07), 0.9, 0.4),
    Stroke(RUDDY, (0.655, -0.012, 0.0), (0.022, 0.012, 0.050), 0.9, 0.6, (0.0, -1.0, 0.0)),
    Stroke(RUDDY, (0.72, 0.05, 0.0), (0.035, 0.035, 0.06), 0.8, 0.5),
    Stroke(RUDDY, (0.66, 0.026, -0.068), (0.020, 0.016, 0.016), 0.8, 0.5),
    Stroke((0.62, 0.30, 0.27), (-0.135, 0.0, 0.0), (0.016, 0.075, 0.072), 0.12, 0.9, (-1.0, 0.0, 0.0)),
    Stroke((0.90, 0.86, 0.78), (-0.135, 0.010, 0.0), (0.020, 0.020, 0.020), 0.12, 0.95, (-1.0, 0.0, 0.0)),
)  # fmt: skip

BENDS = (
    BentJoint("ElbowBent", "Forearm", (0.0, 0.0, 2.0), (
        Bulge((0.175, 0.050, 0.003), (0.055, 0.040, 0.036), 0.017),
        Bulge((0.160, -0.050, 0.0), (0.080, 0.030, 0.050), -0.005),
        Bulge((0.360, 0.035, 0.0), (0.050, 0.030, 0.045), 0.006),
        Bulge((0.308, -0.045, 0.0), (0.016, 0.016, 0.016), 0.004),
    ), 0.13),
    BentJoint("ArmRaised", "UpperArm", (0.0, 0.0, 1.0), (
        Bulge((0.010, 0.080, 0.0), (0.060, 0.040, 0.070), 0.009),
        Bulge((-0.040, -0.060, -0.040), (0.060, 0.040, 0.040), 0.006),
    ), 0.15),
    BentJoint("ArmLowered", "UpperArm", (0.0, 0.0, -1.0), (
        Bulge((0.040, 0.075, 0.0), (0.080, 0.040, 0.070), 0.007),
        Bulge((-0.030, -0.070, 0.0), (0.050, 0.035, 0.060), -0.004),
    ), 0.15),
    BentJoint("ArmForward", "UpperArm", (0.0, -1.0, 0.0), (
        Bulge((-0.055, -0.010, 0.070), (0.040, 0.060, 0.040), 0.005),
        Bulge((0.040, 0.010, -0.070), (0.080, 0.060, 0.040), 0.007),
    ), 0.15),
)  # fmt: skip


def arm() -> BuiltInCharacter:
    """A left arm, 0.86 m from the cut to the fingertips; clips bend, wave and swing (loops)."""
    body = sculpture()
    surface = surface_of(body, VERTICES, SKIN, STROKES, focus=FOCUS, grain=0.012)
    skeleton = skeleton_of(JOINTS)
    linear, dual = skin_of_body(body, surface, skeleton, SMOOTHING)
    takes = {"bend": bend(skeleton), "wave": wave(skeleton), "swing": swing(skeleton)}
    poses = {
        "rest": skeleton.parameters.rest,
        "flexed": at(takes["bend"], 1.2),
        "greeting": at(takes["wave"], 1.4),
        "low": at(takes["swing"], 1.5),
    }
    sculpts = [sculpted_joint(joint, surface, linear, dual) for joint in BENDS]
    return assembled("arm", surface, [linear], skeleton, sculpts, takes, poses)


def bend(skeleton: Skeleton) -> Take:
    """A curl: a small swing back, the forearm up with overshoot, a squeeze, and slowly down."""
    motion = Motion(skeleton, frames(3.4))
    t = motion.times
    elbow = keyed(t, [(0.0, 0.0), (0.22, -0.10), (0.80, 2.06), (1.05, 1.96), (1.30, 1.98), (1.52, 2.14), (1.78, 1.98),
                      (2.05, 1.98), (2.80, -0.06), (3.05, 0.03), (3.4, 0.0)])  # fmt: skip
    raised = keyed(t, [(0.0, 0.0), (0.24, -0.08), (0.90, 0.30), (1.30, 0.26), (1.52, 0.36), (2.05, 0.26), (2.90, -0.04),
                       (3.4, 0.0)])  # fmt: skip
    tremble = 0.012 * hold(t, 1.30, 1.45, 1.65, 1.85) * np.sin(2.0 * np.pi * 9.0 * t)
    motion.turn("UpperArm", x=-0.15 * hold(t, 0.1, 0.9, 2.0, 3.0), z=raised + tremble)
    motion.turn("Forearm", z=elbow + tremble)
    return Take(motion.times, motion.values)


def wave(skeleton: Skeleton) -> Take:
    """The arm goes up, the forearm waves from the shoulder with the elbow a little late, and comes down."""
    motion = Motion(skeleton, frames(3.8))
    t = motion.times
    up = settled(t, 0.15, cycles=1.3, damping=0.75) * (1.0 - settled(t, 2.75, cycles=1.4, damping=0.72))
    up *= 1.0 - hold(t, 3.3, 3.8, 9.0, 10.0)
    waving = hold(t, 0.65, 1.05, 2.35, 2.80)
    beat = 2.0 * np.pi * 1.7 * (t - 0.75)
    motion.turn("UpperArm", x=-0.55 * up + 0.42 * waving * np.sin(beat))
    motion.turn("UpperArm", y=0.20 * up, z=0.52 * up + 0.05 * waving * np.sin(2.0 * beat - 0.5))
    motion.turn("Forearm", z=1.20 * up + 0.22 * waving * np.sin(beat - 0.7))
    return Take(motion.times, motion.values)


def swing(skeleton: Skeleton) -> Take:
    """Circles of the whole arm from the shoulder, the forearm dragging behind; one circle, loops."""
    motion = Motion(skeleton, frames(2.0))
    phase = 2.0 * np.pi * motion.times / 2.0
    motion.turn("UpperArm", x=0.25 * np.sin(phase - 0.6), y=-0.20 - 0.50 * np.cos(phase), z=0.05 + 0.62 * np.sin(phase))
    motion.turn("Forearm", z=0.55 + 0.40 * np.sin(phase - 1.1))
    return Take(motion.times, motion.values, looping=True)
