"""The pivoting's copy of one LCP: rows in the order in which they are driven, scaled so that diag(A) is about 1.

x_row = s x_p, w_row = w_p / s and A_pq = s_p s_q A_row,col with powers of two s: this rounds no number, and
zero thresholds do not depend on units.  First come rows without bounds, then bounded ones, then those whose bounds
follow from another row, each kind by row number.

Variable p is the row at position p of this order: one.order[p] = row, one.position[row] = p.  `one.*` is the problem by
row, `scaled.*` its scaled copy by variable.  one.state[p] is LOWER, BETWEEN, UPPER, WAITING or FIXED.
Layout: matrices are stored by rows, A_ij = scaled.A[i * stride + j]; stride is n rounded up to a multiple of eight.
one.findex[k]: the row whose x scales the bounds of row k, -1: none;  one.lower, upper: the bounds in effect.
`eights(v)` is the array v in vectors of eight adjacent numbers (eights): eight c holds numbers 8 c to 8 c + 7.
`eights_per_row`: eights in a row of A;  `sum_of_eight(v, first)`: v[first] + ... + v[first + 7].
Symbols: r1: the record of the problem;  i, j, p: variables;  k: a row;  s: its scale;  c: eights.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.pivot.factor import clear_factor, eights_per_row
from featherlane.engine.solver.lcp.status import LARGEST
from featherlane.engine.solver.vectors import sum_of_eight

INF = float("inf")
SMALLEST_DIAGONAL = 1e-300  # 1/kg: rows with a diagonal up to this are not scaled
EPSILON = 2.0**-52
LOST = 1e-3  # rounding error of w, relative to b, above which a solution counts as inaccurate
ROUNDING = 16 * EPSILON  # error of a sum, relative to the sum of its absolute terms

LOWER, BETWEEN, UPPER = -1, 0, 1
WAITING = 2  # between its bounds and outside the factor: it depends on others, or was given up
FIXED = 3  # both bounds are 0


# ---- from rows to variables ----------------------------------------------------------------------------------------
@kernel
def kind_of_row(r1, k):
    """Returns 0 for a row without bounds, 1 for constant bounds, 2 for bounds that follow from another row's x."""
    kind = 1
    if r1.one.findex[k] >= 0:
        kind = 2
    elif r1.one.lo[k] == -INF and r1.one.hi[k] == INF:
        kind = 0
    return kind


@kernel
def order_rows(r1):
    """Computes one.order, one.position by kind of row; one.nconstant: number of rows with constant bounds."""
    i = 0
    for kind in range(3):
        for k in range(r1.one.n[0]):
            if kind_of_row(r1, k) == kind:
                r1.one.order[i], r1.one.position[k] = k, i
                i += 1
        if kind == 1:  # kinds 0 and 1 have constant bounds
            r1.one.nconstant[0] = i


@kernel
def power_of_two_scale(diagonal):
    """Returns the scale s = 2^-e of a row whose diagonal is near 4^e, so that s^2 diagonal is near 1; 1 if it is 0."""
    scale = 1.0
    if diagonal > SMALLEST_DIAGONAL:
        # diagonal = f 2^exponent with 1 <= f < 2: e is exponent / 2, rounded
        _, exponent = split_exponent(diagonal)
        scale = scale_exponent(scale, -floor(0.5 * exponent + 0.5))
    return scale


@kernel
def load_scaled_problem(r1):
    """Copies one.A, one.b and constant bounds to scaled.*, scaled, in pivoting order; friction limits start at 0."""
    n = r1.one.n[0]
    stride = 8 * eights_per_row(r1)
    for i in range(n):
        k = r1.one.order[i]
        r1.scaled.scale[i] = power_of_two_scale(r1.one.A[k * stride + k])
    for i in range(n):
        k, s = r1.one.order[i], r1.scaled.scale[i]
        for j in range(n):
            r1.scaled.A[i * stride + j] = r1.one.A[k * stride + r1.one.order[j]] * (s * r1.scaled.scale[j])
        r1.scaled.b[i] = r1.one.b[k] * s
        r1.scaled.lo[i], r1.scaled.hi[i] = 0.0, 0.0
        if r1.one.findex[k] < 0:
            r1.scaled.lo[i], r1.scaled.hi[i] = r1.one.lo[k] / s, r1.one.hi[k] / s
    # the padding of b, and of the rows of A, up to a multiple of eight
    for j in range(n, stride):
        r1.scaled.b[j] = 0.0
        for i in range(n):
            r1.scaled.A[i * stride + j] = 0.0


@kernel
def set_zero_solution(r1):
    """Sets x = 0 and w = 0, with an empty factor; each variable is FIXED until it is driven."""
    clear_factor(r1)
    x8, w8 = eights(r1.scaled.x), eights(r1.scaled.w)
    for c in range(eights_per_row(r1)):
        x8[c], w8[c] = 0.0, 0.0
    for i in range(r1.one.n[0]):
        r1.one.state[i], r1.one.factor_row[i], r1.one.mark[i] = FIXED, -1, -1


# ---- products -------------------------------------------------------------------------------------------------------
@kernel
def multiply_eights(A8, out8, v, rows, c, row_eights, count):
    """Adds `count` eights of A v, from eight c on, to out8: sum over the first `rows` variables p of v_p A_p.

    A8: eights of the symmetric A, `row_eights` in a row;  count: 1, 2 or 4.
    """
    sums = tuple(out8[c + k] for k in range(count))
    for p in range(rows):
        v_p = v[p]
        block = p * row_eights + c
        if v_p != 0.0:  # saves time: x at a bound is often 0
            sums = tuple(fma(v_p, A8[block + k], sums[k]) for k in range(count))
    for k in unrolled(range(count)):
        out8[c + k] = sums[k]


@kernel
def add_matrix_product(r1, v, out, rows, blocks):
    """Adds A v to the first `blocks` eights of `out`, where v is 0 behind its first `rows` variables."""
    A8, out8 = eights(r1.scaled.A), eights(out)
    row_eights = eights_per_row(r1)
    # four eights at once while four are left, then two and one
    c = 0
    while c + 4 <= blocks:
        multiply_eights(A8, out8, v, rows, c, row_eights, count=4)
        c += 4
    if c + 2 <= blocks:
        multiply_eights(A8, out8, v, rows, c, row_eights, count=2)
        c += 2
    if c < blocks:
        multiply_eights(A8, out8, v, rows, c, row_eights, count=1)


@kernel
def clear_direction(r1, blocks):
    """Sets the first `blocks` eights of scaled.dx and scaled.dw to 0."""
    dx8, dw8 = eights(r1.scaled.dx), eights(r1.scaled.dw)
    for c in range(blocks):
        dx8[c], dw8[c] = 0.0, 0.0


@kernel
def clip_to_bounds(r1, p):
    """Clips x of variable p to its bounds."""
    r1.scaled.x[p] = clip(r1.scaled.x[p], r1.scaled.lo[p], r1.scaled.hi[p])


@kernel
def multiply_row(r1, i):
    """Returns (sum over j of A_ij x_j, sum over j of |A_ij x_j|).  Overwrites one.sum."""
    A8, x8, sum8 = eights(r1.scaled.A), eights(r1.scaled.x), eights(r1.one.sum)
    row_eights = eights_per_row(r1)
    products = A8[i * row_eights] * x8[0]
    magnitudes = fabs(products)
    for c in range(1, row_eights):
        product = A8[i * row_eights + c] * x8[c]
        products = products + product
        magnitudes = magnitudes + fabs(product)
    # eight partial sums each: of products in one.sum[0 : 8], of their absolute values in one.sum[8 : 16]
    sum8[0], sum8[1] = products, magnitudes
    return sum_of_eight(r1.one.sum, first=0), sum_of_eight(r1.one.sum, first=8)


@kernel
def rounding_of_w(r1, end):
    """Returns the rounding error of w of variables 0 to end - 1: ROUNDING (sum |x| + max |b|), for |A_ij| up to 1."""
    blocks = (end + 7) // 8
    x8, b8, sum8 = eights(r1.scaled.x), eights(r1.scaled.b), eights(r1.one.sum)
    sums, maxima = fabs(x8[0]), fabs(b8[0])
    for c in range(1, blocks):
        sums = sums + fabs(x8[c])
        maxima = fmax(maxima, fabs(b8[c]))
    # eight partial sums of |x| in one.sum[0 : 8], eight maxima of |b| in one.sum[8 : 16]
    sum8[0], sum8[1] = sums, maxima
    largest = r1.one.sum[8]
    for k in range(9, 16):
        largest = fmax(largest, r1.one.sum[k])
    return ROUNDING * (sum_of_eight(r1.one.sum, first=0) + largest)


@kernel
def recompute_w(r1):
    """Computes scaled.w = A x - b; returns its rounding error."""
    n = r1.one.n[0]
    row_eights = eights_per_row(r1)
    w8, b8 = eights(r1.scaled.w), eights(r1.scaled.b)
    for c in range(row_eights):
        w8[c] = -b8[c]
    add_matrix_product(r1, r1.scaled.x, r1.scaled.w, n, row_eights)
    return rounding_of_w(r1, n)


# ---- from variables to rows ----------------------------------------------------------------------------------------
@kernel
def unload_scaled_problem(r1):
    """Copies x, w and the bounds in effect from variables to rows, in the row's units; x is clipped to its bounds."""
    for i in range(r1.one.n[0]):
        k, s = r1.one.order[i], r1.scaled.scale[i]
        lower, upper = r1.scaled.lo[i] * s, r1.scaled.hi[i] * s
        r1.one.lower[k], r1.one.upper[k] = lower, upper
        r1.one.x[k] = clip(r1.scaled.x[i] * s, lower, upper)
        r1.one.w[k] = r1.scaled.w[i] / s


@kernel
def complementarity_residual(r1):
    """Returns the residual of status.py, from x, w and the bounds in effect.

    max_k |x_k - clip(x_k - w_k / a, lower_k, upper_k)| / max_k max(|x_k|, |b_k| / a),   a = max_k A_kk
    """
    n = r1.one.n[0]
    stride = 8 * eights_per_row(r1)
    a, largest_x, largest_b = 0.0, 0.0, 0.0  # max A_kk, |x_k|, |b_k|
    for k in range(n):
        a = fmax(r1.one.A[k * stride + k], a)
        largest_x, largest_b = fmax(fabs(r1.one.x[k]), largest_x), fmax(fabs(r1.one.b[k]), largest_b)
    step = 1.0 / a if a > 0.0 else 1.0
    worst = 0.0
    for k in range(n):
        x = r1.one.x[k]
        projected = clip(x - r1.one.w[k] * step, r1.one.lower[k], r1.one.upper[k])
        worst = fmax(fabs(x - projected), worst)
    size = fmin(fmax(largest_x, largest_b * step), LARGEST)
    return worst / size if size > 0.0 else worst


@kernel
def final_residual(r1):
    """Returns the residual; if rounding leaves w less than three digits, at least its rounding error relative to b.

    Rows that contradict each other almost exactly have forces so large that the terms of A x cancel to rounding error.
    The residual, which is relative to these forces, is then small although w has no correct digits.
    """
    n = r1.one.n[0]
    stride = 8 * eights_per_row(r1)
    largest_product, largest_b = 0.0, 0.0  # of |A_kk x_k| and |b_k|
    for k in range(n):
        product = fabs(r1.one.A[k * stride + k] * r1.one.x[k])
        largest_product = fmax(product, largest_product)
        largest_b = fmax(fabs(r1.one.b[k]), largest_b)
    rounding = EPSILON * largest_product
    residual = complementarity_residual(r1)
    is_lost = rounding > LOST * largest_b and largest_b > 0.0
    return fmax(rounding / largest_b, residual) if is_lost else residual
