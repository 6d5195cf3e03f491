"""Patterns of rays for `Batch.scan` and `Batch.height_scan`: grids, rings, lidars.

    heights = batch.height_scan("trunk", featherlane.patterns.grid((1.6, 1.0), 0.1))
    found = batch.scan(("site", "lidar"), featherlane.patterns.lidar(channels=16), cutoff=30.0)

x points forward, y to the left, z up; angles are in degrees.
"""

from featherlane.engine.simulation.query.pattern import RayPattern, directions, grid, lidar, ring

__all__ = ["RayPattern", "directions", "grid", "lidar", "ring"]
