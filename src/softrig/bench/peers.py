"""`softrig bench peers`: what others take for the same mesh, in the same run, on one core each.

Each peer is installed by name and version into an environment of its own and run in a process of its own; one that
cannot be installed, or fails, is a row that says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from softrig.bases.modes import linear_modes
from softrig.bench import peer_scripts
from softrig.bench.environments import Environment, UnavailableError, cache_folder, environment_python, told
from softrig.bench.models import prepared
from softrig.bench.posespace import full_step, step_and_surface
from softrig.bench.pssd import TABLE_3
from softrig.bench.record import Record, Row, model_sizes, timing_row
from softrig.console import Update
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.machine import Timing, this_machine
from softrig.models.full import FullBody
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.build import Built

RATE = 180.0
"""Steps a second of motion, as ours."""
RUN_SECONDS = 600.0
DIVERGED = 10.0
"""Metres that nothing moves in so short a time."""
FEWER = 25
"""Modes of the level of detail that is measured, too."""
PREPROCESSING, VERTICES, STEPS, FREEDOMS = "preprocessing, s", "vertices, ms", "steps a second", "degrees of freedom"
SCRIPTS = Path(peer_scripts.__file__).parent


@dataclass(frozen=True)
class Peer:
    """Somebody else's solver."""

    name: str
    environment: Environment
    script: str
    variant: str
    steps: int
    lacks: str
    """What it could not do of what the character asks for."""


# cvxopt, which fast-cody asks for, is GPL: it lives in the peer's process alone. Its windows and cameras are left out.
FAST_CODY = Environment(
    "fast-cody",
    ("numpy==1.26.4", "scipy==1.11.4", "libigl==2.5.1", "cvxopt==1.3.2", "scikit-learn==1.4.2"),
    ("fast-cody==0.0.8",),
)
MUJOCO = Environment("mujoco", ("mujoco==4.0.0", "numpy==2.2.6"))
PYBULLET = Environment("pybullet", ("pybullet==3.2.7", "numpy==2.2.6"))
NO_CHARACTER = "no rig, no poses, no character files"
PEERS = (
    Peer(
        "fast-cody 0.0.8, 16 skinning modes",
        FAST_CODY,
        "run_fast_cody.py",
        "",
        300,
        "linear-blend rigs only, ARAP only, one rest pose, no contact, no export",
    ),
    Peer(
        "mujoco 4.0.0 flex, trilinear",
        MUJOCO,
        "run_mujoco.py",
        "trilinear",
        500,
        f"{NO_CHARACTER}; one material law; a cage cannot follow bones",
    ),
    Peer("mujoco 4.0.0 flex, full", MUJOCO, "run_mujoco.py", "full", 40, f"{NO_CHARACTER}; one material law"),
    Peer(
        "pybullet 3.2.7 reduced body, 20 modes",
        PYBULLET,
        "run_pybullet.py",
        "20",
        100,
        f"{NO_CHARACTER}; linear modes made elsewhere (here: ours)",
    ),
    Peer(
        "pybullet 3.2.7 reduced body, 100 modes",
        PYBULLET,
        "run_pybullet.py",
        "100",
        40,
        f"{NO_CHARACTER}; linear modes made elsewhere (here: ours)",
    ),
)


def peers(update: Update) -> Record:
    """Ours, full and reduced, and every peer on the gorilla's tets."""
    preparation = prepared("gorilla", TABLE_3["gorilla"].project())
    made = preparation.built
    rows = own_rows(made, preparation.seconds)
    update(1, len(PEERS) + 1)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "scene.npz"
        np.savez(path, **scene(made.model, made))
        rows += peer_rows(PEERS, path, lambda done, total: update(done + 1, total + 1))
    remark = (
        "One mesh, one run, one core each. Ours and fast-cody play the same clip with the same bones; full simulations "
        "are held at the bones; a cage is set swinging without being held, and Bullet's reduced body, which cannot be "
        "held, falls: its step costs the same whatever it does. "
        "Vertices: of the tets, ours of the drawn surface; nothing where the step gives them. Preprocessing of "
        "ours is the whole build on all cores, from the character's surface to the model."
    )
    title = "The same tets in other solvers"
    sizes = {"gorilla": model_sizes(made.model)}
    return Record("peers", title, this_machine(), rows, remark, sizes, "a step, least", "what it cannot do")


def own_rows(made: Built, build_seconds: float) -> list[Row]:
    """Our full simulation and our reduced ones."""
    rows = []
    with threadpool_limits(1):
        for modes in [made.model.mode_count] + [FEWER] * (made.model.mode_count > FEWER):
            step, surface = step_and_surface(made, None if modes == made.model.mode_count else modes)
            what = f"softrig, reduced, r = {modes}"
            rows.append(_row(what, step, surface.median, build_seconds, modes, "no self-contact beyond its poses"))
        start = time.perf_counter()
        full = full_step(made, 20)
        # Everything but the steps themselves.
        preprocessing = max(time.perf_counter() - start - full.calls * full.median, 0.0)
        freedoms = 3 * int((~made.model.fixed).sum())
        rows.append(_row("softrig, full simulation", full, None, preprocessing, freedoms, "no contact"))
    return rows


def _row(what: str, step: Timing, vertices: float | None, preprocessing: float, freedoms: int, lacks: str) -> Row:
    also = {STEPS: 1.0 / step.median, PREPROCESSING: preprocessing, FREEDOMS: float(freedoms)}
    if vertices is not None:
        also[VERTICES] = 1e3 * vertices
    return timing_row(what, "ms", step, also=also, note=lacks)


def scene(model: PoseSpaceModel, made: Built) -> dict[str, Any]:
    """What a peer may read: tets, what holds them, one material, bones and their motion, linear modes."""
    assert model.tet_rig.weights is not None
    _, poses = model.clips[0].resample(RATE)
    young, poisson = float(np.median(made.fabric.young[0])), float(np.median(made.fabric.poisson[0]))
    density = float(np.mean(made.fabric.density))
    mesh = VolumeMesh.build(model.vertices, model.tets)
    modes = linear_modes(FullBody(mesh, Material(young, poisson, density), mass="lumped"), 100)
    return {
        "vertices": model.vertices,
        "tets": model.tets,
        "fixed": model.fixed,
        "mass": model.vertex_mass,
        "young": young,
        "poisson": poisson,
        "density": density,
        "step": 1.0 / RATE,
        "bone_weights": model.tet_rig.weights.toarray(),
        "bone_matrices": np.array([model.bone_matrices(pose) for pose in poses]),
        "modes": modes.shapes,
        "eigenvalues": modes.eigenvalues,
    }


def peer_rows(chosen: Sequence[Peer], path: Path, update: Update, cache: Path | None = None) -> list[Row]:
    """A row a peer, installed and run, or why not."""
    rows = []
    for done, peer in enumerate(chosen):
        rows.append(peer_row(peer, path, cache or cache_folder()))
        update(done + 1, len(chosen))
    return rows


def peer_row(peer: Peer, path: Path, cache: Path) -> Row:
    """What a peer took for the scene at `path`, or why it could not be installed or did not run."""
    try:
        python = environment_python(peer.environment, cache)
    except UnavailableError as error:
        return Row(peer.name, "ms", None, note=f"could not be installed: {error}")
    command = [str(python), str(SCRIPTS / peer.script), str(path), peer.variant, str(peer.steps)]
    try:
        result = json.loads(told(command, RUN_SECONDS, threads=1).rsplit("RESULT ", 1)[-1].splitlines()[0])
    except (UnavailableError, ValueError, IndexError) as error:
        return Row(peer.name, "ms", None, note=f"did not run: {error}")
    if not abs(result["moved"]) < DIVERGED:
        return Row(peer.name, "ms", None, note=f"its motion diverged: {result['moved']:.3g} m")
    steps, shown = np.array(result["steps"]), result["vertices"]
    timing = Timing(float(steps.min()), float(np.median(steps)), float(np.quantile(steps, 0.99)), len(steps))
    note = f"{peer.lacks}; {result['note']}" if result["note"] else peer.lacks
    vertices = float(np.median(shown)) if shown else None
    return _row(peer.name, timing, vertices, result["preprocessing"], result["freedoms"], note)
