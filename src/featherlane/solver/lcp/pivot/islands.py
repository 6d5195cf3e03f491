"""The LCP of each world taken apart into islands, each a dense problem of its own for a direct solver.

Rows tie the trees of their dofs; trees that rows tie, directly or over other trees, are one island.  64 boxes that lie
apart are 64 problems of 12 rows, not one of 768.
Source: ODE manual, sec. "Islands and disabled bodies".
"""

from featherlane.prelude import *
from featherlane.solver.lcp.pivot.dantzig import BLOCK, BY_ROWS, principal_pivoting
from featherlane.solver.lcp.pivot.delassus import form_delassus
from featherlane.solver.lcp.rows.rows import is_present
from featherlane.solver.lcp.status import SOLVED

# of A's diagonal: pivoting is exact to 1e-14, and would make of the rounding of rows in float32, that depend on each
# other, forces of a million times what they hold
SOFTNESS32 = 1e-6
FEW_ROWS = 72  # of an island that gains nothing from a start with all rows at once


# ---- which rows belong together ------------------------------------------------------------------------------------
@kernel
def mark_worlds(d):
    """lcp_order <- the worlds in which a row can have a force, as bits: no sweep needs an order here."""
    for r in range(d.lcp_n[0]):
        bits, present = 0, is_present(d, r)
        for lane in range(width(d)):
            bits += has(present, lane) << lane
        d.lcp_order[r] = bits


@kernel
def in_world(d, r, lane):
    """Does this world have row r?"""
    return (d.lcp_order[r] >> lane) & 1


@kernel
def root_of(d, t):
    """The first tree of the island of tree t, so far."""
    while d.lcp_root[t] != t:
        t = d.lcp_root[t]
    return t


@kernel
def join(d, s, t):
    """Trees s and t are in one island."""
    s, t = root_of(d, s), root_of(d, t)
    d.lcp_root[max(s, t)] = min(s, t)


@kernel
def join_trees(m, d, lane):
    """lcp_root of one world: rows that share their columns are looked at once."""
    for t in range(m.ntree):
        d.lcp_root[t], d.lcp_head[t] = t, -1
    last = -1
    for r in range(d.lcp_n[0]):
        o = d.lcp_coladr[r]
        if o != last and in_world(d, r, lane):
            last = o
            t = m.dof_treeid[d.lcp_col[o]]
            for p in range(o + 1, o + d.lcp_colnum[r]):
                if m.dof_treeid[d.lcp_col[p]] != t:
                    join(d, t, m.dof_treeid[d.lcp_col[p]])


@kernel
def list_rows(m, d, lane):
    """lcp_head, lcp_next: the rows of each island of one world, in their order."""
    join_trees(m, d, lane)
    for k in range(d.lcp_n[0]):
        r = d.lcp_n[0] - 1 - k
        if in_world(d, r, lane):
            t = root_of(d, m.dof_treeid[d.lcp_col[d.lcp_coladr[r]]])
            d.lcp_next[r] = d.lcp_head[t]
            d.lcp_head[t] = r


@kernel
def gather_rows_of(d, first):
    """one_row, one_n: the rows of the list that begins with row `first`; returns 0 where they find no room."""
    n, r = 0, first
    while r >= 0 and n < d.nlcpone:
        d.one_row[n] = r
        n += 1
        r = d.lcp_next[r]
    d.one_n[0] = n
    return 1 if r < 0 else 0


# ---- one problem ---------------------------------------------------------------------------------------------------
@kernel
def place_of(d, a, r):
    """The place of row r before place a."""
    b = a - 1
    while d.one_row[b] != r:
        b -= 1
    return b


@kernel
def gather_bounds(d, a, lane):
    """Right-hand side and bounds of the row at place a; friction that is a force has bounds of its own."""
    r = d.one_row[a]
    hi, add = read_lane(d.lcp_hi, r, lane), read_lane(d.lcp_add, r, lane)
    d.one_b[a] = read_lane(d.lcp_b, r, lane)
    d.one_findex[a], d.one_add[a] = -1, 0.0
    if d.lcp_findex[r] < 0:
        d.one_lo[a], d.one_hi[a] = read_lane(d.lcp_lo, r, lane), hi
    elif hi == 0.0:
        d.one_lo[a], d.one_hi[a] = -add, add
    else:
        d.one_findex[a] = place_of(d, a, d.lcp_findex[r])
        d.one_lo[a], d.one_hi[a], d.one_add[a] = 0.0, hi, add


@kernel
def soften_rounding(d):
    """A_aa grows by the rounding of float32 rows: rows that depend on each other, but for it, share what they can."""
    stride = (d.one_n[0] + 7) // 8 * 8
    for a in range(d.one_n[0]):
        d.one_A[a * stride + a] = (1.0 + SOFTNESS32) * d.one_A[a * stride + a]


@kernel
def gather_problem(d, lane):
    """The dense problem of the rows in one_row."""
    for a in range(d.one_n[0]):
        gather_bounds(d, a, lane)
    form_delassus(d, lane)
    if single_precision(d):
        soften_rounding(d)


@stage
def solve_island(d1, policy, passes):
    """The gathered problem, by pivoting.

    Reads:  one_n, one_A, one_b, one_lo, one_hi, one_findex, one_add.
    Writes: one_x (nlcpone,) [N], one_w (nlcpone,) [m/s^2], one_lower, one_upper, one_niter, one_status, one_residual;
            one_* and place_* for itself.
    """
    principal_pivoting(d1, policy, passes, BLOCK if d1.one_n[0] > FEW_ROWS else BY_ROWS)


# ---- all of them ---------------------------------------------------------------------------------------------------
@kernel
def solve_world(m, d, lane):
    """All islands of one world; returns (pivots, status of the worst, largest residual, islands without room)."""
    pivots, status, residual, large = 0, SOLVED, 0.0, 0
    list_rows(m, d, lane)
    for t in range(m.ntree):
        if d.lcp_head[t] >= 0:
            if gather_rows_of(d, d.lcp_head[t]):
                gather_problem(d, lane)
                solve_island(d, m.opt_lcp_friction, m.opt_lcp_iterations)
                for a in range(d.one_n[0]):
                    write_lane(d.lcp_x, d.one_row[a], lane, d.one_x[a])
                pivots += d.one_niter[0]
                status = max(status, d.one_status[0])
                residual = fmax(d.one_residual[0], residual)
            else:
                large += 1
    return pivots, status, residual, large


@stage
def solve_islands(m, d):
    """lcp_x by pivoting, world by world and island by island; an island without room keeps the x that it has.

    Reads:  the rows, lcp_x of islands with more than nlcpone rows, and what their solver said of them.
    Writes: lcp_x, lcp_niter, lcp_status, lcp_residual; for itself lcp_order, lcp_root, lcp_head, lcp_next, one_*,
            place_A.
    """
    mark_worlds(d)
    for lane in range(width(d)):
        if has(d.active[0] > 0.0, lane):
            pivots, status, residual, large = solve_world(m, d, lane)
            if large:
                residual = fmax(read_lane(d.lcp_residual, 0, lane), residual)
                status = max(status, 1 if read_lane(d.lcp_status, 0, lane) > 0.0 else 0)
            write_lane(d.lcp_niter, 0, lane, 1.0 * pivots)
            write_lane(d.lcp_status, 0, lane, 1.0 * status)
            write_lane(d.lcp_residual, 0, lane, residual)
