"""What the flesh is made of, and the tets it is cut into."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

import softrig as sr
from parameter_pictures.look import (
    FROM,
    GAP,
    PAPER,
    WIDTH,
    WORDS,
    Panel,
    chart,
    cut_open,
    lengths,
    ramp,
    row,
    with_bar,
)
from parameter_pictures.moments import OFF, along_the_clip, named, offsets, side_by_side, soft_panel
from parameter_pictures.picture import Picture
from parameter_pictures.studio import BASE, FPS, SOFTNESS, Studio
from softrig.fem.laws import LAWS, WORKSPACE, energy, stress
from softrig.figures.muscle import with_biceps
from softrig.pipeline.compare import RATE
from softrig.pipeline.fabric import softness_by_joints
from softrig.poses.materials import PRESETS
from softrig.project import MaterialSettings
from softrig.render import Camera, Series, render, strip
from softrig.rig.anatomy import bony_softness

FAT = PRESETS["fat"]
CRUSHED, DEEPEST = 0.3, 40.0
"""The stretch that the caption names, and kilopascals below which curves end."""
OF_CLIP = "At {time:.2f} s of the clip 'wave'"


def tets(studio: Studio) -> Picture:
    """The mesh, cut open."""
    pictures, words, numbers = [], [], {}
    size = ((WIDTH + GAP) // 3 - GAP, 150)
    counts = {"low": 600, "middle": 3000, "high": 16_000}
    meshes = {name: sr.character_volume(studio.arm, tets=count).lattice.mesh for name, count in counts.items()}
    framed = np.concatenate([mesh.vertices for mesh in meshes.values()])
    camera = Camera.framing(framed, FROM, aspect=size[0] / size[1], margin=1.02)
    for name, mesh in meshes.items():
        pictures.append(render([cut_open(mesh.vertices, mesh.elements)], camera, size, background=PAPER))
        words.append(f"tets = {counts[name]:,}" + (" (default)" if counts[name] == sr.Project().mesh.tets else ""))
        edges = mesh.vertices[mesh.elements][:, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]]
        numbers[name] = 1e3 * float(lengths(edges[:, :, 1] - edges[:, :, 0]).mean())
    caption = "The arm cut open lengthwise. Edges are {low:.0f}, {middle:.0f} and {high:.0f} mm long on average."
    return Picture(strip(pictures, words, size=WORDS, gap=GAP), ("mesh.tets",), caption, numbers)


def preset(studio: Studio) -> Picture:
    """Kinds of flesh, by how they look."""
    bakes = {
        f'"{name}"': studio.bake(studio.model(material={"preset": name})) for name in ("jelly", "fat", "muscle", "firm")
    }
    caption = (
        f"{OF_CLIP} jelly is {{low:.0f}} mm off plain skinning, fat {{middle:.0f}}, muscle {{high:.1f}} and firm flesh "
        "{highest:.1f} mm, at most; colours are made for fat, and jelly goes beyond."
    )
    return side_by_side(studio, bakes, ("material.preset",), caption, of=1)


def preset_swing(studio: Studio) -> Picture:
    """Kinds of flesh, by how they swing."""
    bakes = {
        f'"{name}"': studio.bake(studio.model(material={"preset": name})) for name in ("jelly", "fat", "muscle", "firm")
    }
    caption = (
        "The whole clip 'wave'. At the most, the skin is off plain skinning by {low:.1f} mm of jelly, {middle:.1f} of "
        "fat, {high:.1f} of muscle and {highest:.1f} of firm flesh, in the root mean square over the arm."
    )
    return along_the_clip(bakes, ("material.preset",), caption)


def young(studio: Studio) -> Picture:
    """Young's modulus."""
    values = (5e3, FAT.young, 32e3)
    bakes = {
        f"young = {value:,.0f}" + (" (fat)" if value == FAT.young else ""): studio.bake(
            studio.model(material={"young": value})
        )
        for value in values
    }
    caption = (
        f"{OF_CLIP} flesh of {{soft:,.0f}}, {{fat:,.0f}} and {{stiff:,.0f}} Pa is {{low:.1f}}, {{middle:.1f}} and "
        "{high:.1f} mm off plain skinning at most."
    )
    numbers = {"soft": values[0], "fat": values[1], "stiff": values[2]}
    return side_by_side(studio, bakes, ("material.young",), caption, numbers)


def poisson(studio: Studio) -> Picture:
    """How well the volume is kept, along a clip."""
    lines, true = [], []
    values = (0.2, FAT.poisson, 0.49)
    inner = round(RATE / FPS)
    for value in values:
        built = studio.built(material={"poisson": value})
        bake = studio.bake(built.model)
        assert bake.plain is not None
        name = f"poisson = {value:g}" + (" (fat)" if value == FAT.poisson else "")
        lines.append(Series(name, bake.times, grown(studio, bake.plain, bake.vertices)))
        full = studio.truth(built, studio.damping(built))[inner - 1 :: inner]
        plain = bake.plain[1 : len(full) + 1]
        true.append(np.abs(grown(studio, plain, plain + full[: len(plain)])).max())
    numbers = named([np.abs(line.y).max() for line in lines]) | named(true, "_full") | named(values, "_value")
    caption = (
        "The volume of the waving arm beside that of plain skinning: at most {low:.2f} % off with a ratio of "
        "{low_value:g}, {middle:.2f} with {middle_value:g} and {high:.2f} with {high_value:g}; by the full simulation "
        "{low_full:.2f}, {middle_full:.2f} and {high_full:.2f} %."
    )
    image = chart(lines, "time, s", "change of volume, %")
    return Picture(image, ("material.poisson",), caption, numbers)


def grown(studio: Studio, plain: np.ndarray, soft: np.ndarray) -> np.ndarray:
    """(f,) percent that the arm at places (f, n, 3) is larger than by plain skinning."""
    return 100.0 * (volumes(soft, studio.arm.triangles) / volumes(plain, studio.arm.triangles) - 1.0)


def volumes(places: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(f,) cubic metres inside a closed surface at places (f, n, 3)."""
    a, b, c = (places[:, triangles[:, k]].astype(np.float64) for k in range(3))
    return np.asarray(np.einsum("ftk,ftk->f", a, np.cross(b, c)) / 6.0)


def density(studio: Studio) -> Picture:
    """Heavier flesh swings farther and slower."""
    values = (400.0, FAT.density, 2500.0)
    bakes = {
        f"density = {value:g}" + (" (fat)" if value == FAT.density else ""): studio.bake(
            studio.model(material={"density": value})
        )
        for value in values
    }
    caption = (
        "The whole clip 'wave': the heavier, the farther and the slower it swings. At the most {low:.1f}, {middle:.1f} "
        "and {high:.1f} mm with {low_value:g}, {middle_value:g} and {high_value:g} kg/m³."
    )
    return along_the_clip(bakes, ("material.density",), caption, named(values, "_value"))


def law(studio: Studio) -> Picture:
    """Stress against stretch, straight from the formulas."""
    lam, mu = (float(constant) for constant in FAT.material.lame())
    lines, crushed = [], {}
    for name, code in LAWS.items():
        down, up = (uniaxial(code, lam, mu, np.arange(1.0, end, step)) for end, step in ((0.19, -0.01), (1.705, 0.01)))
        stretches = np.r_[np.arange(1.0, 0.19, -0.01)[::-1], np.arange(1.0, 1.705, 0.01)]
        values = 1e-3 * np.r_[down[::-1], up]
        crushed[name.replace("-", "_")] = -float(np.interp(CRUSHED, stretches, values))
        seen = values > -DEEPEST
        lines.append(Series(name + " (default)" * (name == MaterialSettings().law), stretches[seen], values[seen]))
    caption = (
        "Fat pulled and crushed, its sides free: stress against stretch. All laws agree near one. Crushed to "
        "{stretch:g} of its length it pushes back with {stvk:.1f} kPa by stvk, {corotational:.1f} by corotational, "
        "{stable_neo_hookean:.1f} by stable-neo-hookean and {neo_hookean:.1f} by neo-hookean."
    )
    image = chart(lines, "stretch (below one: crushed)", "stress, kPa")
    return Picture(image, ("material.law",), caption, crushed | {"stretch": CRUSHED})


def uniaxial(code: int, lam: float, mu: float, stretches: np.ndarray) -> np.ndarray:
    """(k,) pascal along the first axis at stretches (k,) that begin at one; the sides go where they cost least."""
    P, work, side, found = np.zeros((3, 3)), np.zeros(WORKSPACE), 1.0, []
    for stretch in stretches:

        def cost(across: float, along: float = float(stretch)) -> float:
            return float(energy(code, np.diag([along, across, across]), lam, mu, work))

        # Near the last one: farther away there may be others.
        side = float(minimize_scalar(cost, bounds=(side - 0.06, side + 0.06), options={"xatol": 1e-7}).x)
        stress(code, np.diag([stretch, side, side]), lam, mu, P, work)
        found.append(P[0, 0])
    return np.array(found)


def softness_map(studio: Studio) -> Picture:
    """Without paint, the paint, and with it."""
    held = np.interp(studio.arm.rest_positions[:, 0], (0.30, 0.40), (1.0, 0.0))
    painted = replace(studio.arm, maps={"paint": held})
    bakes = [
        studio.bake(studio.model(material={"softness_map": None})),
        studio.bake(studio.model(painted, material={"softness_map": "paint"})),
    ]
    at = int(lengths(bakes[0].vertices - bakes[1].vertices).mean(axis=1).argmax())
    assert bakes[0].plain is not None
    off = [offsets(bake)[at] for bake in bakes]
    most = 20.0
    panels = [
        soft_panel(bakes[0], at, "no softness_map", held == 0.0),
        Panel(bakes[0].plain[at], "the map: 1 is soft", paint=held),
        soft_panel(bakes[1], at, "with it", held == 0.0),
    ]
    numbers = {
        "time": float(bakes[0].times[at]),
        "hand": float(off[0][held == 0.0].max()),
        "held": float(off[1][held == 0.0].max()),
        "before": float(off[0][held == 1.0].max()),
        "after": float(off[1][held == 1.0].max()),
    }
    caption = (
        f"{OF_CLIP}. Where the map is zero, forearm and hand were {{hand:.0f}} mm off plain skinning at most and are "
        "{held:.1f} mm off now; where it is one, {before:.0f} and {after:.0f} mm."
    )
    return Picture(row(studio.arm.triangles, panels, OFF, most=most), ("material.softness_map",), caption, numbers)


def bony(studio: Studio) -> Picture:
    """A gorilla's hands, firm by default and as soft as the rest."""
    gorilla = sr.built_in("gorilla")
    clip, default = gorilla.clip("beat"), sr.Project().material.preset
    bakes = []
    for firm in (True, False):
        model = studio.model(
            gorilla,
            mesh={"tets": 5500},
            basis={"modes": 60},
            poses={"count": 4, "clips": ("walk", "jump")},
            material={"preset": default, "softness_map": None, "bony": firm},
        )
        bakes.append(sr.model_simulation(model).bake(clip, FPS, plain=True))
    paint = bony_softness(gorilla)
    assert paint is not None
    held = paint < 0.5
    off = [offsets(bake) for bake in bakes]
    at = int(off[1][:, held].max(axis=1).argmax())
    assert bakes[0].plain is not None
    panels = [
        Panel(bakes[0].plain[at], "plain skinning"),
        soft_panel(bakes[0], at, "bony = true (default)", held),
        soft_panel(bakes[1], at, "bony = false", held),
    ]
    numbers = {
        "time": float(bakes[0].times[at]),
        "firm": float(off[0][at, held].max()),
        "soft": float(off[1][at, held].max()),
    }
    caption = (
        "At {time:.2f} s of the gorilla's clip 'beat', which its build did not see. Hands, feet and head are "
        "{firm:.0f} mm off plain skinning at most, and {soft:.0f} mm where they are as soft as the rest."
    )
    image = row(gorilla.triangles, panels, OFF, height=300)
    return Picture(image, ("material.bony",), caption, numbers)


def firm(studio: Studio) -> Picture:
    """The arm with soft flesh all along, and with a forearm as firm as a hand."""
    names = (), ("Forearm",)
    bakes = [studio.bake(studio.model(material={"softness_map": None, "firm": list(own)})) for own in names]
    held = softness_by_joints(studio.arm, sr.Project().changed(material={"firm": list(names[1])}))
    assert held is not None
    own = held < 0.5
    off = [offsets(bake) for bake in bakes]
    at = int(off[0][:, own].max(axis=1).argmax())
    assert bakes[0].plain is not None
    panels = [
        Panel(bakes[0].plain[at], "plain skinning"),
        soft_panel(bakes[0], at, "firm = [] (default)", own),
        soft_panel(bakes[1], at, 'firm = ["Forearm"]', own),
    ]
    numbers = {
        "time": float(bakes[0].times[at]),
        "soft": float(off[0][at, own].max()),
        "firm": float(off[1][at, own].max()),
    }
    caption = (
        f"{OF_CLIP}. Forearm and hand, which has no joint of its own, are {{soft:.0f}} mm off plain skinning at most, "
        "and {firm:.1f} mm where the forearm is called firm."
    )
    return Picture(row(studio.arm.triangles, panels, OFF), ("material.firm",), caption, numbers)


def stiffness_map(studio: Studio) -> Picture:
    """A stiff upper arm, by how much the paint counts."""
    x = studio.arm.rest_positions[:, 0]
    paint = np.interp(x, (0.0, 0.05, 0.25, 0.30), (0.0, 1.0, 1.0, 0.0))
    painted = replace(studio.arm, maps={**studio.arm.maps, "paint": paint})
    default = sr.Project().material.stiffness_range
    values = (1.0, default, 100.0)
    bakes = [
        studio.bake(studio.model(painted, material={"stiffness_map": "paint", "stiffness_range": value}))
        for value in values
    ]
    at = int(lengths(bakes[0].vertices - bakes[-1].vertices).mean(axis=1).argmax())
    off = [offsets(bake)[at] for bake in bakes]
    assert bakes[0].plain is not None
    most = 15.0
    panels = [Panel(bakes[0].plain[at], "the map: 1 is stiff", paint=paint)]
    panels += [
        soft_panel(bake, at, f"stiffness_range = {value:g}" + (" (default)" if value == default else ""), paint == 1.0)
        for bake, value in zip(bakes, values, strict=True)
    ]
    numbers = named([each[paint == 1.0].max() for each in off]) | named(values, "_value")
    caption = (
        f"{OF_CLIP}, painted flesh is {{low:.1f}} mm off plain skinning at most with a range of {{low_value:g}} (as if "
        "not painted), {middle:.1f} with {middle_value:g} and {high:.1f} with {high_value:g}."
    )
    image = row(studio.arm.triangles, panels, OFF, most=most)
    settings = ("material.stiffness_map", "material.stiffness_range")
    return Picture(image, settings, caption, numbers | {"time": float(bakes[0].times[at])})


def smoothing(studio: Studio) -> Picture:
    """Young's modulus inside, where paint ends sharply."""
    x = studio.arm.rest_positions[:, 0]
    painted = replace(studio.arm, maps={"paint": np.where((x > 0.08) & (x < 0.22), 1.0, 0.0)})
    size = ((WIDTH + GAP) // 3 - GAP, 150)
    camera = Camera.framing(painted.rest_positions, FROM, aspect=size[0] / size[1], margin=1.02)
    pictures, words, numbers = [], [], {}
    default = sr.Project().material.smoothing
    most = 1e-3 * FAT.young * BASE.material.stiffness_range
    for name, value in (("low", 0.0), ("middle", default), ("high", 30.0)):
        built = studio.built(
            painted,
            mesh={"tets": 6000},
            material={"softness_map": None, "stiffness_map": "paint", "smoothing": value},
            basis={"rehearsal": 0.0},
            poses={"count": 1},
        )
        inside = 1e-3 * built.fabric.young[0]
        mesh = built.flesh.mesh
        body = cut_open(mesh.vertices, mesh.elements, lambda chosen, inside=inside: ramp(inside[chosen], most))
        pictures.append(render([body], camera, size, background=PAPER))
        words.append(f"smoothing = {value:g}" + (" (default)" if value == default else ""))
        numbers[name] = float(inside.max())
    image = with_bar(strip(pictures, words, size=WORDS, gap=GAP), most, "kPa Young's modulus")
    caption = (
        "The arm cut open: fat of {fat:.0f} kPa with a ring painted {range:g} times as stiff. The stiffest tet has "
        "{low:.0f}, {middle:.0f} and {high:.0f} kPa."
    )
    told = numbers | {"fat": 1e-3 * FAT.young, "range": BASE.material.stiffness_range}
    return Picture(image, ("material.smoothing",), caption, told)


def muscle(studio: Studio) -> Picture:
    """A biceps that stiffens as it bends."""
    arm = with_biceps(studio.arm)
    given = ({"name": "flexed", "clip": "bend", "time": 0.72},)
    stiff = {"stiffness_map": "biceps", "softness_map": SOFTNESS}
    bakes = {}
    for words, poses in (
        ("as at rest", {}),
        ("10 times as stiff when flexed", {"flexed": {**stiff, "stiffness_range": 10.0}}),
        ("100 times", {"flexed": {**stiff, "stiffness_range": 100.0}}),
    ):
        model = studio.model(arm, poses={"given": given, "count": 2}, material={"poses": poses})
        bakes[words] = studio.bake(model, "bend")
    caption = (
        "The biceps in the clip 'bend', whose arm trembles while it is flexed. It is off plain skinning by {low:.1f} "
        "mm at most if it stays as it is at rest, by {middle:.1f} and {high:.1f} mm if its stiffness_range at the pose "
        "'flexed' is {range:g} and {large:g}."
    )
    numbers = {"range": 10.0, "large": 100.0}
    return along_the_clip(bakes, ("material.poses",), caption, numbers, on=arm.maps["biceps"] > 0.7)
