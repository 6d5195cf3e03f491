"""Solves Newton's equation by the articulated-body algorithm: H p = -grad in O(n) on a long tree.

A contact with the world is a stiffness K_b of its body (stiffness.py), a row on one joint a stiffness E of its dofs:

    H = M + J^T D J = sum over bodies J_b^T (I_b + K_b) J_b + E,

This is the inertia matrix of a tree whose bodies have inertia I_b + K_b.  So the articulated-body recursion solves it
like M x = f, without H: a rope of 300 dofs costs 300 times one dof, instead of 300^3 / 6.

E has off-diagonal entries only within ball joints, whose limit acts along an axis.  With l, d the factor of the
joint's D = S^T IA S + E, g = (entries of E minus the elimination of later dofs) / d is the part of E in l.

The inward recursion is the factor: U / D of each dof stays in aba_axis, 1 / D and g in hessian.dof_K.  They serve any
number of right-hand sides until another recursion overwrites them: that of M at the end of a step, for the duality
gap.

Rows that couple two branches (contacts between moving bodies, most equalities) are not supported.  A world with such a
row uses the factor of H, even if other worlds of the tile do not, so its method depends only on its own rows.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 7.3, table 7.1; the stiffness is ours.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.reflected import reflected_armature
from featherlane.dynamics.inertia.articulated import (
    SIZE,
    add_to_parent,
    multiply_packed,
    packed_index,
    store_rigid,
    subtract_outer,
    uses_articulated,
)
from featherlane.dynamics.sparse.tree_factor import nonzero_pivot
from featherlane.solver.hessian.entries.assembly import add_contact_stiffness, is_pushing
from featherlane.solver.hessian.entries.joint_rows import free_weight
from featherlane.solver.hessian.entries.stiffness import clear_stiffness, has_stiffness
from featherlane.spatial.stiffness import UPPER


# ---- selection of worlds -------------------------------------------------------------------------------------------
@kernel
def is_local_row(m, d, k):
    """Checks whether general row k acts on one dof, or on one ball joint."""
    return d.genrow_dofnum[k] == 1 or (d.genrow_type[k] == LIMIT_JOINT and d.genrow_dofnum[k] == 3)


@kernel
def mark_coupled(m, d):
    """Sets coupled = 1 in worlds with a row between two moving bodies or several joints."""
    coupled = 0.0
    if uses_articulated(m):
        for k in range(d.ncon_slot[0]):
            if d.con_body[k, 1] > 0:
                coupled = where(d.con_D[k] > 0.0, 1.0, coupled)
        for k in range(d.ngenrow[0]):
            if not is_local_row(m, d, k):
                coupled = where(d.genrow_present[k] > 0.0, 1.0, coupled)
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
    """Computes body_K of the contacts with the world."""
    clear_stiffness(m, d)
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        if d.con_body[k, 1] == 0 and any_(is_pushing(m, d, k)):
            add_contact_stiffness(m, d, k, 0)


@kernel
def assemble_dofs(m, d):
    """Computes E: the rows on one dof or one ball joint that are not at a bound."""
    for k in range(3 * m.nv):
        d.hessian.dof_K[k] = 0.0
    for k in range(d.ndofrow[0]):
        t = -(d.dofrow_D[k] * d.primal.dofrow_x[k])
        w = where((t > d.dofrow_lo[k]) & (t < d.dofrow_hi[k]), d.dofrow_D[k], 0.0)
        i, J = d.dofrow_dof[k], d.dofrow_J[k]
        d.hessian.dof_K[i, 0] = fma(w * J, J, d.hessian.dof_K[i, 0])
    for k in range(d.ngenrow[0]):
        if is_local_row(m, d, k):
            w, o = free_weight(d, k), d.genrow_dofadr[k]
            for a in range(d.genrow_dofnum[k]):
                i, x = d.genrow_dof[o + a], w * d.genrow_J[o + a]
                for b in range(a + 1):
                    d.hessian.dof_K[i, b] = fma(x, d.genrow_J[o + a - b], d.hessian.dof_K[i, b])


@kernel
def add_body_stiffness(d, i):
    """Adds K_i to IA_i."""
    a, A, K = SIZE * i, d.aba_inertia, d.hessian.body_K[i]
    for e in unrolled(range(6)):
        r, c = UPPER[e]
        A[a + packed_index(c, r)] += K.aa[e]
        A[a + packed_index(c + 3, r + 3)] += K.ll[e]
    for r in unrolled(range(3)):
        for c in unrolled(range(3)):
            A[a + packed_index(c + 3, r)] += K.al[3 * r + c]


# ---- the recursion -------------------------------------------------------------------------------------------------
@kernel
def take_out(m, d, i, k, U, D, w):
    """Eliminates dof k from body i, with U = IA S without E's part, D, and its force w.  Its x is w / D - ..."""
    inverse = 1.0 / nonzero_pivot(D)
    subtract_outer(d, SIZE * i, k, U, inverse)
    u = w * inverse
    d.cfrc[i] = fma(u, U, d.cfrc[i])
    return inverse, u


@kernel
def take_dof(m, d, i, k, x):
    """Eliminates a dof without coupling in E; stores 1 / D in hessian.dof_K."""
    S = d.cdof[k]
    U = multiply_packed(d.aba_inertia, SIZE * i, S)
    D = dot(S, U) + (m.dof_armature[k] + reflected_armature(m, k) + d.hessian.dof_K[k, 0])
    inverse, u = take_out(m, d, i, k, U, D, x[k] - dot(S, d.cfrc[i]))
    x[k] = u
    d.hessian.dof_K[k, 0] = inverse


@kernel
def take_ball(m, d, i, k, x):
    """Eliminates the dofs k, k + 1, k + 2 of a ball joint; stores 1 / D and g in hessian.dof_K."""
    E = d.hessian.dof_K
    e32, e31, e21 = E[k + 2, 1], E[k + 2, 2], E[k + 1, 1]
    S1, S2, S3 = d.cdof[k], d.cdof[k + 1], d.cdof[k + 2]

    U3 = multiply_packed(d.aba_inertia, SIZE * i, S3)
    D3 = dot(S3, U3) + (m.dof_armature[k + 2] + reflected_armature(m, k + 2) + E[k + 2, 0])
    w3 = x[k + 2] - dot(S3, d.cfrc[i])
    inverse3, u3 = take_out(m, d, i, k + 2, U3, D3, w3)
    g32, g31 = e32 * inverse3, e31 * inverse3

    V, s = multiply_packed(d.aba_inertia, SIZE * i, S2), dot(S2, U3)
    U2 = fma(-g32, U3, V)
    D2 = dot(S2, V) + (m.dof_armature[k + 1] + reflected_armature(m, k + 1) + E[k + 1, 0])
    D2 = fma(-g32, fma(2.0, s, e32), D2)
    w2 = fma(-g32, w3, x[k + 1] - dot(S2, d.cfrc[i]))
    inverse2, u2 = take_out(m, d, i, k + 1, U2, D2, w2)
    g21 = fma(-e31, (s + e32) * inverse3, e21) * inverse2

    V, s, t = multiply_packed(d.aba_inertia, SIZE * i, S1), dot(S1, U3), dot(S1, U2)
    U1 = fma(-g31, U3, fma(-g21, U2, V))
    D1 = dot(S1, V) + (m.dof_armature[k] + reflected_armature(m, k) + E[k, 0])
    D1 = fma(-g31, fma(2.0, s, e31), D1)
    D1 = fma(-g21, fma(2.0, t, g21 * D2), D1)
    w1 = fma(-g31, w3, fma(-g21, w2, x[k] - dot(S1, d.cfrc[i])))
    inverse1, u1 = take_out(m, d, i, k, U1, D1, w1)
    x[k], x[k + 1], x[k + 2] = u1, u2, u3
    E[k, 0], E[k + 1, 0], E[k + 2, 0] = inverse1, inverse2, inverse3
    E[k + 2, 1], E[k + 2, 2], E[k + 1, 1] = g32, g31, g21


@kernel
def pass_on(d, k, x, acc):
    """Returns x_k minus the part by the acceleration of the body before dof k, and the acceleration behind the dof."""
    q = x[k] - dot(d.aba_axis[k], acc)
    x[k] = q
    return fma(q, d.cdof[k], acc)


@kernel
def has_ball_limits(m, d, k):
    """Checks whether E may have entries between dof k and the other dofs of its ball joint."""
    return d.ngenrow[0] > 0 and is_ball(m.jnt_type[m.dof_jntid[k]])


@kernel
def clear_forces(m, d):
    """Clears the forces on all bodies."""
    for i in range(1, m.nbody):
        d.cfrc[i] = zeros(6)


@kernel
def assemble_articulated(m, d):
    """Computes IA_i = I_i + K_i and E, of the rows that are local."""
    assemble_world_contacts(m, d)
    assemble_dofs(m, d)
    for i in range(1, m.nbody):
        store_rigid(d, i)
        if has_stiffness(d, i):
            add_body_stiffness(d, i)


@stage
def factor_articulated(m, d):
    """Computes the articulated inertias inward, and with them search <- D^-1 L^-T search.

    Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 7.3, table 7.1; the stiffness is ours.
    Reads:  aba_inertia (I + K), hessian.dof_K (E), cdof, dof_armature.
    Writes: primal.search (nv,); aba_inertia, aba_axis (nv, 6) = U / D, hessian.dof_K (nv, 3) = 1 / D and g, cfrc.
            Cost: O(nv).
    """
    x = d.primal.search
    clear_forces(m, d)
    for i in range(m.nbody - 1, 0, -1):
        first, p = m.body_dofadr[i], m.body_parentid[i]
        k = first + m.body_dofnum[i] - 1
        while k >= first:
            if has_ball_limits(m, d, k):
                take_ball(m, d, i, k - 2, x)
                k -= 3
            else:
                take_dof(m, d, i, k, x)
                k -= 1
        if p > 0:
            add_to_parent(d, i, p)


@kernel
def reduce_articulated(m, d):
    """Computes search <- D^-1 L^-T search inward, by the factor of `factor_articulated`."""
    x = d.primal.search
    clear_forces(m, d)
    for i in range(m.nbody - 1, 0, -1):
        first, p, f = m.body_dofadr[i], m.body_parentid[i], d.cfrc[i]
        for k in range(first + m.body_dofnum[i] - 1, first - 1, -1):
            w = x[k] - dot(d.cdof[k], f)
            if has_ball_limits(m, d, k):
                for c in range(1, m.jnt_dofadr[m.dof_jntid[k]] + 3 - k):
                    w = fma(-d.hessian.dof_K[k + c, c], x[k + c], w)
            x[k] = w
            f = fma(w, d.aba_axis[k], f)
        if p > 0:
            d.cfrc[p] += f
    for k in range(m.nv):
        x[k] = x[k] * d.hessian.dof_K[k, 0]


@stage
def expand_articulated(m, d):
    """Computes search <- L^-1 search outward.

    Reads:  aba_axis, hessian.dof_K, cdof.   Writes: primal.search (nv,); cacc.   Cost: O(nv).
    """
    x = d.primal.search
    d.cacc[0] = zeros(6)
    for i in range(1, m.nbody):
        acc, first = d.cacc[m.body_parentid[i]], m.body_dofadr[i]
        for k in range(first, first + m.body_dofnum[i]):
            if has_ball_limits(m, d, k):
                o = k - m.jnt_dofadr[m.dof_jntid[k]]
                for c in range(1, o + 1):
                    x[k] = fma(-d.hessian.dof_K[k, c], x[k - c], x[k])
            acc = pass_on(d, k, x, acc)
        d.cacc[i] = acc
