"""Gaussian elimination with row exchanges for the dense system of a Newton step, in one.L and one.y.

A column without a pivot depends on the columns before it: its unknown stays 0, and its row is used for later columns.
Source: Golub and Van Loan, Matrix Computations, sec. 3.4.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.pivot.factor import eights_of_row

SINGULAR = 1e-13  # pivot threshold; the diagonal is about 1


@kernel
def pivot_row(r1, row, col, m):
    """Returns the row, from `row` on, with the largest entry of a column."""
    stride, best = 8 * eights_of_row(r1), row
    for i in range(row + 1, m):
        if fabs(r1.one.L[i * stride + col]) > fabs(r1.one.L[best * stride + col]):
            best = i
    return best


@kernel
def exchange_rows_of_system(r1, row, other, col, m):
    """Exchanges two rows from a column on."""
    E, width, y = eights(r1.one.L), eights_of_row(r1), r1.one.y
    if row != other:
        a, b = row * width, other * width
        for c in range(col // 8, (m + 7) // 8):
            u, v = E[a + c], E[b + c]
            E[a + c], E[b + c] = v, u
        s, t = y[row] + 0.0, y[other] + 0.0
        y[row], y[other] = t, s


@kernel
def eliminate_column(r1, row, col, m):
    """Subtracts multiples of a row from those below it, so that their entries of the column vanish."""
    U, E, width, y = r1.one.L, eights(r1.one.L), eights_of_row(r1), r1.one.y
    first, last, a = col // 8, (m + 7) // 8, row * width
    inverse = 1.0 / U[8 * a + col]
    for i in range(row + 1, m):
        o = i * width
        s = U[8 * o + col] * inverse
        if s != 0.0:
            for c in range(first, last):
                E[o + c] = fma(-s, E[a + c], E[o + c])
            y[i] = fma(-s, y[row], y[i])


@kernel
def substitute_upper(r1, rank, m):
    """Computes the solution from the last pivot to the first; one.mark holds the column of each pivot."""
    U, stride, y = r1.one.L, 8 * eights_of_row(r1), r1.one.y
    for back in range(rank):
        row = rank - 1 - back
        col = r1.one.mark[row]
        s = y[row] + 0.0
        for c in range(col + 1, m):
            s = fma(-U[row * stride + c], r1.one.ell[c], s)
        r1.one.ell[col] = s / U[row * stride + col]


@kernel
def solve_system(r1, m):
    """Solves the m equations one.L (rows of n padded to eights), one.y; the solution is in one.ell."""
    stride, row = 8 * eights_of_row(r1), 0
    for col in range(m):
        r1.one.ell[col] = 0.0
        best = pivot_row(r1, row, col, m)
        if fabs(r1.one.L[best * stride + col]) > SINGULAR:
            exchange_rows_of_system(r1, row, best, col, m)
            eliminate_column(r1, row, col, m)
            r1.one.mark[row] = col
            row += 1
    substitute_upper(r1, row, m)
