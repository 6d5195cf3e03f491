"""Moments of forces that act at points of bodies: what a force and a torque there are to the dofs of an actuator's row.

The row of an output holds the dofs that it can move, ascending (model/moments.py).  Those that move a body and stand
in the row are the last ones on its way to the root: what two bodies share cancels, and is left out of the row.
"""

from featherlane.prelude import *
from featherlane.dynamics.body.com import point_wrench


@kernel
def clear_moment(m, d, o):
    """Zeros in the row of output o."""
    for e in range(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o]):
        d.actuator_moment[e] = zero(d)


@kernel
def add_wrench(m, d, o, b, point, force, torque):
    """Row of output o += J^T of a force at a point of body b and a torque on it, world axes.

    Reads:  cdof, subtree_com.   Writes: actuator_moment.   Cost: O(depth).
    """
    first, e, k = m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o] - 1, m.body_lastdof[b]
    if e >= first and k >= m.moment_colind[first]:
        wrench = point_wrench(d, force, torque, point, m.body_rootid[b])
        while k >= m.moment_colind[first]:
            while m.moment_colind[e] > k:
                e -= 1
            d.actuator_moment[e] = d.actuator_moment[e] + dot6(load6(d.cdof, 6 * k), wrench)
            k = m.dof_parentid[k]
