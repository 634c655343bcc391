"""The viewer's door: who may come in, what they may say, and that nobody who looks disturbs what is looked at."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from characters_for_tests import limb
from gltf_files_for_tests import plain_tetrahedron
from softrig.cli import main
from softrig.errors import InputError
from softrig.io.glb_writer import write_character_glb
from softrig.models.file import save_model
from softrig.viewer import server
from softrig.viewer.commands import ACTIONS
from softrig.viewer.guard import Guard, cookie_name
from softrig.viewer.protocol import decode
from softrig.viewer.server import LARGEST_MESSAGE, LARGEST_UPLOAD, page_files, plain_name
from softrig.viewer.view import reach, view
from viewer_for_tests import runner, soft_bar


@pytest.fixture(scope="module")
def viewer():
    with view(soft_bar()) as made:
        yield made


def token(viewer) -> str:
    return viewer.url.partition("token=")[2]


def get(viewer, path: str, *, method: str = "GET", body: bytes | None = None, **headers: str):
    """(status, headers, content) of a request that says exactly what is given."""
    line = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=20)
    try:
        line.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            line.putheader(name.replace("_", "-"), value)
        if body is not None:
            line.putheader("Content-Length", str(len(body)))
        line.endheaders(body)
        answer = line.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        line.close()


def live(viewer, secret: str | None = None, **options):
    return connect(
        f"ws://127.0.0.1:{viewer.port}/live?token={token(viewer) if secret is None else secret}",
        max_size=None,
        compression=None,
        **options,
    )


class Watcher:
    """A page: sends commands, acknowledges frames if it `draws`, keeps what it is told."""

    def __init__(self, socket, draws: bool = True) -> None:
        self.socket, self.draws = socket, draws
        self.frames: list[tuple[dict, dict]] = []
        self.texts: list[dict] = []
        self.binaries: list[dict] = []

    def send(self, **command) -> None:
        self.socket.send(json.dumps(command))

    def watch(self, seconds: float = 20.0, until=lambda _: False) -> Watcher:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until(self):
            try:
                message = self.socket.recv(timeout=max(end - time.monotonic(), 0.01))
            except TimeoutError:
                break
            if isinstance(message, str):
                self.texts.append(json.loads(message))
                continue
            header, arrays = decode(message)
            if header["is"] == "frame":
                self.frames.append((header, arrays))
                if self.draws:
                    self.send(do="drawn", number=header["number"])
            else:
                self.binaries.append(header)
        return self

    def told(self) -> list[str]:
        return [text["text"] for text in self.texts if text["is"] == "told"]

    def last(self, kind: str) -> dict:
        return [text for text in self.texts if text["is"] == kind][-1]


def positions(frame) -> np.ndarray:
    header, arrays = frame
    return np.array(header["low"]) + np.array(header["step"]) * arrays["soft"]


# Who may come in


def test_the_page_opens_with_the_token_and_then_by_cookie(viewer):
    status, headers, content = get(viewer, f"/?token={token(viewer)}")
    assert status == 200
    assert b"<html" in content
    cookie = headers["set-cookie"]
    assert cookie.startswith(f"{cookie_name(viewer.port)}={token(viewer)};")
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}
    status, headers, _ = get(viewer, "/", Cookie=cookie.partition(";")[0])
    assert status == 200
    assert "set-cookie" not in headers


def test_every_answer_carries_the_headers_that_keep_others_out(viewer):
    for path in (f"/?token={token(viewer)}", "/", f"/page/nothing.js?token={token(viewer)}"):
        _, headers, _ = get(viewer, path)
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'self'" in headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/files/a/b", "/nowhere"])
def test_without_the_token_nothing_is_told(viewer, path):
    for query in ("", "?token=", "?token=wrong", f"?token={token(viewer)[:-1]}", f"?token={token(viewer)}&token=x"):
        assert get(viewer, path + query)[0] == 403
    assert get(viewer, path, Cookie=f"softrig_{viewer.port + 1}={token(viewer)}")[0] == 403
    assert get(viewer, path, Cookie=f"{cookie_name(viewer.port)}=wrong")[0] == 403
    assert get(viewer, "/upload?name=a.glb", method="POST", body=b"x")[0] == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil:{port}",
        "",
        "a@127.0.0.1:{port}",
    ],
)
def test_another_host_is_refused(viewer, host):
    given = host.format(port=viewer.port)
    assert get(viewer, f"/?token={token(viewer)}", Host=given)[0] in (400, 403)
    assert get(viewer, f"/?token={token(viewer)}", Host=f"localhost:{viewer.port}")[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_pages_of_other_sites_are_refused(viewer, origin):
    given = origin.format(port=viewer.port)
    assert get(viewer, f"/?token={token(viewer)}", Origin=given)[0] == 403
    with pytest.raises(InvalidStatus) as refused, live(viewer, origin=given):
        pass
    assert refused.value.response.status_code == 403


def test_our_own_origin_may_come_in(viewer):
    with live(viewer, origin=f"http://127.0.0.1:{viewer.port}") as line:
        assert Watcher(line).watch(10.0, lambda page: bool(page.frames)).frames


@pytest.mark.parametrize("secret", ["", "wrong"])
def test_the_websocket_needs_the_token_too(viewer, secret):
    with pytest.raises(InvalidStatus) as refused, live(viewer, secret):
        pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/page/../server.py",
        "/page/..%2fserver.py",
        "/page/%2e%2e/server.py",
        "/page//etc/passwd",
        "/page/..\\server.py",
        "/../../../../etc/passwd",
        "/files/../../etc/passwd",
        "/files/x/..%2f..%2fetc%2fpasswd",
        "/page/index.html%00.js",
    ],
)
def test_no_name_leads_out_of_the_page(viewer, path):
    status, _, content = get(viewer, f"{path}?token={token(viewer)}")
    assert status == 404
    assert b"root:" not in content
    assert b"import" not in content


def test_the_files_of_the_page_are_there_and_nothing_else(viewer):
    for name, (content, kind) in page_files().items():
        status, headers, found = get(viewer, f"/page/{name}?token={token(viewer)}")
        assert (status, found) == (200, content)
        assert headers["content-type"] == kind
    assert get(viewer, f"/page/server.py?token={token(viewer)}")[0] == 404
    assert get(viewer, f"/files/{'0' * 16}/x.glb?token={token(viewer)}")[0] == 404
    assert get(viewer, f"/?token={token(viewer)}", method="DELETE")[0] == 405


def test_a_host_for_all_networks_takes_addresses_but_no_foreign_names():
    guard = Guard(None, token="t", port=99, host="0.0.0.0")  # type: ignore[arg-type]
    assert guard._is_ours("//192.168.1.5:99")
    assert guard._is_ours("//[fe80::1]:99")
    assert not guard._is_ours("//evil.example:99")
    assert not Guard(None, token="t", port=99, host="127.0.0.1")._is_ours("//192.168.1.5:99")  # type: ignore[arg-type]
    named = Guard(None, token="t", port=99, host="box.lan")  # type: ignore[arg-type]
    assert named._is_ours("http://box.lan:99")


# What a page sees and says


def test_a_page_is_told_everything_and_sees_it_move(viewer):
    with live(viewer) as line:
        page = Watcher(line)
        page.send(do="clip", name="sway")
        page.watch(20.0, lambda p: len(p.frames) >= 40)
        assert [text["is"] for text in page.texts][:1] == ["hello"]
        assert page.last("hello")["port"] == viewer.port
        assert page.last("state")["clip"] == "sway"
        assert page.binaries[0]["is"] == "geometry"
        assert page.frames[0][0]["version"] == page.binaries[0]["version"]
        assert np.abs(positions(page.frames[-1]) - positions(page.frames[0])).max() > 0.01
        numbers = [header["numbers"] for header, _ in page.frames if "numbers" in header]
        assert numbers[-1]["step_ms"]["median"] > 0.0
        assert set(numbers[-1]) >= {"rate", "behind", "energy", "weights", "counters", "offset_mm", "surface_ms"}


def test_two_pages_see_the_same_and_one_may_go(viewer):
    with live(viewer) as first, live(viewer) as second:
        one, two = Watcher(first), Watcher(second)
        one.send(do="speed", value=0.5)
        two.watch(10.0, lambda p: any(t["is"] == "state" and t["speed"] == 0.5 for t in p.texts))
        assert two.last("state")["speed"] == 0.5
        first.close()
        count = len(two.frames)
        two.watch(10.0, lambda p: len(p.frames) > count + 5)
        assert len(two.frames) > count + 5
        two.send(do="speed", value=1.0)


def test_a_page_that_goes_lets_go_of_what_it_held(viewer):
    with live(viewer) as line:
        page = Watcher(line).watch(10.0, lambda p: bool(p.frames))
        page.send(do="pull", id="x", vertex=5, to=[1, 1, 1])
        assert _waited(lambda: len(viewer.runner.stage.touch.pulls) == 1)
    with live(viewer):
        assert _waited(lambda: not viewer.runner.stage.touch.pulls)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        "null",
        "17",
        '"play"',
        "{}",
        '{"do": 7}',
        '{"do": "dance"}',
        '{"do": "speed", "value": NaN}',
        '{"do": "speed", "value": 1e999}',
        '{"do": "speed", "value": "1"}',
        '{"do": "seek", "time": -Infinity}',
        '{"do": "pull", "id": "a", "vertex": 99999999, "to": [0, 0, 0]}',
        '{"do": "pull", "id": "a", "vertex": 1, "to": [0, 0]}',
        '{"do": "pull", "id": "a", "vertex": 1.5, "to": [0, 0, 0]}',
        '{"do": "pull", "id": "a", "vertex": -1, "to": [0, 0, 0]}',
        '{"do": "poke", "centre": [1e300, 0, 0], "radius": 1}',
        '{"do": "tune", "name": "damping_ratio", "value": 1' + "0" * 400 + "}",
        "[" * 20000,
    ],
)
def test_what_makes_no_sense_is_answered_and_nothing_breaks(viewer, text):
    with live(viewer) as line:
        page = Watcher(line)
        line.send(text)
        page.watch(10.0, lambda p: bool(p.told()))
        assert page.told()
        assert page.watch(10.0, lambda p: bool(p.frames)).frames
    assert viewer.runner.is_running


def test_a_message_that_is_too_long_costs_the_sender_its_line_and_nobody_else(viewer):
    with live(viewer) as other, live(viewer) as line:
        line.send("x" * (LARGEST_MESSAGE + 1))
        with pytest.raises(ConnectionClosed) as closed:
            Watcher(line, draws=False).watch(10.0)
        assert closed.value.rcvd.code == 1009
        assert Watcher(other).watch(10.0, lambda p: bool(p.frames)).frames


def test_a_flood_of_commands_is_dammed(viewer):
    with live(viewer) as line:
        page = Watcher(line)
        for _ in range(3000):
            line.send('{"do":"speed","value":1}')
        page.watch(10.0, lambda p: any("at once" in text for text in p.told()))
        assert any("Too many commands at once" in text for text in page.told())
        assert page.watch(10.0, lambda p: bool(p.frames)).frames


# Nobody who looks disturbs


def test_a_page_that_never_draws_gets_two_frames_and_slows_nothing(viewer):
    with live(viewer) as asleep:
        sleeper = Watcher(asleep, draws=False).watch(2.0)
        assert len(sleeper.frames) == 2
        before, start = viewer.runner.stage.time, time.monotonic()
        with live(viewer) as awake:
            page = Watcher(awake)
            page.watch(2.0)
            passed = viewer.runner.stage.time - before
            assert passed > 0.7 * (time.monotonic() - start), "time goes on at its own rate"
            assert len(page.frames) > 20
        # It wakes: what it gets is the latest, not what it missed.
        sleeper.send(do="drawn", number=sleeper.frames[-1][0]["number"])
        newest = viewer.runner.stage.picture.number
        sleeper.frames.clear()
        sleeper.watch(10.0, lambda p: len(p.frames) >= 1)
        assert sleeper.frames[0][0]["number"] >= newest - 2


def test_a_page_that_does_not_even_read_slows_nothing(viewer):
    """A raw line that says hello and never takes anything from its socket again."""
    with socket.create_connection(("127.0.0.1", viewer.port)) as raw:
        lines = [
            f"GET /live?token={token(viewer)} HTTP/1.1",
            f"Host: 127.0.0.1:{viewer.port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
        ]
        raw.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        assert raw.recv(12) == b"HTTP/1.1 101"
        before, start = viewer.runner.stage.time, time.monotonic()
        with live(viewer) as awake:
            assert len(Watcher(awake).watch(2.0).frames) > 20
        assert viewer.runner.stage.time - before > 0.7 * (time.monotonic() - start)


def test_twenty_visits_leave_nothing_behind(viewer):
    with live(viewer) as line:
        Watcher(line).watch(10.0, lambda p: bool(p.frames))
    assert _waited(lambda: len(viewer._server.pages) == 0)
    before = threading.active_count()
    for visit in range(20):
        with live(viewer) as line:
            Watcher(line, draws=visit % 2 == 0).watch(10.0, lambda p: bool(p.frames))
            if visit % 3 == 0:
                line.socket.close()  # gone without a word
    assert _waited(lambda: len(viewer._server.pages) == 0)
    assert threading.active_count() <= before + 1
    assert viewer.runner.is_running


def test_too_many_pages_are_turned_away(viewer):
    with ExitStack() as lines:
        for _ in range(16):
            lines.enter_context(live(viewer))
        with live(viewer) as one_more, pytest.raises(ConnectionClosed) as closed:
            Watcher(one_more).watch(10.0)
        assert closed.value.rcvd.code == 1013


def test_random_commands_never_end_the_runner(tmp_path):
    """Seeded: every command, with values that fit and values that do not."""
    chance = random.Random(5)
    values = [
        None, True, False, 0, 1, -1, 3, 7.5, 1e300, -1e-300, 10**30, float("nan"), float("inf"), "", "a", "x" * 500, [],
        [1e9, 0, 0], [None] * 3, {}, {"a": 1},
    ]  # fmt: skip
    places = [[0, 0, 0], [0.6, 0.3, 0.0], [0.3, -0.5, 5.0], [1e5, 0, 0]]
    fitting = {
        "on": [True, False],
        "value": [0.0, 0.5, 1, 2, "full", "off", "fat", [0, 0, 50], 12],
        "name": [
            "wave",
            "held",
            "tets",
            "magnitude",
            "softness",
            "damping_ratio",
            "gravity",
            "modes",
            "stiffness",
            "wind",
        ],
        "time": [0.0, 0.3, 99],
        "what": ["soft", "plain", "both", "split"],
        "id": ["a", "b", 1],
        "vertex": [0, 5, 20, 60],
        "to": places,
        "centre": [*places, None],
        "radius": [0.0, 0.05, 1e3],
        "offset": places,
        "angles": places,
        "joint": [0, 1, 2],
        "index": [0, 5, None],
        "amplitude": [0.1, None],
        "pose": ["pose 1", None],
        "strength": [0.5, 1],
        "take": ["take 1", None],
    }
    names = [name for name in ACTIONS if name not in ("build", "bake", "save_take", "sketch_build")] + ["nonsense"]
    with runner(project_path=tmp_path / "bar.toml") as made:
        for _ in range(1500):
            sane = chance.random() < 0.7
            command = {field: chance.choice(good if sane else values) for field, good in fitting.items()}
            command["do"] = chance.choice(names)
            made.command(command, page=chance.randint(0, 2))
            made.tick(chance.choice([1, 1, 1, 5]))
        surprises = [text for _, text in made.audience.told if "went wrong" in text]
        assert not surprises
        made.command({"do": "play", "on": True})
        made.command({"do": "speed", "value": 1.0})
        made.command({"do": "mode", "index": None})
        made.command({"do": "clip", "name": "sway"})
        time_before = made.stage.time
        made.tick(1)
        assert made.stage.time > time_before
        assert np.isfinite(made.stage.subject.soft_positions()).all()
        header, _ = decode(made.audience.latest)
        assert header["is"] == "frame"


def test_whatever_goes_wrong_in_a_frame_the_thread_lives_on():
    with runner() as made:
        made.tick()
        move = made.stage.subject.move
        made.stage.subject.move = lambda *_, **__: (_ for _ in ()).throw(ZeroDivisionError("no"))
        made.tick()
        assert any("ZeroDivisionError" in text for _, text in made.audience.told)
        made.stage.subject.move = move
        before = made.stage.time
        made.tick()
        assert made.stage.time > before


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


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("a.exe", b"x", "a.exe is neither a character nor a model nor a take: .glb, .vrm, .softrig and .npz can be"),
        ("", b"x", "This file is neither"),
        ("a.glb/../b.py", b"x", "b.py is neither"),
        ("a.glb", b"no glTF at all", "a.glb: this is no 3D character, whatever its name says; what can be read is GLB"),
        ("a.softrig", b"\xff" * 100, "a.softrig: this is not a softrig model, whatever its name says; 'softrig build'"),
        ("a.vrm", b"", "a.vrm: this is no 3D character"),
    ],
)
def test_files_that_are_none_are_refused_in_a_plain_sentence_and_nothing_changes(viewer, name, body, words):
    version = viewer.runner.stage.version
    found, _, content = get(viewer, f"/upload?name={name}&token={token(viewer)}", method="POST", body=body)
    assert found == 400
    assert content.decode().startswith(words)
    assert content.count(b"\n") == 1
    assert viewer.runner.stage.version == version
    assert viewer.runner.is_running


def test_an_upload_beyond_the_bound_is_refused_before_it_is_sent(viewer):
    line = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=20)
    line.putrequest("POST", f"/upload?name=a.glb&token={token(viewer)}")
    line.putheader("Content-Length", str(LARGEST_UPLOAD + 1))
    line.endheaders()
    assert line.getresponse().status == 413
    line.close()


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
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
        (["missing.glb"], "missing.glb: does not exist"),
        (["missing.softrig"], "missing.softrig: there is no such file"),
        (["nobody"], "neither a file nor a built-in character called 'nobody'"),
        (["limb.glb", "--clip", "fly"], "no clip is called 'fly'; there are: 'bend', 'shake'"),
        (["limb.glb", "--project", "missing.toml"], "missing.toml"),
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


def _waited(condition, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
