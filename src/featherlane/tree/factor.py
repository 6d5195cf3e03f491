"""The factorisations H = L^T L and H = L^T D L, without fill-in.

This is a reordered Cholesky factorisation: it starts at the leaves, so eliminating DoF k changes only the entries
between ancestors of k, and these are already in the pattern. L has the pattern of H's lower triangle.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5, table 6.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherlane.errors import ArgumentError, SingularMatrixError
from featherlane.tree.parent import IntArray, ancestors, check_parents, sparsity, square_array


def ltl(H: ArrayLike, parents: ArrayLike, *, overwrite: bool = False) -> np.ndarray:
    """Factors H = L^T L, L lower triangular with a positive diagonal.

    Args:
        H: (..., n, n) symmetric positive definite, with the tree's pattern; only that pattern's lower triangle is read.
        parents: (n,) parent array.
        overwrite: work in the memory of H, a writable float array; entries off the pattern's lower triangle stay.

    Returns:
        L, (..., n, n): a new array, zero off the pattern; or, with `overwrite`, H itself.

    Raises:
        ValueError: a wrong shape or parent.
        numpy.linalg.LinAlgError: H is not positive definite; names the DoF.

    Source: Featherstone, table 6.3 (left).                       Cost: n sqrt, D1 div, D2 (mul + add).
    """
    parents = check_parents(parents)
    L = _workspace(H, parents, overwrite)
    for k, path in reversed(list(enumerate(ancestors(parents)))):
        # L_kk = sqrt(H_kk)
        pivot = L[..., k, k : k + 1]
        if not np.all(pivot > 0):
            raise SingularMatrixError(f"H is not positive definite: the pivot of DoF {k} is not positive")
        L[..., k, k : k + 1] = np.sqrt(pivot)
        # L_ki = H_ki / L_kk
        L[..., k, path] = row = L[..., k, path] / L[..., k, k : k + 1]
        _eliminate(L, path, row, row)
    return L


def ltdl(H: ArrayLike, parents: ArrayLike, *, overwrite: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Factors H = L^T D L, L unit lower triangular, D diagonal.

    Args:
        H: (..., n, n) symmetric, with the tree's pattern; only that pattern's lower triangle is read.
        parents: (n,) parent array.
        overwrite: work in the memory of H, a writable float array; entries off the pattern's lower triangle stay.

    Returns:
        L, (..., n, n), and D, (..., n): new arrays, L with its unit diagonal, zero off the pattern. With `overwrite`,
        L is H itself and D a view of its diagonal (so pass `unit=True` to the operations).

    Raises:
        ValueError: a wrong shape or parent.
        numpy.linalg.LinAlgError: a pivot is zero or NaN; names the DoF.

    Source: Featherstone, table 6.3 (right). Differs: an indefinite H is accepted if no pivot is zero; H is positive
    definite if and only if D > 0.                                Cost: D1 div, D2 (mul + add).
    """
    parents = check_parents(parents)
    L = _workspace(H, parents, overwrite)
    for k, path in reversed(list(enumerate(ancestors(parents)))):
        pivot = L[..., k, k : k + 1]
        if not np.all((pivot > 0) | (pivot < 0)):
            raise SingularMatrixError(f"H has no factorization L^T D L: the pivot of DoF {k} is zero or NaN")
        # L_ki = H_ki / D_k
        row = L[..., k, path]
        L[..., k, path] = scaled = row / pivot
        _eliminate(L, path, scaled, row)
    D = np.einsum("...ii->...i", L)
    if not overwrite:
        diagonal, D = D, D.copy()
        diagonal[...] = 1
    return L, D


def _eliminate(L: np.ndarray, path: IntArray, left: np.ndarray, right: np.ndarray) -> None:
    """Computes H_ij -= left_i right_j for each ancestor i and each j at or above i."""
    i, j = np.triu_indices(path.size)
    L[..., path[i], path[j]] -= left[..., i] * right[..., j]


def _workspace(H: ArrayLike, parents: IntArray, overwrite: bool) -> np.ndarray:
    """Returns the array to factor in: H itself, or the lower triangle of its pattern in a new array."""
    array = square_array(H, parents.size, "H")
    if overwrite:
        if array is not H or not array.flags.writeable:
            raise ArgumentError("H: allowed with overwrite is a writable NumPy array of floats")
        return array
    pattern = np.tril(sparsity(parents))
    L = np.zeros_like(array)
    L[..., pattern] = array[..., pattern]
    return L
