"""Bodies made by code, in the likeness of the four models of StVK05 (Figure 3), and of two of SUB11 in domains."""

from softrig.bodies.divided import DividedBody, PlantedTree, divide
from softrig.bodies.flower import flower
from softrig.bodies.footbridge import footbridge
from softrig.bodies.heart import heart
from softrig.bodies.oak import oak
from softrig.bodies.soup import AnchorBox, Soup
from softrig.bodies.spoon import spoon
from softrig.bodies.tower import tower

__all__ = [
    "AnchorBox",
    "DividedBody",
    "PlantedTree",
    "Soup",
    "divide",
    "flower",
    "footbridge",
    "heart",
    "oak",
    "spoon",
    "tower",
]
