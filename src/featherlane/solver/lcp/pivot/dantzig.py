"""Dantzig's method: the rows of a boxed LCP, one after another, are driven until they are complementary.

A row's place is its position in the pivoting: first rows without bounds, then bounded ones, last friction, whose
bounds follow from other rows.  While the row at place i is driven, all places before it stay complementary: x_i moves,
x of the rows between their bounds follows so that their w stays 0, w of the others follows, and the row that first
reaches the end of its range changes from one set to the other.  Friction limits are set once, when the
first friction row is driven (`frozen`), or follow their normals to a fixed point (`consistent`).

Internally each row is scaled by a power of two, so that the diagonal of A is about 1: this rounds no number, and
zero thresholds do not depend on units.
Source: R. W. Cottle and G. B. Dantzig (1968); D. Baraff, "Fast contact force computation for nonpenetrating rigid
    bodies" (1994), as in ODE's dSolveLCP.  Degenerate steps are resolved by the least index: Y. Y. Chang and R. W.
    Cottle, "Least-index resolution of degeneracy in quadratic programming" (1980).  Rows that depend on others are not
    put between their bounds; ODE stops at them.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.fields import PROBLEM
from featherlane.solver.lcp.method import ONE, Choice, Count, Method
from featherlane.solver.lcp.pivot.active_set import refine_active_set, set_to_bound
from featherlane.solver.lcp.pivot.block_start import start_with_all
from featherlane.solver.lcp.pivot.factor import (
    SMALLEST_PIVOT,
    append_factor_row,
    clear_factor_matrix,
    eights_per_row,
    gather_matrix_row,
    is_independent,
    pivot_of,
    refactor,
    remove_row,
    substitute_backward,
    substitute_forward,
)
from featherlane.solver.lcp.pivot.friction import limit_friction, settle_friction
from featherlane.solver.lcp.pivot.scaled_problem import (
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
from featherlane.solver.lcp.status import INACCURATE, INFEASIBLE, ITERATIONS, SOLVED, UNSETTLED

BLOCK, BY_ROWS = 0, 1
TOLERANCE = 1e-10  # residual of a solution
DONE, AT_BOUND = -1, -2  # reasons that end a drive, other than the number of another place
PIVOTS_PER_ROW = 200  # limit, after which pivoting counts as failed
NEAR_ZERO = 1e-9  # of w, whose sign may be due to rounding
STANDSTILL = 2  # steps of zero length in a drive, per row, after which the row is left to the active set


# ---- one step of a drive ---------------------------------------------------------------------------------------------
@kernel
def find_direction(r1, i, sign):
    """Computes place.dx and place.dw for a move of x_i by sign; returns (sum of |dx|, of dx^2).

    dx_C = -sign A_CC^-1 A_Ci,  dw = A dx.
    """
    blocks = i // 8 + 1
    clear_direction(r1, blocks)
    substitute_backward(r1, r1.one.ell, r1.one.y)
    size, square = 1.0, 1.0
    for k in range(r1.one.nfactor[0]):
        p = r1.one.factor[k]
        if p >= 0:
            y = -sign * r1.one.y[k]
            r1.place.dx[p] = y
            size, square = size + fabs(y), square + y * y
    r1.place.dx[i] = sign
    add_matrix_product(r1, r1.place.dx, r1.place.dw, i + 1, blocks)
    return size, square


@kernel
def step_of_factor(r1, j, best):
    """Returns the step at which place j, between its bounds, reaches one, or `best` if that is shorter."""
    d, s = r1.place.dx[j], best
    distance = r1.place.hi[j] - r1.place.x[j]
    if d < 0.0:
        d, distance = -d, r1.place.x[j] - r1.place.lo[j]
    if distance < best * d:
        s = fmax(distance, 0.0) / d
    return s


@kernel
def step_of_rest(r1, j, best, noise):
    """Returns the step at which w of place j, outside the factor, becomes 0; best if shorter or w moves away from 0."""
    d, w, s = r1.place.dw[j], r1.place.w[j], best
    state = r1.one.state[j]
    if state == UPPER:
        d, w = -d, -w
    if state == WAITING:
        if fabs(d) > noise:
            s = 0.0 * best
    elif state != FIXED and d < -noise and w < -best * d:
        s = fmax(w, 0.0) / -d
    return s


@kernel
def may_end(r1, c, best, noise):
    """Checks whether any of eight places, from 8 c on, could end the step before `best`; if not, they are skipped.

    w of a place at a bound has its right sign, or is 0 up to rounding.
    """
    X, W, DX, DW = eights(r1.place.x), eights(r1.place.w), eights(r1.place.dx), eights(r1.place.dw)
    x, dx, w, dw = X[c], best * DX[c], fabs(W[c]), fabs(DW[c])
    meets = (eights(r1.place.hi)[c] - x < dx) | (x - eights(r1.place.lo)[c] < -dx)
    return any_(meets | ((dw > noise) & ((w < best * dw) | (w < NEAR_ZERO))))


@kernel
def find_step(r1, i, sign, size, square):
    """Returns (step length, its end: DONE, AT_BOUND or the place that changes sides); the least place in a tie."""
    best, end = INF, AT_BOUND
    curvature = sign * r1.place.dw[i]
    if curvature > SMALLEST_PIVOT * square:
        best, end = fabs(r1.place.w[i]) / curvature, DONE
    distance = r1.place.hi[i] - r1.place.x[i]
    if sign < 0.0:
        distance = r1.place.x[i] - r1.place.lo[i]
    if distance < best:
        best, end = distance, AT_BOUND
    noise = ROUNDING * size
    for c in range((i + 7) // 8):
        if may_end(r1, c, best, noise):
            for j in range(8 * c, min(8 * c + 8, i)):
                if r1.one.state[j] == BETWEEN:
                    s = step_of_factor(r1, j, best)
                elif r1.one.mark[j] == i:
                    s = best
                else:
                    s = step_of_rest(r1, j, best, noise)
                if s < best:
                    best, end = s, j
    return best, end


@kernel
def add_drive_step(r1, i, s):
    """Adds s dx to x and s dw to w."""
    x, w, dx, dw = eights(r1.place.x), eights(r1.place.w), eights(r1.place.dx), eights(r1.place.dw)
    for c in range(i // 8 + 1):
        x[c] = x[c] + s * dx[c]
        w[c] = w[c] + s * dw[c]


@kernel
def enter(r1, i, j):
    """Moves place j, whose w is 0, to the rows between their bounds, or skips it if it depends on them."""
    if r1.one.nfactor[0] == 8 * eights_per_row(r1):
        refactor(r1)
    gather_matrix_row(r1, j, r1.one.turn)
    substitute_forward(r1, r1.one.turn)
    pivot = pivot_of(r1, j, r1.one.turn)
    if is_independent(r1, r1.one.turn, pivot):
        append_factor_row(r1, j, r1.one.turn, pivot)
        r1.one.state[j], r1.place.w[j] = BETWEEN, 0.0
    else:
        r1.one.mark[j] = i


# ---- rows one by one ------------------------------------------------------------------------------------------------
@kernel
def drive_row(r1, i, noise):
    """Moves x_i until w_i = 0 or a bound stops it."""
    sign = 1.0 if r1.place.w[i] < 0.0 else -1.0
    still, moving = STANDSTILL * r1.one.n[0] + 8, 1
    while moving:
        if r1.one.nfactor[0] == 8 * eights_per_row(r1):
            refactor(r1)
        gather_matrix_row(r1, i, r1.one.ell)
        substitute_forward(r1, r1.one.ell)
        s, end = 0.0 * noise, DONE
        if fabs(r1.place.w[i]) > noise:
            size, square = find_direction(r1, i, sign)
            s, end = find_step(r1, i, sign, size, square)
        moving = 0
        if s == INF:
            r1.one.state[i], r1.one.status[0] = WAITING, INFEASIBLE
        elif s == 0.0 and still == 0:
            r1.one.state[i] = WAITING
        else:
            still -= 1 if s == 0.0 else 0
            if s > 0.0:
                add_drive_step(r1, i, s)
            if end == DONE:
                move_between_bounds(r1, i)
            elif end == AT_BOUND:
                set_to_bound(r1, i, sign > 0.0)
            else:
                moving = 1
                if r1.one.state[end] == BETWEEN:
                    set_to_bound(r1, end, r1.place.dx[end] > 0.0)
                    remove_row(r1, end)
                else:
                    enter(r1, i, end)
        r1.one.niter[0] = r1.one.niter[0] + 1
        if r1.one.niter[0] > PIVOTS_PER_ROW * r1.one.n[0] and moving:
            r1.one.state[i], moving = WAITING, 0


@kernel
def move_between_bounds(r1, i):
    """Moves place i, whose w is 0 and whose row of the factor is in one.ell, between its bounds."""
    pivot = pivot_of(r1, i, r1.one.ell)
    r1.one.state[i] = WAITING
    if is_independent(r1, r1.one.ell, pivot):
        append_factor_row(r1, i, r1.one.ell, pivot)
        r1.one.state[i], r1.place.w[i] = BETWEEN, 0.0


@kernel
def drive(r1, i):
    """Makes place i complementary, and keeps all places before it so."""
    product, size = multiply_row(r1, i)
    b, lo, hi = r1.place.b[i], r1.place.lo[i], r1.place.hi[i]
    w, noise = product - b, ROUNDING * (size + fabs(b))
    r1.place.w[i] = w
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
def drive_all(r1, first, last):
    """Makes places complementary one by one."""
    for i in range(first, last):
        drive(r1, i)


@kernel
def solve_from(r1, friction, start):
    """Makes the rows without friction complementary, or, with these solved, also the rows of friction."""
    rows, n = r1.one.nconstant[0], r1.one.n[0]
    first, last = (rows, n) if friction else (0, rows)
    done = 0
    if start == BLOCK:
        done = start_with_all(r1, first, last)
        if done == 0:
            set_zero_solution(r1)
            if friction and start_with_all(r1, 0, rows) == 0:
                set_zero_solution(r1)
                drive_all(r1, 0, rows)
    if done == 0:
        drive_all(r1, first, last)


@kernel
def principal_pivoting(r1, policy, passes, start):
    """Solves the problem one.A, one.b, ... of a record.

    Reads:  one.n, one.findex, one.A, one.b, one.lo, one.hi, one.add; policy FROZEN or CONSISTENT, with at most `passes`
            passes of the friction limits; start BLOCK or BY_ROWS.
    Writes: one.*, one.niter (pivots).
    Cost:   O(n^3) in total, n the number of rows: each row takes a few substitutions and a product with A.
    """
    n = r1.one.n[0]
    r1.one.status[0], r1.one.niter[0] = SOLVED, 0
    order_rows(r1)
    load_places(r1)
    clear_factor_matrix(r1)
    set_zero_solution(r1)
    solve_from(r1, friction=0, start=start)
    if r1.one.nconstant[0] < n:
        limit_friction(r1)
        solve_from(r1, friction=1, start=start)
    most = 4 * n + 16
    used = refine_active_set(r1, most, 1.0)
    settled = 1
    if policy == CONSISTENT and r1.one.nconstant[0] < n:
        settled = settle_friction(r1, passes, most)
    unload_places(r1)
    residual = final_residual(r1)
    r1.one.residual[0] = residual
    if residual <= TOLERANCE:
        r1.one.status[0] = SOLVED if settled else UNSETTLED
    elif r1.one.status[0] != INFEASIBLE:
        r1.one.status[0] = INACCURATE if used < most else ITERATIONS


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
