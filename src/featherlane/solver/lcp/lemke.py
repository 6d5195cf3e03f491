"""Lemke's method for standard LCPs, w = M z + q, w, z >= 0, w^T z = 0, and boxed ones brought to that form.

A covering variable z0 in w = M z + q + z0 1 makes the start feasible; complementary pivots then drive it out.  Ties are
broken by the lexicographic rule, so no basis returns.  The method ends at a solution for every positive semi-definite M
that has one, and for friction pyramids; a ray means that there is none, or that the method does not reach it.

The dictionary has a row for each basic variable and a column for each other one, basic = q + T nonbasic:
variables 0 .. n-1 are w, n .. 2 n - 1 are z, 2 n is z0.
Source: Cottle, Pang, Stone, "The Linear Complementarity Problem", 1992, sec. 4.4 and 4.9; Stewart and Trinkle, Int. J.
Num. Meth. Eng. 39 (1996), for friction pyramids as an LCP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...lanes import fabs, kernel, stage
from .status import INFEASIBLE, ITERATIONS, SOLVED

TIE = 1e-13  # ratios nearer to each other, relative to the smaller one, are equal
PIVOT = 1e-11  # of the largest entry of a column: a smaller pivot is rounding


# ---- the dictionary --------------------------------------------------------------------------------------------------
@kernel
def start_dictionary(p1):
    """w = M z + z0 + q: all of w basic."""
    n, stride = p1.one_n[0], p1.nlcpone
    for i in range(n):
        for j in range(n):
            p1.place_A[stride * i + j] = p1.one_A[stride * i + j]
        p1.place_A[stride * i + n] = 1.0
        p1.place_b[i] = p1.one_b[i]
        p1.one_order[i] = i
        p1.one_place[i] = n + i
    p1.one_place[n] = 2 * n


@kernel
def exchange(p1, r, c):
    """The variables of row r and column c change places."""
    n, stride = p1.one_n[0], p1.nlcpone
    inverse = 1.0 / p1.place_A[stride * r + c]
    for j in range(n + 1):
        p1.place_A[stride * r + j] = -(p1.place_A[stride * r + j] * inverse)
    p1.place_A[stride * r + c] = inverse
    p1.place_b[r] = -(p1.place_b[r] * inverse)
    for i in range(n):
        f = p1.place_A[stride * i + c]
        if i != r and f != 0.0:
            p1.place_A[stride * i + c] = 0.0
            for j in range(n + 1):
                p1.place_A[stride * i + j] = p1.place_A[stride * i + j] + f * p1.place_A[stride * r + j]
            p1.place_b[i] = p1.place_b[i] + f * p1.place_b[r]
    entered, left = p1.one_place[c], p1.one_order[r]
    p1.one_order[r], p1.one_place[c] = entered, left


@kernel
def column_of(p1, variable):
    """The column of a variable that is not basic, -1: it is."""
    found = -1
    for c in range(p1.one_n[0] + 1):
        if p1.one_place[c] == variable:
            found = c
    return found


# ---- the ratio test --------------------------------------------------------------------------------------------------
@kernel
def perturbation(p1, i, j):
    """What eps^j adds to the basic variable of row i where q is q + (eps, eps^2, ...)."""
    c, x = column_of(p1, j), 0.0
    if c >= 0:
        x = -p1.place_A[p1.nlcpone * i + c]
    elif p1.one_order[i] == j:
        x = 1.0
    return x


@kernel
def comes_first(p1, i, r, c):
    """Does row i reach zero before row r as column c grows?  In a tie the lexicographic order decides."""
    stride = p1.nlcpone
    fi, fr = -p1.place_A[stride * i + c], -p1.place_A[stride * r + c]
    a, b = p1.place_b[i] / fi, p1.place_b[r] / fr
    j, n = 0, p1.one_n[0]
    while j < n and fabs(a - b) <= TIE * fabs(b):
        a, b = perturbation(p1, i, j) / fi, perturbation(p1, r, j) / fr
        j += 1
    return a < b


@kernel
def leaving_row(p1, c):
    """The row that reaches zero first as column c grows, -1: none; z0 goes first wherever it can."""
    n, stride, r, most = p1.one_n[0], p1.nlcpone, -1, 0.0
    for i in range(n):
        size = fabs(p1.place_A[stride * i + c])
        if size > most:
            most = size
    for i in range(n):
        if p1.place_A[stride * i + c] < -(PIVOT * most) and (r < 0 or comes_first(p1, i, r, c)):
            r = i
    for i in range(n):
        if p1.one_order[i] == 2 * n and p1.place_A[stride * i + c] < -(PIVOT * most):
            first = -(p1.place_b[r] / p1.place_A[stride * r + c])
            if -(p1.place_b[i] / p1.place_A[stride * i + c]) <= first * (1.0 + TIE):
                r = i
    return r


@kernel
def covering_row(p1):
    """The row with the lowest q, the last one of equals; -1: none is below zero."""
    r, least = -1, 0.0
    for i in range(p1.one_n[0]):
        if p1.place_b[i] < 0.0 and p1.place_b[i] <= least:
            r, least = i, p1.place_b[i]
    return r


# ---- the method ------------------------------------------------------------------------------------------------------
@kernel
def read_solution(p1):
    """one_x = z, one_w = w of the basis."""
    n = p1.one_n[0]
    for i in range(n):
        p1.one_x[i], p1.one_w[i] = 0.0, 0.0
    for i in range(n):
        v = p1.one_order[i]
        if v < n:
            p1.one_w[v] = p1.place_b[i]
        elif v < 2 * n:
            p1.one_x[v - n] = p1.place_b[i]


@kernel
def lemke(p1, pivots):
    """Complementary pivots from z = 0 until z0 leaves, on a ray, or after so many.

    Reads:  one_n < nlcpone, one_A = M and one_b = q, rows of nlcpone.
    Writes: one_x = z, one_w, one_status, one_niter.   Uses: place_A, place_b, one_order, one_place.
    Cost:   n^2 products per pivot.
    """
    start_dictionary(p1)
    n, count, status = p1.one_n[0], 0, ITERATIONS
    r, c = covering_row(p1), p1.one_n[0]
    if r < 0:
        status = SOLVED
    while status == ITERATIONS and count < pivots:
        left = p1.one_order[r]
        exchange(p1, r, c)
        count += 1
        if left == 2 * n:
            status = SOLVED
        else:
            c = column_of(p1, left + n if left < n else left - n)
            r = leaving_row(p1, c)
            if r < 0:
                status = INFEASIBLE
    read_solution(p1)
    p1.one_status[0], p1.one_niter[0] = status, count


@stage
def solve_lemke(p1, pivots):
    """Lemke's method on a standard LCP that stands alone; see `lemke`."""
    lemke(p1, pivots)


# ---- boxes and friction as a standard LCP ----------------------------------------------------------------------------
@dataclass
class StandardForm:
    """w = M z + q, and the way back: x = back z + start.

    Attributes:
        M, q: the standard LCP; first the rows that are neither free nor fixed, then one for each bound opposite.
        back, start: x of all rows of the boxed problem.
    """

    M: np.ndarray
    q: np.ndarray
    back: np.ndarray
    start: np.ndarray

    @classmethod
    def of_boxed(cls, A, b, lo, hi, findex, add) -> StandardForm:
        """The standard form of A x = b + w with bounds, |x_i| <= hi_i x[findex_i] + add_i where findex_i >= 0.

        x_i = lo_i + z_i, or hi_i - z_i where lo_i is infinite, or -(mu x_k + add) + z_i; where the other bound is
        finite its multiplier and slack are another pair.  Rows without bounds are eliminated.

        Raises:
            ValueError: an infinite mu, or friction on a row that may be negative.
        """
        lo, hi, add = _checked_friction(lo, hi, findex, add)
        free = np.isneginf(lo) & np.isposinf(hi) & (findex < 0)
        moving = np.flatnonzero(~free & (lo < hi))
        n, m = len(b), len(moving)
        back, start = np.zeros((n, m)), np.where(np.isfinite(lo), lo, 0.0)
        down = np.isneginf(lo[moving])
        start[moving] = np.where(down, hi[moving], lo[moving])
        sign = np.where(down, -1.0, 1.0)
        back[moving, np.arange(m)] = sign
        rough = moving[findex[moving] >= 0]
        back[rough] -= hi[rough, None] * back[findex[rough]]
        start[rough] = -add[rough] - hi[rough] * start[findex[rough]]
        fixed = np.flatnonzero(free)
        if len(fixed):
            A_free = A[np.ix_(fixed, fixed)]
            back[fixed] = -np.linalg.lstsq(A_free, A[fixed] @ back, rcond=None)[0]
            start[fixed] = np.linalg.lstsq(A_free, b[fixed] - A[fixed] @ start, rcond=None)[0]
        M, q = sign[:, None] * (A[moving] @ back), sign * (A[moving] @ start - b[moving])
        two = np.flatnonzero(np.isfinite(lo[moving]) & np.isfinite(hi[moving]))
        other = np.zeros((len(two), m))
        other[np.arange(len(two)), two] = -1.0
        width = np.empty(len(two))
        for row, c in enumerate(two):
            i = moving[c]
            k = findex[i]
            other[row] += 2.0 * hi[i] * back[k] if k >= 0 else 0.0
            width[row] = 2.0 * (hi[i] * start[k] + add[i]) if k >= 0 else hi[i] - lo[i]
        pairs = np.zeros((m, len(two)))
        pairs[two, np.arange(len(two))] = 1.0
        M = np.block([[M, pairs], [other, np.zeros((len(two), len(two)))]])
        return cls(M, np.append(q, width), np.hstack([back, np.zeros((n, len(two)))]), start)


def _checked_friction(lo, hi, findex, add):
    """Bounds as a standard LCP takes them: friction with infinite mu or on a row that may pull is refused."""
    for i in np.flatnonzero(findex >= 0):
        k = findex[i]
        if not np.isfinite(hi[i]):
            raise ValueError(f"lemke: row {i} has mu = {hi[i]:g}, allowed are finite ones")
        if findex[k] >= 0 or lo[k] < 0:
            raise ValueError(f"lemke: row {i} has friction on row {k}, which may be negative; allowed are lo = 0")
    smooth = (findex >= 0) & (hi == 0.0) & (add == 0.0)
    # a row of friction has two finite bounds, and lo < hi unless it is fixed
    lo = np.where(findex >= 0, np.where(smooth, 0.0, -1.0), lo)
    return lo, hi, add
