"""Block principal pivoting for dense problems, W of one structure at once.

With the present set C of free rows and all others at bounds, x_C solves A_CC x_C = b_C - A_CN x_N.  Then every row that
violates its condition changes sides at once: a free one beyond a bound goes to it, one at a bound whose w has the wrong
sign becomes free.  Three to six passes are usually enough.  If sets repeat, the method never ends, so a world stops
after some passes, and leaves the problem to single pivots (lane_by_lane.py).

A_CC is factored again in each pass, as L D L^T of all rows that are free in any world; for a row at its bound 1 / D
is 0.  So all worlds of a tile share the order of elimination.  Every sum runs over rows in their order, and rows at a
bound add 0 to it, because their rows of L are 0.  So a world's result is bitwise independent of the free rows of other
worlds, even if values of a world overflow.

Friction is *frozen*, as in ODE: first all other rows are solved, with x = 0 in those of friction, then all of them
at the resulting limits.
Symbols: i, j, k: rows of the problem;  a, b: active rows, which are free in some world, row lcp.order[a];  h: an active
    row before both;  u = L D.
Buffers: lcp.lower, lcp.upper: lower and upper limits in effect;  lcp.dx: change of x;  lcp_dx: by active row, of the
    substitutions;  lcp_state: the sets, see OPEN;  lcp_dinv: 1 / D by active row;  lcp_L: rows of the lower triangle L
    one after another, L_ab = lcp_L[row_start(a) + b] for b < a.  A_ij = lcp.A[i * n + j]; `dense_dot`: a row of A x.
Source: Judice and Pires, "A block principal pivoting algorithm for large-scale strictly monotone linear complementarity
problems", Computers & Operations Research 21 (1994).
"""

from featherlane.prelude import *
from featherlane.solver.lcp.fields import PROBLEM
from featherlane.solver.lcp.sweep.product import dense_dot, place_w
from featherlane.solver.lcp.sweep.projection import largest_diagonal
from featherlane.solver.lcp.sweep.residual import finish_at

SINGULAR = 1e-13  # of the largest diagonal: with a smaller pivot, the row's x does not change
EXACT = 1e-12  # smaller violations of a bound, relative to the largest x (of w: scaled by the diagonal), are rounding
OPEN = 0.0  # in lcp_state for a free row: -1 for a row at its lower bound, 1 at its upper one


# ---- sums of products, two rows and two columns at once --------------------------------------------------------------
@kernel
def row_start(a):
    """Returns the index in lcp_L of the first entry of row a of the lower triangle: a (a + 1) / 2."""
    return a * (a + 1) // 2


@kernel
def pair_products(p, a, b, count):
    """Returns s_00, s_01, s_10, s_11:   s_ij = sum over h < count of u_(a+i)h L_(b+j)h."""
    row_a0, row_a1, row_b0, row_b1 = row_start(a), row_start(a + 1), row_start(b), row_start(b + 1)
    s00, s01, s10, s11 = 0.0, 0.0, 0.0, 0.0
    for h in range(count):
        u0, u1 = p.lcp_L[row_a0 + h], p.lcp_L[row_a1 + h]
        L0, L1 = p.lcp_L[row_b0 + h], p.lcp_L[row_b1 + h]
        s00, s01, s10, s11 = fma(u0, L0, s00), fma(u0, L1, s01), fma(u1, L0, s10), fma(u1, L1, s11)
    return s00, s01, s10, s11


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
def active_entry(p, a, b):
    """Returns the entry of A of active rows a and b."""
    return p.lcp.A[p.lcp.order[a] * p.lcp.n[0] + p.lcp.order[b]]


@kernel
def is_free_row(p, a):
    """Returns a mask of worlds in which active row a is free."""
    return p.lcp_state[p.lcp.order[a]] == OPEN


@kernel
def store_inverse_pivot(p, a, pivot, least):
    """Sets lcp_dinv = 1 / pivot of active row a; 0 for a row at a bound, or if the pivot is not above `least`."""
    regular = (pivot > least) & is_free_row(p, a)
    p.lcp_dinv[a] = where(regular, 1.0 / where(regular, pivot, 1.0), 0.0)


@kernel
def finish_row(p, a, least):
    """Computes row a of L from u in its place: L_ah = u_ah / D_h,  D_a = A_aa - sum of u_ah L_ah;  0 at a bound."""
    row, pivot, free = row_start(a), active_entry(p, a, a) + 0.0, is_free_row(p, a)
    for h in range(a):
        u = p.lcp_L[row + h]
        L = u * p.lcp_dinv[h]
        pivot = fma(-u, L, pivot)
        p.lcp_L[row + h] = where(free, L, 0.0)
    store_inverse_pivot(p, a, pivot, least)


@kernel
def finish_row_pair(p, a, least):
    """Computes rows a (0) and a + 1 (1) of L as `finish_row`: three independent sums hide latency.

    The entry between them is u_10 = A_10 - sum over h < a of u_1h L_0h, and L_10 = u_10 / D_0.
    """
    row0, row1, free0, free1 = row_start(a), row_start(a + 1), is_free_row(p, a), is_free_row(p, a + 1)
    s10, pivot0, pivot1 = 0.0, active_entry(p, a, a) + 0.0, active_entry(p, a + 1, a + 1) + 0.0
    for h in range(a):
        u0, u1, inverse = p.lcp_L[row0 + h], p.lcp_L[row1 + h], p.lcp_dinv[h]
        L0, L1 = where(free0, u0 * inverse, 0.0), u1 * inverse
        s10, pivot0, pivot1 = fma(u1, L0, s10), fma(-u0, L0, pivot0), fma(-u1, L1, pivot1)
        p.lcp_L[row0 + h], p.lcp_L[row1 + h] = L0, where(free1, L1, 0.0)
    store_inverse_pivot(p, a, pivot0, least)
    u10 = active_entry(p, a + 1, a) - s10
    L10 = u10 * p.lcp_dinv[a]
    p.lcp_L[row1 + a] = where(free1, L10, 0.0)
    store_inverse_pivot(p, a + 1, fma(-u10, L10, pivot1), least)


@kernel
def fill_row_pair(p, a, b, rows):
    """Computes columns b and b + 1 of u, of row a and, if `rows` is 2, of row a + 1.

    u_ab = A_ab - sum over h < b of u_ah L_bh;  column b + 1 has one product more, u_ab L_(b+1)b.
    """
    row0, row1 = row_start(a), row_start(a + 1)
    s00, s01, s10, s11 = pair_products(p, a, b, b)
    L = p.lcp_L[row_start(b + 1) + b]
    u0 = active_entry(p, a, b) - s00
    p.lcp_L[row0 + b], p.lcp_L[row0 + b + 1] = u0, active_entry(p, a, b + 1) - fma(u0, L, s01)
    if rows > 1:
        u1 = active_entry(p, a + 1, b) - s10
        p.lcp_L[row1 + b], p.lcp_L[row1 + b + 1] = u1, active_entry(p, a + 1, b + 1) - fma(u1, L, s11)


@kernel
def fill_four_rows(p, a, b):
    """Computes columns b (0) and b + 1 (1) of u, of rows a to a + 3, as `fill_row_pair`: eight independent sums."""
    row, row_b0, row_b1 = tuple(row_start(a + i) for i in range(4)), row_start(b), row_start(b + 1)
    s0, s1 = zeros(4), zeros(4)
    for h in range(b):
        L0, L1, u = p.lcp_L[row_b0 + h], p.lcp_L[row_b1 + h], tuple(p.lcp_L[row[i] + h] for i in range(4))
        s0, s1 = tuple(fma(u[i], L0, s0[i]) for i in range(4)), tuple(fma(u[i], L1, s1[i]) for i in range(4))
    L_10 = p.lcp_L[row_b1 + b]
    for i in unrolled(range(4)):
        u0 = active_entry(p, a + i, b) - s0[i]
        p.lcp_L[row[i] + b], p.lcp_L[row[i] + b + 1] = u0, active_entry(p, a + i, b + 1) - fma(u0, L_10, s1[i])


@kernel
def factor_active_rows(p, count, least):
    """Computes lcp_L = L, lcp_dinv = 1 / D of `count` active rows; 1 / D, row and column of L are 0 at a bound."""
    fours = count // 4
    # four rows at once: u in the columns before them, then two pairs of rows
    for four in range(fours):
        a = 4 * four
        for block in range(2 * four):
            fill_four_rows(p, a, 2 * block)
        finish_row_pair(p, a, least)
        fill_row_pair(p, a + 2, a, rows=2)
        finish_row_pair(p, a + 2, least)
    # the last one to three rows
    a = 4 * fours
    while a < count:
        rows = 2 if a + 1 < count else 1
        for block in range(a // 2):
            fill_row_pair(p, a, 2 * block, rows)
        if rows > 1:
            finish_row_pair(p, a, least)
        else:
            finish_row(p, a, least)
        a += rows


@kernel
def find_free_step(p, count):
    """Computes the step lcp.dx = -A_CC^-1 w_C of the free rows, 0 for the others; `count` active rows."""
    for i in range(p.lcp.n[0]):
        p.lcp.dx[i] = 0.0
    # lcp_dx = -L^-1 w, then -D^-1 L^-1 w, then -A_CC^-1 w
    substitute_change_forward(p, count)
    for a in range(count):
        p.lcp_dx[a] = p.lcp_dx[a] * p.lcp_dinv[a]
    substitute_change_backward(p, count)
    for a in range(count):
        p.lcp.dx[p.lcp.order[a]] = if_free(p, a, p.lcp_dx[a])


@kernel
def if_free(p, a, x):
    """Returns x if active row a is free, 0 at a bound: 0 times infinity would be NaN."""
    return where(is_free_row(p, a), x, 0.0)


@kernel
def substitute_change_forward(p, count):
    """Computes lcp_dx = -L^-1 w of `count` active rows, two rows at once."""
    for half in range(count // 2):
        a = 2 * half
        row, next_row = row_start(a), row_start(a + 1)
        rest, next_rest = -p.lcp.w[p.lcp.order[a]], -p.lcp.w[p.lcp.order[a + 1]]
        for h in range(a):
            y = p.lcp_dx[h] + 0.0
            rest, next_rest = fma(-p.lcp_L[row + h], y, rest), fma(-p.lcp_L[next_row + h], y, next_rest)
        rest = if_free(p, a, rest)
        p.lcp_dx[a], p.lcp_dx[a + 1] = rest, if_free(p, a + 1, fma(-p.lcp_L[next_row + a], rest, next_rest))
    if count % 2 == 1:
        a = count - 1
        rest = -p.lcp.w[p.lcp.order[a]]
        for h in range(a):
            rest = fma(-p.lcp_L[row_start(a) + h], p.lcp_dx[h], rest)
        p.lcp_dx[a] = if_free(p, a, rest)


@kernel
def substitute_change_backward(p, count):
    """Computes lcp_dx <- L^-T lcp_dx of `count` active rows, two rows at once from the last ones."""
    b = count - 2
    while b >= 0:
        row, next_row = row_start(b), row_start(b + 1)
        next_y = if_free(p, b + 1, p.lcp_dx[b + 1])
        y = if_free(p, b, fma(-p.lcp_L[next_row + b], next_y, p.lcp_dx[b]))
        p.lcp_dx[b], p.lcp_dx[b + 1] = y, next_y
        for h in range(b):
            p.lcp_dx[h] = fma(-p.lcp_L[row + h], y, fma(-p.lcp_L[next_row + h], next_y, p.lcp_dx[h]))
        b -= 2  # with an odd count, row 0 is left at the end: it has no entries of L


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
def add_column(p, j):
    """Adds column j of A, times the change of x_j in lcp.dx, to w."""
    n, change = p.lcp.n[0], p.lcp.dx[j] + 0.0
    for i in range(n):
        p.lcp.w[i] = fma(p.lcp.A[j * n + i], change, p.lcp.w[i])


@kernel
def add_two_columns(p, j, k):
    """Runs `add_column` for columns j and k, with half the loads of w."""
    n, change_j, change_k = p.lcp.n[0], p.lcp.dx[j] + 0.0, p.lcp.dx[k] + 0.0
    for i in range(n):
        p.lcp.w[i] = fma(p.lcp.A[k * n + i], change_k, fma(p.lcp.A[j * n + i], change_j, p.lcp.w[i]))


@kernel
def add_correction(p):
    """Adds lcp.dx to x, and A lcp.dx to w.  Overwrites lcp.order."""
    for i in range(p.lcp.n[0]):
        p.lcp.x[i] = p.lcp.x[i] + p.lcp.dx[i]
    count = list_changed_rows(p)
    for half in range(count // 2):
        add_two_columns(p, p.lcp.order[2 * half], p.lcp.order[2 * half + 1])
    if count % 2 == 1:
        add_column(p, p.lcp.order[count - 1])


@kernel
def violations(p, i, x_tolerance, w_tolerance):
    """Returns masks of row i: free and below its limits, free and above them, at a limit with w of the wrong sign."""
    x, w, side = p.lcp.x[i], p.lcp.w[i], p.lcp_state[i]
    free, moves = side == OPEN, p.lcp.lower[i] < p.lcp.upper[i]  # a row with equal limits never moves
    low, high = free & (x < p.lcp.lower[i] - x_tolerance), free & (x > p.lcp.upper[i] + x_tolerance)
    wrong = moves & not_(free) & (where(side < 0.0, -w, w) > w_tolerance)
    return low, high, wrong


@kernel
def exchange_rows(p, live):
    """Changes lcp_state of rows on the wrong side, and sets lcp.dx = their steps to limits; returns changed worlds."""
    size, diagonal = 0.0, largest_diagonal(p)
    for i in range(p.lcp.n[0]):
        size = fmax(fabs(p.lcp.x[i]), size)
        size = fmax(fabs(p.lcp.b[i]) / diagonal, size)
    x_tolerance = EXACT * size
    moved = size < 0.0  # mask of no world
    for i in range(p.lcp.n[0]):
        low, high, wrong = violations(p, i, x_tolerance, x_tolerance * diagonal)
        low, high, wrong = live & low, live & high, live & wrong
        state = where(low, -1.0, where(high, 1.0, where(wrong, OPEN, p.lcp_state[i])))
        bound = where(low, p.lcp.lower[i], p.lcp.upper[i])
        p.lcp.dx[i] = where(low | high, bound - p.lcp.x[i], 0.0)
        p.lcp_state[i] = state
        moved = moved | low | high | wrong
    return moved


@kernel
def start_sets(p):
    """Sets limits, x = 0, w = -b and the sets; friction limits are 0 until the other rows are solved.

    A row is at a limit of 0 if w has the right sign for it, else it is free.
    """
    for i in range(p.lcp.n[0]):
        p.lcp.lower[i], p.lcp.upper[i] = p.lcp.lo[i] + 0.0, p.lcp.hi[i] + 0.0
        if p.lcp.findex[i] >= 0:
            p.lcp.lower[i], p.lcp.upper[i] = 0.0, 0.0
        p.lcp.x[i], p.lcp.w[i] = 0.0, -p.lcp.b[i]
        low = (p.lcp.lower[i] == 0.0) & (p.lcp.w[i] >= 0.0)
        high = (p.lcp.upper[i] == 0.0) & (p.lcp.w[i] <= 0.0)
        p.lcp_state[i] = where(low, -1.0, where(high, 1.0, OPEN))


@kernel
def limit_friction_lanes(p, ready):
    """Sets friction limits mu |x_normal| + add in lcp.lower and lcp.upper, in worlds that are ready."""
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
    """Sets friction limits in worlds that are ready, and frees the rows whose limit is not 0."""
    limit_friction_lanes(p, ready)
    for i in range(p.lcp.n[0]):
        if p.lcp.findex[i] >= 0:
            p.lcp_state[i] = where(ready & (p.lcp.upper[i] > 0.0), OPEN, p.lcp_state[i])


@kernel
def solve_sets(p, least, live):
    """Solves for x of the free rows and w of the others, in live worlds.  Overwrites lcp.order, lcp.dx, lcp_dx."""
    count = list_active_rows(p)
    factor_active_rows(p, count, least)
    find_free_step(p, count)
    for i in range(p.lcp.n[0]):
        p.lcp.x[i] = where(live, p.lcp.x[i] + p.lcp.dx[i], p.lcp.x[i])
    for i in range(p.lcp.n[0]):
        bound = p.lcp_state[i] != OPEN  # w of free rows is 0
        if any_(live & bound):
            w = where(bound, dense_dot(p, p.lcp.x, i) - p.lcp.b[i], 0.0)
            p.lcp.w[i] = where(live, w, p.lcp.w[i])
        else:
            p.lcp.w[i] = where(live, 0.0, p.lcp.w[i])


@kernel
def lane_blocks(p, passes):
    """Runs passes from x = 0 until every world is solved, at most `passes` in each.

    Reads:  the problem, dense; lcp.parameter: tolerance of the status.
    Writes: lcp.x, lcp.w, lcp.status, lcp.residual, lcp.niter; limits in effect in lcp.lower and lcp.upper.
    Scratch: lcp_L, lcp_dinv, lcp_state, lcp.dx, lcp_dx, lcp.order.
    Cost:   per pass 1/6 n^3 products in all worlds.
    """
    least, steps = SINGULAR * largest_diagonal(p), 0.0
    start_sets(p)
    # worlds: opened: with friction limits;  live: unsolved;  ready: solved without friction, limits are set next
    opened = steps > 0.0  # no world
    live = not_(opened)
    for _ in range(passes):
        solve_sets(p, least, live)  # writes x of the free rows, w of the others
        steps = steps + where(live, 1.0, 0.0)
        moved = exchange_rows(p, live)  # changes lcp_state
        ready = live & not_(moved | opened)
        live = live & (moved | ready)
        opened = opened | ready
        if not any_(live):
            break
        free_friction(p, ready)  # updates lcp.lower, lcp.upper, lcp_state
        add_correction(p)  # of the rows that `exchange_rows` moved to their limits: lcp.dx
    # one more step of the free rows, from a new w, corrects rounding
    place_w(p)
    active = list_active_rows(p)
    if any_(live):
        # the sets, and so the order of rows in the factor, have changed since the last factorization, in all worlds
        factor_active_rows(p, active, least)
    find_free_step(p, active)
    for i in range(p.lcp.n[0]):
        p.lcp.x[i] = clip(p.lcp.x[i] + p.lcp.dx[i], p.lcp.lower[i], p.lcp.upper[i])
    finish_at(p, p.lcp.lower, p.lcp.upper)
    p.lcp.niter[0] = steps


@stage(p=PROBLEM)
def solve_lane_blocks(p, passes):
    """Runs block principal pivoting on standalone problems; see `lane_blocks`.

    Reads:  lcp.n, lcp.A, lcp.b, lcp.lo, lcp.hi, lcp.findex, lcp.add, lcp.parameter.
    Writes: lcp.x (nlcp,) [N, N m], lcp.w (nlcp,) [m/s^2, rad/s^2], lcp.*, of which lcp.lower and lcp.upper are the
            limits in effect; for itself lcp_L.
    """
    lane_blocks(p, passes)
