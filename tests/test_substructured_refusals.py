"""What trees of domains refuse, and that each refusal names its culprit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from domain_bodies_for_tests import bar_model, cut_bar, planted
from softrig.bodies.divided import DividedBody, PlantedTree
from softrig.errors import IndexRangeError, InputError, StepSizeError
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.substructuring import substructure


def strip(domains, fixed=None) -> DividedBody:
    """Four cells in a ring around a hole, domain by domain."""
    box = box_tets((3.0, 3.0, 1.0), (3, 3, 1))
    middle = box.vertices[box.elements].mean(axis=1)
    cell = 3 * middle[:, 1].astype(int) + middle[:, 0].astype(int)
    kept = np.isin(cell, list(domains))
    used, local = np.unique(box.elements[kept], return_inverse=True)
    mesh = VolumeMesh.build(box.vertices[used], local.reshape(-1, 4).astype(np.int32))
    numbers = np.array([domains[c] for c in cell[kept]], np.int32)
    names = tuple("abcd"[: max(domains.values()) + 1])
    held = np.zeros(len(used), bool) if fixed is None else fixed(mesh.vertices)
    return DividedBody(
        "ring", mesh, numbers, names, held, np.full(len(names), 1e5), 0.3, 1000.0, np.ones((len(used), 3))
    )


def test_domains_that_form_no_tree_are_refused_by_name():
    ring = {0: 0, 1: 0, 2: 1, 5: 1, 8: 2, 7: 2, 6: 3, 3: 3}
    with pytest.raises(InputError, match=r"'[abcd]' and '[abcd]' close a loop"):
        substructure(strip(ring), modes=2)
    with pytest.raises(InputError, match=r"domain 'b' shares no face"):
        substructure(strip({0: 0, 2: 1}), modes=2)
    body = strip({0: 0, 1: 1, 2: 2})
    with pytest.raises(InputError, match=r"only the root, 'a', may be held; vertices of 'c' are"):
        substructure(strip({0: 0, 1: 1, 2: 2}, fixed=lambda x: x[:, 0] > 2.9), modes=2)
    with pytest.raises(InputError, match="domains without elements") as caught:
        substructure(replace(body, domains=np.where(body.domains == 1, 0, body.domains).astype(np.int32)), modes=2)
    np.testing.assert_array_equal(caught.value.indices, [1])
    with pytest.raises(InputError, match="0 to 2"):
        substructure(replace(body, domains=body.domains + 1), modes=2)
    with pytest.raises(InputError, match="one an element"):
        substructure(replace(body, domains=body.domains[:-1]), modes=2)


def test_builders_refuse_what_they_do_not_know():
    body = cut_bar(2)
    with pytest.raises(InputError, match=r"no basis called 'magic'.*carrying"):
        substructure(body, basis="magic")
    with pytest.raises(InputError, match=r"no domain called 'leaf'.*d0, d1"):
        substructure(body, modes={"d0": 2, "d1": 2, "leaf": 3})
    with pytest.raises(InputError, match="'d1'"):
        substructure(body, modes={"d0": 2})
    with pytest.raises(InputError, match="'d1' cannot have -1 modes"):
        substructure(body, modes={"d0": 2, "d1": -1})
    with pytest.raises(InputError, match="-3 modes"):
        substructure(body, modes=-3)
    with pytest.raises(InputError, match="'bush'"):
        substructure(PlantedTree("t", planted().shapes, planted().limbs), modes={"trunk": 2, "twig": 2, "bush": 1})


def test_simulations_refuse_what_cannot_be():
    model = bar_model(3)
    with pytest.raises(InputError, match=r"no inertia called 'none'.*interface, centre, exact"):
        SubstructuredSimulation(model, 1e-3, inertia="none")
    for step in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(StepSizeError):
            SubstructuredSimulation(model, step)
    with pytest.raises(InputError, match="no implicit method called 'euler'"):
        SubstructuredSimulation(model, 1e-3, "euler")
    with pytest.raises(InputError, match="at least one iteration"):
        SubstructuredSimulation(model, 1e-3, iterations=0)
    with pytest.raises(InputError, match="gravity"):
        SubstructuredSimulation(model, 1e-3, gravity=(0.0, np.nan, 0.0))
    simulation = SubstructuredSimulation(model, 2e-3)
    with pytest.raises(InputError, match=r"no domain called 'arm'.*d0, d1, d2"):
        simulation.pull("arm", [0], np.zeros(3))
    for number in (3, -1):
        with pytest.raises(InputError, match=f"0 to 2 .index {number}"):
            simulation.pull(number, [0], np.zeros(3))
    with pytest.raises(IndexRangeError) as caught:
        simulation.pull("d1", [0, 99], np.zeros(3))
    np.testing.assert_array_equal(caught.value.indices, [99])
    with pytest.raises(InputError, match="forces"):
        simulation.pull("d1", [0, 1], np.zeros((3, 3)))
    with pytest.raises(InputError):
        simulation.pull("d1", [0], np.array([np.nan, 0.0, 0.0]))
    for wind in ((0.0, np.nan, 0.0), np.zeros((2, 3)), 3.0):
        with pytest.raises(InputError, match="wind"):
            simulation.wind = wind
    assert simulation.wind is None
    for drag in (0.0, -1.0, np.nan):
        with pytest.raises(InputError, match="drag"):
            simulation.drag = drag
    with pytest.raises(InputError, match="held"):
        simulation.launch((0.0, 0.0, 1.0))
    with pytest.raises(InputError, match="-2 steps"):
        simulation.run(-2)
    with pytest.raises(InputError, match="no domain called 'x'"):
        simulation.of("x")


def test_models_refuse_what_does_not_fit():
    model = bar_model(3)
    with pytest.raises(InputError, match="no domain called 'x'"):
        model.with_stiffness({"x": 2.0})
    for factor in (0.0, -1.0, np.nan):
        with pytest.raises(InputError, match="stiffness of 'd1'"):
            model.with_stiffness({"d1": factor})

    def changed(number, **changes):
        domains = list(model.domains)
        domains[number] = replace(domains[number], **changes)
        return replace(model, domains=tuple(domains))

    for match, number, changes in (
        ("'d2'.*shape 3 of 3", 2, {"shape": 3}),
        (r"'d1' \(1\) hangs on 2", 1, {"parent": 2}),
        (r"'d1' \(1\) hangs on -1", 1, {"parent": -1}),
        ("interface of domain 'd1'", 1, {"centre": np.zeros((3, 2))}),
        ("interface of domain 'd2'", 2, {"slopes": np.zeros((1, 3, 3))}),
        ("scale of domain 'd1'", 1, {"scale": -1.0}),
        ("rotation of domain 'd1'", 1, {"turn": -np.eye(3)}),
        ("rotation of domain 'd2'", 2, {"turn": 1.01 * np.eye(3)}),
    ):
        with pytest.raises(InputError, match=match):
            changed(number, **changes)
    shape = model.shapes[1]
    for name in ("vertices", "basis", "coefficients", "products", "drag", "colours"):
        bad = replace(shape, **{name: getattr(shape, name)[:-1]})
        with pytest.raises(InputError, match="shape 'd1'"):
            replace(model, shapes=(model.shapes[0], bad, model.shapes[2]))
    bad = replace(shape, triangles=shape.triangles + 1000)
    with pytest.raises(IndexRangeError, match="'d1'"):
        replace(model, shapes=(model.shapes[0], bad, model.shapes[2]))
    with pytest.raises(InputError, match="at least one domain"):
        replace(model, domains=())
    with pytest.raises(InputError, match="drawn vertices"):
        replace(model, drawn=model.drawn[:-1])
    with pytest.raises(InputError, match="without gaps"):
        replace(model, drawn=np.where(model.drawn == 3, 4, model.drawn))
    with pytest.raises(IndexRangeError, match="drawn vertices"):
        replace(model, triangles=model.triangles + 10**6)
