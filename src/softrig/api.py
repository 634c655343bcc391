"""Every public name, in one list. `import softrig` looks here on first use."""

from __future__ import annotations

from softrig.bases.derivatives import (
    ModalDerivatives,
    derivative_basis,
    derivative_samples,
    modal_derivatives,
)
from softrig.bases.modes import LinearModes, linear_modes, rigid_motions
from softrig.bases.sketch import Pull, SketchPad, sketched_basis, sketched_shapes
from softrig.bases.snapshots import Basis, mass_distance_selection, snapshot_basis
from softrig.bench.fidelity import compare_clip
from softrig.bodies import DividedBody, PlantedTree, Soup, divide, flower, footbridge, heart, oak, spoon, tower
from softrig.characters import built_in
from softrig.conversion import convert_clip
from softrig.dynamics import Integrator, Rayleigh, State, critical_step, kinetic_energy, static_equilibrium
from softrig.errors import InputError, ModelFileError, Notice, SoftrigError, SolverError
from softrig.fem.embedding import Embedding
from softrig.fem.loads import gravity_force, point_force, pressure_force, pull_force
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.forces.polynomial import reduce_body
from softrig.inspection import inspect_file
from softrig.io.characters import load_character
from softrig.io.glb_bake import bake_glb
from softrig.io.glb_writer import write_character_glb
from softrig.meshing.boxes import box_bricks, box_tets
from softrig.meshing.embedding import embed_points
from softrig.meshing.lattice import LatticeMesh, tet_mesh
from softrig.meshing.regions import Handle, region_weights
from softrig.meshing.voxels import Voxelisation, voxelise
from softrig.models.file import load_model, save_model
from softrig.models.free_flight import FreeFlight
from softrig.models.full import FullBody
from softrig.models.multi_domain import MultiDomainModel
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.reduced import ReducedBody
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.baking import bake, model_simulation
from softrig.pipeline.build import build
from softrig.pipeline.multi_domain import build_multi_domain
from softrig.pipeline.showing import show_clip
from softrig.pipeline.substructuring import substructure
from softrig.project import Project, load_project, save_project
from softrig.rig.character import Character, Part
from softrig.rig.clip import Clip, Track
from softrig.rig.corrections import Correction
from softrig.rig.deformers import Bend, BlendShapes, CallableRig, RigChain, Wire
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import DualQuaternionSkin, LinearBlendSkin
from softrig.simulation import Capsule, Damping, MultiDomainSimulation, Plane, Simulation, Sphere
from softrig.viewer.view import Viewer, view
from softrig.volume import character_volume

__all__ = [
    "Basis",
    "Bend",
    "BlendShapes",
    "CallableRig",
    "Capsule",
    "Character",
    "Clip",
    "Correction",
    "Damping",
    "DividedBody",
    "DualQuaternionSkin",
    "Embedding",
    "FreeFlight",
    "FullBody",
    "Handle",
    "InputError",
    "Integrator",
    "LatticeMesh",
    "LinearBlendSkin",
    "LinearModes",
    "Material",
    "ModalDerivatives",
    "ModelFileError",
    "MultiDomainModel",
    "MultiDomainSimulation",
    "Notice",
    "Part",
    "Plane",
    "PlantedTree",
    "PoseSpaceModel",
    "Project",
    "Pull",
    "Rayleigh",
    "ReducedBody",
    "ReducedSimulation",
    "RigChain",
    "Simulation",
    "Skeleton",
    "SketchPad",
    "SoftrigError",
    "SolverError",
    "Soup",
    "Sphere",
    "State",
    "SubstructuredModel",
    "SubstructuredSimulation",
    "Track",
    "Viewer",
    "VolumeMesh",
    "Voxelisation",
    "Wire",
    "bake",
    "bake_glb",
    "box_bricks",
    "box_tets",
    "build",
    "build_multi_domain",
    "built_in",
    "character_volume",
    "compare_clip",
    "convert_clip",
    "critical_step",
    "derivative_basis",
    "derivative_samples",
    "divide",
    "embed_points",
    "flower",
    "footbridge",
    "gravity_force",
    "heart",
    "inspect_file",
    "kinetic_energy",
    "linear_modes",
    "load_character",
    "load_model",
    "load_project",
    "mass_distance_selection",
    "modal_derivatives",
    "model_simulation",
    "oak",
    "point_force",
    "pressure_force",
    "pull_force",
    "reduce_body",
    "region_weights",
    "rigid_motions",
    "save_model",
    "save_project",
    "show_clip",
    "sketched_basis",
    "sketched_shapes",
    "snapshot_basis",
    "spoon",
    "static_equilibrium",
    "substructure",
    "tet_mesh",
    "tower",
    "view",
    "voxelise",
    "write_character_glb",
]
