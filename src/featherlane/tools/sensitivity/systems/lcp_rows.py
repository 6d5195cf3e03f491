"""Rows of the LCP at a displaced point, on the same side of every kink as the world itself.

A limit at its stop, a contact that just touches and a body at rest that could bounce cross a kink at a displacement of
1e-7 m, and a difference across the kink equals neither of the two slopes.  So a displaced point has the rows of the
world itself.  Contacts move with the bodies (contact_moves.py) and are not detected again.  Each row keeps its branch
of the law: pushed apart or closing its gap, bouncing or not, at the largest speed or slower.

The record p (lcp_rates.py) holds for each contact slot k of the own pose: slot_belt (surface velocity), slot_arms (from
either body's com to the point), slot_shift (changes of distance, point and frame by a unit of the column's coordinate)
and slot_branch; of contact_moves.py slot_own (distance, point and frame at this pose), slot_spin, whose product with a
rotation of both bodies is the spin of the frame about its normal relative to them, and slot_gone (1: the contact is
absent at a displaced pose, or lost at both poses of a twist; 0.5: lost at one of them; else 0); dof_axis: S of each
dof; row_count and row_present, the rows of the own state.  con_carrier[k]: bodies 1 and 2 of the contact's geoms.
INFINITE is the bound of a force, or the margin of a case that does not occur; NO_ROW marks a limit, dry friction or
contact without a row in the LCP.
Imported: softness and contact_softness, (erp, cfm) of a row, its error reduction per step and its term on A's diagonal;
append_row and append_jacobian_row, (number, J v, J a) of a new row; set_row, which completes it by (this tuple, worlds
with the row, target velocity, cfm, bounds).
A row of J is passed from the function that fills it to the one that appends it in the buffer d.primal.search, which the
primal solver does not use under the contact model lcp.
Source: as the rows themselves (solver/lcp/rows).
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.impedance import shortest_timeconst
from featherlane.engine.constraint.row import make_general_rows, write_dof_friction, write_joint_limit
from featherlane.engine.solver.lcp.rows.assembly import clear_rows
from featherlane.engine.solver.lcp.rows.contact import append_friction, contact_softness, fill_contact_row
from featherlane.engine.solver.lcp.rows.contact_parameters import set_contact_parameters
from featherlane.engine.solver.lcp.rows.joint import append_bounded_rows, append_equality_rows, append_loss, append_row
from featherlane.engine.solver.lcp.rows.link import append_link_rows
from featherlane.engine.solver.lcp.rows.metric import factor_step_inertia
from featherlane.engine.solver.lcp.rows.motor import append_motor_rows
from featherlane.engine.solver.lcp.rows.rows import (
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
from featherlane.engine.solver.lcp.rows.softness import softness
from featherlane.engine.spatial.motion import at_point
from featherlane.tools.sensitivity.rates.contact_moves import moved_by
from featherlane.tools.sensitivity.rates.contact_types import ContactCase
from featherlane.tools.sensitivity.rates.coordinates import copy
from featherlane.tools.sensitivity.rates.paths import is_before


# ---- contacts of the world and their displacements -------------------------------------------------------------------
@kernel
def store_contacts(m, d, p):
    """dof_axis <- present motion axes; slot_belt, slot_arms <- those of the contacts; slot_flat <- 0."""
    copy(d.cdof, m.nv, p.dof_axis, first=0)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        p.slot_flat[k] = 0.0
        p.slot_belt[k] = c.belt
        for side in range(2):
            com = d.subtree_com[m.body_rootid[c.carrier[side]]]
            p.slot_arms[k, side] = c.pos - com


@kernel
def _moved(p, k, twist):
    """Returns (change of distance, displacement of the point, rotation of the frame) for a relative twist of body 2.

    It is that of `moved_by`, except for contacts with slot_gone = 1, for example corners of flat faces that are
    numbered differently at the displaced poses: their point is fixed on body 2, their normal on body 1.
    slot_flat <- 1 if slot_gone > 0 and the twist rotates: two flat faces tilt, and some of their contacts end.
    """
    dist, pos, rotation = moved_by(p, k, twist)
    w, velocity = twist.angular, twist.linear
    lost = p.slot_gone[k] >= 1.0  # worlds in which `moved_by` has no derivatives
    p.slot_flat[k] = where((p.slot_gone[k] > 0.0) & (dot(w, w) > 0.0), 1.0, p.slot_flat[k])
    separation = dot(p.slot_own[k].orientation.rows[0], velocity)  # along the normal
    return where(lost, separation, dist), where(lost, velocity, pos), where(lost, Vec3(zeros(3)), rotation)


@kernel
def _shift(m, d, p, k, j):
    """Returns (change of distance, displacement of the point, rotation of the frame) of contact k by position j."""
    body1, body2 = d.con_carrier[k, 0], d.con_carrier[k, 1]
    moves1, moves2 = is_before(m, j, body1), is_before(m, j, body2)
    S = p.dof_axis[j]
    dist, pos, rotation = 0.0, Vec3(zeros(3)), Vec3(zeros(3))
    # dof j moves body 2, body 1, or both, whose relative pose does not change
    if moves2 and not moves1:
        dist, pos, rotation = _moved(p, k, at_point(S, p.slot_arms[k, 1]))
    elif moves1:
        twist = at_point(S, p.slot_arms[k, 0])
        if not moves2:
            # body 2 moves back relative to body 1
            dist, pos, rotation = _moved(p, k, -twist)
        # the contact moves along with body 1: the frame turns by w, and spins by (slot_spin . w) about its normal
        pos = pos + twist.linear
        normal = p.slot_own[k].orientation.rows[0]
        rotation = fma(dot(p.slot_spin[k], twist.angular), normal, rotation + twist.angular)
    return dist, pos, rotation


@kernel
def find_shifts(m, d, p, j):
    """slot_shift <- derivatives of all contacts by the position of dof j, 0 for j = -1."""
    for k in range(d.ncon_slot[0]):
        p.slot_shift[k] = zeros(7)
        if j >= 0:
            dist, pos, rotation = _shift(m, d, p, k, j)
            p.slot_shift[k] = join((dist,), pos, rotation)


@kernel
def place_contacts(d, p, step):
    """con_dist, con_pos, con_frame, con_belt <- those of the own pose, displaced by `step` times slot_shift."""
    for k in range(d.ncon_slot[0]):
        c, own, shift = d.contact[k], p.slot_own[k], p.slot_shift[k]
        c.dist = fma(step, shift.dist, own.dist)
        c.pos = fma(step, shift.position, own.position)
        # an axis of the frame moves by rotation x axis, to first order
        normal, tangent1, tangent2 = tuple(
            fma(step, cross(shift.rotation, axis), axis) for axis in own.orientation.rows
        )
        c.frame = join(normal, tangent1, tangent2)
        c.belt = p.slot_belt[k]


# ---- rows of one dof -------------------------------------------------------------------------------------------------
@kernel
def place_dof_rows(m, d):
    """row_* <- the rows of single dofs that the own pose has, at the present position and velocity."""
    shortest = shortest_timeconst(m)
    for k in range(d.ndofrow[0]):
        present = d.row_present[k] > 0.0  # worlds that have the row
        if d.row_type[k] == FRICTION_DOF:
            write_dof_friction(m, d, k, d.row_id[k], present, shortest)  # row_id: the dof
        else:
            # row_id: the joint; J is 1 for a lower limit, -1 for an upper one
            j, sign = d.row_id[k], d.row_J[k]
            limit = where(sign > 0.0, m.jnt_range[j].lower, m.jnt_range[j].upper)
            dist = sign * (d.qpos[m.jnt_qposadr[j]] - limit)
            write_joint_limit(m, d, k, j, sign, dist, present, shortest)


@kernel
def _append_limit(m, d, p, k, store):
    """Appends the LCP row of limit k on its branch; returns its number.

    The target velocity is -(erp / h) err, or the rebound -e v if the limit bounces.  It bounces if the joint approaches
    its stop (v < 0) and -e v exceeds -(erp / h) err.
    store: 1 in the own state, where the branch dof_bounces and its margin dof_edge are stored.
    """
    j, present, h = d.row_id[k], d.row_present[k] > 0.0, timestep(m)
    joint = m.joint[j]
    err, solref, solimp = d.row_pos[k] - d.row_margin[k], joint.solref, joint.solimp
    erp, cfm = softness(m, joint.stop_erp, joint.stop_cfm, solref, solimp, err, d.row_D[k])
    # row number, J v, J a
    row, v, a = append_row(m, d, k)
    target, e = -(erp / h) * err, joint.stop_bounce
    rebound = -(e * v)
    if store:
        p.dof_bounces[k] = where((e > 0.0) & (v < 0.0) & (rebound > target), 1.0, 0.0)
        # margin: at err = 0 the row begins or ends, and at rebound = target the bounce does
        p.dof_edge[k] = fmin(fabs(err) / h, where(e > 0.0, fabs(rebound - target), INFINITE))
    target = where(p.dof_bounces[k] > 0.0, rebound, target)
    set_row(m, d, (row, v, a), present, target, cfm, (0.0, INFINITE))
    return row


@kernel
def _append_dof_rows(m, d, p, store):
    """Appends the LCP rows of single dofs, dry friction and limits; row_lcprow <- their numbers.

    store: see `_append_limit`.
    """
    for k in range(d.ndofrow[0]):
        if has_capacity(m, d, rows=1):
            if d.row_type[k] == FRICTION_DOF:
                d.row_lcprow[k] = append_loss(m, d, k)
            else:
                d.row_lcprow[k] = _append_limit(m, d, p, k, store)


# ---- rows of contacts ------------------------------------------------------------------------------------------------
@kernel
def _depths(m, d, k):
    """Returns (depth of contact k, its excess over contact_min_depth) [m]."""
    depth = d.con_includemargin[k] - d.con_dist[k]
    return depth, depth - m.opt_contact_min_depth[0]


@kernel
def _store_branch(m, d, p, k, erp, v):
    """slot_branch, slot_edge <- the branch of `_velocity_on_branch`, and the margin to its next change [m/s]."""
    contact, h, fastest = d.contact[k], timestep(m), m.opt_contact_max_vel[0]
    belt, e, (depth, over) = contact.belt[0], contact.restitution, _depths(m, d, k)
    approach = belt - v  # approach velocity
    target = where(depth < 0.0, depth / h, (erp / h) * fmax(over, 0.0)) + belt
    # it bounces if the rebound is faster than the target, which contact_max_vel limits
    rebound, limited_target = e * approach + belt, where(target >= fastest, fastest, target)
    bounces = (e > 0.0) & (approach > contact.restitution_vel) & (rebound > limited_target)
    p.slot_branch[k] = ContactCase(
        where(case, 1.0, 0.0) for case in (depth < 0.0, over >= 0.0, target >= fastest, bounces)
    )
    # margins to changes of the cases fastest, apart and deep, and to those of the case bounces
    margin = fmin(fabs(target - fastest), fmin(fabs(depth), fabs(over)) / h)
    bounce_margin = fmin(fabs(approach - contact.restitution_vel), fabs(rebound - target))
    p.slot_edge[k] = fmin(margin, where(e > 0.0, bounce_margin, INFINITE))


@kernel
def _velocity_on_branch(m, d, p, k, erp, v):
    """Returns the target separation velocity of contact k [m/s], by the law of the world's own branch, slot_branch.

    With depth = margin - distance, h the time step, belt the surface velocity along the normal and e the restitution:
        apart     depth / h + belt              depth < 0: closes the gap
        deep      (erp / h) over + belt         over = depth - contact_min_depth >= 0
        neither   belt                          the depth is allowed
        fastest   contact_max_vel               if the above reaches it
        bounces   e (belt - v) + belt           if belt - v exceeds restitution_vel and this exceeds the above

    erp: error reduction per step; v: present separation velocity J v.
    """
    contact, case, h, (depth, over) = d.contact[k], p.slot_branch[k], timestep(m), _depths(m, d, k)
    belt = contact.belt[0]
    target = where(case.deep > 0.0, (erp / h) * over, 0.0)
    target = where(case.apart > 0.0, depth / h, target) + belt
    target = where(case.fastest > 0.0, m.opt_contact_max_vel[0], target)
    return where(case.bounces > 0.0, contact.restitution * (belt - v) + belt, target)


@kernel
def _append_contact(m, d, p, k, start, n, present, store):
    """Appends all LCP rows of contact k on its branch: the normal row, then friction.

    A row of J passes from one function to the next in d.primal.search.

    Args:
        start, n: first column and number of columns in d.lcp.col, the dofs that move the contact's bodies.
        present: mask of worlds with the contact.
        store: 1 in the own state, where the branch is stored.

    Writes: con_lcprow, rows of lcp.*; primal.search.
    """
    spin = set_contact_parameters(m, d, k)  # target spin about the normal [rad/s], which `append_friction` needs
    erp, cfm = contact_softness(m, d, k)
    # J along the normal, in d.primal.search
    fill_contact_row(m, d, k, c=0, start=start, n=n, present=present)
    row, v, a = append_jacobian_row(m, d, start, n)  # reads it
    if store:
        _store_branch(m, d, p, k, erp, v)
    target = _velocity_on_branch(m, d, p, k, erp, v)
    set_row(m, d, (row, v, a), present, target, cfm, (0.0, INFINITE))
    d.con_lcprow[k] = row
    append_friction(m, d, k, start, n, present, row, spin)


@kernel
def _append_contact_rows(m, d, p, store):
    """Appends the LCP rows of the contacts that have rows, con_D > 0; store: see `_append_contact`."""
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        c.lcprow = NO_ROW
        has_rows = c.D > 0.0
        if any_(has_rows) and has_capacity(m, d, c.dim):
            # columns: the dofs that move one of the two bodies
            start = first_free_column(d)
            n = list_pair_columns(m, d, c.carrier[0], c.carrier[1], start)
            if n > 0:  # two fixed bodies have no columns
                _append_contact(m, d, p, k, start, n, has_rows, store)
                clear_column_marks(d, start, n)  # dual.mark, which `list_pair_columns` set


# ---- all rows --------------------------------------------------------------------------------------------------------
@kernel
def evaluate_rows(m, d, p, store):
    """Computes the rows of `make_lcp` in the present state, with the contacts, limits and their branches held fixed.

    store: 1 in the world's own state, where branches are stored; 0: use the stored branches.
    Reads:  qfrc_smooth; what `place_contacts` writes.
    Writes: qacc_step, the acceleration without the rows' forces; row_*, link_*, con_lcprow,
            lcp.*; with `store` dof_bounces, dof_edge, slot_branch, slot_edge.
    """
    # rows of single dofs, of equalities and tendons
    place_dof_rows(m, d)
    make_general_rows(m, d)
    # rows of the LCP, in the order of `make_lcp`
    clear_rows(m, d)
    factor_step_inertia(m, d)  # qacc_step, and the factor of Mh with which rows are made
    append_equality_rows(m, d)
    append_link_rows(m, d)  # unbounded rows of links
    _append_dof_rows(m, d, p, store)
    append_bounded_rows(m, d, first=d.ndofrow[0])  # dry friction and limits of several dofs: balls and tendons
    append_motor_rows(m, d)  # motors of joints and links, stops of links
    _append_contact_rows(m, d, p, store)


@kernel
def store_rows(d, p):
    """row_count, row_present <- the number of rows, and which rows each world has."""
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
            changed = not_(where(is_present(d, r), 1.0, 0.0) == p.row_present[r])
            p.rows_same[0] = where(changed, 0.0, p.rows_same[0])
