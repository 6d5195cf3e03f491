"""Computes the exact diagonal A = J M^-1 J^T of a row instead of the estimate from qpos0: the flag `diagexact`.

With M = L^T D L it is the squared length of y = D^-1/2 L^-T J^T, nonzero only at the dofs of J and their ancestors.
`exact.row` holds J; each elimination of a dof, from the last to the first, makes it one entry of L^-T J^T.
`metric_factor` returns (L with D on its diagonal, 1 / D): of M, or of the metric of the integrator `discrete`.
General row k has the entries row_J at the dofs row_dof, row_dofnum[k] of them from row_dofadr[k] on.
Source: MuJoCo's documentation, "Computation", sec. "Diagonal approximation"; Featherstone, RBDA, sec. 6.5.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric_factor


@kernel
def wants_exact(m):
    """Returns whether the diagonal is recomputed in each state."""
    return m.opt_enableflags & ENABLE_DIAGEXACT != 0


@kernel
def clear_chain_entries(m, d, i, j):
    """Clears `exact.row` at dofs i and j (-1: none) and their ancestors."""
    while i >= 0 or j >= 0:
        last = max(i, j)  # a parent has a smaller index: descending order visits common ancestors once
        d.exact.row[last] = 0.0
        i, j = m.dof_parentid[i] if i == last else i, m.dof_parentid[j] if j == last else j


@kernel
def whiten_dof(m, d, k, squares):
    """Eliminates dof k of the row in `exact.row`; returns `squares` plus y_k^2.

    x_j -= L_kj x_k for its ancestors j; then y_k^2 = x_k^2 / D_k.  Row k of L is stored from M_rowadr[k] on, D_k last.
    """
    x, rowadr = d.exact.row[k], m.M_rowadr[k]
    LD, inverse_D = metric_factor(m, d)
    for c in range(m.M_rownnz[k] - 1):
        ancestor = m.M_colind[rowadr + c]
        d.exact.row[ancestor] = fma(-LD[rowadr + c], x, d.exact.row[ancestor])
    return fma(x * inverse_D[k], x, squares)


@kernel
def whitened_square(m, d, i, j):
    """Returns J M^-1 J^T of the row in `exact.row`, which has entries at dofs i and j and their ancestors.

    Reads:  qLD (nC,), qLDiagInv (nv,).   Writes: exact.row (nv,).   Cost: O(depth^2).
    """
    squares = 0.0
    while i >= 0 or j >= 0:
        last = max(i, j)  # the later dof: a dof is eliminated before its ancestors
        squares = whiten_dof(m, d, last, squares)
        i, j = m.dof_parentid[i] if i == last else i, m.dof_parentid[j] if j == last else j
    return squares


@kernel
def exact_dof_diagonal(m, d, i):
    """Returns (M^-1)_ii, the diagonal A of a row with the single entry 1 or -1.  Writes: exact.row."""
    clear_chain_entries(m, d, i, j=-1)  # one chain only
    d.exact.row[i] = 1.0
    return whitened_square(m, d, i, j=-1)


@kernel
def exact_general_diagonal(m, d, k, i, j):
    """Returns J M^-1 J^T of general row k, whose dofs are among i, j and their ancestors; -1: none.

    Reads: row_*, qLD, qLDiagInv.   Writes: exact.row.
    """
    clear_chain_entries(m, d, i, j)
    first = d.row_dofadr[k]
    for e in range(first, first + d.row_dofnum[k]):
        d.exact.row[d.row_dof[e]] = d.row_J[e]
    return whitened_square(m, d, i, j)


@kernel
def chosen_diagonal(m, d, k, estimate, i, j):
    """Returns A of general row k, whose Jacobian is stored: J M^-1 J^T with the flag `diagexact`, else the estimate.

    i, j: the dofs of the row are among these and their ancestors; -1: none.
    """
    return exact_general_diagonal(m, d, k, i, j) if wants_exact(m) else estimate


@kernel
def next_above(m, d, o, n, k):
    """Returns the last dof before dof k among the n dofs from row_dof[o] on and their ancestors; -1: none."""
    last = -1
    for e in range(o, o + n):
        i = d.row_dof[e]
        while i >= k:
            i = m.dof_parentid[i]
        last = i if i > last else last
    return last


@kernel
def exact_row_diagonal(m, d, k):
    """Returns J M^-1 J^T of general row k, whose dofs may be on any number of branches.

    Reads:  qLD (nC,), qLDiagInv (nv,).   Writes: exact.row (nv,).
    """
    first, n, squares = d.row_dofadr[k], d.row_dofnum[k], 0.0
    # clears the entries of all dofs of the row and their ancestors, in descending order
    i = next_above(m, d, first, n, m.nv)
    while i >= 0:
        d.exact.row[i] = 0.0
        i = next_above(m, d, first, n, i)
    for e in range(first, first + n):
        d.exact.row[d.row_dof[e]] = d.row_J[e]
    # a dof is eliminated before its ancestors
    i = next_above(m, d, first, n, m.nv)
    while i >= 0:
        squares = whiten_dof(m, d, i, squares)
        i = next_above(m, d, first, n, i)
    return squares


@kernel
def contact_entry(d, i, u, r):
    """Returns u . (S_lin + S_rot x r), the Jacobian entry of dof i along u at arm r from the com of its tree."""
    return dot(u, d.cdof[i].linear + cross(d.cdof[i].angular, r))


@kernel
def exact_contact_diagonal(m, d, k, b1, b2, edge):
    """Returns J M^-1 J^T of contact slot k between bodies b1 and b2: of the row u . (v_2 - v_1).

    u: the normal n; for edge = 1 the edge n + mu_1 t_1 of a pyramid.   Writes: exact.row.
    """
    c = d.contact[k]
    last1, last2, u = m.body_lastdof[b1], m.body_lastdof[b2], c.frame.rows[0]
    if edge:
        u = fma(c.friction[0], c.frame.rows[1], u)
    p = c.pos
    # arms from the coms of the bodies' trees, to which cdof refers
    r1 = p - d.subtree_com[m.body_rootid[b1]]
    r2 = p - d.subtree_com[m.body_rootid[b2]]
    clear_chain_entries(m, d, last1, last2)
    # J_i = u . (velocity of body 2 at the contact - that of body 1) per unit velocity of dof i
    i, j, minus_u = last1, last2, -1.0 * u
    while j >= 0:
        d.exact.row[j] = contact_entry(d, j, u, r2)
        j = m.dof_parentid[j]
    while i >= 0:
        # a dof above both bodies cancels: it moves both at the contact point equally
        d.exact.row[i] = d.exact.row[i] + contact_entry(d, i, minus_u, r1)
        i = m.dof_parentid[i]
    return whitened_square(m, d, last1, last2)
