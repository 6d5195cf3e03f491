"""Distance of a world to the next change of its active set.

Constraint forces are smooth except where a row reaches or leaves a bound: a contact or limit begins or ends to push, a
cone begins to slip or stick, dry friction reaches its bound.  There the derivatives from both sides differ.  For a row
with x = J a - aref the distance is that of x to the nearest kink, divided by |J a| + |aref|.  A contact adds this size
over its normal and friction, because no joint may move its normal.  A contact or limit also ends where its gap closes:
there the distance is that of its stiffness term, K times the gap, divided by the same size; for one that is not active
yet it is the gap itself, in metres.
"""

from featherlane.prelude import *
from featherlane.constraint.impedance import reference, shortest_timeconst
from featherlane.solver.primal.problem import TINY
from featherlane.solver.rows.cone import others
from featherlane.solver.rows.rows import turn_index

FAR = 1.0  # the distance if no switch is nearer


@kernel
def _nearest(distance, size, present, least):
    """Returns the smaller of `least` and distance / size, if the row is present."""
    return where(present, fmin(least, fabs(distance) / fmax(size, TINY)), least)


@kernel
def _bounded(D, x, reference, lo, hi, least):
    """Returns the distance of a row with force -D x from the values of x at which either bound is met."""
    size, present = fabs(x + reference) + fabs(reference), D > 0.0
    inverse = 1.0 / where(present, D, 1.0)
    least = _nearest(x + lo * inverse, size, present, least)
    return _nearest(x + hi * inverse, size, present, least)


@kernel
def size_of_contact(d, k):
    """Returns |J a| + |aref| of contact k, added over its directions."""
    pull = d.con_damping[k] * d.primal.con_z[3 * k] + d.con_stiffpos[k]  # -aref
    size = fabs(d.primal.con_y[3 * k] - pull) + fabs(pull)
    for e in range(1, d.con_dim[k]):
        i = 3 * k + e if e < 3 else 3 * turn_index(d, k) + e - 3
        pull = d.con_frictiondamping[k] * d.primal.con_z[i]
        size = size + (fabs(d.primal.con_y[i] - pull) + fabs(pull))
    return size


@kernel
def _contact(m, d, k, least):
    """Returns the distance of contact k from a start or end of pushing or slipping of a pyramid edge or the cone."""
    y, D = d.primal.con_y[3 * k], d.con_D[k]
    size, present = size_of_contact(d, k), D > 0.0
    least = _nearest(d.con_stiffpos[k], size, present, least)
    if d.con_dim[k] == 1:
        least = _nearest(y, size, present, least)
    elif has_pyramids(m):
        for e in range(d.con_dim[k] - 1):
            i = 3 * k + 1 + e if e < 2 else 3 * turn_index(d, k) + e - 2
            least = _nearest(y + d.primal.con_y[i], size, present, least)
            least = _nearest(y - d.primal.con_y[i], size, present, least)
    else:
        T = sqrt(others(d, k, d.primal.con_y, d.primal.con_y))
        # regions change at y = T, under Coulomb's law at y = 0; friction sticks up to D y + Dt T = 0
        least = _nearest(y if m.opt_contact_model == COULOMB else y - T, size, present, least)
        ratio = d.con_Dt[k] / where(present, D, 1.0)
        least = _nearest(y + ratio * T, size, present, least)
    return least


@kernel
def switching_distance(m, d):
    """Returns the smallest distance over all rows, at most FAR.

    Reads rows at the solution, J v of contacts in primal.con_z.
    """
    least, shortest = real(d, FAR), shortest_timeconst(m)
    for k in range(d.ndofrow[0]):
        least = _bounded(d.dofrow_D[k], d.primal.dofrow_x[k], d.dofrow_aref[k], d.dofrow_lo[k], d.dofrow_hi[k], least)
        if d.dofrow_type[k] == LIMIT_JOINT:
            j, gap, r = d.dofrow_id[k], d.dofrow_pos[k] - d.dofrow_margin[k], d.dofrow_aref[k]
            K, _ = reference(load2(m.jnt_solref, 2 * j), load5(m.jnt_solimp, 5 * j), shortest)
            least = _nearest(K * gap, fabs(d.primal.dofrow_x[k] + r) + fabs(r), d.dofrow_D[k] > 0.0, least)
    for k in range(d.ngenrow[0]):
        least = _bounded(d.genrow_D[k], d.primal.genrow_x[k], d.genrow_aref[k], d.genrow_lo[k], d.genrow_hi[k], least)
    for k in range(d.ncon_slot[0]):
        waits = (d.con_present[k] > 0.0) & (d.con_D[k] == 0.0)
        least = _nearest(d.con_dist[k] - d.con_includemargin[k], real(d, 1.0), waits, least)
        least = _contact(m, d, k, least)
    return least
