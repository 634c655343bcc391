"""The arm's body: a strong left arm stretched out to the side, palm up, cut off behind the shoulder."""

from __future__ import annotations

import math

from softrig.characters.sculpture import Group, Lump, Sculpture, ball, chain
from softrig.characters.surface import Focus

JOINTS: dict[str, tuple[str, tuple[float, float, float]]] = {
    "Shoulder": ("", (-0.12, 0.0, 0.0)),
    "UpperArm": ("Shoulder", (0.0, 0.0, 0.0)),
    "Forearm": ("UpperArm", (0.30, -0.004, 0.0)),
}
"""Parent and place in the rest pose, m, of each joint. The hand belongs to the forearm."""

FOCUS = Focus((0.55, -0.04, -0.09), (0.76, 0.09, 0.06), 1.5)
"""The hand."""


def sculpture() -> Sculpture:
    """The whole arm as a distance field, m. The crook of the elbow and the palm face up, the thumb back."""
    return Sculpture((_stump(), _upper_arm(), _forearm(), _hand(), *_fingers()))


def _stump() -> Group:
    lumps = (
        ball("Shoulder", (-0.060, 0.004, 0.0), (0.095, 0.074, 0.068)),
        chain("Shoulder", (-0.17, -0.040, 0.040, 0.044), (0.03, -0.014, 0.026, 0.040), blend=0.05),
        chain("Shoulder", (-0.17, -0.036, -0.042, 0.048), (0.03, -0.012, -0.026, 0.042), blend=0.05),
        chain("Shoulder", (-0.17, 0.050, -0.008, 0.044), (-0.01, 0.034, 0.0, 0.042), blend=0.05),
        ball("Shoulder", (-1.125, 0.0, 0.0), 1.0, blend=0.022, cut=True),
    )
    return Group(lumps)


def _upper_arm() -> Group:
    lumps = (
        chain("UpperArm", (0.0, 0.0, 0.0, 0.058), (0.15, -0.002, 0.0, 0.050), (0.30, -0.004, 0.0, 0.042)),
        ball("UpperArm", (0.018, 0.028, 0.0), (0.082, 0.062, 0.076), (0, 0, -12), blend=0.030),
        ball("UpperArm", (0.065, 0.016, -0.036), (0.090, 0.044, 0.036), (0, -8, -8), blend=0.018),
        ball("UpperArm", (0.065, 0.016, 0.040), (0.084, 0.042, 0.034), (0, 8, -8), blend=0.018),
        ball("UpperArm", (0.185, 0.033, 0.003), (0.086, 0.037, 0.039), (0, 0, -3), blend=0.020),
        ball("UpperArm", (0.145, -0.034, -0.022), (0.095, 0.035, 0.032), (0, 3, 3), blend=0.020),
        ball("UpperArm", (0.165, -0.036, 0.022), (0.100, 0.034, 0.032), (0, -3, 3), blend=0.020),
        ball("UpperArm", (0.285, -0.004, 0.032), (0.026, 0.020, 0.018), blend=0.03),
    )
    return Group(lumps, blend=0.040)


def _forearm() -> Group:
    lumps = (
        chain("Forearm", (0.30, -0.004, 0.0, 0.041), (0.365, -0.002, 0.0, 0.045), (0.46, 0.0, 0.0, 0.034),
              (0.535, 0.0, 0.0, 0.023)),
        ball("Forearm", (0.306, -0.033, 0.002), (0.026, 0.015, 0.017), (0, 0, -8), blend=0.026),
        ball("Forearm", (0.360, 0.011, -0.029), (0.112, 0.031, 0.026), (0, -6, -4), blend=0.034),
        ball("Forearm", (0.385, 0.008, 0.026), (0.108, 0.032, 0.028), (0, 6, -4), blend=0.034),
        ball("Forearm", (0.405, -0.021, -0.008), (0.115, 0.025, 0.030), (0, 0, 5), blend=0.034),
        chain("Forearm", (0.40, 0.0, -0.006, 0.032), (0.545, 0.002, -0.012, 0.0200), blend=0.03),
        chain("Forearm", (0.40, 0.0, 0.006, 0.032), (0.545, 0.001, 0.012, 0.0195), blend=0.03),
        ball("Forearm", (0.532, -0.011, 0.016), (0.016, 0.011, 0.011), blend=0.020),
    )  # fmt: skip
    return Group(lumps, blend=0.032)


def _hand() -> Group:
    lumps = (
        chain("Forearm", (0.545, 0.002, -0.010, 0.020), (0.640, -0.002, -0.022, 0.0165), blend=0.02),
        chain("Forearm", (0.545, 0.001, 0.010, 0.020), (0.632, -0.001, 0.022, 0.0150), blend=0.02),
        ball("Forearm", (0.607, 0.000, 0.001), (0.050, 0.0175, 0.041), blend=0.02),
        ball("Forearm", (0.582, 0.011, -0.027), (0.033, 0.017, 0.019), (0, 24, 0), blend=0.016),
        ball("Forearm", (0.590, 0.008, 0.025), (0.036, 0.015, 0.015), blend=0.016),
    )
    return Group(lumps, blend=0.03)


def _fingers() -> list[Group]:
    """A relaxed hand: each finger curls a little more than the one beside it."""
    groups = []
    for z, start, length, curl, thick in (
        (-0.0345, 0.638, 0.086, 0.24, 0.0098),
        (-0.0115, 0.644, 0.095, 0.30, 0.0102),
        (0.0115, 0.640, 0.088, 0.36, 0.0096),
        (0.0330, 0.630, 0.070, 0.42, 0.0086),
    ):
        fan = 0.16 * z / 0.03
        knots, (x, y, w) = [], (start, -0.002, z)
        angle = 0.10 + 0.4 * curl
        for share, radius in ((0.44, 1.12), (0.31, 1.02), (0.25, 0.96), (0.0, 0.86)):
            knots.append((x, y, w, radius * thick))
            step = share * length
            x, y, w = x + step * math.cos(angle), y + step * math.sin(angle), w + fan * step
            angle += 1.15 * curl
        groups.append(Group((Lump("Forearm", tuple(knots), blend=0.01),), blend=0.014, least=0.003,
                            joint=(start - 0.005, 0.0, z), reach=0.028))  # fmt: skip
    thumb = chain("Forearm", (0.568, 0.006, -0.028, 0.0165), (0.600, 0.016, -0.052, 0.0130),
                  (0.632, 0.022, -0.065, 0.0118), (0.658, 0.026, -0.068, 0.0100))  # fmt: skip
    return [*groups, Group((thumb,), blend=0.022, joint=(0.575, 0.008, -0.03), reach=0.04, least=0.004)]
