"""MD11: characters in domains, reduced against full, in poses and along a clip that the build did not see."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from softrig.bench.record import Record, Row, Sizes, timing_row
from softrig.characters import built_in
from softrig.console import Update
from softrig.machine import Timing, this_machine
from softrig.models.multi_domain import MultiDomainModel, rigid_frames
from softrig.models.multi_domain_stepper import MultiDomainState, MultiDomainStepper
from softrig.pipeline.multi_domain import GRAVITY, MODES, DomainBuild, build_domains
from softrig.pipeline.multi_domain_samples import pose_shapes
from softrig.pipeline.multi_domain_truth import FullCharacter, clip_frames_of, local_errors, posed_errors

Frame = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Bone matrices (D, 3, 4) and their two rates."""
RANKS = (10, MODES, 40)
POSES = 10
"""Of the clip, evenly spread, at which the full body is solved."""
FPS = 60.0
LONGEST = 216
"""Inner steps of a motion: 1.2 s."""


@dataclass(frozen=True)
class Case:
    """A character whose build does not see one of its clips, and the figures of MD11 Table 2 nearest to its size."""

    name: str
    clip: str
    published: str
    step: float
    """Milliseconds."""
    speedup: float


CASES = (
    Case("arm", "wave", "MD11, 6 domains, 120 modes, 8 cores", 11.0, 46000.0),
    Case("gorilla", "walk", "MD11, 17 domains, 340 modes, 8 cores", 45.0, 5800.0),
)


def multi_domain(update: Update) -> Record:
    """Errors, gaps and times of both characters, by modes of each domain."""
    rows: list[Row] = []
    sizes: Sizes = {}
    total = (len(RANKS) + 1) * len(CASES)
    with TemporaryDirectory() as folder:
        for index, case in enumerate(CASES):
            done = index * (len(RANKS) + 1)

            def tell(part: int, first: int = done) -> None:
                update(first + part, total)

            found, counts = _measured(case, Path(folder), tell)
            rows += found
            sizes[case.name] = counts
    return Record(
        "multi-domain",
        "Multi-domain subspace skinning (MD11)",
        this_machine(),
        rows,
        remark="Errors are mass-weighted distances from the full body, over its own from rigid domains. "
        "Gaps lie between the two copies of a seam before they are averaged, over the character's size. "
        "MD11 gives times of whole frames with at most three Newton iterations, on meshes of 180,000 to 270,000 tets.",
        sizes=sizes,
    )


def _measured(case: Case, folder: Path, tell: Callable[[int], None]) -> tuple[list[Row], dict[str, int]]:
    whole = built_in(case.name)
    shown = replace(whole, clips=tuple(clip for clip in whole.clips if clip.name != case.clip))
    clip = whole.clip(case.clip)
    start = time.perf_counter()
    built = {MODES: build_domains(shown, modes=MODES, cache=folder)}
    seconds = time.perf_counter() - start
    tell(1)
    ours = built[MODES].model
    poses = clip.resample(FPS)[1]
    poses = poses[np.linspace(0, len(poses) - 1, POSES + 2).round().astype(int)[1:-1]]
    start = time.perf_counter()
    full = _full_poses(built[MODES], poses)
    solve = (time.perf_counter() - start) / len(poses)
    what = f"{case.name} without '{case.clip}'"
    rows = [Row(f"{what}: build", "s", seconds)]
    for part, rank in enumerate(RANKS):
        if rank not in built:
            built[rank] = build_domains(shown, modes=rank, cache=folder)
        rows.append(_posed(f"{what}: poses, {rank} modes a domain", built[rank].model, poses, full))
        tell(1 + part)
    half = build_domains(shown, modes=MODES, pose_share=0.5, cache=folder).model
    rows.append(_posed(f"{what}: poses, {MODES} modes, half of them from poses as in the paper", half, poses, full))
    for factor, told in ((0.1, "a tenth of"), (10.0, "ten times")):
        springs = f"{what}: poses, {MODES} modes, {told} the springs' κ"
        rows.append(_posed(springs, replace(ours, spring=factor * ours.spring), poses, full))
    rows.append(_skinning(ours, poses, full, what))
    rows += _motion(case, built[MODES], list(clip_frames_of(ours, clip, FPS))[:LONGEST], what, solve)
    tell(1 + len(RANKS))
    counts = {
        "tets": len(ours.tets),
        "tet vertices": len(ours.vertices),
        "drawn vertices": len(ours.embedding_nodes),
        "domains": len(ours.domains),
        "interfaces": len(ours.seams),
        "modes": ours.mode_count,
        "cubature tets": sum(len(domain.tets) for domain in ours.domains),
        "sample poses": int(ours.notes["samples"]),
    }
    return rows, counts


def _posed(what: str, model: MultiDomainModel, poses: np.ndarray, full: np.ndarray) -> Row:
    errors = posed_errors(model, poses, full)
    also = {"RMS gap, %": errors.gap, "widest gap, %": errors.worst_gap, "poses not found": float(errors.lost)}
    return Row(what, "%", errors.error, also=also)


def _full_poses(built: DomainBuild, poses: np.ndarray) -> np.ndarray:
    """(k, n, 3) equilibria of the full body, each from rigid domains."""
    model = built.model

    def start(p: np.ndarray) -> np.ndarray:
        return model.assembled(np.zeros(model.mode_count), *rigid_frames(model.bone_matrices(p), built.carrier.centres))

    found, _, _ = pose_shapes(built.body, built.carrier, model.bone_matrices, start, poses, GRAVITY)
    if len(found) != len(poses):
        raise ArithmeticError(f"the full body of {model.name} found {len(found)} of {len(poses)} equilibria")
    return found


def _skinning(model: MultiDomainModel, poses: np.ndarray, full: np.ndarray, what: str) -> Row:
    """How far plain skinning is from the full body on the drawn surface, where that moves off rigid domains."""
    carried = np.flatnonzero(model.embedding_weights.any(axis=1))
    nodes, weights = model.embedding_nodes[carried], model.embedding_weights[carried]
    centres = np.stack([domain.centre for domain in model.domains])
    missed = moved = 0.0
    for p, positions in zip(poses, full, strict=True):
        rigid = model.assembled(np.zeros(model.mode_count), *rigid_frames(model.bone_matrices(p), centres))
        drawn, plain = (np.einsum("ka,kai->ki", weights, each[nodes]) for each in (positions, rigid))
        missed += float(np.sum((model.rig.positions(p, carried) - drawn) ** 2))
        moved += float(np.sum((plain - drawn) ** 2))
    return Row(f"{what}: poses, plain skinning", "%", 100.0 * np.sqrt(missed / moved), note="on the drawn surface")


def _motion(case: Case, built: DomainBuild, frames: list[Frame], what: str, solve: float) -> list[Row]:
    """The clip, reduced and full in the same steps from the same equilibrium; times of both."""
    model = built.model
    reduced, full = MultiDomainStepper(model), FullCharacter(model, built.body, built.carrier)
    reduced.settle(frames[0][0])
    full.start(reduced.positions())
    start = reduced.snapshot()
    missed = moved = widest = 0.0
    full_times = []
    for frame in frames:
        reduced.step(*frame)
        begin = time.perf_counter()
        full.step(*frame)
        full_times.append(time.perf_counter() - begin)
        one, other = local_errors(model, reduced, full.positions())
        missed, moved = missed + one, moved + other
        widest = max(widest, float(reduced.gaps().max()))
    helped = reduced.counters["projected"] + reduced.counters["decayed"]
    mean = reduced.counters["iterations"] / len(frames)
    also = {"widest gap, %": 100.0 * widest / model.size, "steps helped": float(helped), "Newton a step": mean}
    times = _timed(reduced, frames, start)
    still = MultiDomainStepper(model, quasistatic=True)
    still.settle(frames[0][0])
    posed = _timed(still, frames[:: round(180.0 / FPS)], still.snapshot())
    step, shown = float(np.median(full_times)), f"{case.name}, {model.mode_count} modes"
    return [
        Row(f"{what}: motion", "%", 100.0 * np.sqrt(missed / moved), also=also),
        timing_row(f"{shown}: step", "ms", times, others={case.published: case.step}),
        timing_row(f"{shown}: quasistatic frame", "ms", posed, others={case.published: case.step}),
        Row(f"{shown}: full step", "ms", 1e3 * min(full_times), 1e3 * step),
        Row(f"{shown}: full step over ours", "×", step / times.median, note="medians"),
        Row(f"{shown}: full pose", "ms", 1e3 * solve, note="mean, from rigid domains"),
        Row(
            f"{shown}: full pose over quasistatic frame",
            "×",
            solve / posed.median,
            others={case.published: case.speedup},
        ),
    ]


def _timed(stepper: MultiDomainStepper, frames: list[Frame], start: MultiDomainState, rounds: int = 5) -> Timing:
    """Each step of the motion timed, over some rounds."""
    times = []
    for _ in range(rounds):
        stepper.restore(start)
        for frame in frames:
            begin = time.perf_counter()
            stepper.step(*frame)
            times.append(time.perf_counter() - begin)
    seconds = np.array(times)
    return Timing(float(seconds.min()), float(np.median(seconds)), float(np.quantile(seconds, 0.99)), len(seconds))
