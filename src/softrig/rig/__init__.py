"""Rigs: parameters in, positions of surface vertices out; clips, inverse kinematics and characters."""
