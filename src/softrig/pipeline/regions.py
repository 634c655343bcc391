"""The regions of a body: by the user's handles, else from its bones, else from the wires of a wire rig (PSSD §7)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from softrig.bases.localised import BoneRegions, default_regions, paper_regions, require_members
from softrig.errors import InputError
from softrig.meshing.regions import Handle
from softrig.pipeline.cache import Arrays, StageCache, content_hash, text_array, text_value
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.posing import Posing
from softrig.pipeline.rigging import Bones
from softrig.project import Project
from softrig.rig.character import Character
from softrig.rig.deformers import Wire

ONLY = "body"
"""The region of a rig without bones, wires and handles."""


def known_regions(character: Character, project: Project, bones: Bones | None) -> tuple[str, ...] | None:
    """The names of the regions as far as they are known without tets: not where bones are to be merged.

    A handle at a bone that is not there is refused.
    """
    handles = _handles(character, project, boned=bones is not None)
    if not handles and bones is not None:
        return None
    return tuple(handle.name for handle in handles) or (ONLY,)


def make_regions(
    character: Character, flesh: Flesh, posing: Posing, project: Project, cache: StageCache
) -> BoneRegions:
    """Regions by the project's handles, else from bones, else from the wires of a wire rig, else one.

    By the paper's recipe their weights are bounded biharmonic and overlap (`paper_regions`).
    """
    count = len(flesh.mesh.vertices)
    bones = posing.bones
    handles = _handles(character, project, boned=bones is not None)
    if not handles and bones is None:
        return BoneRegions((ONLY,), np.ones((count, 1)), np.zeros(1, np.int32))
    weights = posing.tet_rig.weights
    table = csr_array(np.ones((count, 1))) if weights is None or bones is None else weights
    parents = np.full(1, -1) if bones is None else bones.parents
    names = (ONLY,) if bones is None else bones.names
    places = [[*handle.head, *handle.tail] for handle in handles or ()]
    as_printed = project.basis.recipe == "paper"
    key = content_hash(
        flesh.mesh.vertices,
        flesh.mesh.elements,
        table.toarray(),
        parents,
        places,
        list(names),
        [handle.name for handle in handles],
        project.basis.regions,
        *(["biharmonic"] if as_printed else []),
    )

    def make() -> Arrays:
        found = default_regions(
            flesh.mesh, table, parents, names=names, count=project.basis.regions, handles=handles or None
        )
        if as_printed:
            found = paper_regions(flesh.mesh, found, handles or None)
        return {
            "weights": found.weights,
            "region_of_bone": found.region_of_bone,
            "names": text_array(list(found.names)),
        }

    arrays = cache.get("regions", key, make)
    titles = tuple(text_value(arrays["names"]))
    require_members(arrays["weights"], ~flesh.fixed, titles)
    return BoneRegions(titles, arrays["weights"], arrays["region_of_bone"])


def _handles(character: Character, project: Project, *, boned: bool) -> list[Handle]:
    """The project's; a rig without bones has its wires instead, as many as there may be regions."""
    if not project.basis.handles and not boned and project.basis.regions > 1:
        return _wire_handles(character)[: project.basis.regions]
    bones = {bone.name: bone for bone in reversed(character.bones())}
    handles = []
    for wanted in project.basis.handles:
        if wanted.point is not None:
            handles.append(Handle.point(wanted.name, wanted.point))
        elif wanted.segment is not None:
            handles.append(Handle.segment(wanted.name, *wanted.segment))
        elif wanted.bone not in bones:
            raise InputError(f"handle '{wanted.name}': no bone is called '{wanted.bone}'; there are {', '.join(bones)}")
        else:
            bone = bones[wanted.bone]
            handles.append(Handle.segment(wanted.name, bone.head, bone.tail))
    return handles


def _wire_handles(character: Character) -> list[Handle]:
    stages = getattr(character.rig, "stages", (character.rig,))
    wires = [stage for stage in stages if isinstance(stage, Wire)]
    return [Handle.segment(wire.name, wire.controls[0], wire.controls[-1]) for wire in wires]
