"""Primal solvers, with accelerations as the unknowns: Newton, conjugate gradients, and their shared functions."""
