"""Models that several benchmarks share: each is built once a run, cold, and the time that took is kept."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import cache

from softrig.characters import BuiltInCharacter, built_in
from softrig.errors import Notice
from softrig.pipeline.build import Built, build_parts
from softrig.project import Project


@dataclass(frozen=True, eq=False)
class Prepared:
    """A built character and what it cost."""

    built: Built
    seconds: float
    """Of the whole build, cold, on all cores."""


def prepared(name: str, project: Project) -> Prepared:
    """The built-in character `name` by `project`; the first call of a run builds it."""
    return _prepared(name, project.model_dump_json())


@cache
def character_of(name: str) -> BuiltInCharacter:
    """The built-in character `name`, made once a run."""
    return built_in(name)


@cache
def _prepared(name: str, project: str) -> Prepared:
    character = character_of(name)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)  # thin places of coarse meshes are no news here
        built = build_parts(character, Project.model_validate_json(project))
    return Prepared(built, time.perf_counter() - start)
