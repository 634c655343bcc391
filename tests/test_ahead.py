"""Compiling beside the build: the right code, quietly, and never a process left behind."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
from numba import typeof

from pose_models_for_tests import bar_model, inertia_mapped, mapped
from softrig.models.stepper import Stepper
from softrig.pipeline import ahead
from softrig.pipeline.ahead import compiling_ahead
from softrig.pipeline.ahead_side import draw, move, strain
from softrig.pipeline.least_model import least_model
from softrig.simulation import Simulation


def compiled_types(model) -> list[object]:
    """The compiler's types of all that a simulation hands to compiled code."""
    stepper = Stepper(model)
    surface, drive = stepper._surface, stepper._drive
    tables = (*surface._motion, *surface._skin, *surface._embedding)
    maps = (*drive._maps._tables[0], *drive._maps._coefficients, drive._maps._remainders)
    return [typeof(stepper._packed), typeof(drive._tree), typeof(drive._features), *map(typeof, (*tables, *maps))]


@pytest.mark.parametrize("morphs", [False, True])
@pytest.mark.parametrize("poses", [1, 3])
def test_the_least_model_has_the_types_of_every_skin(morphs, poses) -> None:
    other = inertia_mapped(mapped(bar_model(poses, basis_poses=1, morphs=morphs)))
    assert compiled_types(other) == compiled_types(least_model())


def test_the_order_in_memory_of_a_map_is_none_of_the_compilers_business() -> None:
    model = inertia_mapped(mapped(bar_model(3)))
    known = model.inertia_map
    for name in ("samples", "coefficients", "remainders"):
        object.__setattr__(known, name, np.asfortranarray(getattr(known, name)))
    assert compiled_types(model) == compiled_types(least_model())


def test_the_least_model_moves_and_is_drawn() -> None:
    model = least_model()
    strain(model)
    move(model)
    draw(model)
    simulation = Simulation(model)
    at_rest = simulation.step(model.rig.parameters.rest)
    np.testing.assert_allclose(at_rest, model.vertices, atol=1e-6)
    assert simulation.counters["halved"] == simulation.counters["decayed"] == 0


@pytest.fixture
def two_cores(monkeypatch) -> None:
    monkeypatch.setattr(ahead, "worker_count", lambda _: 2)


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A folder on the path of the child, for modules of our own."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_at_the_end_the_process_is_gone(two_cores, modules) -> None:
    (modules / "sleeper.py").write_text("import time; time.sleep(600)")
    with compiling_ahead("sleeper") as beside:
        assert beside.process is not None
        beside.wait(0.2)
        assert beside.process.poll() is None
    assert beside.process.poll() is not None


def test_an_error_ends_it_too(two_cores, modules) -> None:
    (modules / "sleeper.py").write_text("import time; time.sleep(600)")
    with pytest.raises(KeyboardInterrupt), compiling_ahead("sleeper") as beside:
        raise KeyboardInterrupt
    assert beside.process is not None
    assert beside.process.poll() is not None


def test_a_failure_is_quiet(two_cores, modules, capfd) -> None:
    (modules / "broken.py").write_text("print('hm'); raise RuntimeError('no compiler here')")
    with compiling_ahead("broken") as beside:
        beside.wait()
        assert beside.process is not None
        assert beside.process.returncode == 1
    assert capfd.readouterr() == ("", "")


def test_on_one_core_there_is_no_process(monkeypatch) -> None:
    monkeypatch.setattr(ahead, "worker_count", lambda _: 1)
    with compiling_ahead() as beside:
        assert beside.process is None
        beside.wait()


def test_it_ends_with_whoever_started_it() -> None:
    code = "import time; from softrig.pipeline import ahead_side; ahead_side.strain = lambda _: time.sleep(600); "
    child = subprocess.Popen([sys.executable, "-c", code + "ahead_side.main()"], stdin=subprocess.PIPE)
    assert child.stdin is not None
    time.sleep(0.5)
    child.stdin.close()
    assert child.wait(60.0) == 1
