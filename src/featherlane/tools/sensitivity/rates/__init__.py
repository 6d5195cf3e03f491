"""Coordinates, and rates of the residual: derivatives of each force by position, velocity and acceleration."""
