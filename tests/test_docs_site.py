"""The site hangs together: its pages exist, links lead somewhere, all of the API and of the schema is told."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from docs_for_tests import ROOT
from softrig import api

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    """Where links into a page may lead: its headings, as the site names them, and marks set by hand."""
    found = set(re.findall(r'<a id="([\w-]+)"></a>', prose(page)))
    for heading in re.findall(r"^#+ (.+)$", prose_with_code(page), flags=re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", plain))
    return found


def prose_with_code(page: Path) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        reached = (page.parent / path).resolve() if path else page
        assert reached.exists(), f"{name_of(page)} links to {target}"
        if anchor and reached.suffix == ".md":
            known = sorted(anchors(reached))
            assert anchor in known, f"{name_of(page)} links to {target}; there are {known}"


def navigation() -> list[str]:
    """The pages that mkdocs.yml lists, read without MkDocs."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return re.findall(r"([\w/-]+\.md)\s*$", settings.split("\nnav:\n")[1], flags=re.MULTILINE)


def test_pages_of_the_navigation_exist() -> None:
    listed = navigation()
    assert len(listed) > 20
    missing = [page for page in listed if not (DOCS / page).exists()]
    assert not missing


def test_no_page_is_left_out_of_the_navigation() -> None:
    written = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    apart = {page for page in written if page.split("/")[0] in ("records", "gallery")}
    assert not written - apart - set(navigation())


def test_every_public_name_is_in_the_reference_once() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    told = re.findall(r"^::: (\S+)$", pages, flags=re.MULTILINE)
    paths = {name: getattr(api, name) for name in api.__all__}
    wanted = [f"{value.__module__}.{value.__qualname__}" for value in paths.values()]
    assert sorted(told) == sorted(wanted)


def settings_hook() -> ModuleType:
    return loaded_hook("settings")


def loaded_hook(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_hook", DOCS / "hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_parameter_pages_tell_every_setting_of_the_schema() -> None:
    hook = settings_hook()
    told = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "parameters").glob("*.md"))
    assert sorted(re.findall(r"<!-- settings: (.+?) -->", told)) == sorted(hook.TABLES)
    assert not hook.unknown_words()
    for name, model in hook.TABLES.items():
        table = hook.settings_table(name)
        shown = set(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE))
        assert set(model.model_fields) - shown <= hook.HIDDEN
        assert all(row.count(" | ") == 4 for row in table.replace("\\|", "").splitlines()), table


def test_defaults_and_ranges_come_from_the_schema() -> None:
    table = settings_hook().settings_table("simulation")
    assert re.search(r"\| `rate` \| 1/s \| 30 … 5000 \| 180 \|", table)
    assert re.search(r'\| `gravity` \|  \| `"change"`, `"full"`, `"off"` \| `"change"` \|', table)


def test_fields_of_two_tables_that_differ_need_words_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = settings_hook()
    assert hook.word_of("cubature", "method").meaning != hook.word_of("simulation", "method").meaning
    assert hook.word_of("material", "young") is hook.word_of("material of a pose", "young")
    words = {key: word for key, word in hook.WORDS.items() if not key.endswith(".method")}
    monkeypatch.setattr(hook, "WORDS", {**words, "method": hook.Word(meaning="How it is done.")})
    with pytest.raises(ValueError, match="'method' of cubature, simulation are different fields"):
        hook.settings_table("simulation")


@pytest.mark.parametrize("closing", [r"\Big)", r"\big]", r"\Bigr )", r"\Bigg\}", r"\big\rangle"])
def test_brackets_of_a_fixed_size_carry_no_index(closing: str) -> None:
    pytest.importorskip("latex2mathml")
    hook = loaded_hook("equations")
    with pytest.raises(ValueError, match="drawn too small"):
        hook.mathml(rf"\Big( x {closing}^{{-1}}", True)
    assert "<math" in hook.mathml(r"\left( x \right)^{-1} + \big( y \big) z^2", True)


def test_the_page_of_all_settings_names_them_all() -> None:
    page = (DOCS / "project.md").read_text(encoding="utf-8")
    hook = settings_hook()
    fields = {field for model in hook.TABLES.values() for field in model.model_fields} - hook.HIDDEN
    missing = sorted(field for field in fields if not re.search(rf"\b{field}\b", page))
    assert not missing


PICTURES = DOCS / "pictures" / "parameters"
RECORDS = sorted(PICTURES.glob("*.json"))
SHOWN = re.compile(r"^!\[([^\]]+)\]\((?:\.\./)?pictures/parameters/([\w-]+)\.(?:png|svg)\)$", re.MULTILINE)
PLAIN = {
    "file": {"scale", "seed", "parts"},
    "mesh": {"mesher"},
    "material of a pose": {"young", "poisson", "softness_map", "stiffness_map", "stiffness_range"},
    "poses": {"given", "clips"},
    "given pose": {"name", "clip", "time", "parameters"},
    "handle": {"name", "bone", "point", "segment"},
}
"""Settings that no picture would tell more of, or that another table's picture shows."""


def pages_with_pictures() -> dict[str, tuple[Path, str]]:
    """The page and the words for who cannot see it, of each picture of a setting."""
    found = {}
    for page in sorted(DOCS.rglob("*.md")):
        for words, name in SHOWN.findall(page.read_text(encoding="utf-8")):
            assert name not in found, f"{name} is shown twice"
            found[name] = page, words
    return found


def test_pictures_of_the_site_are_small() -> None:
    large = [path.name for path in PICTURES.iterdir() if path.stat().st_size > 80_000]
    assert not large


def test_every_picture_of_a_setting_is_shown_and_described() -> None:
    shown = pages_with_pictures()
    assert set(shown) == {path.stem for path in PICTURES.iterdir()}
    assert set(shown) - {record.stem for record in RECORDS} == {"tutorial"}
    assert all(len(words) > 20 for _, words in shown.values())


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_captions_are_those_of_the_run_that_made_the_picture(record: Path) -> None:
    told = json.loads(record.read_text(encoding="utf-8"))
    by_hand = re.search(r"\d", re.sub(r"\{[^}]*\}", "", told["caption"]))
    assert by_hand is None, "a number of a caption must come from the run"
    page, _ = pages_with_pictures()[record.stem]
    text = page.read_text(encoding="utf-8")
    assert f"parameters/{record.stem}." in text.split(f"\n\n*{told['caption'].format(**told['numbers'])}*\n")[0][-200:]


def test_every_setting_has_a_picture_on_the_page_that_names_it() -> None:
    tables, shown = settings_hook().TABLES, pages_with_pictures()
    pictured: dict[str, set[str]] = {name: set() for name in tables}
    for record in RECORDS:
        text = shown[record.stem][0].read_text(encoding="utf-8")
        for setting in json.loads(record.read_text(encoding="utf-8"))["settings"]:
            table, key = setting.split(".")
            pictured[table].add(key)
            assert f"<!-- settings: {table} -->" in text, f"{record.stem} shows {setting} on another page"
    hidden = settings_hook().HIDDEN
    for name, model in tables.items():
        wanted = set(model.model_fields) - PLAIN.get(name, set()) - (hidden if name == "file" else set())
        assert pictured[name] == wanted, name


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("latex2mathml") is None:
        pytest.skip("MkDocs is not installed: `make docs` installs it and builds the site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    fetched = re.findall(r'(?:<script[^>]+src|<link[^>]+rel="stylesheet"[^>]+href)="(https?:[^"]+)"', home)
    assert not fetched
    equations = (tmp_path / "site" / "method" / "step.html").read_text(encoding="utf-8")
    assert "<math" in equations
    assert "$$" not in equations
