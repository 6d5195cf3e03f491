"""Adds several rows to the factor of one LCP at once: as many as fill the next eight columns of L^T.

The variables to add, the group, are listed behind the factor's in one.factor.  L^-1 of their rows is computed for all
of them at once, by lanes, in place in the columns of L^T.  The Schur complement of their block of A is factored in
place in its rows.  A row with a doubtful pivot (up to DOUBTFUL) ends the group and is added alone.
Symbols: C: the `nfactor` variables of the factor;  G: the `count` variables of the group, rows and columns nfactor to
    nfactor + count - 1 of L^T, all in the same eight columns 8 c to 8 c + 7;  lane: column modulo eight;
    T = L^-1 A_CG, in the rows of C and columns of G;  p: a variable;  k, j: rows of the factor;  i, q: positions in G.
Layout: (L^T)_ij = LT[i * stride + j] with LT = one.L.  Its eights (vectors of eight adjacent numbers) are LT8: eight
    i * row_eights + c of row i.  Other columns of eight c belong to the factor: they are kept (`mask`, MASK).
one.state[p]: BETWEEN: p is in the factor;  WAITING: it is not, as it depends on the factor's rows.
    `substitute_forward(r1, t)`: t <- L^-1 t;  `substitute_backward(r1, t, y)`: y <- L^-T D^-1 t;
    `gather_matrix_row(r1, p, t)`: t = A_Cp;
    `pivot_of(r1, p, t)`: A_pp - t^T D^-1 t, the pivot of p, with t = L^-1 A_Cp;
    `append_factor_row(r1, p, t, pivot)`: p becomes the last row of the factor;
    `is_independent(r1, t, pivot)`: whether the pivot exceeds rounding;  `eights_per_row`: eights in a row of L^T.
Source: as factor.py; blocks as in Golub and Van Loan, Matrix Computations, sec. 4.2.9.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.pivot.factor import (
    DOUBTFUL,
    append_factor_row,
    eights_per_row,
    gather_matrix_row,
    is_independent,
    pivot_of,
    substitute_forward,
)
from featherlane.engine.solver.lcp.pivot.scaled_problem import BETWEEN, WAITING

MASK = 56  # index in one.sum of eight flags: 1 in the lanes that are columns of the group, 0 in the others


@kernel
def append_variable(r1, p):
    """Adds variable p alone to the factor, or sets its state to WAITING if it depends on the factor's rows."""
    # one.rhs = L^-1 A_Cp
    gather_matrix_row(r1, p, r1.one.rhs)
    substitute_forward(r1, r1.one.rhs)
    pivot = pivot_of(r1, p, r1.one.rhs)
    r1.one.state[p] = WAITING
    if is_independent(r1, r1.one.rhs, pivot):
        append_factor_row(r1, p, r1.one.rhs, pivot)
        r1.one.state[p] = BETWEEN


# ---- a group --------------------------------------------------------------------------------------------------------
@kernel
def gather_group(r1, count):
    """Copies A_CG and A_GG to the columns of the group in one.L, and flags its lanes in one.sum, from MASK on."""
    nfactor = r1.one.nfactor[0]
    stride = 8 * eights_per_row(r1)
    LT, A = r1.one.L, r1.scaled.A
    first_column = nfactor // 8 * 8  # of the eight that holds the group's columns
    # A_CG, with zeros in the gaps of the factor
    for k in range(nfactor):
        p = r1.one.factor[k]
        entry = k * stride + nfactor  # index of row k, first column of the group
        for q in range(count):
            LT[entry + q] = 0.0
            if p >= 0:
                LT[entry + q] = A[p * stride + r1.one.factor[nfactor + q]]
    # A_GG
    for i in range(count):
        p = r1.one.factor[nfactor + i]
        entry = (nfactor + i) * stride + nfactor
        for q in range(count):
            LT[entry + q] = A[p * stride + r1.one.factor[nfactor + q]]
    for lane in range(8):
        r1.one.sum[MASK + lane] = 0.0
    for q in range(count):
        r1.one.sum[MASK + nfactor - first_column + q] = 1.0


@kernel
def reduce_group_columns(r1):
    """Computes T = L^-1 A_CG in place, four rows at a time; columns of the factor in the same eight do not change.

    T_k = A_kG - sum over j < k of L_kj T_j,  with L_kj = LT[j * stride + k].
    """
    nfactor = r1.one.nfactor[0]
    row_eights = eights_per_row(r1)
    c = nfactor // 8
    LT = r1.one.L
    LT8 = eights(r1.one.L)
    stride = 8 * eights_per_row(r1)
    mask = eights(r1.one.sum)[MASK // 8] > 0.5  # lanes of the group
    k = 0
    while k + 4 <= nfactor:
        # rest: at first A_kG of rows k to k + 3; the terms L_kj T_j are subtracted for the rows j before k, then for
        # those among the four rows; the result is T_k
        block = k * row_eights + c
        old = tuple(LT8[block + r * row_eights] for r in range(4))
        rest = tuple(old[r] for r in range(4))
        for j in range(k):
            T_j = LT8[j * row_eights + c]
            entry = j * stride + k
            rest = tuple(fma(-LT[entry + r], T_j, rest[r]) for r in range(4))
        corner = k * stride + k  # index of the diagonal entry of row k
        for j in unrolled(range(3)):
            rest = tuple(fma(-LT[corner + j * stride + r], rest[j], rest[r]) if r > j else rest[r] for r in range(4))
        for r in unrolled(range(4)):
            LT8[block + r * row_eights] = where(mask, rest[r], old[r])
        k += 4
    # the last rows, if nfactor is no multiple of four
    while k < nfactor:
        old = LT8[k * row_eights + c]
        rest = old
        for j in range(k):
            rest = fma(-LT[j * stride + k], LT8[j * row_eights + c], rest)
        LT8[k * row_eights + c] = where(mask, rest, old)
        k += 1


@kernel
def subtract_factor_rows(r1, lane, count):
    """Computes rows 8 c + lane to 8 c + lane + 3 of A_GG - T^T D^-1 T in place, if they belong to G."""
    nfactor = r1.one.nfactor[0]
    row_eights = eights_per_row(r1)
    c = nfactor // 8
    LT = r1.one.L
    LT8 = eights(r1.one.L)
    Dinv = r1.one.D
    block = (8 * c + lane) * row_eights + c
    rest = tuple(LT8[block + r * row_eights] for r in range(4))  # rows of A_GG, from which T^T D^-1 T is subtracted
    for k in range(nfactor):
        # T_k: row k of T, all columns of G; LT[entry + r]: entry of T_k in the column of row r of these four
        T_k = LT8[k * row_eights + c]
        minus_Dinv = -Dinv[k]
        entry = 8 * (k * row_eights + c) + lane
        rest = tuple(fma(LT[entry + r] * minus_Dinv, T_k, rest[r]) for r in range(4))
    # rows of G: lanes first_lane to end_lane - 1
    first_lane = nfactor - 8 * c
    end_lane = first_lane + count
    for r in unrolled(range(4)):
        if first_lane <= lane + r < end_lane:
            LT8[block + r * row_eights] = rest[r]


@kernel
def finish_group_row(r1, i, count, inverse):
    """Converts row i of the group, of D L^T with the pivot on the diagonal, to L^T; its variable is BETWEEN.

    Entries behind the diagonal are multiplied by `inverse` = 1 / pivot; the other entries of the eight become 0.
    Writes: one.L, one.D (`inverse`), one.factor_row, one.state.
    """
    nfactor = r1.one.nfactor[0]
    stride = 8 * eights_per_row(r1)
    LT = r1.one.L
    entry = (nfactor + i) * stride + nfactor // 8 * 8
    first_lane = nfactor % 8
    # columns of eight c that belong to G and lie behind the diagonal
    for k in range(8):
        if first_lane + i < k < first_lane + count:
            LT[entry + k] = LT[entry + k] * inverse
        else:
            LT[entry + k] = 0.0
    p = r1.one.factor[nfactor + i]
    r1.one.D[nfactor + i] = inverse
    r1.one.factor_row[p] = nfactor + i
    r1.one.state[p] = BETWEEN


@kernel
def factor_group(r1, count):
    """Factors the Schur complement of the group as L D L^T in place, up to the first doubtful pivot.

    Returns how many rows were factored.  The rows from the doubtful pivot on are cleared.
    """
    nfactor = r1.one.nfactor[0]
    row_eights = eights_per_row(r1)
    c = nfactor // 8
    LT = r1.one.L
    LT8 = eights(r1.one.L)
    stride = 8 * eights_per_row(r1)
    added = 0
    while added < count and LT[(nfactor + added) * stride + nfactor + added] > DOUBTFUL:
        k = nfactor + added  # the pivot row: multiples of it are subtracted from the rows j of the group behind it
        inverse = 1.0 / LT[k * stride + k]
        for j in range(k + 1, nfactor + count):
            row_j = j * row_eights + c
            LT8[row_j] = fma(-(LT[k * stride + j] * inverse), LT8[k * row_eights + c], LT8[row_j])
        finish_group_row(r1, added, count, inverse)
        added += 1
    for j in range(nfactor + added, nfactor + count):
        LT8[j * row_eights + c] = 0.0
    return added


@kernel
def append_group(r1, count):
    """Adds the first `count` variables behind the factor, all in the same eight columns; returns how many it added.

    If it adds fewer, the next variable has a doubtful pivot.
    """
    nfactor = r1.one.nfactor[0]
    row_eights = eights_per_row(r1)
    c = nfactor // 8
    LT8 = eights(r1.one.L)
    first_lane = r1.one.nfactor[0] % 8
    # in one.L: A_CG and A_GG, then T = L^-1 A_CG, then the Schur complement of A_GG
    gather_group(r1, count)  # also sets the flags MASK
    reduce_group_columns(r1)
    # four rows at a time: rows 8 c to 8 c + 3, then 8 c + 4 to 8 c + 7, if the group has some of them
    if first_lane < 4:
        subtract_factor_rows(r1, lane=0, count=count)
    if first_lane + count > 4:
        subtract_factor_rows(r1, lane=4, count=count)
    # the group's columns of L^T are D^-1 T
    mask = eights(r1.one.sum)[MASK // 8] > 0.5
    for k in range(nfactor):
        T_k = LT8[k * row_eights + c]
        LT8[k * row_eights + c] = where(mask, T_k * r1.one.D[k], T_k)
    added = factor_group(r1, count)
    r1.one.nfactor[0] = nfactor + added
    return added


# ---- any number -----------------------------------------------------------------------------------------------------
@kernel
def append_listed_variables(r1, count):
    """Adds the `count` variables listed behind those of the factor; those that depend on its rows are WAITING."""
    remaining = count
    while remaining > 0:
        # a group's columns are in one eight: it ends at a multiple of eight
        group = 8 - r1.one.nfactor[0] % 8
        group = group if group < remaining else remaining
        added = append_group(r1, group)
        remaining -= added
        if added < group:
            # the variable with the doubtful pivot is now the first one behind the factor
            nfactor, p = r1.one.nfactor[0], r1.one.factor[r1.one.nfactor[0]]
            append_variable(r1, p)
            remaining -= 1
            if r1.one.state[p] == WAITING:
                # p did not enter the factor: the remaining list moves forward by one
                for k in range(nfactor, nfactor + remaining):
                    r1.one.factor[k] = r1.one.factor[k + 1]
