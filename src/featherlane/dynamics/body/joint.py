"""Computes the motion of a body by joint type: body frame, motion axes S, and integration of joint coordinates.

All other stages use S and the DoF properties in `model/joint.py`.  The axis of a slide or hinge moves with the
velocity of the body before it.  The axes of a ball move with the velocity before it, too; the translations of a free
joint keep world axes.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 4.4; MuJoCo mj_kinematics, mj_comPos, mj_integratePos.
"""

from featherlane.prelude import *


@kernel
def move_joint(m, d, j, pos, quat):
    """Computes the body frame after the motion of joint j (not free); stores the joint's anchor and axis."""
    a, kind = m.jnt_qposadr[j], m.jnt_type[j]
    offset, local = m.jnt_pos[j], m.jnt_axis[j]
    axis = rotate(quat, local)
    # an anchor at the body's origin (the usual case) skips two rotations: 0.1 us per humanoid tile
    eccentric = (offset[0] != 0.0) | (offset[1] != 0.0) | (offset[2] != 0.0)
    anchor = pos
    if any_(eccentric):
        anchor = select3(eccentric, add3(pos, rotate(quat, offset)), pos)
    if kind == SLIDE:
        pos = axpy3(d.qpos[a] - m.qpos0[a], axis, pos)
    else:
        if kind == BALL:
            quat = quat_mul(quat, quat_normalize(load4(d.qpos, a)))
        else:
            quat = quat_mul(quat, axis_angle_quat(local, d.qpos[a] - m.qpos0[a]))
        # the anchor stays at its position
        if any_(eccentric):
            pos = select3(eccentric, sub3(anchor, rotate(quat, offset)), pos)
    d.xanchor[j] = anchor
    d.xaxis[j] = axis
    return pos, quat


@kernel
def _rotation_axis(d, v, axis, offset):
    """Returns the motion vector of a rotation about an axis whose anchor is at `offset` from the com."""
    u = cross(axis, offset)
    d.cdof[v] = (axis[0], axis[1], axis[2], u[0], u[1], u[2])


@kernel
def motion_axes(m, d, i, j, com):
    """Computes the columns S of joint j of body i; a ball rotates about the body's axes."""
    v, kind = m.jnt_dofadr[j], m.jnt_type[j]
    axis = d.xaxis[j]
    if kind == HINGE:
        _rotation_axis(d, v, axis, com - d.xanchor[j])
    elif kind <= BALL:
        offset = com - d.xanchor[j]
        if kind == FREE:
            d.cdof[v] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
            d.cdof[v + 1] = (0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
            d.cdof[v + 2] = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
            v += 3
        R = d.xmat[i]
        _rotation_axis(d, v, (R[0], R[3], R[6]), offset)
        _rotation_axis(d, v + 1, (R[1], R[4], R[7]), offset)
        _rotation_axis(d, v + 2, (R[2], R[5], R[8]), offset)
    else:
        d.cdof[v] = (0.0, 0.0, 0.0, axis[0], axis[1], axis[2])


@kernel
def advance_joint(m, j, qpos, velocity, start, h, rotation):
    """qpos <- start (+) h velocity of joint j; quaternions by the exponential, or INFINITESIMAL by its first two terms.

    The linear update rotates about the same axis, by 2 atan(h |w| / 2) instead of h |w|; it is the same for
    multiplication by the world velocity on the left or by the local velocity on the right.
    """
    a, v, kind = m.jnt_qposadr[j], m.jnt_dofadr[j], m.jnt_type[j]
    if kind == FREE:
        store3(qpos, a, axpy3(h, load3(velocity, v), load3(start, a)))
        a, v = a + 3, v + 3
    if kind <= BALL:
        q, w = load4(start, a), load3(velocity, v)
        if rotation == INFINITESIMAL:
            q = quat_integrate_linear(q, w, h)
        else:
            q = quat_integrate(q, w, h)
        store4(qpos, a, q)
    else:
        qpos[a] = fma(h, velocity[v], start[a])
