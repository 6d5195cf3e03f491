"""Derivative of the generalized forces of a wrench on one body by the position of a dof.

    d(S_i . W) / dq_k = S_i . dW + (dS_i / dq_k) . W,      dS_i / dq_k = S_k x S_i  for the dofs i beyond dof k

The dofs of one ball turn each other's axes, in either order.  p is the record of derivatives (records.py), p.dg the
derivative of the residual, which contains minus the generalized forces.
"""

from featherlane.prelude import *
from featherlane.sensitivity.rates.paths import is_before, point_motion, turns_with


@kernel
def add_moved_force(m, d, out, b, k, place, force, change):
    """out_i += d(S_i . W) / dq_k of the dofs i that move body b; for k = -1 the axes S_i stay.

    Args:
        out: a row of dofs.
        b: the body on which the wrench W acts.
        k: the dof that is displaced.
        place: (point, its displacement) in world axes.
        force, change: (force, moment) of W at the point, and their changes.
    """
    point, moved = place
    r = point - d.subtree_com[m.body_rootid[b]]
    (f, n), (df, dn) = force, change  # n: moment
    # W and dW at the com of the body's tree
    W = Force(join(n + cross(r, f), f))
    dW = Force(join(dn + (cross(r, df) + cross(moved, f)), df))
    carries, i, turned = k >= 0 and is_before(m, k, b), m.body_lastdof[b], dW
    if carries:
        # (S_k x S_i) . W = -S_i . (S_k x* W)
        turned = dW - cross_force(d.cdof[k], W)
    while i >= 0:  # the dofs that move body b, from the last one to the root
        # the axes of the dofs beyond k move along
        if carries and (i >= k or turns_with(m, i, k)):
            rate = dot(d.cdof[i], turned)
        else:
            rate = dot(d.cdof[i], dW)
        out[i] = out[i] + rate
        i = m.dof_parentid[i]


@kernel
def _is_pushed(d, b):
    """Returns whether xfrc_applied of body b is not 0 in a world of the tile."""
    force, torque = d.xfrc_applied[b].force, d.xfrc_applied[b].torque
    return any_((dot(force, force) + dot(torque, torque)) != 0.0)


@kernel
def find_applied(m, d, p):
    """body_pushed <- 1 for bodies with xfrc_applied in a world of the tile, else 0; npushed <- their number."""
    p.npushed[0] = 0
    for b in range(1, m.nbody):
        p.body_pushed[b] = 1 if _is_pushed(d, b) else 0
        p.npushed[0] += p.body_pushed[b]


@kernel
def subtract_applied(m, d, p, k):
    """dg -= derivatives of the forces of xfrc_applied by the position of dof k; they act at the com xipos of a body.

    Reads: npushed, body_pushed of `find_applied`.
    """
    if p.npushed[0] > 0:
        for b in range(1, m.nbody):
            # a dof that does not move the body does not change the forces
            if p.body_pushed[b] and is_before(m, k, b):
                minus_force, minus_torque = -d.xfrc_applied[b].force, -d.xfrc_applied[b].torque
                point, none = d.xipos[b], Vec3(zeros(3))
                _, moved = point_motion(m, d, b, k, point)
                add_moved_force(m, d, p.dg, b, k, (point, moved), (minus_force, minus_torque), (none, none))
