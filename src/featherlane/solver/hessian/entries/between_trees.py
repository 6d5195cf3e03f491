"""Contacts between bodies of two trees as stiffnesses between the bodies: K = sum of w_ab q_a q'_b^T.

A contact acts on its two bodies by the same force at two arms, each from the com of its body's tree:

    K += q F q'^T with q = ([r], 1), q' = ([r'], 1),
    K += [[A + p (r' x s)^T + (r x s) p^T,  p s^T], [s p^T,  0]] for its turns,

with F, A, p, s as in stiffness.py.  All contacts of a pair of bodies are summed before the product with the dofs:

    H_ij -= S_i^T K S_j   for the dofs i above the first body and j above the other.

The first body is the one with the higher dofs.  Two bodies of one tree are in within_tree.py: there the dofs above both
must cancel.
"""

from featherlane.prelude import *
from featherlane.solver.hessian.entries.couplings import couples_free_bodies, coupling_tips
from featherlane.solver.hessian.entries.pattern import ORDERED, first_place_of_block


@kernel
def within_tree(m, d, k):
    """Checks whether contact slot k joins two bodies of one tree."""
    return m.body_treeid[d.con_body[k, 0]] == m.body_treeid[d.con_body[k, 1]]


@kernel
def clear_couplings(m, d):
    """Sets the stiffness between all bodies of two trees to zero."""
    for k in range(d.hessian.ncoupling[0]):
        tip, other = coupling_tips(d, k)
        free = d.hessian.pattern[0] == ORDERED and couples_free_bodies(m, d, k)
        if m.dof_treeid[tip] != m.dof_treeid[other] and not free:
            for i in range(6):
                d.hessian.coupling_K[k, i] = zeros(6)


@kernel
def arms(m, d, k):
    """Returns (arm on the body with the higher dofs, arm on the other one)."""
    c = d.contact[k]
    first, other = c.arm[0], c.arm[1]
    if c.body[0] < c.body[1]:
        first, other = other, first
    return first, other


@kernel
def add_point_stiffness(m, d, k, F):
    """Adds q F q'^T to K for a 3x3 stiffness F of contact k's point."""
    r, t = arms(m, d, k)
    pair, f = d.hessian.con_coupling[k], F.rows
    g = tuple(cross(t, f[i]) for i in range(3))  # rows of F [r']^T
    a = tuple(cross(r, Vec3(g[i][c] for i in range(3))) for c in range(3))  # columns of [r] F [r']^T
    h = tuple(cross(r, f[i]) for i in range(3))  # columns of [r] F
    for i in unrolled(range(3)):
        d.hessian.coupling_K[pair, i] += Force(a[0][i], a[1][i], a[2][i], h[0][i], h[1][i], h[2][i])
        d.hessian.coupling_K[pair, 3 + i] += Force(join(g[i], f[i]))


@kernel
def add_turning_stiffness(m, d, k, A, p, s):
    """Adds the turns of contact k to K: A on the rotations, p s^T between rotation and translation.

    With the arms r and q of the two bodies, the rotations get A + p (q x s)^T + (r x s) p^T.
    """
    r, q = arms(m, d, k)
    pair, a = d.hessian.con_coupling[k], A.rows
    rs, qs = cross(r, s), cross(q, s)
    for i in unrolled(range(3)):
        K = d.hessian.coupling_K[pair, i]
        rotation = K.moment + fma(p[i], qs, fma(rs[i], p, a[i]))
        d.hessian.coupling_K[pair, i] = join(rotation, fma(p[i], s, K.translation))
        K = d.hessian.coupling_K[pair, 3 + i]
        d.hessian.coupling_K[pair, 3 + i] = join(fma(s[i], p, K.moment), K.translation)


# ---- products with the dofs ----------------------------------------------------------------------------------------
@kernel
def is_free_translation(m, j):
    """Checks whether dof j is a translation of a free joint: its axis is a unit vector, whose product with f is f_j."""
    a = m.dof_jntid[j]
    return is_free_joint(m.jnt_type[a]) and j - m.jnt_dofadr[a] < 3


@kernel
def dofs_above(m, c, tip):
    """Returns how many dofs of block c are above dof tip, including it: all of them, except in the block of tip."""
    n = tip + 1 - m.block_dofadr[c]
    return n if n < m.block_dofnum[c] else m.block_dofnum[c]


@kernel
def couple_block(m, d, k, c, n):
    """Computes K S_j of coupling k for the first n dofs j of block c, in hessian.coupling_force."""
    first = m.block_dofadr[c]
    for e in range(n):
        s = d.cdof[first + e]
        for i in unrolled(range(6)):
            K = d.hessian.coupling_K[k, i]
            x = dot(K.translation, s.linear)
            if not is_free_translation(m, first + e):
                x = x + dot(K.moment, s.angular)
            d.hessian.coupling_force[e][i] = x


@kernel
def subtract_block(m, d, b, rows, c, n):
    """Subtracts S_i . K S_j from H_ij for the first `rows` dofs i of block b, n dofs j of c."""
    i0, j0 = m.block_dofadr[b], m.block_dofadr[c]
    below = b > c
    place = first_place_of_block(m, d, b, c) if below else first_place_of_block(m, d, c, b)
    for i in range(i0, i0 + rows):
        s, unit = d.cdof[i], is_free_translation(m, i)
        axis = i - m.jnt_dofadr[m.dof_jntid[i]]
        for e in range(n):
            x = flat(d.hessian.coupling_force)[6 * e + 3 + axis] if unit else dot(s, d.hessian.coupling_force[e])
            a = d.hessian.rowadr[i] + place + e if below else d.hessian.rowadr[j0 + e] + place + i - i0
            d.hessian.H[a] = d.hessian.H[a] - x


@kernel
def subtract_coupling(m, d, k):
    """Subtracts S_i . K S_j from H_ij for all dofs above the two bodies of coupling k, unless they are in one tree."""
    tip, other = coupling_tips(d, k)
    c = m.dof_blockid[other] if m.dof_treeid[tip] != m.dof_treeid[other] else -1
    while c >= 0:
        n = dofs_above(m, c, other)
        couple_block(m, d, k, c, n)
        b = m.dof_blockid[tip]
        while b >= 0:
            subtract_block(m, d, b, dofs_above(m, b, tip), c, n)
            b = m.block_parentid[b]
        c = m.block_parentid[c]
