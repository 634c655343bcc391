"""fast-cody (complementary dynamics) without its windows: the same tets, the same bones, the same motion."""

import json
import sys
import time
from importlib import import_module
from unittest.mock import MagicMock

import numpy as np

MODES, CLUSTERS = 16, 100
"""As its own programs have them: 12 coordinates a mode."""


def main(path: str, _: str, count: int) -> None:
    """Precompute and step."""
    # Imported by the package for its windows and cameras alone.
    for name in ("mediapipe", "mediapipe.framework", "mediapipe.framework.formats", "cv2"):
        sys.modules[name] = MagicMock()
    for name in ("polyscope", "polyscope.imgui"):
        sys.modules[name] = MagicMock()
    fc = import_module("fast_cody")
    scene = np.load(path)
    vertices, tets = scene["vertices"], scene["tets"].astype(np.int32)
    weights, motion = scene["bone_weights"], scene["bone_matrices"]
    start = time.perf_counter()
    rig = fc.lbs_jacobian(vertices, weights)
    constraint = fc.complementary_constraint_matrix(vertices, tets, rig, dt=1e-3)
    constraint = fc.lbs_weight_space_constraint(vertices, constraint)
    note = ""
    try:
        basis, labels, _ = fc.skinning_subspace(vertices, tets, MODES, CLUSTERS, C=constraint)
    except ValueError:
        note = "its default subspace fails on this mesh; with constraint_enforcement='project'"
        basis, labels, _ = fc.skinning_subspace(
            vertices, tets, MODES, CLUSTERS, C=constraint, constraint_enforcement="project"
        )
    shear = float(scene["young"] / (2.0 * (1.0 + scene["poisson"])))
    solver = fc.fast_cd_sim(vertices, tets, basis, labels, rig, mu=shear, rho=float(scene["density"]), h=scene["step"])
    preprocessing = time.perf_counter() - start

    def parameters(frame: int) -> np.ndarray:
        return np.ascontiguousarray(motion[frame % len(motion)].transpose(1, 0, 2)).reshape(-1, 1)

    z = np.zeros((basis.shape[1], 1))
    state = fc.fast_cd_state(z, parameters(0))
    steps, shown, moved = [], [], 0.0
    for frame in range(count):
        p = parameters(frame)
        start = time.perf_counter()
        z = solver.step(p, state)
        state.update(z, p)
        steps.append(time.perf_counter() - start)
        start = time.perf_counter()
        secondary = basis @ z
        rig @ p + secondary
        shown.append(time.perf_counter() - start)
        moved = max(moved, float(np.abs(secondary).max()))
    result = {
        "preprocessing": preprocessing,
        "steps": steps,
        "vertices": shown,
        "freedoms": int(basis.shape[1]),
        "note": note,
        "moved": moved,
    }
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
