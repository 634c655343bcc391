"""Shared fixtures: small bodies, bars and a limb, a finite-difference derivative, and a cache of finished stages."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parent.parent


def compiled_sources() -> str:
    """A fingerprint of every module that holds compiled code."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        content = path.read_bytes()
        if b"njit" in content:
            digest.update(content)
    return digest.hexdigest()[:16]


# Numba's own cache does not notice that a function called from another file has changed, and would test old code.
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba" / compiled_sources())

import numpy as np
import pytest

from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing import box_bricks, box_tets

BOXES = {"tet": box_tets, "brick": box_bricks}


@pytest.fixture(scope="session")
def slope():
    """The derivative at 0 of a function of one number, by five points: the error is O(step⁴)."""

    def five_point_slope(function, step=1e-3):
        near = function(step) - function(-step)
        far = function(2.0 * step) - function(-2.0 * step)
        return (8.0 * near - far) / (12.0 * step)

    return five_point_slope


@pytest.fixture(scope="session")
def distorted_box():
    """A box of the named element whose vertices are moved at random, all of them or the interior ones."""

    def build(element, counts=(2, 2, 2), *, seed=0, interior_only=False):
        lengths = np.array([1.2, 0.9, 1.0])
        box = BOXES[element](lengths, counts)
        moves = np.random.default_rng(seed).uniform(-0.15, 0.15, box.vertices.shape) * lengths / counts
        if interior_only:
            moves[np.unique(box.boundary_faces)] = 0.0
        return VolumeMesh.build(box.vertices + moves, box.elements)

    return build


@pytest.fixture(scope="session")
def varied_material():
    """A material with other λ, μ and ρ in every element of a mesh."""

    def build(mesh, seed=1):
        rng = np.random.default_rng(seed)
        count = len(mesh.elements)
        return Material(
            young=rng.uniform(1.0, 3.0, count), poisson=rng.uniform(0.1, 0.4, count), density=rng.uniform(1, 2, count)
        )

    return build


@pytest.fixture(scope="session")
def bar():
    """The skinned bar with one pose."""
    from pose_models_for_tests import bar_model

    return bar_model(1)


@pytest.fixture(scope="session")
def bending():
    """The skinned bar with a pose at which it is bent."""
    from pose_models_for_tests import bar_model

    return bar_model(2)


@pytest.fixture(scope="session")
def limb_file(tmp_path_factory) -> Path:
    """The limb as a GLB."""
    from characters_for_tests import limb
    from softrig.io.glb_writer import write_character_glb

    path = tmp_path_factory.mktemp("limb") / "limb.glb"
    write_character_glb(limb(), path)
    return path


@pytest.fixture(scope="session")
def cache(tmp_path_factory) -> Path:
    """A folder of finished stages, so that no test builds again what another one has built."""
    return tmp_path_factory.mktemp("cache")
