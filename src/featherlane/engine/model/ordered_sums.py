"""Computes products of vectors and matrices with a fixed summation order.

Values computed at load time, and the inputs of `lcp.solve_batch`, must not depend on the processor.  A NumPy matrix
product does: NumPy calls a library that chooses the summation order, and the use of fused operations, by processor.
`np.einsum` uses fused operations on Arm.
"""

from __future__ import annotations

import numpy as np


def heights_along(points: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Returns (n, m): the height of each of n points (n, 3) along each of m directions (m, 3)."""
    heights = np.multiply.outer(points[:, 0], directions[:, 0])
    term = np.empty_like(heights)
    for k in (1, 2):
        heights += np.multiply.outer(points[:, k], directions[:, k], out=term)
    return heights


def turned_back(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Returns (3,): R^T x."""
    return R[0] * x[0] + R[1] * x[1] + R[2] * x[2]


def products_of_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns (...): the scalar product of each vector of a (..., 3) with that of b (..., 3)."""
    return (a[..., 0] * b[..., 0] + a[..., 2] * b[..., 2]) + a[..., 1] * b[..., 1]


def matrix_product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Returns (..., n, m): the products A B of matrices A (..., n, k) and B (..., k, m), summed in the order of k."""
    terms = (A[..., :, k, None] * B[..., None, k, :] for k in range(A.shape[-1]))
    product = next(terms)
    for term in terms:
        product += term
    return product


def cholesky(A: np.ndarray) -> np.ndarray:
    """Returns (..., n, n): the lower triangular factors L of A = L L^T (..., n, n).

    Raises:
        numpy.linalg.LinAlgError: if a matrix is not positive definite.
    """
    rest, L = A.copy(), np.zeros_like(A)
    for k in range(A.shape[-1]):
        if not (rest[..., k, k] > 0.0).all():
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        column = rest[..., k:, k] / np.sqrt(rest[..., k, k, None])
        L[..., k:, k] = column
        rest[..., k:, k:] -= column[..., :, None] * column[..., None, :]
    return L
