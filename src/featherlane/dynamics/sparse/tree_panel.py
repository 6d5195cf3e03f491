"""Computes substitution and product for four columns at once, on the rows of tree_factor.py.

The columns are interleaved in a panel: entry i of column c is at 4 i + c.  Each matrix entry is read once for all four,
and their sums overlap.  Each column has the same roundings in the same order as a column computed separately.

As in tree_factor.py, depth = nnz[i] - 1 is the number of ancestors of row i, and entry (k, i) of each descendant k of i
is at adr[k] + depth.  X_i are the four values of row i of the panel X.
"""

from featherlane.prelude import *
from featherlane.dynamics.sparse.tree_factor import follows, is_only_child, row_below

PANEL = 4  # columns: two rows at a time have eight sums, which also fit into the registers of AVX2


@kernel
def _entry(X, i):
    """Returns entry i of the four columns of panel X."""
    return Vec4(X[PANEL * i : PANEL * i + PANEL])


@kernel
def _store(X, i, v):
    """Writes the four values v as entry i of the four columns of panel X."""
    X[PANEL * i : PANEL * i + PANEL] = v


@kernel
def reduce_panel(rows, listed, L, X):
    """X <- L^-T X: X_i -= L_ki X_k, from the last i to the first, for the descendants k of i.

    Two rows at a time: i and its parent i - 1, if it has no other child.
    listed: whether the descendants are listed in `rows.belowrow`; else they directly follow row i.
    """
    i = rows.n - 1
    while i >= 0:
        depth, nbelow = rows.nnz[i] - 1, rows.below[i]
        start = rows.belowadr[i] if listed else i + nbelow
        X_i = _entry(X, i)
        if is_only_child(rows, i):
            X_parent = _entry(X, i - 1)
            for t in range(nbelow):
                k = row_below(rows, listed, start, t)
                L_ki, X_k = rows.adr[k] + depth, _entry(X, k)  # address of L_ki; that of L_k,i-1 is one less
                X_i, X_parent = fma(-L[L_ki], X_k, X_i), fma(-L[L_ki - 1], X_k, X_parent)
            _store(X, i, X_i)
            _store(X, i - 1, fma(-L[rows.adr[i] + depth - 1], X_i, X_parent))
            i -= 2
        else:
            for t in range(nbelow):
                k = row_below(rows, listed, start, t)
                X_i = fma(-L[rows.adr[k] + depth], _entry(X, k), X_i)
            _store(X, i, X_i)
            i -= 1


@kernel
def expand_panel(rows, L, inverse, X):
    """X <- L^-1 D^-1 X: X_k = X_k / D_k - sum over ancestors j of L_kj X_j, from the first k to the last.

    The rows of a parent k and its child k + 1 are computed at once.  inverse: 1 / D.
    """
    k = 0
    while k < rows.n:
        row, depth = rows.adr[k], rows.nnz[k] - 1
        X_k = inverse[k] * _entry(X, k)
        if follows(rows, k):
            row_child, X_child = rows.adr[k + 1], inverse[k + 1] * _entry(X, k + 1)
            for c in range(depth):
                X_j = _entry(X, rows.col[row + c])
                X_k, X_child = fma(-L[row + c], X_j, X_k), fma(-L[row_child + c], X_j, X_child)
            _store(X, k, X_k)
            _store(X, k + 1, fma(-L[row_child + depth], X_k, X_child))
            k += 2
        else:
            for e in range(row, row + depth):
                X_k = fma(-L[e], _entry(X, rows.col[e]), X_k)
            _store(X, k, X_k)
            k += 1


@kernel
def multiply_panel(rows, A, X, Y):
    """Y <- A X for the symmetric matrix with lower triangle A; descendants directly follow each row.

    Y_i = sum of A_ij X_j over ancestors j, and i, plus sum of A_ki X_k over descendants k.  Two rows at a time: i and
    its parent i - 1, if it has no other child.
    """
    i = rows.n - 1
    while i >= 0:
        row, depth, end = rows.adr[i], rows.nnz[i] - 1, i + rows.below[i] + 1
        X_i = _entry(X, i)
        Y_i = A[row + depth] * X_i
        if is_only_child(rows, i):
            row_parent, X_parent = rows.adr[i - 1], _entry(X, i - 1)
            Y_parent, A_i_parent = A[row_parent + depth - 1] * X_parent, A[row + depth - 1]
            for c in range(depth - 1):
                X_j = _entry(X, rows.col[row + c])
                Y_i, Y_parent = fma(A[row + c], X_j, Y_i), fma(A[row_parent + c], X_j, Y_parent)
            Y_i, Y_parent = fma(A_i_parent, X_parent, Y_i), fma(A_i_parent, X_i, Y_parent)
            for k in range(i + 1, end):
                A_ki, X_k = rows.adr[k] + depth, _entry(X, k)  # address of A_ki; that of A_k,i-1 is one less
                Y_i, Y_parent = fma(A[A_ki], X_k, Y_i), fma(A[A_ki - 1], X_k, Y_parent)
            _store(Y, i, Y_i)
            _store(Y, i - 1, Y_parent)
            i -= 2
        else:
            for e in range(row, row + depth):
                Y_i = fma(A[e], _entry(X, rows.col[e]), Y_i)
            for k in range(i + 1, end):
                Y_i = fma(A[rows.adr[k] + depth], _entry(X, k), Y_i)
            _store(Y, i, Y_i)
            i -= 1
