"""Makes figures and clips by name, writes picture and record of each, and the page of all."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from softrig.console import Update, stages
from softrig.errors import InputError, Notice
from softrig.figures.alignment import permuted_modes, rotated_pose
from softrig.figures.bending import modes_under_a_bend
from softrig.figures.between import between_two_poses
from softrig.figures.clips import arm_waves, gorilla_beside_full, gorilla_jumps, gorilla_walks
from softrig.figures.coarse import full_and_coarse
from softrig.figures.contact import contact_of_an_elbow
from softrig.figures.derivatives import extreme_shapes, modes_and_derivatives
from softrig.figures.figure import Figure, write_index
from softrig.figures.flight import thrown_spoon
from softrig.figures.ground import one_basis_for_all
from softrig.figures.kick import kicked_spoon
from softrig.figures.letter import bent_letter
from softrig.figures.local import local_against_global
from softrig.figures.muscle import stiffening_muscle
from softrig.figures.oaks import oak_clip, oak_in_the_wind
from softrig.figures.pulled import localised_deformation, seams, secondary_motion
from softrig.figures.sketching import basis_from_a_sketch
from softrig.figures.swinging import flower_clip, trajectories

FIGURES: dict[str, Callable[[Update], Figure]] = {
    "clip-gorilla-jump": gorilla_jumps,
    "clip-gorilla-full": gorilla_beside_full,
    "clip-gorilla-walk": gorilla_walks,
    "clip-arm-wave": arm_waves,
    "clip-flower": flower_clip,
    "clip-oak": oak_clip,
    "pssd-4": modes_under_a_bend,
    "pssd-5": contact_of_an_elbow,
    "pssd-6": permuted_modes,
    "pssd-7": rotated_pose,
    "pssd-10": between_two_poses,
    "pssd-11": local_against_global,
    "pssd-12": stiffening_muscle,
    "pssd-13": bent_letter,
    "pssd-14": one_basis_for_all,
    "pssd-15": full_and_coarse,
    "stvk05-6": modes_and_derivatives,
    "stvk05-7": extreme_shapes,
    "stvk05-9": basis_from_a_sketch,
    "stvk05-12": kicked_spoon,
    "stvk05-13": thrown_spoon,
    "sub11-1": oak_in_the_wind,
    "sub11-3": secondary_motion,
    "sub11-5": localised_deformation,
    "sub11-7": trajectories,
    "sub11-8": seams,
}
"""By name, in the order they are made and shown."""


def run_figures(names: Sequence[str], folder: Path) -> list[Figure]:
    """Make the named figures (all by default) and write them and `index.md` into `folder`."""
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise InputError(f"no figure called {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    figures = []
    with stages() as work:
        for name in names or FIGURES:
            start = time.perf_counter()
            with work.stage(name) as update, warnings.catch_warnings():
                warnings.simplefilter("ignore", Notice)  # thin places of coarse meshes are no news here
                figure = FIGURES[name](update)
            figure.write(folder, time.perf_counter() - start)
            write_index(folder, tuple(FIGURES))  # at once: a run that is stopped leaves a true page
            figures.append(figure)
    return figures


def figure_line(name: str) -> str:
    """What a figure is, in one line."""
    return (FIGURES[name].__doc__ or "").strip().splitlines()[0]
