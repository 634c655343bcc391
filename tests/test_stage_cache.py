"""Finished stages are found again, changed inputs are not, damaged files are made anew."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from softrig.errors import InputError
from softrig.pipeline.cache import StageCache, content_hash, text_array, text_value
from softrig.pipeline.parallel import cached_each, workers


def test_hashes_follow_the_content() -> None:
    a = np.arange(6.0)
    assert content_hash(a, {"x": 1, "y": [2, "z"]}) == content_hash(a.copy(), {"y": [2, "z"], "x": 1})
    assert content_hash(a) != content_hash(a.reshape(2, 3))
    assert content_hash(a) != content_hash(a.astype(np.float32))
    assert content_hash(["ab", "c"]) != content_hash(["a", "bc"])
    assert content_hash(1) != content_hash(1.0)


def test_a_stage_is_made_once(tmp_path: Path) -> None:
    calls = []

    def make() -> dict[str, np.ndarray]:
        calls.append(1)
        return {"values": np.arange(3), "notes": text_array({"error": 0.5})}

    for _ in range(2):
        cache = StageCache(tmp_path / "cache")
        found = cache.get("fit", content_hash("a"), make)
        assert found["values"].tolist() == [0, 1, 2]
        assert text_value(found["notes"]) == {"error": 0.5}
    assert len(calls) == 1
    assert cache.reused == ["fit"]
    cache.get("fit", content_hash("b"), make)
    assert len(calls) == 2


def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    cache = StageCache(tmp_path)
    cache.get("fit", "k", lambda: {"values": np.ones(100)})
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:150])
    assert cache.get("fit", "k", lambda: {"values": np.zeros(1)})["values"].tolist() == [0.0]
    path.write_bytes(b"no zip at all")
    assert cache.get("fit", "k", lambda: {"values": np.zeros(2)})["values"].tolist() == [0.0, 0.0]


def test_without_a_folder_nothing_is_kept() -> None:
    cache = StageCache(None)
    assert cache.get("fit", "k", lambda: {"v": np.ones(1)})["v"].tolist() == [1.0]
    assert cache.get("fit", "k", lambda: {"v": np.zeros(1)})["v"].tolist() == [0.0]


def test_each_finished_task_is_kept(tmp_path: Path) -> None:
    done: list[int] = []

    def square(task: int) -> dict[str, np.ndarray]:
        if task == 3:
            raise KeyboardInterrupt  # killed in the middle
        done.append(task)
        return {"square": np.array(task * task)}

    keys = [content_hash(task) for task in (1, 2, 3)]
    with pytest.raises(KeyboardInterrupt):
        cached_each(StageCache(tmp_path), "work", keys, square, [1, 2, 3], 1)
    done.clear()
    told: list[tuple[int, int]] = []
    cache = StageCache(tmp_path)
    results = cached_each(cache, "work", keys[:2], square, [1, 2], 1, lambda *count: told.append(count))
    assert [int(result["square"]) for result in results] == [1, 4]
    assert done == []
    assert cache.reused == ["work", "work"]


def test_a_cluster_needs_its_package_and_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(InputError, match="cluster"), workers(cluster="tcp://127.0.0.1:1"):
        pass
    with pytest.raises(InputError, match="at least one worker"), workers(0):
        pass
