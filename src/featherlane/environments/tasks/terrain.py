"""Rough ground: one height field of square tiles, in which each world has a tile, and so a ground, of its own.

Heights of a field are shared by all worlds of a batch; where a robot stands in it is not.  A tile's heights repeat
with the tile's side, and a rim of its repetition lies around it: a robot that leaves its tile is put back by one side
and meets the same ground under its feet, so that the ground of a world has no end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.model.reader import mujoco_module

KINDS = ("flat", "rough", "waves", "steps")
SIDE, RIM, CELL = 8.0, 1.5, 0.1  # of a tile, of what is repeated around it, of the samples [m]
LEVELS = 4  # tiles of each kind, from a quarter of the height to all of it
BASE = 0.2  # ground under the lowest point [m]


class Terrain:
    """Tiles of kinds along x and of levels along y.

    Args:
        kinds: of KINDS.
        height: from the lowest to the highest point of the highest tile [m].
        seed: of the heights.

    Attributes:
        centres: of the tiles (n, 2) [m]; tile kind * LEVELS + level.
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
        """Let this be the floor of a model's specification."""
        half_x, half_y = self.half
        rows, columns = self.samples.shape
        size = [half_x, half_y, max(self.height, 1e-3), BASE]
        unit = self.samples / max(self.height, 1e-3)
        spec.add_hfield(name="terrain", nrow=rows, ncol=columns, size=size, userdata=unit.ravel().tolist())
        floor = next(geom for geom in spec.geoms if geom.name == "floor")
        floor.type, floor.hfieldname = mujoco_module().mjtGeom.mjGEOM_HFIELD, "terrain"

    def height_at(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Of the ground [m], at places of any shape: between samples as on the two triangles of a cell, nearly."""
        rows, columns = self.samples.shape
        u = np.clip((x + self.half[0]) / CELL, 0.0, columns - 1.001)
        v = np.clip((y + self.half[1]) / CELL, 0.0, rows - 1.001)
        i, j = u.astype(int), v.astype(int)
        u, v, z, at = u - i, v - j, self.samples.ravel(), j * columns + i
        low = (1 - u) * z.take(at) + u * z.take(at + 1)
        high = (1 - u) * z.take(at + columns) + u * z.take(at + columns + 1)
        return (1 - v) * low + v * high

    def put_back(self, at: np.ndarray, tile: np.ndarray) -> None:
        """Move places (n, 2) that have left their tiles by one side, to the same ground."""
        offset = at - self.centres[tile]
        at -= SIDE * np.round(offset / SIDE)


def unit_tile(kind: str, n: int, random: np.random.Generator) -> np.ndarray:
    """Heights between 0 and 1 of n x n samples that repeat after n."""
    place = 2.0 * np.pi * np.arange(n) / n
    if kind == "rough":  # random heights, each the mean of its neighbours
        z = random.uniform(size=(n, n))
        z = (z + np.roll(z, 1, 0) + np.roll(z, 1, 1) + np.roll(z, (1, 1), (0, 1))) / 4
        return (z - z.min()) / (z.max() - z.min())
    if kind == "waves":  # two waves a tile each way
        return 0.5 + 0.25 * (np.sin(2 * place)[:, None] + np.sin(2 * place)[None])
    if kind == "steps":  # squares of half a metre
        return np.kron(random.uniform(size=(n // 5, n // 5)), np.ones((5, 5)))
    return np.zeros((n, n))
