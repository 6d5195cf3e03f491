"""Active-set refinement after pivoting: from an x within its bounds to the minimum of x^T A x / 2 - b^T x.

Rows between their bounds move towards w = 0, up to the first bound.  If all of them are at w = 0, the row with the
largest w of the wrong sign joins them.  Each pass recomputes the multipliers w from A, b and x, which also refines an
ill-conditioned problem; after a regular pivoting there is one pass, which changes nothing.
Source: Nocedal and Wright, Numerical Optimization (2006), algorithm 16.3; for A that is only semidefinite a row that
    depends on the others moves them along a direction in which w does not change.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.pivot.factor import (
    SMALLEST_PIVOT,
    append_factor_row,
    eights_of_row,
    gather_error,
    gather_row,
    pivot_of,
    refactor,
    remove_row,
    substitute_backward,
    substitute_forward,
)
from featherlane.solver.lcp.pivot.scaled_problem import BETWEEN, FIXED, INF, LOWER, UPPER, WAITING, refresh
from featherlane.solver.lcp.status import INFEASIBLE

GIVEN_UP = 1 << 30  # mark of a row that no step can improve


@kernel
def to_bound(r1, p, upper):
    """Sets place p to a bound."""
    if upper:
        r1.place.x[p], r1.one.state[p] = r1.place.hi[p], UPPER
    else:
        r1.place.x[p], r1.one.state[p] = r1.place.lo[p], LOWER
    if r1.place.lo[p] == 0.0 and r1.place.hi[p] == 0.0:
        r1.one.state[p] = FIXED


@kernel
def distance_along(r1, p, y):
    """Returns the multiple of y by which place p can move before it reaches a bound."""
    s = INF
    if y > 0.0:
        s = (r1.place.hi[p] - r1.place.x[p]) / y
    elif y < 0.0:
        s = (r1.place.lo[p] - r1.place.x[p]) / y
    return s if s > 0.0 else 0.0


@kernel
def step_within_bounds(r1, longest):
    """Adds s one.y to x of the factor's rows, with s limited by the bounds and by `longest`.

    Returns (s, place that stops it, or -1).
    """
    s, first = longest, -1
    for k in range(r1.one.nfactor[0]):
        p = r1.one.factor[k]
        if p >= 0:
            t = distance_along(r1, p, r1.one.y[k])
            if t < s:
                s, first = t, p
    if s < INF:
        for k in range(r1.one.nfactor[0]):
            p = r1.one.factor[k]
            if p >= 0:
                r1.place.x[p] = r1.place.x[p] + s * r1.one.y[k]
    return s, first


@kernel
def reach_bound(r1, p):
    """Handles place p of the factor, which reached the bound towards which it moved."""
    to_bound(r1, p, r1.one.y[r1.one.slot[p]] > 0.0)
    remove_row(r1, p)


@kernel
def error_between(r1):
    """Returns the largest |w| of the rows between their bounds."""
    worst = 0.0
    for k in range(r1.one.nfactor[0]):
        p = r1.one.factor[k]
        if p >= 0 and fabs(r1.place.w[p]) > worst:
            worst = fabs(r1.place.w[p])
    return worst


@kernel
def approach(r1):
    """Takes one step towards w = 0 of the rows between their bounds; returns 1 if no bound stopped it."""
    gather_error(r1)
    substitute_forward(r1, r1.one.turn)
    substitute_backward(r1, r1.one.turn, r1.one.y)
    _, p = step_within_bounds(r1, 1.0)
    if p >= 0:
        reach_bound(r1, p)
    return 1 if p < 0 else 0


@kernel
def most_wrong(r1, noise, least_index):
    """Returns the place outside the factor with the largest w of the wrong sign, or the first such place; -1: none."""
    worst, found = noise, -1
    for p in range(r1.one.n[0]):
        state, w, wrong = r1.one.state[p], r1.place.w[p], 0.0 * noise
        if r1.one.mark[p] != GIVEN_UP:
            if state == LOWER:
                wrong = -w
            elif state == UPPER:
                wrong = w
            elif state == WAITING:
                wrong = fabs(w)
        if wrong > worst and (found < 0 or not least_index):
            worst, found = wrong, p
    return found


@kernel
def release(r1, p):
    """Moves place p, whose w has the wrong sign, to the factor, or along a direction without curvature to a bound."""
    if r1.one.nfactor[0] == 8 * eights_of_row(r1):
        refactor(r1)
    gather_row(r1, p, r1.one.ell)
    substitute_forward(r1, r1.one.ell)
    pivot = pivot_of(r1, p, r1.one.ell)
    substitute_backward(r1, r1.one.ell, r1.one.y)
    sign = 1.0 if r1.place.w[p] < 0.0 else -1.0
    size = 1.0
    for k in range(r1.one.nfactor[0]):
        size += r1.one.y[k] * r1.one.y[k]
        r1.one.y[k] = -sign * r1.one.y[k]
    if pivot > SMALLEST_PIVOT * size:
        append_factor_row(r1, p, r1.one.ell, pivot)
        r1.one.state[p] = BETWEEN
    else:
        s, q = step_within_bounds(r1, distance_along(r1, p, 0.0 * pivot + sign))
        if s < INF:
            r1.place.x[p] = r1.place.x[p] + s * sign
            r1.one.state[p] = WAITING
            if q >= 0:
                reach_bound(r1, q)
            else:
                to_bound(r1, p, sign > 0.0)
        else:
            r1.one.mark[p] = GIVEN_UP
            r1.one.status[0] = INFEASIBLE


@kernel
def improve(r1, most, loose):
    """Moves x from within its bounds to the minimum, in at most `most` passes; returns the number of passes.

    Reads:  place.A, place.b, place.lo, place.hi, place.x, one.state, the factor; errors of w below `loose` times
            rounding are accepted.
    Writes: place.*, one.*, the factor; one.* if there is no minimum.
    """
    used, before, done = 0, INF, 0
    while used < most and done == 0:
        used += 1
        noise = loose * refresh(r1)
        error = error_between(r1)
        if error > noise and error < 0.5 * before:
            # reset after a bound: the previous error does not apply to the remaining rows
            before = error if approach(r1) else INF
        else:
            p = most_wrong(r1, noise, 2 * used > most)
            if p >= 0:
                release(r1, p)
            else:
                done = 1
            before = INF
    return used
