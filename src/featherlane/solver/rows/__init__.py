"""Rows as solvers see them: contacts from the bodies, cones, cost and forces."""
