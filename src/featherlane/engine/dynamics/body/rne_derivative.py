"""Computes dC(q, v)/dv of the bias force with composite bodies: O(nv * depth), without finite differences.

With the motion axis S_j, the velocity v_i of body i, its inertia I_i and its momentum h_i = I_i v_i, the derivatives
of recursive Newton-Euler for the bodies after DoF j with respect to its rate are

    dv_i = S_j
    da_i = w_j - v_i x S_j                     w_j = (v before joint j + v after it) x S_j
    df_i = I_i w_j + B_i S_j                   B_i x = v_i x* I_i x - I_i (v_i x x) + x x* h_i

w_j (field cdof_rate) contains the rate of S_j and the rotation of all axes after it.  Inertias and B_i (field crb_rate)
refer to one point of the tree and add up to those of composite bodies, I^c and B^c.  So for DoF k of body b and each
DoF j from the root to k

    D_jk = S_j . (I^c_b w_k + B^c_b S_k)       D_kj = (I^c_b S_k) . w_j + (B^c_b^T S_k) . S_j

B depends on rotation only.  With x = (omega, u), the momentum (l, p) and Jdot the rate of the rotational inertia,
B x = (Jdot omega + omega x l, 2 omega x p): nine values in a symmetric matrix and two vectors, which are summed for
the composite body.
Source: Singh, Russell, Wensing, Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra
(IEEE RA-L 7, 2022), for the composite form; here about a fixed point in world axes and with B's zero half left out.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.fields import InertiaRate
from featherlane.engine.dynamics.body.joint import moved_along


@kernel
def inertia_rate(I, v):
    """Returns (Jdot, l, p) as InertiaRate: the rate of a body's rotational inertia J, and its momentum (l, p) = I v.

    Jdot = omega x J + (omega x J)^T + 2 (u . c) 1 - u c^T - c u^T, with v = (omega, u) and c the mass times the
    centre of mass; the nine values B of the module docstring.
    """
    omega, u = v.angular, v.linear
    c = Vec3(I.mx, I.my, I.mz)
    # x, y, z: columns 0, 1, 2 of omega x J, so that x[1] is its entry yx
    x = cross(omega, Vec3(I.Ixx, I.Ixy, I.Ixz))
    y = cross(omega, Vec3(I.Ixy, I.Iyy, I.Iyz))
    z = cross(omega, Vec3(I.Ixz, I.Iyz, I.Izz))
    uc = dot(u, c)
    h = I @ v
    # Jdot_xx = 2 (x_0 + u.c - u_0 c_0);   Jdot_xy = x_1 + y_0 - (u_0 c_1 + u_1 c_0);   the others alike
    return InertiaRate(
        2.0 * (x[0] + fma(-u[0], c[0], uc)),
        2.0 * (y[1] + fma(-u[1], c[1], uc)),
        2.0 * (z[2] + fma(-u[2], c[2], uc)),
        (x[1] + y[0]) - fma(u[0], c[1], u[1] * c[0]),
        (x[2] + z[0]) - fma(u[0], c[2], u[2] * c[0]),
        (y[2] + z[1]) - fma(u[1], c[2], u[2] * c[1]),
        h.mx,
        h.my,
        h.mz,
        h.fx,
        h.fy,
        h.fz,
    )


@kernel
def velocity_force(B, omega):
    """Returns B x = (Jdot omega + omega x l, 2 omega x p) of a motion x with angular velocity omega; B: InertiaRate."""
    moment = rotational_momentum(B, omega) + cross(omega, Vec3(B.lx, B.ly, B.lz))
    force = 2.0 * cross(omega, Vec3(B.px, B.py, B.pz))
    return Force(join(moment, force))


@kernel
def transposed_velocity_force(B, S):
    """Returns the three nonzero values of B^T S: Jdot omega + l x omega + 2 p x u, with S = (omega, u)."""
    omega, u = S.angular, S.linear
    moment = rotational_momentum(B, omega) + cross(Vec3(B.lx, B.ly, B.lz), omega)
    return fma(2.0, cross(Vec3(B.px, B.py, B.pz), u), moment)


@kernel
def _store_axis_rate(d, dof, before_plus_after):
    """cdof_rate[dof] <- w = (v before the joint + v after it) x S."""
    d.cdof_rate[dof] = cross_motion(before_plus_after, d.cdof[dof])


@kernel
def _store_axis_rates(m, d, i):
    """cdof_rate <- w of the DoFs of body i: the axes of a ball share the velocities before and after the joint.

    Translations of a free joint keep world axes, so they have w = 0.   Reads:  cvel, qvel, cdof.
    """
    vel = d.cvel[m.body_parentid[i]]
    for j in body_joints(m, i):
        dof, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            for k in range(3):
                d.cdof_rate[dof + k] = zeros(6)
            vel = moved_along(vel, Vec3(d.qvel[dof : dof + 3]))  # adds the linear velocity
            dof += 3
        after = fma(d.qvel[dof], d.cdof[dof], vel)
        if has_quaternion(kind):
            after = fma(d.qvel[dof + 1], d.cdof[dof + 1], after)
            after = fma(d.qvel[dof + 2], d.cdof[dof + 2], after)
        before_plus_after = vel + after
        _store_axis_rate(d, dof, before_plus_after)
        if has_quaternion(kind):
            _store_axis_rate(d, dof + 1, before_plus_after)
            _store_axis_rate(d, dof + 2, before_plus_after)
        vel = after


@kernel
def _add_dof(m, d, k, I, i, s):
    """qDeriv += s D in row and column of DoF k of body i, up to the diagonal; I is the composite inertia I^c.

    D_jk = S_j . (I w_k + B S_k);   D_kj = (I S_k) . w_j + (B^T S_k) . S_j for the ancestors j of k.
    Reads: cdof_rate (w) and crb_rate[i] (B^c), which `add_bias_derivative` computes before.
    """
    S_k, w_k = d.cdof[k], d.cdof_rate[k]
    f = I @ w_k + velocity_force(d.crb_rate[i], S_k.angular)  # I w_k + B S_k
    IS = I @ S_k
    BtS = transposed_velocity_force(d.crb_rate[i], S_k)  # B^T S_k has only an angular part
    # row k of qDeriv starts with the ancestors of k; D_diag is the index of the diagonal in the row
    row, nancestors = m.D_rowadr[k], m.D_diag[k]
    for c in range(nancestors):
        j = m.D_colind[row + c]
        S_j = d.cdof[j]
        D_kj = dot(IS, d.cdof_rate[j]) + dot(BtS, S_j.angular)
        d.qDeriv[row + c] = fma(s, D_kj, d.qDeriv[row + c])
        # entry (j, k): the DoFs from j to k descend from j, and follow the diagonal of row j in order
        jk = m.D_rowadr[j] + m.D_diag[j] + k - j
        d.qDeriv[jk] = fma(s, dot(S_j, f), d.qDeriv[jk])
    d.qDeriv[row + nancestors] = fma(s, dot(S_k, f), d.qDeriv[row + nancestors])


@kernel
def add_bias_derivative(m, d, s):
    """qDeriv += s d(bias force) / d qvel.

    Reads:  qvel, cvel, cdof, cinert, crb.   Writes: qDeriv; cdof_rate (w), crb_rate (B of composite bodies).
    """
    for i in range(1, m.nbody):
        _store_axis_rates(m, d, i)
        d.crb_rate[i] = inertia_rate(d.cinert[i], d.cvel[i])
    # from the leaves to the root: crb_rate[i] is complete when body i is reached
    for i in range(m.nbody - 1, 0, -1):
        body = m.body[i]
        parent, first = body.parentid, body.dofadr
        # a leaf's composite inertia is its own; crb may not contain it
        I = d.crb[i] if body.lastchild > 0 else d.cinert[i]
        # from the body's last DoF to its first, as in Newton-Euler's inward pass
        for k in range(first + body.dofnum - 1, first - 1, -1):
            _add_dof(m, d, k, I, i, s)
        if parent > 0:
            d.crb_rate[parent] += d.crb_rate[i]


@stage
def rne_vel(m, d):
    """Computes the velocity derivative of Coriolis and centrifugal forces: qDeriv <- d C(q, v) / d qvel.

    D_jk and D_kj are defined in dynamics/body/rne_derivative.py, for each DoF j on the path from the root to DoF k.
    qDeriv is sparse, by rows (`model.D_rowadr`, `D_rownnz`, `D_colind`): row i holds the ancestors of dof i, itself and
    its descendants.
    Source: Singh, Russell, Wensing, IEEE RA-L 7, 2022; MuJoCo mjd_rne_vel (which carries the Jacobian of every body,
        O(nv^2)).
    Reads:  qvel, cvel, cdof, cinert, crb.   Writes: qDeriv (nD,) [N s/m, N m s/rad]; as scratch crb_rate, cdof_rate.
    Frame:  world axes at the tree's com.    Cost: O(nv * depth).
    """
    clear(d.qDeriv, m.nD)
    add_bias_derivative(m, d, s=1.0)
