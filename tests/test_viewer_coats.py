"""The pictures of a glTF on the skin that is drawn: read within bounds, encoded anew; bad ones break nothing."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from softrig import load_character
from softrig.errors import Notice
from softrig.viewer import coats
from softrig.viewer.coats import NONE, coat_of
from softrig.viewer.opening import opened
from softrig.viewer.picture import Picture
from softrig.viewer.protocol import decode
from softrig.viewer.subjects import CLAY
from textured_for_tests import textured_sheet, two_colours

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")


def pixels(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGBA"))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_coat_is_sent_with_places_and_layers(tmp_path: Path, kind):
    textured_sheet(tmp_path / "sheet.glb", two_colours(kind))
    subject = opened(tmp_path / "sheet.glb").subject
    header, arrays = decode(Picture(subject, 3).coat())
    assert (header["version"], header["side"], header["types"]) == (3, 64, ["image/jpeg"])
    assert (arrays["layers"] == 0).all()
    np.testing.assert_allclose(arrays["places"][:, 0], subject.geometry().rest[:, 0] / 2.0, atol=1e-6)
    shown = pixels(arrays["picture 0"].tobytes())
    assert shown.shape == (64, 64, 4)
    np.testing.assert_allclose(shown[32, [8, 56], :3], [[220, 0, 0], [0, 0, 220]], atol=12)
    assert (subject.geometry().colours[:, :3] == 255).all(), "nothing on top of the picture"


def test_what_is_left_out_is_cut(tmp_path: Path):
    picture = Image.open(io.BytesIO(two_colours())).convert("RGBA")
    picture.putalpha(Image.fromarray(np.tile(np.linspace(0, 255, 64).astype(np.uint8), (32, 1))))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    for mode, kind in (("OPAQUE", "image/jpeg"), ("MASK", "image/png")):
        textured_sheet(tmp_path / "sheet.glb", buffer.getvalue(), alphaMode=mode)
        ((found, content),) = coat_of(load_character(tmp_path / "sheet.glb")).pictures
        assert found == kind
    alpha = pixels(content)[:, :, 3]
    assert set(np.unique(alpha)) == {0, 255}
    assert 0.4 < (alpha == 255).mean() < 0.6


def test_a_picture_that_is_none_costs_itself_only(tmp_path: Path):
    for wrong in (b"no picture at all", two_colours()[:60], b"BM" + bytes(100), b"\xff\xd8\xff" + bytes(50)):
        textured_sheet(tmp_path / "sheet.glb", wrong)
        with pytest.warns(Notice, match="cannot be shown"):
            coat = coat_of(load_character(tmp_path / "sheet.glb"))
        assert (coat.layers == NONE).all()


def test_pictures_are_bounded(tmp_path: Path, monkeypatch):
    textured_sheet(tmp_path / "sheet.glb", two_colours(size=(300, 10)))
    assert coat_of(load_character(tmp_path / "sheet.glb")).side == 512
    monkeypatch.setattr(coats, "SIDES", ((16, 128),))
    assert coat_of(load_character(tmp_path / "sheet.glb")).side == 128
    monkeypatch.setattr(coats, "MOST_PIXELS", 1000)
    with pytest.warns(Notice, match="300 × 10 pixels, too many"):
        coat_of(load_character(tmp_path / "sheet.glb"))


def test_without_a_picture_the_material_gives_the_colour_and_clay_what_nobody_chose(tmp_path: Path):
    textured_sheet(tmp_path / "sheet.glb")
    character = load_character(tmp_path / "sheet.glb")
    content = (tmp_path / "sheet.glb").read_bytes()
    for factor, expected in ((b"[1.0, 0.0, 0.0, 1.0]", (255, 0, 0, 255)), (b"[1.0, 1.0, 1.0, 1.0]", CLAY)):
        changed = content.replace(b"[1.0, 1.0, 1.0, 1.0]", factor).replace(b"baseColorTexture", b"nothingElseHere!")
        (tmp_path / "sheet.glb").write_bytes(changed)
        subject = opened(tmp_path / "sheet.glb").subject
        assert tuple(subject.geometry().colours[0]) == expected
        assert Picture(subject, 1).coat() is None
    (tmp_path / "sheet.glb").unlink()
    assert coat_of(character) is None, "the file is gone"
