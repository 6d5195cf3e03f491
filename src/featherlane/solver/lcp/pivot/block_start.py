"""Block start of the pivoting: all rows on the wrong side change at once, which often takes only a few rounds.

All rows with a nonempty range are put between their bounds and solved.  Then every row beyond a bound goes to it, and
every row at a bound whose w has the wrong sign is released.  If the number of such rows stops falling, only the last of
them changes, until there are fewer than ever before.  Most contact problems need a few rounds; otherwise the attempt is
discarded, and the rows are driven one by one.
Source: M. M. Kostreva, "Block pivot methods for solving the complementarity problem" (1978); L. F. Portugal,
    J. J. Judice and L. N. Vicente, "A comparison of block pivoting and interior-point algorithms for linear least
    squares problems with nonnegative variables" (1994), for boxes.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.pivot.factor import (
    eights_per_row,
    gather_negative_w,
    refactor,
    remove_row,
    substitute_backward,
    substitute_forward,
)
from featherlane.solver.lcp.pivot.many_rows import put_all_between
from featherlane.solver.lcp.pivot.scaled_problem import (
    BETWEEN,
    FIXED,
    LOWER,
    UPPER,
    WAITING,
    add_matrix_product,
    rounding_of_w,
)

PATIENCE = 3  # rounds without a new minimum of rows on the wrong side, after which rows change one by one
SINGLE = 8  # rounds of single rows, plus one per so many rows of the problem, before the attempt is discarded
FEW, SHARE = 2, 16  # rows that leave the factor one by one, plus one per so many; with more, it is rebuilt
ENTERING = 4  # state of a row that is to enter the range between its bounds


@kernel
def put_all(r1, count):
    """Adds `count` places listed behind the factor to it, and counts them."""
    put_all_between(r1, count)
    r1.one.niter[0] = r1.one.niter[0] + count


@kernel
def place_all(r1, first, last):
    """Puts places first to last - 1 between their bounds, except those held by a bound of 0 alone, with x = 0."""
    m, count = r1.one.nfactor[0], 0
    for p in range(first, last):
        lo, hi, b = r1.place.lo[p], r1.place.hi[p], r1.place.b[p]
        if lo == 0.0 and hi == 0.0:
            r1.one.state[p] = FIXED
        elif lo == 0.0 and b <= 0.0:
            r1.one.state[p] = LOWER
        elif hi == 0.0 and b >= 0.0:
            r1.one.state[p] = UPPER
        else:
            r1.one.factor[m + count] = p
            count += 1
    put_all(r1, count)


@kernel
def solve_between(r1, last):
    """Computes x of the factor's rows for w = 0, without bounds, and w = A x - b of all places before the last.

    A_CC x_C = b_C - A_CN x_N.
    """
    m, blocks = r1.one.nfactor[0], (last + 7) // 8
    X, W, b, DX = eights(r1.place.x), eights(r1.place.w), eights(r1.place.b), eights(r1.place.dx)
    for k in range(m):
        if r1.one.factor[k] >= 0:
            r1.place.x[r1.one.factor[k]] = 0.0
    for c in range(blocks):
        W[c], DX[c] = -b[c], 0.0
    add_matrix_product(r1, r1.place.x, r1.place.w, last, blocks)
    gather_negative_w(r1)
    substitute_forward(r1, r1.one.turn)
    substitute_backward(r1, r1.one.turn, r1.one.y)
    for k in range(m):
        if r1.one.factor[k] >= 0:
            r1.place.dx[r1.one.factor[k]] = r1.one.y[k]
    add_matrix_product(r1, r1.place.dx, r1.place.w, last, blocks)
    for c in range(blocks):
        X[c] = X[c] + DX[c]


@kernel
def right_side(r1, p, noise):
    """Returns the state that place p should have by its x and w."""
    state, x, w = r1.one.state[p], r1.place.x[p], r1.place.w[p]
    if state == BETWEEN:
        if x < r1.place.lo[p]:
            state = LOWER
        elif x > r1.place.hi[p]:
            state = UPPER
    elif (w < -noise and state in (LOWER, WAITING)) or (w > noise and state in (UPPER, WAITING)):
        state = ENTERING
    return state


@kernel
def count_wrong(r1, last, noise):
    """Returns (how many places should have another state, the last of them)."""
    wrong, found = 0, -1
    for p in range(last):
        if right_side(r1, p, noise) != r1.one.state[p]:
            wrong, found = wrong + 1, p
    return wrong, found


@kernel
def change_sides(r1, first, last, noise):
    """Sets the states that places first to last - 1 should have, and x of those at a bound."""
    for p in range(first, last):
        state = right_side(r1, p, noise)
        if state != r1.one.state[p]:
            r1.one.state[p] = state
            if state == LOWER:
                r1.place.x[p] = r1.place.lo[p]
            elif state == UPPER:
                r1.place.x[p] = r1.place.hi[p]


@kernel
def count_leaving(r1):
    """Returns the number of rows of the factor whose places should be elsewhere."""
    count = 0
    for k in range(r1.one.nfactor[0]):
        p = r1.one.factor[k]
        if p >= 0 and r1.one.state[p] != BETWEEN:
            count += 1
    return count


@kernel
def count_entering(r1, last):
    """Returns the number of places that are to enter the factor."""
    count = 0
    for p in range(last):
        if r1.one.state[p] == ENTERING:
            count += 1
    return count


@kernel
def build_anew(r1):
    """Rebuilds the factor without rows that should be elsewhere; rows before the first of them, or a gap, stay."""
    m, k, gone = r1.one.nfactor[0], 0, 0
    while k < m and gone == 0:
        p = r1.one.factor[k]
        if p >= 0 and r1.one.state[p] == BETWEEN:
            k += 1
        else:
            gone = 1
    for j in range(k, m):
        r1.one.D[j] = 0.0
        if r1.one.factor[j] >= 0:
            r1.one.slot[r1.one.factor[j]] = -1
    r1.one.nfactor[0], r1.one.ngap[0] = k, 0
    count = 0
    for j in range(k, m):
        p = r1.one.factor[j]
        if p >= 0 and r1.one.state[p] == BETWEEN:
            r1.one.factor[k + count] = p
            count += 1
    put_all_between(r1, count)


@kernel
def follow_states(r1, last):
    """Updates the factor to the places that belong there by their states."""
    leaving = count_leaving(r1)
    if leaving > FEW + r1.one.nfactor[0] // SHARE:
        build_anew(r1)
    else:
        k = 0
        while leaving > 0:
            p = r1.one.factor[k]
            k += 1
            if p >= 0 and r1.one.state[p] != BETWEEN:
                remove_row(r1, p)
                leaving, k = leaving - 1, 0
    entering = count_entering(r1, last)
    if r1.one.nfactor[0] + entering > 8 * eights_per_row(r1):
        refactor(r1)
    m, count = r1.one.nfactor[0], 0
    for p in range(last):
        if r1.one.state[p] == ENTERING:
            r1.one.factor[m + count] = p
            count += 1
    put_all(r1, count)


@kernel
def start_with_all(r1, first, last):
    """Makes the places before the last complementary, given that those before the first are; returns 1 on success.

    Reads:  place.A, place.b, place.lo, place.hi.   Writes: place.x, place.w, one.state, the factor.
    """
    if r1.one.ngap[0] > 0:
        refactor(r1)
    place_all(r1, first, last)
    patience, single, least, wrong = PATIENCE, SINGLE + last // SINGLE, last + 1, 1
    while single > 0 and wrong > 0:
        solve_between(r1, last)
        noise = rounding_of_w(r1, last)
        wrong, found = count_wrong(r1, last, noise)
        if wrong < least:
            least, patience = wrong, PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            single -= 1
        if wrong > 0 and single > 0:
            change_sides(r1, 0 if patience > 0 else found, last, noise)
            follow_states(r1, last)
    return 1 if wrong == 0 else 0
