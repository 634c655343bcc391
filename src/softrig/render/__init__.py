"""Pictures of meshes without a display: a small rasteriser, colour maps, strips and plots."""

from softrig.render.colour import diverging, lightened, luminance, scale_end, sequential
from softrig.render.compose import beneath, colour_bar, label, strip
from softrig.render.picture import render
from softrig.render.plot import Series, line_plot
from softrig.render.scene import Background, Camera, Ground, Light, Mesh

__all__ = [
    "Background",
    "Camera",
    "Ground",
    "Light",
    "Mesh",
    "Series",
    "beneath",
    "colour_bar",
    "diverging",
    "label",
    "lightened",
    "line_plot",
    "luminance",
    "render",
    "scale_end",
    "sequential",
    "strip",
]
