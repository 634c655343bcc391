"""The folder of finished stages: what is found again, what is damaged, and how it stays small."""

from __future__ import annotations

import os

import numpy as np
import pytest

from softrig.pipeline import cache as module
from softrig.pipeline.cache import StageCache, content_hash

ONE_RESULT = {"numbers": np.arange(1000.0)}
SIZE = 8000
"""About the bytes of it in a file."""


def key(number: int) -> str:
    return content_hash("test", number)


def aged(cache: StageCache, number: int, seconds: float) -> None:
    os.utime(cache._path("stage", key(number)), (seconds, seconds))


@pytest.fixture
def filled(tmp_path, monkeypatch) -> StageCache:
    """Four results, 0 the oldest, in a folder that has room for four and a half."""
    monkeypatch.setattr(module, "MOST_BYTES", int(4.5 * (SIZE + 300)))
    cache = StageCache(tmp_path / "kept")
    for number in range(4):
        cache.keep("stage", key(number), ONE_RESULT)
        aged(cache, number, 1e9 + number)
    return StageCache(cache.folder)


def there(cache: StageCache) -> list[int]:
    return [number for number in range(8) if cache._path("stage", key(number)).exists()]


def test_what_was_kept_is_found_again(filled):
    found = filled.find("stage", key(2))
    np.testing.assert_array_equal(found["numbers"], ONE_RESULT["numbers"])
    assert filled.reused == ["stage"]
    assert filled.find("stage", key(7)) is None
    assert there(filled) == [0, 1, 2, 3]


def test_a_folder_that_is_full_loses_what_was_not_used_for_longest(filled):
    filled.keep("stage", key(4), ONE_RESULT)
    assert there(filled) == [1, 2, 3, 4]


def test_what_is_used_stays(filled):
    assert filled.find("stage", key(0)) is not None
    StageCache(filled.folder).keep("stage", key(4), ONE_RESULT)
    assert there(filled) == [0, 2, 3, 4]


def test_nothing_of_this_run_goes_however_much_it_is(filled):
    for number in range(8):
        filled.keep("stage", key(number), ONE_RESULT)
    assert there(filled) == list(range(8))


def test_other_files_are_nobody_elses_to_remove(filled):
    for name in ("notes.npz", "stage.txt", f"stage-{key(9)}.npz.bak"):
        (filled.folder / name).write_bytes(bytes(10 * SIZE))
    filled.keep("stage", key(4), ONE_RESULT)
    assert there(filled) == [1, 2, 3, 4]
    assert len(list(filled.folder.iterdir())) == 7


def test_a_damaged_result_is_made_anew(filled):
    filled._path("stage", key(1)).write_bytes(b"PK nothing")
    np.testing.assert_array_equal(filled.get("stage", key(1), lambda: ONE_RESULT)["numbers"], ONE_RESULT["numbers"])
    assert filled.made == ["stage"]


def test_without_a_folder_nothing_is_kept():
    cache = StageCache(None)
    assert cache.get("stage", key(0), lambda: ONE_RESULT) is ONE_RESULT
    assert cache.find("stage", key(0)) is None
