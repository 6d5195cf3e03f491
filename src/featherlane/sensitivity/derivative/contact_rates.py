"""Derivatives of contact forces by position and velocity: motions at the contact, and the law of the force.

Motions.  A displacement of dof j moves body m beyond it by S_j, and the contact as in contact_moves.py.  The body's
velocity V_m and acceleration A_m = J a change by S_j x (V_m - V), with V before the joint, and likewise A.
A dof that moves both bodies changes only the tangents relative to them: the frame spins about its normal, because
tangents do not follow the bodies (contact_moves.py).

Law.  With y = J a - aref in the contact's basis, df = -C dy + f s dr: C is the second derivative of the cost, s the
relative rate of all stiffnesses by distance.  Coulomb's law has no cost: there C is not symmetric, and s changes only
the normal force, as dy_0 = s y_0 dr does.  The wrench on body m changes by dW_m - S_j x* W_m, plus the part that
moves with S_j (smooth_rates.py).
Source: MuJoCo documentation, Computation, "Constraint model", for the law.
"""

from featherlane.prelude import *
from featherlane.constraint.row import contact_inertia_rate
from featherlane.constraint.surface import bounces
from featherlane.sensitivity.derivative.contact_curvature import contact_curvature
from featherlane.sensitivity.derivative.contact_moves import moved_by
from featherlane.sensitivity.derivative.contact_types import ContactSlope
from featherlane.sensitivity.derivative.dof_rates import impedance_slopes
from featherlane.solver.rows.contacts import contact_forces
from featherlane.solver.rows.rows import TURN, body_forces_to_dofs, clear_body_forces
from featherlane.spatial.motion import at_point

BOTH = 2  # in place of the place of a body: a dof moves both bodies of a contact


# ---- law -------------------------------------------------------------------------------------------------------------
@kernel
def _along(d, k, f):
    """Returns the vector with the components f in the contact's basis."""
    n, t, b = d.con_basis[k].rows
    x = f[0] * n
    if d.con_dim[k] > 1:
        x = fma(f[1], t, fma(f[2], b, x))
    return x


@kernel
def _along_turns(d, k, p):
    """Returns the vector with the components p in the basis of rotations."""
    n, t, b = d.con_basis[TURN, k].rows
    return fma(p[0], n, fma(p[1], t, p[2] * b))


@kernel
def _wrench(d, k, place, f, moment):
    """Returns moment and force at the com of the tree of the pushed body (place 0) or the other one (1)."""
    return Force(join(cross(d.con_arm[k, place], f) + moment, f))


@kernel
def relative_motion(d, k, w, first):
    """Returns the motion of the pushed body relative to the other one at the contact.

    Motions of bodies are those of w from row `first` on.
    """
    c = d.contact[k]
    b, other = c.body[0], c.body[1]
    x = at_point(w[first + b], c.arm[0])
    if other > 0:
        x = x - at_point(w[first + other], c.arm[1])
    return x


@kernel
def contact_laws(m, d, p, shortest):
    """Computes force, curvature, slopes and motions of each contact; subtracts its wrenches from the bodies' forces."""
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        contact_curvature(m, d, p, k)
        f, g = contact_forces(m, d, k)
        force = _along(d, k, f)
        moment = 0.0 * Vec3(f)
        if c.dim > 3:
            moment = _along_turns(d, k, g)
        p.slot_force[k] = join(moment, force)
        b, other = c.body[0], c.body[1]
        d.cfrc[b] -= _wrench(d, k, 0, force, moment)
        if other > 0:
            d.cfrc[other] += _wrench(d, k, 1, force, moment)
        p.slot_acceleration[k] = relative_motion(d, k, d.con_motion, 0)
        p.slot_velocity[k] = relative_motion(d, k, d.cvel, 0)
        r = c.dist - c.includemargin
        stiffer, pull, _ = impedance_slopes(c.solref, c.solimp, r, shortest)
        if m.opt_contact_model == COULOMB:
            # neither friction that sticks nor a rebound follows the impedance
            stiffer, pull = 0.0, where(bounces(m, d, k), 0.0, fma(stiffer, d.primal.con_y[k][0], pull))
        p.slot_slope[k] = ContactSlope(stiffer, pull)


# ---- columns ---------------------------------------------------------------------------------------------------------
@kernel
def is_before(m, k, b):
    """Returns whether dof k moves body b."""
    last = m.body_lastdof[b]
    return last >= k and last - k < m.D_rownnz[k] - m.D_diag[k]


@kernel
def before_joint(m, d, k, w, v):
    """Returns the motion w just before the joint of dof k, at dof velocities v."""
    i, joint = m.dof_bodyid[k], m.dof_jntid[k]
    x, first = w[m.body_parentid[i]], m.jnt_dofadr[joint]
    if is_free_joint(m.jnt_type[joint]) and k >= first + 3:
        first += 3
    for j in range(m.body_dofadr[i], first):
        x = fma(v[j], d.cdof[j], x)
    return x


@kernel
def _push_by(d, p, k, y, turns):
    """Returns changes of force and moment of contact k by changes of y and rotations; frame and distance are fixed."""
    C = p.slot_curvature
    f, g = Vec3(zeros(3)), Vec3(zeros(3))
    if d.con_dim[k] == 1:
        f = Vec3(-(C[k, 0][0] * y.x), 0.0, 0.0)
    else:
        f = Vec3(-dot(C[k, r].force, y) for r in range(3))
    if d.con_dim[k] > 3:
        f = Vec3(f[r] - dot(C[k, r].torque, turns) for r in range(3))
        g = Vec3(-dot(C[k, r].force, y) - dot(C[k, r].torque, turns) for r in range(3, 6))
    return f, g


@kernel
def along_basis(d, k, n, p, a):
    """Returns the components of n along the normal, of p along the tangents, of a along the rotation axes."""
    normal, t, b = d.con_basis[k].rows
    y, turns = Vec3(dot(normal, n), 0.0, 0.0), Vec3(zeros(3))
    if d.con_dim[k] > 1:
        y = Vec3(y.x, dot(t, p), dot(b, p))
    if d.con_dim[k] > 3:
        turns = d.con_basis[TURN, k] @ a
    return y, turns


@kernel
def _spin(d, p, k, w):
    """Returns the spin of contact k's frame about its normal relative to its bodies, if w rotates both."""
    return dot(p.slot_spin[k], w)


@kernel
def _felt_spin(m, d, p, k, S):
    """Returns `_spin`, or 0 if the forces do not depend on it: friction of a cone is equal in all directions."""
    c = d.contact[k]
    spin = _spin(d, p, k, S.angular)
    if not has_pyramids(m):
        equal = c.friction[0] == c.friction[1]
        if c.dim > 4:
            equal = equal & (c.friction[3] == c.friction[4])
        spin = where(equal, 0.0, spin)
    return spin


@kernel
def displaced_contact(m, d, p, k, place, S):
    """Returns displacements of distance, point and frame of contact k if S moves the body at that place.

    If S moves both bodies, the displacements are relative to them.
    """
    c = d.contact[k]
    if place == BOTH:
        dist, pos = 0.0, Vec3(zeros(3))
        turned = _felt_spin(m, d, p, k, S) * c.frame.rows[0]
    else:
        x = at_point(S, c.arm[place])
        if c.carrier[1] == c.body[place]:
            dist, pos, turned = moved_by(p, k, x)
        else:
            dist, pos, turned = moved_by(p, k, -x)
            turned = fma(_spin(d, p, k, x.angular), c.frame.rows[0], turned + x.angular)
            pos = pos + x.linear
    return dist, pos, turned


@kernel
def stiffness_rate(m, d, p, k, place, S, dist, pos):
    """Returns the relative change of all stiffnesses of contact k at the displacements of `displaced_contact`."""
    rate = p.slot_slope[k].stiffness * dist
    if m.opt_contact_model == COULOMB and place != BOTH:
        # A follows the contact's arms
        b = d.con_body[k, place]
        arm = d.xipos[b] - d.subtree_com[m.body_rootid[b]]
        carried = at_point(S, arm).linear
        first, second = pos, pos
        if d.con_carrier[k, 0] == b:
            first = pos - carried
        else:
            second = pos - carried
        rate = rate - contact_inertia_rate(m, d, k, first, second)
    return rate


@kernel
def change_of_motion(d, k, place, change, a, pos):
    """Returns the change of the relative motion at contact k, whose angular part is a.

    The motion of the body at that place changes by `change`, and the point moves by pos.
    """
    sign = 1.0 - 2.0 * place
    da = sign * change.angular
    return Motion(join(da, sign * change.linear + (cross(da, d.con_arm[k, place]) + cross(a, pos))))


@kernel
def moved_rows(m, d, p, k, place, S, j):
    """Returns changes of y and rotations of contact k, and `displaced_contact`, if S, the axis of dof j, moves a body.

    place: that of the body; 0 is the pushed one.
    """
    c = d.contact[k]
    dist, pos, turned = displaced_contact(m, d, p, k, place, S)
    A, V = p.slot_acceleration[k], p.slot_velocity[k]
    dA, dV = Motion(zeros(6)), Motion(zeros(6))
    if place != BOTH:
        # changes of the motions at the point that moves with the contact
        acc, vel = before_joint(m, d, j, d.con_motion, d.qacc), before_joint(m, d, j, d.cvel, d.qvel)
        body = c.body[place]
        dA = change_of_motion(d, k, place, cross_motion(S, d.con_motion[body] - acc), A.angular, pos)
        dV = change_of_motion(d, k, place, cross_motion(S, d.cvel[body] - vel), V.angular, pos)
    # dy = basis . (dq + q x turn), with q = A + B V
    B, friction = c.damping, c.frictiondamping
    q, dq = fma(B, V.linear, A.linear), fma(B, dV.linear, dA.linear)
    s, ds = fma(friction, V, A), fma(friction, dV, dA)
    tangent, turns = ds.linear + cross(s.linear, turned), ds.angular + cross(s.angular, turned)
    y, z = along_basis(d, k, dq + cross(q, turned), tangent, turns)
    return Vec3(fma(p.slot_slope[k].aref, dist, y.x), y.y, y.z), z, (dist, pos, turned)


@kernel
def _moved_contact(m, d, p, k, place, S, j):
    """Returns changes of both wrenches of contact k if the axis S of dof j moves the body at that place."""
    y, z, (dist, pos, turned) = moved_rows(m, d, p, k, place, S, j)
    f, g = _push_by(d, p, k, y, z)
    stiffer = stiffness_rate(m, d, p, k, place, S, dist, pos)
    F, M = p.slot_force[k].translation, p.slot_force[k].moment
    dF = _along(d, k, f) + fma(stiffer, F, cross(turned, F))
    dM = fma(stiffer, M, cross(turned, M))
    if d.con_dim[k] > 3:
        dM = dM + _along_turns(d, k, g)
    dM = dM + cross(pos, F)
    _spread(d, k, dF, dM)
    if place != BOTH:
        carried, sign = cross_force(S, _wrench(d, k, place, F, M)), 1.0 - 2.0 * place
        d.con_wrench[d.con_body[k, place]] += -sign * carried


@kernel
def _spread(d, k, dF, dM):
    """Adds a change of the contact's force, and of its moment, to both bodies."""
    b, other = d.con_body[k, 0], d.con_body[k, 1]
    d.con_wrench[b] += _wrench(d, k, 0, dF, dM)
    if other > 0:
        d.con_wrench[other] += _wrench(d, k, 1, -dF, -dM)


@kernel
def moved_place(m, d, j, k):
    """Returns the place of the body of contact k that dof j moves: 0, 1, BOTH, or -1 for none."""
    b, other = d.con_body[k, 0], d.con_body[k, 1]
    first, second = is_before(m, j, b), other > 0 and is_before(m, j, other)
    place = -1
    if first and second:
        place = BOTH
    elif first:
        place = 0
    elif second:
        place = 1
    return place


@kernel
def position_place(m, d, p, j, k):
    """Returns `moved_place`, or -1 if the contact's forces do not change relative to bodies that both move."""
    place = moved_place(m, d, j, k)
    if place == BOTH and (d.con_dim[k] == 1 or not any_(_felt_spin(m, d, p, k, d.cdof[j]) != 0.0)):
        place = -1
    return place


@kernel
def velocity_place(m, d, j, k):
    """Returns `moved_place`, or -1 if both bodies move: their relative velocity does not change."""
    place = moved_place(m, d, j, k)
    return -1 if place == BOTH else place


@kernel
def add_position_column(m, d, p, j):
    """dg -= rates of J^T f by the position of dof j, without the part that moves along."""
    found = 0
    for k in range(d.ncon_slot[0]):
        place = position_place(m, d, p, j, k)
        if place >= 0:
            if found == 0:
                clear_body_forces(m, d)
                found = 1
            S = d.cdof[j]
            _moved_contact(m, d, p, k, place, S, j)
    if found:
        _take_off(m, d, p.dg)


@kernel
def faster_rows(d, k, place, S, accelerates):
    """Returns changes of y and rotations of contact k by velocity S of the body at that place, or by acceleration."""
    c = d.contact[k]
    sign = 1.0 - 2.0 * place
    x = at_point(S, c.arm[place])
    B, friction = sign * c.damping, sign * c.frictiondamping
    if accelerates:
        B, friction = sign, sign
    return along_basis(d, k, B * x.linear, friction * x.linear, friction * x.angular)


@kernel
def add_velocity_column(m, d, p, j, accelerates):
    """dg -= rates of J^T f by the velocity of dof j; accelerates: by its acceleration."""
    found = 0
    for k in range(d.ncon_slot[0]):
        place = velocity_place(m, d, j, k)
        if place >= 0:
            if found == 0:
                clear_body_forces(m, d)
                found = 1
            y, z = faster_rows(d, k, place, d.cdof[j], accelerates)
            f, g = _push_by(d, p, k, y, z)
            moment = Vec3(zeros(3))
            if d.con_dim[k] > 3:
                moment = _along_turns(d, k, g)
            _spread(d, k, _along(d, k, f), moment)
    if found:
        _take_off(m, d, p.dg)


@kernel
def _take_off(m, d, out):
    """out -= J^T of the wrenches in con_wrench."""
    for i in range(m.nv):
        out[i] = -out[i]
    body_forces_to_dofs(m, d, out)
    for i in range(m.nv):
        out[i] = -out[i]
