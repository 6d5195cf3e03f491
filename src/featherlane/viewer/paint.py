"""Colours that say something of bodies: what sleeps is grey, and each constraint island has a colour of its own."""

from __future__ import annotations

import colorsys

import numpy as np

from featherlane.model.model import Model
from featherlane.viewer.frame import Frame
from featherlane.viewer.instances import Paint

GREY = (0.33, 0.34, 0.37)
GOLDEN = 0.6180339887  # part of a circle of hues between one island and the next: neighbours differ


def hues(islands: np.ndarray) -> np.ndarray:
    """A colour (..., 3) for each number of an island."""
    table = np.array([colorsys.hsv_to_rgb(GOLDEN * i % 1.0, 0.75, 0.9) for i in range(int(islands.max(initial=0)) + 1)])
    return table[np.maximum(islands, 0)]


def paint(model: Model, frame: Frame, sleep: bool, islands: bool) -> Paint | None:
    """Colours of bodies in a frame, None where no body has one.

    Args:
        model: the model.
        frame: the frame.
        sleep: paint what sleeps.
        islands: paint islands; what sleeps is grey all the same.
    """
    tree, shape = model.body_treeid, frame.pos.shape[:2]
    painted, colours = np.zeros(shape, bool), np.zeros((*shape, 3))
    moving = tree >= 0
    if islands and frame.island is not None:
        painted[:, moving] = frame.island[:, tree[moving]] >= 0
        colours[:, moving] = hues(frame.island[:, tree[moving]])
    if sleep and frame.asleep is not None:
        asleep = np.zeros(shape, bool)
        asleep[:, moving] = frame.asleep[:, tree[moving]]
        painted, colours = painted | asleep, np.where(asleep[..., None], GREY, colours)
    return Paint(painted, colours) if painted.any() else None
