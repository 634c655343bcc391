"""The X: a jelly letter standing on two feet, moved by two bend deformers."""

from __future__ import annotations

import numpy as np

from softrig.characters.assembly import BuiltInCharacter, Sculpt, Surface, Take, assembled, at, surface_of
from softrig.characters.corrections import Bulge, bulged
from softrig.characters.paint import Stroke
from softrig.characters.sculpture import Group, Sculpture, ball, both, chain, floor
from softrig.characters.timing import frames, hold, keyed
from softrig.rig.deformers import Bend, RigChain

VERTICES = 2_362
FOOT, TOP = 0.12, 0.92
"""Heights between which it bends, m."""

AQUA = (0.20, 0.62, 0.66)
CORAL = (0.96, 0.52, 0.36)
SUN = (0.98, 0.80, 0.42)

STROKES = (
    Stroke(CORAL, (0.0, 0.92, 0.0), (0.62, 0.34, 0.40), 0.75),
    Stroke(SUN, (0.0, 1.06, 0.0), (0.70, 0.16, 0.40), 1.0, 0.9),
    Stroke((0.13, 0.44, 0.52), (0.0, -0.04, 0.0), (0.70, 0.14, 0.40), 1.0, 0.9),
)

LEANS = (("LeanLeft", "bend.angle", 0.95), ("LeanRight", "bend.angle", -0.95), ("BowDown", "bow.angle", 1.1))
"""Corrections: name, parameter, angle in rad."""


def letter_x() -> BuiltInCharacter:
    """A letter X, one metre high: "bend.angle" leans it, "bow.angle" bows it, rad; clips bend, shake and bow."""
    surface = surface_of(sculpture(), VERTICES, AQUA, STROKES, grain=0.0)
    stages = [
        _bend(surface.vertices, (1.0, 0.0, 0.0), "bend"),
        _bend(surface.vertices, (0.0, 0.0, 1.0), "bow"),
    ]
    takes = {"bend": bend(), "shake": shake(), "bow": bow()}
    poses = {
        "rest": np.zeros(2),
        "left": at(takes["bend"], 0.9),
        "right": at(takes["bend"], 1.9),
        "bow": at(takes["bow"], 1.2),
    }
    chain_of_bends = RigChain(tuple(stages))
    sculpts = [_sculpted(surface, chain_of_bends, *lean) for lean in LEANS]
    return assembled("x", surface, stages, None, sculpts, takes, poses)


def sculpture() -> Sculpture:
    """Four round arms that grow out of the middle, as a distance field, m."""
    arms = both(
        chain("body", (0.0, 0.52, 0.0, 0.088), (0.20, 0.77, 0.0, 0.090), (0.29, 0.885, 0.0, 0.106), blend=0.09),
        chain("body", (0.0, 0.52, 0.0, 0.088), (0.22, 0.25, 0.0, 0.094), (0.31, 0.125, 0.0, 0.118), blend=0.09),
        ball("body", (0.325, 0.10, 0.012), (0.125, 0.098, 0.125), blend=0.06),
    )
    return Sculpture((Group((ball("body", (0.0, 0.52, 0.0), (0.10, 0.13, 0.096)), *arms, floor())),))


def bend() -> Take:
    """To the left, to the right, each past the mark and back, then upright."""
    t = frames(3.4)
    angle = keyed(t, [(0.0, 0.0), (0.25, -0.17), (0.80, 0.98), (1.02, 0.86), (1.22, 0.89), (1.85, -1.00), (2.08, -0.87),
                      (2.28, -0.90), (2.80, 0.17), (3.05, -0.08), (3.4, 0.0)])  # fmt: skip
    bowing = -0.10 * hold(t, 0.1, 0.8, 2.4, 3.2)
    return Take(t, np.stack([angle, bowing], axis=1))


def shake() -> Take:
    """Seven swings of the head under an envelope, front and side out of step."""
    t = frames(2.8)
    phase = 2.0 * np.pi * 7.0 * (t - 0.3) / 2.0
    envelope = hold(t, 0.2, 0.7, 1.2, 2.6)
    crouch = keyed(t, [(0.0, 0.0), (0.25, 0.16), (0.6, 0.0), (2.8, 0.0)])
    return Take(t, np.stack([0.55 * envelope * np.sin(phase), crouch + 0.16 * envelope * np.sin(phase - 0.7)], axis=1))


def bow() -> Take:
    """A breath back, a deep bow held for a moment, and up with an overshoot."""
    t = frames(2.8)
    angle = keyed(t, [(0.0, 0.0), (0.30, -0.20), (0.95, 1.20), (1.20, 1.12), (1.60, 1.14), (2.15, -0.16), (2.42, 0.06),
                      (2.8, 0.0)])  # fmt: skip
    return Take(t, np.stack([0.06 * hold(t, 0.2, 0.9, 1.6, 2.2), angle], axis=1))


def _bend(vertices: np.ndarray, direction: tuple[float, float, float], name: str) -> Bend:
    up = np.array([0.0, 1.0, 0.0])
    return Bend(vertices, np.array([0.0, FOOT, 0.0]), up, np.array(direction), 0.0, TOP - FOOT, name=name)


def _sculpted(surface: Surface, rig: RigChain, name: str, driver: str, angle: float) -> Sculpt:
    """Flesh squeezed out on the inner side of a bend and drawn in on the outer."""
    p = np.zeros(2)
    p[rig.parameters.index(driver)] = angle
    sideways = driver == "bend.angle"
    inner = 0.11 * float(np.sign(angle))
    near = (inner, 0.52, 0.0) if sideways else (0.0, 0.52, 0.11)
    away = (-inner, 0.52, 0.0) if sideways else (0.0, 0.52, -0.11)
    radii = (0.07, 0.12, 0.12) if sideways else (0.12, 0.12, 0.07)
    bulges = (Bulge(near, radii, 0.014, 1.0), Bulge(away, radii, -0.008, 1.0))
    positions = bulged(surface.vertices, rig.positions(p), surface.triangles, bulges)
    return Sculpt(name, p, (driver,), positions)
