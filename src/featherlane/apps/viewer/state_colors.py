"""Colours bodies by state: sleeping trees are grey, and each constraint island has a separate colour."""

from __future__ import annotations

import colorsys

import numpy as np

from featherlane import Model
from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.instances import Paint

GREY = (0.33, 0.34, 0.37)
GOLDEN = 0.6180339887  # hue difference between consecutive islands, as part of a full circle


def hues(islands: np.ndarray) -> np.ndarray:
    """Returns a colour (..., 3) for each island number."""
    table = np.array([colorsys.hsv_to_rgb(GOLDEN * i % 1.0, 0.75, 0.9) for i in range(int(islands.max(initial=0)) + 1)])
    return table[np.maximum(islands, 0)]


def paint(model: Model, frame: Frame, sleep: bool, islands: bool) -> Paint | None:
    """Computes the colours of bodies in a frame, None if none is painted.

    Args:
        islands: whether to paint islands; sleeping trees are grey in either case.
    """
    tree, shape = model.body_treeid, frame.pos.shape[:2]
    painted, colours = np.zeros(shape, bool), np.zeros((*shape, 3))
    moving = tree >= 0
    if islands and "tree_island" in frame.fields:
        island = frame.fields["tree_island"][:, tree[moving]]
        painted[:, moving], colours[:, moving] = island >= 0, hues(island)
    if sleep and frame.asleep is not None:
        asleep = np.zeros(shape, bool)
        asleep[:, moving] = frame.asleep[:, tree[moving]]
        painted, colours = painted | asleep, np.where(asleep[..., None], GREY, colours)
    return Paint(painted, colours) if painted.any() else None
