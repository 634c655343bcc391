"""One step of a pose-space model in plain NumPy, tet by tet, straight from the formulas: what the step must equal."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_sylvester

from softrig.dynamics import step_constants
from softrig.fem import laws
from softrig.models.pose_space import REST_CLAMP, PoseSpaceModel, polar_rotations
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_matrices


class Settings:
    """What a stepper can be told."""

    def __init__(self, **changes):
        self.rate, self.method, self.iterations = 180.0, "newmark", 1
        self.alpha, self.beta, self.inertia, self.sag_free = 0.0, 0.0, 1.0, True
        self.gravity, self.wind = np.array([0.0, -9.81, 0.0]), np.zeros(3)
        self.vertices, self.forces = np.zeros(0, int), np.zeros((0, 3))
        self.tet_scale = None
        for name, value in changes.items():
            assert hasattr(self, name)
            setattr(self, name, value)


class Pose:
    """Frames, rest shape and basis of a model at carrier values z."""

    def __init__(self, model: PoseSpaceModel, z: np.ndarray):
        m, known = len(model.poses), model.cubature.stiffness_map
        z, mapped = carried(model, z), z[len(carried(model, z)) :]
        self.mixing = None if known is None else mapped[: len(known.components)]
        self.shares = mapped[0 if known is None else len(known.components) :]
        self.model, self.z, self.w = model, z, z[len(z) - m :]
        self.positive = np.maximum(self.w, 0.0) / np.maximum(self.w, 0.0).sum()
        self.skin = model.tet_rig.kind == "skin"
        self.observed = observed(model)
        self.matrices = self.turning(z)
        self.turns = polar_rotations(self.matrices)
        self.frames = self.turns if model.interpolation == "bind" else self.turns[[model.tet_rig.root_bone]]
        self.R = self.vertex_rotations()
        self.x = self.rest_shape()
        basis = self.w if len(model.shapes) > 1 else np.ones(1)
        self.U = np.einsum("nij,njr->nir", self.R, np.tensordot(basis, model.shapes, axes=1))
        self.mass = np.einsum("i,j,ijab->ab", basis, basis, model.moved_mass)
        self.scales = 1.0 / np.sqrt(np.diag(self.mass))

    def turning(self, z):
        """(frames, 3, 3) the matrices whose polar factors are the frames' rotations; linear in z."""
        if self.skin:
            return z[: len(z) - len(self.w)].reshape(-1, 3, 4)[:, :, :3]
        x = z[: len(z) - len(self.w)].reshape(-1, 3)
        where = np.searchsorted(self.observed, self.model.tet_rig.root_sample)
        return np.einsum("sk,sl->kl", x[where], self.model.root_arms)[None]

    def vertex_rotations(self):
        n = len(self.model.vertices)
        if self.model.interpolation == "world":
            return np.repeat(self.frames, n, axis=0)
        quaternions, W = quaternions_from_matrices(self.frames), self.model.tet_rig.weights.toarray()
        signs = np.where(quaternions[W.argmax(axis=1)] @ quaternions.T < 0.0, -1.0, 1.0)
        return quaternion_matrices((W * signs) @ quaternions)

    def rest_shape(self):
        model = self.model
        delta = np.tensordot(self.w, model.tet_rig.corrections, axes=1)
        if self.skin:
            M = self.z[: len(self.z) - len(self.w)].reshape(-1, 3, 4)
            points = np.concatenate([model.vertices + delta, np.ones((len(delta), 1))], axis=1)
            return np.einsum("nb,bij,nj->ni", model.tet_rig.weights.toarray(), M, points)
        x = np.full_like(model.vertices, np.nan)
        x[self.observed] = self.z[: len(self.z) - len(self.w)].reshape(-1, 3)
        return x + delta @ self.frames[0].T

    def rates(self, zd, zdd):
        """(frames, 3) Ω and Ω̇ from [Ω]S + S[Ω] = B − Bᵀ, B = RᵀȦ, and its derivative."""
        found = []
        for R, A, A1, A2 in zip(self.turns, self.matrices, self.turning(zd), self.turning(zdd), strict=True):
            S, B = R.T @ A, R.T @ A1
            W = solve_sylvester(S, S, B - B.T)
            S1, B1 = B - W @ S, W.T @ B + R.T @ A2
            W1 = solve_sylvester(S, S, B1 - B1.T - W @ S1 - S1 @ W)
            found.append([[X[2, 1], X[0, 2], X[1, 0]] for X in (W, W1)])
        return np.array(found).transpose(1, 0, 2)


def carried(model, z):
    """Carrier values without what the maps of stiffness and inertia made of the pose, which stands behind them."""
    known, inertial = model.cubature.stiffness_map, model.inertia_map
    behind = (0 if known is None else len(known.components)) + (0 if inertial is None else len(inertial.owners))
    return z[: len(z) - behind]


def observed(model):
    chosen = [model.tets[model.cubature.tets].ravel(), model.cubature.inertial_vertices, model.tet_rig.root_sample]
    return np.unique(np.concatenate(chosen))


def clamped_tet(model: PoseSpaceModel, pose: Pose, tet: int) -> tuple[np.ndarray, float, bool]:
    """Shape gradients (3, 3), volume, and whether the tet had to be clamped."""
    nodes = model.tets[tet]
    Dm = (model.vertices[nodes[1:]] - model.vertices[nodes[0]]).T
    F = (pose.x[nodes[1:]] - pose.x[nodes[0]]).T @ np.linalg.inv(Dm)
    U, s, Vt = np.linalg.svd(F)
    if np.linalg.det(F) < 0.0:
        U[:, 2], s[2] = -U[:, 2] * np.sign(np.linalg.det(U)), -s[2]
        U *= np.array([1.0, 1.0, 1.0])
        U[:, 2] = (F @ Vt.T / s)[:, 2]
    Ds = (U * np.maximum(s, REST_CLAMP)) @ Vt @ Dm
    return np.linalg.inv(Ds), abs(np.linalg.det(Ds)) / 6.0, bool(s[2] < REST_CLAMP)


def elasticity(model: PoseSpaceModel, pose: Pose, q: np.ndarray, tet_scale=None) -> tuple[np.ndarray, np.ndarray]:
    """Unscaled f̂ (r,) and K̂ (r, r)."""
    x, r = pose.scales * q, model.mode_count
    force, stiffness = np.zeros(r), np.zeros((r, r))
    P, H, work = np.zeros((3, 3)), np.zeros((9, 9)), np.zeros(laws.WORKSPACE)
    cubature, law = model.cubature, laws.law_code(model.law)
    u = pose.U @ x
    for k, tet in enumerate(cubature.tets):
        nodes = model.tets[tet]
        B, volume, _ = clamped_tet(model, pose, tet)
        F = np.eye(3) + (u[nodes[1:]] - u[nodes[0]]).T @ B
        young = pose.positive @ cubature.young[:, k] * (1.0 if tet_scale is None else tet_scale[k])
        poisson = pose.positive @ cubature.poisson[:, k]
        lam, mu = poisson * young / ((1.0 + poisson) * (1.0 - 2.0 * poisson)), 0.5 * young / (1.0 + poisson)
        laws.stress(law, F, lam, mu, P, work)
        laws.hessian(law, F, lam, mu, H, work)
        G = np.einsum("air,aK->iKr", pose.U[nodes[1:]] - pose.U[nodes[0]], B).reshape(9, r)
        weight = volume * (pose.positive @ cubature.weights[:, k])
        force += weight * G.T @ P.ravel()
        stiffness += weight * G.T @ H @ G
        if not cubature.holds_linear:
            laws.hessian(law, np.eye(3), lam, mu, H, work)
            force -= weight * G.T @ H @ G @ x
            stiffness -= weight * G.T @ H @ G
    correction = np.tensordot(pose.positive, cubature.stiffness_correction, axes=1)
    if pose.mixing is not None:
        known = cubature.stiffness_map
        springs = range(known.own, known.own + len(known.touching))
        others = [k for k in range(len(pose.mixing)) if k not in springs]
        correction = np.tensordot(pose.mixing[others], known.components[others], axes=1)
        correction = np.linalg.inv(correction) if known.flexible else correction
        correction += np.tensordot(pose.mixing[springs], known.components[springs], axes=1)
    return force + correction @ x, stiffness + correction


def external_force(model: PoseSpaceModel, pose: Pose, zd, zdd, q, v, settings: Settings) -> np.ndarray:
    """Unscaled inertia, gravity, wind, point loads and gyroscopic forces (r,)."""
    m, g = len(model.poses), settings.gravity
    bind = model.interpolation == "bind"
    moved = settings.inertia * zdd
    load = []
    if pose.skin:
        for b, A in enumerate(moved[: len(moved) - m].reshape(-1, 3, 4).copy()):
            turn = pose.turns[b if bind else model.tet_rig.root_bone]
            A[:, 3] -= g - settings.sag_free * (turn @ g)
            load.append((turn.T @ A).ravel())
    else:
        for s in np.searchsorted(pose.observed, model.cubature.inertial_vertices):
            pull = g - settings.sag_free * (pose.turns[0] @ g)
            load.append(pose.turns[0].T @ (moved[3 * s : 3 * s + 3] - pull))
    load = np.concatenate([*load, moved[len(moved) - m :]])
    if model.inertia_map is None:
        force = -np.tensordot(pose.w, model.inertia, axes=1) @ load
    else:
        # The skew part of RᵀṀ is [ω]×.
        turns = np.swapaxes(pose.turns, 1, 2) @ pose.turning(zd)
        spins = np.array([[T[2, 1] - T[1, 2], T[0, 2] - T[2, 0], T[1, 0] - T[0, 1]] for T in turns]) / 2.0
        rates = settings.inertia * zd[len(zd) - m :]
        load = np.concatenate([load, *(2.0 * rate * spin for spin in spins for rate in rates)])
        force = -model.inertia_map.matrix(model.inertia, pose.w, pose.shares) @ load
    if model.yielding is not None:
        force -= model.yielding @ load[: model.yielding.shape[1]]
    wind = np.concatenate([R.T @ settings.wind for R in pose.frames])
    force += np.tensordot(pose.w, model.wind, axes=1) @ wind
    force += np.einsum("nir,ni->r", pose.U[settings.vertices], settings.forces)
    omega, turn = pose.rates(zd, zdd)
    for frame, terms in zip(model.gyro_frames, model.gyro, strict=True):
        bone = frame if bind else (model.tet_rig.root_bone if pose.skin else 0)
        most = 0.3 * settings.rate
        o = omega[bone] * min(1.0, most / max(np.linalg.norm(omega[bone]), 1e-300))
        t = turn[bone] * min(1.0, most * most / max(np.linalg.norm(turn[bone]), 1e-300))
        squares = np.array([o[0] * o[0], o[1] * o[1], o[2] * o[2], o[0] * o[1], o[0] * o[2], o[1] * o[2]])
        force -= 2.0 * np.tensordot(o, terms[:3], axes=1) @ (pose.scales * v)
        turning = np.tensordot(t, terms[:3], axes=1) + np.tensordot(squares, terms[3:], axes=1)
        force -= turning @ (pose.scales * q)
    return force


def reference_step(
    model: PoseSpaceModel, state, z, zd, zdd, settings: Settings, before: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    """(q, v, a) one step later; `before` (r,): diagonal of the stiffness of the step before, if there was one."""
    q0, v0, a0 = state
    pose = Pose(model, z)
    z, zd, zdd = (carried(model, part) for part in (z, zd, zdd))
    c = step_constants(settings.method, 1.0 / settings.rate)
    S = np.diag(pose.scales)
    mass, alpha, beta = S @ pose.mass @ S, settings.alpha, settings.beta
    external = S @ external_force(model, pose, zd, zdd, q0, v0, settings)
    q = q0.copy()
    if before is not None:
        # Free modes of that stiffness: exact for each by itself.
        h, near = 1.0 / settings.rate, 1.0 if settings.method == "backward-euler" else 0.5
        stiff = np.maximum(pose.scales**2 * before, 0.0)
        q += (h * v0 + near * h**2 * a0) / (1.0 + near**2 * h**2 * stiff)
    for _ in range(settings.iterations):
        a = c.a1 * (q - q0) - c.a2 * v0 - c.a3 * a0
        v = c.a4 * (q - q0) + c.a5 * v0 + c.a6 * a0
        force, stiffness = elasticity(model, pose, q, settings.tet_scale)
        K = S @ stiffness @ S
        residual = mass @ (a + alpha * v) + beta * K @ v + S @ force - external
        q = q - np.linalg.solve((c.a1 + c.a4 * alpha) * mass + (1.0 + c.a4 * beta) * K, residual)
    a = c.a1 * (q - q0) - c.a2 * v0 - c.a3 * a0
    v = c.a4 * (q - q0) + c.a5 * v0 + c.a6 * a0
    return q, v, a
