"""Pairs of branches that rows couple: contacts between their bodies, and general rows.

A coupling is identified by the last dof of each branch, its *tip*.  The key hessian.coupling_key packs both tips.  The
list is sorted, so the order in which a world's couplings are added does not depend on the other worlds of the tile.
hessian.coupling_room is a work array: of the sort, and for the tips of a row's branches.
Scalar row k has row_dofnum[k] dofs in row_dof, from row_dofadr[k] on, ascending.  Contact k acts on bodies con_body[k],
the second one 0 if it does not move.  `is_above(m, i, j)` checks whether dof i is an ancestor of dof j, or j itself.
body_lastdof[b] is the last dof that moves body b.
`fold_rows(scalar, contact)` is a kernel (m, d, s, x): it sets x = scalar(m, d, k, s, x) for each scalar row k, then
x = contact(m, d, k, s, x) for each contact k, and returns x.  Here x is the length of the list, and s is not used.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.fold import fold_rows
from featherlane.engine.lanes.sort import sort
from featherlane.engine.solver.hessian.entries.pattern import is_above, is_free_body

DOF_BITS = 24  # bits of the lower dof in a coupling's key


@kernel
def coupling_key_of(i, j):
    """Returns the key of the coupling of two branches that end with dofs i and j: the higher dof in the upper bits."""
    return (i << DOF_BITS) | j if i > j else (j << DOF_BITS) | i


@kernel
def coupling_tips(d, k):
    """Returns (higher, lower) last dof of the two branches of coupling k."""
    key = d.hessian.coupling_key[k]
    return key >> DOF_BITS, key & ((1 << DOF_BITS) - 1)


@kernel
def couples_free_bodies(m, d, k):
    """Checks whether coupling k joins two free bodies."""
    tip, other = coupling_tips(d, k)
    return is_free_body(m, m.dof_treeid[tip]) and is_free_body(m, m.dof_treeid[other])


@kernel
def add_coupling(m, d, count, i, j):
    """Appends the coupling of the branches that end with dofs i and j to the list hessian.coupling_key.

    The coupling is omitted if it is the last one of the list: neighbouring slots often join the same bodies.
    count: length of the list.  Returns the new length.
    """
    key = coupling_key_of(i, j)
    if count == 0 or d.hessian.coupling_key[count - 1] != key:
        d.hessian.coupling_key[count] = key
        count += 1
    return count


@kernel
def is_branch_end(m, d, i, ntips):
    """Checks whether dof i is above none of the tips found so far, the first `ntips` dofs in hessian.coupling_room.

    The search begins with the last tip, which is the nearest.
    """
    t = ntips - 1
    while t >= 0 and not is_above(m, i, d.hessian.coupling_room[t]):
        t -= 1
    return t < 0


@kernel
def add_row_couplings(m, d, k, unused, count):
    """Appends the couplings of scalar row k to the list hessian.coupling_key: each pair of its branch tips.

    With three or more branches, each two are coupled: their trees need entries with each other, even if the pattern's
    rows have no fill-in.
    count: length of the list.  Returns the new length.  Scratch: hessian.coupling_room, the tips found so far.
    """
    first = d.row_dofadr[k]
    ntips = 0  # branches found so far
    previous = -1  # the row's dof visited before, which is the next higher one; -1: none
    # from the last dof to the first: a dof that is above none of those visited before ends a branch
    for e in range(first + d.row_dofnum[k] - 1, first - 1, -1):
        dof = d.row_dof[e]
        # the parent of the previous dof is on the same branch: no search
        if (previous < 0 or m.dof_parentid[previous] != dof) and is_branch_end(m, d, dof, ntips):
            for t in range(ntips):
                count = add_coupling(m, d, count, d.hessian.coupling_room[t], dof)
            d.hessian.coupling_room[ntips] = dof
            ntips += 1
        previous = dof
    return count


@kernel
def add_contact_coupling(m, d, k, unused, count):
    """Appends the coupling of contact k to hessian.coupling_key if both bodies move; returns the new length."""
    other = d.con_body[k, 1]
    if other > 0:
        count = add_coupling(m, d, count, m.body_lastdof[d.con_body[k, 0]], m.body_lastdof[other])
    return count


add_all_couplings = fold_rows(add_row_couplings, add_contact_coupling)


@kernel
def list_couplings(m, d):
    """Lists all couplings of the tile's slots, sorted, without duplicates.

    Writes: hessian.coupling_key, hessian.ncoupling[0].
    """
    n = add_all_couplings(m, d, 0, 0)  # length with duplicates
    sort(d.hessian.coupling_key, d.hessian.coupling_room, n)
    # keep the first of equal keys
    count = 0
    for k in range(n):
        if count == 0 or d.hessian.coupling_key[count - 1] != d.hessian.coupling_key[k]:
            d.hessian.coupling_key[count] = d.hessian.coupling_key[k]
            count += 1
    d.hessian.ncoupling[0] = count


@kernel
def find_coupling(m, d, i, j):
    """Returns the index in the list of the coupling of branches that end with dofs i and j, by a binary search."""
    key = coupling_key_of(i, j)
    low = 0
    high = d.hessian.ncoupling[0] - 1
    while low < high:
        middle = (low + high) >> 1
        if d.hessian.coupling_key[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def store_contact_couplings(m, d):
    """Stores the number of each contact slot's coupling in hessian.con_coupling; -1 if only one of its bodies moves."""
    for k in range(d.ncon_slot[0]):
        other = d.con_body[k, 1]
        d.hessian.con_coupling[k] = -1
        if other > 0:
            d.hessian.con_coupling[k] = find_coupling(m, d, m.body_lastdof[d.con_body[k, 0]], m.body_lastdof[other])


@kernel
def has_same_couplings(d):
    """Checks whether this step's couplings are those of the current pattern (hessian.coupling_last).

    The step must have at least one coupling: without any, the result would be true for all patterns.
    """
    k = 0  # number of leading couplings that are equal; it stays 0 if the lists differ in length
    # ncoupling: number of couplings [0] in this step, [1] in the pattern
    if d.hessian.ncoupling[0] == d.hessian.ncoupling[1]:
        while k < d.hessian.ncoupling[0] and d.hessian.coupling_key[k] == d.hessian.coupling_last[k]:
            k += 1
    return k == d.hessian.ncoupling[0]
