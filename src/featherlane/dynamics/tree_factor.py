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
def eliminate_with(rowadr, colind, A, a, n, inv, x, k):
    """`eliminate`, with the right-hand side as one more column: x_i -= L_ki x_k for each ancestor i."""
    xk = x[k]
    for c in range(n - 1, -1, -1):
        i = colind[a + c]
        r, s = rowadr[i], A[a + c] * inv
        for e in range(c + 1):
            A[r + e] = fma(-s, A[a + e], A[r + e])
        A[a + c] = s
        x[i] = fma(-s, xk, x[i])


@kernel
def eliminate_pair_with(rowadr, colind, A, a, b, n, inv, inverse, x, k):
    """`eliminate_pair` of rows k and k - 1, with the right-hand side as one more column."""
    s = A[a + n] * inv
    for e in range(n + 1):
        A[b + e] = fma(-s, A[a + e], A[b + e])
    A[a + n] = s
    xk = x[k]
    xp = fma(-s, xk, x[k - 1])
    x[k - 1] = xp
    inv2 = 1.0 / A[b + n]
    inverse[k - 1] = inv2
    for c in range(n - 1, -1, -1):
        i = colind[a + c]
        r, s, t = rowadr[i], A[a + c] * inv, A[b + c] * inv2
        for e in range(c + 1):
            A[r + e] = fma(-t, A[b + e], fma(-s, A[a + e], A[r + e]))
        A[a + c] = s
        A[b + c] = t
        x[i] = fma(-t, xp, fma(-s, xk, x[i]))


@kernel
def factor_and_reduce(n, rowadr, rownnz, colind, A, inverse, x):
    """`factor_rows` and x <- L^-T x in one sweep: half the loops of doing one after the other, and the same bits."""
    k = n - 1
    while k >= 0:
        a, above = rowadr[k], rownnz[k] - 1
        inv = 1.0 / A[a + above]
        inverse[k] = inv
        if above > 0 and colind[a + above - 1] == k - 1:
            eliminate_pair_with(rowadr, colind, A, a, rowadr[k - 1], above - 1, inv, inverse, x, k)
            k -= 2
        else:
            eliminate_with(rowadr, colind, A, a, above, inv, x, k)
            k -= 1


@kernel
def expand_rows(n, rowadr, rownnz, colind, L, inverse, x):
    """x <- L^-1 D^-1 x: what remains of a solve after `factor_and_reduce`.

    One sum for each row, term by term: a sum in parts would depend on where a wider pattern puts its zeros.
    """
    for k in range(n):
        a, xk = rowadr[k], x[k] * inverse[k]
        for c in range(a, a + rownnz[k] - 1):
            xk = fma(-L[c], x[colind[c]], xk)
        x[k] = xk


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
    expand_rows(n, rowadr, rownnz, colind, L, inverse, x)


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
