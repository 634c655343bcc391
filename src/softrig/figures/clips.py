"""Short clips that loop: a built-in character moves, plain skinning beside soft flesh."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from softrig.bench.record import Row, model_sizes
from softrig.characters import built_in
from softrig.characters.softness import painted_softness
from softrig.console import Update
from softrig.demo.character import shown_skin
from softrig.figures.figure import Figure, made_of
from softrig.figures.look import WHITE, framing
from softrig.figures.sheet import Panel, sheet
from softrig.io.images import animated_png
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.baking import model_simulation
from softrig.pipeline.build import build
from softrig.pipeline.parallel import worker_count
from softrig.project import Project
from softrig.render import Ground, Light, Mesh, beneath, colour_bar, render
from softrig.rig.character import Character
from softrig.simulation import Bake

SUBFRAMES = 4
"""Frames of the simulation for each that is drawn: a clip sampled as coarsely as it is drawn loses its quick parts."""
FINER = 2
"""Times that a frame is drawn larger than it is shown: edges are smooth."""
FAR = (0.93, 0.38, 0.16)
"""Of flesh far from where plain skinning has it; where it has it, the character's own."""
REDDEST = 0.99
"""Of all vertices of all frames so many are nearer to plain skinning than where the colour ends."""
LIGHT = Light((-0.12, 1.0, 0.6), radius=0.12, strength=1.2)
"""From high above and before it: the shadow stays near the feet, and soft."""
PAPER = (1.0, 1.0, 1.0)
LIT = 251.5
"""Of 255, the floor in full light: drawn as white as the paper, so that it has no edge."""
FLOOR = 0.55
"""Sizes of the character from its middle to where the floor is gone."""
WAY = "mm and more from plain skinning"


@dataclass(frozen=True)
class Scene:
    """What a clip shows."""

    character: str
    clip: str
    towards: tuple[float, float, float]
    """From the character to the camera."""
    size: tuple[int, int]
    """Pixels of each half."""
    young: float
    """Pa."""
    softness: Mapping[str, float] | None = None
    """Painted on what follows joints whose names end so, 1 elsewhere; None: nothing is painted."""
    floor: bool = True
    frames: int = 36
    span: tuple[float, float] | None = None
    """Seconds of the clip that are shown, which end as they begin; None: all."""


def soft_model(scene: Scene, character: Character, tets: int = 3000, modes: int = 60) -> PoseSpaceModel:
    """The painted character with flesh: coarser than by default, so that it is quick."""
    project = Project().changed(
        mesh={"tets": tets},
        basis={"modes": modes},
        poses={"count": 4},
        material={
            "preset": "fat",
            "young": scene.young,
            "softness_map": None if scene.softness is None else "softness",
        },
    )
    return build(character, project, jobs=1)


def drawn(scene: Scene, character: Character, bake: Bake) -> list[np.ndarray]:
    """(h, w, 3) pictures of every frame to be shown, beginning where the flesh is farthest from plain skinning."""
    assert bake.plain is not None
    skins = (bake.plain[::SUBFRAMES], bake.vertices[::SUBFRAMES])
    seen = [skin[:, ::5].astype(np.float64) for skin in skins]
    floor = Ground(float(seen[0][..., 1].min()), colour=PAPER, fade=FLOOR * character.size)
    ground = floor if scene.floor else None
    if ground is not None:
        seen.append(LIGHT.shadow(seen[0], ground.height))
    camera = framing(seen, scene.towards, scene.size)
    own, (wide, tall) = shown_skin(character), scene.size

    def shot(places: np.ndarray, redness: np.ndarray) -> np.ndarray:
        mesh = Mesh(places.astype(np.float64), character.triangles, _reddened(own, redness))
        fine = render(mesh, camera, (FINER * wide, FINER * tall), light=LIGHT, ground=ground, background=WHITE)
        shown = fine.reshape(tall, FINER, wide, FINER, 3).mean(axis=(1, 3))
        return np.rint(np.minimum(shown * (255.0 / LIT), 255.0)).astype(np.uint8)

    offsets = np.linalg.norm(skins[1] - skins[0], axis=2)
    most = 0.01 * np.ceil(100.0 * np.quantile(offsets, REDDEST))
    typical = np.median(np.atleast_2d(own), axis=0)
    bar = colour_bar(lambda far: _reddened(typical, far / (1e3 * most)), 0.0, 1e3 * most, WAY, width=340)

    def both(frame: int) -> np.ndarray:
        plain, soft = (skin[frame] for skin in skins)
        halves = [
            Panel(shot(plain, np.zeros(len(plain))), "plain skinning"),
            Panel(shot(soft, offsets[frame] / most), "softrig"),
        ]
        return beneath(sheet([halves]), bar)

    count = len(offsets)
    first = int(offsets.max(axis=1).argmax())  # what is shown where pictures do not move
    with ThreadPoolExecutor(worker_count(None)) as pool:
        return list(pool.map(both, (np.arange(first, first + count) % count).tolist()))


def _reddened(colours: np.ndarray, redness: np.ndarray) -> np.ndarray:
    """(n, 3) of colours (n, 3) or (3,), the redder the greater `redness` (n,) is, up to 1."""
    share = np.clip(redness, 0.0, 1.0)[:, None]
    return np.asarray((1.0 - share) * colours + share * np.array(FAR))


def moving(name: str, title: str, scene: Scene, caption: str, update: Update) -> Figure:
    """The figure of a scene, with how far the flesh goes from plain skinning."""
    character: Character = built_in(scene.character)
    if scene.softness is not None:
        character = painted_softness(character, scene.softness)
    clip = character.clip(scene.clip)
    if scene.span is not None:
        clip = clip.trimmed(*scene.span)
    model = soft_model(scene, character)
    update(1, 3)
    bake = model_simulation(model).bake(clip, SUBFRAMES * scene.frames / clip.duration, loop=True, plain=True)
    update(2, 3)
    pictures = drawn(scene, character, bake)
    update(3, 3)
    offsets = 1e3 * np.linalg.norm(bake.vertices - bake.plain, axis=2)
    rows = [
        Row("flesh from plain skinning, farthest", "mm", float(offsets.max())),
        Row("flesh from plain skinning, mean of all frames and vertices", "mm", float(offsets.mean())),
        Row("flesh short of where the loop began, before it was closed", "mm", 1e3 * bake.report.seam),
    ]
    told = f"{clip.duration:.1f} s in {scene.frames} frames, in real time. {caption}"
    picture = animated_png(pictures, scene.frames / clip.duration)
    return made_of(name, title, picture, rows, told, sizes={scene.character: model_sizes(model)})


REDDER = "the redder, the farther it is from plain skinning"


def gorilla_jumps(update: Update) -> Figure:
    """Clip: a gorilla jumps, plain and soft."""
    scene = Scene("gorilla", "jump", (0.45, 0.1, 0.9), (421, 440), 7e3, frames=52)
    caption = (
        f"The flesh is fat of 7 kPa, firm in head, hands and feet by the names of their joints; {REDDER}. Belly, chest "
        "and arms stay behind when it takes off, and arrive after it has landed."
    )
    return moving("clip-gorilla-jump", "Clip: a gorilla jumps, plain and soft", scene, caption, update)


def gorilla_walks(update: Update) -> Figure:
    """Clip: a gorilla walks, plain and soft."""
    scene = Scene("gorilla", "walk", (0.45, 0.1, 0.9), (230, 290), 3e3)
    caption = (
        f"The flesh is fat of 3 kPa, firm in head, hands and feet by the names of their joints; {REDDER}. Every step "
        "sends a wave through belly and thighs. The flesh arrives where it began, so the walk can go on for ever."
    )
    return moving("clip-gorilla-walk", "Clip: a gorilla walks, plain and soft", scene, caption, update)


def arm_waves(update: Update) -> Figure:
    """Clip: an arm waves, plain and soft."""
    beats = (1.1, 1.1 + 2 / 1.7)  # two of its 1.7 a second, while it is up
    scene = Scene(
        "arm", "wave", (0.8, 0.2, 0.75), (300, 280), 3e3, {"Shoulder": 0.4, "Forearm": 0.3}, floor=False, span=beats
    )
    caption = (
        f"The flesh is fat of 3 kPa, firmer at the shoulder and in the forearm; {REDDER}. It swings about the bones "
        "and turns later than they do."
    )
    return moving("clip-arm-wave", "Clip: an arm waves, plain and soft", scene, caption, update)
