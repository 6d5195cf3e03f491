"""Newton's method on the minimum map of a box with friction limits that follow the normals, safeguarded by sweeps.

    F_i(x) = x_i - clip(x_i - w_i / A_ii, lo_i, hi_i),   w = A x - b;   friction: -lo_i = hi_i = mu |x_k| + add

F is piecewise linear.  Its derivative depends on the side of each row at x - w / A_ii: between its bounds, w_i = 0
is to hold; at a bound, x_i is to equal it, and a friction limit moves with its normal.  So the system of a step has
only the rows between their bounds as unknowns, and is not symmetric if contacts slip.  A full step with the right
sides gives the solution exactly, with *consistent* limits.

|F| need not fall in each step, since rows that share their load often change sides on the way to the solution.  A step
is halved if |F| grows tenfold.  If it still does, the next system is damped: its diagonal grows, as in Levenberg and
Marquardt's method.  If the residual has not fallen for some steps, sweeps of projected Gauss-Seidel continue from the
best iterate.  The first sides are those after some sweeps.  The result is the iterate with the smallest residual.
Source: L. Qi and J. Sun, "A nonsmooth version of Newton's method" (1993); K. Erleben, "Numerical methods for linear
    complementarity problems in physics-based animation", SIGGRAPH course (2013), for the minimum map and its line
    search; M. Silcowitz, S. Niebe, K. Erleben, "Projected Gauss-Seidel subspace minimization method for interactive
    rigid body dynamics" (2010), for sweeps in place of a step.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.fields import PROBLEM
from featherlane.solver.lcp.method import ONE, Count, Method
from featherlane.solver.lcp.newton.linear_system import solve_system
from featherlane.solver.lcp.newton.place_residual import (
    TOLERANCE,
    finish_places,
    keep_best_place,
    residual_of_places,
    restore_best_place,
)
from featherlane.solver.lcp.pivot.factor import eights_of_row
from featherlane.solver.lcp.pivot.friction import gauss_seidel_sweep, limit_friction
from featherlane.solver.lcp.pivot.scaled_problem import (
    BETWEEN,
    INF,
    LOWER,
    UPPER,
    add_matrix_product,
    clear_direction,
    force_inside,
    load_places,
    order_rows,
    refresh,
    set_zero_solution,
)

EXACT = 1e-14  # residual at which iterations end; above it, they end if a solution does not improve by half
FIRST_SWEEPS = 20  # before the first step: with 4, towers of eight boxes take twice as many steps
SWEEPS = 60  # in place of a step
HALVINGS = 2  # of a step
GROWTH = 100.0  # of |F|^2 that a step may cause: with 1, towers need five times as many steps
LEAST = 1e-10  # damping after the first refused step, relative to the diagonal
MORE, LESS = 100.0, 0.1  # factors of the damping after a refused step, and after a step
PATIENCE = 20  # steps without a smaller residual, after which sweeps start from the best iterate


# ---- the minimum map -------------------------------------------------------------------------------------------------
@kernel
def inverse_diagonal(r1, i):
    """Returns 1 / A_ii of a place; 1 without a diagonal."""
    a = r1.place.A[i * 8 * eights_of_row(r1) + i]
    return 1.0 / a if a > 0.0 else 1.0


@kernel
def squared_map(r1):
    """Returns |F|^2 at x, w and the present limits."""
    s = 0.0
    for i in range(r1.one.n[0]):
        x = r1.place.x[i]
        f = x - clip(fma(-r1.place.w[i], inverse_diagonal(r1, i), x), r1.place.lo[i], r1.place.hi[i])
        s = s + f * f
    return s


@kernel
def choose_sides(r1):
    """Sets the side of each place; lists those between their bounds in one.factor, and returns how many."""
    m = 0
    for i in range(r1.one.n[0]):
        u = fma(-r1.place.w[i], inverse_diagonal(r1, i), r1.place.x[i])
        r1.one.state[i], r1.one.slot[i] = BETWEEN, -1
        if u <= r1.place.lo[i]:
            r1.one.state[i] = LOWER
        elif u >= r1.place.hi[i]:
            r1.one.state[i] = UPPER
        else:
            r1.one.factor[m], r1.one.slot[i] = i, m
            m += 1
    return m


# ---- the system of a step --------------------------------------------------------------------------------------------
@kernel
def normal_place(r1, i):
    """Returns the place of the normal of a friction place."""
    return r1.one.place[r1.one.findex[r1.one.order[i]]]


@kernel
def limit_slope(r1, i):
    """Returns dx_i / dx_k of friction place i and its normal k: 0 between its bounds, or without friction."""
    slope, k = 0.0, normal_place(r1, i)
    mu = r1.one.hi[r1.one.order[i]]
    if r1.one.state[i] != BETWEEN and mu < INF:
        slope = mu * (r1.place.scale[k] / r1.place.scale[i])
        if r1.one.state[i] == LOWER:
            slope = -slope
        if r1.place.x[k] < 0.0:
            slope = -slope
    return slope


@kernel
def move_to_bounds(r1):
    """Sets place.dx of the places at bounds, without the change of normals between bounds; place.dw = A dx."""
    n, width = r1.one.n[0], eights_of_row(r1)
    clear_direction(r1, width)
    for i in range(n):
        state = r1.one.state[i]
        if state != BETWEEN:
            bound = r1.place.lo[i] if state == LOWER else r1.place.hi[i]
            r1.place.dx[i] = bound - r1.place.x[i]
    for i in range(r1.one.nconstant[0], n):
        k = normal_place(r1, i)
        if r1.one.state[i] != BETWEEN and r1.one.state[k] != BETWEEN:
            r1.place.dx[i] = fma(limit_slope(r1, i), r1.place.dx[k], r1.place.dx[i])
    add_matrix_product(r1, r1.place.dx, r1.place.dw, n, width)


@kernel
def write_newton_system(r1, m, damping):
    """Writes A of the places between bounds, damped, with the columns of friction that follows them, and -w - dw."""
    stride = 8 * eights_of_row(r1)
    for a in range(m):
        o, p = a * stride, r1.one.factor[a]
        for b in range(m):
            r1.one.L[o + b] = r1.place.A[p * stride + r1.one.factor[b]]
        for b in range(m, (m + 7) // 8 * 8):
            r1.one.L[o + b] = 0.0
        r1.one.L[o + a] = (1.0 + damping) * r1.one.L[o + a]
        r1.one.y[a] = -(r1.place.w[p] + r1.place.dw[p])
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        b = r1.one.slot[normal_place(r1, i)]
        slope = limit_slope(r1, i)
        if b >= 0 and slope != 0.0:
            for a in range(m):
                A = r1.place.A[i * stride + r1.one.factor[a]]
                r1.one.L[a * stride + b] = fma(slope, A, r1.one.L[a * stride + b])


@kernel
def newton_direction(r1, damping):
    """Computes place.dx, the step to the solution at the present sides, and place.dw = A dx."""
    m = choose_sides(r1)
    move_to_bounds(r1)
    write_newton_system(r1, m, damping)
    solve_system(r1, m)
    for a in range(m):
        r1.place.dx[r1.one.factor[a]] = r1.one.ell[a]
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        k = normal_place(r1, i)
        if r1.one.slot[k] >= 0:
            r1.place.dx[i] = fma(limit_slope(r1, i), r1.place.dx[k], r1.place.dx[i])
    W = eights(r1.place.dw)
    for c in range(eights_of_row(r1)):
        W[c] = 0.0
    add_matrix_product(r1, r1.place.dx, r1.place.dw, r1.one.n[0], eights_of_row(r1))


# ---- the method ------------------------------------------------------------------------------------------------------
@kernel
def shift(r1, t):
    """Adds t dx to x and t dw to w; friction limits follow."""
    x, w, dx, dw = eights(r1.place.x), eights(r1.place.w), eights(r1.place.dx), eights(r1.place.dw)
    for c in range(eights_of_row(r1)):
        x[c] = x[c] + t * dx[c]
        w[c] = w[c] + t * dw[c]
    limit_friction(r1)


@kernel
def search_along(r1):
    """Takes the longest of the steps 1, 1/2, ... that |F| allows; returns 0 if it allows none, with x as before."""
    before, t, taken = squared_map(r1), 1.0, 0
    shift(r1, t)
    for _ in range(HALVINGS):
        if taken == 0:
            if squared_map(r1) <= GROWTH * before:
                taken = 1
            else:
                t = 0.5 * t
                shift(r1, -t)
    if taken == 0:
        shift(r1, -t)
    return taken


@kernel
def place_inside(r1):
    """Clips x to its bounds, friction last."""
    for i in range(r1.one.nconstant[0]):
        force_inside(r1, i)
    limit_friction(r1)
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        force_inside(r1, i)


@kernel
def sweep_places(r1, count):
    """Runs sweeps from within the bounds; computes w and the limits."""
    place_inside(r1)
    for _ in range(count):
        gauss_seidel_sweep(r1)
    refresh(r1)
    limit_friction(r1)


@kernel
def minimum_map(r1, iterations):
    """Solves the problem one.A, one.b, ... of a record by at most `iterations` steps.

    Reads:  one.n, one.findex, one.A, one.b, one.lo, one.hi, one.add.
    Writes: one.*, one.niter (steps).
    Scratch: place.*.
    Cost:   per step m^3 / 3 products, m rows between their bounds, and 3 n^2; per sweep n^2.
    """
    order_rows(r1)
    load_places(r1)
    set_zero_solution(r1)
    sweep_places(r1, FIRST_SWEEPS)
    used, idle, best, going, damping = 0, 0, INF, 1, 0.0
    while going:
        before = best
        residual = residual_of_places(r1)
        idle += 1
        if residual < best:
            best, idle = residual, 0
            keep_best_place(r1)
        if residual <= EXACT or used == iterations or (best <= TOLERANCE and residual > 0.5 * before):
            going = 0
        else:
            used += 1
            newton_direction(r1, damping)
            if idle < PATIENCE and search_along(r1):
                refresh(r1)
                damping = LESS * damping if damping > LEAST else 0.0
            elif idle < PATIENCE and damping < 1.0:
                damping = MORE * damping if damping > 0.0 else LEAST
            else:
                idle = 0
                restore_best_place(r1)
                sweep_places(r1, SWEEPS)
    restore_best_place(r1)
    place_inside(r1)
    refresh(r1)
    finish_places(r1, used, used == iterations)


@stage(p1=PROBLEM)
def solve_minimum_map(p1, iterations):
    """Solves a standalone problem by `minimum_map`.

    Reads:  one.n, one.A, one.b, one.lo, one.hi, one.findex, one.add.
    Writes: one.x (nlcpone,) [N], one.w (nlcpone,) [m/s^2], one.*.
    Scratch: place.*.
    """
    minimum_map(p1, iterations)


METHOD = Method("newton", solve_minimum_map, form=ONE, numbers={"iterations": Count(100, "largest number of steps")})
