"""Contacts between bodies of two trees as stiffnesses between the bodies: K = sum of w_ab q_a q'_b^T.

A contact acts on its two bodies by the same force at two arms, each from the com of its body's tree:

    K += X F X'^T with X = ([r], 1), X' = ([r'], 1),
    K += [[A + p (r' x s)^T + (r x s) p^T,  p s^T], [s p^T,  0]] for its rotation axes,

with F, A, p, s as in stiffness.py, and [r] the matrix of r x.  All contacts of a pair of bodies, a coupling
(couplings.py), are summed before the product with the dofs, S_i = cdof[i]:

    H_ij -= S_i^T K S_j   for the dofs i above the first body and j above the other.

The first body is the one with the higher dofs.  Two bodies of one tree are in within_tree.py: there the dofs above both
must cancel.
con_body, con_arm are the two bodies of a contact and its arms.  `couples_free_bodies`: such couplings are added in
panels, not here, if H has the pattern ORDERED (worlds with an own elimination order).
hessian.con_coupling[k]: number of contact k's coupling;  hessian.ncoupling[0]: number of couplings.  `coupling_tips`
returns the last dofs above both bodies of a coupling, the higher one first.
Block b has the dofs from block_dofadr[b] on, block_dofnum[b] of them; dof_blockid[i] is the block of dof i.
Layout: H_ij is at hessian.H[rowadr[i] + offset of j] (pattern.py).  hessian.coupling_K[k, i] is row i of the 6x6 matrix
K of coupling k, rotations first.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.hessian.entries.couplings import couples_free_bodies, coupling_tips
from featherlane.engine.solver.hessian.entries.pattern import ORDERED, block_offset, changes_dof


@kernel
def within_tree(m, d, k):
    """Checks whether contact slot k joins two bodies of one tree."""
    return m.body_treeid[d.con_body[k, 0]] == m.body_treeid[d.con_body[k, 1]]


@kernel
def clear_couplings(m, d):
    """Sets hessian.coupling_K of couplings between two trees to zero, except those that panels add or that are kept."""
    for k in range(d.hessian.ncoupling[0]):
        tip, other = coupling_tips(d, k)
        added_by_panels = d.hessian.pattern[0] == ORDERED and couples_free_bodies(m, d, k)
        if m.dof_treeid[tip] != m.dof_treeid[other] and not added_by_panels and changes_dof(m, d, tip):
            for i in range(6):
                d.hessian.coupling_K[k, i] = zeros(6)


@kernel
def ordered_arms(m, d, k):
    """Returns (r, r'): the arms of contact k on the body with the higher dofs, and on that with the lower dofs."""
    c = d.contact[k]
    r, r_other = c.arm[0], c.arm[1]
    if c.body[0] < c.body[1]:
        r, r_other = r_other, r
    return r, r_other


@kernel
def add_point_stiffness(m, d, k, F):
    """Adds X F X'^T = [[ [r] F [r']^T, [r] F ], [ F [r']^T, F ]] to K for a 3x3 stiffness F of contact k's point."""
    r, r_other = ordered_arms(m, d, k)
    coupling = d.hessian.con_coupling[k]
    f = F.rows
    g = tuple(cross(r_other, f[i]) for i in range(3))  # rows of F [r']^T
    a = tuple(cross(r, Vec3(g[i][c] for i in range(3))) for c in range(3))  # columns of [r] F [r']^T
    h = tuple(cross(r, f[i]) for i in range(3))  # columns of [r] F
    for i in unrolled(range(3)):
        d.hessian.coupling_K[coupling, i] += Force(a[0][i], a[1][i], a[2][i], h[0][i], h[1][i], h[2][i])
        d.hessian.coupling_K[coupling, 3 + i] += Force(join(g[i], f[i]))


@kernel
def add_angular_coupling(m, d, k, A, p, s):
    """Adds the angular stiffness of contact k to K: [[A + p (r' x s)^T + (r x s) p^T,  p s^T], [s p^T,  0]]."""
    r, r_other = ordered_arms(m, d, k)
    coupling = d.hessian.con_coupling[k]
    a = A.rows
    rs, rs_other = cross(r, s), cross(r_other, s)
    for i in unrolled(range(3)):
        K = d.hessian.coupling_K[coupling, i]  # row i: rotations
        rotation = K.moment + fma(p[i], rs_other, fma(rs[i], p, a[i]))
        d.hessian.coupling_K[coupling, i] = join(rotation, fma(p[i], s, K.translation))
        K = d.hessian.coupling_K[coupling, 3 + i]  # row 3 + i: translations
        d.hessian.coupling_K[coupling, 3 + i] = join(fma(s[i], p, K.moment), K.translation)


# ---- products with the dofs ----------------------------------------------------------------------------------------
@kernel
def is_free_translation(m, j):
    """Checks whether dof j is a translation of a free joint: its axis S_j is a unit vector e, and S_j . f is f . e."""
    joint = m.dof_jntid[j]
    return is_free_joint(m.jnt_type[joint]) and j - m.jnt_dofadr[joint] < 3


@kernel
def count_dofs_above(m, block, tip):
    """Returns how many dofs of a block are above dof `tip`, or tip itself: all, except in the block that has tip."""
    n = tip + 1 - m.block_dofadr[block]
    return n if n < m.block_dofnum[block] else m.block_dofnum[block]


@kernel
def store_stiffness_products(m, d, k, block, n):
    """Computes hessian.coupling_force[e] = K S_j of coupling k, for the dofs j = first + e, e < n, of a block."""
    first = m.block_dofadr[block]
    for e in range(n):
        S = d.cdof[first + e]
        for i in unrolled(range(6)):
            K = d.hessian.coupling_K[k, i]  # row i of K
            x = dot(K.translation, S.linear)
            if not is_free_translation(m, first + e):  # its angular part is zero
                x = x + dot(K.moment, S.angular)
            d.hessian.coupling_force[e][i] = x


@kernel
def subtract_block_coupling(m, d, b, rows, c, n):
    """Subtracts S_i . K S_j from H_ij for the first `rows` dofs i of block b and the first n dofs j of block c.

    Reads:  hessian.coupling_force[e] = K S_j of dof j = first + e of block c, of `store_stiffness_products`.
    """
    first_i, first_j = m.block_dofadr[b], m.block_dofadr[c]
    below = b > c  # H stores the lower triangle: if b > c, row i has the entry H_ij, else row j has H_ji
    offset = block_offset(m, d, b, c) if below else block_offset(m, d, c, b)
    for i in range(first_i, first_i + rows):
        S = d.cdof[i]
        translates = is_free_translation(m, i)
        axis = i - m.jnt_dofadr[m.dof_jntid[i]]  # 0, 1 or 2 if dof i is a free joint's translation; else not used
        for e in range(n):
            # x = S_i . K S_j;  for a translation, S_i is a unit vector, and x is part 3 + axis of K S_j
            x = flat(d.hessian.coupling_force)[6 * e + 3 + axis] if translates else dot(S, d.hessian.coupling_force[e])
            entry = d.hessian.rowadr[i] + offset + e if below else d.hessian.rowadr[first_j + e] + offset + i - first_i
            d.hessian.H[entry] = d.hessian.H[entry] - x


@kernel
def subtract_coupling(m, d, k):
    """Subtracts S_i . K S_j from H_ij for all dofs above the two bodies of coupling k, unless they are in one tree."""
    tip, other_tip = coupling_tips(d, k)
    # other_block runs from the other tip to the root, and for each, `block` from the tip to the root; -1 ends the loop,
    # and skips it for two bodies of one tree, whose contacts are added in within_tree.py
    other_block = m.dof_blockid[other_tip] if m.dof_treeid[tip] != m.dof_treeid[other_tip] else -1
    while other_block >= 0:
        other_count = count_dofs_above(m, other_block, other_tip)
        store_stiffness_products(m, d, k, other_block, other_count)  # writes hessian.coupling_force
        block = m.dof_blockid[tip]
        while block >= 0:
            subtract_block_coupling(m, d, block, count_dofs_above(m, block, tip), other_block, other_count)
            block = m.block_parentid[block]
        other_block = m.block_parentid[other_block]
