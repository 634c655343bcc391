"""Bodies in trees of domains, and their mechanics in plain NumPy: frames by SVD, all rates by differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation

from softrig.bodies.divided import DividedBody, Limb, LimbShape, PlantedTree
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.substructuring import substructure

YOUNG, POISSON, DENSITY = 2e5, 0.3, 1000.0
RUBBER = Material(YOUNG, POISSON, DENSITY)
LENGTHS = (1.0, 0.12, 0.1)
LEAN = 0.2


def turn(x: float, y: float, z: float) -> np.ndarray:
    """The rotation by a rotation vector."""
    return Rotation.from_rotvec([x, y, z]).as_matrix()


def tilde(w: np.ndarray) -> np.ndarray:
    """w× as a matrix."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def vee(W: np.ndarray) -> np.ndarray:
    """The axial vector of the antisymmetric part."""
    return 0.5 * np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]])


def polar(A: np.ndarray) -> np.ndarray:
    """The rotation of A = R S."""
    U, _, Vt = np.linalg.svd(A)
    return U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt


def rate(path, step: float) -> np.ndarray:
    """d/dt at 0, by seven points."""
    a, b, c = (path(k * step) - path(-k * step) for k in (1, 2, 3))
    return (45.0 * a - 9.0 * b + c) / (60.0 * step)


def second_rate(path, step: float) -> np.ndarray:
    """d²/dt² at 0, by seven points."""
    a, b, c = (path(k * step) + path(-k * step) for k in (1, 2, 3))
    return (270.0 * a - 27.0 * b + 2.0 * c - 490.0 * path(0.0)) / (180.0 * step * step)


# Bodies


def cut_bar(parts: int = 3, *, held: bool = True, counts: tuple[int, int, int] = (6, 1, 1), size: float = 1.0):
    """A bar along x, held at x = 0 if at all, cut into domains "d0", "d1", … of one length."""
    mesh = box_tets(tuple(size * length for length in LENGTHS), counts)
    x = mesh.vertices[mesh.elements].mean(axis=1)[:, 0] / size
    domains = np.minimum((x * parts).astype(np.int32), parts - 1)
    fixed = (mesh.vertices[:, 0] < 1e-9) & held
    names = tuple(f"d{i}" for i in range(parts))
    return DividedBody(
        "bar", mesh, domains, names, fixed, np.full(parts, YOUNG), POISSON, DENSITY, np.ones((len(mesh.vertices), 3))
    )


@cache
def bar_model(parts: int = 3, held: bool = True, modes: int = 4) -> SubstructuredModel:
    """The reduced bar."""
    return substructure(cut_bar(parts, held=held), modes=modes)


def limb_shape(lengths: tuple[float, float, float], counts: tuple[int, int, int], young: float) -> LimbShape:
    """A crooked, leaning slab along z whose base has its middle off the origin."""
    box = box_tets(lengths, counts)
    vertices = box.vertices - np.array([0.4 * lengths[0], 0.3 * lengths[1], 0.0])
    vertices += vertices[:, 2:] * np.array([LEAN, -0.5 * LEAN, 0.0])
    vertices[:, 2] *= 1.0 + 0.6 * vertices[:, 0] - 0.9 * vertices[:, 1]
    mesh = VolumeMesh.build(vertices, box.elements)
    return LimbShape(mesh, vertices[:, 2] < 1e-9, young, POISSON, DENSITY, np.full((len(vertices), 3), 0.5))


@cache
def planted() -> PlantedTree:
    """A turned trunk with two children, one of them with a child; every instance has a scale of its own."""
    shapes = {
        "trunk": limb_shape((0.13, 0.1, 0.6), (1, 1, 3), YOUNG),
        "twig": limb_shape((0.06, 0.04, 0.3), (1, 1, 2), 4e5),
    }
    limbs = (
        Limb("trunk", -1, np.array([0.3, -0.2, 0.1]), turn(0.4, -0.3, 0.8), 1.25),
        Limb("twig", 0, np.array([0.09, -0.02, 0.42]), turn(0.5, 1.1, -0.4), 1.4),
        Limb("trunk", 0, np.array([0.1, -0.05, 0.55]), turn(-0.6, 0.2, 0.9), 0.7),
        Limb("twig", 2, np.array([0.1, -0.04, 0.5]), turn(-0.3, -0.9, 0.2), 0.8),
    )
    return PlantedTree("shrub", shapes, limbs)


@cache
def shrub(floating: bool = False) -> SubstructuredModel:
    """The reduced tree of four domains; floating, its root's frame is where it would be held."""
    model = substructure(planted(), modes={"trunk": 5, "twig": 3})
    model = model.with_stiffness({"twig 1": 1.7, "trunk 2": 0.6})
    return replace(model, floating=floating)


def bar_bodies(model: SubstructuredModel, body: DividedBody) -> list[FullBody]:
    """The unreduced domains of a bar, each in its own frame at scale 1, by shape."""
    bodies = []
    for shape in model.shapes:
        elements = body.mesh.elements[body.domains == body.domain_names.index(shape.name)]
        local = np.unique(elements, return_inverse=True)[1].reshape(-1, 4).astype(np.int32)
        bodies.append(_body(shape, local, RUBBER))
    return bodies


@cache
def shrub_bodies() -> list[FullBody]:
    """The unreduced shapes of the shrub."""
    limbs = planted().shapes.values()
    return [
        _body(shape, limb.mesh.elements, limb.material()) for shape, limb in zip(shrub().shapes, limbs, strict=True)
    ]


def _body(shape, elements: np.ndarray, material: Material) -> FullBody:
    return FullBody(VolumeMesh.build(shape.vertices, elements), material, solver="superlu")


def amplitudes(model: SubstructuredModel) -> np.ndarray:
    """(r̂,) of each coordinate what moves some vertex by a tenth of its shape's width."""
    parts = [np.zeros(0)]
    for domain in model.domains:
        shape = model.shapes[domain.shape]
        if shape.size:
            width = np.ptp(shape.vertices, axis=0).min()
            parts.append(0.1 * width / np.abs(shape.basis).max(axis=0))
    return np.concatenate(parts)


# Mechanics


@dataclass
class Place:
    """Where everything is: coordinates (r̂,), and the root's rotation and origin."""

    q: np.ndarray
    R: np.ndarray
    x: np.ndarray


class Mechanics:
    """A tree of domains by first principles: SUB11 Eqs. 1 – 5 for the frames, and Lagrange's equations."""

    def __init__(self, model: SubstructuredModel, bodies: list[FullBody]) -> None:
        self.model, self.bodies = model, bodies
        self.masses = [
            domain.scale**3 * np.kron(bodies[domain.shape].scalar_mass.toarray(), np.eye(3)) for domain in model.domains
        ]
        self.step = 3e-3
        self.units = amplitudes(model)

    def own(self, i: int, array: np.ndarray) -> np.ndarray:
        """Domain i's part of coordinates."""
        return array[self.model.starts[i] : self.model.starts[i + 1]]

    def hinge(self, i: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rotation and origin of domain i's frame in its parent's, whose coordinates are q."""
        domain = self.model.domains[i]
        A = (np.eye(3) + np.tensordot(q, domain.slopes, 1)) @ domain.turn
        return polar(A), self.model.domains[domain.parent].scale * (domain.place + domain.centre @ q)

    def frames(self, at: Place) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rotation and origin of all domains in the world."""
        frames = [(at.R, at.x)]
        for i, domain in enumerate(self.model.domains[1:], 1):
            R, x = frames[domain.parent]
            Q, y = self.hinge(i, self.own(domain.parent, at.q))
            frames.append((R @ Q, x + R @ y))
        return frames

    def local(self, i: int, q: np.ndarray) -> np.ndarray:
        """(n, 3) vertices of domain i in its own frame."""
        domain = self.model.domains[i]
        shape = self.model.shapes[domain.shape]
        return domain.scale * (shape.vertices + (shape.basis @ q).reshape(-1, 3))

    def points(self, at: Place) -> np.ndarray:
        """(n, 3) vertices of all domains in the world, one domain after another."""
        return np.concatenate([x + self.local(i, self.own(i, at.q)) @ R.T for i, (R, x) in enumerate(self.frames(at))])

    @property
    def mass(self) -> np.ndarray:
        """(3n, 3n) of all vertices."""
        return block_diag(*self.masses)

    def moved(self, at: Place, by: np.ndarray) -> Place:
        """The place after a move (r̂,) or (6 + r̂,): origin and turn of a floating root in the world first."""
        if len(by) == len(at.q):
            return Place(at.q + by, at.R, at.x)
        return Place(at.q + by[6:], turn(*by[3:6]) @ at.R, at.x + by[:3])

    def jacobian(self, what, at: Place, floating: bool) -> np.ndarray:
        """(…, moves) how `what` of a place answers to each move."""
        sizes = np.concatenate([np.full(6 if floating else 0, 0.1), self.units])
        unit = np.eye(len(sizes))
        columns = [
            rate(lambda t, k=k: what(self.moved(at, t * unit[k])), self.step * sizes[k]) for k in range(len(unit))
        ]
        return np.stack([column.ravel() for column in columns], axis=1)

    def clock(self, rates: np.ndarray) -> float:
        """A step of time in which a motion stays small."""
        sizes = np.concatenate([np.full(len(rates) - len(self.units), 0.1), self.units])
        return 3.0 * self.step / max(1e-30, float(np.abs(rates / sizes).max()))

    def velocities(self, at: Place, rates: np.ndarray) -> np.ndarray:
        """(n, 3) of all vertices."""
        return rate(lambda t: self.points(self.moved(at, t * rates)), self.clock(rates))

    def elastic(self, i: int, q: np.ndarray) -> np.ndarray:
        """(r,) internal force of domain i, by its unreduced body."""
        domain = self.model.domains[i]
        basis = self.model.shapes[domain.shape].basis
        return domain.scale**3 * domain.stiffness * basis.T @ self.bodies[domain.shape].force(basis @ q)

    def damped(self, i: int, q: np.ndarray, v: np.ndarray, mass: float, stiffness: float) -> np.ndarray:
        """(r,) Rayleigh's damping force of domain i."""
        domain = self.model.domains[i]
        basis, body = self.model.shapes[domain.shape].basis, self.bodies[domain.shape]
        bent, rest = (basis.T @ (body.force_and_stiffness(basis @ u)[1] @ basis) for u in (q, 0.0 * q))
        stiff = bent if (np.linalg.eigvalsh(bent) > 0.0).all() else rest
        stiff = domain.scale**3 * domain.stiffness * (stiff @ v)
        return stiffness * stiff + mass * domain.scale**5 * basis.T @ (body.mass @ (basis @ v))

    def internal(self, q: np.ndarray, v: np.ndarray, damping: tuple[float, float]) -> np.ndarray:
        """(r̂,) elastic and damping forces of all domains."""
        return np.concatenate(
            [
                self.elastic(i, self.own(i, q)) + self.damped(i, self.own(i, q), self.own(i, v), *damping)
                for i in range(len(self.model.domains))
            ]
        )

    def energy(self, at: Place, rates: np.ndarray) -> float:
        """Kinetic and elastic, joule."""
        velocities = self.velocities(at, rates).ravel()
        total, start = 0.0, 0
        for i, domain in enumerate(self.model.domains):
            part = velocities[start : start + len(self.masses[i])]
            start += len(part)
            total += 0.5 * float(part @ self.masses[i] @ part)
            u = self.model.shapes[domain.shape].basis @ self.own(i, at.q)
            total += domain.scale**3 * domain.stiffness * self.bodies[domain.shape].energy(u)
        return total

    def momenta(self, at: Place, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Linear and angular about the world's origin."""
        carried = (self.mass @ self.velocities(at, rates).ravel()).reshape(-1, 3)
        return carried.sum(axis=0), np.cross(self.points(at), carried).sum(axis=0)

    def accelerations(self, at: Place, rates: np.ndarray, internal: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """(moves,) by Lagrange's equations under forces (n, 3) at all vertices; of a floating root first."""
        J = self.jacobian(self.points, at, len(rates) > len(at.q))
        swept = second_rate(lambda t: self.points(self.moved(at, t * rates)), 4.0 * self.clock(rates)).ravel()
        right = J.T @ (forces.ravel() - self.mass @ swept)
        right[len(rates) - len(at.q) :] -= internal
        return np.linalg.solve(J.T @ self.mass @ J, right)


@cache
def shrub_mechanics(floating: bool = False) -> Mechanics:
    """The shrub by first principles."""
    return Mechanics(shrub(floating), shrub_bodies())


@cache
def bar_mechanics(parts: int = 3, held: bool = True, modes: int = 4) -> Mechanics:
    """The bar by first principles."""
    model = bar_model(parts, held, modes)
    return Mechanics(model, bar_bodies(model, cut_bar(parts, held=held)))


def place_of(simulation: SubstructuredSimulation) -> tuple[Place, np.ndarray]:
    """Where a simulation is, and its rates: of a floating root's origin and spin in the world first."""
    state = simulation.state()
    R, x = state.root[:9].reshape(3, 3), state.root[9:12]
    head = [R @ state.root[15:18], R @ state.root[12:15]] if simulation.model.floating else []
    return Place(state.q, R, x), np.concatenate([*head, state.v])


def accelerations_of(simulation: SubstructuredSimulation) -> np.ndarray:
    """What `Mechanics.accelerations` gives, as the simulation has it."""
    state = simulation.state()
    R = state.root[:9].reshape(3, 3)
    head = [state.root[21:24], R @ state.root[18:21]] if simulation.model.floating else []
    return np.concatenate([*head, state.a])


def stir(simulation: SubstructuredSimulation, seed: int, *, bend: float = 1.0, speed: float = 30.0) -> None:
    """Bend it at random, set it moving, and let a floating root fly and spin."""
    rng = np.random.default_rng(seed)
    units = amplitudes(simulation.model)
    simulation.q = bend * units * rng.standard_normal(len(units))
    simulation.v = speed * units * rng.standard_normal(len(units))
    if simulation.model.floating:
        simulation.launch(rng.standard_normal(3), 3.0 * rng.standard_normal(3))


def orders(errors: list[float]) -> np.ndarray:
    """The order seen between each two errors, of steps that halve."""
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
