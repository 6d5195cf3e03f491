"""L^T D L of the Hessian if branches are coupled: block rows with exact fill-in, eliminated from the last block.

A block is a run of dofs whose rows share their columns (model/ancestors.py).  One list of blocks serves all its rows,
and all of them update a target at once, with its entries in registers:

    A_ij -= sum over the rows k of block b of P_ki A_kj,   P_ki = L_ki = A_ki / D_k,

for all dofs i >= j of the other blocks in the row of b.

A is hessian.H, the multipliers P are stored in hessian.pivot while a block is eliminated, and 1 / D is hessian.dinv.
The right-hand side x = primal.search is one more column: x_i -= P_ki x_k.
Each entry has the same roundings in the same order, k descending, as in an elimination row by row, and zeros that the
pattern adds are exact: a world's result does not depend on the pattern that the other worlds need.
Layout: row i of H begins at hessian.H[rowadr[i]] and has rownnz[i] entries, the diagonal last.  The row list of block b
is blockcol[blockadr[b] ...], ascending, b itself the last one; the columns of entry e begin at blockoffset[e] in each
of the block's rows (block_rows.py).  All rows of a block have the length of the last one.

Block b has the dofs from block_dofadr[b] on, block_dofnum[b] of them; its row list has blocknum[b] entries.
`nonzero_pivot` returns a pivot, or MINVAL if its magnitude is smaller.

`Block` describes block b: its `first` dof, `size` (number of rows), `adr` (start of the first row in H), `above`
(number of columns of the blocks before b), and `stride` (length of a row, above + size).
`Sources` describes n rows k that are subtracted from a target: adr (start of the first one in H, at the target's first
column), stride, and their multipliers: P_ki is at hessian.pivot[pivot + k * w + i] for row i of the target, which has
w rows.
Source: Featherstone, RBDA, sec. 6.5 (the order); Davis, Direct Methods for Sparse Linear Systems, ch. 4 (supernodes).
"""

from typing import NamedTuple

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.tree_factor import nonzero_pivot
from featherlane.engine.solver.hessian.entries.pattern import changes_block


class Block(NamedTuple):
    """Describes the rows of one block."""

    first: int  # first dof
    size: int  # number of rows
    adr: int  # start of the rows in H
    above: int  # number of columns of the blocks above
    stride: int  # distance from one row to the next: above + size


class Sources(NamedTuple):
    """Describes rows that are subtracted from a target, and their multipliers."""

    adr: int  # start of the first row in H, at the target's first column
    stride: int  # distance from one row to the next
    n: int  # number of rows
    pivot: int  # start of the first row's multipliers P in hessian.pivot: one for each row of the target
    ntarget: int  # number of multipliers per row: rows of the target


# ---- rank-n updates: rows of a target minus multipliers times the source rows ---------------------------------------
@kernel
def update_tile(d, rows, source, i, c, height, width):
    """Updates a tile of a target in registers: A_ij -= sum over the source rows k of P_ki A_kj, k descending.

    The tile has the rows i to i + height - 1, which begin at rows[0], rows[1], ... in H, and `width` columns from c on.
    """
    A, P = d.hessian.H, d.hessian.pivot
    # x[r][j]: entry of row i + r and column c + j
    x = tuple(tuple(A[rows[r] + c + j] for j in range(width)) for r in range(height))
    for k in range(source.n - 1, -1, -1):
        source_row, multipliers = source.adr + k * source.stride + c, source.pivot + k * source.ntarget + i
        minus_P = tuple(-P[multipliers + r] for r in range(height))
        A_k = tuple(A[source_row + j] for j in range(width))
        x = tuple(tuple(fma(minus_P[r], A_k[j], x[r][j]) for j in range(width)) for r in range(height))
    for r in unrolled(range(height)):
        for j in unrolled(range(width)):
            A[rows[r] + c + j] = x[r][j]


@kernel
def update_rows(d, row, stride, source, i, columns, height):
    """Updates `columns` columns of the target's rows i to i + height - 1, which begin at row, row + stride, ... in H.

    Tiles of 2 x 6 entries fit into the registers; narrower tiles cover the remaining columns.
    """
    rows = tuple(row + r * stride for r in range(height))
    c = 0
    while c + 6 <= columns:
        update_tile(d, rows, source, i, c, height, width=6)
        c += 6
    while c + 2 <= columns:
        update_tile(d, rows, source, i, c, height, width=2)
        c += 2
    if c < columns:
        update_tile(d, rows, source, i, c, height, width=1)


# ---- one block ------------------------------------------------------------------------------------------------------
@kernel
def store_multipliers(d, block, offset, target, ntarget, i, start):
    """Stores P_ki = A_ki / D_k in hessian.pivot, and x_i -= P_ki x_k, for the block's rows k >= start and one column i.

    i: number of the column in a target block, which begins at column `offset` of the rows, and has ntarget dofs, the
    first one `target`.   Layout: P_ki is at k * ntarget + i.
    """
    P, inverse, x = d.hessian.pivot, d.hessian.dinv, d.primal.search
    A_0i = block.adr + offset + i  # address of column i in the block's first row
    x_i = x[target + i]
    for k in range(block.size - 1, start - 1, -1):  # k descending, as in all sums
        P_ki = d.hessian.H[A_0i + k * block.stride] * inverse[block.first + k]
        P[k * ntarget + i] = P_ki
        x_i = fma(-P_ki, x[block.first + k], x_i)
    x[target + i] = x_i


@kernel
def eliminate_rows(d, block, i, height):
    """Completes row i of a block, and with height 2 also row i - 1: subtracts the multiples of the block's rows below.

    The rows k > i are complete.  They are subtracted first; then, with height 2, row i from row i - 1.
    Writes: these rows of hessian.H, multipliers in hessian.pivot, 1 / D in hessian.dinv, primal.search.
    """
    A, first, above, size = d.hessian.H, block.first, block.above, block.size
    below = i + 1
    row = block.adr + i * block.stride
    # the rows from `below` on; a row of the block has a multiplier for each column of the block
    source = Sources(
        adr=block.adr + below * block.stride, stride=block.stride, n=size - below, pivot=below * size, ntarget=size
    )
    for r in unrolled(range(height)):
        store_multipliers(d, block, offset=above, target=first, ntarget=size, i=i - r, start=below)
    # up to the diagonal of row i = below - 1; row i - 1 has an unused entry there
    last = height - 1
    update_rows(d, row - last * block.stride, block.stride, source, i=i - last, columns=above + below, height=height)
    inverse = 1.0 / nonzero_pivot(A[row + above + i])
    d.hessian.dinv[first + i] = inverse
    if height == 2:
        # row j -= P_ij row i
        j = i - 1
        row_j = row - block.stride
        P_ij = A[row + above + j] * inverse
        for c in range(above + i):
            A[row_j + c] = fma(-P_ij, A[row + c], A[row_j + c])
        d.hessian.pivot[i * size + j] = P_ij
        d.hessian.dinv[first + j] = 1.0 / nonzero_pivot(A[row_j + above + j])
        d.primal.search[first + j] = fma(-P_ij, d.primal.search[first + i], d.primal.search[first + j])


@kernel
def factor_rows(d, block):
    """Eliminates the rows of a block among themselves, two at a time: row i -= L_ki row k for i < k.

    Afterwards, L replaces A in the block's own columns.
    """
    i = block.size - 1
    while i > 0:  # from the last rows
        eliminate_rows(d, block, i, height=2)
        i -= 2
    if i == 0:
        eliminate_rows(d, block, i=0, height=1)
    # L in the block's own columns: the multipliers P
    for k in range(1, block.size):
        own_columns = block.adr + k * block.stride + block.above
        for c in range(k):
            d.hessian.H[own_columns + c] = d.hessian.pivot[k * block.size + c]


@kernel
def update_block_rows(d, row, width, source, columns, triangle):
    """Updates `columns` columns of the target's rows, which begin at row, row + width, ... in H: two rows at a time.

    The target has source.ntarget rows, one for each multiplier of a source row.
    triangle: 0: only these columns.  1: the diagonal block follows them; row i is updated up to its column i.  In the
    first of two rows, the entry right of the diagonal is also computed, but not used.
    """
    i = 0
    while i + 2 <= source.ntarget:
        update_rows(d, row + i * width, width, source, i, columns + triangle * (i + 2), height=2)
        i += 2
    if i < source.ntarget:
        update_rows(d, row + i * width, width, source, i, columns + triangle * (i + 1), height=1)


@kernel
def find_run(d, entry, end, target_entry):
    """Returns (first and last entry in the target's list, last entry in the source's list) of a run of blocks.

    A run is blocks that are adjacent in the row lists of the source and the target.  This one begins with `entry` of
    the source's list, whose last entry is `end`.
    target_entry: entry of the target's list from which the first block is searched.
    """
    while d.hessian.blockcol[target_entry] != d.hessian.blockcol[entry]:
        target_entry += 1
    first_target_entry = target_entry
    while entry < end and d.hessian.blockcol[target_entry + 1] == d.hessian.blockcol[entry + 1]:
        entry += 1
        target_entry += 1
    return first_target_entry, target_entry, entry


@kernel
def eliminate_from(m, d, block, b, at):
    """Subtracts block b, whose rows are complete, from the rows of the target: block `at` of the row list of b.

    The columns that the rows of both have are updated run by run; a run is blocks that are adjacent in both row lists.
    Then L replaces A in the target's columns of the rows of b.
    """
    end = d.hessian.blockadr[b] + at  # the target's entry in the list of b; the target is the last one in its own list
    target_block = d.hessian.blockcol[end]
    target, ntarget = m.block_dofadr[target_block], m.block_dofnum[target_block]  # its first dof, and number of dofs
    offset = d.hessian.blockoffset[end]
    entry, target_entry = d.hessian.blockadr[b], d.hessian.blockadr[target_block]  # next ones of both lists
    for i in range(ntarget):
        store_multipliers(d, block, offset, target, ntarget, i, start=0)  # writes hessian.pivot and primal.search
    # start of the target's rows, and their distance: the columns of blocks above, then its own
    target_row = d.hessian.rowadr[target]
    width = d.hessian.rownnz[target] - 1 + ntarget
    while entry <= end:
        first_in_target, last_in_target, last_entry = find_run(d, entry, end, target_entry)
        start = d.hessian.blockoffset[entry]
        # columns of the run; if it ends with the target itself: those before, then the lower triangle of the target
        columns = d.hessian.blockoffset[last_entry] - start
        triangle = 1
        if last_entry < end:
            columns = columns + m.block_dofnum[d.hessian.blockcol[last_entry]]
            triangle = 0
        source = Sources(adr=block.adr + start, stride=block.stride, n=block.size, pivot=0, ntarget=ntarget)
        update_block_rows(d, target_row + d.hessian.blockoffset[first_in_target], width, source, columns, triangle)
        entry, target_entry = last_entry + 1, last_in_target + 1
    # P = L, of `store_multipliers`
    for k in range(block.size):
        for i in range(ntarget):
            d.hessian.H[block.adr + k * block.stride + offset + i] = d.hessian.pivot[k * ntarget + i]


@kernel
def factor_block(m, d, b):
    """Eliminates block b, whose rows are complete, and the right-hand side with it."""
    first, size = m.block_dofadr[b], m.block_dofnum[b]
    last = d.hessian.blocknum[b] - 1
    above = d.hessian.blockoffset[d.hessian.blockadr[b] + last]  # columns of the blocks before the last one, b
    block = Block(first=first, size=size, adr=d.hessian.rowadr[first], above=above, stride=above + size)
    factor_rows(d, block)
    # from the last target to the first: L replaces A in a target's columns, which lower targets do not read
    for at in range(last - 1, -1, -1):
        eliminate_from(m, d, block, b, at)


@kernel
def reduce_block(m, d, b):
    """Eliminates block b from the right-hand side by its stored factor: x_i -= L_ki x_k, as `factor_block` does."""
    first, row_list = m.block_dofadr[b], d.hessian.blockadr[b]
    above = d.hessian.rownnz[first] - 1  # number of columns of the blocks above
    for r in range(m.block_dofnum[b] - 1, -1, -1):  # in the order of the elimination
        row, xk = d.hessian.rowadr[first + r], d.primal.search[first + r]
        # in the block itself, then in the blocks above
        for i in range(r):
            d.primal.search[first + i] = fma(-d.hessian.H[row + above + i], xk, d.primal.search[first + i])
        for at in range(row_list, row_list + d.hessian.blocknum[b] - 1):
            entry = row + d.hessian.blockoffset[at]
            j = m.block_dofadr[d.hessian.blockcol[at]]
            for i in range(m.block_dofnum[d.hessian.blockcol[at]]):
                d.primal.search[j + i] = fma(-d.hessian.H[entry + i], xk, d.primal.search[j + i])


@stage
def factor_blocks(m, d):
    """Computes H = L^T D L in place, hessian.dinv = 1 / D, and search <- L^-T search.

    Blocks that the assembly has not computed keep their factor (entries/changes.py).
    Reads:  hessian.H (nH,) [kg, kg m, kg m^2], stored by blocks, its pattern; hessian.*; primal.live.
    Writes: hessian.*, hessian.dinv (nv,), hessian.assembled, primal.search (nv,).
    Cost:   sum over blocks b of s_b n_b^2 / 2, with n_b the length of the row of b.
    """
    for b in range(m.nblock - 1, -1, -1):  # from the last block: children are eliminated before their parents
        if changes_block(d, b):
            factor_block(m, d, b)
        else:
            reduce_block(m, d, b)
    d.hessian.assembled[0] = d.primal.live[0]


# ---- substitution ---------------------------------------------------------------------------------------------------
@kernel
def end_of_run(m, d, e, end):
    """Returns (entry after the run, its number of dofs): a run of consecutive blocks in a row list, from entry e on.

    Consecutive blocks have consecutive dofs.  The run ends before entry `end` at the latest.
    """
    block = d.hessian.blockcol[e]
    n = m.block_dofnum[block]
    e += 1
    while e < end and d.hessian.blockcol[e] == block + 1:
        block += 1
        n += m.block_dofnum[block]
        e += 1
    return e, n


@kernel
def substitute_rows(m, d, b, r, stride, count):
    """Computes x_k <- x_k / D_k - sum of L_kj x_j over the dofs j of blocks above, for `count` rows k of block b.

    r: number of the first of these rows in the block.  stride: distance of its rows in H.  The sums of several rows
    are independent, so they overlap in time.
    """
    L, x = d.hessian.H, d.primal.search
    k = m.block_dofadr[b] + r
    at = d.hessian.blockadr[b]
    row = d.hessian.rowadr[k]
    last = at + d.hessian.blocknum[b] - 1
    y = tuple(x[k + c] * d.hessian.dinv[k + c] for c in range(count))
    while at < last:
        first_entry = row + d.hessian.blockoffset[at]
        j = m.block_dofadr[d.hessian.blockcol[at]]
        at, n = end_of_run(m, d, at, last)
        for i in range(n):
            xj = x[j + i]
            entry = first_entry + i
            y = tuple(fma(-L[entry + c * stride], xj, y[c]) for c in range(count))
    for c in unrolled(range(count)):
        x[k + c] = y[c]


@stage
def reduce_blocks(m, d):
    """Computes search <- L^-T search, bitwise identical to its result as one more column of the factor.

    Reads:  hessian.H, the pattern.   Writes: primal.search (nv,).   Cost: O(entries).
    """
    for b in range(m.nblock - 1, -1, -1):  # in the order of the elimination
        reduce_block(m, d, b)


@stage
def expand_blocks(m, d):
    """Computes search <- L^-1 D^-1 search: sums each row's terms by ascending column.

    Reads:  hessian.H and hessian.dinv of `factor_blocks`, their pattern, primal.search.
    Writes: primal.search (nv,).
    Cost:   O(entries of hessian.H).
    """
    for b in range(m.nblock):
        first, size = m.block_dofadr[b], m.block_dofnum[b]
        row = d.hessian.rowadr[first]
        above = d.hessian.rownnz[first] - 1  # number of columns of the blocks above
        stride = above + size
        r = 0
        # the blocks above, three rows at a time
        while r + 3 <= size:
            substitute_rows(m, d, b, r, stride, count=3)
            r += 3
        while r < size:
            substitute_rows(m, d, b, r, stride, count=1)
            r += 1
        # the block itself: x_k -= L_ki x_i
        for k in range(1, size):
            xk = d.primal.search[first + k]
            own_columns = row + k * stride + above
            for i in range(k):
                xk = fma(-d.hessian.H[own_columns + i], d.primal.search[first + i], xk)
            d.primal.search[first + k] = xk
