"""The Hessian of the primal problem, H = M + J^T D J, assembled on the tree and factored without fill-in.

Contacts with the world (and all contacts' shares on one body) are added to the bodies as 6x6 stiffnesses K_b = sum of
w_ab q_a q_b^T, with q the contact's basis wrenches, and composed toward the root exactly as composite inertias are:

    H_ij = M_ij + S_j^T K^c_b(i) S_i          for each ancestor dof j of i.

A contact between two moving bodies couples two branches.  It makes the elimination tree of H: an expanded parent
array in which both branches lie on one path, so that the sparse L^T D L of branch-induced sparsity serves every case,
and each row of an ancestor remains a prefix of its descendants' rows.  Zeros that the wider pattern brings are exact,
so the pattern, which the worlds of a tile share, never shows in a world's bits.
Source: Featherstone, RBDA, sec. 6.2 (composite inertias), 6.5 (L^T D L); J. Liu, "The role of elimination trees in
sparse factorization" (1990); the stiffness composition is ours.
"""

from __future__ import annotations

from ..dynamics.flags import FREE
from ..dynamics.tree_factor import expand_columns, expand_rows, factor_and_reduce, factor_columns
from ..lanes import any_, fabs, fma, fmax, kernel, real, where
from ..spatial.vector import cross, dot3, load3, load6, scale3
from .rows import arm, other_arm

TREE, COUPLED = 1, 2  # what H_pattern holds; 0: nothing yet


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
def find_pattern(m, d):
    """The pattern for the tile's slots; the model's own tree where no slot couples two branches."""
    coupled = 0
    for k in range(d.ncon_slot[0]):
        other = d.con_body[2 * k + 1]
        if other > 0:
            if coupled == 0:
                reset_pattern(m, d)
            coupled = 1
            join_paths(m, d, m.body_lastdof[d.con_body[2 * k]], m.body_lastdof[other])
    if coupled:
        fill_pattern(m, d)
        d.H_pattern[0] = COUPLED
    elif d.H_pattern[0] != TREE:
        reset_pattern(m, d)
        fill_pattern(m, d)
        d.H_pattern[0] = TREE


# ---- stiffness of contacts on bodies ----------------------------------------------------------------------------
@kernel
def clear_stiffness(m, d):
    """No stiffness on any body that contacts reach."""
    zero = real(d, 0.0)
    for b in range(m.nbody):
        if d.body_reached[b]:
            for c in range(21):
                d.body_K[21 * b + c] = zero


@kernel
def edge_weights(D, y):
    """Weights of a contact's basis products (nn, n1, 11, n2, 22): D for each pyramid edge that pushes."""
    w1 = where(y[0] + y[1] < 0.0, D, 0.0)
    w2 = where(y[0] - y[1] < 0.0, D, 0.0)
    w3 = where(y[0] + y[2] < 0.0, D, 0.0)
    w4 = where(y[0] - y[2] < 0.0, D, 0.0)
    return (w1 + w2) + (w3 + w4), w1 - w2, w1 + w2, w3 - w4, w3 + w4


@kernel
def add_stiffness(d, b, r, F):
    """K_b += the 6x6 of a 3x3 stiffness F = (xx, xy, xz, yy, yz, zz) at arm r; order aa (6), al (9), ll (6)."""
    fx, fy, fz = (F[0], F[1], F[2]), (F[1], F[3], F[4]), (F[2], F[4], F[5])
    gx, gy, gz = cross(r, fx), cross(r, fy), cross(r, fz)  # columns of G = [r] F
    a0 = cross(r, (gx[0], gy[0], gz[0]))
    a1 = cross(r, (gx[1], gy[1], gz[1]))
    a2 = cross(r, (gx[2], gy[2], gz[2]))
    o = 21 * b
    d.body_K[o] = d.body_K[o] + a0[0]
    d.body_K[o + 1] = d.body_K[o + 1] + a0[1]
    d.body_K[o + 2] = d.body_K[o + 2] + a0[2]
    d.body_K[o + 3] = d.body_K[o + 3] + a1[1]
    d.body_K[o + 4] = d.body_K[o + 4] + a1[2]
    d.body_K[o + 5] = d.body_K[o + 5] + a2[2]
    d.body_K[o + 6] = d.body_K[o + 6] + gx[0]
    d.body_K[o + 7] = d.body_K[o + 7] + gy[0]
    d.body_K[o + 8] = d.body_K[o + 8] + gz[0]
    d.body_K[o + 9] = d.body_K[o + 9] + gx[1]
    d.body_K[o + 10] = d.body_K[o + 10] + gy[1]
    d.body_K[o + 11] = d.body_K[o + 11] + gz[1]
    d.body_K[o + 12] = d.body_K[o + 12] + gx[2]
    d.body_K[o + 13] = d.body_K[o + 13] + gy[2]
    d.body_K[o + 14] = d.body_K[o + 14] + gz[2]
    for c in range(6):
        d.body_K[o + 15 + c] = d.body_K[o + 15 + c] + F[c]


@kernel
def combine(s, a, t, b):
    """s a + t b for vectors."""
    return fma(s, a[0], t * b[0]), fma(s, a[1], t * b[1]), fma(s, a[2], t * b[2])


@kernel
def contact_stiffness(d, k):
    """F = sum of w_ab u_a u_b^T over the contact's basis, as (xx, xy, xz, yy, yz, zz)."""
    n, u, v = load3(d.con_basis, 9 * k), load3(d.con_basis, 9 * k + 3), load3(d.con_basis, 9 * k + 6)
    nn, n1, w11, n2, w22 = edge_weights(d.con_D[k], load3(d.con_y, 3 * k))
    p1, p2 = combine(n1, n, w11, u), combine(n2, n, w22, v)
    q = combine(n1, u, n2, v)
    p = (fma(nn, n[0], q[0]), fma(nn, n[1], q[1]), fma(nn, n[2], q[2]))
    return (
        fma(p[0], n[0], fma(p1[0], u[0], p2[0] * v[0])),
        fma(p[0], n[1], fma(p1[0], u[1], p2[0] * v[1])),
        fma(p[0], n[2], fma(p1[0], u[2], p2[0] * v[2])),
        fma(p[1], n[1], fma(p1[1], u[1], p2[1] * v[1])),
        fma(p[1], n[2], fma(p1[1], u[2], p2[1] * v[2])),
        fma(p[2], n[2], fma(p1[2], u[2], p2[2] * v[2])),
    )


@kernel
def normal_stiffness(d, k):
    """The same for a contact without friction: w n n^T."""
    n = load3(d.con_basis, 9 * k)
    p = scale3(where(d.con_y[3 * k] < 0.0, d.con_D[k], 0.0), n)
    return p[0] * n[0], p[0] * n[1], p[0] * n[2], p[1] * n[1], p[1] * n[2], p[2] * n[2]


@kernel
def compose_stiffness(m, d):
    """K^c_parent += K^c_child, from the leaves to the root."""
    for k in range(m.nbody - 1):
        b = m.nbody - 1 - k
        p = m.body_parentid[b]
        if d.body_reached[b] and d.body_reached[p]:
            for c in range(21):
                d.body_K[21 * p + c] = d.body_K[21 * p + c] + d.body_K[21 * b + c]


@kernel
def stiffness_times(d, b, s):
    """K_b s for a motion vector s."""
    o = 21 * b
    k0, k1, k2, k3, k4, k5 = load6(d.body_K, o)
    g0, g1, g2 = load3(d.body_K, o + 6)
    g3, g4, g5 = load3(d.body_K, o + 9)
    g6, g7, g8 = load3(d.body_K, o + 12)
    f0, f1, f2, f3, f4, f5 = load6(d.body_K, o + 15)
    a, l = (s[0], s[1], s[2]), (s[3], s[4], s[5])
    return (
        dot3((k0, k1, k2), a) + dot3((g0, g1, g2), l),
        dot3((k1, k3, k4), a) + dot3((g3, g4, g5), l),
        dot3((k2, k4, k5), a) + dot3((g6, g7, g8), l),
        dot3((g0, g3, g6), a) + dot3((f0, f1, f2), l),
        dot3((g1, g4, g7), a) + dot3((f1, f3, f4), l),
        dot3((g2, g5, g8), a) + dot3((f2, f4, f5), l),
    )


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
def pair_column(d, k, count, dof, r, sign):
    """One column: the basis rows of the velocity that a unit of the dof gives the point at arm r."""
    s = load6(d.cdof, 6 * dof)
    x = cross((s[0], s[1], s[2]), r)
    x = (sign * (s[3] + x[0]), sign * (s[4] + x[1]), sign * (s[5] + x[2]))
    d.pair_dof[count] = dof
    d.pair_J[3 * count] = dot3(load3(d.con_basis, 9 * k), x)
    if d.con_dim[k] > 1:
        d.pair_J[3 * count + 1] = dot3(load3(d.con_basis, 9 * k + 3), x)
        d.pair_J[3 * count + 2] = dot3(load3(d.con_basis, 9 * k + 6), x)


@kernel
def pair_jacobian(m, d, k):
    """Columns of a contact between two moving bodies: dofs above one of them only, descending; returns how many.

    pair_dof[c] and pair_J[3c ..] = the three basis rows at that dof.
    """
    j, i = m.body_lastdof[d.con_body[2 * k]], m.body_lastdof[d.con_body[2 * k + 1]]
    r, r_other = arm(d, k), other_arm(d, k)
    plus, minus = real(d, 1.0), real(d, -1.0)
    count = 0
    while i != j:
        if i > j:
            pair_column(d, k, count, i, r_other, minus)
            i = m.dof_parentid[i]
        else:
            pair_column(d, k, count, j, r, plus)
            j = m.dof_parentid[j]
        count += 1
    return count


@kernel
def add_pair(m, d, k):
    """H += J^T W J for a contact with friction between two moving bodies."""
    count = pair_jacobian(m, d, k)
    nn, n1, w11, n2, w22 = edge_weights(d.con_D[k], load3(d.con_y, 3 * k))
    for a in range(count):
        i = d.pair_dof[a]
        h, e = d.H_rowadr[i], d.H_rownnz[i] - 1
        x, y, z = load3(d.pair_J, 3 * a)
        gx = fma(nn, x, fma(n1, y, n2 * z))
        gy = fma(n1, x, w11 * y)
        gz = fma(n2, x, w22 * z)
        for b in range(a, count):
            while d.H_colind[h + e] != d.pair_dof[b]:
                e -= 1
            p, q, r = load3(d.pair_J, 3 * b)
            d.H[h + e] = fma(gx, p, fma(gy, q, fma(gz, r, d.H[h + e])))


@kernel
def add_normal_pair(m, d, k):
    """The same for a contact without friction."""
    count = pair_jacobian(m, d, k)
    w = where(d.con_y[3 * k] < 0.0, d.con_D[k], 0.0)
    for a in range(count):
        i = d.pair_dof[a]
        h, e = d.H_rowadr[i], d.H_rownnz[i] - 1
        g = w * d.pair_J[3 * a]
        for b in range(a, count):
            while d.H_colind[h + e] != d.pair_dof[b]:
                e -= 1
            d.H[h + e] = fma(g, d.pair_J[3 * b], d.H[h + e])


@kernel
def is_pushing(d, k):
    """Where some row of contact k is free to act: elsewhere it adds nothing to H."""
    y = d.con_y[3 * k]
    least = y
    if d.con_dim[k] > 1:
        least = y - fmax(fabs(d.con_y[3 * k + 1]), fabs(d.con_y[3 * k + 2]))
    return (least < 0.0) & (d.con_D[k] > 0.0)


@kernel
def assemble_hessian(m, d):
    """H = M + J^T D J at the current rows, on the tile's pattern."""
    clear_stiffness(m, d)
    for k in range(d.ncon_slot[0]):
        if d.con_body[2 * k + 1] == 0 and any_(is_pushing(d, k)):
            if d.con_dim[k] > 1:
                add_stiffness(d, d.con_body[2 * k], arm(d, k), contact_stiffness(d, k))
            else:
                add_stiffness(d, d.con_body[2 * k], arm(d, k), normal_stiffness(d, k))
    compose_stiffness(m, d)
    assemble_tree(m, d)
    add_dof_rows(m, d)
    add_general_rows(m, d)
    for k in range(d.ncon_slot[0]):
        if d.con_body[2 * k + 1] > 0 and any_(is_pushing(d, k)):
            if d.con_dim[k] > 1:
                add_pair(m, d, k)
            else:
                add_normal_pair(m, d, k)


# ---- solve ----------------------------------------------------------------------------------------------------------
@kernel
def solve_hessian(m, d, x):
    """x <- H^-1 x; H becomes its factor L^T D L, H_dinv 1 / D."""
    if d.H_pattern[0] == TREE and m.nC == m.nchain:
        # the pattern is that of M: column by column, in two thirds of the time
        factor_columns(m.nv, d.H_rowadr, d.H_rownnz, m.M_below, d.H, d.H, d.H_dinv, 1, 1, x)
        expand_columns(m.nv, d.H_rowadr, d.H_rownnz, m.M_below, d.H_colind, d.H, d.H_dinv, x)
    else:
        factor_and_reduce(m.nv, d.H_rowadr, d.H_rownnz, d.H_colind, d.H, d.H_dinv, x)
        expand_rows(m.nv, d.H_rowadr, d.H_rownnz, d.H_colind, d.H, d.H_dinv, x)
