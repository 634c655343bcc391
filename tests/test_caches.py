"""Point caches: byte layout against the published formats, exact round trips, damaged files refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from softrig.errors import IndexRangeError, InputError, NotFiniteError
from softrig.io.caches import (
    CacheFileError,
    PointCache,
    read_mdd,
    read_npz,
    read_obj_sequence,
    read_pc2,
    write_mdd,
    write_npz,
    write_obj_sequence,
    write_pc2,
)

TRIANGLES = np.array([[0, 1, 2], [2, 1, 3], [3, 4, 0]])


@pytest.fixture
def cache():
    rng = np.random.default_rng(3)
    positions = rng.normal(size=(4, 5, 3)) * 10.0 ** rng.integers(-12, 6, size=(4, 5, 3))
    return PointCache(positions, 0.5 + np.arange(4) / 60.0, TRIANGLES)


def test_pc2_bytes_follow_the_published_layout(tmp_path):
    write_pc2(tmp_path / "a.pc2", PointCache([[[1.0, -2.0, 0.5]], [[4.0, 5.0, 6.0]]], [0.5, 0.75]))
    # 12 characters, version, points, first frame, frames a sample, samples; then x y z: all little-endian.
    expected = b"POINTCACHE2\0" + struct.pack("<iiffi", 1, 1, 2.0, 1.0, 2) + struct.pack("<6f", 1, -2, 0.5, 4, 5, 6)
    content = (tmp_path / "a.pc2").read_bytes()
    assert content == expected
    assert content[12:16] == b"\x01\0\0\0"
    assert content[32:36] == b"\0\0\x80\x3f"  # 1.0, low byte first


def test_mdd_bytes_follow_the_published_layout(tmp_path):
    write_mdd(tmp_path / "a.mdd", PointCache([[[1.0, -2.0, 0.5]], [[4.0, 5.0, 6.0]]], [0.5, 0.75]))
    # frames, points, the times in seconds, then x y z: all big-endian.
    expected = struct.pack(">ii", 2, 1) + struct.pack(">2f", 0.5, 0.75) + struct.pack(">6f", 1, -2, 0.5, 4, 5, 6)
    content = (tmp_path / "a.mdd").read_bytes()
    assert content == expected
    assert content[:4] == b"\0\0\0\x02"
    assert content[16:20] == b"\x3f\x80\0\0"  # 1.0, high byte first


def test_pc2_comes_back(cache, tmp_path):
    write_pc2(tmp_path / "a.pc2", cache)
    back = read_pc2(tmp_path / "a.pc2", fps=60.0)
    assert np.array_equal(back.positions, cache.positions)
    assert back.times == pytest.approx(cache.times, abs=1e-7)
    assert back.triangles is None


def test_mdd_comes_back_with_uneven_times(cache, tmp_path):
    uneven = PointCache(cache.positions, [0.0, 0.1, 0.5, 2.0])
    write_mdd(tmp_path / "a.mdd", uneven)
    back = read_mdd(tmp_path / "a.mdd")
    assert np.array_equal(back.positions, cache.positions)
    assert np.array_equal(back.times, uneven.times.astype(np.float32))


def test_npz_comes_back_whole(cache, tmp_path):
    write_npz(tmp_path / "a.npz", cache)
    back = read_npz(tmp_path / "a.npz")
    assert np.array_equal(back.positions, cache.positions)
    assert np.array_equal(back.times, cache.times)
    assert np.array_equal(back.triangles, TRIANGLES)


def test_obj_sequence_comes_back(cache, tmp_path):
    paths = write_obj_sequence(tmp_path / "frames", "jelly", cache)
    assert [path.name for path in paths] == [f"jelly_000{k}.obj" for k in range(1, 5)]
    assert "f 1 2 3\n" in paths[0].read_text()
    back = read_obj_sequence(tmp_path / "frames", "jelly", fps=60.0)
    assert np.array_equal(back.positions, cache.positions)
    assert np.array_equal(back.triangles, TRIANGLES)
    assert back.times == pytest.approx(np.arange(4) / 60.0)


def test_obj_reader_takes_quads_slashes_and_negative_corners(tmp_path):
    vertices = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"
    (tmp_path / "q_1.obj").write_text(vertices + "vt 0 0\nf 1/1/1 2//1 3 4\nf -4 -3 -2\n")
    back = read_obj_sequence(tmp_path, "q", fps=24.0)
    assert back.triangles.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 2]]


def test_ten_thousand_frames_would_sort_by_number(tmp_path):
    for number in (2, 10, 1):
        (tmp_path / f"s_{number}.obj").write_text(f"v {number} 0 0\n")
    assert read_obj_sequence(tmp_path, "s", fps=1.0).positions[:, 0, 0].tolist() == [1.0, 2.0, 10.0]


def test_pc2_refuses_uneven_frames(cache, tmp_path):
    with pytest.raises(InputError, match="not evenly spaced") as caught:
        write_pc2(tmp_path / "a.pc2", PointCache(cache.positions, [0.0, 1.0, 2.0, 4.0]))
    assert caught.value.indices.tolist() == [0, 1, 2]  # against the mean spacing every step is off
    assert not (tmp_path / "a.pc2").exists()


@pytest.mark.parametrize("cut", [0, 3, 7, 20, 31, 40, -1])
def test_truncated_files_are_refused(cache, tmp_path, cut):
    for write, read in ((write_pc2, lambda p: read_pc2(p, fps=60.0)), (write_mdd, read_mdd), (write_npz, read_npz)):
        write(tmp_path / "a", cache)
        (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:cut])
        with pytest.raises(CacheFileError):
            read(tmp_path / "a")


def test_absurd_counts_are_refused_before_memory_is_taken(tmp_path):
    (tmp_path / "a.mdd").write_bytes(struct.pack(">ii", 2**31 - 1, 2**31 - 1))
    with pytest.raises(CacheFileError, match="no point cache"):
        read_mdd(tmp_path / "a.mdd")
    (tmp_path / "a.mdd").write_bytes(struct.pack(">ii", -5, 3))
    with pytest.raises(CacheFileError, match="no point cache"):
        read_mdd(tmp_path / "a.mdd")
    (tmp_path / "a.pc2").write_bytes(b"POINTCACHE2\0" + struct.pack("<iiffi", 2, 1, 0.0, 1.0, 0))
    with pytest.raises(CacheFileError, match="version 2"):
        read_pc2(tmp_path / "a.pc2", fps=60.0)


def test_pickled_npz_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", positions=np.array([{}], object), times=np.zeros(1))
    with pytest.raises(CacheFileError):
        read_npz(tmp_path / "a.npz")


def test_bad_caches_name_the_culprit(cache):
    with pytest.raises(InputError, match="do not increase") as caught:
        PointCache(cache.positions, [0.0, 1.0, 1.0, 2.0])
    assert caught.value.indices.tolist() == [2]
    broken = cache.positions.copy()
    broken[2, 1, 0] = np.nan
    with pytest.raises(NotFiniteError) as caught:
        PointCache(broken, cache.times)
    assert caught.value.indices.tolist() == [2]
    with pytest.raises(IndexRangeError) as caught:
        PointCache(cache.positions, cache.times, [[0, 1, 2], [0, 1, 5]])
    assert caught.value.indices.tolist() == [1]
    with pytest.raises(InputError, match="3 times for 4 frames"):
        PointCache(cache.positions, cache.times[:3])


def test_sequence_names_cannot_leave_the_folder(cache, tmp_path):
    with pytest.raises(InputError, match="plain file name"):
        write_obj_sequence(tmp_path, "../x", cache)
