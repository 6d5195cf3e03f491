"""Profiles of a batch's step: times of its stages, iterations of its solver, tests of its collision detection."""
