"""The viewer's door: who may come in, what they may say, and that nobody who looks disturbs what is looked at."""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from softrig.viewer.commands import ACTIONS
from softrig.viewer.guard import Guard, cookie_name
from softrig.viewer.protocol import decode
from softrig.viewer.server import LARGEST_MESSAGE, LARGEST_UPLOAD, page_files
from softrig.viewer.view import view
from viewer_for_tests import runner, soft_bar
from viewer_visits_for_tests import Watcher, _waited, get, live, token


@pytest.fixture(scope="module")
def viewer():
    with view(soft_bar()) as made:
        yield made


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


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("a.exe", b"x", "a.exe is neither a character nor a model nor a take: .glb, .vrm, .softrig and .npz can be"),
        ("", b"x", "This file is neither"),
        ("a.glb/../b.py", b"x", "b.py is neither"),
        ("a.glb", b"no glTF at all", "a.glb: this is no 3D character, whatever its name says; what can be read is GLB"),
        ("a.softrig", b"\xff" * 100, "a.softrig: this is not a softrig model, whatever its name says; 'softrig build'"),
        ("a.vrm", b"", "a.vrm: is empty"),
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
