"""Dantzig's method: the rows of a boxed LCP, one after another, are driven until they are complementary.

The variables x_i are the rows in the order of pivoting: first rows without bounds, then bounded ones, last friction,
whose bounds follow from other rows.  While variable i is driven, all variables before it stay complementary: x_i moves,
x of the rows between their bounds follows so that their w stays 0, and w of the rows at a bound follows.  The row that
first reaches a bound leaves the factor; one at a bound whose w first reaches 0 enters it.  Friction limits are set
once, when the first friction row is driven (`frozen`), or follow their normals to a fixed point (`consistent`).

Internally each row is scaled by a power of two, so that the diagonal of A is about 1: this rounds no number, and
zero thresholds do not depend on units.
Symbols: r1: the record of the problem;  i: the driven variable, j, p: other variables;  C: the variables in the factor,
    all between their bounds;  k: a row of the factor, of variable one.factor[k];  sign: direction of x_i, 1 or -1;
    scaled.dx, scaled.dw: change of x and w per unit of |x_i|;  one.mark[j] = i: variable j is skipped while i is
    driven.  `eights(v)`: the array v in vectors of eight adjacent numbers (eights);  one.nconstant: variables before
    friction; scaled.x, w, b, lo, hi, A: the scaled problem by variable;  one.n: rows;  one.nfactor: rows of the factor,
    gaps included.
    States (scaled_problem.py): LOWER, UPPER: at a bound;  BETWEEN: in the factor;  WAITING: between the bounds, but
    outside the factor, as it depends on its rows;  FIXED: both bounds are 0.
    `reduce_matrix_row(r1, p, t)`: t = L^-1 A_Cp;  `substitute_backward(r1, t, y)`: y <- L^-T D^-1 t;
    `pivot_of(r1, p, t)`: A_pp - t^T D^-1 t, the pivot of p, with t = L^-1 A_Cp;
    `append_factor_row`, `remove_row`: variable p enters, leaves the factor;
    `is_independent(r1, t, pivot)`: whether the pivot exceeds rounding;
    `set_to_bound(r1, p, upper)`: sets x and state;  `multiply_row(r1, i)`: ((A x)_i, the sum of its absolute terms);
    `add_matrix_product(r1, v, out, rows, blocks)`: out += A v, from the first `rows` variables of v to the first
      `blocks` eights of `out`;
    `start_with_all(r1, first, end)`: the block start of variables first to end - 1, returns 1 on success;
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
    load_scaled_problem,
    multiply_row,
    order_rows,
    set_zero_solution,
    unload_scaled_problem,
)
from featherlane.engine.solver.lcp.status import INACCURATE, INFEASIBLE, ITERATIONS, SOLVED, UNSETTLED

BLOCK, BY_ROWS = 0, 1
TOLERANCE = 1e-10  # residual of a solution
DONE, AT_BOUND = -1, -2  # what ends a step: w_i = 0, x_i at its bound; >= 0: the variable that changes sides
PIVOTS_PER_ROW = 200  # pivots of a solve per row of the problem, after which a driven row is left WAITING
NEAR_ZERO = 1e-9  # |w| below this may have the wrong sign, due to rounding
STANDSTILL = 2  # steps of length 0 in a drive, per row of the problem; then `refine_active_set` finishes the row


# ---- one step of a drive ---------------------------------------------------------------------------------------------
@kernel
def find_direction(r1, i, sign):
    """Computes scaled.dx and scaled.dw for a move of x_i by `sign`; returns (sum_abs_dx, sum_sq_dx).

    dx_i = sign,  dx_C = -sign A_CC^-1 A_Ci,  dw = A dx;   sum_abs_dx = sum of |dx|,  sum_sq_dx = sum of dx^2.
    Reads: one.rhs_entering = L^-1 A_Ci.   Writes: scaled.dx, scaled.dw, one.y.
    """
    blocks = i // 8 + 1  # eights that hold variables 0 to i
    clear_direction(r1, blocks)
    substitute_backward(r1, r1.one.rhs_entering, r1.one.y)
    # both sums begin with dx_i = sign, then add dx_C
    sum_abs_dx = 1.0
    sum_sq_dx = 1.0
    for k in range(r1.one.nfactor[0]):
        p = r1.one.factor[k]
        if p >= 0:
            change = -sign * r1.one.y[k]
            r1.scaled.dx[p] = change
            sum_abs_dx = sum_abs_dx + fabs(change)
            sum_sq_dx = sum_sq_dx + change * change
    r1.scaled.dx[i] = sign
    add_matrix_product(r1, r1.scaled.dx, r1.scaled.dw, i + 1, blocks)
    return sum_abs_dx, sum_sq_dx


@kernel
def step_to_bound(r1, j, best):
    """Returns the step length at which variable j, between its bounds, reaches a bound; `best` if that is shorter."""
    speed = r1.scaled.dx[j]
    step = best
    distance = r1.scaled.hi[j] - r1.scaled.x[j]
    if speed < 0.0:
        speed = -speed
        distance = r1.scaled.x[j] - r1.scaled.lo[j]
    if distance < best * speed:
        step = fmax(distance, 0.0) / speed
    return step


@kernel
def step_to_zero_w(r1, j, best, noise):
    """Returns the step length at which variable j, outside the factor, stops the move; `best` if `best` is shorter.

    LOWER, UPPER   w reaches 0
    WAITING        at once, if w changes: w must stay 0, and j depends on the factor's rows, so it cannot enter them
    FIXED          never: any w is right
    noise: |dw| up to it is rounding, and counts as no change.
    """
    speed, w = r1.scaled.dw[j], r1.scaled.w[j]
    step = best
    state = r1.one.state[j]
    # at the upper bound w <= 0: with both signs changed, w >= 0 falls to 0 at either bound
    if state == UPPER:
        speed, w = -speed, -w
    if state == WAITING:
        if fabs(speed) > noise:
            step = 0.0
    elif state != FIXED and speed < -noise and w < -best * speed:
        step = fmax(w, 0.0) / -speed
    return step


@kernel
def may_end_step(r1, c, best, noise):
    """Checks whether any of the variables 8 c to 8 c + 7 could end the step before `best`; if not, they are skipped.

    A variable could end it if x reaches a bound or w reaches 0 within `best`.  The sign of w is not checked: w of a
    variable at a bound has the right sign, unless it is 0 up to rounding (NEAR_ZERO).   noise: |dw| up to it is
    rounding.
    """
    x8, w8, dx8, dw8 = eights(r1.scaled.x), eights(r1.scaled.w), eights(r1.scaled.dx), eights(r1.scaled.dw)
    x = x8[c]
    move = best * dx8[c]
    w, speed = fabs(w8[c]), fabs(dw8[c])
    meets_bound = (eights(r1.scaled.hi)[c] - x < move) | (x - eights(r1.scaled.lo)[c] < -move)
    meets_zero_w = (speed > noise) & ((w < best * speed) | (w < NEAR_ZERO))
    return any_(meets_bound | meets_zero_w)


@kernel
def find_step(r1, i, sign, sum_abs_dx, sum_sq_dx):
    """Returns (t, what ends the step x + t dx: DONE, AT_BOUND or the variable that changes sides); the lowest in a tie.

    t is the first of: w_i = 0 (DONE), x_i at its bound (AT_BOUND), x_j at a bound or w_j = 0 of an earlier variable j.

    sum_abs_dx, sum_sq_dx: sums of |dx| and dx^2, from `find_direction`.
    """
    best, end = INF, AT_BOUND
    # w_i is 0 after |w_i| / (sign dw_i), unless A has no curvature along dx: dx^T A dx = sign dw_i, as dw_C = 0
    curvature = sign * r1.scaled.dw[i]
    if curvature > SMALLEST_PIVOT * sum_sq_dx:
        best = fabs(r1.scaled.w[i]) / curvature
        end = DONE
    distance = r1.scaled.hi[i] - r1.scaled.x[i]
    if sign < 0.0:
        distance = r1.scaled.x[i] - r1.scaled.lo[i]
    if distance < best:
        best = distance
        end = AT_BOUND
    noise = ROUNDING * sum_abs_dx  # rounding error of dw, since entries of A are at most about 1
    # variables before i that change sides earlier: at a bound, or at w = 0
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
    """Adds step * dx to x, and step * dw to w, of variables 0 to i."""
    x8, w8, dx8, dw8 = eights(r1.scaled.x), eights(r1.scaled.w), eights(r1.scaled.dx), eights(r1.scaled.dw)
    for c in range(i // 8 + 1):
        x8[c] = x8[c] + step * dx8[c]
        w8[c] = w8[c] + step * dw8[c]


@kernel
def enter_factor(r1, p, t):
    """Adds variable p, whose w is 0, to the factor, given t = L^-1 A_Cp; returns 0 if p depends on C and stays out."""
    pivot = pivot_of(r1, p, t)
    enters = 0
    if is_independent(r1, t, pivot):
        append_factor_row(r1, p, t, pivot)
        r1.one.state[p] = BETWEEN
        r1.scaled.w[p] = 0.0
        enters = 1
    return enters


@kernel
def change_side(r1, p, i):
    """Changes the side of variable p, which ended a step of variable i.

    A variable in the factor moves to the bound that it reached.  A variable at a bound reached w = 0 and enters the
    factor.
    """
    if r1.one.state[p] == BETWEEN:
        set_to_bound(r1, p, upper=r1.scaled.dx[p] > 0.0)
        remove_row(r1, p)
    else:
        reduce_matrix_row(r1, p, r1.one.rhs)
        if not enter_factor(r1, p, r1.one.rhs):
            r1.one.mark[p] = i  # it depends on C: skipped while i is driven


# ---- rows one by one ------------------------------------------------------------------------------------------------
@kernel
def drive_row(r1, i, noise):
    """Moves x_i until w_i = 0 or a bound stops it; `noise`: rounding error of w_i.

    Each round takes one step: up to the end of the move, or to the next variable before i that changes sides.
    At the end of the move, variable i enters the factor (w_i = 0) or is at its bound.  It is left WAITING if
    - the step is unbounded: there is no solution;
    - too many steps have length 0, or the solve takes too many pivots;
    - w_i = 0, but variable i depends on the factor's rows, so that it cannot enter.
    """
    sign = 1.0 if r1.scaled.w[i] < 0.0 else -1.0  # w_i increases with x_i
    zero_steps_left = STANDSTILL * r1.one.n[0] + 8  # steps of length 0 that are still allowed
    moving = 1  # 0 after the last step
    while moving:
        reduce_matrix_row(r1, i, r1.one.rhs_entering)  # one.rhs_entering = L^-1 A_Ci, which the steps below read
        # w_i is already 0, up to rounding: no step
        step = 0.0
        end = DONE
        if fabs(r1.scaled.w[i]) > noise:
            sum_abs_dx, sum_sq_dx = find_direction(r1, i, sign)  # writes scaled.dx, scaled.dw
            step, end = find_step(r1, i, sign, sum_abs_dx, sum_sq_dx)
        moving = 0
        if step == INF:  # nothing stops x_i: there is no solution
            r1.one.state[i] = WAITING
            r1.one.status[0] = INFEASIBLE
        elif step == 0.0 and zero_steps_left == 0:  # too many steps of length 0
            r1.one.state[i] = WAITING
        else:
            zero_steps_left -= 1 if step == 0.0 else 0
            if step > 0.0:
                add_drive_step(r1, i, step)
            if end == DONE:
                if not enter_factor(r1, i, r1.one.rhs_entering):
                    r1.one.state[i] = WAITING
            elif end == AT_BOUND:
                set_to_bound(r1, i, upper=sign > 0.0)
            else:
                moving = 1
                change_side(r1, end, i)
        r1.one.niter[0] = r1.one.niter[0] + 1
        if r1.one.niter[0] > PIVOTS_PER_ROW * r1.one.n[0] and moving:
            r1.one.state[i] = WAITING
            moving = 0


@kernel
def make_complementary(r1, i):
    """Solves the LCP of variables 0 to i, given a solution for 0 to i - 1: drives x_i until w_i = 0 or a bound."""
    product, sum_of_abs_terms = multiply_row(r1, i)
    b, lo, hi = r1.scaled.b[i], r1.scaled.lo[i], r1.scaled.hi[i]
    w = product - b
    noise = ROUNDING * (sum_of_abs_terms + fabs(b))  # rounding error of w
    r1.scaled.w[i] = w
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
def make_all_complementary(r1, first, end):
    """Makes variables first to end - 1 complementary, one by one."""
    for i in range(first, end):
        make_complementary(r1, i)


@kernel
def solve_variables(r1, friction, start):
    """Solves the LCP of the variables before friction (friction = 0), or of all (friction = 1).

    friction = 1: the variables before friction are already solved, and stay complementary.
    start: BLOCK, all rows at once, or BY_ROWS.
    """
    nconstant, n = r1.one.nconstant[0], r1.one.n[0]
    first, end = (nconstant, n) if friction else (0, nconstant)  # variables first to end - 1
    done = 0
    if start == BLOCK:
        done = start_with_all(r1, first, end)
        if done == 0:
            # the block start failed and left no valid x: all variables are solved again from x = 0.  If friction = 1,
            # the variables before friction come first: by the block start or, if that fails, row by row
            set_zero_solution(r1)
            if friction and start_with_all(r1, first=0, end=nconstant) == 0:
                set_zero_solution(r1)
                make_all_complementary(r1, first=0, end=nconstant)
    if done == 0:
        make_all_complementary(r1, first, end)


@kernel
def principal_pivoting(r1, policy, passes, start):
    """Solves the LCP w = A x - b, lo <= x <= hi, of a record by principal pivoting, row by row (Dantzig) or in blocks.

    A row has w = 0 between its bounds, w >= 0 at the lower one, w <= 0 at the upper one.

    Reads:  one.n, one.findex, one.A, one.b, one.lo, one.hi, one.add; policy FROZEN or CONSISTENT, with at most `passes`
            passes of the friction limits; start BLOCK or BY_ROWS.
    Writes: one.x, one.w, one.lower, one.upper (bounds in effect), one.status, one.residual, one.niter (pivots).
    Scratch: scaled.*, the factor and all other arrays one.*.
    Cost:   O(n^3) in total, n the number of rows: each row takes a few substitutions and a product with A.
    """
    n = r1.one.n[0]
    r1.one.status[0], r1.one.niter[0] = SOLVED, 0
    order_rows(r1)
    load_scaled_problem(r1)
    clear_factor_matrix(r1)
    set_zero_solution(r1)
    solve_variables(r1, friction=0, start=start)
    if r1.one.nconstant[0] < n:
        limit_friction(r1)
        solve_variables(r1, friction=1, start=start)
    active_set_passes = 4 * n + 16  # limit; after a regular pivoting there is one pass
    # loosening=1.0: |w| up to once its rounding error counts as 0
    used_passes = refine_active_set(r1, active_set_passes, loosening=1.0)
    settled = 1
    if policy == CONSISTENT and r1.one.nconstant[0] < n:
        settled = settle_friction(r1, passes, active_set_passes)
    unload_scaled_problem(r1)
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
    Scratch: scaled.*.
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
