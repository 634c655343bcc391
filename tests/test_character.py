"""Characters: parts, welding, bones, roles, clips by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rigs_for_tests import two_bone_bar
from softrig.errors import EmptyMeshError, IndexRangeError, InputError
from softrig.numerics.rotations import quaternions_from_vectors
from softrig.rig.character import Character, Part
from softrig.rig.clip import Clip
from softrig.rig.deformers import Bend, BlendShapes, RigChain
from softrig.rig.roles import PartFacts, guess_roles
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import DualQuaternionSkin, LinearBlendSkin
from softrig.rig.weld import Weld, weld

SECTIONS, RING = 21, 8


def tube_triangles(sections=SECTIONS, ring=RING, start=0):
    """(t, 3) the side of a tube whose rings of vertices follow each other."""
    i, j = np.meshgrid(np.arange(sections - 1), np.arange(ring), indexing="ij")
    a, b = i * ring + j, i * ring + (j + 1) % ring
    quads = np.stack([a, b, b + ring, a + ring], axis=-1).reshape(-1, 4)
    return start + np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def bar_character(**changes):
    skin = two_bone_bar(LinearBlendSkin)
    triangles = tube_triangles()
    parts = (Part("body", slice(0, skin.vertex_count), slice(0, len(triangles))),)
    return replace(Character("bar", skin, skin.skeleton, triangles, parts), **changes)


def seamed_character():
    """The bar cut in the middle: two parts that both own the ring of the cut, and a rigid eye on the same spot."""
    skin = two_bone_bar(LinearBlendSkin)
    middle = SECTIONS // 2
    first, second = np.arange((middle + 1) * RING), np.arange(middle * RING, SECTIONS * RING)
    eye = np.arange(middle * RING, middle * RING + 3)
    chosen = np.concatenate([first, second, eye])
    triangles = np.concatenate(
        [
            tube_triangles(middle + 1),
            tube_triangles(SECTIONS - middle, start=len(first)),
            [[len(chosen) - 3, len(chosen) - 2, len(chosen) - 1]],
        ]
    )
    weights = skin.weights[chosen]
    weights[-3:] = [1.0, 0.0]
    rig = replace(
        skin, rest_positions=skin.rest_positions[chosen], joints=skin.joints[chosen], weights=weights, attach=None
    )
    a, b, n = len(first), len(first) + len(second), len(chosen)
    t, u = 2 * middle * RING, 2 * (SECTIONS - 1) * RING
    parts = (
        Part("torso", slice(0, a), slice(0, t)),
        Part("mesh 2", slice(a, b), slice(t, u)),
        Part("eye.L", slice(b, n), slice(u, u + 1)),
    )
    return Character("seamed", rig, rig.skeleton, triangles, parts)


class TestWeld:
    def test_joins_and_keeps_the_splitting_map(self):
        points = np.array([[1.0, 0, 0], [0, 0, 0], [1.0, 1e-9, 0], [5.0, 0, 0], [0, 0, -1e-9], [1.0, 0, 0]])
        welded = weld(points, 1e-6)
        assert welded.unique_of_vertex.tolist() == [0, 1, 0, 2, 1, 0]
        assert welded.representative.tolist() == [0, 1, 3]
        values = np.array([10.0, 20.0, 30.0])
        assert welded.split(values).tolist() == [10, 20, 10, 30, 20, 10]
        assert welded.merged(welded.split(values)).tolist() == values.tolist()

    def test_triangles_without_those_that_lost_a_corner(self):
        welded = Weld(np.array([0, 1, 2, 1]), np.array([0, 1, 2]))
        assert welded.triangles(np.array([[0, 1, 2], [1, 2, 3], [2, 3, 0]])).tolist() == [[0, 1, 2], [2, 1, 0]]

    def test_against_all_pairs(self):
        rng = np.random.default_rng(0)
        base = rng.uniform(-1.0, 1.0, (60, 3))
        points = base[rng.integers(0, 60, 200)] + rng.uniform(-4e-7, 4e-7, (200, 3))
        got = weld(points, 1e-6).unique_of_vertex
        near = np.abs(points[:, None] - points[None]).max(axis=2) < 1e-6
        assert ((got[:, None] == got[None]) == near).all()

    def test_pairs_on_cell_borders(self):
        """Two points nearer than the tolerance meet wherever they fall on the grid."""
        for shift in np.linspace(0.0, 4.0, 41):
            points = np.array([[0.0, 0, 0], [shift, shift, 0], [shift + 0.9, shift - 0.9, 0.9]])
            unique = weld(points, 1.0).unique_of_vertex
            assert unique[1] == unique[2]
            if shift > 3.9:
                assert unique[0] != unique[1]

    def test_groups_stay_apart(self):
        points = np.zeros((4, 3))
        assert weld(points, 1e-6, np.array([0, 1, 0, 1])).unique_of_vertex.tolist() == [0, 1, 0, 1]

    def test_many_in_one_place(self):
        assert len(weld(np.zeros((20_000, 3)), 1e-6).representative) == 1
        with pytest.raises(InputError, match="positive"):
            weld(np.zeros((2, 3)), 0.0)


class TestWelded:
    def test_seams_close_and_rigid_parts_stay_apart(self):
        character = seamed_character().with_guessed_roles()
        assert [part.role for part in character.parts] == ["soft", "soft", "rigid"]
        welded = character.welded
        assert len(welded.representative) == SECTIONS * RING + 3
        a = character.parts[1].vertices.start
        seam = np.arange(a - RING, a)
        assert (welded.unique_of_vertex[seam] == welded.unique_of_vertex[a : a + RING]).all()
        split = welded.split(welded.merged(character.rest_positions))
        assert np.abs(split - character.rest_positions).max() < 1e-9
        # The welded tube has no inner border: every edge but those of its two ends belongs to two triangles.
        tube = welded.triangles(character.triangles[: character.parts[2].triangles.start])
        edges = np.sort(np.concatenate([tube[:, [0, 1]], tube[:, [1, 2]], tube[:, [2, 0]]]), axis=1)
        _, counts = np.unique(edges, axis=0, return_counts=True)
        assert (counts == 1).sum() == 2 * RING
        assert counts.max() == 2

    def test_closed_lips_are_not_glued(self):
        points = np.array([[0, 0, 0], [0, 0, 0], [1.0, 0, 0], [1.0, 0, 0]])
        targets = np.zeros((1, 4, 3))
        targets[0, 1, 1] = 0.2  # the mouth opens between vertices 0 and 1; 2 and 3 are one corner of it
        character = Character(
            "mouth", BlendShapes(points, targets, ("open",)), None, [[0, 1, 2]], (Part("m", slice(0, 4), slice(0, 1)),)
        )
        assert character.welded.unique_of_vertex.tolist() == [0, 1, 2, 2]


class TestCharacter:
    def test_rest_size_and_areas(self):
        character = bar_character()
        assert character.rest_positions == pytest.approx(character.rig.rest_positions)
        assert character.size == pytest.approx(np.sqrt(4.0 + 2 * 0.16))
        assert character.areas.sum() == pytest.approx(2.0 * RING * 2 * 0.2 * np.sin(np.pi / RING), rel=1e-9)
        assert (character.part_of_vertex == 0).all()

    def test_clips_and_parts_by_name(self):
        clip = Clip("wave", bar_character().rig.parameters, (), 1.0)
        character = bar_character(clips=(clip,))
        assert character.clip("wave") is clip
        with pytest.raises(InputError, match="no clip 'run'; its clips: 'wave'"):
            character.clip("run")
        assert character.part("body") is character.parts[0]
        with pytest.raises(InputError, match="no part 'hat'"):
            character.part("hat")

    def test_skeleton_parameters_in_a_chain(self):
        character = bar_character()
        shapes = BlendShapes(character.rig.rest_positions, np.zeros((2, character.rig.vertex_count, 3)), ("a", "b"))
        chain = RigChain((shapes, character.rig))
        behind = replace(character, rig=chain)
        assert behind.skeleton_start == 2
        p = chain.parameters.rest.copy()
        p[2] = 7.0
        assert behind.skeleton_parameters(p)[0] == 7.0
        assert len(behind.skeleton_parameters(p)) == 20
        assert [bone.name for bone in behind.bones()] == ["left", "right"]

    def test_faults_are_named(self):
        with pytest.raises(IndexRangeError) as fault:
            bar_character(triangles=np.array([[0, 1, 2], [0, 1, 168]]))
        assert fault.value.indices.tolist() == [1]
        with pytest.raises(IndexRangeError, match="'p' reaches beyond"):
            bar_character(parts=(Part("p", slice(0, 999), slice(0, 1)),))
        with pytest.raises(InputError, match="map 'fat'"):
            bar_character(maps={"fat": np.zeros(3)})
        with pytest.raises(InputError, match="colours"):
            bar_character(colours=np.zeros((3, 4)))
        with pytest.raises(InputError, match="soft, rigid or follows"):
            bar_character(parts=(Part("p", slice(0, 1), slice(0, 1), "wobbly"),))
        other = Clip("c", Bend(np.zeros((1, 3)), (0, 0, 0), (1, 0, 0), (0, 1, 0), 0.0, 1.0).parameters, (), 1.0)
        with pytest.raises(InputError, match="another rig"):
            bar_character(clips=(other,))
        skin = two_bone_bar(LinearBlendSkin)
        empty = replace(
            skin, rest_positions=np.zeros((0, 3)), joints=np.zeros((0, 2)), weights=np.zeros((0, 2)), attach=None
        )
        with pytest.raises(EmptyMeshError):
            bar_character(rig=empty, triangles=np.zeros((0, 3)), parts=())


class TestBones:
    def test_segments_and_an_invented_end(self):
        bones = bar_character().bones()
        assert [bone.name for bone in bones] == ["left", "right"]
        assert bones[0].head == pytest.approx([-1, 0, 0])
        assert bones[0].tail == pytest.approx([0, 0, 0])
        name, head, tail, node = bones[1]
        assert (name, node) == ("right", 1)
        assert head == pytest.approx([0, 0, 0], abs=1e-12)
        assert tail[1:] == pytest.approx([0, 0], abs=1e-12)
        assert 0.4 < tail[0] < 1.0

    @pytest.mark.parametrize("kind", [LinearBlendSkin, DualQuaternionSkin])
    def test_helpers_and_rigid_holders_give_none(self, kind):
        """Root carries nothing; a plain node between two bones is skipped; an end joint without weight ends a bone."""
        heads = np.array([[0, 0, 0], [0, 1.0, 0], [0.5, 1.0, 0], [1.0, 1.0, 0], [2.0, 1.0, 0], [0, 2.0, 0]])
        names = ("root", "upper", "plain", "lower", "end", "hat holder")
        skeleton = Skeleton.from_heads(names, (-1, 0, 1, 2, 3, 1), heads)
        points = np.array([[0.5, 1.0, 0.1], [1.5, 1.0, 0.1], [0.0, 0.2, 0.0]])
        bones = [0, 4, 3, 1]
        skin = kind(
            skeleton,
            points,
            bones,
            np.linalg.inv(skeleton.rest_world_matrices[bones]),
            np.array([[3], [2], [0]]),
            np.array([[1.0], [1.0], [0.0]]),
            np.array([-1, -1, 5]),
        )
        part = Part("all", slice(0, 3), slice(0, 1))
        found = Character("c", skin, skeleton, [[0, 1, 2]], (part,)).bones()
        assert [(bone.name, bone.tail.tolist()) for bone in found] == [
            ("upper", pytest.approx([1.0, 1.0, 0.0])),
            ("lower", pytest.approx([2.0, 1.0, 0.0])),
        ]

    def test_a_rig_without_bones_has_none(self):
        bend = Bend(np.zeros((3, 3)), (0, 0, 0), (1, 0, 0), (0, 1, 0), 0.0, 1.0)
        assert Character("x", bend, None, [[0, 1, 2]], (Part("x", slice(0, 3), slice(0, 1)),)).bones() == []


class TestRoles:
    @pytest.mark.parametrize(
        ("parts", "expected"),
        [
            ([PartFacts("anything", 1.0, False)], ["soft"]),
            ([PartFacts("anything", 1.0, True)], ["soft"]),
            (
                [
                    PartFacts("Body", 2.0, False),
                    PartFacts("EyeLeft", 0.01, True),
                    PartFacts("teeth_upper", 0.01, False),
                    PartFacts("Eyelashes", 0.01, False),
                    PartFacts("Shirt", 3.0, False),
                    PartFacts("primitive_6", 0.05, True),
                    PartFacts("primitive_7", 0.05, False),
                    PartFacts("primitive_8", 0.05, False, frozenset({0})),
                ],
                ["soft", "rigid", "rigid", "follows", "follows", "rigid", "follows", "soft"],
            ),
            ([PartFacts("mesh_0", 1.0, False), PartFacts("mesh_1", 0.9, False)], ["soft", "soft"]),
            ([PartFacts("armour", 9.0, False), PartFacts("arms", 1.0, False)], ["rigid", "soft"]),
        ],
    )
    def test_guesses(self, parts, expected):
        assert list(guess_roles(parts)) == expected

    def test_the_users_word(self):
        character = seamed_character().with_roles({"mesh 2": "follows", "eye.L": "rigid"})
        assert [part.role for part in character.parts] == ["soft", "follows", "rigid"]
        assert character.with_roles({2: "soft"}).parts[2].role == "soft"
        with pytest.raises(InputError, match="not 'jelly'"):
            character.with_roles({"torso": "jelly"})
        with pytest.raises(InputError, match="no part 'hat'"):
            character.with_roles({"hat": "soft"})


def test_moving_a_character_moves_its_bones():
    skin = two_bone_bar(LinearBlendSkin)
    turned = replace(
        skin.skeleton, rotations=np.stack([quaternions_from_vectors(np.array([0, 0, np.pi / 2])), [0, 0, 0, 1]])
    )
    character = bar_character(rig=replace(skin, skeleton=turned), skeleton=turned)
    assert character.bones()[0].tail == pytest.approx([-1, 1, 0])
