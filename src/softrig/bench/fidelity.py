"""`softrig bench fidelity`: reduced motion beside the full simulation's, on clips that the build did not see.

Each clip is left out in turn: of the poses, of the rehearsal and of the samples of every map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from threadpoolctl import threadpool_limits

from softrig.bench.cases import CASES, CONVERGED_GOALS, FREQUENCY, FREQUENCY_GOAL, OTHERS, SWEPT, Case
from softrig.bench.conclusions import ALONE, EVERY_TET, why_alone
from softrig.bench.record import Record, Row, Sizes, model_sizes
from softrig.bench.sweeps import STEP
from softrig.bench.truth import LINEAR, MOMENTS, MOST_TURNED, Forces, Truth
from softrig.console import Update
from softrig.errors import InputError, SolverError, notice
from softrig.machine import this_machine
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.cache import StageCache
from softrig.pipeline.compare import (
    every_tet,
    exact_forces,
    learned_along,
    unfollowed,
)
from softrig.pipeline.flesh import prepared_character
from softrig.pipeline.parallel import each, worker_count
from softrig.pipeline.telling import Stage, as_one, untold
from softrig.pipeline.timing import step_times
from softrig.project import Project, paper_recipe
from softrig.rig.character import Character

OURS_LINEAR, IF_LINEAR = "ours, where all is linear", "the full body, if it were linear"
"""Rows."""
MODES = (10, 25, 50, 100, 200)
POSES = (1, 2, 4, 8)


UNREHEARSED = "Building without rehearsal"
"""What the build is called from which both a variant of ours and another method come."""


def fidelity(update: Update) -> Record:
    """The clips of the gorilla and one of the arm: ours, the paper's recipe and the baselines at as many modes."""
    return _cases("fidelity", "Reduced against full motion on clips that the build did not see", CASES, update)


def fidelity_others(update: Update) -> Record:
    """Clips of a gorilla whose hands, feet and head are as soft as the rest, all other clips of the built-in
    characters, and some of arm and X again with a hundred modes, those of the X also where the build sees them: ours,
    the same modes alone, and, for the other characters as they are, other methods."""
    return _cases("fidelity-others", "The same for other flesh and all other built-in characters", OTHERS, update)


def _cases(name: str, title: str, cases: Sequence[Case], update: Update) -> Record:
    rows: list[Row] = []
    sizes: Sizes = {}
    with TemporaryDirectory() as folder:
        tasks = [(case, Path(folder)) for case in cases]
        for index, (found, size) in enumerate(each(_case, tasks, worker_count(None))):
            rows += found
            sizes |= size
            update(index + 1, len(cases))
    more = "ours without contact, too; converged: 720 Hz"
    if any(case.rivals for case in cases):
        more += (
            "; a coarse mesh has other tets, so its error is the area-weighted one of the drawn surface's motion off "
            "plain skinning, and both steps were timed while other cases ran beside them"
        )
    return _record(name, title, rows, sizes, more)


def compare_clip(
    character: Character,
    clip: str,
    project: Project | None = None,
    *,
    unseen: bool = True,
    baselines: bool = False,
    converged: bool = False,
    folder: Path | None = None,
    cache: Path | None = None,
    stage: Stage = untold,
    told: Callable[[Row], None] | None = None,
) -> Record:
    """The reduced motion of `character` in one of its clips beside the full simulation's: a table of errors, percent.

    `unseen`: the build leaves the clip out, as if it were made later. `baselines`: also without regions, without
    rehearsal, with one basis for all poses or the neutral one, by the paper's recipe (five more builds), a coarse full
    mesh of equal cost, and both so little accelerated that all is linear (one more full simulation). `converged`: also
    against a full simulation at 720 steps a second, each solved to the end, which takes longer than all the rest.
    `folder`: where the project's sculpts and maps lie. `cache`: a folder for finished stages, to be used again; the
    full simulation is kept there, too. `stage`: opens a stage by its title, to show how far it is. `told`: gets each
    row as soon as it is known.
    """
    character.clip(clip)  # an unknown one is told before anything is built
    if unseen and len(character.clips) == 1:
        notice(
            f"'{clip}' is the only clip and is left out, so the model is built without any; --seen, or unseen=False in "
            "Python, builds it with the clip"
        )
    project = project or Project()
    case = Case(character.name, clip, None, project, baselines, baselines, character, unseen, folder)
    with TemporaryDirectory() as own:
        plain = partial(_unprefixed, f"{case.what}: ")
        known = None if told is None else lambda row: told(plain(row))
        rows, sizes = case_rows(
            case, cache or Path(own), converged=converged, stage=stage, told=known, keep=cache is not None
        )
    rows = [plain(row) for row in rows]
    more = "converged: 720 Hz" if converged else ""
    record = _record("compare", f"Reduced against full motion: {case.what}", rows, sizes, more)
    return replace(record, remark=f"{record.remark} {why_alone(rows)}".strip(), value="error")


def _case(task: tuple[Case, Path]) -> tuple[list[Row], Sizes]:
    """As `case_rows`; a simulation that does not come through its clip costs its own rows, not all others."""
    try:
        return case_rows(*task)
    except SolverError as trouble:
        return [Row(task[0].what, "%", None, goal=task[0].goal, note=f"not compared: {trouble}")], {}


def _unprefixed(prefix: str, row: Row) -> Row:
    return replace(row, what=row.what.removeprefix(prefix))


def case_rows(
    case: Case,
    cache: Path,
    *,
    converged: bool = True,
    stage: Stage = untold,
    told: Callable[[Row], None] | None = None,
    keep: bool = False,
) -> tuple[list[Row], Sizes]:
    """All models of a case beside its truth, and how large ours is; `told` gets each row as soon as it is known.

    `keep`: full simulations are kept in the cache, too; where that is thrown away it would be for nothing.
    """
    ours = _built(case, case.project, cache, stage)
    sizes = {case.what: model_sizes(ours.model)}
    kept = StageCache(case.stages(cache)) if keep else None
    truth = Truth(case, ours, converged=converged, stage=stage, cache=kept)
    wanted: list[Callable[[], Row]] = [
        partial(truth.row, f"{case.what}: ours", ours, goal=case.goal),
        partial(truth.row, f"{case.what}: {EVERY_TET}", ours, forces=every_tet),
        partial(truth.row, f"{case.what}: ours, nothing follows the modes", ours, forces=unfollowed),
        partial(truth.row, f"{case.what}: {ALONE}", ours, forces=exact_forces),
    ]
    rows = _compared(wanted, stage("Comparing (compiles the first time)"), told)
    rows[1:1] = _other_goals(case, rows[0])
    if not (case.variants or case.rivals):
        return rows, sizes
    without = case.project.changed(basis={"rehearsal": 0.0})
    unrehearsed = _built(case, without, cache, stage, UNREHEARSED)
    wanted = _variants(case, ours, unrehearsed, truth, cache, stage) if case.variants else []
    if case.rivals:
        wanted += [*_rivals(case, unrehearsed, truth, cache, stage), partial(_coarse, case, ours, truth, cache)]
    return rows + _compared(wanted, stage("Comparing the baselines"), told), sizes


def _variants(
    case: Case, ours: Built, unrehearsed: Built, truth: Truth, cache: Path, stage: Stage
) -> list[Callable[[], Row]]:
    """Ours with one thing changed, and what a body is that knows no large deformations."""
    whole = _built(case, case.project.changed(basis={"regions": 1}), cache, stage, "Building with one region")
    wanted: list[Callable[[], Row]] = []
    if case.unseen:
        clip = prepared_character(case.character, case.project).clip(case.clip)
        along = partial(learned_along, clip=clip, project=case.project, cache=case.stages(cache))
        wanted.append(partial(truth.row, f"{case.what}: ours, maps that know the clip", ours, forces=along))
    wanted.append(partial(truth.row, f"{case.what}: ours, the whole body one region", whole))
    wanted.append(partial(truth.row, f"{case.what}: ours, nothing rehearsed", unrehearsed))
    wanted.append(partial(truth.linear_row, f"{case.what}: {OURS_LINEAR}"))
    wanted.append(partial(truth.linear_body_row, f"{case.what}: {IF_LINEAR}"))
    return wanted


def other_methods(project: Project) -> list[tuple[str, Project, dict[str, Forces | None]]]:
    """Other methods with as many modes: what its build is called, its project, and the rows that come from it."""
    world = {"interpolation": "world", "between_poses": "pooled", "rehearsal": 0.0}
    neutral = {"between_poses": "neutral", "rehearsal": 0.0}
    return [
        (
            UNREHEARSED,
            project.changed(basis={"rehearsal": 0.0}),
            {"one PCA basis in bind space, exact forces": exact_forces},
        ),
        (
            "Building in the world",
            project.changed(basis=world),
            {"one PCA basis in the world, exact forces": exact_forces},
        ),
        (
            "Building the neutral basis",
            project.changed(basis=neutral),
            {"basis of the neutral pose, exact forces": exact_forces},
        ),
        (
            "Building the paper's recipe",
            paper_recipe(project),
            {"the paper's recipe": None, "the paper's recipe, exact forces": exact_forces},
        ),
    ]


def _rivals(case: Case, unrehearsed: Built, truth: Truth, cache: Path, stage: Stage) -> list[Callable[[], Row]]:
    wanted: list[Callable[[], Row]] = []
    for title, project, rows in other_methods(case.project):
        built = unrehearsed if title == UNREHEARSED else _built(case, project, cache, stage, title)
        wanted += [partial(truth.row, f"{case.what}: {name}", built, forces=forces) for name, forces in rows.items()]
    return wanted


def _coarse(case: Case, ours: Built, truth: Truth, cache: Path) -> Row:
    what = f"{case.what}: a coarse full mesh of equal cost"
    return truth.coarse_row(what, ours, case.project, case.stages(cache), case.folder)


def _other_goals(case: Case, ours: Row) -> list[Row]:
    """What else is asked of a case that has a goal, where it could be measured."""
    if case.goal is None:
        return []
    asked = {
        "against a converged step, %": ("against a converged step", CONVERGED_GOALS.get(case.goal)),
        FREQUENCY: ("frequency", FREQUENCY_GOAL),
    }
    rows = []
    for figure, (what, goal) in asked.items():
        if figure in ours.also:
            rows.append(Row(f"{ours.what}, {what}", "%", abs(ours.also[figure]), goal=goal))
        elif figure == FREQUENCY:
            rows.append(Row(f"{ours.what}, {what}", "%", None, goal=goal, note="no frequency to be found"))
    return rows


def fidelity_sweep(update: Update) -> Record:
    """The gorilla without its walk and the arm without its bend, against the number of modes and of poses: ours, the
    paper's recipe, and, for the arm, other methods with as many."""
    rows: list[Row] = []
    sizes: Sizes = {}
    with TemporaryDirectory() as folder:
        tasks = [(case, label, project, Path(folder)) for case in SWEPT for label, project in swept_projects(case)]
        for index, (found, size) in enumerate(each(_swept, tasks, worker_count(None))):
            rows += found
            sizes |= size
            update(index + 1, len(tasks))
    more = "ours without contact, too; steps were timed while others ran beside them, least of many"
    return _record("fidelity-sweep", "Reduced against full motion: modes and poses", rows, sizes, more)


def swept_projects(case: Case) -> list[tuple[str, Project]]:
    """A case's project with other numbers of modes and of poses, each with what it is called."""
    modes = [(f"r = {count}", case.project.changed(basis={"modes": count})) for count in MODES]
    poses = [
        (f"{count} pose" + "s" * (count > 1), case.project.changed(poses={"count": count}))
        for count in POSES
        if count != case.project.poses.count or case.project.basis.modes not in MODES
    ]
    return modes + poses


def _swept(task: tuple[Case, str, Project, Path]) -> tuple[list[Row], Sizes]:
    """As `case_rows`, at one size; what fails costs its own rows, not all others."""
    case, label, project, cache = task
    case = replace(case, project=project, called=f"{case.called or case.name}, {label},")
    try:
        ours = _built(case, project, cache)
        # The corrections of more poses change the moving rest shape, hence the truth.
        truth = Truth(case, ours, converged=False)
    except (SolverError, InputError) as trouble:
        return [Row(f"{case.what}: ours", "%", None, note=f"not compared: {trouble}")], {}
    row = truth.row(f"{case.what}: ours", ours)
    with threadpool_limits(1):
        step = {STEP: 1e3 * step_times(ours.model, rounds=100)["least"]}
    rows = [
        replace(row, also=row.also | step),
        truth.row(f"{case.what}: {ALONE}", ours, forces=exact_forces),
    ]
    for _, other, wanted in other_methods(project)[0 if case.rivals else -1 :]:
        try:
            built = _built(case, other, cache)
            rows += [truth.row(f"{case.what}: {name}", built, forces=forces) for name, forces in wanted.items()]
        except (SolverError, InputError) as trouble:  # such as more modes than a single pose has shapes
            rows += [Row(f"{case.what}: {name}", "%", None, note=str(trouble)) for name in wanted]
    return rows, {case.what: model_sizes(ours.model)}


def _compared(
    rows: Sequence[Callable[[], Row]],
    stage: AbstractContextManager[Update | None],
    told: Callable[[Row], None] | None,
) -> list[Row]:
    done: list[Row] = []
    with stage as update:
        for row in rows:
            done.append(row())
            if told is not None:
                told(done[-1])
            if update is not None:
                update(len(done), len(rows))
    return done


def _built(case: Case, project: Project, cache: Path, stage: Stage = untold, title: str = "") -> Built:
    with as_one(stage, title) if title else nullcontext(stage) as told:
        # One worker: the cases are done side by side.
        return build_parts(case.shown, project, cache=case.stages(cache), folder=case.folder, jobs=1, stage=told)


def _record(name: str, title: str, rows: list[Row], sizes: Sizes, more: str) -> Record:
    common = (
        "Trajectory error: mass-weighted RMS over the clip, of the full motion's. Same mesh, law, material, damping "
        "and poses, the full one without contact, 180 Hz; overlap: how much of the body lies in another part of it, "
        f"mean of {MOMENTS} moments, most of it the clip's own; flesh turns: how far {MOST_TURNED:.0f} % of the full "
        "body's tets turn against the rig at most, at the worst of these moments; frequency and decay in the second "
        "after the clip in which the rig stands still"
    )
    times = f"{1.0 / LINEAR:.0f}"
    linear = f"{OURS_LINEAR}: both feel 1/{times} of the accelerations; {IF_LINEAR}: {times} times that motion"
    told = (common, linear if any(row.what.endswith(IF_LINEAR) for row in rows) else "", more)
    return Record(name, title, this_machine(), rows, "; ".join(filter(None, told)) + ".", sizes)
