"""The code in the documentation: found, and run as a reader would who follows a page from top to bottom.

Python blocks of a page share their names. Commands that begin with `softrig` run in the page's own folder, which holds
a small hero.glb, its project file and its model; `softrig view` is opened and closed again. A TOML block with a title
is a project file that the page asks to write. A block after `<!-- not run: why -->` is left out; one after
`<!-- patched -->` runs in a copy of the package to which the page's diff has been applied.

    python tests/docs_for_tests.py docs/tutorial.md

runs the `console` blocks of a page and writes what they print into it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
GENERATED = {"records", "gallery"}
"""Folders of docs/ that commands write."""
WIDTH = "100"
"""Columns of the terminal whose output pages show."""
LONGEST = 90
"""Characters of a line of code that pages show without cutting it off."""
CONTINUED = " " * 4
"""What a line begins with that goes on with the one before."""

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)(?P<rest>[^\n]*)$")
MARK = re.compile(r"<!-- (?P<kind>not run|patched)(?:: (?P<why>.+?))? -->")
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
PROMPT = "$ "
NEAR = 0.5
"""Share of itself by which a number may differ from what a page shows of it: libraries and processors round apart, and
choices among nearly equal tets and shapes with them."""


@dataclass(frozen=True)
class Block:
    """One block of code."""

    page: Path
    line: int
    """Of its first line, from 1."""
    language: str
    """As the fence says; "indented" without one."""
    code: str
    title: str = ""
    mark: str = ""
    """Either "", "not run" or "patched"."""
    why: str = ""

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self) -> list[str]:
        """The commands of softrig in it."""
        lines = [line.strip().removeprefix(PROMPT) for line in self.code.splitlines()]
        return [line for line in lines if line.startswith("softrig ")]


def pages() -> list[Path]:
    """Every page that people wrote."""
    docs = ROOT / "docs"
    written = [page for page in docs.rglob("*.md") if page.relative_to(docs).parts[0] not in GENERATED]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(written)]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, fenced ones and indented commands, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    last = ""  # the nearest line above that says something
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence:
            end = next(k for k in range(at + 1, len(lines)) if lines[k].strip() == "```")
            indent = len(fence["indent"])
            code = "\n".join(line[indent:] for line in lines[at + 1 : end]) + "\n"
            title = re.search(r'title="(.+?)"', fence["rest"])
            found.append(_marked(Block(page, at + 2, fence["language"], code, title[1] if title else ""), last))
            last, at = "```", end + 1
        elif lines[at].startswith("    ") and lines[at].strip() and not (at and lines[at - 1].strip()):
            end = next((k for k in range(at, len(lines)) if not lines[k].startswith("    ")), len(lines))
            block = _marked(Block(page, at + 1, "indented", "\n".join(lines[at:end]) + "\n"), last)
            found += [block] if block.commands() else []
            last, at = lines[end - 1], end
        else:
            last = lines[at] if lines[at].strip() else last
            at += 1
    return found


def _marked(block: Block, above: str) -> Block:
    mark = MARK.search(above)
    return replace(block, mark=mark["kind"], why=mark["why"] or "") if mark else block


def prepare_hero(folder: Path) -> None:
    """hero.glb, a small limb with two clips, hero.toml and hero.softrig."""
    import softrig as sr
    from characters_for_tests import limb

    character = limb()
    names = {"bend": "walk", "shake": "wave"}
    clips = tuple(replace(clip, name=names[clip.name]) for clip in character.clips)
    sr.write_character_glb(replace(character, clips=clips), folder / "hero.glb")
    small = sr.Project().changed(
        mesh={"tets": 1000}, basis={"modes": 20, "rehearsal": 0.5, "derivatives": 6}, poses={"count": 2}
    )
    sr.save_project(small, folder / "hero.toml")
    with contextlib.chdir(folder):
        run_command("softrig build hero.glb --jobs 1")


def run_page(page: Path, folder: Path) -> Iterator[tuple[Block, str, str]]:
    """Run a page in `folder`; for each command its block, the command, and what it printed."""
    names: dict[str, object] = {"__name__": "page"}
    with contextlib.chdir(folder):
        for block in blocks(page):
            if block.mark == "not run":
                continue
            if block.mark == "patched":
                run_patched(page, block, folder)
            elif block.language == "python":
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)
                check_result(names)
            elif block.language == "toml" and block.title:
                (folder / block.title).write_text(block.code, encoding="utf-8")
            for command in block.commands():
                yield block, command, run_command(command)


def run_command(command: str) -> str:
    """Run a command of softrig in this process; returns what it printed."""
    import softrig as sr
    from softrig import cli

    words = shlex.split(command, comments=True)[1:]
    if words[0] == "view":
        sr.view(words[1], browser=False).close()
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore", sr.Notice)
        cli.app(words, standalone_mode=False)
    return printed.getvalue()


def check_result(names: dict[str, object]) -> None:
    """Vertices that an example ends with are of the size of a body."""
    import numpy as np

    for name in ("positions", "drawn"):
        if isinstance(found := names.get(name), np.ndarray):
            assert found.shape[1] == 3
            assert np.abs(found).max() < 10.0


def run_patched(page: Path, block: Block, folder: Path) -> None:
    """Run a Python block with a copy of the package that the page's diffs have changed, uncompiled."""
    copy = folder / "patched"
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "page"))
    for diff in (each for each in blocks(page) if each.language == "diff"):
        done = subprocess.run(
            ["git", "apply", "--recount", "--unsafe-paths", "-"],
            input=diff.code,
            text=True,
            cwd=copy,
            capture_output=True,
            check=False,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder)},
        )
        assert done.returncode == 0, f"{diff.name} does not apply to the sources any more: {done.stderr}"
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", block.code], cwd=folder, env=environment, check=True)


def shown_output(block: Block, command: str) -> list[str]:
    """The lines that a `console` block shows under a command."""
    lines = block.code.splitlines()
    start = next(k for k, line in enumerate(lines) if line.strip().removeprefix(PROMPT) == command) + 1
    end = next((k for k in range(start, len(lines)) if lines[k].startswith(PROMPT)), len(lines))
    return lines[start:end]


def words_of(lines: list[str]) -> list[str]:
    """The lines without their numbers, spaces and frames, in a sorted list; advice (!) depends on rounding."""
    return [words for words, _ in _told(lines)]


def other_numbers(shown: list[str], printed: list[str]) -> list[str]:
    """What differs in numbers between outputs of the same words: lines, with both numbers, that a page should renew.

    Times (ms, s) are left out: they are the machine's. Others may differ by `NEAR` of themselves, or by one in their
    last digit.
    """
    found = []
    for (words, old), (_, new) in zip(_told(shown), _told(printed), strict=True):
        for each, other in zip(old, new, strict=True):
            a, b = (float(text.replace(",", "")) for text in (each, other))
            digits = min(len(text.partition(".")[2]) for text in (each, other))
            if abs(a - b) > max(NEAR * max(abs(a), abs(b)), 1.001 * 10.0**-digits):
                found.append(f"{words}: {each} is {other} now")
    return found


def _told(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Of each line its words, with # for numbers, and those numbers that are no times; sorted by the words."""
    whole = "\n".join(lines).replace(f"\n{CONTINUED}", " ")
    # Where two joints are about as far off, another processor names the other.
    whole = re.sub(r"plain\s+skinning\s+at\s+'[^']*'", "plain skinning at a joint", whole).splitlines()
    found = []
    for line in whole:
        words = re.sub(r"[\s─━│┃┏┓┗┛┡┩└┘┌┐┳┻╇┷┴┬┼╞╡═…]+", " ", NUMBER.sub("#", line)).strip()
        if words and not words.startswith("!") and words != "more modes help":
            numbers = [n[0].rstrip(",") for n in NUMBER.finditer(line) if not re.match(r" m?s\b", line[n.end() :])]
            found.append((words, numbers))
    return sorted(found, key=lambda each: each[0])


def wrapped(line: str) -> list[str]:
    """A line of output in lines of at most `LONGEST`, the later ones below where its second column begins."""
    key = re.match(r"\s*\S+(?: \S+)*\s{2,}", line)
    indent = max(len(CONTINUED), key.end() if key else 0) * " "
    return textwrap.wrap(line, LONGEST, subsequent_indent=indent, break_on_hyphens=False) or [""]


def write_outputs(page: Path, folder: Path) -> None:
    """Run a page and put what its commands print into its `console` blocks."""
    text = page.read_text(encoding="utf-8")
    for block, command, printed in run_page(page, folder):
        if block.language != "console":
            continue
        old = "\n".join([f"{PROMPT}{command}", *shown_output(block, command)])
        new = "\n".join(
            [f"{PROMPT}{command}", *(short for line in printed.rstrip().splitlines() for short in wrapped(line))]
        )
        assert old in text, f"{block.name}: {command}"
        text = text.replace(old, new, 1)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ["COLUMNS"] = WIDTH
    for each in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as place:
            write_outputs(Path(each).resolve(), Path(place))
