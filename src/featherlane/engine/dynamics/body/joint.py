"""Computes the motion of a body by joint type: body frame, motion axes S, and integration of joint coordinates.

All other stages use S and the DoF properties in `model/joint.py`.  The axis of a slide or hinge moves with the
velocity of the body before it.  The axes of a ball move with the velocity before it, too; the translations of a free
joint keep world axes.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 4.4; MuJoCo mj_kinematics, mj_comPos, mj_integratePos.
"""

from featherlane.engine.prelude import *


@kernel
def move_joint(m, d, j, pos, quat):
    """Returns (position, orientation) of the body frame after the motion of joint j (not free), in world axes.

    Stores the joint's anchor and axis in xanchor and xaxis.
    pos, quat: the body frame before the motion.
    """
    joint = m.joint[j]
    adr, kind = joint.qposadr, joint.type
    anchor_in_body, axis_in_body = joint.pos, joint.axis
    axis = quat @ axis_in_body
    # an anchor at the body's origin (the usual case) skips two rotations: 0.1 us per humanoid tile
    has_offset = (anchor_in_body.x != 0.0) | (anchor_in_body.y != 0.0) | (anchor_in_body.z != 0.0)
    anchor = pos
    if any_(has_offset):
        anchor = where(has_offset, pos + quat @ anchor_in_body, pos)
    if kind == SLIDE:
        pos = fma(d.qpos[adr] - m.qpos0[adr], axis, pos)
    else:
        if kind == BALL:
            quat = quat @ Quat(d.qpos[adr : adr + 4]).unit
        else:
            quat = quat @ axis_angle_quat(axis_in_body, d.qpos[adr] - m.qpos0[adr])
        # a rotation leaves the anchor at its position
        if any_(has_offset):
            pos = where(has_offset, anchor - quat @ anchor_in_body, pos)
    d.xanchor[j] = anchor
    d.xaxis[j] = axis
    return pos, quat


@kernel
def _store_rotation_axis(d, dof, axis, offset):
    """cdof[dof] <- the motion vector (axis, axis x offset) of a rotation; offset: from the axis' anchor to the com."""
    d.cdof[dof] = join(axis, cross(axis, offset))


@kernel
def store_motion_axes(m, d, i, j, com):
    """cdof <- the motion axes S of joint j of body i, at the com of the tree; a ball rotates about the body's axes.

    Reads:  xaxis, xanchor, xmat.
    """
    dof, kind = m.jnt_dofadr[j], m.jnt_type[j]
    axis = d.xaxis[j]
    if kind == HINGE:
        _store_rotation_axis(d, dof, axis, com - d.xanchor[j])
    elif kind <= BALL:  # FREE or BALL
        offset = com - d.xanchor[j]
        if kind == FREE:
            # three translations along world axes, then the rotations
            d.cdof[dof] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
            d.cdof[dof + 1] = (0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
            d.cdof[dof + 2] = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
            dof += 3
        x, y, z = d.xmat[i].columns
        _store_rotation_axis(d, dof, x, offset)
        _store_rotation_axis(d, dof + 1, y, offset)
        _store_rotation_axis(d, dof + 2, z, offset)
    else:  # SLIDE
        d.cdof[dof] = join(zeros(3), axis)


@kernel
def moved_along(velocity, translation):
    """Returns the velocity after the three slides of a free joint, whose axes are those of the world."""
    w = velocity.angular
    v = velocity.linear + translation
    return Motion(join(w, v))


@kernel
def advance_joint(m, j, qpos, velocity, start, h, rotation):
    """qpos <- start (+) h velocity of joint j; quaternions by the exponential, or INFINITESIMAL by its first two terms.

    INFINITESIMAL rotates about the same axis, by 2 atan(h |w| / 2) instead of h |w|; it is the same for
    multiplication by the world velocity on the left or by the local velocity on the right.
    qpos, start: (nq,), may be the same; velocity: (nv,); h: duration [s]; rotation: FINITE or INFINITESIMAL.
    """
    adr, dof, kind = m.jnt_qposadr[j], m.jnt_dofadr[j], m.jnt_type[j]
    if kind == FREE:
        qpos[adr : adr + 3] = fma(h, Vec3(velocity[dof : dof + 3]), Vec3(start[adr : adr + 3]))
        adr, dof = adr + 3, dof + 3
    if kind <= BALL:  # FREE or BALL
        q = Quat(start[adr : adr + 4])
        w = Vec3(velocity[dof : dof + 3])
        if rotation == INFINITESIMAL:
            q = quat_integrate_linear(q, w, h)
        else:
            q = quat_integrate(q, w, h)
        qpos[adr : adr + 4] = q
    else:
        qpos[adr] = fma(h, velocity[dof], start[adr])


@kernel
def joint_difference(m, j, velocity, start, end, h):
    """velocity <- (end (-) start) / h of joint j, the inverse of `advance_joint`: rotations take the shorter way.

    velocity: (nv,); start, end: (nq,); h: duration [s].
    """
    adr, dof, kind = m.jnt_qposadr[j], m.jnt_dofadr[j], m.jnt_type[j]
    if kind == FREE:
        for k in range(3):
            velocity[dof + k] = (end[adr + k] - start[adr + k]) / h
        adr, dof = adr + 3, dof + 3
    if kind <= BALL:  # FREE or BALL
        turn = quat_sub(Quat(end[adr : adr + 4]), Quat(start[adr : adr + 4]))
        for k in range(3):
            velocity[dof + k] = turn[k] / h
    else:
        velocity[dof] = (end[adr] - start[adr]) / h
