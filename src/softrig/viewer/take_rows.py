"""What a simulation is and feels, as rows of numbers: its state, its settings, its colliders; and back again."""

from __future__ import annotations

import hashlib

import numpy as np

from softrig.errors import InputError
from softrig.models.pose_space import PoseSpaceModel
from softrig.simulation import Capsule, Collider, Damping, Plane, Simulation, SimulationState, Sphere
from softrig.simulation.contact import ContactPoints, ContactState
from softrig.simulation.timeline import TimelineState
from softrig.viewer.threads import one_thread

SETTINGS = 10
"""Numbers before the stiffness of the regions: damping ratio and frequency, gravity, sag-free, inertia, wind."""
COLLIDER = 9
"""Numbers of a collider: kind, two points, radius, friction."""
_SCALARS = 8
_LARGEST = 2.0**53
"""No number of a state is larger: counters would no longer be whole."""
_MOST_COLLIDERS = 1024


def model_mark(model: PoseSpaceModel) -> str:
    """A hash by which a recording knows the model it belongs to."""
    cubature, known, inertial = model.cubature, model.cubature.stiffness_map, model.inertia_map
    kind = str(known is not None and known.flexible) + " beside tets" * (known is not None and known.beside_tets)
    digest = hashlib.sha256(f"{model.law} {model.interpolation} {model.mode_count} {kind}".encode())
    maps = [getattr(each, name) for each in (known, inertial) if each is not None
            for name in ("components", "coefficients", "samples")]  # fmt: skip
    if model.followers is not None:
        maps += [
            getattr(model.followers, name) for name in ("rows", "steps", "mean", "left", "core", "right", "mixing")
        ]
    for array in (model.vertices, model.tets, model.fixed, model.vertex_mass, model.mass_products, model.inertia,
                  cubature.tets, cubature.weights, cubature.young, cubature.stiffness_correction,
                  model.poses.parameters, model.embedding_weights, model.yielding, model.carried_mass,
                  model.tet_rig.frame_fit, *maps):  # fmt: skip
        if array is not None:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]


def settings_row(simulation: Simulation) -> np.ndarray:
    """(SETTINGS + g,) all settings that can change while it plays."""
    stepper, damping = simulation.stepper, simulation.damping
    return np.array(
        [
            damping.ratio,
            damping.frequency or 0.0,
            *stepper.gravity,
            float(stepper.sag_free),
            stepper.inertia_scale,
            *stepper.wind,
            *stepper.stiffness_scale,
        ]
    )


def apply_settings(simulation: Simulation, row: np.ndarray) -> None:
    """Give a simulation the settings of a row."""
    stepper = simulation.stepper
    if row.shape != (SETTINGS + len(simulation.model.region_names),):
        raise InputError(f"settings of {len(row) - SETTINGS} regions, where there are others")
    simulation.damping = Damping(float(row[0]), float(row[1]) or None)
    stepper.gravity = row[2:5]
    stepper.sag_free = bool(row[5])
    stepper.inertia_scale = float(row[6])
    simulation.wind = row[7:10]
    if (row[SETTINGS:] != stepper.stiffness_scale).any():
        with one_thread():
            stepper.stiffness_scale = row[SETTINGS:]


def collider_rows(colliders: tuple[Collider, ...]) -> np.ndarray:
    """(c, COLLIDER) numbers of colliders."""
    rows = np.zeros((len(colliders), COLLIDER))
    for row, collider in zip(rows, colliders, strict=True):
        row[8] = collider.friction
        if isinstance(collider, Plane):
            row[:7] = 0.0, *collider.point, *collider.normal
        elif isinstance(collider, Sphere):
            row[:4], row[7] = (1.0, *collider.centre), collider.radius
        else:
            row[:7], row[7] = (2.0, *collider.start, *collider.end), collider.radius
    return rows


def colliders_of(rows: np.ndarray) -> tuple[Collider, ...]:
    """The colliders of rows (c, COLLIDER)."""
    made: list[Collider] = []
    for row in rows:
        one, two, radius, friction = row[1:4], row[4:7], float(row[7]), float(row[8])
        if row[0] == 0.0:
            made.append(_same_plane(one, two, friction))
        elif row[0] == 1.0:
            made.append(Sphere(one, radius, friction))
        elif row[0] == 2.0:
            made.append(Capsule(one, two, radius, friction))
        else:
            raise InputError(f"no collider is of the kind {row[0]:g}")
    return tuple(made)


def _same_plane(point: np.ndarray, normal: np.ndarray, friction: float) -> Plane:
    """A plane with exactly this normal: dividing a unit vector by its length once more may change its last bit."""
    plane = Plane(point, normal, friction)
    if np.allclose(plane.normal, normal, rtol=0.0, atol=1e-12):
        object.__setattr__(plane, "normal", np.array(normal))
    return plane


def state_vector(state: SimulationState) -> np.ndarray:
    """A state as one row of numbers."""
    stepper, timeline, contact = state.stepper, state.timeline, state.contact
    held = 0 if contact is None else len(contact.held)
    scalars = [state.time, timeline.chord_span, timeline.since, state.started, state.cut, state.pending]
    parts = [*stepper, timeline.arrays, state.pose]
    parts += [] if contact is None else [contact.rest, contact.before, contact.held]
    return np.concatenate(
        [[*map(float, scalars), float(contact is not None), float(held)], *(np.ravel(part) for part in parts)]
    )


def states_of(table: list[np.ndarray], simulation: Simulation) -> list[SimulationState]:
    """The states of rows, for a simulation of the same model; an `InputError` where they are of another one."""
    states = [_state_of(row, simulation) for row in table]
    touching = [len(state.contact.rest) for state in states if state.contact is not None]
    if touching:
        points = len(ContactPoints(simulation.model, simulation.rate, simulation.stepper.damping).vertices)
        if any(count != points for count in touching):
            raise InputError("the recording is of another model: its contacts have other sizes")
    return states


def _state_of(row: np.ndarray, simulation: Simulation) -> SimulationState:
    # What a state is made of, and of which sizes, is what the simulation's own is.
    own = simulation.state()
    parts = [*own.stepper, own.timeline.arrays, own.pose]
    sizes = [_SCALARS, *(np.size(part) for part in parts)]
    left = len(row) - sum(sizes)
    if left < 0:
        raise InputError("the recording is of another model: its state has other sizes")
    scalars, *pieces, rest = np.split(row, np.cumsum(sizes))
    touching, held = bool(scalars[6]), scalars[7]
    whole = np.concatenate([scalars, *pieces])
    if not np.isfinite(whole).all() or np.abs(whole).max() > _LARGEST or not 0.0 <= held <= _MOST_COLLIDERS:
        raise InputError("the recording holds a state that is none")
    colliders = int(held)
    points = left // (6 + colliders) if touching else 0
    if left != points * (6 + colliders):
        raise InputError("the recording is of another model: its contacts have other sizes")
    *stepper, arrays, pose = (
        piece.astype(np.asarray(part).dtype).reshape(np.shape(part)) for piece, part in zip(pieces, parts, strict=True)
    )
    contact = None
    if touching:
        places = [part.reshape(points, 3) for part in np.split(rest[: 6 * points], 2)]
        contact = ContactState(places[0], places[1], rest[6 * points :].reshape(colliders, points))
    return SimulationState(
        time=float(scalars[0]),
        stepper=type(own.stepper)(*stepper),
        timeline=TimelineState(arrays, float(scalars[1]), float(scalars[2])),
        contact=contact,
        pose=pose,
        started=bool(scalars[3]),
        cut=bool(scalars[4]),
        pending=float(scalars[5]),
    )
