"""L^T D L of the Hessian where branches are coupled: block rows with exact fill, eliminated from the last block on.

A block is a run of dofs whose rows share their columns (model/ancestors.py), so one list of blocks serves all its rows
and a target is updated by all of them at once, its entries in registers:

    A_ij -= sum over the rows k of block b of L_ki A_kj,   L_ki = A_ki / D_k,   for all blocks i >= j in the row of b.

Each entry sees the same roundings in the same order, k descending, as in an elimination row by row, and zeros that the
pattern adds are exact: what a world ends with does not depend on the pattern that its company needs.
Source: Featherstone, RBDA, sec. 6.5 (the order); Davis, Direct Methods for Sparse Linear Systems, ch. 4 (supernodes).
"""

from featherlane.prelude import *


# ---- rank-s updates: rows of a target less multipliers at p times the source rows at e -------------------------------
@kernel
def update_tile(A, P, rows, e, stride, s, p, w, height, width):
    """So many columns of the target's rows, in registers: their first entries are at `rows`."""
    x = tuple(tuple(A[rows[r] + c] for c in range(width)) for r in range(height))
    for k in range(s - 1, -1, -1):
        q = e + k * stride
        f, y = tuple(-P[p + k * w + r] for r in range(height)), tuple(A[q + c] for c in range(width))
        x = tuple(tuple(fma(f[r], y[c], x[r][c]) for c in range(width)) for r in range(height))
    for r in unrolled(range(height)):
        for c in unrolled(range(width)):
            A[rows[r] + c] = x[r][c]


@kernel
def update_two_rows(A, P, u, v, e, stride, s, p, w, columns):
    """So many columns of two rows."""
    c = 0
    while c + 6 <= columns:
        update_tile(A, P, (u + c, v + c), e + c, stride, s, p, w, height=2, width=6)
        c += 6
    while c + 2 <= columns:
        update_tile(A, P, (u + c, v + c), e + c, stride, s, p, w, height=2, width=2)
        c += 2
    if c < columns:
        update_tile(A, P, (u + c, v + c), e + c, stride, s, p, w, height=2, width=1)


@kernel
def update_row(A, P, u, e, stride, s, p, w, columns):
    """So many columns of one row."""
    for c in range(columns):
        update_tile(A, P, (u + c,), e + c, stride, s, p, w, height=1, width=1)


# ---- one block ------------------------------------------------------------------------------------------------------
@kernel
def multiply_column(A, P, inverse, first, size, a, above, x, i, start):
    """P_ki = A_ki / D_k for the block's rows k from the start on, and x_i -= P_ki x_k."""
    xi = x[first + i]
    for k in range(size - 1, start - 1, -1):
        s = A[a + k * (above + size) + above + i] * inverse[first + k]
        P[k * size + i] = s
        xi = fma(-s, x[first + k], xi)
    x[first + i] = xi


@kernel
def finish_row(A, P, inverse, first, size, a, above, x, i):
    """Row i of a block, less what the rows below it take."""
    stride = above + size
    k = i + 1
    multiply_column(A, P, inverse, first, size, a, above, x, i, k)
    u, e = a + i * stride, a + k * stride
    update_row(A, P, u, e, stride, size - k, k * size + i, size, above + k)
    inverse[first + i] = 1.0 / A[u + above + i]


@kernel
def finish_two_rows(A, P, inverse, first, size, a, above, x, i):
    """Rows i and i - 1 of a block, then row i - 1 less what row i takes."""
    stride, k = above + size, i + 1
    j, v, e = i - 1, a + i * stride, a + k * stride
    u = v - stride
    multiply_column(A, P, inverse, first, size, a, above, x, i, k)
    multiply_column(A, P, inverse, first, size, a, above, x, j, k)
    update_two_rows(A, P, u, v, e, stride, size - k, k * size + j, size, above + i)
    update_tile(A, P, (v + above + i,), e + above + i, stride, size - k, k * size + i, size, height=1, width=1)
    inv = 1.0 / A[v + above + i]
    s = A[v + above + j] * inv
    for c in range(above + i):
        A[u + c] = fma(-s, A[v + c], A[u + c])
    P[i * size + j] = s
    inverse[first + i] = inv
    inverse[first + j] = 1.0 / A[u + above + j]
    x[first + j] = fma(-s, x[first + i], x[first + j])


@kernel
def factor_rows(A, P, inverse, first, size, a, above, x):
    """Eliminate the rows of a block among themselves, two at a time: row i -= L_ki row k for i < k; leaves L there."""
    i = size - 1
    while i > 0:
        finish_two_rows(A, P, inverse, first, size, a, above, x, i)
        i -= 2
    if i == 0:
        finish_row(A, P, inverse, first, size, a, above, x, 0)
    for k in range(1, size):
        e = a + k * (above + size) + above
        for c in range(k):
            A[e + c] = P[k * size + c]


@kernel
def take_multipliers(A, P, inverse, first, size, e, stride, x, target, w):
    """P_ki = A_ki / D_k for the columns i of one block above, and x_i -= P_ki x_k."""
    for i in range(w):
        xi = x[target + i]
        for k in range(size - 1, -1, -1):
            s = A[e + k * stride + i] * inverse[first + k]
            P[k * w + i] = s
            xi = fma(-s, x[first + k], xi)
        x[target + i] = xi


@kernel
def update_rows(A, P, u, width, w, e, stride, size, columns, triangle):
    """So many columns of the target's w rows, at u, two rows at a time.

    triangle: 1 the block on the diagonal follows, row i up to column i.  The first of two rows gets one entry more, and
    no one reads it.
    """
    i = 0
    while i + 2 <= w:
        n = columns + triangle * (i + 2)
        update_two_rows(A, P, u + i * width, u + i * width + width, e, stride, size, i, w, n)
        i += 2
    if i < w:
        update_row(A, P, u + i * width, e, stride, size, i, w, columns + triangle * (i + 1))


@kernel
def eliminate_from(m, d, A, P, b, at, a, stride, x):
    """What block b, its rows factored, adds to the block row of its column number `at`; leaves L there."""
    o, size = d.hessian.blockadr[b], m.block_dofnum[b]
    c = d.hessian.blockcol[o + at]
    target, w, place = m.block_dofadr[c], m.block_dofnum[c], d.hessian.blockplace[o + at]
    take_multipliers(A, P, d.hessian.dinv, m.block_dofadr[b], size, a + place, stride, x, target, w)
    u, f, e = d.hessian.rowadr[target], d.hessian.blockadr[c], 0
    width = d.hessian.rownnz[target] - 1 + w
    while e <= at:
        while d.hessian.blockcol[f] != d.hessian.blockcol[o + e]:
            f += 1
        start, q = d.hessian.blockplace[o + e], d.hessian.blockplace[f]
        # blocks that stand side by side in both rows
        while e < at and d.hessian.blockcol[f + 1] == d.hessian.blockcol[o + e + 1]:
            e += 1
            f += 1
        columns, triangle = d.hessian.blockplace[o + e] - start, 1
        if e < at:
            columns, triangle = columns + m.block_dofnum[d.hessian.blockcol[o + e]], 0
        update_rows(A, P, u + q, width, w, a + start, stride, size, columns, triangle)
        e += 1
        f += 1
    for k in range(size):
        for i in range(w):
            A[a + k * stride + place + i] = P[k * w + i]


@stage
def factor_blocks(m, d):
    """H = L^T D L in place, hessian.dinv = 1 / D, and search <- L^-T search.

    Reads:  hessian.H (nH,) [kg, kg m, kg m^2], whose rows lie by blocks, its pattern.
    Writes: hessian.*, hessian.dinv (nv,), primal.search (nv,); hessian.* for itself.
    Cost:   sum over blocks b of s_b n_b^2 / 2, n_b the length of the row of b.
    """
    for k in range(m.nblock):
        b = m.nblock - 1 - k
        size, a = m.block_dofnum[b], d.hessian.rowadr[m.block_dofadr[b]]
        last = d.hessian.blocknum[b] - 1
        above = d.hessian.blockplace[d.hessian.blockadr[b] + last]
        factor_rows(d.hessian.H, d.hessian.pivot, d.hessian.dinv, m.block_dofadr[b], size, a, above, d.primal.search)
        for at in range(last - 1, -1, -1):
            eliminate_from(m, d, d.hessian.H, d.hessian.pivot, b, at, a, above + size, d.primal.search)


# ---- substitution ---------------------------------------------------------------------------------------------------
@kernel
def run_of_blocks(m, d, at, last):
    """(the next number after a run of blocks, at first, whose dofs are consecutive; how many dofs they have)."""
    c = d.hessian.blockcol[at]
    n = m.block_dofnum[c]
    at += 1
    while at < last and d.hessian.blockcol[at] == c + 1:
        c += 1
        n += m.block_dofnum[c]
        at += 1
    return at, n


@kernel
def sum_rows(m, d, L, x, b, r, a, stride, count):
    """x_k D_k^-1 - sum of L_kj x_j over the blocks above, for `count` rows of block b from row r on: sums overlap."""
    k, at = m.block_dofadr[b] + r, d.hessian.blockadr[b]
    last = at + d.hessian.blocknum[b] - 1
    y = tuple(x[k + c] * d.hessian.dinv[k + c] for c in range(count))
    while at < last:
        e, j = a + r * stride + d.hessian.blockplace[at], m.block_dofadr[d.hessian.blockcol[at]]
        at, n = run_of_blocks(m, d, at, last)
        for i in range(n):
            v, q = x[j + i], e + i
            y = tuple(fma(-L[q + c * stride], v, y[c]) for c in range(count))
    for c in unrolled(range(count)):
        x[k + c] = y[c]


@stage
def reduce_blocks(m, d):
    """search <- L^-T search, with the bits that it has as one more column of the factor.

    Reads:  hessian.H, the pattern.   Writes: primal.search (nv,).   Cost: O(entries).
    """
    for b in range(m.nblock - 1, -1, -1):
        first, o = m.block_dofadr[b], d.hessian.blockadr[b]
        above = d.hessian.rownnz[first] - 1
        for r in range(m.block_dofnum[b] - 1, -1, -1):
            a, xk = d.hessian.rowadr[first + r], d.primal.search[first + r]
            for i in range(r):
                d.primal.search[first + i] = fma(-d.hessian.H[a + above + i], xk, d.primal.search[first + i])
            for at in range(o, o + d.hessian.blocknum[b] - 1):
                e, j = a + d.hessian.blockplace[at], m.block_dofadr[d.hessian.blockcol[at]]
                for i in range(m.block_dofnum[d.hessian.blockcol[at]]):
                    d.primal.search[j + i] = fma(-d.hessian.H[e + i], xk, d.primal.search[j + i])


@stage
def expand_blocks(m, d):
    """search <- L^-1 D^-1 search: each row's sum term by term, in the order of its columns.

    Reads:  hessian.H and hessian.dinv of `factor_blocks`, their pattern, primal.search.
    Writes: primal.search (nv,).
    Cost:   O(entries of hessian.H).
    """
    for b in range(m.nblock):
        first, size = m.block_dofadr[b], m.block_dofnum[b]
        a = d.hessian.rowadr[first]
        above = d.hessian.rownnz[first] - 1
        stride, r = above + size, 0
        while r + 3 <= size:
            sum_rows(m, d, d.hessian.H, d.primal.search, b, r, a, stride, count=3)
            r += 3
        while r < size:
            sum_rows(m, d, d.hessian.H, d.primal.search, b, r, a, stride, count=1)
            r += 1
        for k in range(1, size):
            y, e = d.primal.search[first + k], a + k * stride + above
            for i in range(k):
                y = fma(-d.hessian.H[e + i], d.primal.search[first + i], y)
            d.primal.search[first + k] = y
