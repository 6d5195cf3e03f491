"""Computes A = U L and solutions of unsymmetric systems, on the pattern of a tree or of a dense matrix.

Elimination from the last row to the first preserves the pattern of a tree: row and column k have only its ancestors
before the diagonal, whose mutual entries are in the pattern.  For all i, j that are ancestors of k:

    L_kj = A_kj / A_kk,   A_ij -= A_ik L_kj;      then U_ik = A_ik, and L has a unit diagonal

The pattern is a `FullRows`, named rows.  Row i starts at adr[i]: first its diag[i] ancestors, then the diagonal, then
its descendants, each in ascending order; their columns are in `col` at the same addresses.  The descendants directly
follow i, so entry (i, k) of a descendant k is k - i positions after the diagonal.  dense=1: all rows before i are its
ancestors, row i starts at n i, and the arrays are not used.
A pivot that is only rounding has 1 / A_kk = 0: row k is eliminated from no other, and its right-hand side is ignored.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5 (the symmetric case); MuJoCo mj_implicit.
"""

from typing import Any, NamedTuple

from featherlane.engine.prelude import *

DEPENDENT = 1e-13  # relative to the diagonal entry of the matrix; smaller pivots are rounding


class FullRows(NamedTuple):
    """Describes where a matrix stores the entries of its rows, in both triangles."""

    n: int  # number of rows
    adr: Any  # start of each row in the matrix
    diag: Any  # number of entries before the diagonal of each row
    col: Any  # column of each entry


@kernel
def dense_rows(n):
    """Returns the pattern of a dense matrix with n rows."""
    return FullRows(n=n, adr=0, diag=0, col=0)


@kernel
def diagonal(rows, dense, i):
    """Returns the address of entry (i, i)."""
    return rows.n * i + i if dense else rows.adr[i] + rows.diag[i]


@kernel
def ancestor(rows, dense, k, c):
    """Returns the c-th ancestor of row k."""
    return c if dense else rows.col[rows.adr[k] + c]


@kernel
def factor_unsymmetric(rows, dense, A, inverse):
    """A <- U and L in place, inverse <- 1 / diagonal of U, which may be negative."""
    for k in range(rows.n):
        inverse[k] = DEPENDENT * fabs(A[diagonal(rows, dense, k)])  # bound of pivot k, until 1 / pivot replaces it
    for k in range(rows.n - 1, -1, -1):
        nancestors = k if dense else rows.diag[k]
        A_kk = A[diagonal(rows, dense, k)]
        row_k = diagonal(rows, dense, k) - nancestors
        regular = fabs(A_kk) > inverse[k]  # the pivot is more than rounding
        inverse_k = where(regular, 1.0 / where(regular, A_kk, 1.0), 0.0)
        inverse[k] = inverse_k
        for c in range(nancestors):
            A[row_k + c] = A[row_k + c] * inverse_k  # L_kj
        # A_ij -= U_ik L_kj for the ancestors i and j of k, at positions r and c of row k
        for r in range(nancestors):
            i = ancestor(rows, dense, k, r)
            diagonal_i = diagonal(rows, dense, i)
            U_ik = A[diagonal_i + k - i]
            for c in range(nancestors):
                # row i has its r ancestors at the positions of row k; a descendant j of i is j - i after the diagonal
                e = diagonal_i - r + c if c <= r else diagonal_i + ancestor(rows, dense, k, c) - i
                A[e] = fma(-U_ik, A[row_k + c], A[e])


@kernel
def solve_unsymmetric(rows, dense, A, inverse, x):
    """x <- A^-1 x with the factors of `factor_unsymmetric`: U^-1 x from the last row on, then L^-1 x from the first."""
    for k in range(rows.n - 1, -1, -1):
        x_k = x[k] * inverse[k]
        x[k] = x_k
        for c in range(k if dense else rows.diag[k]):  # x_i -= U_ik x_k
            i = ancestor(rows, dense, k, c)
            x[i] = fma(-A[diagonal(rows, dense, i) + k - i], x_k, x[i])
    for k in range(rows.n):
        x_k = x[k]
        nancestors = k if dense else rows.diag[k]
        for c in range(nancestors):  # x_k -= L_ki x_i
            x_k = fma(-A[diagonal(rows, dense, k) - nancestors + c], x[ancestor(rows, dense, k, c)], x_k)
        x[k] = x_k
