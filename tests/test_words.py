"""Turns of phrase that messages share."""

from __future__ import annotations

import errno
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from softrig.errors import Notice, notice
from softrig.words import (
    counted,
    figure,
    has_no,
    millimetres,
    nearest,
    no_such_file,
    none_called,
    quoted,
    so_many_are,
    told_by_system,
)


def test_counts_and_figures() -> None:
    assert [counted(count, "pose") for count in (0, 1, 2, 1000)] == ["0 poses", "1 pose", "2 poses", "1,000 poses"]
    assert [so_many_are(count, "tet") for count in (1, 9)] == ["1 tet is", "9 tets are"]
    told = [figure(value) for value in (0.0848, 84.8, 999.4, 999.6, 8478.0, 1234567.0)]
    assert told == ["0.0848", "84.8", "999", "1,000", "8,480", "1,230,000"]
    assert quoted([]) == "none"
    told = [millimetres(metres) for metres in (0.1234, 0.016, 0.00996, 0.0075, 0.00042, 5e-8, 0.0)]
    assert told == ["123 mm", "16 mm", "10 mm", "7.5 mm", "0.42 mm", "less than 0.01 mm", "0 mm"]


def test_names_that_differ_by_case_or_a_letter_are_offered() -> None:
    known = ["Survey", "Walk", "Run"]
    assert nearest("run", known) == "Run"
    assert nearest("wlak", known) == "Walk"
    assert nearest("fly", known) is None
    assert nearest("x", []) is None
    assert has_no("Fox", "clip", ["run"], known) == (
        "'Fox' has no clip 'run', did you mean 'Run'? Its clips: 'Survey', 'Walk', 'Run'"
    )
    assert has_no("Fox", "clip", ["fly", "run"], known[:1]) == "'Fox' has no clip 'fly', 'run'; its clips: 'Survey'"
    assert none_called("clip", "Walks", known).startswith("no clip is called 'Walks', did you mean 'Walk'? There are:")
    assert none_called("clip", "fly", []) == "no clip is called 'fly'; there are: none"


def test_a_missing_file_is_told_in_one_way(tmp_path: Path) -> None:
    path = tmp_path / "nosuch.softrig"
    with pytest.raises(FileNotFoundError) as caught:
        path.open()
    assert told_by_system(caught.value) == f"{path}: there is no such file"
    own = FileNotFoundError(errno.ENOENT, "the folder to write into does not exist", "/nowhere")
    assert told_by_system(own) == "the folder to write into does not exist: /nowhere"


def test_a_notice_is_one_line_for_who_calls_from_python(tmp_path: Path) -> None:
    """And filters by category and by module work on it."""
    code = "from softrig.errors import notice\nnotice('the mesh was mended', [3])\nnotice('the mesh was mended', [3])\n"
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")
    told = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert told.stderr == "softrig:0: Notice: the mesh was mended [index 3]\n"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=Notice, module=__name__)
        notice("not heard")
    assert caught == []
    with pytest.warns(Notice, match="heard"):
        notice("heard")


def test_a_missing_file_is_guessed_among_those_beside_it(tmp_path: Path) -> None:
    (tmp_path / "CesiumMan.glb").touch()
    (tmp_path / "CesiumMan.softrig").touch()
    missing = "there is no such file"
    assert no_such_file(tmp_path / "CesiumMna.glb") == f"{missing}, did you mean 'CesiumMan.glb'?"
    assert no_such_file(str(tmp_path / "cesiumman.softrig")) == f"{missing}, did you mean 'CesiumMan.softrig'?"
    assert no_such_file(tmp_path / "CesiumMan.softrg") == f"{missing}, did you mean 'CesiumMan.softrig'?"
    assert no_such_file(tmp_path / "CesiumMan.toml") == missing
    assert no_such_file(tmp_path / "nowhere" / "hero.glb") == missing
    assert no_such_file("hero\0.glb") == missing
