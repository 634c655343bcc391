"""Finite elements: meshes, integration points, material laws, assembly, loads."""
