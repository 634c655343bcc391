"""The shapes the flesh may take, and the tets that stand for all."""

from __future__ import annotations

import numpy as np

import softrig as sr
from parameter_pictures.look import FROM, GAP, PAPER, WIDTH, WORDS, Panel, chart, lengths, row
from parameter_pictures.moments import named, off_the_full, off_the_last
from parameter_pictures.picture import Picture
from parameter_pictures.studio import BASE, Studio
from softrig.figures.contact import BENDS, CROOK, EVERY, overlap, rest_shapes, shaken
from softrig.figures.look import arrow
from softrig.pipeline.cache import StageCache
from softrig.pipeline.compare import RATE, reduced_trajectory
from softrig.pipeline.regions import make_regions
from softrig.poses.contact import self_contacts
from softrig.project import BasisSettings, CubatureSettings
from softrig.render import Camera, Mesh, Series, render, strip

DEFAULT = BasisSettings()
BLUE = (0.16, 0.38, 0.66)
PALETTE = np.array([(0.34, 0.55, 0.78), (0.90, 0.62, 0.25), (0.40, 0.68, 0.45), (0.75, 0.45, 0.65), (0.6, 0.6, 0.6)])
"""Of regions, in their order."""
MOVED = 2.0
"""Millimetres at which the scale of a pull ends."""
UNSEEN = "in the clip 'wave', which no build saw"
HELD_STILL = "held still"
OTHER_CLIPS = f"rehearsal = {DEFAULT.rehearsal:g} (default), of other clips"


def modes(studio: Studio) -> Picture:
    """How many shapes."""
    values = (5, 15, BASE.basis.modes)
    bakes = {f"modes = {value}": studio.bake(studio.model(basis={"modes": value})) for value in values}
    caption = (
        "At {time:.2f} s of the clip 'wave' flesh of {few:g} modes is up to {low:.1f} mm off flesh of {all:g}, and of "
        "{more:g} up to {high:.1f} mm."
    )
    numbers = {"few": values[0], "more": values[1], "all": values[2]}
    return off_the_last(studio, bakes, ("basis.modes",), caption, numbers)


def modes_error(studio: Studio) -> Picture:
    """The same against the full simulation."""
    values = (5, 15, BASE.basis.modes)
    models = {f"modes = {value}": studio.model(studio.unseen(), basis={"modes": value}) for value in values}
    caption = (
        f"Errors {UNSEEN}: {{low:.0f}} % of the motion with {{low_value:g}} modes, {{middle:.0f}} with "
        "{middle_value:g}, {high:.0f} with {high_value:g}."
    )
    return off_the_full(studio, models, ("basis.modes",), caption, named(values, "_value"))


def recipe(studio: Studio) -> Picture:
    """Ours and the paper's."""
    models = {
        f'recipe = "{value}"' + (" (default)" if value == DEFAULT.recipe else ""): studio.model(
            studio.unseen(), basis={"recipe": value}
        )
        for value in ("load", "paper")
    }
    caption = (
        f"Errors {UNSEEN}, with {{modes:g}} modes: {{low:.0f}} % of the motion with load, {{high:.0f}} with paper "
        "(both stepped alike)."
    )
    return off_the_full(studio, models, ("basis.recipe",), caption, {"modes": BASE.basis.modes})


def regions(studio: Studio) -> Picture:
    """A pull at the upper arm, and what it moves elsewhere."""
    arm = studio.arm
    vertex = int(np.argmin(lengths(arm.rest_positions - np.array([0.16, 0.09, 0.02]))))
    place, pose = arm.rest_positions[vertex], arm.rig.parameters.rest
    force = np.array([0.0, 30.0, 0.0])
    pull = tuple(arrow(place, place + np.array([0.0, 0.12, 0.0]), 0.005, BLUE))
    panels, far, near = [], [], []
    x = arm.rest_positions[:, 0]
    values = (1, 2, DEFAULT.regions)
    for value in values:
        model = studio.model(basis={"regions": value, "rehearsal": 0.0})
        simulation = sr.model_simulation(model)
        simulation.step(pose)
        simulation.pull(vertex, force)
        for _ in range(300):
            soft = simulation.step(pose)
        off = 1e3 * lengths(soft - simulation.show(pose, np.zeros(model.mode_count)))
        words = f"regions = {value}" + (" (default)" if value == DEFAULT.regions else "")
        panels.append(Panel(soft.copy(), words, off, pull))
        far.append(float(off[x > 0.33].max()))
        near.append(float(off.max()))
    image = row(arm.triangles, panels, "mm moved by the pull, and more", most=MOVED)
    caption = (
        "The upper arm pulled with {force:g} N, without rehearsal, which moves the skin there by {low_near:.1f}, "
        "{middle_near:.1f} and {high_near:.1f} mm, and forearm and hand by {low:.1f}, {middle:.1f} and {high:.1f} mm, "
        "where little should move: colours end at {most:g} mm to show that."
    )
    numbers = named(far) | named(near, "_near") | {"force": float(force[1]), "most": MOVED}
    return Picture(image, ("basis.regions",), caption, numbers)


def handles(studio: Studio) -> Picture:
    """Which flesh belongs to which region."""
    given = ({"name": "arm", "bone": "UpperArm"}, {"name": "hand", "point": (0.7, 0.0, 0.0)})
    size = ((WIDTH + GAP) // 3 - GAP, 150)
    arm, built = studio.arm, studio.built()
    camera = Camera.framing(arm.rest_positions, FROM, aspect=size[0] / size[1], margin=1.02)
    pictures, words, numbers = [], [], {}
    for name, settings in (("two", {"regions": 2}), ("most", {}), ("hand", {"handles": given})):
        project = BASE.changed(basis=settings)
        found = make_regions(arm, built.flesh, built.posing, project, StageCache(None))
        weights = np.einsum("na,nak->nk", built.flesh.weights, found.weights[built.flesh.nodes])
        weights /= weights.sum(axis=1, keepdims=True)
        colours = weights @ PALETTE[: weights.shape[1]]
        pictures.append(render([Mesh(arm.rest_positions, arm.triangles, colours)], camera, size, background=PAPER))
        how = "handles" if "handles" in settings else f"regions = {project.basis.regions}"
        words.append(f"{how}: {', '.join(found.names)}")
        numbers[name] = float(len(found.names))
    caption = (
        "Colours mix where regions overlap: {two:.0f} and {most:.0f} regions from the bones, and {hand:.0f} by the "
        "handles of the example below."
    )
    return Picture(strip(pictures, words, size=WORDS, gap=GAP), ("basis.regions", "basis.handles"), caption, numbers)


def rehearsal(studio: Studio) -> Picture:
    """A clip that is rehearsed, and the same that is not."""
    models = {
        "rehearsal = 0": studio.model(studio.unseen(), basis={"rehearsal": 0.0}),
        OTHER_CLIPS: studio.model(studio.unseen()),
        f"rehearsal = {DEFAULT.rehearsal:g} (default), this clip too": studio.model(),
    }
    caption = (
        "Errors in the clip 'wave': {low:.1f} % of the motion without rehearsal, {middle:.1f} after {seconds:g} s of "
        "other clips, {high:.1f} if this clip is among those rehearsed."
    )
    seconds = {"seconds": DEFAULT.rehearsal}
    return off_the_full(studio, models, ("basis.rehearsal",), caption, seconds, dashed=(OTHER_CLIPS,), beside=False)


def between_poses(studio: Studio) -> Picture:
    """One basis for all poses, one at each, or that of rest."""
    models = {
        f'"{value}"' + (" (default)" if value == "pooled" else ""): studio.model(
            studio.unseen(), basis={"between_poses": value, "rehearsal": 0.0}
        )
        for value in ("pooled", "interpolated", "neutral")
    }
    caption = (
        f"Errors {UNSEEN}, without rehearsal: {{low:.0f}} % of the motion pooled, {{middle:.0f}} interpolated, "
        "{high:.0f} neutral."
    )
    return off_the_full(studio, models, ("basis.between_poses",), caption)


def interpolation(studio: Studio) -> Picture:
    """Shapes that turn with the bones, and shapes that do not."""
    models = {
        f'interpolation = "{value}"' + (" (default)" if value == "bind" else ""): studio.model(
            studio.unseen(), basis={"interpolation": value, "rehearsal": 0.0}
        )
        for value in ("bind", "world")
    }
    caption = (
        f"Errors {UNSEEN}, prepared at {{poses:g}} poses and without rehearsal: {{low:.0f}} % of the motion in bind "
        "space, {high:.0f} in the world."
    )
    return off_the_full(studio, models, ("basis.interpolation",), caption, {"poses": BASE.poses.count})


def contact(studio: Studio) -> Picture:
    """A far bent elbow that is shaken: how much of it is in itself."""
    caption = (
        "An elbow bent far, at a pose given for that, and shaken: skinning alone puts {still:.0f} ml of the arm into "
        "itself, with {contacts:.0f} vertices that touch; the motion at most {low:.1f} ml more without contact, "
        "{middle:.1f} sliding and {high:.1f} fixed."
    )
    return _shaken_elbow(studio, BENDS["bent far"], caption)


def contact_slight(studio: Studio) -> Picture:
    """The same, bent less."""
    caption = (
        "The same elbow bent less, so that fewer vertices touch ({contacts:.0f}): skinning alone puts {still:.0f} ml "
        "into itself, the motion at most {low:.1f} ml more without contact, {middle:.1f} sliding and {high:.1f} fixed."
    )
    return _shaken_elbow(studio, BENDS["bent a little"], caption)


def _shaken_elbow(studio: Studio, time: float, caption: str) -> Picture:
    """The elbow as the clip 'bend' has it at `time`, s, thrown up and down from the shoulder, with each `contact`.

    `caption` may use `still`: ml inside itself without motion, `contacts`, and `low` … `high`: ml more at most without
    contact, sliding and fixed.
    """
    given = ({"name": "flexed", "clip": "bend", "time": time},)
    lines, extra, still, contacts = [], [], 0.0, 0
    for value in (False, "sliding", "fixed"):
        built = studio.built(
            mesh={"tets": 6500},
            poses={"count": 2, "given": given},
            basis={"contact": value, "rehearsal": 0.0},
        )
        mesh, pose = built.flesh.mesh, built.model.poses.parameters[1]
        poses = shaken(studio.arm, pose, 0.8)
        moved = reduced_trajectory(built.model, poses, 60.0, damping=studio.damping(built))
        rest = rest_shapes(built, poses, len(moved))
        crook = lengths(mesh.vertices - CROOK) < 0.03
        volume = [
            1e6 * overlap(mesh, x + u, x[crook].mean(axis=0)).volume
            for x, u in zip(rest[::EVERY], moved[::EVERY], strict=True)
        ]
        still = 1e6 * overlap(mesh, rest[0], rest[0][crook].mean(axis=0)).volume
        contacts = len(self_contacts(mesh, built.posing.positions[1], mesh.vertices))
        words = {False: "false", "sliding": '"sliding" (default)', "fixed": '"fixed"'}
        lines.append(Series(words[value], np.arange(len(volume)) * EVERY / RATE, np.array(volume)))
        extra.append(max(0.0, max(volume) - still))
    lines.append(Series(HELD_STILL, lines[0].x, np.full(len(lines[0].x), still), dashed=True))
    image = chart(lines, "time, s", "flesh inside flesh, ml", reference=HELD_STILL)
    numbers = named(extra) | {"still": still, "contacts": float(contacts)}
    return Picture(image, ("basis.contact",), caption, numbers)


def derivatives(studio: Studio) -> Picture:
    """Against the full simulation."""
    values = (0, 4, DEFAULT.derivatives)
    models = {
        f"derivatives = {value}" + (" (default)" if value == DEFAULT.derivatives else ""): studio.model(
            studio.unseen(), basis={"derivatives": value}
        )
        for value in values
    }
    caption = (
        f"Errors {UNSEEN}: {{low:.1f}} % of the motion without derivatives, {{middle:.1f}} with {{middle_value:g}}, "
        "{high:.1f} with {high_value:g}."
    )
    return off_the_full(studio, models, ("basis.derivatives",), caption, named(values, "_value"), beside=False)


def cubature_count(studio: Studio) -> Picture:
    """Force errors by the number of tets, for each way of choosing them."""
    counts = (15, 30, 60, 120, 240)
    lines = []
    for method in ("nnls", "greedy", "htp"):
        found = [force_error(studio.model(cubature={"count": count, "method": method})) for count in counts]
        lines.append(
            Series(f'method = "{method}"' + " (default)" * (method == "nnls"), np.array(counts), np.array(found))
        )
    own = round(1.5 * BASE.basis.modes)
    at = counts.index(own)
    numbers = {line.name.split('"')[1]: float(line.y[at]) for line in lines}
    numbers |= {"few": counts[0], "fewest": float(lines[0].y[0]), "many": counts[-1], "least": float(lines[0].y[-1])}
    caption = (
        "Errors of forces on deformations that the training did not see, of {modes:g} modes. With {own:g} tets, the "
        "default: {nnls:.1f} % with nnls, {greedy:.1f} with greedy and {htp:.1f} with htp; with nnls {fewest:.1f} % at "
        "{few:g} tets and {least:.1f} at {many:g}."
    )
    image = chart(lines, "count (tets)", "force error, %")
    numbers |= {"modes": float(BASE.basis.modes), "own": float(own)}
    return Picture(image, ("cubature.count", "cubature.method"), caption, numbers)


def cubature_samples(studio: Studio) -> Picture:
    """Force errors by the number of training deformations."""
    default = CubatureSettings().samples
    samples = (4, 8, 16, 32, default, 100, 200)
    found = [force_error(studio.model(cubature={"samples": each})) for each in samples]
    caption = (
        "Errors of forces on deformations that the training did not see: {low:.1f} % from {low_value:g} training "
        "deformations a pose, {middle:.1f} from {middle_value:g}, the default, and {high:.1f} from {high_value:g}."
    )
    numbers = named([found[0], found[samples.index(default)], found[-1]])
    numbers |= named([samples[0], default, samples[-1]], "_value")
    image = chart([Series("nnls", np.array(samples), np.array(found))], "samples (a pose)", "force error, %")
    return Picture(image, ("cubature.samples",), caption, numbers)


def stiffness_correction(studio: Studio) -> Picture:
    """Against the full simulation."""
    models = {
        f"stiffness_correction = {str(value).lower()}" + (" (default)" if value else ""): studio.model(
            studio.unseen(), cubature={"stiffness_correction": value, "count": None}
        )
        for value in (True, False)
    }
    caption = (
        f"Errors {UNSEEN}: {{low:.0f}} % of the motion with the linear part of the force known apart from the tets, "
        "{high:.0f} without. Both have the default of {count:g} tets."
    )
    count = {"count": 1.5 * BASE.basis.modes}
    return off_the_full(studio, models, ("cubature.stiffness_correction",), caption, count)


def force_error(model: sr.PoseSpaceModel) -> float:
    """Percent: the mean over the poses, under loads that the training did not see."""
    return 100.0 * float(np.mean([pose["loads"] for pose in model.notes["cubature"]["unseen"]]))
