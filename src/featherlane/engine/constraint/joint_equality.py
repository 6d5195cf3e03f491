"""Equality of two joint coordinates, or of one and a constant, as one general row.

    x_1 - x_1(0) - (a_0 + a_1 y + a_2 y^2 + a_3 y^3 + a_4 y^4) = 0    with y = x_2 - x_2(0)

Names: e: the equality; k: its general row (fields row_*, row.py); adr: the first entry of the row in row_dof and
    row_J; A: estimate of J M^-1 J^T.
Source: MuJoCo's documentation, "XML reference", equality/joint.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.diagonal import chosen_diagonal
from featherlane.engine.constraint.general import assign_rows, coupling_error


@kernel
def list_joint_dofs(m, d, adr, e):
    """Writes the dofs of the joints of equality e to row_dof[adr ..], ascending; returns their number."""
    equality = m.equality[e]
    i = m.jnt_dofadr[equality.obj1id]
    count = 1
    d.row_dof[adr] = i
    # one dof if there is no second joint, or both are the same
    if equality.obj2id >= 0 and equality.obj2id != equality.obj1id:
        j = m.jnt_dofadr[equality.obj2id]
        d.row_dof[adr] = min(i, j)
        d.row_dof[adr + 1] = i + j - min(i, j)  # the larger one
        count = 2
    return count


@kernel
def joint_displacement(m, d, j):
    """Returns the coordinate of slide or hinge j less that of qpos0."""
    return d.qpos[m.jnt_qposadr[j]] - m.qpos0[m.jnt_qposadr[j]]


@kernel
def joint_equality_error(m, d, e):
    """Returns (error, slope) of equality e of two joints, by `coupling_error` of both displacements."""
    j = m.eq_obj2id[e]
    x = joint_displacement(m, d, m.eq_obj1id[e])
    return coupling_error(m, e, x, joint_displacement(m, d, j) if j >= 0 else 0.0)


@kernel
def write_joint_equality(m, d, k, adr, e, present):
    """Writes the Jacobian of row k for equality e, r = q_1 - f(q_2): 1 at joint 1's dof and -f'(q_2) at joint 2's.

    adr: its first entry.  present: mask of worlds in which e is active.
    Returns (error, A, number of entries); the caller stores the error and D.
    """
    n = list_joint_dofs(m, d, adr, e)
    i1 = m.jnt_dofadr[m.eq_obj1id[e]]
    j2 = m.eq_obj2id[e]
    A = m.dof_invweight0[i1]
    error, slope = joint_equality_error(m, d, e)
    for c in range(n):
        d.row_J[adr + c] = where(present & (d.row_dof[adr + c] == i1), 1.0, 0.0)
    if j2 >= 0:
        i2 = m.jnt_dofadr[j2]
        A = A + m.dof_invweight0[i2]  # the estimate is the sum over both joints
        for c in range(n):
            if d.row_dof[adr + c] == i2:  # i2 = i1 if both joints are the same: J = 1 - slope
                d.row_J[adr + c] = where(present, d.row_J[adr + c] - slope, 0.0)
    assign_rows(d, k, size=1, adr=adr, n=n, kind=EQUALITY, ident=e)
    return error, chosen_diagonal(m, d, k, A), n
