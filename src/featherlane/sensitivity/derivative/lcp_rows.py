"""Rows of the LCP at a displaced point, on the same side of every kink as the world itself.

A limit at its stop, a contact that just touches and a body at rest that could bounce cross a kink at a displacement of
1e-7 m, and a difference across the kink equals neither of the two slopes.  So a displaced point has the rows of the
world itself.  Contacts move with the bodies (contact_moves.py) and are not detected again.  Each row keeps its branch
of the law: pushed apart or closing its gap, bouncing or not, at the largest speed or slower.
Source: as the rows themselves (solver/lcp/rows).
"""

from featherlane.prelude import *
from featherlane.constraint.impedance import shortest_timeconst
from featherlane.constraint.row import make_general_rows, write_dof_friction, write_joint_limit
from featherlane.sensitivity.derivative.contact_moves import moved_by
from featherlane.sensitivity.derivative.contact_rates import is_before
from featherlane.sensitivity.derivative.contact_types import ContactCase
from featherlane.sensitivity.derivative.points import copy
from featherlane.solver.lcp.rows.assembly import clear_rows
from featherlane.solver.lcp.rows.contact import append_friction, contact_softness, fill_contact_row
from featherlane.solver.lcp.rows.contact_parameters import set_contact_parameters
from featherlane.solver.lcp.rows.joint import append_bounded_rows, append_dof_loss, append_dof_row, append_equality_rows
from featherlane.solver.lcp.rows.link import append_link_rows
from featherlane.solver.lcp.rows.metric import factor_step_inertia
from featherlane.solver.lcp.rows.motor import append_motor_rows
from featherlane.solver.lcp.rows.rows import (
    INFINITE,
    NO_ROW,
    append_jacobian_row,
    clear_column_marks,
    first_free_column,
    has_capacity,
    is_present,
    list_pair_columns,
    set_row,
)
from featherlane.solver.lcp.rows.softness import softness
from featherlane.spatial.motion import at_point


# ---- contacts of the world and their displacements -------------------------------------------------------------------
@kernel
def keep_contacts(m, d, p):
    """Stores the present motion axes, contacts and contact arms."""
    copy(d.cdof, m.nv, p.dof_axis, 0)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        p.slot_dist[k], p.slot_flat[k] = c.dist, 0.0
        p.slot_pos[k] = c.pos
        p.slot_belt[k] = c.belt
        p.slot_frame[k] = c.frame
        for place in range(2):
            com = d.subtree_com[m.body_rootid[c.carrier[place]]]
            p.slot_arms[k, place] = c.pos - com


@kernel
def _moved(u, k, twist):
    """Returns `moved_by`; re-enumerated points of flat faces stay fixed on body 2, and the normal on body 1."""
    dist, pos, turned = moved_by(u, k, twist)
    w, x = twist.angular, twist.linear
    lost = u.slot_gone[k] >= 1.0
    u.slot_flat[k] = where((u.slot_gone[k] > 0.0) & (dot(w, w) > 0.0), 1.0, u.slot_flat[k])
    apart = dot(u.slot_frame[k].rows[0], x)
    return where(lost, apart, dist), where(lost, x, pos), where(lost, 0.0 * x, turned)


@kernel
def _shift(m, d, p, k, j):
    """Returns (distance, position, turn) of contact k for a displacement of dof j."""
    one, two = d.con_carrier[k, 0], d.con_carrier[k, 1]
    first, second = is_before(m, j, one), is_before(m, j, two)
    S = p.dof_axis[j]
    dist, pos, turned = 0.0, Vec3(zeros(3)), Vec3(zeros(3))
    if second and not first:
        dist, pos, turned = _moved(p, k, at_point(S, p.slot_arms[k, 1]))
    elif first:
        x = at_point(S, p.slot_arms[k, 0])
        if not second:
            dist, pos, turned = _moved(p, k, -x)
        # both bodies move the contact
        pos = pos + x.linear
        turned = fma(dot(p.slot_spin[k], x.angular), p.slot_frame[k].rows[0], turned + x.angular)
    return dist, pos, turned


@kernel
def find_shifts(m, d, p, j):
    """Computes slot_shift of all contacts by dof j; -1: no displacement."""
    for k in range(d.ncon_slot[0]):
        p.slot_shift[k] = zeros(7)
        if j >= 0:
            dist, pos, turned = _shift(m, d, p, k, j)
            p.slot_shift[k] = join((dist,), pos, turned)


@kernel
def place_contacts(d, p, step):
    """Places the contacts, displaced by `step` times the column's shift."""
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        shift = p.slot_shift[k]
        c.dist = fma(step, shift.dist, p.slot_dist[k])
        c.pos = fma(step, shift.position, p.slot_pos[k])
        n, t, b = tuple(fma(step, cross(shift.rotation, e), e) for e in p.slot_frame[k].rows)
        c.frame = join(n, t, b)
        c.belt = p.slot_belt[k]


# ---- rows of one dof -------------------------------------------------------------------------------------------------
@kernel
def place_dof_rows(m, d):
    """Computes the existing rows of single dofs at the present position and velocity."""
    shortest = shortest_timeconst(m)
    for k in range(d.ndofrow[0]):
        present = d.dofrow_present[k] > 0.0
        if d.dofrow_type[k] == FRICTION_DOF:
            write_dof_friction(m, d, k, d.dofrow_id[k], present, shortest)
        else:
            j, sign = d.dofrow_id[k], d.dofrow_J[k] + 0.0
            at = where(sign > 0.0, m.jnt_range[j].lower, m.jnt_range[j].upper)
            write_joint_limit(m, d, k, j, sign, sign * (d.qpos[m.jnt_qposadr[j]] - at), present, shortest)


@kernel
def _limit_again(m, d, p, k, store):
    """Computes the row of a limit on its branch."""
    j, present, h = d.dofrow_id[k], d.dofrow_present[k] > 0.0, timestep(m)
    joint = m.joint[j]
    err, solref, solimp = d.dofrow_pos[k] - d.dofrow_margin[k], joint.solref, joint.solimp
    erp, cfm = softness(m, joint.stop_erp, joint.stop_cfm, solref, solimp, err, d.dofrow_D[k])
    r, v, a = append_dof_row(m, d, d.dofrow_dof[k], d.dofrow_J[k])
    c, e = -(erp / h) * err, joint.stop_bounce
    back = -(e * v)
    if store:
        p.dof_bounces[k] = where((e > 0.0) & (v < 0.0) & (back > c), 1.0, 0.0)
        # beyond its range the row does not exist
        p.dof_edge[k] = fmin(fabs(err) / h, where(e > 0.0, fabs(back - c), INFINITE))
    c = where(p.dof_bounces[k] > 0.0, back, c)
    set_row(m, d, (r, v, a), present, c, cfm, (0.0, INFINITE))
    return r


@kernel
def _dof_rows_again(m, d, p, store):
    for k in range(d.ndofrow[0]):
        d.dofrow_lcprow[k] = NO_ROW
        if has_capacity(m, d, 1):
            if d.dofrow_type[k] == FRICTION_DOF:
                d.dofrow_lcprow[k] = append_dof_loss(m, d, k)
            else:
                d.dofrow_lcprow[k] = _limit_again(m, d, p, k, store)


# ---- rows of contacts ------------------------------------------------------------------------------------------------
@kernel
def _velocity_on_branch(m, d, p, k, erp, v, store):
    """Returns the target separation velocity of contact k, by the law of the world's own branch."""
    contact = d.contact[k]
    h, depth, push = timestep(m), contact.includemargin - contact.dist, contact.belt[0]
    over, most = depth - m.opt_contact_min_depth[0], m.opt_contact_max_vel[0]
    e, s = contact.restitution, push - v
    if store:
        c = where(depth < 0.0, depth / h, (erp / h) * fmax(over, 0.0)) + push
        edge = fmin(fabs(c - most), fmin(fabs(depth), fabs(over)) / h)
        jump = fmin(fabs(s - contact.restitution_vel), fabs(e * s + push - c))
        p.slot_edge[k] = fmin(edge, where(e > 0.0, jump, INFINITE))
        bounces = (e > 0.0) & (s > contact.restitution_vel) & (e * s + push > where(c >= most, most, c))
        p.slot_branch[k] = ContactCase(where(x, 1.0, 0.0) for x in (depth < 0.0, over >= 0.0, c >= most, bounces))
    case = p.slot_branch[k]
    c = where(case.deep > 0.0, (erp / h) * over, 0.0)
    c = where(case.apart > 0.0, depth / h, c) + push
    c = where(case.fastest > 0.0, most, c)
    return where(case.bounces > 0.0, e * s + push, c)


@kernel
def _contact_again(m, d, p, k, start, n, present, store):
    """Computes all rows of contact k on its branch; d.primal.search passes a row of J from one function to the next."""
    spin = set_contact_parameters(m, d, k)
    erp, cfm = contact_softness(m, d, k)
    fill_contact_row(m, d, k, 0, start, n, present)
    row, v, a = append_jacobian_row(m, d, start, n)
    goal = _velocity_on_branch(m, d, p, k, erp, v, store)
    set_row(m, d, (row, v, a), present, goal, cfm, (0.0, INFINITE))
    d.con_lcprow[k] = row
    append_friction(m, d, k, start, n, present, row, spin)


@kernel
def _contact_rows_again(m, d, p, store):
    """Computes the rows of the contacts with rows, con_D > 0."""
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        c.lcprow = NO_ROW
        acts = c.D > 0.0
        if any_(acts) and has_capacity(m, d, c.dim):
            start = first_free_column(d)
            n = list_pair_columns(m, d, c.carrier[0], c.carrier[1], start)
            if n > 0:
                _contact_again(m, d, p, k, start, n, acts, store)
                clear_column_marks(d, start, n)


# ---- all rows --------------------------------------------------------------------------------------------------------
@kernel
def rows_again(m, d, p, store):
    """Computes the rows of `make_lcp` in the present state, with the contacts, limits and their branches held fixed.

    store: 1 in the world's own state, where branches are stored; 0: use the stored branches.
    """
    place_dof_rows(m, d)
    make_general_rows(m, d)
    clear_rows(m, d)
    factor_step_inertia(m, d)
    append_equality_rows(m, d)
    append_link_rows(m, d)
    _dof_rows_again(m, d, p, store)
    append_bounded_rows(m, d)
    append_motor_rows(m, d)
    _contact_rows_again(m, d, p, store)


@kernel
def keep_rows(d, p):
    """Stores which rows each world has."""
    p.row_count[0] = d.lcp.n[0]
    for r in range(d.lcp.n[0]):
        p.row_present[r] = where(is_present(d, r), 1.0, 0.0)


@kernel
def compare_rows(d, p):
    """rows_same <- 0 in worlds whose rows have changed: limits of balls and tendons, motors at stops."""
    if d.lcp.n[0] != p.row_count[0]:
        p.rows_same[0] = 0.0
    else:
        for r in range(d.lcp.n[0]):
            other = not_(where(is_present(d, r), 1.0, 0.0) == p.row_present[r])
            p.rows_same[0] = where(other, 0.0, p.rows_same[0])
