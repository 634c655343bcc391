"""The gorilla: a silverback on sixteen joints, linear blend skinning."""

from __future__ import annotations

from softrig.characters import gorilla_clips
from softrig.characters.assembly import BuiltInCharacter, Take, assembled, at, skeleton_of, surface_of
from softrig.characters.corrections import Bulge
from softrig.characters.gorilla_shape import FOCUS, JOINTS, sculpture
from softrig.characters.paint import Stroke, both_strokes
from softrig.characters.skinned import BentJoint, sculpted_joint, skin_of_body

VERTICES = 15_774
SMOOTHING = 24

FUR = (0.275, 0.262, 0.268)
SKIN = (0.36, 0.315, 0.30)
SILVER = (0.70, 0.70, 0.70)

STROKES = (
    Stroke(SILVER, (0.0, 1.02, -0.20), (0.26, 0.27, 0.20), 0.5, 0.95, (0.0, 0.25, -1.0)),
    *both_strokes(
        Stroke(SILVER, (0.17, 0.74, -0.12), (0.12, 0.20, 0.16), 0.6, 0.55, (0.3, 0.0, -1.0)),
        Stroke((0.16, 0.15, 0.155), (0.33, 1.33, -0.05), (0.15, 0.16, 0.18), 0.6, 0.6),
        Stroke(SKIN, (0.13, 1.25, 0.20), (0.14, 0.10, 0.10), 0.45, 0.9, (0.0, 0.0, 1.0)),
        Stroke(SKIN, (0.735, 0.60, 0.05), (0.10, 0.135, 0.15), 0.25, 0.9),
        Stroke((0.44, 0.385, 0.365), (0.70, 0.60, 0.05), (0.05, 0.16, 0.12), 0.5, 0.7, (-1.0, 0.0, 0.0)),
        Stroke(SKIN, (0.235, 0.02, 0.12), (0.13, 0.055, 0.16), 0.4, 0.9),
        Stroke(SKIN, (0.133, 1.587, 0.055), (0.030, 0.045, 0.040), 0.3, 0.8),
    ),
    Stroke(SKIN, (0.0, 1.535, 0.235), (0.085, 0.105, 0.085), 0.35),
    Stroke((0.29, 0.25, 0.24), (0.0, 1.635, 0.225), (0.10, 0.022, 0.05), 0.6, 0.8),
    Stroke((0.40, 0.35, 0.335), (0.0, 1.475, 0.27), (0.06, 0.05, 0.05), 0.6, 0.7),
    Stroke((0.13, 0.105, 0.105), (0.0, 1.470, 0.290), (0.060, 0.006, 0.05), 0.7, 0.85),
    *both_strokes(
        Stroke((0.07, 0.06, 0.06), (0.025, 1.529, 0.292), (0.013, 0.010, 0.014), 0.5, 0.95),
        Stroke((0.22, 0.185, 0.18), (0.046, 1.591, 0.212), (0.032, 0.026, 0.022), 0.3, 0.9),
        Stroke((0.19, 0.115, 0.065), (0.046, 1.591, 0.222), (0.0165, 0.0145, 0.012), 0.25),
        Stroke((0.03, 0.025, 0.02), (0.046, 1.591, 0.2235), (0.0075, 0.0075, 0.008), 0.3),
    ),
)  # fmt: skip

LEFT_BENDS = (
    BentJoint("LeftElbowBent", "LeftForearm", (-1.085, -0.857, -1.067), (
        Bulge((0.430, 1.175, 0.060), (0.075, 0.090, 0.060), 0.030, turn=(0.0, 0.0, 40.0)),
        Bulge((0.445, 1.160, -0.140), (0.070, 0.110, 0.050), -0.010, turn=(0.0, 0.0, 40.0)),
        Bulge((0.550, 1.030, -0.130), (0.050, 0.060, 0.050), 0.014),
    ), 0.26),
    BentJoint("LeftArmRaised", "LeftUpperArm", (0.0, 0.0, 1.35), (
        Bulge((0.330, 1.400, -0.030), (0.10, 0.07, 0.11), 0.022),
        Bulge((0.200, 1.160, -0.130), (0.09, 0.14, 0.09), 0.016),
    ), 0.36),
    BentJoint("LeftArmForward", "LeftUpperArm", (-1.5, 0.0, 0.0), (
        Bulge((0.340, 1.350, -0.110), (0.10, 0.11, 0.07), 0.018),
        Bulge((0.160, 1.260, 0.200), (0.11, 0.08, 0.08), 0.014),
    ), 0.36),
    BentJoint("LeftKneeBent", "LeftShin", (1.5, 0.0, 0.0), (
        Bulge((0.205, 0.445, 0.120), (0.07, 0.07, 0.06), 0.010),
        Bulge((0.222, 0.300, -0.080), (0.07, 0.10, 0.05), 0.012),
    ), 0.26),
)  # fmt: skip


def gorilla() -> BuiltInCharacter:
    """A silverback, 1.77 m tall, arms held out at rest; clips walk (loops), jump and beat."""
    body = sculpture()
    surface = surface_of(body, VERTICES, FUR, STROKES, focus=FOCUS, grain=0.07)
    skeleton = skeleton_of(JOINTS)
    linear, dual = skin_of_body(body, surface, skeleton, SMOOTHING)
    bends = [side for bend in LEFT_BENDS for side in (bend, bend.mirrored())]
    clips: dict[str, Take] = {}
    for name, looping in (("walk", True), ("jump", False), ("beat", False)):
        motion = getattr(gorilla_clips, name)(skeleton)
        clips[name] = Take(motion.times, motion.values, looping)
    poses = {
        "rest": skeleton.parameters.rest,
        "stride": at(clips["walk"], 0.0),
        "crouch": at(clips["jump"], 0.60),
        "leap": at(clips["jump"], 1.15),
        "strike": at(clips["beat"], 1.35),
    }
    sculpts = [sculpted_joint(bend, surface, linear, dual) for bend in bends]
    return assembled("gorilla", surface, [linear], skeleton, sculpts, clips, poses)
