"""Tendons: lengths, wrapping paths around geoms, and passive forces."""
