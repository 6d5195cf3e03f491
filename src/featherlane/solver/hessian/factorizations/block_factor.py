"""L^T D L of the Hessian if branches are coupled: block rows with exact fill-in, eliminated from the last block.

A block is a run of dofs whose rows share their columns (model/ancestors.py).  One list of blocks serves all its rows,
and all of them update a target at once, with its entries in registers:

    A_ij -= sum over the rows k of block b of L_ki A_kj,   L_ki = A_ki / D_k,   for all blocks i >= j in the row of b.

Each entry has the same roundings in the same order, k descending, as in an elimination row by row, and zeros that the
pattern adds are exact: a world's result does not depend on the pattern that the other worlds need.
Source: Featherstone, RBDA, sec. 6.5 (the order); Davis, Direct Methods for Sparse Linear Systems, ch. 4 (supernodes).
"""

from typing import NamedTuple

from featherlane.prelude import *
from featherlane.dynamics.sparse.tree_factor import nonzero_pivot


class Block(NamedTuple):
    """The rows of one block."""

    first: int  # first dof
    size: int  # number of rows
    adr: int  # start of the rows in H
    above: int  # columns of the blocks above
    stride: int  # distance from one row to the next: above + size


class Sources(NamedTuple):
    """Rows that are subtracted from a target, and their multipliers."""

    adr: int  # start of the first row in H, at the target's first column
    stride: int  # distance from one row to the next
    n: int  # number of rows
    pivot: int  # start of the first row's multipliers in hessian.pivot: one for each row of the target
    w: int  # number of multipliers per row


# ---- rank-n updates: rows of a target minus multipliers times the source rows ---------------------------------------
@kernel
def update_tile(d, rows, source, i, c, height, width):
    """Updates columns c to c + width - 1 of the target's rows i, i + 1, ..., which begin at `rows`, in registers."""
    A, P = d.hessian.H, d.hessian.pivot
    x = tuple(tuple(A[rows[r] + c + j] for j in range(width)) for r in range(height))
    for k in range(source.n - 1, -1, -1):
        q, p = source.adr + k * source.stride + c, source.pivot + k * source.w + i
        f, y = tuple(-P[p + r] for r in range(height)), tuple(A[q + j] for j in range(width))
        x = tuple(tuple(fma(f[r], y[j], x[r][j]) for j in range(width)) for r in range(height))
    for r in unrolled(range(height)):
        for j in unrolled(range(width)):
            A[rows[r] + c + j] = x[r][j]


@kernel
def update_two_rows(d, u, v, source, i, columns):
    """Updates `columns` columns of the target's rows i and i + 1, which begin at u and v."""
    c = 0
    while c + 6 <= columns:
        update_tile(d, (u, v), source, i, c, height=2, width=6)
        c += 6
    while c + 2 <= columns:
        update_tile(d, (u, v), source, i, c, height=2, width=2)
        c += 2
    if c < columns:
        update_tile(d, (u, v), source, i, c, height=2, width=1)


@kernel
def update_block_row(d, u, source, i, columns):
    """Updates `columns` columns of the target's row i, which begins at u."""
    for c in range(columns):
        update_tile(d, (u,), source, i, c, height=1, width=1)


# ---- one block ------------------------------------------------------------------------------------------------------
@kernel
def multiply_column(d, block, i, start):
    """Computes P_ki = A_ki / D_k for the block's rows k from the start on, and x_i -= P_ki x_k."""
    A, P, inverse, x, first = d.hessian.H, d.hessian.pivot, d.hessian.dinv, d.primal.search, block.first
    xi = x[first + i]
    for k in range(block.size - 1, start - 1, -1):
        s = A[block.adr + k * block.stride + block.above + i] * inverse[first + k]
        P[k * block.size + i] = s
        xi = fma(-s, x[first + k], xi)
    x[first + i] = xi


@kernel
def rows_from(block, k):
    """Returns rows k, k + 1, ... of a block, with their multipliers for the block's own rows."""
    return Sources(block.adr + k * block.stride, block.stride, block.size - k, k * block.size, block.size)


@kernel
def eliminate_row(d, block, i):
    """Eliminates the rows below row i of a block from row i."""
    k, u = i + 1, block.adr + i * block.stride
    multiply_column(d, block, i, k)
    update_block_row(d, u, rows_from(block, k), i, block.above + k)
    d.hessian.dinv[block.first + i] = 1.0 / nonzero_pivot(d.hessian.H[u + block.above + i])


@kernel
def finish_two_rows(d, block, i):
    """Eliminates the rows below rows i and i - 1 of a block from both, then row i from row i - 1."""
    A, first, above, k, j = d.hessian.H, block.first, block.above, i + 1, i - 1
    v = block.adr + i * block.stride
    u = v - block.stride
    multiply_column(d, block, i, k)
    multiply_column(d, block, j, k)
    update_two_rows(d, u, v, rows_from(block, k), j, above + i)
    update_tile(d, (v,), rows_from(block, k), i, above + i, height=1, width=1)
    inv = 1.0 / nonzero_pivot(A[v + above + i])
    s = A[v + above + j] * inv
    for c in range(above + i):
        A[u + c] = fma(-s, A[v + c], A[u + c])
    d.hessian.pivot[i * block.size + j] = s
    d.hessian.dinv[first + i] = inv
    d.hessian.dinv[first + j] = 1.0 / nonzero_pivot(A[u + above + j])
    d.primal.search[first + j] = fma(-s, d.primal.search[first + i], d.primal.search[first + j])


@kernel
def factor_rows(d, block):
    """Eliminates the rows of a block among themselves, two at a time: row i -= L_ki row k for i < k; stores L there."""
    i = block.size - 1
    while i > 0:
        finish_two_rows(d, block, i)
        i -= 2
    if i == 0:
        eliminate_row(d, block, 0)
    for k in range(1, block.size):
        e = block.adr + k * block.stride + block.above
        for c in range(k):
            d.hessian.H[e + c] = d.hessian.pivot[k * block.size + c]


@kernel
def take_multipliers(d, block, place, target, w):
    """Computes P_ki = A_ki / D_k for the columns i of one block above, and x_i -= P_ki x_k."""
    inverse, x, e = d.hessian.dinv, d.primal.search, block.adr + place
    for i in range(w):
        xi = x[target + i]
        for k in range(block.size - 1, -1, -1):
            s = d.hessian.H[e + k * block.stride + i] * inverse[block.first + k]
            d.hessian.pivot[k * w + i] = s
            xi = fma(-s, x[block.first + k], xi)
        x[target + i] = xi


@kernel
def update_block_rows(d, u, width, source, columns, triangle):
    """Updates `columns` columns of the target's rows at u, one row per multiplier of a source row, two at a time.

    triangle: 1 if the block on the diagonal follows, row i up to column i.  The first of two rows gets one more entry,
    which is not used.
    """
    i = 0
    while i + 2 <= source.w:
        update_two_rows(d, u + i * width, u + i * width + width, source, i, columns + triangle * (i + 2))
        i += 2
    if i < source.w:
        update_block_row(d, u + i * width, source, i, columns + triangle * (i + 1))


@kernel
def eliminate_from(m, d, block, b, at):
    """Adds the update of block b, its rows factored, to the block row of its column number `at`; stores L there."""
    o, stride = d.hessian.blockadr[b], block.stride
    c = d.hessian.blockcol[o + at]
    target, w, place = m.block_dofadr[c], m.block_dofnum[c], d.hessian.blockplace[o + at]
    take_multipliers(d, block, place, target, w)
    u, f, e = d.hessian.rowadr[target], d.hessian.blockadr[c], 0
    width = d.hessian.rownnz[target] - 1 + w
    while e <= at:
        while d.hessian.blockcol[f] != d.hessian.blockcol[o + e]:
            f += 1
        start, q = d.hessian.blockplace[o + e], d.hessian.blockplace[f]
        # blocks that are adjacent in both rows
        while e < at and d.hessian.blockcol[f + 1] == d.hessian.blockcol[o + e + 1]:
            e += 1
            f += 1
        columns, triangle = d.hessian.blockplace[o + e] - start, 1
        if e < at:
            columns, triangle = columns + m.block_dofnum[d.hessian.blockcol[o + e]], 0
        update_block_rows(d, u + q, width, Sources(block.adr + start, stride, block.size, 0, w), columns, triangle)
        e += 1
        f += 1
    for k in range(block.size):
        for i in range(w):
            d.hessian.H[block.adr + k * stride + place + i] = d.hessian.pivot[k * w + i]


@stage
def factor_blocks(m, d):
    """Computes H = L^T D L in place, hessian.dinv = 1 / D, and search <- L^-T search.

    Reads:  hessian.H (nH,) [kg, kg m, kg m^2], stored by blocks, its pattern.
    Writes: hessian.*, hessian.dinv (nv,), primal.search (nv,).
    Cost:   sum over blocks b of s_b n_b^2 / 2, with n_b the length of the row of b.
    """
    for k in range(m.nblock):
        b = m.nblock - 1 - k
        first, size, last = m.block_dofadr[b], m.block_dofnum[b], d.hessian.blocknum[b] - 1
        above = d.hessian.blockplace[d.hessian.blockadr[b] + last]
        block = Block(first, size, d.hessian.rowadr[first], above, above + size)
        factor_rows(d, block)
        for at in range(last - 1, -1, -1):
            eliminate_from(m, d, block, b, at)


# ---- substitution ---------------------------------------------------------------------------------------------------
@kernel
def run_of_blocks(m, d, at, last):
    """Returns (the number after a run of blocks with consecutive dofs, which starts at number `at`; its dofs)."""
    c = d.hessian.blockcol[at]
    n = m.block_dofnum[c]
    at += 1
    while at < last and d.hessian.blockcol[at] == c + 1:
        c += 1
        n += m.block_dofnum[c]
        at += 1
    return at, n


@kernel
def substitute_rows(m, d, b, r, stride, count):
    """Returns x_k D_k^-1 - sum of L_kj x_j over the blocks above, for `count` rows of block b from r; sums overlap."""
    L, x, k, at = d.hessian.H, d.primal.search, m.block_dofadr[b] + r, d.hessian.blockadr[b]
    a = d.hessian.rowadr[k]
    last = at + d.hessian.blocknum[b] - 1
    y = tuple(x[k + c] * d.hessian.dinv[k + c] for c in range(count))
    while at < last:
        e, j = a + d.hessian.blockplace[at], m.block_dofadr[d.hessian.blockcol[at]]
        at, n = run_of_blocks(m, d, at, last)
        for i in range(n):
            v, q = x[j + i], e + i
            y = tuple(fma(-L[q + c * stride], v, y[c]) for c in range(count))
    for c in unrolled(range(count)):
        x[k + c] = y[c]


@stage
def reduce_blocks(m, d):
    """Computes search <- L^-T search, bitwise identical to its result as one more column of the factor.

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
    """Computes search <- L^-1 D^-1 search: sums each row's terms by ascending column.

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
            substitute_rows(m, d, b, r, stride, count=3)
            r += 3
        while r < size:
            substitute_rows(m, d, b, r, stride, count=1)
            r += 1
        for k in range(1, size):
            y, e = d.primal.search[first + k], a + k * stride + above
            for i in range(k):
                y = fma(-d.hessian.H[e + i], d.primal.search[first + i], y)
            d.primal.search[first + k] = y
