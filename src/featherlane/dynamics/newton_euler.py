"""Recursive Newton-Euler: generalized forces of given motion, accelerations outwards, forces back."""

from __future__ import annotations

from featherlane.lanes import kernel, real, stage
from featherlane.spatial.inertia import inert_mul
from featherlane.spatial.motion import add6, axpy6, cross_force, dot6
from featherlane.spatial.vector import load6, load10, store6

from .flags import DISABLE_GRAVITY


@kernel
def world_acceleration(m, d):
    """-g as acceleration of the world: a fixed frame accelerated upwards feels like gravity."""
    zero = real(d, 0.0)
    if m.opt_disableflags & DISABLE_GRAVITY:
        a = (zero, zero, zero, zero, zero, zero)
    else:
        a = (zero, zero, zero, -m.opt_gravity[0], -m.opt_gravity[1], -m.opt_gravity[2])
    return a


@kernel
def _body_force(d, i, acc):
    """Force that moves body i: I a + v x* I v; stores both."""
    I, vel = load10(d.cinert, 10 * i), load6(d.cvel, 6 * i)
    store6(d.cacc, 6 * i, acc)
    store6(d.cfrc, 6 * i, add6(inert_mul(I, acc), cross_force(vel, inert_mul(I, vel))))


@kernel
def _backward(m, d, result):
    """Forces of children are added to their parents'; a dof feels the part along its axis."""
    for i in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[i]
        if p > 0:
            store6(d.cfrc, 6 * p, add6(load6(d.cfrc, 6 * p), load6(d.cfrc, 6 * i)))
    for k in range(m.nv):
        result[k] = dot6(load6(d.cdof, 6 * k), load6(d.cfrc, 6 * m.dof_bodyid[k]))


@stage
def rne(m, d):
    """Coriolis, centrifugal and gravity forces C(q, v): inverse dynamics without acceleration.

    a_i = a_lambda(i) + dS_i/dt qvel_i;  f_i = I_i a_i + v_i x* I_i v_i + sum over children f_j;  C_i = S_i^T f_i.
    Source: Featherstone sec. 5.3, table 5.1; MuJoCo mj_rne with flg_acc = 0.
    Reads:  qvel, cdof, cdof_dot, cinert, cvel, opt_gravity.   Writes: qfrc_bias (nv,) [N, N m]; cacc and cfrc.
    Frame: world axes at the tree's com.                       Cost: O(nv).
    """
    store6(d.cacc, 0, world_acceleration(m, d))
    for i in range(1, m.nbody):
        acc = load6(d.cacc, 6 * m.body_parentid[i])
        first = m.body_dofadr[i]
        for k in range(first, first + m.body_dofnum[i]):
            acc = axpy6(d.qvel[k], load6(d.cdof_dot, 6 * k), acc)
        _body_force(d, i, acc)
    _backward(m, d, d.qfrc_bias)


@stage
def rne_acc(m, d):
    """qvec <- forces that give the acceleration qacc: M qacc + C(q, v) without the armature's part.

    Source: Featherstone sec. 5.3, table 5.1; MuJoCo mj_rne with flg_acc = 1.
    Reads:  qvel, qacc, cdof, cdof_dot, cinert, cvel, opt_gravity.   Writes: qvec (nv,) [N, N m]; cacc and cfrc.
    Frame: world axes at the tree's com.                             Cost: O(nv).
    Note:   external forces are not subtracted; armature is no body, add dof_armature qacc for it.
    """
    store6(d.cacc, 0, world_acceleration(m, d))
    for i in range(1, m.nbody):
        acc = load6(d.cacc, 6 * m.body_parentid[i])
        first = m.body_dofadr[i]
        for k in range(first, first + m.body_dofnum[i]):
            acc = axpy6(d.qvel[k], load6(d.cdof_dot, 6 * k), acc)
            acc = axpy6(d.qacc[k], load6(d.cdof, 6 * k), acc)
        _body_force(d, i, acc)
    _backward(m, d, d.qvec)
