"""Friction limits of one LCP: +-(mu |x[findex]| + add), set once, or followed to a fixed point.

At a fixed point x is complementary under the limits that follow from x itself.  Plain fixed-point iteration may
diverge: a block that tips over its edge presses harder the harder it is held.  So before each new solution, the limits
of all slipping rows are solved together, with the sides of all rows fixed: Newton's method on a piecewise linear map,
exact once no row changes its side.  If its steps do not converge, projected Gauss-Seidel sweeps under
live limits find other sides to start from.  There may be no fixed point, or many.
Symbols: r1: the record of the problem;  i, p, q: places;  k: the row at a place;  normal: place of row findex[k];
    slipping: at a friction limit, listed in one.factor behind the factor's rows;  C: the places in the factor.
    place.hi of a friction place is its limit in effect, place.lo = -place.hi.  one.order[i]: the row at place i, and
    one.place[k] that of row k;  one.hi[k]: mu;  one.slot[i]: row of the factor, -1: none;  place.scale: units of x;
    one.nconstant: places before friction, of one.n;  one.nfactor: rows of the factor, gaps included, one.ngap: gaps.
    States (scaled_problem.py): LOWER, UPPER: at a bound;  BETWEEN: in the factor;  WAITING: between the bounds, but
    outside the factor, as it depends on its rows;  FIXED: both bounds are 0.
    `substitute_forward(r1, t)`: t <- L^-1 t;  `substitute_backward(r1, t, y)`: y <- L^-T D^-1 t;
    `gather_matrix_row(r1, p, t)`: t = A_Cp;  `refactor`: rebuilds the factor without gaps;
    `set_to_bound(r1, i, upper)`: sets x and state;
    `append_listed_places`: adds the places that are listed behind the factor to it;
    `add_matrix_product(r1, v, out, rows, blocks)`: out += A v, from the first `rows` places of v to the first
      `blocks` eights (vectors of eight numbers) of `out`;
    `multiply_row(r1, i)`: ((A x)_i, the sum of its absolute terms);  `eights_per_row`: eights in a row of A;
    `refine_active_set`: moves x to the minimum at fixed limits, returns its passes.
Source: D. E. Stewart and J. C. Trinkle, "An implicit time-stepping scheme for rigid body dynamics with inelastic
    collisions and Coulomb friction" (1996) for the problem; L. Qi and J. Sun, "A nonsmooth version of Newton's method"
    (1993).
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.pivot.active_set import refine_active_set, set_to_bound
from featherlane.engine.solver.lcp.pivot.factor import (
    clear_factor,
    eights_per_row,
    gather_matrix_row,
    refactor,
    substitute_backward,
    substitute_forward,
)
from featherlane.engine.solver.lcp.pivot.many_rows import append_listed_places
from featherlane.engine.solver.lcp.pivot.scaled_problem import (
    BETWEEN,
    FIXED,
    INF,
    LOWER,
    UPPER,
    WAITING,
    add_matrix_product,
    clear_direction,
    clip_to_bounds,
    multiply_row,
)

SETTLED = 1e-11  # change of a limit, relative to the largest one, at a fixed point
LOOSE = 32.0  # times rounding: accepted w of rows between their bounds, since each correction moves x, and thus the
# limits, in an ill-conditioned problem
SHORTEST = 0.01  # fraction of Newton's step
NEWTON = 6  # Newton steps between two attempts to converge by sweeps
SWEEPS = 10  # sweeps of an attempt, per Newton step so far
SINGULAR = 1e-12  # pivot threshold; the diagonal is about 1


# ---- the limits that follow from x -----------------------------------------------------------------------------------
@kernel
def friction_limit(r1, i):
    """Returns the friction limit of place i at the present x: mu |x_normal| + add, scaled."""
    k = r1.one.order[i]
    normal = r1.one.place[r1.one.findex[k]]
    # in units of the rows; add >= 0
    force = fabs(r1.place.x[normal]) * r1.place.scale[normal]
    limit = fabs(r1.one.add[k])
    # without force there is no friction, whatever mu: inf * 0 would be NaN
    if force > 0.0:
        limit = limit + r1.one.hi[k] * force
    return limit / r1.place.scale[i]


@kernel
def limit_friction(r1):
    """Sets the bounds of all friction places to the limits that follow from the present x."""
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        limit = friction_limit(r1, i)
        r1.place.lo[i] = -limit
        r1.place.hi[i] = limit


@kernel
def limit_mismatch(r1):
    """Returns (largest |limit at the present x - limit in effect|, largest limit), finite limits only."""
    change, largest = 0.0, 0.0
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        limit = friction_limit(r1, i)
        if limit < INF:
            change = fmax(fabs(limit - r1.place.hi[i]), change)
            largest = fmax(limit, largest)
    return change, largest


@kernel
def move_with_limits(r1):
    """Moves x with its friction limits: rows at a limit stay there, others are clipped, or wait at an infinite one."""
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        state = r1.one.state[i]
        if r1.place.hi[i] == INF:
            if state != BETWEEN:
                r1.one.state[i] = WAITING
        elif state == FIXED:
            # the limit was 0: it opens to the side to which w drives x
            set_to_bound(r1, i, upper=r1.place.w[i] < 0.0)
        elif state in (LOWER, UPPER):
            set_to_bound(r1, i, upper=state == UPPER)
        else:
            clip_to_bounds(r1, i)


# ---- limits and forces together --------------------------------------------------------------------------------------
@kernel
def list_slipping(r1):
    """Appends slipping friction places to one.factor, behind the factor's; returns how many.

    Only those count whose normal is in the factor and whose mu is positive and finite: their limit depends on x_C.
    """
    nfactor = r1.one.nfactor[0]
    count = 0
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        k = r1.one.order[i]
        normal = r1.one.place[r1.one.findex[k]]
        if r1.one.state[i] in (LOWER, UPPER) and r1.one.slot[normal] >= 0 and 0.0 < r1.one.hi[k] < INF:
            r1.one.factor[nfactor + count] = i
            count += 1
    return count


@kernel
def side_of(r1, i):
    """Returns the sign of x at the bound of place i: 1 at the upper one, -1 at the lower one."""
    return 1.0 if r1.one.state[i] == UPPER else -1.0


@kernel
def write_limit_system(r1, count):
    """Writes Newton's system for the limits l of the `count` slipping places to one.L, behind the factor's rows.

    dl_i - sum over j of (d limit_i / d l_j) dl_j = limit_i(x) - l_i,   limit_i(x) = mu_i |x_normal| + add_i
    With x_j = side_j l_j, x_C = A_CC^-1 (b_C - A_Cj x_j - ...), y = A_CC^-1 A_Cj:

        d limit_i / d l_j = -mu_i sgn(x_normal) side_j y_normal

    Entry (i, j) is one.L[(nfactor + i) * stride + j], the right-hand side is column `count`.
    """
    nfactor = r1.one.nfactor[0]
    stride = 8 * eights_per_row(r1)
    for j in range(count):
        p = r1.one.factor[nfactor + j]
        # one.y = A_CC^-1 A_Cp
        gather_matrix_row(r1, p, r1.one.turn)
        substitute_forward(r1, r1.one.turn)
        substitute_backward(r1, r1.one.turn, r1.one.y)
        for i in range(count):
            q = r1.one.factor[nfactor + i]
            k = r1.one.order[q]
            normal = r1.one.place[r1.one.findex[k]]
            # mu sgn(x_normal), in scaled units
            mu = r1.one.hi[k] * r1.place.scale[normal] / r1.place.scale[q]
            if r1.place.x[normal] < 0.0:
                mu = -mu
            delta = 1.0 if i == j else 0.0
            r1.one.L[(nfactor + i) * stride + j] = delta + mu * side_of(r1, p) * r1.one.y[r1.one.slot[normal]]
    for i in range(count):
        q = r1.one.factor[nfactor + i]
        r1.one.L[(nfactor + i) * stride + count] = friction_limit(r1, q) - r1.place.hi[q]


@kernel
def solve_limit_system(r1, first, count):
    """Solves the system of `write_limit_system` by Gauss-Jordan elimination with row exchanges; returns 0 if singular.

    first: its first row in one.L, so entry (i, j) is system[(first + i) * stride + j].  Column `count`, the right-hand
    side, ends with the solution.
    """
    system = r1.one.L
    stride = 8 * eights_per_row(r1)
    regular = 1
    for j in range(count):
        best = j
        for i in range(j + 1, count):
            if fabs(system[(first + i) * stride + j]) > fabs(system[(first + best) * stride + j]):
                best = i
        # exchanges rows j and best
        pivot_row, best_row = (first + j) * stride, (first + best) * stride
        for c in range(j, count + 1):  # columns before j are already eliminated
            x, y = system[pivot_row + c], system[best_row + c]
            system[pivot_row + c], system[best_row + c] = y, x
        if fabs(system[pivot_row + j]) < SINGULAR:
            regular = 0
        else:
            for i in range(count):
                row = (first + i) * stride
                if i != j:
                    multiple = system[row + j] / system[pivot_row + j]
                    for c in range(j, count + 1):
                        system[row + c] = system[row + c] - multiple * system[pivot_row + c]
    if regular:
        for j in range(count):
            row = (first + j) * stride
            system[row + count] = system[row + count] / system[row + j]
    return regular


@kernel
def move_slipping(r1, count):
    """Adds the solution dl of `solve_limit_system` to the limits, and moves x with them.

    x_C moves by -A_CC^-1 A_CN dx_N, so that w_C stays.   N: the `count` slipping places.
    Reads: dl in column `count` of one.L, behind the factor's rows.
    """
    n, nfactor = r1.one.n[0], r1.one.nfactor[0]
    row_eights = eights_per_row(r1)
    clear_direction(r1, row_eights)
    for i in range(count):
        p = r1.one.factor[nfactor + i]
        limit = fmax(r1.place.hi[p] + r1.one.L[(nfactor + i) * 8 * row_eights + count], 0.0)
        x = side_of(r1, p) * limit
        r1.place.dx[p] = x - r1.place.x[p]
        r1.place.lo[p] = -limit
        r1.place.hi[p], r1.place.x[p] = limit, x
    add_matrix_product(r1, r1.place.dx, r1.place.dw, n, row_eights)
    # one.y = -A_CC^-1 dw_C, with one.turn as its right-hand side; the factor has no gaps here
    for k in range((nfactor + 7) // 8 * 8):
        r1.one.turn[k] = -r1.place.dw[r1.one.factor[k]] if k < nfactor else 0.0
    substitute_forward(r1, r1.one.turn)
    substitute_backward(r1, r1.one.turn, r1.one.y)
    for k in range(nfactor):
        p = r1.one.factor[k]
        r1.place.x[p] = r1.place.x[p] + r1.one.y[k]
        clip_to_bounds(r1, p)


@kernel
def solve_slipping(r1):
    """Solves for the slipping limits and x_C together, with the side of every row fixed.

    Reads and writes: place.lo, place.hi, place.x.   Scratch: rows of one.L that the factor does not use.
    """
    # the system's rows must follow the factor's without gaps
    if r1.one.ngap[0] > 0:
        refactor(r1)
    count = list_slipping(r1)
    nfactor = r1.one.nfactor[0]
    LT8 = eights(r1.one.L)
    row_eights = eights_per_row(r1)
    if count > 0 and nfactor > 0:
        write_limit_system(r1, count)
        if solve_limit_system(r1, nfactor, count):
            move_slipping(r1, count)
        # rows of one.L behind the factor stay 0
        for c in range(nfactor * row_eights, (nfactor + count) * row_eights):
            LT8[c] = 0.0


@kernel
def find_target_limits(r1):
    """Sets the start and the target of a step of the limits, by place, in two arrays that are free here.

    one.best: the limits in effect;  one.upper: those that follow from x after `solve_slipping`.
    """
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        r1.one.best[i] = r1.place.hi[i]
    solve_slipping(r1)
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        r1.one.upper[i] = friction_limit(r1, i)


@kernel
def move_limits(r1, fraction):
    """Moves the limits by a fraction from one.best to one.upper (`find_target_limits`); x of friction rows follows."""
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        limit = r1.one.upper[i]
        # an infinite limit is reached at once: inf - inf would be NaN
        if fraction < 1.0 and limit < INF and r1.one.best[i] < INF:
            limit = r1.one.best[i] + fraction * (limit - r1.one.best[i])
        r1.place.lo[i] = -limit
        r1.place.hi[i] = limit
    move_with_limits(r1)


# ---- the fixed point --------------------------------------------------------------------------------------------
@kernel
def gauss_seidel_sweep(r1):
    """Runs one sweep of projected Gauss-Seidel, x_i <- clip(x_i - w_i / A_ii); sets a friction limit before its row."""
    n = r1.one.n[0]
    stride = 8 * eights_per_row(r1)
    for i in range(n):
        if i >= r1.one.nconstant[0]:
            limit = friction_limit(r1, i)
            r1.place.lo[i] = -limit
            r1.place.hi[i] = limit
        diagonal = r1.place.A[i * stride + i]
        product, _ = multiply_row(r1, i)
        if diagonal > 0.0:
            r1.place.x[i] = r1.place.x[i] - (product - r1.place.b[i]) / diagonal
        clip_to_bounds(r1, i)


@kernel
def set_states_from_x(r1):
    """Sets the states and the factor from x: at a bound if x is equal to it, else between its bounds."""
    clear_factor(r1)
    count = 0
    for i in range(r1.one.n[0]):
        x = r1.place.x[i]
        r1.one.slot[i] = -1
        if x == r1.place.lo[i] or x == r1.place.hi[i]:
            set_to_bound(r1, i, upper=x == r1.place.hi[i])
        else:
            r1.one.factor[count] = i
            count += 1
    append_listed_places(r1, count)  # sets their states: BETWEEN, or WAITING


@kernel
def move_to_target_limits(r1, before, left, active_set_passes):
    """Takes a Newton step of the limits; tries half of it while the mismatch of the limits hardly falls.

    before: mismatch at the start; left: trials that are left; active_set_passes: see `settle_friction`.
    Returns (1 if the limits are settled, mismatch, trials that are left).
    """
    find_target_limits(r1)
    fraction, trying = 1.0, 1
    while trying:
        move_limits(r1, fraction)
        count = refine_active_set(r1, active_set_passes, loosening=LOOSE)
        left -= 1
        mismatch, largest = limit_mismatch(r1)
        # one pass: x is already the minimum at these limits
        settled = 1 if count == 1 and mismatch <= SETTLED * largest else 0
        # a fraction of the step should reduce the mismatch by this fraction of it; a quarter of that is enough
        falls_less = mismatch > (1.0 - 0.25 * fraction) * before
        trying = 1 if falls_less and left > 0 and settled == 0 and fraction > SHORTEST else 0
        fraction = 0.5 * fraction
    return settled, mismatch, left


@kernel
def restart_by_sweeps(r1, sweeps, active_set_passes):
    """Runs Gauss-Seidel sweeps, and starts again from the states and limits that they find; returns the mismatch."""
    for _ in range(sweeps):
        gauss_seidel_sweep(r1)
    set_states_from_x(r1)
    limit_friction(r1)
    move_with_limits(r1)
    refine_active_set(r1, active_set_passes, loosening=LOOSE)
    mismatch, _ = limit_mismatch(r1)
    return mismatch


@kernel
def settle_friction(r1, passes, active_set_passes):
    """Iterates friction limits and x until the limits in effect are those that follow from x; returns 1 if they are.

    passes: largest number of trial steps.   active_set_passes: largest number of passes of each `refine_active_set`.
    """
    mismatch, _ = limit_mismatch(r1)
    settled, rounds = 0, 0
    left = passes  # trial steps that are left
    while left > 0 and settled == 0:
        settled, mismatch, left = move_to_target_limits(r1, mismatch, left, active_set_passes)
        rounds += 1
        if rounds % NEWTON == 0 and settled == 0:
            mismatch = restart_by_sweeps(r1, SWEEPS * rounds, active_set_passes)
    return settled
