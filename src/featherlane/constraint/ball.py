"""Limits of ball joints: one row per joint, which bounds the rotation angle."""

from featherlane.prelude import *
from featherlane.constraint.diagonal import chosen_diagonal
from featherlane.constraint.end_of_step import end_of_step, resolved
from featherlane.constraint.general import place_rows_at, store_general_row
from featherlane.constraint.impedance import UNBOUNDED, impedance, inverse_regularisation, reference, shortest_timeconst
from featherlane.dynamics.awake import sleeping, tree_awake


@kernel
def ball_axis_angle(q):
    """Returns (unit axis, angle in [0, pi]) of a rotation; the axis of the identity is (1, 0, 0)."""
    u, s = normalize3((q[1], q[2], q[3]))
    # q and -q are the same rotation: use the one with w >= 0
    turn = where((q[0] < 0.0) & (s >= MINVAL), -1.0, 1.0)
    return turn * u, 2.0 * atan2(s, fabs(q[0]))


@kernel
def ball_row(m, d, k, o, j, axis, dist, present):
    """Writes row k, its entries at o: the limit of the ball j, J = -axis, an upper bound of the angle."""
    joint = m.joint[j]
    i, solimp, margin = joint.dofadr, joint.solimp, joint.margin
    r, v = dist - margin, -dot(axis, Vec3(d.qvel[i : i + 3]))
    solref, imp = joint.solref, impedance(solimp, r)
    K, B = resolved(m, timestep(m), solref, imp, reference(solref, solimp, shortest_timeconst(m)))
    K, B, imp = end_of_step(m, K, B, imp)
    for c in range(3):
        d.genrow_dof[o + c] = i + c
        d.genrow_J[o + c] = where(present, -axis[c], 0.0)
    place_rows_at(d, k, 1, o, 3, LIMIT_JOINT, j)
    D = inverse_regularisation(imp, chosen_diagonal(m, d, k, m.dof_invweight0[i], i + 2, -1))
    aref = -fma(B, v, K * r)
    store_general_row(d, k, present, dist, margin, D, aref, (0.0, UNBOUNDED))


@kernel
def ball_rows(m, d, k, o):
    """Writes limit rows of balls, rows from k on, entries from o on; the larger entry of the range bounds the angle.

    Returns the indices of the next row and the next entry.
    Source: MuJoCo's documentation, "XML reference", body/joint/range.
    """
    for j in range(m.njnt):
        joint = m.joint[j]
        if joint.limited != 0 and is_ball(joint.type):
            a = joint.qposadr
            axis, angle = ball_axis_angle(Quat(d.qpos[a : a + 4]).unit)
            dist = fmax(joint.range.lower, joint.range.upper) - angle
            near = dist < joint.margin
            if sleeping(m):
                near = near & tree_awake(d, m.dof_treeid[joint.dofadr])
            if any_(near):
                ball_row(m, d, k, o, j, axis, dist, near)
                k += 1
                o += 3
    return k, o
