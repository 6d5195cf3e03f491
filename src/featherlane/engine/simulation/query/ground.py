"""Sorts geoms that cannot move into cells of a horizontal grid, so that a scan tests only those near its rays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from featherlane.engine.model.enums import BOX, PLANE
from featherlane.engine.model.model import Model

LEAST = 32  # fixed geoms from which cells are used
MOST_CELLS = 256  # along an axis
LARGE = 4.0  # radius of a geom, in cells, from which it is tested always
MARGIN = 1e-3  # relative margin of radii: positions may be float32
PLACES = ("geom_xpos", "geom_xmat")
PLACED = {"body_pos", "body_quat", "geom_pos", "geom_quat", "geom_size", "geom_rbound"}  # fields that move geoms


def is_fixed(model: Model, geoms: np.ndarray) -> np.ndarray:
    """Returns which of the geoms are fixed to the world."""
    body = model.geom_bodyid[geoms]
    fixed = (model.body_weldid[body] == 0) & (model.body_mocapid[model.body_rootid[body]] < 0)
    return fixed & (model.geom_type[geoms] != PLANE)


def extents(model: Model, geoms: np.ndarray, rotations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns upper bounds of the geoms' extents from their centres: along x and y, and in any direction [m]."""
    size, box = np.abs(model.geom_size[geoms]), model.geom_type[geoms] == BOX
    reach = np.maximum(model.geom_rbound[geoms], size.sum(axis=1))
    sides = np.einsum("gij,gj->gi", np.abs(rotations[geoms].reshape(-1, 3, 3)), size)
    return np.where(box, sides[:, :2].max(axis=1), reach), reach


def divided(
    model: Model, geoms: np.ndarray, poses: Callable[[], dict[str, np.ndarray]] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the geoms that a scan tests always, and the cells of the others; see `cells_of`.

    Args:
        model: the model.
        geoms: the geoms to test.
        poses: function that returns the fields PLACES, (1, ngeom, ...); None if fixed geoms differ between worlds.
    """
    if poses is None or np.count_nonzero(is_fixed(model, geoms)) < LEAST:
        return geoms, np.zeros(0)
    found = poses()
    return cells_of(model, geoms, *(found[name][0] for name in PLACES))


def cells_of(
    model: Model, geoms: np.ndarray, positions: np.ndarray, rotations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the geoms that a scan tests always, and the cells of the others.

    Args:
        model: the model.
        geoms: the geoms to test.
        positions, rotations: (ngeom, 3) [m] and (ngeom, 9) of all geoms.

    Returns:
        geoms; and lower corner (x, y), 1 / side, cells along x and y, largest extent, lowest point, first number of
        each cell's list and the end of the last, the geoms cell by cell, x fastest.  Without cells it is empty.
    """
    fixed = geoms[is_fixed(model, geoms)]
    (reach, tall), place = extents(model, fixed, rotations), positions[fixed]
    good = np.isfinite(place).all(axis=1) & np.isfinite(reach) & np.isfinite(tall)
    fixed, reach, tall, place = fixed[good], reach[good], tall[good], place[good].astype(float)
    if len(fixed) < LEAST:
        return geoms, np.zeros(0)
    extent = np.ptp(place[:, :2], axis=0).max()
    side = max(2.0 * float(np.median(reach)), extent / MOST_CELLS, 1e-6)
    small = reach <= LARGE * side
    fixed, reach, tall, place = fixed[small], reach[small], tall[small], place[small]
    low = place[:, :2].min(axis=0)
    at = np.floor((place[:, :2] - low) / side).astype(int)
    nx, ny = at.max(axis=0) + 1
    cell = at[:, 0] + nx * at[:, 1]
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], np.arange(nx * ny + 1))
    widest = reach.max() + MARGIN * (reach.max() + np.abs(place).max())
    header = [*low, 1.0 / side, nx, ny, widest, (place[:, 2] - tall).min() - MARGIN]
    return np.setdiff1d(geoms, fixed), np.concatenate([header, starts, fixed[order]])
