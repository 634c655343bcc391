"""Poses: which ones, how tets follow the rig to them, the fit there, materials and self-contact at them."""
