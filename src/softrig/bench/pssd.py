"""PSSD Tables 1, 2 and 3 on the built-in characters, ours beside the paper's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from softrig.bases.contact import constrained_modes, constraint_rows
from softrig.bench.breakdown import Breakdown, breakdown
from softrig.bench.models import prepared
from softrig.bench.posespace import full_step
from softrig.bench.record import Record, Row, Sizes, model_sizes, timing_row
from softrig.console import Update
from softrig.machine import this_machine, timed
from softrig.models.full import FullBody
from softrig.models.stepper import Stepper
from softrig.numerics.null_space import null_space
from softrig.pipeline.build import Built
from softrig.pipeline.compare import default_damping
from softrig.pipeline.shapes import posed_body
from softrig.pipeline.timing import table_bytes
from softrig.poses.contact import Contacts, self_contacts
from softrig.project import Project

PAPER = "PSSD"


@dataclass(frozen=True)
class Line:
    """One line of PSSD Table 3."""

    vertices: int
    tets: int
    drawn: int
    modes: int
    regions: int
    poses: int
    internal: int
    """Cubature tets of the internal forces."""
    core: float
    """Percent of the step: fitting, basis interpolation and the like."""
    dynamics: float
    render: float
    milliseconds: float
    megabytes: float
    frames: float
    """Frames a second."""
    speedup: float
    """Over full simulation."""

    def project(self) -> Project:
        """Our settings with the paper's sizes."""
        return Project().changed(
            mesh={"tets": self.tets}, basis={"modes": self.modes, "regions": self.regions}, poses={"count": self.poses}
        )


TABLE_3 = {
    "arm": Line(2364, 8122, 10525, 45, 3, 10, 192, 36.0, 58.0, 6.0, 0.87, 11.0, 1150.0, 60.0),
    "x": Line(3077, 9303, 2362, 30, 1, 3, 144, 26.0, 65.0, 9.0, 0.59, 4.2, 1700.0, 105.0),
    "bear": Line(4018, 12762, 6876, 100, 6, 8, 336, 29.0, 66.0, 5.0, 1.43, 7.3, 700.0, 40.0),
    "gorilla": Line(3771, 16297, 15774, 100, 6, 4, 144, 29.0, 63.0, 8.0, 1.33, 7.9, 750.0, 125.0),
}
TABLE_1 = {"arm": (54, 0.9, 1.2, 2.6), "bear": (73, 1.9, 2.2, 7.3), "gorilla": (114, 1.7, 2.4, 6.2)}
"""Constraints, and seconds of 20 modes: free, constrained with a thresholded null space, constrained by CG."""
TABLE_1_MODES = {10: 5.4, 20: 6.2, 50: 11.7, 100: 18.7}
"""Seconds of so many constrained modes of the gorilla, by CG."""
TABLE_2 = {
    "pose": 0.07,
    "fitting": 0.12,
    "internal": 0.2 + 0.48,  # basis interpolation, forces and stiffness
    "inertial": 0.11,
    "integration": 0.24,
    "surface": 0.1,
}
"""Milliseconds of the parts of the gorilla's step on 8 threads."""
TABLE_2_STEP = TABLE_2["fitting"] + TABLE_2["internal"] + TABLE_2["inertial"] + TABLE_2["integration"]
FREE, THRESHOLDED, GRADIENTS = "PSSD", "PSSD, thresholded", "PSSD, CG"


def built(name: str) -> Built:
    """The character by the sizes of its line of Table 3, built once a run."""
    return prepared(name, TABLE_3[name].project()).built


def stepper_of(made: Built) -> Stepper:
    """A stepper with the damping that a simulation has by default."""
    return Stepper(made.model, damping=default_damping(made))


def table_1(update: Update) -> Record:
    """20 modes of the pose with most contacts, free and constrained; then more modes of the gorilla."""
    rows: list[Row] = []
    sizes: Sizes = {}
    for done, (name, (constraints, free_time, thresholded, gradients)) in enumerate(TABLE_1.items()):
        body, contacts = in_contact(built(name))
        free = timed(lambda body=body: constrained_modes(body, 20), repeats=3)  # type: ignore[misc]
        held = timed(lambda body=body, contacts=contacts: held_modes(body, contacts, 20), repeats=3)  # type: ignore[misc]
        sizes[name] = {"degrees of freedom": body.size, "contacts": len(contacts)}
        paper = {THRESHOLDED: thresholded, GRADIENTS: gradients}
        rows += [
            Row(f"{name}: constraints", "", len(contacts), others={FREE: constraints}),
            timing_row(f"{name}: 20 modes, free", "s", free, others={FREE: free_time}),
            timing_row(f"{name}: 20 modes, in contact", "s", held, others=paper),
            Row(
                f"{name}: in contact over free",
                "×",
                held.least / free.least,
                goal=1.3,
                others={THRESHOLDED: thresholded / free_time, GRADIENTS: gradients / free_time},
            ),
        ]
        update(done + 1, len(TABLE_1) + len(TABLE_1_MODES))
    for done, (modes, seconds) in enumerate(TABLE_1_MODES.items()):
        many = timed(lambda modes=modes: held_modes(body, contacts, modes), repeats=1)  # type: ignore[misc]
        rows.append(Row(f"gorilla: r = {modes}, in contact", "s", many.least, others={GRADIENTS: seconds}))
        update(len(TABLE_1) + done + 1, len(TABLE_1) + len(TABLE_1_MODES))
    remark = "Ours are exact (a sparse null space of the constraints); timed three times, the last four once."
    return Record("pssd-table-1", "PSSD Table 1: modes at a pose in contact", this_machine(), rows, remark, sizes)


def in_contact(made: Built) -> tuple[FullBody, Contacts]:
    """The full body at the pose with most self-contacts, and those."""
    pose = int(np.argmax(made.model.notes["basis"]["contacts"]))
    flesh, fabric = made.flesh, made.fabric
    body = posed_body(
        flesh.mesh.vertices,
        made.posing.positions[pose],
        flesh.mesh.elements,
        flesh.fixed,
        fabric.law,
        fabric.young[pose],
        fabric.poisson[pose],
        fabric.density,
    )
    return body, self_contacts(body.mesh, made.posing.positions[pose], flesh.mesh.vertices)


def held_modes(body: FullBody, contacts: Contacts, count: int) -> object:
    """The null space of the contacts and the modes within it."""
    return constrained_modes(body, count, null_space(constraint_rows(contacts, body.free)))


def table_2(update: Update) -> Record:
    """Where the time of a frame goes, gorilla, r = 100."""
    made = built("gorilla")
    update(1, 2)
    with threadpool_limits(1):
        parts = breakdown(stepper_of(made))
    update(2, 2)
    eight = "PSSD, 8 threads"
    rows = [
        timing_row("pose: kinematics and weights", "ms", parts.pose, others={eight: TABLE_2["pose"]}, note="O(joints)"),
        timing_row("handing over the tables", "ms", parts.call),
        Row("tet mesh fitting", "ms", 1e3 * parts.fitting, others={eight: TABLE_2["fitting"]}, note="O(d)"),
        Row("basis and internal forces", "ms", 1e3 * parts.internal, others={eight: TABLE_2["internal"]}, note="O(r³)"),
        timing_row("inertial forces", "ms", parts.inertial, others={eight: TABLE_2["inertial"]}, note="O(r²)"),
        timing_row("integration", "ms", parts.integration, others={eight: TABLE_2["integration"]}, note="O(r³)"),
        timing_row("step: all from fitting to integration", "ms", parts.step, others={eight: TABLE_2_STEP}),
        timing_row("surface: skin and AUq", "ms", parts.surface, others={eight: TABLE_2["surface"]}, note="O(nr + n̄)"),
        Row("pose, step and surface", "ms", 1e3 * parts.total, others={eight: TABLE_3["gorilla"].milliseconds}),
    ]
    remark = (
        "One core. Inertial forces and integration are the step's own compiled code, run alone on its tables; fitting "
        "and internal forces are what is left, so that the parts add up. The paper mixes its basis at all vertices "
        "(0.2 ms), ours at those of the cubature and of the surface where they are used. The paper's first line is its "
        "pose-space deformation; ours of the surface is part of what is drawn."
    )
    title = "PSSD Table 2: where the time of a step goes"
    sizes = {"gorilla": model_sizes(made.model)}
    return Record("pssd-table-2", title, this_machine(), rows, remark, sizes, notes="order")


def table_3(update: Update) -> Record:
    """All four lines, ours beside the paper's."""
    rows: list[Row] = []
    sizes: Sizes = {}
    for done, (name, line) in enumerate(TABLE_3.items()):
        preparation = prepared(name, line.project())
        made = preparation.built
        stepper = stepper_of(made)
        with threadpool_limits(1):
            parts = breakdown(stepper)
            full = full_step(made, 8)
        rows += _line(name, line, made, parts)
        rows.append(Row(f"{name}: memory", "MB", table_bytes(stepper) / 1e6, others={PAPER: line.megabytes}))
        speedup = full.least / parts.step.least
        rows.append(Row(f"{name}: full step over ours", "×", speedup, others={PAPER: line.speedup}))
        rows.append(Row(f"{name}: build, all cores", "s", preparation.seconds))
        sizes[name] = model_sizes(made.model)
        update(done + 1, len(TABLE_3))
    remark = (
        "Ours on one core, the paper's on 8 threads. Core: pose and fitting, the paper's with basis "
        "interpolation; dynamics: forces and integration, ours with it (`pssd-table-2`). Median and 99 % of pose, step "
        "and surface are the sums of those of the three, so the latter is above that of the whole."
    )
    title = "PSSD Table 3: the four characters"
    return Record("pssd-table-3", title, this_machine(), rows, remark, sizes)


def _line(name: str, line: Line, made: Built, parts: Breakdown) -> list[Row]:
    model = made.model
    shares = parts.core, parts.dynamics, parts.surface.least
    percent = [100.0 * share / sum(shares) for share in shares]
    counts = {
        "tet vertices": (len(model.vertices), line.vertices),
        "tets": (len(model.tets), line.tets),
        "drawn vertices": (len(model.embedding_nodes), line.drawn),
        "modes": (model.mode_count, line.modes),
        "regions": (model_sizes(model)["regions"], line.regions),
        "poses": (len(model.poses), line.poses),
        "cubature tets": (len(model.cubature.tets), line.internal),
    }
    paper = {PAPER: line.milliseconds}
    total = Row(
        f"{name}: pose, step and surface",
        "ms",
        1e3 * parts.total,
        1e3 * (parts.pose.median + parts.step.median + parts.surface.median),
        others=paper,
        p99=1e3 * (parts.pose.p99 + parts.step.p99 + parts.surface.p99),
    )
    return [
        *(Row(f"{name}: {what}", "", ours, others={PAPER: theirs}) for what, (ours, theirs) in counts.items()),
        Row(f"{name}: core", "%", percent[0], others={PAPER: line.core}),
        Row(f"{name}: dynamics", "%", percent[1], others={PAPER: line.dynamics}),
        Row(f"{name}: drawn surface", "%", percent[2], others={PAPER: line.render}),
        total,
        Row(f"{name}: frames a second", "1/s", 1.0 / parts.total, others={PAPER: line.frames}),
    ]
