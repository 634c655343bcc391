"""Every code block of the documentation runs, and the output that a page shows is what its commands print."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import softrig
from docs_for_tests import (
    LONGEST,
    ROOT,
    WIDTH,
    Block,
    blocks,
    other_numbers,
    pages,
    prepare_hero,
    run_page,
    shown_output,
    words_of,
    wrapped,
)
from softrig.io.characters import LOADERS
from softrig.project import load_project

MOST_LEFT_OUT = 8
"""Blocks that may be marked as not run: those that install, need Blender, or take minutes."""

BLOCKS = [block for page in pages() for block in blocks(page)]
RUNS = [block for block in BLOCKS if block.mark != "not run" and (block.language == "python" or block.commands())]
RUNNING = list(dict.fromkeys(block.page for block in RUNS))


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def hero(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small character, its project file, its model and its finished stages."""
    folder = tmp_path_factory.mktemp("hero")
    prepare_hero(folder)
    return folder


@pytest.fixture
def own_formats() -> Iterator[None]:
    """A page may add a format; other tests must not see it."""
    before = dict(LOADERS)
    yield
    LOADERS.clear()
    LOADERS.update(before)


@pytest.mark.usefixtures("own_formats")
@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # small meshes of thin things
@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_page_runs_from_top_to_bottom(page: Path, hero: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", WIDTH)
    folder = tmp_path / "page"
    shutil.copytree(hero, folder)
    for block, command, printed in run_page(page, folder):
        if block.language == "console":
            shown, place = shown_output(block, command), f"{block.name}: {command}"
            assert words_of(shown) == words_of(printed.splitlines()), place
            assert not other_numbers(shown, printed.splitlines()), place


TABLES = [block for block in BLOCKS if block.language == "toml"]


@pytest.mark.parametrize("block", TABLES, ids=lambda block: block.name)
def test_project_files_in_the_documentation_are_accepted(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "hero.toml"
    path.write_text(block.code, encoding="utf-8")
    load_project(path)


def test_blocks_that_are_not_run_are_few_and_say_why() -> None:
    left_out = [block for block in BLOCKS if block.mark == "not run"]
    assert len(left_out) <= MOST_LEFT_OUT
    silent = [block.name for block in left_out if len(block.why) < 8]
    assert not silent


def test_code_is_not_cut_off_at_the_right() -> None:
    lines = [(block.name, line) for block in BLOCKS for line in dedent(block.code).splitlines()]
    assert not [f"{name}: {line}" for name, line in lines if len(line) > LONGEST]


def test_output_in_wrapped_lines_says_the_same() -> None:
    line = "  wave             soft/wave.glb: " + ", ".join(["a long report of what was written"] * 4)
    assert len(wrapped(line)) == 3
    assert max(map(len, wrapped(line))) <= LONGEST
    assert words_of(wrapped(line)) == words_of([line])
    assert wrapped("") == [""]


def test_numbers_that_changed_are_noticed() -> None:
    shown = ["  step   0.025 ms at best", "  mass   8.9 kg", "  error  0.5 % of 1,546 tets", "  file   at most 0.3 %"]
    alike = ["  step   0.250 ms at best", "  mass   9.1 kg", "  error  0.6 % of 1,600 tets", "  file   at most 0.2 %"]
    assert not other_numbers(shown, alike)
    other = ["  step   0.025 ms at best", "  mass   4.1 kg", "  error  1.2 % of 700 tets", "  file   at most 0.3 %"]
    assert [line.split(": ")[1] for line in other_numbers(shown, other)] == [
        "0.5 is 1.2 now",
        "1,546 is 700 now",
        "8.9 is 4.1 now",
    ]


def test_blocks_say_their_language() -> None:
    known = {"python", "toml", "console", "indented", "diff", "text", "sh"}
    strange = [f"{block.name} {block.language!r}" for block in BLOCKS if block.language not in known]
    assert not strange


def test_the_package_docstring_runs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line[4:] for line in (softrig.__doc__ or "").splitlines() if line.startswith("    ")]
    exec(compile("\n".join(lines), "softrig.__doc__", "exec"), {})
    assert (tmp_path / "beam.softrig").exists()
