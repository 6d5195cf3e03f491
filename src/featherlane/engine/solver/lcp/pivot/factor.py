"""L D L^T of the rows of one LCP that lie between their bounds, updated as rows enter and leave.

    A_CC = L D L^T,     C: the variables in the factor,     A: scaled.A, the scaled matrix in pivoting order

There are one.nfactor rows, one.ngap of them gaps.  Row k of the factor belongs to variable p = one.factor[k],
and one.factor_row[p] = k.  A row that enters is the last one.  A row that leaves becomes a gap: a row of the
identity with one.factor[k] = -1 and one.D[k] = 0.  Its column becomes a positive rank-one update of the rows behind it.
The factor is rebuilt if more than a quarter of its rows are gaps.

Layout: one.L stores L^T by rows, so that a substitution adds whole rows: (L^T)_kj = one.L[k * stride + j], with stride
the number of rows rounded up to a multiple of eight.  one.D stores 1 / D.  `eights(one.L)` is the same array in vectors
of eight adjacent numbers, here called eights: eight k * row_eights + c holds columns 8 c to 8 c + 7 of row k.
Symbols: r1: the record of the problem (one.* and scaled.*);  p: a variable;  k, j: rows of the factor;  c, e: eights;
    t: an array over the factor's rows, A_Cp or L^-1 A_Cp.
Source: R. W. Cottle and G. B. Dantzig, "Complementary pivot theory of mathematical programming" (1968); Gill, Golub,
    Murray and Saunders, "Methods for modifying matrix factorizations" (1974), method C1.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.vectors import sum_of_eight

SMALLEST_PIVOT = 1e-14  # relative to |y|^2, see `is_independent`: with a smaller pivot, a row depends on the others
DOUBTFUL = 1e-10  # pivots below this are checked


@kernel
def eights_per_row(r1):
    """Returns the number of eights in a row of the matrices."""
    return (r1.one.n[0] + 7) // 8


@kernel
def clear_factor_matrix(r1):
    """Clears one.L: the entries below the diagonal of L^T and behind its last row are 0 from then on.

    Substitutions read eight rows at a time, so also rows behind the factor.  Another problem may have left non-finite
    values there, whose products with 0 would be NaN.
    """
    LT = eights(r1.one.L)
    row_eights = eights_per_row(r1)
    for c in range(8 * row_eights * row_eights):
        LT[c] = 0.0


@kernel
def clear_factor(r1):
    """Sets the factor to that of no rows."""
    r1.one.nfactor[0] = 0
    r1.one.ngap[0] = 0
    Dinv = eights(r1.one.D)
    for c in range(eights_per_row(r1)):
        Dinv[c] = 0.0


# ---- substitution ---------------------------------------------------------------------------------------------------
@kernel
def gather_matrix_row(r1, p, t):
    """Sets t = A_Cp, row p of A in the factor's columns; 0 in its gaps and behind it, up to a multiple of eight."""
    nfactor = r1.one.nfactor[0]
    A_p = p * 8 * eights_per_row(r1)  # index of row p of A
    for k in range(nfactor):
        variable = r1.one.factor[k]  # its column of A
        t[k] = 0.0
        if variable >= 0:
            t[k] = r1.scaled.A[A_p + variable]
    for k in range(nfactor, (nfactor + 7) // 8 * 8):
        t[k] = 0.0


@kernel
def gather_negative_w(r1):
    """Sets one.rhs = -w of the factor's rows; 0 in its gaps and behind it, up to a multiple of eight."""
    nfactor = r1.one.nfactor[0]
    for k in range((nfactor + 7) // 8 * 8):
        r1.one.rhs[k] = 0.0
        if k < nfactor and r1.one.factor[k] >= 0:
            r1.one.rhs[k] = -r1.scaled.w[r1.one.factor[k]]


@kernel
def solve_triangle_forward(LT, corner, stride, t, start):
    """Computes y = L^-1 t for eight numbers of t from `start` on, stores y in t, and returns -y.

    It returns -y because the caller subtracts y_k times row k of L^T from the numbers behind: fma(-y_k, row, numbers).
    LT[corner] is the first entry of their 8 x 8 triangle of L^T, and `stride` the length of a row of L^T.
    """
    y = tuple(t[start + r] for r in range(8))
    # column k of L subtracts y_k times itself from the numbers behind k
    for k in unrolled(range(7)):
        y = tuple(fma(-LT[corner + k * stride + r], y[k], y[r]) if r > k else y[r] for r in range(8))
    for r in unrolled(range(1, 8)):
        t[start + r] = y[r]
    return tuple(-y[r] for r in range(8))


@kernel
def solve_triangle_backward(LT, corner, stride, y, start):
    """Computes y <- L^-T y for eight numbers of y from `start` on.

    LT[corner] is the first entry of their 8 x 8 triangle of L^T, and `stride` the length of a row of L^T.
    """
    x = tuple(y[start + r] for r in range(8))
    # column k of L^T subtracts x_k times itself from the numbers before k
    for k in unrolled(range(7, 0, -1)):
        x = tuple(fma(-LT[corner + r * stride + k], x[k], x[r]) if r < k else x[r] for r in range(8))
    for r in unrolled(range(7)):
        y[start + r] = x[r]


@kernel
def substitute_forward(r1, t):
    """Computes t <- L^-1 t, eight rows at a time: their triangle, then their update of all rows behind them."""
    nfactor = r1.one.nfactor[0]
    row_eights = eights_per_row(r1)
    LT = r1.one.L
    LT8, t8 = eights(r1.one.L), eights(t)
    count = (nfactor + 7) // 8
    for c in range(count):
        start = 8 * c  # first of these eight rows
        corner = 8 * c * row_eights + c  # index in LT8 of the first row of their triangle
        minus_y = solve_triangle_forward(LT, corner=8 * corner, stride=8 * row_eights, t=t, start=start)
        # row k of L^T holds column k of L: it updates all numbers behind, eight at a time
        for e in range(1, count - c):
            rest = t8[c + e]
            for k in unrolled(range(8)):
                rest = fma(minus_y[k], LT8[corner + e + k * row_eights], rest)
            t8[c + e] = rest


@kernel
def substitute_backward(r1, t, y):
    """Computes y <- L^-T D^-1 t, eight rows at a time from the last ones."""
    nfactor = r1.one.nfactor[0]
    row_eights = eights_per_row(r1)
    LT = r1.one.L
    LT8, y8, sum8 = eights(r1.one.L), eights(y), eights(r1.one.sum)
    t8, Dinv8 = eights(t), eights(r1.one.D)
    count = (nfactor + 7) // 8
    for back in range(count):
        c = count - 1 - back
        start = 8 * c  # first of these eight rows
        corner = 8 * c * row_eights + c  # index in LT8 of the first row of their triangle
        y8[c] = t8[c] * Dinv8[c]
        # subtracts the products of these eight rows of L^T with y of the rows behind, which are already solved
        if back:  # else there are no rows behind
            solved = y8[c + 1]
            sums = tuple(LT8[corner + k * row_eights + 1] * solved for k in range(8))
            for e in range(2, back + 1):
                block = corner + e
                solved = y8[c + e]
                sums = tuple(fma(LT8[block + k * row_eights], solved, sums[k]) for k in range(8))
            # adds the eight lanes of each row's sums, in one.sum: eight k is that of row start + k
            for k in unrolled(range(8)):
                sum8[k] = sums[k]
            for k in range(8):
                y[start + k] = y[start + k] - sum_of_eight(r1.one.sum, 8 * k)
        solve_triangle_backward(LT, corner=8 * corner, stride=8 * row_eights, y=y, start=start)


# ---- rows that enter and leave --------------------------------------------------------------------------------
@kernel
def pivot_of(r1, p, t):
    """Returns the pivot that variable p would have, with t = L^-1 A_Cp: A_pp - t^T D^-1 t.  Overwrites one.sum."""
    count = (r1.one.nfactor[0] + 7) // 8
    t8, Dinv8, sum8 = eights(t), eights(r1.one.D), eights(r1.one.sum)
    pivot = r1.scaled.A[p * 8 * eights_per_row(r1) + p]
    if count > 0:
        product = t8[0] * (t8[0] * Dinv8[0])
        for c in range(1, count):
            product = fma(t8[c], t8[c] * Dinv8[c], product)
        sum8[0] = product
        pivot = pivot - sum_of_eight(r1.one.sum, first=0)
    return pivot


@kernel
def is_independent(r1, t, pivot):
    """Checks that the pivot of variable p exceeds rounding, given t = L^-1 A_Cp.  Overwrites one.y.

    The pivot is y^T A y with y = (-A_CC^-1 A_Cp, 1).  It exceeds rounding if it is above SMALLEST_PIVOT y^T y, because
    the entries of A are at most about 1.  Only pivots from SMALLEST_PIVOT to DOUBTFUL need y: a smaller one fails, as
    y^T y >= 1, and a larger one counts as independent.
    """
    least = SMALLEST_PIVOT
    if least < pivot < DOUBTFUL:
        substitute_backward(r1, t, r1.one.y)
        square = 1.0  # y^T y; one.y = A_CC^-1 A_Cp
        for k in range(r1.one.nfactor[0]):
            square += r1.one.y[k] * r1.one.y[k]
        least = SMALLEST_PIVOT * square
    return pivot > least


@kernel
def append_factor_row(r1, p, t, pivot):
    """Appends variable p to the factor, given t = L^-1 A_Cp: column D^-1 t of L^T, 1 / pivot in one.D."""
    last = r1.one.nfactor[0]
    stride = 8 * eights_per_row(r1)
    for k in range(last):
        r1.one.L[k * stride + last] = t[k] * r1.one.D[k]
    r1.one.D[last] = 1.0 / pivot
    r1.one.factor[last] = p
    r1.one.factor_row[p] = last
    r1.one.nfactor[0] = last + 1


@kernel
def drop_last_rows(r1):
    """Removes gaps at the end of the factor."""
    nfactor = r1.one.nfactor[0]
    while nfactor > 0 and r1.one.factor[nfactor - 1] < 0:
        nfactor -= 1
        r1.one.ngap[0] = r1.one.ngap[0] - 1
    r1.one.nfactor[0] = nfactor


@kernel
def update_rows_behind(r1, leaving):
    """Refactors the rows behind row `leaving` of the factor: L' D' L'^T = L D L^T + weight column column^T.

    At first, weight is the pivot of the leaving row, and column its column of L.  Method C1 goes through the rows j;
    after row j, weight and column are those of the update of the rows behind j.  Overwrites one.rhs, with column.
    """
    nfactor = r1.one.nfactor[0]
    row_eights = eights_per_row(r1)
    LT8 = eights(r1.one.L)
    column = r1.one.rhs
    column8 = eights(r1.one.rhs)
    # eights first to end - 1 hold the rows from the leaving one on
    first = leaving // 8
    end = (nfactor + 7) // 8
    for c in range(first, end):
        column8[c] = LT8[leaving * row_eights + c]
    weight = 1.0 / r1.one.D[leaving]
    for j in range(leaving + 1, nfactor):
        entry = column[j]
        if entry != 0.0:  # else row j does not change
            column[j] = 0.0
            # D_j' = D_j + weight entry^2,  beta = weight entry / D_j',  weight' = weight D_j / D_j'
            pivot = 1.0 / r1.one.D[j]
            inverse = 1.0 / fma(weight * entry, entry, pivot)
            beta = weight * entry * inverse
            weight = weight * pivot * inverse
            r1.one.D[j] = inverse
            # column' = column - entry l_j,  l_j' = l_j + beta column'
            l_j = j * row_eights  # index in LT8 of column j of L, which is row j of L^T
            for c in range(j // 8, end):
                rest = fma(-entry, LT8[l_j + c], column8[c])
                column8[c] = rest
                LT8[l_j + c] = fma(beta, rest, LT8[l_j + c])


@kernel
def refactor(r1):
    """Computes the factor L D L^T of A_CC again, without gaps; its rows keep their order.  Overwrites one.rhs."""
    nfactor = r1.one.nfactor[0]
    clear_factor(r1)
    for k in range(nfactor):
        p = r1.one.factor[k]
        # the new factor has at most k rows here, so one.factor[k] is not overwritten yet
        if p >= 0:
            gather_matrix_row(r1, p, r1.one.rhs)
            substitute_forward(r1, r1.one.rhs)
            append_factor_row(r1, p, r1.one.rhs, pivot_of(r1, p, r1.one.rhs))


@kernel
def remove_row(r1, p):
    """Removes variable p from the factor: its row becomes a gap.  Overwrites one.rhs."""
    leaving = r1.one.factor_row[p]
    row_eights = eights_per_row(r1)
    LT8 = eights(r1.one.L)
    update_rows_behind(r1, leaving)
    # row `leaving` of L^T, then its column
    for c in range(leaving // 8, row_eights):
        LT8[leaving * row_eights + c] = 0.0
    for k in range(leaving):
        r1.one.L[k * 8 * row_eights + leaving] = 0.0
    r1.one.D[leaving] = 0.0
    r1.one.factor[leaving] = -1
    r1.one.factor_row[p] = -1
    r1.one.ngap[0] = r1.one.ngap[0] + 1
    drop_last_rows(r1)
    # gaps may take at most a quarter of the factor
    if 4 * r1.one.ngap[0] > r1.one.nfactor[0]:
        refactor(r1)
