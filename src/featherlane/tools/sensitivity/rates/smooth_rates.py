"""Derivatives of inverse dynamics by position and velocity with composite bodies: O(nv) once, O(depth) for an entry.

"Outer bodies" of a dof are those that it moves, "inner bodies" the others towards the root.  A composite body of a dof
(superscript c) is the sum of its outer bodies, as in the composite-rigid-body algorithm.
A displacement of dof j moves the outer bodies along its axis S_j, and leaves the inner ones.  Relative to the outer
bodies, the inner ones then have another velocity and acceleration.  With v the velocity and a the acceleration
(including gravity) before the joint, the force f_i of an outer body i changes by df_i:

    velocity       eta = v x S_j
    acceleration   zeta = a x S_j + v x eta
    df_i = S_j x* f_i + I_i zeta + B_i eta          B_i as in dynamics/body/rne_derivative.py

The velocity of dof j changes it by df_i = I_i w_j + B_i S_j, with w_j = (v + v_after) x S_j and the velocity v_after
behind the joint.
The axes of dofs beyond j move along, so S_j x* f does no work on them; for dof k of a composite body and each dof j
from the root down to k

    by position   dtau_k / dq_j = (I^c S_k) . zeta_j + (B^c^T S_k) . eta_j
                  dtau_j / dq_k = S_j . (I^c zeta_k + B^c eta_k + S_k x* f^c)
    by velocity   the same with w, S in place of zeta, eta, and without the term S x* f

The axes of one ball move each other: there the last term is omitted.  Forces f^c are net: contact forces, which move
along with a body, are subtracted, and contact_rates.py computes their remaining changes.

The same pass also computes the forces of a second field of accelerations, x per dof, without velocities ("field": x is
what the integrator subtracts, qacc - a*, solution.py).  Names in the record p (records.py): dof_zeta = zeta,
dof_eta_angular = angular part of eta (its linear part does no work in B), dof_w = w, dof_field_zeta = zeta for x,
dof_momentum = I^c S, dof_drag = B^c^T S, dof_force = I^c zeta + B^c eta, dof_damping_force = I^c w + B^c S,
dof_field_force = I^c dof_field_zeta; body_field and body_field_force: motion and (sum of) forces of bodies for x; dg is
a column of derivatives of M qacc + C, dp one of derivatives of M x.  In d: cdof = S, cinert = I, crb = I^c; crb_rate =
B and cfrc = f, after `inward_pass` B^c and f^c; cvel and cacc, velocity and acceleration of bodies.  Row k of the
sparse pattern D lists (D_colind) the dofs on the path from the root through k (its first D_diag + 1 entries, k the
last), then the dofs that k moves.  moved_along(v, u): v after a translation at velocity u.  velocity_force(B, w): B x
of a motion x with the angular part w; transposed_velocity_force(B, S): angular part of B^T S, whose linear part is 0.
world_acceleration: -g, as if the world accelerated upwards.
Source: Carpentier, Mansard, Analytical derivatives of rigid body dynamics algorithms (RSS 2018); Singh, Russell,
Wensing, Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra (IEEE RA-L 7, 2022).
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.joint import moved_along
from featherlane.engine.dynamics.body.newton_euler import world_acceleration
from featherlane.engine.dynamics.body.rne_derivative import inertia_rate, transposed_velocity_force, velocity_force
from featherlane.tools.sensitivity.rates.paths import shares_quaternion


@kernel
def _move_body(m, d, p, i, x):
    """Computes v, a and f = I a + v x* I v of body i, from its parent's, and zeta, eta, w of its dofs.

    x: accelerations of the second field, by dof.
    Reads:  cvel, cacc, body_field of the parent.   Writes: cvel, cacc, cfrc, crb_rate (B_i), body_field,
            body_field_force of body i; dof_zeta, dof_eta_angular, dof_w, dof_field_zeta of its dofs.
    """
    parent, first_joint = m.body_parentid[i], m.body_jntadr[i]
    # motions before the joint: velocity, acceleration, acceleration of the second field
    vel, acc, field = d.cvel[parent], d.cacc[parent], p.body_field[parent]
    for j in range(first_joint, first_joint + m.body_jntnum[i]):
        first, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            # a free joint moves relative to the world: up to its translations v, a and S have no angular part, so that
            # v x S = a x S = 0
            for k in range(first, first + 3):
                p.dof_zeta[k] = zeros(6)
                p.dof_eta_angular[k] = zeros(3)
                p.dof_w[k] = zeros(6)
                p.dof_field_zeta[k] = zeros(6)
            vel = moved_along(vel, Vec3(d.qvel[first : first + 3]))
            acc = moved_along(acc, Vec3(d.qacc[first : first + 3]))
            field = moved_along(field, Vec3(x[first : first + 3]))
            first += 3
        end = first + 3 if has_quaternion(kind) else first + 1
        # motions behind the joint: v + sum of S qvel, a + sum of (S qacc + (v x S) qvel), field + sum of S x; all axes
        # of a ball use the motion before the ball
        next_vel, next_acc, next_field = vel, acc, field
        for k in range(first, end):
            S = d.cdof[k]
            eta = cross_motion(vel, S)
            p.dof_zeta[k] = cross_motion(acc, S) + cross_motion(vel, eta)
            p.dof_eta_angular[k] = eta.angular
            p.dof_field_zeta[k] = cross_motion(field, S)
            next_acc = fma(d.qacc[k], S, fma(d.qvel[k], eta, next_acc))
            next_vel, next_field = fma(d.qvel[k], S, next_vel), fma(x[k], S, next_field)
        velocity_sum = vel + next_vel  # w = (v + v_after) x S
        for k in range(first, end):
            p.dof_w[k] = cross_motion(velocity_sum, d.cdof[k])
        vel, acc, field = next_vel, next_acc, next_field
    d.cvel[i] = vel
    d.cacc[i] = acc
    p.body_field[i] = field
    I = d.cinert[i]
    d.cfrc[i] = I @ acc + cross_force(vel, I @ vel)  # f = I a + v x* I v
    p.body_field_force[i] = I @ field
    d.crb_rate[i] = inertia_rate(I, vel)


@kernel
def outward_pass(m, d, p, x):
    """Computes motions, forces and axis rates of all bodies, root first, see `_move_body`.

    x: accelerations of the second field, by dof.   Writes also body_field.
    """
    d.cvel[0] = zeros(6)
    d.cacc[0] = world_acceleration(m)
    p.body_field[0] = zeros(6)
    for i in range(1, m.nbody):
        _move_body(m, d, p, i, x)


@kernel
def inward_pass(m, d, p):
    """Sums forces and B over outer bodies, leaves first; computes the forces of each dof from these sums.

    Reads:  what `outward_pass` writes, crb.
    Writes: cfrc, crb_rate, body_field_force <- their sums over outer bodies; dof_momentum, dof_drag, dof_force,
            dof_damping_force, dof_field_force.
    """
    for i in range(m.nbody - 1, 0, -1):
        body = m.body[i]
        parent, first = body.parentid, body.dofadr
        # the stage crb does not write a leaf's composite inertia, which equals its own inertia
        I = d.crb[i] if body.lastchild > 0 else d.cinert[i]
        force, field_force = d.cfrc[i], p.body_field_force[i]
        for k in range(first, first + body.dofnum):
            S, eta = d.cdof[k], p.dof_eta_angular[k]
            p.dof_momentum[k] = I @ S
            p.dof_drag[k] = transposed_velocity_force(d.crb_rate[i], S)
            I_zeta = I @ p.dof_zeta[k]
            p.dof_force[k] = I_zeta + velocity_force(d.crb_rate[i], eta)
            I_w = I @ p.dof_w[k]
            p.dof_damping_force[k] = I_w + velocity_force(d.crb_rate[i], S.angular)
            p.dof_field_force[k] = I @ p.dof_field_zeta[k]
        if parent > 0:  # no dof needs the sums of the world
            d.cfrc[parent] += force
            p.body_field_force[parent] += field_force
            d.crb_rate[parent] += d.crb_rate[i]


@kernel
def position_column(m, d, p, k):
    """dg <- derivatives of M qacc + C by the position of dof k; dp <- those of M x, at rest.

    Both must be 0 before: only the dofs in row k of D are written.
    """
    S, i = d.cdof[k], m.dof_bodyid[k]
    force, field_force = p.dof_force[k], p.dof_field_force[k]
    # S x* f^c: change of the forces that move along with the outer bodies
    carried = force + cross_force(S, d.cfrc[i])
    field_carried = field_force + cross_force(S, p.body_field_force[i])
    rowadr, diagonal = m.D_rowadr[k], m.D_diag[k]
    # dofs j between k and the root: S_j . (I^c zeta_k + B^c eta_k + S_k x* f^c)
    for c in range(diagonal):
        j = m.D_colind[rowadr + c]
        T = d.cdof[j]
        if shares_quaternion(m, j, k):  # axes of one ball
            p.dg[j], p.dp[j] = dot(T, force), dot(T, field_force)
        else:
            p.dg[j], p.dp[j] = dot(T, carried), dot(T, field_carried)
    p.dg[k], p.dp[k] = dot(S, force), dot(S, field_force)
    # dof k moves dof j: (I^c S_j) . zeta_k + (B^c^T S_j) . eta_k
    zeta, eta, field = p.dof_zeta[k], p.dof_eta_angular[k], p.dof_field_zeta[k]
    for c in range(diagonal + 1, m.D_rownnz[k]):
        j = m.D_colind[rowadr + c]
        momentum = p.dof_momentum[j]
        p.dg[j], p.dp[j] = dot(momentum, zeta) + dot(p.dof_drag[j], eta), dot(momentum, field)


@kernel
def _set_work_towards_root(m, d, p, k, f):
    """dg_j <- S_j . f for the dofs j on the path from the root through k."""
    for c in range(m.D_diag[k] + 1):
        j = m.D_colind[m.D_rowadr[k] + c]
        p.dg[j] = dot(d.cdof[j], f)


@kernel
def velocity_column(m, d, p, k):
    """dg <- derivatives of C by the velocity of dof k; dg must be 0 before, see `position_column`."""
    w, S = p.dof_w[k], d.cdof[k]
    _set_work_towards_root(m, d, p, k, p.dof_damping_force[k])
    for c in range(m.D_diag[k] + 1, m.D_rownnz[k]):
        j = m.D_colind[m.D_rowadr[k] + c]
        # dof k moves dof j: (I^c S_j) . w_k + (B^c^T S_j) . S_k
        p.dg[j] = dot(p.dof_momentum[j], w) + dot(p.dof_drag[j], S.angular)


@kernel
def acceleration_column(m, d, p, k):
    """dg <- column k of the bodies' inertia matrix; dg must be 0 before, see `position_column`."""
    # M_kj = S_j . (I^c S_k) for dofs j towards the root, S_k . (I^c_j S_j) for dofs j that k moves
    S = d.cdof[k]
    _set_work_towards_root(m, d, p, k, p.dof_momentum[k])
    for c in range(m.D_diag[k] + 1, m.D_rownnz[k]):
        j = m.D_colind[m.D_rowadr[k] + c]
        p.dg[j] = dot(p.dof_momentum[j], S)
