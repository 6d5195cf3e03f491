"""Motions along the path from the root to a body: which dofs move a body, and its motion before a joint or at a point.

Dofs are numbered depth first.  Row k of the sparse pattern D lists (D_colind) the dofs on the path from the root
through k (its first D_diag + 1 entries, k the last), then the dofs that k moves.
"""

from featherlane.prelude import *


@kernel
def is_before(m, k, b):
    """Returns whether dof k moves body b.

    Dofs are numbered depth first: k and the dofs that it moves are consecutive; row k of D has them from D_diag on.
    """
    last = m.body_lastdof[b]
    return last >= k and last - k < m.D_rownnz[k] - m.D_diag[k]


@kernel
def before_joint(m, d, k, motions, rates):
    """Returns the motion just before the joint of dof k: that of the parent, plus that of the body's joints before it.

    motions: motions of bodies, such as cvel; rates: the dof velocities or accelerations that belong to them.
    """
    i, joint = m.dof_bodyid[k], m.dof_jntid[k]
    motion, first = motions[m.body_parentid[i]], m.jnt_dofadr[joint]
    # the rotation of a free joint comes after its three translations
    if is_free_joint(m.jnt_type[joint]) and k >= first + 3:
        first += 3
    for j in range(m.body_dofadr[i], first):
        motion = fma(rates[j], d.cdof[j], motion)
    return motion


@kernel
def turns_with(m, j, k):
    """Returns whether dofs j and k are rotations of one ball, or of one free joint."""
    joint = m.dof_jntid[k]
    kind, first = m.jnt_type[joint], m.jnt_dofadr[joint]
    one_joint = m.dof_jntid[j] == joint and has_quaternion(kind)
    # the first three dofs of a free joint are translations
    return one_joint and not (is_free_joint(kind) and min(j, k) < first + 3)


@kernel
def point_motion(m, d, b, k, point):
    """Returns (rotation, velocity) of a point of body b for a unit velocity of dof k; zeros if k does not move b."""
    w, velocity = Vec3(zeros(3)), Vec3(zeros(3))
    if is_before(m, k, b):
        w = d.cdof[k].angular
        arm = point - d.subtree_com[m.body_rootid[b]]
        velocity = d.cdof[k].linear + cross(w, arm)
    return w, velocity


@kernel
def unit3(c):
    """Returns the unit vector along axis c."""
    return Vec3(1.0 if i == c else 0.0 for i in range(3))
