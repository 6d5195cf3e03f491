"""Active-set refinement after pivoting: from an x within its bounds to the minimum of x^T A x / 2 - b^T x.

Rows between their bounds move towards w = 0, up to the first bound.  If all of them are at w = 0, the row with the
largest w of the wrong sign joins them.  Each pass recomputes the multipliers w from A, b and x, which also refines an
ill-conditioned problem; after a regular pivoting there is one pass, which changes nothing.
Symbols: r1: the record of the problem;  p: a variable, number p in the order of pivoting;  k: a row of the factor;
    C: the variables in the factor;  one.y: the direction of x_C;  one.factor[k]: the variable of row k, -1: a gap, and
    one.factor_row[p] = k, -1: none;  scaled.x, w, b, lo, hi, A: the scaled problem by variable (scaled_problem.py);
    one.n: rows of the problem;  one.nfactor: rows of the factor, gaps included.
    States (scaled_problem.py): LOWER, UPPER: at a bound;  BETWEEN: in the factor;  WAITING: between the bounds, but
    outside the factor, as it depends on its rows;  FIXED: both bounds are 0.
    `substitute_forward(r1, t)`: t <- L^-1 t;  `substitute_backward(r1, t, y)`: y <- L^-T D^-1 t;
    `gather_matrix_row(r1, p, t)`: t = A_Cp;
    `pivot_of(r1, p, t)`: A_pp - t^T D^-1 t, the pivot of p, with t = L^-1 A_Cp;
    `gather_negative_w`: one.rhs = -w_C;  `append_factor_row`, `remove_row`: variable p enters, leaves the factor;
    `refactor`: rebuilds the factor without gaps;  `eights_per_row`: vectors of eight numbers in a row of A;
    `recompute_w`: w = A x - b, returns its rounding error.
Source: Nocedal and Wright, Numerical Optimization (2006), algorithm 16.3; for A that is only semidefinite a row that
    depends on the others moves them along a direction in which w does not change.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.pivot.factor import (
    SMALLEST_PIVOT,
    append_factor_row,
    eights_per_row,
    gather_matrix_row,
    gather_negative_w,
    pivot_of,
    refactor,
    remove_row,
    substitute_backward,
    substitute_forward,
)
from featherlane.engine.solver.lcp.pivot.scaled_problem import BETWEEN, FIXED, INF, LOWER, UPPER, WAITING, recompute_w
from featherlane.engine.solver.lcp.status import INFEASIBLE

GIVEN_UP = 1 << 30  # mark of a row that no step can improve


@kernel
def set_to_bound(r1, p, upper):
    """Sets x of variable p to its upper (`upper` = 1) or lower bound, and its state to UPPER, LOWER or FIXED."""
    if upper:
        r1.scaled.x[p] = r1.scaled.hi[p]
        r1.one.state[p] = UPPER
    else:
        r1.scaled.x[p] = r1.scaled.lo[p]
        r1.one.state[p] = LOWER
    if r1.scaled.lo[p] == 0.0 and r1.scaled.hi[p] == 0.0:
        r1.one.state[p] = FIXED


@kernel
def reduce_matrix_row(r1, p, t):
    """Computes t = L^-1 A_Cp, with which variable p may enter the factor."""
    # if the factor is full, it has gaps, because p is not in it: without the gaps there is space for another row
    if r1.one.nfactor[0] == 8 * eights_per_row(r1):
        refactor(r1)
    gather_matrix_row(r1, p, t)
    substitute_forward(r1, t)


@kernel
def distance_along(r1, p, rate):
    """Returns the step length at which variable p, with x changing by `rate` per unit length, reaches a bound."""
    length = INF
    if rate > 0.0:
        length = (r1.scaled.hi[p] - r1.scaled.x[p]) / rate
    elif rate < 0.0:
        length = (r1.scaled.lo[p] - r1.scaled.x[p]) / rate
    # negative if x is beyond the bound already, by rounding: no step
    return length if length > 0.0 else 0.0


@kernel
def step_within_bounds(r1, longest):
    """Moves x of the factor's rows along one.y, by the step length `longest` or up to the first bound.

    Returns (step length, variable whose bound stopped it, or -1).  With an infinite step length, x does not change.
    """
    length = longest
    stopping = -1
    for k in range(r1.one.nfactor[0]):
        p = r1.one.factor[k]
        if p >= 0:
            limit = distance_along(r1, p, r1.one.y[k])
            if limit < length:
                length, stopping = limit, p
    if length < INF:
        for k in range(r1.one.nfactor[0]):
            p = r1.one.factor[k]
            if p >= 0:
                r1.scaled.x[p] = r1.scaled.x[p] + length * r1.one.y[k]
    return length, stopping


@kernel
def leave_factor_at_bound(r1, p):
    """Sets variable p of the factor to the bound towards which one.y moved it, and removes it from the factor."""
    set_to_bound(r1, p, upper=r1.one.y[r1.one.factor_row[p]] > 0.0)
    remove_row(r1, p)


@kernel
def largest_w_between(r1):
    """Returns the largest |w| of the rows in the factor, whose w should be 0."""
    worst = 0.0
    for k in range(r1.one.nfactor[0]):
        p = r1.one.factor[k]
        if p >= 0 and fabs(r1.scaled.w[p]) > worst:
            worst = fabs(r1.scaled.w[p])
    return worst


@kernel
def step_towards_zero_w(r1):
    """Moves x_C by y, A_CC y = -w_C, so that w_C = 0, or up to the first bound; returns 1 if no bound stopped it.

    A row that reaches its bound leaves the factor.
    """
    # one.rhs = -w_C, then -L^-1 w_C; one.y = y
    gather_negative_w(r1)
    substitute_forward(r1, r1.one.rhs)
    substitute_backward(r1, r1.one.rhs, r1.one.y)
    _, p = step_within_bounds(r1, longest=1.0)
    if p >= 0:
        leave_factor_at_bound(r1, p)
    return 1 if p < 0 else 0


@kernel
def find_most_wrong(r1, accepted, least_index):
    """Returns the variable outside the factor with the largest w of the wrong sign, above `accepted`; -1: none.

    With least_index = 1 it returns the first variable with a wrong sign instead, so that no sequence of sets repeats.
    """
    largest = accepted
    found = -1
    for p in range(r1.one.n[0]):
        state, w = r1.one.state[p], r1.scaled.w[p]
        wrong = 0.0  # how far w is on the wrong side
        # at LOWER w >= 0 is right, at UPPER w <= 0, at WAITING w = 0, and at FIXED any w
        if r1.one.mark[p] != GIVEN_UP:
            if state == LOWER:
                wrong = -w
            elif state == UPPER:
                wrong = w
            elif state == WAITING:
                wrong = fabs(w)
        if wrong > largest and (found < 0 or not least_index):
            largest, found = wrong, p
    return found


@kernel
def release_from_bound(r1, p):
    """Moves variable p, whose w has the wrong sign, to the factor.

    If p depends on the factor's rows, it cannot enter.  It then moves along dx_p = sign, dx_C = -sign A_CC^-1 A_Cp,
    which does not change w, until p or a row of the factor reaches a bound.  If none does, there is no minimum: p is
    GIVEN_UP, and the status becomes INFEASIBLE.
    """
    # one.rhs_entering = L^-1 A_Cp, one.y = A_CC^-1 A_Cp, then one.y = -sign A_CC^-1 A_Cp
    reduce_matrix_row(r1, p, r1.one.rhs_entering)
    pivot = pivot_of(r1, p, r1.one.rhs_entering)
    substitute_backward(r1, r1.one.rhs_entering, r1.one.y)
    sign = 1.0 if r1.scaled.w[p] < 0.0 else -1.0
    square = 1.0  # dx^T dx
    for k in range(r1.one.nfactor[0]):
        square += r1.one.y[k] * r1.one.y[k]
        r1.one.y[k] = -sign * r1.one.y[k]
    # the pivot is dx^T A dx, the curvature along dx
    if pivot > SMALLEST_PIVOT * square:
        append_factor_row(r1, p, r1.one.rhs_entering, pivot)
        r1.one.state[p] = BETWEEN
    else:
        length, stopping = step_within_bounds(r1, longest=distance_along(r1, p, rate=sign))
        # x_C has moved by `length`; if it is INF, no bound stops the move, and there is no minimum
        if length < INF:
            r1.scaled.x[p] = r1.scaled.x[p] + length * sign
            r1.one.state[p] = WAITING
            # a row of the factor is at its bound, or else p
            if stopping >= 0:
                leave_factor_at_bound(r1, stopping)
            else:
                set_to_bound(r1, p, upper=sign > 0.0)
        else:
            r1.one.mark[p] = GIVEN_UP
            r1.one.status[0] = INFEASIBLE


@kernel
def refine_active_set(r1, passes, loosening):
    """Moves x from within its bounds to the minimum, in at most `passes` passes; returns the number of passes.

    Reads:  scaled.A, scaled.b, scaled.lo, scaled.hi, scaled.x, one.state, the factor; |w| below `loosening` times its
            rounding error is accepted.
    Writes: scaled.x, scaled.w, one.state, the factor; one.status INFEASIBLE if there is no minimum.
    Scratch: one.mark, one.rhs_entering, one.rhs, one.y, one.sum.
    """
    used_passes = 0
    previous = INF  # error before the last step towards w = 0; INF: none to compare with
    done = 0
    while used_passes < passes and done == 0:
        used_passes += 1
        noise = loosening * recompute_w(r1)
        error = largest_w_between(r1)  # in the factor, where w should be 0
        # another step towards w = 0, if the last one at least halved the error
        if error > noise and error < 0.5 * previous:
            # a step that a bound stopped changed the rows of the factor: its error is not compared
            previous = error if step_towards_zero_w(r1) else INF
        else:
            # the second half of the passes releases rows by the least index, so that they cannot cycle
            p = find_most_wrong(r1, accepted=noise, least_index=2 * used_passes > passes)
            if p >= 0:
                release_from_bound(r1, p)
            else:
                done = 1
            previous = INF
    return used_passes
