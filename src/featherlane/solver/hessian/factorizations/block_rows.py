"""Block rows: the pattern of a Hessian whose branches are coupled, with exactly the fill-in of its factor.

Blocks of dofs (model/ancestors.py) are eliminated in the model's order, from the last one, whatever couples them.  An
order for a tile's couplings would change a world's rounding; the exact zeros of a wider pattern do not.
The row of a block holds its ancestors, those of the branches that it is coupled to, and the fill-in of rows below:

    row(b) = chain(b) + sum over couplings (b, c) of chain(c) + sum over blocks k with parent b of row(k) less k,

with the parent of k the last block of its row before k: the elimination tree.
Source: J. Liu, "The role of elimination trees in sparse factorization" (1990); Davis, Direct Methods for Sparse Linear
Systems, sec. 4.4.
"""

from featherlane.prelude import *
from featherlane.solver.hessian.entries.couplings import couples_free_bodies, coupling_tips


@kernel
def mark_chain(m, d, c, b, low):
    """Adds block c and its ancestors to the row of b; returns the lowest block of the row."""
    while c >= 0 and d.hessian.blockmark[c] != b:
        d.hessian.blockmark[c] = b
        low = c if c < low else low
        c = m.block_parentid[c]
    return low


@kernel
def mark_rows(m, d, b, low):
    """Adds the fill-in of rows that are eliminated into b to its row; without fill-in, only that in its tree.

    This also gives the ancestors of a branch's last block the coupling's columns, in which H has entries.
    """
    c, tree = d.hessian.blockchild[b], m.dof_treeid[m.block_dofadr[b]]
    while c >= 0:
        if d.hessian.fill[0] > 0 or m.dof_treeid[m.block_dofadr[c]] == tree:
            o = d.hessian.blockadr[c]
            low = d.hessian.blockcol[o] if d.hessian.blockcol[o] < low else low
            for e in range(o, o + d.hessian.blocknum[c] - 1):
                d.hessian.blockmark[d.hessian.blockcol[e]] = b
        c = d.hessian.blocknext[c]
    return low


@kernel
def list_marked_blocks(m, d, b, low, adr):
    """Lists the marked blocks in ascending order, and the places of their columns; returns the row's width."""
    n, width = 0, 0
    for c in range(low, b + 1):
        if d.hessian.blockmark[c] == b:
            d.hessian.blockcol[adr + n] = c
            d.hessian.blockplace[adr + n] = width
            width += m.block_dofnum[c]
            n += 1
    d.hessian.blockadr[b] = adr
    d.hessian.blocknum[b] = n
    if n > 1:
        p = d.hessian.blockcol[adr + n - 2]
        d.hessian.blocknext[b] = d.hessian.blockchild[p]
        d.hessian.blockchild[p] = b
    return width


@kernel
def place_rows_of(m, d, b, adr, width):
    """Places the rows of one block: all as long as the last of them, whose last entry is on the diagonal."""
    first, size = m.block_dofadr[b], m.block_dofnum[b]
    for i in range(size):
        d.hessian.rowadr[first + i] = adr + i * width
        d.hessian.rownnz[first + i] = width - size + i + 1


@stage
def find_block_rows(m, d):
    """Builds block rows for the couplings; sets con_overflow[0] = 1 if they exceed the capacity.

    Reads:  hessian.coupling_key, block_parentid.
    Writes: hessian.*, hessian.blocknum (nblock,), hessian.blockplace (nHblock,), hessian.rownnz (nv,); con_overflow.
    Cost:   O(blocks of the pattern + nblock^2 / 2).
    """
    for b in range(m.nblock):
        d.hessian.blockchild[b] = -1
        d.hessian.blockmark[b] = -1
    adr, entries, p = 0, 0, d.hessian.ncoupling[0] - 1
    for k in range(m.nblock):
        b = m.nblock - 1 - k
        low = mark_chain(m, d, b, b, b)
        low = mark_rows(m, d, b, low)
        while p >= 0 and m.dof_blockid[coupling_tips(d, p)[0]] == b:
            if d.hessian.fill[0] >= 0 or not couples_free_bodies(m, d, p):
                low = mark_chain(m, d, m.dof_blockid[coupling_tips(d, p)[1]], b, low)
            p -= 1
        if adr + b + 1 - low > d.nHblock:
            d.con_overflow[0] = 1
            break
        width = list_marked_blocks(m, d, b, low, adr)
        if entries + width * m.block_dofnum[b] > d.nH:
            d.con_overflow[0] = 1
            break
        place_rows_of(m, d, b, entries, width)
        adr += d.hessian.blocknum[b]
        entries += width * m.block_dofnum[b]
