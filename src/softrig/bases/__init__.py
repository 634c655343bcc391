"""Deformation bases: linear modes, modal derivatives, snapshots, sketched pulls."""
