"""Integrators: compute the next state from accelerations, with the derivatives for implicit integration."""
