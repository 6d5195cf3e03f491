"""Terrain for legged robots: one height field with kinds of ground in several levels of difficulty.

ground = featherlane.terrain.Terrain(("rough", "stairs"), height={"rough": 0.1, "stairs": 0.6})
ground.add_to(spec)  # a `mujoco.MjSpec` with a geom "floor"
"""

from featherlane.tools.terrain import KINDS, Terrain

__all__ = ["KINDS", "Terrain"]
