"""Worlds whose steps are differentiated, and the passes through their tiles."""
