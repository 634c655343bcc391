"""MuJoCo's flex on the same tets: all vertices ("full"), or a cage of cells around them ("trilinear")."""

import json
import sys
import time
from importlib import import_module

import numpy as np

CELLS = "4 2 4"
PUSH = 0.2
"""m/s: how fast the flesh is set going."""


def world(scene: dict[str, np.ndarray], variant: str) -> str:
    """The scene as MJCF: held at the bones where every vertex is free to be held, without contact."""
    points = " ".join(f"{x:.8g}" for x in scene["vertices"].ravel())
    elements = " ".join(map(str, scene["tets"].ravel()))
    freedoms = 'dof="full"' if variant == "full" else f'dof="trilinear" cellcount="{CELLS}"'
    held = " ".join(map(str, np.flatnonzero(scene["fixed"])))
    pin = f'<pin id="{held}"/>' if variant == "full" else ""
    return f"""
<mujoco>
  <option timestep="{float(scene["step"])}" integrator="discrete" gravity="0 0 0"><flag contact="disable"/></option>
  <worldbody>
    <flexcomp name="body" type="direct" dim="3" {freedoms} mass="{float(scene["mass"].sum())}" radius="0.001"
              point="{points}" element="{elements}">
      <elasticity young="{float(scene["young"])}" poisson="{float(scene["poisson"])}" damping="0.01"/>
      <contact selfcollide="none" contype="0" conaffinity="0"/>
      {pin}
    </flexcomp>
  </worldbody>
</mujoco>"""


def main(path: str, variant: str, count: int) -> None:
    """Compile the model and step."""
    mujoco = import_module("mujoco")
    scene = dict(np.load(path))
    start = time.perf_counter()
    model = mujoco.MjModel.from_xml_string(world(scene, variant))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    preprocessing = time.perf_counter() - start
    data.qvel[:] = PUSH * np.random.default_rng(0).standard_normal(model.nv)
    rest = data.flexvert_xpos.copy()
    steps = []
    for _ in range(count):
        start = time.perf_counter()
        mujoco.mj_step(model, data)
        steps.append(time.perf_counter() - start)
    result = {
        "preprocessing": preprocessing,
        "steps": steps,
        "vertices": [],
        "freedoms": int(model.nv),
        "note": "" if variant == "full" else f"a cage of {CELLS.replace(' ', '×')} cells, not held anywhere",
        "moved": float(np.abs(data.flexvert_xpos - rest).max()),
    }
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
