"""L D L^T of the rows of one LCP that lie between their bounds, updated as rows enter and leave.

Row k of the factor belongs to the place one.factor[k] of the pivoting.  L^T is stored by rows, so that a substitution
adds whole rows, eight numbers at a time.  A row that enters is the last one.  A row that leaves becomes a gap, a row of
the identity, and its column a positive rank-one update of the rows behind it.  The factor is rebuilt if
gaps take more than a quarter of it.
Source: R. W. Cottle and G. B. Dantzig, "Complementary pivot theory of mathematical programming" (1968); Gill, Golub,
    Murray and Saunders, "Methods for modifying matrix factorizations" (1974), method C1.
"""

from featherlane.prelude import *

SMALLEST_PIVOT = 1e-14  # relative to the terms of its difference: with a smaller pivot, a row depends on the others
DOUBTFUL = 1e-10  # pivots below this are checked


@kernel
def eights_of_row(r1):
    """Returns the number of eights in a row of the matrices."""
    return (r1.one.n[0] + 7) // 8


@kernel
def sum_factor_eight(s, o):
    """Returns the sum of eight adjacent numbers."""
    return ((s[o] + s[o + 1]) + (s[o + 2] + s[o + 3])) + ((s[o + 4] + s[o + 5]) + (s[o + 6] + s[o + 7]))


@kernel
def clear_matrix(r1):
    """Clears the entries below the diagonal, which stay 0, and sets finite numbers behind the last row.

    0 times these must be 0.  The last eight rows are cleared even if there are fewer: substitutions read them, and
    another problem may have left non-finite values.
    """
    E, width = eights(r1.one.L), eights_of_row(r1)
    for k in range(8 * width * width):
        E[k] = 0.0


@kernel
def clear_factor(r1):
    """Sets the factor to that of no rows."""
    r1.one.nfactor[0] = 0
    r1.one.ngap[0] = 0
    D = eights(r1.one.D)
    for c in range(eights_of_row(r1)):
        D[c] = 0.0


# ---- substitution ---------------------------------------------------------------------------------------------------
@kernel
def gather_row(r1, p, t):
    """Copies A of place p, in the columns of the factor, to t; zero in its gaps and behind it."""
    m, a = r1.one.nfactor[0], p * 8 * eights_of_row(r1)
    for k in range(m):
        q = r1.one.factor[k]
        t[k] = 0.0
        if q >= 0:
            t[k] = r1.place.A[a + q]
    for k in range(m, (m + 7) // 8 * 8):
        t[k] = 0.0


@kernel
def gather_error(r1):
    """Copies -w of the factor's rows to one.turn; zero in its gaps and behind it."""
    m = r1.one.nfactor[0]
    for k in range((m + 7) // 8 * 8):
        r1.one.turn[k] = 0.0
        if k < m and r1.one.factor[k] >= 0:
            r1.one.turn[k] = -r1.place.w[r1.one.factor[k]]


@kernel
def reduce_eight(U, o, w, t, b):
    """Computes -L^-1 of eight numbers at b, in registers; the triangle's rows of L^T begin at o, w apart."""
    y = tuple(t[b + r] for r in range(8))
    for k in unrolled(range(7)):
        y = tuple(fma(-U[o + k * w + r], y[k], y[r]) if r > k else y[r] for r in range(8))
    for r in unrolled(range(1, 8)):
        t[b + r] = y[r]
    return tuple(-y[r] for r in range(8))


@kernel
def expand_eight(U, o, w, y, b):
    """Computes L^-T of eight numbers at b, in registers."""
    x = tuple(y[b + r] for r in range(8))
    for k in unrolled(range(7, 0, -1)):
        x = tuple(fma(-U[o + r * w + k], x[k], x[r]) if r < k else x[r] for r in range(8))
    for r in unrolled(range(7)):
        y[b + r] = x[r]


@kernel
def substitute_forward(r1, t):
    """Computes t <- L^-1 t: the triangle of eight rows, then its updates of all rows behind them."""
    m, width = r1.one.nfactor[0], eights_of_row(r1)
    U, E, T = r1.one.L, eights(r1.one.L), eights(t)
    last = (m + 7) // 8
    for c in range(last):
        b, o = 8 * c, 8 * c * width + c
        y = reduce_eight(U, 8 * o, 8 * width, t, b)
        for e in range(1, last - c):
            v = T[c + e]
            for k in unrolled(range(8)):
                v = fma(y[k], E[o + e + k * width], v)
            T[c + e] = v


@kernel
def substitute_backward(r1, t, y):
    """Computes y <- L^-T D^-1 t."""
    m, width = r1.one.nfactor[0], eights_of_row(r1)
    U, E, Y, S = r1.one.L, eights(r1.one.L), eights(y), eights(r1.one.sum)
    T, D = eights(t), eights(r1.one.D)
    last = (m + 7) // 8
    for back in range(last):
        c = last - 1 - back
        b, o = 8 * c, 8 * c * width + c
        Y[c] = T[c] * D[c]
        if back:
            v = Y[c + 1]
            s = tuple(E[o + k * width + 1] * v for k in range(8))
            for e in range(2, back + 1):
                q, v = o + e, Y[c + e]
                s = tuple(fma(E[q + k * width], v, s[k]) for k in range(8))
            for k in unrolled(range(8)):
                S[k] = s[k]
            for k in range(8):
                y[b + k] = y[b + k] - sum_factor_eight(r1.one.sum, 8 * k)
        expand_eight(U, 8 * o, 8 * width, y, b)


# ---- rows that enter and leave --------------------------------------------------------------------------------
@kernel
def pivot_of(r1, p, t):
    """Returns the pivot that place p would have, with t = L^-1 of its row: A_pp - t^T D^-1 t."""
    last = (r1.one.nfactor[0] + 7) // 8
    T, D, S = eights(t), eights(r1.one.D), eights(r1.one.sum)
    d = r1.place.A[p * 8 * eights_of_row(r1) + p]
    if last > 0:
        v = T[0] * (T[0] * D[0])
        for c in range(1, last):
            v = fma(T[c], T[c] * D[c], v)
        S[0] = v
        d = d - sum_factor_eight(r1.one.sum, 0)
    return d


@kernel
def is_independent(r1, t, pivot):
    """Checks that a pivot exceeds rounding, t = L^-1 of its row: y^T A y, y = (-A_CC^-1 A_Cp, 1).  Overwrites one.y."""
    least = SMALLEST_PIVOT
    if least < pivot < DOUBTFUL:
        substitute_backward(r1, t, r1.one.y)
        size = 1.0
        for k in range(r1.one.nfactor[0]):
            size += r1.one.y[k] * r1.one.y[k]
        least = SMALLEST_PIVOT * size
    return pivot > least


@kernel
def append_factor_row(r1, p, t, pivot):
    """Appends place p as the last row of the factor; t = L^-1 of its row."""
    m, width = r1.one.nfactor[0], 8 * eights_of_row(r1)
    for k in range(m):
        r1.one.L[k * width + m] = t[k] * r1.one.D[k]
    r1.one.D[m] = 1.0 / pivot
    r1.one.factor[m], r1.one.slot[p] = p, m
    r1.one.nfactor[0] = m + 1


@kernel
def drop_last_rows(r1):
    """Removes gaps at the end of the factor."""
    m = r1.one.nfactor[0]
    while m > 0 and r1.one.factor[m - 1] < 0:
        m -= 1
        r1.one.ngap[0] = r1.one.ngap[0] - 1
    r1.one.nfactor[0] = m


@kernel
def update_behind(r1, q):
    """Updates L33 D33 L33^T + d l l^T for the rows behind q, with q's pivot d and column l."""
    m, width = r1.one.nfactor[0], eights_of_row(r1)
    E, v, V = eights(r1.one.L), r1.one.turn, eights(r1.one.turn)
    first, last = q // 8, (m + 7) // 8
    for c in range(first, last):
        V[c] = E[q * width + c]
    a = 1.0 / r1.one.D[q]
    for j in range(q + 1, m):
        p = v[j]
        if p != 0.0:
            v[j] = 0.0
            d = 1.0 / r1.one.D[j]
            inverse = 1.0 / fma(a * p, p, d)
            beta = a * p * inverse
            a = a * d * inverse
            r1.one.D[j] = inverse
            o = j * width
            for c in range(j // 8, last):
                x = fma(-p, E[o + c], V[c])
                V[c] = x
                E[o + c] = fma(beta, x, E[o + c])


@kernel
def refactor(r1):
    """Rebuilds the factor without gaps, its rows in the order in which they entered."""
    m = r1.one.nfactor[0]
    clear_factor(r1)
    for k in range(m):
        p = r1.one.factor[k]
        if p >= 0:
            gather_row(r1, p, r1.one.turn)
            substitute_forward(r1, r1.one.turn)
            append_factor_row(r1, p, r1.one.turn, pivot_of(r1, p, r1.one.turn))


@kernel
def remove_row(r1, p):
    """Removes place p from the factor."""
    q, width = r1.one.slot[p], eights_of_row(r1)
    E = eights(r1.one.L)
    update_behind(r1, q)
    for c in range(q // 8, width):
        E[q * width + c] = 0.0
    for k in range(q):
        r1.one.L[k * 8 * width + q] = 0.0
    r1.one.D[q] = 0.0
    r1.one.factor[q], r1.one.slot[p] = -1, -1
    r1.one.ngap[0] = r1.one.ngap[0] + 1
    drop_last_rows(r1)
    if 4 * r1.one.ngap[0] > r1.one.nfactor[0]:
        refactor(r1)
