"""The volume mesh of a character: its soft parts filled with tets, kept whole around its bones."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.errors import EmptyMeshError, InputError
from softrig.files import write_bytes
from softrig.io.images import write_png
from softrig.meshing.lattice import LatticeMesh, tet_mesh
from softrig.meshing.wild import wild_tet_mesh
from softrig.render import Camera, Ground, Light, Mesh, render, strip
from softrig.rig.character import Character

SKIN = (0.80, 0.62, 0.53)
TETS = (0.55, 0.66, 0.80)

MESHERS: dict[str, Callable[..., LatticeMesh]] = {"lattice": tet_mesh, "wild": wild_tet_mesh}
"""What fills a surface with tets, by name; "wild" is fTetWild, the extra softrig[wild]."""


@dataclass(frozen=True)
class CharacterVolume:
    """Tets, and the welded surface of the soft parts that they carry."""

    lattice: LatticeMesh
    surface_vertices: np.ndarray
    """(m, 3) welded vertices of the soft parts, metres."""
    surface_triangles: np.ndarray
    """(t, 3)."""
    welded_of_vertex: np.ndarray
    """(n,) which of them each of the character's vertices is, −1 where it belongs to no soft part."""


def character_volume(
    character: Character,
    *,
    tets: int = 16000,
    mesher: str = "lattice",
    progress: Callable[[int, int], None] | None = None,
) -> CharacterVolume:
    """Mesh the soft parts of a character at rest with about `tets` tets, by one of `MESHERS`."""
    if mesher not in MESHERS:
        raise InputError(f"there is no mesher '{mesher}'; there are {', '.join(MESHERS)}")
    weld = character.welded
    soft = [part for part in character.parts if part.role == "soft"]
    if not soft:
        raise EmptyMeshError(f"'{character.name}' has no soft part to fill")
    triangles = weld.triangles(np.concatenate([character.triangles[part.triangles] for part in soft]))
    used = np.unique(triangles)
    place = np.full(len(weld.representative), -1, np.int64)
    place[used] = np.arange(len(used))
    vertices = weld.merged(character.rest_positions)[used]
    bones = character.bones()
    lattice = MESHERS[mesher](
        vertices,
        place[triangles],
        tets=tets,
        bones=np.array([[bone.head, bone.tail] for bone in bones]).reshape(-1, 2, 3),
        bone_names=[bone.name for bone in bones],
        progress=progress,
    )
    return CharacterVolume(lattice, vertices, place[triangles], place[weld.unique_of_vertex])


def quality_lines(volume: CharacterVolume) -> list[tuple[str, str]]:
    """The quality report, line by line."""
    quality = volume.lattice.quality
    return [
        ("tets", f"{quality.tets:,} with {quality.vertices:,} vertices"),
        ("edge length", f"{1e3 * volume.lattice.spacing:.3g} mm"),
        ("dihedral angles", f"{quality.smallest_dihedral:.1f}° to {quality.largest_dihedral:.1f}°"),
        ("volume", f"{quality.mesh_volume:.4g} m³, {100.0 * (quality.volume_ratio - 1.0):+.1f} % of the surface's"),
        ("parts", f"{quality.parts}"),
        ("surface outside", f"{100.0 * quality.share_outside:.1f} %, smallest weight {quality.smallest_weight:.2f}"),
        ("thin surface", f"{100.0 * quality.thin_share:.1f} % under two cells"),
        ("fused gaps", f"{quality.fused_pairs}"),
    ]


def write_volume(volume: CharacterVolume, path: Path) -> None:
    """Tets, surface and embedding as NumPy's .npz: vertices, tets, surface_*, embedding_nodes, embedding_weights."""
    lattice = volume.lattice
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        vertices=lattice.mesh.vertices,
        tets=lattice.mesh.elements,
        surface_vertices=volume.surface_vertices,
        surface_triangles=volume.surface_triangles,
        welded_of_vertex=volume.welded_of_vertex,
        embedding_nodes=lattice.embedding.nodes,
        embedding_weights=lattice.embedding.weights,
        density_factor=np.array(lattice.density_factor),
    )
    write_bytes(path, buffer.getvalue())


def write_volume_picture(volume: CharacterVolume, path: Path) -> None:
    """The surface, and beside it the tets cut open along the body: the half towards the camera is left out."""
    mesh, surface = volume.lattice.mesh, volume.surface_vertices
    across, towards = _cut(surface)
    centres = mesh.vertices[mesh.elements].mean(axis=1)
    behind = mesh.elements[centres[:, across] < np.median(mesh.vertices[:, across])]
    faces = behind[:, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]].reshape(-1, 3)
    _, first, counts = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    skin = Mesh(surface, volume.surface_triangles, SKIN)
    cut = Mesh(mesh.vertices, faces[first[counts == 1]], TETS, crease_angle=0.0, wire=True)
    ground = Ground.under([skin], (0, 1, 0))
    light = Light(np.add(towards, (0.0, 0.9, 0.0)), strength=1.05)  # into the cut
    seen = np.concatenate([surface, light.shadow(surface, ground.height)])
    camera = Camera.framing(seen, towards, aspect=1.0)
    pictures = [render([shown], camera, (640, 640), light=light, ground=ground) for shown in (skin, cut)]
    write_png(path, strip(pictures, ["surface", f"{len(mesh.elements):,} tets, cut open"]))


def _cut(points: np.ndarray) -> tuple[int, tuple[float, float, float]]:
    """The horizontal axis that a cut along the body lies across, and where the camera stands to look into it.

    A standing figure is widest along x and seen from the front; one on four legs is longest along z, and a cut across
    that would leave it without a head.
    """
    wide, _, long = np.ptp(points, axis=0)
    return (0, (1.0, 0.2, 0.35)) if long > wide else (2, (0.35, 0.2, 1.0))
