"""Sparsity pattern of the Hessian: the places of its entries in each storage format.

Rows of ancestors (TREE, APART) are those of the model's own tree, and rows closed under paths (PATHS) those of a wider
one: dof j is at place hessian.rownnz[j] - 1 of every row that contains it.  Block rows (BLOCKS with the fill-in of the
factor, ORDERED without) list the blocks of dofs of each row (factorizations/block_rows.py).
"""

from featherlane.prelude import *

# values of hessian.pattern; 0: not set
TREE, APART = 1, 3
PATHS = 5
BLOCKS, ORDERED = 2, 4


@kernel
def has_block_rows(d):
    """Checks whether H has block rows."""
    return d.hessian.pattern[0] == BLOCKS or d.hessian.pattern[0] == ORDERED


@kernel
def has_couplings(d):
    """Checks whether H has entries between branches."""
    return d.hessian.pattern[0] == PATHS or has_block_rows(d)


@kernel
def is_free_body(m, t):
    """Checks whether tree t is a single free body: it has the six dofs of a free joint."""
    return m.tree_dofnum[t] == 6 and is_free_joint(m.jnt_type[m.dof_jntid[m.tree_dofadr[t]]])


@kernel
def in_panel(m, d, k):
    """Checks whether contact k is added in panels (free_panels.py), and not in H: it acts on free bodies only."""
    other, free = d.con_body[k, 1], False
    if d.hessian.pattern[0] == ORDERED and is_free_body(m, m.body_treeid[d.con_body[k, 0]]):
        free = other == 0 or is_free_body(m, m.body_treeid[other])
    return free


@kernel
def is_above(m, i, j):
    """Checks whether dof i is an ancestor of dof j, or dof j itself."""
    while j > i:
        j = m.dof_parentid[j]
    return i == j


# ---- places in block rows -------------------------------------------------------------------------------------------
@kernel
def last_block(m, d, i):
    """Returns the number in hessian.blockcol of the diagonal block in the row of dof i."""
    b = m.dof_blockid[i]
    return d.hessian.blockadr[b] + d.hessian.blocknum[b] - 1


@kernel
def column_block(m, d, e, j):
    """Returns the number in hessian.blockcol of the block of dof j, in the row with number e, at e or before."""
    c = m.dof_blockid[j]
    while d.hessian.blockcol[e] != c:
        e -= 1
    return e


@kernel
def column_place(m, d, e, j):
    """Returns the place of dof j, whose block has number e, in the row."""
    return d.hessian.blockplace[e] + j - m.block_dofadr[d.hessian.blockcol[e]]


@kernel
def next_place(m, d, blocks, e, j):
    """Returns (number of dof j's block, at e or before, if the row has blocks; place of dof j) in a row."""
    if blocks:
        e = column_block(m, d, e, j)
        place = column_place(m, d, e, j)
    else:
        place = d.hessian.rownnz[j] - 1
    return e, place


@kernel
def block_place(m, d, b, c):
    """Returns the place at which the columns of block c begin in the rows of block b, which contain them."""
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
