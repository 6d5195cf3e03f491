"""Adds several rows to the factor of one LCP at once: as many as fill the next eight columns of L^T.

The places to add are listed behind the factor's in one.factor.  L^-1 of their rows is computed for all of them at
once, by lanes, in place in the columns of L^T.  The Schur complement of their block of A is factored in place in
its rows.  A row with a doubtful pivot ends the group and is added alone.
Source: as factor.py; blocks as in Golub and Van Loan, Matrix Computations, sec. 4.2.9.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.pivot.factor import (
    DOUBTFUL,
    append_factor_row,
    eights_per_row,
    gather_matrix_row,
    is_independent,
    pivot_of,
    substitute_forward,
)
from featherlane.solver.lcp.pivot.scaled_problem import BETWEEN, WAITING

MASK = 56  # in one.sum: 1 in the lanes of the rows to add


@kernel
def put_between(r1, p):
    """Adds place p to the factor, or makes it wait if it depends on the rows there."""
    gather_matrix_row(r1, p, r1.one.turn)
    substitute_forward(r1, r1.one.turn)
    pivot = pivot_of(r1, p, r1.one.turn)
    r1.one.state[p] = WAITING
    if is_independent(r1, r1.one.turn, pivot):
        append_factor_row(r1, p, r1.one.turn, pivot)
        r1.one.state[p] = BETWEEN


# ---- a group --------------------------------------------------------------------------------------------------------
@kernel
def gather_group(r1, count):
    """Copies A of the places to add: in the columns of rows before them, and in their own rows; sets their lanes."""
    m, width = r1.one.nfactor[0], 8 * eights_per_row(r1)
    U, A, first = r1.one.L, r1.place.A, m // 8 * 8
    for k in range(m):
        p, o = r1.one.factor[k], k * width + m
        for q in range(count):
            U[o + q] = 0.0
            if p >= 0:
                U[o + q] = A[p * width + r1.one.factor[m + q]]
    for i in range(count):
        p, o = r1.one.factor[m + i], (m + i) * width + m
        for q in range(count):
            U[o + q] = A[p * width + r1.one.factor[m + q]]
    for lane in range(8):
        r1.one.sum[MASK + lane] = 0.0
    for q in range(count):
        r1.one.sum[MASK + m - first + q] = 1.0


@kernel
def reduce_group(r1):
    """Computes L^-1 of the columns to add, four rows at a time; the other lanes do not change."""
    m, width, c = r1.one.nfactor[0], eights_per_row(r1), r1.one.nfactor[0] // 8
    U, E, w = r1.one.L, eights(r1.one.L), 8 * eights_per_row(r1)
    mask = eights(r1.one.sum)[MASK // 8] > 0.5
    k = 0
    while k + 4 <= m:
        e = k * width + c
        x = tuple(E[e + r * width] for r in range(4))
        y = tuple(x[r] for r in range(4))
        for j in range(k):
            v, o = E[j * width + c], j * w + k
            y = tuple(fma(-U[o + r], v, y[r]) for r in range(4))
        o = k * w + k
        for j in unrolled(range(3)):
            y = tuple(fma(-U[o + j * w + r], y[j], y[r]) if r > j else y[r] for r in range(4))
        for r in unrolled(range(4)):
            E[e + r * width] = where(mask, y[r], x[r])
        k += 4
    while k < m:
        x = E[k * width + c]
        y = x
        for j in range(k):
            y = fma(-U[j * w + k], E[j * width + c], y)
        E[k * width + c] = where(mask, y, x)
        k += 1


@kernel
def subtract_before(r1, lane, count):
    """Computes A - t^T D^-1 t of rows in four lanes from `lane`, t = L^-1 of the columns to add; changes only these."""
    m, width, c = r1.one.nfactor[0], eights_per_row(r1), r1.one.nfactor[0] // 8
    U, E, D = r1.one.L, eights(r1.one.L), r1.one.D
    e = (8 * c + lane) * width + c
    y = tuple(E[e + r * width] for r in range(4))
    for k in range(m):
        v, d, o = E[k * width + c], -D[k], 8 * (k * width + c) + lane
        y = tuple(fma(U[o + r] * d, v, y[r]) for r in range(4))
    first = m - 8 * c
    last = first + count
    for r in unrolled(range(4)):
        if first <= lane + r < last:
            E[e + r * width] = y[r]


@kernel
def transpose_group_row(r1, i, count, inverse):
    """Makes row i of the group a row of L^T: its entries behind the diagonal over its pivot, zeros before."""
    m, width = r1.one.nfactor[0], 8 * eights_per_row(r1)
    U, o, lane = r1.one.L, (m + i) * width + m // 8 * 8, m % 8
    for k in range(8):
        if lane + i < k < lane + count:
            U[o + k] = U[o + k] * inverse
        else:
            U[o + k] = 0.0
    p = r1.one.factor[m + i]
    r1.one.D[m + i] = inverse
    r1.one.slot[p], r1.one.state[p] = m + i, BETWEEN


@kernel
def factor_group(r1, count):
    """Factors the rows of the group among themselves as L D L^T; returns how many were added."""
    m, width, c = r1.one.nfactor[0], eights_per_row(r1), r1.one.nfactor[0] // 8
    U, E, w, taken = r1.one.L, eights(r1.one.L), 8 * eights_per_row(r1), 0
    while taken < count and U[(m + taken) * w + m + taken] > DOUBTFUL:
        o = (m + taken) * w + m
        inverse = 1.0 / U[o + taken]
        for i in range(taken + 1, count):
            e = (m + i) * width + c
            E[e] = fma(-(U[o + i] * inverse), E[(m + taken) * width + c], E[e])
        transpose_group_row(r1, taken, count, inverse)
        taken += 1
    for i in range(taken, count):
        E[(m + i) * width + c] = 0.0
    return taken


@kernel
def put_group(r1, count):
    """Adds the first places behind the factor, all in the same eight columns, to it; returns how many it added."""
    m, width, c = r1.one.nfactor[0], eights_per_row(r1), r1.one.nfactor[0] // 8
    E, lane = eights(r1.one.L), r1.one.nfactor[0] % 8
    gather_group(r1, count)
    reduce_group(r1)
    if lane < 4:
        subtract_before(r1, 0, count)
    if lane + count > 4:
        subtract_before(r1, 4, count)
    mask = eights(r1.one.sum)[MASK // 8] > 0.5
    for k in range(m):
        v = E[k * width + c]
        E[k * width + c] = where(mask, v * r1.one.D[k], v)
    taken = factor_group(r1, count)
    r1.one.nfactor[0] = m + taken
    return taken


# ---- any number -----------------------------------------------------------------------------------------------------
@kernel
def put_all_between(r1, count):
    """Adds `count` places behind the factor in one.factor to it; those that depend on others wait."""
    left = count
    while left > 0:
        group = 8 - r1.one.nfactor[0] % 8
        group = group if group < left else left
        taken = put_group(r1, group)
        left -= taken
        if taken < group:
            m, p = r1.one.nfactor[0], r1.one.factor[r1.one.nfactor[0]]
            put_between(r1, p)
            left -= 1
            if r1.one.state[p] == WAITING:
                for q in range(m, m + left):
                    r1.one.factor[q] = r1.one.factor[q + 1]
