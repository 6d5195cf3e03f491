"""Solvers in accelerations: Newton, conjugate gradients, and what they share."""
