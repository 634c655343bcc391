"""Bodies made by code, in the likeness of the four models of StVK05 (Figure 3)."""

from softrig.bodies.footbridge import footbridge
from softrig.bodies.heart import heart
from softrig.bodies.soup import AnchorBox, Soup
from softrig.bodies.spoon import spoon
from softrig.bodies.tower import tower

__all__ = ["AnchorBox", "Soup", "footbridge", "heart", "spoon", "tower"]
