"""The Hessian of the primal problem, H = M + J^T D J, assembled on the tree and factored without fill-in.

Contacts with the world (and all contacts' shares on one body) are added to the bodies as 6x6 stiffnesses K_b = sum of
w_ab q_a q_b^T, with q the contact's basis wrenches, and composed toward the root exactly as composite inertias are:

    H_ij = M_ij + S_j^T K^c_b(i) S_i          for each ancestor dof j of i.

A contact between two moving bodies couples two branches.  It makes the elimination tree of H: an expanded parent
array in which both branches lie on one path, so that the sparse L^T D L of branch-induced sparsity serves every case,
and each row of an ancestor remains a prefix of its descendants' rows.  Zeros that the wider pattern brings are exact,
so the pattern, which the worlds of a tile share, never shows in a world's bits.

Where the rows of the pattern do not fit (a pile of a thousand bodies), a tile is split; a world that is alone takes the
trees apart: each of a contact's two bodies gets its stiffness, and the coupling is left out.  What comes out is still
positive definite, so its direction descends, and the exact line search makes it converge, in more iterations.
Source: Featherstone, RBDA, sec. 6.2 (composite inertias), 6.5 (L^T D L); J. Liu, "The role of elimination trees in
sparse factorization" (1990); the stiffness composition is ours.
"""

from __future__ import annotations

from ..collision.slot import active_worlds
from ..dynamics.flags import FREE, PYRAMIDAL
from ..dynamics.tree_factor import expand_columns, expand_rows, factor_and_reduce, factor_columns
from ..lanes import any_, fma, kernel, real, where
from ..spatial.vector import load3, load6
from .cone import is_held
from .pair import add_normal_pair, add_pair, add_wide_pair
from .pyramid import least_edge
from .stiffness import (
    add_cone,
    add_stiffness,
    add_turns,
    clear_stiffness,
    compose_stiffness,
    contact_stiffness,
    normal_stiffness,
    stiffness_times,
)

TREE, COUPLED, APART = 1, 2, 3  # what H_pattern holds; 0: nothing yet


# ---- the pattern: rows of ancestors on the elimination tree ----------------------------------------------------
@kernel
def reset_pattern(m, d):
    """The model's own tree."""
    for i in range(m.nv):
        d.H_parent[i] = m.dof_parentid[i]


@kernel
def join_paths(m, d, i, j):
    """Let dofs i and j lie on one path to the root: merge their two ancestor lists in descending order."""
    while i != j and j >= 0:
        if i < j:
            i, j = j, i
        p = d.H_parent[i]
        if p >= j:
            i = p
        else:
            d.H_parent[i] = j
            i, j = j, p


@kernel
def fill_pattern(m, d):
    """Rows of the pattern: row i = row of its parent, then i itself."""
    adr = 0
    for i in range(m.nv):
        p = d.H_parent[i]
        n = 0
        d.H_rowadr[i] = adr
        if p >= 0:
            n = d.H_rownnz[p]
            for c in range(n):
                d.H_colind[adr + c] = d.H_colind[d.H_rowadr[p] + c]
        d.H_colind[adr + n] = i
        d.H_rownnz[i] = n + 1
        adr += n + 1


@kernel
def pattern_fits(m, d):
    """Is there room for the rows of the pattern?  A row's length waits in H_rownnz."""
    total = 0
    for i in range(m.nv):
        p = d.H_parent[i]
        d.H_rownnz[i] = d.H_rownnz[p] + 1 if p >= 0 else 1
        total += d.H_rownnz[i]
    return total <= d.nH


@kernel
def take_tree(m, d, label):
    """The model's own tree as the pattern."""
    reset_pattern(m, d)
    fill_pattern(m, d)
    d.H_pattern[0] = label


@kernel
def find_pattern(m, d):
    """The pattern for the tile's slots: the model's own tree where no slot couples two branches.

    Where the rows do not fit, con_overflow says so, to split the tile; in one world trees are taken apart.
    """
    coupled = 0
    for k in range(d.ncon_slot[0]):
        other = d.con_body[2 * k + 1]
        if other > 0:
            if coupled == 0:
                reset_pattern(m, d)
            coupled = 1
            join_paths(m, d, m.body_lastdof[d.con_body[2 * k]], m.body_lastdof[other])
    if coupled and pattern_fits(m, d):
        fill_pattern(m, d)
        d.H_pattern[0] = COUPLED
    elif coupled and active_worlds(d) > 1:
        d.con_overflow[0] = 1
        d.H_pattern[0] = 0
    elif coupled:
        take_tree(m, d, APART)
    elif d.H_pattern[0] != TREE:
        take_tree(m, d, TREE)


# ---- assembly -----------------------------------------------------------------------------------------------------
@kernel
def entry(d, j, f, x):
    """x + S_j . f."""
    s = load6(d.cdof, 6 * j)
    y = fma(s[0], f[0], fma(s[1], f[1], fma(s[2], f[2], x)))
    return fma(s[3], f[3], fma(s[4], f[4], fma(s[5], f[5], y)))


@kernel
def inertia_row(m, d, i):
    """Row i of M on the row of H: zeros where M stores only a simple body's diagonal, or where branches are coupled."""
    h, n, q, nq = d.H_rowadr[i], d.H_rownnz[i], m.M_rowadr[i], m.M_rownnz[i]
    if n == nq:
        for c in range(n):
            d.H[h + c] = d.M[q + c]
    else:
        zero = real(d, 0.0)
        for c in range(n):
            d.H[h + c] = zero
        c = 0
        for e in range(q, q + nq):
            while d.H_colind[h + c] != m.M_colind[e]:
                c += 1
            d.H[h + c] = d.M[e]


@kernel
def translations(m, a, n):
    """3 where the row at a begins with the translations of a free joint, else 0: there S_j . f is f itself."""
    root = m.chain_colind[a]
    return 3 if n > 3 and m.jnt_type[m.dof_jntid[root]] == FREE else 0


@kernel
def stiffness_row(m, d, i):
    """Row i: H_ij += S_j . K^c S_i over the ancestors j of i."""
    f = stiffness_times(d, m.dof_bodyid[i], load6(d.cdof, 6 * i))
    h, c = d.H_rowadr[i], 0
    a, n = m.chain_rowadr[i], m.chain_rownnz[i]
    if n == d.H_rownnz[i]:
        start = translations(m, a, n)
        if start > 0:
            d.H[h], d.H[h + 1], d.H[h + 2] = f[3] + d.H[h], f[4] + d.H[h + 1], f[5] + d.H[h + 2]
        for e in range(start, n):
            d.H[h + e] = entry(d, m.chain_colind[a + e], f, d.H[h + e])
    else:
        for e in range(a, a + n):
            j = m.chain_colind[e]
            while d.H_colind[h + c] != j:
                c += 1
            d.H[h + c] = entry(d, j, f, d.H[h + c])


@kernel
def stiffness_row_pair(m, d, i):
    """Rows i and i - 1, its parent: each S_j is read once for both; rows on the model's own tree only."""
    f = stiffness_times(d, m.dof_bodyid[i], load6(d.cdof, 6 * i))
    g = stiffness_times(d, m.dof_bodyid[i - 1], load6(d.cdof, 6 * i - 6))
    h, k = d.H_rowadr[i], d.H_rowadr[i - 1]
    a, n = m.chain_rowadr[i], m.chain_rownnz[i]
    start = translations(m, a, n - 1)
    if start > 0:
        d.H[h], d.H[h + 1], d.H[h + 2] = f[3] + d.H[h], f[4] + d.H[h + 1], f[5] + d.H[h + 2]
        d.H[k], d.H[k + 1], d.H[k + 2] = g[3] + d.H[k], g[4] + d.H[k + 1], g[5] + d.H[k + 2]
    for e in range(start, n - 1):
        s = load6(d.cdof, 6 * m.chain_colind[a + e])
        x = fma(s[0], f[0], fma(s[1], f[1], fma(s[2], f[2], d.H[h + e])))
        y = fma(s[0], g[0], fma(s[1], g[1], fma(s[2], g[2], d.H[k + e])))
        d.H[h + e] = fma(s[3], f[3], fma(s[4], f[4], fma(s[5], f[5], x)))
        d.H[k + e] = fma(s[3], g[3], fma(s[4], g[4], fma(s[5], g[5], y)))
    d.H[h + n - 1] = entry(d, i, f, d.H[h + n - 1])


@kernel
def assemble_tree(m, d):
    """H = M + S^T K^c S."""
    i = m.nv - 1
    while i >= 0:
        inertia_row(m, d, i)
        reached = d.body_reached[m.dof_bodyid[i]]
        pair = reached and m.dof_parentid[i] == i - 1 and i > 0
        if pair and m.chain_rownnz[i] == d.H_rownnz[i] and m.chain_rownnz[i - 1] == d.H_rownnz[i - 1]:
            inertia_row(m, d, i - 1)
            stiffness_row_pair(m, d, i)
            i -= 1
        elif reached:
            stiffness_row(m, d, i)
        i -= 1


@kernel
def add_dof_rows(m, d):
    """H_ii += D J^2 for the one-dof rows that are not at a bound."""
    for k in range(d.nfrictionrow[0]):
        D = d.dofrow_D[k]
        t = -(D * d.dofrow_x[k])
        w = where((t > d.dofrow_lo[k]) & (t < d.dofrow_hi[k]), D, 0.0)
        i, J = d.dofrow_dof[k], d.dofrow_J[k]
        e = d.H_rowadr[i] + d.H_rownnz[i] - 1
        d.H[e] = fma(w * J, J, d.H[e])
    for k in range(d.nfrictionrow[0], d.ndofrow[0]):
        i, J = d.dofrow_dof[k], d.dofrow_J[k]
        e = d.H_rowadr[i] + d.H_rownnz[i] - 1
        d.H[e] = fma(where(d.dofrow_x[k] < 0.0, d.dofrow_D[k], 0.0) * J, J, d.H[e])


@kernel
def add_general_rows(m, d):
    """H += D J^T J for the general rows that are not at a bound."""
    for k in range(d.ngenrow[0]):
        D = d.genrow_D[k]
        t = -(D * d.genrow_x[k])
        w = where((t > d.genrow_lo[k]) & (t < d.genrow_hi[k]), D, 0.0)
        o = d.genrow_dofadr[k]
        for a in range(d.genrow_dofnum[k]):
            i, e = d.genrow_dof[o + a], 0
            h, x = d.H_rowadr[i], w * d.genrow_J[o + a]
            for b in range(a + 1):
                while d.H_colind[h + e] != d.genrow_dof[o + b]:
                    e += 1
                d.H[h + e] = fma(x, d.genrow_J[o + b], d.H[h + e])


@kernel
def is_pushing(m, d, k):
    """Where some row of contact k is free to act: elsewhere it adds nothing to H."""
    if d.con_dim[k] == 1:
        acts = (d.con_y[3 * k] < 0.0) & (d.con_D[k] > 0.0)
    elif m.opt_cone == PYRAMIDAL:
        acts = (least_edge(d, k) < 0.0) & (d.con_D[k] > 0.0)
    else:
        acts = is_held(d, k)
    return acts


@kernel
def add_contact(m, d, k, side):
    """K_b += the stiffness of a contact, on the body that it pushes (side 0) or the other one."""
    b, r = d.con_body[2 * k + side], load3(d.con_arm, 6 * k + 3 * side)
    if d.con_dim[k] == 1:
        add_stiffness(d, b, r, normal_stiffness(d, k))
    elif m.opt_cone == PYRAMIDAL:
        add_stiffness(d, b, r, contact_stiffness(d, k))
    else:
        add_cone(m, d, k, side)
    if d.con_dim[k] > 3:
        add_turns(m, d, k, side)


@kernel
def assemble_hessian(m, d):
    """H = M + J^T D J at the current rows, on the tile's pattern."""
    clear_stiffness(m, d)
    for k in range(d.ncon_slot[0]):
        paired = d.con_body[2 * k + 1] > 0
        if (not paired or d.H_pattern[0] == APART) and any_(is_pushing(m, d, k)):
            for side in range(2 if paired else 1):
                add_contact(m, d, k, side)
    compose_stiffness(m, d)
    assemble_tree(m, d)
    add_dof_rows(m, d)
    add_general_rows(m, d)
    for k in range(d.ncon_slot[0]):
        if d.con_body[2 * k + 1] > 0 and d.H_pattern[0] == COUPLED and any_(is_pushing(m, d, k)):
            if d.con_dim[k] == 1:
                add_normal_pair(m, d, k)
            elif d.con_dim[k] > 3 or m.opt_cone != PYRAMIDAL:
                add_wide_pair(m, d, k)
            else:
                add_pair(m, d, k)


# ---- solve ----------------------------------------------------------------------------------------------------------
@kernel
def solve_hessian(m, d, x):
    """x <- H^-1 x; H becomes its factor L^T D L, H_dinv 1 / D."""
    if d.H_pattern[0] != COUPLED and m.nC == m.nchain:
        # the pattern is that of M: column by column, in two thirds of the time
        factor_columns(m.nv, d.H_rowadr, d.H_rownnz, m.M_below, d.H, d.H, d.H_dinv, 1, 1, x)
        expand_columns(m.nv, d.H_rowadr, d.H_rownnz, m.M_below, d.H_colind, d.H, d.H_dinv, x)
    else:
        factor_and_reduce(m.nv, d.H_rowadr, d.H_rownnz, d.H_colind, d.H, d.H_dinv, x)
        expand_rows(m.nv, d.H_rowadr, d.H_rownnz, d.H_colind, d.H, d.H_dinv, x)
