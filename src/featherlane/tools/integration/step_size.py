"""Chooses step sizes from estimates of the local error, each world separately.

    h' = 0.9 h (accuracy / error)^(1 / (p + 1)),  0.1 h <= h' <= 5 h,  p the order of the integrator

A step of the smallest size is accepted whatever its finite error is (it is forced), so every integration ends.
Source: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, sec. II.4, eq. 4.13; the constants are those
of Drake's IntegratorBase::CalcAdjustedStepSize and of Simbody.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SAFETY, SHRINK, GROW = 0.9, 0.1, 5.0
AT_LEAST_LARGER, AT_LEAST_SMALLER = 1.2, 0.9  # smaller changes of the size are not made, or made larger
SLIVER = 1.001  # a step that ends this close to a requested time ends there
ULPS = 16  # smallest step in units of the last place of the time


@dataclass(frozen=True)
class StepBounds:
    """Bounds of the steps.

    Attributes:
        accuracy: largest error of a step.
        order: order p of the integrator.
        smallest, largest: of a step [s].
    """

    accuracy: float
    order: int
    smallest: float
    largest: float


class StepSizes:
    """Holds the step size that each world tries next.

    Args:
        bounds: bounds of the steps.
        first: (n,) first sizes [s].
    """

    def __init__(self, bounds: StepBounds, first: np.ndarray):
        self.bounds = bounds
        self.next = np.clip(first, bounds.smallest, bounds.largest)

    def attempted(self, ids: np.ndarray, time: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the sizes of the worlds' next steps [s], and which of them end at their target time."""
        left, wanted = target - time, np.maximum(self.next[ids], self.floor(time))
        last = left < SLIVER * wanted
        return np.where(last, left, wanted), last

    def floor(self, time: np.ndarray) -> np.ndarray:
        """Returns the smallest steps at these times [s]."""
        return np.maximum(self.bounds.smallest, ULPS * np.spacing(np.abs(time)))

    def judge(
        self, ids: np.ndarray, time: np.ndarray, h: np.ndarray, error: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Chooses the next sizes from the errors of steps.

        Args:
            ids: (k,) the worlds.
            time: (k,) of the starts of the steps [s].
            h: (k,) sizes of the steps [s].
            error: (k,) estimates of their errors, NaN or infinite for a step that failed.

        Returns:
            (k,) bool, which steps met the accuracy, and which are accepted without meeting it.
        """
        bounds, floor = self.bounds, self.floor(time)
        good = error <= bounds.accuracy
        exponent = 1.0 / (bounds.order + 1)
        # Python's power: the last bit of NumPy's may depend on the place in the array
        ratios = [SAFETY * (bounds.accuracy / e) ** exponent if 0.0 < e < np.inf else 0.0 for e in error.tolist()]
        factor = np.where(error == 0.0, GROW, ratios)
        factor = np.where(good & (factor < AT_LEAST_LARGER), 1.0, factor)
        factor = np.where(good, factor, np.minimum(factor, AT_LEAST_SMALLER))
        wanted = np.minimum(h * np.clip(factor, SHRINK, GROW), bounds.largest)
        # a good step that ended at its target may have been shorter than the error permits
        self.next[ids] = np.where(good, np.maximum(wanted, self.next[ids]), np.maximum(wanted, floor))
        return good, ~good & (h <= floor) & np.isfinite(error)
