"""Splits the LCP of each world into islands, each a separate dense problem for a direct solver.

Rows connect the trees of their dofs; trees that rows connect, directly or over other trees, form one island.  64
separate boxes are 64 problems of 12 rows, not one of 768.
Source: ODE manual, sec. "Islands and disabled bodies".
"""

from featherlane.prelude import *
from featherlane.solver.lcp.pivot.dantzig import BLOCK, BY_ROWS, principal_pivoting
from featherlane.solver.lcp.pivot.delassus import form_delassus
from featherlane.solver.lcp.rows.rows import is_present
from featherlane.solver.lcp.status import SOLVED

# of A's diagonal: pivoting is exact to 1e-14.  It would turn the float32 rounding of rows that depend on each other
# into forces of a million times the load
SOFTNESS32 = 1e-6
FEW_ROWS = 72  # of an island that does not profit from a start with all rows at once


# ---- islands of rows -----------------------------------------------------------------------------------------------
@kernel
def mark_worlds(d):
    """Sets lcp.order[r] to the worlds in which row r can have a force: bit l for lane l; no sweep uses it here."""
    for r in range(d.lcp.n[0]):
        bits, present = 0, is_present(d, r)
        for lane in range(width(d)):
            bits += has(present, lane) << lane
        d.lcp.order[r] = bits


@kernel
def in_world(d, r, lane):
    """Checks whether the world in this lane has row r, by the bits of `mark_worlds`."""
    return (d.lcp.order[r] >> lane) & 1


@kernel
def root_of(d, t):
    """Returns the first tree of the island of tree t, so far."""
    while d.lcp.root[t] != t:
        t = d.lcp.root[t]
    return t


@kernel
def join_islands(d, s, t):
    """Puts trees s and t in one island."""
    s, t = root_of(d, s), root_of(d, t)
    d.lcp.root[max(s, t)] = min(s, t)


@kernel
def find_row_roots(m, d, lane):
    """Computes lcp.root of one world, and sets lcp.head = -1.

    Consecutive rows with the same columns, lcp.col from `o` on, connect the same trees: only the first counts.
    """
    for t in range(m.ntree):
        d.lcp.root[t], d.lcp.head[t] = t, -1
    last = -1
    for r in range(d.lcp.n[0]):
        o = d.lcp.coladr[r]
        if o != last and in_world(d, r, lane):
            last = o
            t = m.dof_treeid[d.lcp.col[o]]
            for p in range(o + 1, o + d.lcp.colnum[r]):
                if m.dof_treeid[d.lcp.col[p]] != t:
                    join_islands(d, t, m.dof_treeid[d.lcp.col[p]])


@kernel
def list_island_rows(m, d, lane):
    """Computes lcp.head, lcp.next: the rows of each island of one world, in their order."""
    find_row_roots(m, d, lane)
    # each row is put in front of its island's list: from the last row to the first, so that the lists ascend
    for k in range(d.lcp.n[0]):
        r = d.lcp.n[0] - 1 - k
        if in_world(d, r, lane):
            t = root_of(d, m.dof_treeid[d.lcp.col[d.lcp.coladr[r]]])
            d.lcp.next[r] = d.lcp.head[t]
            d.lcp.head[t] = r


@kernel
def gather_rows_of(d, first):
    """Sets one.row, one.n: the rows of the list that begins with row `first`; returns 0 if they exceed the capacity."""
    n, r = 0, first
    while r >= 0 and n < d.nlcpone:
        d.one.row[n] = r
        n += 1
        r = d.lcp.next[r]
    d.one.n[0] = n
    return 1 if r < 0 else 0


# ---- one problem ---------------------------------------------------------------------------------------------------
@kernel
def place_of(d, a, r):
    """Returns the place of row r in one.row, which is before place a: a friction row follows its normal row."""
    b = a - 1
    while d.one.row[b] != r:
        b -= 1
    return b


@kernel
def gather_bounds(d, a, lane):
    """Sets right-hand side and bounds of the row at place a; friction given as a force has fixed bounds."""
    r = d.one.row[a]
    hi, add = read_lane(d.lcp.hi, r, lane), read_lane(d.lcp.add, r, lane)
    d.one.b[a] = read_lane(d.lcp.b, r, lane)
    d.one.findex[a], d.one.add[a] = -1, 0.0
    if d.lcp.findex[r] < 0:
        d.one.lo[a], d.one.hi[a] = read_lane(d.lcp.lo, r, lane), hi
    elif hi == 0.0:  # no coefficient: the bound is a force
        d.one.lo[a], d.one.hi[a] = -add, add
    else:
        d.one.findex[a] = place_of(d, a, d.lcp.findex[r])
        d.one.lo[a], d.one.hi[a], d.one.add[a] = 0.0, hi, add


@kernel
def soften_rounding(d):
    """Adds the rounding of float32 rows to A_aa: rows that are dependent up to rounding then share their load."""
    stride = (d.one.n[0] + 7) // 8 * 8  # A_ij = one.A[i stride + j], rows padded to a multiple of 8
    for a in range(d.one.n[0]):
        d.one.A[a * stride + a] = (1.0 + SOFTNESS32) * d.one.A[a * stride + a]


@kernel
def gather_problem(d, lane):
    """Builds the dense problem of the rows in one.row, of the world in this lane.   Writes: one.*."""
    for a in range(d.one.n[0]):
        gather_bounds(d, a, lane)
    form_delassus(d, lane)
    if single_precision(d):
        soften_rounding(d)


@stage
def solve_island(d1, policy, passes):
    """Solves the problem of one island by pivoting.  policy: how friction limits follow the normals; passes: at most.

    Reads:  one.n, one.A, one.b, one.lo, one.hi, one.findex, one.add.
    Writes: one.x (nlcpone,) [N], one.w (nlcpone,) [m/s^2], one.*.
    Scratch: place.*.
    """
    principal_pivoting(d1, policy, passes, BLOCK if d1.one.n[0] > FEW_ROWS else BY_ROWS)


# ---- all islands -------------------------------------------------------------------------------------------------
@kernel
def solve_world(m, d, lane):
    """Solves all islands of one world; returns (pivots or steps, worst status, residual, islands beyond capacity)."""
    pivots, status, residual, large = 0, SOLVED, 0.0, 0
    list_island_rows(m, d, lane)
    for t in range(m.ntree):
        if d.lcp.head[t] >= 0:  # t is the first tree of an island with rows
            if gather_rows_of(d, d.lcp.head[t]):  # writes one.row, one.n; 0: beyond the capacity
                gather_problem(d, lane)
                solve_island(d, m.opt_lcp_friction, m.opt_lcp_iterations)
                for a in range(d.one.n[0]):
                    write_lane(d.lcp.x, d.one.row[a], lane, d.one.x[a])
                pivots += d.one.niter[0]
                status = max(status, d.one.status[0])
                residual = fmax(d.one.residual[0], residual)
            else:
                large += 1
    return pivots, status, residual, large


@stage
def solve_islands(m, d):
    """Solves for lcp.x by a dense solver, one world and island at a time; islands beyond the capacity keep their x.

    Reads:  the rows, lcp.x of islands with more than nlcpone rows, and their solver's diagnostics.
    Writes: lcp.*.
    Scratch: one.*, place.*.
    """
    mark_worlds(d)
    for lane in range(width(d)):
        if has(d.active[0] > 0.0, lane):
            pivots, status, residual, large = solve_world(m, d, lane)
            if large:  # `iterate` has solved the islands beyond the capacity; its diagnostics are in lcp
                residual = fmax(read_lane(d.lcp.residual, 0, lane), residual)
                status = max(status, 1 if read_lane(d.lcp.status, 0, lane) > 0.0 else 0)
            write_lane(d.lcp.niter, 0, lane, 1.0 * pivots)
            write_lane(d.lcp.status, 0, lane, 1.0 * status)
            write_lane(d.lcp.residual, 0, lane, residual)
