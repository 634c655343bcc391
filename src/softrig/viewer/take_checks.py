"""What is in a recorded take, and whether arrays that claim to be one fit together: nothing in a file is trusted."""

from __future__ import annotations

import numpy as np

from softrig.errors import InputError, require_finite
from softrig.viewer import take_rows as rows

_ARRAYS = {
    "poses": 2, "seconds": 1, "cuts": 1, "key_frames": 1, "key_starts": 1, "key_values": 1, "setting_frames": 1,
    "setting_rows": 2, "collider_frames": 1, "collider_starts": 1, "collider_rows": 2, "patch_starts": 1,
    "patch_vertices": 1, "patch_shares": 1, "pull_starts": 1, "pull_patches": 1, "pull_forces": 2,
}  # fmt: skip
_INTEGERS = ("cuts", "key_frames", "key_starts", "setting_frames", "collider_frames", "collider_starts",
             "patch_starts", "patch_vertices", "pull_starts", "pull_patches")  # fmt: skip


def check_take(arrays: dict[str, np.ndarray]) -> None:
    """Refuse arrays that do not fit together; those of the model are checked where it is there."""
    if set(arrays) != set(_ARRAYS):
        raise InputError("not a recorded take: arrays are missing, or too many")
    for name, axes in _ARRAYS.items():
        array = arrays[name]
        if array.ndim != axes or (array.dtype.kind == "f") == (name in _INTEGERS):
            raise InputError(f"not a recorded take: '{name}' is {array.dtype} of shape {array.shape}")
        if name in _INTEGERS:
            arrays[name] = array.astype(np.int64)
        elif name != "key_values":
            require_finite(array, name)
    frames = len(arrays["seconds"])
    if frames == 0 or len(arrays["poses"]) != frames or len(arrays["cuts"]) != frames:
        raise InputError("not a recorded take: frames without poses")
    if (arrays["seconds"] < 0.0).any():
        raise InputError("not a recorded take: frames that last less than no time")
    for name, count in (("key", "key_values"), ("collider", "collider_rows"), ("patch", "patch_vertices"),
                        ("pull", "pull_patches")):  # fmt: skip
        runs = frames if name == "pull" else None if name == "patch" else len(arrays[f"{name}_frames"])
        _check_runs(arrays[f"{name}_starts"], len(arrays[count]), runs)
    for name in ("key_frames", "setting_frames", "collider_frames"):
        numbers = arrays[name]
        if len(numbers) == 0 or numbers[0] != 0 or (np.diff(numbers) <= 0).any() or numbers[-1] >= frames:
            raise InputError(f"not a recorded take: '{name}' do not rise from 0")
    patches = len(arrays["patch_starts"]) - 1
    named = arrays["pull_patches"]
    fits = (
        len(arrays["setting_rows"]) == len(arrays["setting_frames"])
        and arrays["setting_rows"].shape[1] > rows.SETTINGS
        and arrays["collider_rows"].shape[1] == rows.COLLIDER
        and len(arrays["patch_shares"]) == len(arrays["patch_vertices"])
        and arrays["pull_forces"].shape == (len(named), 3)
        and (named.size == 0 or (named.min() >= 0 and named.max() < patches))
    )
    if not fits:
        raise InputError("not a recorded take: its arrays do not fit together")


def _check_runs(starts: np.ndarray, total: int, runs: int | None) -> None:
    if len(starts) == 0 or (runs is not None and len(starts) != runs + 1):
        raise InputError("not a recorded take: runs are missing")
    if starts[0] != 0 or starts[-1] != total or (np.diff(starts) < 0).any():
        raise InputError("not a recorded take: runs that leave their array")
