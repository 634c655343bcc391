"""The polar bear: a body on wires, 144 control numbers, eight poses."""

from __future__ import annotations

import numpy as np

from softrig.characters import bear_clips
from softrig.characters.assembly import BuiltInCharacter, Sculpt, Surface, Take, assembled, at, surface_of
from softrig.characters.bear_rig import wires
from softrig.characters.bear_shape import FOCUS, sculpture
from softrig.characters.corrections import Bulge, bulged
from softrig.characters.paint import Stroke, both_strokes
from softrig.rig.deformers import RigChain, carried_by_root

VERTICES = 6_876
SMOOTHING = 10

FUR = (0.930, 0.905, 0.845)
SHADE = (0.820, 0.765, 0.660)
BLACK = (0.085, 0.080, 0.085)

STROKES = (
    Stroke(SHADE, (0.0, 0.50, 0.0), (0.34, 0.22, 0.80), 0.6, 0.55, (0.0, -1.0, 0.0)),
    Stroke(SHADE, (0.0, 1.00, 1.40), (0.10, 0.10, 0.16), 0.6, 0.45, (0.0, -1.0, 0.2)),
    *both_strokes(
        Stroke(SHADE, (0.25, 0.03, 0.58), (0.16, 0.10, 0.22), 0.8, 0.50),
        Stroke(SHADE, (0.255, 0.03, -0.52), (0.16, 0.10, 0.22), 0.8, 0.50),
        Stroke((0.30, 0.27, 0.26), (0.25, -0.01, 0.56), (0.10, 0.022, 0.17), 0.35, 0.85, (0.0, -1.0, 0.0)),
        Stroke((0.30, 0.27, 0.26), (0.255, -0.01, -0.54), (0.10, 0.022, 0.17), 0.35, 0.85, (0.0, -1.0, 0.0)),
        Stroke((0.56, 0.47, 0.42), (0.128, 1.306, 1.085), (0.032, 0.036, 0.026), 0.5, 0.75, (0.2, 0.2, 1.0)),
        Stroke((0.62, 0.55, 0.48), (0.072, 1.206, 1.302), (0.034, 0.028, 0.034), 0.4, 0.7),
        Stroke(BLACK, (0.074, 1.207, 1.306), (0.0190, 0.0190, 0.0190), 0.25),
    ),
    Stroke((0.70, 0.65, 0.58), (0.0, 1.13, 1.46), (0.07, 0.06, 0.06), 0.8, 0.55),
    Stroke((0.30, 0.26, 0.25), (0.0, 1.090, 1.455), (0.055, 0.009, 0.05), 0.9, 0.5),
    Stroke((0.30, 0.26, 0.25), (0.0, 1.115, 1.485), (0.007, 0.030, 0.03), 0.9, 0.5),
    Stroke(BLACK, (0.0, 1.163, 1.480), (0.046, 0.033, 0.035), 0.22),
)  # fmt: skip


def bear() -> BuiltInCharacter:
    """A polar bear, 2.4 m long, on all fours; clips walk (loops), shake and wave."""
    body = sculpture()
    surface = surface_of(body, VERTICES, FUR, STROKES, focus=FOCUS, grain=0.022)
    stages = wires(body, surface.vertices, surface.triangles, SMOOTHING)
    rig = carried_by_root(RigChain(tuple(stages)), "Root")
    root = rig.stages[-1].parameters.rest
    takes = {}
    for name, looping in (("walk", True), ("shake", False), ("wave", False)):
        motion = getattr(bear_clips, name)()
        takes[name] = Take(motion.times, _rooted(motion.values(), root), looping)
    poses = {
        "rest": rig.parameters.rest,
        "stride": at(takes["walk"], 0.0),
        "passing": at(takes["walk"], 0.5),
        "shake": at(takes["shake"], 1.1),
        "wave": at(takes["wave"], 1.4),
        "look left": _rooted(bear_clips.look(1.0, 0.1).values(), root)[0],
        "look up": _rooted(bear_clips.look(0.0, 1.0).values(), root)[0],
        "stretch": _rooted(bear_clips.stretch(1.0).values(), root)[0],
    }
    sculpts = _sculpts(surface, rig, poses)
    return assembled("bear", surface, rig.stages, None, sculpts, takes, poses)


def _rooted(values: np.ndarray, root: np.ndarray) -> np.ndarray:
    """(f, P) the wires' parameters with the root at rest behind them."""
    return np.concatenate([values, np.tile(root, (len(values), 1))], axis=1)


def _sculpts(surface: Surface, rig: RigChain, poses: dict[str, np.ndarray]) -> list[Sculpt]:
    """What the wires do not do: skin that folds, shoulders that swell."""
    paw = tuple(f"LeftForeleg.{control}.{axis}" for control in (1, 2, 4) for axis in "xyz")
    nose = tuple(f"Spine.{control}.{axis}" for control in (8, 9) for axis in "xyz")
    rump = tuple(f"Spine.{control}.y" for control in (3, 4, 5))
    made = (
        ("PawLifted", "wave", paw, (
            Bulge((0.24, 0.86, 0.48), (0.12, 0.14, 0.16), 0.016, 1.0),
            Bulge((0.25, 0.60, 0.32), (0.10, 0.12, 0.08), 0.012, 1.0),
        )),
        ("HeadLeft", "look left", nose, (
            Bulge((0.17, 1.02, 0.80), (0.09, 0.16, 0.18), 0.022),
            Bulge((-0.17, 1.02, 0.80), (0.09, 0.16, 0.18), -0.010),
        )),
        ("HeadUp", "look up", nose, (
            Bulge((0.0, 1.22, 0.86), (0.16, 0.08, 0.16), 0.022),
            Bulge((0.0, 0.86, 0.78), (0.14, 0.12, 0.16), -0.012),
        )),
        ("Stretched", "stretch", rump, (
            Bulge((0.0, 1.10, 0.30), (0.22, 0.12, 0.22), 0.024),
            Bulge((0.0, 0.55, -0.10), (0.24, 0.12, 0.36), 0.020),
        )),
    )  # fmt: skip
    sculpts = []
    for name, pose, drivers, bulges in made:
        p = poses[pose]
        positions = bulged(surface.vertices, rig.positions(p), surface.triangles, bulges)
        sculpts.append(Sculpt(name, p, drivers, positions))
    return sculpts
