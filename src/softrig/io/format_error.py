"""The one error of all readers of character files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from softrig.errors import InputError


class FileFormatError(InputError):
    """A character file is damaged, unsafe, too large for its bytes, or uses what softrig does not read.

    The message starts with the path, then says where in the file and why.
    """

    def __init__(self, path: str | Path, message: str, indices: Iterable[int] | np.ndarray = ()) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}", indices)
