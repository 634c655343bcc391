"""Small matrices on one thread: libraries that split them over all cores wait for each other far longer than they work.

On a machine with other work the eigenvectors of a hundred modes take 150 ms with two threads, 1 ms with one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside: list[Any] = []
"""An entry for everybody who is inside; the first one knows what there was before."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra of the whole process on one thread meanwhile; from any thread, also several at once."""
    with _lock:
        _inside.append(_controller().limit(limits=1, user_api="blas") if not _inside else None)
    try:
        yield
    finally:
        with _lock:
            first = _inside[0]
            _inside.pop()
            if not _inside:
                first.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    """Which libraries there are is looked for once: that takes a while."""
    return ThreadpoolController()
