"""Frames of objects that sensors refer to (body, xbody, geom, site, camera): position and motion, in world axes.

`body` is the frame of the principal axes at the centre of mass, `xbody` the body frame defined in the model.
Source: MuJoCo mj_objectVelocity, mj_objectAcceleration.
"""

from featherlane.prelude import *


@kernel
def object_body(m, kind, i):
    """Returns the body that carries object i of a kind."""
    b = i
    if kind == OBJ_GEOM:
        b = m.geom_bodyid[i]
    elif kind == OBJ_SITE:
        b = m.site_bodyid[i]
    elif kind == OBJ_CAMERA:
        b = m.cam_bodyid[i]
    return b


@kernel
def object_pos(d, kind, i):
    """Returns the position of the object [m]."""
    if kind == OBJ_XBODY:
        p = load3(d.xpos, 3 * i)
    elif kind == OBJ_BODY:
        p = load3(d.xipos, 3 * i)
    elif kind == OBJ_GEOM:
        p = load3(d.geom_xpos, 3 * i)
    elif kind == OBJ_SITE:
        p = load3(d.site_xpos, 3 * i)
    else:
        p = load3(d.cam_xpos, 3 * i)
    return p


@kernel
def object_mat(m, d, kind, i):
    """Returns the orientation of the object, a matrix by rows."""
    if kind == OBJ_XBODY:
        R = load9(d.xmat, 9 * i)
    elif kind == OBJ_BODY:
        R = inertial_mat(m, d, i)
    elif kind == OBJ_GEOM:
        R = load9(d.geom_xmat, 9 * i)
    elif kind == OBJ_SITE:
        R = load9(d.site_xmat, 9 * i)
    else:
        R = load9(d.cam_xmat, 9 * i)
    return R


@kernel
def inertial_mat(m, d, b):
    """Returns ximat, which a step writes only on request."""
    return quat_to_mat(quat_mul(load4(d.xquat, 4 * b), load4(m.body_iquat, 4 * b)))


@kernel
def object_quat(m, d, kind, i):
    """Returns the orientation of the object, a quaternion; for a camera as in mode `fixed`, whatever its mode."""
    q = load4(d.xquat, 4 * object_body(m, kind, i))
    if kind == OBJ_BODY:
        q = quat_mul(q, load4(m.body_iquat, 4 * i))
    elif kind == OBJ_GEOM:
        q = quat_mul(q, load4(m.geom_quat, 4 * i))
    elif kind == OBJ_SITE:
        q = quat_mul(q, load4(m.site_quat, 4 * i))
    elif kind == OBJ_CAMERA:
        q = quat_mul(q, load4(m.cam_quat, 4 * i))
    return q


@kernel
def point_motion(m, d, rows, b, point):
    """Returns the (angular, linear) part of body b's row of cvel or cacc, moved from its tree's com to a point."""
    x = load6(rows, 6 * b)
    w, v = (x[0], x[1], x[2]), (x[3], x[4], x[5])
    return w, add3(v, cross(w, sub3(point, load3(d.subtree_com, 3 * m.body_rootid[b]))))


@kernel
def object_velocity(m, d, kind, i):
    """Returns the (angular, linear) velocity of the object [rad/s, m/s]."""
    return point_motion(m, d, d.cvel, object_body(m, kind, i), object_pos(d, kind, i))


@kernel
def object_acceleration(m, d, kind, i):
    """Returns the (angular, linear) acceleration of the object [rad/s^2, m/s^2], with gravity: at rest g upwards.

    The acceleration of a point is the linear part of the body's spatial acceleration there, plus omega x v.
    """
    b, p = object_body(m, kind, i), object_pos(d, kind, i)
    w, v = point_motion(m, d, d.cvel, b, p)
    alpha, a = point_motion(m, d, d.cacc, b, p)
    return alpha, add3(a, cross(w, v))
