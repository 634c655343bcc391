"""USD point caches: read back exactly, in metres and y up, and laid over a scene without changing it."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from softrig.errors import InputError
from softrig.io.caches import CacheFileError, PointCache
from softrig.io.usd import MissingExtraError, read_usd, write_usd, write_usd_over

TRIANGLES = np.array([[0, 1, 2], [2, 1, 3], [3, 4, 0]])


@pytest.fixture
def cache():
    return PointCache(np.random.default_rng(3).normal(size=(6, 5, 3)), 0.5 + np.arange(6) / 60.0, TRIANGLES)


@pytest.fixture
def pxr():
    pytest.importorskip("pxr", reason="usd-core is not installed: pip install 'softrig[usd]'")
    for module in ("Usd", "UsdGeom", "UsdSkel", "Gf", "Vt"):
        importlib.import_module(f"pxr.{module}")
    return importlib.import_module("pxr")


@pytest.mark.parametrize("ending", ["usda", "usdc", "usd"])
def test_a_cache_comes_back(pxr, cache, tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    write_usd(path, cache, name="bär 2", colours=np.full((5, 4), 0.25))
    back = read_usd(path)
    assert np.array_equal(back.positions, cache.positions)
    assert back.times == pytest.approx(cache.times, abs=1e-9)
    assert np.array_equal(back.triangles, TRIANGLES)


def test_the_stage_says_units_axis_rate_and_extent(pxr, cache, tmp_path):
    write_usd(tmp_path / "a.usda", cache, colours=np.linspace(0, 1, 15).reshape(5, 3))
    stage = pxr.Usd.Stage.Open(str(tmp_path / "a.usda"))
    assert pxr.UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert pxr.UsdGeom.GetStageUpAxis(stage) == "Y"
    assert stage.GetTimeCodesPerSecond() == 60.0
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (30.0, 35.0)
    mesh = pxr.UsdGeom.Mesh(stage.GetDefaultPrim())
    assert mesh.GetSubdivisionSchemeAttr().Get() == "none"
    assert mesh.GetPointsAttr().GetTimeSamples() == [30.0, 31.0, 32.0, 33.0, 34.0, 35.0]
    assert np.allclose(mesh.GetExtentAttr().Get(32.0), [cache.positions[2].min(0), cache.positions[2].max(0)])
    assert np.allclose(mesh.GetDisplayColorAttr().Get()[4], [12 / 14, 13 / 14, 1.0])


def test_uneven_frames_keep_their_times(pxr, cache, tmp_path):
    uneven = PointCache(cache.positions, [0.0, 0.01, 0.5, 0.52, 1.7, 3.0], TRIANGLES)
    write_usd(tmp_path / "a.usdc", uneven)
    assert read_usd(tmp_path / "a.usdc").times == pytest.approx(uneven.times, abs=1e-9)


def skinned_scene(pxr, path, *, up="Z", unit=0.01):
    """A scene in centimetres, z up, with a skinned quad below a moved and turned node."""
    stage = pxr.Usd.Stage.CreateNew(str(path))
    pxr.UsdGeom.SetStageUpAxis(stage, up)
    pxr.UsdGeom.SetStageMetersPerUnit(stage, unit)
    stage.SetTimeCodesPerSecond(24.0)
    root = pxr.UsdSkel.Root.Define(stage, "/Rig")
    pxr.UsdGeom.XformCommonAPI(root).SetTranslate((10.0, 20.0, 30.0))
    pxr.UsdGeom.XformCommonAPI(root).SetRotate((0.0, 0.0, 90.0))
    skeleton = pxr.UsdSkel.Skeleton.Define(stage, "/Rig/Skeleton")
    skeleton.CreateJointsAttr(["hip"])
    skeleton.CreateBindTransformsAttr([pxr.Gf.Matrix4d(1.0)])
    skeleton.CreateRestTransformsAttr([pxr.Gf.Matrix4d(1.0)])
    mesh = pxr.UsdGeom.Mesh.Define(stage, "/Rig/Body")
    mesh.CreatePointsAttr([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 2, 0)])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    binding = pxr.UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateSkeletonRel().SetTargets([skeleton.GetPath()])
    binding.CreateJointIndicesPrimvar(False, 1).Set([0] * 5)
    binding.CreateJointWeightsPrimvar(False, 1).Set([1.0] * 5)
    stage.GetRootLayer().Save()


def influences(pxr, path):
    stage = pxr.Usd.Stage.Open(str(path))
    query = pxr.UsdSkel.Cache()
    root = pxr.UsdSkel.Root(stage.GetPrimAtPath("/Rig"))
    query.Populate(root, pxr.Usd.PrimDefaultPredicate)
    return query.GetSkinningQuery(stage.GetPrimAtPath("/Rig/Body")).HasJointInfluences()


def test_an_over_leaves_the_scene_and_its_skeleton_alone(pxr, cache, tmp_path):
    (tmp_path / "sub").mkdir()
    scene = tmp_path / "sub" / "scene.usda"
    skinned_scene(pxr, scene)
    before = scene.read_bytes()
    write_usd_over(tmp_path / "soft.usda", scene, "/Rig/Body", cache)
    assert scene.read_bytes() == before
    assert influences(pxr, scene)
    assert not influences(pxr, tmp_path / "soft.usda")
    assert "@./sub/scene.usda@" in (tmp_path / "soft.usda").read_text().replace("@sub/", "@./sub/")
    stage = pxr.Usd.Stage.Open(str(tmp_path / "soft.usda"))
    mesh = pxr.UsdGeom.Mesh(stage.GetPrimAtPath("/Rig/Body"))
    assert stage.GetPrimAtPath("/Rig/Skeleton").IsValid()
    codes = mesh.GetPointsAttr().GetTimeSamples()
    assert codes == pytest.approx(24.0 * cache.times)
    matrix = np.array(mesh.ComputeLocalToWorldTransform(codes[3]))
    world = np.array(mesh.GetPointsAttr().Get(codes[3])) @ matrix[:3, :3] + matrix[3, :3]
    x, y, z = cache.positions[3].T
    assert np.allclose(world, 100.0 * np.stack([x, -z, y], axis=1), atol=1e-4)


def test_an_over_must_fit_the_mesh(pxr, cache, tmp_path):
    skinned_scene(pxr, tmp_path / "scene.usda")
    with pytest.raises(InputError, match="has no mesh '/Rig/Head'"):
        write_usd_over(tmp_path / "o.usda", tmp_path / "scene.usda", "/Rig/Head", cache)
    short = PointCache(cache.positions[:, :4], cache.times)
    with pytest.raises(InputError, match="has 5 points, the cache 4"):
        write_usd_over(tmp_path / "o.usda", tmp_path / "scene.usda", "/Rig/Body", short)
    with pytest.raises(InputError, match="can lie over"):
        write_usd_over(tmp_path / "scene.usda", tmp_path / "scene.usda", "/Rig/Body", cache)
    assert read_usd(tmp_path / "scene.usda", "/Rig/Body").triangles.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_foreign_files_and_endings_are_refused(pxr, cache, tmp_path):
    (tmp_path / "a.usda").write_text("#usda 1.0\n{ nonsense")
    with pytest.raises(CacheFileError, match="not a USD file"):
        read_usd(tmp_path / "a.usda")
    with pytest.raises(InputError, match="does not end in"):
        write_usd(tmp_path / "a.abc", cache)
    with pytest.raises(InputError, match="no triangles"):
        write_usd(tmp_path / "b.usda", PointCache(cache.positions, cache.times))
    assert not (tmp_path / "b.usda").exists()


def test_without_the_package_the_extra_is_named(cache, tmp_path, monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == "pxr"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(MissingExtraError, match=r"softrig\[usd\]"):
        write_usd(tmp_path / "a.usda", cache)
