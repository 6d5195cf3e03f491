"""Primal-dual interior point method for a box, with Mehrotra's predictor and corrector.

    A x - b = u - v,   x - lo = s > 0,   hi - x = t > 0,   s u = t v = mu -> 0,   u, v > 0

A step is one of Newton's method on these equations.  Slacks s, t and multipliers u, v are eliminated:

    (A + diag(u / s + v / t)) dx = ...

The matrix is symmetric and positive definite; the factor of the pivoting solves it twice: for the predictor, mu = 0,
and for the corrector.  The corrector aims at mu = sigma times the present one, sigma = (mu after the predictor / mu
now)^3, and adds the products of the predictor's changes.  x and the multipliers take the same step, up to nearly the
first s, t, u or v that vanishes.  s and t are separate variables, since x - lo would round to 0 near the solution.

Friction limits are *frozen*: first the rows without findex are solved, then all rows at the limits that follow.
Source: S. Mehrotra, "On the implementation of a primal-dual interior point method" (1992); Nocedal and Wright,
    Numerical Optimization (2006), sec. 16.6; S. J. Wright, Primal-Dual Interior-Point Methods (1997), ch. 8.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.fields import PROBLEM
from featherlane.solver.lcp.method import ONE, Count, Method
from featherlane.solver.lcp.newton.place_residual import (
    TOLERANCE,
    finish_places,
    keep_best_place,
    residual_of_places,
    restore_best_place,
)
from featherlane.solver.lcp.pivot.factor import (
    clear_factor,
    clear_matrix,
    eights_of_row,
    substitute_backward,
    substitute_forward,
)
from featherlane.solver.lcp.pivot.friction import limit_friction
from featherlane.solver.lcp.pivot.many_rows import put_all_between
from featherlane.solver.lcp.pivot.scaled_problem import (
    INF,
    force_inside,
    load_places,
    order_rows,
    refresh,
    set_zero_solution,
)

EXACT = 1e-13  # residual at which iterations end; above it, they end if a solution does not improve by half
REACH = 0.995  # of the step at which the first slack or multiplier vanishes
WIDEST = 1e150  # a bound farther away counts as none


# ---- a place ---------------------------------------------------------------------------------------------------------
@kernel
def has_lower(r1, i):
    """Checks whether place i has a lower bound."""
    return r1.place.lo[i] > -WIDEST


@kernel
def has_upper(r1, i):
    """Checks whether place i has an upper bound."""
    return r1.place.hi[i] < WIDEST


@kernel
def is_movable(r1, i):
    """Checks whether the bounds of place i differ."""
    return r1.place.lo[i] < r1.place.hi[i]


@kernel
def start_place(r1, i, size):
    """Sets x of a place inside its bounds, slacks, and multipliers with the product size^2; those of no bound are 0."""
    lo, hi, x = r1.place.lo[i], r1.place.hi[i], 0.0
    reach = size
    if has_lower(r1, i) and has_upper(r1, i):
        reach = fmin(size, 0.5 * (hi - lo))
    if is_movable(r1, i):
        x = clip(0.0 * size, lo + reach, hi - reach)
    r1.place.x[i] = x
    r1.barrier.s[i], r1.barrier.u[i], r1.barrier.t[i], r1.barrier.v[i] = 0.0, 0.0, 0.0, 0.0
    if is_movable(r1, i) and has_lower(r1, i):
        r1.barrier.s[i] = x - lo
        r1.barrier.u[i] = size * (size / r1.barrier.s[i])
    if is_movable(r1, i) and has_upper(r1, i):
        r1.barrier.t[i] = hi - x
        r1.barrier.v[i] = size * (size / r1.barrier.t[i])


@kernel
def ratio(a, b):
    """Returns a / b, 0 for b = 0."""
    return a / b if b > 0.0 else 0.0 * a


@kernel
def start_inside(r1, last):
    """Sets the first iterate of the places before the last."""
    size = 0.0
    for i in range(last):
        size = fmax(fabs(r1.place.b[i]), size)
    if size == 0.0:
        size = size + 1.0
    for i in range(last):
        start_place(r1, i, size)


# ---- the linear system -----------------------------------------------------------------------------------------------
@kernel
def factor_barrier(r1, last):
    """Factors A + diag(u / s + v / t) of the places whose bounds differ."""
    stride, count = 8 * eights_of_row(r1), 0
    clear_factor(r1)
    for i in range(last):
        r1.one.slot[i] = -1
        if is_movable(r1, i):
            r1.one.factor[count] = i
            count += 1
        o = i * stride + i
        r1.barrier.diagonal[i] = r1.place.A[o] + 0.0
        curvature = ratio(r1.barrier.u[i], r1.barrier.s[i]) + ratio(r1.barrier.v[i], r1.barrier.t[i])
        r1.place.A[o] = r1.place.A[o] + curvature
    put_all_between(r1, count)
    for i in range(last):
        r1.place.A[i * stride + i] = r1.barrier.diagonal[i] + 0.0


@kernel
def barrier_direction(r1, last):
    """Computes place.dx from the right-hand side in place.dx; 0 outside the factor."""
    m = r1.one.nfactor[0]
    for k in range((m + 7) // 8 * 8):
        r1.one.turn[k] = r1.place.dx[r1.one.factor[k]] if k < m else 0.0
    substitute_forward(r1, r1.one.turn)
    substitute_backward(r1, r1.one.turn, r1.one.y)
    for i in range(last):
        r1.place.dx[i] = 0.0
    for k in range(m):
        r1.place.dx[r1.one.factor[k]] = r1.one.y[k]


# ---- steps -----------------------------------------------------------------------------------------------------------
@kernel
def target(r1, i, goal):
    """Returns (s u, t v) that place i aims at: mu less the products of the predictor's changes; 0 without a bound."""
    below, above = 0.0, 0.0
    if r1.barrier.s[i] > 0.0:
        below = goal - r1.barrier.below[i]
    if r1.barrier.t[i] > 0.0:
        above = goal - r1.barrier.above[i]
    return below, above


@kernel
def solve_barrier(r1, last, goal):
    """Computes place.dx of the step to s u = t v = goal, with the products in barrier.below and barrier.above."""
    for i in range(last):
        below, above = target(r1, i, goal)
        r1.place.dx[i] = ratio(below, r1.barrier.s[i]) - ratio(above, r1.barrier.t[i]) - r1.place.w[i]
    barrier_direction(r1, last)


@kernel
def multiplier_changes(r1, i, goal):
    """Returns (du, dv) of place i: s du + u ds = target - s u, with ds = dx, dt = -dx."""
    below, above = target(r1, i, goal)
    d, u, v = r1.place.dx[i], r1.barrier.u[i], r1.barrier.v[i]
    return ratio(below - u * d, r1.barrier.s[i]) - u, ratio(above + v * d, r1.barrier.t[i]) - v


@kernel
def until_zero(x, d, step):
    """Returns the step at which x > 0 vanishes, or `step` if that is shorter; x = 0 is no variable."""
    longest = step
    if x > 0.0 and x < -d * step:
        longest = x / -d
    return longest


@kernel
def longest_step(r1, last, goal):
    """Returns the step at which the first slack or multiplier vanishes, at most 1."""
    step = 1.0
    for i in range(last):
        d = r1.place.dx[i]
        du, dv = multiplier_changes(r1, i, goal)
        step = until_zero(r1.barrier.s[i], d, until_zero(r1.barrier.t[i], -d, step))
        step = until_zero(r1.barrier.u[i], du, until_zero(r1.barrier.v[i], dv, step))
    return step


@kernel
def complementarity_gap(r1, last, step):
    """Returns the mean of s u and t v after a predictor step; 0 without bounds."""
    total, count = 0.0, 0.0
    for i in range(last):
        d = step * r1.place.dx[i]
        du, dv = multiplier_changes(r1, i, 0.0)
        if r1.barrier.s[i] > 0.0:
            total, count = total + (r1.barrier.s[i] + d) * (r1.barrier.u[i] + step * du), count + 1.0
        if r1.barrier.t[i] > 0.0:
            total, count = total + (r1.barrier.t[i] - d) * (r1.barrier.v[i] + step * dv), count + 1.0
    return ratio(total, count)


@kernel
def keep_products(r1, last):
    """Stores the products of the predictor's changes."""
    for i in range(last):
        d = r1.place.dx[i]
        du, dv = multiplier_changes(r1, i, 0.0)
        r1.barrier.below[i], r1.barrier.above[i] = d * du, -d * dv


@kernel
def clear_products(r1, last):
    """Clears the products."""
    for i in range(last):
        r1.barrier.below[i], r1.barrier.above[i] = 0.0, 0.0


@kernel
def predictor_goal(r1, last):
    """Computes the predictor, keeps its products, and returns the corrector's mu."""
    clear_products(r1, last)
    now = complementarity_gap(r1, last, 0.0)
    solve_barrier(r1, last, 0.0)
    share = ratio(complementarity_gap(r1, last, longest_step(r1, last, 0.0)), now)
    keep_products(r1, last)
    return share * share * share * now


@kernel
def take_barrier_step(r1, last, goal):
    """Moves x, slacks and multipliers; computes w."""
    step = REACH * longest_step(r1, last, goal)
    for i in range(last):
        d = r1.place.dx[i]
        du, dv = multiplier_changes(r1, i, goal)
        r1.place.x[i] = fma(step, d, r1.place.x[i])
        if r1.barrier.s[i] > 0.0:
            r1.barrier.s[i], r1.barrier.u[i] = fma(step, d, r1.barrier.s[i]), fma(step, du, r1.barrier.u[i])
        if r1.barrier.t[i] > 0.0:
            r1.barrier.t[i], r1.barrier.v[i] = fma(-step, d, r1.barrier.t[i]), fma(step, dv, r1.barrier.v[i])
    refresh(r1)


# ---- the method ------------------------------------------------------------------------------------------------------
@kernel
def follow_central_path(r1, last, iterations):
    """Solves the places before the last, with all others at x = 0; returns the number of steps."""
    start_inside(r1, last)
    refresh(r1)
    used, best, going = 0, INF, 1
    while going:
        before = best
        residual = residual_of_places(r1)
        if residual < best:
            best = residual
            keep_best_place(r1)
        if residual <= EXACT or used == iterations or (best <= TOLERANCE and residual > 0.5 * before):
            going = 0
        else:
            used += 1
            factor_barrier(r1, last)
            goal = predictor_goal(r1, last)
            solve_barrier(r1, last, goal)
            take_barrier_step(r1, last, goal)
    restore_best_place(r1)
    for i in range(last):
        force_inside(r1, i)
    refresh(r1)
    return used


@kernel
def interior_point(r1, iterations):
    """Solves the problem one.A, one.b, ... of a record by at most `iterations` steps, with friction twice as many.

    Reads:  one.n, one.findex, one.A, one.b, one.lo, one.hi, one.add.
    Writes: one.*, one.niter (steps).
    Scratch: place.*, barrier.*.
    Cost:   per step n^3 / 6 products and 3 n^2.
    """
    n, rows = r1.one.n[0], 0
    order_rows(r1)
    rows = r1.one.nconstant[0]
    load_places(r1)
    clear_matrix(r1)
    set_zero_solution(r1)
    used = follow_central_path(r1, rows, iterations)
    most = used
    if rows < n:
        limit_friction(r1)
        last = follow_central_path(r1, n, iterations)
        most = max(most, last)
        used += last
    finish_places(r1, used, most == iterations)


@stage(p1=PROBLEM)
def solve_interior_point(p1, iterations):
    """Solves a standalone problem by `interior_point`.

    Reads:  one.n, one.A, one.b, one.lo, one.hi, one.findex, one.add.
    Writes: one.x (nlcpone,) [N], one.w (nlcpone,) [m/s^2], one.*.
    Scratch: place.*, barrier.*.
    """
    interior_point(p1, iterations)


METHOD = Method(
    "interior_point",
    solve_interior_point,
    form=ONE,
    numbers={"iterations": Count(100, "largest number of steps; as many again for friction")},
)
