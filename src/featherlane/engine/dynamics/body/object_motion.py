"""Computes frames, velocities and accelerations of objects: bodies, geoms, sites and cameras, in world axes.

The kind `body` (OBJ_BODY) is the frame of the principal axes at the centre of mass, `xbody` the body frame defined in
the model.  All motions of a tree refer to its centre of mass; those of a point follow from the lever arm.  The frames
of cameras are those of the stage `cameras`.
kind (an mjtObj) and i are the type and the index of an object.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 2.8, 2.10; MuJoCo mj_objectVelocity, mj_objectAcceleration.
"""

from featherlane.engine.prelude import *
from featherlane.engine.spatial.motion import at_point


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
def motion_at(m, d, motion, b, point):
    """Returns the motion (w, v + w x r) of a point of body b; `motion` (w, v) is at the tree's com, r is the lever."""
    return at_point(motion, point - d.subtree_com[m.body_rootid[b]])


@kernel
def object_velocity(m, d, kind, i):
    """Returns the velocity of the object [rad/s, m/s], a motion at its origin."""
    b = object_body(m, kind, i)
    return motion_at(m, d, d.cvel[b], b, object_pos(d, kind, i))


@kernel
def object_acceleration(m, d, kind, i):
    """Returns the acceleration of the object [rad/s^2, m/s^2], angular and linear; gravity included: at rest g upwards.

    The acceleration of a point is the linear part of the body's spatial acceleration there, plus omega x v.
    """
    b = object_body(m, kind, i)
    pos = object_pos(d, kind, i)
    vel, acc = motion_at(m, d, d.cvel[b], b, pos), motion_at(m, d, d.cacc[b], b, pos)
    return Motion(join(acc.angular, acc.linear + cross(vel.angular, vel.linear)))
