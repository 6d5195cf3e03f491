"""Computes recursive Newton-Euler: generalized forces of a given motion; accelerations outwards, forces inwards.

cacc[i] holds the acceleration of body i, cfrc[i] the force on it, summed over its subtree after the inward pass.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.joint import moved_along


@kernel
def world_acceleration(m):
    """Returns -g as the acceleration of the world: a frame accelerated upwards is equivalent to gravity."""
    if m.opt_disableflags & DISABLE_GRAVITY:
        a = zeros(3)
    else:
        a = -m.opt_gravity[0]
    return Motion(join(zeros(3), a))


@kernel
def _store_body_force(d, i, vel, acc):
    """cacc[i] <- acc;  cfrc[i] <- I a + v x* I v, the force that gives body i with velocity v the acceleration a."""
    I = d.cinert[i]
    d.cacc[i] = acc
    d.cfrc[i] = I @ acc + cross_force(vel, I @ vel)


@kernel
def _outward_pass(m, d, accelerates):
    """Computes the acceleration of each body and the force on it alone, from the world outwards.

    accelerates: 1: at the acceleration qacc; 0: at qacc = 0.   Reads:  qvel, cdof_dot, cinert, cvel; qacc, cdof.
    """
    d.cacc[0] = world_acceleration(m)
    for i in range(1, m.nbody):
        acc = d.cacc[m.body_parentid[i]]
        for k in body_dofs(m, i):
            acc = fma(d.qvel[k], d.cdof_dot[k], acc)
            if accelerates:
                acc = fma(d.qacc[k], d.cdof[k], acc)
        _store_body_force(d, i, d.cvel[i], acc)  # writes cacc, cfrc


@kernel
def _project_forces(m, d, result):
    """result_k <- S_k^T f of each DoF k, with the forces f of bodies summed towards the root.

    Reads:  cfrc, cdof.   Writes: result (nv,); cfrc[i], which becomes the sum over the subtree of body i.
    """
    # children before their parents; the force on the world is not needed
    for i in range(m.nbody - 1, 0, -1):
        f, p = d.cfrc[i], m.body_parentid[i]
        if p > 0:
            d.cfrc[p] += f
        for k in body_dofs(m, i):
            result[k] = dot(d.cdof[k], f)


@stage
def rne(m, d):
    """Computes Coriolis, centrifugal and gravity forces C(q, v): inverse dynamics without acceleration.

    a_i = a_lambda(i) + dS_i/dt qvel_i;  f_i = I_i a_i + v_i x* I_i v_i + sum over children f_j;  C_i = S_i^T f_i.
    Source: Featherstone sec. 5.3, table 5.1; MuJoCo mj_rne with flg_acc = 0.
    Reads:  qvel, cdof, cdof_dot, cinert, cvel, opt_gravity.   Writes: qfrc_bias (nv,) [N, N m]; cacc and cfrc.
    Frame: world axes at the tree's com.                       Cost: O(nv).
    """
    _outward_pass(m, d, accelerates=0)  # cacc, cfrc
    _project_forces(m, d, d.qfrc_bias)


@stage
def rne_acc(m, d):
    """qvec <- forces that produce the acceleration qacc: M qacc + C(q, v) without the armature's part.

    Source: Featherstone sec. 5.3, table 5.1; MuJoCo mj_rne with flg_acc = 1.
    Reads:  qvel, qacc, cdof, cdof_dot, cinert, cvel, opt_gravity.   Writes: qvec (nv,) [N, N m]; cacc and cfrc.
    Frame: world axes at the tree's com.                             Cost: O(nv).
    Note:   external forces are not subtracted; armature is not included, add dof_armature qacc for it.
    """
    _outward_pass(m, d, accelerates=1)  # cacc, cfrc
    _project_forces(m, d, d.qvec)


@kernel
def _pass_axis(d, dof, axis_velocity, vel, acc):
    """Returns (velocity, acceleration) after a DoF: vel + S qvel, acc + dS/dt qvel with dS/dt = axis_velocity x S.

    axis_velocity: the spatial velocity with which the axis S moves.
    """
    S, qvel = d.cdof[dof], d.qvel[dof]
    return fma(qvel, S, vel), fma(qvel, cross_motion(axis_velocity, S), acc)


@kernel
def pass_joints(m, d, i, vel, acc):
    """Returns (velocity, acceleration at qacc = 0) of body i, from those of its parent: v += S qvel, a += dS/dt qvel.

    dS/dt is computed from the velocity before the joint, which the three axes of a ball share.
    """
    for j in body_joints(m, i):
        dof, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            # the three translations keep world axes: dS/dt = 0
            vel = moved_along(vel, Vec3(d.qvel[dof : dof + 3]))  # adds the linear velocity
            dof += 3
        before = vel
        vel, acc = _pass_axis(d, dof, before, vel, acc)
        if has_quaternion(kind):
            vel, acc = _pass_axis(d, dof + 1, before, vel, acc)
            vel, acc = _pass_axis(d, dof + 2, before, vel, acc)
    return vel, acc


@stage
def bias(m, d):
    """Computes the outputs of `com_vel` and `rne` that a step reads, bitwise identical, without storing axis rates.

    Reads:  qvel, cdof, cinert, opt_gravity.   Writes: cvel (nbody, 6), qfrc_bias (nv,) [N, N m]; cacc and cfrc.
    Frame: world axes at the tree's com.       Cost: O(nv); 0.84 of the time of both stages.
    """
    d.cvel[0] = zeros(6)
    d.cacc[0] = world_acceleration(m)
    for i in range(1, m.nbody):
        p = m.body_parentid[i]
        vel, acc = pass_joints(m, d, i, d.cvel[p], d.cacc[p])
        d.cvel[i] = vel
        _store_body_force(d, i, vel, acc)  # writes cacc, cfrc
    _project_forces(m, d, d.qfrc_bias)
