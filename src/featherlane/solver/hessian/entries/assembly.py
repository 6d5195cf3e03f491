"""The entries of the Hessian, H = M + J^T D J, on the tile's pattern.

Contacts with the world (and every contact's part on one body) are added to the bodies as 6x6 stiffnesses K_b = sum of
w_ab q_a q_b^T, with q the contact's basis wrenches.  They are composed toward the root like composite inertias:

    H_ij = M_ij + S_j^T K^c_b(i) S_i          for each ancestor dof j of i.

A contact between bodies of two trees adds to both, and -S_i^T K S_j between them (between_trees.py).  Contacts between
two bodies of one tree are in within_tree.py.  A wider pattern adds exact zeros only, so a world's result does not
depend on the pattern that the worlds of a tile share.

If the rows of the pattern do not fit (a pile of thousands of bodies), trees are decoupled: each of a contact's two
bodies gets its stiffness, and the coupling is omitted.  The result is still positive definite, so its direction
descends, and the exact line search makes the solve converge in more iterations.
Source: Featherstone, RBDA, sec. 6.2 (composite inertias); the stiffness composition is ours.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric
from featherlane.solver.hessian.entries.between_trees import (
    add_point_stiffness,
    add_turning_stiffness,
    clear_couplings,
    is_free_translation,
    subtract_coupling,
    within_tree,
)
from featherlane.solver.hessian.entries.couplings import couples_free_bodies
from featherlane.solver.hessian.entries.pattern import (
    APART,
    ORDERED,
    PATHS,
    diagonal_block,
    find_block,
    has_block_rows,
    has_couplings,
    in_panel,
    is_above,
    place_in_block,
)
from featherlane.solver.hessian.entries.stiffness import (
    add_cone_stiffness,
    add_stiffness_at_arm,
    add_turning,
    add_turns,
    begin_stiffness,
    clear_stiffness,
    compose_stiffness,
    cone_stiffness,
    contact_stiffness,
    has_stiffness,
    normal_stiffness,
    outer,
    turning_stiffness,
    turning_weight,
)
from featherlane.solver.hessian.entries.within_tree import add_normal_pair, add_pair, add_wide_pair
from featherlane.solver.rows.cone import is_held
from featherlane.solver.rows.pyramid import least_edge


@kernel
def add_axis_product(d, j, f, x):
    """Returns x + S_j . f."""
    s = d.cdof[j]
    y = fma(s[0], f[0], fma(s[1], f[1], fma(s[2], f[2], x)))
    return fma(s[3], f[3], fma(s[4], f[4], fma(s[5], f[5], y)))


@kernel
def translations(m, a, n):
    """Returns 3 if the row at a begins with the translations of a free joint, for which S_j . f is f itself; else 0."""
    root = m.chain_colind[a]
    return 3 if n > 3 and is_free_joint(m.jnt_type[m.dof_jntid[root]]) else 0


@kernel
def is_full(m, i):
    """Checks whether M stores row i with all ancestors, not only its diagonal."""
    return m.M_rownnz[i] == m.chain_rownnz[i]


@kernel
def clear_hessian_row(m, d, i):
    """Sets row i of H to zero if not all of its entries are those of M."""
    if d.hessian.rownnz[i] > m.M_rownnz[i]:
        for e in range(d.hessian.rowadr[i], d.hessian.rowadr[i] + d.hessian.rownnz[i]):
            d.hessian.H[e] = 0.0


@kernel
def inertia_row(m, d, A, i):
    """Computes row i of ancestors: H_ij = A_ij, of the metric A."""
    clear_hessian_row(m, d, i)
    h, q, n = d.hessian.rowadr[i] - 1, m.M_rowadr[i], m.M_rownnz[i]
    if is_full(m, i):
        a = m.chain_rowadr[i]
        for e in range(n):
            d.hessian.H[h + d.hessian.rownnz[m.chain_colind[a + e]]] = A[q + e]
    else:
        d.hessian.H[h + d.hessian.rownnz[i]] = A[q]


@kernel
def stiffness_row(m, d, i):
    """Computes row i of ancestors: H_ij += S_j . K^c S_i."""
    f = d.hessian.body_K[m.dof_bodyid[i]] @ d.cdof[i]
    h, a, n = d.hessian.rowadr[i] - 1, m.chain_rowadr[i], m.chain_rownnz[i]
    start = translations(m, a, n)
    if start > 0:
        u = h + d.hessian.rownnz[m.chain_colind[a]]
        for c in unrolled(range(3)):
            d.hessian.H[u + c] = f[3 + c] + d.hessian.H[u + c]
    for e in range(start, n):
        j = m.chain_colind[a + e]
        u = h + d.hessian.rownnz[j]
        d.hessian.H[u] = add_axis_product(d, j, f, d.hessian.H[u])


@kernel
def row_pair(m, d, A, i):
    """Computes rows i and i - 1, its parent, of A + S^T K^c S: each S_j is read once for both."""
    clear_hessian_row(m, d, i)
    clear_hessian_row(m, d, i - 1)
    f = d.hessian.body_K[m.dof_bodyid[i]] @ d.cdof[i]
    g = d.hessian.body_K[m.dof_bodyid[i - 1]] @ d.cdof[i - 1]
    h, k, p, q = d.hessian.rowadr[i] - 1, d.hessian.rowadr[i - 1] - 1, m.M_rowadr[i], m.M_rowadr[i - 1]
    a, n = m.chain_rowadr[i], m.chain_rownnz[i]
    start = translations(m, a, n - 1)
    if start > 0:
        c = d.hessian.rownnz[m.chain_colind[a]]
        u, v = h + c, k + c
        for r in unrolled(range(3)):
            d.hessian.H[u + r], d.hessian.H[v + r] = f[3 + r] + A[p + r], g[3 + r] + A[q + r]
    for e in range(start, n - 1):
        j = m.chain_colind[a + e]
        s, c = d.cdof[j], d.hessian.rownnz[j]
        x = fma(s[0], f[0], fma(s[1], f[1], fma(s[2], f[2], A[p + e])))
        y = fma(s[0], g[0], fma(s[1], g[1], fma(s[2], g[2], A[q + e])))
        d.hessian.H[h + c] = fma(s[3], f[3], fma(s[4], f[4], fma(s[5], f[5], x)))
        d.hessian.H[k + c] = fma(s[3], g[3], fma(s[4], g[4], fma(s[5], g[5], y)))
    d.hessian.H[h + d.hessian.rownnz[i]] = add_axis_product(d, i, f, A[p + n - 1])


@kernel
def assemble_rows(m, d):
    """Computes H = M + S^T K^c S on rows of ancestors: dof j is at place hessian.rownnz[j] - 1 of each row with it."""
    A, i = metric(m, d), m.nv - 1
    while i >= 0:
        stiff = has_stiffness(d, m.dof_bodyid[i])
        if stiff and i > 0 and m.dof_parentid[i] == i - 1 and is_full(m, i) and is_full(m, i - 1):
            row_pair(m, d, A, i)
            i -= 2
        else:
            inertia_row(m, d, A, i)
            if stiff:
                stiffness_row(m, d, i)
            i -= 1


@kernel
def stiffness_columns(m, d, u, first, n, f):
    """Adds S_j . f to H_ij for the first n dofs j of a block, at u; a free joint's translations are always three."""
    start = 0
    if is_free_translation(m, first):
        for c in unrolled(range(3)):
            d.hessian.H[u + c] = f[3 + c] + d.hessian.H[u + c]
        start = 3
    for c in range(start, n):
        d.hessian.H[u + c] = add_axis_product(d, first + c, f, d.hessian.H[u + c])


@kernel
def block_row(m, d, A, i):
    """Computes row i of A + S^T K^c S in its block's row; zero in other columns up to the end of the block."""
    b = m.dof_blockid[i]
    h, end = d.hessian.rowadr[i], m.block_dofadr[b] + m.block_dofnum[b]
    for e in range(h, h + d.hessian.rownnz[i] + end - i - 1):
        d.hessian.H[e] = 0.0
    stiff, full = has_stiffness(d, m.dof_bodyid[i]), is_full(m, i)
    f = Force(zeros(6))
    if stiff:
        f = d.hessian.body_K[m.dof_bodyid[i]] @ d.cdof[i]
    d.hessian.H[h + d.hessian.rownnz[i] - 1] = A[m.M_rowadr[i] + m.M_rownnz[i] - 1]
    e, j = diagonal_block(m, d, i), i
    while j >= 0 and (stiff or full):
        e = find_block(m, d, e, j)
        first = m.block_dofadr[m.dof_blockid[j]]
        u, n = h + d.hessian.blockplace[e], j - first + 1
        if full:
            q = m.M_rowadr[i] + m.chain_rownnz[first] - 1
            for c in range(n):
                d.hessian.H[u + c] = A[q + c]
        if stiff:
            stiffness_columns(m, d, u, first, n, f)
        j = m.dof_parentid[first]


@kernel
def assemble_blocks(m, d):
    """Computes H = M + S^T K^c S on block rows."""
    for i in range(m.nv):
        block_row(m, d, metric(m, d), i)


@kernel
def add_dof_rows(m, d):
    """Adds D J^2 to H_ii for the one-dof rows that are not at a bound."""
    for k in range(d.nfrictionrow[0]):
        D = d.dofrow_D[k]
        t = -(D * d.primal.dofrow_x[k])
        w = where((t > d.dofrow_lo[k]) & (t < d.dofrow_hi[k]), D, 0.0)
        i, J = d.dofrow_dof[k], d.dofrow_J[k]
        e = d.hessian.rowadr[i] + d.hessian.rownnz[i] - 1
        d.hessian.H[e] = fma(w * J, J, d.hessian.H[e])
    for k in range(d.nfrictionrow[0], d.ndofrow[0]):
        i, J = d.dofrow_dof[k], d.dofrow_J[k]
        e = d.hessian.rowadr[i] + d.hessian.rownnz[i] - 1
        d.hessian.H[e] = fma(where(d.primal.dofrow_x[k] < 0.0, d.dofrow_D[k], 0.0) * J, J, d.hessian.H[e])


@kernel
def weighted_sum(d, e, step, y, x):
    """Returns x + sum of y_r J_r over three rows whose entries of one dof are at e, e + step, e + 2 step."""
    return fma(y[0], d.genrow_J[e], fma(y[1], d.genrow_J[e + step], fma(y[2], d.genrow_J[e + 2 * step], x)))


@kernel
def add_tree_entries(m, d, o, step, a, y):
    """Adds to row i of ancestors, i = dof a of general rows: H_ij += sum of y_r J_rj, for the ancestors j of i."""
    i = d.genrow_dof[o + a]
    for b in range(a + 1):
        j = d.genrow_dof[o + b]
        if d.hessian.pattern[0] == PATHS or is_above(m, j, i):
            e = d.hessian.rowadr[i] + d.hessian.rownnz[j] - 1
            d.hessian.H[e] = weighted_sum(d, o + b, step, y, d.hessian.H[e])


@kernel
def add_block_entries(m, d, o, step, a, y):
    """Adds to row i in block rows, as `add_tree_entries`."""
    i = d.genrow_dof[o + a]
    h, e = d.hessian.rowadr[i], diagonal_block(m, d, i)
    for b in range(a, -1, -1):
        j = d.genrow_dof[o + b]
        e = find_block(m, d, e, j)
        u = h + place_in_block(m, d, e, j)
        d.hessian.H[u] = weighted_sum(d, o + b, step, y, d.hessian.H[u])


@kernel
def free_weight(d, k):
    """Returns D of a general row that is not at a bound, else 0."""
    D = d.genrow_D[k]
    t = -(D * d.primal.genrow_x[k])
    return where((t > d.genrow_lo[k]) & (t < d.genrow_hi[k]), D, 0.0)


@kernel
def add_general_stiffness(m, d):
    """Adds D J^T J for the general rows that are not at a bound: three at a time if they share their dofs."""
    k = 0
    while k < d.ngenrow[0]:
        o, n = d.genrow_dofadr[k], d.genrow_dofnum[k]
        w, step, rows = (free_weight(d, k), 0.0, 0.0), 0, 1
        if d.genrow_rownum[k] >= 3:
            w, step, rows = (w[0], free_weight(d, k + 1), free_weight(d, k + 2)), n, 3
        for a in range(n):
            e = o + a
            y = (w[0] * d.genrow_J[e], w[1] * d.genrow_J[e + step], w[2] * d.genrow_J[e + 2 * step])
            if has_block_rows(d):
                add_block_entries(m, d, o, step, a, y)
            else:
                add_tree_entries(m, d, o, step, a, y)
        k += rows


@kernel
def is_pushing(m, d, k):
    """Returns whether some row of contact k is not at a bound, so it adds to H.  Finished worlds need none."""
    c = d.contact[k]
    if c.dim == 1:
        acts = (d.primal.con_y[k][0] < 0.0) & (c.D > 0.0)
    elif has_pyramids(m):
        acts = (least_edge(d, k) < 0.0) & (c.D > 0.0)
    else:
        acts = is_held(m, d, k)
    return acts & (d.primal.live[0] > 0.0)


@kernel
def add_contact_stiffness(m, d, k, side):
    """Adds a contact's stiffness to K_b, for the body that it pushes (side 0) or the other one."""
    c = d.contact[k]
    b, r = c.body[side], c.arm[side]
    begin_stiffness(d, b)
    if c.dim == 1:
        add_stiffness_at_arm(d, b, r, normal_stiffness(d, k))
    elif has_pyramids(m):
        add_stiffness_at_arm(d, b, r, contact_stiffness(d, k))
    else:
        add_cone_stiffness(m, d, k, side)
    if c.dim > 3:
        add_turns(m, d, k, side)


@kernel
def point_stiffness(m, d, k):
    """Returns F of a contact's point, with the part of the turns of a pyramid."""
    if d.con_dim[k] == 1:
        F = normal_stiffness(d, k)
    elif has_pyramids(m):
        F = contact_stiffness(d, k)
    else:
        F = cone_stiffness(m, d, k)
    if d.con_dim[k] > 3 and has_pyramids(m):
        F = outer(turning_weight(d, k), d.con_basis[k].rows[0], F)
    return F


@kernel
def store_stiffness(m, d, k):
    """Stores F of a contact, and A, p and s of its turns, for the panels; zero if no row pushes."""
    d.hessian.con_F[k] = point_stiffness(m, d, k)
    if d.con_dim[k] > 3:
        d.hessian.con_A[k], d.hessian.con_p[k], d.hessian.con_s[k] = turning_stiffness(m, d, k)


@stage
def add_between_trees(m, d, k):
    """Adds the stiffness of a contact to each of its two bodies, and between them.

    Reads:  con_* of slot k.
    Writes: hessian.* and body_reached of its bodies, hessian.* of the pair that it couples [kg, kg m, kg m^2].
    """
    c = d.contact[k]
    r, t, F = c.arm[0], c.arm[1], point_stiffness(m, d, k)
    begin_stiffness(d, c.body[0])
    begin_stiffness(d, c.body[1])
    if c.dim > 3:
        A, p, s = turning_stiffness(m, d, k)
        add_turning(d, c.body[0], r, A, p, s)
        add_turning(d, c.body[1], t, A, p, s)
        add_turning_stiffness(m, d, k, A, p, s)
    add_stiffness_at_arm(d, c.body[0], r, F)
    add_stiffness_at_arm(d, c.body[1], t, F)
    add_point_stiffness(m, d, k, F)


@kernel
def assemble_bodies(m, d):
    """Computes stiffnesses of bodies, and between bodies of two trees, of all contacts except those within one tree."""
    clear_stiffness(m, d)
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        other = d.con_body[k, 1]
        if in_panel(m, d, k):
            store_stiffness(m, d, k)
        elif other == 0 or d.hessian.pattern[0] == APART:
            if any_(is_pushing(m, d, k)):
                for side in range(2 if other > 0 else 1):
                    add_contact_stiffness(m, d, k, side)
        elif not within_tree(m, d, k) and any_(is_pushing(m, d, k)):
            add_between_trees(m, d, k)
    compose_stiffness(m, d)


@kernel
def add_within_trees(m, d):
    """Adds contacts between two bodies of one tree."""
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        c = d.contact[k]
        if c.body[1] > 0 and within_tree(m, d, k) and any_(is_pushing(m, d, k)):
            if c.dim == 1:
                add_normal_pair(m, d, k)
            elif c.dim > 3 or not has_pyramids(m):
                add_wide_pair(m, d, k)
            else:
                add_pair(m, d, k)


@kernel
def assemble_entries(m, d):
    """Computes H = M + J^T D J at the current rows, on the tile's pattern, without contacts `in_panel`."""
    coupled = has_couplings(d)
    if coupled:
        clear_couplings(m, d)
    assemble_bodies(m, d)
    if has_block_rows(d):
        assemble_blocks(m, d)
    else:
        assemble_rows(m, d)
    add_dof_rows(m, d)
    add_general_stiffness(m, d)
    if coupled:
        add_within_trees(m, d)
        for k in range(d.hessian.ncoupling[0]):
            if not (d.hessian.pattern[0] == ORDERED and couples_free_bodies(m, d, k)):
                subtract_coupling(m, d, k)
