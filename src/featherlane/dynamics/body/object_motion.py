"""Computes frames, velocities and accelerations of bodies, geoms and sites, and matrices that map velocities to rates.

All motions of a tree refer to its centre of mass; those of a point follow from the lever arm.  `jac` has six rows of nv
entries: entry (r, dof) is at nv r + dof; rows 0 to 2 belong to the point, rows 3 to 5 to the rotation.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 2.8, 2.10; MuJoCo mj_objectVelocity, mj_objectAcceleration,
    mj_jacDot, mj_angmomMat.
"""

from featherlane.prelude import *
from featherlane.dynamics.body.jacobian import JACOBIAN, chain_end, clear_jacobian, descends, point_of_object


@kernel
def inertial_axes(m, d, b):
    """Returns the orientation of a body's principal axes of inertia."""
    return (d.xquat[b] @ m.body_iquat[b]).matrix


@kernel
def object_frame(m, d, kind, i):
    """Returns (position, orientation, body) of the frame of a body, of its centre of mass, of a geom or a site.

    The orientation is a matrix, that of the centre of mass (OBJ_BODY) has the principal axes of inertia.
    """
    if kind == OBJ_XBODY:
        pos, R, b = d.xpos[i], d.xmat[i], i
    elif kind == OBJ_BODY:
        pos, R, b = d.xipos[i], inertial_axes(m, d, i), i
    elif kind == OBJ_GEOM:
        pos, R, b = d.geom_xpos[i], d.geom_xmat[i], m.geom_bodyid[i]
    else:
        pos, R, b = d.site_xpos[i], d.site_xmat[i], m.site_bodyid[i]
    return pos, R, b


@kernel
def motion_at_point(m, d, motion, b, point):
    """Returns the (angular, linear) parts of a motion of body b at a point: w, v + w x r, r from the tree's com."""
    w = motion.angular
    return w, motion.linear + cross(w, point - d.subtree_com[m.body_rootid[b]])


@kernel
def object_velocity(m, d, kind, i):
    """Returns the (angular, linear) velocity of an object at its origin, in world axes, from `cvel`."""
    point, _, b = object_frame(m, d, kind, i)
    return motion_at_point(m, d, d.cvel[b], b, point)


@kernel
def object_acceleration(m, d, kind, i):
    """Returns the (angular, linear) acceleration of an object at its origin in world axes, from `cacc` and `cvel`.

    A spatial acceleration is the rate at a fixed point; the point's acceleration also has omega x v.
    """
    point, _, b = object_frame(m, d, kind, i)
    omega, v = motion_at_point(m, d, d.cvel[b], b, point)
    angular, linear = motion_at_point(m, d, d.cacc[b], b, point)
    return angular, linear + cross(omega, v)


@kernel
def axis_rate(m, d, dof):
    """Returns the time derivative of a DoF's motion axis; axes of ball joints move with the body after the joint.

    For these dS/dt = cdof_dot (with the velocity before the joint) + sum of qvel_k S_k x S over the ball's three DoFs
    k.
    """
    joint = m.dof_jntid[dof]
    kind, first, S = m.jnt_type[joint], m.jnt_dofadr[joint], d.cdof[dof]
    rate = d.cdof_dot[dof]
    if is_free_joint(kind):
        first += 3  # its rotations
    if has_quaternion(kind) and dof >= first:
        for k in range(3):
            rate = fma(d.qvel[first + k], cross_motion(d.cdof[first + k], S), rate)
    return rate


@stage(jr=JACOBIAN)
def jacobian_dot(m, d, jr, kind, i):
    """Computes the time derivatives of the Jacobians that `jacobian` computes, of a point that moves with its body.

    d/dt (v_S + w_S x r) = dv_S + dw_S x r + w_S x v_point, with the lever r from the tree's centre of mass; m/s, 1/s.
    Source: MuJoCo mj_jacDot.  Deviation: the rate of a ball's axes does not contain a slide joint that follows the
        ball in the same body.
    Reads:  qvel, cdof, cdof_dot, cvel, subtree_com, xpos, xipos, geom_xpos, site_xpos, jac_point.
    Writes: jac (6, jac_nv).   Frame: world.   Cost: O(nv).
    """
    n = jr.jac_nv
    body, point = point_of_object(m, d, jr, kind, i)
    clear_jacobian(jr)
    _, v_point = motion_at_point(m, d, d.cvel[body], body, point)
    dof = chain_end(m, body)
    while dof >= 0:
        dw, dv = motion_at_point(m, d, axis_rate(m, d, dof), m.dof_bodyid[dof], point)
        dv = dv + cross(d.cdof[dof].angular, v_point)
        for k in range(3):
            jr.jac[n * k + dof], jr.jac[n * (3 + k) + dof] = dv[k], dw[k]
        dof = m.dof_parentid[dof]


@stage(jr=JACOBIAN)
def angular_momentum_matrix(m, d, jr, body):
    """Computes the matrix H with H qvel = angular momentum of a body's subtree about the subtree's centre of mass.

    H = sum over bodies of R diag(I) R^T J_w + m (x - c) x J_v, at the bodies' centres of mass x; kg m^2, kg m.
    Source: MuJoCo mj_angmomMat.
    Reads:  cdof, subtree_com, xipos, xquat.
    Writes: jac (6, jac_nv), in its first three rows.   Frame: world.   Cost: O(nbody depth).
    """
    n = jr.jac_nv
    clear_jacobian(jr)
    for b in range(max(body, 1), m.nbody):
        if descends(m, b, body):
            x, R, I = d.xipos[b], inertial_axes(m, d, b), m.body_inertia[b]
            mass_arm, dof = m.body_mass[b] * (x - d.subtree_com[body]), chain_end(m, b)
            while dof >= 0:
                J_w, J_v = motion_at_point(m, d, d.cdof[dof], m.dof_bodyid[dof], x)
                w = R.T @ J_w  # in principal axes
                h = R @ Vec3(I.x * w.x, I.y * w.y, I.z * w.z) + cross(mass_arm, J_v)
                for k in range(3):
                    jr.jac[n * k + dof] = jr.jac[n * k + dof] + h[k]
                dof = m.dof_parentid[dof]
