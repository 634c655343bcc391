"""The characters made by code: whole surfaces, honest weights, clips that move and feet that stand."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from typer.testing import CliRunner

from softrig.characters import CHARACTERS, BuiltInCharacter, bear_clips, built_in, gorilla_clips
from softrig.characters.posing import Motion
from softrig.characters.sculpture import Group, Sculpture, ball, other_side
from softrig.characters.smoothing import vertex_normals
from softrig.characters.softness import painted_softness
from softrig.characters.surface import closed_surface
from softrig.characters.timing import ease, hold, keyed, settled, step_cycle
from softrig.cli import app
from softrig.errors import InputError
from softrig.io.accessors import AccessorReader
from softrig.io.characters import load_character
from softrig.io.glb import read_document
from softrig.io.glb_writer import write_character_glb
from softrig.rig.character import Character
from softrig.rig.corrections import correction_weights
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin

NAMES = list(CHARACTERS)
# PSSD Table 3, column tri-vtx.
VERTICES = {"arm": 10_525, "x": 2_362, "bear": 6_876, "gorilla": 15_774}
# Length of the bounding box along x, y and z, metres.
SIZES = {"arm": (0.86, 0.18, 0.19), "x": (0.9, 1.0, 0.25), "bear": (0.8, 1.35, 2.45), "gorilla": (1.6, 1.77, 0.6)}
LOOPS = {("arm", "swing"), ("bear", "walk"), ("gorilla", "walk")}
CLIPS = {
    "arm": ("bend", "wave", "swing"),
    "x": ("bend", "shake", "bow"),
    "bear": ("walk", "shake", "wave"),
    "gorilla": ("walk", "jump", "beat"),
}
ALL_CLIPS = [(name, clip) for name, clips in CLIPS.items() for clip in clips]


@cache
def character(name: str) -> BuiltInCharacter:
    return built_in(name)


def skin_of(name: str) -> LinearBlendSkin:
    skin = character(name).rig.stages[-1]
    assert isinstance(skin, LinearBlendSkin)
    return skin


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="no built-in character 'dragon'; there are arm, x, bear, gorilla"):
        built_in("dragon")
    with pytest.raises(InputError, match="has no pose 'handstand'"):
        character("x").pose("handstand")


@pytest.mark.parametrize("name", NAMES)
def test_surface_is_closed_whole_and_as_fine_as_the_paper_says(name: str) -> None:
    made = character(name)
    triangles = made.triangles
    assert abs(len(made.rest_positions) / VERTICES[name] - 1.0) < 0.15
    directed = triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    assert len(np.unique(directed, axis=0)) == len(directed), "an edge is used twice in one direction"
    edges, uses = np.unique(np.sort(directed, axis=1), axis=0, return_counts=True)
    assert (uses == 2).all()
    assert len(made.rest_positions) - len(edges) + len(triangles) == 2
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(edges)), edges.T), shape=(len(made.rest_positions),) * 2)
    assert connected_components(links)[0] == 1
    assert len(made.welded.representative) == len(made.rest_positions)


@pytest.mark.parametrize("name", NAMES)
def test_triangles_face_outwards_and_none_is_folded(name: str) -> None:
    made = character(name)
    corners = made.rest_positions[made.triangles]
    facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    volume = np.einsum("ni,ni->", corners[:, 0], facing) / 6.0
    # A body fills a fair part of its box; turned inside out the volume would be negative.
    assert 0.05 < volume / np.prod(np.ptp(made.rest_positions, axis=0)) < 0.6
    assert np.linalg.norm(facing, axis=1).min() > 0.0
    normals = vertex_normals(made.rest_positions, made.triangles)[made.triangles]
    assert (np.einsum("nj,nkj->nk", facing, normals).max(axis=1) > 0.0).all()


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_those_of_living_things(name: str) -> None:
    extent = np.ptp(character(name).rest_positions, axis=0)
    np.testing.assert_allclose(extent, SIZES[name], rtol=0.15)
    if name != "arm":
        assert abs(character(name).rest_positions[:, 1].min()) < 0.006


@pytest.mark.parametrize("name", ["arm", "gorilla"])
def test_skin_weights_are_shares(name: str) -> None:
    skin = skin_of(name)
    assert skin.weights.shape[1] <= 4
    assert (skin.weights >= 0.0).all()
    np.testing.assert_allclose(skin.weights.sum(axis=1), 1.0, atol=1e-12)
    dense = np.zeros((len(skin.weights), len(skin.bones)))
    np.put_along_axis(dense, skin.joints.astype(np.int64), skin.weights, axis=1)
    assert (dense.max(axis=0) > 0.9).all(), "a bone that carries nothing alone"
    along = np.sort(character(name).triangles[:, [0, 1]], axis=1)
    assert np.abs(dense[along[:, 0]] - dense[along[:, 1]]).max() < 0.35, "weights that tear between neighbours"


def test_bones_of_the_two_skeletons() -> None:
    assert character("gorilla").skeleton is not None
    assert len(character("gorilla").skeleton) == 16  # type: ignore[arg-type]
    assert character("arm").skeleton.names == ("Shoulder", "UpperArm", "Forearm")  # type: ignore[union-attr]
    rest = skin_of("gorilla")
    left, right = (rest.skeleton.index(f"{side}Hand") for side in ("Left", "Right"))
    carried = np.array([(rest.weights * (rest.joints == bone)).sum(axis=1) for bone in (left, right)])
    centres = carried @ rest.rest_positions / carried.sum(axis=1, keepdims=True)
    assert centres[0, 0] > 0.6
    np.testing.assert_allclose(centres[1], centres[0] * [-1.0, 1.0, 1.0], atol=0.01)


def test_wires_shares_sum_to_one_so_that_the_bear_moves_as_a_whole() -> None:
    made = character("bear")
    shares = np.stack([stage.weights for stage in made.rig.stages[1:-1]])
    np.testing.assert_allclose(shares.sum(axis=0), 1.0, atol=1e-12)
    p = made.rig.parameters.rest.copy()
    names = made.rig.parameters.names
    wires = [i for i, name in enumerate(names) if made.rig.parameters.units[i] == "m" and not name.startswith("Root")]
    assert len(wires) == 144
    p[wires] = np.tile([0.3, 0.1, -0.2], len(wires) // 3)
    np.testing.assert_allclose(made.rig.positions(p), made.rest_positions + np.array([0.3, 0.1, -0.2]), atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_colours_are_finite_shares_and_not_all_the_same(name: str) -> None:
    colours = character(name).colours
    assert colours is not None
    assert colours.shape == (len(character(name).rest_positions), 4)
    assert ((colours >= 0.0) & (colours <= 1.0)).all()
    assert (colours[:, 3] == 1.0).all()
    assert np.ptp(colours[:, :3], axis=0).min() > 0.1


@pytest.mark.parametrize(("name", "clip"), ALL_CLIPS)
def test_clips_move_smoothly_and_loop_where_they_should(name: str, clip: str) -> None:
    made = character(name)
    assert tuple(c.name for c in made.clips) == CLIPS[name]
    chosen = made.clip(clip)
    assert chosen.looping == ((name, clip) in LOOPS)
    _, values = chosen.resample(30.0)
    assert np.isfinite(values).all()
    some = np.linspace(0, len(made.rest_positions) - 1, 400).astype(int)
    moved = np.stack([made.rig.positions(p, some) for p in values])
    assert np.isfinite(moved).all()
    assert np.linalg.norm(np.ptp(moved, axis=0), axis=1).max() > 0.08 * made.size
    # No frame is a jump: limbs make a few metres a second.
    speeds = 30.0 * np.linalg.norm(np.diff(moved, axis=0), axis=2)
    assert speeds.max() < 10.0
    ends = made.rig.positions(chosen.sample(0.0)[0]), made.rig.positions(values[-1])
    np.testing.assert_allclose(*ends, atol=1e-6, err_msg="a clip ends where it began")
    if chosen.looping:
        across = moved[1] - moved[0] - (moved[-1] - moved[-2])
        assert 30.0 * np.linalg.norm(across, axis=1).max() < 0.25 * speeds.max(), "a jolt where the loop closes"
    else:
        assert speeds[[0, -1]].max() < 0.1 * speeds.max(), "a clip starts and stops at rest"


def soles(name: str, side: str, low: tuple[float, float], span: tuple[float, float]) -> np.ndarray:
    """Vertices of one sole: below 1 cm, on one side, between two places along z."""
    x = character(name).rest_positions
    sign = 1.0 if side == "Left" else -1.0
    return np.flatnonzero(
        (x[:, 1] < 0.010)
        & (sign * x[:, 0] > low[0])
        & (sign * x[:, 0] < low[1])
        & (x[:, 2] > span[0])
        & (x[:, 2] < span[1])
    )


def slip(name: str, clip: str, vertices: np.ndarray, times: np.ndarray, speed: float = 0.0) -> tuple[float, float]:
    """Largest way of the vertices over the ground and up and down, m; the ground runs back with `speed`."""
    assert len(vertices) >= 8
    made = character(name)
    places = np.stack([made.rig.positions(p, vertices) for p in made.clip(clip).sample(times)])
    places[:, :, 2] += speed * times[:, None]
    spread = np.ptp(places, axis=0)
    return float(np.linalg.norm(spread[:, [0, 2]], axis=1).max()), float(spread[:, 1].max())


@pytest.mark.parametrize(("side", "start"), [("Left", 0.0), ("Right", 0.5)])
def test_the_walking_gorillas_foot_stands_while_it_supports(side: str, start: float) -> None:
    times = gorilla_clips.WALK_PERIOD * (start + np.linspace(0.10, 0.41, 12))
    foot = soles("gorilla", side, (0.1, 0.4), (-0.2, 0.3))
    along, up = slip("gorilla", "walk", foot, times, gorilla_clips.WALK_SPEED)
    assert along < 0.004
    assert up < 0.004
    # And it is the belt's direction: against it, the same foot would slide by twice the way.
    assert slip("gorilla", "walk", foot, times, -gorilla_clips.WALK_SPEED)[0] > 0.3


@pytest.mark.parametrize("leg", list(bear_clips.WALK_OFFSETS))
def test_the_walking_bears_paws_stand_while_they_support(leg: str) -> None:
    landed = -bear_clips.WALK_OFFSETS[leg] % 1.0
    times = bear_clips.WALK_PERIOD * (landed + np.linspace(0.08, 0.50, 12))
    wrapped = np.where(times > bear_clips.WALK_PERIOD, times - bear_clips.WALK_PERIOD, times)
    span = (0.3, 0.9) if "Fore" in leg else (-0.8, -0.3)
    paw = soles("bear", "Left" if leg.startswith("Left") else "Right", (0.1, 0.45), span)
    made = character("bear")
    places = np.stack([made.rig.positions(p, paw) for p in made.clip("walk").sample(wrapped)])
    places[:, :, 2] += bear_clips.WALK_SPEED * times[:, None]
    spread = np.ptp(places, axis=0)
    assert spread[:, [0, 2]].max() < 0.008
    assert spread[:, 1].max() < 0.008
    swing = np.stack([made.rig.positions(p, paw) for p in made.clip("walk").sample(wrapped + 0.58 * 1.5)])
    assert np.ptp(swing, axis=0)[:, 1].max() > 0.05, "a paw is lifted to swing"


def test_feet_stay_down_before_a_jump_and_after_it_and_leave_in_between() -> None:
    foot = soles("gorilla", "Left", (0.1, 0.4), (0.08, 0.3))
    for start, end in ((0.0, 0.68), (1.52, 2.6)):
        along, up = slip("gorilla", "jump", foot, np.linspace(start, end, 10))
        assert along < 0.006
        assert up < 0.006
    flight = character("gorilla").clip("jump").sample(1.17)[0]
    assert character("gorilla").rig.positions(flight)[:, 1].min() > 0.2


def test_three_paws_stay_while_the_fourth_waves() -> None:
    times = np.linspace(0.0, 4.0, 15)
    for side, span in (("Right", (0.3, 0.9)), ("Left", (-0.8, -0.3)), ("Right", (-0.8, -0.3))):
        along, up = slip("bear", "wave", soles("bear", side, (0.1, 0.45), span), times)
        assert along < 0.01
        assert up < 0.01
    waving = slip("bear", "wave", soles("bear", "Left", (0.1, 0.45), (0.3, 0.9)), times)
    assert waving[1] > 0.4


@pytest.mark.parametrize("name", [name for name in NAMES if name != "arm"])  # the arm hangs in the air
def test_nobody_sinks_into_the_ground(name: str) -> None:
    made = character(name)
    for clip in made.clips:
        lowest = min(made.rig.positions(p)[:, 1].min() for p in clip.sample(np.linspace(0.0, clip.duration, 9)))
        assert lowest > -0.02, clip.name


@pytest.mark.parametrize("name", NAMES)
def test_corrections_are_exact_at_their_poses_and_absent_at_rest(name: str) -> None:
    made = character(name)
    parameters = made.rig.parameters
    assert len(made.corrections) >= 2
    assert not correction_weights(parameters, made.corrections, parameters.rest).any()
    for number, correction in enumerate(made.corrections):
        p = made.corrected(correction.pose)
        np.testing.assert_allclose(p, correction.pose, atol=1e-9)
        np.testing.assert_allclose(made.rig.positions(p), correction.positions, atol=1e-8)
        plain = correction.pose.copy()
        plain[parameters.index(f"{correction.name}.weight")] = 0.0
        change = np.linalg.norm(made.rig.positions(plain) - correction.positions, axis=1)
        assert 0.002 < change.max() < 0.10
        assert (change < 1e-9).mean() > 0.3, "a correction is local"
        weights = correction_weights(parameters, made.corrections, plain)
        np.testing.assert_allclose(weights, np.eye(len(made.corrections))[number], atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_corrections_fold_no_skin_over(name: str) -> None:
    made = character(name)

    def facing(points: np.ndarray) -> np.ndarray:
        corners = points[made.triangles]
        return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])

    for correction in made.corrections:
        plain = correction.pose.copy()
        plain[: len(made.corrections)] = 0.0
        opposed = (facing(made.rig.positions(plain)) * facing(correction.positions)).sum(axis=1) < 0.0
        assert opposed.mean() < 0.002, correction.name


def test_the_biceps_swells_when_the_elbow_bends() -> None:
    made = character("arm")
    bend = made.corrections[0]
    rest = made.rest_positions
    biceps = np.flatnonzero(np.linalg.norm(rest - [0.175, 0.06, 0.0], axis=1) < 0.025)
    plain = bend.pose.copy()
    plain[made.rig.parameters.index("ElbowBent.weight")] = 0.0
    # The upper arm stays at rest in that pose, so outwards is upwards.
    rise = (bend.positions - made.rig.positions(plain))[biceps, 1]
    assert 0.008 < rise.mean() < 0.03
    half = made.rig.parameters.rest.copy()
    quaternion = made.rig.parameters.index("Forearm.rotation.x") + np.arange(4)
    half[quaternion] = [0.0, 0.0, np.sin(0.5), np.cos(0.5)]
    np.testing.assert_allclose(made.corrected(half)[made.rig.parameters.index("ElbowBent.weight")], 0.5, atol=1e-9)
    half[quaternion[2]] *= -1.0
    assert made.corrected(half)[made.rig.parameters.index("ElbowBent.weight")] == 0.0


def test_the_elbow_keeps_its_flesh() -> None:
    made = character("arm")
    bend = made.corrections[0]

    def volume(points: np.ndarray) -> float:
        a, b, c = points[made.triangles].transpose(1, 0, 2)
        return float(np.einsum("ni,ni->", a, np.cross(b, c)) / 6.0)

    plain = bend.pose.copy()
    plain[made.rig.parameters.index("ElbowBent.weight")] = 0.0
    rest = volume(made.rest_positions)
    assert volume(made.rig.positions(plain)) < 0.995 * rest
    assert abs(volume(bend.positions) / rest - 1.0) < 0.03


def test_poses_are_the_clips_and_the_bear_has_eight() -> None:
    assert len(character("bear").poses) == 8
    for name in NAMES:
        made = character(name)
        assert len(made.poses) >= 4
        np.testing.assert_array_equal(made.pose("rest"), made.rig.parameters.rest)
        features = np.stack([made.rig.positions(p).ravel() for p in made.poses.values()])
        gaps = np.abs(features[:, None] - features[None]).max(axis=2)
        assert (gaps[np.triu_indices(len(gaps), 1)] > 0.03).all(), "two poses are alike"
        for p in made.poses.values():
            np.testing.assert_allclose(made.corrected(p), p, atol=1e-12)


@pytest.mark.parametrize("name", ["x", "arm"])
def test_the_same_bits_every_time(name: str) -> None:
    one, two = character(name), built_in(name)
    np.testing.assert_array_equal(one.triangles, two.triangles)
    np.testing.assert_array_equal(one.rest_positions, two.rest_positions)
    np.testing.assert_array_equal(one.colours, two.colours)
    for a, b in zip(one.corrections, two.corrections, strict=True):
        np.testing.assert_array_equal(a.positions, b.positions)
    for a, b in zip(one.clips, two.clips, strict=True):
        for track, other in zip(a.tracks, b.tracks, strict=True):
            np.testing.assert_array_equal(track.values, other.values)


def test_a_reached_hand_is_where_it_should_be_and_the_elbow_bends_as_at_rest() -> None:
    heads = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.6, 0.05], [0.0, 0.2, 0.0]])
    skeleton = Skeleton.from_heads(["Body", "Thigh", "Shin", "Foot"], [-1, 0, 1, 2], heads)
    motion = Motion(skeleton, np.zeros(3))
    motion.turn("Body", y=np.array([0.0, 0.4, -0.7]))
    motion.move("Body", y=-0.1)
    target = np.array([[0.1, 0.2, 0.1], [0.0, 0.3, -0.2], [0.05, 0.45, 0.2]])
    motion.reach("Foot", target)
    np.testing.assert_allclose(motion.place("Foot"), target, atol=1e-12)
    forward = motion.facing("Body").apply([0.0, 0.0, 1.0])
    hip, knee = motion.place("Thigh"), motion.place("Shin")
    along = (target - hip) / np.linalg.norm(target - hip, axis=1, keepdims=True)
    aside = (knee - hip) - ((knee - hip) * along).sum(axis=1, keepdims=True) * along
    assert ((aside * forward).sum(axis=1) > 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(knee - hip, axis=1), np.hypot(0.4, 0.05), atol=1e-12)


def test_curves_start_stop_and_overshoot() -> None:
    t = np.linspace(0.0, 4.0, 401)
    rise = ease(t, 1.0, 2.0)
    assert (rise[t <= 1.0] == 0.0).all()
    np.testing.assert_allclose(rise[t >= 2.0], 1.0, atol=1e-12)
    assert (np.diff(rise) >= -1e-15).all()
    assert hold(t, 0.0, 1.0, 2.0, 3.0)[150] == pytest.approx(1.0)
    keys = keyed(t, [(0.0, 0.0), (1.0, 2.0), (3.0, -1.0)])
    np.testing.assert_allclose(keys[[0, 100, 300, 400]], [0.0, 2.0, -1.0, -1.0], atol=1e-12)
    assert keys.max() == pytest.approx(2.0)
    spring = settled(t, 0.5)
    assert spring.max() > 1.1
    assert abs(spring[-1] - 1.0) < 0.01


def test_a_step_stands_at_constant_speed_and_lands_without_a_jolt() -> None:
    phase = np.linspace(0.0, 1.0, 2001)
    place, lift = step_cycle(phase, 0.6)
    standing = phase < 0.6
    np.testing.assert_allclose(np.diff(place[standing]) / np.diff(phase[standing]), -1.0 / 0.6, rtol=1e-9)
    assert (lift[standing] == 0.0).all()
    assert lift[~standing].max() > 0.9
    assert np.abs(np.diff(place)).max() < 0.005, "a jump in the place of the foot"
    assert place[-1] == pytest.approx(place[0], abs=1e-3)


def test_a_ball_becomes_a_ball_of_about_the_wanted_count() -> None:
    body = Sculpture((Group((ball("middle", (0.1, 0.2, 0.3), 0.25),)),))
    low, high = body.box()
    vertices, triangles = closed_surface(body, low - 0.05, high + 0.05, 600)
    assert len(vertices) == pytest.approx(600, rel=0.02)
    np.testing.assert_allclose(np.linalg.norm(vertices - [0.1, 0.2, 0.3], axis=1), 0.25, atol=2e-4)
    corners = vertices[triangles]
    volume = np.einsum("ni,ni->", corners[:, 0] - [0.1, 0.2, 0.3], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    assert volume > 0.0


def test_mirrored_lumps_are_mirror_images_on_the_other_bone() -> None:
    lump = ball("LeftHand", (0.3, 0.1, 0.0), (0.1, 0.2, 0.05), (20, 35, -15))
    points = np.random.default_rng(5).uniform(-0.5, 0.5, (200, 3))
    np.testing.assert_allclose(lump.mirrored().distance(points * [-1, 1, 1]), lump.distance(points), atol=1e-12)
    assert lump.mirrored().bone == "RightHand"
    assert other_side("Spine") == "Spine"


def test_the_command_lists_and_writes_characters(tmp_path):
    runner = CliRunner()
    listed = runner.invoke(app, ["characters"])
    assert listed.exit_code == 0
    assert all(name in listed.stdout for name in CHARACTERS)
    written = runner.invoke(app, ["characters", "x", "-o", str(tmp_path / "out")])
    assert written.exit_code == 0, written.output
    again = load_character(tmp_path / "out" / "x.glb")
    own = built_in("x")
    assert {clip.name for clip in again.clips} == {clip.name for clip in own.clips}
    assert np.abs(again.rest_positions - own.rest_positions).max() < 1e-4 * own.size
    clip, baked = own.clips[0], again.clip(own.clips[0].name)
    for time in np.linspace(0.0, clip.duration, 7):
        shown = again.rig.positions(baked.sample(np.array([time]))[0])
        assert np.abs(shown - own.rig.positions(clip.sample(np.array([time]))[0])).max() < 2e-3 * own.size


def test_an_unknown_character_is_named():
    with pytest.raises(InputError, match="dragon"):
        built_in("dragon")


def assert_corrections_come_back(own: BuiltInCharacter, again: Character) -> None:
    """With their poses, where a GLB can hold the rig; a bend or a wire becomes other morph targets."""
    if own.skeleton is None:
        assert not again.corrections
        return
    where = [again.rig.parameters.index(name) for name in own.rig.parameters.names]
    for one, other in zip(own.corrections, again.corrections, strict=True):
        assert (other.name, other.drivers) == (one.name, one.drivers)
        np.testing.assert_allclose(other.pose[where], one.pose, atol=1e-12)
        np.testing.assert_allclose(other.positions, one.positions, atol=1e-6)
    clip = own.clips[0]
    times = np.linspace(0.0, clip.duration, 7)
    weights = again.corrected(again.clips[0].sample(times))[:, where]
    np.testing.assert_allclose(weights, own.corrected(clip.sample(times)), atol=1e-6)
    assert weights[:, : len(own.corrections)].max() > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_written_characters_come_back_as_they_were(name: str, tmp_path) -> None:
    path = tmp_path / "made.glb"
    own = character(name)
    # The bear's wires are slow; at 16 frames a second there are keys at all times that are looked at.
    write_character_glb(own, path, fps=16.0 if name == "bear" else 60.0)
    again = load_character(path)
    for clip in own.clips:
        times = np.linspace(0.0, clip.duration, 5)
        pairs = zip(clip.sample(times), again.clip(clip.name).sample(times), strict=True)
        apart = [np.abs(own.rig.positions(one) - again.rig.positions(other)).max() for one, other in pairs]
        assert max(apart) < 2e-3 * own.size, clip.name
    assert_corrections_come_back(own, again)
    document = read_document(path)
    reader = AccessorReader(document)
    animations = document.json["animations"]
    assert len(animations) == len(character(name).clips)
    for animation in animations:
        for channel in animation["channels"]:
            if channel["target"]["path"] == "rotation":
                values = reader.numbers(animation["samplers"][channel["sampler"]]["output"], ("VEC4",))
                assert np.abs(np.linalg.norm(values, axis=1) - 1.0).max() < 1e-6


def test_softness_is_painted_by_joints_and_goes_into_the_file(tmp_path):
    painted = painted_softness(built_in("gorilla"), {"Hand": 0.05, "Head": 0.0})
    skin = skin_of("gorilla")
    names = np.array([skin.skeleton.names[bone] for bone in skin.bones])
    shares = np.zeros((len(skin.weights), len(names)))
    np.add.at(shares, (np.arange(len(shares))[:, None], skin.joints), skin.weights)
    hands = shares[:, np.char.endswith(names, "Hand")].sum(axis=1)
    head = shares[:, np.char.endswith(names, "Head")].sum(axis=1)
    np.testing.assert_allclose(painted.maps["softness"], 1.0 - 0.95 * hands - head, atol=1e-12)
    assert min(hands.max(), head.max()) > 0.999
    write_character_glb(painted, tmp_path / "painted.glb")
    again = load_character(tmp_path / "painted.glb").maps["_softness"]
    assert np.sort(again) == pytest.approx(np.sort(painted.maps["softness"]), abs=1e-6)
