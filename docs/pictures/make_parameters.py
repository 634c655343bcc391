"""Pictures for the parameter pages: the built-in arm with little, the usual and much of each setting.

    .venv/bin/python docs/pictures/make_parameters.py [name …]

writes docs/pictures/parameters/, each picture with a record of its numbers, and into the pages that show them the
captions and when and on which machine they were measured. All of them take many minutes; finished builds and full
simulations are kept in the folder named by --cache.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from parameter_pictures import basis, material, motion, poses, tutorial
from parameter_pictures.picture import Picture, write_caption, write_kept_caption, write_measured, write_picture
from parameter_pictures.studio import Studio

DOCS = Path(__file__).parent.parent
OUTPUT = Path(__file__).parent / "parameters"
PICTURES: dict[str, Callable[[Studio], Picture]] = {
    "tets": material.tets,
    "preset": material.preset,
    "preset-swing": material.preset_swing,
    "young": material.young,
    "poisson": material.poisson,
    "density": material.density,
    "law": material.law,
    "softness_map": material.softness_map,
    "bony": material.bony,
    "firm": material.firm,
    "stiffness_map": material.stiffness_map,
    "smoothing": material.smoothing,
    "muscle": material.muscle,
    "count": poses.count,
    "corrections": poses.corrections,
    "sculpt": poses.sculpt,
    "recipe": basis.recipe,
    "modes": basis.modes,
    "modes-error": basis.modes_error,
    "regions": basis.regions,
    "handles": basis.handles,
    "interpolation": basis.interpolation,
    "between_poses": basis.between_poses,
    "rehearsal": basis.rehearsal,
    "contact": basis.contact,
    "contact-slight": basis.contact_slight,
    "derivatives": basis.derivatives,
    "cubature": basis.cubature_count,
    "samples": basis.cubature_samples,
    "stiffness_correction": basis.stiffness_correction,
    "damping": motion.damping,
    "gravity": motion.gravity,
    "inertia": motion.inertia,
    "rate": motion.rate,
    "method": motion.method,
    "fewer-modes": motion.fewer_modes,
    "stiffness": motion.stiffness,
    "wind": motion.wind,
    "tutorial": tutorial.tutorial,
}


def main() -> None:
    """Write all pictures, or the named ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"which; all by default: {', '.join(PICTURES)}")
    parser.add_argument("--captions", action="store_true", help="make nothing: write the kept captions into the pages")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "softrig-docs")
    chosen = parser.parse_args()
    if chosen.captions:
        for name in chosen.names or PICTURES:
            write_kept_caption(name, OUTPUT, DOCS)
        write_measured(OUTPUT, DOCS)
        return
    OUTPUT.mkdir(parents=True, exist_ok=True)
    studio = Studio(chosen.cache)
    for name in chosen.names or PICTURES:
        picture = PICTURES[name](studio)
        path = write_picture(name, picture, OUTPUT)
        shown = "" if write_caption(path.name, picture.told, DOCS) else ", on no page"
        write_measured(OUTPUT, DOCS)
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB{shown}. {picture.told}", flush=True)


if __name__ == "__main__":
    main()
