"""What runs fTetWild: a script for the Python that has pytetwild, never imported by softrig.

    python -P wild_side.py job.npz

Reads vertices, triangles, edge_length, epsilon (fractions of the box' diagonal) and writes tets.npz beside it,
or error.txt. A crash of the compiled code ends this process only.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path


def main() -> int:
    """Fill the soup of the job file with tets; 0 if that worked, 2 if the package is missing."""
    import numpy as np

    job = Path(sys.argv[1])
    try:
        tetrahedralize = wild_function()
    except ImportError as missing:
        job.with_name("error.txt").write_text(str(missing), encoding="utf-8")
        return 2
    with np.load(job, allow_pickle=False) as arrays:
        points, tets = tetrahedralize(
            arrays["vertices"],
            arrays["triangles"],
            edge_length_fac=float(arrays["edge_length"]),
            epsilon=float(arrays["epsilon"]),
            num_threads=1,
            quiet=True,
            vtk_ordering=True,  # otherwise all tets are wound the wrong way
        )
    np.savez(job.with_name("tets.npz"), points=points, tets=tets)
    return 0


def wild_function():  # type: ignore[no-untyped-def]
    """`pytetwild.tetrahedralize`; pyvista (0.8 GB), imported by the package but not needed here, is stood in for."""
    stand_in = types.ModuleType("pyvista")
    stand_in.PolyData = object  # type: ignore[attr-defined]
    sys.modules["pyvista"] = stand_in
    try:
        from pytetwild import tetrahedralize  # type: ignore[import-not-found, unused-ignore]
    except (ImportError, AttributeError):
        # A version that asks more of pyvista: the real one, if it is there.
        for name in [name for name in sys.modules if name.split(".")[0] in ("pyvista", "pytetwild")]:
            del sys.modules[name]
        from pytetwild import tetrahedralize
    return tetrahedralize


if __name__ == "__main__":
    sys.exit(main())
