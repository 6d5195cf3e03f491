"""Checks for loss of accuracy in single precision, and for units other than SI."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import NOTE, Sign
from featherlane.apps.doctor.registry import check

SPACING = float(np.finfo(np.float32).eps)  # relative spacing of float32 numbers
PART = 1e-3  # of a geom's half side: a relevant contact depth
HEAVIEST = 100.0  # m/s^2


@check(
    "far-from-origin", NOTE, 'with dtype="float32" positions are rounded so coarsely that contacts appear and vanish'
)
def far(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds colliding geoms on moving bodies so far from the origin that float32's spacing exceeds a thousandth of
    their smallest half side."""
    m = examined.model
    for g in np.unique(examined.pairs):
        width = examined.half_width[g]
        away = max(float(np.abs(s.data["geom_xpos"][g]).max()) for s in examined.starts)
        if examined.moving[m.geom_bodyid[g]] and 0 < PART * width < SPACING * away < np.inf:
            seen = f"{away:.4g} m from the origin: where float32 resolves {1e3 * SPACING * away:.2g} mm, "
            seen += f"half size {1e3 * width:.3g} mm"
            yield Sign("geom", int(g), seen, "move the scene to the origin, or use float64")


@check("gravity-unit", NOTE, "tolerances, default solref and densities assume metres, kilograms and seconds")
def gravity_unit(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds gravity above 100 m/s^2, as in millimetres or centimetres."""
    size = float(np.linalg.norm(examined.model.opt.gravity))
    if size > HEAVIEST:
        yield Sign("option", "gravity", f"{size:.4g} m/s^2", "use lengths in metres and gravity 9.81")
