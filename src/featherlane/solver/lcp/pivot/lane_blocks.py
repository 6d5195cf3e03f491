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
OPEN = 0.0  # in lcp_state: -1 for a row at its lower bound, 1 at its upper one, 0 if free


# ---- sums of products, two rows and two columns at once --------------------------------------------------------------
@kernel
def start_of(a):
    """Returns the start of row a of the lower triangle in lcp_L."""
    return a * (a + 1) // 2


@kernel
def factor_pair(p, a, b, count):
    """Returns sums over k < count of u_k L_k for u of rows a and a + 1, L of rows b and b + 1."""
    i, j, c, d = start_of(a), start_of(a + 1), start_of(b), start_of(b + 1)
    q, r, s, t = 0.0, 0.0, 0.0, 0.0
    for k in range(count):
        u, v = p.lcp_L[i + k], p.lcp_L[j + k]
        x, y = p.lcp_L[c + k], p.lcp_L[d + k]
        q, r, s, t = fma(u, x, q), fma(u, y, r), fma(v, x, s), fma(v, y, t)
    return q, r, s, t


# ---- L D L^T of the free rows ----------------------------------------------------------------------------------------
@kernel
def list_active(p):
    """Sets lcp.order to the rows that are free in any world; returns how many."""
    m = 0
    for i in range(p.lcp.n[0]):
        if any_(p.lcp_state[i] == OPEN):
            p.lcp.order[m] = i
            m += 1
    return m


@kernel
def active_entry(p, a, b):
    """Returns A of active rows a and b."""
    return p.lcp.A[p.lcp.order[a] * p.lcp.n[0] + p.lcp.order[b]]


@kernel
def is_free_row(p, a):
    """Returns a mask: is active row a free?"""
    return p.lcp_state[p.lcp.order[a]] == OPEN


@kernel
def invert(p, a, d, least):
    """Computes 1 / D of active row a; 0 for a row at a bound, or without a pivot."""
    regular = (d > least) & is_free_row(p, a)
    p.lcp_dinv[a] = where(regular, 1.0 / where(regular, d, 1.0), 0.0)


@kernel
def divide_row_by_pivot(p, a, least):
    """Computes row a of L = u / D, and 1 / D_a; 0 for a row at a bound."""
    row, d, free = start_of(a), active_entry(p, a, a) + 0.0, is_free_row(p, a)
    for k in range(a):
        u = p.lcp_L[row + k]
        v = u * p.lcp_dinv[k]
        d = fma(-u, v, d)
        p.lcp_L[row + k] = where(free, v, 0.0)
    invert(p, a, d, least)


@kernel
def finish_two(p, a, least):
    """Computes rows a and a + 1 of L: three independent sums hide latency."""
    i, j, first, second = start_of(a), start_of(a + 1), is_free_row(p, a), is_free_row(p, a + 1)
    c, d, e = 0.0, active_entry(p, a, a) + 0.0, active_entry(p, a + 1, a + 1) + 0.0
    for k in range(a):
        u, v, r = p.lcp_L[i + k], p.lcp_L[j + k], p.lcp_dinv[k]
        x, y = where(first, u * r, 0.0), v * r
        c, d, e = fma(v, x, c), fma(-u, x, d), fma(-v, y, e)
        p.lcp_L[i + k], p.lcp_L[j + k] = x, where(second, y, 0.0)
    invert(p, a, d, least)
    u = active_entry(p, a + 1, a) - c
    x = u * p.lcp_dinv[a]
    p.lcp_L[j + a] = where(second, x, 0.0)
    invert(p, a + 1, fma(-u, x, e), least)


@kernel
def fill_two(p, a, b, rows):
    """Computes columns b and b + 1 of u, of row a and, if `rows` is 2, of row a + 1."""
    i, j = start_of(a), start_of(a + 1)
    q, r, s, t = factor_pair(p, a, b, b)
    e = p.lcp_L[start_of(b + 1) + b]
    x = active_entry(p, a, b) - q
    p.lcp_L[i + b], p.lcp_L[i + b + 1] = x, active_entry(p, a, b + 1) - fma(x, e, r)
    if rows > 1:
        y = active_entry(p, a + 1, b) - s
        p.lcp_L[j + b], p.lcp_L[j + b + 1] = y, active_entry(p, a + 1, b + 1) - fma(y, e, t)


@kernel
def fill_four(p, a, b):
    """Computes columns b and b + 1 of u, of rows a to a + 3: eight independent sums."""
    row, c, d = tuple(start_of(a + i) for i in range(4)), start_of(b), start_of(b + 1)
    q, r = zeros(4), zeros(4)
    for h in range(b):
        x, y, u = p.lcp_L[c + h], p.lcp_L[d + h], tuple(p.lcp_L[row[i] + h] for i in range(4))
        q, r = tuple(fma(u[i], x, q[i]) for i in range(4)), tuple(fma(u[i], y, r[i]) for i in range(4))
    e = p.lcp_L[d + b]
    for i in unrolled(range(4)):
        x = active_entry(p, a + i, b) - q[i]
        p.lcp_L[row[i] + b], p.lcp_L[row[i] + b + 1] = x, active_entry(p, a + i, b + 1) - fma(x, e, r[i])


@kernel
def factor_free(p, m, least):
    """Computes lcp.L = L, lcp.step = 1 / D of the active rows; at a bound 1 / D and the row and column of L are 0."""
    fours = m // 4
    for four in range(fours):
        a = 4 * four
        for block in range(2 * four):
            fill_four(p, a, 2 * block)
        finish_two(p, a, least)
        fill_two(p, a + 2, a, 2)
        finish_two(p, a + 2, least)
    a = 4 * fours
    while a < m:
        rows = 2 if a + 1 < m else 1
        for block in range(a // 2):
            fill_two(p, a, 2 * block, rows)
        if rows > 1:
            finish_two(p, a, least)
        else:
            divide_row_by_pivot(p, a, least)
        a += rows


@kernel
def solve_free(p, m):
    """Computes lcp.old = -A_CC^-1 w_C of the active rows, 0 for the others."""
    for i in range(p.lcp.n[0]):
        p.lcp.old[i] = 0.0
    substitute_change_forward(p, m)
    for a in range(m):
        p.lcp.change[a] = p.lcp.change[a] * p.lcp_dinv[a]
    substitute_change_backward(p, m)
    for a in range(m):
        p.lcp.old[p.lcp.order[a]] = if_free(p, a, p.lcp.change[a])


@kernel
def if_free(p, a, x):
    """Returns x if active row a is free, 0 at a bound: 0 times infinity would be NaN."""
    return where(is_free_row(p, a), x, 0.0)


@kernel
def substitute_change_forward(p, m):
    """Computes lcp.change = -L^-1 w of the active rows, two rows at once."""
    for half in range(m // 2):
        a = 2 * half
        i, j = start_of(a), start_of(a + 1)
        s, t = -p.lcp.w[p.lcp.order[a]], -p.lcp.w[p.lcp.order[a + 1]]
        for k in range(a):
            y = p.lcp.change[k] + 0.0
            s, t = fma(-p.lcp_L[i + k], y, s), fma(-p.lcp_L[j + k], y, t)
        s = if_free(p, a, s)
        p.lcp.change[a], p.lcp.change[a + 1] = s, if_free(p, a + 1, fma(-p.lcp_L[j + a], s, t))
    if m % 2 == 1:
        a = m - 1
        s = -p.lcp.w[p.lcp.order[a]]
        for k in range(a):
            s = fma(-p.lcp_L[start_of(a) + k], p.lcp.change[k], s)
        p.lcp.change[a] = if_free(p, a, s)


@kernel
def substitute_change_backward(p, m):
    """Computes lcp.change <- L^-T lcp.change, two rows at once."""
    b = m - 2
    while b >= 0:
        i, j = start_of(b), start_of(b + 1)
        t = if_free(p, b + 1, p.lcp.change[b + 1])
        s = if_free(p, b, fma(-p.lcp_L[j + b], t, p.lcp.change[b]))
        p.lcp.change[b], p.lcp.change[b + 1] = s, t
        for k in range(b):
            p.lcp.change[k] = fma(-p.lcp_L[i + k], s, fma(-p.lcp_L[j + k], t, p.lcp.change[k]))
        b -= 2


# ---- a pass ----------------------------------------------------------------------------------------------------------
@kernel
def list_changed(p):
    """Sets lcp.order to the rows whose x changes in any world; returns how many."""
    m = 0
    for i in range(p.lcp.n[0]):
        if any_(p.lcp.old[i] != 0.0):
            p.lcp.order[m] = i
            m += 1
    return m


@kernel
def add_column(p, j):
    """Updates w by the change of x_j."""
    n, d = p.lcp.n[0], p.lcp.old[j] + 0.0
    for i in range(n):
        p.lcp.w[i] = fma(p.lcp.A[j * n + i], d, p.lcp.w[i])


@kernel
def add_two_columns(p, j, k):
    """Runs `add_column` for j and k, with half the loads."""
    n, c, d = p.lcp.n[0], p.lcp.old[j] + 0.0, p.lcp.old[k] + 0.0
    for i in range(n):
        p.lcp.w[i] = fma(p.lcp.A[k * n + i], d, fma(p.lcp.A[j * n + i], c, p.lcp.w[i]))


@kernel
def add_correction(p):
    """Adds lcp.old to x, and updates w."""
    for i in range(p.lcp.n[0]):
        p.lcp.x[i] = p.lcp.x[i] + p.lcp.old[i]
    m = list_changed(p)
    for half in range(m // 2):
        add_two_columns(p, p.lcp.order[2 * half], p.lcp.order[2 * half + 1])
    if m % 2 == 1:
        add_column(p, p.lcp.order[m - 1])


@kernel
def exceeds(p, i, far, pull):
    """Returns (below its bound, above it, w of the wrong sign) of row i; `far` and `pull` are rounding of x and w."""
    x, w, s = p.lcp.x[i], p.lcp.w[i], p.lcp_state[i]
    free, moves = s == OPEN, p.lcp.y[i] < p.lcp.g[i]
    low, high = free & (x < p.lcp.y[i] - far), free & (x > p.lcp.g[i] + far)
    wrong = moves & not_(free) & (where(s < 0.0, -w, w) > pull)
    return low, high, wrong


@kernel
def exchange_rows(p, live):
    """Changes the sides of rows that violate their condition: lcp.old = change of x; returns worlds with a change."""
    size, step = 0.0, largest_diagonal(p)
    for i in range(p.lcp.n[0]):
        size = fmax(fabs(p.lcp.x[i]), size)
        size = fmax(fabs(p.lcp.b[i]) / step, size)
    far = EXACT * size
    moved = size < 0.0
    for i in range(p.lcp.n[0]):
        low, high, wrong = exceeds(p, i, far, far * step)
        low, high, wrong = live & low, live & high, live & wrong
        state = where(low, -1.0, where(high, 1.0, where(wrong, OPEN, p.lcp_state[i])))
        bound = where(low, p.lcp.y[i], p.lcp.g[i])
        p.lcp.old[i] = where(low | high, bound - p.lcp.x[i], 0.0)
        p.lcp_state[i] = state
        moved = moved | low | high | wrong
    return moved


@kernel
def start_sets(p):
    """Sets x = 0, w = -b; rows that can move against w are free, others at the bound by w's sign; friction waits."""
    for i in range(p.lcp.n[0]):
        p.lcp.y[i], p.lcp.g[i] = p.lcp.lo[i] + 0.0, p.lcp.hi[i] + 0.0
        if p.lcp.findex[i] >= 0:
            p.lcp.y[i], p.lcp.g[i] = 0.0, 0.0
        p.lcp.x[i], p.lcp.w[i] = 0.0, -p.lcp.b[i]
        low = (p.lcp.y[i] == 0.0) & (p.lcp.w[i] >= 0.0)
        high = (p.lcp.g[i] == 0.0) & (p.lcp.w[i] <= 0.0)
        p.lcp_state[i] = where(low, -1.0, where(high, 1.0, OPEN))


@kernel
def open_friction(p, ready):
    """Sets friction limits from the normals, in worlds that are ready."""
    for i in range(p.lcp.n[0]):
        k = p.lcp.findex[i]
        if k >= 0:
            load = fabs(p.lcp.x[k])
            most = where(load > 0.0, p.lcp.hi[i] * load, 0.0) + p.lcp.add[i]
            p.lcp.y[i] = where(ready, -most, p.lcp.y[i])
            p.lcp.g[i] = where(ready, most, p.lcp.g[i])


@kernel
def free_friction(p, ready):
    """Frees friction rows whose limits, now set, are not 0."""
    open_friction(p, ready)
    for i in range(p.lcp.n[0]):
        if p.lcp.findex[i] >= 0:
            p.lcp_state[i] = where(ready & (p.lcp.g[i] > 0.0), OPEN, p.lcp_state[i])


@kernel
def solve_sets(p, least, live):
    """Solves for x of the free rows, and w of the others, in live worlds."""
    m = list_active(p)
    factor_free(p, m, least)
    solve_free(p, m)
    for i in range(p.lcp.n[0]):
        p.lcp.x[i] = where(live, p.lcp.x[i] + p.lcp.old[i], p.lcp.x[i])
    for i in range(p.lcp.n[0]):
        bound = p.lcp_state[i] != OPEN
        if any_(live & bound):
            w = where(bound, dense_dot(p, p.lcp.x, i) - p.lcp.b[i], 0.0)
            p.lcp.w[i] = where(live, w, p.lcp.w[i])
        else:
            p.lcp.w[i] = where(live, 0.0, p.lcp.w[i])


@kernel
def lane_blocks(p, passes):
    """Runs passes from x = 0 until every world is solved, at most `passes` in each.

    Reads:  the problem, dense; lcp.parameter: tolerance of the status.
    Writes: lcp.*; limits in effect in lcp.* and lcp.*.
    Cost:   per pass 1/6 n^3 products in all worlds.
    """
    least, count = SINGULAR * largest_diagonal(p), 0.0
    start_sets(p)
    opened = count > 0.0
    live = not_(opened)
    for _ in range(passes):
        solve_sets(p, least, live)
        count = count + where(live, 1.0, 0.0)
        moved = exchange_rows(p, live)
        ready = live & not_(moved | opened)
        live = live & (moved | ready)
        opened = opened | ready
        if not any_(live):
            break
        free_friction(p, ready)
        add_correction(p)
    place_w(p)
    m = list_active(p)
    if any_(live):
        # the sets, and so the order of rows in the factor, have changed since the last factorization, in all worlds
        factor_free(p, m, least)
    solve_free(p, m)
    for i in range(p.lcp.n[0]):
        p.lcp.x[i] = clip(p.lcp.x[i] + p.lcp.old[i], p.lcp.y[i], p.lcp.g[i])
    finish_at(p, p.lcp.y, p.lcp.g)
    p.lcp.niter[0] = count


@stage(p=PROBLEM)
def solve_lane_blocks(p, passes):
    """Runs block principal pivoting on standalone problems; see `lane_blocks`.

    Reads:  lcp.n, lcp.A, lcp.b, lcp.lo, lcp.hi, lcp.findex, lcp.add, lcp.parameter.
    Writes: lcp.x (nlcp,) [N, N m], lcp.w (nlcp,) [m/s^2, rad/s^2], lcp.*; limits in effect in lcp.* and lcp.*; for
            itself lcp_L.
    """
    lane_blocks(p, passes)
