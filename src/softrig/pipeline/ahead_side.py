"""The other side of compiling ahead: `python -m softrig.pipeline.ahead_side` runs once what a finished model will run.

Only types matter to the compiler, so a character of one tet does.
"""

from __future__ import annotations

import gc
import os
import threading

import numpy as np

from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.models.full import FullBody
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.least_model import least_model
from softrig.render import Camera, Ground, Mesh, render
from softrig.simulation import Simulation

MANY = 50_000
"""New objects between two searches for garbage: the compiler makes a great many that it keeps; 7 % of its time."""


def main() -> None:
    """Compile all of it, unless whoever asked for it goes first."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.set_threshold(MANY)
    model = least_model()
    # In the order in which they are wanted.
    strain(model)
    move(model)
    draw(model)


def strain(model: PoseSpaceModel) -> None:
    """Every kernel of the full body that a build asks for: they share the laws with the step."""
    body = FullBody(VolumeMesh.build(model.vertices, model.tets), Material(1e4, 0.4, 1e3), law=model.law)
    body.energy(np.zeros(body.size))
    body.force_and_stiffness(np.zeros(body.size))
    body.stiffness_derivative(np.eye(body.size)[:, :1])


def move(model: PoseSpaceModel) -> None:
    """Every kernel of a simulation of a skin: carriers, steps, jumps, the surface."""
    Simulation(model).warm_up()


def draw(model: PoseSpaceModel) -> None:
    """Every kernel of a picture with a floor."""
    points = model.vertices.astype(np.float64)
    mesh = Mesh(points, model.triangles, np.full((len(points), 3), 0.5))
    camera = Camera.framing(points, (0.5, 0.2, 1.0), aspect=1.0)
    render([mesh], camera, (16, 16), ground=Ground.under([mesh], (0.0, 1.0, 0.0)))


def _end_with_parent() -> None:
    # Nothing is ever written; a closed pipe reads as empty.
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
