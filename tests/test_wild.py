"""fTetWild out of process: the plumbing against a fake one, always; the real one where pytetwild is found."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from softrig.characters import built_in
from softrig.cli import app
from softrig.errors import InputError, Notice
from softrig.io.usd import MissingExtraError
from softrig.meshing.boxes import box_tets
from softrig.meshing.wild import VARIABLE, WildMeshError, first_edge_length, wild_tet_mesh
from softrig.volume import character_volume
from soups_for_tests import box, sphere

CUBE = box((1.0, 1.0, 1.0))


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Make `SOFTRIG_WILD` a program that runs some lines of Python instead of fTetWild."""

    def install(lines: str) -> None:
        script, program = tmp_path / "fake.py", tmp_path / "fake-python"
        head = """
            import os, signal, sys, time
            from pathlib import Path
            import numpy as np
            job = Path(sys.argv[-1])
            asked = np.load(job)
            def give(points, tets):
                np.savez(job.with_name("tets.npz"), points=points, tets=tets)
        """
        script.write_text(textwrap.dedent(head) + textwrap.dedent(lines))
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv(VARIABLE, str(program))

    return install


@pytest.fixture
def boxes(fake, tmp_path):
    """A fake that fills the unit cube with the more tets the shorter the edges asked for."""
    for count in range(1, 13):
        mesh = box_tets(np.ones(3), (count, count, count))
        np.savez(tmp_path / f"{count}.npz", points=mesh.vertices - 0.5, tets=mesh.elements)
    fake(f"""
        count = int(np.clip(round(1.0 / (float(asked["edge_length"]) * 3.0 ** 0.5)), 1, 12))
        with open({str(tmp_path / "asked")!r}, "a") as log:
            print(float(asked["edge_length"]), float(asked["epsilon"]), file=log)
        with np.load({str(tmp_path)!r} + f"/{{count}}.npz") as arrays:
            give(arrays["points"], arrays["tets"])
    """)
    return tmp_path / "asked"


class TestPlumbing:
    def test_without_the_package_the_extra_is_named(self, monkeypatch, tmp_path):
        bare = tmp_path / "python"
        # -S hides installed packages but for NumPy, which the script needs first.
        place = Path(np.__file__).parent.parent
        hidden = f"import sys; sys.path.append({str(place)!r}); sys.modules['pytetwild'] = None"
        runner = tmp_path / "run.py"
        runner.write_text(
            f"{hidden}\nimport runpy\nsys.argv = sys.argv[2:]\nrunpy.run_path(sys.argv[0], None, '__main__')\n"
        )
        bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{runner}" "$@"\n')
        bare.chmod(0o755)
        monkeypatch.setenv(VARIABLE, str(bare))
        with pytest.raises(MissingExtraError, match=r"pip install 'softrig\[wild\]'"):
            wild_tet_mesh(*CUBE, tets=100)

    def test_a_variable_that_names_nothing_is_told(self, monkeypatch):
        monkeypatch.setenv(VARIABLE, "/nowhere/python")
        with pytest.raises(MissingExtraError, match="/nowhere/python"):
            wild_tet_mesh(*CUBE, tets=100)

    def test_the_tets_carry_the_surface_in_metres(self, boxes):
        vertices, triangles = 4.0 * CUBE[0] + 7.0, CUBE[1]
        found = wild_tet_mesh(vertices, triangles, edge_length=1.0)
        assert found.spacing == pytest.approx(1.0)
        assert found.quality.mesh_volume == pytest.approx(64.0)
        assert found.density_factor == pytest.approx(1.0)
        assert found.mesh.vertices.min() == pytest.approx(7.0)
        np.testing.assert_allclose(found.embedding.carry(found.mesh.vertices), vertices, atol=1e-12)
        edge, epsilon = map(float, boxes.read_text().split())
        assert edge == pytest.approx(0.25 / np.sqrt(3.0))
        assert epsilon == pytest.approx(min(0.1 * edge, 1e-2))

    def test_the_count_is_searched(self, boxes):
        seen: list[tuple[int, int]] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Notice)
            found = wild_tet_mesh(*CUBE, tets=2000, progress=lambda done, total: seen.append((done, total)))
        passes = len(boxes.read_text().splitlines())
        assert 1 <= passes <= 4
        assert abs(found.quality.tets / 2000 - 1.0) < 0.35
        assert seen[-1][0] == seen[-1][1]
        assert len(seen) == passes + 1

    def test_a_count_out_of_reach_draws_a_notice(self, boxes):
        with pytest.warns(Notice, match="instead of 200000: fTetWild came no closer"):
            found = wild_tet_mesh(*CUBE, tets=200_000)
        assert found.quality.tets < 20_000

    def test_an_inside_out_soup_is_handed_over_outward(self, fake, tmp_path):
        kept = tmp_path / "kept.npz"
        fake(f"np.savez({str(kept)!r}, v=asked['vertices'], t=asked['triangles']); sys.exit(1)")
        with pytest.raises(WildMeshError, match="with code 1"):
            wild_tet_mesh(CUBE[0], CUBE[1][:, ::-1], tets=100)
        with np.load(kept) as arrays:
            a, b, c = (arrays["v"][arrays["t"][:, k]] for k in range(3))
        assert np.einsum("td,td->", a, np.cross(b, c)) / 6.0 == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("lines", "told"),
        [
            ("os.kill(os.getpid(), signal.SIGSEGV)", "by SIGSEGV"),
            ("print('no luck'); sys.exit(5)", "with code 5: no luck"),
            ("pass", "result cannot be read"),
            ("job.with_name('tets.npz').write_text('PK')", "result cannot be read"),
            ("give(np.zeros((4, 3)), np.zeros((0, 4), int))", "no tets"),
            ("give(np.zeros((4, 2)), np.zeros((1, 4), int))", "points .4, 2. and tets"),
            ("give(np.zeros((4, 3)), np.zeros((1, 4)))", "float64"),
            ("give(np.zeros((4, 3)), np.full((1, 4), 9))", "do not exist"),
            ("give(np.full((4, 3), np.nan), np.array([[0, 1, 2, 3]]))", "not finite"),
            ("give(np.vstack([np.zeros(3), np.eye(3)]), np.array([[0, 2, 1, 3]]))", "1 of 1 tets inside out"),
        ],
    )
    def test_what_goes_wrong_is_told(self, fake, lines, told):
        fake(lines)
        with pytest.raises(WildMeshError, match=told):
            wild_tet_mesh(*CUBE, tets=100)

    def test_time_runs_out(self, fake):
        fake("time.sleep(600)")
        with pytest.raises(WildMeshError, match="was ended"):
            wild_tet_mesh(*CUBE, tets=100, seconds=1.0)

    @pytest.mark.parametrize("wrong", [{"tets": 3}, {"edge_length": 0.0}, {"edge_length": 99.0}])
    def test_wrong_settings_are_refused(self, wrong):
        with pytest.raises(InputError, match="must be within"):
            wild_tet_mesh(*CUBE, **wrong)

    def test_the_first_guess_follows_volume_and_area(self):
        length = first_edge_length(2.0, 3.0, 5000)
        assert 8.5 * 2.0 / length**3 + 3.0 * 3.0 / length**2 == pytest.approx(5000, rel=1e-6)

    def test_meshers_are_chosen_by_name(self):
        with pytest.raises(InputError, match="no mesher 'tame'; there are lattice, wild"):
            character_volume(built_in("x"), mesher="tame")

    def test_the_command_knows_the_mesher(self, tmp_path):
        help_text = CliRunner().invoke(app, ["mesh", "--help"], env={"COLUMNS": "200"}).stdout
        assert "--mesher" in help_text


def _has_package() -> bool:
    named = os.environ.get(VARIABLE)
    if not named:
        return importlib.util.find_spec("pytetwild") is not None
    seek = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pytetwild') is None)"
    return subprocess.run([named, "-c", seek], check=False).returncode == 0


@pytest.mark.skipif(not _has_package(), reason=f"no pytetwild: pip install 'softrig[wild]' or set {VARIABLE}")
class TestRealPackage:
    @pytest.mark.parametrize("turned", [False, True])
    def test_a_ball_is_filled(self, turned):
        vertices, triangles = sphere(3, 0.1)
        found = wild_tet_mesh(vertices, triangles[:, ::-1] if turned else triangles, tets=1500)
        quality = found.quality
        assert abs(quality.tets / 1500 - 1.0) < 0.1
        assert quality.smallest_dihedral > 8.0
        assert quality.volume_ratio == pytest.approx(1.0, abs=0.02)
        assert (quality.parts, quality.pinched_edges) == (1, 0)
        np.testing.assert_allclose(found.embedding.carry(found.mesh.vertices), vertices, atol=1e-9)

    def test_nothing_is_left_behind(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert wild_tet_mesh(*sphere(2), edge_length=0.5).quality.tets > 100
        assert list(tmp_path.iterdir()) == []

    def test_an_open_surface_is_closed(self):
        vertices, triangles = sphere(3)
        found = wild_tet_mesh(vertices, triangles[20:], edge_length=0.4)
        assert found.quality.mesh_volume == pytest.approx(4.0, abs=0.2)

    def test_a_character_is_filled(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Notice)
            volume = character_volume(built_in("x"), tets=2500, mesher="wild")
        assert abs(volume.lattice.quality.tets / 2500 - 1.0) < 0.25
        carried = volume.lattice.embedding.carry(volume.lattice.mesh.vertices)
        np.testing.assert_allclose(carried, volume.surface_vertices, atol=1e-9)
