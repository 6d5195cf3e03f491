"""Defines boxed LCPs for the tests: with known solutions, of every degeneracy, of contacts, and a naive solver."""

from __future__ import annotations

import itertools

import numpy as np

from featherlane.lcp import Problem


def random_bounds(rng, n):
    """Returns bounds of all kinds: none, one-sided, boxes, lo or hi 0, both 0."""
    lo = -rng.random(n) * (rng.random(n) < 0.7)
    hi = rng.random(n) * (rng.random(n) < 0.8)
    lo[rng.random(n) < 0.2] = -np.inf
    hi[rng.random(n) < 0.3] = np.inf
    return lo, hi


def known_problem(rng, n):
    """Returns (problem, its solution): A = M^T M + n I, a complementary pair x, w, and b = A x - w."""
    M = rng.standard_normal((n, n))
    A = M.T @ M + n * np.eye(n)
    lo, hi = random_bounds(rng, n)
    side = rng.integers(-1, 2, n)
    inside = np.clip(0.3 * rng.standard_normal(n), lo, hi)
    x = np.where((side < 0) & np.isfinite(lo), lo, np.where((side > 0) & np.isfinite(hi), hi, inside))
    w = (x == lo) * rng.random(n) - (x == hi) * rng.random(n)
    return Problem(A, A @ x - w, lo=lo, hi=hi), x


def degenerate_problem(rng, n):
    """Returns A of small integers and low rank, b in its range: ties, redundant rows, zero rows; it has a solution."""
    rank = int(rng.integers(1, n + 1))
    J = rng.integers(-1, 2, (n, rank)).astype(float)
    lo = np.where(rng.random(n) < 0.5, 0.0, -1.0)
    lo[rng.random(n) < 0.2] = -np.inf
    hi = np.where(rng.random(n) < 0.5, 1.0, np.inf)
    return Problem(J @ J.T, J @ rng.integers(-2, 3, rank), lo=lo, hi=hi)


def stack_problem(boxes, cfm, mu=0.5, push=None, h=1 / 60):
    """Returns a tower of unit cubes that touch exactly, 4 contacts each: normal, then two friction rows.

    Args:
        boxes: number of cubes.
        cfm: constraint force mixing, [1/(kg s)] in the rows' units.
        mu: friction.
        push: (6 boxes,) accelerations in addition to gravity, None for none.
        h: time step.
    """
    J, findex, hi = [], [], []
    for box, corner in itertools.product(range(boxes), itertools.product((-0.5, 0.5), repeat=2)):
        normal = len(J)
        for axis in (2, 0, 1):
            e, row = np.eye(3)[axis], np.zeros(6 * boxes)
            row[6 * box : 6 * box + 6] = *e, *np.cross([*corner, -0.5], e)
            if box:
                row[6 * box - 6 : 6 * box] = *-e, *-np.cross([*corner, 0.5], e)
            J.append(row)
            findex.append(-1 if axis == 2 else normal)
            hi.append(np.inf if axis == 2 else mu)
    J, Minv = np.array(J), np.tile([1.0, 1.0, 1.0, 6.0, 6.0, 6.0], boxes)
    acceleration = np.tile([0.0, 0.0, -9.81, 0.0, 0.0, 0.0], boxes) + (0.0 if push is None else push)
    return Problem.from_jacobian(J, Minv, cfm=cfm / h, b=-J @ acceleration, lo=0.0, hi=hi, findex=findex)


def exponential_problem(n):
    """Returns a positive definite LCP on which Dantzig's pivots grow faster than n^4: A = L^T L, L of ones and twos.

    Source: K. G. Murty, "Computational complexity of complementary pivot methods" (1978); Y. Fathi, "Computational
    complexity of LCPs associated with positive definite symmetric matrices" (1979), on which least-index methods take
    2^n steps.
    """
    L = np.eye(n) + 2.0 * np.tril(np.ones((n, n)), -1)
    return Problem(L.T @ L, 2.0**n - 2.0 ** np.arange(n), lo=0.0, hi=np.inf)


def enumerate_solutions(problem):
    """Returns all solutions of a problem with positive definite A and fixed bounds: each row at a bound or between."""
    A, b, lo, hi = problem.matrix, problem.b, problem.lo, problem.hi
    found = []
    for sides in itertools.product((-1, 0, 1), repeat=problem.n):
        side = np.array(sides)
        x = np.where(side < 0, lo, np.where(side > 0, hi, 0.0))
        if not np.isfinite(x).all():
            continue
        free = side == 0
        x[free] = np.linalg.solve(A[np.ix_(free, free)], b[free] - A[np.ix_(free, ~free)] @ x[~free])
        w = A @ x - b
        if (x >= lo).all() and (x <= hi).all() and (w[side < 0] >= 0).all() and (w[side > 0] <= 0).all():
            found.append(x)
    return found


def friction_problem(rng, contacts, mu=0.5):
    """Returns contacts of many bodies, normal and two friction rows each, with more dofs than rows: x is unique."""
    n = 3 * contacts
    J = rng.standard_normal((n, 2 * n))
    findex = np.where(np.arange(n) % 3 == 0, -1, np.arange(n) // 3 * 3)
    b = np.where(findex < 0, 3.0, 6.0) * rng.standard_normal(n) + np.where(findex < 0, 3.0, 0.0)
    return Problem.from_jacobian(
        J, np.full(2 * n, 0.5 / n), cfm=0.1, b=b, lo=0.0, hi=np.where(findex < 0, np.inf, mu), findex=findex
    )
