"""Dantzig's method: the rows of a boxed LCP, one after another, are driven until they are complementary.

A row's place is its position in the pivoting: first rows without bounds, then bounded ones, last friction, whose
bounds follow from other rows.  While the row at place i is driven, all places before it stay complementary: x_i moves,
x of the rows between their bounds follows so that their w stays 0, w of the others follows, and the row that first
reaches the end of its range changes from one set to the other.  Friction limits are set once, when the
first friction row is driven (`frozen`), or follow their normals to a fixed point (`consistent`).

Internally each row is scaled by a power of two, so that the diagonal of A is about 1: this rounds no number, and
zero thresholds do not depend on units.
Symbols: r1: the record of the problem;  i: the driven place, j, p: other places;  C: the places in the factor, all
    between their bounds;  k: a row of the factor, of place one.factor[k];  sign: direction of x_i, 1 or -1;
    place.dx, place.dw: change of x and w per unit of |x_i|;  one.mark[j] = i: place j is skipped while i is driven.
    `eights(v)`: the array v in vectors of eight adjacent numbers (eights);  one.nconstant: places before friction;
    place.x, w, b, lo, hi, A: the scaled problem by place;  one.n: rows;  one.nfactor: rows of the factor, gaps
    included.
    States (scaled_problem.py): LOWER, UPPER: at a bound;  BETWEEN: in the factor;  WAITING: between the bounds, but
    outside the factor, as it depends on its rows;  FIXED: both bounds are 0.
    `reduce_matrix_row(r1, p, t)`: t = L^-1 A_Cp;  `substitute_backward(r1, t, y)`: y <- L^-T D^-1 t;
    `pivot_of(r1, p, t)`: A_pp - t^T D^-1 t, the pivot of p, with t = L^-1 A_Cp;
    `append_factor_row`, `remove_row`: place p enters, leaves the factor;
    `is_independent(r1, t, pivot)`: whether the pivot exceeds rounding;
    `set_to_bound(r1, p, upper)`: sets x and state;  `multiply_row(r1, i)`: ((A x)_i, the sum of its absolute terms);
    `add_matrix_product(r1, v, out, rows, blocks)`: out += A v, from the first `rows` places of v to the first
      `blocks` eights of `out`;
    `start_with_all(r1, first, last)`: the block start, returns 1 on success;
    `limit_friction`: sets friction limits from x;
    `settle_friction`: follows them to a fixed point, returns 1 on success;
    `refine_active_set`: moves x to the minimum, returns its number of passes.
Source: R. W. Cottle and G. B. Dantzig (1968); D. Baraff, "Fast contact force computation for nonpenetrating rigid
    bodies" (1994), as in ODE's dSolveLCP.  Degenerate steps are resolved by the least index: Y. Y. Chang and R. W.
    Cottle, "Least-index resolution of degeneracy in quadratic programming" (1980).  Rows that depend on others are not
    put between their bounds; ODE stops at them.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.engine.solver.lcp.method import ONE, Choice, Count, Method
from featherlane.engine.solver.lcp.pivot.active_set import reduce_matrix_row, refine_active_set, set_to_bound
from featherlane.engine.solver.lcp.pivot.block_start import start_with_all
from featherlane.engine.solver.lcp.pivot.factor import (
    SMALLEST_PIVOT,
    append_factor_row,
    clear_factor_matrix,
    is_independent,
    pivot_of,
    remove_row,
    substitute_backward,
)
from featherlane.engine.solver.lcp.pivot.friction import limit_friction, settle_friction
from featherlane.engine.solver.lcp.pivot.scaled_problem import (
    BETWEEN,
    FIXED,
    INF,
    LOWER,
    ROUNDING,
    UPPER,
    WAITING,
    add_matrix_product,
    clear_direction,
    final_residual,
    load_places,
    multiply_row,
    order_rows,
    set_zero_solution,
    unload_places,
)
from featherlane.engine.solver.lcp.status import INACCURATE, INFEASIBLE, ITERATIONS, SOLVED, UNSETTLED

BLOCK, BY_ROWS = 0, 1
TOLERANCE = 1e-10  # residual of a solution
DONE, AT_BOUND = -1, -2  # ends of a step: w_i = 0, x_i at its bound; other ends are places that change sides
PIVOTS_PER_ROW = 200  # limit, after which pivoting counts as failed
NEAR_ZERO = 1e-9  # of w, whose sign may be due to rounding
STANDSTILL = 2  # steps of zero length in a drive, per row, after which the row is left to the active set


# ---- one step of a drive ---------------------------------------------------------------------------------------------
@kernel
def find_direction(r1, i, sign):
    """Computes place.dx and place.dw for a move of x_i by `sign`; returns (sum of |dx|, sum of dx^2).

    dx_i = sign,  dx_C = -sign A_CC^-1 A_Ci,  dw = A dx.
    Reads: one.ell = L^-1 A_Ci.   Writes: place.dx, place.dw, one.y.
    """
    blocks = i // 8 + 1
    clear_direction(r1, blocks)
    substitute_backward(r1, r1.one.ell, r1.one.y)
    size, square = 1.0, 1.0  # those of dx_i = sign
    for k in range(r1.one.nfactor[0]):
        p = r1.one.factor[k]
        if p >= 0:
            change = -sign * r1.one.y[k]
            r1.place.dx[p] = change
            size = size + fabs(change)
            square = square + change * change
    r1.place.dx[i] = sign
    add_matrix_product(r1, r1.place.dx, r1.place.dw, i + 1, blocks)
    return size, square


@kernel
def step_to_bound(r1, j, best):
    """Returns the step at which place j, between its bounds, reaches one, or `best` if that is shorter."""
    speed, step = r1.place.dx[j], best
    distance = r1.place.hi[j] - r1.place.x[j]
    if speed < 0.0:
        speed = -speed
        distance = r1.place.x[j] - r1.place.lo[j]
    if distance < best * speed:
        step = fmax(distance, 0.0) / speed
    return step


@kernel
def step_to_zero_w(r1, j, best, noise):
    """Returns the step at which w of place j, outside the factor, becomes 0; best if shorter or w moves away from 0.

    A waiting row, which depends on the factor's rows, stops the move at once if its w changes by more than `noise`.
    """
    speed, w, step = r1.place.dw[j], r1.place.w[j], best
    state = r1.one.state[j]
    # at the upper bound w <= 0: both signs change, so that w >= 0 falls in all cases
    if state == UPPER:
        speed, w = -speed, -w
    if state == WAITING:
        if fabs(speed) > noise:
            step = 0.0 * best  # 0 as a value of the type of `best`
    elif state != FIXED and speed < -noise and w < -best * speed:
        step = fmax(w, 0.0) / -speed
    return step


@kernel
def may_end_step(r1, c, best, noise):
    """Checks whether any of the places 8 c to 8 c + 7 could end the step before `best`; if not, they are skipped.

    Within `best`, x reaches a bound, or w reaches 0.  w of a place at a bound has its right sign, or is 0 up to
    rounding (NEAR_ZERO), so that the sign is not checked here.
    """
    x8, w8, dx8, dw8 = eights(r1.place.x), eights(r1.place.w), eights(r1.place.dx), eights(r1.place.dw)
    x = x8[c]
    move = best * dx8[c]
    w, speed = fabs(w8[c]), fabs(dw8[c])
    meets_bound = (eights(r1.place.hi)[c] - x < move) | (x - eights(r1.place.lo)[c] < -move)
    return any_(meets_bound | ((speed > noise) & ((w < best * speed) | (w < NEAR_ZERO))))


@kernel
def find_step(r1, i, sign, size, square):
    """Returns (step length, its end: DONE, AT_BOUND or the place that changes sides); the least place in a tie.

    size, square: sum of |dx| and of dx^2, from `find_direction`.
    """
    best, end = INF, AT_BOUND
    # w_i changes by dw_i per unit: it is 0 after |w_i| / (sign dw_i), unless A has no curvature along dx
    curvature = sign * r1.place.dw[i]
    if curvature > SMALLEST_PIVOT * square:
        best = fabs(r1.place.w[i]) / curvature
        end = DONE
    distance = r1.place.hi[i] - r1.place.x[i]
    if sign < 0.0:
        distance = r1.place.x[i] - r1.place.lo[i]
    if distance < best:
        best = distance
        end = AT_BOUND
    noise = ROUNDING * size
    # places before i that change sides earlier: at a bound, or at w = 0
    for c in range((i + 7) // 8):
        if may_end_step(r1, c, best, noise):
            for j in range(8 * c, min(8 * c + 8, i)):
                if r1.one.state[j] == BETWEEN:
                    step = step_to_bound(r1, j, best)
                elif r1.one.mark[j] == i:
                    step = best  # skipped while i is driven
                else:
                    step = step_to_zero_w(r1, j, best, noise)
                if step < best:
                    best, end = step, j
    return best, end


@kernel
def add_drive_step(r1, i, step):
    """Adds step dx to x and step dw to w of all places up to i."""
    x8, w8, dx8, dw8 = eights(r1.place.x), eights(r1.place.w), eights(r1.place.dx), eights(r1.place.dw)
    for c in range(i // 8 + 1):
        x8[c] = x8[c] + step * dx8[c]
        w8[c] = w8[c] + step * dw8[c]


@kernel
def enter_factor(r1, p, t):
    """Adds place p, whose w is 0, to the factor, given t = L^-1 A_Cp; returns 0 if it depends on C: it is not added."""
    pivot = pivot_of(r1, p, t)
    enters = 0
    if is_independent(r1, t, pivot):
        append_factor_row(r1, p, t, pivot)
        r1.one.state[p] = BETWEEN
        r1.place.w[p] = 0.0
        enters = 1
    return enters


@kernel
def change_side(r1, p, i):
    """Place p, which ended a step of place i, leaves the factor at its bound, or enters the factor at w = 0."""
    if r1.one.state[p] == BETWEEN:
        set_to_bound(r1, p, upper=r1.place.dx[p] > 0.0)
        remove_row(r1, p)
    else:
        reduce_matrix_row(r1, p, r1.one.turn)
        if not enter_factor(r1, p, r1.one.turn):
            r1.one.mark[p] = i  # it depends on C: skipped while i is driven


# ---- rows one by one ------------------------------------------------------------------------------------------------
@kernel
def drive_row(r1, i, noise):
    """Moves x_i until w_i = 0 or a bound stops it; `noise`: rounding error of w_i.

    Each round takes one step: up to the end of the move, or to the next place before i that changes sides.  Place i is
    left WAITING if the step is unbounded, if too many steps have length 0, or after too many pivots.
    """
    sign = 1.0 if r1.place.w[i] < 0.0 else -1.0  # w_i increases with x_i
    # rests: steps of length 0 that are left;  moving: 0 after the last step
    rests = STANDSTILL * r1.one.n[0] + 8
    moving = 1
    while moving:
        reduce_matrix_row(r1, i, r1.one.ell)  # one.ell = L^-1 A_Ci, which the steps below read
        # w_i is already 0, up to rounding: no step (0 as a value of the type of `noise`)
        step = 0.0 * noise
        end = DONE
        if fabs(r1.place.w[i]) > noise:
            size, square = find_direction(r1, i, sign)  # sums of |dx| and dx^2: scales of rounding
            step, end = find_step(r1, i, sign, size, square)
        moving = 0
        if step == INF:  # nothing stops x_i: there is no solution
            r1.one.state[i], r1.one.status[0] = WAITING, INFEASIBLE
        elif step == 0.0 and rests == 0:  # too many steps of length 0
            r1.one.state[i] = WAITING
        else:
            rests -= 1 if step == 0.0 else 0
            if step > 0.0:
                add_drive_step(r1, i, step)
            if end == DONE:
                if not enter_factor(r1, i, r1.one.ell):
                    r1.one.state[i] = WAITING
            elif end == AT_BOUND:
                set_to_bound(r1, i, upper=sign > 0.0)
            else:
                moving = 1
                change_side(r1, end, i)
        r1.one.niter[0] = r1.one.niter[0] + 1
        if r1.one.niter[0] > PIVOTS_PER_ROW * r1.one.n[0] and moving:
            r1.one.state[i], moving = WAITING, 0


@kernel
def make_complementary(r1, i):
    """Makes place i complementary, and keeps all places before it so."""
    product, row_size = multiply_row(r1, i)
    b, lo, hi = r1.place.b[i], r1.place.lo[i], r1.place.hi[i]
    w = product - b
    noise = ROUNDING * (row_size + fabs(b))
    r1.place.w[i] = w
    # x_i = 0 is already complementary if w_i has the right sign for a bound at 0
    if lo == 0.0 and hi == 0.0:
        r1.one.state[i] = FIXED
    elif lo == 0.0 and w >= -noise:
        r1.one.state[i] = LOWER
    elif hi == 0.0 and w <= noise:
        r1.one.state[i] = UPPER
    else:
        drive_row(r1, i, noise)


# ---- all rows -------------------------------------------------------------------------------------------------------
@kernel
def make_all_complementary(r1, first, last):
    """Makes places first to last - 1 complementary, one by one."""
    for i in range(first, last):
        make_complementary(r1, i)


@kernel
def solve_part(r1, friction, start):
    """Makes the rows with constant bounds complementary (friction = 0), or also those of friction (friction = 1).

    With friction = 1 the others are already solved.  start: BLOCK, all rows at once, or BY_ROWS.
    """
    nconstant, n = r1.one.nconstant[0], r1.one.n[0]
    first, last = (nconstant, n) if friction else (0, nconstant)
    done = 0
    if start == BLOCK:
        done = start_with_all(r1, first, last)
        if done == 0:
            # the block start failed: everything is solved again from x = 0; with friction = 1 first the rows without
            # friction, by the block start or, if that fails, too, row by row
            set_zero_solution(r1)
            if friction and start_with_all(r1, first=0, last=nconstant) == 0:
                set_zero_solution(r1)
                make_all_complementary(r1, first=0, last=nconstant)
    if done == 0:
        make_all_complementary(r1, first, last)


@kernel
def principal_pivoting(r1, policy, passes, start):
    """Solves the problem one.A, one.b, ... of a record.

    Reads:  one.n, one.findex, one.A, one.b, one.lo, one.hi, one.add; policy FROZEN or CONSISTENT, with at most `passes`
            passes of the friction limits; start BLOCK or BY_ROWS.
    Writes: one.x, one.w, one.lower, one.upper (bounds in effect), one.status, one.residual, one.niter (pivots).
    Scratch: place.*, the factor and all other arrays one.*.
    Cost:   O(n^3) in total, n the number of rows: each row takes a few substitutions and a product with A.
    """
    n = r1.one.n[0]
    r1.one.status[0], r1.one.niter[0] = SOLVED, 0
    order_rows(r1)
    load_places(r1)
    clear_factor_matrix(r1)
    set_zero_solution(r1)
    solve_part(r1, friction=0, start=start)
    if r1.one.nconstant[0] < n:
        limit_friction(r1)
        solve_part(r1, friction=1, start=start)
    active_set_passes = 4 * n + 16  # limit; after a regular pivoting there is one pass
    # loosening=1.0: |w| up to its rounding error is accepted
    used_passes = refine_active_set(r1, active_set_passes, loosening=1.0)
    settled = 1
    if policy == CONSISTENT and r1.one.nconstant[0] < n:
        settled = settle_friction(r1, passes, active_set_passes)
    unload_places(r1)
    residual = final_residual(r1)
    r1.one.residual[0] = residual
    # INFEASIBLE, set while rows were driven or refined, holds unless the residual is that of a solution
    if residual <= TOLERANCE:
        r1.one.status[0] = SOLVED if settled else UNSETTLED
    elif r1.one.status[0] != INFEASIBLE:
        r1.one.status[0] = INACCURATE if used_passes < active_set_passes else ITERATIONS


@stage(p1=PROBLEM)
def solve_dantzig(p1, policy, passes, start):
    """Solves a standalone problem by `principal_pivoting`.

    Reads:  one.n, one.A, one.b, one.lo, one.hi, one.findex, one.add.
    Writes: one.x (nlcpone,) [N], one.w (nlcpone,) [m/s^2], one.*.
    Scratch: place.*.
    """
    principal_pivoting(p1, policy, passes, start)


METHOD = Method(
    "dantzig",
    solve_dantzig,
    form=ONE,
    numbers={
        "friction": Choice(
            "frozen",
            ("frozen", "consistent"),
            "friction limits: frozen (set once) or consistent with the normal forces",
        ),
        "iterations": Count(100, "largest number of passes of consistent limits"),
        "start": Choice("block", ("block", "rows"), "start: block pivoting (all rows at once) or single pivoting"),
    },
)
