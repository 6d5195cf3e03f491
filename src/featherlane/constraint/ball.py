"""Limits of ball joints: one row per joint, which bounds the rotation angle.

Names: k: a general row (fields row_*, row.py); o: its first entry in row_dof and row_J; K, B, imp: stiffness,
    damping and impedance d of aref = -B v - K d r, r: position error less the margin (impedance.py);
    A: `chosen_diagonal`, J M^-1 J^T or its estimate; D: `inverse_regularisation`, d / ((1 - d) A).
    `normalize3` returns (unit vector, length); `reference` returns (K, B) of a solref.
    `limit_to_step` limits (K, B) by the time step; `reference_at_end` returns (stiffness, damping, d) with
    aref = -damping v - stiffness r, where under the integrator `discrete` the row acts at the end of the step.
"""

from featherlane.prelude import *
from featherlane.constraint.diagonal import chosen_diagonal
from featherlane.constraint.end_of_step import limit_to_step, reference_at_end
from featherlane.constraint.general import place_rows_at, store_general_row
from featherlane.constraint.impedance import UNBOUNDED, impedance, inverse_regularisation, reference, shortest_timeconst
from featherlane.dynamics.awake import sleeping, tree_awake


@kernel
def ball_axis_angle(q):
    """Returns (unit axis, angle in [0, pi]) of the rotation by the unit quaternion q.

    The axis of the identity is (1, 0, 0).
    """
    # u, s: axis and sine of half the angle, up to the sign of q;  for s < MINVAL, u is (1, 0, 0) and keeps its sign
    u, s = normalize3((q[1], q[2], q[3]))
    # q and -q are the same rotation: use the one with w >= 0
    turn = where((q[0] < 0.0) & (s >= MINVAL), -1.0, 1.0)
    return turn * u, 2.0 * atan2(s, fabs(q[0]))


@kernel
def write_ball_limit(m, d, k, o, j, axis, dist, present):
    """Writes row k, its entries from o on: the limit of the ball j, J = -axis, an upper bound of the angle.

    axis: rotation axis in the joint's frame; dist: largest angle minus the angle [rad]; present: mask of worlds that
    have the row.
    """
    joint = m.joint[j]
    first, solimp, margin = joint.dofadr, joint.solimp, joint.margin
    r, v = dist - margin, -dot(axis, Vec3(d.qvel[first : first + 3]))
    solref, imp = joint.solref, impedance(solimp, r)
    K, B = limit_to_step(m, timestep(m), solref, imp, reference(solref, solimp, shortest_timeconst(m)))
    stiffness, damping, imp = reference_at_end(m, K, B, imp)  # imp: that at the end of the step, if the row acts there
    for c in range(3):
        d.row_dof[o + c] = first + c
        d.row_J[o + c] = where(present, -axis[c], 0.0)
    place_rows_at(d, k, size=1, o=o, n=3, kind=LIMIT_JOINT, ident=j)
    # the three dofs are a chain: the last one and its ancestors contain all of them, so there is no second chain (j)
    D = inverse_regularisation(imp, chosen_diagonal(m, d, k, m.dof_invweight0[first], i=first + 2, j=-1))
    aref = -fma(damping, v, stiffness * r)
    store_general_row(d, k, present, dist, margin, D, aref, bounds=(0.0, UNBOUNDED))  # the limit only pushes


@kernel
def write_ball_limits(m, d, k, o):
    """Writes limit rows of balls, rows from k on, entries from o on; the larger entry of the range bounds the angle.

    Returns the indices of the next row and the next entry.
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
                write_ball_limit(m, d, k, o, j, axis, dist, near)
                k += 1
                o += 3
    return k, o
