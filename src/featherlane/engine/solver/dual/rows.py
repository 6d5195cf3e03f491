"""The rows of the dual problem, block by block, in coordinates in which M is the identity.

With M = L^T D L, a row of the Jacobian becomes the row y = J L^-1 D^-1/2, so that the matrix of the dual problem is

    A + R = Y Y^T + R,      and  J M^-1 J^T f = Y z  with  z = Y^T f.

A dof's row of L^-T has entries only at its ancestors: y has entries at the dofs of J and at their ancestors.
So a sweep over all rows costs two products per entry of Y, and only the diagonal blocks of A are formed.
Layout: block q has n = dofnum[q] dofs, dual.dof[dofadr[q] ...], descending, so that ancestors follow.  Its row c has n
entries, dual.Y[rowadr[q] + c n ...], one for each of these dofs.  dual.position[i] is the position p of dof i among
them.  `inertia_rows` describes the pattern of L.  body_lastdof[b] is the last dof that moves body b.
`dof_start` and `row_start` are the next free positions in dual.dof and dual.Y, at which a block is built.
dual.mark[i] is the body of a contact that dof i moves: FIRST the pushed one, SECOND the other one, or BOTH (chains.py).
A block is a scalar row or a contact, whose `dim` rows are its basis: con_basis[k] for normal and tangents,
con_basis[ANGULAR, k] for its rotation axes (rows.py).  The edges of a pyramid are sums and differences of those.
Whitening: `metric_factor` returns (LD, 1 / D); primal.search holds D^-1/2.  SparseRows describes the rows to whiten by
(values, address of the first one, dofs, start, n, position), `store_dof_positions` sets their `position`, and
`half_solve_rows` replaces `count` of them by J L^-1 D^-1/2 in place; with scaled=0 it would leave out D^-1/2.
`in_forces` checks whether the main solver has forces as unknowns (PGS), so it needs the blocks of all rows.
Source: MuJoCo documentation, Computation, "Dual problem" (efc_Y); Featherstone, RBDA, sec. 6.5 (the pattern of L).
"""

from __future__ import annotations

from featherlane.engine.prelude import *
from featherlane.engine.constraint.chains import BOTH, FIRST, clear_marks, fill_row, list_pair, list_row
from featherlane.engine.dynamics.inertia.joint_space import inertia_rows
from featherlane.engine.dynamics.inertia.metric import metric_factor
from featherlane.engine.dynamics.sparse.half_solve import SparseRows, half_solve_rows, store_dof_positions
from featherlane.engine.dynamics.sparse.packed_factor import triangle_index
from featherlane.engine.lanes.worlds import count_active_worlds
from featherlane.engine.model.solver import in_forces
from featherlane.engine.model.status import warn_full
from featherlane.engine.solver.rows.rows import ANGULAR, other_arm, pushed_body_arm

DUAL_LIMIT = 1 << 24  # entries of the rows of all contacts, and of all general rows


def dual_capacity(model, ncon: int, rows: dict[str, int], given: int) -> dict[str, int]:
    """Returns sizes ndualmax, ndualdofmax, ndualYmax of a tile, for all rows that can exist, contacts up to DUAL_LIMIT.

    A one-dof row has the dofs from the root to its own, a contact those of two such chains, a general row any.  A part
    of a split tile has fewer contacts, but all rows of the joints, so these have separate capacity.

    Args:
        model: the model.
        ncon: contact slots.
        rows: capacities of the other rows, see `row_capacity`.
        given: user-defined contacts of one world, of any dimension.
    """
    nv, chain = int(model.nv), int(max(model.chain_rownnz, default=1))
    dims = [*model.geom_condim, *model.pair_dim, 6 if given else 1]
    joint = rows["ndofrowmax"] * chain + min((rows["nrowmax"] - rows["ndofrowmax"]) * nv, DUAL_LIMIT) + nv + 1
    contacts = ncon * min(2 * chain, nv)
    return {
        "ndualmax": rows["nrowmax"] + ncon,
        "ndualdofmax": joint + min(contacts, DUAL_LIMIT),
        "ndualYmax": joint + min(max(dims) * contacts, DUAL_LIMIT) + 5 * nv,
    }


@kernel
def contact_block(d, k):
    """Returns the block of contact slot k."""
    return d.nrow[0] + k


# ---- entries -------------------------------------------------------------------------------------------------------
@kernel
def store_contact_column(d, k, i, e, n, dim):
    """Stores the column of dof i in contact k's Jacobian: row c in dual.Y[e + c n], for the `dim` rows of its basis.

    n: number of dofs of the block.  A dof that moves both bodies has the column 0.
    """
    for c in range(dim):
        d.dual.Y[e + c * n] = 0.0
    if d.dual.mark[i] != BOTH:
        # the other body's velocity is subtracted: sign -1.  r: contact point from the com of the body's tree
        sign, r = (1.0, pushed_body_arm(d, k)) if d.dual.mark[i] == FIRST else (-1.0, other_arm(d, k))
        x = d.con_basis[k] @ (d.cdof[i].linear + cross(d.cdof[i].angular, r))  # along normal and tangents
        d.dual.Y[e] = sign * x[0]
        if dim > 1:
            d.dual.Y[e + n], d.dual.Y[e + 2 * n] = sign * x[1], sign * x[2]
        if dim > 3:
            x = d.con_basis[ANGULAR, k] @ d.cdof[i].angular  # about the rotation axes, of which dimension 4 has one
            d.dual.Y[e + 3 * n] = sign * x[0]
        if dim > 4:
            d.dual.Y[e + 4 * n], d.dual.Y[e + 5 * n] = sign * x[1], sign * x[2]


@kernel
def whiten_block(m, d, dof_start, n, row_start, dim):
    """Y <- J L^-1 D^-1/2 of the `dim` rows of a block, from dual.Y[row_start] on, with n dofs, dual.dof[dof_start ...].

    Three rows at once, as L is then read once for them.
    Reads:  primal.search = D^-1/2.
    Writes: dual.Y, dual.position.
    """
    rows = inertia_rows(m)
    LD = metric_factor(m, d)[0]
    store_dof_positions(SparseRows(d.dual.Y, row_start, d.dual.dof, dof_start, n, d.dual.position))
    c = 0
    while c + 3 <= dim:
        block = SparseRows(d.dual.Y, row_start + c * n, d.dual.dof, dof_start, n, d.dual.position)
        half_solve_rows(rows, LD, d.primal.search, block, scaled=1, count=3)
        c += 3
    while c < dim:
        block = SparseRows(d.dual.Y, row_start + c * n, d.dual.dof, dof_start, n, d.dual.position)
        half_solve_rows(rows, LD, d.primal.search, block, scaled=1, count=1)
        c += 1


@kernel
def store_block_matrix(d, q, dim):
    """Computes dual.A of block q = Y Y^T of its `dim` rows, as a packed lower triangle."""
    n, row_start = d.dual.dofnum[q], d.dual.rowadr[q]
    for c in range(dim):
        for e in range(c + 1):
            s = 0.0
            for p in range(n):
                s = fma(d.dual.Y[row_start + c * n + p], d.dual.Y[row_start + e * n + p], s)
            d.dual.A[q, triangle_index(c, e)] = s


@kernel
def store_block_addresses(d, q, dof_start, n, row_start):
    """Stores where block q is: its n dofs in dual.dof from dof_start on, its rows in dual.Y from row_start on."""
    d.dual.dofadr[q] = dof_start
    d.dual.dofnum[q] = n
    d.dual.rowadr[q] = row_start


@kernel
def build_row_block(m, d, k, dof_start, row_start):
    """Builds the block of scalar row k; returns its number of dofs."""
    n = list_row(m, d, k, d.dual.dof, d.dual.mark, dof_start)
    store_block_addresses(d, k, dof_start, n, row_start)
    fill_row(d, k, d.dual.Y, row_start, d.dual.dof, d.dual.position, dof_start, n)
    whiten_block(m, d, dof_start, n, row_start, dim=1)
    store_block_matrix(d, k, dim=1)
    return n


@kernel
def build_contact_block(m, d, k, dof_start, row_start):
    """Computes Y = J L^-1 D^-1/2 and A = Y Y^T of the block of contact k; returns its number of dofs."""
    c = d.contact[k]
    q = contact_block(d, k)
    dim = d.con_dim[k]
    # the last dof of body 0, which stands for a body that does not move, is -1
    n = list_pair(m, d.dual.dof, d.dual.mark, m.body_lastdof[c.body[0]], m.body_lastdof[c.body[1]], dof_start)
    store_block_addresses(d, q, dof_start, n, row_start)
    for p in range(n):
        store_contact_column(d, k, d.dual.dof[dof_start + p], row_start + p, n, dim)
    clear_marks(d.dual.dof, d.dual.mark, dof_start, n)  # the columns have read the marks
    whiten_block(m, d, dof_start, n, row_start, dim)
    store_block_matrix(d, q, dim)
    return n


@stage
def make_blocks(m, d):
    """Builds all blocks of the dual problem, up to the first one that exceeds the capacity.

    For the no-slip solver after another solver, the blocks of rows without friction are empty.
    Reads:  qLD (nC,), qLDiagInv, cdof, all rows, con_body, con_arm, con_basis.
    Writes: dual.*, dual.rowadr (ndualmax,).
    Scratch: primal.*.
    Cost:   O(rows * depth^2).
    """
    dof_start, row_start = 0, 0  # next free positions in dual.dof and dual.Y
    all_rows = in_forces(m)  # else only the no-slip solver reads blocks: those of rows with friction
    inverse = metric_factor(m, d)[1]  # 1 / D
    d.dual.ndual[0] = 0
    for i in range(m.nv):
        d.dual.mark[i] = 0
        d.primal.search[i] = sqrt(inverse[i])  # D^-1/2, which whitening reads
    for q in range(d.nrow[0] + d.ncon_slot[0]):
        # a block has at most nv dofs and 6 rows
        if dof_start + m.nv > d.ndualdofmax or row_start + 6 * m.nv > d.ndualYmax:
            break
        if q < d.nrow[0]:
            dim = 1
            needed = all_rows or d.row_type[q] in (FRICTION_DOF, FRICTION_TENDON)
        else:
            dim = d.con_dim[q - d.nrow[0]]
            needed = all_rows or dim > 1  # with friction
        n = 0
        if not needed:
            store_block_addresses(d, q, dof_start, n=0, row_start=row_start)
        elif q < d.nrow[0]:
            n = build_row_block(m, d, q, dof_start, row_start)
        else:
            n = build_contact_block(m, d, q - d.nrow[0], dof_start, row_start)
        dof_start = dof_start + n
        row_start = row_start + n * dim
        d.dual.ndual[0] = q + 1


@kernel
def all_fit(d):
    """Checks whether all blocks fit."""
    return d.dual.ndual[0] == d.nrow[0] + d.ncon_slot[0]


@kernel
def report_full_blocks(d):
    """Reports that blocks do not fit: splits a tile; a single world omits its last ones and counts that."""
    if count_active_worlds(d) > 1:
        d.con_overflow[0] = 1
    else:
        warn_full(d, ROWS_FULL, d.active[0] > 0.0)
