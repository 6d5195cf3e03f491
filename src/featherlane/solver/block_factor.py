"""L^T D L of the Hessian where branches are coupled: block rows with exact fill, eliminated from the last block on.

A block is a run of dofs whose rows share their columns (model/ancestors.py), so one list of blocks serves all its rows
and a target is updated by all of them at once, its entries in registers:

    A_ij -= sum over the rows k of block b of L_ki A_kj,   L_ki = A_ki / D_k,   for all blocks i >= j in the row of b.

Each entry sees the same roundings in the same order, k descending, as in an elimination row by row, and zeros that the
pattern adds are exact: what a world ends with does not depend on the pattern that its company needs.
Source: Featherstone, RBDA, sec. 6.5 (the order); Davis, Direct Methods for Sparse Linear Systems, ch. 4 (supernodes).
"""

from __future__ import annotations

from ..lanes import fma, kernel, stage


# ---- rank-s updates: rows i and i + 1 of a target, at u and v, less multipliers at p times the source rows at e -----
@kernel
def update_two_by_six(A, P, u, v, e, stride, s, p, w):
    """Six columns."""
    x0, x1, x2, x3, x4, x5 = A[u], A[u + 1], A[u + 2], A[u + 3], A[u + 4], A[u + 5]
    y0, y1, y2, y3, y4, y5 = A[v], A[v + 1], A[v + 2], A[v + 3], A[v + 4], A[v + 5]
    for k in range(s - 1, -1, -1):
        f, g, q = -P[p + k * w], -P[p + k * w + 1], e + k * stride
        r0, r1, r2, r3, r4, r5 = A[q], A[q + 1], A[q + 2], A[q + 3], A[q + 4], A[q + 5]
        x0, x1, x2, x3, x4, x5 = (
            fma(f, r0, x0),
            fma(f, r1, x1),
            fma(f, r2, x2),
            fma(f, r3, x3),
            fma(f, r4, x4),
            fma(f, r5, x5),
        )
        y0, y1, y2, y3, y4, y5 = (
            fma(g, r0, y0),
            fma(g, r1, y1),
            fma(g, r2, y2),
            fma(g, r3, y3),
            fma(g, r4, y4),
            fma(g, r5, y5),
        )
    A[u], A[u + 1], A[u + 2], A[u + 3], A[u + 4], A[u + 5] = x0, x1, x2, x3, x4, x5
    A[v], A[v + 1], A[v + 2], A[v + 3], A[v + 4], A[v + 5] = y0, y1, y2, y3, y4, y5


@kernel
def update_two_by_two(A, P, u, v, e, stride, s, p, w):
    """Two columns."""
    x0, x1, y0, y1 = A[u], A[u + 1], A[v], A[v + 1]
    for k in range(s - 1, -1, -1):
        f, g, q = -P[p + k * w], -P[p + k * w + 1], e + k * stride
        r0, r1 = A[q], A[q + 1]
        x0, x1, y0, y1 = fma(f, r0, x0), fma(f, r1, x1), fma(g, r0, y0), fma(g, r1, y1)
    A[u], A[u + 1], A[v], A[v + 1] = x0, x1, y0, y1


@kernel
def update_one(A, P, u, e, stride, s, p, w):
    """One entry."""
    x = A[u]
    for k in range(s - 1, -1, -1):
        x = fma(-P[p + k * w], A[e + k * stride], x)
    A[u] = x


@kernel
def update_two_rows(A, P, u, v, e, stride, s, p, w, columns):
    """So many columns of two rows."""
    c = 0
    while c + 6 <= columns:
        update_two_by_six(A, P, u + c, v + c, e + c, stride, s, p, w)
        c += 6
    while c + 2 <= columns:
        update_two_by_two(A, P, u + c, v + c, e + c, stride, s, p, w)
        c += 2
    if c < columns:
        update_one(A, P, u + c, e + c, stride, s, p, w)
        update_one(A, P, v + c, e + c, stride, s, p + 1, w)


@kernel
def update_row(A, P, u, e, stride, s, p, w, columns):
    """So many columns of one row."""
    for c in range(columns):
        update_one(A, P, u + c, e + c, stride, s, p, w)


# ---- one block ------------------------------------------------------------------------------------------------------
@kernel
def factor_rows(A, inverse, first, size, a, above, x):
    """Eliminate the rows of a block among themselves: row i -= L_ki row k for i < k, and x_i -= L_ki x_k."""
    stride = above + size
    for k in range(size - 1, -1, -1):
        q = a + k * stride
        v = 1.0 / A[q + above + k]
        inverse[first + k] = v
        xk = x[first + k]
        for i in range(k - 1, -1, -1):
            r, s = a + i * stride, A[q + above + i] * v
            for e in range(above + i + 1):
                A[r + e] = fma(-s, A[q + e], A[r + e])
            A[q + above + i] = s
            x[first + i] = fma(-s, xk, x[first + i])


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
def update_block(A, P, u, width, w, e, stride, size, columns):
    """A block of the target's rows, at u: its w rows two at a time."""
    i = 0
    while i + 2 <= w:
        update_two_rows(A, P, u + i * width, u + i * width + width, e, stride, size, i, w, columns)
        i += 2
    if i < w:
        update_row(A, P, u + i * width, e, stride, size, i, w, columns)


@kernel
def update_triangle(A, P, u, width, w, e, stride, size):
    """The block on the diagonal: row i up to column i, or i + 1 in the first of two rows (no one reads that entry)."""
    i = 0
    while i + 2 <= w:
        update_two_rows(A, P, u + i * width, u + i * width + width, e, stride, size, i, w, i + 2)
        i += 2
    if i < w:
        update_row(A, P, u + i * width, e, stride, size, i, w, i + 1)


@kernel
def eliminate_from(m, d, A, P, b, at, a, stride, x):
    """What block b, its rows factored, adds to the block row of its column number `at`; leaves L there."""
    o, size = d.H_blockadr[b], m.block_dofnum[b]
    c = d.H_blockcol[o + at]
    target, w, place = m.block_dofadr[c], m.block_dofnum[c], d.H_blockplace[o + at]
    take_multipliers(A, P, d.H_dinv, m.block_dofadr[b], size, a + place, stride, x, target, w)
    u, f = d.H_rowadr[target], d.H_blockadr[c]
    width = d.H_blockplace[f + d.H_blocknum[c] - 1] + w
    for e in range(at):
        column = d.H_blockcol[o + e]
        while d.H_blockcol[f] != column:
            f += 1
        q = u + d.H_blockplace[f]
        update_block(A, P, q, width, w, a + d.H_blockplace[o + e], stride, size, m.block_dofnum[column])
    update_triangle(A, P, u + width - w, width, w, a + place, stride, size)
    for k in range(size):
        for i in range(w):
            A[a + k * stride + place + i] = P[k * w + i]


@stage
def factor_blocks(m, d):
    """H = L^T D L in place, H_dinv = 1 / D, and search <- L^-T search.

    Reads:  H in block rows (nH,) [kg, kg m, kg m^2], its pattern.   Writes: H, H_dinv (nv,), search (nv,).
    Cost:   sum over blocks b of s_b n_b^2 / 2, n_b the length of the row of b.
    """
    for k in range(m.nblock):
        b = m.nblock - 1 - k
        size, a = m.block_dofnum[b], d.H_rowadr[m.block_dofadr[b]]
        last = d.H_blocknum[b] - 1
        above = d.H_blockplace[d.H_blockadr[b] + last]
        factor_rows(d.H, d.H_dinv, m.block_dofadr[b], size, a, above, d.search)
        for at in range(last - 1, -1, -1):
            eliminate_from(m, d, d.H, d.H_pivot, b, at, a, above + size, d.search)


# ---- substitution ---------------------------------------------------------------------------------------------------
@kernel
def sum_three(m, d, L, x, b, r, a, stride):
    """x_k D_k^-1 - sum of L_kj x_j over the blocks above, for rows r to r + 2 of block b, whose sums overlap."""
    k, o = m.block_dofadr[b] + r, d.H_blockadr[b]
    y0, y1, y2 = x[k] * d.H_dinv[k], x[k + 1] * d.H_dinv[k + 1], x[k + 2] * d.H_dinv[k + 2]
    e, f, g = a + r * stride, a + (r + 1) * stride, a + (r + 2) * stride
    for at in range(d.H_blocknum[b] - 1):
        c = d.H_blockcol[o + at]
        place, j = d.H_blockplace[o + at], m.block_dofadr[c]
        for i in range(m.block_dofnum[c]):
            v = x[j + i]
            y0, y1, y2 = fma(-L[e + place + i], v, y0), fma(-L[f + place + i], v, y1), fma(-L[g + place + i], v, y2)
    x[k], x[k + 1], x[k + 2] = y0, y1, y2


@kernel
def sum_one(m, d, L, x, b, r, a, stride):
    """The same for one row."""
    k, o = m.block_dofadr[b] + r, d.H_blockadr[b]
    y, e = x[k] * d.H_dinv[k], a + r * stride
    for at in range(d.H_blocknum[b] - 1):
        c = d.H_blockcol[o + at]
        place, j = d.H_blockplace[o + at], m.block_dofadr[c]
        for i in range(m.block_dofnum[c]):
            y = fma(-L[e + place + i], x[j + i], y)
    x[k] = y


@stage
def expand_blocks(m, d):
    """search <- L^-1 D^-1 search: each row's sum term by term, in the order of its columns."""
    for b in range(m.nblock):
        first, size = m.block_dofadr[b], m.block_dofnum[b]
        a = d.H_rowadr[first]
        above = d.H_rownnz[first] - 1
        stride, r = above + size, 0
        while r + 3 <= size:
            sum_three(m, d, d.H, d.search, b, r, a, stride)
            r += 3
        while r < size:
            sum_one(m, d, d.H, d.search, b, r, a, stride)
            r += 1
        for k in range(1, size):
            y, e = d.search[first + k], a + k * stride + above
            for i in range(k):
                y = fma(-d.H[e + i], d.search[first + i], y)
            d.search[first + k] = y
