"""Sparsity pattern of the Hessian: the offsets of its entries in each storage format.

Row i of H begins at hessian.H[rowadr[i]] and has rownnz[i] entries, the diagonal last.  The *offset* of a dof j in row
i is the position of its entry in the row: H_ij = hessian.H[rowadr[i] + offset].

Rows of ancestors (TREE, APART) are those of the model's own tree, and rows closed under paths (PATHS) those of a wider
one.  There, dof j has the offset rownnz[j] - 1 in every row that contains it.
Block rows (BLOCKS with the fill-in of the factor, ORDERED without) list the blocks of dofs of each row.  Entry e of the
list is the block blockcol[e], whose first dof has the offset blockoffset[e].  All rows of block b share the entries
blockadr[b] to blockadr[b] + blocknum[b] - 1; the last one is b itself (factorizations/block_rows.py).
"""

from featherlane.engine.prelude import *

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
    other = d.con_body[k, 1]
    only_free = False
    if d.hessian.pattern[0] == ORDERED and is_free_body(m, m.body_treeid[d.con_body[k, 0]]):
        only_free = other == 0 or is_free_body(m, m.body_treeid[other])  # other is 0 if it does not move
    return only_free


@kernel
def is_above(m, i, j):
    """Checks whether dof i is an ancestor of dof j, or dof j itself."""
    while j > i:
        j = m.dof_parentid[j]  # parents have lower numbers
    return i == j


# ---- groups of blocks: changes.py ------------------------------------------------------------------------------------
@kernel
def find_groups(m, d):
    """Computes hessian.group from block rows: the group of a block is that of its parent in the elimination tree."""
    for b in range(m.nblock):
        n = d.hessian.blocknum[b]
        parent = d.hessian.blockcol[d.hessian.blockadr[b] + n - 2] if n > 1 else b  # lower than b: its group is known
        d.hessian.group[b] = d.hessian.group[parent] if n > 1 else b


@kernel
def changes_block(d, b):
    """Checks whether this assembly computes the rows of block b."""
    return d.hessian.partial[0] == 0 or d.hessian.changed[d.hessian.group[b]] != 0


@kernel
def changes_dof(m, d, i):
    """Checks whether this assembly computes row i."""
    return d.hessian.partial[0] == 0 or d.hessian.changed[d.hessian.group[m.dof_blockid[i]]] != 0


@kernel
def changes_body(m, d, b):
    """Checks whether this assembly computes the stiffness of body b; bodies that cannot move count as changed."""
    return d.hessian.partial[0] == 0 or m.body_lastdof[b] < 0 or changes_dof(m, d, m.body_lastdof[b])


# ---- offsets in block rows -------------------------------------------------------------------------------------------
@kernel
def diagonal_block(m, d, i):
    """Returns the entry of the block list for the block of dof i itself, in the row of dof i."""
    b = m.dof_blockid[i]
    return d.hessian.blockadr[b] + d.hessian.blocknum[b] - 1


@kernel
def find_block(m, d, e, j):
    """Returns the entry of the block list for the block of dof j, searched from entry e backward in the same row."""
    block = m.dof_blockid[j]
    while d.hessian.blockcol[e] != block:
        e -= 1
    return e


@kernel
def offset_in_block(m, d, e, j):
    """Returns the offset of dof j in a row, given the entry e of its block in the row's block list."""
    return d.hessian.blockoffset[e] + j - m.block_dofadr[d.hessian.blockcol[e]]


@kernel
def find_offset(m, d, has_blocks, e, j):
    """Returns (entry of dof j's block in the row's block list, offset of dof j in the row).

    The search begins at entry e and goes backward.  Without block rows (has_blocks = 0), e is returned unchanged.
    """
    if has_blocks:
        e = find_block(m, d, e, j)
        offset = offset_in_block(m, d, e, j)
    else:
        offset = d.hessian.rownnz[j] - 1
    return e, offset


@kernel
def block_offset(m, d, b, c):
    """Returns the offset of the first dof of block c in the rows of block b, which contain block c."""
    if has_block_rows(d):
        # binary search for c in the row's block list, which ascends
        low = d.hessian.blockadr[b]
        high = low + d.hessian.blocknum[b] - 1
        while low < high:
            middle = (low + high) >> 1
            if d.hessian.blockcol[middle] < c:
                low = middle + 1
            else:
                high = middle
        offset = d.hessian.blockoffset[low]
    else:
        offset = d.hessian.rownnz[m.block_dofadr[c]] - 1
    return offset
