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
from featherlane.dynamics.body.newton_euler import world_acceleration
from featherlane.dynamics.body.rne_derivative import axis_drag, composite_drag_of, rate_of_rotational_inertia


@kernel
def add_linear(x, a, v):
    """Adds to the motion x the translation along the world's axes by v[a ...]."""
    return x[0], x[1], x[2], x[3] + v[a], x[4] + v[a + 1], x[5] + v[a + 2]


@kernel
def _outwards(m, d, p, i, x):
    """Computes velocity, acceleration and x of body i, and the motion that each of its dofs gives outer bodies."""
    parent, first = m.body_parentid[i], m.body_jntadr[i]
    vel, acc, lag = load6(d.cvel, 6 * parent), load6(d.cacc, 6 * parent), load6(p.body_lag, 6 * parent)
    for j in range(first, first + m.body_jntnum[i]):
        v, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            # translations: their axes are fixed, and the velocity before them is 0
            for k in range(v, v + 3):
                store6(p.dof_carried, 6 * k, zeros(6))
                store3(p.dof_turned, 3 * k, zeros(3))
                store6(p.dof_rate, 6 * k, zeros(6))
                store6(p.dof_lag, 6 * k, zeros(6))
            vel, acc, lag = add_linear(vel, v, d.qvel), add_linear(acc, v, d.qacc), add_linear(lag, v, x)
            v += 3
        last = v + 3 if has_quaternion(kind) else v + 1
        after, faster, behind = vel, acc, lag
        for k in range(v, last):
            S = load6(d.cdof, 6 * k)
            eta = cross_motion(vel, S)
            store6(p.dof_carried, 6 * k, add6(cross_motion(acc, S), cross_motion(vel, eta)))
            store3(p.dof_turned, 3 * k, (eta[0], eta[1], eta[2]))
            store6(p.dof_lag, 6 * k, cross_motion(lag, S))
            faster = axpy6(d.qacc[k], S, axpy6(d.qvel[k], eta, faster))
            after, behind = axpy6(d.qvel[k], S, after), axpy6(x[k], S, behind)
        both = add6(vel, after)
        for k in range(v, last):
            store6(p.dof_rate, 6 * k, cross_motion(both, load6(d.cdof, 6 * k)))
        vel, acc, lag = after, faster, behind
    store6(d.cvel, 6 * i, vel)
    store6(d.cacc, 6 * i, acc)
    store6(p.body_lag, 6 * i, lag)
    I = load10(d.cinert, 10 * i)
    momentum = inert_mul(I, vel)
    store6(d.cfrc, 6 * i, add6(inert_mul(I, acc), cross_force(vel, momentum)))
    store6(p.body_lag_force, 6 * i, inert_mul(I, lag))
    store6(d.crb_rate, 12 * i, rate_of_rotational_inertia(I, vel))
    store6(d.crb_rate, 12 * i + 6, momentum)


@kernel
def outward_pass(m, d, p, x):
    """Computes motions of all bodies at qvel and qacc, and at rest at acceleration x, and the forces for these."""
    store6(d.cvel, 0, zeros(6))
    store6(d.cacc, 0, world_acceleration(m))
    store6(p.body_lag, 0, zeros(6))
    for i in range(1, m.nbody):
        _outwards(m, d, p, i, x)


@kernel
def inwards(m, d, p):
    """Computes for each dof I^c S, B^c^T S, and the rates of the force on all outer bodies."""
    for i in range(m.nbody - 1, 0, -1):
        parent, first, a = m.body_parentid[i], m.body_dofadr[i], 12 * i
        # the stage crb does not write a leaf's composite inertia, which equals its own inertia
        I = load10(d.crb, 10 * i) if m.body_lastchild[i] > 0 else load10(d.cinert, 10 * i)
        f, slow = load6(d.cfrc, 6 * i), load6(p.body_lag_force, 6 * i)
        for k in range(first, first + m.body_dofnum[i]):
            S, eta = load6(d.cdof, 6 * k), load3(p.dof_turned, 3 * k)
            store6(p.dof_momentum, 6 * k, inert_mul(I, S))
            store3(p.dof_drag, 3 * k, axis_drag(d.crb_rate, a, S))
            zeta = inert_mul(I, load6(p.dof_carried, 6 * k))
            store6(p.dof_force, 6 * k, add6(zeta, composite_drag_of(d.crb_rate, a, eta)))
            w = inert_mul(I, load6(p.dof_rate, 6 * k))
            store6(p.dof_damping_force, 6 * k, add6(w, composite_drag_of(d.crb_rate, a, (S[0], S[1], S[2]))))
            store6(p.dof_lag_force, 6 * k, inert_mul(I, load6(p.dof_lag, 6 * k)))
        if parent > 0:
            store6(d.cfrc, 6 * parent, add6(load6(d.cfrc, 6 * parent), f))
            store6(p.body_lag_force, 6 * parent, add6(load6(p.body_lag_force, 6 * parent), slow))
            for e in range(12):
                d.crb_rate[12 * parent + e] = d.crb_rate[12 * parent + e] + d.crb_rate[a + e]


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
    S, i = load6(d.cdof, 6 * k), m.dof_bodyid[k]
    f, slow = load6(p.dof_force, 6 * k), load6(p.dof_lag_force, 6 * k)
    carried = add6(f, cross_force(S, load6(d.cfrc, 6 * i)))
    slow_carried = add6(slow, cross_force(S, load6(p.body_lag_force, 6 * i)))
    a, above = m.D_rowadr[k], m.D_diag[k]
    for c in range(above):
        j = m.D_colind[a + c]
        T = load6(d.cdof, 6 * j)
        if turns_with(m, j, k):
            p.dg[j], p.dp[j] = dot6(T, f), dot6(T, slow)
        else:
            p.dg[j], p.dp[j] = dot6(T, carried), dot6(T, slow_carried)
    p.dg[k], p.dp[k] = dot6(S, f), dot6(S, slow)
    zeta, eta, lag = load6(p.dof_carried, 6 * k), load3(p.dof_turned, 3 * k), load6(p.dof_lag, 6 * k)
    for c in range(above + 1, m.D_rownnz[k]):
        j = m.D_colind[a + c]
        I = load6(p.dof_momentum, 6 * j)
        p.dg[j], p.dp[j] = dot6(I, zeta) + dot3(load3(p.dof_drag, 3 * j), eta), dot6(I, lag)


@kernel
def _towards_root(m, d, p, k, f):
    """dg of dof k and of the dofs before it <- the work of f."""
    for c in range(m.D_diag[k] + 1):
        j = m.D_colind[m.D_rowadr[k] + c]
        p.dg[j] = dot6(load6(d.cdof, 6 * j), f)


@kernel
def velocity_column(m, d, p, k):
    """dg <- rates of C by the velocity of dof k; it must be 0 before."""
    w, S = load6(p.dof_rate, 6 * k), load6(d.cdof, 6 * k)
    _towards_root(m, d, p, k, load6(p.dof_damping_force, 6 * k))
    for c in range(m.D_diag[k] + 1, m.D_rownnz[k]):
        j = m.D_colind[m.D_rowadr[k] + c]
        drag = dot3(load3(p.dof_drag, 3 * j), (S[0], S[1], S[2]))
        p.dg[j] = dot6(load6(p.dof_momentum, 6 * j), w) + drag


@kernel
def acceleration_column(m, d, p, k):
    """dg <- column k of the bodies' inertia matrix; it must be 0 before."""
    S = load6(d.cdof, 6 * k)
    _towards_root(m, d, p, k, load6(p.dof_momentum, 6 * k))
    for c in range(m.D_diag[k] + 1, m.D_rownnz[k]):
        j = m.D_colind[m.D_rowadr[k] + c]
        p.dg[j] = dot6(load6(p.dof_momentum, 6 * j), S)
