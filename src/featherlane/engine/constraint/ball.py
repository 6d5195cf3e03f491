"""Limits of ball joints: one row per joint, which bounds the rotation angle.

Names: k: a general row (fields row_*, row.py); adr: its first entry in row_dof and row_J; K, B, imp: stiffness,
    damping and impedance d of aref = -B v - K d r, r: position error less the margin (impedance.py);
    A: `chosen_diagonal`, J M^-1 J^T or its estimate; D: `inverse_regularisation`, d / ((1 - d) A).
    `normalize3` returns (unit vector, length); `limit_reference` returns (stiffness, damping, d) with
    aref = -damping v - stiffness r, where under the integrator `discrete` the row acts at the end of the step.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.diagonal import chosen_diagonal
from featherlane.engine.constraint.end_of_step import limit_reference
from featherlane.engine.constraint.general import assign_rows, row_product, store_row
from featherlane.engine.constraint.impedance import UNBOUNDED, inverse_regularisation, shortest_timeconst
from featherlane.engine.dynamics.awake import sleeping, tree_awake


@kernel
def ball_axis_angle(q):
    """Returns (unit axis, angle in [0, pi]) of the rotation by the unit quaternion q.

    The axis of the identity is (1, 0, 0).
    """
    # u, s: unit axis, and sine of half the angle, up to the sign of q;  for s < MINVAL, u is (1, 0, 0)
    u, s = normalize3((q[1], q[2], q[3]))
    # q and -q are the same rotation: use the one with w >= 0;  (1, 0, 0) keeps its sign
    sign = where((q[0] < 0.0) & (s >= MINVAL), -1.0, 1.0)
    return sign * u, 2.0 * atan2(s, fabs(q[0]))


@kernel
def write_ball_limit(m, d, k, adr, j, axis, dist, present):
    """Writes row k, its entries from adr on: the limit of the ball j, J = -axis, an upper bound of the angle.

    axis: rotation axis in the joint's frame; dist: largest angle minus the angle [rad]; present: mask of worlds that
    have the row.
    """
    joint = m.joint[j]
    first = joint.dofadr
    r = dist - joint.margin
    v = -dot(axis, Vec3(d.qvel[first : first + 3]))
    stiffness, damping, imp = limit_reference(m, joint.solref, joint.solimp, r, shortest_timeconst(m))
    for c in range(3):
        d.row_dof[adr + c] = first + c
        d.row_J[adr + c] = where(present, -axis[c], 0.0)
    assign_rows(d, k, size=1, adr=adr, n=3, kind=LIMIT_JOINT, ident=j)
    D = inverse_regularisation(imp, chosen_diagonal(m, d, k, m.dof_invweight0[first]))
    aref = -fma(damping, v, stiffness * r)
    vel = row_product(d, k, d.qvel)  # v with the rounding of `row_product`, as in other general rows
    bounds = (0.0, UNBOUNDED)  # the limit only pushes
    store_row(d, k, present, (dist, joint.margin), vel, D, aref, bounds)


@kernel
def write_ball_limits(m, d, k, adr):
    """Writes the limits of balls, r = max(range) - angle >= 0, to rows from k on, entries from adr on.

    Returns the next row and the next entry.
    Source: MuJoCo's documentation, "XML reference", body/joint/range.
    """
    for j in range(m.njnt):
        joint = m.joint[j]
        if joint.limited != 0 and is_ball(joint.type):
            qposadr = joint.qposadr
            axis, angle = ball_axis_angle(Quat(d.qpos[qposadr : qposadr + 4]).unit)
            dist = fmax(joint.range.lower, joint.range.upper) - angle
            near = dist < joint.margin  # worlds that have the row
            if sleeping(m):  # a sleeping tree has no rows
                near = near & tree_awake(d, m.dof_treeid[joint.dofadr])
            if any_(near):
                write_ball_limit(m, d, k, adr, j, axis, dist, near)
                k += 1
                adr += 3
    return k, adr
