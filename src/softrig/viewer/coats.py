"""The coat of a character: its base-colour pictures and factors, read from the glTF file that it came from.

Pictures are decoded here, within bounds, and encoded anew, all in one size: what reaches the browser is never the
file's own bytes. A picture that cannot be read costs itself only; the character is shown without it.
"""

from __future__ import annotations

import io
import math
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from softrig.errors import InputError, SoftrigError, notice
from softrig.io.accessors import AccessorReader
from softrig.io.glb import read_document
from softrig.io.json_fields import JsonObject
from softrig.rig.character import Character, Part

ENDINGS = (".glb", ".vrm", ".gltf")
FORMATS = ("PNG", "JPEG", "WEBP")
MOST_PIXELS = 1 << 25
"""Of a picture in a file; larger ones are not decoded."""
MOST_PICTURES = 16
SIDES = ((1, 2048), (4, 1024), (MOST_PICTURES, 512))
"""Up to so many pictures have so many pixels a side."""
NONE = 255
"""The layer of vertices without a picture."""
TROUBLES = (SoftrigError, OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError)
"""What a picture that is none may end in."""
_TRANSFORM, _WEBP = "KHR_texture_transform", "EXT_texture_webp"
_FAINT = 0.1
"""Alpha below which a see-through material is left out; above, it is drawn as if it were solid."""


@dataclass(frozen=True, eq=False)
class Coat:
    """What a surface of n vertices is painted with."""

    places: np.ndarray = field(repr=False)
    """(n, 2) float32 places in the pictures; they repeat beyond 0 … 1."""
    layers: np.ndarray = field(repr=False)
    """(n,) uint8 the picture of each vertex, `NONE`: none."""
    tints: np.ndarray = field(repr=False)
    """(n, 3) linear factors on what else gives the colour; NaN where no material says anything."""
    side: int
    """Pixels of each picture."""
    pictures: tuple[tuple[str, bytes], ...] = field(repr=False)
    """Type and bytes of each, top row first; alpha is 0 or 255."""

    def coloured(self, colours: np.ndarray | None) -> np.ndarray | None:
        """(n, 4) linear colours where the surface's own are `colours` (n, 3 or 4); NaN: nobody knows any."""
        found = np.ones((len(self.tints), 4))
        found[:, :3] = self.tints
        if colours is not None:
            found[:, :3] = np.where(np.isnan(self.tints), 1.0, self.tints) * colours[:, :3]
        return None if bool(np.isnan(found[:, 0]).all()) else found


class _Wanted(NamedTuple):
    """A picture as a material wants it: alpha below `cut` is left out, 0: nothing is."""

    image: int
    cut: float


def coat_of(character: Character) -> Coat | None:
    """The coat in the file that a character was read from; None: it has none, or the file is gone."""
    source = character.source
    if source is None or source.suffix.lower() not in ENDINGS or not source.is_file():
        return None
    try:
        return _Tailor(source, character).coat()
    except (SoftrigError, OSError) as error:
        notice(f"shown without its pictures: {error}")
        return None


class _Tailor:
    """Puts a coat together, part by part."""

    def __init__(self, path: Path, character: Character) -> None:
        self._reader = AccessorReader(read_document(path))
        self._root = self._reader.root
        self._parts = character.parts
        count = character.rig.vertex_count
        self._places = np.zeros((count, 2), np.float32)
        self._layers = np.full(count, NONE, np.uint8)
        self._tints = np.full((count, 3), np.nan)
        self._wanted: list[_Wanted] = []

    def coat(self) -> Coat | None:
        """None: the file's materials say nothing."""
        for part in self._parts:
            if {"mesh", "primitive"} <= part.source.keys():
                self._dress(part)
        side = self._side()
        pictures: list[tuple[str, bytes]] = []
        for layer, wanted in enumerate(self._wanted):
            try:
                pictures.append(_encoded(_decoded(self._bytes(wanted.image), side), wanted.cut))
            except TROUBLES as error:
                notice(f"picture {wanted.image} cannot be shown: {error}")
                self._layers[self._layers == layer] = NONE
                pictures.append(_encoded(Image.new("RGBA", (side, side), "white"), 0.0))
        if np.isnan(self._tints).all():
            return None
        return Coat(self._places, self._layers, self._tints, side, tuple(pictures))

    def _dress(self, part: Part) -> None:
        primitives = self._root.at("meshes", int(part.source["mesh"])).children("primitives")
        place = primitives[int(part.source["primitive"])]
        if not place.has("material"):
            return
        material = self._root.at("materials", place.whole("material"))
        look = material.child("pbrMetallicRoughness")
        factor = None if look is None else look.numbers("baseColorFactor", 4)
        texture = None if look is None else look.child("baseColorTexture")
        if factor is None and texture is None:
            return
        factor = np.ones(4) if factor is None else np.clip(factor, 0.0, 1.0)
        if texture is not None:
            self._paint(part, place, texture, _cut(material, float(factor[3])))
        elif (factor[:3] == 1.0).all():
            return  # white, because nobody chose a colour
        self._tints[part.vertices] = factor[:3]

    def _paint(self, part: Part, place: JsonObject, texture: JsonObject, cut: float) -> None:
        image = self._image(self._root.at("textures", texture.whole("index")))
        attributes = place.child("attributes")
        moved = _extension(texture, _TRANSFORM)
        number = texture.whole("texCoord", 0)
        if moved is not None:
            number = moved.whole("texCoord", number)
        if image is None or attributes is None or not attributes.has(f"TEXCOORD_{number}"):
            return
        wanted = _Wanted(image, cut)
        if wanted not in self._wanted:
            if len(self._wanted) == MOST_PICTURES:
                notice(f"more than {MOST_PICTURES} pictures: the others are not shown")
                return
            self._wanted.append(wanted)
        count = part.vertices.stop - part.vertices.start
        uv = self._reader.numbers(attributes.whole(f"TEXCOORD_{number}"), ("VEC2",), count=count)
        self._places[part.vertices] = uv if moved is None else _transformed(uv, moved)
        self._layers[part.vertices] = self._wanted.index(wanted)

    def _image(self, texture: JsonObject) -> int | None:
        other = _extension(texture, _WEBP)
        found = texture.index("source") if other is None else other.index("source", texture.index("source"))
        return None if found < 0 else found

    def _bytes(self, image: int) -> bytes:
        entry = self._root.at("images", image)
        if not entry.has("bufferView"):
            raise entry.error("is not in the file itself")
        content, _, _ = self._reader.buffers.view(entry.whole("bufferView"))
        return bytes(content)

    def _side(self) -> int:
        """As many pixels as the largest picture has, within bounds."""
        most = next(side for count, side in SIDES if len(self._wanted) <= count)
        largest = 1
        for wanted in self._wanted:
            with suppress(*TROUBLES), Image.open(io.BytesIO(self._bytes(wanted.image)), formats=FORMATS) as picture:
                largest = max(largest, *picture.size)
        return int(min(most, 2 ** math.ceil(math.log2(largest))))


def _cut(material: JsonObject, alpha: float) -> float:
    """Alpha of the picture below which nothing is drawn."""
    mode = material.text("alphaMode", "OPAQUE")
    if mode == "OPAQUE":
        return 0.0
    least = _FAINT
    if mode == "MASK":
        given = material.fields.get("alphaCutoff", 0.5)
        least = float(given) if isinstance(given, int | float) and 0.0 <= given <= 1.0 else 0.5
    return min(least / max(alpha, 1e-3), 1.0)


def _extension(entry: JsonObject, name: str) -> JsonObject | None:
    extensions = entry.child("extensions")
    return None if extensions is None else extensions.child(name)


def _transformed(uv: np.ndarray, moved: JsonObject) -> np.ndarray:
    """(n, 2) scaled, then turned, then moved (KHR_texture_transform); v points down."""
    offset, scale = moved.numbers("offset", 2), moved.numbers("scale", 2)
    turn = moved.fields.get("rotation", 0.0)
    angle = float(turn) if isinstance(turn, int | float) and math.isfinite(turn) else 0.0
    u, v = (uv if scale is None else uv * scale).T
    turned = np.stack([math.cos(angle) * u + math.sin(angle) * v, math.cos(angle) * v - math.sin(angle) * u], axis=1)
    return turned if offset is None else turned + offset


def _decoded(content: bytes, side: int) -> Image.Image:
    """A picture of the file, `side` × `side`, with alpha."""
    with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
        if picture.width * picture.height > MOST_PIXELS:
            raise InputError(f"it has {picture.width} × {picture.height} pixels, too many")
        picture.draft("RGB", (side, side))  # a JPEG can be read smaller at once
        return picture.convert("RGBA").resize((side, side), Image.Resampling.BICUBIC, reducing_gap=2.0)


def _encoded(picture: Image.Image, cut: float) -> tuple[str, bytes]:
    """Type and bytes for the browser; alpha becomes 0 or 255."""
    buffer = io.BytesIO()
    seen = picture.getchannel("A").point(lambda alpha: 255 if alpha >= 255.0 * cut else 0)
    if cut <= 0.0 or seen.getextrema() == (255, 255):
        picture.convert("RGB").save(buffer, "JPEG", quality=92)
        return "image/jpeg", buffer.getvalue()
    picture.putalpha(seen)
    picture.save(buffer, "PNG", compress_level=3)
    return "image/png", buffer.getvalue()
