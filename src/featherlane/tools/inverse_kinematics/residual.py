"""Computes errors of targets and equality constraints, and the normal equations of their weighted least squares.

    F = 1/2 sum w_p^2 |p* - p|^2 + w_o^2 |e_o|^2 + w_c^2 |c|^2 + w_q^2 |q* (-) q|^2
    A = J^T W J,   g = -dF/dq = J^T W e

p* - p is the distance to a position, e_o the rotation vector to an orientation or, of an axis a that looks at a point,
from a to the direction of the point; q* is the posture.  c is the error of an equality constraint: of a joint or tendon
that of `constraint.equality`, of a connect the distance of its anchors, of a weld also a rotation vector.
Rows of J of an orientation are the angular velocities of the object.  The Jacobian of a rotation vector differs from
them by a factor that maps e_o to itself, so g is exact.
The record p is IK (fields.py).  Index t is a target (goal, weight) or, after the targets, a constraint.  Index i is a
DoF that moves, p.dof[i] of joint p.dof_joint[i], with i < ndof; p.moves[t, i] is 0 if it does not affect t.
`anchor` returns the anchor of a connect or weld on side 0 or 1 in world axes, `orientations` (frame, q) of a weld:
the orientation q_2 of its second body or site, and q_2* q_1 q_rel, the rotation of the first relative to it.
`joint_equality_error` and `tendon_equality_error` return (error, slope) of c = x_1 - f(x_2), slope = df/dx_2.
Source: Featherstone, Rigid Body Dynamics Algorithms, eq. 2.24; Murray, Li, Sastry, A Mathematical Introduction to
Robotic Manipulation, sec. 2.2.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.equality import anchor, orientations
from featherlane.engine.constraint.joint_equality import joint_equality_error
from featherlane.engine.constraint.tendon import tendon_equality_error
from featherlane.engine.dynamics.body.com import com_pos
from featherlane.engine.dynamics.body.kinematics import kinematics, path_frames
from featherlane.engine.dynamics.tendon.length import tendon
from featherlane.tools.inverse_kinematics.fields import IK

POSITION, ORIENTATION, LOOK_AT = 1, 2, 4  # bits of p.prescribed: what a target prescribes


# ---- objects ---------------------------------------------------------------------------------------------------------
@kernel
def _object_pose(m, d, kind, i):
    """Returns (position, quaternion) of site or geom i, or of body i's frame, from the frames of bodies.

    kind: mjtObj.
    """
    body, offset, quat = i, Vec3(zeros(3)), Quat(1.0, 0.0, 0.0, 0.0)
    if kind == OBJ_SITE:
        body, offset, quat = m.site_bodyid[i], m.site_pos[i], m.site_quat[i]
    elif kind == OBJ_GEOM:
        body, offset, quat = m.geom_bodyid[i], m.geom_pos[i], m.geom_quat[i]
    return d.xpos[body] + d.xmat[body] @ offset, d.xquat[body] @ quat


@kernel
def _dof_motion(m, d, dof, j, point):
    """Returns (v, w) per unit velocity of `dof`, a DoF of joint j: of a point, and angular of its body.

    A rotation has w = axis, v = axis x (point - anchor), a translation v = axis, w = 0.

    The point moves with the joint's body; world axes.
    """
    kind, local = m.jnt_type[j], dof - m.jnt_dofadr[j]  # which DoF of the joint
    axis = d.xaxis[j]
    v, w = axis, Vec3(zeros(3))  # of a slide
    if is_free_joint(kind) and is_translation(kind, local):
        # a free joint translates along the world's axes
        v = Vec3(1.0 if local == c else 0.0 for c in range(3))
    elif not is_translation(kind, local):
        if has_quaternion(kind):
            # rotations: DoFs 0 to 2 of a ball, 3 to 5 of a free joint, about the body's axes
            axis = d.xmat[m.jnt_bodyid[j]].columns[local % 3]
        w = axis
        v = cross(axis, point - d.xanchor[j])
    return v, w


# ---- rows ------------------------------------------------------------------------------------------------------------
@kernel
def _add_rows(d, p, t, e, weight):
    """Adds three rows with errors e and Jacobian p.column to cost and normal equations, for target or constraint t.

    With s = weight^2:  cost += s |e|^2 / 2,  g += s J^T e,  A += s J^T J.   Writes: trial_cost, trial_g, trial_A.
    """
    n = p.ndof
    s = weight * weight
    p.trial_cost[0] = fma(0.5 * s, dot(e, e), p.trial_cost[0])
    for i in range(n):
        if p.moves[t, i]:
            weighted = s * p.column[i]
            p.trial_g[i] = p.trial_g[i] + dot(weighted, e)
            for j in range(i + 1):
                if p.moves[t, j]:
                    p.trial_A[i, j] = p.trial_A[i, j] + dot(weighted, p.column[j])


@kernel
def _add_position(m, d, p, t, pos):
    """Adds the rows of target t's position: its distance from the object at pos.   Writes: column, trial_error."""
    e = p.goal[t].position - pos
    for i in range(p.ndof):
        v, _ = _dof_motion(m, d, p.dof[i], p.dof_joint[i], pos)
        p.column[i] = v
    p.trial_error[t][0] = norm3(e)
    _add_rows(d, p, t, e, p.weight[t][0])


@kernel
def _add_orientation(m, d, p, t, pos, quat):
    """Adds the rows of target t's orientation; their error e_o is the rotation vector from the object to the target.

    pos, quat: pose of the object.   Writes: column, trial_error.
    """
    e = quat @ quat_sub(p.goal[t].quat, quat)  # in world axes
    for i in range(p.ndof):
        _, w = _dof_motion(m, d, p.dof[i], p.dof_joint[i], pos)  # angular velocity for a unit velocity of the dof
        p.column[i] = w
    p.trial_error[t][1] = norm3(e)
    _add_rows(d, p, t, e, p.weight[t][1])


@kernel
def _add_look(m, d, p, t, pos, quat):
    """Adds the rotation from the axis of target t to the direction of the point that it looks at.

    The direction u turns by u x du = -(u x v) / r as the object moves by v at a distance r.  So the axis turns relative
    to it by w + (u x v) / r; the part of this along the axis has no effect.
    pos, quat: pose of the object.   Writes: column, trial_error.
    """
    u, r = normalize3(p.goal[t].point - pos)  # direction and distance of the point
    axis = quat @ normalize3(p.goal[t].axis)[0]
    axis_x_u = cross(axis, u)
    sine, cosine = norm3(axis_x_u), dot(axis, u)
    angle = atan2(sine, cosine)
    # an axis that points away turns about any perpendicular: its cross product with the x axis, if its x component is
    # the smallest one, else with the y axis
    x_smallest = (fabs(axis[0]) <= fabs(axis[1])) & (fabs(axis[0]) <= fabs(axis[2]))
    perpendicular = normalize3(cross(axis, Vec3(where(x_smallest, 1.0, 0.0), where(x_smallest, 0.0, 1.0), 0.0)))[0]
    rotation_axis = where(sine < MINVAL, perpendicular, 1.0 / fmax(sine, MINVAL) * axis_x_u)
    e = angle * rotation_axis
    nearness = 1.0 / fmax(r, MINVAL)
    for i in range(p.ndof):
        v, w = _dof_motion(m, d, p.dof[i], p.dof_joint[i], pos)
        w = fma(nearness, cross(u, v), w)
        p.column[i] = fma(-dot(axis, w), axis, w)
    p.trial_error[t][1] = angle
    _add_rows(d, p, t, e, p.weight[t][1])


@kernel
def _add_scalar(d, p, t, error, angle):
    """Adds constraint t, one row whose Jacobian is in p.column.   Writes: trial_error.

    error: a length [m], or an angle [rad] if `angle` is 1.  p.weight[t] and the errors of t have entry 0 for lengths
    and entry 1 for angles.
    """
    size = fabs(error)
    p.trial_error[t] = Vec2(0.0, size) if angle else Vec2(size, 0.0)
    # the column is the derivative of the error, and a step has to reduce it: e = -error
    _add_rows(d, p, t, Vec3(-error, 0.0, 0.0), p.weight[t][angle])


@kernel
def _add_joints(m, d, p, t, e):
    """Adds equality e of two joints, or of one and a constant, as constraint t.   Writes: column."""
    # error = x_1 - f(x_2), slope = df/dx_2: the derivatives of the error are 1 and -slope
    error, slope = joint_equality_error(m, d, e)
    j1, j2 = m.eq_obj1id[e], m.eq_obj2id[e]
    for i in range(p.ndof):
        entry = 0.0
        if p.dof_joint[i] == j1:
            entry = entry + 1.0
        if p.dof_joint[i] == j2:
            entry = entry - slope
        p.column[i] = (entry, 0.0, 0.0)
    _add_scalar(d, p, t, error, angle=1 if is_angle(m.jnt_type[j1]) else 0)


@kernel
def _length_derivative(m, d, i, dof):
    """Returns the derivative of the length of tendon i (-1: none) by a dof."""
    derivative = 0.0
    if i >= 0:
        for e in tendon_entries(m, i):
            if m.ten_J_colind[e] == dof:
                derivative = d.ten_J[e]
    return derivative


@kernel
def _add_tendons(m, d, p, t, e):
    """Adds equality e of two tendons, or of one and a constant, as constraint t.   Writes: column."""
    error, slope = tendon_equality_error(m, d, e)
    for i in range(p.ndof):
        entry = _length_derivative(m, d, m.eq_obj1id[e], p.dof[i])
        entry = fma(-slope, _length_derivative(m, d, m.eq_obj2id[e], p.dof[i]), entry)
        p.column[i] = (entry, 0.0, 0.0)
    _add_scalar(d, p, t, error, angle=0)


@kernel
def _add_fastening(m, d, p, t, e):
    """Adds equality e, a connect or weld, as constraint t: the distance of its anchors, and a weld's rotation.

    A dof above both bodies changes neither; one that moves the second body has -1 in `moves`.
    Writes: column, trial_error.
    """
    p1, p2 = anchor(m, d, e, side=0), anchor(m, d, e, side=1)
    apart = p2 - p1
    for i in range(p.ndof):
        v, _ = _dof_motion(m, d, p.dof[i], p.dof_joint[i], p1 if p.moves[t, i] > 0 else p2)
        p.column[i] = v if p.moves[t, i] > 0 else -v
    p.trial_error[t][0] = norm3(apart)
    _add_rows(d, p, t, apart, p.weight[t][0])
    if m.eq_type[e] == EQ_WELD:
        # without a torquescale a weld does not hold the orientation
        holds = where(m.eq_data[e, 10] != 0.0, 1.0, 0.0)
        frame, q = orientations(m, d, e)
        # q = q_2* q_1 q_rel is the rotation of the first relative to the second, in the axes of `frame` = q_2.  Its
        # opposite is the error that a step reduces
        rotation = -holds * (frame @ quat_log(q.unit))
        for i in range(p.ndof):
            _, w = _dof_motion(m, d, p.dof[i], p.dof_joint[i], p1)
            p.column[i] = (holds if p.moves[t, i] > 0 else -holds) * w
        p.trial_error[t][1] = norm3(rotation)
        _add_rows(d, p, t, rotation, p.weight[t][1])


@kernel
def _add_equality(m, d, p, t, e):
    """Adds equality constraint e as constraint t."""
    if m.eq_type[e] == EQ_JOINT:
        _add_joints(m, d, p, t, e)
    elif m.eq_type[e] == EQ_TENDON:
        _add_tendons(m, d, p, t, e)
    else:
        _add_fastening(m, d, p, t, e)


@kernel
def _add_posture(m, d, p):
    """Adds the distance to the posture of each DoF that moves: e = q* (-) q, one row per DoF."""
    n = p.ndof
    stiffness2 = p.stiffness[0] * p.stiffness[0]
    for i in range(n):
        dof, j = p.dof[i], p.dof_joint[i]
        adr, local, kind = m.jnt_qposadr[j], dof - m.jnt_dofadr[j], m.jnt_type[j]
        e = p.posture[adr + local] - d.qpos[adr + local]  # of a slide, a hinge or a translation
        if has_quaternion(kind) and not is_translation(kind, local):
            adr = adr + 3 if is_free_joint(kind) else adr  # a free joint's quaternion follows its position
            rotation = quat_sub(Quat(p.posture[adr : adr + 4]).unit, Quat(d.qpos[adr : adr + 4]).unit)
            e = rotation[local % 3]  # the rotational DoFs of a free joint are 3, 4, 5
        p.trial_cost[0] = fma(0.5 * stiffness2 * e, e, p.trial_cost[0])
        p.trial_g[i] = fma(stiffness2, e, p.trial_g[i])
        p.trial_A[i, i] = p.trial_A[i, i] + stiffness2


@stage(p=IK)
def ik_residual(m, d, p):
    """Computes errors, cost and normal equations of all targets and equality constraints in the position in d.

    Reads:  xpos, xquat, xmat, xanchor, xaxis, qpos; goal, weight, posture, stiffness.
    Writes: trial_error (nrow, 2) [m, rad], trial_cost, trial_A (ndof, ndof), trial_g (ndof,); column; with constraints
            of tendons what `kinematics`, `path_frames`, `com_pos` and `tendon` write.
    Frame: world.   Cost: O(nrow ndof^2).
    """
    n = p.ndof
    p.trial_cost[0] = 0.0
    for i in range(n):
        p.trial_g[i] = 0.0
        for j in range(i + 1):
            p.trial_A[i, j] = 0.0
    for t in range(p.ntarget):
        p.trial_error[t] = zeros(2)
        pos, quat = _object_pose(m, d, p.kind[t], p.object[t])
        if p.prescribed[t] & POSITION:
            _add_position(m, d, p, t, pos)
        if p.prescribed[t] & ORIENTATION:
            _add_orientation(m, d, p, t, pos, quat)
        if p.prescribed[t] & LOOK_AT:
            _add_look(m, d, p, t, pos, quat)
    if p.has_tendons:
        kinematics(m, d)
        path_frames(m, d)
        com_pos(m, d)
        tendon(m, d)
    for c in range(p.nequality):
        t = p.ntarget + c
        p.trial_error[t] = zeros(2)
        _add_equality(m, d, p, t, p.equality[c])
    if any_(p.stiffness[0] > 0.0):
        _add_posture(m, d, p)
