"""Which entries of the Hessian change from one iteration to the next: those of the groups whose rows switch.

Blocks of dofs that couplings connect, directly or over other blocks, form a *group*.  No entry of H or of its factor
joins two groups.  In a scene of many bodies, most groups have the rows of their solution after one or two iterations,
while a few go on.  A group with the stiffnesses of the last assembly has the same entries and the same factor, so both
are kept, bit by bit.

hessian.group[b] is the first block of the group of block b; it is found by `find_block_rows`.  In an assembly,
hessian.changed[g] is 1 if the group with the first block g is computed.  With hessian.partial = 0, all are computed.
hessian.assembled is 1 in worlds whose factor is stored; primal.live is 1 in worlds that the solver continues, and
primal.slot lists their contacts.   hessian.con_F, row_weight: stiffnesses of the last assembly.
Models with few trees (npanelcontact = 0) and other patterns than block rows with fill-in compute all groups.  So does
the law of Coulomb, which changes more than stiffnesses.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.hessian.entries.joint_rows import free_weight
from featherlane.engine.solver.hessian.entries.pattern import BLOCKS
from featherlane.engine.solver.hessian.entries.stiffness import point_stiffness


@kernel
def tracks_changes(m, d):
    """Checks whether stiffnesses are compared with those of the last assembly."""
    return d.npanelcontact > 0 and d.hessian.pattern[0] == BLOCKS and m.opt_contact_model != COULOMB


@kernel
def mark_switched_rows(m, d, live):
    """Stores the weights of all scalar rows, and marks the groups of rows whose weight changes in a world of `live`."""
    for k in range(d.nrow[0]):
        weight = free_weight(d, k)
        if d.row_dofnum[k] > 0 and any_(live & not_(weight == d.hessian.row_weight[k])):
            dof = d.row_dof[d.row_dofadr[k]]  # all dofs of a row are in one group
            d.hessian.changed[d.hessian.group[m.dof_blockid[dof]]] = 1
        d.hessian.row_weight[k] = weight


@kernel
def mark_switched_contacts(m, d, live):
    """Stores the stiffnesses F of all contacts, and marks the groups of contacts that change in a world of `live`.

    Rotation axes have further numbers, which are not stored: a contact that has them and pushes counts as changed.
    """
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        F, stored = point_stiffness(m, d, k), d.hessian.con_F[k]
        same = F[0] == stored[0]
        for i in unrolled(range(1, 6)):
            same = same & (F[i] == stored[i])
        if d.con_dim[k] > 3:
            same = same & (F.xx + (F.yy + F.zz) == 0.0)  # F is positive semidefinite
        if any_(live & not_(same)):
            d.hessian.changed[d.hessian.group[m.dof_blockid[m.body_lastdof[d.con_body[k, 0]]]]] = 1
        d.hessian.con_F[k] = F


@kernel
def find_changes(m, d):
    """Finds the groups that an assembly has to compute: all, or those whose rows have switched since the last one.

    A world that the solver continues again, after others went on without it, has no valid factor: then, all are.
    Writes: hessian.partial, changed, con_F, row_weight; hessian.assembled <- 0, until the factor is computed.
    """
    d.hessian.partial[0] = 0
    if tracks_changes(m, d):
        live = d.primal.live[0] > 0.0
        for b in range(m.nblock):
            d.hessian.changed[b] = 0
        mark_switched_rows(m, d, live)
        mark_switched_contacts(m, d, live)
        if not any_(live & not_(d.hessian.assembled[0] > 0.0)):
            d.hessian.partial[0] = 1
        d.hessian.assembled[0] = 0.0
