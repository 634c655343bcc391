"""The demo from end to end: model file, picture strip, animation, report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from softrig.bodies import Soup
from softrig.console import Stages, stages
from softrig.demo.bridge import Bridge, build_bridge, deck_load, deck_patch
from softrig.demo.crate import Crate, Drop, crate_soup, drop_crate
from softrig.dynamics import static_equilibrium
from softrig.fem.loads import STANDARD_GRAVITY
from softrig.files import write_bytes
from softrig.io.images import write_gif, write_png
from softrig.machine import Timing, this_machine, timed
from softrig.models.file import load_reduced_body, save_model
from softrig.models.reduced import ReducedBody
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.render import (
    Camera,
    Ground,
    Mesh,
    Series,
    beneath,
    colour_bar,
    label,
    line_plot,
    render,
    sequential,
    strip,
)
from softrig.report import Report

UP = (0.0, 0.0, 1.0)
SIZE = (880, 380)


@dataclass(frozen=True)
class Demo:
    """What the demo wrote and found."""

    folder: Path
    files: tuple[Path, ...]
    bricks: int
    modes: int
    step: Timing
    """Seconds a step."""
    static_full: float
    """Deflection under the crate's weight, full model, metres."""
    static_reduced: float
    """The same of the reduced model."""


def run_demo(folder: Path, *, modes: int = 15, seconds: float = 5.0, fps: float = 20.0) -> Demo:
    """Build the bridge, drop the crate, and write everything into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    crate = Crate()
    with stages() as work:
        bridge = build_bridge(work, modes)
        with work.stage("Writing and reading the model file"):
            save_model(bridge.model, folder / "bridge.softrig")
            model = load_reduced_body(folder / "bridge.softrig")
        with work.stage("The same load on the full model"):
            full, reduced = _static_deflections(bridge, crate)
        with work.stage("Dropping the crate"):
            patch = deck_patch(bridge.soup, crate.along, 0.0)
            drop = drop_crate(model, patch, crate, seconds=seconds, fps=fps)
            step = _step_timing(model)
        frames = _pictures(work, model, crate, drop, bridge)
        with work.stage("Writing pictures and report"):
            files = _write(folder, frames, model, bridge, crate, drop, step, (full, reduced), work)
    return Demo(folder, files, len(bridge.voxels.mesh.elements), modes, step, full, reduced)


def _static_deflections(bridge: Bridge, crate: Crate) -> tuple[float, float]:
    """How far the crate's weight pushes the deck down, metres: full and reduced."""
    body, model = bridge.body, bridge.model
    load = body.restrict(deck_load(bridge.soup, bridge.voxels, crate.along, 0.0))
    weight = crate.mass * STANDARD_GRAVITY
    full = float(load @ static_equilibrium(body, weight * load, tolerance=1e-6))
    # The basis as a map on free degrees of freedom.
    rows = body.restrict(model.basis.reshape(-1, 3, model.size))
    reduced_load = rows.T @ load
    return full, float(reduced_load @ static_equilibrium(model, weight * reduced_load))


def _step_timing(model: ReducedBody) -> Timing:
    simulation = ReducedSimulation(model, 1e-3)
    simulation.v[0] = 1.0
    return timed(simulation.step, repeats=200, inner=20)


def _pictures(work: Stages, model: ReducedBody, crate: Crate, drop: Drop, bridge: Bridge) -> list[np.ndarray]:
    with work.stage("Pictures") as update:
        box = crate_soup(crate)
        bridge_mesh = _mesh(bridge.soup)
        crate_mesh = _mesh(box)
        camera = _camera(model, crate)
        frames = []
        for frame in range(len(drop.times)):
            moved = replace(bridge_mesh, vertices=model.surface_positions(drop.coordinates[frame]))
            placed = replace(crate_mesh, vertices=_placed(box.vertices, model, crate, drop, frame, bridge))
            frames.append(_shot([moved, placed], camera, model))
            update(frame + 1, len(drop.times))
    return frames


def _mesh(soup: Soup) -> Mesh:
    return Mesh(soup.vertices, soup.triangles, (0.7, 0.7, 0.7) if soup.colours is None else soup.colours)


def _shot(meshes: list[Mesh], camera: Camera, model: ReducedBody) -> np.ndarray:
    return render(meshes, camera, SIZE, ground=Ground(height=float(model.surface_rest[:, 2].min())))


def _camera(model: ReducedBody, crate: Crate) -> Camera:
    start = np.array([[crate.along, 0.0, model.surface_rest[:, 2].max() - 1.0 + crate.drop + crate.side]])
    corners = np.concatenate([model.surface_rest, start])
    return Camera.framing(corners, (0.28, -1.0, 0.22), up=UP, aspect=SIZE[0] / SIZE[1], field_of_view=0.45, margin=1.04)


def _placed(
    vertices: np.ndarray, model: ReducedBody, crate: Crate, drop: Drop, frame: int, bridge: Bridge
) -> np.ndarray:
    """The crate at its height, leaning with the deck as it comes close."""
    patch = deck_patch(bridge.soup, crate.along, 0.0)
    deck = model.surface_positions(drop.coordinates[frame])[patch].astype(np.float64)
    centre = deck.mean(axis=0)
    slopes, *_ = np.linalg.lstsq(deck[:, :2] - centre[:2], deck[:, 2] - centre[2], rcond=None)
    near = np.clip(1.0 - (drop.heights[frame] - drop.deck[frame]) / 0.4, 0.0, 1.0)
    normal = np.array([*(-near * slopes), 1.0])
    normal /= np.linalg.norm(normal)
    side = np.cross([0.0, 1.0, 0.0], normal)
    side /= np.linalg.norm(side)
    turn = np.stack([side, np.cross(normal, side), normal], axis=1)
    bottom = centre[2] - drop.deck[frame] + max(drop.heights[frame], drop.deck[frame])
    return vertices @ turn.T + np.array([centre[0], centre[1], bottom])


def _write(
    folder: Path,
    frames: list[np.ndarray],
    model: ReducedBody,
    bridge: Bridge,
    crate: Crate,
    drop: Drop,
    step: Timing,
    deflections: tuple[float, float],
    work: Stages,
) -> tuple[Path, ...]:
    captioned = [
        label(frame, f"t = {time:.2f} s", corner="top left") for frame, time in zip(frames, drop.times, strict=True)
    ]
    deepest = int(drop.deck.argmin())
    impact = int(np.argmax(drop.contact > 0.0))
    chosen = [0, impact, deepest, len(frames) - 1]
    captions = [f"{drop.times[i]:.2f} s, deck {100.0 * drop.deck[i]:+.0f} cm" for i in chosen]
    picture = strip([frames[i] for i in chosen], captions, columns=2)
    paths = tuple(folder / name for name in ("strip.png", "drop.gif", "displacement.png", "report.html"))
    write_png(paths[0], picture)
    write_gif(paths[1], captioned, fps=1.0 / (drop.times[1] - drop.times[0]))
    write_png(paths[2], _coloured(model, crate, drop.coordinates[deepest]))
    report = _report(bridge, crate, drop, step, deflections, work)
    report.picture(paths[1].read_bytes(), "The whole drop.", "gif")
    report.picture(paths[0].read_bytes(), "Start, impact, deepest point, end.")
    report.picture(paths[2].read_bytes(), "How far each point has moved at the deepest moment.")
    report.footer(f"Measured on {this_machine()}.")
    write_bytes(paths[3], report.html().encode())
    return (folder / "bridge.softrig", *paths)


def _coloured(model: ReducedBody, crate: Crate, coordinates: np.ndarray) -> np.ndarray:
    """The bridge coloured by how far it has moved, with a scale."""
    positions = model.surface_positions(coordinates)
    distance = np.linalg.norm(positions - model.surface_rest, axis=1)
    most = np.ceil(20.0 * float(distance.max())) / 20.0
    mesh = Mesh(positions, model.surface_triangles, sequential(distance, low=0.0, high=most))
    image = _shot([mesh], _camera(model, crate), model)
    return beneath(image, colour_bar(sequential, 0.0, 100.0 * most, "cm"))


def _report(
    bridge: Bridge, crate: Crate, drop: Drop, step: Timing, deflections: tuple[float, float], work: Stages
) -> Report:
    full, reduced = deflections
    mesh = bridge.voxels.mesh
    report = Report(
        "A crate falls on a footbridge",
        f"{len(bridge.soup.triangles):,} triangles, {len(mesh.elements):,} bricks, {bridge.body.size:,} degrees of "
        f"freedom, reduced to {bridge.model.size}. The crate weighs {crate.mass:,.0f} kg and falls {crate.drop:g} m.",
    )
    report.heading("Speed")
    report.table(
        ["one step of the reduced bridge", "microseconds"],
        [
            ["least", f"{1e6 * step.least:.1f}"],
            ["median", f"{1e6 * step.median:.1f}"],
            ["99 of 100 below", f"{1e6 * step.p99:.1f}"],
        ],
    )
    report.text(
        f"A step covers 1 ms of motion: one core could run about {1e-3 / step.median:,.0f} such bridges in real time."
    )
    report.table(["stage", "seconds"], [[stage, f"{taken:.2f}"] for stage, taken in work.seconds.items()])
    report.heading("Truth")
    report.text(
        f"The crate at rest pushes the deck down by {1e3 * full:.1f} mm in the full model and by "
        f"{1e3 * reduced:.1f} mm in the reduced one ({100.0 * (reduced / full - 1.0):+.1f} %). It rests "
        f"{crate.along:g} m from the middle, between two of the places where the basis was shown a load. Both "
        "are static solutions; the drop below is still swinging when it ends."
    )
    report.heading("Motion")
    motion = [Series("deck", drop.times, 100.0 * drop.deck), Series("crate", drop.times, 100.0 * drop.heights)]
    report.plot(line_plot(motion, x_label="time, s", y_label="height, cm"), "The deck under the crate, and the crate.")
    return report
