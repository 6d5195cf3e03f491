"""Checks masses and moments of inertia as MuJoCo's compiler does, for edits after it.

Each function returns a mask of invalid rows and the text of what is allowed, for `limits.ROWS`.
Source: MuJoCo's compiler: "mass and inertia of moving bodies must be larger than mjMINVAL", "inertia must satisfy
A + B >= C".
"""

from __future__ import annotations

import numpy as np

from featherlane.model.protocol import ModelFields

MINVAL = 1e-15  # kg, kg m^2
ROUNDED = 1e-6  # relative: moments of a flat body satisfy A + B = C up to the rounding of float32
MOVING = f"numbers >= {MINVAL:g} of a moving body, or of a body that is welded to it"
Checked = tuple[np.ndarray, str]


def _lacking(model: ModelFields, inert: np.ndarray) -> np.ndarray:
    """Returns the moving bodies (..., nbody) that are not inert, and to which no inert body is welded."""
    found = inert.copy()
    for body in np.flatnonzero(model.body_weldid != np.arange(model.nbody)):
        found[..., model.body_weldid[body]] |= inert[..., body]
    return (model.body_dofnum > 0) & ~found


def masses(model: ModelFields, rows: np.ndarray) -> Checked:
    """Checks that each moving body has mass."""
    return _lacking(model, rows >= MINVAL), MOVING


def moments(model: ModelFields, rows: np.ndarray) -> Checked:
    """Checks that each moving body has inertia, and that a distribution of mass can have the moments of each body."""
    a, b, c = np.moveaxis(rows, -1, 0)
    total, largest = a + b + c, np.maximum(np.maximum(a, b), c)
    impossible = (model.body_lastdof >= 0) & ((2.0 - ROUNDED) * largest > total)
    if impossible.any():
        return impossible, "moments A, B, C with A + B >= C"
    return _lacking(model, np.minimum(np.minimum(a, b), c) >= MINVAL), MOVING
