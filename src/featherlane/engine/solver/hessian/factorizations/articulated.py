"""Solves Newton's equation by the articulated-body algorithm: H p = -grad in O(n) on a long tree.

A contact with the world is a stiffness K_b of its body (stiffness.py), a row on one joint a stiffness E of its dofs:

    H = M + J^T D J = sum over bodies J_b^T (I_b + K_b) J_b + E,

This is the inertia matrix of a tree whose bodies have inertia I_b + K_b.  So the articulated-body recursion solves it
like M x = f, without H: a rope of 300 dofs costs 300 times one dof, instead of 300^3 / 6.

E has off-diagonal entries only within ball joints, whose limit acts along an axis.  Entry L_kj of the factor, between
two dofs k > j of a ball joint, then has two parts: L_kj = S_j . (U / D)_k + g_kj.  The part g is due to E.
Layout: hessian.dof_K[k, 0] is E_kk, then 1 / D_k; dof_K[k, c] is E_k,k-c, between two dofs of a ball joint, then
g_k,k-c.  aba_inertia has the SIZE = 21 values of each body's IA, its packed lower triangle; cfrc is the force on each
body, cdof the axis S_k of each dof.  Imported: `store_rigid` sets IA_b = I_b; `subtract_outer` computes
IA -= U U^T / D and stores U / D in aba_axis[k]; `multiply_packed(A, start, x)` returns the product of the packed
matrix at A[start] with x; `nonzero_pivot` returns a pivot, or MINVAL if its magnitude is smaller; `add_to_parent` adds
IA and f of a body to its parent; `reflected_armature` is the inertia that actuators add to a dof, `free_weight` D of a
scalar row, or 0 if it is at a bound; UPPER lists (i, j) of the six entries of a symmetric 3x3.
Rows: the slots k < ncon_slot[0] are contacts, con_body[k, 1] is the second body, 0 if it does not move; con_D[k] and
row_present[k] are 0 in worlds without the row.  Scalar rows k < nrow[0] have row_dofnum[k] entries in row_J, and their
dofs in row_dof, from row_dofadr[k] on.  The first ndofrow[0] act on one dof, the others are general.
active is 0 in worlds that are not computed; primal.slot lists the contact slots of worlds that the solver continues.

The inward recursion is the factor: U / D of each dof stays in aba_axis, 1 / D and g in hessian.dof_K.  They serve any
number of right-hand sides until another recursion overwrites them: that of M at the end of a step, for the duality
gap.

Rows that couple two branches (contacts between moving bodies, most equalities) are not supported.  A world with such a
row uses the factor of H, even if other worlds of the tile do not, so its method depends only on its own rows.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 7.3, table 7.1; the stiffness is ours.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.reflected import reflected_armature
from featherlane.engine.dynamics.inertia.articulated import (
    SIZE,
    add_to_parent,
    multiply_packed,
    solve_dof_outward,
    store_rigid,
    subtract_outer,
    uses_articulated,
)
from featherlane.engine.dynamics.sparse.packed_factor import triangle_index
from featherlane.engine.dynamics.sparse.tree_factor import nonzero_pivot
from featherlane.engine.solver.hessian.entries.assembly import add_contact_stiffness, is_pushing
from featherlane.engine.solver.hessian.entries.joint_rows import free_weight
from featherlane.engine.solver.hessian.entries.stiffness import clear_stiffness, has_stiffness
from featherlane.engine.spatial.stiffness import UPPER


# ---- selection of worlds -------------------------------------------------------------------------------------------
@kernel
def is_local_row(m, d, k):
    """Checks whether general row k acts on one dof, or on one ball joint."""
    return d.row_dofnum[k] == 1 or (d.row_type[k] == LIMIT_JOINT and d.row_dofnum[k] == 3)


@kernel
def mark_coupled(m, d):
    """Sets hessian.coupled = 1 in worlds with a contact of two moving bodies, or a row on several joints, else 0.

    Without the articulated-body method, it is 0 and not used.
    """
    coupled = 0.0
    if uses_articulated(m):
        for k in range(d.ncon_slot[0]):
            if d.con_body[k, 1] > 0:
                coupled = where(d.con_D[k] > 0.0, 1.0, coupled)
        for k in range(d.ndofrow[0], d.nrow[0]):
            if not is_local_row(m, d, k):
                coupled = where(d.row_present[k] > 0.0, 1.0, coupled)
    d.hessian.coupled[0] = coupled


@kernel
def takes_matrix(m, d):
    """Checks whether some active world needs H itself."""
    return not uses_articulated(m) or any_((d.hessian.coupled[0] > 0.0) & (d.active[0] > 0.0))


@kernel
def takes_recursion(m, d):
    """Checks whether some active world uses the recursion."""
    return uses_articulated(m) and any_((d.hessian.coupled[0] == 0.0) & (d.active[0] > 0.0))


# ---- stiffnesses ---------------------------------------------------------------------------------------------------
@kernel
def assemble_world_contacts(m, d):
    """Computes hessian.body_K, the stiffness K_b of each body by its contacts with the world."""
    clear_stiffness(m, d)
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        # the second body does not move; other contacts couple branches
        if d.con_body[k, 1] == 0 and any_(is_pushing(m, d, k)):
            add_contact_stiffness(m, d, k, side=0)


@kernel
def assemble_dof_stiffness(m, d):
    """Computes E = sum of D J^T J, in hessian.dof_K: of the rows on one dof or one ball joint, unless at a bound."""
    for k in range(3 * m.nv):  # with one index: all values of dof_K (nv, 3)
        d.hessian.dof_K[k] = 0.0
    # the dofs of a row are consecutive dofs of one joint, ascending
    for k in range(d.nrow[0]):
        if is_local_row(m, d, k):
            weight = free_weight(d, k)  # D, or 0 if the row is at a bound
            first = d.row_dofadr[k]
            for a in range(d.row_dofnum[k]):
                i = d.row_dof[first + a]
                weighted = weight * d.row_J[first + a]
                for c in range(a + 1):  # E_i,i-c += D J_i J_i-c
                    d.hessian.dof_K[i, c] = fma(weighted, d.row_J[first + a - c], d.hessian.dof_K[i, c])


@kernel
def add_body_stiffness(d, b):
    """Adds the stiffness K_b = [[aa, al], [al^T, ll]] to the articulated inertia IA_b, block by block."""
    start = SIZE * b
    A, K = d.aba_inertia, d.hessian.body_K[b]
    # aa and ll are symmetric: entry (r, c) of the upper triangle is (c, r) of the lower one
    for e in unrolled(range(6)):
        r, c = UPPER[e]
        A[start + triangle_index(c, r)] += K.aa[e]
        A[start + triangle_index(c + 3, r + 3)] += K.ll[e]
    # the lower triangle has al^T; al is stored by rows
    for r in unrolled(range(3)):
        for c in unrolled(range(3)):
            A[start + triangle_index(c + 3, r)] += K.al[3 * r + c]


# ---- the recursion -------------------------------------------------------------------------------------------------
@kernel
def eliminate_axis(m, d, b, k, U, D, w):
    """Eliminates dof k from body b; returns (1 / D, w / D).

    IA -= U U^T / D, and the body's force f += (w / D) U.
    U: IA S_k.  w: x_k - S_k . f.  In a ball joint, the parts of the dofs eliminated before are subtracted from both.
    D: pivot.
    Writes: aba_inertia, cfrc of body b; aba_axis of dof k = U / D.
    """
    inverse = 1.0 / nonzero_pivot(D)
    subtract_outer(d, SIZE * b, k, U, inverse)
    u = w * inverse
    d.cfrc[b] = fma(u, U, d.cfrc[b])
    return inverse, u


@kernel
def eliminate_dof(m, d, b, k, x):
    """Eliminates dof k, whose E has only the entry E_kk, from body b: x_k <- (x_k - S . f) / D.

    U = IA S,  D = S . U + armature + E_kk.   Writes: x[k], hessian.dof_K[k, 0] = 1 / D, fields of `eliminate_axis`.
    """
    S = d.cdof[k]
    U = multiply_packed(d.aba_inertia, SIZE * b, S)
    D = dot(S, U) + (m.dof_armature[k] + reflected_armature(m, k) + d.hessian.dof_K[k, 0])
    inverse, u = eliminate_axis(m, d, b, k, U, D, x[k] - dot(S, d.cfrc[b]))
    x[k] = u
    d.hessian.dof_K[k, 0] = inverse


@kernel
def eliminate_ball(m, d, b, k, x):
    """Eliminates the dofs k, k + 1, k + 2 of a ball joint, called 1, 2, 3, from body b, the last one first.

    e_ij = E_ij.  g_ij: part of E in the factor.  V_i = IA S_i, with IA and f updated after each dof.
        dof 3:  U3 = V3,                      D3 = S3.V3 + E33,                              w3 = x3 - S3.f
                g32 = e32 / D3,               g31 = e31 / D3
        dof 2:  U2 = V2 - g32 U3,             D2 = S2.V2 + E22 - g32 (2 S2.U3 + e32),        w2 = x2 - S2.f - g32 w3
                g21 = (e21 - e31 (S2.U3 + e32) / D3) / D2
        dof 1:  U1 = V1 - g21 U2 - g31 U3,    w1 = x1 - S1.f - g21 w2 - g31 w3
                D1 = S1.V1 + E11 - g31 (2 S1.U3 + e31) - g21 (2 S1.U2 + g21 D2)
    with the armature added to each D.   Writes: x_i = w_i / D_i; 1 / D and g in hessian.dof_K.
    """
    E = d.hessian.dof_K
    e32, e31, e21 = E[k + 2, 1], E[k + 2, 2], E[k + 1, 1]
    S1, S2, S3 = d.cdof[k], d.cdof[k + 1], d.cdof[k + 2]

    U3 = multiply_packed(d.aba_inertia, SIZE * b, S3)
    D3 = dot(S3, U3) + (m.dof_armature[k + 2] + reflected_armature(m, k + 2) + E[k + 2, 0])
    w3 = x[k + 2] - dot(S3, d.cfrc[b])
    inverse3, u3 = eliminate_axis(m, d, b, k + 2, U3, D3, w3)
    g32, g31 = e32 * inverse3, e31 * inverse3

    V2 = multiply_packed(d.aba_inertia, SIZE * b, S2)
    S2_U3 = dot(S2, U3)
    U2 = fma(-g32, U3, V2)
    D2 = dot(S2, V2) + (m.dof_armature[k + 1] + reflected_armature(m, k + 1) + E[k + 1, 0])
    D2 = fma(-g32, fma(2.0, S2_U3, e32), D2)
    w2 = fma(-g32, w3, x[k + 1] - dot(S2, d.cfrc[b]))
    inverse2, u2 = eliminate_axis(m, d, b, k + 1, U2, D2, w2)
    g21 = fma(-e31, (S2_U3 + e32) * inverse3, e21) * inverse2

    V1 = multiply_packed(d.aba_inertia, SIZE * b, S1)
    S1_U3, S1_U2 = dot(S1, U3), dot(S1, U2)
    U1 = fma(-g31, U3, fma(-g21, U2, V1))
    D1 = dot(S1, V1) + (m.dof_armature[k] + reflected_armature(m, k) + E[k, 0])
    D1 = fma(-g31, fma(2.0, S1_U3, e31), D1)
    D1 = fma(-g21, fma(2.0, S1_U2, g21 * D2), D1)
    w1 = fma(-g31, w3, fma(-g21, w2, x[k] - dot(S1, d.cfrc[b])))
    inverse1, u1 = eliminate_axis(m, d, b, k, U1, D1, w1)

    x[k], x[k + 1], x[k + 2] = u1, u2, u3
    E[k, 0], E[k + 1, 0], E[k + 2, 0] = inverse1, inverse2, inverse3
    E[k + 2, 1], E[k + 2, 2], E[k + 1, 1] = g32, g31, g21


@kernel
def has_ball_couplings(m, d, k):
    """Checks whether E may have entries between dof k and the other dofs of its ball joint."""
    return d.nrow[0] > d.ndofrow[0] and is_ball(m.jnt_type[m.dof_jntid[k]])


@kernel
def clear_forces(m, d):
    """Clears the forces on all bodies."""
    for i in range(1, m.nbody):
        d.cfrc[i] = zeros(6)


@kernel
def assemble_articulated(m, d):
    """Computes IA_b = I_b + K_b in aba_inertia, and E in hessian.dof_K, of the rows that do not couple branches."""
    assemble_world_contacts(m, d)  # writes hessian.body_K
    assemble_dof_stiffness(m, d)  # writes hessian.dof_K
    for b in range(1, m.nbody):
        store_rigid(d, b)  # IA_b = I_b
        if has_stiffness(d, b):
            add_body_stiffness(d, b)


@stage
def factor_articulated(m, d):
    """Eliminates all dofs inward: computes the articulated inertias, 1 / D and U / D, and search <- D^-1 L^-T search.

    Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 7.3, table 7.1; the stiffness is ours.
    Reads:  aba_inertia (I + K), hessian.dof_K (E), cdof, dof_armature.
    Writes: primal.search (nv,); aba_inertia, aba_axis (nv, 6) = U / D, hessian.dof_K (nv, 3) = 1 / D and g, cfrc.
            Cost: O(nv).
    """
    x = d.primal.search
    clear_forces(m, d)
    for b in range(m.nbody - 1, 0, -1):  # inward: children before their parents
        first, parent = m.body_dofadr[b], m.body_parentid[b]
        k = first + m.body_dofnum[b] - 1
        while k >= first:
            if has_ball_couplings(m, d, k):  # a ball joint has the dofs k - 2 to k
                eliminate_ball(m, d, b, k - 2, x)
                k -= 3
            else:
                eliminate_dof(m, d, b, k, x)
                k -= 1
        if parent > 0:  # the world has no dofs
            add_to_parent(d, b, parent)  # IA and f


@kernel
def reduce_articulated(m, d):
    """Computes search <- D^-1 L^-T search inward, by the factor of `factor_articulated`.

    w_k = x_k - S_k . f - sum over later dofs j of a ball joint of g_jk w_j,  f += w_k U_k / D_k,  x_k = w_k / D_k.
    x holds w until the last loop divides it by D.
    Reads:  aba_axis (U / D), hessian.dof_K (1 / D and g), cdof.   Writes: primal.search, cfrc.
    """
    x = d.primal.search
    clear_forces(m, d)
    for b in range(m.nbody - 1, 0, -1):  # inward: children before their parents
        first, parent, f = m.body_dofadr[b], m.body_parentid[b], d.cfrc[b]
        for k in range(first + m.body_dofnum[b] - 1, first - 1, -1):  # in the order of the elimination
            w = x[k] - dot(d.cdof[k], f)
            if has_ball_couplings(m, d, k):
                # later dofs k + c of the joint, which has three
                end = m.jnt_dofadr[m.dof_jntid[k]] + 3
                for c in range(1, end - k):
                    w = fma(-d.hessian.dof_K[k + c, c], x[k + c], w)
            x[k] = w
            f = fma(w, d.aba_axis[k], f)
        if parent > 0:
            d.cfrc[parent] += f
    for k in range(m.nv):
        x[k] = x[k] * d.hessian.dof_K[k, 0]


@stage
def expand_articulated(m, d):
    """Computes search <- L^-1 search outward.

    Reads:  aba_axis, hessian.dof_K, cdof.   Writes: primal.search (nv,); cacc.   Cost: O(nv).
    """
    x = d.primal.search
    d.cacc[0] = zeros(6)
    for b in range(1, m.nbody):
        acc = d.cacc[m.body_parentid[b]]
        for k in body_dofs(m, b):
            if has_ball_couplings(m, d, k):
                # earlier dofs k - c of the joint: x_k -= g x_(k - c)
                before = k - m.jnt_dofadr[m.dof_jntid[k]]
                for c in range(1, before + 1):
                    x[k] = fma(-d.hessian.dof_K[k, c], x[k - c], x[k])
            acc = solve_dof_outward(d, k, x, acc)
        d.cacc[b] = acc
