"""The rows of a tile's LCP, appended one by one: a row of Y, its bounds, its right-hand side.

A row of the Jacobian has entries at some dofs.  Whitened, y = J L^-1 D^-1/2 (metric.py), it has them at the dofs above,
too.  Rows of one joint, contact or link come as a group that shares its columns.  To append a group:

    start = open_columns(d)                       # columns that are free
    n = add_chain(m, d, i, FIRST, start, 0)       # dof i, -1: none, and all above it; the next: SECOND, start, n
    sort_descending(d.lcp.col, start, n)          # as whitening needs them
    if n > 0 and has_room(m, d, rows):            # a tile that is full is split, see report_full
        for each row:
            d.primal.search[i] = J_i at each column  # d.dual.mark[i]: FIRST, SECOND or BOTH (moves both bodies alike)
            row = append_row(m, d, start, n)  # its number r; J v and J Mh^-1 f
            set_row(m, d, row, present, c, cfm, (lo, hi))
    clear_marks(d, start, n)

Entries of J are 0 in worlds that lack the row (`where(present, J_i, 0.0)`).  c is the velocity that J v is to have at
the end of the step [m/s, rad/s] and cfm [m/(s N)] what a unit force adds to it.  A friction row follows its normal row
and has its bound by `set_friction`.

A world that lacks a row holds zeros there, on its diagonal too, so that x = 0 and nothing else changes.
"""

from typing import Any, NamedTuple

from featherlane.prelude import *
from featherlane.lanes.worlds import active_worlds
from featherlane.solver.dual.rows import sort_descending

# which of two bodies a dof moves: bits
FIRST, SECOND, BOTH = 1, 2, 3
INFINITE = float("inf")
NO_ROW = -1  # of what has none in any world
FULL = -1  # one.status, which no solver has set yet: some row found no room


# ---- columns -------------------------------------------------------------------------------------------------------
@kernel
def open_columns(d):
    """The first column that is free."""
    r = d.lcp.n[0] - 1
    return d.lcp.coladr[r] + d.lcp.colnum[r] if r >= 0 else 0


@kernel
def next_entry(d):
    """The first entry of Y that is free."""
    r = d.lcp.n[0] - 1
    return d.lcp.rowadr[r] + d.lcp.colnum[r] if r >= 0 else 0


@kernel
def has_room(m, d, rows):
    """Is there room for that many rows more, whatever their dofs?"""
    fits = d.lcp.n[0] + rows <= d.nlcp and open_columns(d) + m.nv <= d.nlcpcol
    return fits and next_entry(d) + rows * m.nv <= d.nlcpY


@kernel
def add_chain(m, d, i, mark, start, n):
    """Append dof i (-1: none) and all above it to the n columns from start on; returns their number."""
    while i >= 0:
        if d.dual.mark[i] == 0:
            d.lcp.col[start + n] = i
            n += 1
        d.dual.mark[i] = d.dual.mark[i] | mark
        i = m.dof_parentid[i]
    return n


@kernel
def pair_columns(m, d, first, second, start):
    """The dofs that move one of two bodies, from entry start on, each marked by whom it moves; returns their number."""
    i, j, n = m.body_lastdof[first], m.body_lastdof[second], 0
    if i > j:
        n = add_chain(m, d, i, FIRST, start, n)
        n = add_chain(m, d, j, SECOND, start, n)
    else:
        n = add_chain(m, d, j, SECOND, start, n)
        n = add_chain(m, d, i, FIRST, start, n)
    sort_descending(d.lcp.col, start, n)
    return n


@kernel
def clear_marks(d, start, n):
    """No dof is marked any more."""
    for p in range(start, start + n):
        d.dual.mark[d.lcp.col[p]] = 0


@kernel
def clear_entries(d, start, n):
    """J = 0 at all columns."""
    for p in range(start, start + n):
        d.primal.search[d.lcp.col[p]] = zero(d)


# ---- rows ----------------------------------------------------------------------------------------------------------
@kernel
def whiten(m, d, start, n, e):
    """lcp.Y[e ..] <- D^-1/2 L^-T J^T on the n columns from start on, J in `search`; returns its square."""
    s = zero(d)
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
    """A row that `set_row` is to complete: its number, J v and J Mh^-1 f."""

    r: int
    v: Any
    a: Any


@kernel
def append_row(m, d, start, n):
    """A new row whose Jacobian stands in `search` at the n columns from start on; `set_row` has to follow."""
    r, e, v, a = d.lcp.n[0], next_entry(d), zero(d), zero(d)
    for p in range(n):
        i = d.lcp.col[start + p]
        v, a = fma(d.primal.search[i], d.qvel[i], v), fma(d.primal.search[i], d.qacc_step[i], a)
    d.lcp.coladr[r] = start
    d.lcp.colnum[r] = n
    d.lcp.rowadr[r] = e
    d.lcp.diag[r] = whiten(m, d, start, n, e)
    d.lcp.n[0] = r + 1
    return NewRow(r, v, a)


@kernel
def set_row(m, d, row, present, c, cfm, bounds):
    """Numbers of a row: b = c / h - (J v / h + J Mh^-1 f), cfm / h on the diagonal, lo <= x <= hi.

    Args:
        row: what `append_row` gave.
        present: where the world has the row.
        c: velocity sought [m/s, rad/s].
        cfm: velocity that a unit force adds [m/(s N)].
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
    d.lcp.add[r] = zero(d)


@kernel
def set_friction(d, r, normal, present, mu, force):
    """|x_r| <= mu |x_normal|, or <= mu [N] where friction is a force."""
    d.lcp.findex[r] = normal
    d.lcp.lo[r] = zero(d)
    d.lcp.hi[r] = where(present & (force == 0.0), mu, zero(d))
    d.lcp.add[r] = where(present & (force != 0.0), mu, zero(d))


@kernel
def is_present(d, r):
    """Mask: the worlds in which row r can have a force."""
    return (d.lcp.hi[r] > 0.0) | (d.lcp.lo[r] < 0.0) | (d.lcp.add[r] > 0.0)


@kernel
def report_full(d):
    """A row finds no room: the tile is to be split, a world alone does without its last ones and counts that, once."""
    if active_worlds(d) > 1:
        d.con_overflow[0] = 1
    elif d.one.status[0] != FULL:
        warn(d, ROWS_FULL, d.active[0] > 0.0)
    d.one.status[0] = FULL
