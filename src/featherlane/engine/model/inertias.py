"""Checks masses and moments of inertia after edits, as MuJoCo's compiler does before.

A moving body without mass or inertia is refused.  Moments with A + B < C belong to no mass distribution; their
equations of motion have a solution, so they only cause a warning.
Source: MuJoCo's compiler: "mass and inertia of moving bodies must be larger than mjMINVAL", "inertia must satisfy
A + B >= C".
"""

from __future__ import annotations

import warnings

import numpy as np

from featherlane.engine.model.protocol import ModelFields

MINVAL = 1e-15  # kg, kg m^2
ROUNDED = 1e-6  # relative: moments of a flat body satisfy A + B = C up to the rounding of float32
MOVING = f"numbers >= {MINVAL:g} of a moving body, or of a body that is welded to it"
Checked = tuple[np.ndarray, str]  # mask of invalid rows, and what is allowed


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
    """Checks that each moving body has inertia."""
    a, b, c = np.moveaxis(rows, -1, 0)
    return _lacking(model, np.minimum(np.minimum(a, b), c) >= MINVAL), MOVING


def impossible_moments(model: ModelFields, rows: np.ndarray) -> np.ndarray:
    """Returns the moving bodies (..., nbody) with moments A + B < C."""
    a, b, c = np.moveaxis(rows, -1, 0)
    return (model.body_lastdof >= 0) & ((2.0 - ROUNDED) * np.maximum(np.maximum(a, b), c) > a + b + c)


def warn_of_moments(model: ModelFields, rows: np.ndarray) -> None:
    """Warns of bodies with impossible moments, once for each; `fl.diagnose` shows the values of a world.

    Warns:
        UserWarning: with the body.
    """
    found = impossible_moments(model, rows)
    if found.any():
        for body in np.flatnonzero(found.reshape(-1, model.nbody).any(0)):
            name = model.names("body")[body]
            label = repr(name) if name else f"#{body}"
            text = "moments A + B < C, which no mass distribution has: a rotation may gain energy"
            warnings.warn(f"body_inertia of body {label}: {text}", stacklevel=2)
