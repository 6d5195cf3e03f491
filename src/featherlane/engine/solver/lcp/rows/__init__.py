"""Constraint rows of a step's LCP."""
