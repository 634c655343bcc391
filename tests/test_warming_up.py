"""A simulation that compiles all that its frames run before the first, and stays where it is."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pose_models_for_tests import bar_model, pose
from softrig.simulation import Plane, Simulation


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("frames", [0, 5])
def test_warming_up_leaves_the_simulation_where_it_is(frames, cut):
    model = bar_model()
    falls = -0.1 * (np.arange(12) / 11.0) ** 2
    poses = np.array([pose(model.rig, root_move=(0.0, y, 0.0)) for y in falls])
    kept, warmed = Simulation(model), Simulation(model)
    for simulation in (kept, warmed):
        simulation.colliders = [Plane((0.0, model.vertices[:, 1].min() - 0.01, 0.0), (0.0, 1.0, 0.0))]
        simulation.pull(int(np.argmin(model.fixed[model.embedding_nodes].any(axis=1))), np.array([0.5, 1.0, 0.0]))
        simulation.run(poses[:frames])
        simulation.step(poses[frames], 0.6e-4)  # waits for the next frame
        if cut:
            simulation.cut()
    warmed.warm_up()
    assert warmed.time == kept.time
    assert warmed.counters == kept.counters
    assert warmed.next_frame == kept.next_frame
    assert np.array_equal(warmed.run(poses[frames:]), kept.run(poses[frames:]))


WARM = """
import sys

from numba.core.dispatcher import Dispatcher

from pose_models_for_tests import bar_model, pose
from softrig.simulation import Simulation

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("softrig")]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
    return {f"{one.__module__}.{one.__name__}": len(one.overloads) for one in found}

model = bar_model()
simulation = Simulation(model, fps=float(sys.argv[1]), rate=60.0)
cold = compiled()
simulation.warm_up()
warm = compiled()
for height in (0.0, 0.01, 0.03, 0.06, 0.1, 5.0, 5.0, 5.1):
    simulation.step(pose(model.rig, root_move=(0.0, height, 0.0)), 1.0 / 60.0)
late = [name for name, count in compiled().items() if count != warm[name]]
print(sum(warm.values()) - sum(cold.values()), *late)
"""


@pytest.mark.parametrize("fps", [2, 60, 144])
def test_after_warming_up_no_frame_compiles_anything(fps):
    told = subprocess.run(
        [sys.executable, "-c", WARM, str(fps)], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    count, *late = told.stdout.split()
    assert int(count) > 5
    assert late == []
