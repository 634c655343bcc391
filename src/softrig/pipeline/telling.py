"""How a build tells how far it is: stage by stage, or all of it as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from softrig.pipeline.cache import StageCache

Update = Callable[[int, int], None]
"""Tells how much of how much is done; (0, 0): there was nothing to do, all is kept from before."""
Stage = Callable[[str], AbstractContextManager[Update | None]]
"""Opens a stage by its title and gives what to tell the progress to."""

COSTS = {
    "Filling with tets": 3.0,
    "Fitting the poses": 23.0,
    "Finding shapes": 45.0,
    "Reducing forces": 40.0,
    "Looking along the clips": 1.0,
}
"""What the stages of a build usually take, in seconds on some machine: only their proportions count."""


def untold(_title: str) -> AbstractContextManager[Update | None]:
    """Opens a stage of which nobody hears."""
    return nullcontext(None)


def with_kept(stage: Stage, cache: StageCache) -> Stage:
    """Opens stages that tell where all their results were found in `cache`."""

    @contextmanager
    def opened(title: str) -> Iterator[Update | None]:
        with stage(title) as update:
            made, reused = len(cache.made), len(cache.reused)
            yield update
            if update is not None and len(cache.made) == made and len(cache.reused) > reused:
                update(0, 0)

    return opened


@contextmanager
def as_one(stage: Stage, title: str) -> Iterator[Stage]:
    """Opens one stage that stands for all those of a build, each as long as it usually is."""
    with stage(title) as update:
        passed = 0.0

        @contextmanager
        def part(name: str) -> Iterator[Update]:
            nonlocal passed
            cost = COSTS[name]

            def tell(done: int, total: int) -> None:
                if update is not None:
                    share = passed + cost * done / max(total, 1)
                    update(round(1000 * share), round(1000 * sum(COSTS.values())))

            yield tell
            tell(1, 1)
            passed += cost

        yield part
