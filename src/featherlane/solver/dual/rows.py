"""The rows of the dual problem, block by block, in coordinates in which M is the identity.

With M = L^T D L, a row of the Jacobian becomes the row y = J L^-1 D^-1/2, so that the matrix of the dual problem is

    A + R = Y Y^T + R,      and  J M^-1 J^T f = Y z  with  z = Y^T f.

A dof's row of L^-T has entries only at its ancestors: y has entries at the dofs of J and at their ancestors.
So a sweep over all rows costs two products per entry of Y, and only the diagonal blocks of A are formed.
Layout: block q has n = dofnum[q] dofs, dual.dof[dofadr[q] ...], descending, so that ancestors follow.  Its row c has n
entries, dual.Y[rowadr[q] + c n ...], one for each of these dofs.  dual.place[i] is the position p of dof i among them.
`inertia_rows` describes the pattern of L.  body_lastdof[b] is the last dof that moves body b.
`start` and `row` are the next free positions in dual.dof and dual.Y, at which a block is built.
A block is a scalar row or a contact, whose `dim` rows are its basis: con_basis[k] for normal and tangents,
con_basis[TURN, k] for its turns (rows.py).  The edges of a pyramid are sums and differences of those.
Scalar rows: entry e of a row is row_J[e] at dof row_dof[e]; row k has row_dofnum[k] of them, from row_dofadr[k] on.
Whitening: `metric_factor` returns (LD, 1 / D); primal.search holds D^-1/2.  SparseRows describes the rows to whiten by
(values, address of the first one, dofs, start, n, place), `place_dofs` sets their `place`, and `half_solve_rows`
replaces `count` of them by J L^-1 D^-1/2 in place; with scaled=0 it would leave out D^-1/2.
`in_forces` checks whether the main solver has forces as unknowns (PGS), so it needs the blocks of all rows.
Source: MuJoCo documentation, Computation, "Dual problem" (efc_Y); Featherstone, RBDA, sec. 6.5 (the pattern of L).
"""

from __future__ import annotations

from featherlane.prelude import *
from featherlane.dynamics.inertia.joint_space import inertia_rows
from featherlane.dynamics.inertia.metric import metric_factor
from featherlane.dynamics.sparse.half_solve import SparseRows, half_solve_rows, place_dofs
from featherlane.lanes.worlds import count_active_worlds
from featherlane.model.solver import in_forces
from featherlane.model.status import warn_full
from featherlane.solver.rows.rows import TURN, other_arm, pushed_body_arm

DUAL_LIMIT = 1 << 24  # entries of the rows of all contacts, and of all general rows

# marks of a dof while a block is built: it moves the first body, the other one, or both alike
FIRST, OTHER, BOTH = 1, 2, 3


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
def block_triangle_index(c, e):
    """Returns the place of entry (c, e) of a block's symmetric matrix in its packed lower triangle."""
    return c * (c + 1) // 2 + e if c >= e else e * (e + 1) // 2 + c


@kernel
def contact_block(d, k):
    """Returns the block of contact slot k."""
    return d.nrow[0] + k


# ---- dofs of a block -----------------------------------------------------------------------------------------------
@kernel
def append_block_dofs(m, d, i, mark, start, n):
    """Appends dof i and its ancestors to the dofs of a block, up to one that the block already has.

    mark: stored in dual.mark of each (FIRST, OTHER).  start: first position of the block in dual.dof.
    n: number of its dofs so far.  Returns the new number.
    """
    while i >= 0 and d.dual.mark[i] == 0:
        d.dual.mark[i] = mark
        d.dual.dof[start + n] = i
        n += 1
        i = m.dof_parentid[i]
    return n


@kernel
def sort_descending(dofs, start, n):
    """Sorts n dofs of a list, from dofs[start] on, by insertion.

    It moves little: a chain descends already, and so do two chains, unless they share a tree.
    """
    for at in range(start + 1, start + n):
        i, place = dofs[at], at
        while place > start and dofs[place - 1] < i:
            dofs[place] = dofs[place - 1]
            place -= 1
        dofs[place] = i


@kernel
def append_second_chain(m, d, i, mark, start, n):
    """Appends dof i and its ancestors, of the second body of a contact; arguments as in `append_block_dofs`.

    Dofs that are already in the block move both bodies alike: their mark becomes BOTH.  Returns the number of dofs.
    """
    n = append_block_dofs(m, d, i, mark, start, n)
    while i >= 0:
        if d.dual.mark[i] != mark:  # the mark of the first chain
            d.dual.mark[i] = BOTH
        i = m.dof_parentid[i]
    return n


@kernel
def list_contact_dofs(m, d, k, start):
    """Lists the dofs that move the bodies of contact k in dual.dof, and sets their dual.mark; returns their number."""
    c = d.contact[k]
    # last dofs that move the pushed body (mark FIRST) and the other one (mark OTHER); -1: the other body does not move
    i_pushed, i_other = m.body_lastdof[c.body[0]], -1
    if c.body[1] > 0:
        i_other = m.body_lastdof[c.body[1]]
    n = 0
    if i_other > i_pushed:
        # the chain of the later dof first, so that the list descends
        n = append_block_dofs(m, d, i_other, OTHER, start, n)
        n = append_second_chain(m, d, i_pushed, FIRST, start, n)
    else:
        n = append_block_dofs(m, d, i_pushed, FIRST, start, n)
        n = append_second_chain(m, d, i_other, OTHER, start, n)
    return n


@kernel
def clear_dof_marks(d, start, n):
    """Clears dual.mark of the n dofs of a block."""
    for p in range(start, start + n):
        d.dual.mark[d.dual.dof[p]] = 0


# ---- entries -------------------------------------------------------------------------------------------------------
@kernel
def relative_velocity_of_dof(d, k, i):
    """Returns the velocity per unit of dof i, at contact k's point, of that one of its bodies that dof i moves."""
    first = d.dual.mark[i] == FIRST
    r = pushed_body_arm(d, k) if first else other_arm(d, k)  # from the com of the body's tree to the contact point
    return d.cdof[i].linear + cross(d.cdof[i].angular, r)


@kernel
def store_contact_column(d, k, i, e, n, dim):
    """Computes the column of dof i in contact k's Jacobian: row c is dual.Y[e + c n], for the `dim` rows of its basis.

    A dof that moves both bodies alike has the column 0.
    """
    for c in range(dim):
        d.dual.Y[e + c * n] = 0.0
    if d.dual.mark[i] != BOTH:
        sign = 1.0  # velocity of the pushed body minus that of the other one
        if d.dual.mark[i] != FIRST:
            sign = -sign
        x = d.con_basis[k] @ relative_velocity_of_dof(d, k, i)  # along normal and tangents
        d.dual.Y[e] = sign * x[0]
        if dim > 1:
            d.dual.Y[e + n], d.dual.Y[e + 2 * n] = sign * x[1], sign * x[2]
        if dim > 3:
            x = d.con_basis[TURN, k] @ d.cdof[i].angular  # along the turns, of which dimension 4 has one
            d.dual.Y[e + 3 * n] = sign * x[0]
        if dim > 4:
            d.dual.Y[e + 4 * n], d.dual.Y[e + 5 * n] = sign * x[1], sign * x[2]


@kernel
def whiten_block(m, d, start, n, row, dim):
    """Whitens all `dim` rows of a block, from dual.Y[row] on, with n dofs, dual.dof[start ...].

    Three rows at once, as L is then read once for them.
    Reads:  primal.search = D^-1/2.
    Writes: dual.Y, dual.place.
    """
    rows, LD = inertia_rows(m), metric_factor(m, d)[0]
    place_dofs(SparseRows(d.dual.Y, row, d.dual.dof, start, n, d.dual.place))
    c = 0
    while c + 3 <= dim:
        block = SparseRows(d.dual.Y, row + c * n, d.dual.dof, start, n, d.dual.place)
        half_solve_rows(rows, LD, d.primal.search, block, scaled=1, count=3)
        c += 3
    while c < dim:
        block = SparseRows(d.dual.Y, row + c * n, d.dual.dof, start, n, d.dual.place)
        half_solve_rows(rows, LD, d.primal.search, block, scaled=1, count=1)
        c += 1


@kernel
def store_block_matrix(d, q, dim):
    """Computes dual.A of block q = Y Y^T of its `dim` rows, as a packed lower triangle."""
    n, row = d.dual.dofnum[q], d.dual.rowadr[q]
    for c in range(dim):
        for e in range(c + 1):
            s = 0.0
            for p in range(n):
                s = fma(d.dual.Y[row + c * n + p], d.dual.Y[row + e * n + p], s)
            d.dual.A[q, block_triangle_index(c, e)] = s


@kernel
def store_block_addresses(d, q, start, n, row):
    """Sets block q: its n dofs begin at start, its rows at row."""
    d.dual.dofadr[q] = start
    d.dual.dofnum[q] = n
    d.dual.rowadr[q] = row


@kernel
def has_room_for_block(m, d, start, row):
    """Checks whether the capacity suffices for one more block, whatever its dofs."""
    return start + m.nv <= d.ndualdofmax and row + 6 * m.nv <= d.ndualYmax  # a block has at most 6 rows


@kernel
def build_row_block(m, d, k, start, row):
    """Builds the block of scalar row k; returns its number of dofs."""
    first, n = d.row_dofadr[k], 0
    # from the last dof to the first: the list is then almost descending.  Any mark serves: it only prevents repetitions
    for e in range(first + d.row_dofnum[k] - 1, first - 1, -1):
        n = append_block_dofs(m, d, d.row_dof[e], FIRST, start, n)
    clear_dof_marks(d, start, n)
    sort_descending(d.dual.dof, start, n)
    store_block_addresses(d, k, start, n, row)
    # row of J, 0 at ancestors without an entry
    for p in range(n):
        d.dual.Y[row + p] = 0.0
        d.dual.place[d.dual.dof[start + p]] = p
    for e in range(first, first + d.row_dofnum[k]):
        d.dual.Y[row + d.dual.place[d.row_dof[e]]] = d.row_J[e]
    whiten_block(m, d, start, n, row, dim=1)
    store_block_matrix(d, k, dim=1)
    return n


@kernel
def build_contact_block(m, d, k, start, row):
    """Builds the block of contact k; returns its number of dofs."""
    q, n, dim = contact_block(d, k), list_contact_dofs(m, d, k, start), d.con_dim[k]
    sort_descending(d.dual.dof, start, n)
    store_block_addresses(d, q, start, n, row)
    for p in range(n):
        store_contact_column(d, k, d.dual.dof[start + p], row + p, n, dim)
    clear_dof_marks(d, start, n)  # the columns have read the marks
    whiten_block(m, d, start, n, row, dim)
    store_block_matrix(d, q, dim)
    return n


@kernel
def store_empty_block(d, q, start, row):
    """Sets block q empty, for a row with a fixed force; returns its number of dofs, 0."""
    store_block_addresses(d, q, start, n=0, row=row)
    return 0


@stage
def make_blocks(m, d):
    """Builds all blocks of the dual problem, up to the first one that exceeds the capacity.

    For the no-slip solver after another solver, the blocks of rows without friction are empty.
    Reads:  qLD (nC,), qLDiagInv, cdof, all rows, con_body, con_arm, con_basis.
    Writes: dual.*, dual.rowadr (ndualmax,).
    Scratch: primal.*.
    Cost:   O(rows * depth^2).
    """
    # start, row: next free positions in dual.dof and dual.Y;  q: next block;  complete: 1 if all blocks so far fit;
    # whole: rows without friction are needed, too
    start, row, q, complete, whole = 0, 0, 0, 1, in_forces(m)
    inverse = metric_factor(m, d)[1]  # 1 / D
    for i in range(m.nv):
        d.dual.mark[i] = 0
        d.primal.search[i] = sqrt(inverse[i])  # D^-1/2, which whitening reads
    for k in range(d.nrow[0]):
        complete = 1 if complete == 1 and has_room_for_block(m, d, start, row) else 0
        if complete:
            if whole or d.row_type[k] in (FRICTION_DOF, FRICTION_TENDON):
                n = build_row_block(m, d, k, start, row)
            else:
                n = store_empty_block(d, q, start, row)
            start, row, q = start + n, row + n, q + 1
    for k in range(d.ncon_slot[0]):
        complete = 1 if complete == 1 and has_room_for_block(m, d, start, row) else 0
        if complete:
            if whole or d.con_dim[k] > 1:
                n = build_contact_block(m, d, k, start, row)
            else:
                n = store_empty_block(d, q, start, row)
            start, row, q = start + n, row + n * d.con_dim[k], q + 1
    d.dual.ndual[0] = q


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
        warn_full(d, ROWS_FULL)
