"""PSSD Figure 10: shapes and cubature between two poses, mixed against made anew."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from softrig.bench.record import Row, model_sizes
from softrig.characters import built_in
from softrig.console import Update
from softrig.figures.chart import OTHER, OURS, TRUTH, Line, line_chart
from softrig.figures.figure import Figure, made
from softrig.figures.look import framing, heat, lengths, shot, skin
from softrig.figures.sheet import Panel, sheet
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.reduction import between_poses_errors
from softrig.project import Project
from softrig.rig.character import Character

CLIP, LAST = "bend", 0.62
"""From rest to the bent elbow: the path goes along this clip up to this second."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
MODES = 20
SETTINGS = Project().changed(
    mesh={"tets": 2500},
    basis={"modes": MODES, "regions": 1, "contact": False, "between_poses": "interpolated", "rehearsal": 0.0},
    cubature={"count": 4 * MODES},
    material={"law": "stvk"},
)


def posed(character: Character, time: float, folder: Path, *, plain: bool = False) -> Built:
    """A model of two poses: rest and the clip at `time`, s; `plain`: forces from the cubature alone, as the paper's."""
    given = ({"name": "there", "clip": CLIP, "time": time},)
    project = SETTINGS.changed(poses={"count": 2, "given": given}, cubature={"stiffness_correction": not plain})
    return build_parts(character, project, cache=folder, jobs=1)


def world_basis(model: PoseSpaceModel, p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, 3, r) shapes mixed with `weights` (m,) and turned by the skin at parameters p."""
    local = np.tensordot(weights, model.shapes, axes=1)
    return np.einsum("nij,njk->nik", model.vertex_rotations(p), local, optimize=True)


def missed_of(wanted: np.ndarray, sigma: np.ndarray, basis: np.ndarray, mass: np.ndarray) -> float:
    """√(Σσ²‖φ − Pφ‖² / Σσ²): what the span of `basis` misses of the shapes `wanted` (n, 3, r), weighted by σ (r,)."""
    root = np.sqrt(np.repeat(mass, 3))[:, None]
    Q, _ = np.linalg.qr(root * basis.reshape(-1, basis.shape[2]))
    target = root * wanted.reshape(-1, wanted.shape[2])
    left = target - Q @ (Q.T @ target)
    share = np.linalg.norm(left, axis=0) ** 2 / np.linalg.norm(target, axis=0) ** 2
    return float(np.sqrt((sigma**2 @ share) / (sigma**2).sum()))


def between_two_poses(update: Update) -> Figure:
    """PSSD Fig. 10: shapes and cubature between two poses, against made anew."""
    character = built_in("arm")
    clip = character.clip(CLIP)
    found: dict[str, list[float]] = {"mixed": [], "neutral": [], "force mixed": [], "force anew": [], "force plain": []}
    frames = []
    with TemporaryDirectory() as folder:
        cache = Path(folder)
        main, plain = posed(character, LAST, cache), posed(character, LAST, cache, plain=True)
        # Times at which the pose features are at equal shares of the way.
        start, end = main.model.pose_features(main.model.poses.parameters)
        times = np.linspace(0.0, LAST, 200)
        way = np.array([main.model.pose_features(clip.sample(t)[0]) for t in times])
        along = (way - start) @ (end - start) / ((end - start) @ (end - start))
        moments = [float(times[np.argmin(np.abs(along - share) + 0.02 * (times < 0.2))]) for share in SHARES[1:-1]]
        for done, (share, time) in enumerate(zip(SHARES, [0.0, *moments, LAST], strict=True)):
            own = plain if share in (0.0, 1.0) else posed(character, time, cache, plain=True)
            pose = 0 if share == 0.0 else 1
            p = own.model.poses.parameters[pose]
            _measure(found, main, plain, own, pose, p)
            frames.append((share, main.model.tet_rest(p), world_basis(main.model, p, main.model.basis_weights(p)), p))
            update(done + 1, len(SHARES) + 1)
    middle = SHARES.index(0.5)
    rows = [
        Row(
            "halfway: missed of the shapes made anew",
            "%",
            found["mixed"][middle],
            others={"rest pose's shapes": found["neutral"][middle]},
        ),
        Row(
            "halfway: force error of the cubature",
            "%",
            found["force mixed"][middle],
            others={
                "cubature alone": found["force plain"][middle],
                "cubature alone, trained there": found["force anew"][middle],
                "PSSD, mixed": 1.5,
                "PSSD, trained there": 1.3,
            },
        ),
        *(
            Row(
                f"{where}: force error",
                "%",
                found["force mixed"][place],
                others={"cubature alone": found["force plain"][place], "PSSD, trained there": published},
            )
            for where, place, published in (("at rest", 0, 1.1), ("at the bent pose", -1, 1.9))
        ),
    ]
    return made(
        "pssd-10",
        "PSSD Figure 10: between two poses",
        _sheet(main, frames, found),
        rows,
        f"An arm from rest to a bent elbow, with {MODES} modes and a cubature at either end. Above: one mixed mode "
        "along the way, coloured by how far it moves. Left below: how much of the shapes made anew at each place "
        "the mixed ones miss, weighted by how much each shape matters. Right: the error of the reduced forces on "
        f"unseen deformations: the mixed weights of {len(main.model.cubature.tets)} tets as the paper has them, "
        "weights trained at that very place, and softrig's forces, whose linear part does not come from the "
        "cubature.",
        remark="Force errors are the larger of two kinds of unseen samples, Gaussian and load-driven.",
        sizes={"arm": model_sizes(main.model)},
    )


def _measure(found: dict[str, list[float]], main: Built, plain: Built, own: Built, pose: int, p: np.ndarray) -> None:
    mass = main.model.vertex_mass
    fresh = world_basis(own.model, p, np.eye(2)[pose])
    sigma = own.model.modes_order
    found["mixed"].append(
        100.0 * missed_of(fresh, sigma, world_basis(main.model, p, main.model.basis_weights(p)), mass)
    )
    found["neutral"].append(100.0 * missed_of(fresh, sigma, world_basis(main.model, p, np.eye(2)[0]), mass))
    for name, parts in (("force mixed", main), ("force plain", plain), ("force anew", own)):
        errors = between_poses_errors(parts.model, parts.flesh, parts.posing, parts.fabric, p)
        found[name].append(100.0 * max(errors.gaussian, errors.loads))


def _sheet(
    main: Built, frames: list[tuple[float, np.ndarray, np.ndarray, np.ndarray]], found: dict[str, list[float]]
) -> np.ndarray:
    size = (228, 210)
    mesh = main.flesh.mesh
    # The mode that moves the flesh about the elbow most.
    forearm = (mesh.vertices[:, 0] > 0.1) & (mesh.vertices[:, 0] < 0.45)
    shown = int(np.argmax(np.linalg.norm(main.model.shapes[0][forearm], axis=1).mean(axis=0)[:8]))
    panels = []
    camera = framing([places for _, places, _, _ in frames], (0.05, 0.25, 1.0), size, margin=1.02)
    for share, places, basis, _ in frames:
        u = basis[:, :, shown]
        u = u * 0.07 / lengths(u).max()
        panels.append(
            Panel(
                shot([skin(mesh, places + u, heat(lengths(u), 0.07))], camera, size),
                "",
                f"{100 * share:.0f} % of the way",
            )
        )
    x = 100.0 * np.array(SHARES)
    shapes = line_chart(
        [
            Line("mixed", x, np.array(found["mixed"]), OURS, dots=True),
            Line("rest pose's alone", x, np.array(found["neutral"]), OTHER, dots=True),
        ],
        x_label="% of the way",
        y_label="missed, %",
        size=(590, 320),
    )
    forces = line_chart(
        [
            Line("softrig", x, np.array(found["force mixed"]), OURS, dots=True),
            Line("weights mixed", x, np.array(found["force plain"]), OTHER, dots=True),
            Line("trained there", x, np.array(found["force anew"]), TRUTH, dashed=True, dots=True),
        ],
        x_label="% of the way",
        y_label="force error, %",
        size=(590, 320),
        y_range=(0.0, max(found["force mixed"] + found["force plain"] + found["force anew"])),
    )
    return sheet([panels, [Panel(shapes, "shapes"), Panel(forces, "forces")]])
