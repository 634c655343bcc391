"""Model files: exact round trips, and a `ModelFileError` that says what is wrong with any other file."""

import json
import struct
from dataclasses import fields, replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bodies_for_tests import beam
from softrig.bases.modes import linear_modes
from softrig.errors import ModelFileError, SoftrigError
from softrig.fem.embedding import Embedding
from softrig.forces.polynomial import reduce_body
from softrig.models import file as model_file
from softrig.models.file import load_model, save_model
from softrig.models.free_flight import FreeFlight
from softrig.models.reduced_simulation import ReducedSimulation

KINDS = ["anchored", "free", "embedded"]


def make(kind):
    body = beam(groups=2, free=kind == "free")
    extras = {}
    if kind == "embedded":
        rng = np.random.default_rng(0)
        weights = rng.uniform(0.1, 1.0, (12, 8))
        embedding = Embedding(body.mesh.elements[rng.integers(0, 4, 12)], weights / weights.sum(axis=1, keepdims=True))
        extras = {
            "surface": embedding,
            "surface_triangles": rng.integers(0, 12, (9, 3)).astype(np.int32),
            "surface_colours": rng.uniform(0.0, 1.0, (12, 3)),
        }
    return reduce_body(body, linear_modes(body, 4).shapes, notes={"recipe": "vier Moden, größer ½"}, **extras)


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return make(request.param)


@pytest.fixture(scope="module")
def plain():
    return make("anchored")


@pytest.fixture
def saved(plain, tmp_path):
    path = tmp_path / "beam.softrig"
    save_model(plain, path)
    return path


def metadata_of(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length])["__metadata__"]


def rewrite(path, tensors=None, **metadata):
    """The same file with some tensors replaced (None removes one) and some metadata replaced."""
    merged = {**load_file(path), **(tensors or {})}
    kept = {name: array for name, array in merged.items() if array is not None}
    entries = {key: value for key, value in {**metadata_of(path), **metadata}.items() if value is not None}
    save_file(kept, path, entries)


def refused(path):
    with pytest.raises(ModelFileError) as raised:
        load_model(path)
    assert isinstance(raised.value, SoftrigError)
    message = str(raised.value)
    assert path.name in message
    return message


def identical(one, other):
    """Every array equal in value, type and shape."""
    for field in fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if hasattr(mine, "__dataclass_fields__"):
            identical(mine, theirs)
        elif isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype, field.name
            np.testing.assert_array_equal(mine, theirs)
        else:
            assert mine == theirs, field.name


def test_a_model_comes_back_to_the_bit(model, tmp_path):
    save_model(model, tmp_path / "a.softrig")
    loaded = load_model(tmp_path / "a.softrig")
    identical(model, loaded)
    save_model(loaded, str(tmp_path / "b.softrig"))
    identical(model, load_model(str(tmp_path / "b.softrig")))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.softrig", "b.softrig"]


def test_a_loaded_model_moves_to_the_bit_as_the_saved_one(model, tmp_path):
    save_model(model, tmp_path / "a.softrig")
    ends = []
    for each in (model, load_model(tmp_path / "a.softrig")):
        simulation = FreeFlight(each, 0.01) if each.is_free else ReducedSimulation(each, 0.01)
        simulation.q[:] = [0.1, 0.05, 0.02, -0.01]
        simulation.run(20)
        ends.append(simulation.surface_positions())
    np.testing.assert_array_equal(*ends)


def test_an_edited_model_keeps_its_edits(plain, tmp_path):
    edited = plain.with_material("group 1", young=7e4, density=500.0).with_modes(2)
    save_model(edited, tmp_path / "a.softrig")
    identical(edited, load_model(tmp_path / "a.softrig"))


@pytest.mark.parametrize("what", ["nodes int64", "weights float32", "colours float32"])
def test_what_can_be_saved_can_be_loaded(what, tmp_path):
    """Whatever precision the caller's surface came in, its file must be readable."""
    body = beam()
    nodes, weights, colours = body.mesh.elements[:3], np.full((3, 8), 0.125), np.full((3, 3), 0.5)
    if what == "nodes int64":
        nodes = nodes.astype(np.int64)
    elif what == "weights float32":
        weights = weights.astype(np.float32)
    else:
        colours = colours.astype(np.float32)
    model = reduce_body(
        body, linear_modes(body, 2).shapes,
        surface=Embedding(nodes, weights), surface_triangles=np.array([[0, 1, 2]]), surface_colours=colours,
    )  # fmt: skip
    save_model(model, tmp_path / "a.softrig")
    loaded = load_model(tmp_path / "a.softrig")
    np.testing.assert_array_equal(loaded.surface.carry(body.mesh.vertices), model.surface.carry(body.mesh.vertices))
    np.testing.assert_array_equal(loaded.surface_colours, model.surface_colours)


def test_long_notes_are_loaded_or_refused_when_saving(plain, tmp_path):
    wordy = replace(plain, notes={"log": "x" * (2 << 20)})
    path = tmp_path / "a.softrig"
    try:
        save_model(wordy, path)
    except SoftrigError:
        assert not path.exists()
        return
    identical(wordy, load_model(path))


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_a_file_cut_short_in_its_tensors_is_called_truncated(saved, share):
    raw = saved.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    saved.write_bytes(raw[: 8 + length + int(share * (len(raw) - 8 - length))])
    assert "truncated" in refused(saved)


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 100])
def test_a_file_cut_short_in_its_header_is_called_truncated(saved, kept):
    saved.write_bytes(saved.read_bytes()[:kept])
    assert "truncated" in refused(saved)


def test_trailing_rubbish_is_refused(saved):
    saved.write_bytes(saved.read_bytes() + b"rubbish")
    assert "damaged" in refused(saved)


FOREIGN = {
    "random bytes": np.random.default_rng(0).bytes(4096),
    "json": json.dumps({"format": "softrig", "vertices": list(range(100))}).encode(),
    "text": b"v 0 0 0\nv 1 0 0\n" * 50,
    "zeros": bytes(1000),
    "small header of no json": struct.pack("<Q", 40) + b"x" * 60,
    "header that is a list": struct.pack("<Q", 2) + b"[]" + bytes(20),
    "header without metadata": struct.pack("<Q", 2) + b"{}" + bytes(20),
    "metadata that is text": struct.pack("<Q", 22) + b'{"__metadata__":"sof"}' + bytes(20),
    "metadata that is nothing": struct.pack("<Q", 21) + b'{"__metadata__":null}' + bytes(20),
    "not utf-8": struct.pack("<Q", 4) + b"\xff\xfe{}" + bytes(20),
    "endless nesting": struct.pack("<Q", 200000) + b"[" * 200000,
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_files_are_not_softrig_models(tmp_path, content):
    path = tmp_path / "foreign.bin"
    path.write_bytes(content)
    assert "not a softrig model" in refused(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"format": "softrig2"}], ids=str)
def test_somebody_elses_safetensors_are_not_softrig_models(tmp_path, metadata):
    path = tmp_path / "weights.safetensors"
    save_file({"layer": np.ones((3, 3))}, path, metadata)
    assert "not a softrig model" in refused(path)


def test_a_newer_version_asks_for_an_update(saved):
    rewrite(saved, version="2")
    message = refused(saved)
    assert "newer" in message
    assert "update" in message


@pytest.mark.parametrize("version", [None, "", "one", "-1", "1.0", "9" * 5000], ids=lambda v: str(v)[:8])
def test_an_unusable_version_is_refused(saved, version):
    rewrite(saved, version=version)
    assert "version" in refused(saved)


@pytest.mark.parametrize("kind", ["skinned-body", None])
def test_another_kind_is_named(saved, kind):
    rewrite(saved, kind=kind)
    message = refused(saved)
    assert "reduced-body" in message
    assert str(kind) in message


TENSORS = [
    "vertices", "basis", "lam", "mu", "density", "surface_triangles",
    "coefficients.linear", "coefficients.cubic", "coefficients.quartic", "coefficients.mass",
]  # fmt: skip


@pytest.mark.parametrize("name", TENSORS)
def test_a_missing_tensor_is_named(saved, name):
    rewrite(saved, {name: None})
    message = refused(saved)
    assert "inconsistent" in message
    assert name in message


@pytest.mark.parametrize("cut", ["shorter", "flat", "scalar", "empty"])
@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_of_the_wrong_shape_is_refused_and_named(saved, name, cut):
    array = load_file(saved)[name]
    shapes = {
        "shorter": array[..., :-1].copy(),
        "flat": array.reshape(1, -1),
        "scalar": np.zeros((), array.dtype),
        "empty": array[:0].copy(),
    }
    rewrite(saved, {name: shapes[cut]})
    if name == "surface_triangles" and cut == "empty":
        assert load_model(saved).surface_triangles.shape == (0, 3)  # nothing to draw is no contradiction
        return
    message = refused(saved)
    assert "inconsistent" in message
    assert name in message or name in ("vertices", "basis")  # those decide what the others should be


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", [name for name in TENSORS if name != "surface_triangles"])
def test_a_tensor_that_is_not_finite_is_refused_and_named(saved, name, bad):
    array = load_file(saved)[name].copy()
    array.flat[array.size // 2] = bad
    rewrite(saved, {name: array})
    message = refused(saved)
    assert name in message
    assert "NaN" in message


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_])
@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_of_the_wrong_type_is_refused_and_named(saved, name, dtype):
    array = load_file(saved)[name]
    rewrite(saved, {name: np.ones(array.shape, dtype)})
    message = refused(saved)
    assert name in message
    assert np.dtype(dtype).name in message


def test_a_type_numpy_does_not_know_is_refused(saved):
    raw = saved.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    header["extra"] = {"dtype": "BF16", "shape": [4], "data_offsets": [len(raw) - 8 - length, len(raw) - length]}
    packed = json.dumps(header).encode()
    saved.write_bytes(struct.pack("<Q", len(packed)) + packed + raw[8 + length :] + bytes(8))
    refused(saved)


@pytest.mark.parametrize("index", [-1, 20, 10**6])
def test_triangles_out_of_range_are_refused(saved, index):
    triangles = load_file(saved)["surface_triangles"].copy()
    triangles[0, 1] = index
    rewrite(saved, {"surface_triangles": triangles})
    assert "surface_triangles" in refused(saved)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("surface_nodes", lambda a: np.where(np.arange(a.size).reshape(a.shape) == 5, 20, a).astype(np.int32)),
        ("surface_nodes", lambda a: (a - 100).astype(np.int32)),
        ("surface_weights", lambda a: a[:, :-1].copy()),
        ("surface_weights", lambda a: None),
        ("surface_colours", lambda a: a[:-1].copy()),
        ("surface_triangles", lambda a: np.full_like(a, 12)),
    ],
)
def test_an_inconsistent_surface_is_refused(tmp_path, name, change):
    path = tmp_path / "embedded.softrig"
    save_model(make("embedded"), path)
    rewrite(path, {name: change(load_file(path)[name])})
    assert "inconsistent" in refused(path)


def test_wrong_rigid_products_are_refused(tmp_path):
    path = tmp_path / "free.softrig"
    save_model(make("free"), path)
    rewrite(path, {"rigid_products": load_file(path)["rigid_products"][:, 1:].copy()})
    assert "rigid_products" in refused(path)


@pytest.mark.parametrize(
    "metadata",
    [
        {"group_names": "not json"},
        {"group_names": '"text"'},
        {"group_names": '["only one"]'},
        {"group_names": None},
        {"notes": "[1]"},
        {"notes": None},
    ],
    ids=str,
)
def test_wrong_names_and_notes_are_refused(saved, metadata):
    rewrite(saved, **metadata)
    assert "inconsistent" in refused(saved)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(saved, plain, monkeypatch):
    before = saved.read_bytes()

    def failing(tensors, path, metadata):
        path.write_bytes(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(model_file, "save_file", failing)
    with pytest.raises(OSError, match="disk full"):
        save_model(plain.with_modes(2), saved)
    assert saved.read_bytes() == before
    with pytest.raises(OSError, match="disk full"):
        save_model(plain, saved.parent / "new.softrig")
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_a_write_takes_the_place_of_the_old_file(saved, plain):
    save_model(plain.with_modes(2), saved)
    assert load_model(saved).size == 2
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]
    assert saved.stat().st_mode & 0o400


def test_missing_files_and_folders_raise_as_any_open_does(plain, tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nowhere.softrig")
    with pytest.raises(FileNotFoundError):
        save_model(plain, tmp_path / "no folder" / "a.softrig")
