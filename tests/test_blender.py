"""Blender out of process, the plumbing: finding, running and installing it, against a fake one."""

from __future__ import annotations

import os
import re
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gltf_files_for_tests import everything
from softrig.cli import app
from softrig.conversion import check_output
from softrig.errors import InputError, Notice
from softrig.io import blender_install
from softrig.io.blender import VARIABLE, Blender, BlenderError, check_blender, find_blender, run_job
from softrig.io.blender_files import blender_vertices, write_alembic
from softrig.io.caches import PointCache, read_pc2
from softrig.io.characters import LOADERS, load_character
from softrig.io.format_error import FileFormatError
from softrig.io.gltf import load_gltf
from softrig.io.processes import job_folder
from softrig.io.usd import MissingExtraError

VERSION = 'answer(version="9.9.9", python="3.99", missing=[])'


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Make `SOFTRIG_BLENDER` a program that runs some lines of Python instead of Blender."""

    def install(lines: str) -> Blender:
        script, program = tmp_path / "fake.py", tmp_path / "fake-python"
        head = """
            import json, os, shutil, signal, subprocess, sys, time
            from pathlib import Path
            request = json.loads(Path(sys.argv[-1]).read_text()) if sys.argv[-1].endswith(".json") else {}
            def answer(**fields):
                Path(sys.argv[-1]).with_name("response.json").write_text(json.dumps(fields))
        """
        script.write_text(textwrap.dedent(head) + textwrap.dedent(lines))
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv(VARIABLE, str(program))
        return find_blender()

    return install


def a_job(blender, seconds=20.0):
    with job_folder() as folder:
        return run_job(blender, folder, {"job": "version"}, seconds=seconds)


def ended(stat: Path) -> bool:
    """Whether a process is gone, or dead and only not yet collected, by its /proc/…/stat."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


class TestFinding:
    def test_without_any_the_error_says_how_to_get_one(self, tmp_path, monkeypatch):
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        monkeypatch.setattr("softrig.io.blender.data_folder", lambda: tmp_path)
        with pytest.raises(MissingExtraError, match="softrig blender install"):
            find_blender()
        with pytest.raises(MissingExtraError, match=VARIABLE):
            check_output(tmp_path / "out.abc", None)
        (tmp_path / "hero.fbx").write_bytes(b"Kaydara FBX Binary")
        with pytest.raises(MissingExtraError, match="softrig blender install"):
            load_character(tmp_path / "hero.fbx")

    def test_the_installed_environment_is_found(self, tmp_path, monkeypatch):
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.setattr("softrig.io.blender.data_folder", lambda: tmp_path)
        python = tmp_path / "blender" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        python.parent.mkdir(parents=True)
        python.touch()
        assert find_blender().path == python

    def test_a_variable_that_names_nothing_is_told(self, monkeypatch):
        monkeypatch.setenv(VARIABLE, "/nowhere/python")
        with pytest.raises(MissingExtraError, match="/nowhere/python"):
            find_blender()

    def test_a_python_without_bpy_is_told(self, monkeypatch):
        with pytest.raises(BlenderError, match="no module bpy"):
            check_blender(Blender(Path(sys.executable), "a test"))

    def test_an_executable_runs_no_scripts_and_no_settings(self):
        command = Blender(Path("/opt/blender/blender"), "a test").command(Path("side.py"), Path("request.json"))
        assert {"--background", "--factory-startup", "--disable-autoexec"} <= set(command)
        assert command[-4:] == ["--python", "side.py", "--", "request.json"]
        assert command.index("--disable-autoexec") < command.index("--python")

    def test_the_command_tells_the_version(self, fake):
        fake(VERSION)
        result = CliRunner().invoke(app, ["blender", "check"])
        assert result.exit_code == 0, result.output
        assert "Blender 9.9.9 on Python 3.99" in result.stdout


class TestRunning:
    @pytest.mark.parametrize(
        ("lines", "told"),
        [
            ("print('out of luck'); sys.exit(7)", "with code 7 without an answer: out of luck"),
            ("os.kill(os.getpid(), signal.SIGSEGV)", "by SIGSEGV without an answer"),
            ("Path(sys.argv[-1]).with_name('response.json').write_text('{')", "answer cannot be read"),
            ("Path(sys.argv[-1]).with_name('response.json').write_text('9' * 2000000)", "2000000 bytes"),
            ("Path(sys.argv[-1]).with_name('response.json').write_text('[1]')", "no usable answer"),
            ("answer(version=3)", "no usable answer"),
            ("answer(error='the file is sour')", "Blender: the file is sour"),
            ("answer(version='9'); sys.exit(1)", "with code 1 with no usable answer"),
        ],
    )
    def test_what_goes_wrong_is_told(self, fake, lines, told):
        with pytest.raises(BlenderError, match=told):
            a_job(fake(lines))

    @pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
    def test_after_the_time_it_ends_with_all_that_it_started(self, fake, tmp_path):
        note = tmp_path / "child"
        blender = fake(f"""
            child = subprocess.Popen(["sleep", "600"])
            Path({str(note)!r}).write_text(str(child.pid))
            time.sleep(600)
        """)
        with pytest.raises(BlenderError, match=r"within 2 s and was ended"):
            a_job(blender, seconds=2.0)
        stat = Path(f"/proc/{note.read_text()}/stat")
        for _ in range(100):  # the system takes a moment to act on the signal
            if ended(stat):
                break
            time.sleep(0.1)
        assert ended(stat)

    def test_it_sees_neither_home_nor_secrets(self, fake, monkeypatch):
        monkeypatch.setenv("A_SECRET", "hush")
        answer = a_job(fake("answer(version='1', env=dict(os.environ), cwd=os.getcwd())"))
        assert "A_SECRET" not in answer["env"]
        assert answer["env"]["HOME"] == answer["env"]["BLENDER_USER_RESOURCES"] == answer["cwd"]
        assert not Path(answer["cwd"]).exists()


class TestFiles:
    @pytest.fixture
    def hero(self, tmp_path):
        path = tmp_path / "hero.fbx"
        path.write_bytes(b"Kaydara FBX Binary")
        return path

    @pytest.fixture
    def bar(self, tmp_path):
        return everything().save(tmp_path / "bar.glb")

    def test_the_endings_are_known(self):
        assert {".fbx", ".blend", ".usdc"} <= set(LOADERS)

    def test_a_converted_file_is_read_in_its_own_unit(self, fake, hero, bar):
        fake(f"""
            shutil.copy({str(bar)!r}, request["output"])
            answer(version="5", metres_per_unit=0.5, notes=["a hat is left out", request["input"]])
        """)
        with pytest.warns(Notice) as told:
            found = load_character(hero, scale=4.0)
        assert str(told[0].message) == f"{hero}: a hat is left out"
        assert str(hero.parent) not in str(told[1].message).removeprefix(str(hero))  # Blender saw a copy
        wanted = load_gltf(bar, scale=2.0)
        np.testing.assert_array_equal(found.rest_positions, wanted.rest_positions)
        assert (found.name, found.source) == ("hero", hero)
        assert [clip.name for clip in found.clips] == [clip.name for clip in wanted.clips]

    def test_a_scale_is_proposed_on_top_of_the_files_own_unit(self, fake, hero, bar):
        fake(f"""
            shutil.copy({str(bar)!r}, request["output"])
            answer(version="5", metres_per_unit=100.0)
        """)
        with pytest.warns(Notice, match=rf"^{re.escape(str(hero))}: .* corner to corner.*--scale 0\.01 "):
            load_character(hero)

    @pytest.mark.parametrize(
        ("lines", "told"),
        [
            ("answer(version='5', metres_per_unit=1.0)", "wrote no file"),
            ("Path(request['output']).write_text('MZ'); answer(version='5', metres_per_unit=1.0)", "something else"),
            ("os.symlink('/etc/hostname', request['output']); answer(version='5')", "wrote no file"),
            ("Path(request['output']).write_text('glTF'); answer(version='5', metres_per_unit='1')", "its unit is 1 m"),
            ("Path(request['output']).write_text('glTF'); answer(version='5', metres_per_unit=0.0)", "its unit is 0"),
            (
                "Path(request['output']).write_text('glTF'); answer(version='5', metres_per_unit=1.0)",
                "as Blender reads",
            ),
            ("answer(error='no mesh')", "no mesh"),
        ],
    )
    def test_a_bad_result_is_a_named_error(self, fake, hero, lines, told):
        fake(lines)
        with pytest.raises(FileFormatError, match=told) as error:
            load_character(hero)
        assert str(error.value).startswith(str(hero))

    def test_too_large_a_file_is_not_even_copied(self, fake, hero, monkeypatch):
        fake(VERSION)
        monkeypatch.setattr("softrig.io.blender_files.MOST_BYTES", 10)
        with pytest.raises(FileFormatError, match="18 bytes are more"):
            load_character(hero)

    def test_alembic_gets_the_frames_with_z_up(self, fake, tmp_path):
        kept = tmp_path / "kept.pc2"
        fake(f"""
            shutil.copy(request["input"], {str(kept)!r})
            Path(request["output"]).write_bytes(b"Ogawa" + json.dumps(request).encode())
            answer(version="5")
        """)
        rng = np.random.default_rng(0)
        cache = PointCache(rng.normal(size=(4, 3, 3)), np.arange(4) / 25.0, np.array([[0, 1, 2]]))
        write_alembic(tmp_path / "out.abc", cache, name="bar")
        x, y, z = np.moveaxis(cache.positions, 2, 0)
        np.testing.assert_array_equal(read_pc2(kept, fps=25.0).positions, np.stack([x, -z, y], axis=2))
        asked = (tmp_path / "out.abc").read_text()
        assert '"frames": 4' in asked
        assert '"start": 0' in asked
        assert '"fps": 25.0' in asked

    def test_alembic_refuses_what_it_cannot_hold(self, fake, tmp_path):
        fake("Path(request['output']).write_text('no'); answer(version='5')")
        points, triangle = np.zeros((2, 3, 3)), np.array([[0, 1, 2]])
        with pytest.raises(InputError, match="no triangles"):
            write_alembic(tmp_path / "out.abc", PointCache(points, [0.0, 1.0]))
        with pytest.raises(InputError, match="no frame from 0"):
            write_alembic(tmp_path / "out.abc", PointCache(points, [-1.0, 0.0], triangle))
        with pytest.raises(InputError, match="colours of shape"):
            write_alembic(tmp_path / "out.abc", PointCache(points, [0.0, 1.0], triangle), colours=np.ones((2, 4)))
        with pytest.raises(BlenderError, match="something else"):
            write_alembic(tmp_path / "out.abc", PointCache(points, [0.0, 1.0], triangle))
        assert not (tmp_path / "out.abc").exists()

    def test_vertices_of_the_wrong_shape_are_refused(self, fake, bar):
        fake("""
            import numpy
            numpy.savez(request["output"], mesh0=numpy.zeros((1, 5, 3)))
            answer(version="5", meshes=["bar"])
        """)
        with pytest.raises(BlenderError, match=r"\(1, 5, 3\)"):
            blender_vertices(bar, [0.0, 1.0])


class TestInstalling:
    @pytest.fixture
    def base(self, fake, tmp_path):
        """A Python whose `-m venv` makes an environment of fakes; `pip` does as `pip_lines` say."""

        def make(pip_lines: str) -> Path:
            return fake(f"""
                if "venv" in sys.argv:
                    target = Path(sys.argv[-1])
                    (target / "bin").mkdir(parents=True)
                    (target / "pyvenv.cfg").touch()
                    shutil.copy({str(tmp_path / "fake-python")!r}, target / "bin" / "python")
                elif "pip" in sys.argv:
                    {pip_lines}
                else:
                    {VERSION}
            """).path

        return make

    def test_it_is_made_tried_and_found_again(self, base, tmp_path):
        said: list[str] = []
        folder, python = tmp_path / "data" / "blender", base("print('Collecting', sys.argv[-1])")
        found = blender_install.install_blender(folder=folder, python=python, tell=said.append)
        assert found.version == "9.9.9"
        assert "Collecting bpy==5.0.1" in said
        assert any("1 GB" in line for line in said)
        said.clear()
        again = blender_install.install_blender(folder=folder, python=python, tell=said.append)
        assert again.version == "9.9.9"
        assert said == []

    def test_a_failure_leaves_nothing_behind(self, base, tmp_path):
        folder = tmp_path / "data" / "blender"
        with pytest.raises(BlenderError, match="No matching distribution"):
            blender_install.install_blender(
                folder=folder, python=base("print('No matching distribution'); sys.exit(1)")
            )
        assert not folder.exists()

    def test_foreign_folders_and_full_disks_are_respected(self, base, tmp_path, monkeypatch):
        python = base("pass")
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "diary.txt").touch()
        with pytest.raises(BlenderError, match="in the way"):
            blender_install.install_blender(folder=tmp_path / "mine", python=python)
        assert (tmp_path / "mine" / "diary.txt").exists()
        monkeypatch.setattr(blender_install, "NEEDED_BYTES", 1 << 60)
        with pytest.raises(BlenderError, match="GB are needed"):
            blender_install.install_blender(folder=tmp_path / "blender", python=python)

    def test_another_python_is_looked_for(self, monkeypatch):
        monkeypatch.setattr(blender_install, "PYTHON", (3, 2))
        monkeypatch.setenv("PATH", "")
        with pytest.raises(BlenderError, match=r"needs python3\.2"):
            blender_install.matching_python()
