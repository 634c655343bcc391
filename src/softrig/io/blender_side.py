"""What runs inside Blender: a script for the interpreter that has `bpy`, never imported by softrig.

    python -I blender_side.py request.json            a Python with the module bpy
    blender --background … --python blender_side.py -- request.json

The request names a job, an input and an output; what came of it is written as response.json beside the request. Files
are read as strangers' files: scripts inside them do not run, no other file becomes part of the result, memory
and written bytes are limited.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

MOST_MEMORY = 12 << 30
MOST_WRITTEN = 4 << 30


class RefusedError(Exception):
    """What the user is told, as it is."""


def main() -> int:
    """Do the job of the request named last on the command line; 0 if a response was written."""
    request_path = Path(sys.argv[-1])
    response_path = request_path.with_name("response.json")
    try:
        request = json.loads(request_path.read_text(encoding="utf-8"))
        limit_resources()
        try:
            import bpy  # type: ignore[import-not-found, unused-ignore]
        except ImportError as missing:
            raise RefusedError(f"this Python has no module bpy ({missing})") from missing
        response = {"version": bpy.app.version_string, **JOBS[request["job"]](bpy, request)}
    except RefusedError as refusal:
        response = {"error": str(refusal)}
    except Exception as error:
        traceback.print_exc()
        response = {"error": f"{type(error).__name__}: {error}"}
    response_path.write_text(json.dumps(response), encoding="utf-8")
    return 0


def limit_resources() -> None:
    """Bound memory and the size of files where the system can; a file that asks for more fails alone."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    for kind, most in ((resource.RLIMIT_DATA, MOST_MEMORY), (resource.RLIMIT_FSIZE, MOST_WRITTEN)):
        hard = resource.getrlimit(kind)[1]
        try:
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        except (ValueError, OSError):
            continue


def version(bpy: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Which Blender this is, and whether it has what the other jobs need."""
    clean(bpy)
    missing = [
        name
        for name, group, operator in (
            ("glTF export", bpy.ops.export_scene, "gltf"),
            ("Alembic export", bpy.ops.wm, "alembic_export"),
        )
        if operator not in dir(group)
    ]
    return {"python": sys.version.split()[0], "missing": missing}


def to_glb(bpy: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Open any character file and write it as GLB: metres a unit, and what had to be left out."""
    open_file(bpy, request["input"])
    refuse_links(bpy)
    name_clips(bpy)
    stash_clips(bpy)
    rest_morphs(bpy)
    notes = leave_out(bpy)
    scene = bpy.context.scene
    meshes = [thing for thing in scene.objects if thing.type == "MESH"]
    if not meshes:
        raise RefusedError("there is no mesh in it")
    morphing = any(thing.data.shape_keys is not None for thing in meshes)
    if morphing and (kinds := shaping_modifiers(meshes)):
        notes.append(f"modifiers cannot go with shape keys and are left out: {', '.join(kinds)}")
    unit = float(scene.unit_settings.scale_length) if scene.unit_settings.system != "NONE" else 1.0
    export_glb(bpy, request["output"], apply=not morphing)
    return {"metres_per_unit": unit, "notes": notes}


def to_alembic(bpy: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Write the frames of a PC2 file (z up) as an Alembic mesh that changes with time."""
    import numpy as np

    clean(bpy)
    with np.load(request["mesh"], allow_pickle=False) as arrays:
        first, triangles = arrays["first"], arrays["triangles"]
        colours = arrays["colours"] if "colours" in arrays.files else None
    mesh = bpy.data.meshes.new(request["name"])
    build_mesh(mesh, first, triangles)
    if colours is not None:
        attribute = mesh.color_attributes.new("Color", "FLOAT_COLOR", "POINT")
        attribute.data.foreach_set("color", np.ascontiguousarray(colours, np.float32).ravel())
    thing = bpy.data.objects.new(request["name"], mesh)
    scene = bpy.context.scene
    scene.collection.objects.link(thing)
    start, frames = int(request["start"]), int(request["frames"])
    cache = thing.modifiers.new("cache", "MESH_CACHE")
    cache.cache_format, cache.filepath = "PC2", request["input"]
    cache.interpolation, cache.frame_start = "NONE", float(start)
    set_rate(scene, float(request["fps"]))
    scene.frame_start, scene.frame_end = start, start + frames - 1
    bpy.ops.wm.alembic_export(
        filepath=request["output"],
        start=start,
        end=start + frames - 1,
        flatten=False,
        normals=False,
        orcos=False,
        uvs=False,
        vcolors=colours is not None,
        as_background_job=False,
        evaluation_mode="VIEWPORT",
        export_custom_properties=False,
    )
    return {}


def vertices(bpy: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The vertices that Blender shows of a file's meshes at some times, y up, one array a mesh."""
    import numpy as np

    clean(bpy)
    scene = bpy.context.scene
    set_rate(scene, float(request["fps"]))
    open_file(bpy, request["input"], empty=False)
    refuse_links(bpy)
    if request.get("clip") is not None:
        play(bpy, request["clip"])
    leave_out(bpy)
    meshes = [thing for thing in scene.objects if thing.type == "MESH"]
    shown: dict[str, list[Any]] = {thing.name: [] for thing in meshes}
    for time in request["times"]:
        frame = time * float(request["fps"])
        scene.frame_set(int(frame // 1), subframe=frame % 1)
        graph = bpy.context.evaluated_depsgraph_get()
        for thing in meshes:
            shown[thing.name].append(world_vertices(np, thing.evaluated_get(graph)))
    arrays: dict[str, Any] = {f"mesh{index}": np.stack(frames) for index, frames in enumerate(shown.values())}
    np.savez(request["output"], **arrays)
    return {"meshes": list(shown)}


JOBS = {"version": version, "to_glb": to_glb, "to_alembic": to_alembic, "vertices": vertices}


def clean(bpy: Any) -> None:
    """An empty scene and factory settings: nobody's start-up file or add-ons, scripts in files off."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False


def open_file(bpy: Any, path: str, *, empty: bool = True) -> None:
    """Open or import a file by its ending; clips start at frame 0 where the importer can do that."""
    if empty:
        clean(bpy)
    ending = Path(path).suffix.lower()
    if ending == ".blend":
        bpy.ops.wm.open_mainfile(filepath=path, load_ui=False, use_scripts=False)
    elif ending == ".fbx" and "fbx_import" in dir(bpy.ops.wm):
        bpy.ops.wm.fbx_import(filepath=path, anim_offset=0.0)
    elif ending == ".fbx":
        bpy.ops.import_scene.fbx(filepath=path, anim_offset=0.0, use_image_search=False)
    elif ending in (".usd", ".usda", ".usdc", ".usdz"):
        bpy.ops.wm.usd_import(filepath=path)
    elif ending == ".abc":
        bpy.ops.wm.alembic_import(filepath=path, as_background_job=False)
    elif ending in (".glb", ".gltf"):
        bpy.ops.import_scene.gltf(filepath=path)
    else:
        raise RefusedError(f"ending {ending} is unknown here")


def refuse_links(bpy: Any) -> None:
    """Refuse a scene that takes data from other .blend files."""
    linked = [library.filepath for library in bpy.data.libraries]
    if linked:
        raise RefusedError(f"it links to other files ({', '.join(linked[:3])}): make all local and pack it first")


def leave_out(bpy: Any) -> list[str]:
    """Take away the shapes of bones, hidden meshes and pictures outside the file; in words what was taken."""
    scene = bpy.context.scene
    shapes = {bone.custom_shape for thing in scene.objects if thing.pose for bone in thing.pose.bones}
    hidden = [
        thing
        for thing in scene.objects
        if thing.type == "MESH" and (thing in shapes or (thing.hide_render and not thing.visible_get()))
    ]
    notes = [f"hidden meshes are left out: {', '.join(thing.name for thing in hidden[:5] if thing not in shapes)}"]
    notes = notes if any(thing not in shapes for thing in hidden) else []
    for thing in hidden:
        bpy.data.objects.remove(thing)
    outside = [image for image in bpy.data.images if image.source != "GENERATED" and image.packed_file is None]
    if outside:
        notes.append(f"pictures that are not packed into the file are left out: {len(outside)}")
    for image in outside:
        bpy.data.images.remove(image)
    return notes


def name_clips(bpy: Any) -> None:
    """FBX names clips 'Armature|walk': without the armature's name, where that stays unique."""
    owners = {thing.name for thing in bpy.data.objects if thing.type == "ARMATURE"}
    owners |= {armature.name for armature in bpy.data.armatures}
    for action in bpy.data.actions:
        head, _, tail = action.name.partition("|")
        while tail and head in owners and tail not in bpy.data.actions:
            action.name = tail
            head, _, tail = action.name.partition("|")


def stash_clips(bpy: Any) -> None:
    """Give every object and set of shape keys its share of every action as a silent track, where the exporter looks.

    Importers bind only the first action; which slots of the others belong to whom is known by their names.
    """
    for prefix, owners in (("OB", bpy.data.objects), ("KE", bpy.data.shape_keys)):
        for owner in owners:
            data = owner.animation_data
            if data is None or not hasattr(data, "action_slot"):
                continue
            known = [data.action, *(strip.action for track in data.nla_tracks for strip in track.strips)]
            # Shape keys must let go of their active action to rest: see rest_morphs.
            known = known[1:] if prefix == "KE" else known
            for action in bpy.data.actions:
                slots = [slot for slot in action.slots if slot.identifier == prefix + owner.name]
                slots = [data.action_slot] if action == data.action and data.action_slot else slots
                if slots and action not in known:
                    track = data.nla_tracks.new()
                    track.mute = True
                    strip = track.strips.new(action.name, int(action.frame_range[0]), action)
                    strip.action_slot = slots[0]


def rest_morphs(bpy: Any) -> None:
    """Set shape keys that clips move to 0, so that the rest shape is not that of whichever frame was shown last."""
    for keys in bpy.data.shape_keys:
        data = keys.animation_data
        actions = [strip.action for track in data.nla_tracks for strip in track.strips] if data is not None else []
        if data is None or data.action not in [None, *actions]:
            continue
        for track in data.nla_tracks:
            track.mute = True
        data.action = None
        moved = {curve.data_path for action in actions if action for curve in curves_of(action)}
        for block in keys.key_blocks[1:]:
            if f"{block.path_from_id()}.value" in moved:
                block.value = 0.0


def curves_of(action: Any) -> list[Any]:
    """All curves of an action, in slots or, before Blender 4.4, not."""
    if not hasattr(action, "layers"):
        return list(action.fcurves)
    return [
        curve for layer in action.layers for strip in layer.strips for bag in strip.channelbags for curve in bag.fcurves
    ]


def shaping_modifiers(meshes: list[Any]) -> list[str]:
    """Kinds of modifiers other than the skeleton that a mesh shows."""
    kinds = {mod.type for thing in meshes for mod in thing.modifiers if mod.show_viewport and mod.type != "ARMATURE"}
    return sorted(kinds)


def export_glb(bpy: Any, path: str, *, apply: bool) -> None:
    """Every action as a clip from time 0, all influences, every frame of the scene's own rate."""
    wanted = {
        "filepath": path,
        "export_format": "GLB",
        "use_active_scene": True,
        "export_apply": apply,
        "export_yup": True,
        "export_cameras": False,
        "export_lights": False,
        "export_extras": False,
        "export_skins": True,
        "export_all_influences": True,
        "export_morph": True,
        "export_animations": True,
        "export_animation_mode": "ACTIONS",
        "export_force_sampling": True,
        "export_optimize_animation_size": False,
        "export_anim_slide_to_zero": True,
        "export_rest_position_armature": True,
        "export_draco_mesh_compression_enable": False,
    }
    # Options come and go between versions of Blender; the format is chosen by an enumeration that is always there.
    known = set(bpy.ops.export_scene.gltf.get_rna_type().properties.keys())
    bpy.ops.export_scene.gltf(**{name: value for name, value in wanted.items() if name in known})


def build_mesh(mesh: Any, first: Any, triangles: Any) -> None:
    """Fill an empty mesh with vertices (n, 3) and triangles (t, 3), smooth."""
    mesh.vertices.add(len(first))
    mesh.vertices.foreach_set("co", first.ravel())
    mesh.loops.add(triangles.size)
    mesh.loops.foreach_set("vertex_index", triangles.ravel())
    mesh.polygons.add(len(triangles))
    mesh.polygons.foreach_set("loop_start", range(0, triangles.size, 3))
    mesh.polygons.foreach_set("use_smooth", [True] * len(triangles))
    mesh.update(calc_edges=True)


def set_rate(scene: Any, fps: float) -> None:
    """Frames a second, which Blender keeps as a whole number over a base."""
    scene.render.fps = max(1, round(fps))
    scene.render.fps_base = scene.render.fps / fps


def play(bpy: Any, clip: str) -> None:
    """Let every object play its share of a clip; the glTF importer keeps each as a track of that name."""
    owners = [*bpy.data.objects, *bpy.data.shape_keys]
    # What has no name in the file is animation_0 to softrig and Anim_0 to Blender.
    names = {clip, clip.replace("animation_", "Anim_")}
    found = False
    for owner in owners:
        data = owner.animation_data
        if data is None:
            continue
        strips = [track.strips[0] for track in data.nla_tracks if track.name in names and len(track.strips)]
        own = data.action is not None and data.action.name in names
        for track in data.nla_tracks:
            track.mute = True
        found = found or bool(strips) or own
        if strips:
            data.action = strips[0].action
            if hasattr(data, "action_slot"):
                data.action_slot = strips[0].action_slot
        elif not own:
            data.action = None
    if not found:
        raise RefusedError(f"Blender shows no clip '{clip}' in it")


def world_vertices(np: Any, thing: Any) -> Any:
    """(n, 3) of an evaluated object in the world, turned to y up."""
    mesh = thing.to_mesh()
    local = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.vertices.foreach_get("co", local)
    thing.to_mesh_clear()
    matrix = np.array(thing.matrix_world)
    world = local.reshape(-1, 3).astype(np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
    return np.stack([world[:, 0], world[:, 2], -world[:, 1]], axis=1)


if __name__ == "__main__":
    sys.exit(main())
