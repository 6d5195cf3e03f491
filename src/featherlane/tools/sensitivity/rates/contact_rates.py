"""Derivatives of contact forces by position and velocity: motions at the contact, and the law of the force.

Motions.  A displacement of dof j moves body m beyond it by S_j, and the contact as in contact_moves.py.  With V and A,
the velocity and acceleration before the joint, the body's velocity V_m changes by S_j x (V_m - V), and its acceleration
A_m = J a by S_j x (A_m - A).
A dof that moves both bodies changes only the tangents relative to them: the frame spins about its normal, because
tangents do not follow the bodies (contact_moves.py).

Law.  With y = J a - aref in the contact's basis, df = -C dy + f s dr: C is the second derivative of the cost, s the
relative rate of all stiffnesses by distance.  Coulomb's law has no cost: there C is not symmetric, and s changes only
the normal force, as dy_0 = s y_0 dr does.  The wrench on body m changes by dW_m - S_j x* W_m, plus the part that
moves with S_j (smooth_rates.py).

Terms.  The side of a body in a contact is 0 for the pushed body, on which the contact's force acts, and 1 for the
other one, on which its opposite acts.  con_arm[k, side]: from the com of its tree to the contact.  The basis is the
normal and two tangents, con_basis[k], and with torsional or rolling friction (con_dim > 3) three axes of rotations,
con_basis[ANGULAR, k]; ANGULAR is an index.  All but the normal are scaled by coefficients of friction.  The record p
(records.py) has for each contact slot k the present force (slot_force), C (slot_curvature), relative motions A and V
(slot_acceleration, slot_velocity), and (s, -d aref / dr) (slot_slope).  con_motion: accelerations J a of the
bodies.  p.dg: derivatives of M a + c - tau - J^T f by one coordinate.  con_wrench: minus the changes of the wrench on
each body, at the com of its tree; primal.con_y = y.

Of contact c: c.body, the bodies on side 0 and 1, the second one 0 if it is fixed; c.carrier, the bodies of its geoms,
body 1 and body 2, in the order of the geoms; c.damping, B along the normal; c.frictiondamping, B along the others.
`moved_by`: changes of a contact by a twist of body 2 relative to body 1 (contact_moves.py).  `impedance_slopes`:
(s, d(K d r) / dr, B) of a row at distance r.
Source: MuJoCo documentation, Computation, "Constraint model", for the law.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.contact_inertia import contact_inertia_rate
from featherlane.engine.constraint.surface import bounces
from featherlane.engine.solver.rows.contacts import contact_forces
from featherlane.engine.solver.rows.rows import ANGULAR, body_forces_to_dofs, clear_body_forces
from featherlane.engine.spatial.motion import at_point
from featherlane.tools.sensitivity.rates.contact_curvature import contact_curvature
from featherlane.tools.sensitivity.rates.contact_moves import moved_by
from featherlane.tools.sensitivity.rates.contact_types import ContactSlope
from featherlane.tools.sensitivity.rates.dof_rates import impedance_slopes
from featherlane.tools.sensitivity.rates.paths import before_joint, is_before, relative_motion

BOTH = 2  # instead of side 0 or 1: a dof moves both bodies of a contact


# ---- law -------------------------------------------------------------------------------------------------------------
@kernel
def _force_in_world(d, k, f):
    """Returns the force in world axes whose components in the basis of contact k are f."""
    normal, tangent1, tangent2 = d.con_basis[k].rows
    force = f[0] * normal
    if d.con_dim[k] > 1:
        force = fma(f[1], tangent1, fma(f[2], tangent2, force))
    return force


@kernel
def _moment_in_world(d, k, moments):
    """Returns the moment in world axes with these components along the rotation axes of contact k."""
    axis0, axis1, axis2 = d.con_basis[ANGULAR, k].rows
    return fma(moments[0], axis0, fma(moments[1], axis1, moments[2] * axis2))


@kernel
def _wrench(d, k, side, f, moment):
    """Returns the wrench of a force and a moment at contact k on the body on that side.

    It is moved to the com of the body's tree.
    """
    return Force(join(cross(d.con_arm[k, side], f) + moment, f))


@kernel
def contact_laws(m, d, p, shortest):
    """Computes f, C = -df/dy, (s, -d aref / dr), A, V of each contact; subtracts its wrenches from cfrc of its bodies.

    shortest: the smallest allowed time constant of a solref [s].
    Writes: slot_curvature, slot_force, slot_acceleration, slot_velocity, slot_slope of p; cfrc.
    """
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        contact_curvature(m, d, p, k)  # writes slot_curvature
        # along normal and tangents, and along the rotation axes
        basis_force, basis_moment = contact_forces(m, d, k)
        force = _force_in_world(d, k, basis_force)
        moment = Vec3(zeros(3))
        if c.dim > 3:
            moment = _moment_in_world(d, k, basis_moment)
        p.slot_force[k] = join(moment, force)
        b, other = c.body[0], c.body[1]
        d.cfrc[b] -= _wrench(d, k, 0, force, moment)
        if other > 0:  # the world has no dofs
            d.cfrc[other] += _wrench(d, k, 1, force, moment)
        p.slot_acceleration[k] = relative_motion(d, k, d.con_motion, first=0)
        p.slot_velocity[k] = relative_motion(d, k, d.cvel, first=0)
        r = c.dist - c.includemargin
        stiffer, pull, _ = impedance_slopes(c.solref, c.solimp, r, shortest)  # s, and d(K d r) / dr = -d aref / dr
        if m.opt_contact_model == COULOMB:
            # s changes only the normal force: `pull` has it as dy_0 = s y_0 dr, and the stiffness has s = 0.  D and
            # aref of a rebound do not depend on r: pull = 0
            stiffer, pull = 0.0, where(bounces(m, d, k), 0.0, fma(stiffer, d.primal.con_y[k][0], pull))
        p.slot_slope[k] = ContactSlope(stiffer, pull)


# ---- columns ---------------------------------------------------------------------------------------------------------
@kernel
def _force_changes(d, p, k, dy, dy_angular):
    """Returns the changes -C dy of contact k's force and moment, in its basis; frame and distance are fixed.

    dy, dy_angular: changes of J a - aref along normal and tangents, and along the rotation axes.
    """
    C = p.slot_curvature
    df, dmoment = Vec3(zeros(3)), Vec3(zeros(3))
    if d.con_dim[k] == 1:
        df = Vec3(-(C[k, 0][0] * dy.x), 0.0, 0.0)
    else:
        # a row of C: three entries by dy (force), three by dy_angular (torque)
        df = Vec3(-dot(C[k, r].force, dy) for r in range(3))
    if d.con_dim[k] > 3:
        df = Vec3(df[r] - dot(C[k, r].torque, dy_angular) for r in range(3))
        dmoment = Vec3(-dot(C[k, r].force, dy) - dot(C[k, r].torque, dy_angular) for r in range(3, 6))
    return df, dmoment


@kernel
def along_basis(d, k, for_normal, for_tangents, for_axes):
    """Returns components in the basis of contact k: (along normal and tangents, along the rotation axes).

    Each argument is a vector in world axes: the first one is projected on the normal, the second one on the tangents,
    the third one on the rotation axes.
    """
    normal, tangent1, tangent2 = d.con_basis[k].rows
    y, y_angular = Vec3(dot(normal, for_normal), 0.0, 0.0), Vec3(zeros(3))
    if d.con_dim[k] > 1:
        y = Vec3(y.x, dot(tangent1, for_tangents), dot(tangent2, for_tangents))
    if d.con_dim[k] > 3:
        y_angular = d.con_basis[ANGULAR, k] @ for_axes
    return y, y_angular


@kernel
def _spin(d, p, k, w):
    """Returns the spin of contact k's frame about its normal relative to its bodies, if both rotate by w."""
    return dot(p.slot_spin[k], w)


@kernel
def _effective_spin(m, d, p, k, S):
    """Returns the spin of contact k's frame, relative to its bodies, due to a motion S of both; 0 if it has no effect.

    It has none on a cone (not a pyramid) in worlds whose coefficients of friction are equal along both tangents, and
    with rolling friction (dim > 4) also about both.
    """
    c = d.contact[k]
    spin = _spin(d, p, k, S.angular)
    if not has_pyramids(m):
        isotropic = c.friction[0] == c.friction[1]
        if c.dim > 4:
            isotropic = isotropic & (c.friction[3] == c.friction[4])
        spin = where(isotropic, 0.0, spin)
    return spin


@kernel
def displaced_contact(m, d, p, k, side, S):
    """Returns (change of distance, displacement of the point, rotation of the frame) of contact k for a motion S.

    S moves the body on that side.  If it moves both bodies, the displacements are relative to them.
    """
    c = d.contact[k]
    if side == BOTH:
        dist, pos = 0.0, Vec3(zeros(3))
        rotation = _effective_spin(m, d, p, k, S) * c.frame.rows[0]
    else:
        twist = at_point(S, c.arm[side])
        # `moved_by` takes the twist of body 2 with body 1 fixed
        if c.carrier[1] == c.body[side]:
            dist, pos, rotation = moved_by(p, k, twist)
        else:
            # body 1 moves: body 2 moves back relative to it, and the contact moves along with body 1; its frame also
            # spins about the normal relative to the bodies
            dist, pos, rotation = moved_by(p, k, -twist)
            rotation = fma(_spin(d, p, k, twist.angular), c.frame.rows[0], rotation + twist.angular)
            pos = pos + twist.linear
    return dist, pos, rotation


@kernel
def stiffness_rate(m, d, p, k, side, S, dist, pos):
    """Returns dD / D = s dr - dA / A, the relative change of all stiffnesses of contact k, for a motion S.

    A is the contact's inverse inertia.  It changes under Coulomb's law only, with the arms from both bodies' coms
    (xipos).  Under this law s = 0, because `contact_laws` moves its effect into slot_slope.aref.
    side: that of the body that S moves.  If it moves both (BOTH), neither r nor the arms change.
    dist, pos: changes of distance and point, results of `displaced_contact`.
    """
    rate = p.slot_slope[k].stiffness * dist
    if m.opt_contact_model == COULOMB and side != BOTH:
        b = d.con_body[k, side]
        com_arm = d.xipos[b] - d.subtree_com[m.body_rootid[b]]
        com_moved = at_point(S, com_arm).linear
        # the arms of bodies 1 and 2 change by the displacement of the point, minus that of the com of the moved body
        arm1_change, arm2_change = pos, pos
        if d.con_carrier[k, 0] == b:
            arm1_change = pos - com_moved
        else:
            arm2_change = pos - com_moved
        rate = rate - contact_inertia_rate(m, d, k, arm1_change, arm2_change)  # dA / A
    return rate


@kernel
def change_of_motion(d, k, side, change, angular, pos):
    """Returns the change of the motion of the pushed body relative to the other one at contact k.

    The body on side s has the velocity u_s + w_s x r_s at the contact, and the relative motion is that of side 0 minus
    that of side 1.  It changes by +-dw and +-(du + dw x r) + (w_0 - w_1) x pos, with + for side 0 and - for side 1.
    change: (dw, du) of the body on that side, at the com of its tree.   angular: w_0 - w_1.
    pos: displacement of the point.
    """
    sign = 1.0 - 2.0 * side  # the pushed body counts positive, the other one negative
    dangular = sign * change.angular
    linear = sign * change.linear + (cross(dangular, d.con_arm[k, side]) + cross(angular, pos))
    return Motion(join(dangular, linear))


@kernel
def rows_by_position(m, d, p, k, side, S, j):
    """Returns dy of contact k, y = J a - aref, if S, the axis of dof j, moves the body on that side (or BOTH).

    Returns: (dy along normal and tangents, dy along the rotation axes, result of `displaced_contact`).
    """
    c = d.contact[k]
    dist, pos, rotation = displaced_contact(m, d, p, k, side, S)
    A, V = p.slot_acceleration[k], p.slot_velocity[k]
    dA, dV = Motion(zeros(6)), Motion(zeros(6))
    if side != BOTH:
        # a motion of the body changes by S x (motion - the motion before the joint); the contact moves by pos
        acc, vel = before_joint(m, d, j, d.con_motion, d.qacc), before_joint(m, d, j, d.cvel, d.qvel)
        body = c.body[side]
        dA = change_of_motion(d, k, side, cross_motion(S, d.con_motion[body] - acc), A.angular, pos)
        dV = change_of_motion(d, k, side, cross_motion(S, d.cvel[body] - vel), V.angular, pos)
    # dy = basis . (dq + q x rotation) with q = A + B V; B differs along the directions of friction: q_friction
    B, friction_B = c.damping, c.frictiondamping
    q, dq = fma(B, V.linear, A.linear), fma(B, dV.linear, dA.linear)
    q_friction, dq_friction = fma(friction_B, V, A), fma(friction_B, dV, dA)
    for_tangents = dq_friction.linear + cross(q_friction.linear, rotation)
    for_axes = dq_friction.angular + cross(q_friction.angular, rotation)
    dy, dy_angular = along_basis(d, k, dq + cross(q, rotation), for_tangents, for_axes)
    # along the normal also -d aref = slope.aref dr
    return Vec3(fma(p.slot_slope[k].aref, dist, dy.x), dy.y, dy.z), dy_angular, (dist, pos, rotation)


@kernel
def _subtract_moved_contact(m, d, p, k, side, S, j):
    """con_wrench -= changes of both wrenches of contact k if the axis S of dof j moves the body on that side.

    dF = basis df + (dD / D) F + rotation x F.  The moment changes likewise, plus (displacement of the point) x F.
    The change of the moved body's wrench W contains S x* W, which moves along with the body.  smooth_rates.py adds this
    part, so it is subtracted here.
    """
    dy, dy_angular, (dist, pos, rotation) = rows_by_position(m, d, p, k, side, S, j)
    df, dmoment = _force_changes(d, p, k, dy, dy_angular)
    stiffer = stiffness_rate(m, d, p, k, side, S, dist, pos)
    F, M = p.slot_force[k].translation, p.slot_force[k].moment
    dF = _force_in_world(d, k, df) + fma(stiffer, F, cross(rotation, F))
    dM = fma(stiffer, M, cross(rotation, M))
    if d.con_dim[k] > 3:
        dM = dM + _moment_in_world(d, k, dmoment)
    dM = dM + cross(pos, F)
    _subtract_from_wrenches(d, k, dF, dM)
    # with BOTH, dF and dM are relative to the moving bodies: they lack the part S x* W of both
    if side != BOTH:
        carried = cross_force(S, _wrench(d, k, side, F, M))
        sign = 1.0 - 2.0 * side  # the opposite force acts on the body on side 1
        d.con_wrench[d.con_body[k, side]] += sign * carried


@kernel
def _subtract_from_wrenches(d, k, dF, dM):
    """con_wrench -= the change of both bodies' wrenches by the changes dF of contact k's force and dM of its moment.

    The residual contains -J^T f, so con_wrench is minus the change of the wrench on each body.
    """
    b, other = d.con_body[k, 0], d.con_body[k, 1]
    d.con_wrench[b] -= _wrench(d, k, 0, dF, dM)
    if other > 0:
        d.con_wrench[other] += _wrench(d, k, 1, dF, dM)


@kernel
def moved_side(m, d, j, k):
    """Returns the side of the body of contact k that dof j moves: 0, 1, BOTH, or -1 for none."""
    b, other = d.con_body[k, 0], d.con_body[k, 1]
    moves_b, moves_other = is_before(m, j, b), other > 0 and is_before(m, j, other)
    side = -1
    if moves_b and moves_other:
        side = BOTH
    elif moves_b:
        side = 0
    elif moves_other:
        side = 1
    return side


@kernel
def position_side(m, d, p, j, k):
    """Returns `moved_side`, or -1 if the forces of contact k do not change with the position of dof j.

    If dof j moves both bodies, the forces change only where friction depends on the spin of the frame.
    """
    side = moved_side(m, d, j, k)
    if side == BOTH and (d.con_dim[k] == 1 or not any_(_effective_spin(m, d, p, k, d.cdof[j]) != 0.0)):
        side = -1
    return side


@kernel
def velocity_side(m, d, j, k):
    """Returns `moved_side`, or -1 if both bodies move: their relative velocity does not change."""
    side = moved_side(m, d, j, k)
    return -1 if side == BOTH else side


@kernel
def add_position_column(m, d, p, j):
    """dg -= derivatives of J^T f by the position of dof j, without the part that moves along (smooth_rates.py)."""
    cleared = 0
    for k in range(d.ncon_slot[0]):
        side = position_side(m, d, p, j, k)
        if side >= 0:
            if cleared == 0:
                clear_body_forces(m, d)  # con_wrench <- 0, before the first contact
                cleared = 1
            S = d.cdof[j]
            _subtract_moved_contact(m, d, p, k, side, S, j)  # con_wrench
    if cleared:
        body_forces_to_dofs(m, d, p.dg)


@kernel
def rows_by_velocity(d, k, side, S, accelerates):
    """Returns the changes of J a - aref of contact k if the velocity of the body on that side changes by S.

    accelerates: 1 if S is a change of its acceleration.
    Returns: (dy along normal and tangents, dy along the rotation axes).
    """
    c = d.contact[k]
    sign = 1.0 - 2.0 * side  # the pushed body counts positive, the other one negative
    motion = at_point(S, c.arm[side])
    B, friction_B = sign * c.damping, sign * c.frictiondamping
    if accelerates:  # J a changes by S itself
        B, friction_B = sign, sign
    return along_basis(d, k, B * motion.linear, friction_B * motion.linear, friction_B * motion.angular)


@kernel
def add_velocity_column(m, d, p, j, accelerates):
    """dg -= derivatives of J^T f by the velocity of dof j, or by its acceleration if `accelerates`."""
    cleared = 0
    for k in range(d.ncon_slot[0]):
        side = velocity_side(m, d, j, k)
        if side >= 0:
            if cleared == 0:
                clear_body_forces(m, d)  # con_wrench <- 0, before the first contact
                cleared = 1
            dy, dy_angular = rows_by_velocity(d, k, side, d.cdof[j], accelerates)
            df, dmoment = _force_changes(d, p, k, dy, dy_angular)
            dM = Vec3(zeros(3))
            if d.con_dim[k] > 3:
                dM = _moment_in_world(d, k, dmoment)
            _subtract_from_wrenches(d, k, _force_in_world(d, k, df), dM)  # con_wrench
    if cleared:
        body_forces_to_dofs(m, d, p.dg)
