"""Derivatives of the forces of xfrc_applied by position.

p is the record of derivatives (records.py), p.dg the derivative of the residual, which contains minus these forces.
Imported: point_motion, (rotation, velocity) of a point of a body for a unit velocity of dof k; add_moved_force, which
adds to a row of dofs the change of a wrench's generalized forces, from (point, its displacement), (force, moment) and
the changes of both in world axes.
"""

from featherlane.engine.prelude import *
from featherlane.tools.sensitivity.rates.paths import add_moved_force, is_before, point_motion


@kernel
def find_applied(m, d, p):
    """body_pushed <- 1 for bodies with xfrc_applied in a world of the tile, else 0; npushed <- their number."""
    p.npushed[0] = 0
    for b in range(1, m.nbody):
        force, torque = d.xfrc_applied[b].force, d.xfrc_applied[b].torque
        p.body_pushed[b] = 1 if any_((dot(force, force) + dot(torque, torque)) != 0.0) else 0
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
                point, none = d.xipos[b], Vec3(zeros(3))  # xfrc_applied has fixed world axes: its changes are 0
                _, moved = point_motion(m, d, b, k, point)
                add_moved_force(m, d, p.dg, b, k, (point, moved), (minus_force, minus_torque), (none, none))
