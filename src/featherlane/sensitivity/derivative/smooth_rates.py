"""Derivatives of inverse dynamics by position and velocity with composite bodies: O(nv) once, O(depth) for an entry.

A displacement of dof j moves the outer bodies along its axis S_j, and leaves the inner ones.  Relative to the outer
bodies, the inner ones then have another velocity and acceleration.  With v the velocity and a the acceleration
(including gravity) before the joint:

    velocity       eta = v x S_j
    acceleration   zeta = a x S_j + v x eta
    df_i = S_j x* f_i + I_i zeta + B_i eta          B_i as in dynamics/body/rne_derivative.py

and its velocity gives df_i = I_i w_j + B_i S_j.  The axes of dofs beyond j move along, so S_j x* f does no
work on them; for dof k of a composite body and each dof j from the root down to k

    by position   dtau_k / dq_j = (I^c S_k) . zeta_j + (B^c^T S_k) . eta_j
                  dtau_j / dq_k = S_j . (I^c zeta_k + B^c eta_k + S_k x* f^c)
    by velocity   the same with w, S in place of zeta, eta, and without the term S x* f

The axes of one ball move each other: there the last term is omitted.  Forces f^c are net: contact forces, which move
along with a body, are subtracted, and contact_rates.py computes their remaining changes.
Source: Carpentier, Mansard, Analytical derivatives of rigid body dynamics algorithms (RSS 2018); Singh, Russell,
Wensing, Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra (IEEE RA-L 7, 2022).
"""

from featherlane.prelude import *
from featherlane.dynamics.body.joint import moved_along
from featherlane.dynamics.body.newton_euler import world_acceleration
from featherlane.dynamics.body.rne_derivative import inertia_rate, transposed_velocity_force, velocity_force


@kernel
def _outwards(m, d, p, i, x):
    """Computes velocity, acceleration and x of body i, and the motion that each of its dofs gives outer bodies."""
    parent, first = m.body_parentid[i], m.body_jntadr[i]
    vel, acc, lag = d.cvel[parent], d.cacc[parent], p.body_lag[parent]
    for j in range(first, first + m.body_jntnum[i]):
        v, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            # translations: their axes are fixed, and the velocity before them is 0
            for k in range(v, v + 3):
                p.dof_carried[k] = zeros(6)
                p.dof_turned[k] = zeros(3)
                p.dof_rate[k] = zeros(6)
                p.dof_lag[k] = zeros(6)
            vel, acc = moved_along(vel, Vec3(d.qvel[v : v + 3])), moved_along(acc, Vec3(d.qacc[v : v + 3]))
            lag = moved_along(lag, Vec3(x[v : v + 3]))
            v += 3
        last = v + 3 if has_quaternion(kind) else v + 1
        after, faster, behind = vel, acc, lag
        for k in range(v, last):
            S = d.cdof[k]
            eta = cross_motion(vel, S)
            p.dof_carried[k] = cross_motion(acc, S) + cross_motion(vel, eta)
            p.dof_turned[k] = eta.angular
            p.dof_lag[k] = cross_motion(lag, S)
            faster = fma(d.qacc[k], S, fma(d.qvel[k], eta, faster))
            after, behind = fma(d.qvel[k], S, after), fma(x[k], S, behind)
        both = vel + after
        for k in range(v, last):
            p.dof_rate[k] = cross_motion(both, d.cdof[k])
        vel, acc, lag = after, faster, behind
    d.cvel[i] = vel
    d.cacc[i] = acc
    p.body_lag[i] = lag
    I = d.cinert[i]
    d.cfrc[i] = I @ acc + cross_force(vel, I @ vel)
    p.body_lag_force[i] = I @ lag
    d.crb_rate[i] = inertia_rate(I, vel)


@kernel
def outward_pass(m, d, p, x):
    """Computes motions of all bodies at qvel and qacc, and at rest at acceleration x, and the forces for these."""
    d.cvel[0] = zeros(6)
    d.cacc[0] = world_acceleration(m)
    p.body_lag[0] = zeros(6)
    for i in range(1, m.nbody):
        _outwards(m, d, p, i, x)


@kernel
def inwards(m, d, p):
    """Computes for each dof I^c S, B^c^T S, and the rates of the force on all outer bodies."""
    for i in range(m.nbody - 1, 0, -1):
        body = m.body[i]
        parent, first = body.parentid, body.dofadr
        # the stage crb does not write a leaf's composite inertia, which equals its own inertia
        I = d.crb[i] if body.lastchild > 0 else d.cinert[i]
        f, slow = d.cfrc[i], p.body_lag_force[i]
        for k in range(first, first + body.dofnum):
            S, eta = d.cdof[k], p.dof_turned[k]
            p.dof_momentum[k] = I @ S
            p.dof_drag[k] = transposed_velocity_force(d.crb_rate[i], S)
            zeta = I @ p.dof_carried[k]
            p.dof_force[k] = zeta + velocity_force(d.crb_rate[i], eta)
            w = I @ p.dof_rate[k]
            p.dof_damping_force[k] = w + velocity_force(d.crb_rate[i], S.angular)
            p.dof_lag_force[k] = I @ p.dof_lag[k]
        if parent > 0:
            d.cfrc[parent] += f
            p.body_lag_force[parent] += slow
            d.crb_rate[parent] += d.crb_rate[i]


@kernel
def turns_with(m, j, k):
    """Returns whether dofs j and k are rotations of one ball, or of one free joint."""
    joint = m.dof_jntid[k]
    kind, v = m.jnt_type[joint], m.jnt_dofadr[joint]
    one = m.dof_jntid[j] == joint and has_quaternion(kind)
    return one and not (is_free_joint(kind) and min(j, k) < v + 3)


@kernel
def position_column(m, d, p, k):
    """dg <- rates of M qacc + C by the position of dof k; dp <- those of M x, at rest.  Both must be 0 before."""
    S, i = d.cdof[k], m.dof_bodyid[k]
    f, slow = p.dof_force[k], p.dof_lag_force[k]
    carried = f + cross_force(S, d.cfrc[i])
    slow_carried = slow + cross_force(S, p.body_lag_force[i])
    a, above = m.D_rowadr[k], m.D_diag[k]
    for c in range(above):
        j = m.D_colind[a + c]
        T = d.cdof[j]
        if turns_with(m, j, k):
            p.dg[j], p.dp[j] = dot(T, f), dot(T, slow)
        else:
            p.dg[j], p.dp[j] = dot(T, carried), dot(T, slow_carried)
    p.dg[k], p.dp[k] = dot(S, f), dot(S, slow)
    zeta, eta, lag = p.dof_carried[k], p.dof_turned[k], p.dof_lag[k]
    for c in range(above + 1, m.D_rownnz[k]):
        j = m.D_colind[a + c]
        I = p.dof_momentum[j]
        p.dg[j], p.dp[j] = dot(I, zeta) + dot(p.dof_drag[j], eta), dot(I, lag)


@kernel
def _towards_root(m, d, p, k, f):
    """dg of dof k and of the dofs before it <- the work of f."""
    for c in range(m.D_diag[k] + 1):
        j = m.D_colind[m.D_rowadr[k] + c]
        p.dg[j] = dot(d.cdof[j], f)


@kernel
def velocity_column(m, d, p, k):
    """dg <- rates of C by the velocity of dof k; it must be 0 before."""
    w, S = p.dof_rate[k], d.cdof[k]
    _towards_root(m, d, p, k, p.dof_damping_force[k])
    for c in range(m.D_diag[k] + 1, m.D_rownnz[k]):
        j = m.D_colind[m.D_rowadr[k] + c]
        p.dg[j] = dot(p.dof_momentum[j], w) + dot(p.dof_drag[j], S.angular)


@kernel
def acceleration_column(m, d, p, k):
    """dg <- column k of the bodies' inertia matrix; it must be 0 before."""
    S = d.cdof[k]
    _towards_root(m, d, p, k, p.dof_momentum[k])
    for c in range(m.D_diag[k] + 1, m.D_rownnz[k]):
        j = m.D_colind[m.D_rowadr[k] + c]
        p.dg[j] = dot(p.dof_momentum[j], S)
