"""A semismooth Newton method (primal-dual active set) for dense problems, W of one structure at once.

At x each row is at its lower bound, at its upper one, or free, by where x_i - w_i / A_ii lies.  A step solves

    free row    (A (x + d))_i = b_i
    at a bound  (x + d)_i = its bound at x + d; of friction +-(mu |x_k + d_k| + add), which moves with the normal k

exactly, so friction limits are consistent, and near a solution one or two steps end at rounding.  Rows at bounds are
eliminated, which adds s mu A_it to the normal's column of row i, and the rest is factored as L U without exchanges: every
world of a tile has the same order of elimination, with rows that are not free as rows of the identity.

The method is local: from far away the sets may cycle.  So sweeps of projected Gauss-Seidel go before each step, the best
iterate is kept, and what is not solved within the limit of steps says so.
Source: Hintermueller, Ito, Kunisch, "The primal-dual active set strategy as a semismooth Newton method", SIAM J. Optim.
13 (2002); Alart and Curnier, "A mixed formulation for frictional contact problems prone to Newton like solution
methods", 1991, for friction.
"""

from __future__ import annotations

from ...lanes import any_, fabs, fma, kernel, not_, real, stage, where
from .pgs import sweep_rows
from .product import place_w
from .projection import bounds, largest_diagonal, set_steps
from .residual import finish, residual, stop_at
from .sweep_order import start_order

SINGULAR = 1e-14  # of the largest diagonal: a row with a smaller pivot stays where it is


# ---- the active set --------------------------------------------------------------------------------------------------
@kernel
def classify(p):
    """lcp_g = -1 at the lower bound, 1 at the upper one, 0 free; lcp_y = how far x is from that bound."""
    for i in range(p.lcp_n[0]):
        lo, hi = bounds(p, p.lcp_x, i)
        u = fma(-p.lcp_step[i], p.lcp_w[i], p.lcp_x[i])
        low, high = u <= lo, u >= hi
        p.lcp_g[i] = where(low, -1.0, where(high, 1.0, 0.0))
        p.lcp_y[i] = where(low, lo - p.lcp_x[i], where(high, hi - p.lcp_x[i], 0.0))


@kernel
def slope(p, i):
    """How the bound of row i moves with its normal: s mu sign(x_k); 0 of a free row or one without a normal."""
    k, s = p.lcp_findex[i], real(p, 0.0)
    if k >= 0:
        s = p.lcp_g[i] * where(p.lcp_g[i] == 0.0, 0.0, p.lcp_hi[i]) * where(p.lcp_x[k] < 0.0, -1.0, 1.0)
    return s


@kernel
def follow_normals(p):
    """Where a normal jumps to its bound, bounds of friction jump with it."""
    for i in range(p.lcp_n[0]):
        if p.lcp_findex[i] >= 0:
            p.lcp_y[i] = fma(slope(p, i), p.lcp_y[p.lcp_findex[i]], p.lcp_y[i])


# ---- the linear system -----------------------------------------------------------------------------------------------
@kernel
def load_row(p, i):
    """Row i of the system, in lcp_L, and its right-hand side, in lcp_old."""
    n, a = p.lcp_n[0], i * p.lcp_n[0]
    s = p.lcp_w[i] + 0.0
    for j in range(n):
        p.lcp_L[a + j] = p.lcp_A[a + j]
    for j in range(n):
        s = fma(p.lcp_A[a + j], p.lcp_y[j], s)
        k = p.lcp_findex[j]
        if k >= 0:
            p.lcp_L[a + k] = fma(p.lcp_change[j], p.lcp_A[a + j], p.lcp_L[a + k])
    free = p.lcp_g[i] == 0.0
    p.lcp_old[i] = where(free, -s, 0.0)
    for j in range(n):
        p.lcp_L[a + j] = where(free & (p.lcp_g[j] == 0.0), p.lcp_L[a + j], 0.0)
    p.lcp_L[a + i] = where(free, p.lcp_L[a + i], 1.0)


@kernel
def load_system(p):
    """All rows of the system."""
    for i in range(p.lcp_n[0]):
        p.lcp_change[i] = slope(p, i)
    for i in range(p.lcp_n[0]):
        if any_(p.lcp_g[i] == 0.0):
            load_row(p, i)


@kernel
def eliminate(p, k, least):
    """Column k below the pivot."""
    n, a = p.lcp_n[0], k * p.lcp_n[0]
    pivot = p.lcp_L[a + k]
    regular = fabs(pivot) > least
    inverse = where(regular, 1.0 / where(regular, pivot, 1.0), 0.0)
    p.lcp_L[a + k] = inverse
    for i in range(k + 1, n):
        c = i * n
        f = -(p.lcp_L[c + k] * inverse)
        if any_(p.lcp_g[i] == 0.0):
            if any_(f != 0.0):
                p.lcp_old[i] = fma(f, p.lcp_old[k], p.lcp_old[i])
                for j in range(k + 1, n):
                    p.lcp_L[c + j] = fma(f, p.lcp_L[a + j], p.lcp_L[c + j])


@kernel
def solve_system(p):
    """lcp_old = change of the free rows."""
    n, least = p.lcp_n[0], SINGULAR * largest_diagonal(p)
    for k in range(n):
        if any_(p.lcp_g[k] == 0.0):
            eliminate(p, k, least)
    for at in range(n):
        k = n - 1 - at
        if any_(p.lcp_g[k] == 0.0):
            s = p.lcp_old[k] + 0.0
            for j in range(k + 1, n):
                s = fma(-p.lcp_L[k * n + j], where(p.lcp_g[j] == 0.0, p.lcp_old[j], 0.0), s)
            p.lcp_old[k] = where(p.lcp_g[k] == 0.0, s * p.lcp_L[k * n + k], 0.0)


# ---- the method ------------------------------------------------------------------------------------------------------
@kernel
def newton_step(p, live):
    """x goes to the solution of the system; w follows."""
    classify(p)
    follow_normals(p)
    load_system(p)
    solve_system(p)
    for i in range(p.lcp_n[0]):
        d = p.lcp_y[i] + 0.0
        k = p.lcp_findex[i]
        if k >= 0:
            moved = where(p.lcp_g[k] == 0.0, p.lcp_old[k], 0.0)
            d = fma(p.lcp_change[i], moved, d)
        d = where(p.lcp_g[i] == 0.0, p.lcp_old[i], d)
        p.lcp_x[i] = where(live, p.lcp_x[i] + d, p.lcp_x[i])
    place_w(p)


@kernel
def keep(p, far, best, live):
    """lcp_best = x where its residual is the smallest so far; returns that."""
    better = live & (far < best)
    for i in range(p.lcp_n[0]):
        p.lcp_best[i] = where(better, p.lcp_x[i], p.lcp_best[i])
    return where(better, far, best)


@kernel
def semismooth(p, iterations, sweeps):
    """Steps from lcp_x until every world has converged, at most `iterations`; `sweeps` before each.

    Reads:  the problem, dense; lcp_parameter: tolerance and omega of the sweeps.
    Writes: lcp_x, lcp_w, lcp_status, lcp_niter, lcp_residual.
    Cost:   per step 1/3 n^3 products.
    """
    set_steps(p, 0)
    start_order(p, 0)
    place_w(p)
    tolerance, count = stop_at(p), real(p, 0.0)
    best = residual(p, p.lcp_x, p.lcp_w, 0)
    for i in range(p.lcp_n[0]):
        p.lcp_best[i] = p.lcp_x[i] + 0.0
    live = not_(best <= tolerance)
    for _ in range(iterations):
        if not any_(live):
            break
        for _ in range(sweeps):
            sweep_rows(p, 0, live)
        place_w(p)
        newton_step(p, live)
        best = keep(p, residual(p, p.lcp_x, p.lcp_w, 0), best, live)
        count = count + where(live, 1.0, 0.0)
        live = live & not_(best <= tolerance)
    for i in range(p.lcp_n[0]):
        p.lcp_x[i] = p.lcp_best[i]
    finish(p, 0)
    p.lcp_niter[0] = count


@stage
def solve_semismooth(p, iterations, sweeps):
    """The semismooth Newton method on problems that stand alone; see `semismooth`."""
    semismooth(p, iterations, sweeps)
