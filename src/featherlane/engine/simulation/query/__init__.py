"""Computes results from a state that are not part of a step: rays, distances, Jacobians, products."""
