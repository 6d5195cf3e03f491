"""Constraint rows for the solvers: contacts on bodies, cones, costs and forces."""
