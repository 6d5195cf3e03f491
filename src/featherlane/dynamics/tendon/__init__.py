"""Tendons: lengths, ways round geoms, and what they do by themselves."""
