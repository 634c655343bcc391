"""A module imports only lower layers or its own package (docs/architecture.md)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import softrig

SOURCE = Path(softrig.__file__).parent

# Siblings of one layer are blind to each other.
LAYERS = [
    {"errors", "faults", "version", "files", "words"},
    {"numerics"},
    {"fem", "dynamics", "render", "rig"},
    {"models"},
    {"io", "simulation", "fidelity"},
    {"meshing"},
    {"poses"},
    {"bases"},
    {"forces"},
    {"bodies", "machine", "console", "report", "project"},
    {"characters", "inspection", "conversion", "volume"},
    {"pipeline"},
    {"viewer"},
    {"demo", "bench"},
    {"figures"},
    {"commands"},
    {"api", "cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            names |= {f"softrig.{a.name}" for a in node.names} if node.module == "softrig" else {node.module}
    return {name for name in names if name.startswith("softrig.")}


MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down_the_layers(path: Path) -> None:
    home = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert home in LEVEL, f"{home} has no layer: add it to docs/architecture.md and to this test"
    for name in imports_of(path):
        target = package_of(name)
        if target != home:
            assert LEVEL[target] < LEVEL[home], f"{path.name} in {home} imports {name}, which is not below it"


def test_a_forbidden_import_would_be_seen(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from softrig.models.full import FullBody\nimport softrig.bases.modes\nfrom softrig import api\n")
    assert imports_of(wrong) == {"softrig.models.full", "softrig.bases.modes", "softrig.api"}
    assert LEVEL["models"] > LEVEL["fem"]


def test_importing_softrig_loads_nothing_heavy_and_prints_nothing() -> None:
    code = "import sys, softrig; print(sorted({'numpy', 'scipy', 'numba', 'igl', 'PIL', 'rich'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
    assert result.stderr == ""


def test_every_public_name_exists_once() -> None:
    from softrig import api

    assert len(set(api.__all__)) == len(api.__all__)
    for name in api.__all__:
        assert getattr(softrig, name) is getattr(api, name)
    with pytest.raises(AttributeError, match="no 'nonsense'"):
        _ = softrig.nonsense
