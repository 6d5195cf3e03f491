"""Computes tendon paths as straight segments, for many worlds at once; an arc around a geom is several segments.

Source: MuJoCo mj_tendon; `fl.query.tendon_path` for one world.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from featherlane import Model
from featherlane.enums import WRAP_CYLINDER, WRAP_SITE, WRAP_SPHERE

PIECES = 8  # segments per arc


@dataclass
class Paths:
    """Straight segments of tendons, of all drawn worlds.

    Attributes:
        world: (k,) index of the world among the drawn worlds.
        tendon: (k,) the tendon.
        start, end: (k, 3) end points [m].
    """

    world: np.ndarray
    tendon: np.ndarray
    start: np.ndarray
    end: np.ndarray


def paths(
    model: Model, sites: np.ndarray, centres: np.ndarray, frames: np.ndarray, ends: np.ndarray, length: np.ndarray
) -> Paths:
    """Computes the segments of all tendons.

    Args:
        sites: (n, nsite, 3) positions of sites [m].
        centres: (n, ngeom, 3) positions of geoms [m].
        frames: (n, ngeom, 9) orientations of geoms.
        ends, length: arcs around geoms, see `Batch.tendon_arcs`.
    """
    n, kind, obj = len(sites), model.wrap_type, model.wrap_objid
    tendon = np.repeat(np.arange(model.ntendon), model.tendon_num)
    everywhere = np.ones((n, 1), bool)
    # segments between consecutive sites of the same tendon and branch
    first = np.flatnonzero((kind[:-1] == WRAP_SITE) & (kind[1:] == WRAP_SITE) & (tendon[:-1] == tendon[1:]))
    found = [(tendon[first], everywhere, sites[:, obj[first]], sites[:, obj[first + 1]])]
    k = np.flatnonzero(kind >= WRAP_SPHERE)
    if len(k):
        bends, before, after = length >= 0, sites[:, obj[k - 1]], sites[:, obj[k + 1]]
        corners = _bent(model, k, centres[:, obj[k]], frames[:, obj[k]].reshape(n, -1, 3, 3), ends, length)
        found.append((tendon[k], ~bends, before, after))
        found.append((tendon[k], bends, before, corners[0]))
        found += [(tendon[k], bends, a, b) for a, b in pairwise(corners)]
        found.append((tendon[k], bends, corners[-1], after))
    columns = [_flat(n, *part) for part in found]
    return Paths(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


def _flat(n: int, tendon: np.ndarray, there: np.ndarray, start: np.ndarray, end: np.ndarray):
    """Returns the segments (n, k) that exist, flattened."""
    world, piece = np.nonzero(np.broadcast_to(there, (n, len(tendon))))
    return world, tendon[piece], start[world, piece], end[world, piece]


def _bent(
    model: Model, k: np.ndarray, centre: np.ndarray, R: np.ndarray, ends: np.ndarray, length: np.ndarray
) -> list[np.ndarray]:
    """Computes PIECES + 1 arrays (n, k, 3) of points along arcs, in a plane through the centre or around a cylinder."""
    first, last = (np.einsum("nkji,nkj->nki", R, ends[:, :, i] - centre) for i in (0, 1))
    # along a cylinder's axis the position is linear in the angle
    along = np.where((model.wrap_type[k] == WRAP_CYLINDER)[:, None], (0.0, 0.0, 1.0), 0.0)
    low, high = first * along, last * along
    a, b = first - low, last - high
    radius = np.linalg.norm(a, axis=-1, keepdims=True)
    across = b - a * (np.einsum("nki,nki->nk", a, b)[..., None] / np.maximum(radius, 1e-12) ** 2)
    height = np.linalg.norm(across, axis=-1, keepdims=True)
    angle = np.arctan2(height, np.einsum("nki,nki->nk", a, b)[..., None] / np.maximum(radius, 1e-12))
    turn = np.where(height > 1e-9 * radius, across / np.maximum(height, 1e-12), 0.0) * radius
    # if the arc is the long one, go the long way around
    rise = np.linalg.norm(high - low, axis=-1)
    flat = np.sqrt(np.maximum(length**2 - rise**2, 0.0)) / np.maximum(radius[..., 0], 1e-12)
    angle = np.where((flat > np.pi + 1e-3)[..., None], angle - 2 * np.pi, angle)
    points = []
    for part in np.linspace(0.0, 1.0, PIECES + 1):
        point = a * np.cos(part * angle) + turn * np.sin(part * angle) + (1 - part) * low + part * high
        points.append(np.einsum("nkij,nkj->nki", R, point) + centre)
    return points
