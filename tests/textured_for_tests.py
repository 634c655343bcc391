"""A sheet with a picture on it, whose triangles look away from who looks at it first."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from gltf_files_for_tests import GltfFile, glb_bytes


def two_colours(kind: str = "PNG", size: tuple[int, int] = (64, 32)) -> bytes:
    """A picture, red on the left and blue on the right."""
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    pixels[:, : size[0] // 2, 0] = pixels[:, size[0] // 2 :, 2] = 220
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def textured_sheet(path: Path, picture: bytes | None = None, **material: object) -> None:
    """Write a GLB of an upright sheet, 2 m × 1 m, that looks to −z; u goes along x."""
    u, v = (grid.ravel() for grid in np.meshgrid(np.linspace(0, 1, 17), np.linspace(0, 1, 9)))
    corners = np.arange(17 * 9).reshape(9, 17)
    a, b, c, d = (part.ravel() for part in (corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1]))
    file = GltfFile()
    image = file.add(
        "images", bufferView=file.view(two_colours() if picture is None else picture), mimeType="image/png"
    )
    texture = file.add("textures", source=image)
    look = {"baseColorTexture": {"index": texture}, "baseColorFactor": [1.0, 1.0, 1.0, 1.0]}
    attributes = {
        "POSITION": file.accessor(np.stack([2.0 * u, 1.0 - v, 0.0 * u], axis=1)),
        "TEXCOORD_0": file.accessor(np.stack([u, v], axis=1)),
    }
    indices = file.accessor(np.concatenate([np.stack([a, b, c]).T, np.stack([a, c, d]).T]).ravel(), "u2")
    mesh = file.add(
        "meshes",
        primitives=[
            {
                "attributes": attributes,
                "indices": indices,
                "material": file.add("materials", pbrMetallicRoughness=look, **material),
            }
        ],
    )
    file.add("nodes", mesh=mesh)
    file.add("scenes", nodes=[0])
    file.json["buffers"] = [{"byteLength": len(file.binary)}]
    path.write_bytes(glb_bytes(file.json, bytes(file.binary)))
