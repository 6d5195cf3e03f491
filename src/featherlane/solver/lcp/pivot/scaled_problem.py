"""The pivoting's copy of one LCP: rows in the order in which they are driven, scaled so that diag(A) is about 1.

x_row = s x_place, w_row = w_place / s and A_place = s_i s_j A_row with powers of two s: this rounds no number, and
zero thresholds do not depend on units.  First come rows without bounds, then bounded ones, then those whose bounds
follow from another row, each kind by row number.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.pivot.factor import clear_factor, eights_of_row, sum_factor_eight
from featherlane.solver.lcp.status import LARGEST

INF = float("inf")
SMALLEST_DIAGONAL = 1e-300
EPSILON = 2.0**-52
LOST = 1e-3  # rounding error of w, relative to b, at which a solution counts as inaccurate
ROUNDING = 16 * EPSILON  # error of a sum, relative to the sum of its absolute terms

LOWER, BETWEEN, UPPER = -1, 0, 1
WAITING = 2  # between its bounds and outside the factor: it depends on others, or was given up
FIXED = 3  # both bounds are 0


# ---- from rows to places ----------------------------------------------------------------------------------------
@kernel
def kind_of_row(r1, k):
    """Returns 0 without bounds, 1 if bounded, 2 if bounded by the solution of another row."""
    kind = 1
    if r1.one.findex[k] >= 0:
        kind = 2
    elif r1.one.lo[k] == -INF and r1.one.hi[k] == INF:
        kind = 0
    return kind


@kernel
def order_rows(r1):
    """Computes one.order and one.place; counts the rows with bounds that are known from the start."""
    i = 0
    for kind in range(3):
        for k in range(r1.one.n[0]):
            if kind_of_row(r1, k) == kind:
                r1.one.order[i], r1.one.place[k] = k, i
                i += 1
        if kind == 1:
            r1.one.nconstant[0] = i


@kernel
def scale_of(a):
    """Returns 2^-e for the e with a near 4^e."""
    s = 0.0 * a + 1.0
    if a > SMALLEST_DIAGONAL:
        _, e = split_exponent(a)
        s = scale_exponent(s, -floor(0.5 * e + 0.5))
    return s


@kernel
def load_places(r1):
    """Copies the problem in pivoting order."""
    n, width = r1.one.n[0], 8 * eights_of_row(r1)
    for i in range(n):
        k = r1.one.order[i]
        r1.place.scale[i] = scale_of(r1.one.A[k * width + k])
    for i in range(n):
        k, s = r1.one.order[i], r1.place.scale[i]
        for j in range(n):
            r1.place.A[i * width + j] = r1.one.A[k * width + r1.one.order[j]] * (s * r1.place.scale[j])
        r1.place.b[i] = r1.one.b[k] * s
        r1.place.lo[i], r1.place.hi[i] = 0.0, 0.0
        if r1.one.findex[k] < 0:
            r1.place.lo[i], r1.place.hi[i] = r1.one.lo[k] / s, r1.one.hi[k] / s
    for j in range(n, width):
        r1.place.b[j] = 0.0
        for i in range(n):
            r1.place.A[i * width + j] = 0.0


@kernel
def set_zero_solution(r1):
    """Sets x = 0, with no place driven."""
    clear_factor(r1)
    X, W = eights(r1.place.x), eights(r1.place.w)
    for c in range(eights_of_row(r1)):
        X[c], W[c] = 0.0, 0.0
    for i in range(r1.one.n[0]):
        r1.one.state[i], r1.one.slot[i], r1.one.mark[i] = FIXED, -1, -1


# ---- products -------------------------------------------------------------------------------------------------------
@kernel
def multiply_eights(A, O, v, rows, c, width, count):
    """Runs `add_matrix_product` for `count` eights of columns from c on; rows of A are `width` eights apart."""
    y = tuple(O[c + k] for k in range(count))
    for p in range(rows):
        x, o = v[p], p * width + c
        if x != 0.0:
            y = tuple(fma(x, A[o + k], y[k]) for k in range(count))
    for k in unrolled(range(count)):
        O[c + k] = y[k]


@kernel
def add_matrix_product(r1, v, out, rows, columns):
    """Adds A v to out over the first `rows` rows and the first `columns` eights of columns."""
    A, O, width = eights(r1.place.A), eights(out), eights_of_row(r1)
    c = 0
    while c + 4 <= columns:
        multiply_eights(A, O, v, rows, c, width, count=4)
        c += 4
    if c + 2 <= columns:
        multiply_eights(A, O, v, rows, c, width, count=2)
        c += 2
    if c < columns:
        multiply_eights(A, O, v, rows, c, width, count=1)


@kernel
def clear_direction(r1, blocks):
    """Sets place.dx = 0 and place.dw = 0, for `blocks` eights."""
    X, W = eights(r1.place.dx), eights(r1.place.dw)
    for c in range(blocks):
        X[c], W[c] = 0.0, 0.0


@kernel
def force_inside(r1, p):
    """Clips x of place p to its bounds."""
    r1.place.x[p] = clip(r1.place.x[p], r1.place.lo[p], r1.place.hi[p])


@kernel
def product_of_row(r1, i):
    """Returns (A_i x, the sum of its absolute terms)."""
    A, X, S, width = eights(r1.place.A), eights(r1.place.x), eights(r1.one.sum), eights_of_row(r1)
    v = A[i * width] * X[0]
    u = fabs(v)
    for c in range(1, width):
        y = A[i * width + c] * X[c]
        v, u = v + y, u + fabs(y)
    S[0], S[1] = v, u
    return sum_factor_eight(r1.one.sum, 0), sum_factor_eight(r1.one.sum, 8)


@kernel
def rounding_of(r1, last):
    """Returns the rounding error of w of the places before the last: a part of the sum of |x| and largest |b|."""
    blocks = (last + 7) // 8
    X, b, S = eights(r1.place.x), eights(r1.place.b), eights(r1.one.sum)
    u, v = fabs(X[0]), fabs(b[0])
    for c in range(1, blocks):
        u, v = u + fabs(X[c]), fmax(v, fabs(b[c]))
    S[0], S[1] = u, v
    largest = r1.one.sum[8]
    for k in range(9, 16):
        largest = fmax(largest, r1.one.sum[k])
    return ROUNDING * (sum_factor_eight(r1.one.sum, 0) + largest)


@kernel
def refresh(r1):
    """Computes w = A x - b; returns its rounding error."""
    n, width = r1.one.n[0], eights_of_row(r1)
    W, b = eights(r1.place.w), eights(r1.place.b)
    for c in range(width):
        W[c] = -b[c]
    add_matrix_product(r1, r1.place.x, r1.place.w, n, width)
    return rounding_of(r1, n)


# ---- from places to rows ----------------------------------------------------------------------------------------
@kernel
def unload_places(r1):
    """Copies x, w and the bounds in effect to the rows; x is clipped to them."""
    for i in range(r1.one.n[0]):
        k, s = r1.one.order[i], r1.place.scale[i]
        lower, upper = r1.place.lo[i] * s, r1.place.hi[i] * s
        r1.one.lower[k], r1.one.upper[k] = lower, upper
        r1.one.x[k] = clip(r1.place.x[i] * s, lower, upper)
        r1.one.w[k] = r1.place.w[i] / s


@kernel
def complementarity_residual(r1):
    """Returns the residual of complementarity, see status.py, from x, w and the bounds in effect."""
    n, width = r1.one.n[0], 8 * eights_of_row(r1)
    a, x, b = 0.0, 0.0, 0.0
    for k in range(n):
        a = fmax(r1.one.A[k * width + k], a)
        x, b = fmax(fabs(r1.one.x[k]), x), fmax(fabs(r1.one.b[k]), b)
    step = 1.0 / a if a > 0.0 else 1.0
    worst = 0.0
    for k in range(n):
        y = r1.one.x[k]
        worst = fmax(fabs(y - clip(y - r1.one.w[k] * step, r1.one.lower[k], r1.one.upper[k])), worst)
    size = fmin(fmax(x, b * step), LARGEST)
    return worst / size if size > 0.0 else worst


@kernel
def final_residual(r1):
    """Returns the residual, or the rounding error of w relative to b if w keeps less than three digits.

    Rows that contradict each other almost exactly have forces so large that A x cancels.  Relative to these forces the
    residual is small, but w is rounding error.
    """
    n, width = r1.one.n[0], 8 * eights_of_row(r1)
    product, b = 0.0, 0.0
    for k in range(n):
        product, b = fmax(fabs(r1.one.A[k * width + k] * r1.one.x[k]), product), fmax(fabs(r1.one.b[k]), b)
    lost, residual = EPSILON * product, complementarity_residual(r1)
    return fmax(lost / b, residual) if lost > LOST * b and b > 0.0 else residual
