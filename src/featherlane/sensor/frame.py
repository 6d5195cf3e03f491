"""Frames of objects that sensors refer to (body, xbody, geom, site, camera): position and motion, in world axes.

`body` is the frame of the principal axes at the centre of mass, `xbody` the body frame defined in the model.
Source: MuJoCo mj_objectVelocity, mj_objectAcceleration.
"""

from featherlane.prelude import *
from featherlane.spatial.motion import at_point


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
        pos = d.xpos[i]
    elif kind == OBJ_BODY:
        pos = d.xipos[i]
    elif kind == OBJ_GEOM:
        pos = d.geom_xpos[i]
    elif kind == OBJ_SITE:
        pos = d.site_xpos[i]
    else:
        pos = d.cam_xpos[i]
    return pos


@kernel
def object_mat(m, d, kind, i):
    """Returns the orientation of the object, a matrix by rows."""
    if kind == OBJ_XBODY:
        R = d.xmat[i]
    elif kind == OBJ_BODY:
        R = inertial_mat(m, d, i)
    elif kind == OBJ_GEOM:
        R = d.geom_xmat[i]
    elif kind == OBJ_SITE:
        R = d.site_xmat[i]
    else:
        R = d.cam_xmat[i]
    return R


@kernel
def inertial_mat(m, d, b):
    """Returns ximat, which a step writes only on request."""
    return (d.xquat[b] @ m.body_iquat[b]).matrix


@kernel
def object_quat(m, d, kind, i):
    """Returns the orientation of the object, a quaternion; for a camera as in mode `fixed`, whatever its mode."""
    q = d.xquat[object_body(m, kind, i)]
    if kind == OBJ_BODY:
        q = q @ m.body_iquat[i]
    elif kind == OBJ_GEOM:
        q = q @ m.geom_quat[i]
    elif kind == OBJ_SITE:
        q = q @ m.site_quat[i]
    elif kind == OBJ_CAMERA:
        q = q @ m.cam_quat[i]
    return q


@kernel
def point_motion(m, d, rows, b, point):
    """Returns the motion at a point of body b, whose motions at the tree's com are `rows`, cvel or cacc."""
    return at_point(rows[b], point - d.subtree_com[m.body_rootid[b]])


@kernel
def object_velocity(m, d, kind, i):
    """Returns the velocity of the object [rad/s, m/s], a motion at its origin."""
    return point_motion(m, d, d.cvel, object_body(m, kind, i), object_pos(d, kind, i))


@kernel
def object_acceleration(m, d, kind, i):
    """Returns the acceleration of the object [rad/s^2, m/s^2], angular and linear; gravity included: at rest g upwards.

    The acceleration of a point is the linear part of the body's spatial acceleration there, plus omega x v.
    """
    b, pos = object_body(m, kind, i), object_pos(d, kind, i)
    vel, acc = point_motion(m, d, d.cvel, b, pos), point_motion(m, d, d.cacc, b, pos)
    return Motion(join(acc.angular, acc.linear + cross(vel.angular, vel.linear)))
