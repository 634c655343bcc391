"""Code in the documentation runs, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import softrig

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def code_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


BLOCKS = [(page.name, number, code) for page in PAGES for number, code in enumerate(code_blocks(page))]


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # small meshes of thin things
@pytest.mark.parametrize(("page", "number", "code"), BLOCKS, ids=[f"{page}-{number}" for page, number, _ in BLOCKS])
def test_code_in_the_documentation_runs(page: str, number: int, code: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, f"{page} block {number}", "exec"), names)
    if "viewer" in names:
        assert names["viewer"].url.startswith("http://127.0.0.1:")
        return
    result = names.get("positions", names.get("drawn"))
    assert result is not None
    assert result.shape[1] == 3
    assert abs(result).max() < 10.0


def test_the_package_docstring_runs_too(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line[4:] for line in softrig.__doc__.splitlines() if line.startswith("    ")]
    exec(compile("\n".join(lines), "softrig.__doc__", "exec"), {})
    assert (tmp_path / "beam.softrig").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_project_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
