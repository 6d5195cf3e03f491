"""Computes L D L^T and solutions of dense symmetric systems; the factor is stored as a packed lower triangle.

Entry (i, j), i >= j, is at `triangle_index(i, j)`.  The factor has 1 / D on the diagonal, and L with a unit diagonal:

    u_ij = A_ij - sum over k < j of u_ik L_jk,   L_ij = u_ij / D_j;      D_i = A_ii - sum over k < i of u_ik L_ik

Row i holds u_ij first, then L_ij in its place.  A pivot D_i that does not exceed `least` has 1 / D_i = 0: column i of L
and entry i of each solution are 0.
height: number of rows that are computed at once, 1, 2 or 4: their sums are independent, and each entry of the other
rows is read once.  The roundings and their order are those of one row at a time.
Source: Golub and Van Loan, Matrix Computations, sec. 4.1.2.
"""

from featherlane.engine.prelude import *


@kernel
def triangle_index(i, j):
    """Returns the index of entry (i, j), i >= j, in a packed triangle."""
    return i * (i + 1) // 2 + j


@kernel
def symmetric_index(i, j):
    """Returns the index of entry (i, j) of a symmetric matrix in its packed lower triangle, for any i and j."""
    return triangle_index(i, j) if i >= j else triangle_index(j, i)


@kernel
def inverse_pivot(pivot, least):
    """Returns 1 / pivot; 0 if the pivot does not exceed `least`."""
    regular = pivot > least
    return where(regular, 1.0 / where(regular, pivot, 1.0), 0.0)


def packed_factor(entry):
    """Returns the kernel factor(p, s, L, n, least): L <- L, 1 / D of the n x n matrix A = L D L^T.

    Args:
        entry: kernel (p, s, i, j, diagonal) that returns A_ij, i >= j; diagonal: 1 if i = j, else 0.  It gets the
            arguments p, a record, and s, a number such as a damping, unchanged.
    """

    @kernel
    def compute_columns(p, s, L, i, j, height):
        """Stores u in columns j and j + 1 of rows i to i + height - 1; rows j and j + 1 of L must be complete."""
        row = tuple(triangle_index(i + r, 0) for r in range(height))
        row_j = triangle_index(j, 0)
        row_next = triangle_index(j + 1, 0)
        u_j = tuple(entry(p, s, i + r, j, diagonal=0) for r in range(height))
        u_next = tuple(entry(p, s, i + r, j + 1, diagonal=0) for r in range(height))
        for k in range(j):
            u = tuple(L[row[r] + k] for r in range(height))
            L_j, L_next = L[row_j + k], L[row_next + k]
            u_j = tuple(fma(-u[r], L_j, u_j[r]) for r in range(height))
            u_next = tuple(fma(-u[r], L_next, u_next[r]) for r in range(height))
        for r in unrolled(range(height)):
            L[row[r] + j], L[row[r] + j + 1] = u_j[r], fma(-u_j[r], L[row_next + j], u_next[r])

    @kernel
    def complete_rows(p, s, L, i, least, height):
        """Stores L and 1 / D of row i, and with height 2 of row i + 1, given u in their columns before i."""
        row = tuple(triangle_index(i + r, 0) for r in range(height))
        D = tuple(entry(p, s, i + r, i + r, diagonal=1) for r in range(height))
        u_between = 0.0  # u of row i + 1 in column i
        if height == 2:
            u_between = entry(p, s, i + 1, i, diagonal=0)
        for k in range(i):
            u = tuple(L[row[r] + k] for r in range(height))
            inverse = L[triangle_index(k, k)]
            L_k = tuple(u[r] * inverse for r in range(height))
            D = tuple(fma(-u[r], L_k[r], D[r]) for r in range(height))
            if height == 2:
                u_between = fma(-u[1], L_k[0], u_between)
            for r in unrolled(range(height)):
                L[row[r] + k] = L_k[r]
        inverse = inverse_pivot(D[0], least)
        L[row[0] + i] = inverse
        if height == 2:
            L_between = u_between * inverse
            L[row[1] + i] = L_between
            L[row[1] + i + 1] = inverse_pivot(fma(-u_between, L_between, D[1]), least)

    @kernel
    def factor(p, s, L, n, least):
        """Stores L below the diagonal of the packed triangle L, and 1 / D on it, for the n x n matrix A.

        p, s: passed to `entry`, which returns A_ij;  least: see above.
        """
        # four rows at a time, from row i on:
        # - u of all four in the columns before i, two columns at a time; rows i and i + 1 are completed;
        # - u of rows i + 2 and i + 3 in the columns i and i + 1; these rows are completed
        for four in range(n // 4):
            i = 4 * four
            for pair in range(2 * four):
                compute_columns(p, s, L, i, 2 * pair, height=4)
            complete_rows(p, s, L, i, least, height=2)
            compute_columns(p, s, L, i + 2, i, height=2)
            complete_rows(p, s, L, i + 2, least, height=2)
        # the last one to three rows: a pair if bit 1 of n is set, a single row if bit 0 is
        i = n // 4 * 4
        if n & 2:
            for pair in range(i // 2):
                compute_columns(p, s, L, i, 2 * pair, height=2)
            complete_rows(p, s, L, i, least, height=2)
            i += 2
        if n & 1:
            for pair in range(i // 2):
                compute_columns(p, s, L, i, 2 * pair, height=1)
            complete_rows(p, s, L, i, least, height=1)

    return factor


@kernel
def solve_packed(L, n, x):
    """x <- A^-1 x with the factor L: solves L y = x, then L^T x = D^-1 y from the last row on, two rows at a time."""
    for i in range(0, n - 1, 2):
        row = triangle_index(i, 0)
        next_row = triangle_index(i + 1, 0)
        y, next_y = x[i], x[i + 1]
        for k in range(i):
            y, next_y = fma(-L[row + k], x[k], y), fma(-L[next_row + k], x[k], next_y)
        x[i], x[i + 1] = y, fma(-L[next_row + i], y, next_y)
    if n & 1:
        row = triangle_index(n - 1, 0)
        y = x[n - 1]
        for k in range(n - 1):
            y = fma(-L[row + k], x[k], y)
        x[n - 1] = y
    for i in range(n):
        x[i] = x[i] * L[triangle_index(i, i)]
    # L^T: rows i and i + 1; an odd n leaves row 0, which changes no other
    for i in range(n - 2, -1, -2):
        row = triangle_index(i, 0)
        next_row = triangle_index(i + 1, 0)
        next_y = x[i + 1]
        y = fma(-L[next_row + i], next_y, x[i])
        x[i] = y
        for k in range(i):
            x[k] = fma(-L[row + k], y, fma(-L[next_row + k], next_y, x[k]))
    # with an odd n, row 0 is left: it has no entries before the diagonal
