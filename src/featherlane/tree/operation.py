"""Products and substitutions with H and with its factors, along the paths of the tree.

An operand with fewer axes than the matrix holds vectors, (..., n); one with as many or more holds columns, (..., n, k).
Leading axes broadcast. So (n, n) combines with (n,) or (n, k), and (batch, n, n) with (batch, n), (n,) or
(batch, n, k).

`unit=True` takes the diagonal of L as one without reading it, for a factor from `ltdl`. It is required if `ltdl`
overwrote H, and otherwise saves n multiplications or divisions.

Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5, table 6.5. Differs: results are new arrays; the book's
in-place order of rows is kept in the substitutions only.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from featherlane.errors import ArgumentError
from featherlane.tree.factor import ltdl, ltl
from featherlane.tree.parent import IntArray, ancestors, check_parents, real_array, square_array


def mul_l(L: ArrayLike, parents: ArrayLike, y: ArrayLike, *, unit: bool = False) -> np.ndarray:
    """Computes x = L y, where x_i = L_ii y_i + sum over ancestors j of L_ij y_j.

    Args:
        L: (..., n, n) factor from `ltl` or `ltdl`.
        parents: (n,) parent array.
        y: (..., n) or (..., n, k), see the module.
        unit: take the diagonal of L as one.

    Raises:
        ValueError: a wrong shape or parent.
    """
    L, paths, y, x, vector = _operands(L, parents, y, "L", "y")
    for i, path in enumerate(paths):
        own = y[..., i, :] if unit else L[..., i, i, None] * y[..., i, :]
        x[..., i, :] = own + _row(L, i, path, y) if path.size else own
    return x[..., 0] if vector else x


def mul_lt(L: ArrayLike, parents: ArrayLike, y: ArrayLike, *, unit: bool = False) -> np.ndarray:
    """Computes x = L^T y: row i adds L_ij y_i to x_j for each ancestor j.

    Arguments, shapes (..., n) and errors as in `mul_l`.
    """
    L, paths, y, x, vector = _operands(L, parents, y, "L", "y")
    # children come after parents, so x_i has its own term before they add to it
    for i, path in enumerate(paths):
        x[..., i, :] = y[..., i, :] if unit else L[..., i, i, None] * y[..., i, :]
        x[..., path, :] += _column(L, i, path, y)
    return x[..., 0] if vector else x


def mul_h(H: ArrayLike, parents: ArrayLike, x: ArrayLike) -> np.ndarray:
    """Computes y = H x, from the pattern's lower triangle: row i adds to y_i, and by symmetry to y_j of its ancestors.

    Args:
        H: (..., n, n) symmetric matrix with the tree's pattern.
        parents: (n,) parent array.
        x: (..., n) or (..., n, k), see the module.

    Raises:
        ValueError: a wrong shape or parent.

    Cost: n mul + 2 D1 (mul + add).
    """
    H, paths, x, y, vector = _operands(H, parents, x, "H", "x")
    for i, path in enumerate(paths):
        own = H[..., i, i, None] * x[..., i, :]
        y[..., i, :] = own + _row(H, i, path, x) if path.size else own
        y[..., path, :] += _column(H, i, path, x)
    return y[..., 0] if vector else y


def solve_l(L: ArrayLike, parents: ArrayLike, y: ArrayLike, *, unit: bool = False) -> np.ndarray:
    """Computes x = L^-1 y, from the base outwards: x_i = (y_i - sum over ancestors j of L_ij x_j) / L_ii.

    Arguments, shapes (..., n) and errors as in `mul_l`.
    """
    L, paths, y, x, vector = _operands(L, parents, y, "L", "y")
    for i, path in enumerate(paths):
        rest = y[..., i, :] - _row(L, i, path, x) if path.size else y[..., i, :]
        x[..., i, :] = rest if unit else rest / L[..., i, i, None]
    return x[..., 0] if vector else x


def solve_lt(L: ArrayLike, parents: ArrayLike, y: ArrayLike, *, unit: bool = False) -> np.ndarray:
    """Computes x = L^-T y, from the leaves inwards: x_i = x_i / L_ii, then x_j -= L_ij x_i for each ancestor j.

    Arguments, shapes (..., n) and errors as in `mul_l`.
    """
    L, paths, y, x, vector = _operands(L, parents, y, "L", "y")
    x[...] = y
    for i, path in reversed(list(enumerate(paths))):
        if not unit:
            x[..., i, :] = x[..., i, :] / L[..., i, i, None]
        x[..., path, :] -= _column(L, i, path, x)
    return x[..., 0] if vector else x


def solve(
    H: ArrayLike, parents: ArrayLike, b: ArrayLike, *, factorization: Literal["ltl", "ltdl"] = "ltdl"
) -> np.ndarray:
    """Computes x = H^-1 b: factors H, then substitutes inwards and outwards.

    Args:
        H: (..., n, n) symmetric positive definite, with the tree's pattern.
        parents: (n,) parent array.
        b: (..., n) or (..., n, k), see the module.
        factorization: "ltdl" (L^T D L x = b) or "ltl" (L^T L x = b).

    Raises:
        ValueError: a wrong shape, parent or factorization.
        numpy.linalg.LinAlgError: H cannot be factored.

    Source: Featherstone, sec. 6.5. For several right-hand sides over time, keep the factor and call the substitutions.
    """
    _operands(H, parents, b, "H", "b")
    if factorization == "ltl":
        L = ltl(H, parents)
        return solve_l(L, parents, solve_lt(L, parents, b))
    if factorization == "ltdl":
        L, D = ltdl(H, parents)
        z = solve_lt(L, parents, b, unit=True)
        return solve_l(L, parents, z / (D if np.ndim(b) < L.ndim else D[..., None]), unit=True)
    raise ArgumentError(f'factorization is {factorization!r}, allowed are "ltdl" and "ltl"')


def _operands(
    matrix: ArrayLike, parents: ArrayLike, operand: ArrayLike, matrix_name: str, operand_name: str
) -> tuple[np.ndarray, list[IntArray], np.ndarray, np.ndarray, bool]:
    """Returns the matrix, the ancestors, the operand as columns, an array for the result, and `vector`."""
    parents = check_parents(parents)
    n = parents.size
    matrix, columns = square_array(matrix, n, matrix_name), real_array(operand, operand_name)
    vector = columns.ndim < matrix.ndim
    axis, allowed = (-1, f"(..., {n})") if vector else (-2, f"(..., {n}, k)")
    if columns.ndim == 0 or columns.shape[axis] != n:
        raise ArgumentError(f"{operand_name} has shape {columns.shape}, allowed is {allowed}")
    if vector:
        columns = columns[..., None]
    try:
        leading = np.broadcast_shapes(matrix.shape[:-2], columns.shape[:-2])
    except ValueError:
        raise ArgumentError(
            f"{operand_name} has shape {np.shape(operand)}, allowed are leading axes that broadcast "
            f"with those of {matrix_name}, {matrix.shape}"
        ) from None
    result = np.zeros(leading + columns.shape[-2:], dtype=np.result_type(matrix, columns))
    return matrix, ancestors(parents), columns, result, vector


def _row(matrix: np.ndarray, i: int, path: IntArray, columns: np.ndarray) -> np.ndarray:
    """Returns the sum over ancestors j of matrix_ij columns_j."""
    return np.sum(matrix[..., i, path, None] * columns[..., path, :], axis=-2)


def _column(matrix: np.ndarray, i: int, path: IntArray, columns: np.ndarray) -> np.ndarray:
    """Returns matrix_ij columns_i for each ancestor j."""
    return matrix[..., i, path, None] * columns[..., i, None, :]
