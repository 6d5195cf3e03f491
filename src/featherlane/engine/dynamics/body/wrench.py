"""Computes actuator moments of forces and torques at points of bodies.

The row of an output holds the DoFs that it can move, ascending (model/moments.py): the values are
actuator_moment[moment_rowadr[o]] and following, their DoFs at the same indices of moment_colind.  The DoFs of a body in
the row are the last ones on its path to the root: common DoFs of two bodies cancel and are not in the row.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.com import point_wrench


@kernel
def clear_moment(m, d, o):
    """Sets the row of output o to zero."""
    for e in moment_entries(m, o):
        d.actuator_moment[e] = 0.0


@kernel
def add_wrench_moment(m, d, o, b, point, force, torque):
    """Adds J^T of a force at a point of body b and a torque on it to the row of output o, in world axes.

    Reads:  cdof, subtree_com.   Writes: actuator_moment.   Cost: O(depth).
    """
    # e: entry of the row, from the last to the first;  dof: from the body's last DoF to the root
    first = m.moment_rowadr[o]
    e = m.moment_rowadr[o] + m.moment_rownnz[o] - 1
    dof = m.body_lastdof[b]
    # DoFs with a smaller index than the row's first one are common to both bodies; e < first: the row is empty
    if e >= first and dof >= m.moment_colind[first]:
        # the spatial force at the centre of mass of the tree, to which cdof refers
        wrench = point_wrench(d, force, moment=torque, point=point, root=m.body_rootid[b])
        while dof >= m.moment_colind[first]:
            # skips the DoFs of the other body
            while m.moment_colind[e] > dof:
                e -= 1
            d.actuator_moment[e] += dot(d.cdof[dof], wrench)
            dof = m.dof_parentid[dof]
