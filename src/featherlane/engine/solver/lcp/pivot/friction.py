"""Friction limits of one LCP: +-(mu |x[findex]| + add), set once, or followed to a fixed point.

At a fixed point x is complementary under the limits that follow from x itself.  Plain fixed-point iteration may
diverge: a block that tips over its edge presses harder the harder it is held.  So before each new solution, the limits
of all slipping rows are solved together, with the sides of all rows fixed: Newton's method on a piecewise linear map,
exact once no row changes its side.  If its steps do not converge, projected Gauss-Seidel sweeps under
live limits find other sides to start from.  There may be no fixed point, or many.
Symbols: r1: the record of the problem;  i, p, q: variables;  k = one.order[i]: row of variable i;  normal: variable of
    row findex[k]; slipping: at a friction limit, listed in one.factor behind the factor's rows;  C: the variables in
    the factor.  scaled.hi of a friction variable is its limit in effect, scaled.lo = -scaled.hi.  one.position[k]: the
    variable of row k;  one.hi[k]: mu;  one.factor_row[i]: row of the factor, -1: none;  scaled.scale: units of x;
    one.nconstant: variables before friction, of one.n;  one.nfactor: rows of the factor, gaps included, one.ngap: gaps.
    States (scaled_problem.py): LOWER, UPPER: at a bound;  BETWEEN: in the factor;  WAITING: between the bounds, but
    outside the factor, as it depends on its rows;  FIXED: both bounds are 0.  `substitute_forward(r1, t)`: t <- L^-1 t;
    `substitute_backward(r1, t, y)`: y <- L^-T D^-1 t; `gather_matrix_row(r1, p, t)`: t = A_Cp;  `refactor`: rebuilds
    the factor without gaps; `set_to_bound(r1, i, upper)`: sets x and state;
    `append_listed_variables`: adds the variables that are listed behind the factor to it;
    `add_matrix_product(r1, v, out, rows, blocks)`: out += A v, from the first `rows` variables of v to the first
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
from featherlane.engine.solver.lcp.pivot.many_rows import append_listed_variables
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
# |w| up to LOOSE times its rounding error counts as 0: in an ill-conditioned problem, each correction of a smaller w
# would move x, and thus the limits
LOOSE = 32.0
SHORTEST = 0.01  # fraction of Newton's step that is not halved again
NEWTON = 6  # Newton steps between two restarts by sweeps
SWEEPS = 10  # sweeps of a restart, per Newton step so far
SINGULAR = 1e-12  # a smaller pivot of the limits' system counts as 0; its diagonal is about 1


# ---- the limits that follow from x -----------------------------------------------------------------------------------
@kernel
def friction_limit(r1, i):
    """Returns the friction limit of variable i at the present x: mu |x_normal| + add, scaled."""
    k = r1.one.order[i]
    normal = r1.one.position[r1.one.findex[k]]
    force = fabs(r1.scaled.x[normal]) * r1.scaled.scale[normal]  # |x_normal|, unscaled
    limit = fabs(r1.one.add[k])  # add >= 0: fabs turns -0 into 0
    # without force there is no friction, whatever mu: inf * 0 would be NaN
    if force > 0.0:
        limit = limit + r1.one.hi[k] * force
    return limit / r1.scaled.scale[i]


@kernel
def limit_friction(r1):
    """Sets the bounds of all friction variables to the limits that follow from the present x."""
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        limit = friction_limit(r1, i)
        r1.scaled.lo[i] = -limit
        r1.scaled.hi[i] = limit


@kernel
def limit_mismatch(r1):
    """Returns (largest |limit that follows from x - limit in effect|, largest limit from x), of finite limits."""
    change, largest = 0.0, 0.0
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        limit = friction_limit(r1, i)
        if limit < INF:
            change = fmax(fabs(limit - r1.scaled.hi[i]), change)
            largest = fmax(limit, largest)
    return change, largest


@kernel
def move_with_limits(r1):
    """Moves x of all friction variables after their limits have changed.

    infinite limit    x does not change; a variable that is not BETWEEN becomes WAITING
    FIXED             the limit was 0: x goes to the limit to which w drives it
    LOWER, UPPER      x stays at its limit
    BETWEEN, WAITING  x is clipped to the limits
    """
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        state = r1.one.state[i]
        if r1.scaled.hi[i] == INF:
            if state != BETWEEN:
                r1.one.state[i] = WAITING
        elif state == FIXED:
            set_to_bound(r1, i, upper=r1.scaled.w[i] < 0.0)  # x rises if w < 0
        elif state in (LOWER, UPPER):
            set_to_bound(r1, i, upper=state == UPPER)
        else:
            clip_to_bounds(r1, i)


# ---- limits and forces together --------------------------------------------------------------------------------------
@kernel
def list_slipping(r1):
    """Lists the slipping variables whose limits depend on x_C in one.factor, behind the factor's; returns how many.

    The limit depends on x_C if the normal is in the factor, and mu > 0.  Variables with an infinite mu are left out.
    """
    nfactor = r1.one.nfactor[0]
    count = 0
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        k = r1.one.order[i]
        normal = r1.one.position[r1.one.findex[k]]
        if r1.one.state[i] in (LOWER, UPPER) and r1.one.factor_row[normal] >= 0 and 0.0 < r1.one.hi[k] < INF:
            r1.one.factor[nfactor + count] = i
            count += 1
    return count


@kernel
def side_of(r1, i):
    """Returns the sign of x at the bound of variable i: 1 at the upper one, -1 at the lower one."""
    return 1.0 if r1.one.state[i] == UPPER else -1.0


@kernel
def write_limit_system(r1, count):
    """Writes Newton's system for the limits l of the `count` slipping variables to one.L, behind the factor's rows.

    dl_i - sum over j of (d limit_i / d l_j) dl_j = limit_i(x) - l_i,   limit_i(x) = mu_i |x_normal| + add_i
    With x_j = side_j l_j and x_C = A_CC^-1 (b_C - sum over j of A_Cj x_j), the derivative is, for y = A_CC^-1 A_Cj,

        d limit_i / d l_j = -mu_i sgn(x_normal) side_j y_normal

    i, j: positions in the list of slipping variables;  q, p: the variables there;  normal: that of q.
    Entry (i, j) is one.L[(nfactor + i) * stride + j], the right-hand side is column `count`.
    """
    nfactor = r1.one.nfactor[0]
    stride = 8 * eights_per_row(r1)
    for j in range(count):
        p = r1.one.factor[nfactor + j]
        # one.y = A_CC^-1 A_Cp
        gather_matrix_row(r1, p, r1.one.rhs)
        substitute_forward(r1, r1.one.rhs)
        substitute_backward(r1, r1.one.rhs, r1.one.y)
        for i in range(count):
            q = r1.one.factor[nfactor + i]
            k = r1.one.order[q]
            normal = r1.one.position[r1.one.findex[k]]
            # d limit_i / d x_normal = mu sgn(x_normal), scaled
            slope = r1.one.hi[k] * r1.scaled.scale[normal] / r1.scaled.scale[q]
            if r1.scaled.x[normal] < 0.0:
                slope = -slope
            identity = 1.0 if i == j else 0.0
            entry = identity + slope * side_of(r1, p) * r1.one.y[r1.one.factor_row[normal]]
            r1.one.L[(nfactor + i) * stride + j] = entry
    for i in range(count):
        q = r1.one.factor[nfactor + i]
        r1.one.L[(nfactor + i) * stride + count] = friction_limit(r1, q) - r1.scaled.hi[q]


@kernel
def solve_limit_system(r1, first, count):
    """Solves the system of `write_limit_system` by Gauss-Jordan elimination with row exchanges; returns 0 if singular.

    first: row of one.L that holds the first of its `count` rows: entry (i, j) is system[(first + i) * stride + j].
    Column `count` holds the right-hand side, then the solution.
    """
    system = r1.one.L
    stride = 8 * eights_per_row(r1)
    regular = 1
    for j in range(count):
        # exchanges row j and the row `best` with the largest entry in column j, from row j on
        best = j
        for i in range(j + 1, count):
            if fabs(system[(first + i) * stride + j]) > fabs(system[(first + best) * stride + j]):
                best = i
        # indices in `system` of column 0 of these rows
        row_j, row_best = (first + j) * stride, (first + best) * stride
        for c in range(j, count + 1):  # columns before j are already eliminated
            entry_j, entry_best = system[row_j + c], system[row_best + c]
            system[row_j + c], system[row_best + c] = entry_best, entry_j
        if fabs(system[row_j + j]) < SINGULAR:
            regular = 0
        else:
            for i in range(count):
                row_i = (first + i) * stride
                if i != j:
                    multiple = system[row_i + j] / system[row_j + j]
                    for c in range(j, count + 1):
                        system[row_i + c] = system[row_i + c] - multiple * system[row_j + c]
    if regular:
        for j in range(count):
            row_j = (first + j) * stride
            system[row_j + count] = system[row_j + count] / system[row_j + j]
    return regular


@kernel
def move_slipping(r1, count):
    """Adds the solution dl of `solve_limit_system` to the limits, and moves x with them.

    Slipping variables N move by dx_N to their new limits, and x_C by -A_CC^-1 A_CN dx_N, so that w_C stays 0.
    Reads: dl in column `count` of one.L, behind the factor's rows.
    """
    n, nfactor = r1.one.n[0], r1.one.nfactor[0]
    row_eights = eights_per_row(r1)
    clear_direction(r1, row_eights)
    for i in range(count):
        p = r1.one.factor[nfactor + i]
        # old limit + dl_i; a limit is never negative
        limit = fmax(r1.scaled.hi[p] + r1.one.L[(nfactor + i) * 8 * row_eights + count], 0.0)
        x = side_of(r1, p) * limit
        r1.scaled.dx[p] = x - r1.scaled.x[p]
        r1.scaled.lo[p] = -limit
        r1.scaled.hi[p], r1.scaled.x[p] = limit, x
    add_matrix_product(r1, r1.scaled.dx, r1.scaled.dw, n, row_eights)
    # one.y = -A_CC^-1 dw_C, with one.rhs = -dw_C first; `solve_slipping` has removed the gaps of the factor
    for k in range((nfactor + 7) // 8 * 8):
        r1.one.rhs[k] = -r1.scaled.dw[r1.one.factor[k]] if k < nfactor else 0.0
    substitute_forward(r1, r1.one.rhs)
    substitute_backward(r1, r1.one.rhs, r1.one.y)
    for k in range(nfactor):
        p = r1.one.factor[k]
        r1.scaled.x[p] = r1.scaled.x[p] + r1.one.y[k]
        clip_to_bounds(r1, p)


@kernel
def solve_slipping(r1):
    """Solves w_C = 0 and x_N = +-(mu |x_normal| + add) for x_C and the slipping rows N, with all sides fixed.

    Reads and writes: scaled.lo, scaled.hi, scaled.x.   Scratch: rows of one.L that the factor does not use.
    """
    # without gaps, the rows behind the factor suffice for the system, and every one.factor[k] is a variable
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
        # rows of one.L behind the factor must be 0 again, as `clear_factor_matrix` sets them
        for c in range(nfactor * row_eights, (nfactor + count) * row_eights):
            LT8[c] = 0.0


@kernel
def find_target_limits(r1):
    """Sets one.best to the limits in effect, and one.upper to the limits that follow from x after a Newton step.

    Both are by variable, start and target of `move_limits`.  one.upper is free until `unload_scaled_problem`.
    """
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        r1.one.best[i] = r1.scaled.hi[i]
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
        r1.scaled.lo[i] = -limit
        r1.scaled.hi[i] = limit
    move_with_limits(r1)


# ---- the fixed point --------------------------------------------------------------------------------------------
@kernel
def gauss_seidel_sweep(r1):
    """Runs one sweep of projected Gauss-Seidel, x_i <- clip(x_i - w_i / A_ii).

    The limit of a friction row is updated from x before the row's step.
    """
    n = r1.one.n[0]
    stride = 8 * eights_per_row(r1)
    for i in range(n):
        if i >= r1.one.nconstant[0]:
            limit = friction_limit(r1, i)
            r1.scaled.lo[i] = -limit
            r1.scaled.hi[i] = limit
        diagonal = r1.scaled.A[i * stride + i]
        product, _ = multiply_row(r1, i)
        if diagonal > 0.0:
            r1.scaled.x[i] = r1.scaled.x[i] - (product - r1.scaled.b[i]) / diagonal
        clip_to_bounds(r1, i)


@kernel
def set_states_from_x(r1):
    """Sets the states and the factor from x: at a bound if x is equal to it, else between its bounds."""
    clear_factor(r1)
    count = 0
    for i in range(r1.one.n[0]):
        x = r1.scaled.x[i]
        r1.one.factor_row[i] = -1
        if x == r1.scaled.lo[i] or x == r1.scaled.hi[i]:
            set_to_bound(r1, i, upper=x == r1.scaled.hi[i])
        else:
            r1.one.factor[count] = i
            count += 1
    append_listed_variables(r1, count)  # sets their states: BETWEEN, or WAITING


@kernel
def move_to_target_limits(r1, old_mismatch, trials_left, active_set_passes):
    """limits += s (target - limits), a Newton step with s = 1, 1/2, ... until `limit_mismatch` falls enough.

    old_mismatch: before the step;  trials_left: trial steps that are left;  active_set_passes: see `settle_friction`.
    Returns (1 if the limits are settled, mismatch, trials_left).
    """
    find_target_limits(r1)
    fraction, trying = 1.0, 1
    while trying:
        move_limits(r1, fraction)
        used_passes = refine_active_set(r1, active_set_passes, loosening=LOOSE)
        trials_left -= 1
        mismatch, largest = limit_mismatch(r1)
        # one pass: x was already the minimum at these limits
        settled = 1 if used_passes == 1 and mismatch <= SETTLED * largest else 0
        # if no row changes its side, the mismatch falls by `fraction` of the old one; a quarter of that suffices
        falls_less = mismatch > (1.0 - 0.25 * fraction) * old_mismatch
        trying = 1 if falls_less and trials_left > 0 and settled == 0 and fraction > SHORTEST else 0
        fraction = 0.5 * fraction
    return settled, mismatch, trials_left


@kernel
def restart_by_sweeps(r1, sweeps, active_set_passes):
    """Runs Gauss-Seidel sweeps, and sets states and limits from their x; returns the mismatch of the limits."""
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
    """Solves for x and friction limits with limits = mu |x_normal| + add, by damped Newton steps; returns 1 on success.

    passes: largest number of trial steps.   active_set_passes: largest number of passes of each `refine_active_set`.
    """
    mismatch, _ = limit_mismatch(r1)
    settled, rounds = 0, 0
    trials_left = passes
    while trials_left > 0 and settled == 0:
        settled, mismatch, trials_left = move_to_target_limits(r1, mismatch, trials_left, active_set_passes)
        rounds += 1
        if rounds % NEWTON == 0 and settled == 0:
            mismatch = restart_by_sweeps(r1, SWEEPS * rounds, active_set_passes)
    return settled
