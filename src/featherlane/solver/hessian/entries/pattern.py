"""The pattern of the Hessian: where each way to store it has an entry.

Rows of ancestors (TREE, APART) are those of the model's own tree, and rows closed under paths (PATHS) those of a wider
one: dof j stands at place H_rownnz[j] - 1 of every row that has it.  Block rows (BLOCKS with the fill-in of the
factor, ORDERED without) list the blocks of dofs of each row (ways/block_rows.py).
"""

from featherlane.prelude import *

# what H_pattern holds; 0: nothing yet
TREE, APART = 1, 3
PATHS = 5
BLOCKS, ORDERED = 2, 4


@kernel
def has_block_rows(d):
    """Does H have block rows?"""
    return d.H_pattern[0] == BLOCKS or d.H_pattern[0] == ORDERED


@kernel
def has_couplings(d):
    """Does H have entries between branches?"""
    return d.H_pattern[0] == PATHS or has_block_rows(d)


@kernel
def is_above(m, i, j):
    """Is dof i an ancestor of dof j, or dof j itself?"""
    while j > i:
        j = m.dof_parentid[j]
    return i == j


# ---- places in block rows -------------------------------------------------------------------------------------------
@kernel
def last_block(m, d, i):
    """The number in H_blockcol of the diagonal block in the row of dof i."""
    b = m.dof_blockid[i]
    return d.H_blockadr[b] + d.H_blocknum[b] - 1


@kernel
def column_block(m, d, e, j):
    """The number in H_blockcol of the block of dof j, in the row that number e belongs to, at e or before."""
    c = m.dof_blockid[j]
    while d.H_blockcol[e] != c:
        e -= 1
    return e


@kernel
def column_place(m, d, e, j):
    """The place of dof j, whose block has number e, in the row."""
    return d.H_blockplace[e] + j - m.block_dofadr[d.H_blockcol[e]]


@kernel
def next_place(m, d, blocks, e, j):
    """(the number of the block of dof j, at e or before, where there are blocks; the place of dof j) in a row."""
    if blocks:
        e = column_block(m, d, e, j)
        place = column_place(m, d, e, j)
    else:
        place = d.H_rownnz[j] - 1
    return e, place


@kernel
def block_place(m, d, b, c):
    """Where the columns of block c begin in the rows of block b, which hold them."""
    if has_block_rows(d):
        low = d.H_blockadr[b]
        high = low + d.H_blocknum[b] - 1
        while low < high:
            middle = (low + high) >> 1
            if d.H_blockcol[middle] < c:
                low = middle + 1
            else:
                high = middle
        place = d.H_blockplace[low]
    else:
        place = d.H_rownnz[m.block_dofadr[c]] - 1
    return place
