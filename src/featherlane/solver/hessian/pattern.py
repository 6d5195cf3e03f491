"""Where the Hessian has entries: the model's own tree, or, where rows couple branches, a wider tree or block rows.

Rows closed under paths (path.py) serve few trees, where they fill little more than must be: a tile of humanoids that
touch themselves is assembled and factored in two thirds of the time that block rows take, a stack of eight boxes in
1.6 times that time.  Block rows with exact fill serve all else.  Every entry sees the same roundings in the same order
in both, so the choice, which the tile's couplings make, never shows in a world's bits.

Two branches are coupled by contacts between their bodies and by general rows; a coupling is named by the last dof of
each branch.  The list of couplings is sorted, so the order in which they are added up is that of any company.

Blocks of dofs (model/ancestors.py) are eliminated in the model's own order, from the last one on, whatever couples
them: an order made for a tile's couplings would show in a world's bits, zeros that a wider pattern brings do not.
The row of a block holds its ancestors, those of the branches that it is coupled to, and what rows below left:

    row(b) = chain(b) + sum over couplings (b, c) of chain(c) + sum over blocks k with parent b of row(k) less k,

where the parent of k is the last block of its row before k: the elimination tree.
Source: J. Liu, "The role of elimination trees in sparse factorization" (1990); Davis, Direct Methods for Sparse Linear
Systems, sec. 4.4.
"""

from __future__ import annotations

from featherlane.collision.slot import active_worlds
from featherlane.lanes import kernel, real, stage
from featherlane.lanes.sort import sort
from featherlane.solver.hessian.ordered import mark_ordered
from featherlane.solver.hessian.path import find_path_rows, join_paths, own_tree, path_cost
from featherlane.solver.rows.rows import ACTED

# what H_pattern holds; 0: nothing yet
TREE, APART = 1, 3  # rows of ancestors
PATHS = 5  # the same on a tree of its own, closed under the paths of coupled branches
COUPLED, ORDERED = 2, 4  # block rows: with fill-in, without
PATH_WORTH = (
    2.0  # times the squares of the rows with exact fill: the two cost the same at 2.8, in a stack of four boxes
)
DOF_BITS = 24  # of the lower dof in a coupling's key


# ---- couplings ------------------------------------------------------------------------------------------------------
@kernel
def coupling_key_of(i, j):
    """The key of the coupling of two branches that end with dofs i and j."""
    return (i << DOF_BITS) | j if i > j else (j << DOF_BITS) | i


@kernel
def coupling_tips(d, k):
    """The last dofs of the two branches of coupling k, the higher one first."""
    key = d.coupling_key[k]
    return key >> DOF_BITS, key & ((1 << DOF_BITS) - 1)


@kernel
def add_coupling(m, d, n, i, j):
    """Dofs i and j end two branches that are coupled: list them, but if they were the last ones, too."""
    key = coupling_key_of(i, j)
    if n == 0 or d.coupling_key[n - 1] != key:
        d.coupling_key[n] = key
        n += 1
    return n


@kernel
def is_above(m, i, j):
    """Is dof i an ancestor of dof j, or dof j itself?"""
    while j > i:
        j = m.dof_parentid[j]
    return i == j


@kernel
def ends_branch(m, d, i, tips):
    """Is dof i above none of the first tips of coupling_room?  They are later dofs, the nearest one the last."""
    t = tips - 1
    while t >= 0 and not is_above(m, i, d.coupling_room[t]):
        t -= 1
    return t < 0


@kernel
def couple_row(m, d, n, k):
    """Couplings of a general row: of the ends of its branches, each with each.

    Of three branches and more every two are coupled, and only so their trees have entries with each other where the
    rows of the pattern have no fill-in.
    """
    o, tips, below = d.genrow_dofadr[k], 0, -1
    for e in range(o + d.genrow_dofnum[k] - 1, o - 1, -1):
        i = d.genrow_dof[e]
        if (below < 0 or m.dof_parentid[below] != i) and ends_branch(m, d, i, tips):
            for t in range(tips):
                n = add_coupling(m, d, n, d.coupling_room[t], i)
            d.coupling_room[tips] = i
            tips += 1
        below = i
    return n


@kernel
def list_couplings(m, d):
    """All couplings of the tile's slots, sorted, each once."""
    n = 0
    for k in range(d.ncon_slot[0]):
        other = d.con_body[2 * k + 1]
        if other > 0:
            n = add_coupling(m, d, n, m.body_lastdof[d.con_body[2 * k]], m.body_lastdof[other])
    for k in range(d.ngenrow[0]):
        n = couple_row(m, d, n, k)
    sort(d.coupling_key, d.coupling_room, n)
    count = 0
    for k in range(n):
        if count == 0 or d.coupling_key[count - 1] != d.coupling_key[k]:
            d.coupling_key[count] = d.coupling_key[k]
            count += 1
    d.ncoupling[0] = count


@kernel
def find_coupling(m, d, i, j):
    """The number of the coupling of dofs i and j."""
    key, low, high = coupling_key_of(i, j), 0, d.ncoupling[0] - 1
    while low < high:
        middle = (low + high) >> 1
        if d.coupling_key[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def name_couplings(m, d):
    """The coupling of each slot."""
    for k in range(d.ncon_slot[0]):
        other = d.con_body[2 * k + 1]
        d.con_coupling[k] = -1
        if other > 0:
            d.con_coupling[k] = find_coupling(m, d, m.body_lastdof[d.con_body[2 * k]], m.body_lastdof[other])


@kernel
def same_couplings(d):
    """Are they those that the pattern was made for?"""
    k = 0
    if d.ncoupling[0] == d.ncoupling[1]:
        while k < d.ncoupling[0] and d.coupling_key[k] == d.coupling_last[k]:
            k += 1
    return k == d.ncoupling[0]


# ---- block rows -----------------------------------------------------------------------------------------------------
@kernel
def mark_chain(m, d, c, b, low):
    """Block c and its ancestors are in the row of b; returns the lowest block of the row."""
    while c >= 0 and d.H_blockmark[c] != b:
        d.H_blockmark[c] = b
        low = c if c < low else low
        c = m.block_parentid[c]
    return low


@kernel
def mark_rows(m, d, b, low):
    """What the rows that are eliminated into b leave in its row; without fill-in, those of its own tree alone.

    Ancestors of a branch's last block get the columns of the coupling that way: H has entries there.
    """
    c, tree = d.H_blockchild[b], m.dof_treeid[m.block_dofadr[b]]
    while c >= 0:
        if d.H_fill[0] or m.dof_treeid[m.block_dofadr[c]] == tree:
            o = d.H_blockadr[c]
            low = d.H_blockcol[o] if d.H_blockcol[o] < low else low
            for e in range(o, o + d.H_blocknum[c] - 1):
                d.H_blockmark[d.H_blockcol[e]] = b
        c = d.H_blocknext[c]
    return low


@kernel
def list_row(m, d, b, low, adr):
    """The marked blocks in ascending order, and the places of their columns; returns the row's width."""
    n, width = 0, 0
    for c in range(low, b + 1):
        if d.H_blockmark[c] == b:
            d.H_blockcol[adr + n] = c
            d.H_blockplace[adr + n] = width
            width += m.block_dofnum[c]
            n += 1
    d.H_blockadr[b] = adr
    d.H_blocknum[b] = n
    if n > 1:
        p = d.H_blockcol[adr + n - 2]
        d.H_blocknext[b] = d.H_blockchild[p]
        d.H_blockchild[p] = b
    return width


@kernel
def place_rows_of(m, d, b, adr, width):
    """Rows of one block: as long as the last of them, whose diagonal is the last entry."""
    first, size = m.block_dofadr[b], m.block_dofnum[b]
    for i in range(size):
        d.H_rowadr[first + i] = adr + i * width
        d.H_rownnz[first + i] = width - size + i + 1


@stage
def find_block_rows(m, d):
    """Block rows for the couplings; con_overflow[0] = 1 where there is no room for them.

    Reads:  coupling_key, block_parentid.
    Writes: H_blockadr, H_blocknum (nblock,), H_blockcol, H_blockplace (nHblock,), H_rowadr, H_rownnz (nv,).
    Cost:   O(blocks of the pattern + nblock^2 / 2).
    """
    for b in range(m.nblock):
        d.H_blockchild[b] = -1
        d.H_blockmark[b] = -1
    adr, entries, p = 0, 0, d.ncoupling[0] - 1
    for k in range(m.nblock):
        b = m.nblock - 1 - k
        low = mark_chain(m, d, b, b, b)
        low = mark_rows(m, d, b, low)
        while p >= 0 and m.dof_blockid[coupling_tips(d, p)[0]] == b:
            low = mark_chain(m, d, m.dof_blockid[coupling_tips(d, p)[1]], b, low)
            p -= 1
        if adr + b + 1 - low > d.nHblock:
            d.con_overflow[0] = 1
            break
        width = list_row(m, d, b, low, adr)
        if entries + width * m.block_dofnum[b] > d.nH:
            d.con_overflow[0] = 1
            break
        place_rows_of(m, d, b, entries, width)
        adr += d.H_blocknum[b]
        entries += width * m.block_dofnum[b]


# ---- the pattern of a step ------------------------------------------------------------------------------------------
@kernel
def take_tree(m, d, label):
    """The model's own tree as the pattern: rows of ancestors, and how many rows lie below each."""
    for i in range(m.nv):
        d.H_rowadr[i] = m.chain_rowadr[i]
        d.H_rownnz[i] = m.chain_rownnz[i]
        d.H_below[i] = 0
    for i in range(m.nv - 1, -1, -1):
        p = m.dof_parentid[i]
        if p >= 0:
            d.H_below[p] = d.H_below[p] + d.H_below[i] + 1
    d.H_pattern[0] = label


@kernel
def closes_paths(m, d):
    """Are rows closed under paths cheaper than the block rows just found?  They are where this fills little more."""
    exact = 0
    for i in range(m.nv):
        exact += d.H_rownnz[i] * d.H_rownnz[i]
    own_tree(m, d)
    for k in range(d.ncoupling[0]):
        i, j = coupling_tips(d, k)
        join_paths(d, i, j)
    return path_cost(m, d) < PATH_WORTH * exact


@kernel
def take_coupled(m, d, label):
    """Rows for the couplings, found anew where they differ from those of the last step."""
    kept = d.H_pattern[0] == label or (d.H_pattern[0] == PATHS and label == COUPLED)
    if not kept or not same_couplings(d):
        d.H_fill[0] = 1 if label == COUPLED else 0
        find_block_rows(m, d)
        d.H_pattern[0] = label
        if label == COUPLED and d.npath > 0 and d.con_overflow[0] == 0 and closes_paths(m, d):
            find_path_rows(m, d)
            d.H_pattern[0] = PATHS
        d.ncoupling[1] = d.ncoupling[0]
        for k in range(d.ncoupling[0]):
            d.coupling_last[k] = d.coupling_key[k]


@kernel
def own_all_contacts(m, d):
    """Where trees are taken apart the contacts of pairs, too, are stiffnesses of their bodies."""
    for b in range(m.nbody):
        if d.body_reached[b] > 0:
            d.body_reached[b] = ACTED


@kernel
def find_pattern(m, d):
    """The pattern for the tile's slots: the model's own tree where no slot couples two branches.

    Where the rows do not fit, or some worlds go each in an order of its own and others do not, con_overflow says so,
    to split the tile; in one world trees are taken apart.
    """
    list_couplings(m, d)
    if d.ncoupling[0] > 0:
        name_couplings(m, d)
        some, others = 0, 1
        if d.ngraph > 0:
            some, others = mark_ordered(m, d)
        if some and others:
            d.con_overflow[0] = 1
        else:
            take_coupled(m, d, ORDERED if some else COUPLED)
        if d.con_overflow[0] and active_worlds(d) > 1:
            d.H_pattern[0] = 0
        elif d.con_overflow[0]:
            d.con_overflow[0] = 0
            d.ordered[0] = real(d, 0.0)
            take_tree(m, d, APART)
            own_all_contacts(m, d)
    elif d.H_pattern[0] != TREE:
        take_tree(m, d, TREE)


@kernel
def has_block_rows(d):
    """Does H have block rows?"""
    return d.H_pattern[0] == COUPLED or d.H_pattern[0] == ORDERED


@kernel
def has_couplings(d):
    """Does H have entries between branches?"""
    return d.H_pattern[0] == PATHS or has_block_rows(d)


# ---- places ---------------------------------------------------------------------------------------------------------
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
