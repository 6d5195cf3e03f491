"""Rough ground: one height field of square tiles; each world uses one tile.

All worlds of a batch share the heights of the field; robots stand at different places in it.  A tile's heights are
periodic in its side length, and a rim of the periodic continuation surrounds it.  A robot that leaves its tile is
moved back by one side length and finds the same ground there, so the ground of a world is unbounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

KINDS = ("flat", "rough", "waves", "steps")
SIDE, RIM, CELL = 8.0, 1.5, 0.1  # side of a tile, width of its rim, spacing of the samples [m]
LEVELS = 4  # tiles of each kind, from a quarter of the height to the full height
BASE = 0.2  # thickness of the ground under the lowest point [m]


class Terrain:
    """Holds a grid of tiles: kinds along x, levels along y.

    Args:
        kinds: kinds of ground, from KINDS.
        height: from the lowest to the highest point of the highest tile [m].
        seed: seed of the heights.

    Attributes:
        centres: centres of the tiles (n, 2) [m]; the tile's index is kind * LEVELS + level.
        samples: heights [m], row by row along y.
    """

    def __init__(self, kinds: tuple[str, ...], height: float, seed: int):
        self.kinds, self.height = kinds, height
        random, n, rim = np.random.default_rng(seed), round(SIDE / CELL), round(RIM / CELL)
        rows = []
        for level in range(LEVELS):
            scale = height * (level + 1) / LEVELS
            tiles = [scale * unit_tile(kind, n, random) for kind in kinds]
            rows.append(np.concatenate([np.pad(tile, rim, mode="wrap") for tile in tiles], axis=1))
        self.samples = np.concatenate(rows, axis=0)
        self.half = CELL * (np.array(self.samples.shape[::-1]) - 1) / 2
        column, row = np.meshgrid(np.arange(len(kinds)), np.arange(LEVELS), indexing="ij")
        pitch = n + 2 * rim  # samples of a tile with its rims
        corner = np.stack([column.ravel(), row.ravel()], axis=1) * pitch + pitch / 2
        self.centres = corner * CELL - self.half

    def add_to(self, spec: Any) -> None:
        """Makes this terrain the floor of a model specification."""
        import mujoco

        half_x, half_y = self.half
        rows, columns = self.samples.shape
        size = [half_x, half_y, max(self.height, 1e-3), BASE]
        unit = self.samples / max(self.height, 1e-3)
        spec.add_hfield(name="terrain", nrow=rows, ncol=columns, size=size, userdata=unit.ravel().tolist())
        floor = next(geom for geom in spec.geoms if geom.name == "floor")
        floor.type, floor.hfieldname = mujoco.mjtGeom.mjGEOM_HFIELD, "terrain"

    def height_at(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Returns ground heights [m] at positions of any shape, bilinear within a cell (close to its two triangles)."""
        rows, columns = self.samples.shape
        u = np.clip((x + self.half[0]) / CELL, 0.0, columns - 1.001)
        v = np.clip((y + self.half[1]) / CELL, 0.0, rows - 1.001)
        i, j = u.astype(int), v.astype(int)
        u, v, z, at = u - i, v - j, self.samples.ravel(), j * columns + i
        low = (1 - u) * z.take(at) + u * z.take(at + 1)
        high = (1 - u) * z.take(at + columns) + u * z.take(at + columns + 1)
        return (1 - v) * low + v * high

    def put_back(self, at: np.ndarray, tile: np.ndarray) -> None:
        """Moves positions (n, 2) that have left their tiles back by one side length, to the same ground."""
        offset = at - self.centres[tile]
        at -= SIDE * np.round(offset / SIDE)


def unit_tile(kind: str, n: int, random: np.random.Generator) -> np.ndarray:
    """Returns heights between 0 and 1 of n x n samples with period n."""
    place = 2.0 * np.pi * np.arange(n) / n
    if kind == "rough":  # random heights, averaged over neighbours
        z = random.uniform(size=(n, n))
        z = (z + np.roll(z, 1, 0) + np.roll(z, 1, 1) + np.roll(z, (1, 1), (0, 1))) / 4
        return (z - z.min()) / (z.max() - z.min())
    if kind == "waves":  # two waves per tile along each axis
        return 0.5 + 0.25 * (np.sin(2 * place)[:, None] + np.sin(2 * place)[None])
    if kind == "steps":  # squares of half a metre
        return np.kron(random.uniform(size=(n // 5, n // 5)), np.ones((5, 5)))
    return np.zeros((n, n))
