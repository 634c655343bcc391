"""Builds over a dask scheduler."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dask.distributed import LocalCluster

from characters_for_tests import limb
from softrig.errors import InputError
from softrig.pipeline.build import build
from softrig.project import Project

SMALL = Project().changed(mesh={"tets": 600}, basis={"modes": 12, "regions": 2, "rehearsal": 0.5}, poses={"count": 3})


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb
def test_a_cluster_builds_the_same_model(tmp_path: Path) -> None:
    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(**options) as cluster:
        there = build(limb(), SMALL, cache=tmp_path / "there", cluster=cluster.scheduler_address)
    here = build(limb(), SMALL, cache=tmp_path / "here", jobs=1)
    for name in ("shapes", "mass_products", "inertia"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    np.testing.assert_array_equal(there.cubature.weights, here.cubature.weights)


def test_an_address_at_which_nobody_answers_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9"):
        build(limb(), SMALL, cache=tmp_path, cluster="tcp://127.0.0.1:9")
