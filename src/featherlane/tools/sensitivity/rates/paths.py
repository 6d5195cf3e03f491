"""Motions and forces along the path from the root to a body, and how a displaced dof changes them.

Dofs are numbered depth first.  Row k of the sparse pattern D lists (D_colind) the dofs on the path from the root
through k (its first D_diag + 1 entries, k the last), then the dofs that k moves.

The generalized forces of a wrench W on one body change with the position of dof k by

    d(S_i . W) / dq_k = S_i . dW + (dS_i / dq_k) . W,      dS_i / dq_k = S_k x S_i  for the dofs i beyond dof k

The dofs of one ball turn each other's axes, in either order.  S_k = cdof[k] is the axis of dof k, a motion at the com
of its body's tree (subtree_com of the root), in world axes; cvel and other motions and forces of bodies likewise.
This reference point is held fixed while a dof is displaced.
at_point(V, r): V with the velocity of the point at the arm r.
"""

from featherlane.engine.prelude import *
from featherlane.engine.spatial.motion import at_point


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
def shares_quaternion(m, j, k):
    """Returns whether dofs j and k are rotations of one ball, or of one free joint."""
    joint = m.dof_jntid[k]
    kind, first = m.jnt_type[joint], m.jnt_dofadr[joint]
    one_joint = m.dof_jntid[j] == joint and has_quaternion(kind)
    # the first three dofs of a free joint are translations
    return one_joint and not (is_free_joint(kind) and min(j, k) < first + 3)


@kernel
def turned(w, v):
    """Returns a vector v with its change w x v, that of an axis or force that turns with a body."""
    return seed(v, cross(w, v))


@kernel
def moved_point(m, d, b, k, point):
    """Returns (angular velocity of body b, a point of b with its velocity as tangent), for a unit velocity of dof k.

    Both velocities are 0 if k does not move b.
    """
    w, velocity = Vec3(zeros(3)), Vec3(zeros(3))
    if is_before(m, k, b):
        w = d.cdof[k].angular
        arm = point - d.subtree_com[m.body_rootid[b]]
        velocity = d.cdof[k].linear + cross(w, arm)
    return w, seed(point, velocity)


@kernel
def unit3(c):
    """Returns the unit vector along axis c."""
    return Vec3(1.0 if i == c else 0.0 for i in range(3))


@kernel
def relative_motion(d, k, motions, first):
    """Returns the motion of the pushed body relative to the other one, at the point of contact k.

    motions: motions of bodies, from row `first` on, at the com of each body's tree.
    """
    c = d.contact[k]
    b, other = c.body[0], c.body[1]  # pushed body, other body
    motion = at_point(motions[first + b], c.arm[0])
    if other > 0:  # the world does not move
        motion = motion - at_point(motions[first + other], c.arm[1])
    return motion


@kernel
def add_moved_force(m, d, out, b, k, point, force, moment):
    """out_i += d(S_i . W) / dq_k of the dofs i that move body b; for k = -1, with fixed axes S_i: out_i += S_i . dW.

    Args:
        out: a row of dofs.
        b: the body on which the wrench W acts.
        k: the dof that is displaced, or -1.
        point, force, moment: of W, in world axes; their tangents are their changes.
    """
    # W and dW at the com of the body's tree
    r = point - d.subtree_com[m.body_rootid[b]]
    W, dW = split_tangents(Force(join(moment + cross(r, force), force)), 1)
    moves_b, i, carried = k >= 0 and is_before(m, k, b), m.body_lastdof[b], dW
    if moves_b:
        # for axes S_i that dof k moves: (S_k x S_i) . W = -S_i . (S_k x* W)
        carried = dW - cross_force(d.cdof[k], W)
    while i >= 0:  # the dofs that move body b, from the last one to the root
        # dof k moves the axes of the dofs beyond it, and those of the other dofs of its ball
        if moves_b and (i >= k or shares_quaternion(m, i, k)):
            rate = dot(d.cdof[i], carried)
        else:
            rate = dot(d.cdof[i], dW)
        out[i] = out[i] + rate
        i = m.dof_parentid[i]
