"""The body that will move: tets inside the soft parts, what holds them, and how every surface vertex hangs on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from softrig.errors import InputError
from softrig.fem.embedding import Embedding
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.bones import fixed_vertices
from softrig.meshing.embedding import embed_points
from softrig.pipeline.cache import Arrays, StageCache, content_hash
from softrig.pipeline.maps import paint_map
from softrig.poses.materials import held_by_softness
from softrig.project import Project
from softrig.rig.character import Character
from softrig.rig.deformers import Bend, Wire
from softrig.rig.protocol import Rig
from softrig.volume import CharacterVolume, character_volume

Progress = Callable[[int, int], None]

CORE_SHARE = 0.02
"""Share of the vertices, the deepest, that hold the flesh of a rig without bones, wires or a bend."""


@dataclass(frozen=True, eq=False)
class Flesh:
    """Tets and what hangs on them. n tet vertices, n̄ surface vertices, s of them welded and soft."""

    mesh: VolumeMesh
    density_factor: float
    """Times this, the material's density gives the body its true mass."""
    fixed: np.ndarray
    """(n,) bool: on the bones, or painted 0."""
    soft_vertices: np.ndarray
    """(s,) surface vertices, one of each welded group, that lie on soft parts."""
    soft_embedding: Embedding
    """How these hang on the tets."""
    nodes: np.ndarray
    """(n̄, 4) int32 tet vertices that carry each surface vertex."""
    weights: np.ndarray
    """(n̄, 4) their weights; zero for vertices of rigid parts."""

    @cached_property
    def unit_mass(self) -> np.ndarray:
        """(n,) kg at a density of one: a quarter of each tet at rest, lumped."""
        shares = np.repeat(self.mesh.volumes * self.density_factor / 4.0, 4)
        return np.bincount(self.mesh.elements.ravel(), shares, minlength=len(self.mesh.vertices))


def prepared_character(character: Character, project: Project) -> Character:
    """`character` with the project's word on its parts."""
    return character.with_roles(project.parts) if project.parts else character


def make_flesh(
    character: Character,
    project: Project,
    cache: StageCache,
    progress: Progress | None = None,
    *,
    folder: Path | None = None,
) -> Flesh:
    """Fill the soft parts with tets, fix what is on the bones, and hang the surface on it.

    `folder`: where maps painted into files lie.
    """
    roles = [[part.role, part.vertices.start, part.vertices.stop, part.triangles.start] for part in character.parts]
    key = content_hash(
        character.rest_positions, character.triangles, roles, _segments(character), project.fingerprint("mesh")
    )
    arrays = cache.get("flesh", key, lambda: _meshed(character, project, progress))
    mesh = VolumeMesh(arrays["vertices"], arrays["tets"], np.zeros(len(arrays["tets"]), np.int32), ("body",))
    soft = Embedding(arrays["soft_nodes"], arrays["soft_weights"])
    fixed = arrays["held"].astype(bool) | _painted(character, project, arrays, soft, mesh, folder)
    if fixed.all():
        raise InputError(
            f"'{character.name}': every tet vertex is on a bone or painted 0: nothing can move; use more tets"
        )
    return Flesh(
        mesh=mesh,
        density_factor=float(arrays["density_factor"]),
        fixed=fixed,
        soft_vertices=arrays["soft_vertices"],
        soft_embedding=soft,
        nodes=arrays["nodes"],
        weights=arrays["weights"],
    )


def _meshed(character: Character, project: Project, progress: Progress | None) -> Arrays:
    volume = character_volume(character, tets=project.mesh.tets, mesher=project.mesh.mesher, progress=progress)
    mesh = volume.lattice.mesh
    nodes, weights = _hung(character, volume)
    first = np.unique(volume.welded_of_vertex, return_index=True)
    soft_vertices = first[1][first[0] >= 0]
    return {
        "vertices": mesh.vertices,
        "tets": mesh.elements,
        "density_factor": np.array(volume.lattice.density_factor),
        "held": _held(character, mesh),
        "soft_vertices": soft_vertices,
        "soft_nodes": volume.lattice.embedding.nodes,
        "soft_weights": volume.lattice.embedding.weights,
        "nodes": nodes,
        "weights": weights,
    }


def _hung(character: Character, volume: CharacterVolume) -> tuple[np.ndarray, np.ndarray]:
    """Soft vertices by their own embedding, following ones (clothes) by the nearest tet, rigid ones not at all."""
    count = character.rig.vertex_count
    nodes, weights = np.zeros((count, 4), np.int32), np.zeros((count, 4))
    soft = volume.welded_of_vertex >= 0
    nodes[soft] = volume.lattice.embedding.nodes[volume.welded_of_vertex[soft]]
    weights[soft] = volume.lattice.embedding.weights[volume.welded_of_vertex[soft]]
    follows = np.array([part.role == "follows" for part in character.parts] + [False])[character.part_of_vertex]
    chosen = np.flatnonzero(follows & ~soft)
    if len(chosen):
        worn = embed_points(volume.lattice.mesh, character.rest_positions[chosen])
        nodes[chosen], weights[chosen] = worn.nodes, _tame(worn.weights)
    return nodes, weights


def _tame(weights: np.ndarray) -> np.ndarray:
    """Clothes stand off the body: extrapolating the nearest tet's motion outwards would exaggerate it."""
    inside = np.maximum(weights, 0.0)
    return inside / inside.sum(axis=1, keepdims=True)


def _segments(character: Character) -> np.ndarray:
    """(b, 2, 3) metres: bones, or what stands for them in a rig that has none."""
    bones = np.array([[bone.head, bone.tail] for bone in character.bones()]).reshape(-1, 2, 3)
    return bones if len(bones) else _guide_segments(character.rig)


def _guide_segments(rig: Rig) -> np.ndarray:
    """(b, 2, 3) metres: the curves of wires and the axis of a bend."""
    if isinstance(rig, Wire):
        return np.stack([rig.controls[:-1], rig.controls[1:]], axis=1)
    if isinstance(rig, Bend):
        along = np.outer(np.linspace(rig.low, rig.high, 9), rig.axis) + rig.origin
        return np.stack([along[:-1], along[1:]], axis=1)
    parts = [_guide_segments(stage) for stage in getattr(rig, "stages", ())]
    return np.concatenate(parts) if parts else np.zeros((0, 2, 3))


def _held(character: Character, mesh: VolumeMesh) -> np.ndarray:
    segments = _segments(character)
    if len(segments):
        return fixed_vertices(mesh, segments)
    return _core(mesh)


def _core(mesh: VolumeMesh) -> np.ndarray:
    """(n,) bool: the deepest vertices of each part, and its deepest tet.

    The tet, because the deepest vertices of a slim body may lie on one line, about which it could turn.
    """
    depth, parts = _depth(mesh), mesh.part_of_element
    held = np.zeros(len(depth), bool)
    for part in range(int(parts.max()) + 1):
        tets = mesh.elements[parts == part]
        members = np.unique(tets)
        count = max(4, round(CORE_SHARE * len(members)))
        held[members[np.argsort(-depth[members], kind="stable")[:count]]] = True
        held[tets[depth[tets].mean(axis=1).argmax()]] = True
    return held


def _depth(mesh: VolumeMesh) -> np.ndarray:
    """(n,) metres from each vertex to the nearest boundary vertex."""
    from scipy.spatial import cKDTree

    boundary = np.unique(mesh.boundary_triangles)
    return np.asarray(cKDTree(mesh.vertices[boundary]).query(mesh.vertices)[0])


def _painted(
    character: Character,
    project: Project,
    arrays: Arrays,
    embedding: Embedding,
    mesh: VolumeMesh,
    folder: Path | None,
) -> np.ndarray:
    name = project.material.softness_map
    if name is None:
        return np.zeros(len(mesh.vertices), bool)
    return held_by_softness(mesh, embedding, paint_map(character, name, folder)[arrays["soft_vertices"]])
