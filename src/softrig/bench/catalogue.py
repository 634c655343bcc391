"""All benchmarks by name: what each measures and about how long it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softrig.bench import (
    crowd,
    fidelity,
    meshes,
    multi_domain,
    paper,
    peers,
    posespace,
    pssd,
    scaling,
    sketching,
    speed,
    spoon,
    substructured_fidelity,
    substructuring,
    viewer,
)
from softrig.bench.record import Record
from softrig.console import Update

Measure = Callable[[Update], Record]


@dataclass(frozen=True)
class Bench:
    """One benchmark."""

    run: Measure
    what: str
    minutes: float
    """About how long it takes on two idle cores, compiled, after those before it: models are shared within a run."""
    longer: Measure | None = None
    """What `--long` runs instead, if anything."""
    longer_minutes: float | None = None
    only_long: bool = False
    """Whether it runs only when named or asked for the long ones."""

    def function(self, *, long: bool = False) -> Measure:
        """What to call."""
        return self.longer if long and self.longer is not None else self.run

    def expected(self, *, long: bool = False) -> float:
        """About how many minutes."""
        return self.longer_minutes if long and self.longer_minutes is not None else self.minutes


BENCHES: dict[str, Bench] = {
    "step": Bench(speed.step_speed, "one compiled step of a reduced StVK body, beside C++ and StVK05", 0.2),
    "coefficients": Bench(speed.coefficient_speed, "polynomial coefficients, beside C++", 0.2),
    "derivatives": Bench(speed.derivative_speed, "modal derivatives, beside C++", 0.1),
    "full": Bench(speed.full_speed, "assembly and one step of the full simulation", 0.1),
    "mesher": Bench(meshes.mesher, "tet meshes of the built-in characters: count, time, quality", 0.5),
    "stvk05-fig-5": Bench(paper.figure_5, "StVK05 Fig. 5: time and size of the coefficients", 1.0),
    "stvk05-fig-8": Bench(paper.figure_8, "StVK05 Fig. 8: linear modes and modal derivatives", 0.2),
    "stvk05-fig-10": Bench(
        sketching.figure_10,
        "StVK05 Fig. 10: a basis from sketched pulls",
        1.0,
        longer=sketching.figure_10_whole,
        longer_minutes=15.0,
    ),
    "stvk05-fig-11": Bench(paper.figure_11, "StVK05 Fig. 11: a step and its parts, u = Uq, frames a second", 0.3),
    "stvk05-spoon": Bench(spoon.kicked_spoon, "StVK05 Fig. 12: a kicked spoon, full against reduced", 1.0),
    "posespace": Bench(posespace.pose_space, "the pose-space step of the gorilla: time, bound, errors, memory", 4.0),
    "pssd-table-1": Bench(
        pssd.table_1, "PSSD Table 1: modes with and without contact constraints", 10.0, only_long=True
    ),
    "pssd-table-2": Bench(pssd.table_2, "PSSD Table 2: where the time of a step goes", 1.8),
    "pssd-table-3": Bench(pssd.table_3, "PSSD Table 3: the four characters, each built", 8.0, only_long=True),
    "sub11-table-1": Bench(substructuring.table_1, "SUB11 Table 1: flower and oak in domains, in the wind", 0.3),
    "sub11-domains": Bench(
        substructuring.domains, "SUB11: a step against domains, depth and modes", 0.6, only_long=True
    ),
    "sub11-fidelity": Bench(
        substructured_fidelity.fidelity,
        "SUB11 Fig. 7: a flower swings, exact inertia and the paper's two kinds against the full simulation",
        3.0,
        only_long=True,
    ),
    "multi-domain": Bench(
        multi_domain.multi_domain, "MD11: characters in domains, reduced against full", 6.0, only_long=True
    ),
    "peers": Bench(
        peers.peers, "other solvers on the same mesh in the same run; installs them first, in some minutes", 1.0
    ),
    "scaling": Bench(
        scaling.scaling,
        "step and build against tets, modes, poses and regions, with the orders",
        5.0,
    ),
    "scaling-tets": Bench(scaling.scaling_tets, "step and build against tets, up to 128,000", 25.0, only_long=True),
    "crowd": Bench(crowd.crowd, "1 to 100 characters at once, on one core and on all", 1.5),
    "viewer": Bench(viewer.live_viewer, "the live viewer: pictures a second, bytes a frame", 1.5),
    "fidelity": Bench(fidelity.fidelity, "reduced against full motion on unseen clips", 18.0, only_long=True),
    "fidelity-others": Bench(
        fidelity.fidelity_others,
        "the same for a gorilla soft to its fingertips and for the others",
        45.0,
        only_long=True,
    ),
    "fidelity-sweep": Bench(
        fidelity.fidelity_sweep, "ours and other methods against full motion: modes and poses", 30.0, only_long=True
    ),
}
"""By name, in the order they run."""
