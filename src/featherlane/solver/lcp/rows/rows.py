"""The rows of a tile's LCP, appended one by one: a row of Y, its bounds, its right-hand side.

A row of the Jacobian has entries at some dofs.  Whitened, y = J L^-1 D^-1/2 (metric.py) also has entries at their
ancestors.  Rows of one joint, contact or link form a group that shares its columns.  To append a group:

    start = open_columns(d)                       # columns that are free
    n = append_row_columns(m, d, i, FIRST, start, 0)  # dof i, -1: none, and all above it; next: SECOND, start, n
    sort_descending(d.lcp.col, start, n)          # as whitening needs them
    if n > 0 and has_capacity(m, d, rows):        # a tile that is full is split, see report_full_rows
        for each row:
            d.primal.search[i] = J_i at each column  # d.dual.mark[i]: FIRST, SECOND or BOTH (moves both bodies alike)
            row = append_jacobian_row(m, d, start, n)  # its number r; J v and J Mh^-1 f
            set_row(m, d, row, present, c, cfm, (lo, hi))
    clear_column_marks(d, start, n)

Entries of J are 0 in worlds that lack the row (`where(present, J_i, 0.0)`).  c is the target value of J v at
the end of the step [m/s, rad/s], and cfm [m/(s N)] is the velocity per unit force.  A friction row follows its normal
row and gets its bound from `set_friction`.

In all kernels: start, n: the columns of a row are lcp.col[start .. start + n - 1], its dofs.  present: mask of worlds
that have the row.  primal.search: J by dof.
A world that lacks a row has zeros there, including its diagonal, so that x = 0 and nothing else changes.
"""

from typing import Any, NamedTuple

from featherlane.prelude import *
from featherlane.lanes.worlds import count_active_worlds
from featherlane.model.status import warn_full
from featherlane.solver.dual.rows import sort_descending

# bits: which of two bodies a dof moves
FIRST, SECOND, BOTH = 1, 2, 3
INFINITE = float("inf")
NO_ROW = -1  # index of an element without a row in any world
FULL = -1  # one.status before a solver has set it: some row exceeded the capacity


# ---- columns -------------------------------------------------------------------------------------------------------
@kernel
def open_columns(d):
    """Returns the first free column."""
    r = d.lcp.n[0] - 1
    return d.lcp.coladr[r] + d.lcp.colnum[r] if r >= 0 else 0


@kernel
def next_free_entry(d):
    """Returns the first free entry of Y."""
    r = d.lcp.n[0] - 1
    return d.lcp.rowadr[r] + d.lcp.colnum[r] if r >= 0 else 0


@kernel
def has_capacity(m, d, rows):
    """Checks whether the capacity suffices for that many more rows, whatever their dofs."""
    fits = d.lcp.n[0] + rows <= d.nlcp and open_columns(d) + m.nv <= d.nlcpcol
    return fits and next_free_entry(d) + rows * m.nv <= d.nlcpY


@kernel
def append_row_columns(m, d, i, mark, start, n):
    """Appends dof i (-1: none) and its ancestors, with this mark, to the n columns from start on; returns the new n."""
    while i >= 0:
        if d.dual.mark[i] == 0:
            d.lcp.col[start + n] = i
            n += 1
        d.dual.mark[i] = d.dual.mark[i] | mark
        i = m.dof_parentid[i]
    return n


@kernel
def pair_columns(m, d, first, second, start):
    """Lists the dofs that move one of two bodies in lcp.col from start on, descending; returns their number.

    first, second: the bodies.   Writes: lcp.col; dual.mark, the body that each dof moves.
    """
    i, j, n = m.body_lastdof[first], m.body_lastdof[second], 0
    # the later dof and its ancestors first: the list is then almost sorted
    if i > j:
        n = append_row_columns(m, d, i, FIRST, start, n)
        n = append_row_columns(m, d, j, SECOND, start, n)
    else:
        n = append_row_columns(m, d, j, SECOND, start, n)
        n = append_row_columns(m, d, i, FIRST, start, n)
    sort_descending(d.lcp.col, start, n)
    return n


@kernel
def clear_column_marks(d, start, n):
    """Clears the marks of the dofs."""
    for p in range(start, start + n):
        d.dual.mark[d.lcp.col[p]] = 0


@kernel
def clear_entries(d, start, n):
    """Sets J = 0 at all columns.   Writes: primal.search."""
    for p in range(start, start + n):
        d.primal.search[d.lcp.col[p]] = 0.0


# ---- rows ----------------------------------------------------------------------------------------------------------
@kernel
def whiten_jacobian(m, d, start, n, e):
    """Computes lcp.Y[e ..] <- y^T = D^-1/2 L^-T J^T on the n columns from start on; returns |y|^2.

    Dofs are eliminated in descending order: x_j -= L_ij x_i for the ancestors j of dof i, then y_i = D_i^-1/2 x_i.
    Reads: primal.search (J).   Writes: primal.search, lcp.Y.
    """
    s = 0.0
    for p in range(n):
        i = d.lcp.col[start + p]
        x, a = d.primal.search[i], m.M_rowadr[i]
        for c in range(m.M_rownnz[i] - 1):
            j = m.M_colind[a + c]
            d.primal.search[j] = fma(-d.qH[a + c], x, d.primal.search[j])
        y = x * d.lcp.scale[i]
        d.lcp.Y[e + p] = y
        s = fma(y, y, s)
    return s


class NewRow(NamedTuple):
    """A row for `set_row` to complete: its number, J v and J Mh^-1 f."""

    r: int
    v: Any
    a: Any


@kernel
def append_jacobian_row(m, d, start, n):
    """Appends a row whose Jacobian is in primal.search at the n columns from start on; `set_row` must follow.

    Returns a `NewRow`.   Reads: primal.search, qvel, qacc_step.   Writes: lcp.Y and the row's places; primal.search.
    """
    r, e, v, a = d.lcp.n[0], next_free_entry(d), 0.0, 0.0  # qacc_step is Mh^-1 f
    for p in range(n):
        i = d.lcp.col[start + p]
        v, a = fma(d.primal.search[i], d.qvel[i], v), fma(d.primal.search[i], d.qacc_step[i], a)
    d.lcp.coladr[r] = start
    d.lcp.colnum[r] = n
    d.lcp.rowadr[r] = e
    d.lcp.diag[r] = whiten_jacobian(m, d, start, n, e)
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
    h, (r, v, a), (lo, hi) = timestep(m), row, bounds
    soft = where(present, cfm / h, 0.0)
    d.lcp.findex[r] = -1
    d.lcp.b[r] = where(present, (c - v) / h - a, 0.0)
    d.lcp.cfm[r] = soft
    d.lcp.diag[r] = d.lcp.diag[r] + soft
    d.lcp.lo[r] = where(present, lo, 0.0)
    d.lcp.hi[r] = where(present, hi, 0.0)
    d.lcp.add[r] = 0.0


@kernel
def set_friction(d, r, normal, present, mu, force):
    """Sets |x_r| <= mu |x_normal| of friction row r, or <= mu [N] if `force` is not 0; normal: the normal row."""
    d.lcp.findex[r] = normal
    d.lcp.lo[r] = 0.0
    d.lcp.hi[r] = where(present & (force == 0.0), mu, 0.0)
    d.lcp.add[r] = where(present & (force != 0.0), mu, 0.0)


@kernel
def is_present(d, r):
    """Returns a mask of worlds in which row r can have a force."""
    return (d.lcp.hi[r] > 0.0) | (d.lcp.lo[r] < 0.0) | (d.lcp.add[r] > 0.0)


@kernel
def report_full_rows(d):
    """Reports that a row does not fit: splits the tile; a single world omits its last rows and counts that, once."""
    if count_active_worlds(d) > 1:
        d.con_overflow[0] = 1
    elif d.one.status[0] != FULL:
        warn_full(d, ROWS_FULL)
    d.one.status[0] = FULL
