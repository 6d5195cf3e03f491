"""Rows closed under paths: the pattern of a Hessian with coupled branches, as that of a wider tree.

A coupling puts two branches on one path to the root, so the rows of the pattern are again those of a tree: row i
holds the ancestors of i, then i, and begins the row of each of its descendants.  Dof j is at the same offset in every
row that contains it.  The column-wise L^T D L of a model's own tree (dynamics/sparse/tree_factor.py) serves it, with
the rows below a column as a list (`listed`; the model's own tree needs no list, up to 11 % faster).

hessian.parent[i] is the parent of dof i in the wider tree, -1 if there is none.  Row i begins at rowadr[i] of
hessian.colind and of H, and has rownnz[i] entries.  `coupling_tips` returns the last dofs of the two branches of a
coupling, the higher one first.

The fill-in is not exact: a path includes whole branches, and all fill-in by their other couplings.  With few trees
that is little, and the entries cost less than those of short block rows (PATH_WORTH); in a stack of bodies, rows
would be full.
Source: Featherstone, RBDA, sec. 6.4-6.5; J. Liu, "The role of elimination trees in sparse factorization" (1990).
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.hessian.entries.couplings import coupling_tips

# upper limit of the cost relative to rows with exact fill-in; the times are equal at 2.8, in a stack of four boxes
PATH_WORTH = 2.0


@kernel
def merge_paths(d, i, j):
    """Puts dofs i and j on one path to the root: merges their two lists of ancestors in descending order.

    The lists are linked by hessian.parent, which it changes.
    """
    while i != j and j >= 0:
        if i < j:
            i, j = j, i
        parent = d.hessian.parent[i]
        if parent >= j:
            i = parent
        else:
            # j is between i and its parent: insert it there, and continue with the rest of both lists
            d.hessian.parent[i] = j
            i, j = j, parent


@kernel
def path_cost(m, d):
    """Returns the sum of the squares of the rows' lengths; stores the lengths in hessian.below.

    A row is one longer than that of its parent.
    """
    cost = 0
    for i in range(m.nv):
        parent = d.hessian.parent[i]
        length = d.hessian.below[parent] + 1 if parent >= 0 else 1
        d.hessian.below[i] = length
        cost += length * length
    return cost


@kernel
def closes_paths(m, d):
    """Checks whether rows closed under paths are cheaper than the block rows of `find_block_rows`.

    The cost of rows is the sum of the squares of their lengths.
    Reads:  hessian.rownnz of the block rows, hessian.coupling_key.   Writes: hessian.parent, hessian.below (lengths).
    """
    exact = 0  # cost of the block rows, whose fill-in is exact
    for i in range(m.nv):
        exact += d.hessian.rownnz[i] * d.hessian.rownnz[i]
    for i in range(m.nv):
        d.hessian.parent[i] = m.dof_parentid[i]  # of the model's own tree
    for k in range(d.hessian.ncoupling[0]):
        i, j = coupling_tips(d, k)
        merge_paths(d, i, j)
    # at equal cost, entries of rows closed under paths take less time than those of short block rows: PATH_WORTH > 1
    return path_cost(m, d) < PATH_WORTH * exact


@kernel
def list_path_rows(m, d):
    """Computes the rows of the wider tree: row i is the row of its parent, then i itself.

    Reads:  hessian.parent.
    Writes: hessian.rowadr, rownnz, colind: start, length and dofs of each row; below: the number of rows below.
    """
    adr = 0
    for i in range(m.nv):
        parent = d.hessian.parent[i]
        above = 0
        d.hessian.rowadr[i] = adr
        d.hessian.below[i] = 0
        if parent >= 0:
            above = d.hessian.rownnz[parent]
            for c in range(above):
                j = d.hessian.colind[d.hessian.rowadr[parent] + c]
                d.hessian.colind[adr + c] = j
                d.hessian.below[j] = d.hessian.below[j] + 1
        d.hessian.colind[adr + above] = i
        d.hessian.rownnz[i] = above + 1
        adr += above + 1


@kernel
def list_rows_below(m, d):
    """Lists the rows below each column j, descending: belowrow[belowadr[j] ...], below[j] of them.

    Reads:  hessian.below of `list_path_rows`, which it counts again while it fills the lists.
    Writes: hessian.belowadr, hessian.belowrow.
    """
    adr = 0
    for j in range(m.nv):
        d.hessian.belowadr[j] = adr
        adr += d.hessian.below[j]
        d.hessian.below[j] = 0
    for q in range(m.nv):
        i = m.nv - 1 - q  # from the last row, so that the lists descend
        row = d.hessian.rowadr[i]
        for c in range(row, row + d.hessian.rownnz[i] - 1):
            j = d.hessian.colind[c]
            d.hessian.belowrow[d.hessian.belowadr[j] + d.hessian.below[j]] = i
            d.hessian.below[j] = d.hessian.below[j] + 1


@stage
def find_path_rows(m, d):
    """Builds the rows closed under the paths of hessian.parent.

    Reads:  hessian.parent.
    Writes: hessian.*, the pattern in it.
    Cost:   O(entries).
    """
    list_path_rows(m, d)  # writes hessian.rowadr, rownnz, colind, below
    list_rows_below(m, d)  # writes hessian.belowadr, belowrow
