"""Computes products of vectors with a fixed summation order.

Values computed at load time must not depend on the processor.  A NumPy matrix product does: NumPy calls a library that
chooses the summation order, and the use of fused operations, by processor.  `np.einsum` uses fused operations on Arm.
"""

from __future__ import annotations

import numpy as np


def heights_along(points: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Returns (n, m): the height of each of n points (n, 3) along each of m directions (m, 3)."""
    x, y, z = points.T[:, :, None] * directions.T[:, None, :]
    return x + y + z


def turned_back(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Returns (3,): R^T x."""
    return R[0] * x[0] + R[1] * x[1] + R[2] * x[2]


def products_of_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns (...): the scalar product of each vector of a (..., 3) with that of b (..., 3)."""
    return (a[..., 0] * b[..., 0] + a[..., 2] * b[..., 2]) + a[..., 1] * b[..., 1]
