"""Rewards between 0 and 1 that decrease with the distance of a value from an interval.

Source: dm_control.utils.rewards; Tassa et al., dm_control: Software and Tasks for Continuous Control (2020), sec. 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from featherlane.engine.model.arguments import one_of
from featherlane.errors import ModelError


def _cosine(x: np.ndarray, value: float) -> np.ndarray:
    scaled = np.minimum(x * (math.acos(2 * value - 1) / math.pi), 1.0)
    return 0.5 * (1.0 + np.cos(np.pi * scaled))


# name -> function of distances in units of the margin, and of the value at the margin
SIGMOIDS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "gaussian": lambda x, value: np.exp(x * x * math.log(value)),
    "hyperbolic": lambda x, value: 1.0 / np.cosh(x * math.acosh(1 / value)),
    "long_tail": lambda x, value: 1.0 / (x * x * (1 / value - 1) + 1.0),
    "reciprocal": lambda x, value: 1.0 / (x * (1 / value - 1) + 1.0),
    "cosine": _cosine,
    "linear": lambda x, value: np.maximum(1.0 - x * (1 - value), 0.0),
    "quadratic": lambda x, value: np.maximum(1.0 - x * x * (1 - value), 0.0),
    "tanh_squared": lambda x, value: 1.0 - np.tanh(x * math.atanh(math.sqrt(1 - value))) ** 2,
}
REACH_ZERO = ("cosine", "linear", "quadratic")  # may have the value 0 at the margin


def tolerance(
    x: np.ndarray,
    bounds: tuple[float, float] = (0.0, 0.0),
    margin: float = 0.0,
    sigmoid: str = "gaussian",
    value_at_margin: float = 0.1,
) -> np.ndarray:
    """Returns 1 within the bounds, and less outside.

    Args:
        x: values of any shape.
        bounds: lower and upper bound, which may be infinite.
        margin: distance from the bounds at which the result is `value_at_margin`; with 0, the result is 0 outside.
        sigmoid: shape of the decrease, a name of SIGMOIDS.
        value_at_margin: between 0 and 1, without 1; 0 only for the shapes of REACH_ZERO.

    Raises:
        ModelError: bounds in the wrong order, a negative margin, an unknown shape, or a value out of range.
    """
    low, high = bounds
    one_of("sigmoid", sigmoid, SIGMOIDS)
    if low > high or margin < 0:
        raise ModelError(f"tolerance: got bounds {bounds} and margin {margin}, allowed are low <= high and margin >= 0")
    if not (0 < value_at_margin < 1 or (value_at_margin == 0 and sigmoid in REACH_ZERO)):
        raise ModelError(f"value_at_margin: got {value_at_margin!r}, allowed is a number between 0 and 1")
    if margin == 0:
        return ((x >= low) & (x <= high)).astype(float)
    distance = np.maximum(np.maximum(low - x, x - high), 0.0)
    return SIGMOIDS[sigmoid](distance / margin, value_at_margin)


def small_control(controls: np.ndarray) -> np.ndarray:
    """Returns 1 for controls (n, nu) of 0, and 0.8 if all have the magnitude 1 or more, (n,)."""
    return (4.0 + tolerance(controls, margin=1.0, sigmoid="quadratic", value_at_margin=0.0).mean(axis=1)) / 5.0
