"""Computes the exact diagonal A = J M^-1 J^T of a row instead of the estimate from qpos0: the flag `diagexact`.

With M = L^T D L it is the squared length of y = D^-1/2 L^-T J^T, nonzero only at the dofs of J and their ancestors.
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
    """Clears the entries at dofs i and j (-1: none) and their ancestors."""
    while i >= 0 or j >= 0:
        k = max(i, j)
        d.exact.row[k] = 0.0
        i, j = m.dof_parentid[i] if i == k else i, m.dof_parentid[j] if j == k else j


@kernel
def whiten_dof(m, d, k, s):
    """Eliminates dof k of the row in `exact.row`: updates its ancestors' entries; returns s plus y_k^2."""
    x, a = d.exact.row[k], m.M_rowadr[k]
    LD, inverse = metric_factor(m, d)
    for c in range(m.M_rownnz[k] - 1):
        above = m.M_colind[a + c]
        d.exact.row[above] = fma(-LD[a + c], x, d.exact.row[above])
    return fma(x * inverse[k], x, s)


@kernel
def whitened_square(m, d, i, j):
    """Returns J M^-1 J^T of the row in `exact.row`, which has entries at dofs i and j and their ancestors.

    Reads:  qLD (nC,), qLDiagInv (nv,).   Writes: exact.row (nv,).   Cost: O(depth^2).
    """
    s = 0.0
    while i >= 0 or j >= 0:
        k = max(i, j)
        s = whiten_dof(m, d, k, s)
        i, j = m.dof_parentid[i] if i == k else i, m.dof_parentid[j] if j == k else j
    return s


@kernel
def dof_diagonal(m, d, i):
    """Returns (M^-1)_ii, the diagonal A of a row with the single entry 1 or -1."""
    clear_chain_entries(m, d, i, -1)
    d.exact.row[i] = 1.0
    return whitened_square(m, d, i, -1)


@kernel
def general_diagonal(m, d, k, i, j):
    """Returns J M^-1 J^T of general row k, whose dofs are among i, j and their ancestors."""
    clear_chain_entries(m, d, i, j)
    o = d.genrow_dofadr[k]
    for e in range(o, o + d.genrow_dofnum[k]):
        d.exact.row[d.genrow_dof[e]] = d.genrow_J[e]
    return whitened_square(m, d, i, j)


@kernel
def chosen_diagonal(m, d, k, estimate, i, j):
    """Returns J M^-1 J^T of general row k: with the flag `diagexact` `general_diagonal`, else the estimate."""
    return general_diagonal(m, d, k, i, j) if wants_exact(m) else estimate


@kernel
def next_above(m, d, o, n, k):
    """Returns the last dof before k among the n dofs at o and their ancestors; -1: none."""
    best = -1
    for e in range(o, o + n):
        i = d.genrow_dof[e]
        while i >= k:
            i = m.dof_parentid[i]
        best = i if i > best else best
    return best


@kernel
def row_diagonal(m, d, k):
    """Returns J M^-1 J^T of general row k, whose dofs may be on any number of branches.

    Reads:  qLD (nC,), qLDiagInv (nv,).   Writes: exact.row (nv,).
    """
    o, n, s = d.genrow_dofadr[k], d.genrow_dofnum[k], 0.0
    i = next_above(m, d, o, n, m.nv)
    while i >= 0:
        d.exact.row[i] = 0.0
        i = next_above(m, d, o, n, i)
    for e in range(o, o + n):
        d.exact.row[d.genrow_dof[e]] = d.genrow_J[e]
    i = next_above(m, d, o, n, m.nv)
    while i >= 0:
        s = whiten_dof(m, d, i, s)
        i = next_above(m, d, o, n, i)
    return s


@kernel
def contact_entry(d, i, u, r):
    """Returns u . (velocity of the point at arm r from the com of the tree) for a unit velocity of dof i."""
    return dot(u, d.cdof[i].linear + cross(d.cdof[i].angular, r))


@kernel
def contact_diagonal(m, d, k, b1, b2, edge):
    """Returns J M^-1 J^T of contact slot k of bodies b1, b2 along its normal; for edge = 1 along n + mu_1 t_1."""
    c = d.contact[k]
    last1, last2, u = m.body_lastdof[b1], m.body_lastdof[b2], c.frame.rows[0]
    if edge:
        u = fma(c.friction[0], c.frame.rows[1], u)
    p = c.pos
    r1 = p - d.subtree_com[m.body_rootid[b1]]
    r2 = p - d.subtree_com[m.body_rootid[b2]]
    clear_chain_entries(m, d, last1, last2)
    i, j, down = last1, last2, -1.0 * u
    while j >= 0:
        d.exact.row[j] = contact_entry(d, j, u, r2)
        j = m.dof_parentid[j]
    while i >= 0:
        # a dof above both bodies cancels: it moves both at the contact point equally
        d.exact.row[i] = d.exact.row[i] + contact_entry(d, i, down, r1)
        i = m.dof_parentid[i]
    return whitened_square(m, d, last1, last2)
