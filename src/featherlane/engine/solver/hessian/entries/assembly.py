"""The entries of the Hessian, H = M + J^T D J, on the tile's pattern.

Contacts with the world (and every contact's part on one body) are added to the bodies as 6x6 stiffnesses K_b = sum of
w_ab q_a q_b^T, with q the contact's basis wrenches.  They are composed toward the root like composite inertias, to K^c
(hessian.body_K after `compose_stiffness`):

    H_ij = M_ij + S_j^T K^c_b(i) S_i     for each ancestor dof j of i, with S_i = cdof[i] and b(i) the body of dof i.

A contact between bodies of two trees adds to both, and -S_i^T K S_j between them (between_trees.py).  Contacts between
two bodies of one tree are in within_tree.py.  A wider pattern adds exact zeros only, so a world's result does not
depend on the pattern that the worlds of a tile share.

If the rows of the pattern do not fit (a pile of thousands of bodies), trees are decoupled: each of a contact's two
bodies gets its stiffness, and the coupling is omitted.  The result is still positive definite, so its direction
descends, and the exact line search makes the solve converge in more iterations.
M is `metric(m, d)`: under the integrator `discrete`, its metric.  primal.slot lists the contact slots in use,
primal.live is 1 in worlds that the solver continues, con_y[k] is J a - aref along the basis of contact k.
Contacts `in_panel` (of two free bodies, in worlds with an own elimination order) are added later, in free_panels.py.
Layout: H_ij = hessian.H[rowadr[i] + offset of j].  In rows of ancestors the offset of j is rownnz[j] - 1, the number of
entries before j; the dofs up to i are chain_colind[chain_rowadr[i] ...], chain_rownnz[i] of them, ascending.
In block rows, blockcol lists the blocks of a row, and blockoffset the offsets of their first dofs; `diagonal_block` and
`find_block` return the entry of a block in this list.  Block b has the dofs from block_dofadr[b] on, block_dofnum[b] of
them; dof_blockid[i] is the block of dof i.
The rows of M have all ancestors (full), or only the diagonal entry; M_ij of a full row is at M_rowadr[i] + number of
ancestors of j.
Contact k acts on con_body[k] (0: does not move) at the arms con_arm[k]; con_dim[k] > 3 if it has rotation axes.  Its
stiffness is a 3x3 matrix F of its point, and (A, p, s) of its rotation axes (stiffness.py): `normal_stiffness`,
`pyramid_stiffness` and `cone_stiffness` return F, `angular_stiffness` returns (A, p, s).  `begin_stiffness` sets K_b =
0 if no contact has yet been added to body b; `has_stiffness` checks whether K^c_b is not 0.  `add_outer(w, a, x)`
returns x + w a a^T.  `smallest_edge` returns the smallest y_0 - |y_i| of a pyramid, `is_held` a mask of worlds in which
a cone sticks or slips.
dof_bodyid[i] is b(i).  nslot: length of primal.slot.
Source: Featherstone, RBDA, sec. 6.2 (composite inertias); the stiffness composition is ours.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.metric import metric
from featherlane.engine.solver.hessian.entries.between_trees import (
    add_angular_coupling,
    add_point_stiffness,
    clear_couplings,
    is_free_translation,
    subtract_coupling,
    within_tree,
)
from featherlane.engine.solver.hessian.entries.changes import find_changes
from featherlane.engine.solver.hessian.entries.couplings import couples_free_bodies, coupling_tips
from featherlane.engine.solver.hessian.entries.joint_rows import add_dof_rows, add_general_stiffness
from featherlane.engine.solver.hessian.entries.pattern import (
    APART,
    ORDERED,
    changes_body,
    changes_dof,
    diagonal_block,
    find_block,
    has_block_rows,
    has_couplings,
    in_panel,
)
from featherlane.engine.solver.hessian.entries.stiffness import (
    add_angular_stiffness,
    add_cone_stiffness,
    add_rotation_axes,
    add_stiffness_at_arm,
    angular_stiffness,
    begin_stiffness,
    clear_stiffness,
    compose_stiffness,
    has_stiffness,
    normal_stiffness,
    point_stiffness,
    pyramid_stiffness,
)
from featherlane.engine.solver.hessian.entries.within_tree import add_normal_pair, add_pair, add_wide_pair
from featherlane.engine.solver.rows.cone import is_held
from featherlane.engine.solver.rows.pyramid import smallest_edge


@kernel
def add_axis_product(d, j, f, x):
    """Returns x + S_j . f, the power of the spatial force f at unit velocity of dof j, added to x."""
    S = d.cdof[j]
    y = fma(S[0], f[0], fma(S[1], f[1], fma(S[2], f[2], x)))
    return fma(S[3], f[3], fma(S[4], f[4], fma(S[5], f[5], y)))


@kernel
def count_translations(m, chain, n):
    """Returns 3 if a row begins with the translations of a free joint and has more dofs, else 0.

    S_j . f of translation j = 0, 1, 2 is part 3 + j of f, so these entries need no product.
    chain: start of the row's dofs in chain_colind.  n: number of its dofs.
    """
    root = m.chain_colind[chain]
    return 3 if n > 3 and is_free_joint(m.jnt_type[m.dof_jntid[root]]) else 0


@kernel
def is_full(m, i):
    """Checks whether M stores row i with all ancestors, not only its diagonal."""
    return m.M_rownnz[i] == m.chain_rownnz[i]


@kernel
def clear_hessian_row(m, d, i):
    """Sets row i of H to zero if it has more entries than row i of M, which would not overwrite all of them."""
    if d.hessian.rownnz[i] > m.M_rownnz[i]:
        for e in range(d.hessian.rowadr[i], d.hessian.rowadr[i] + d.hessian.rownnz[i]):
            d.hessian.H[e] = 0.0


@kernel
def store_inertia_row(m, d, A, i):
    """Stores row i of ancestors: H_ij = A_ij, with A the metric (M, or that of the integrator), 0 at other entries."""
    clear_hessian_row(m, d, i)
    # H_ij is at rowadr[i] + rownnz[j] - 1 = before + rownnz[j]
    before = d.hessian.rowadr[i] - 1
    A_row, n = m.M_rowadr[i], m.M_rownnz[i]
    if is_full(m, i):
        chain = m.chain_rowadr[i]
        for e in range(n):
            d.hessian.H[before + d.hessian.rownnz[m.chain_colind[chain + e]]] = A[A_row + e]
    else:
        d.hessian.H[before + d.hessian.rownnz[i]] = A[A_row]


@kernel
def add_stiffness_row(m, d, i):
    """Adds to row i of ancestors: H_ij += S_j . f, with f = K^c S_i."""
    f = d.hessian.body_K[m.dof_bodyid[i]] @ d.cdof[i]
    # H_ij is at rowadr[i] + rownnz[j] - 1 = before + rownnz[j]
    before = d.hessian.rowadr[i] - 1
    chain, n = m.chain_rowadr[i], m.chain_rownnz[i]
    start = count_translations(m, chain, n)
    if start > 0:  # the row begins with a free joint's translations: for the one along axis c, S_j . f = f[3 + c]
        entry = before + d.hessian.rownnz[m.chain_colind[chain]]
        for c in unrolled(range(3)):
            d.hessian.H[entry + c] = f[3 + c] + d.hessian.H[entry + c]
    for e in range(start, n):
        j = m.chain_colind[chain + e]
        entry = before + d.hessian.rownnz[j]
        d.hessian.H[entry] = add_axis_product(d, j, f, d.hessian.H[entry])


@kernel
def store_two_rows(m, d, A, i):
    """Computes rows i and k = i - 1, the parent of i, of H = A + S^T K^c S.  Each S_j is read once for both rows.

    With f = K^c S_i and g = K^c S_k:  H_ij = A_ij + S_j . f,  H_kj = A_kj + S_j . g.  Both rows of A are full.
    """
    clear_hessian_row(m, d, i)
    clear_hessian_row(m, d, i - 1)
    f = d.hessian.body_K[m.dof_bodyid[i]] @ d.cdof[i]
    g = d.hessian.body_K[m.dof_bodyid[i - 1]] @ d.cdof[i - 1]
    # H_ij is at rowadr[i] + rownnz[j] - 1 = before_i + rownnz[j], H_kj at before_k + rownnz[j]
    before_i = d.hessian.rowadr[i] - 1
    before_k = d.hessian.rowadr[i - 1] - 1
    A_i, A_k = m.M_rowadr[i], m.M_rowadr[i - 1]  # addresses of both rows in A
    chain, n = m.chain_rowadr[i], m.chain_rownnz[i]
    start = count_translations(m, chain, n - 1)
    if start > 0:  # the row begins with a free joint's translations: for the one along axis c, S_j . f = f[3 + c]
        offset = d.hessian.rownnz[m.chain_colind[chain]]
        entry_i, entry_k = before_i + offset, before_k + offset
        for c in unrolled(range(3)):
            H_ij, H_kj = f[3 + c] + A[A_i + c], g[3 + c] + A[A_k + c]
            d.hessian.H[entry_i + c] = H_ij
            d.hessian.H[entry_k + c] = H_kj
    # all dofs of both rows: those up to k
    for e in range(start, n - 1):
        j = m.chain_colind[chain + e]
        H_ij, H_kj = add_axis_product(d, j, f, A[A_i + e]), add_axis_product(d, j, g, A[A_k + e])
        d.hessian.H[before_i + d.hessian.rownnz[j]] = H_ij
        d.hessian.H[before_k + d.hessian.rownnz[j]] = H_kj
    # the diagonal of row i
    d.hessian.H[before_i + d.hessian.rownnz[i]] = add_axis_product(d, i, f, A[A_i + n - 1])


@kernel
def assemble_ancestor_rows(m, d):
    """Computes H = M + S^T K^c S on rows of ancestors, two rows at a time if dof i - 1 is the parent of dof i."""
    A = metric(m, d)
    i = m.nv - 1
    while i >= 0:  # from the last dof, so that a pair is a dof and its parent before it
        stiff = has_stiffness(d, m.dof_bodyid[i])
        if stiff and i > 0 and m.dof_parentid[i] == i - 1 and is_full(m, i) and is_full(m, i - 1):
            store_two_rows(m, d, A, i)
            i -= 2
        else:
            store_inertia_row(m, d, A, i)
            if stiff:
                add_stiffness_row(m, d, i)
            i -= 1


@kernel
def add_stiffness_to_block(m, d, entry, first, n, f):
    """Adds S_j . f to H_ij for the first n dofs j of a block: first, first + 1, ...

    entry: position in hessian.H of H_ij with j = first.  f: K^c S_i.
    """
    start = 0
    if is_free_translation(m, first):  # a free joint's translations are always three
        for c in unrolled(range(3)):
            d.hessian.H[entry + c] = f[3 + c] + d.hessian.H[entry + c]
        start = 3
    for c in range(start, n):
        d.hessian.H[entry + c] = add_axis_product(d, first + c, f, d.hessian.H[entry + c])


@kernel
def assemble_block_row(m, d, A, i):
    """Computes row i of H = A + S^T K^c S in block rows; its other entries, up to the end of its block, become 0."""
    b = m.dof_blockid[i]
    row = d.hessian.rowadr[i]
    end = m.block_dofadr[b] + m.block_dofnum[b]  # the dof behind the block
    # the row has rownnz[i] entries up to the diagonal, then end - i - 1 entries for the later dofs of the block
    for e in range(row, row + d.hessian.rownnz[i] + end - i - 1):
        d.hessian.H[e] = 0.0
    stiff = has_stiffness(d, m.dof_bodyid[i])  # K^c of the body is not 0
    full = is_full(m, i)  # row i of A has all ancestors
    f = Force(zeros(6))  # K^c S_i
    if stiff:
        f = d.hessian.body_K[m.dof_bodyid[i]] @ d.cdof[i]
    # the diagonal: the only entry of a row of A that is not full
    d.hessian.H[row + d.hessian.rownnz[i] - 1] = A[m.M_rowadr[i] + m.M_rownnz[i] - 1]
    # from the block of dof i to that at the root;  e: entry of the row's block list;  j: last dof of the block that is
    # above dof i, or i itself
    e = diagonal_block(m, d, i)
    j = i
    while j >= 0 and (stiff or full):
        e = find_block(m, d, e, j)
        first = m.block_dofadr[m.dof_blockid[j]]
        entry = row + d.hessian.blockoffset[e]  # H_ij of the dof `first`
        n = j - first + 1  # dofs up to j
        if full:  # row i of A has the entries of the ancestors of `first`, then that of `first`
            A_entry = m.M_rowadr[i] + m.chain_rownnz[first] - 1
            for c in range(n):
                d.hessian.H[entry + c] = A[A_entry + c]
        if stiff:
            add_stiffness_to_block(m, d, entry, first, n, f)
        j = m.dof_parentid[first]


@kernel
def is_pushing(m, d, k):
    """Returns the mask of worlds in which contact k adds to H: some row of it is not at a bound.

    Worlds that the solver has finished are left out, because their H is not used.
    """
    c = d.contact[k]
    if c.dim == 1:
        acts = (d.primal.con_y[k][0] < 0.0) & (c.D > 0.0)  # D is 0 in worlds without the contact
    elif has_pyramids(m):
        acts = (smallest_edge(d, k) < 0.0) & (c.D > 0.0)
    else:
        acts = is_held(m, d, k)  # sticks or slips
    return acts & (d.primal.live[0] > 0.0)


@kernel
def add_contact_stiffness(m, d, k, side):
    """Adds the stiffness of contact k to K_b, hessian.body_K, of its body b on side 0 or 1."""
    c = d.contact[k]
    b, r = c.body[side], c.arm[side]
    begin_stiffness(d, b)
    if c.dim == 1:
        add_stiffness_at_arm(d, b, r, normal_stiffness(d, k))
    elif has_pyramids(m):
        add_stiffness_at_arm(d, b, r, pyramid_stiffness(d, k))
    else:
        add_cone_stiffness(m, d, k, side)
    if c.dim > 3:
        add_rotation_axes(m, d, k, side)


@stage
def add_between_trees(m, d, k):
    """Adds the stiffness of a contact to each of its two bodies, and between them.

    Reads:  con_* of slot k.
    Writes: hessian.* and body_reached of its bodies, hessian.* of the pair that it couples [kg, kg m, kg m^2].
    """
    c = d.contact[k]
    r, r_other = c.arm[0], c.arm[1]
    F = point_stiffness(m, d, k)
    begin_stiffness(d, c.body[0])
    begin_stiffness(d, c.body[1])
    # each call adds to hessian.body_K of a body, or to hessian.coupling_K between both bodies
    if c.dim > 3:
        A, p, s = angular_stiffness(m, d, k)
        add_angular_stiffness(d, c.body[0], r, A, p, s)
        add_angular_stiffness(d, c.body[1], r_other, A, p, s)
        add_angular_coupling(m, d, k, A, p, s)
    add_stiffness_at_arm(d, c.body[0], r, F)
    add_stiffness_at_arm(d, c.body[1], r_other, F)
    add_point_stiffness(m, d, k, F)


@kernel
def assemble_bodies(m, d):
    """Computes the stiffnesses of bodies, and between bodies of two trees, by the contacts in primal.slot.

    The first of these cases that holds decides what is done with a contact:
        in_panel             F and, with rotation axes, (A, p, s) are stored; free_panels.py adds them to the panels
        group is unchanged   skipped, because its bodies keep their stiffness (changes.py)
        one body moves       added to K_b of this body
        pattern APART        added to K_b of both bodies, also if they are in one tree: no couplings
        bodies of two trees  added to K_b of both bodies, and to the K between them
        bodies of one tree   left to `add_within_trees`
    Only contacts that push in a live world are added; all that are in panels are stored.
    Writes: hessian.body_K (composed toward the root), coupling_K, con_F, con_A, con_p, con_s; body_reached.
    """
    clear_stiffness(m, d)
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        other = d.con_body[k, 1]  # 0 if it does not move
        if in_panel(m, d, k):
            # also if no row pushes: F is 0 then, and replaces that of another iteration
            d.hessian.con_F[k] = point_stiffness(m, d, k)
            if d.con_dim[k] > 3:
                d.hessian.con_A[k], d.hessian.con_p[k], d.hessian.con_s[k] = angular_stiffness(m, d, k)
        elif not changes_body(m, d, d.con_body[k, 0]):
            pass  # both bodies keep their stiffness
        elif other == 0 or d.hessian.pattern[0] == APART:
            if any_(is_pushing(m, d, k)):
                for side in range(2 if other > 0 else 1):
                    add_contact_stiffness(m, d, k, side)
        elif not within_tree(m, d, k) and any_(is_pushing(m, d, k)):
            add_between_trees(m, d, k)
    compose_stiffness(m, d)


@kernel
def add_within_trees(m, d):
    """Adds contacts between two bodies of one tree, in live worlds in which they push.

    add_normal_pair   no friction: one row
    add_wide_pair     rotation axes, or an elliptic cone
    add_pair          a pyramid of dimension 3, the most frequent case, whose matrix has zeros
    """
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        c = d.contact[k]
        if c.body[1] > 0 and within_tree(m, d, k) and changes_body(m, d, c.body[0]) and any_(is_pushing(m, d, k)):
            if c.dim == 1:
                add_normal_pair(m, d, k)
            elif c.dim > 3 or not has_pyramids(m):
                add_wide_pair(m, d, k)
            else:
                add_pair(m, d, k)


@kernel
def assemble_entries(m, d):
    """Computes H = M + J^T D J at the current rows, on the tile's pattern, without contacts `in_panel`.

    Groups of blocks whose rows have not switched keep their rows of H, which hold their factor (changes.py).
    """
    find_changes(m, d)
    coupled = has_couplings(d)
    if coupled:
        clear_couplings(m, d)
    assemble_bodies(m, d)  # writes the stiffnesses K that the rows of H read
    if has_block_rows(d):
        for i in range(m.nv):
            if changes_dof(m, d, i):
                assemble_block_row(m, d, metric(m, d), i)
    else:
        assemble_ancestor_rows(m, d)
    add_dof_rows(m, d)
    add_general_stiffness(m, d)
    if coupled:
        add_within_trees(m, d)
        for k in range(d.hessian.ncoupling[0]):
            # panels add the contacts of two free bodies
            in_panels = d.hessian.pattern[0] == ORDERED and couples_free_bodies(m, d, k)
            if not in_panels and changes_dof(m, d, coupling_tips(d, k)[0]):
                subtract_coupling(m, d, k)
