"""Computes the gyroscopic torque of separate free bodies: explicit, implicit, or off.

The bias force of recursive Newton-Euler contains the torque explicitly, as in MuJoCo: w' = w + h I^-1 (L x w) with the
angular momentum L = I w, which gains energy at large steps.  ODE instead takes one linearized implicit step,

    w' = w + dw,    (I - h [L]x) dw = h L x w,    which is the torque  I dw / h = L x w'

and loses energy.  dw is computed directly, not as a difference of velocities, and L x w from the moments' differences,
so a nearly isotropic body keeps its precision.  All is in body axes: a rotation about w' leaves w' unchanged, so
MuJoCo's update of velocities in the body's axes and ODE's in the world's are equal.

Imported kernels:

    composite_inertia(m, d, i)  inertia of the tree of free body i about its com, in world axes, an Inertia
    rotational_momentum(I, w)   I w, for an Inertia or six values
    is_single_free_body(m, i)   whether body i, with the bodies fixed to it, is a tree whose only joint is free
    gyroscopic_mode(m, i)       GYRO_EXPLICIT, GYRO_IMPLICIT or off

Source: Lacoursiere, Stabilizing gyroscopic forces in rigid multibody simulations (2006); ODE, dBodySetGyroscopicMode.
    Deviation: ODE does so for every body, here a tree's other bodies keep the explicit torque.
Note:   implicit integrators omit the rates of a torque that is implicit or off.  The implicit torque is
    of first order, and an error with RK4.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.integrator.free_body import composite_inertia, gyroscopic_mode, is_single_free_body


@kernel
def _split_inertia(m, i):
    """Returns (c, D): the inertia of body i about its com, in body axes, as c 1 + D; D is (xx, yy, zz, xy, xz, yz).

    With the moments (c, c + a, c + b) along the columns of Q:  D = a q_1 q_1^T + b q_2 q_2^T, without cancellation.
    """
    Q, c = m.body_iquat[i].matrix, m.body_inertia[i][0]
    a, b = m.body_inertia[i][1] - c, m.body_inertia[i][2] - c
    # entries 1, 4, 7 of Q are q_1, the entries behind them q_2; a pair of them for each of xx, yy, zz, xy, xz, yz
    entries = ((1, 1), (4, 4), (7, 7), (1, 4), (1, 7), (4, 7))
    return c, tuple(fma(a * Q[r], Q[s], b * Q[r + 1] * Q[s + 1]) for r, s in entries)


@kernel
def _implicit_torque(c, D, w, h):
    """Returns L x w' of the inertia I = c 1 + D, with L = I w and w' = w + dw;  w: angular velocity, h: time step.

    D is symmetric: (xx, yy, zz, xy, xz, yz).
    (I - h [L]x) dw = h L x w, where L x w = (D w) x w;  L x w' = L x w + L x dw.
    """
    Dw = rotational_momentum(D, w)
    L = fma(c, w, Dw)
    L_cross_w = cross(Dw, w)
    x, y, z = h * L
    # I - h [L]x, with (x, y, z) = h L
    inverse, exists = mat_inverse(
        Mat3(c + D[0], D[3] + z, D[4] - y, D[3] - z, c + D[1], D[5] + x, D[4] + y, D[5] - x, c + D[2])
    )
    dw = h * (inverse @ L_cross_w)
    torque = L_cross_w + cross(L, dw)
    return where(exists, torque, Vec3(zeros(3)))  # only a body without inertia has a singular matrix


@kernel
def _moment_and_torque(m, d, i, dof, f):
    """Returns (moment about the body's origin of the force f at the com, implicit torque L x w'), both in body axes.

    i: a free body;  dof: its first DoF;  f: a force in world axes.
    """
    R = d.xmat[i]
    w = Vec3(d.qvel[dof + 3 : dof + 6])
    h = timestep(m)
    if m.tree_bodynum[m.body_treeid[i]] == 1:  # no other body is fixed to it
        c, D = _split_inertia(m, i)
        moment = cross(m.body_ipos[i], R.T @ f)
        torque = _implicit_torque(c, D, w, h)
    else:
        # the inertia c 1 + D of all bodies that are fixed together, about their com, in world axes
        I = composite_inertia(m, d, i)
        s = d.subtree_com[i] - d.xpos[i]
        c = I.Ixx
        D = (0.0, I.Iyy - I.Ixx, I.Izz - I.Ixx, I.Ixy, I.Ixz, I.Iyz)
        moment = R.T @ cross(s, f)
        torque = R.T @ _implicit_torque(c, D, R @ w, h)
    return moment, torque


@kernel
def replace_gyroscopic_torque(m, d):
    """Replaces qfrc_bias of free bodies whose gyroscopic torque is implicit or off.

    With the com at s from the body's origin the bias is a force f at the com and the moment s x f - torque, in body
    axes.
    Reads:  qfrc_bias, qvel, xmat, xpos, subtree_com, cinert.   Writes: qfrc_bias (nv,) [N m].
    """
    for i in range(1, m.nbody):
        mode = gyroscopic_mode(m, i)
        if mode != GYRO_EXPLICIT and is_single_free_body(m, i):
            dof = m.jnt_dofadr[m.body_jntadr[i]]
            moment, torque = _moment_and_torque(m, d, i, dof, Vec3(d.qfrc_bias[dof : dof + 3]))
            # if it is off, the bias has no torque
            if mode == GYRO_IMPLICIT:
                moment = moment - torque
            d.qfrc_bias[dof + 3 : dof + 6] = moment


@kernel
def subtract_torque_rates(m, d, s):
    """qDeriv -= s d(w x I w) / d w of free bodies whose gyroscopic torque is implicit or off.

    `add_bias_derivative(m, d, s)` has added this rate of the explicit torque, which these bodies do not have.
    Along axis k of the body the rate is axis x I w + w x I axis, in world axes; qDeriv has it in body axes.
    """
    for i in range(1, m.nbody):
        if gyroscopic_mode(m, i) != GYRO_EXPLICIT and is_single_free_body(m, i):
            # dof: the first rotational one
            dof = m.jnt_dofadr[m.body_jntadr[i]] + 3
            R = d.xmat[i]
            I = composite_inertia(m, d, i)
            w = R @ Vec3(d.qvel[dof : dof + 3])
            Iw = rotational_momentum(I, w)
            for k in range(3):
                axis = R.columns[k]
                rate = R.T @ (cross(axis, Iw) + cross(w, rotational_momentum(I, axis)))
                for r in range(3):
                    # entry (dof + r, dof + k): the six DoFs are contiguous in rows and columns
                    e = m.D_rowadr[dof + r] + m.D_diag[dof + r] + k - r
                    d.qDeriv[e] = fma(-s, rate[r], d.qDeriv[e])
