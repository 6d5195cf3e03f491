"""Transforms boxed problems with friction pyramids to standard LCPs: w = M z - b, w, z >= 0, w^T z = 0."""

from __future__ import annotations

import numpy as np

from featherlane.lcp.problem import Problem, ProblemError

ROUNDING = 1e-13  # differences up to this, relative to their largest term, become 0


class StandardForm:
    """A standard LCP whose solution gives the solution of a boxed one.

    Rows without bounds are eliminated; rows with lo = hi = 0 are removed.  Any other row is shifted to a bound,
    x_i = lo_i + z_i, or hi_i - z_i if lo_i is infinite; a friction row to its limit, x_i = z_i - (mu x_k + add).  If
    the opposite bound is also finite, its multiplier and its slack are an extra complementary pair.  Friction limits
    therefore follow the normals: they are consistent.

    Args:
        problem: with finite mu, and friction only on rows with lo = 0.

    Attributes:
        problem: the standard LCP, with an asymmetric A; rows are scaled by powers of two.

    Raises:
        ProblemError: an infinite mu, friction on a row that may be negative, or numbers that overflow in the shift to
            a bound.

    Source: Cottle, Pang, Stone, "The Linear Complementarity Problem", 1992, sec. 1.2; for friction Stewart and Trinkle,
        Int. J. Num. Meth. Eng. 39 (1996).
    """

    def __init__(self, problem: Problem):
        _check(problem)
        self.boxed = problem
        with np.errstate(over="ignore", invalid="ignore"):
            self._transform(problem)

    def _transform(self, problem: Problem) -> None:
        lo, hi = _fixed_bounds(problem)
        self._free = np.flatnonzero(np.isneginf(lo) & np.isposinf(hi))
        self._rows = np.flatnonzero((lo < hi) & ~(np.isneginf(lo) & np.isposinf(hi)))
        sign = np.where(np.isneginf(lo[self._rows]), -1.0, 1.0)
        self._measure(lo, hi, sign)
        A, b, rows = problem.matrix, problem.b, self._rows
        M, q = sign[:, None] * (A[rows] @ self._back), sign * (A[rows] @ self._start - b[rows])
        _check_numbers(M, q)
        M[np.abs(M) <= ROUNDING * np.abs(A).max(initial=0.0)] = 0.0  # rounding: rows that depend on unbounded rows
        q[np.abs(q) <= ROUNDING * (np.abs(b).max(initial=0.0) + np.abs(A @ self._start).max(initial=0.0))] = 0.0
        two = np.flatnonzero(np.isfinite(lo[rows]) & np.isfinite(hi[rows]))
        self._join(M, q, two, *self._opposite(two))

    def _measure(self, lo, hi, sign) -> None:
        """Sets _back and _start: x = _back z + _start, with x of unbounded rows from their equations.

        sign: 1 for rows that z measures from lo, -1 from hi.
        """
        problem, rows, free = self.boxed, self._rows, self._free
        back, start = np.zeros((problem.n, len(rows))), np.zeros(problem.n)
        back[rows, np.arange(len(rows))] = sign
        start[rows] = np.where(sign < 0, hi[rows], lo[rows])
        rough = rows[problem.findex[rows] >= 0]
        normal = problem.findex[rough]
        back[rough] -= problem.hi[rough, None] * back[normal]
        start[rough] = -problem.add[rough] - problem.hi[rough] * start[normal]
        if len(free):
            A = problem.matrix
            known = np.column_stack([-(A[free] @ back), problem.b[free] - A[free] @ start])
            _check_numbers(known)
            found = np.linalg.lstsq(A[np.ix_(free, free)], known, rcond=None)[0]
            back[free], start[free] = found[:, :-1], found[:, -1]
        self._back, self._start = back, start

    def _opposite(self, two):
        """Returns (slope, width): rows `two`, with two bounds, have the slack slope z + width to the opposite bound."""
        problem, rows = self.boxed, self._rows[two]
        slope = np.zeros((len(two), len(self._rows)))
        slope[np.arange(len(two)), two] = -1.0
        width = problem.hi[rows] - problem.lo[rows]
        for k in np.flatnonzero(problem.findex[rows] >= 0):
            i, normal = rows[k], problem.findex[rows[k]]
            slope[k] += 2.0 * problem.hi[i] * self._back[normal]
            width[k] = 2.0 * (problem.hi[i] * self._start[normal] + problem.add[i])
        return slope, width

    def _join(self, M, q, two, slope, width) -> None:
        """Sets `problem`, w = M z + q with a complementary pair of multiplier and slack for each row of `two`."""
        pairs = np.zeros((len(M), len(two)))
        pairs[two, np.arange(len(two))] = 1.0
        diagonal = np.diagonal(M)
        root = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        scale = np.exp2(-np.rint(np.log2(root)))
        self._scale = np.append(scale, 1.0 / scale[two])
        matrix = np.block([[M, pairs], [slope, np.zeros((len(two), len(two)))]])
        matrix, right = self._scale[:, None] * matrix * self._scale, -self._scale * np.append(q, width)
        _check_numbers(matrix, right)
        self.problem = Problem(matrix, right, lo=0.0, hi=np.inf, symmetric=False)
        self._back = np.hstack([self._back, np.zeros((self.boxed.n, len(two)))])

    def solution_of(self, z) -> np.ndarray:
        """Returns x (n,) of the boxed problem, clipped to its bounds, from the z of the standard one."""
        x = self._back @ (self._scale * z) + self._start
        lower, upper = self.boxed.bounds(x)
        return np.clip(x, lower, upper)


def _fixed_bounds(problem):
    """Returns (lo, hi) with placeholders for friction rows: -1 and 1, or both 0 if mu and add are 0."""
    rough = problem.findex >= 0
    smooth = rough & (problem.hi == 0.0) & (problem.add == 0.0)
    lo = np.where(rough, np.where(smooth, 0.0, -1.0), problem.lo)
    return lo, np.where(rough, np.where(smooth, 0.0, 1.0), problem.hi)


def _check_numbers(*arrays) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise ProblemError(
            "A and the bounds give numbers larger than 1e308, allowed in a standard LCP are finite numbers"
        )


def _check(problem) -> None:
    for i in np.flatnonzero(problem.findex >= 0):
        k = int(problem.findex[i])
        if not np.isfinite(problem.hi[i]):
            raise ProblemError(f"row {i} has an infinite mu, allowed in a standard LCP are finite numbers")
        if problem.lo[k] < 0.0:
            raise ProblemError(
                f"row {i} is a friction row of row {k}, whose lo is {problem.lo[k]}, allowed in a standard LCP is 0"
            )
