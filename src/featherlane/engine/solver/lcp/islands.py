"""Splits the LCP of each world into islands, each a separate dense problem for a direct solver.

Rows connect the trees of their dofs; trees that rows connect, directly or over other trees, form one island.  64
separate boxes are 64 problems of 12 rows, not one of 768.
Symbols: r: a row of the tile, with colnum[r] dofs lcp.col[coladr[r] + k];  a: its position in the island,
    one.row[a] = r;  s, t: trees;  lane: a world of the tile.
Lists: lcp.root[t]: a tree with a smaller number in the same island, or t itself for the first one;  lcp.head[t]: the
    first row of the island with first tree t, -1: none;  lcp.next[r]: the next row of this island, -1: none.
Friction of row r: findex[r] is its normal row, hi[r] = mu, and lo[r] is not used; or, if mu = 0, |x| <= add[r].
`is_present`: mask of worlds in which a row can have a force;  `form_delassus`: one.A of the rows in one.row;
`principal_pivoting`: one.x, w, status, residual, niter of the problem in one.*;  m.opt_lcp_friction: its policy.
Source: ODE manual, sec. "Islands and disabled bodies".
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.pivot.dantzig import BLOCK, BY_ROWS, principal_pivoting
from featherlane.engine.solver.lcp.pivot.delassus import form_delassus
from featherlane.engine.solver.lcp.rows.rows import is_present
from featherlane.engine.solver.lcp.status import ITERATIONS, SOLVED

# share of A_aa that is added to it in float32: pivoting, exact to 1e-14, would otherwise turn the rounding of rows that
# depend on each other into forces of a million times the load
SOFTNESS32 = 1e-6
FEW_ROWS = 72  # islands of up to so many rows are solved faster row by row than from a start with all rows at once


# ---- islands of rows -----------------------------------------------------------------------------------------------
@kernel
def mark_worlds_of_rows(d):
    """Sets bit `lane` of lcp.order[r] if row r can have a force in this world.

    lcp.order, the order of sweeps, is free here: pivoting does not sweep.
    """
    for r in range(d.lcp.n[0]):
        bits = 0
        present = is_present(d, r)
        for lane in range(width(d)):
            bits += has(present, lane) << lane
        d.lcp.order[r] = bits


@kernel
def in_world(d, r, lane):
    """Returns bit `lane` of lcp.order[r]: 1 if row r can have a force in this world, else 0."""
    return (d.lcp.order[r] >> lane) & 1


@kernel
def first_tree_of_island(d, t):
    """Returns the first tree of the island that tree t belongs to by the rows joined so far."""
    while d.lcp.root[t] != t:
        t = d.lcp.root[t]
    return t


@kernel
def find_row_roots(m, d, lane):
    """Computes lcp.root of one world by joining the trees of each row, and sets lcp.head to -1."""
    for t in range(m.ntree):
        d.lcp.root[t] = t
        d.lcp.head[t] = -1
    previous = -1
    for r in range(d.lcp.n[0]):
        first = d.lcp.coladr[r]
        # consecutive rows that share their columns are handled once
        if first != previous and in_world(d, r, lane):
            previous = first
            s = first_tree_of_island(d, m.dof_treeid[d.lcp.col[first]])
            for k in range(first + 1, first + d.lcp.colnum[r]):
                # s and t become one island, whose first tree is the one with the smaller number
                t = first_tree_of_island(d, m.dof_treeid[d.lcp.col[k]])
                d.lcp.root[max(s, t)] = min(s, t)
                s = min(s, t)


@kernel
def list_island_rows(m, d, lane):
    """Computes lcp.root, lcp.head and lcp.next: the rows of each island of one world, in ascending order."""
    find_row_roots(m, d, lane)
    # from the last row on, since each row becomes the head of its list
    for back in range(d.lcp.n[0]):
        r = d.lcp.n[0] - 1 - back
        if in_world(d, r, lane):
            t = first_tree_of_island(d, m.dof_treeid[d.lcp.col[d.lcp.coladr[r]]])
            d.lcp.next[r] = d.lcp.head[t]
            d.lcp.head[t] = r


@kernel
def gather_island_rows(d, first):
    """Sets one.row and one.n: the rows of the island with first row `first`; returns 0 if they exceed the capacity."""
    n = 0
    r = first
    while r >= 0 and n < d.nlcpone:
        d.one.row[n] = r
        n += 1
        r = d.lcp.next[r]
    d.one.n[0] = n
    return 1 if r < 0 else 0


# ---- one problem ---------------------------------------------------------------------------------------------------
@kernel
def position_in_island(d, a, r):
    """Returns the position in the island of row r, the normal row of the friction row at position a: it is before a."""
    position = a - 1
    while d.one.row[position] != r:
        position -= 1
    return position


@kernel
def gather_bounds(d, a, lane):
    """Copies right-hand side and bounds of the row at position a, in the world of `lane`, to one.*.

    Friction that is given as a force gets constant bounds instead of a normal row.
    """
    r = d.one.row[a]
    hi, add = read_lane(d.lcp.hi, r, lane), read_lane(d.lcp.add, r, lane)
    d.one.b[a] = read_lane(d.lcp.b, r, lane)
    # no friction row, unless set below
    d.one.findex[a], d.one.add[a] = -1, 0.0
    if d.lcp.findex[r] < 0:
        d.one.lo[a] = read_lane(d.lcp.lo, r, lane)
        d.one.hi[a] = hi
    elif hi == 0.0:
        # mu = 0: |x| <= add
        d.one.lo[a] = -add
        d.one.hi[a] = add
    else:
        d.one.findex[a] = position_in_island(d, a, d.lcp.findex[r])
        d.one.lo[a] = 0.0
        d.one.hi[a], d.one.add[a] = hi, add


@kernel
def soften_rounding(d):
    """Scales A_aa by 1 + SOFTNESS32: rows that are dependent up to float32 rounding then share their load."""
    stride = (d.one.n[0] + 7) // 8 * 8  # rows of one.A are padded to a multiple of eight
    for a in range(d.one.n[0]):
        d.one.A[a * stride + a] = (1.0 + SOFTNESS32) * d.one.A[a * stride + a]


@kernel
def gather_problem(d, lane):
    """Builds the dense problem of the rows in one.row: one.A, one.b, one.lo, one.hi, one.findex, one.add."""
    for a in range(d.one.n[0]):
        gather_bounds(d, a, lane)
    form_delassus(d, lane)
    if single_precision(d):
        soften_rounding(d)


@stage
def solve_island(d1, policy, passes):
    """Solves the problem of one island by pivoting.

    d1: the record d; the 1 marks a stage that uses only arrays that all lanes share.
    policy: FROZEN sets friction limits once, CONSISTENT follows the normals to a fixed point, in up to `passes` passes.

    Reads:  one.n, one.A, one.b, one.lo, one.hi, one.findex, one.add.
    Writes: one.x (nlcpone,) [N], one.w (nlcpone,) [m/s^2], one.*.
    Scratch: scaled.*.
    """
    # with few rows, driving them one by one is faster than a start with all rows at once
    principal_pivoting(d1, policy, passes, start=BLOCK if d1.one.n[0] > FEW_ROWS else BY_ROWS)


# ---- all islands -------------------------------------------------------------------------------------------------
@kernel
def solve_world(m, d, lane):
    """Solves all islands of one world; returns (pivots, highest status, largest residual, islands beyond capacity).

    Higher status codes (status.py) are worse.
    """
    pivots, status, residual, oversized = 0, SOLVED, 0.0, 0
    list_island_rows(m, d, lane)
    # one problem per island: it is read from lcp.*, solved in one.*, and stored in lcp.x
    for t in range(m.ntree):
        if d.lcp.head[t] >= 0:  # t is the first tree of an island with rows
            if gather_island_rows(d, d.lcp.head[t]):  # writes one.row, one.n; 0: beyond the capacity
                gather_problem(d, lane)
                solve_island(d, m.opt_lcp_friction, m.opt_lcp_iterations)
                for a in range(d.one.n[0]):
                    write_lane(d.lcp.x, d.one.row[a], lane, d.one.x[a])
                pivots += d.one.niter[0]
                status = max(status, d.one.status[0])
                residual = fmax(d.one.residual[0], residual)
            else:
                oversized += 1
    return pivots, status, residual, oversized


@stage
def solve_islands(m, d):
    """Solves for lcp.x by a dense solver, one world and island at a time; islands beyond the capacity keep their x.

    Reads:  the rows, lcp.x of islands with more than nlcpone rows, and their solver's diagnostics.
    Writes: lcp.*.
    Scratch: one.*, scaled.*.
    """
    mark_worlds_of_rows(d)
    for lane in range(width(d)):
        if has(d.active[0] > 0.0, lane):
            pivots, status, residual, oversized = solve_world(m, d, lane)
            # islands beyond the capacity keep x of `iterate` in step.py, and its lcp.residual and lcp.status
            if oversized:
                residual = fmax(read_lane(d.lcp.residual, 0, lane), residual)
                status = max(status, ITERATIONS if read_lane(d.lcp.status, 0, lane) > 0.0 else SOLVED)
            write_lane(d.lcp.niter, 0, lane, 1.0 * pivots)
            write_lane(d.lcp.status, 0, lane, 1.0 * status)
            write_lane(d.lcp.residual, 0, lane, residual)
