"""Block start of the pivoting: all rows on the wrong side change at once, which often takes only a few rounds.

All rows with a nonempty range are put between their bounds and solved.  Then every row beyond a bound goes to it, and
every row at a bound whose w has the wrong sign is released.  If the number of such rows stops falling, only the last of
them changes, until there are fewer than ever before.  Most contact problems need a few rounds; otherwise the attempt is
discarded, and the rows are driven one by one.
Symbols: r1: the record of the problem;  p: a variable;  k, j: rows of the factor;  C: the variables in the factor;  N:
    the others;  noise: rounding error of w;  first, end: variables first to end - 1 are solved, later ones are ignored.
    one.factor[k]: the variable of row k, -1: a gap, and one.factor_row[p] = k, -1: none.  Variables to add are listed
    in one.factor behind those of the factor.  scaled.x, w, b, lo, hi, A: the scaled problem by variable;  one.nfactor:
    rows of the factor, gaps included;  one.ngap: gaps;  one.D: 1 / D of its rows.
    States (scaled_problem.py): LOWER, UPPER: at a bound;  BETWEEN: in the factor;  WAITING: between the bounds, but
    outside the factor, as it depends on its rows;  FIXED: both bounds are 0.
    `substitute_forward(r1, t)`: t <- L^-1 t;  `substitute_backward(r1, t, y)`: y <- L^-T D^-1 t;
    `gather_negative_w`: one.rhs = -w_C;  `refactor`: rebuilds the factor without gaps;
    `remove_row(r1, p)`: variable p leaves the factor;
    `append_listed_variables`: adds listed variables to the factor, and sets their state: BETWEEN, or WAITING if they
      depend on its rows;
    `add_matrix_product(r1, v, out, rows, blocks)`: out += A v, from the first `rows` variables of v to the first
      `blocks` eights of `out`;
    `eights_per_row`: eights (vectors of eight numbers) in a row of A.
Source: M. M. Kostreva, "Block pivot methods for solving the complementarity problem" (1978); L. F. Portugal,
    J. J. Judice and L. N. Vicente, "A comparison of block pivoting and interior-point algorithms for linear least
    squares problems with nonnegative variables" (1994), for boxes.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.pivot.factor import (
    eights_per_row,
    gather_negative_w,
    refactor,
    remove_row,
    substitute_backward,
    substitute_forward,
)
from featherlane.engine.solver.lcp.pivot.many_rows import append_listed_variables
from featherlane.engine.solver.lcp.pivot.scaled_problem import (
    BETWEEN,
    FIXED,
    LOWER,
    UPPER,
    WAITING,
    add_matrix_product,
    rounding_of_w,
)

PATIENCE = 3  # rounds without a new minimum of rows on the wrong side, after which rows change one by one
SINGLE = 8  # SINGLE rounds, plus one per SINGLE rows of the problem, may change one row each; then the attempt ends
FEW, SHARE = 2, 16  # up to FEW rows, plus one per SHARE rows of the factor, leave one by one; with more, it is rebuilt
ENTERING = 4  # state of a row that is to enter the range between its bounds


@kernel
def add_listed_variables(r1, count):
    """Adds the `count` variables that are listed behind the factor to it, and their number to one.niter."""
    append_listed_variables(r1, count)
    r1.one.niter[0] = r1.one.niter[0] + count


@kernel
def set_start_states(r1, first, end):
    """Sets the states of variables first to end - 1 by w = -b, which is w at x = 0.

    FIXED   lo = hi = 0
    LOWER   lo = 0 and w >= 0
    UPPER   hi = 0 and w <= 0
    else    the variable enters the factor: BETWEEN, or WAITING if it depends on the factor's rows
    """
    nfactor = r1.one.nfactor[0]
    count = 0
    for p in range(first, end):
        lo, hi, b = r1.scaled.lo[p], r1.scaled.hi[p], r1.scaled.b[p]
        if lo == 0.0 and hi == 0.0:
            r1.one.state[p] = FIXED
        elif lo == 0.0 and b <= 0.0:
            r1.one.state[p] = LOWER
        elif hi == 0.0 and b >= 0.0:
            r1.one.state[p] = UPPER
        else:
            r1.one.factor[nfactor + count] = p
            count += 1
    add_listed_variables(r1, count)


@kernel
def solve_between(r1, end):
    """Computes x_C for w_C = 0, without its bounds, and w = A x - b, of variables 0 to end - 1.

    A_CC x_C = b_C - A_CN x_N.  In the code x_C starts from 0: then w = A_N x_N - b, and dx_C = -A_CC^-1 w_C.
    """
    nfactor = r1.one.nfactor[0]
    blocks = (end + 7) // 8
    x8, w8, b8, dx8 = eights(r1.scaled.x), eights(r1.scaled.w), eights(r1.scaled.b), eights(r1.scaled.dx)
    # x_C = 0, then w = A x - b
    for k in range(nfactor):
        if r1.one.factor[k] >= 0:
            r1.scaled.x[r1.one.factor[k]] = 0.0
    for c in range(blocks):
        w8[c] = -b8[c]
        dx8[c] = 0.0
    add_matrix_product(r1, r1.scaled.x, r1.scaled.w, end, blocks)
    # dx_C = one.y = -A_CC^-1 w_C, with one.rhs = -w_C first; then w += A dx, x += dx
    gather_negative_w(r1)
    substitute_forward(r1, r1.one.rhs)
    substitute_backward(r1, r1.one.rhs, r1.one.y)
    for k in range(nfactor):
        if r1.one.factor[k] >= 0:
            r1.scaled.dx[r1.one.factor[k]] = r1.one.y[k]
    add_matrix_product(r1, r1.scaled.dx, r1.scaled.w, end, blocks)
    for c in range(blocks):
        x8[c] = x8[c] + dx8[c]


@kernel
def required_state(r1, p, noise):
    """Returns the required state of variable p.

    BETWEEN          LOWER or UPPER, if x is beyond this bound
    LOWER, WAITING   ENTERING, if w < -noise
    UPPER, WAITING   ENTERING, if w > noise
    else             its present state
    """
    state, x, w = r1.one.state[p], r1.scaled.x[p], r1.scaled.w[p]
    if state == BETWEEN:
        if x < r1.scaled.lo[p]:
            state = LOWER
        elif x > r1.scaled.hi[p]:
            state = UPPER
    elif (w < -noise and state in (LOWER, WAITING)) or (w > noise and state in (UPPER, WAITING)):
        state = ENTERING
    return state


@kernel
def count_wrong(r1, end, noise):
    """Returns (number of variables before `end` whose state should change, the last of them or -1)."""
    count, last_wrong = 0, -1
    for p in range(end):
        if required_state(r1, p, noise) != r1.one.state[p]:
            count = count + 1
            last_wrong = p
    return count, last_wrong


@kernel
def change_sides(r1, first, end, noise):
    """Sets variables first to end - 1 to their `required_state`; x of new LOWER and UPPER ones becomes the bound."""
    for p in range(first, end):
        state = required_state(r1, p, noise)
        if state != r1.one.state[p]:
            r1.one.state[p] = state
            if state == LOWER:
                r1.scaled.x[p] = r1.scaled.lo[p]
            elif state == UPPER:
                r1.scaled.x[p] = r1.scaled.hi[p]


@kernel
def count_leaving(r1):
    """Returns the number of rows of the factor whose variables are no longer BETWEEN."""
    count = 0
    for k in range(r1.one.nfactor[0]):
        p = r1.one.factor[k]
        if p >= 0 and r1.one.state[p] != BETWEEN:
            count += 1
    return count


@kernel
def count_entering(r1, end):
    """Returns the number of variables that are ENTERING."""
    count = 0
    for p in range(end):
        if r1.one.state[p] == ENTERING:
            count += 1
    return count


@kernel
def rebuild_factor(r1):
    """Factors A_CC again, with C the variables that are still BETWEEN.

    The rows before the first gap or variable that is not BETWEEN do not change, and are kept.
    """
    nfactor = r1.one.nfactor[0]
    kept, done = 0, 0
    while kept < nfactor and done == 0:
        p = r1.one.factor[kept]
        if p >= 0 and r1.one.state[p] == BETWEEN:
            kept += 1
        else:
            done = 1
    # removes the rows behind the kept ones; entries of one.D behind the factor must be 0
    for j in range(kept, nfactor):
        r1.one.D[j] = 0.0
        if r1.one.factor[j] >= 0:
            r1.one.factor_row[r1.one.factor[j]] = -1
    r1.one.nfactor[0] = kept
    r1.one.ngap[0] = 0
    # lists the variables to add behind the kept rows: one.factor[j] is read before it is overwritten, as count <= j -
    # kept
    count = 0
    for j in range(kept, nfactor):
        p = r1.one.factor[j]
        if p >= 0 and r1.one.state[p] == BETWEEN:
            r1.one.factor[kept + count] = p
            count += 1
    append_listed_variables(r1, count)


@kernel
def update_factor(r1, end):
    """Updates the factor of A_CC: variables that are no longer BETWEEN leave C, those ENTERING enter it."""
    leaving = count_leaving(r1)
    if leaving > FEW + r1.one.nfactor[0] // SHARE:
        rebuild_factor(r1)
    else:
        k = 0
        while leaving > 0:
            p = r1.one.factor[k]
            k += 1
            if p >= 0 and r1.one.state[p] != BETWEEN:
                remove_row(r1, p)
                leaving = leaving - 1
                k = 0  # `remove_row` may have rebuilt the factor: the search starts again
    entering = count_entering(r1, end)
    # without its gaps, the factor has space for them
    if r1.one.nfactor[0] + entering > 8 * eights_per_row(r1):
        refactor(r1)
    nfactor = r1.one.nfactor[0]
    count = 0
    for p in range(end):
        if r1.one.state[p] == ENTERING:
            r1.one.factor[nfactor + count] = p
            count += 1
    add_listed_variables(r1, count)


@kernel
def start_with_all(r1, first, end):
    """Solves the LCP of variables 0 to end - 1, given a solution for 0 to first - 1; returns 1 on success.

    Block pivoting: x_C from w_C = 0, then all variables with x beyond a bound, or w of the wrong sign, change sides.

    Reads:  scaled.A, scaled.b, scaled.lo, scaled.hi.
    Writes: scaled.x, scaled.w, one.state, the factor, one.niter.
    Scratch: scaled.dx, one.rhs, one.y, one.sum.
    """
    if r1.one.ngap[0] > 0:  # variables to add are listed behind the factor's rows: gaps would take their space
        refactor(r1)
    set_start_states(r1, first, end)
    patience = PATIENCE  # rounds left without a new minimum of wrong variables
    singles = SINGLE + end // SINGLE  # rounds left that change a single variable
    fewest = end + 1  # least number of wrong variables so far
    count = 1  # present number of wrong variables; 1 until they are counted
    while singles > 0 and count > 0:
        solve_between(r1, end)
        noise = rounding_of_w(r1, end)
        count, last_wrong = count_wrong(r1, end, noise)
        if count < fewest:
            fewest = count
            patience = PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            singles -= 1
        if count > 0 and singles > 0:
            # all wrong variables change; when patience has run out, only the last one, behind which none is wrong
            change_sides(r1, first=0 if patience > 0 else last_wrong, end=end, noise=noise)
            update_factor(r1, end)
    return 1 if count == 0 else 0
