"""Actuators: compute the generalized forces of controls."""
