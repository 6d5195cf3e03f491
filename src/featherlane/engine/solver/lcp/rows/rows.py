"""The rows of a tile's LCP, appended one by one: a row of Y, its bounds, its right-hand side.

A row of the Jacobian has entries at some dofs.  Whitened, y = J L^-1 D^-1/2 (metric.py) also has entries at their
ancestors.  Rows of one joint, contact or link form a group that shares its columns.  To append a group:

    start = first_free_column(d)                  # index in lcp.col of the first free column
    n = list_pair_columns(m, d, b1, b2, start)    # dofs that move one of the bodies b1, b2, descending
    if n > 0 and reserve_rows(m, d, rows):        # a tile that is full is split
        for each row:
            d.primal.search[i] = J_i at each column  # d.dual.mark[i]: FIRST, SECOND or BOTH (moves both bodies alike)
            row = append_jacobian_row(m, d, start, n)  # row number r, velocity J v, acceleration J Mh^-1 f
            set_row(m, d, row, present, c, cfm, (lo, hi))
    clear_column_marks(d, start, n)

Entries of J are 0 in worlds that lack the row (`where(present, J_i, 0.0)`).  c is the target value of J v at
the end of the step [m/s, rad/s], and cfm [m/(s N)] is the velocity per unit force.  A friction row follows its normal
row and gets its bound from `set_friction`.

A world that lacks a row has zeros there, including its diagonal, so that x = 0 and nothing else changes.
Symbols: r: a row;  i, j: dofs;  columns start to start + n - 1 of a row are the dofs lcp.col[start], ...;
    d.primal.search: J of the next row, by dof;  d.dual.mark: the bodies that a dof moves;  qacc_step = Mh^-1 f;
    lcp.findex: the normal row of a friction row, -1: none;  lcp.add: friction as a force;
    qH, lcp.scale: L and D^-1/2 (metric.py);  con_overflow = 1: the caller splits the tile.
    `inertia_rows(m)`: the pattern of L.  `SparseRows`: rows y with entries at the dofs of the columns.
    `store_dof_positions`: stores the position of each of these dofs among the columns in dual.position.
    `half_solve_rows`: turns the entries J in lcp.Y into y = J L^-1 D^-1/2, in place;  scaled=1: with D^-1/2;  count:
    number of rows.  It reads dual.position.
    body_lastdof: last dof of a body, or of its nearest ancestor that has dofs, -1: none.
"""

from typing import Any, NamedTuple

from featherlane.engine.prelude import *
from featherlane.engine.constraint.chains import clear_marks, list_pair
from featherlane.engine.dynamics.inertia.joint_space import inertia_rows
from featherlane.engine.dynamics.sparse.half_solve import SparseRows, half_solve_rows, store_dof_positions
from featherlane.engine.lanes.worlds import count_active_worlds
from featherlane.engine.model.status import warn_full

INFINITE = float("inf")
NO_ROW = -1  # index of an element without a row in any world
FULL = -1  # one.status before a solver has set it: some row exceeded the capacity


# ---- columns -------------------------------------------------------------------------------------------------------
@kernel
def first_free_column(d):
    """Returns the index in lcp.col of the first free column."""
    last = d.lcp.n[0] - 1
    return d.lcp.coladr[last] + d.lcp.colnum[last] if last >= 0 else 0


@kernel
def first_free_entry(d):
    """Returns the index in lcp.Y of the first free entry."""
    last = d.lcp.n[0] - 1
    return d.lcp.rowadr[last] + d.lcp.colnum[last] if last >= 0 else 0


@kernel
def has_capacity(m, d, rows):
    """Checks whether the capacity suffices for `rows` more rows, each with up to nv columns."""
    fits = d.lcp.n[0] + rows <= d.nlcp and first_free_column(d) + m.nv <= d.nlcpcol
    return fits and first_free_entry(d) + rows * m.nv <= d.nlcpY


@kernel
def list_pair_columns(m, d, first, second, start):
    """Lists the dofs that move body `first` or body `second` in lcp.col, from `start` on, descending; returns how many.

    Sets d.dual.mark of these dofs to FIRST, SECOND or BOTH.
    """
    return list_pair(m, d.lcp.col, d.dual.mark, m.body_lastdof[first], m.body_lastdof[second], start)


@kernel
def clear_column_marks(d, start, n):
    """Clears d.dual.mark of the dofs of the n columns from `start` on."""
    clear_marks(d.lcp.col, d.dual.mark, start, n)


# ---- rows ----------------------------------------------------------------------------------------------------------
class NewRow(NamedTuple):
    """A row for `set_row` to complete: its number r, velocity v = J qvel, acceleration a = J Mh^-1 f."""

    r: int
    v: Any
    a: Any


@kernel
def append_jacobian_row(m, d, start, n):
    """Appends a row with J in d.primal.search at the n columns from `start` on; `set_row` must follow.

    Its entries in lcp.Y are y = J L^-1 D^-1/2, with L in qH and lcp.scale = D^-1/2.
    Writes: lcp.coladr, lcp.colnum, lcp.rowadr, lcp.Y, lcp.diag = J Mh^-1 J^T of the row, lcp.n.   Returns a `NewRow`.
    """
    r = d.lcp.n[0]
    entry = first_free_entry(d)
    v, a, square = 0.0, 0.0, 0.0  # J qvel, J Mh^-1 f, J Mh^-1 J^T
    # J is copied to lcp.Y
    for k in range(n):
        i = d.lcp.col[start + k]
        v, a = fma(d.primal.search[i], d.qvel[i], v), fma(d.primal.search[i], d.qacc_step[i], a)
        d.lcp.Y[entry + k] = d.primal.search[i]
    block = SparseRows(y=d.lcp.Y, first=entry, dofs=d.lcp.col, start=start, n=n, position=d.dual.position)
    # a group shares its columns: its first row stores the positions of their dofs in dual.position, also for later rows
    if r == 0 or d.lcp.coladr[max(r - 1, 0)] != start or d.lcp.colnum[max(r - 1, 0)] != n:
        store_dof_positions(block)
    half_solve_rows(inertia_rows(m), d.qH, d.lcp.scale, block, scaled=1, count=1)
    # J Mh^-1 J^T = y y^T
    for k in range(n):
        square = fma(d.lcp.Y[entry + k], d.lcp.Y[entry + k], square)
    d.lcp.coladr[r] = start
    d.lcp.colnum[r] = n
    d.lcp.rowadr[r] = entry
    d.lcp.diag[r] = square
    d.lcp.n[0] = r + 1
    return NewRow(r, v, a)


@kernel
def set_row(m, d, row, present, c, cfm, bounds):
    """Sets the values of a row: b = c / h - (J v / h + J Mh^-1 f), cfm / h on the diagonal, lo <= x <= hi.

    Args:
        row: result of `append_jacobian_row`.
        present: mask of worlds that have the row.
        c: target velocity [m/s, rad/s].
        cfm: velocity per unit force [m/(s N)].
        bounds: (lo, hi) [N, N m], lo <= 0 <= hi.
    """
    h = timestep(m)
    r, v, a = row  # number, J v, J Mh^-1 f
    lo, hi = bounds
    cfm_over_h = where(present, cfm / h, 0.0)
    d.lcp.findex[r] = -1  # no friction row, unless `set_friction` follows
    d.lcp.b[r] = where(present, (c - v) / h - a, 0.0)
    d.lcp.cfm[r] = cfm_over_h
    d.lcp.diag[r] = d.lcp.diag[r] + cfm_over_h
    d.lcp.lo[r] = where(present, lo, 0.0)
    d.lcp.hi[r] = where(present, hi, 0.0)
    d.lcp.add[r] = 0.0


@kernel
def set_friction(d, r, normal, present, mu, is_force):
    """Makes row r a friction row: |x_r| <= mu |x_normal|; in worlds in which mu is a force [N, N m], |x_r| <= mu.

    normal: number of the normal row;  is_force: 1 in worlds in which mu is a force, else 0.
    lcp.hi holds the coefficient, lcp.add the force.  `set_row` must precede.
    """
    d.lcp.findex[r] = normal
    d.lcp.lo[r] = 0.0
    d.lcp.hi[r] = where(present & (is_force == 0.0), mu, 0.0)
    d.lcp.add[r] = where(present & (is_force != 0.0), mu, 0.0)


@kernel
def is_present(d, r):
    """Returns a mask of worlds in which row r can have a force."""
    return (d.lcp.hi[r] > 0.0) | (d.lcp.lo[r] < 0.0) | (d.lcp.add[r] > 0.0)


@kernel
def reserve_rows(m, d, rows):
    """Checks whether the capacity suffices for `rows` more rows; if not, reports it as `report_full_rows`."""
    fits = has_capacity(m, d, rows)
    if not fits:
        report_full_rows(d)
    return fits


@kernel
def report_full_rows(d):
    """Reports that a row does not fit: con_overflow = 1 of several worlds, so that the caller splits the tile.

    A single world omits the row.  It warns of the first such row only: one.status is FULL for later ones.
    """
    if count_active_worlds(d) > 1:
        d.con_overflow[0] = 1
    elif d.one.status[0] != FULL:
        warn_full(d, ROWS_FULL, d.active[0] > 0.0)
    d.one.status[0] = FULL
