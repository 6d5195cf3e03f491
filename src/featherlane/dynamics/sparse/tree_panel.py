"""Computes substitution and product for four columns at once, on the rows of tree_factor.py.

The columns are interleaved in a panel: entry i of column c is at 4 i + c.  Each matrix entry is read once for all four,
and their sums overlap.  Each column has the same roundings in the same order as a column computed separately.
"""

from featherlane.prelude import *
from featherlane.dynamics.sparse.tree_factor import follows, is_only_child, row_below

PANEL = 4  # columns: two rows at a time have eight sums, which also fit into the registers of AVX2


@kernel
def plus(y, s, v):
    """Returns y + s v."""
    return tuple(fma(s, v[c], y[c]) for c in range(PANEL))


@kernel
def minus(y, s, v):
    """Returns y - s v."""
    return tuple(fma(-s, v[c], y[c]) for c in range(PANEL))


@kernel
def times(s, v):
    """Returns s v."""
    return tuple(s * v[c] for c in range(PANEL))


@kernel
def reduce_panel(rows, listed, L, X):
    """X <- L^-T X; `listed` as in tree_factor.py."""
    i = rows.n - 1
    while i >= 0:
        at, count = rows.nnz[i] - 1, rows.below[i]
        start = rows.belowadr[i] if listed else i + count
        y = load4(X, 4 * i)
        if is_only_child(rows, i):
            z = load4(X, 4 * i - 4)
            for q in range(count):
                k = row_below(rows, listed, start, q)
                e, v = rows.adr[k] + at, load4(X, 4 * k)
                y, z = minus(y, L[e], v), minus(z, L[e - 1], v)
            store4(X, 4 * i, y)
            store4(X, 4 * i - 4, minus(z, L[rows.adr[i] + at - 1], y))
            i -= 2
        else:
            for q in range(count):
                k = row_below(rows, listed, start, q)
                y = minus(y, L[rows.adr[k] + at], load4(X, 4 * k))
            store4(X, 4 * i, y)
            i -= 1


@kernel
def expand_panel(rows, L, inverse, X):
    """X <- L^-1 D^-1 X."""
    k = 0
    while k < rows.n:
        a, above = rows.adr[k], rows.nnz[k] - 1
        y = times(inverse[k], load4(X, 4 * k))
        if follows(rows, k):
            b, z = rows.adr[k + 1], times(inverse[k + 1], load4(X, 4 * k + 4))
            for c in range(above):
                v = load4(X, 4 * rows.col[a + c])
                y, z = minus(y, L[a + c], v), minus(z, L[b + c], v)
            store4(X, 4 * k, y)
            store4(X, 4 * k + 4, minus(z, L[b + above], y))
            k += 2
        else:
            for c in range(a, a + above):
                y = minus(y, L[c], load4(X, 4 * rows.col[c]))
            store4(X, 4 * k, y)
            k += 1


@kernel
def multiply_panel(rows, A, X, Y):
    """Y <- A X for the symmetric matrix with lower triangle A; descendants directly follow each row."""
    i = rows.n - 1
    while i >= 0:
        a, at, last = rows.adr[i], rows.nnz[i] - 1, i + rows.below[i] + 1
        x = load4(X, 4 * i)
        y = times(A[a + at], x)
        if is_only_child(rows, i):
            b, w = rows.adr[i - 1], load4(X, 4 * i - 4)
            z, link = times(A[b + at - 1], w), A[a + at - 1]
            for c in range(at - 1):
                v = load4(X, 4 * rows.col[a + c])
                y, z = plus(y, A[a + c], v), plus(z, A[b + c], v)
            y, z = plus(y, link, w), plus(z, link, x)
            for k in range(i + 1, last):
                e, v = rows.adr[k] + at, load4(X, 4 * k)
                y, z = plus(y, A[e], v), plus(z, A[e - 1], v)
            store4(Y, 4 * i, y)
            store4(Y, 4 * i - 4, z)
            i -= 2
        else:
            for c in range(a, a + at):
                y = plus(y, A[c], load4(X, 4 * rows.col[c]))
            for k in range(i + 1, last):
                y = plus(y, A[rows.adr[k] + at], load4(X, 4 * k))
            store4(Y, 4 * i, y)
            i -= 1
