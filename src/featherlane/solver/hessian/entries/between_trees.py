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
from featherlane.solver.hessian.entries.pattern import ORDERED, block_place
from featherlane.solver.hessian.entries.stiffness import symmetric


@kernel
def within_tree(m, d, k):
    """Checks whether contact slot k joins two bodies of one tree."""
    return m.body_treeid[d.con_body[2 * k]] == m.body_treeid[d.con_body[2 * k + 1]]


@kernel
def clear_couplings(m, d):
    """Sets the stiffness between all bodies of two trees to zero."""
    for k in range(d.hessian.ncoupling[0]):
        tip, other = coupling_tips(d, k)
        free = d.hessian.pattern[0] == ORDERED and couples_free_bodies(m, d, k)
        if m.dof_treeid[tip] != m.dof_treeid[other] and not free:
            for c in range(36 * k, 36 * k + 36):
                d.hessian.coupling_K[c] = 0.0


@kernel
def arms(m, d, k):
    """Returns (arm on the body with the higher dofs, arm on the other one)."""
    first, other = load3(d.con_arm, 6 * k), load3(d.con_arm, 6 * k + 3)
    if d.con_body[2 * k] < d.con_body[2 * k + 1]:
        first, other = other, first
    return first, other


@kernel
def add_to_block(K, o, x):
    """Adds three rows to the 3x3 block at o of a 6x6 matrix."""
    for r in unrolled(range(3)):
        for c in unrolled(range(3)):
            K[o + 6 * r + c] = K[o + 6 * r + c] + x[r][c]


@kernel
def add_point_stiffness(m, d, k, F):
    """Adds q F q'^T to K for a 3x3 stiffness F = (xx, xy, xz, yy, yz, zz) of contact k's point."""
    r, t = arms(m, d, k)
    K, o, f = d.hessian.coupling_K, 36 * d.hessian.con_coupling[k], symmetric(F)
    g = tuple(cross(t, f[i]) for i in range(3))  # rows of F [r']^T
    a = tuple(cross(r, tuple(g[i][c] for i in range(3))) for c in range(3))
    columns = tuple(cross(r, f[i]) for i in range(3))  # of [r] F
    add_to_block(K, o, tuple(tuple(a[c][i] for c in range(3)) for i in range(3)))
    add_to_block(K, o + 3, tuple(tuple(columns[c][i] for c in range(3)) for i in range(3)))
    add_to_block(K, o + 18, g)
    add_to_block(K, o + 21, f)


@kernel
def add_turning_stiffness(m, d, k, A, p, s):
    """Adds the turns of contact k to K: A on the rotations, p s^T between rotation and translation."""
    r, t = arms(m, d, k)
    o, x, y = 36 * d.hessian.con_coupling[k], cross(r, s), cross(t, s)
    a = symmetric(A)
    for i in range(3):
        for j in range(3):
            e = o + 6 * i + j
            d.hessian.coupling_K[e] = d.hessian.coupling_K[e] + fma(p[i], y[j], fma(x[i], p[j], a[i][j]))
            d.hessian.coupling_K[e + 3] = fma(p[i], s[j], d.hessian.coupling_K[e + 3])
            d.hessian.coupling_K[e + 18] = fma(s[i], p[j], d.hessian.coupling_K[e + 18])


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
def couple_block(m, d, K, c, n):
    """Computes K S_j for the first n dofs j of block c, in hessian.pair_J."""
    first = m.block_dofadr[c]
    for e in range(n):
        s, o = d.cdof[first + e], 6 * e
        for i in range(6):
            k = K + 6 * i
            x = dot3(load3(d.hessian.coupling_K, k + 3), (s[3], s[4], s[5]))
            if not is_free_translation(m, first + e):
                x = x + dot3(load3(d.hessian.coupling_K, k), (s[0], s[1], s[2]))
            flat(d.hessian.pair_J)[o + i] = x


@kernel
def subtract_block(m, d, b, rows, c, n):
    """Subtracts S_i . K S_j from H_ij for the first `rows` dofs i of block b, n dofs j of c; K S_j in pair_J."""
    i0, j0 = m.block_dofadr[b], m.block_dofadr[c]
    below = b > c
    place = block_place(m, d, b, c) if below else block_place(m, d, c, b)
    for i in range(i0, i0 + rows):
        s, unit = d.cdof[i], is_free_translation(m, i)
        axis = i - m.jnt_dofadr[m.dof_jntid[i]]
        for e in range(n):
            o = 6 * e
            if unit:
                x = flat(d.hessian.pair_J)[o + 3 + axis]
            else:
                f = load6(flat(d.hessian.pair_J), o)
                x = fma(s[0], f[0], fma(s[1], f[1], fma(s[2], f[2], fma(s[3], f[3], fma(s[4], f[4], s[5] * f[5])))))
            a = d.hessian.rowadr[i] + place + e if below else d.hessian.rowadr[j0 + e] + place + i - i0
            d.hessian.H[a] = d.hessian.H[a] - x


@kernel
def subtract_coupling(m, d, k):
    """Subtracts S_i . K S_j from H_ij for all dofs above the two bodies of coupling k, unless they are in one tree."""
    tip, other = coupling_tips(d, k)
    c = m.dof_blockid[other] if m.dof_treeid[tip] != m.dof_treeid[other] else -1
    while c >= 0:
        n = dofs_above(m, c, other)
        couple_block(m, d, 36 * k, c, n)
        b = m.dof_blockid[tip]
        while b >= 0:
            subtract_block(m, d, b, dofs_above(m, b, tip), c, n)
            b = m.block_parentid[b]
        c = m.block_parentid[c]
