"""Bullet's reduced deformable body on the same tets, with linear modes that softrig made: VARIANT is how many."""

import json
import os
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import numpy as np


def numbers(path: Path, values: np.ndarray) -> None:
    """An array as Bullet reads it: a count of 32 bits, then doubles."""
    flat = np.ascontiguousarray(values, np.float64).ravel()
    path.write_bytes(np.uint32(flat.size).tobytes() + flat.tobytes())


def body(folder: Path, scene: dict[str, np.ndarray], modes: int) -> None:
    """The files of a reduced body: modes, eigenvalues, masses, tets and their description."""
    numbers(folder / "eigenvalues.bin", scene["eigenvalues"][:modes])
    numbers(folder / "K_r_diag_mat.bin", scene["eigenvalues"][:modes])
    numbers(folder / "M_diag_mat.bin", scene["mass"])
    numbers(folder / "modes.bin", scene["modes"][:, :modes].T)
    vertices, tets = scene["vertices"], scene["tets"]
    lines = [
        "# vtk DataFile Version 2.0",
        "body",
        "ASCII",
        "DATASET UNSTRUCTURED_GRID",
        f"POINTS {len(vertices)} double",
    ]
    lines += [f"{x:.9g} {y:.9g} {z:.9g}" for x, y, z in vertices]
    lines += [f"CELLS {len(tets)} {5 * len(tets)}"] + [f"4 {a} {b} {c} {d}" for a, b, c, d in tets]
    lines += [f"CELL_TYPES {len(tets)}"] + ["10"] * len(tets)
    (folder / "body.vtk").write_text("\n".join(lines) + "\n", encoding="ascii")
    (folder / "body.urdf").write_text(
        f"""<?xml version="1.0"?>
<robot name="body">
  <reduced_deformable name="body">
    <num_modes value="{modes}"/>
    <mass value="{scene["mass"].sum()}"/>
    <stiffness_scale value="1"/>
    <collision_margin value="0.001"/>
    <erp value="0.2"/>
    <cfm value="0.2"/>
    <friction value="0.5"/>
    <damping_coefficient value="0.0001"/>
    <visual filename="body.vtk"/>
  </reduced_deformable>
</robot>
""",
        encoding="ascii",
    )


def main(path: str, variant: str, count: int) -> None:
    """Load and step; gravity pulls at the body, which floats."""
    bullet = import_module("pybullet")
    scene = dict(np.load(path))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        body(folder, scene, int(variant))
        os.chdir(folder)
        start = time.perf_counter()
        bullet.connect(bullet.DIRECT)
        bullet.resetSimulation(bullet.RESET_USE_REDUCED_DEFORMABLE_WORLD)
        bullet.setGravity(0.0, -9.81, 0.0)
        bullet.setTimeStep(float(scene["step"]))
        loaded = bullet.loadURDF("body.urdf", [0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0])
        preprocessing = time.perf_counter() - start
        steps, shown = [], []
        positions = scene["vertices"]
        for _ in range(count):
            start = time.perf_counter()
            bullet.stepSimulation()
            steps.append(time.perf_counter() - start)
            start = time.perf_counter()
            _, rows = bullet.getMeshData(loaded, -1, flags=bullet.MESH_DATA_SIMULATION_MESH)
            shown.append(time.perf_counter() - start)
            positions = np.array(rows)
        os.chdir("/")
    result = {
        "preprocessing": preprocessing,
        "steps": steps,
        "vertices": shown,
        "freedoms": int(variant) + 6,
        "note": "",
        "moved": float(np.abs(positions - scene["vertices"]).max()),
    }
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
