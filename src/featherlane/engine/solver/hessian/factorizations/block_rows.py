"""Block rows: the pattern of a Hessian whose branches are coupled, with exactly the fill-in of its factor.

Blocks of dofs (model/ancestors.py) are eliminated in the model's order, from the last one, whatever couples them.  An
order for a tile's couplings would change a world's rounding; the exact zeros of a wider pattern do not.
The row of a block holds its ancestors, those of the branches that it is coupled to, and the fill-in of rows below:

    row(b) = chain(b) + sum over couplings (b, c) of chain(c) + sum over blocks k with parent b of row(k) less k,

with the parent of k the last block of its row before k: the elimination tree.
The row of b is built as marks, hessian.blockmark[c] = b for each block c in it, and then stored as a list: entries
blockadr[b] ... of hessian.blockcol, blocknum[b] of them, ascending, b itself the last.  The blocks k with parent b are
a linked list: blockchild[b], then blocknext of each, -1 at the end.
Row i of H begins at hessian.H[rowadr[i]] and has rownnz[i] entries, the diagonal last.
Block b has the dofs from block_dofadr[b] on, block_dofnum[b] of them; block_parentid[b] is its parent in the model's
tree, -1 if there is none.  The couplings p < ncoupling[0] are pairs of branches: `coupling_tips` returns the last dofs
of both, the higher one first.
hessian.fill: 1 stores all fill-in; 0 none between trees; -1 likewise, and omits the couplings of two free bodies.
Source: J. Liu, "The role of elimination trees in sparse factorization" (1990); Davis, Direct Methods for Sparse Linear
Systems, sec. 4.4.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.hessian.entries.couplings import couples_free_bodies, coupling_tips
from featherlane.engine.solver.hessian.entries.pattern import find_groups


@kernel
def mark_ancestors(m, d, c, b, lowest):
    """Marks block c and its ancestors in hessian.blockmark as blocks of the row of b.

    lowest: lowest block of the row so far.  Returns the new one.
    """
    while c >= 0 and d.hessian.blockmark[c] != b:  # all blocks above a marked one are marked
        d.hessian.blockmark[c] = b
        lowest = c if c < lowest else lowest
        c = m.block_parentid[c]
    return lowest


@kernel
def mark_fill_in(m, d, b, lowest):
    """Marks the fill-in of the row of b: the blocks of the rows that are eliminated into b (its children).

    Without fill-in between trees (hessian.fill <= 0), only children of b's own tree count.  Their blocks are entries of
    H itself: a coupling acts on all ancestors of its last block, but is marked in the row of that block only.
    lowest: lowest block of the row so far.  Returns the new one.
    """
    c, tree = d.hessian.blockchild[b], m.dof_treeid[m.block_dofadr[b]]
    while c >= 0:
        if d.hessian.fill[0] > 0 or m.dof_treeid[m.block_dofadr[c]] == tree:
            row = d.hessian.blockadr[c]
            lowest = d.hessian.blockcol[row] if d.hessian.blockcol[row] < lowest else lowest
            # all blocks of the row of c but the last, c itself
            for e in range(row, row + d.hessian.blocknum[c] - 1):
                d.hessian.blockmark[d.hessian.blockcol[e]] = b
        c = d.hessian.blocknext[c]
    return lowest


@kernel
def list_marked_blocks(m, d, b, lowest, adr):
    """Stores the row of block b: its marked blocks in ascending order, and the offsets of their columns.

    lowest: lowest block of the row.  adr: position of the row in hessian.blockcol.  Returns the row's width in dofs.
    Writes: hessian.blockcol, blockoffset, blockadr, blocknum of the row; b in the list of its parent's blockchild.
    """
    n, width = 0, 0
    for c in range(lowest, b + 1):
        if d.hessian.blockmark[c] == b:
            d.hessian.blockcol[adr + n] = c
            d.hessian.blockoffset[adr + n] = width
            width += m.block_dofnum[c]
            n += 1
    d.hessian.blockadr[b] = adr
    d.hessian.blocknum[b] = n
    # the parent in the elimination tree is the last block before b
    if n > 1:
        parent = d.hessian.blockcol[adr + n - 2]
        d.hessian.blocknext[b] = d.hessian.blockchild[parent]
        d.hessian.blockchild[parent] = b
    return width


@kernel
def store_block_row_addresses(m, d, b, entry, width):
    """Sets the addresses of the rows of block b in H, from `entry` on.

    Each takes `width` entries, the length of the last one; a row's last used entry is on the diagonal.
    """
    first, size = m.block_dofadr[b], m.block_dofnum[b]
    for i in range(size):
        d.hessian.rowadr[first + i] = entry + i * width
        d.hessian.rownnz[first + i] = width - size + i + 1


@stage
def find_block_rows(m, d):
    """Builds block rows for the couplings; sets con_overflow[0] = 1 if they exceed the capacity.

    Reads:  hessian.coupling_key, block_parentid.
    Writes: hessian.*, hessian.blocknum (nblock,), hessian.blockoffset (nHblock,), hessian.rownnz (nv,); con_overflow.
    Cost:   O(blocks of the pattern + nblock^2 / 2).
    """
    for b in range(m.nblock):
        d.hessian.blockchild[b] = -1
        d.hessian.blockmark[b] = -1
    adr, entries = 0, 0  # entries of the rows so far in blockcol, and in H
    p = d.hessian.ncoupling[0] - 1  # the next coupling, from the last one: couplings ascend by their higher tip
    for k in range(m.nblock):
        b = m.nblock - 1 - k  # from the last block: rows below give the fill-in of those above
        lowest = mark_ancestors(m, d, c=b, b=b, lowest=b)
        lowest = mark_fill_in(m, d, b, lowest)
        # the couplings whose higher tip is in b
        while p >= 0 and m.dof_blockid[coupling_tips(d, p)[0]] == b:
            # with fill = -1, panels hold the couplings of two free bodies
            if d.hessian.fill[0] >= 0 or not couples_free_bodies(m, d, p):
                lowest = mark_ancestors(m, d, m.dof_blockid[coupling_tips(d, p)[1]], b, lowest)
            p -= 1
        if adr + b + 1 - lowest > d.nHblock:  # capacity; the row has at most the blocks from lowest to b
            d.con_overflow[0] = 1
            break
        width = list_marked_blocks(m, d, b, lowest, adr)
        if entries + width * m.block_dofnum[b] > d.nH:
            d.con_overflow[0] = 1
            break
        store_block_row_addresses(m, d, b, entries, width)
        adr += d.hessian.blocknum[b]
        entries += width * m.block_dofnum[b]
    if d.con_overflow[0] == 0:
        find_groups(m, d)
