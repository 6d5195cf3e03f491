"""Computes L D L^T and solutions of small dense symmetric systems, stored as a packed lower triangle.

Entry (i, j), i >= j, is at `triangle_index(i, j)`.  The factor has D on the diagonal, and L with a unit diagonal.
Source: Golub and Van Loan, Matrix Computations, sec. 4.1.2.
"""

from featherlane.prelude import *

BLOCKED = 1e30  # pivot of a direction without stiffness: the solution there is nearly 0


@kernel
def triangle_index(i, j):
    """Returns the place of entry (i, j), i >= j, in a packed triangle."""
    return i * (i + 1) // 2 + j


@kernel
def factor_packed(A, n, bounded, least):
    """A <- L, D of the n x n matrix A = L D L^T.

    L_ij D_j = A_ij - sum over k < j of L_ik D_k L_jk;  for j = i the left side is D_i.
    bounded: 1 replaces a pivot D_i that does not exceed `least` by BLOCKED, 0 keeps every pivot, of any sign.
    BLOCKED (1e30) is so large that the solution is nearly 0 in this direction.
    """
    for i in range(n):
        for j in range(i + 1):
            x = A[triangle_index(i, j)]  # becomes L_ij D_j, or D_i
            for k in range(j):
                x = fma(-(A[triangle_index(i, k)] * A[triangle_index(k, k)]), A[triangle_index(j, k)], x)
            if i == j:
                if bounded:
                    x = where(x > least, x, BLOCKED)
            else:
                x = x / A[triangle_index(j, j)]
            A[triangle_index(i, j)] = x


@kernel
def solve_packed(L, n, x):
    """x <- A^-1 x with the factor of `factor_packed` in L: L y = x, then D L^T x = y from the last row to the first."""
    for i in range(n):
        y = x[i]
        for k in range(i):
            y = fma(-L[triangle_index(i, k)], x[k], y)
        x[i] = y
    # L^T x = D^-1 y
    for i in range(n - 1, -1, -1):
        y = x[i] / L[triangle_index(i, i)]
        for k in range(i + 1, n):
            y = fma(-L[triangle_index(k, i)], x[k], y)
        x[i] = y
