"""Computes the centre of mass of each kinematic tree, and inertias and motion axes relative to it.

All spatial vectors of a tree refer to one point, its centre of mass, in world axes.  Recursions over the tree then add
vectors of parent and child without transforms.

inert_from_com(I, R, r, mass) returns the spatial inertia of a body with principal moments I along the axes R, whose
centre of mass is at r.  store_motion_axes(m, d, i, j, com) writes cdof of joint j of body i.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.joint import moved_along, store_motion_axes


@kernel
def _compute_subtree_com(m, d):
    """Computes the centre of mass of each subtree, sum of m_i x_i / sum of m_i; without mass, that of its body.

    subtree_com holds the moments m_i x_i, then their sums, before the division.
    """
    for i in range(m.nbody):
        d.subtree_com[i] = m.body_mass[i] * d.xipos[i]
    # children before their parents
    for i in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[i]
        d.subtree_com[p] += d.subtree_com[i]
    for i in range(m.nbody):
        mass = m.body_subtreemass[i]
        is_massless = mass < MINVAL
        inverse = 1.0 / where(is_massless, 1.0, mass)
        moment, xipos = d.subtree_com[i], d.xipos[i]
        d.subtree_com[i] = where(is_massless, xipos, inverse * moment)


@stage
def com_pos(m, d):
    """Computes the centres of mass of all subtrees, body inertias and motion axes.

    Source: MuJoCo mj_comPos; Featherstone eq. 2.63 for the inertias.
    Reads:  xipos, xquat, xmat, xanchor, xaxis.
    Writes: subtree_com (nbody, 3) [m], ximat (nbody, 9), cinert (nbody, 10) [kg m^2, kg m, kg], cdof (nv, 6) [1, m].
    Frame: world axes; cinert and cdof at the tree's com, rotation first.   Cost: O(nbody + nv).
    """
    _compute_subtree_com(m, d)
    d.ximat[0] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    d.cinert[0] = zeros(10)
    for i in range(1, m.nbody):
        body = m.body[i]
        com = d.subtree_com[body.rootid]
        R = (d.xquat[i] @ body.iquat).matrix
        # want_all: all outputs are requested; a step does not read ximat
        if d.want_all:
            d.ximat[i] = R
        offset = d.xipos[i] - com
        d.cinert[i] = inert_from_com(body.inertia, R, offset, body.mass)
        for j in body_joints(m, i):
            store_motion_axes(m, d, i, j, com)  # writes cdof


@kernel
def _pass_dof(d, dof, axis_velocity, velocity):
    """Returns `velocity` + S qvel, the velocity after a DoF; writes cdof_dot[dof] = axis_velocity x S.

    axis_velocity: the spatial velocity with which the axis S moves.
    """
    S = d.cdof[dof]
    d.cdof_dot[dof] = cross_motion(axis_velocity, S)
    return fma(d.qvel[dof], S, velocity)


@stage
def com_vel(m, d):
    """Computes body velocities and the rates of the motion axes.

    v_i = v_lambda(i) + S_i qvel_i;  dS/dt = v x S with the velocity before the joint.  The three axes of a ball share
    the velocity before it; the translations of a free joint keep world axes, so their rate is zero.
    Source: MuJoCo mj_comVel; Featherstone eq. 5.14.
    Reads:  qvel, cdof.   Writes: cvel (nbody, 6) [rad/s, m/s], cdof_dot (nv, 6) [1/s, m/s].
    Frame: world axes at the tree's com, rotation first.   Cost: O(nv).
    """
    d.cvel[0] = zeros(6)
    for i in range(1, m.nbody):
        vel = d.cvel[m.body_parentid[i]]
        for j in body_joints(m, i):
            dof, kind = m.jnt_dofadr[j], m.jnt_type[j]
            if is_free_joint(kind):
                # its first three DoFs, the translations; then dof is the first rotation
                for k in range(3):
                    d.cdof_dot[dof + k] = zeros(6)
                vel = moved_along(vel, Vec3(d.qvel[dof : dof + 3]))  # adds the linear velocity
                dof += 3
            before = vel
            vel = _pass_dof(d, dof, before, vel)
            if has_quaternion(kind):
                vel = _pass_dof(d, dof + 1, before, vel)
                vel = _pass_dof(d, dof + 2, before, vel)
        d.cvel[i] = vel


@kernel
def point_wrench(d, force, moment, point, root):
    """Returns a force at a point and a moment as a spatial force at the com of the tree: (moment + r x force, force).

    All are in world axes; r is the point relative to the com.  root: the tree's root body.
    """
    r = Vec3(point) - d.subtree_com[root]
    return Force(join(cross_plus(r, force, moment), force))
