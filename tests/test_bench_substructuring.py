"""`softrig bench sub11-…` on bodies of a few bars: rows, published figures, goals."""

from __future__ import annotations

import numpy as np
import pytest

from softrig.bench import BENCHES, substructured_fidelity, substructuring
from softrig.bench.substructured_fidelity import EXACT, INTERFACE, Way, fidelity_record
from softrig.bench.substructured_truth import (
    DAMPING,
    STEP,
    first_mode_swing,
    full_motion,
    matching_rates,
    reduced_motion,
    shared_vertices,
    turn,
)
from softrig.bodies.divided import DividedBody
from softrig.meshing.boxes import box_tets
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.substructuring import substructure


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


def bar(parts: int = 2) -> DividedBody:
    """A soft bar along x, held at one end, cut into `parts`."""
    mesh = box_tets((0.6, 0.1, 0.08), (6, 1, 1))
    along = mesh.vertices[mesh.elements].mean(axis=1)[:, 0] / 0.6
    domains = np.minimum((parts * along).astype(np.int32), parts - 1)
    names = tuple(f"part {i}" for i in range(parts))
    fixed = mesh.vertices[:, 0] < 1e-9
    return DividedBody(
        "bar", mesh, domains, names, fixed, np.full(parts, 2e5), 0.3, 1000.0, np.ones_like(mesh.vertices)
    )


@pytest.mark.parametrize("degrees", [1e-4, 3.0, 120.0])
def test_the_turn_of_a_section_is_found(degrees: float) -> None:
    section = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    angle = np.radians(degrees)
    about_x = np.array([[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]])
    assert turn(section, section @ about_x.T + 0.3) == pytest.approx(degrees, rel=1e-6)


def test_a_swing_turns_its_interface_as_far_as_is_asked() -> None:
    body = bar()
    pair = ("part 0", "part 1")
    swing = first_mode_swing(body, (pair,))
    some = shared_vertices(body, *pair)
    x = body.mesh.vertices
    np.testing.assert_allclose(x[some, 0], 0.3)
    steps = round(0.5 / swing.frequency / STEP)
    motion = full_motion(swing.full, steps, 2.0 * swing.velocity)
    assert motion.displacements.shape == (steps, *x.shape)
    reached = max(turn(x[some], x[some] + u[some]) for u in motion.displacements)
    assert reached == pytest.approx(2.0, rel=0.05)


def test_rates_that_match_move_as_the_velocity_says_and_ours_follows_the_full_motion() -> None:
    body = bar()
    swing = first_mode_swing(body, (("part 0", "part 1"),))
    model = substructure(body, modes=8)
    simulation = SubstructuredSimulation(model, STEP, damping=DAMPING)
    rates = matching_rates(simulation, swing.velocity, swing.full.vertex_mass)
    assert not simulation.q.any()
    rest = simulation.positions()
    simulation.q = 1e-4 * rates
    np.testing.assert_allclose(
        (simulation.positions() - rest) / 1e-4, swing.velocity, atol=0.03 * np.abs(swing.velocity).max()
    )
    truth = full_motion(swing.full, 40, swing.velocity)
    ours = reduced_motion(model, EXACT, 40, swing.velocity, swing.full.vertex_mass)
    off = np.linalg.norm(ours.displacements - truth.displacements) / np.linalg.norm(truth.displacements)
    assert off < 0.05


def test_the_fidelity_of_a_bar_has_its_rows_and_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Way(EXACT, "carrying", 8), Way(INTERFACE, "modal-derivatives", 8)
    monkeypatch.setattr(substructured_fidelity, "OURS", ours)
    monkeypatch.setattr(substructured_fidelity, "PAPERS", (theirs,))
    record = fidelity_record(bar(), (("part 0", "part 1"),), (ours, theirs), 60, quiet)
    assert record.name in BENCHES
    for scene, goal in substructured_fidelity.ERROR_GOAL.items():
        found, lumped = record.row(f"{scene}: {ours}"), record.row(f"{scene}: {theirs}")
        assert found.goal == goal
        assert found.ours is not None
        assert lumped.ours is not None
        assert found.ours < 0.2 * lumped.ours
        faster = record.row(f"{scene}: lumped at the interface (L1), frequency over full")
        assert faster.others == {"SUB11": 2.0}
    assert len(record.groups()) == 2


def test_a_table_has_the_papers_figures_beside_ours() -> None:
    model = substructure(bar(), modes=6)
    rows = {row.what.partition(": ")[2]: row for row in substructuring.table_rows(bar(), model, 0.5, 5)}
    assert rows["domains"].ours == 2
    assert rows["modes"].ours == model.size
    assert rows["elements"].ours == len(bar().mesh.elements)
    assert not rows["precomputation"].others
    steps = [row for what, row in rows.items() if what.startswith("step()")]
    assert len(steps) == len(substructuring.KINDS)
    assert all(row.ours and row.median and row.p99 and row.ours <= row.median <= row.p99 for row in steps)
    assert 0.0 < substructuring.polynomial_seconds(model) < 1e-3
    assert sum(paper.domains for paper in substructuring.PUBLISHED.values()) == 1447


def test_a_chain_is_as_deep_as_it_is_long_and_stays_straight() -> None:
    model = substructure(substructuring.chain(5), modes=6)
    assert (model.depth, len(model.domains), len(model.shapes)) == (5, 5, 1)
    simulation = SubstructuredSimulation(model, STEP)
    origins, _ = simulation.frames()
    np.testing.assert_allclose(np.diff(origins, axis=0), np.tile([0.0, 0.0, 0.3], (4, 1)), atol=1e-9)
    assert simulation.positions()[:, 2].max() == pytest.approx(1.5)


def test_growth_has_a_row_a_size_and_its_exponents() -> None:
    record = substructuring.domains_record((3, 12), (2, 4), (4, 6), quiet)
    assert record.name in BENCHES
    exponents = {row.what: row for row in record.rows if row.unit == "exponent"}
    assert exponents["chain: step against domains, exact"].others == {substructuring.PAPER: 1.0}
    assert exponents["flower: step against modes a domain, L1"].others == {substructuring.PAPER: 4.0}
    assert record.row("chain: 4 domains").also["depth"] == 4.0
    assert len({row.what for row in record.rows}) == len(record.rows)
