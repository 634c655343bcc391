"""How it moves: settings that act while it plays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import softrig as sr
from parameter_pictures.look import Panel, around, lengths, row, scale_of, surfaces, with_bar
from parameter_pictures.moments import OFF, along_the_clip, named, side_by_side
from parameter_pictures.picture import Picture
from parameter_pictures.studio import BASE, Studio
from softrig.figures.look import arrow
from softrig.poses.materials import PRESETS
from softrig.project import SimulationSettings
from softrig.render import Mesh

DEFAULT = SimulationSettings()
BLUE = (0.16, 0.38, 0.66)
OF_CLIP = "At {time:.2f} s of the clip 'wave'"
UPPER_ARM = 0.25
"""Metres along the arm: where the upper arm ends."""


def damping(studio: Studio) -> Picture:
    """Over time."""
    own = PRESETS["fat"].damping_ratio
    values = (0.02, own, 0.6)
    bakes = {
        f"damping_ratio = {value:g}" + (" (fat)" if value == own else ""): studio.bake(
            studio.model(), damping=sr.Damping(value)
        )
        for value in values
    }
    caption = (
        "The whole clip 'wave': at the most {low:.1f} mm with a ratio of {low_value:g}, {middle:.1f} with "
        "{middle_value:g} and {high:.1f} with {high_value:g}."
    )
    return along_the_clip(bakes, ("simulation.damping_ratio",), caption, named(values, "_value"))


def gravity(studio: Studio) -> Picture:
    """The arm as it was sculpted, and raised, both held still."""
    model = studio.model()
    rest, raised = studio.arm.rig.parameters.rest, studio.arm.clip("wave").sample(1.2)[0]
    panels, numbers = [], {}
    for value in ("off", "change", "full"):
        simulation = sr.model_simulation(model, gravity=value)
        for name, pose in (("rest", rest), ("raised", raised)):
            simulation.reset()
            soft = simulation.step(pose).copy()
            words = f'"{value}", {"as sculpted" if name == "rest" else "raised"}'
            panel = still_panel(simulation, pose, soft, words)
            panels.append(replace(panel, words=f"{words}: {panel.told}", told=""))  # no corner is empty
            numbers[f"{value}_{name}"] = float(panels[-1].values.max())  # type: ignore[union-attr]
    caption = (
        "The upper arm held still, as sculpted and raised: the flesh is off plain skinning by {off_rest:.1f} and "
        '{off_raised:.1f} mm with "off", by {change_rest:.1f} and {change_raised:.1f} mm with "change", and by '
        '{full_rest:.1f} and {full_raised:.1f} mm with "full".'
    )
    most = scale_of(panels)
    upper = np.flatnonzero(studio.arm.rest_positions[:, 0] < UPPER_ARM)
    images = [
        surfaces(studio.arm.triangles, posed, most, height=0, near=upper) for posed in (panels[::2], panels[1::2])
    ]
    return Picture(with_bar(np.concatenate(images), most, OFF), ("simulation.gravity",), caption, numbers)


def still_panel(
    simulation: sr.Simulation, pose: np.ndarray, soft: np.ndarray, words: str, beside: tuple[Mesh, ...] = ()
) -> Panel:
    """Flesh at places (n, 3), coloured by how far it is off plain skinning at a pose, whose outline lies over it."""
    plain = simulation.show(pose, np.zeros(simulation.model.mode_count))
    off = 1e3 * lengths(soft - plain)
    return Panel(soft, words, off, beside, plain=plain, told=f"{off.max():.1f} mm")


def inertia(studio: Studio) -> Picture:
    """How strongly the flesh feels the motion."""
    values = (0.3, DEFAULT.inertia, 3.0)
    bakes = {
        f"inertia = {value:g}" + (" (default)" if value == DEFAULT.inertia else ""): studio.bake(
            studio.model(), inertia=value
        )
        for value in values
    }
    caption = f"{OF_CLIP} the flesh is {{low:.1f}}, {{middle:.1f}} and {{high:.1f}} mm off plain skinning at most."
    return side_by_side(studio, bakes, ("simulation.inertia",), caption)


def rate(studio: Studio) -> Picture:
    """Over time, of flesh that trembles quickly."""
    model = studio.model(material={"preset": "muscle"})
    values = (30.0, 60.0, DEFAULT.rate, 1000.0)
    bakes = {
        f"rate = {value:g}" + (" (default)" if value == DEFAULT.rate else ""): studio.bake(model, rate=value)
        for value in values
    }
    truth = list(bakes.values())[-1].vertices
    whole = np.linalg.norm(truth - list(bakes.values())[-1].plain)  # type: ignore[operator]
    errors = [100.0 * float(np.linalg.norm(bake.vertices - truth) / whole) for bake in list(bakes.values())[:-1]]
    caption = (
        "The whole clip 'wave', of muscle. Off the motion at {highest_value:g} steps a second: at {low_value:g} by "
        "{low_error:.0f} %, at {middle_value:g} by {middle_error:.0f} %, at {high_value:g} by {high_error:.1f} %."
    )
    numbers = named(values, "_value") | named(errors, "_error")
    return along_the_clip(bakes, ("simulation.rate",), caption, numbers, reference=list(bakes)[-1])


def method(studio: Studio) -> Picture:
    """Over time."""
    ways = {
        "newmark, rate = 180 (default)": {"method": "newmark"},
        "backward-euler, rate = 180": {"method": "backward-euler"},
        "backward-euler, rate = 60": {"method": "backward-euler", "rate": 60.0},
    }
    bakes = {words: studio.bake(studio.model(), **options) for words, options in ways.items()}
    caption = (
        "The whole clip 'wave': at the most {low:.1f} mm with newmark, {middle:.1f} with backward-euler at the same "
        "rate, {high:.1f} at a third of it."
    )
    return along_the_clip(bakes, ("simulation.method",), caption)


def fewer_modes(studio: Studio) -> Picture:
    """One model, stepped with fewer of its modes."""
    values = (4, 12, BASE.basis.modes)
    bakes = {
        f"modes = {value}" + (" (all)" if value == BASE.basis.modes else ""): studio.bake(studio.model(), modes=value)
        for value in values
    }
    caption = (
        f"{OF_CLIP} one model of {{high_value:g}} modes is {{low:.1f}}, {{middle:.1f}} and {{high:.1f}} mm off plain "
        "skinning at most if {low_value:g}, {middle_value:g} and all of them are stepped."
    )
    return side_by_side(studio, bakes, ("simulation.modes",), caption, named(values, "_value"))


def stiffness(studio: Studio) -> Picture:
    """One region, softer and stiffer."""
    model = studio.model()
    at = model.region_names.index("UpperArm")
    bakes = {}
    values = (0.7, 1.0, 4.0)
    for value in values:
        simulation = sr.model_simulation(model)
        scales = np.ones(len(model.region_names))
        scales[at] = value
        simulation.stepper.stiffness_scale = scales
        words = f"UpperArm = {value:g}" + (" (default)" if value == 1.0 else "")
        bakes[words] = simulation.bake(studio.arm.clip("wave"), 60.0, plain=True)
    caption = (
        f"{OF_CLIP} the flesh is {{low:.1f}}, {{middle:.1f}} and {{high:.1f}} mm off plain skinning at most, with "
        "Young's modulus of the upper arm times {low_value:g}, {middle_value:g} and {high_value:g}."
    )
    return side_by_side(studio, bakes, ("simulation.stiffness",), caption, named(values, "_value"))


def wind(studio: Studio) -> Picture:
    """Still air and wind from the front, the arm held still until it rests."""
    model = studio.model()
    pose = studio.arm.rig.parameters.rest
    panels, most = [], []
    low, high = studio.arm.rest_positions.min(axis=0), studio.arm.rest_positions.max(axis=0)
    values = (0.0, 50.0, 150.0)
    for value in values:
        simulation = sr.model_simulation(model)
        simulation.wind = np.array([0.0, value, 0.0])
        for _ in range(300):
            soft = simulation.step(pose)
        foot, length = low[1] - 0.03, 0.0012 * value
        arrows = [
            mesh
            for x in np.linspace(low[0] + 0.1, high[0] - 0.1, 5 if value > 0.0 else 0)
            for mesh in arrow(np.array([x, foot - length, 0.0]), np.array([x, foot, 0.0]), 0.005, BLUE)
        ]
        words = f"wind = [0, {value:g}, 0]" + " (default)" * (value == 0.0)
        panels.append(still_panel(simulation, pose, soft.copy(), words, tuple(arrows)))
        most.append(float(panels[-1].values.max()))  # type: ignore[union-attr]
    caption = (
        "The arm held still in air that blows upwards: off plain skinning by {low:.1f}, {middle:.1f} and {high:.1f} mm "
        "at most, with {low_value:g}, {middle_value:g} and {high_value:g} N/m²."
    )
    near = around(studio.arm.rest_positions, panels[-1].values)  # type: ignore[arg-type]
    image = row(studio.arm.triangles, panels, OFF, near=near)
    return Picture(image, ("simulation.wind",), caption, named(most) | named(values, "_value"))
