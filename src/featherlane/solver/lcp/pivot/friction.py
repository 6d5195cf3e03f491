"""Friction limits of one LCP: +-(mu |x[findex]| + add), set once, or followed to a fixed point.

At a fixed point x is complementary under the limits that follow from x itself.  Plain fixed-point iteration may
diverge: a block that tips over its edge presses harder the harder it is held.  So before each new solution, the limits
of all slipping rows are solved together, with the sides of all rows fixed: Newton's method on a piecewise linear map,
exact once no row changes its side.  If its steps do not converge, projected Gauss-Seidel sweeps under
live limits find other sides to start from.  There may be no fixed point, or many.
Source: D. E. Stewart and J. C. Trinkle, "An implicit time-stepping scheme for rigid body dynamics with inelastic
    collisions and Coulomb friction" (1996) for the problem; L. Qi and J. Sun, "A nonsmooth version of Newton's method"
    (1993).
"""

from featherlane.prelude import *
from featherlane.solver.lcp.pivot.active_set import refine_active_set, set_to_bound
from featherlane.solver.lcp.pivot.factor import (
    clear_factor,
    eights_per_row,
    gather_matrix_row,
    refactor,
    substitute_backward,
    substitute_forward,
)
from featherlane.solver.lcp.pivot.many_rows import put_all_between
from featherlane.solver.lcp.pivot.scaled_problem import (
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
NEWTON, SWEEPS = 6, 10  # steps between two attempts to converge by sweeps, and how many more of these each time
SINGULAR = 1e-12  # pivot threshold; the diagonal is about 1


# ---- the limits that follow from x -----------------------------------------------------------------------------------
@kernel
def limit_of(r1, i):
    """Returns the friction limit of place i at the present x: without force there is no friction, whatever mu."""
    k = r1.one.order[i]
    f = r1.one.place[r1.one.findex[k]]
    force, limit = fabs(r1.place.x[f]) * r1.place.scale[f], fabs(r1.one.add[k])
    if force > 0.0:
        limit = limit + r1.one.hi[k] * force
    return limit / r1.place.scale[i]


@kernel
def limit_friction(r1):
    """Sets the bounds that follow from the present x."""
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        limit = limit_of(r1, i)
        r1.place.lo[i], r1.place.hi[i] = -limit, limit


@kernel
def mismatch(r1):
    """Returns (largest difference between a friction limit and its value from x, largest limit), finite ones only."""
    change, largest = 0.0, 0.0
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        limit = limit_of(r1, i)
        if limit < INF:
            change, largest = fmax(fabs(limit - r1.place.hi[i]), change), fmax(limit, largest)
    return change, largest


@kernel
def follow_bounds(r1):
    """Keeps friction rows at a bound as it moves, unless it vanishes; moves others inside their bounds."""
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        state = r1.one.state[i]
        if r1.place.hi[i] == INF:
            if state != BETWEEN:
                r1.one.state[i] = WAITING
        elif state == FIXED:
            set_to_bound(r1, i, r1.place.w[i] < 0.0)
        elif state in (LOWER, UPPER):
            set_to_bound(r1, i, state == UPPER)
        else:
            clip_to_bounds(r1, i)


# ---- limits and forces together --------------------------------------------------------------------------------------
@kernel
def list_slipping(r1):
    """Lists friction places at a bound that depends on a row between bounds, behind the factor's; returns how many."""
    m, count = r1.one.nfactor[0], 0
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        k = r1.one.order[i]
        f = r1.one.place[r1.one.findex[k]]
        if r1.one.state[i] in (LOWER, UPPER) and r1.one.slot[f] >= 0 and 0.0 < r1.one.hi[k] < INF:
            r1.one.factor[m + count] = i
            count += 1
    return count


@kernel
def side_of(r1, i):
    """Returns 1 at the upper bound, -1 at the lower one."""
    return 1.0 if r1.one.state[i] == UPPER else -1.0


@kernel
def write_system(r1, count):
    """Writes 1 - d limit_i / d limit_j, then limit_i(x) - limit_i, in rows of one.L that the factor does not use."""
    m, width = r1.one.nfactor[0], 8 * eights_per_row(r1)
    for j in range(count):
        p = r1.one.factor[m + j]
        gather_matrix_row(r1, p, r1.one.turn)
        substitute_forward(r1, r1.one.turn)
        substitute_backward(r1, r1.one.turn, r1.one.y)
        for i in range(count):
            q = r1.one.factor[m + i]
            k = r1.one.order[q]
            f = r1.one.place[r1.one.findex[k]]
            mu = r1.one.hi[k] * r1.place.scale[f] / r1.place.scale[q]
            if r1.place.x[f] < 0.0:
                mu = -mu
            one = 1.0 if i == j else 0.0
            r1.one.L[(m + i) * width + j] = one + mu * side_of(r1, p) * r1.one.y[r1.one.slot[f]]
    for i in range(count):
        q = r1.one.factor[m + i]
        r1.one.L[(m + i) * width + count] = limit_of(r1, q) - r1.place.hi[q]


@kernel
def eliminate(r1, first, count):
    """Runs Gaussian elimination with row exchanges on rows of one.L from `first` on; each row ends with its solution.

    Returns 1, or 0 if the system is singular.
    """
    U, width, regular = r1.one.L, 8 * eights_per_row(r1), 1
    for j in range(count):
        best = j
        for i in range(j + 1, count):
            if fabs(U[(first + i) * width + j]) > fabs(U[(first + best) * width + j]):
                best = i
        a, b = (first + j) * width, (first + best) * width
        for c in range(j, count + 1):
            x, y = U[a + c], U[b + c]
            U[a + c], U[b + c] = y, x
        if fabs(U[a + j]) < SINGULAR:
            regular = 0
        else:
            for i in range(count):
                o = (first + i) * width
                if i != j:
                    s = U[o + j] / U[a + j]
                    for c in range(j, count + 1):
                        U[o + c] = U[o + c] - s * U[a + c]
    if regular:
        for j in range(count):
            a = (first + j) * width
            U[a + count] = U[a + count] / U[a + j]
    return regular


@kernel
def move_slipping(r1, count):
    """Applies the system's solution: moves limits, x at them, and x of the rows between their bounds, with w = 0."""
    n, m, width = r1.one.n[0], r1.one.nfactor[0], eights_per_row(r1)
    clear_direction(r1, width)
    for i in range(count):
        q = r1.one.factor[m + i]
        limit = fmax(r1.place.hi[q] + r1.one.L[(m + i) * 8 * width + count], 0.0)
        x = side_of(r1, q) * limit
        r1.place.dx[q] = x - r1.place.x[q]
        r1.place.lo[q], r1.place.hi[q], r1.place.x[q] = -limit, limit, x
    add_matrix_product(r1, r1.place.dx, r1.place.dw, n, width)
    for k in range((m + 7) // 8 * 8):
        r1.one.turn[k] = -r1.place.dw[r1.one.factor[k]] if k < m else 0.0
    substitute_forward(r1, r1.one.turn)
    substitute_backward(r1, r1.one.turn, r1.one.y)
    for k in range(m):
        p = r1.one.factor[k]
        r1.place.x[p] = r1.place.x[p] + r1.one.y[k]
        clip_to_bounds(r1, p)


@kernel
def solve_slipping(r1):
    """Solves for slipping limits and forces between bounds together, with the side of every row fixed."""
    if r1.one.ngap[0] > 0:
        refactor(r1)
    count, m, E, width = list_slipping(r1), r1.one.nfactor[0], eights(r1.one.L), eights_per_row(r1)
    if count > 0 and m > 0:
        write_system(r1, count)
        if eliminate(r1, m, count):
            move_slipping(r1, count)
        for c in range(m * width, (m + count) * width):
            E[c] = 0.0


@kernel
def aim(r1):
    """Sets one.best to the present limits, and one.upper to the target limits, at which slipping rows would settle."""
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        r1.one.best[i] = r1.place.hi[i]
    solve_slipping(r1)
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        r1.one.upper[i] = limit_of(r1, i)


@kernel
def go(r1, part):
    """Moves the limits by a fraction `part` from one.best to one.upper; friction rows follow them."""
    for i in range(r1.one.nconstant[0], r1.one.n[0]):
        limit = r1.one.upper[i]
        if part < 1.0 and limit < INF and r1.one.best[i] < INF:
            limit = r1.one.best[i] + part * (limit - r1.one.best[i])
        r1.place.lo[i], r1.place.hi[i] = -limit, limit
    follow_bounds(r1)


# ---- the fixed point --------------------------------------------------------------------------------------------
@kernel
def gauss_seidel_sweep(r1):
    """Runs one sweep of projected Gauss-Seidel, with friction limits updated at each visit of a row."""
    n, width = r1.one.n[0], 8 * eights_per_row(r1)
    for i in range(n):
        if i >= r1.one.nconstant[0]:
            limit = limit_of(r1, i)
            r1.place.lo[i], r1.place.hi[i] = -limit, limit
        a = r1.place.A[i * width + i]
        product, _ = multiply_row(r1, i)
        if a > 0.0:
            r1.place.x[i] = r1.place.x[i] - (product - r1.place.b[i]) / a
        clip_to_bounds(r1, i)


@kernel
def start_from(r1):
    """Sets states and the factor from x: at a bound or between."""
    clear_factor(r1)
    count = 0
    for i in range(r1.one.n[0]):
        x = r1.place.x[i]
        r1.one.slot[i] = -1
        if x == r1.place.lo[i] or x == r1.place.hi[i]:
            set_to_bound(r1, i, x == r1.place.hi[i])
        else:
            r1.one.factor[count] = i
            count += 1
    put_all_between(r1, count)


@kernel
def settle_friction(r1, passes, most):
    """Iterates friction limits and normals until both are settled; returns 1 if they are.

    A step that does not bring the limits closer to their values from x is halved, and from time to time sweeps replace
    a step.
    """
    before, _ = mismatch(r1)
    settled, left, rounds = 0, passes, 0
    while left > 0 and settled == 0:
        aim(r1)
        part, trying = 1.0, 1
        while trying:
            go(r1, part)
            used = refine_active_set(r1, most, LOOSE)
            left -= 1
            rest, largest = mismatch(r1)
            settled = 1 if used == 1 and rest <= SETTLED * largest else 0
            trying = 1 if left > 0 and settled == 0 and part > SHORTEST and rest > (1.0 - 0.25 * part) * before else 0
            part = 0.5 * part
        before = rest
        rounds += 1
        if rounds % NEWTON == 0 and settled == 0:
            for _ in range(SWEEPS * rounds):
                gauss_seidel_sweep(r1)
            start_from(r1)
            limit_friction(r1)
            follow_bounds(r1)
            refine_active_set(r1, most, LOOSE)
            before, _ = mismatch(r1)
    return settled
