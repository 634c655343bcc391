"""Reduced forces: the polynomial coefficients of StVK."""
