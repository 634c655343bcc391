"""Pictures for the parameter pages: the built-in arm with little and with much of one setting.

    .venv/bin/python docs/pictures/make_parameters.py

writes docs/pictures/parameters/. It takes some minutes; finished builds are kept in the folder named by --cache.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

import softrig as sr
from softrig.files import write_bytes
from softrig.render import Camera, Mesh, Series, line_plot, render, strip
from softrig.simulation import Bake

OUTPUT = Path(__file__).parent / "parameters"
SIZE = (330, 250)
SKIN = (0.80, 0.66, 0.58)
FAR = (0.80, 0.12, 0.10)
"""Where the flesh is farthest from plain skinning."""
STEEL = (0.62, 0.70, 0.78)
COLOURS = 256
"""Of a picture's palette: keeps each file well below 150 kB."""
CLIP = "wave"
BASE = sr.Project().changed(
    mesh={"tets": 3000}, basis={"modes": 40}, poses={"count": 3}, material={"preset": "fat", "young": 12e3}
)
"""Softer than an arm is, so that there is something to see."""


class Studio:
    """The arm, its builds, and the one camera that all pictures share."""

    def __init__(self, cache: Path) -> None:
        self.arm = sr.built_in("arm")
        self._cache = cache
        self._triangles = self.arm.triangles

    def model(self, **tables: dict[str, object]) -> sr.PoseSpaceModel:
        """The arm built with some settings changed."""
        return sr.build(self.arm, BASE.changed(**tables), cache=self._cache)

    def bake(self, model: sr.PoseSpaceModel, **options: object) -> Bake:
        """The clip, with plain skinning beside it."""
        return sr.model_simulation(model, **options).bake(self.arm.clip(CLIP), 60.0, plain=True)

    def shots(
        self, places: Sequence[np.ndarray], plain: Sequence[np.ndarray], words: Sequence[str], *, told: bool = True
    ) -> np.ndarray:
        """Plain skinning, then surfaces (n, 3), redder the farther they are from their own plain skinning (n, 3)."""
        offsets = [np.linalg.norm(soft - rigid, axis=1) for soft, rigid in zip(places, plain, strict=True)]
        most = max(float(np.quantile(each, 0.98)) for each in offsets)
        shape = SIZE[0] / SIZE[1]
        camera = Camera.framing(np.concatenate([*places, plain[0]]), (0.25, 0.25, 1.0), aspect=shape, margin=1.03)
        pictures = [self._shot(camera, plain[0], SKIN)]
        captions = ["plain skinning"]
        for soft, offset, word in zip(places, offsets, words, strict=True):
            heat = np.minimum(offset / most, 1.0)[:, None] ** 0.8
            pictures.append(self._shot(camera, soft, (1.0 - heat) * np.array(SKIN) + heat * np.array(FAR)))
            captions.append(f"{word}: up to {1e3 * offset.max():.0f} mm" if told else word)
        return strip(pictures, captions, size=15)

    def _shot(self, camera: Camera, vertices: np.ndarray, colours: object) -> np.ndarray:
        mesh = Mesh(vertices.astype(np.float64), self._triangles, colours)  # type: ignore[arg-type]
        return render([mesh], camera, SIZE)


def moment(bakes: Sequence[Bake]) -> int:
    """The frame at which two bakes differ most, all over."""
    gaps = np.linalg.norm(bakes[0].vertices - bakes[-1].vertices, axis=2).mean(axis=1)
    return int(gaps.argmax())


def pair(studio: Studio, bakes: Sequence[Bake], words: Sequence[str]) -> np.ndarray:
    """Two bakes at the moment at which they differ most."""
    at = moment(bakes)
    plain = [bake.plain[at] for bake in bakes if bake.plain is not None]
    return studio.shots([bake.vertices[at] for bake in bakes], plain, words)


def young(studio: Studio) -> np.ndarray:
    """Young's modulus."""
    values = (6e3, 60e3)
    bakes = [studio.bake(studio.model(material={"young": value})) for value in values]
    return pair(studio, bakes, [f"young = {value:,.0f} Pa" for value in values])


def modes(studio: Studio) -> np.ndarray:
    """How many shapes."""
    values = (8, 60)
    bakes = [studio.bake(studio.model(basis={"modes": value})) for value in values]
    return pair(studio, bakes, [f"modes = {value}" for value in values])


def inertia(studio: Studio) -> np.ndarray:
    """How strongly the flesh feels the motion."""
    values = (0.3, 2.0)
    model = studio.model()
    bakes = [studio.bake(model, inertia=value) for value in values]
    return pair(studio, bakes, [f"inertia = {value:g}" for value in values])


def gravity(studio: Studio) -> np.ndarray:
    """The arm as it was sculpted, held still."""
    model = studio.model()
    pose = studio.arm.rig.parameters.rest
    places = []
    for value in ("change", "full"):
        simulation = sr.model_simulation(model, gravity=value)
        places.append(simulation.step(pose).copy())
    plain = sr.model_simulation(model, gravity="off").step(pose)
    return studio.shots(places, [plain, plain], ['gravity = "change"', '"full"'])


def tutorial(studio: Studio) -> np.ndarray:
    """What the tutorial's settings do, at the moment of the largest offset."""
    model = studio.model(mesh={"tets": 1500}, basis={"modes": 24}, poses={"count": 4}, material={"young": None})
    bake = studio.bake(model)
    assert bake.plain is not None
    at = int(np.linalg.norm(bake.vertices - bake.plain, axis=2).max(axis=1).argmax())
    return studio.shots([bake.vertices[at]], [bake.plain[at]], ["soft"], told=False)


def tets(studio: Studio) -> np.ndarray:
    """The mesh, cut open."""
    pictures, captions = [], []
    camera = Camera.framing(studio.arm.rest_positions, (0.25, 0.25, 1.0), aspect=2.0)
    for count in (600, 6000):
        mesh = sr.character_volume(studio.arm, tets=count).lattice.mesh
        centres = mesh.vertices[mesh.elements].mean(axis=1)
        behind = mesh.elements[centres[:, 2] < 0.0]
        faces = behind[:, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]].reshape(-1, 3)
        _, first, counts = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
        cut = Mesh(mesh.vertices, faces[first[counts == 1]], STEEL, crease_angle=0.0, wire=True)
        pictures.append(render([cut], camera, (500, 250)))
        captions.append(f"tets = {count:,}")
    return strip(pictures, captions, size=15)


def damping(studio: Studio) -> str:
    """Over time: how far the flesh is from plain skinning."""
    model = studio.model()
    lines = []
    for value in (0.03, 0.5):
        bake = studio.bake(model, damping=sr.Damping(value))
        assert bake.plain is not None
        far = np.linalg.norm(bake.vertices - bake.plain, axis=2).max(axis=1)
        lines.append(Series(f"damping_ratio = {value:g}", bake.times, 1e3 * far))
    return line_plot(lines, x_label="time, s", y_label="largest offset, mm", size=(720, 300))


PICTURES: dict[str, Callable[[Studio], np.ndarray | str]] = {
    "young": young,
    "modes": modes,
    "inertia": inertia,
    "gravity": gravity,
    "tets": tets,
    "damping": damping,
    "tutorial": tutorial,
}


def write(name: str, picture: np.ndarray | str) -> Path:
    """A PNG with a palette, or an SVG."""
    if isinstance(picture, str):
        path = OUTPUT / f"{name}.svg"
        write_bytes(path, picture.encode())
        return path
    path, buffer = OUTPUT / f"{name}.png", io.BytesIO()
    Image.fromarray(picture).quantize(COLOURS, dither=Image.Dither.FLOYDSTEINBERG).save(
        buffer, format="PNG", optimize=True
    )
    write_bytes(path, buffer.getvalue())
    return path


def main() -> None:
    """Write all pictures, or the named ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"which; all by default: {', '.join(PICTURES)}")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "softrig-docs")
    chosen = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    studio = Studio(chosen.cache)
    for name in chosen.names or PICTURES:
        path = write(name, PICTURES[name](studio))
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
