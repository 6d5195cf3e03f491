"""Products of vectors whose terms are added in one order.

What is kept when a model is loaded must not depend on the processor that loaded it.  A product of matrices does: NumPy
leaves it to a library that adds the terms in the order that suits the processor best, and fuses them where that can.
"""

from __future__ import annotations

import numpy as np


def heights(points: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """(n, m): how far each of n points (n, 3) is along each of m directions (m, 3)."""
    x, y, z = points.T[:, :, None] * directions.T[:, None, :]
    return x + y + z


def turned_back(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(3,): R^T x."""
    return R[0] * x[0] + R[1] * x[1] + R[2] * x[2]
