"""The pattern of the Hessian: where each way to store it has an entry.

Rows of ancestors (TREE, APART) are those of the model's own tree, and rows closed under paths (PATHS) those of a wider
one: dof j stands at place hessian.rownnz[j] - 1 of every row that has it.  Block rows (BLOCKS with the fill-in of the
factor, ORDERED without) list the blocks of dofs of each row (ways/block_rows.py).
"""

from featherlane.prelude import *

# what hessian.pattern holds; 0: nothing yet
TREE, APART = 1, 3
PATHS = 5
BLOCKS, ORDERED = 2, 4


@kernel
def has_block_rows(d):
    """Does H have block rows?"""
    return d.hessian.pattern[0] == BLOCKS or d.hessian.pattern[0] == ORDERED


@kernel
def has_couplings(d):
    """Does H have entries between branches?"""
    return d.hessian.pattern[0] == PATHS or has_block_rows(d)


@kernel
def is_above(m, i, j):
    """Is dof i an ancestor of dof j, or dof j itself?"""
    while j > i:
        j = m.dof_parentid[j]
    return i == j


# ---- places in block rows -------------------------------------------------------------------------------------------
@kernel
def last_block(m, d, i):
    """The number in hessian.blockcol of the diagonal block in the row of dof i."""
    b = m.dof_blockid[i]
    return d.hessian.blockadr[b] + d.hessian.blocknum[b] - 1


@kernel
def column_block(m, d, e, j):
    """The number in hessian.blockcol of the block of dof j, in the row that number e belongs to, at e or before."""
    c = m.dof_blockid[j]
    while d.hessian.blockcol[e] != c:
        e -= 1
    return e


@kernel
def column_place(m, d, e, j):
    """The place of dof j, whose block has number e, in the row."""
    return d.hessian.blockplace[e] + j - m.block_dofadr[d.hessian.blockcol[e]]


@kernel
def next_place(m, d, blocks, e, j):
    """(the number of the block of dof j, at e or before, where there are blocks; the place of dof j) in a row."""
    if blocks:
        e = column_block(m, d, e, j)
        place = column_place(m, d, e, j)
    else:
        place = d.hessian.rownnz[j] - 1
    return e, place


@kernel
def block_place(m, d, b, c):
    """Where the columns of block c begin in the rows of block b, which hold them."""
    if has_block_rows(d):
        low = d.hessian.blockadr[b]
        high = low + d.hessian.blocknum[b] - 1
        while low < high:
            middle = (low + high) >> 1
            if d.hessian.blockcol[middle] < c:
                low = middle + 1
            else:
                high = middle
        place = d.hessian.blockplace[low]
    else:
        place = d.hessian.rownnz[m.block_dofadr[c]] - 1
    return place
