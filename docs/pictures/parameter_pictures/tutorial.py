"""What the tutorial's settings do."""

from __future__ import annotations

import numpy as np

from parameter_pictures.look import Panel, around, row
from parameter_pictures.moments import OFF, offsets, soft_panel
from parameter_pictures.picture import Picture
from parameter_pictures.studio import Studio


def tutorial(studio: Studio) -> Picture:
    """The arm with a firm hand at the moment of the largest offset."""
    model = studio.model(
        mesh={"tets": 1500},
        basis={"modes": 24},
        poses={"count": 4, "clips": None},
        cubature={"count": None},
    )
    bake = studio.bake(model)
    assert bake.plain is not None
    at = int(np.argmax(offsets(bake).max(axis=1)))
    panels = [Panel(bake.plain[at], "plain skinning"), soft_panel(bake, at, "soft")]
    near = around(bake.plain[at], offsets(bake)[at])
    return Picture(row(studio.arm.triangles, panels, OFF, height=200, near=near, close=230), ())
