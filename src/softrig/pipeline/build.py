"""`build`: a character in, a model that moves out. One line a stage."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softrig.errors import InputError, ModeCountError, notice
from softrig.models.pose_space import WHOLE_BODY, PoseSpaceModel
from softrig.pipeline.advice import pose_advice
from softrig.pipeline.cache import StageCache
from softrig.pipeline.fabric import Fabric, firm_joints, make_fabric, require_material
from softrig.pipeline.flesh import Flesh, make_flesh, prepared_character
from softrig.pipeline.inertia import clip_inertia_errors
from softrig.pipeline.parallel import workers
from softrig.pipeline.posing import Choice, Posing, choose_poses, pose_character
from softrig.pipeline.reduction import clip_force_errors, reduce_forces
from softrig.pipeline.regions import known_regions, make_regions
from softrig.pipeline.rigging import Bones, bones_of
from softrig.pipeline.shapes import Shapes, make_shapes
from softrig.pipeline.telling import Stage, untold, with_kept
from softrig.project import BasisSettings, Project, with_recipe
from softrig.rig.character import Character

FEWEST_MODES = 2
"""That a project may ask for."""


@dataclass(frozen=True, eq=False)
class Built:
    """A model and what it was made from, for those who compare it with the full body."""

    model: PoseSpaceModel
    character: Character
    flesh: Flesh
    posing: Posing
    fabric: Fabric
    shapes: Shapes


def build(
    character: Character,
    project: Project | None = None,
    *,
    recipe: str | None = None,
    cache: Path | str | None = None,
    folder: Path | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    stage: Stage | None = None,
) -> PoseSpaceModel:
    """The pose-space model of `character`, by the decisions of `project` (sensible ones by default).

    `recipe="paper"` takes the choices PSSD prints instead of ours. `cache`: a folder for finished stages; what a change
    does not touch is taken from there. `folder`: where the project's sculpts and maps lie. `jobs`: worker processes,
    all cores by default; `cluster`: the address of a dask scheduler instead.
    """
    return build_parts(
        character,
        project,
        recipe=recipe,
        cache=cache,
        folder=folder,
        jobs=jobs,
        cluster=cluster,
        stage=stage,
        strict=True,
    ).model


def build_parts(
    character: Character,
    project: Project | None = None,
    *,
    recipe: str | None = None,
    cache: Path | str | None = None,
    folder: Path | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    stage: Stage | None = None,
    strict: bool = False,
) -> Built:
    """As `build`, with everything the model was made from.

    `strict`: a stiffness of a region that is not there is refused, as `build` does. Comparisons build the same project
    with other regions, and do not use it.
    """
    project = with_recipe(project or Project(), recipe)
    stage = stage or untold
    stages = StageCache(cache)
    kept = with_kept(stage, stages)
    character = prepared_character(character, project)
    bones = bones_of(character)
    choice = _checked(character, project, bones, folder=folder, strict=strict)
    with workers(jobs, cluster) as count:
        with kept("Filling with tets") as update:
            flesh = make_flesh(character, project, stages, update, folder=folder)
        with kept("Fitting the poses") as update:
            posing = pose_character(
                character, flesh, project, stages, bones=bones, choice=choice, jobs=count, progress=update
            )
        fabric = make_fabric(character, flesh, posing, project, folder=folder)
        if strict and project.simulation.stiffness:
            # Before the shapes, which take longest; only they tell whether anything is rehearsed.
            regions = make_regions(character, flesh, posing, project, stages).names
            _require_regions(character, project, _rehearsed(regions, project))
        asked = project
        with kept("Finding shapes") as update:

            def shapes_by(project: Project) -> Shapes:
                return make_shapes(character, flesh, posing, fabric, project, stages, jobs=count, progress=update)

            shapes, project = _as_many_as_there_are(shapes_by, project)
        if strict:
            _require_regions(character, project, shapes.region_names)
        with kept("Reducing forces") as update:
            model = reduce_forces(
                character, flesh, posing, fabric, shapes, project, stages, jobs=count, progress=update
            )
        with stage("Looking along the clips"):  # of this only the last is kept
            model.notes.update(pose_advice(model))
            model.notes["inertia"]["along clips"] = clip_inertia_errors(model)
            between = clip_force_errors(model, flesh, posing, fabric, project, stages)
            model.notes["cubature"]["along clips"] = between
    # What was asked for: else the project file would seem to have changed since.
    model.notes["project"] = asked.model_dump(mode="json", exclude_defaults=True)
    model.notes["firm joints"] = firm_joints(character, project)
    model.notes["young"] = fabric.usual_young(flesh.mesh.volumes)
    model.notes["source"] = source_note(character)
    model.notes["stages"] = {"made": stages.made, "reused": stages.reused}
    return Built(model, character, flesh, posing, fabric, shapes)


def _checked(
    character: Character, project: Project, bones: Bones | None, *, folder: Path | None, strict: bool
) -> Choice:
    """The poses, once all that the project names is known to be there: a mistake is told before minutes of meshing."""
    choice = choose_poses(character, project, folder)
    require_material(character, project, choice.names, folder=folder)
    regions = known_regions(character, project, bones)
    if strict and regions is not None:
        _require_regions(character, project, _rehearsed(regions, project))
    return choice


def _as_many_as_there_are(shapes_by: Callable[[Project], Shapes], project: Project) -> tuple[Shapes, Project]:
    """Shapes by a project, with as many modes as the flesh has where nobody asked for more; and by which project."""
    decided = project
    while True:
        try:
            shapes = shapes_by(decided)
        except ModeCountError as short:
            most, modes = short.most, project.basis.modes
            if most is None or not FEWEST_MODES <= most < decided.basis.modes:
                raise
            if modes != BasisSettings().modes:
                raise ModeCountError(
                    f"{modes} modes are more than the {most} shapes found for this flesh; ask for at most that: "
                    f"--modes {most}, modes = {most} under [basis] in the project file, or "
                    f'basis={{"modes": {most}}} in Python',
                    most=most,
                ) from short
            decided = project.changed(basis={"modes": most})
        else:
            most = decided.basis.modes
            if most < project.basis.modes:
                told = f"{most} shapes were found for this flesh, so it has {most} modes instead of"
                notice(f"{told} {project.basis.modes}")
            return shapes, decided


def _rehearsed(regions: Sequence[str], project: Project) -> tuple[str, ...]:
    """All regions that may come of these."""
    return (*regions, *([WHOLE_BODY] if project.basis.rehearsal else []))


def _require_regions(character: Character, project: Project, known: Sequence[str]) -> None:
    """Refuse a stiffness of a region that is not there: a typing mistake would do nothing, and say nothing."""
    unknown = [name for name in project.simulation.stiffness if name not in known]
    if unknown:
        raise InputError(
            f"simulation.stiffness: '{character.name}' has no region {', '.join(unknown)}; "
            f"its regions: {', '.join(known)}"
        )


def source_note(character: Character) -> dict[str, Any]:
    """Which character a model belongs to: enough to find its file again and to notice that it changed."""
    if character.source is None:
        return {"name": character.name}
    content = character.source.read_bytes()
    return {"name": character.name, "file": character.source.name, "sha256": hashlib.sha256(content).hexdigest()}
