"""The same work on many things, over the cores of this machine or of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from softrig.errors import InputError
from softrig.pipeline.cache import Arrays, StageCache

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]


def worker_count(jobs: int | None) -> int:
    """`jobs`, or as many as this process may use cores."""
    if jobs is not None:
        if jobs < 1:
            raise InputError(f"at least one worker, got {jobs}")
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def workers(jobs: int | None = None, cluster: str | None = None) -> Iterator[int]:
    """Where work goes: `jobs` processes here, or the dask scheduler at `cluster` ("tcp://host:8786")."""
    if cluster is None:
        yield worker_count(jobs)
        return
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise InputError("a cluster needs the optional package: pip install 'softrig[cluster]'") from error
    import joblib

    try:
        client = Client(cluster, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(f"no scheduler answers at {cluster}: {error}") from error
    with client, joblib.parallel_config(backend="dask"):
        yield sum(client.ncores().values()) or 1


def part_of(progress: Progress | None, index: int, parts: int) -> Progress | None:
    """What to tell the progress of one of several equal parts to; it never goes back from part to part."""
    if progress is None:
        return None

    def tell(done: int, total: int) -> None:
        progress(1000 * index + round(1000 * done / max(total, 1)), 1000 * parts)

    return tell


def cached_each(
    cache: StageCache,
    stage: str,
    keys: Sequence[str],
    function: Callable[[Task], Arrays],
    tasks: Sequence[Task],
    jobs: int,
    progress: Progress | None = None,
) -> list[Arrays]:
    """function(task) of every task, in order; those kept under their keys are not done again.

    Each result is kept as soon as it is there, so that a killed build loses only what it was doing.
    """
    results: dict[int, Arrays] = {}
    missing = []
    for index, key in enumerate(keys):
        found = cache.find(stage, key)
        if found is None:
            missing.append(index)
        else:
            results[index] = found
    for done, arrays in enumerate(each(function, [tasks[index] for index in missing], jobs)):
        cache.keep(stage, keys[missing[done]], arrays)
        results[missing[done]] = arrays
        if progress is not None:
            progress(done + 1, len(missing))
    return [results[index] for index in range(len(tasks))]


def each(function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """function(task) of every task, in order, as they come. One worker, or one task, stays in this process."""
    if jobs == 1 or len(tasks) < 2:
        # One thread here too: sums in another order would make another model.
        yield from (_with_one_thread(function, task) for task in tasks)
        return
    import joblib

    yield from joblib.Parallel(n_jobs=min(jobs, len(tasks)), return_as="generator")(
        joblib.delayed(_with_one_thread)(function, task) for task in tasks
    )


def _with_one_thread(function: Callable[[Task], Result], task: Task) -> Result:
    """Workers that each start threads of their own wait for one another."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return function(task)
