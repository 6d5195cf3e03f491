"""Rows closed under paths: the pattern of a Hessian with coupled branches, as that of a wider tree.

A coupling puts two branches on one path to the root, so the rows of the pattern are again those of a tree: row i
holds the ancestors of i, then i, and begins the row of each of its descendants.  Dof j is at the same place in every
row that contains it.  The column-wise L^T D L of a model's own tree (dynamics/sparse/tree_factor.py) serves it, with
the rows below a column as a list (`listed`; the model's own tree needs no list, up to 11 % faster).

The fill-in is not exact: a path includes whole branches, and all fill-in by their other couplings.  With few trees
that is little, and the entries cost less than those of short block rows (PATH_WORTH); in a stack of bodies, rows
would be full.
Source: Featherstone, RBDA, sec. 6.4-6.5; J. Liu, "The role of elimination trees in sparse factorization" (1990).
"""

from featherlane.prelude import *
from featherlane.solver.hessian.entries.couplings import coupling_tips

PATH_WORTH = (
    2.0  # times the squares of the rows with exact fill: the two cost the same at 2.8, in a stack of four boxes
)


@kernel
def own_tree(m, d):
    """Starts with the model's own tree."""
    for i in range(m.nv):
        d.hessian.parent[i] = m.dof_parentid[i]


@kernel
def join_paths(d, i, j):
    """Puts dofs i and j on one path to the root: merges their two lists of ancestors in descending order."""
    while i != j and j >= 0:
        if i < j:
            i, j = j, i
        p = d.hessian.parent[i]
        if p >= j:
            i = p
        else:
            d.hessian.parent[i] = j
            i, j = j, p


@kernel
def path_cost(m, d):
    """Returns the sum of the squares of the rows' lengths; stores the lengths in hessian.below."""
    cost = 0
    for i in range(m.nv):
        p = d.hessian.parent[i]
        n = d.hessian.below[p] + 1 if p >= 0 else 1
        d.hessian.below[i] = n
        cost += n * n
    return cost


@kernel
def closes_paths(m, d):
    """Checks whether rows closed under paths are cheaper than the block rows just found: if they add little fill-in."""
    exact = 0
    for i in range(m.nv):
        exact += d.hessian.rownnz[i] * d.hessian.rownnz[i]
    own_tree(m, d)
    for k in range(d.hessian.ncoupling[0]):
        i, j = coupling_tips(d, k)
        join_paths(d, i, j)
    return path_cost(m, d) < PATH_WORTH * exact


@kernel
def list_path_rows(m, d):
    """Computes row i = row of its parent, then i itself; and how many rows are below each column."""
    adr = 0
    for i in range(m.nv):
        p, n = d.hessian.parent[i], 0
        d.hessian.rowadr[i] = adr
        d.hessian.below[i] = 0
        if p >= 0:
            n = d.hessian.rownnz[p]
            for c in range(n):
                j = d.hessian.colind[d.hessian.rowadr[p] + c]
                d.hessian.colind[adr + c] = j
                d.hessian.below[j] = d.hessian.below[j] + 1
        d.hessian.colind[adr + n] = i
        d.hessian.rownnz[i] = n + 1
        adr += n + 1


@kernel
def list_rows_below(m, d):
    """Lists the rows below each column, descending."""
    adr = 0
    for i in range(m.nv):
        d.hessian.belowadr[i] = adr
        adr += d.hessian.below[i]
        d.hessian.below[i] = 0
    for q in range(m.nv):
        k = m.nv - 1 - q
        a = d.hessian.rowadr[k]
        for c in range(a, a + d.hessian.rownnz[k] - 1):
            j = d.hessian.colind[c]
            d.hessian.belowrow[d.hessian.belowadr[j] + d.hessian.below[j]] = k
            d.hessian.below[j] = d.hessian.below[j] + 1


@stage
def find_path_rows(m, d):
    """Builds the rows closed under the paths of hessian.parent.

    Reads:  hessian.parent.
    Writes: hessian.*, the pattern in it.
    Cost:   O(entries).
    """
    list_path_rows(m, d)
    list_rows_below(m, d)
