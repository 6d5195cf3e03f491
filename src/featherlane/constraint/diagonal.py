"""Computes the exact diagonal A = J M^-1 J^T of a row instead of the estimate from qpos0: the flag `diagexact`.

With M = L^T D L it is the squared length of y = D^-1/2 L^-T J^T, nonzero only at the dofs of J and their ancestors.
These n dofs are listed in `exact.dof`, descending; `exact.row` holds J there, then L^-T J^T (sparse/half_solve.py).
`metric_factor` returns (L with D on its diagonal, 1 / D): of M, or of the metric of the integrator `discrete`.
General row k has the entries row_J at the dofs row_dof, row_dofnum[k] of them from row_dofadr[k] on.
Source: MuJoCo's documentation, "Computation", sec. "Diagonal approximation"; Featherstone, RBDA, sec. 6.5.
"""

from featherlane.prelude import *
from featherlane.constraint.general import row_entries
from featherlane.dynamics.inertia.joint_space import inertia_rows
from featherlane.dynamics.inertia.metric import metric_factor
from featherlane.dynamics.sparse.half_solve import SparseRows, half_solve_rows


@kernel
def wants_exact(m):
    """Returns whether the diagonal is recomputed in each state."""
    return m.opt_enableflags & ENABLE_DIAGEXACT != 0


@kernel
def append_entry(d, n, i):
    """Appends dof i to the n dofs of the row, with the entry 0; returns their new number."""
    d.exact.dof[n], d.exact.place[i], d.exact.row[n] = i, n, 0.0
    return n + 1


@kernel
def list_chains(m, d, i, j):
    """Lists dofs i and j (-1: none) and their ancestors, descending, with row entries 0; returns their number."""
    n = 0
    while i >= 0 or j >= 0:
        # i, j: next dof of each chain, -1 after the root
        last = max(i, j)  # a parent has a smaller index: descending order visits common ancestors once
        n = append_entry(d, n, last)
        i, j = m.dof_parentid[i] if i == last else i, m.dof_parentid[j] if j == last else j
    return n


@kernel
def set_general_entries(d, k):
    """Sets the row's entries to those of general row k, whose dofs are listed."""
    for e in row_entries(d, k):
        d.exact.row[d.exact.place[d.row_dof[e]]] = d.row_J[e]


@kernel
def whitened_square(m, d, n):
    """Returns J M^-1 J^T of the row in `exact.row`, which has n dofs: the sum of y_k^2 = x_k^2 / D_k with x = L^-T J^T.

    Reads:  qLD (nC,), qLDiagInv (nv,).   Writes: exact.row (nv,).   Cost: O(depth^2).
    """
    LD, inverse_D = metric_factor(m, d)
    # one row, of n entries from exact.row[0] on, at the dofs exact.dof[0 ..]; place: position of each dof in this list
    block = SparseRows(y=d.exact.row, first=0, dofs=d.exact.dof, start=0, n=n, place=d.exact.place)
    # exact.row = x = L^-T J^T;  scaled=0: without the factor D^-1/2;  count: number of rows
    half_solve_rows(inertia_rows(m), LD, inverse_D, block, scaled=0, count=1)
    squares = 0.0
    for p in range(n):
        squares = fma(d.exact.row[p] * inverse_D[d.exact.dof[p]], d.exact.row[p], squares)
    return squares


@kernel
def exact_dof_diagonal(m, d, i):
    """Returns (M^-1)_ii, the diagonal A of a row with the single entry 1 or -1.  Writes: exact.*."""
    n = list_chains(m, d, i, j=-1)  # one chain only
    d.exact.row[0] = 1.0
    return whitened_square(m, d, n)


@kernel
def exact_general_diagonal(m, d, k, i, j):
    """Returns J M^-1 J^T of general row k, whose dofs are among i, j and their ancestors; -1: none.

    Reads: row_*, qLD, qLDiagInv.   Writes: exact.*.
    """
    n = list_chains(m, d, i, j)
    set_general_entries(d, k)
    return whitened_square(m, d, n)


@kernel
def chosen_diagonal(m, d, k, estimate, i, j):
    """Returns A of general row k, whose Jacobian is stored: J M^-1 J^T with the flag `diagexact`, else the estimate.

    i, j: the dofs of the row are among these and their ancestors; -1: none.
    """
    return exact_general_diagonal(m, d, k, i, j) if wants_exact(m) else estimate


@kernel
def next_above(m, d, first, count, end):
    """Returns the largest dof below `end` among the dofs row_dof[first ..], `count` of them, and their ancestors.

    -1: none.
    """
    last = -1
    for e in range(first, first + count):  # i: the nearest ancestor below `end`, or -1
        i = d.row_dof[e]
        while i >= end:
            i = m.dof_parentid[i]
        last = i if i > last else last
    return last


@kernel
def exact_row_diagonal(m, d, k):
    """Returns J M^-1 J^T of general row k, whose dofs may be on any number of branches.

    Reads:  qLD (nC,), qLDiagInv (nv,).   Writes: exact.*.
    """
    first, count, n = d.row_dofadr[k], d.row_dofnum[k], 0
    # all dofs of the row and their ancestors, descending from the last one
    i = next_above(m, d, first, count, m.nv)
    while i >= 0:
        n = append_entry(d, n, i)
        i = next_above(m, d, first, count, i)
    set_general_entries(d, k)
    return whitened_square(m, d, n)


@kernel
def contact_entry(d, i, u, r):
    """Returns u . (S_lin + S_rot x r), the Jacobian entry of dof i along u at arm r from the com of its tree."""
    return dot(u, d.cdof[i].linear + cross(d.cdof[i].angular, r))


@kernel
def exact_contact_diagonal(m, d, k, b1, b2, edge):
    """Returns J M^-1 J^T of contact slot k between bodies b1 and b2: of the row u . (v_2 - v_1) at the contact point.

    edge: 0: u is the normal n; 1: u is the edge n + mu_1 t_1 of a pyramid.
    Writes: exact.*.
    """
    c = d.contact[k]
    last1, last2, u = m.body_lastdof[b1], m.body_lastdof[b2], c.frame.rows[0]
    if edge:
        u = fma(c.friction[0], c.frame.rows[1], u)
    p = c.pos
    # arms from the coms of the bodies' trees, to which cdof refers
    r1 = p - d.subtree_com[m.body_rootid[b1]]
    r2 = p - d.subtree_com[m.body_rootid[b2]]
    n = list_chains(m, d, last1, last2)
    # J_i = u . (velocity of body 2 at the contact - that of body 1) per unit velocity of dof i; a dof above both bodies
    # cancels: it moves both at the contact point equally
    i, j, minus_u = last1, last2, -1.0 * u  # dofs of bodies 1 and 2, from the last one to the root
    while j >= 0:
        d.exact.row[d.exact.place[j]] = contact_entry(d, j, u, r2)
        j = m.dof_parentid[j]
    while i >= 0:
        place = d.exact.place[i]
        d.exact.row[place] = d.exact.row[place] + contact_entry(d, i, minus_u, r1)
        i = m.dof_parentid[i]
    return whitened_square(m, d, n)
