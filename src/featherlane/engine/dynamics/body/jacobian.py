"""Computes Jacobians of points and bodies of each world.

J qvel is the velocity of a point and the angular velocity of its body, in world axes; both parts are (3, nv).  `jac`
has six rows of nv entries, so entry (r, dof) is at nv r + dof: rows 0 to 2 are linear, rows 3 to 5 angular.  The
DoFs that move a body are its own and its ancestors', the chain of dof_parentid.  All motion axes of a tree refer to
its centre of mass, so the velocity of a point follows from the lever arm.
jr is a record of the layout JACOBIAN: the caller sets its sizes and, for Jacobians of a given point, jac_point.
kind (an mjtObj) and i are the type and the index of an object.
motion_at(m, d, S, b, point) moves a motion S of body b from the com of its tree to a point: (w, v + w x r).
inertial_mat(m, d, b) is the matrix whose columns are the principal axes of inertia of body b in world axes.
Source: Featherstone, Rigid Body Dynamics Algorithms, eq. 2.24; MuJoCo mj_jac.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.fields import InertiaRate
from featherlane.engine.dynamics.body.object_motion import (
    inertial_mat,
    motion_at,
    object_acceleration,
    object_body,
    object_mat,
    object_pos,
    object_velocity,
)
from featherlane.engine.lanes import Layout
from featherlane.engine.lanes.layout import Declare, size

_coriolis, _regressor = Declare("coriolis_matrix", "scratch"), Declare("torque_regressor", "scratch")
JACOBIAN = Layout(
    "Jacobian",
    (
        size("jac_nv", "dofs"),
        size("jac_nbody", "bodies"),
        Declare("", "scratch").real("jac_point", "3", "m", "the point, for Jacobians of a point"),
        Declare("jacobian", "scratch").real("jac", "6 jac_nv", "m, 1", "linear and angular Jacobian"),
        Declare("object_motion", "scratch").rows(Motion, "motion", "", "rad/s, m/s; rad/s^2, m/s^2", "of an object"),
        Declare("subtree_jacobian", "scratch").real("jac_mass", "jac_nbody", "kg", "mass of each subtree"),
        Declare("dense_inertia", "scratch").real("jac_M", "jac_nv jac_nv", "kg, kg m, kg m^2", "inertia matrix"),
        _coriolis.real("jac_C", "jac_nv jac_nv", "kg/s, kg m/s, kg m^2/s", "Coriolis matrix"),
        _coriolis.rows(Inertia, "jac_crb", "jac_nbody", "kg m^2, kg m, kg", "inertia of each subtree"),
        _coriolis.rows(InertiaRate, "jac_crb_rate", "jac_nbody", "kg m^2/s, kg m/s", "its rate (6), momentum (6)"),
        Declare("", "scratch").real("jac_qacc", "jac_nv", "m/s^2, rad/s^2", "accelerations, for the regressor"),
        _regressor.rows(Inertia, "jac_regressor", "jac_nv", "s^-2, m s^-2, m^2 s^-2", "of a body"),
        Declare("inertial_parameters", "scratch").rows(Inertia, "jac_parameters", "", "kg m^2, kg m, kg", "of a body"),
    ),
)


@kernel
def point_of_object(m, d, jr, kind, i):
    """Returns (body, point in world coordinates) of object i of that kind; for an unlisted kind i is a body.

    The point: a body's origin (OBJ_XBODY), its centre of mass (OBJ_BODY), another object's origin, else the given one.
    """
    body = i
    point = Vec3(jr.jac_point[0:3])
    if kind in (OBJ_XBODY, OBJ_BODY, OBJ_GEOM, OBJ_SITE, OBJ_CAMERA):
        body = object_body(m, kind, i)
        point = object_pos(d, kind, i)
    return body, point


@stage(jr=JACOBIAN)
def jacobian(m, d, jr, kind, i):
    """Computes J of a point: column i is the motion axis S_i at the point, for each DoF i that moves its body, else 0.

    The point is the origin of a body, geom or site, a body's centre of mass, or a given point.

    Reads:  cdof, subtree_com, xpos, xipos, geom_xpos, site_xpos, jac_point.
    Writes: jac (6, jac_nv) [m, 1].   Frame: world.   Cost: O(nv).
    """
    n = jr.jac_nv
    body, point = point_of_object(m, d, jr, kind, i)
    clear(jr.jac, 6 * n)
    dof = m.body_lastdof[body]
    while dof >= 0:
        S = motion_at(m, d, d.cdof[dof], m.dof_bodyid[dof], point)
        for k in range(3):
            jr.jac[n * k + dof], jr.jac[n * (3 + k) + dof] = S.linear[k], S.angular[k]
        dof = m.dof_parentid[dof]


@kernel
def descends(m, i, body):
    """Returns whether body i is `body` or one of its descendants; ancestors have smaller ids."""
    while i > body:
        i = m.body_parentid[i]
    return i == body


@stage(jr=JACOBIAN)
def subtree_jacobian(m, d, jr, body):
    """Computes J of the centre of mass of a body's subtree; zeros for a subtree without mass.

    Column i is the velocity of this centre of mass per unit velocity of DoF i, a DoF of body k:
    - k in the subtree: (m_k / m) times the velocity of the com of k's subtree, whose mass is m_k; m: the subtree's;
    - k an ancestor of `body`: the velocity of the com, because the DoF moves the whole subtree;
    - another k: 0.
    Reads:  cdof, subtree_com.
    Writes: jac (6, jac_nv) [m, 1], in its first three rows; jac_mass (jac_nbody,) [kg].
    Frame: world.   Cost: O(nv depth).
    """
    n = jr.jac_nv
    clear(jr.jac, 6 * n)
    # mass of each subtree, children before their parents
    copy(jr.jac_mass, m.body_mass, m.nbody)
    for i in range(m.nbody - 1, 0, -1):
        jr.jac_mass[m.body_parentid[i]] += jr.jac_mass[i]
    mass = jr.jac_mass[body]
    inverse = where(mass > 0.0, 1.0 / where(mass > 0.0, mass, 1.0), 0.0)
    for dof in range(n):
        # the DoF moves the subtree of body `moved`, if that is within the subtree of `body`
        moved = m.dof_bodyid[dof]
        is_within = descends(m, moved, body)
        if not is_within and descends(m, body, moved):
            # a DoF of an ancestor moves the whole subtree of `body`
            moved = body
            is_within = True
        # other DoFs do not move the subtree
        if is_within:
            v = motion_at(m, d, d.cdof[dof], m.dof_bodyid[dof], d.subtree_com[moved]).linear
            v = jr.jac_mass[moved] * inverse * v
            for k in range(3):
                jr.jac[n * k + dof] = v[k]


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

    d/dt (v_S + w_S x r) = dv_S + dw_S x r + w_S x v_point, with the lever r from the point to which the axes refer: the
    tree's centre of mass at this instant, held fixed in space; m/s, 1/s.
    Source: MuJoCo mj_jacDot.  Deviation: the rate of a ball's axes does not contain a slide joint that follows the
        ball in the same body.
    Reads:  qvel, cdof, cdof_dot, cvel, subtree_com, xpos, xipos, geom_xpos, site_xpos, jac_point.
    Writes: jac (6, jac_nv).   Frame: world.   Cost: O(nv).
    """
    n = jr.jac_nv
    body, point = point_of_object(m, d, jr, kind, i)
    clear(jr.jac, 6 * n)
    v_point = motion_at(m, d, d.cvel[body], body, point).linear
    dof = m.body_lastdof[body]
    while dof >= 0:
        rate = motion_at(m, d, axis_rate(m, d, dof), m.dof_bodyid[dof], point)
        dw = rate.angular
        dv = rate.linear + cross(d.cdof[dof].angular, v_point)
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
    clear(jr.jac, 6 * n)
    # the world, body 0, does not move; descendants have greater ids
    for b in range(max(body, 1), m.nbody):
        if descends(m, b, body):
            x = d.xipos[b]
            R = inertial_mat(m, d, b)
            I = m.body_inertia[b]
            mass_arm = m.body_mass[b] * (x - d.subtree_com[body])
            dof = m.body_lastdof[b]
            while dof >= 0:
                J = motion_at(m, d, d.cdof[dof], m.dof_bodyid[dof], x)
                w = R.T @ J.angular  # in principal axes
                h = R @ Vec3(I.x * w.x, I.y * w.y, I.z * w.z) + cross(mass_arm, J.linear)
                for k in range(3):
                    jr.jac[n * k + dof] += h[k]
                dof = m.dof_parentid[dof]


@stage(jr=JACOBIAN)
def object_motion(m, d, jr, kind, i, is_acceleration, is_local):
    """Computes the velocity or the acceleration of an object at its origin: rotation, then translation.

    is_acceleration: 1: its acceleration, which is -g at rest; 0: its velocity.
    is_local: 1: in the axes of the object; 0: in world axes.
    Source: MuJoCo mj_objectVelocity, mj_objectAcceleration.
    Reads:  cvel, cacc, subtree_com, xpos, xquat, xmat, xipos; frames of geoms, sites and cameras.
    Writes: motion (6,) [rad/s, m/s; rad/s^2, m/s^2].   Cost: O(1).
    """
    if is_acceleration:
        motion = object_acceleration(m, d, kind, i)
    else:
        motion = object_velocity(m, d, kind, i)
    if is_local:
        R = object_mat(m, d, kind, i)
        motion = Motion(join(R.T @ motion.angular, R.T @ motion.linear))
    jr.motion[0] = motion
