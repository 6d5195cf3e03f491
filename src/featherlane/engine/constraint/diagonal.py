"""Computes the exact diagonal A = J M^-1 J^T of a row instead of the estimate from qpos0: the flag `diagexact`.

With M = L^T D L it is the squared length of y = D^-1/2 L^-T J^T, nonzero only at the dofs of J and their ancestors.
These n dofs are listed in `exact.dof`, descending; `exact.row` holds J there, then L^-T J^T (sparse/half_solve.py).
`metric_factor` returns (L with D on its diagonal, 1 / D): of M, or of the metric of the integrator `discrete`.
`list_pair`, `list_row` list the dofs of two chains, of a row (chains.py); `fill_row` copies the row's entries.
Source: MuJoCo's documentation, "Computation", sec. "Diagonal approximation"; Featherstone, RBDA, sec. 6.5.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.chains import fill_row, list_pair, list_row
from featherlane.engine.dynamics.inertia.joint_space import inertia_rows
from featherlane.engine.dynamics.inertia.metric import metric_factor
from featherlane.engine.dynamics.sparse.half_solve import SparseRows, half_solve_rows


@kernel
def wants_exact(m):
    """Returns whether the flag `diagexact` is set: A of each row is J M^-1 J^T in the current state."""
    return m.opt_enableflags & ENABLE_DIAGEXACT != 0


@kernel
def list_chains(m, d, i, j):
    """Lists dofs i and j (-1: none) and their ancestors, descending, with row entries 0; returns their number.

    exact.position[dof] <- the position of a listed dof in the list.
    """
    for c in range(m.nv):
        d.exact.position[c] = 0  # until the list is complete, `list_pair` uses exact.position for its marks
    n = list_pair(m, d.exact.dof, d.exact.position, i, j, start=0)
    for p in range(n):
        d.exact.position[d.exact.dof[p]] = p
        d.exact.row[p] = 0.0
    return n


@kernel
def whitened_square(m, d, n):
    """Returns J M^-1 J^T of the row in `exact.row`, which has n dofs: the sum of y_k^2 = x_k^2 / D_k with x = L^-T J^T.

    Reads:  the factor of `metric_factor`.   Writes: exact.row (nv,).   Cost: O(depth^2).
    """
    LD, inverse_D = metric_factor(m, d)
    # one row, of n entries from exact.row[0] on, at the dofs exact.dof[0 ..]; position: position of each dof in this
    # list
    block = SparseRows(y=d.exact.row, first=0, dofs=d.exact.dof, start=0, n=n, position=d.exact.position)
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
def exact_row_diagonal(m, d, k):
    """Returns J M^-1 J^T of general row k.

    Reads:  row_*, the factor of `metric_factor`.   Writes: exact.*.
    """
    for i in range(m.nv):
        d.exact.position[i] = 0  # marks, which `fill_row` replaces by the positions
    n = list_row(m, d, k, d.exact.dof, d.exact.position, start=0)
    fill_row(d, k, d.exact.row, 0, d.exact.dof, d.exact.position, start=0, n=n)
    return whitened_square(m, d, n)


@kernel
def chosen_diagonal(m, d, k, estimate):
    """Returns A of general row k, whose Jacobian is stored: J M^-1 J^T with the flag `diagexact`, else the estimate."""
    return exact_row_diagonal(m, d, k) if wants_exact(m) else estimate


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
    last1, last2 = m.body_lastdof[b1], m.body_lastdof[b2]
    u = c.frame.rows[0]
    if edge:
        u = fma(c.friction[0], c.frame.rows[1], u)
    p = c.pos
    # arms from the coms of the bodies' trees, to which cdof refers
    r1 = p - d.subtree_com[m.body_rootid[b1]]
    r2 = p - d.subtree_com[m.body_rootid[b2]]
    n = list_chains(m, d, last1, last2)
    # J_i = u . (velocity of body 2 at the contact - that of body 1) per unit velocity of dof i.  If dof i is above both
    # bodies, it moves both equally there, and its two terms cancel
    i, j = last1, last2  # dofs of bodies 1 and 2, from the last one to the root
    minus_u = -1.0 * u
    while j >= 0:
        d.exact.row[d.exact.position[j]] = contact_entry(d, j, u, r2)
        j = m.dof_parentid[j]
    while i >= 0:
        position = d.exact.position[i]
        d.exact.row[position] = d.exact.row[position] + contact_entry(d, i, minus_u, r1)
        i = m.dof_parentid[i]
    return whitened_square(m, d, n)
