"""Dantzig's method for dense problems, W of one structure at once, each world with pivots of its own.

Rows are driven one at a time.  Driving row r changes its force, the forces of free rows so that their w stays 0, and
the w of all others; the row ends where its w is 0 (it becomes free) or at a bound.  A row driven before that would
break its own condition goes the other way first: from its bound to the free ones, or back.

Lanes cannot branch, so each step is the same for all worlds, with a row r of its own in each: read column r of the
tableau G, find the first event, and exchange one row.  With C the free rows and N the others, G is A swept on C:

    G_CC = -A_CC^-1,   G_CN = A_CC^-1 A_CN,   G_NN = A_NN - A_NC A_CC^-1 A_CN

so column r holds both -dx_C and dw_N of a unit of x_r, and an exchange on row p is one symmetric update of rank 1:

    G <- G - u u^T / g_p - 2 s e_p e_p^T,   u = column p less s e_p,   s = 1 into C, -1 out of it

Friction is *frozen*, as ODE has it: rows of friction wait with x = 0 until all others are solved, and their limits are
set once, from the normals of that moment.
Source: Cottle and Dantzig, "Complementary pivot theory of mathematical programming", 1968; Baraff, "Fast contact force
computation for nonpenetrating rigid bodies", SIGGRAPH 1994; Goodnight, "A tutorial on the SWEEP operator", Amer. Stat.
33 (1979).  Where we differ: the row that violates its condition most is driven next, so a row that holds is no
hindrance before it was driven itself; steps of length zero are steps.
"""

from __future__ import annotations

from ...lanes import (
    any_,
    fabs,
    fma,
    fmax,
    fmin,
    gather_rows,
    kernel,
    not_,
    read_lane,
    real,
    stage,
    where,
    whole,
    width,
    write_lane,
)
from .product import place_w
from .projection import largest_diagonal
from .residual import finish_at
from .status import INFEASIBLE, SOLVED

WAITING, LOW, FREE, HIGH = 0, 1, 2, 3  # states of a row, in lcp_best; a row that waits has x = 0
FAR = 1e30  # no event: further than any force is
SINGULAR = 1e-13  # of the largest diagonal: less than this is no pivot
EXACT = 1e-14  # relative to the largest product in it: a smaller w is 0
REFINEMENTS = 2


# ---- the tableau, a lower triangle by rows in lcp_L ------------------------------------------------------------------
@kernel
def load_tableau(p):
    """G = A, no row is free."""
    n, at = p.lcp_n[0], 0
    for i in range(n):
        for j in range(i + 1):
            p.lcp_L[at] = p.lcp_A[i * n + j]
            at += 1


@kernel
def load_column(p, r):
    """lcp_old = column r of G, r by world: number by number, which takes a third of the time of gathering."""
    p.lcp_niter[0] = r
    for lane in range(width(p)):
        k = whole(read_lane(p.lcp_niter, 0, lane))
        at = k * (k + 1) // 2
        for j in range(k):
            write_lane(p.lcp_old, j, lane, read_lane(p.lcp_L, at + j, lane))
        at += k
        for j in range(k, p.lcp_n[0]):
            write_lane(p.lcp_old, j, lane, read_lane(p.lcp_L, at, lane))
            at += j + 1


@kernel
def sweep_tableau(p, q, sign, inverse):
    """Row q goes into C (sign 1) or out of it (-1), its column is in lcp_old; where inverse = 0 nothing changes."""
    at = 0
    for i in range(p.lcp_n[0]):
        here = q == 1.0 * i
        p.lcp_old[i] = p.lcp_old[i] - where(here, sign, 0.0)
        f = -(p.lcp_old[i] * inverse)
        if any_(f != 0.0):
            for j in range(i + 1):
                p.lcp_L[at + j] = fma(f, p.lcp_old[j], p.lcp_L[at + j])
            p.lcp_L[at + i] = p.lcp_L[at + i] - where(here & (inverse != 0.0), 2.0 * sign, 0.0)
        at += i + 1


# ---- rows ------------------------------------------------------------------------------------------------------------
@kernel
def start_rows(p):
    """x = 0, bounds in lcp_y and lcp_g; rows of friction are closed (lo > hi) until their limits are known."""
    for i in range(p.lcp_n[0]):
        closed = p.lcp_findex[i] >= 0
        p.lcp_y[i] = p.lcp_lo[i] + 0.0
        p.lcp_g[i] = p.lcp_hi[i] + 0.0
        if closed:
            p.lcp_y[i], p.lcp_g[i] = real(p, 1.0), real(p, -1.0)
        p.lcp_x[i], p.lcp_w[i] = real(p, 0.0), -p.lcp_b[i]
        p.lcp_best[i] = real(p, 1.0 * WAITING)
        p.lcp_change[i] = fabs(p.lcp_b[i])


@kernel
def open_friction(p, ready):
    """Limits of friction from the normals, in worlds that are ready."""
    for i in range(p.lcp_n[0]):
        k = p.lcp_findex[i]
        if k >= 0:
            load = fabs(p.lcp_x[k])
            most = where(load > 0.0, p.lcp_hi[i] * load, 0.0) + p.lcp_add[i]
            p.lcp_y[i] = where(ready, -most, p.lcp_y[i])
            p.lcp_g[i] = where(ready, most, p.lcp_g[i])


@kernel
def violation(p, i):
    """By how much a waiting row breaks its condition at x = 0: its |w|, where there is room to go."""
    w = p.lcp_w[i]
    room = where(w < 0.0, p.lcp_g[i] > 0.0, p.lcp_y[i] < 0.0)
    shut = (p.lcp_y[i] > p.lcp_g[i]) | (p.lcp_best[i] != 1.0 * WAITING) | (fabs(w) <= EXACT * p.lcp_change[i])
    return where(room & not_(shut), fabs(w), 0.0)


@kernel
def worst_row(p):
    """The waiting row that breaks its condition most, -1 where none does."""
    most, row = real(p, 0.0), real(p, -1.0)
    for i in range(p.lcp_n[0]):
        v = violation(p, i)
        worse = v > most
        most, row = where(worse, v, most), where(worse, 1.0 * i, row)
    return row


# ---- a step ----------------------------------------------------------------------------------------------------------
@kernel
def row_event(p, i, towards):
    """(room, rate): the driven row may go by room / rate, then x_i is at a bound or w_i is 0; rate 0: for ever."""
    state, g = p.lcp_best[i], towards * p.lcp_old[i]
    free, low = state == 1.0 * FREE, state == 1.0 * LOW
    # free: dx = -g; else dw = g
    w = where(low, p.lcp_w[i], -p.lcp_w[i])
    room = where(free, where(g > 0.0, p.lcp_x[i] - p.lcp_y[i], p.lcp_g[i] - p.lcp_x[i]), w)
    rate = where(free, fabs(g), where(low, -g, where(state == 1.0 * HIGH, g, 0.0)))
    return fmax(room, 0.0), where(p.lcp_y[i] < p.lcp_g[i], fmax(rate, 0.0), 0.0)


@kernel
def first_event(p, r, towards, w, pivot, bound):
    """(length, row) of the first event; of the driven row itself n where it becomes free, -1 where it meets a bound."""
    n = p.lcp_n[0]
    bends = pivot > 0.0
    # lengths are fractions room / rate, compared without dividing
    room, rate, row = where(bends, fabs(w), FAR), where(bends, pivot, 1.0), real(p, 1.0 * n)
    sooner = bound * rate < room
    room, rate, row = where(sooner, bound, room), where(sooner, 1.0, rate), where(sooner, -1.0, row)
    for i in range(n):
        a, c = row_event(p, i, towards)
        sooner = (a * rate < room * c) & (r != 1.0 * i)
        room, rate, row = where(sooner, a, room), where(sooner, c, rate), where(sooner, 1.0 * i, row)
    return room / rate, row


@kernel
def advance(p, r, q, towards, length):
    """x and w go on by that length; row q ends exactly where it stopped; returns its sign in an exchange.

    A row that was free is at a bound then, any other one is free; q may be r.
    """
    sign = real(p, 0.0)
    for i in range(p.lcp_n[0]):
        driven, ends = r == 1.0 * i, q == 1.0 * i
        free, g = p.lcp_best[i] == 1.0 * FREE, towards * p.lcp_old[i]
        dx = where(driven, towards, where(free, -g, 0.0))
        x = fma(length, dx, p.lcp_x[i])
        w = where(free, 0.0, fma(length, g, p.lcp_w[i]))
        up = dx > 0.0
        leaves = ends & free
        x = where(leaves, where(up, p.lcp_g[i], p.lcp_y[i]), x)
        p.lcp_x[i] = x
        p.lcp_w[i] = where(ends, 0.0, w)
        enters = ends & not_(free)
        state = where(enters, 1.0 * FREE, where(leaves, where(up, 1.0 * HIGH, 1.0 * LOW), p.lcp_best[i]))
        p.lcp_best[i] = state
        p.lcp_change[i] = fma(length, fabs(g), p.lcp_change[i])
        sign = sign + where(enters, 1.0, 0.0) - where(leaves, 1.0, 0.0)
    return sign


@kernel
def settle(p, r, towards, bound):
    """The driven row ends at the bound that it met."""
    for i in range(p.lcp_n[0]):
        here = bound & (r == 1.0 * i)
        p.lcp_x[i] = where(here, where(towards > 0.0, p.lcp_g[i], p.lcp_y[i]), p.lcp_x[i])
        p.lcp_best[i] = where(here, where(towards > 0.0, 1.0 * HIGH, 1.0 * LOW), p.lcp_best[i])


@kernel
def column_at(p, q):
    """The element of lcp_old at row q."""
    return gather_rows(p.lcp_old, fmax(q, 0.0))


@kernel
def pivot_step(p, r, least):
    """One step of the worlds that drive a row (r >= 0); returns the row they drive on, and where there is no end."""
    n, live = p.lcp_n[0], r >= 0.0
    at = fmax(r, 0.0)
    load_column(p, at)
    w, x, diagonal = gather_rows(p.lcp_w, at), gather_rows(p.lcp_x, at), column_at(p, at)
    towards = where(live, where(w < 0.0, 1.0, -1.0), 0.0)
    room = where(w < 0.0, gather_rows(p.lcp_g, at) - x, x - gather_rows(p.lcp_y, at))
    length, event = first_event(p, at, towards, w, where(diagonal > least, diagonal, 0.0), room)
    endless = live & (length >= FAR)
    moves = live & not_(endless)
    bound = moves & (event < 0.0)
    q = where(event >= 1.0 * n, at, event)
    q = where(moves & not_(bound), q, -1.0)
    sign = advance(p, where(live, at, -1.0), q, towards, where(moves, length, 0.0))
    settle(p, at, towards, bound)
    if any_((q != at) & (q >= 0.0)):
        load_column(p, fmax(q, 0.0))
    g = column_at(p, q)
    exchanged = (q >= 0.0) & (g != 0.0)
    sweep_tableau(p, q, sign, where(exchanged, 1.0 / where(exchanged, g, 1.0), 0.0))
    return where(moves & not_(bound) & (q != at), r, -1.0), endless


# ---- the method ------------------------------------------------------------------------------------------------------
@kernel
def refine(p):
    """x_C once more by -A_CC^-1 w_C with a w computed anew."""
    n = p.lcp_n[0]
    place_w(p)
    for i in range(n):
        s = real(p, 0.0)
        for j in range(n):
            at = i * (i + 1) // 2 + j if j <= i else j * (j + 1) // 2 + i
            s = fma(p.lcp_L[at], where(p.lcp_best[j] == 1.0 * FREE, p.lcp_w[j], 0.0), s)
        p.lcp_old[i] = where(p.lcp_best[i] == 1.0 * FREE, s, 0.0)
    for i in range(n):
        x = p.lcp_x[i] + p.lcp_old[i]
        p.lcp_x[i] = where(p.lcp_y[i] > p.lcp_g[i], p.lcp_x[i], fmin(fmax(x, p.lcp_y[i]), p.lcp_g[i]))


@kernel
def lane_dantzig(p, pivots):
    """Pivots from x = 0 until every world is solved, at most so many.

    Reads:  the problem, dense; lcp_parameter: tolerance of the status.
    Writes: lcp_x, lcp_w, lcp_status, lcp_niter, lcp_residual; limits in effect in lcp_y and lcp_g.
    Cost:   per pivot 1/2 n^2 products in all worlds.
    """
    least, count = SINGULAR * largest_diagonal(p), real(p, 0.0)
    load_tableau(p)
    start_rows(p)
    r, opened, failed = real(p, -1.0), count > 0.0, count > 0.0
    live = not_(opened)
    for _ in range(pivots):
        r = where(live & (r < 0.0), worst_row(p), r)
        idle = live & (r < 0.0)
        if any_(idle):
            live = live & not_(idle & opened)
            open_friction(p, idle & not_(opened))
            opened = opened | idle
            r = where(live & idle, worst_row(p), r)
            live = live & (r >= 0.0)
        if not any_(live):
            break
        count = count + where(live, 1.0, 0.0)
        r, endless = pivot_step(p, where(live, r, -1.0), least)
        failed = failed | endless
        live = live & not_(endless)
    open_friction(p, not_(opened))
    for _ in range(REFINEMENTS):
        refine(p)
    finish_at(p, p.lcp_y, p.lcp_g)
    p.lcp_status[0] = where(failed & (p.lcp_status[0] != 1.0 * SOLVED), 1.0 * INFEASIBLE, p.lcp_status[0])
    p.lcp_niter[0] = count


@stage
def solve_lane_dantzig(p, pivots):
    """Dantzig's method in lanes, on problems that stand alone; see `lane_dantzig`."""
    lane_dantzig(p, pivots)
