"""Pairs of branches that rows couple: contacts between their bodies, and general rows.

A coupling is identified by the last dof of each branch.  The list is sorted, so the order in which a world's couplings
are added does not depend on the other worlds of the tile.
"""

from featherlane.prelude import *
from featherlane.lanes.sort import sort
from featherlane.solver.hessian.entries.pattern import is_above, is_free_body

DOF_BITS = 24  # bits of the lower dof in a coupling's key


@kernel
def coupling_key_of(i, j):
    """Returns the key of the coupling of two branches that end with dofs i and j."""
    return (i << DOF_BITS) | j if i > j else (j << DOF_BITS) | i


@kernel
def coupling_tips(d, k):
    """Returns the last dofs of the two branches of coupling k, the higher one first."""
    key = d.hessian.coupling_key[k]
    return key >> DOF_BITS, key & ((1 << DOF_BITS) - 1)


@kernel
def couples_free_bodies(m, d, k):
    """Checks whether coupling k joins two free bodies."""
    tip, other = coupling_tips(d, k)
    return is_free_body(m, m.dof_treeid[tip]) and is_free_body(m, m.dof_treeid[other])


@kernel
def add_coupling(m, d, n, i, j):
    """Adds the coupling of the branches that end with dofs i and j to the list, unless it was the last one added."""
    key = coupling_key_of(i, j)
    if n == 0 or d.hessian.coupling_key[n - 1] != key:
        d.hessian.coupling_key[n] = key
        n += 1
    return n


@kernel
def ends_branch(m, d, i, tips):
    """Checks that dof i is above none of the first tips in coupling_room: later dofs, the last one the nearest."""
    t = tips - 1
    while t >= 0 and not is_above(m, i, d.hessian.coupling_room[t]):
        t -= 1
    return t < 0


@kernel
def couple_row(m, d, n, k):
    """Adds the couplings of a general row: each pair of its branch ends.

    With three or more branches, each two are coupled: their trees need entries with each other even if the pattern's
    rows have no fill-in.
    """
    o, tips, below = d.genrow_dofadr[k], 0, -1
    for e in range(o + d.genrow_dofnum[k] - 1, o - 1, -1):
        i = d.genrow_dof[e]
        if (below < 0 or m.dof_parentid[below] != i) and ends_branch(m, d, i, tips):
            for t in range(tips):
                n = add_coupling(m, d, n, d.hessian.coupling_room[t], i)
            d.hessian.coupling_room[tips] = i
            tips += 1
        below = i
    return n


@kernel
def list_couplings(m, d):
    """Lists all couplings of the tile's slots, sorted, without duplicates."""
    n = 0
    for k in range(d.ncon_slot[0]):
        other = d.con_body[k, 1]
        if other > 0:
            n = add_coupling(m, d, n, m.body_lastdof[d.con_body[k, 0]], m.body_lastdof[other])
    for k in range(d.ngenrow[0]):
        n = couple_row(m, d, n, k)
    sort(d.hessian.coupling_key, d.hessian.coupling_room, n)
    count = 0
    for k in range(n):
        if count == 0 or d.hessian.coupling_key[count - 1] != d.hessian.coupling_key[k]:
            d.hessian.coupling_key[count] = d.hessian.coupling_key[k]
            count += 1
    d.hessian.ncoupling[0] = count


@kernel
def find_coupling(m, d, i, j):
    """Returns the number of the coupling of dofs i and j."""
    key, low, high = coupling_key_of(i, j), 0, d.hessian.ncoupling[0] - 1
    while low < high:
        middle = (low + high) >> 1
        if d.hessian.coupling_key[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def name_couplings(m, d):
    """Stores the coupling of each slot."""
    for k in range(d.ncon_slot[0]):
        other = d.con_body[k, 1]
        d.hessian.con_coupling[k] = -1
        if other > 0:
            d.hessian.con_coupling[k] = find_coupling(m, d, m.body_lastdof[d.con_body[k, 0]], m.body_lastdof[other])


@kernel
def same_couplings(d):
    """Checks whether the couplings are those for which the pattern was built."""
    k = 0
    if d.hessian.ncoupling[0] == d.hessian.ncoupling[1]:
        while k < d.hessian.ncoupling[0] and d.hessian.coupling_key[k] == d.hessian.coupling_last[k]:
            k += 1
    return k == d.hessian.ncoupling[0]
