"""USD point caches: a mesh with a time sample a frame, alone or as a layer over a scene that stays untouched.

Needs the package usd-core (the extra `softrig[usd]`), which is imported only here and only when used.
"""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from softrig.errors import InputError, SoftrigError
from softrig.files import replacing
from softrig.io.caches import CacheFileError, PointCache

_ENDINGS = (".usd", ".usda", ".usdc")
_UNEVEN_FPS = 60.0
_Z_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""Takes y up to z up."""


class MissingExtraError(SoftrigError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""


def write_usd(
    path: str | os.PathLike[str], cache: PointCache, *, name: str = "character", colours: np.ndarray | None = None
) -> None:
    """Write a .usd, .usda or .usdc file with one mesh `/name`, in metres, y up, a sample of its points a frame.

    colours: (n, 4) or (n, 3) linear, become displayColor. Time codes are frames where the frames are evenly spaced.
    """
    pxr = _pxr()
    _check_ending(path)
    if cache.triangles is None:
        raise InputError("USD: the cache has no triangles")
    stage = pxr.Usd.Stage.CreateInMemory()
    pxr.UsdGeom.SetStageUpAxis(stage, pxr.UsdGeom.Tokens.y)
    pxr.UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = pxr.UsdGeom.Mesh.Define(stage, f"/{re.sub(r'[^A-Za-z0-9_]|^(?=[0-9])', '_', name) or 'character'}")
    stage.SetDefaultPrim(mesh.GetPrim())
    mesh.CreateSubdivisionSchemeAttr(pxr.UsdGeom.Tokens.none)
    mesh.CreateFaceVertexCountsAttr(pxr.Vt.IntArray.FromNumpy(np.full(len(cache.triangles), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(pxr.Vt.IntArray.FromNumpy(cache.triangles.ravel()))
    if colours is not None:
        shown = np.ascontiguousarray(np.asarray(colours)[:, :3], np.float32)
        if shown.shape != cache.positions.shape[1:]:
            raise InputError(f"USD: colours of shape {np.shape(colours)} for {cache.positions.shape[1]} vertices")
        primvar = mesh.CreateDisplayColorPrimvar(pxr.UsdGeom.Tokens.vertex)
        primvar.Set(pxr.Vt.Vec3fArray.FromNumpy(shown))
    _set_times(stage, cache)
    _set_points(pxr, mesh, cache.positions, _codes(stage, cache))
    _export(stage.GetRootLayer(), path)


def write_usd_over(path: str | os.PathLike[str], source: str | os.PathLike[str], prim: str, cache: PointCache) -> None:
    """Write a layer over the USD scene `source` that gives its mesh `prim` the points of the cache.

    The source, its UsdSkel rig included, is not changed, only referred to; in the new layer the mesh's joint
    influences and blend shapes are blocked, or it would be skinned twice. Metres and y up are turned into the
    scene's own unit and axis, and into the mesh's own frame.
    """
    pxr = _pxr()
    _check_ending(path)
    target, scene = Path(path).resolve(), Path(source).resolve()
    if not scene.is_file() or target == scene:
        raise InputError(f"USD: {source} is not a scene that {path} can lie over")
    original = _opened(pxr, scene)
    below = pxr.UsdGeom.Mesh(original.GetPrimAtPath(prim)) if prim.startswith("/") else None
    if not below:
        raise InputError(f"USD: {source} has no mesh '{prim}'")
    count = len(below.GetPointsAttr().Get(pxr.Usd.TimeCode.EarliestTime()) or ())
    if count != cache.positions.shape[1]:
        raise InputError(f"USD: mesh '{prim}' has {count} points, the cache {cache.positions.shape[1]}")
    layer = pxr.Sdf.Layer.CreateAnonymous(".usda")
    layer.subLayerPaths.append(str(scene))
    stage = pxr.Usd.Stage.Open(layer)
    stage.SetTimeCodesPerSecond(original.GetTimeCodesPerSecond())
    codes = cache.times * original.GetTimeCodesPerSecond()
    stage.SetStartTimeCode(float(codes[0]))
    stage.SetEndTimeCode(float(codes[-1]))
    mesh = pxr.UsdGeom.Mesh(stage.OverridePrim(prim))
    for attribute in mesh.GetPrim().GetAttributes():
        if attribute.GetName().startswith(("primvars:skel:joint", "skel:blendShapes")):
            attribute.Block()
    _set_points(pxr, mesh, _in_frame(pxr, original, below, cache, codes), codes)
    layer.subLayerPaths[0] = os.path.relpath(scene, target.parent).replace(os.sep, "/")
    _export(layer, path)


def read_usd(path: str | os.PathLike[str], prim: str | None = None) -> PointCache:
    """Read the time samples of a mesh's points, as they are in its own frame; `prim` None: the first mesh.

    Faces of more than three corners are split into fans.
    """
    pxr = _pxr()
    stage = _opened(pxr, Path(path))
    meshes = [p for p in stage.Traverse() if p.IsA(pxr.UsdGeom.Mesh) and prim in (None, str(p.GetPath()))]
    if not meshes:
        raise CacheFileError(f"{path}: no mesh" + (f" '{prim}'" if prim else ""))
    mesh = pxr.UsdGeom.Mesh(meshes[0])
    points = mesh.GetPointsAttr()
    codes = points.GetTimeSamples() or [pxr.Usd.TimeCode.Default()]
    frames = [np.array(points.Get(code) or (), np.float32).reshape(-1, 3) for code in codes]
    odd = [i for i, frame in enumerate(frames) if len(frame) != len(frames[0])]
    if odd:
        raise CacheFileError(f"{path}: frames with other point counts than the first", odd)
    times = np.array(codes, float) / stage.GetTimeCodesPerSecond() if points.GetTimeSamples() else np.zeros(1)
    return PointCache(np.stack(frames), times, _triangles(mesh))


def _triangles(mesh: Any) -> np.ndarray:
    counts = np.array(mesh.GetFaceVertexCountsAttr().Get() or (), np.int64)
    corners = np.array(mesh.GetFaceVertexIndicesAttr().Get() or (), np.int64)
    if counts.size and (counts.min() < 0 or counts.sum() != corners.size):
        raise CacheFileError("USD mesh: faces and their corners disagree")
    starts = np.cumsum(counts) - counts
    fans = np.maximum(counts - 2, 0)
    face = np.repeat(np.arange(len(counts)), fans)
    step = np.arange(len(face)) - np.repeat(np.cumsum(fans) - fans, fans)
    first = starts[face]
    return np.stack([corners[first], corners[first + step + 1], corners[first + step + 2]], axis=1).reshape(-1, 3)


def _pxr() -> Any:
    try:
        for module in ("Usd", "UsdGeom", "UsdSkel", "Sdf", "Vt", "Tf"):
            importlib.import_module(f"pxr.{module}")
        return importlib.import_module("pxr")
    except ImportError as error:
        raise MissingExtraError(
            "USD needs the package usd-core: install it with the extra, pip install 'softrig[usd]'"
        ) from error


def _opened(pxr: Any, path: Path) -> Any:
    try:
        return pxr.Usd.Stage.Open(str(path))
    except pxr.Tf.ErrorException as error:
        raise CacheFileError(f"{path}: not a USD file ({str(error).strip().splitlines()[-1].strip()})") from error


def _check_ending(path: str | os.PathLike[str]) -> None:
    if Path(path).suffix.lower() not in _ENDINGS:
        raise InputError(f"USD: {path} does not end in {', '.join(_ENDINGS)}")


def _set_times(stage: Any, cache: PointCache) -> None:
    try:
        fps = cache.fps if len(cache.times) > 1 else _UNEVEN_FPS
    except InputError:
        fps = _UNEVEN_FPS
    # 1/60 s is no binary number: without rounding 60 fps would be 59.99999999999999.
    fps = round(fps, 6)
    stage.SetTimeCodesPerSecond(fps)
    stage.SetFramesPerSecond(fps)
    codes = _codes(stage, cache)
    stage.SetStartTimeCode(float(codes[0]))
    stage.SetEndTimeCode(float(codes[-1]))


def _codes(stage: Any, cache: PointCache) -> np.ndarray:
    codes = cache.times * stage.GetTimeCodesPerSecond()
    whole = np.rint(codes)
    return np.where(np.abs(codes - whole) < 1e-6, whole, codes)


def _set_points(pxr: Any, mesh: Any, positions: np.ndarray, codes: np.ndarray) -> None:
    points, extent = mesh.GetPointsAttr(), mesh.GetExtentAttr()
    points, extent = points or mesh.CreatePointsAttr(), extent or mesh.CreateExtentAttr()
    for frame, code in zip(positions, codes.tolist(), strict=True):
        points.Set(pxr.Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(frame, np.float32)), code)
        bounds = np.stack([frame.min(axis=0), frame.max(axis=0)]).astype(np.float32)
        extent.Set(pxr.Vt.Vec3fArray.FromNumpy(bounds), code)


def _in_frame(pxr: Any, stage: Any, mesh: Any, cache: PointCache, codes: np.ndarray) -> np.ndarray:
    """(f, n, 3) the cache's positions in the mesh's own frame and the stage's unit and axis."""
    unit = pxr.UsdGeom.GetStageMetersPerUnit(stage)
    up = _Z_UP if pxr.UsdGeom.GetStageUpAxis(stage) == pxr.UsdGeom.Tokens.z else np.eye(3)
    result = np.empty(cache.positions.shape)
    for frame, code in enumerate(codes.tolist()):
        # USD's matrices act on rows.
        matrix = np.array(mesh.ComputeLocalToWorldTransform(code), float)
        world = cache.positions[frame].astype(np.float64) @ up.T / unit
        result[frame] = (world - matrix[3, :3]) @ np.linalg.inv(matrix[:3, :3])
    return result


def _export(layer: Any, path: str | os.PathLike[str]) -> None:
    with replacing(path) as temporary:
        if not layer.Export(str(temporary)):
            raise InputError(f"USD: {path} cannot be written")
