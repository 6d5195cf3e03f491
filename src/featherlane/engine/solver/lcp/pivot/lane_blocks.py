"""Block principal pivoting for dense problems, W of one structure at once.

With the present set C of free rows and the set N of rows at a bound, x_C solves A_CC x_C = b_C - A_CN x_N.  Then all
rows that violate their condition change sides at once: a free row beyond a bound goes to the bound, and a row at a
bound whose w has the wrong sign becomes free.  Three to six passes are usually enough.  If sets repeat, the method
never ends, so a world stops after some passes, and leaves the problem to single pivots (lane_by_lane.py).

A_CC is factored again in each pass, as L D L^T of all rows that are free in any world, so all worlds of a tile share
the order of elimination.  In a world in which such a row is at a bound, its row of the matrix is 0, so that 1 / D and
its row of L are 0.  It adds exact zeros to all sums: a world's result is bitwise independent of the free rows of other
worlds.

Friction is *frozen*, as in ODE: first all other rows are solved, with x = 0 in those of friction, then all of them
at the resulting limits.
Symbols: p: the record of the problems;  i, j: rows of the problem;  a, b: active rows, which are free in some world:
    row lcp.order[a] of the problem;  least: pivots up to it count as 0 (SINGULAR);  live: mask of unsolved worlds.
    `x + 0.0`: x, in which -0 becomes 0;  `compute_w_from_z`: w = A x - b;  `finish_at`: residual and status.
Buffers: lcp.lower, lcp.upper: lower and upper limits in effect;  lcp.dx: change of x;  lcp_dx: by active row, of the
    substitutions;  lcp_state: the sets, see OPEN;  lcp_L: the packed factor of the active rows (packed_factor.py).
    A_ij = lcp.A[i * n + j]; `dense_dot`: row of A x.
Source: Judice and Pires, "A block principal pivoting algorithm for large-scale strictly monotone linear complementarity
problems", Computers & Operations Research 21 (1994).
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.packed_factor import packed_factor, solve_packed
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.engine.solver.lcp.sweep.product import compute_w_from_z, dense_dot
from featherlane.engine.solver.lcp.sweep.projection import largest_diagonal
from featherlane.engine.solver.lcp.sweep.residual import finish_at

SINGULAR = 1e-13  # pivots up to this, relative to the largest diagonal, count as 0: the row's x does not change
# rounding: violations of a bound up to EXACT times the size of x, and w of the wrong sign up to EXACT times the size of
# x times the largest diagonal
EXACT = 1e-12
AT_LOWER, OPEN, AT_UPPER = -1.0, 0.0, 1.0  # lcp_state of a row at its lower bound, free, at its upper bound


# ---- L D L^T of the free rows ----------------------------------------------------------------------------------------
@kernel
def list_active_rows(p):
    """Sets lcp.order to the rows that are free in any world, the active rows; returns how many."""
    count = 0
    for i in range(p.lcp.n[0]):
        if any_(p.lcp_state[i] == OPEN):
            p.lcp.order[count] = i
            count += 1
    return count


@kernel
def is_free_row(p, a):
    """Returns a mask of worlds in which active row a is free."""
    return p.lcp_state[p.lcp.order[a]] == OPEN


@kernel
def active_entry(p, unused, a, b, diagonal):
    """Returns the entry of A of active rows a and b; 0 in worlds in which row a is at a bound.

    unused, diagonal: arguments of every entry of `packed_factor`, not needed here.
    """
    return where(is_free_row(p, a), p.lcp.A[p.lcp.order[a] * p.lcp.n[0] + p.lcp.order[b]], 0.0)


_factor = packed_factor(active_entry)


@kernel
def factor_active_rows(p, count, least):
    """Computes lcp_L: L and 1 / D of `count` active rows; for a row at a bound 1 / D, row and column of L are 0."""
    _factor(p, 0, p.lcp_L, count, least)


@kernel
def find_free_step(p, count):
    """Computes the step lcp.dx = -A_CC^-1 w_C of the free rows, 0 for the others; `count` active rows."""
    for i in range(p.lcp.n[0]):
        p.lcp.dx[i] = 0.0
    for a in range(count):
        p.lcp_dx[a] = where(is_free_row(p, a), -p.lcp.w[p.lcp.order[a]], 0.0)
    solve_packed(p.lcp_L, count, p.lcp_dx)
    for a in range(count):
        p.lcp.dx[p.lcp.order[a]] = where(is_free_row(p, a), p.lcp_dx[a], 0.0)


# ---- a pass ----------------------------------------------------------------------------------------------------------
@kernel
def list_changed_rows(p):
    """Sets lcp.order to the rows whose x changes in any world, lcp.dx != 0; returns how many."""
    count = 0
    for i in range(p.lcp.n[0]):
        if any_(p.lcp.dx[i] != 0.0):
            p.lcp.order[count] = i
            count += 1
    return count


@kernel
def add_columns(p, first, count):
    """Adds A_ij dx_j to all w_i, for the `count` rows j = lcp.order[first], lcp.order[first + 1], ...; dx: lcp.dx."""
    n = p.lcp.n[0]
    column = tuple(p.lcp.order[first + k] for k in range(count))
    dx = tuple(p.lcp.dx[column[k]] for k in range(count))
    for i in range(n):
        w = p.lcp.w[i]
        for k in unrolled(range(count)):
            w = fma(p.lcp.A[column[k] * n + i], dx[k], w)  # A_ji = A_ij
        p.lcp.w[i] = w


@kernel
def add_correction(p):
    """Adds lcp.dx to x, and A lcp.dx to w, two columns at once.  Overwrites lcp.order."""
    for i in range(p.lcp.n[0]):
        p.lcp.x[i] = p.lcp.x[i] + p.lcp.dx[i]
    count = list_changed_rows(p)
    for two in range(count // 2):
        add_columns(p, 2 * two, count=2)
    if count % 2 == 1:
        add_columns(p, count - 1, count=1)


@kernel
def violations(p, i, x_tolerance, w_tolerance):
    """Returns masks (low, high, wrong) of worlds in which row i violates its condition.

    low: it is free and below its limits;  high: it is free and above them;  wrong: it is at a limit, and w has the
    wrong sign, w < 0 at the lower limit or w > 0 at the upper one.
    """
    x, w, state = p.lcp.x[i], p.lcp.w[i], p.lcp_state[i]
    free = state == OPEN
    movable = p.lcp.lower[i] < p.lcp.upper[i]  # a row with equal limits stays at them, whatever w
    low = free & (x < p.lcp.lower[i] - x_tolerance)
    high = free & (x > p.lcp.upper[i] + x_tolerance)
    # how far w is on the wrong side: below 0 at the lower limit, above 0 at the upper one
    wrong = movable & not_(free) & (where(state < 0.0, -w, w) > w_tolerance)
    return low, high, wrong


@kernel
def exchange_rows(p, live):
    """Changes lcp_state of rows that violate their condition; returns a mask of the live worlds with such rows.

    lcp.dx is set to the step of a row to the limit that it has passed, 0 for other rows.
    """
    diagonal = largest_diagonal(p)
    size = 0.0  # max over i of |x_i| and |b_i| / max A_jj: scale of the rounding of x
    for i in range(p.lcp.n[0]):
        size = fmax(fabs(p.lcp.x[i]), size)
        size = fmax(fabs(p.lcp.b[i]) / diagonal, size)
    x_tolerance = EXACT * size
    changed = false_mask(p)
    for i in range(p.lcp.n[0]):
        low, high, wrong = violations(p, i, x_tolerance, x_tolerance * diagonal)
        low, high, wrong = live & low, live & high, live & wrong
        state = where(low, AT_LOWER, where(high, AT_UPPER, where(wrong, OPEN, p.lcp_state[i])))
        bound = where(low, p.lcp.lower[i], p.lcp.upper[i])
        p.lcp.dx[i] = where(low | high, bound - p.lcp.x[i], 0.0)
        p.lcp_state[i] = state
        changed = changed | low | high | wrong
    return changed


@kernel
def start_sets(p):
    """Sets x = 0, w = -b, the limits and lcp_state; friction limits are 0 until the other rows are solved.

    A row with a limit of 0 starts at this limit if w has the right sign there; any other row is free.
    """
    for i in range(p.lcp.n[0]):
        p.lcp.lower[i], p.lcp.upper[i] = p.lcp.lo[i] + 0.0, p.lcp.hi[i] + 0.0
        if p.lcp.findex[i] >= 0:
            p.lcp.lower[i], p.lcp.upper[i] = 0.0, 0.0
        p.lcp.x[i], p.lcp.w[i] = 0.0, -p.lcp.b[i]
        low = (p.lcp.lower[i] == 0.0) & (p.lcp.w[i] >= 0.0)
        high = (p.lcp.upper[i] == 0.0) & (p.lcp.w[i] <= 0.0)
        p.lcp_state[i] = where(low, AT_LOWER, where(high, AT_UPPER, OPEN))


@kernel
def limit_friction_lanes(p, ready):
    """Sets friction limits -+(mu |x_normal| + add) in lcp.lower and lcp.upper, in worlds of the mask `ready`."""
    for i in range(p.lcp.n[0]):
        normal = p.lcp.findex[i]
        if normal >= 0:
            normal_force = fabs(p.lcp.x[normal])
            # without normal force there is no friction, whatever mu: inf * 0 would be NaN
            limit = where(normal_force > 0.0, p.lcp.hi[i] * normal_force, 0.0) + p.lcp.add[i]
            p.lcp.lower[i] = where(ready, -limit, p.lcp.lower[i])
            p.lcp.upper[i] = where(ready, limit, p.lcp.upper[i])


@kernel
def free_friction(p, ready):
    """Sets friction limits in worlds of the mask `ready`, and frees the friction rows whose limit is not 0."""
    limit_friction_lanes(p, ready)
    for i in range(p.lcp.n[0]):
        if p.lcp.findex[i] >= 0:
            p.lcp_state[i] = where(ready & (p.lcp.upper[i] > 0.0), OPEN, p.lcp_state[i])


@kernel
def solve_sets(p, least, live):
    """x_C <- A_CC^-1 (b_C - A_CN x_N), w_N <- (A x - b)_N in live worlds: C the free rows, N those at a bound.

    x_C moves by -A_CC^-1 w_C, with w = A x - b before this step.
    Overwrites lcp.order, lcp.dx, lcp_dx.   least: pivots up to it count as 0.
    """
    count = list_active_rows(p)
    factor_active_rows(p, count, least)
    find_free_step(p, count)
    for i in range(p.lcp.n[0]):
        p.lcp.x[i] = where(live, p.lcp.x[i] + p.lcp.dx[i], p.lcp.x[i])
    for i in range(p.lcp.n[0]):
        at_limit = p.lcp_state[i] != OPEN  # w of free rows is 0
        if any_(live & at_limit):
            w = where(at_limit, dense_dot(p, p.lcp.x, i) - p.lcp.b[i], 0.0)
            p.lcp.w[i] = where(live, w, p.lcp.w[i])
        else:
            p.lcp.w[i] = where(live, 0.0, p.lcp.w[i])


@kernel
def lane_blocks(p, passes):
    """Runs passes from x = 0 until every world is solved, at most `passes` in each.

    Reads:  the problem, dense; lcp.parameter: tolerance of the status.
    Writes: lcp.x, lcp.w, lcp.status, lcp.residual, lcp.niter; limits in effect in lcp.lower and lcp.upper.
    Scratch: lcp_L, lcp_state, lcp.dx, lcp_dx, lcp.order.
    Cost:   per pass 1/6 n^3 products in all worlds.
    """
    least = SINGULAR * largest_diagonal(p)
    passes_done = 0.0  # in each world
    start_sets(p)
    has_friction = false_mask(p)  # worlds whose friction limits are set
    live = true_mask(p)  # unsolved worlds
    for _ in range(passes):
        solve_sets(p, least, live)  # writes x of the free rows, w of the others
        passes_done = passes_done + where(live, 1.0, 0.0)
        changed = exchange_rows(p, live)  # writes lcp_state, lcp.dx
        ready = live & not_(changed | has_friction)  # solved without friction: its limits are set next
        live = live & (changed | ready)
        has_friction = has_friction | ready
        if not any_(live):
            break
        free_friction(p, ready)  # updates lcp.lower, lcp.upper, lcp_state
        add_correction(p)  # moves rows to the limits that they have passed, by lcp.dx
    # one more step of the free rows, from a recomputed w, corrects rounding
    compute_w_from_z(p)
    active = list_active_rows(p)
    if any_(live):
        # a world has stopped at its last pass: the sets have changed since the factorization, and with them the order
        # of rows in the factor, in all worlds
        factor_active_rows(p, active, least)
    find_free_step(p, active)
    for i in range(p.lcp.n[0]):
        p.lcp.x[i] = clip(p.lcp.x[i] + p.lcp.dx[i], p.lcp.lower[i], p.lcp.upper[i])
    finish_at(p, p.lcp.lower, p.lcp.upper)
    p.lcp.niter[0] = passes_done


@stage(p=PROBLEM)
def solve_lane_blocks(p, passes):
    """Runs block principal pivoting on standalone problems; see `lane_blocks`.

    Reads:  lcp.n, lcp.A, lcp.b, lcp.lo, lcp.hi, lcp.findex, lcp.add, lcp.parameter.
    Writes: lcp.x (nlcp,) [N, N m], lcp.w (nlcp,) [m/s^2, rad/s^2], lcp.*, of which lcp.lower and lcp.upper are the
            limits in effect.
    Scratch: lcp_L, lcp_state, lcp_dx.
    """
    lane_blocks(p, passes)
