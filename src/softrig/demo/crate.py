"""A crate that falls on the deck: a rigid weight with one direction to move in, met by a stiff contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.bodies.soup import Soup, pour
from softrig.bodies.sweeps import block
from softrig.dynamics import Rayleigh
from softrig.fem.loads import STANDARD_GRAVITY
from softrig.models.reduced import ReducedBody
from softrig.models.reduced_simulation import ReducedSimulation

WOOD = (0.78, 0.60, 0.36)
FRAME = (0.42, 0.28, 0.15)


@dataclass(frozen=True)
class Crate:
    """What falls, and where."""

    mass: float = 4000.0
    """kilogram."""
    drop: float = 2.5
    """Free height above the deck, metres."""
    along: float = 2.4
    """Place along the deck, metres from the middle."""
    side: float = 1.2
    """metres."""


@dataclass(frozen=True)
class Drop:
    """The motion, one entry a picture."""

    times: np.ndarray
    """(f,) seconds."""
    coordinates: np.ndarray
    """(f, r) of the bridge."""
    heights: np.ndarray
    """(f,) of the crate's bottom above where the deck was at rest, metres."""
    deck: np.ndarray
    """(f,) how far the deck under the crate has moved, metres (downwards negative)."""
    contact: np.ndarray
    """(f,) force between crate and deck, newton."""


CONTACT_STIFFNESS = 3e6
"""newton per metre."""
CONTACT_DAMPING = 2.5e4
"""newton second per metre, while touching."""


def drop_crate(
    model: ReducedBody, patch: np.ndarray, crate: Crate, *, seconds: float, fps: float, step: float = 1e-3
) -> Drop:
    """Step bridge and crate together; `patch` lists the drawn vertices under the crate."""
    simulation = ReducedSimulation(model, step, damping=Rayleigh(mass=0.8, stiffness=4e-3))
    # Mean height of the patch as a row over q; its transpose spreads the contact force, so work is conserved.
    lift = model.surface_modes.reshape(model.size, -1, 3)[:, patch, 2].mean(axis=1, dtype=np.float64)
    height, speed, force = crate.drop, 0.0, 0.0
    frames = round(seconds * fps)
    out = Drop(*(np.zeros(shape) for shape in (frames, (frames, model.size), frames, frames, frames)))
    done = 0
    for frame in range(frames):
        while done * step < frame / fps:
            gap = height - float(lift @ simulation.q)
            closing = speed - float(lift @ simulation.v)
            force = max(0.0, -CONTACT_STIFFNESS * gap - CONTACT_DAMPING * closing) if gap < 0.0 else 0.0
            simulation.force[:] = -force * lift
            simulation.step()
            speed += step * (force / crate.mass - STANDARD_GRAVITY)
            height += step * speed
            done += 1
        out.times[frame] = done * step
        out.coordinates[frame] = simulation.q
        out.heights[frame] = height
        out.deck[frame] = lift @ simulation.q
        out.contact[frame] = force
    return out


def crate_soup(crate: Crate) -> Soup:
    """A wooden box with a frame, its bottom centre at the origin."""
    half, side, rim = 0.5 * crate.side, crate.side, 0.09 * crate.side
    inset = 0.25 * rim
    pieces = [block((inset - half, inset - half, inset), (half - inset, half - inset, side - inset), WOOD)]
    ends = [(-half, rim - half), (half - rim, half)]
    levels = [(0.0, rim), (side - rim, side)]
    for low, high in ends:
        pieces += [block((low, -half, z0), (high, half, z1), FRAME) for z0, z1 in levels]
        pieces += [block((-half, low, z0), (half, high, z1), FRAME) for z0, z1 in levels]
        pieces += [block((low, y0, 0.0), (high, y1, side), FRAME) for y0, y1 in ends]
    return pour("crate", pieces, (), 8)
