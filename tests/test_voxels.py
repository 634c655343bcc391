"""Triangle soups to bricks: coverage, embedding, filling, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from softrig.errors import EmptyMeshError, IndexRangeError, InputError, NotFiniteError, Notice
from softrig.meshing import box_bricks, box_tets, resolution_for_bricks, voxelise
from softrig.meshing.overlap import mark_touched_cells
from softrig.meshing.voxels import MOST_CELLS


def box(low=(0.0, 0.0, 0.0), high=(1.0, 1.0, 1.0)):
    mesh = box_bricks(np.subtract(high, low), (1, 1, 1))
    return mesh.vertices + np.asarray(low), mesh.boundary_triangles


def sphere(radius=1.0, stacks=48, slices=96):
    polar = np.linspace(0.0, np.pi, stacks + 1)[1:-1, None]
    around = 2.0 * np.pi * np.arange(slices)[None] / slices
    rings = [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar) + 0.0 * around]
    vertices = np.vstack([np.stack(rings, -1).reshape(-1, 3), [[0, 0, 1], [0, 0, -1]]])
    i, j = np.meshgrid(np.arange(stacks - 2), np.arange(slices), indexing="ij")
    a, b = (i * slices + j).ravel(), (i * slices + (j + 1) % slices).ravel()
    j = np.arange(slices)
    top = np.stack([np.full(slices, len(vertices) - 2), j, (j + 1) % slices], 1)
    last = (stacks - 2) * slices
    bottom = np.stack([np.full(slices, len(vertices) - 1), last + (j + 1) % slices, last + j], 1)
    sides = [np.stack([a, a + slices, b], 1), np.stack([b, a + slices, b + slices], 1)]
    return radius * vertices, np.vstack([*sides, top, bottom])


def joined(*soups):
    starts = np.cumsum([0] + [len(vertices) for vertices, _ in soups[:-1]])
    faces = [triangles + start for (_, triangles), start in zip(soups, starts, strict=True)]
    return np.vstack([vertices for vertices, _ in soups]), np.vstack(faces)


def assert_carried(voxels, vertices):
    size = np.ptp(vertices, axis=0).max()
    carried = voxels.embedding.carry(voxels.mesh.vertices)
    np.testing.assert_allclose(carried, vertices, rtol=0, atol=1e-12 * size)
    weights = voxels.embedding.weights
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=0, atol=1e-13)
    assert weights.min() >= 0.0
    assert weights.max() <= 1.0


def cell_set(voxels):
    return {tuple(cell) for cell in voxels.cells.tolist()}


def wavy_sheet(n=15):
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 0.8, n), indexing="ij")
    vertices = np.stack([x, y, 0.15 * np.sin(5 * x) * np.cos(4 * y)], -1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(n - 1), np.arange(n - 1), indexing="ij")
    a = (i * n + j).ravel()
    return vertices, np.vstack([np.stack([a, a + n, a + 1], 1), np.stack([a + 1, a + n, a + n + 1], 1)])


def random_soup():
    rng = np.random.default_rng(5)
    centres = rng.uniform(0, 1, (60, 1, 3))
    return (centres + rng.normal(0, 0.25, (60, 3, 3))).reshape(-1, 3), np.arange(180).reshape(-1, 3)


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")
@pytest.mark.parametrize("resolution", [1, 7, 24])
@pytest.mark.parametrize("soup", [box(), sphere(), wavy_sheet(), random_soup()], ids=["box", "ball", "sheet", "soup"])
def test_every_vertex_is_carried_exactly(soup, resolution):
    vertices, triangles = soup
    assert_carried(voxelise(vertices, triangles, resolution=resolution), vertices)


def test_far_from_the_origin():
    vertices, triangles = sphere(stacks=12, slices=24)
    moved = vertices * 0.01 + [300.0, -200.0, 50.0]
    voxels = voxelise(moved, triangles, resolution=12)
    assert len(voxels.cells) == len(voxelise(vertices, triangles, resolution=12).cells)
    np.testing.assert_allclose(voxels.embedding.carry(voxels.mesh.vertices), moved, rtol=1e-14)


def test_bricks_are_cubes_of_the_stated_size():
    vertices, triangles = sphere(radius=0.3)
    voxels = voxelise(vertices, triangles, voxel_size=0.05)
    assert voxels.voxel_size == 0.05
    np.testing.assert_allclose(voxels.mesh.volumes, 0.05**3, rtol=1e-9)
    first = voxels.mesh.vertices[voxels.mesh.elements[:, 0]]
    np.testing.assert_allclose(first, voxels.origin + 0.05 * voxels.cells, atol=1e-13)


def test_a_box_is_filled_exactly():
    voxels = voxelise(*box(high=(1.0, 0.5, 0.25)), resolution=8)
    assert len(voxels.cells) == 8 * 4 * 2
    assert voxels.part_count == 1


def test_volume_of_a_ball_converges_at_first_order():
    vertices, triangles = sphere()
    exact = 4.0 / 3.0 * np.pi
    resolutions = np.array([20, 40, 80])
    voxelised = [voxelise(vertices, triangles, resolution=r) for r in resolutions]
    volumes = [len(voxels.cells) * voxels.voxel_size**3 for voxels in voxelised]
    errors = np.array(volumes) - exact
    assert (errors > 0.0).all()
    slope = np.polyfit(np.log(1.0 / resolutions), np.log(errors), 1)[0]
    assert slope > 0.97


@pytest.mark.parametrize("seed", range(4))
def test_every_sampled_point_of_a_triangle_lies_in_a_touched_cell(seed):
    rng = np.random.default_rng(seed)
    count = 9
    steps = np.linspace(0.0, 1.0, 121)
    u, v = (c.ravel() for c in np.meshgrid(steps, steps))
    u, v = u[u + v <= 1.0], v[u + v <= 1.0]
    for trial in range(25):
        points = rng.uniform(0, count, (3, 3))
        if trial % 5 == 1:
            points[:, trial % 3] = np.round(points[0, trial % 3])
        elif trial % 5 == 2:
            points = np.round(points)
        elif trial % 5 == 3:
            points[2] = points[0] + 0.4 * (points[1] - points[0])
        touched = np.zeros((count,) * 3, np.bool_)
        mark_touched_cells(points, np.array([[0, 1, 2]]), touched)
        samples = points[0] + u[:, None] * (points[1] - points[0]) + v[:, None] * (points[2] - points[0])
        cells = np.clip(np.floor(samples), 0, count - 1).astype(int)
        assert touched[tuple(cells.T)].all()


def test_touched_cells_are_really_touched():
    """Not only conservative but exact: no kept cube is farther from the triangle than rounding."""
    rng = np.random.default_rng(11)
    for _ in range(10):
        points = rng.uniform(0, 6, (3, 3))
        touched = np.zeros((6, 6, 6), np.bool_)
        mark_touched_cells(points, np.array([[0, 1, 2]]), touched)
        for cell in np.argwhere(touched):
            assert closest_gap(points, cell) < 1e-3


def closest_gap(points, cell):
    """Distance of a triangle from the cube at `cell`, by alternating projection."""
    inside = np.full(3, 1.0 / 3.0) @ points
    for _ in range(20000):
        onto_cube = np.clip(inside, cell, cell + 1)
        onto_triangle = nearest_on_triangle(onto_cube, points)
        if np.linalg.norm(onto_triangle - inside) < 1e-9:
            break
        inside = onto_triangle
    return np.linalg.norm(inside - np.clip(inside, cell, cell + 1))


def nearest_on_triangle(target, points):
    edges = np.stack([points[1] - points[0], points[2] - points[0]], axis=1)
    u, v = np.linalg.lstsq(edges, target - points[0], rcond=None)[0]
    if u >= 0 and v >= 0 and u + v <= 1:
        return points[0] + edges @ [u, v]
    candidates = []
    for a, b in ((0, 1), (1, 2), (2, 0)):
        along = points[b] - points[a]
        t = np.clip((target - points[a]) @ along / (along @ along), 0, 1)
        candidates.append(points[a] + t * along)
    return min(candidates, key=lambda p: np.linalg.norm(p - target))


def test_open_sheet_becomes_a_thin_layer():
    vertices, triangles = wavy_sheet()
    voxels = voxelise(vertices, triangles, resolution=20)
    assert voxels.part_count == 1
    assert_carried(voxels, vertices)
    assert len(voxels.cells) < 4 * 20 * 16


def test_flat_sheet_is_one_brick_thick():
    voxels = voxelise(
        np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]]),
        np.array([[0, 1, 2], [0, 2, 3]]),
        resolution=5,
    )
    assert len(voxels.cells) == 25


def test_duplicated_faces_change_nothing():
    vertices, triangles = wavy_sheet()
    once = voxelise(vertices, triangles, resolution=16)
    again = voxelise(
        *joined((vertices, triangles), (vertices, triangles), (vertices, triangles[:, [1, 2, 0]])),
        resolution=16,
    )
    assert cell_set(once) == cell_set(again)


def test_two_sided_soup_is_filled():
    vertices, triangles = sphere(stacks=12, slices=24)
    once = voxelise(vertices, triangles, resolution=12)
    two_sided = voxelise(vertices, np.vstack([triangles, triangles[:, ::-1]]), resolution=12)
    assert cell_set(once) == cell_set(two_sided)


def test_wall_between_two_bodies_does_not_empty_them():
    left, right = box(), box(low=(1.0, 0.0, 0.0), high=(2.0, 1.0, 1.0))
    voxels = voxelise(*joined(left, right), resolution=20)
    assert len(voxels.cells) == 20 * 10 * 10


def test_flipped_orientation_changes_nothing():
    vertices, triangles = sphere(stacks=16, slices=32)
    flipped = voxelise(vertices, triangles[:, ::-1], resolution=14)
    assert cell_set(flipped) == cell_set(voxelise(vertices, triangles, resolution=14))


def test_rooms_and_cells_fill_alike(monkeypatch):
    """The short way for closed soups (one question a room) gives what asking every cube gives."""
    soup = joined(sphere(stacks=16, slices=32), sphere(radius=0.6, stacks=12, slices=24))
    by_rooms = voxelise(*soup, resolution=18)
    monkeypatch.setattr("softrig.meshing.voxels._is_closed", lambda faces: False)
    assert cell_set(voxelise(*soup, resolution=18)) == cell_set(by_rooms)


def test_a_cavity_stays_empty():
    outer, (vertices, triangles) = sphere(stacks=16, slices=32), sphere(radius=0.6, stacks=12, slices=24)
    hollow = voxelise(*joined(outer, (vertices, triangles[:, ::-1])), resolution=18)
    assert (9, 9, 9) not in cell_set(hollow)
    assert (9, 9, 9) in cell_set(voxelise(*outer, resolution=18))


def test_two_interpenetrating_boxes_fill_their_union():
    voxels = voxelise(*joined(box(), box(low=(0.55, 0.55, 0.55), high=(1.5, 1.5, 1.5))), resolution=15)
    centres = voxels.origin + voxels.voxel_size * (voxels.cells + 0.5)
    grid = voxels.origin + voxels.voxel_size * (np.argwhere(np.ones((15, 15, 15))) + 0.5)
    in_union = (grid < 1.0).all(axis=1) | (grid > 0.55).all(axis=1)
    kept = {tuple(c) for c in np.round(centres, 9).tolist()}
    assert {tuple(c) for c in np.round(grid[in_union], 9).tolist()} <= kept
    assert voxels.part_count == 1


def test_a_hole_in_the_skin_leaves_the_body_solid():
    vertices, triangles = sphere(stacks=24, slices=48)
    middles = vertices[triangles].mean(axis=1)
    holed = triangles[middles[:, 2] < 0.85]
    whole = voxelise(vertices, triangles, resolution=20)
    used = np.unique(holed)
    renumbered = np.searchsorted(used, holed)
    opened = voxelise(vertices[used], renumbered, voxel_size=whole.voxel_size)
    assert len(opened.cells) > 0.9 * len(whole.cells)
    assert opened.part_count == 1


def test_degenerate_triangles_are_covered():
    vertices = np.array([[0.0, 0, 0], [1, 0.3, 0.2], [0.5, 0.15, 0.1], [0.2, 0.9, 0.4]])
    triangles = np.array([[0, 1, 2], [3, 3, 3], [0, 0, 3]])
    voxels = voxelise(vertices, triangles, resolution=9)
    assert voxels.part_count == 1
    assert_carried(voxels, vertices)


def test_a_single_point_needs_a_voxel_size():
    point, triangle = np.array([[1.0, 2.0, 3.0]]), np.array([[0, 0, 0]])
    with pytest.raises(InputError, match="one point"):
        voxelise(point, triangle, resolution=4)
    assert len(voxelise(point, triangle, voxel_size=0.1).cells) == 1


def test_unreferenced_vertices_follow_the_nearest_brick():
    vertices, triangles = box()
    with_strays = np.vstack([vertices, [[1.4, 0.5, 0.5], [9.0, -3.0, 2.0], [0.5, 0.5, 0.5]]])
    voxels = voxelise(with_strays, triangles, resolution=6)
    assert len(voxels.cells) == 6**3
    carried = voxels.embedding.carry(voxels.mesh.vertices)
    np.testing.assert_allclose(carried, with_strays, atol=1e-12)
    brick = voxels.mesh.vertices[voxels.embedding.nodes[8]]
    assert brick[:, 0].max() == pytest.approx(1.0)


def test_parts_are_reported_largest_first():
    apart = joined(box(high=(0.3, 0.3, 0.3)), box(low=(0.5, 0.5, 0.5)))
    with pytest.warns(Notice, match="2 parts share no face"):
        voxels = voxelise(*apart, resolution=20)
    sizes = np.bincount(voxels.parts)
    assert len(sizes) == voxels.part_count == 2
    assert sizes[0] > sizes[1]
    # Six cubes a side, and a seventh that its inner faces touch.
    assert sizes[1] == 7**3


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")
def test_mirrored_soup_gives_the_mirrored_bricks():
    vertices, triangles = random_soup()
    mirror = np.array([-1.0, 1.0, 1.0])
    plain, mirrored = (voxelise(v, triangles, resolution=13) for v in (vertices, vertices * mirror))
    count = plain.cells[:, 0].max() + 1
    reflected = {(count - 1 - i, j, k) for i, j, k in plain.cells.tolist()}
    assert reflected == cell_set(mirrored)


def test_wanted_number_of_bricks():
    vertices, triangles = sphere(stacks=20, slices=40)
    best = resolution_for_bricks(vertices, triangles, 3000)
    counts = {r: len(voxelise(vertices, triangles, resolution=r).cells) for r in range(best - 3, best + 4)}
    assert abs(counts[best] - 3000) == min(abs(n - 3000) for n in counts.values())
    assert len(voxelise(vertices, triangles, bricks=3000).cells) == counts[best]


def test_bad_soups_are_named():
    vertices, triangles = box()
    with pytest.raises(EmptyMeshError):
        voxelise(np.zeros((0, 3)), np.zeros((0, 3), int), resolution=4)
    with pytest.raises(EmptyMeshError):
        voxelise(vertices, np.zeros((0, 3), int), resolution=4)
    spoilt = vertices.copy()
    spoilt[5, 1] = np.nan
    with pytest.raises(NotFiniteError) as trouble:
        voxelise(spoilt, triangles, resolution=4)
    assert trouble.value.indices.tolist() == [5]
    for bad in (8, -1):
        wrong = triangles.copy()
        wrong[3, 1] = bad
        with pytest.raises(IndexRangeError) as trouble:
            voxelise(vertices, wrong, resolution=4)
        assert trouble.value.indices.tolist() == [3]
    with pytest.raises(InputError, match="shape"):
        voxelise(vertices[:, :2], triangles, resolution=4)
    with pytest.raises(InputError, match="integers"):
        voxelise(vertices, triangles.astype(float), resolution=4)


def test_bad_fineness_is_refused():
    vertices, triangles = box()
    with pytest.raises(InputError, match=r"1e\+15"):
        voxelise(vertices, triangles, resolution=100_000)
    with pytest.raises(InputError, match=str(MOST_CELLS)):
        voxelise(vertices, triangles, voxel_size=1e-300)
    with pytest.raises(InputError, match="limit"):
        voxelise(vertices, triangles, bricks=10**12)
    with pytest.raises(InputError, match="8000000 bricks are above the limit"):
        voxelise(vertices, triangles, resolution=200)
    for nothing in ({}, {"resolution": 3, "bricks": 7}):
        with pytest.raises(InputError, match="exactly one"):
            voxelise(vertices, triangles, **nothing)
    for wrong in ({"resolution": 0}, {"voxel_size": -1.0}, {"voxel_size": np.nan}, {"bricks": 0}):
        with pytest.raises(InputError):
            voxelise(vertices, triangles, **wrong)


@pytest.mark.parametrize(("make", "per_brick"), [(box_bricks, 1), (box_tets, 6)])
def test_structured_boxes(make, per_brick):
    mesh = make((1.0, 2.0, 3.0), (2, 3, 4))
    assert len(mesh.elements) == per_brick * 24
    assert len(mesh.vertices) == 3 * 4 * 5
    assert (mesh.volumes > 0).all()
    assert mesh.volumes.sum() == pytest.approx(6.0)
    np.testing.assert_allclose(mesh.vertices.max(axis=0), [1.0, 2.0, 3.0])
    # Faces match: what is left as boundary is the surface of the box and nothing inside.
    corners = mesh.vertices[mesh.boundary_triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    assert areas.sum() == pytest.approx(2 * (2 + 3 + 6))


def test_structured_boxes_refuse_nonsense():
    for lengths, counts in (
        ((1, 1), (1, 1)),
        ((1, 1, -1), (1, 1, 1)),
        ((1, 1, 1), (1, 0, 1)),
        ((1, 1, 1), (1, 1, 1.5)),
    ):
        with pytest.raises(InputError):
            box_bricks(lengths, counts)
