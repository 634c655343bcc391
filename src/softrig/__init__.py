"""softrig: physically true soft tissue for rigged characters, in real time, by model-reduced finite elements.

    import softrig as sr

    mesh = sr.box_bricks((1.0, 0.1, 0.1), (20, 2, 2))                  # metres, counts
    body = sr.FullBody(mesh, sr.Material(young=1e6, poisson=0.3, density=1000), fixed=mesh.vertices[:, 0] == 0)
    model = sr.reduce_body(body, sr.derivative_basis(body, size=12).shapes)
    sr.save_model(model, "beam.softrig")

    simulation = sr.ReducedSimulation(sr.load_model("beam.softrig"), step=1e-3)
    simulation.pull(vertices=[len(mesh.vertices) - 1], forces=[[0.0, 0.0, -5.0]])
    simulation.run(1000)
    simulation.positions()                                             # (n, 3) metres

Names are loaded on first use (`softrig.api` lists them), so `import softrig` itself costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softrig.version import __version__ as __version__

if TYPE_CHECKING:
    from softrig.api import *  # noqa: F403 - the list stands in softrig.api


def __getattr__(name: str) -> Any:
    if name == "api" or (name.startswith("_") and name != "__all__"):
        raise AttributeError(f"softrig has no {name!r}")
    from softrig import api

    if name == "__all__":
        return ["__version__", *api.__all__]

    if name not in api.__all__:
        raise AttributeError(f"softrig has no {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    from softrig import api

    return ["__version__", *api.__all__]
