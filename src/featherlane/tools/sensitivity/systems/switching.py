"""Distance of a world to the next change of its active set.

Constraint forces are smooth except where a row reaches or leaves a bound: a contact or limit begins or ends to push, a
cone begins to slip or stick, dry friction reaches its bound.  There the derivatives from both sides differ.  For a row
with x = J a - aref the distance is that of x to the nearest kink, divided by |J a| + |aref|.  A contact adds this size
over its normal and friction, because no joint may move its normal.  At rest all of them are small, and a displacement
of the state by e changes accelerations by about K e, with K the stiffness of the row's solref.  Therefore the divisor
is at least K REACH.  A state at the distance e from a switch then has a distance of at most about e / REACH.

The row of a contact or limit also disappears where r = dist - margin reaches 0: there the distance is that of its
stiffness term, K r, divided by the same size.  A contact without force, between margin and margin + gap, counts with r
itself, in metres; a limit on both sides of its margin with r divided by REACH.

Kernels pass the smallest distance so far as `least`.  A value primal.row_x or con_y is x = J a - aref,
primal.con_z is J v of a contact.  In con_y and con_z, row [k] has the components along normal and tangents of contact
k, and basis_value(d, con_y, k, i) is component i of all, 3 to 5 those of the rotation axes.  All but the normal's are
scaled by coefficients of friction, so an edge of a pyramid has x = y +- y_i.  Of a row, D is the inverse
regularization, 0 in worlds without it; TINY avoids divisions by 0 there.  Of a contact, con_Dt is D of its friction,
con_stiffpos its K d r, con_damping and con_frictiondamping its B along the normal and along the others.
Imported: row_parameters, (solref, solimp) of a row; reference, (K, B) of a row; ball_axis_angle, (axis, angle).
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.ball import ball_axis_angle
from featherlane.engine.constraint.general import row_parameters
from featherlane.engine.constraint.impedance import reference, shortest_timeconst
from featherlane.engine.solver.rows.cone import friction_dot
from featherlane.engine.solver.rows.laws import TINY
from featherlane.engine.solver.rows.rows import basis_value

FAR = 1.0  # the distance if no switch is nearer
REACH = 1e-3  # displacement of a coordinate [m, rad] that counts as far from a switch


@kernel
def _least_scaled(distance, size, present, least):
    """Returns the smaller of `least` and |distance| / size in worlds that have the row."""
    return where(present, fmin(least, fabs(distance) / fmax(size, TINY)), least)


@kernel
def _stiffness(m, solref, solimp):
    """Returns K of a row with these parameters [1/s^2]."""
    K, _ = reference(solref, solimp, shortest_timeconst(m))
    return K


@kernel
def size_of_scalar_row(m, d, k):
    """Returns (size, K) of scalar row k: |J a| + |aref|, at least K REACH [m/s^2], and its stiffness K [1/s^2].

    Dry friction under Coulomb's law has the |x| at which it slips as size.
    """
    kind = d.row_type[k]
    solref, solimp = row_parameters(m, kind, d.row_id[k])
    K = _stiffness(m, solref, solimp)
    # x = J a - aref
    size = fmax(fabs(d.primal.row_x[k] + d.row_aref[k]) + fabs(d.row_aref[k]), K * REACH)
    # Coulomb's law makes dry friction rigid: its aref would stop the dof within one step, so |aref| is huge.  The size
    # is the |x| at which the row slips, row_hi / D, where row_hi is the friction loss
    if kind in (FRICTION_DOF, FRICTION_TENDON) and m.opt_contact_model == COULOMB:
        size = d.row_hi[k] / fmax(d.row_D[k], TINY)
    return size, K


@kernel
def _least_to_bounds(D, x, lo, hi, size, least):
    """Returns the smaller of `least` and the distances of x from both bounds of a row's force, lo <= -D x <= hi.

    The bounds are reached at x = -lo / D and x = -hi / D.   size: of the row, see `size_of_scalar_row`.
    """
    present = D > 0.0
    inverse_D = 1.0 / where(present, D, 1.0)
    least = _least_scaled(x + lo * inverse_D, size, present, least)
    return _least_scaled(x + hi * inverse_D, size, present, least)


@kernel
def size_of_contact(m, d, k):
    """Returns the size of contact k: the sum of |J a| + |aref| over its directions, at least K REACH [m/s^2]."""
    c = d.contact[k]
    # -aref = B J v + K d r along the normal, B J v along the directions of friction;  J a = y + aref = y - minus_aref
    minus_aref = c.damping * d.primal.con_z[k][0] + c.stiffpos
    size = fabs(d.primal.con_y[k][0] - minus_aref) + fabs(minus_aref)
    # directions of friction have no stiffness
    for i in range(1, c.dim):
        minus_aref = c.frictiondamping * basis_value(d, d.primal.con_z, k, i)
        size = size + (fabs(basis_value(d, d.primal.con_y, k, i) - minus_aref) + fabs(minus_aref))
    return fmax(size, REACH * _stiffness(m, c.solref, c.solimp))


@kernel
def _least_of_contact(m, d, k, least):
    """Returns the smaller of `least` and the distances of contact k from changes of its active set.

    A contact, or an edge of its pyramid, begins or ends to push, or its cone begins or ends to slip.
    """
    c = d.contact[k]
    y, D = d.primal.con_y[k][0], c.D  # y: component along the normal
    size, present = size_of_contact(m, d, k), D > 0.0
    # stiffpos = K d r: the contact's rows disappear at r = 0
    least = _least_scaled(c.stiffpos, size, present, least)
    if c.dim == 1:
        least = _least_scaled(y, size, present, least)
    elif has_pyramids(m):
        for i in range(1, c.dim):
            y_i = basis_value(d, d.primal.con_y, k, i)
            least = _least_scaled(y + y_i, size, present, least)
            least = _least_scaled(y - y_i, size, present, least)
    else:
        # T: length of the components of con_y along the directions of friction
        T = sqrt(friction_dot(d, k, d.primal.con_y, d.primal.con_y))
        # the contact stops pushing at y = T, under Coulomb's law at y = 0; it sticks while the friction Dt T is at most
        # the normal force -D y
        least = _least_scaled(y if m.opt_contact_model == COULOMB else y - T, size, present, least)
        ratio = c.Dt / where(present, D, 1.0)
        least = _least_scaled(y + ratio * T, size, present, least)
    return least


@kernel
def limit_distance(m, d):
    """Returns the smallest distance of a joint or tendon from the margin of its limit, divided by REACH, at most FAR.

    It counts limits on both sides of their margins, active or not.
    """
    least = FAR
    if m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_LIMIT):
        return least
    for j in range(m.njnt):
        joint = m.joint[j]
        lo, hi, margin = joint.range.lower, joint.range.upper, joint.margin
        if joint.limited != 0 and is_scalar(joint.type):
            q = d.qpos[joint.qposadr]
            least = fmin(least, fmin(fabs(q - lo - margin), fabs(hi - q - margin)) / REACH)
        elif joint.limited != 0 and is_ball(joint.type):
            adr = joint.qposadr
            _, angle = ball_axis_angle(Quat(d.qpos[adr : adr + 4]).unit)
            # the limit of a ball's angle is the larger number of its range
            least = fmin(least, fabs(fmax(lo, hi) - angle - margin) / REACH)
    for i in range(m.ntendon):
        # a tendon that no dof moves has a constant length
        if m.tendon_limited[i] != 0 and m.ten_J_rownnz[i] > 0:
            # side 0, lower limit: length - lower; side 1, upper limit: upper - length
            for side in range(2):
                gap = (1.0 - 2.0 * side) * (d.ten_length[i] - m.tendon_range[i][side]) - m.tendon_margin[i]
                least = fmin(least, fabs(gap) / REACH)
    return least


@kernel
def switching_distance(m, d):
    """Returns the smallest distance over all rows, at most FAR.

    Reads rows at the solution, J v of contacts in primal.con_z.
    """
    least = limit_distance(m, d)
    for k in range(d.nrow[0]):
        kind = d.row_type[k]
        # rows of dry friction and limits (types up to LIMIT_TENDON); an equality is always active
        if kind != EQUALITY and kind <= LIMIT_TENDON:
            D = d.row_D[k]
            size, K = size_of_scalar_row(m, d, k)
            least = _least_to_bounds(D, d.primal.row_x[k], d.row_lo[k], d.row_hi[k], size, least)
            if kind in (LIMIT_JOINT, LIMIT_TENDON):
                least = _least_scaled(K * (d.row_pos[k] - d.row_margin[k]), size, D > 0.0, least)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        waits = (c.present > 0.0) & (c.D == 0.0)  # in its gap, without a row
        least = _least_scaled(c.dist - c.includemargin, size=1.0, present=waits, least=least)
        least = _least_of_contact(m, d, k, least)
    return least
