"""Poses in, vertices out: the same motion at any frame rate, and calm through anything."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from pose_models_for_tests import bar_model, bone_weights, coarse, offsets, pose, with_products
from softrig.dynamics import step_constants
from softrig.errors import InputError, NotFiniteError, StepSizeError
from softrig.models.pose_space import PoseTable
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin
from softrig.simulation import Damping, Plane, Simulation, Sphere
from softrig.simulation import jumps as jumps_module
from softrig.simulation.timeline import Timeline

RATES = (24, 60, 90, 144)


def smooth(t, start=0.1, duration=0.6):
    """From 0 to 1 with the smallest jerk."""
    s = np.clip((np.asarray(t) - start) / duration, 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


def lifted(model, heights):
    return np.array([pose(model.rig, root_move=(0.0, height, 0.0)) for height in heights])


# ---- carriers in time


def test_constant_acceleration_is_exact_at_irregular_frames():
    timeline = Timeline(1, 180.0, lead=True)
    rng = np.random.default_rng(0)
    t, seen = 0.0, []
    timeline.restart(np.array([0.3]))
    for seconds in rng.uniform(0.004, 0.06, 40):
        t += seconds
        for z, rate, acceleration in timeline.frame(np.array([0.3 + 2.0 * t - 4.9 * t * t]), seconds):
            seen.append((float(z[0]), float(rate[0]), float(acceleration[0])))
    grid = np.arange(1, len(seen) + 1) / 180.0
    assert abs(len(seen) - t * 180.0) < 1.0
    z, rate, acceleration = np.array(seen)[12:].T  # the first frame does not know its speed
    np.testing.assert_allclose(z, (0.3 + 2.0 * grid - 4.9 * grid**2)[12:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(rate, (2.0 - 9.8 * grid)[12:], rtol=0, atol=1e-10)
    np.testing.assert_allclose(acceleration[2:], -9.8, rtol=0, atol=1e-7)


def oscillator(path, fps, frequency, ratio, seconds=2.0, rate=180.0):
    """Frame times and the motion of a point on a spring and damper on a moving base, through a `Timeline`."""
    c = step_constants("newmark", 1.0 / rate)
    K = (2.0 * np.pi * frequency) ** 2
    C = 2.0 * ratio * np.sqrt(K)
    times = np.arange(int(seconds * fps) + 1) / fps
    timeline = Timeline(1, rate, lead=True)
    timeline.restart(np.array([path(0.0)]))
    q = v = a = 0.0
    shown = [0.0]
    for t in times[1:]:
        for _, _, acceleration in timeline.frame(np.array([path(t)]), 1.0 / fps):
            load = -float(acceleration[0]) - K * q + c.a2 * v + c.a3 * a - C * (c.a5 * v + c.a6 * a)
            step = load / (c.a1 + c.a4 * C + K)
            q, v, a = q + step, c.a4 * step + c.a5 * v + c.a6 * a, c.a1 * step - c.a2 * v - c.a3 * a
        s = timeline.seconds_since_step
        shown.append(q + s * v + 0.5 * s * s * a)
    return times, np.array(shown)


@pytest.mark.parametrize("fps", [24, 30, 60, 72, 90, 144, 180, 240])
def test_frames_of_any_rate_drive_an_oscillator_as_the_path_itself_does(fps):
    _, exact = oscillator(smooth, 4800, 4.0, 0.12, rate=4800.0)
    times, motion = oscillator(smooth, fps, 4.0, 0.12)
    wanted = exact[np.round(times * 4800).astype(int)]
    assert np.linalg.norm(motion - wanted) < (0.025 if fps < 60 else 0.012) * np.linalg.norm(wanted)


# ---- motion


def test_callers_of_all_frame_rates_see_the_same_motion(bar):
    peaks, lows, decays = [], [], []
    for fps in RATES:
        times = np.arange(2 * fps + 1) / fps
        poses = lifted(bar, 0.4 * smooth(times))
        u = offsets(bar, poses, Simulation(bar, fps=fps).run(poses))[:, :, 1]
        # A vertex can peak between frames: a parabola through the highest three tells the peak.
        y = u[:, np.abs(u).max(axis=0).argmax()]
        late = y[times > 1.2]
        peaks.append(top(y))
        lows.append(top(-y))
        decays.append(top(np.abs(late)))
    assert min(peaks) > 1e-3
    assert min(lows) > 1e-3
    for values in (peaks, lows, decays):
        assert max(values) < 1.02 * min(values)


def top(y):
    i = int(np.clip(y.argmax(), 1, len(y) - 2))
    left, mid, right = y[i - 1 : i + 2]
    bend = left - 2.0 * mid + right
    return mid - (right - left) ** 2 / (8.0 * bend) if bend else mid


def test_jittered_frames_see_the_same_motion(bar):
    steps = np.random.default_rng(1).uniform(1 / 200, 1 / 30, 80)
    times = np.concatenate([[0.0], np.cumsum(steps)])
    simulation = Simulation(bar)
    poses = lifted(bar, 0.4 * smooth(times))
    jittered = np.array([simulation.step(p, dt) for p, dt in zip(poses, [0.0, *steps], strict=True)])
    u = offsets(bar, poses, jittered)[:, :, 1]
    fine = np.arange(int(times[-1] * 180) + 1) / 180
    even = lifted(bar, 0.4 * smooth(fine))
    v = offsets(bar, even, Simulation(bar, fps=180).run(even))[:, :, 1]
    node = np.abs(v).max(axis=0).argmax()
    wanted = np.interp(times, fine, v[:, node])
    assert np.abs(u[:, node] - wanted).max() < 0.03 * np.abs(wanted).max()


def test_a_copy_in_the_middle_of_a_motion_goes_on_alike_and_alone(bar):
    heights = 0.1 * smooth(np.arange(40) / 60.0)
    poses = lifted(bar, heights)
    one = Simulation(bar, fps=60.0)
    for p in poses[:15]:
        one.step(p)
    other = copy.deepcopy(one)
    seen = [one.step(p).copy() for p in poses[15:]]
    for p, expected in zip(poses[15:], seen, strict=True):
        np.testing.assert_array_equal(other.step(p), expected)
    assert np.abs(seen[0] - seen[-1]).max() > 1e-3


def test_a_held_pose_is_still(bending):
    p = pose(bending.rig, (0.0, 0.0, 0.9), root_turn=(0.7, 0.0, 0.4))
    for gravity in ("change", "full"):
        vertices = Simulation(bending, gravity=gravity).run(np.tile(p, (120, 1)))
        assert np.abs(vertices - vertices[0]).max() < 1e-5
    assert np.abs(offsets(bending, [p], vertices[:1])).max() > 1e-4  # gravity does something


def test_a_rest_pose_under_the_change_of_gravity_is_the_plain_one(bar):
    p = bar.rig.parameters.rest
    vertices = Simulation(bar).run(np.tile(p, (5, 1)))
    np.testing.assert_allclose(vertices, np.broadcast_to(bar.rig.positions(p), vertices.shape), rtol=0, atol=1e-6)


def test_a_travelling_character_keeps_its_shape(bar):
    times = np.arange(90) / 60
    poses = np.array([pose(bar.rig, root_move=3.0 * t * np.array([1.0, 0.2, -0.5])) for t in times])
    u = offsets(bar, poses, Simulation(bar).run(poses))
    assert np.abs(u).max() < 2e-6


def test_a_spinning_character_only_bulges_outwards(bar):
    """Turning about the bar's own axis for seconds: a steady centrifugal shape in the turning frame."""
    spin, fps = 5.0, 90
    times = np.arange(5 * fps) / fps
    poses = np.array([pose(bar.rig, root_turn=(spin * t, 0.0, 0.0)) for t in times])
    simulation = Simulation(bar, gravity="off", damping=Damping(0.3))
    u = offsets(bar, poses, simulation.run(poses))
    rotations = np.array([bar.vertex_rotations(p)[0] for p in poses])
    local = np.einsum("fji,fnj->fni", rotations, u)
    late = local[-fps:]
    assert np.abs(late - late[0]).max() < 0.02 * np.abs(late).max()
    outward = bar.vertices[bar.embedding_nodes[:, 0]] * [0.0, 1.0, 1.0]
    assert (late[-1] * outward).sum() > 0.0
    # Centrifugal force grows with the square of the speed.
    slow = np.array([pose(bar.rig, root_turn=(0.5 * spin * t, 0.0, 0.0)) for t in times])
    simulation.reset()
    half = offsets(bar, slow, simulation.run(slow))[-1] @ bar.vertex_rotations(slow[-1])[0]
    assert (half * outward).sum() == pytest.approx(0.25 * (late[-1] * outward).sum(), rel=0.05)


def test_a_constant_acceleration_is_a_gravity_of_the_other_sign(bar):
    push = np.array([1.5, 2.0, -1.0])
    times = np.arange(240) / 60
    poses = np.array([pose(bar.rig, root_move=0.5 * push * t * t) for t in times])
    damping = Damping(0.9)
    moving = Simulation(bar, gravity="off", damping=damping)
    u = offsets(bar, poses, moving.run(poses).astype(np.float64))[-1]
    still = bar.rig.parameters.rest
    hanging = offsets(bar, [still], Simulation(bar, gravity="full", gravity_vector=-push).run([still]))[0]
    assert np.abs(hanging).max() > 3e-4
    np.testing.assert_allclose(u, hanging, rtol=0, atol=0.02 * np.abs(hanging).max())
    half = Simulation(bar, gravity="off", damping=damping, inertia=0.5)
    u = offsets(bar, poses, half.run(poses).astype(np.float64))[-1]
    np.testing.assert_allclose(u, 0.5 * hanging, rtol=0, atol=0.02 * np.abs(hanging).max())


@pytest.mark.parametrize("method", ["newmark", "backward-euler"])
def test_flesh_lags_at_the_start_and_goes_on_at_the_stop(bar, method):
    times = np.arange(90) / 60
    poses = lifted(bar, 0.4 * smooth(times, 0.1, 0.5))
    u = offsets(bar, poses, Simulation(bar, method=method).run(poses))[:, :, 1]
    y = u.mean(axis=1)
    assert y[(times > 0.1) & (times < 0.3)].min() < -1e-4
    assert y[(times > 0.45) & (times < 0.7)].max() > 1e-4
    assert np.abs(y).argmax() > 10


def scaled(model, factor):
    """The same bar `factor` times as long, as stiff as makes it swing at the same rate."""
    surface = model.embedding_nodes[:, 0]
    skeleton = Skeleton.from_heads(("upper", "lower"), (-1, 0), factor * np.array([[0.0, 0, 0], [0.3, 0, 0]]))
    points = factor * model.vertices[surface]
    joints = np.tile([0, 1], (len(points), 1))
    binds = np.linalg.inv(skeleton.rest_world_matrices)
    rig = LinearBlendSkin(skeleton, points, [0, 1], binds, joints, bone_weights(model.vertices[surface]))
    rest = rig.parameters.rest[None]
    features = rig.pose_features
    large = replace(
        model,
        rig=rig,
        poses=PoseTable(("rest",), rest, features(rest), features.weights),
        vertices=factor * model.vertices,
        vertex_mass=factor**3 * model.vertex_mass,
        cubature=replace(model.cubature, young=factor**2 * model.cubature.young),
        size=factor * model.size,
        tet_rig=replace(model.tet_rig, corrections=factor * model.tet_rig.corrections),
    )
    return with_products(large, model.shapes / factor**1.5, model.region_of_mode, model.frequencies)


def test_a_hundred_times_larger_character_moves_alike(bar):
    large = scaled(bar, 100.0)
    times = np.arange(60) / 60
    turns = [(0.0, 0.0, s) for s in smooth(times)]
    motions = []
    for model, factor in ((bar, 1.0), (large, 100.0)):
        poses = np.array([pose(model.rig, turn, root_move=(0, 0.3 * factor * turn[2], 0)) for turn in turns])
        simulation = Simulation(model, gravity="full", gravity_vector=(0.0, -9.81 * factor, 0.0))
        motions.append(offsets(model, poses, simulation.run(poses)) / factor)
    assert np.abs(motions[0]).max() > 1e-3
    np.testing.assert_allclose(motions[1], motions[0], rtol=0, atol=2e-3 * np.abs(motions[0]).max())


def test_fewer_modes_give_nearly_the_same_motion(bar):
    poses = lifted(bar, 0.3 * smooth(np.arange(40) / 60))
    few = Simulation(bar, modes=5)
    assert len(few.stepper.q) == 5
    all_modes, fewer = (offsets(bar, poses, simulation.run(poses)) for simulation in (Simulation(bar), few))
    assert 0.0 < np.abs(all_modes - fewer).max() < 0.5 * np.abs(all_modes).max()


# ---- time out of joint


def swinging(model, **options):
    """A simulation in the middle of a swing, its last pose, and the largest offset so far."""
    simulation = Simulation(model, **options)
    poses = lifted(model, 0.3 * smooth(np.arange(40) / 60))
    vertices = simulation.run(poses)
    return simulation, poses[-1], np.abs(offsets(model, poses, vertices)).max()


def largest_after(simulation, model, p, frames=40):
    poses = np.tile(p, (frames, 1))
    return np.abs(offsets(model, poses, simulation.run(poses))).max()


@pytest.mark.parametrize("teleport", ["keep", "reset"])
@pytest.mark.parametrize("jump", ["far", "turn", "roll", "stall", "cut"])
def test_jumps_cuts_and_stalls_are_calm(bar, jump, teleport):
    simulation, p, usual = swinging(bar, teleport=teleport, gravity="off")
    target, seconds = p, None
    if jump == "far":
        target = pose(bar.rig, root_move=(10.0, 0.3, 0.0))
    elif jump == "turn":
        target = pose(bar.rig, root_turn=(0.0, np.pi, 0.0), root_move=(0.0, 0.3, 0.0))
    elif jump == "roll":  # about the bar's own axis: nothing it carries goes far
        target = pose(bar.rig, root_turn=(np.pi, 0.0, 0.0), root_move=(0.0, 0.3, 0.0))
    elif jump == "stall":
        seconds = 30.0
    else:
        simulation.cut()
        target = pose(bar.rig, root_move=(0.08, 0.3, 0.0))
    before = simulation.counters["steps"]
    shown = np.abs(offsets(bar, [target], simulation.step(target, seconds)[None])).max()
    assert simulation.counters["steps"] - before <= 45
    after = largest_after(simulation, bar, target)
    if teleport == "reset":
        assert max(shown, after) < 1e-6
    else:
        assert 0.1 * usual < max(shown, after) < 1.1 * usual


def test_a_stall_of_a_still_character_costs_little(bar):
    p = bar.rig.parameters.rest
    simulation = Simulation(bar)
    simulation.run([p] * 3)
    before = simulation.counters["steps"]
    simulation.step(p, 3600.0)
    assert simulation.counters["steps"] - before == 45
    assert simulation.time == pytest.approx(3600.0 + 2 / 60)


def test_without_the_watch_a_jump_would_kick(bar, monkeypatch):
    simulation, _, usual = swinging(bar)
    monkeypatch.setattr(jumps_module, "LARGEST_JUMP", 1e9)
    monkeypatch.setattr(jumps_module, "LARGEST_KICK", 1e9)
    target = pose(bar.rig, root_move=(1.0, 0.3, 0.0))
    simulation.step(target)
    assert largest_after(simulation, bar, target) > 5.0 * usual


def test_a_fast_traveller_is_not_a_teleport(bar):
    """A motorbike: after its first frames it is a motion like any other, and its bumps are felt."""
    times = np.arange(90) / 60
    poses = np.array([pose(bar.rig, root_move=(40.0 * t, 0.1 * smooth(t, 0.5, 0.3), 0.0)) for t in times])
    u = offsets(bar, poses, Simulation(bar).run(poses))
    at_home = lifted(bar, 0.1 * smooth(times, 0.5, 0.3))
    wanted = offsets(bar, at_home, Simulation(bar).run(at_home))
    np.testing.assert_allclose(u, wanted, rtol=0, atol=2e-5)
    assert np.abs(wanted).max() > 5e-4


def test_in_no_time_nothing_moves(bar):
    simulation, p, _ = swinging(bar)
    steps, time, q = simulation.counters["steps"], simulation.time, simulation.stepper.q.copy()
    first = simulation.step(p, 0.0)
    for seconds in (0.0, 1e-9, 1e-6, 1e-6):
        np.testing.assert_array_equal(simulation.step(p, seconds), first)
    higher = p.copy()
    higher[bar.rig.parameters.index("upper.translation.y")] += 0.01
    other = simulation.step(higher, 0.0)
    np.testing.assert_allclose(other - first, np.broadcast_to([0.0, 0.01, 0.0], first.shape), rtol=0, atol=1e-6)
    assert (simulation.counters["steps"], simulation.time) == (steps, time)
    np.testing.assert_array_equal(simulation.stepper.q, q)


def test_a_pose_changed_while_paused_kicks_nothing(bar):
    p = bar.rig.parameters.rest
    simulation = Simulation(bar)
    simulation.run(np.tile(p, (5, 1)))
    moved = pose(bar.rig, root_move=(0.0, 0.05, 0.0))
    simulation.step(moved, 0.0)
    assert largest_after(simulation, bar, moved) < 1e-6


def test_very_short_frames_add_up(bar):
    times = np.arange(120) / 60
    poses = lifted(bar, 0.3 * smooth(times))
    simulation = Simulation(bar)
    vertices = []
    for p in poses:
        simulation.step(p, 1 / 60 - 3e-6)
        for _ in range(3):
            last = simulation.step(p, 1e-6)
        vertices.append(last)
    assert simulation.time == pytest.approx(119 / 60, abs=5e-6)
    plain = Simulation(bar).run(poses)
    np.testing.assert_allclose(vertices, plain, rtol=0, atol=1e-4 * 0.3)


def test_frames_longer_than_usual_are_motion_too(bar):
    times = np.arange(16) / 10
    poses = lifted(bar, 0.2 * smooth(times, 0.0, 1.2))
    u = offsets(bar, poses, Simulation(bar, fps=10).run(poses))
    assert np.isfinite(u).all()
    assert 1e-4 < np.abs(u).max() < 0.02


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("law", ["stvk", "stable-neo-hookean"])
def test_random_extremes_never_break_it(law, watched, monkeypatch):
    """Without the watch for jumps, all of it is taken for motion."""
    if not watched:
        monkeypatch.setattr(jumps_module, "LARGEST_JUMP", np.inf)
        monkeypatch.setattr(jumps_module, "LARGEST_KICK", np.inf)
        monkeypatch.setattr(jumps_module, "LARGEST_TURN", np.pi)
    model = coarse(bar_model(2, law=law, modes=6))
    rng = np.random.default_rng(3)
    simulation = Simulation(model, gravity="full")
    durations = np.array([0.0, 1e-9, 1e-6, 1 / 240, 1 / 120, 1 / 60, 1 / 60, 1 / 24, 1 / 15, rng.uniform(0, 0.05)])
    wild = np.ones(len(model.rig.parameters))
    for frame in range(10_000):
        if frame % 50 == 0:
            wild = 10.0 ** rng.uniform(-2, 1, len(wild))
        if frame % 97 == 0:
            simulation.pull(3, 500.0 * rng.standard_normal(3))
        if frame % 130 == 0:
            simulation.release()
            ball = Sphere(rng.standard_normal(3), 0.5)
            simulation.colliders = [] if frame % 260 else [ball, Plane((0, -0.2, 0), (0, 1, 0), 0.5)]
        p = model.rig.parameters.rest + wild * rng.standard_normal(len(wild))
        vertices = simulation.step(p, 30.0 if frame % 300 == 7 else rng.choice(durations))
        assert np.isfinite(vertices).all()
    assert np.isfinite(simulation.stepper.q).all()
    assert (simulation.counters["decayed"] > 0) == (not watched)
    simulation.release()
    simulation.colliders = []
    rest = np.tile(model.rig.parameters.rest, (300, 1))
    assert np.abs(offsets(model, rest[-1:], simulation.run(rest)[-1:])).max() < 0.1  # and it comes home


# ---- refusals


def test_bad_poses_and_times_are_named(bar):
    simulation = Simulation(bar)
    p = bar.rig.parameters.rest.copy()
    with pytest.raises(InputError, match="20 parameters"):
        simulation.step(p[:-1])
    p[bar.rig.parameters.index("lower.rotation.z")] = np.nan
    with pytest.raises(NotFiniteError, match=r"lower\.rotation\.z") as caught:
        simulation.step(p)
    assert caught.value.indices == [bar.rig.parameters.index("lower.rotation.z")]
    for seconds in (-0.1, np.nan, np.inf):
        with pytest.raises(StepSizeError):
            simulation.step(bar.rig.parameters.rest, seconds)
    with pytest.raises(InputError, match="shape"):
        simulation.run(bar.rig.parameters.rest)


@pytest.mark.parametrize(
    "options", [{"fps": 0}, {"rate": -1}, {"gravity": "up"}, {"teleport": "maybe"}, {"gravity_vector": (1, 2)}]
)
def test_bad_settings_are_refused(bar, options):
    with pytest.raises(InputError):
        Simulation(bar, **options)


def test_a_pose_far_outside_works(bending):
    p = pose(bending.rig, (0.0, 0.0, -2.8), root_move=(500.0, 0.0, 0.0))
    vertices = Simulation(bending).run(np.tile(p, (30, 1)))
    assert np.isfinite(vertices).all()
    assert np.abs(offsets(bending, [p], vertices[-1:])).max() < 0.3


# ---- damping


def test_damping_means_what_it_says(bar):
    damping = Damping(0.2, 3.0).rayleigh(bar)
    assert damping.ratio(3.0) == pytest.approx(0.2)
    assert damping.mass / (6.0 * np.pi) == pytest.approx(damping.stiffness * 6.0 * np.pi)
    assert Damping().rayleigh(bar).ratio(bar.frequencies.min()) == pytest.approx(0.12)
    half = Damping.half_life(0.5, 2.0)
    assert np.exp(-half.ratio * 2.0 * np.pi * 2.0 * 0.5) == pytest.approx(0.5)
    for wrong in ({"ratio": -0.1}, {"frequency": 0.0}):
        with pytest.raises(InputError):
            Damping(**wrong)
    with pytest.raises(InputError):
        Damping.half_life(0.0, 1.0)


def test_a_swing_halves_in_its_half_life(bar):
    frequency = bar.frequencies[0, 0]
    simulation = Simulation(bar, damping=Damping.half_life(0.4, frequency))
    p = bar.rig.parameters.rest
    simulation.step(p)
    simulation.stepper.q[0] = 1e-3
    energy = []
    for _ in range(120):
        simulation.move(p)
        energy.append(np.hypot(simulation.stepper.q[0], simulation.stepper.v[0] / (2.0 * np.pi * frequency)))
    slope = np.polyfit(np.arange(120) / 60, np.log2(energy), 1)[0]
    assert slope == pytest.approx(-1.0 / 0.4, rel=0.05)
    simulation.damping = Damping(0.9)
    assert simulation.damping.ratio == 0.9
    assert simulation.stepper.damping.ratio(frequency) == pytest.approx(0.9)
