"""Computes links: the relative pose of their two bodies, and the axis and points where forces act.

The position of a hinge is the rotation angle of the first body relative to the second about the axis, from -pi to
pi; that of a slider is the displacement along it.  Both grow with the velocity of the first body less the second's.

Link k joins the bodies link_body[k, 0] (the first) and link_body[k, 1] (the second; 0 is the world).  The index `side`
is 0 for the first body, 1 for the second.
link_type is ball, LINK_HINGE, LINK_SLIDER or LINK_FIXED.
Source: ODE manual, sec. "Joint types and joint functions"; the axis of a slider is that of its first body.
"""

from featherlane.engine.prelude import *
from featherlane.engine.model.link import LINK_FIXED, LINK_HINGE, LINK_SLIDER


# ---- geometry -------------------------------------------------------------------------------------------------------
@kernel
def link_axis(m, d, k, side):
    """Returns the axis of link k as carried by its body 0 or 1, in world axes."""
    return d.xmat[m.link_body[k, side]] @ m.link_axis[k, side]


@kernel
def link_anchor(m, d, k, side):
    """Returns the anchor of link k as carried by its body 0 or 1, in world axes."""
    b = m.link_body[k, side]
    return d.xpos[b] + d.xmat[b] @ m.link_anchor[k, side]


@kernel
def rest_offset(m, d, k):
    """Returns the rest offset from the second body's com to the first's in world axes [m].

    It is stored in the axes of the second body for a slider, else in those of the first, and rotates with that body.
    """
    side = 1 if m.link_type[k] == LINK_SLIDER else 0
    r = m.link_offset[k]
    # a link to the world stores it in world axes
    if m.link_body[k, 1] > 0:
        r = d.xmat[m.link_body[k, side]] @ r
    return r


@kernel
def relative_com(m, d, k):
    """Returns the first body's centre of mass relative to the second's, or to the origin if that is the world [m]."""
    r, second = d.xipos[m.link_body[k, 0]], m.link_body[k, 1]
    if second > 0:
        r = r - d.xipos[second]
    return r


@kernel
def link_point(m, d, k, side):
    """Returns the point of body 0 or 1 where the forces of link k act, in world axes.

    For a ball or a hinge it is the anchor.  A slider or a fixed link to the world acts at its body's centre of mass.
    A slider between two bodies acts halfway between their centres of mass, so that the forces on both cause no couple.
    A fixed link between two bodies acts at the second body's centre of mass; on the first body at the point that
    coincides with this centre of mass in the rest pose.
    """
    b = m.link_body[k, side]
    point, kind = d.xipos[b], m.link_type[k]
    if kind <= LINK_HINGE:  # a ball or a hinge
        point = link_anchor(m, d, k, side)
    elif m.link_body[k, 1] > 0:
        if kind == LINK_SLIDER:
            point = 0.5 * (d.xipos[m.link_body[k, 0]] + d.xipos[m.link_body[k, 1]])
        elif side == 0:
            point = point - rest_offset(m, d, k)
    return point


@kernel
def rotation_since_rest(m, d, k):
    """Returns q_1* q_2 q_rest*: the rotation of the second body since rest, in the frame of the first."""
    q1, q2 = d.xquat[m.link_body[k, 0]], d.xquat[m.link_body[k, 1]]
    return q1.T @ q2 @ m.link_quat[k].T


# ---- errors ---------------------------------------------------------------------------------------------------------
@kernel
def position_error(m, d, k):
    """Returns the displacement of the first body relative to the second that makes the points meet [m]."""
    if m.link_type[k] == LINK_SLIDER or m.link_type[k] == LINK_FIXED:
        error = rest_offset(m, d, k) - relative_com(m, d, k)
    else:
        error = link_anchor(m, d, k, side=1) - link_anchor(m, d, k, side=0)
    return error


@kernel
def orientation_error(m, d, k):
    """Returns the first-order rotation of the first body relative to the second that aligns them [rad], world axes."""
    if m.link_type[k] == LINK_HINGE:
        error = cross(link_axis(m, d, k, side=0), link_axis(m, d, k, side=1))
    else:
        # a small rotation vector is twice the vector part of q, or of -q, whichever rotation is shorter
        q = rotation_since_rest(m, d, k)
        s = where(q.w < 0.0, -2.0, 2.0)
        error = s * (d.xmat[m.link_body[k, 0]] @ Vec3(q.x, q.y, q.z))
    return error


# ---- positions ------------------------------------------------------------------------------------------------------
@kernel
def _hinge_angle(m, d, k):
    """Returns the angle of a hinge in [-pi, pi] [rad]; off-axis rotation is included, so errors enter at second order.

    The rotation since rest has the angle 2 atan2(|v|, +-w), with the sign of v along the axis; the link's angle is
    minus that, as it is the rotation of the first body relative to the second.
    """
    q = rotation_since_rest(m, d, k)
    v = Vec3(q.x, q.y, q.z)
    angle = 2.0 * atan2(norm3(v), where(dot(v, m.link_axis[k, 0]) >= 0.0, q.w, -q.w))
    return -where(angle > PI, angle - 2.0 * PI, angle)


@stage
def link_positions(m, d):
    """Computes the angles of hinges and positions of sliders; 0 for other links.

    Reads:  xmat, xquat, xipos.   Writes: link_position (nlink,) [m, rad].
    """
    for k in range(m.nlink):
        position = 0.0
        if m.link_type[k] == LINK_HINGE:
            position = _hinge_angle(m, d, k)
        elif m.link_type[k] == LINK_SLIDER:
            position = dot(link_axis(m, d, k, side=0), relative_com(m, d, k) - rest_offset(m, d, k))
        d.link_position[k] = position
