"""Derivatives of the forces of xfrc_applied by position.

p is the record of derivatives (records.py), p.dg the derivative of the residual, which contains minus these forces.
Imported: moved_point, (rotation of a body, a point of it with its change as tangent) by dof k; add_moved_force, which
adds to a row of dofs the change of a wrench's generalized forces, from its point, force and moment with their changes.
"""

from featherlane.engine.prelude import *
from featherlane.tools.sensitivity.rates.paths import add_moved_force, is_before, moved_point


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
    """dg -= derivatives of the forces of xfrc_applied, which act at the bodies' coms, by the position of dof k.

    Reads: npushed, body_pushed of `find_applied`.
    """
    if p.npushed[0] > 0:
        for b in range(1, m.nbody):
            # a dof that does not move the body does not change the forces
            if p.body_pushed[b] and is_before(m, k, b):
                _, point = moved_point(m, d, b, k, d.xipos[b])
                # force and moment are constant in world axes, so they have no tangents
                add_moved_force(m, d, p.dg, b, k, point, -d.xfrc_applied[b].force, -d.xfrc_applied[b].torque)
