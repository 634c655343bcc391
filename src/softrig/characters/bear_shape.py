"""The polar bear's body: on all fours, 2.4 m from nose to tail, facing +z. Lumps belong to wires instead of bones."""

from __future__ import annotations

from softrig.characters.sculpture import Group, Lump, Sculpture, ball, both, both_sides, chain, floor
from softrig.characters.surface import Focus

FOCUS = Focus((-0.11, 1.05, 1.18), (0.11, 1.26, 1.50), 3.2)
"""The face."""

FORELEG = ((0.215, 0.92, 0.46), (0.245, 0.60, 0.40), (0.250, 0.185, 0.50))
HINDLEG = ((0.190, 0.88, -0.58), (0.250, 0.53, -0.44), (0.255, 0.185, -0.60))
"""Left shoulder or hip, elbow or knee, and ankle at rest, m."""


def sculpture() -> Sculpture:
    """The whole animal as a distance field, m."""
    return Sculpture((_trunk(), *both_sides([_foreleg(), _hindleg()]), _head(), *both_sides([_ear()])))


def _trunk() -> Group:
    lumps = [
        ball("Spine", (0.0, 0.92, 0.38), (0.285, 0.300, 0.36), blend=0.2),
        ball("Spine", (0.0, 0.88, -0.06), (0.315, 0.300, 0.46), blend=0.25),
        ball("Belly", (0.0, 0.74, -0.08), (0.300, 0.255, 0.46), blend=0.22),
        ball("Belly", (0.0, 0.72, 0.36), (0.220, 0.190, 0.26), blend=0.18),
        ball("Spine", (0.0, 0.93, -0.55), (0.300, 0.320, 0.33), blend=0.25),
        ball("Spine", (0.0, 1.09, 0.42), (0.185, 0.130, 0.26), blend=0.16),
        ball("Spine", (0.0, 0.97, -0.89), (0.050, 0.075, 0.055), (30, 0, 0), blend=0.07),
        chain("Spine", (0.0, 0.97, 0.52, 0.245), (0.0, 1.06, 0.80, 0.185), (0.0, 1.12, 1.02, 0.150), blend=0.16),
    ]
    return Group(tuple(lumps), blend=0.2)


def _foreleg() -> Group:
    lumps = [
        chain("LeftForeleg", (0.200, 0.92, 0.46, 0.170), (0.245, 0.62, 0.405, 0.135), (0.250, 0.40, 0.445, 0.112),
              (0.250, 0.185, 0.50, 0.098)),
        ball("LeftForeleg", (0.215, 0.80, 0.46), (0.130, 0.200, 0.165), (-8, 0, 6), blend=0.10),
        ball("LeftForeleg", (0.250, 0.53, 0.385), (0.112, 0.150, 0.118), (8, 0, 0), blend=0.08),
        *_paw("LeftForeleg", 0.250, 0.545),
    ]  # fmt: skip
    return Group(tuple(lumps), blend=0.16, joint=(0.17, 0.84, 0.45), reach=0.26, least=0.03)


def _hindleg() -> Group:
    lumps = [
        chain("LeftHindleg", (0.180, 0.88, -0.58, 0.215), (0.245, 0.54, -0.45, 0.150), (0.254, 0.34, -0.54, 0.112),
              (0.255, 0.185, -0.60, 0.095)),
        ball("LeftHindleg", (0.205, 0.74, -0.53), (0.150, 0.240, 0.215), (-14, 0, 6), blend=0.12),
        *_paw("LeftHindleg", 0.255, -0.555),
    ]  # fmt: skip
    return Group(tuple(lumps), blend=0.16, joint=(0.16, 0.80, -0.55), reach=0.28, least=0.03)


def _paw(wire: str, x: float, z: float) -> list[Lump]:
    lumps = [
        chain(wire, (x, 0.150, z - 0.03, 0.095), (x, 0.085, z + 0.05, 0.082), blend=0.06),
        ball(wire, (x, 0.062, z + 0.02), (0.108, 0.062, 0.145), blend=0.06),
    ]
    for step in (-1.5, -0.5, 0.5, 1.5):
        toe = z + 0.165 - 0.012 * step * step
        lumps.append(ball(wire, (x + 0.052 * step, 0.045, toe), (0.033, 0.044, 0.050), (0, 5 * step, 0), blend=0.034))
    return [*lumps, floor()]


def _head() -> Group:
    lumps = [
        chain("Spine", (0.0, 1.07, 0.88, 0.175), (0.0, 1.15, 1.10, 0.145), blend=0.1),
        ball("Spine", (0.0, 1.180, 1.12), (0.150, 0.135, 0.170), (6, 0, 0), blend=0.08),
        *both(ball("Spine", (0.088, 1.110, 1.125), (0.078, 0.090, 0.110), blend=0.07)),
        chain("Spine", (0.0, 1.160, 1.22, 0.100), (0.0, 1.130, 1.36, 0.074), (0.0, 1.125, 1.425, 0.060), blend=0.07),
        ball("Spine", (0.0, 1.072, 1.33), (0.062, 0.046, 0.120), (4, 0, 0), blend=0.045),
        *both(ball("Spine", (0.036, 1.092, 1.425), (0.040, 0.038, 0.048), blend=0.03)),
        ball("Spine", (0.0, 1.160, 1.470), (0.046, 0.034, 0.032), blend=0.016),
        *both(
            ball("Spine", (0.064, 1.236, 1.255), (0.046, 0.024, 0.040), (0, 20, -10), blend=0.05),
            ball("Spine", (0.0665, 1.204, 1.294), 0.0215, blend=0.006),
        ),
    ]
    return Group(tuple(lumps), blend=0.10)


def _ear() -> Group:
    lumps = (
        ball("LeftEar", (0.120, 1.300, 1.055), (0.058, 0.064, 0.034), (0, 22, -24), blend=0.02),
        ball("LeftEar", (0.128, 1.306, 1.094), (0.034, 0.038, 0.020), (0, 22, -24), blend=0.022, cut=True),
    )
    return Group(lumps, blend=0.05, joint=(0.09, 1.26, 1.05), reach=0.07)
