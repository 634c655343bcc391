"""Short clips that loop: a built-in character moves, plain skinning beside soft flesh."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from softrig.bench.record import Row, model_sizes
from softrig.characters import built_in
from softrig.characters.softness import painted_softness
from softrig.console import Update
from softrig.fidelity import trajectory_error
from softrig.figures.figure import Figure, made_of
from softrig.figures.look import LIGHT, framing, shot, white_ground
from softrig.figures.sheet import Panel, sheet
from softrig.io.images import animated_png
from softrig.pipeline.baking import model_simulation
from softrig.pipeline.build import build, build_parts
from softrig.pipeline.coarse import on_surface
from softrig.pipeline.compare import RATE, default_damping, full_trajectory, reduced_trajectory
from softrig.pipeline.parallel import worker_count
from softrig.pipeline.showing import shown_skin
from softrig.poses.materials import PRESETS
from softrig.project import Project
from softrig.render import Mesh, beneath, colour_bar, scale_end
from softrig.rig.character import Character
from softrig.simulation import Bake

SUBFRAMES = 4
"""Frames of the simulation for each that is drawn: a clip sampled as coarsely as it is drawn loses its quick parts."""
FINER = 2
"""Times that a frame is drawn larger than it is shown: edges are smooth."""
FAR = (0.93, 0.38, 0.16)
"""Of flesh far from where plain skinning has it; where it has it, the character's own."""
FPS = 60.0
"""Poses a second of a clip that is simulated in full."""
EVERY = 9
"""Inner steps for each frame of it that is drawn."""
SEEN = ("walk", "beat")
"""Clips of the gorilla that the build knows where another one is judged."""


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


def soft_project(scene: Scene, tets: int = 3000, modes: int = 60) -> Project:
    """Flesh of the scene: coarser than by default, so that it is quick."""
    return Project().changed(
        mesh={"tets": tets},
        basis={"modes": modes},
        poses={"count": 4},
        material={
            "preset": "fat",
            "young": scene.young,
            "softness_map": None if scene.softness is None else "softness",
        },
    )


def studio(
    scene: Scene, character: Character, skins: Sequence[np.ndarray]
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """What takes the scene's pictures (h, w, 3) of places (n, 3), m, and redness (n,); it sees all of `skins`."""
    seen = [skin[:, ::5].astype(np.float64) for skin in skins]
    ground = white_ground(seen[0], character.size) if scene.floor else None
    if ground is not None:
        seen.append(LIGHT.shadow(seen[0], ground.height))
    camera = framing(seen, scene.towards, scene.size)
    own, (wide, tall) = shown_skin(character.colours), scene.size

    def taken(places: np.ndarray, redness: np.ndarray) -> np.ndarray:
        mesh = Mesh(places.astype(np.float64), character.triangles, _reddened(own, redness))
        fine = shot(mesh, camera, (FINER * wide, FINER * tall), ground=ground, above=True)
        return np.rint(fine.reshape(tall, FINER, wide, FINER, 3).mean(axis=(1, 3))).astype(np.uint8)

    return taken


def red_bar(character: Character, most: float, what: str) -> np.ndarray:
    """The bar of the redness up to `most`, metres."""
    typical = np.median(np.atleast_2d(shown_skin(character.colours)), axis=0)
    return colour_bar(lambda far: _reddened(typical, far / (1e3 * most)), 0.0, round(1e3 * most), what, width=340)


def drawn(scene: Scene, character: Character, bake: Bake) -> list[np.ndarray]:
    """(h, w, 3) pictures of every frame to be shown, beginning where the flesh is farthest from plain skinning."""
    assert bake.plain is not None
    plain, soft = bake.plain[::SUBFRAMES], bake.vertices[::SUBFRAMES]
    taken = studio(scene, character, (plain, soft))
    offsets = np.linalg.norm(soft - plain, axis=2)
    most = scale_end(float(offsets.max()))
    bar = red_bar(character, most, "mm from plain skinning")

    def both(frame: int) -> np.ndarray:
        halves = [
            Panel(taken(plain[frame], np.zeros(len(character.rest_positions))), "plain skinning"),
            Panel(taken(soft[frame], offsets[frame] / most), "softrig"),
        ]
        return beneath(sheet([halves]), bar)

    return _all_from(both, offsets)


def drawn_beside_full(
    scene: Scene, character: Character, plain: np.ndarray, full: np.ndarray, reduced: np.ndarray
) -> list[np.ndarray]:
    """(h, w, 3) pictures of plain skinning, full and reduced simulation, each (f, n̄, 3) metres, side by side."""
    taken = studio(scene, character, (plain, full, reduced))
    apart = np.linalg.norm(reduced - full, axis=2)
    most, none = scale_end(float(apart.max())), np.zeros(plain.shape[1])
    bar = red_bar(character, most, "mm from the full simulation")

    def three(frame: int) -> np.ndarray:
        panels = [
            Panel(taken(plain[frame], none), "plain skinning"),
            Panel(taken(full[frame], none), "full simulation"),
            Panel(taken(reduced[frame], apart[frame] / most), "softrig, reduced"),
        ]
        return beneath(sheet([panels]), bar)

    return _all_from(three, np.linalg.norm(full - plain, axis=2))


def _all_from(picture: Callable[[int], np.ndarray], offsets: np.ndarray) -> list[np.ndarray]:
    """All pictures, the first that where `offsets` (f, n) are largest: it is shown where pictures do not move."""
    count = len(offsets)
    first = int(offsets.max(axis=1).argmax())
    with ThreadPoolExecutor(worker_count(None)) as pool:
        return list(pool.map(picture, (np.arange(first, first + count) % count).tolist()))


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
    model = build(character, soft_project(scene), jobs=1)
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
    told = f"{clip.duration:.1f} s in {scene.frames} frames, in real time. {caption} {made_soft(scene.young)}"
    return made_of(
        name,
        title,
        animated_png(pictures, scene.frames / clip.duration),
        rows,
        told,
        alt=f"{title.removeprefix('Clip: ').capitalize()}: the flesh goes up to {rows[0].told()} from plain skinning",
        value="softrig",
        sizes={scene.character: model_sizes(model)},
    )


REDDER = "the redder, the farther it is from plain skinning"
FIRM_ENDS = "firm in head, hands and feet by the names of their joints"
FIRMER = "firmer at the shoulder and in the forearm"


def of_fat(scene: Scene, where: str = FIRM_ENDS) -> str:
    """What the flesh of a scene is, and `where` it is not."""
    return f"The flesh is fat of {1e-3 * scene.young:g} kPa, {where}"


def made_soft(young: float) -> str:
    """How to have flesh of that Young's modulus, Pa, and how soft it is beside the presets."""
    default, fat = PRESETS[Project().material.preset].young, PRESETS["fat"].young
    return (
        f"This is softer than the default, muscle of {1e-3 * default:g} kPa, and than the preset `fat` of "
        f'{1e-3 * fat:g} kPa: `preset = "fat"` and `young = {young:g}` in `[material]` give it.'
    )


def gorilla_beside_full(update: Update) -> Figure:
    """Clip: a gorilla jumps, plain, in full and reduced."""
    scene = Scene("gorilla", "jump", (0.45, 0.1, 0.9), (262, 280), 7e3, frames=52)
    character: Character = built_in(scene.character)
    clip = character.clip(scene.clip)
    _, poses = clip.resample(FPS)
    project = soft_project(scene, modes=Project().basis.modes)
    known = replace(character, clips=tuple(character.clip(name) for name in SEEN))
    with TemporaryDirectory() as folder:
        built = build_parts(known, project, cache=Path(folder), jobs=1)
    update(1, 4)
    model, damping = built.model, default_damping(built)
    full = full_trajectory(built, poses, FPS, damping=damping)
    update(2, 4)
    reduced = reduced_trajectory(model, poses, FPS, damping=damping)
    update(3, 4)
    steps = np.arange(EVERY - 1, len(full), EVERY)
    plain = np.stack([model.rig.positions(model.corrected(poses[round((i + 1) / RATE * FPS)])) for i in steps])
    off = {"full simulation": on_surface(model, full[steps]), "softrig, reduced": on_surface(model, reduced[steps])}
    true, ours = off.values()
    apart = 1e3 * np.linalg.norm(ours - true, axis=2)
    rows = [
        Row("trajectory error against the full simulation, all tets and steps", "%",
            100.0 * trajectory_error(reduced, full, model.vertex_mass)),
        Row("the same of the drawn surface", "%", 100.0 * trajectory_error(ours, true, character.areas)),
        Row("from the full simulation, farthest vertex of all frames", "mm", float(apart.max())),
        Row("from the full simulation, mean of all frames and vertices", "mm", float(apart.mean())),
        Row("flesh from plain skinning, farthest", "mm", float(1e3 * np.linalg.norm(ours, axis=2).max()),
            others={"full simulation": float(1e3 * np.linalg.norm(true, axis=2).max())}),
    ]  # fmt: skip
    pictures = drawn_beside_full(scene, character, plain, plain + true, plain + ours)
    update(4, 4)
    return made_of(
        "clip-gorilla-full",
        "Clip: a gorilla jumps, plain, in full and reduced",
        animated_png(pictures, RATE / EVERY),
        rows,
        f"{len(steps) * EVERY / RATE:.1f} s in {len(steps)} frames, in real time, of a jump that the build did not "
        f"see: it knew the clips {' and '.join(f'`{name}`' for name in SEEN)}. Left: plain skinning. Middle: the full "
        f"simulation of all {len(model.tets):,} tets, step by step. Right: the reduced one of {model.mode_count} modes "
        "on the same mesh, the redder the farther it is from the full simulation at that moment. It errs by "
        f"{rows[0].told()} of the full motion over the whole clip. "
        f"{of_fat(scene)}. {made_soft(scene.young)}",
        alt=f"A gorilla jumps: plain skinning, full simulation, and the reduced one, which is {rows[0].told()} off the "
        "full one",
        value="softrig, reduced",
        remark="Both from rest, with the same material, damping and steps, without gravity.",
        sizes={scene.character: model_sizes(model)},
    )


def gorilla_jumps(update: Update) -> Figure:
    """Clip: a gorilla jumps, plain and soft."""
    scene = Scene("gorilla", "jump", (0.45, 0.1, 0.9), (421, 440), 7e3, frames=52)
    caption = (
        f"{of_fat(scene)}; {REDDER}. Belly, chest and arms stay behind when it takes off, and arrive after it has "
        "landed."
    )
    return moving("clip-gorilla-jump", "Clip: a gorilla jumps, plain and soft", scene, caption, update)


def gorilla_walks(update: Update) -> Figure:
    """Clip: a gorilla walks, plain and soft."""
    scene = Scene("gorilla", "walk", (0.45, 0.1, 0.9), (230, 290), 3e3)
    caption = (
        f"{of_fat(scene)}; {REDDER}. Every step sends a wave through belly and thighs. The flesh arrives where it "
        "began, so the walk can go on for ever."
    )
    return moving("clip-gorilla-walk", "Clip: a gorilla walks, plain and soft", scene, caption, update)


def arm_waves(update: Update) -> Figure:
    """Clip: an arm waves, plain and soft."""
    beats = (1.1, 1.1 + 2 / 1.7)  # two of its 1.7 a second, while it is up
    scene = Scene(
        "arm", "wave", (0.8, 0.2, 0.75), (300, 280), 3e3, {"Shoulder": 0.4, "Forearm": 0.3}, floor=False, span=beats
    )
    caption = f"{of_fat(scene, FIRMER)}; {REDDER}. It swings about the bones and turns later than they do."
    return moving("clip-arm-wave", "Clip: an arm waves, plain and soft", scene, caption, update)
