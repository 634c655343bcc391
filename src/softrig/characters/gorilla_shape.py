"""The gorilla's body: a silverback standing with his arms held out, 1.75 m tall."""

from __future__ import annotations

from softrig.characters.sculpture import Group, Lump, Sculpture, ball, both, both_sides, chain, floor
from softrig.characters.surface import Focus

JOINTS: dict[str, tuple[str, tuple[float, float, float]]] = {
    "Hips": ("", (0.0, 0.80, -0.04)),
    "Spine": ("Hips", (0.0, 0.97, -0.06)),
    "Chest": ("Spine", (0.0, 1.17, -0.06)),
    "Head": ("Chest", (0.0, 1.45, 0.01)),
    "LeftUpperArm": ("Chest", (0.29, 1.33, -0.03)),
    "LeftForearm": ("LeftUpperArm", (0.53, 1.05, -0.05)),
    "LeftHand": ("LeftForearm", (0.69, 0.76, 0.02)),
    "RightUpperArm": ("Chest", (-0.29, 1.33, -0.03)),
    "RightForearm": ("RightUpperArm", (-0.53, 1.05, -0.05)),
    "RightHand": ("RightForearm", (-0.69, 0.76, 0.02)),
    "LeftThigh": ("Hips", (0.145, 0.76, -0.03)),
    "LeftShin": ("LeftThigh", (0.205, 0.425, 0.05)),
    "LeftFoot": ("LeftShin", (0.225, 0.105, -0.03)),
    "RightThigh": ("Hips", (-0.145, 0.76, -0.03)),
    "RightShin": ("RightThigh", (-0.205, 0.425, 0.05)),
    "RightFoot": ("RightShin", (-0.225, 0.105, -0.03)),
}
"""Parent and place in the rest pose, m, of each joint."""

FOCUS = Focus((-0.10, 1.43, 0.14), (0.10, 1.65, 0.30), 3.2)
"""The face."""


def sculpture() -> Sculpture:
    """The whole animal as a distance field, m."""
    return Sculpture(
        (
            _torso(),
            *both_sides([_leg(), _foot(), _arm(), _hand()]),
            _head(),
        )
    )


def _torso() -> Group:
    lumps = [
        ball("Chest", (0.0, 1.20, -0.03), (0.285, 0.27, 0.215), blend=0.15),
        ball("Spine", (0.0, 0.97, 0.045), (0.262, 0.25, 0.235), blend=0.16),
        ball("Hips", (0.0, 0.80, -0.03), (0.235, 0.165, 0.195), blend=0.16),
        ball("Chest", (0.0, 1.35, -0.10), (0.25, 0.15, 0.155), (12, 0, 0), blend=0.14),
        *both(
            ball("Chest", (0.185, 1.13, -0.10), (0.105, 0.22, 0.115), (0, 0, 14), blend=0.10),
            ball("Chest", (0.215, 1.365, -0.05), (0.13, 0.095, 0.115), (0, 0, -24), blend=0.10),
            ball("Chest", (0.13, 1.255, 0.135), (0.135, 0.098, 0.072), (-12, 22, -8), blend=0.045),
            ball("Hips", (0.105, 0.775, -0.135), (0.115, 0.115, 0.095), blend=0.07),
        ),
        ball("Spine", (0.0, 0.92, 0.165), (0.185, 0.165, 0.105), blend=0.12),
        chain("Chest", (0.0, 1.36, -0.07, 0.155), (0.0, 1.50, -0.01, 0.135), blend=0.12),
    ]
    return Group(tuple(lumps))


def _leg() -> Group:
    lumps = (
        chain("LeftThigh", (0.145, 0.76, -0.03, 0.150), (0.188, 0.56, 0.025, 0.118), (0.205, 0.425, 0.045, 0.088)),
        ball("LeftThigh", (0.185, 0.64, 0.055), (0.095, 0.15, 0.085), (-14, 0, 10), blend=0.07),
        ball("LeftThigh", (0.185, 0.62, -0.055), (0.085, 0.14, 0.075), (-10, 0, 9), blend=0.07),
        ball("LeftThigh", (0.205, 0.435, 0.085), (0.060, 0.062, 0.042), blend=0.06),
        chain("LeftShin", (0.207, 0.42, 0.04, 0.084), (0.221, 0.22, -0.02, 0.066), (0.225, 0.11, -0.03, 0.054)),
        ball("LeftShin", (0.222, 0.315, -0.035), (0.066, 0.105, 0.062), (14, 0, 0), blend=0.06),
    )
    return Group(lumps, blend=0.13, joint=(0.13, 0.76, 0.0), reach=0.17, least=0.02)


def _foot() -> Group:
    lumps = [
        chain("LeftFoot", (0.225, 0.115, -0.035, 0.056), (0.230, 0.062, 0.03, 0.052), (0.238, 0.042, 0.10, 0.046)),
        ball("LeftFoot", (0.222, 0.048, -0.065), (0.052, 0.048, 0.062), blend=0.05),
        ball("LeftFoot", (0.243, 0.036, 0.105), (0.068, 0.036, 0.075), blend=0.05),
        chain(
            "LeftFoot",
            (0.205, 0.036, 0.05, 0.034),
            (0.160, 0.031, 0.105, 0.027),
            (0.148, 0.028, 0.150, 0.025),
            blend=0.030,
        ),
    ]
    for x, z, length in ((0.205, 0.165, 0.052), (0.236, 0.170, 0.054), (0.266, 0.160, 0.048), (0.292, 0.142, 0.040)):
        splay = 0.18 * (x - 0.235)
        lumps.append(
            chain(
                "LeftFoot",
                (x, 0.036, z - 0.02, 0.020),
                (x + splay, 0.034, z + 0.5 * length, 0.0185),
                (x + 1.6 * splay, 0.022, z + length, 0.0165),
                blend=0.014,
            )
        )
    lumps.append(floor())
    return Group(tuple(lumps), blend=0.05, joint=(0.225, 0.11, -0.03), reach=0.12)


def _arm() -> Group:
    lumps = (
        chain("LeftUpperArm", (0.30, 1.33, -0.03, 0.135), (0.42, 1.18, -0.045, 0.112), (0.53, 1.05, -0.05, 0.094)),
        ball("LeftUpperArm", (0.345, 1.315, -0.025), (0.125, 0.140, 0.130), (0, 0, 38), blend=0.06),
        ball("LeftUpperArm", (0.430, 1.185, 0.025), (0.075, 0.130, 0.070), (0, 0, 40), blend=0.055),
        ball("LeftUpperArm", (0.440, 1.165, -0.115), (0.078, 0.145, 0.066), (0, 0, 40), blend=0.055),
        ball("LeftForearm", (0.540, 1.035, -0.110), (0.046, 0.056, 0.044), blend=0.06),
        chain("LeftForearm", (0.53, 1.05, -0.05, 0.094), (0.585, 0.95, -0.025, 0.104), (0.65, 0.83, 0.005, 0.080),
              (0.69, 0.76, 0.02, 0.066)),
        ball("LeftForearm", (0.620, 0.945, 0.010), (0.070, 0.130, 0.068), (12, 0, 28), blend=0.055),
        ball("LeftForearm", (0.562, 0.930, -0.055), (0.066, 0.120, 0.062), (12, 0, 28), blend=0.055),
    )  # fmt: skip
    return Group(lumps, blend=0.14, joint=(0.26, 1.33, -0.03), reach=0.18, least=0.015)


def _hand() -> Group:
    """Knuckles outward, palm towards the thigh, thumb forward; fingers a little curled."""
    lumps = [
        chain("LeftHand", (0.688, 0.765, 0.018, 0.064), (0.712, 0.70, 0.030, 0.062), blend=0.05),
        ball("LeftHand", (0.728, 0.655, 0.036), (0.046, 0.082, 0.078), (10, 0, 20), blend=0.045),
        chain("LeftHand", (0.705, 0.695, 0.080, 0.036), (0.690, 0.640, 0.128, 0.031), (0.686, 0.596, 0.144, 0.026),
              blend=0.030),
    ]  # fmt: skip
    for z, drop, length in ((0.097, 0.596, 0.98), (0.052, 0.584, 1.06), (0.008, 0.588, 1.0), (-0.034, 0.604, 0.84)):
        fan = 0.62 * (z - 0.035)
        lumps.append(
            chain("LeftHand", (0.746, drop + 0.012, z, 0.0315), (0.766, drop - 0.056 * length, z + fan, 0.0290),
                  (0.757, drop - 0.108 * length, z + 1.4 * fan, 0.0270),
                  (0.728, drop - 0.142 * length, z + 1.6 * fan, 0.0240), blend=0.024)
        )  # fmt: skip
    return Group(tuple(lumps), blend=0.05, joint=(0.69, 0.76, 0.02), reach=0.10)


def _head() -> Group:
    lumps: list[Lump] = [
        ball("Head", (0.0, 1.575, 0.085), (0.112, 0.120, 0.135), (-8, 0, 0)),
        ball("Head", (0.0, 1.670, 0.015), (0.068, 0.098, 0.115), (-18, 0, 0), blend=0.07),
        chain("Head", (0.0, 1.46, 0.00, 0.145), (0.0, 1.55, 0.05, 0.112), blend=0.08),
        *both(
            ball("Head", (0.076, 1.515, 0.100), (0.054, 0.078, 0.076), blend=0.05),
            chain("Head", (0.0, 1.632, 0.216, 0.027), (0.050, 1.632, 0.206, 0.028), (0.092, 1.600, 0.150, 0.024),
                  blend=0.034),
            ball("Head", (0.060, 1.540, 0.176), (0.036, 0.036, 0.036), blend=0.04),
        ),
        ball("Head", (0.0, 1.497, 0.218), (0.080, 0.060, 0.074), blend=0.05),
        ball("Head", (0.0, 1.448, 0.180), (0.070, 0.045, 0.080), blend=0.05),
        ball("Head", (0.0, 1.575, 0.222), (0.022, 0.055, 0.030), (-18, 0, 0), blend=0.034),
        *both(
            ball("Head", (0.030, 1.532, 0.268), (0.031, 0.024, 0.024), (0, 20, -18), blend=0.018),
            ball("Head", (0.024, 1.528, 0.297), (0.0150, 0.0115, 0.014), (0, 25, -18), blend=0.010, cut=True),
            ball("Head", (0.046, 1.590, 0.228), (0.028, 0.020, 0.022), (0, 12, 0), blend=0.020, cut=True),
            ball("Head", (0.046, 1.591, 0.201), (0.024, 0.021, 0.022), blend=0.006),
            ball("Head", (0.122, 1.585, 0.050), (0.016, 0.042, 0.032), (0, -24, 0), blend=0.016),
            ball("Head", (0.138, 1.587, 0.060), (0.011, 0.024, 0.016), (0, -24, 0), blend=0.012, cut=True),
        ),
        chain("Head", (-0.064, 1.462, 0.250, 0.007), (-0.030, 1.472, 0.287, 0.008), (0.030, 1.472, 0.287, 0.008),
              (0.064, 1.462, 0.250, 0.007), blend=0.022, cut=True),
    ]  # fmt: skip
    return Group(tuple(lumps), blend=0.09, joint=(0.0, 1.43, -0.04), reach=0.14, least=0.02)
