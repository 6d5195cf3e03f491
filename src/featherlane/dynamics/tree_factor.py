"""L^T D L, substitution and product for matrices with branch-induced sparsity, stored by rows of the lower triangle.

Row i holds the ancestors of i in ascending order, then i.  So the row of an ancestor is a prefix of the row of each of its
descendants, and nothing is touched outside the pattern.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5, tables 6.3 and 6.5.
"""

from __future__ import annotations

from featherlane.lanes import fma, kernel


@kernel
def eliminate(rowadr, colind, A, a, n, inv):
    """Eliminate the row at a with n ancestors: row i -= (A_ki / D_k) (row k up to i) for each ancestor i; leaves L_k."""
    for c in range(n - 1, -1, -1):
        r, s = rowadr[colind[a + c]], A[a + c] * inv
        for e in range(c + 1):
            A[r + e] = fma(-s, A[a + e], A[r + e])
        A[a + c] = s


@kernel
def eliminate_pair(rowadr, colind, A, a, b, n, inv, inverse, p):
    """Eliminate a row and its parent p together: the rows of their n common ancestors are read and written once.

    Each entry sees the same two roundings in the same order as one after the other.
    """
    s = A[a + n] * inv
    for e in range(n + 1):
        A[b + e] = fma(-s, A[a + e], A[b + e])
    A[a + n] = s
    inv2 = 1.0 / A[b + n]
    inverse[p] = inv2
    for c in range(n - 1, -1, -1):
        r, s, t = rowadr[colind[a + c]], A[a + c] * inv, A[b + c] * inv2
        for e in range(c + 1):
            A[r + e] = fma(-t, A[b + e], fma(-s, A[a + e], A[r + e]))
        A[a + c] = s
        A[b + c] = t


@kernel
def factor_rows(n, rowadr, rownnz, colind, A, inverse):
    """A = L^T D L in place: strict rows of L, D on the diagonal; inverse = 1 / D.  A chain is eliminated two rows at a time."""
    k = n - 1
    while k >= 0:
        a, above = rowadr[k], rownnz[k] - 1
        inv = 1.0 / A[a + above]
        inverse[k] = inv
        if above > 0 and colind[a + above - 1] == k - 1:
            eliminate_pair(rowadr, colind, A, a, rowadr[k - 1], above - 1, inv, inverse, k - 1)
            k -= 2
        else:
            eliminate(rowadr, colind, A, a, above, inv)
            k -= 1


@kernel
def solve_lt_rows(n, rowadr, rownnz, colind, L, x):
    """x <- L^-T x."""
    for k in range(n - 1, -1, -1):
        a, xk = rowadr[k], x[k]
        for c in range(a, a + rownnz[k] - 1):
            i = colind[c]
            x[i] = fma(-L[c], xk, x[i])


@kernel
def solve_rows(n, rowadr, rownnz, colind, L, inverse, x):
    """x <- L^-1 D^-1 L^-T x."""
    solve_lt_rows(n, rowadr, rownnz, colind, L, x)
    for k in range(n):
        a, xk = rowadr[k], x[k] * inverse[k]
        for c in range(a, a + rownnz[k] - 1):
            xk = fma(-L[c], x[colind[c]], xk)
        x[k] = xk


@kernel
def multiply_rows(n, rowadr, rownnz, colind, A, x, y):
    """y <- A x for the symmetric matrix whose lower triangle A is."""
    for k in range(n):
        a, xk = rowadr[k], x[k]
        last = a + rownnz[k] - 1
        yk = A[last] * xk
        for c in range(a, last):
            i = colind[c]
            yk = fma(A[c], x[i], yk)
            y[i] = fma(A[c], xk, y[i])
        y[k] = yk
