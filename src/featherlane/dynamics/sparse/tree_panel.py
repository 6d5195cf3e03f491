"""Computes substitution and product for four columns at once, on the rows of tree_factor.py.

The columns are interleaved in a panel: entry i of column c is at 4 i + c.  Each matrix entry is read once for all four,
and their sums overlap.  Each column has the same roundings in the same order as a column computed separately.
"""

from featherlane.prelude import *
from featherlane.dynamics.sparse.tree_factor import follows, is_only_child, row_below

PANEL = 4  # columns: two rows at a time have eight sums, which also fit into the registers of AVX2


@kernel
def _entry(X, i):
    """Returns entry i of the four columns."""
    return Vec4(X[PANEL * i : PANEL * i + PANEL])


@kernel
def _store(X, i, v):
    """Writes entry i of the four columns."""
    X[PANEL * i : PANEL * i + PANEL] = v


@kernel
def reduce_panel(rows, listed, L, X):
    """X <- L^-T X; `listed` as in tree_factor.py."""
    i = rows.n - 1
    while i >= 0:
        at, count = rows.nnz[i] - 1, rows.below[i]
        start = rows.belowadr[i] if listed else i + count
        y = _entry(X, i)
        if is_only_child(rows, i):
            z = _entry(X, i - 1)
            for q in range(count):
                k = row_below(rows, listed, start, q)
                e, v = rows.adr[k] + at, _entry(X, k)
                y, z = fma(-L[e], v, y), fma(-L[e - 1], v, z)
            _store(X, i, y)
            _store(X, i - 1, fma(-L[rows.adr[i] + at - 1], y, z))
            i -= 2
        else:
            for q in range(count):
                k = row_below(rows, listed, start, q)
                y = fma(-L[rows.adr[k] + at], _entry(X, k), y)
            _store(X, i, y)
            i -= 1


@kernel
def expand_panel(rows, L, inverse, X):
    """X <- L^-1 D^-1 X."""
    k = 0
    while k < rows.n:
        a, above = rows.adr[k], rows.nnz[k] - 1
        y = inverse[k] * _entry(X, k)
        if follows(rows, k):
            b, z = rows.adr[k + 1], inverse[k + 1] * _entry(X, k + 1)
            for c in range(above):
                v = _entry(X, rows.col[a + c])
                y, z = fma(-L[a + c], v, y), fma(-L[b + c], v, z)
            _store(X, k, y)
            _store(X, k + 1, fma(-L[b + above], y, z))
            k += 2
        else:
            for c in range(a, a + above):
                y = fma(-L[c], _entry(X, rows.col[c]), y)
            _store(X, k, y)
            k += 1


@kernel
def multiply_panel(rows, A, X, Y):
    """Y <- A X for the symmetric matrix with lower triangle A; descendants directly follow each row."""
    i = rows.n - 1
    while i >= 0:
        a, at, last = rows.adr[i], rows.nnz[i] - 1, i + rows.below[i] + 1
        x = _entry(X, i)
        y = A[a + at] * x
        if is_only_child(rows, i):
            b, w = rows.adr[i - 1], _entry(X, i - 1)
            z, link = A[b + at - 1] * w, A[a + at - 1]
            for c in range(at - 1):
                v = _entry(X, rows.col[a + c])
                y, z = fma(A[a + c], v, y), fma(A[b + c], v, z)
            y, z = fma(link, w, y), fma(link, x, z)
            for k in range(i + 1, last):
                e, v = rows.adr[k] + at, _entry(X, k)
                y, z = fma(A[e], v, y), fma(A[e - 1], v, z)
            _store(Y, i, y)
            _store(Y, i - 1, z)
            i -= 2
        else:
            for c in range(a, a + at):
                y = fma(A[c], _entry(X, rows.col[c]), y)
            for k in range(i + 1, last):
                y = fma(A[rows.adr[k] + at], _entry(X, k), y)
            _store(Y, i, y)
            i -= 1
