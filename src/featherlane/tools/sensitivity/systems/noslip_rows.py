"""Rows of friction that the no-slip solver corrects, with the accelerations by unit forces of these rows.

Symbols and fields of the record p are those of noslip_rates.py.  Row r is row slip_axis of dry friction (slip_con =
-1), or direction slip_axis of contact slip_con; f = slip_force, b = slip_bound, y = slip_y; A = J M^-1 J^T is slip_A by
rows; w_r = M^-1 J_r^T is a field of accelerations, with the motions slip_motion of all bodies.  primal.row_x and
primal.con_y are x = J a1 - aref, and basis_value(d, con_y, k, i) is component i of contact k: 0 normal, 1 and 2
tangents, 3 to 5 rotation axes.  The rows of con_basis[k] are the first three directions, those of con_basis[ANGULAR, k]
the rotation axes; ANGULAR is an index.  con_dim: 1 + number of friction directions.
Rows of single dofs come first: row k has the entry row_J[k] at the dof row_dof[k].
row_D, con_D: inverse regularization D of a row or contact, 0 in worlds without it; row_hi: upper bound of a row's
force; bounded_force: (f, cost) of a row, f = -D x within its bounds.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.joint_space import solve_factored
from featherlane.engine.solver.rows.laws import bounded_force
from featherlane.engine.solver.rows.rows import (
    ANGULAR,
    add_contact_force,
    add_contact_moment,
    basis_value,
    body_forces_to_dofs,
    clear_body_forces,
)
from featherlane.tools.sensitivity.rates.coordinates import copy
from featherlane.tools.sensitivity.rates.paths import relative_motion
from featherlane.tools.sensitivity.rates.records import KNOWN
from featherlane.tools.sensitivity.rates.smooth_rates import inward_pass, outward_pass
from featherlane.tools.sensitivity.systems.switching import size_of_contact, size_of_scalar_row


@kernel
def edge_values(d, k, i):
    """Returns (y + y_i, y - y_i), J a1 - aref of both pyramid edges of contact k along direction i of friction."""
    y, y_i = d.primal.con_y[k][0], basis_value(d, d.primal.con_y, k, i)
    return y + y_i, y - y_i


@kernel
def list_rows(m, d, p):
    """Lists the rows of friction: all rows of dry friction, and those of contacts that push in some world of the tile.

    Writes: nslip, slip_con, slip_axis, slip_force, slip_bound, slip_y, slip_size.  If there are more than nslipmax,
            nslip is 0 and report[KNOWN] is -1: the world must run alone.
    """
    n = 0  # number of rows; it counts also rows beyond the capacity nslipmax
    # dry friction of dofs has the first rows
    for k in range(d.nfrictionrow[0]):
        if n < p.nslipmax:
            f, _ = bounded_force(d.row[k], d.primal.row_x[k])
            p.slip_con[n], p.slip_axis[n], p.slip_y[n] = -1, k, d.primal.row_x[k]
            p.slip_size[n], _ = size_of_scalar_row(m, d, k)
            p.slip_force[n], p.slip_bound[n] = f, where(d.row_D[k] > 0.0, d.row_hi[k], 0.0)
        n += 1
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        for i in range(1, c.dim):
            # the edges n + u_i and n - u_i push with -D min(x, 0); friction is the difference of both forces, its bound
            # their sum
            up, down = edge_values(d, k, i)
            f_up, f_down = -(c.D * fmin(up, 0.0)), -(c.D * fmin(down, 0.0))
            if any_(f_up + f_down > 0.0):
                if n < p.nslipmax:
                    p.slip_con[n], p.slip_axis[n], p.slip_size[n] = k, i, size_of_contact(m, d, k)
                    p.slip_force[n], p.slip_bound[n], p.slip_y[n] = f_up - f_down, f_up + f_down, 0.5 * (up - down)
                n += 1
    if n > p.nslipmax:
        n = 0
        p.report[KNOWN] = fmin(p.report[KNOWN], -1.0)
    p.nslip[0] = n


@kernel
def unit_force(d, p, r):
    """Returns (force, moment) of a unit force of row r on the pushed body, in world axes; zeros for dry friction."""
    k, i = p.slip_con[r], p.slip_axis[r]
    force, moment = Vec3(zeros(3)), Vec3(zeros(3))
    if k < 0:  # dry friction of a dof has no wrench: both are 0
        moment = force
    elif i < 3:  # a tangent
        force = d.con_basis[k].rows[i]
    else:  # a rotation axis
        moment = d.con_basis[ANGULAR, k].rows[i - 3]
    return force, moment


@kernel
def compute_field(m, d, p, r):
    """Computes w_r = M^-1 J_r^T (p.solved), row r of A, and the motions and momenta of the field w_r (smooth_rates.py).

    Writes: slip_A; rows r of slip_zeta (nslip, nv), from dof_field_zeta; slip_motion (nslip, nbody), from body_field;
            slip_momentum (nslip, nbody), from body_field_force.
    """
    for j in range(m.nv):
        p.solved[j] = 0.0
    # solved <- J_r^T
    if p.slip_con[r] < 0:
        p.solved[d.row_dof[p.slip_axis[r]]] = d.row_J[p.slip_axis[r]]
    else:
        clear_body_forces(m, d)
        force, moment = unit_force(d, p, r)
        add_contact_force(d, p.slip_con[r], force)
        add_contact_moment(d, p.slip_con[r], moment)
        body_forces_to_dofs(m, d, p.solved)
    solve_factored(m, d.qLD, d.qLDiagInv, p.solved)  # solved <- M^-1 solved = w_r
    # w_r as the second field of accelerations: motions of bodies, v x S of dofs, forces of composite bodies
    outward_pass(m, d, p, p.solved)  # body_field, dof_field_zeta
    inward_pass(m, d, p)  # body_field_force
    copy(p.dof_field_zeta, m.nv, p.slip_zeta, m.nv * r)
    copy(p.body_field, m.nbody, p.slip_motion, m.nbody * r)
    copy(p.body_field_force, m.nbody, p.slip_momentum, m.nbody * r)
    # A_re = J_e w_r
    for e in range(p.nslip[0]):
        if p.slip_con[e] < 0:
            entry = d.row_J[p.slip_axis[e]] * p.solved[d.row_dof[p.slip_axis[e]]]
        else:
            motion = relative_motion(d, p.slip_con[e], p.body_field, first=0)
            force, moment = unit_force(d, p, e)
            entry = dot(force, motion.linear) + dot(moment, motion.angular)
        p.slip_A[p.nslip[0] * r + e] = entry


@kernel
def has_dry_tendons(d):
    """Returns the mask of worlds with dry friction of tendons."""
    found = false_mask(d)
    for k in range(d.ndofrow[0], d.nrow[0]):
        if d.row_type[k] == FRICTION_TENDON:
            found = found | (d.row_D[k] > 0.0)
    return found
