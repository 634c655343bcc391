"""What opens and closes a viewer or something else in it: uploads, Python and the command line."""

from __future__ import annotations

import asyncio
import http.client
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

import numpy as np
import pytest

from characters_for_tests import limb
from gltf_files_for_tests import plain_tetrahedron
from softrig.cli import main
from softrig.errors import InputError
from softrig.io.glb_writer import write_character_glb
from softrig.models.file import save_model
from softrig.viewer import server
from softrig.viewer.server import plain_name
from softrig.viewer.view import reach, view
from viewer_for_tests import soft_bar
from viewer_visits_for_tests import Watcher, _waited, get, live, token

# Files


def test_a_character_can_be_uploaded_and_plays_with_an_offer_to_build(tmp_path):
    write_character_glb(limb(), tmp_path / "limb.glb")
    with view(soft_bar()) as viewer, live(viewer) as line:
        page = Watcher(line).watch(10.0, lambda p: bool(p.frames))
        path = f"/upload?name=..%2F..%2Fmy%20limb.glb&token={token(viewer)}"
        status, _, content = get(viewer, path, method="POST", body=(tmp_path / "limb.glb").read_bytes())
        assert (status, content) == (200, b"opened\n")
        page.frames.clear()
        page.watch(20.0, lambda p: p.frames and p.frames[-1][0]["version"] == p.binaries[-1]["version"] == 2)
        greeting = page.last("hello")
        assert greeting["can"]["build"]
        assert not greeting["flesh"]
        assert [clip["name"] for clip in greeting["clips"]] == ["bend", "shake"]
        assert greeting["project"].endswith("my limb.toml")
        assert "/.." not in greeting["project"]
        assert not greeting["can"]["save"], "its folder goes with the viewer"
        page.texts.clear()
        page.send(do="save_project")
        page.watch(10.0, lambda p: bool(p.told()))
        assert "no project file" in page.told()[0]


def test_a_new_model_is_swapped_in_while_a_page_looks(tmp_path):
    with view(soft_bar()) as viewer, live(viewer) as line:
        page = Watcher(line)
        page.send(do="clip", name="sway")
        page.watch(10.0, lambda p: len(p.frames) > 5)
        viewer.runner.swap(soft_bar(), tmp_path / "bar.softrig")
        page.watch(20.0, lambda p: p.frames[-1][0]["version"] == 2)
        assert page.binaries[-1]["version"] == 2
        assert page.last("state")["clip"] == "sway"
        numbers = [header["number"] for header, _ in page.frames]
        assert numbers == sorted(set(numbers)), "frames go on being counted"


def test_names_of_files_mean_nothing_to_a_file_system():
    assert plain_name("../../etc/passwd.glb") == "passwd.glb"
    assert plain_name("..\\..\\x y.glb") == "x y.glb"
    assert plain_name("a:b*c?.glb") == "a_b_c_.glb"
    assert plain_name("...") == ""
    assert len(plain_name("x" * 1000 + ".glb")) == 100


# From Python


def test_closing_ends_every_thread_and_frees_the_port():
    before = threading.active_count()
    viewer = view(soft_bar(), clip="sway")
    assert viewer.runner.stage.playback.clip.name == "sway"
    with live(viewer) as line:
        Watcher(line).watch(10.0, lambda p: bool(p.frames))
        assert "token=" in repr(viewer)
        viewer.close()
        viewer.close()
        assert repr(viewer) == "Viewer(closed)"
    assert _waited(lambda: threading.active_count() <= before)
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", viewer.port))


def test_the_command_prints_the_address_and_ends_with_ctrl_c(tmp_path):
    save_model(soft_bar(), tmp_path / "bar.softrig")
    code = "from softrig.cli import main; main()"
    command = [sys.executable, "-c", code, "view", str(tmp_path / "bar.softrig"), "--no-browser", "--clip", "sway"]
    # Tests that run in the background of a shell inherit that Ctrl+C is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("The viewer is at http://127.0.0.1:")
        with urllib.request.urlopen(line.split()[-1], timeout=20) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "Traceback" not in errors
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bad.glb"], "bad.glb: this is no 3D character, whatever its name says; what can be read is GLB, VRM or glTF"),
        (["notes.md"], "notes.md: ending .md: softrig reads .blend, .fbx, .glb, .gltf, .softrig, .usd"),
        (
            ["missing.softrg"],
            "missing.softrg: there is no such file (softrig reads .blend, .fbx, .glb, .gltf, .soft",
        ),
        (["missing.glb"], "missing.glb: there is no such file"),
        (["missing.softrig"], "missing.softrig: there is no such file"),
        (["nobody"], "neither a file nor a built-in character called 'nobody'"),
        (["gorila"], "built-in character called 'gorila', did you mean 'gorilla'?"),
        (["limb.glb", "--clip", "Bend"], "no clip is called 'Bend', did you mean 'bend'? There are: 'bend', 'shake'"),
        (["limb.glb", "--clip", "fly"], "no clip is called 'fly'; there are: 'bend', 'shake'"),
        (["limb.glb", "--project", "missing.toml"], "missing.toml: there is no such file"),
        (["limb.glb", "--port", "TAKEN"], "cannot listen on 127.0.0.1, port"),
        (["limb.glb", "--up", "x"], "up is y or z, not 'x'"),
        (["."], "that is a folder"),
    ],
)
def test_the_command_says_in_one_line_what_is_wrong_before_it_compiles(tmp_path, monkeypatch, capsys, arguments, words):
    write_character_glb(limb(), tmp_path / "limb.glb")
    for name in ("bad.glb", "notes.md"):
        (tmp_path / name).write_text("no glTF at all")
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = ["softrig", "view", "--no-browser", *(port if each == "TAKEN" else each for each in arguments)]
        monkeypatch.setattr(sys, "argv", given)
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code == 1
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors.startswith("softrig: ")
    assert words in errors
    assert errors.count("\n") == 1


def test_a_mesh_without_skin_and_clips_can_be_looked_at(tmp_path):
    path = plain_tetrahedron().save(tmp_path / "stone.glb")
    with view(path) as viewer, live(viewer) as line:
        page = Watcher(line).watch(20.0, lambda p: bool(p.frames))
        assert page.last("hello")["clips"] == []
        assert page.last("hello")["joints"] == []
        with pytest.raises(InputError, match="there are: none"):
            view(path, clip="walk")


def test_a_take_that_is_uploaded_is_among_the_others_and_its_file_goes(tmp_path):
    with view(soft_bar(), clip="sway") as viewer, live(viewer) as line:
        page = Watcher(line)
        page.send(do="record", on=True)
        page.watch(20.0, lambda p: len(p.frames) > 10)
        page.send(do="record", on=False)
        recordings = viewer.runner.stage.studio.recordings
        assert _waited(lambda: "take 1" in recordings.takes)
        recordings.takes["take 1"].save(tmp_path / "a.npz")
        for body, status in (((tmp_path / "a.npz").read_bytes(), 200), (b"PK no take", 400)):
            path = f"/upload?name=a.npz&token={token(viewer)}"
            assert get(viewer, path, method="POST", body=body)[0] == status
        assert _waited(lambda: list(recordings.takes) == ["take 1", "take 2"])
        assert np.array_equal(recordings.takes["take 1"].arrays["poses"], recordings.takes["take 2"].arrays["poses"])
        assert list(viewer._server._site._uploads.iterdir()) == []


def test_of_several_uploads_the_last_one_is_kept(tmp_path):
    write_character_glb(limb(), tmp_path / "limb.glb")
    with view(soft_bar()) as viewer:
        for name in ("a.glb", "b.glb"):
            path = f"/upload?name={name}&token={token(viewer)}"
            assert get(viewer, path, method="POST", body=(tmp_path / "limb.glb").read_bytes())[0] == 200
        (left,) = viewer._server._site._uploads.iterdir()
        assert [file.name for file in left.iterdir()] == ["b.glb"]


def test_a_sender_that_stalls_does_not_keep_others_out(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "STALLED", 0.3)
    with view(soft_bar()) as viewer:
        line = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=20)
        line.putrequest("POST", f"/upload?name=a.glb&token={token(viewer)}")
        line.putheader("Content-Length", "1000")
        line.endheaders()
        line.send(b"glTF")
        answer = line.getresponse()
        assert (answer.status, answer.read()) == (400, b"The file did not arrive.\n")
        line.close()
        assert list(viewer._server._site._uploads.iterdir()) == []


def test_it_opens_within_a_running_event_loop_as_in_a_notebook():
    async def cell() -> int:
        with view(soft_bar()) as viewer:
            return await asyncio.to_thread(lambda: get(viewer, f"/?token={token(viewer)}")[0])

    assert asyncio.run(cell()) == 200


def test_a_port_that_is_taken_and_a_clip_that_is_not_there_are_named():
    before = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError, match="cannot listen on"):
        view(soft_bar(), port=taken.getsockname()[1])
    with pytest.raises(InputError, match="no clip is called 'x'"):
        view(soft_bar(), clip="x")
    assert _waited(lambda: threading.active_count() <= before)


def test_what_another_host_opens_is_said():
    with view(soft_bar()) as viewer:
        assert reach(viewer) is None
    with view(soft_bar(), host="0.0.0.0") as viewer:
        assert "every network interface" in reach(viewer)
        assert "not encrypted" in reach(viewer)
        assert viewer.url.startswith("http://127.0.0.1:")
