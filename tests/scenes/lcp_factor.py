"""Defines a problem of rows with diagonal 1, so that places hold it unscaled, and its factor as rows change."""

import numpy as np

from featherlane.engine.solver.lcp.pivot import factor, scaled_problem
from featherlane.lcp import Problem
from scenes.lcp_records import one_record

SAME = 1e-10  # the condition of A is about 100
N = 21


def correlations(rng, n=N):
    """Returns a random A with the diagonal 1."""
    M = rng.standard_normal((n, n + 10))
    A = M @ M.T
    A /= np.sqrt(np.outer(A.diagonal(), A.diagonal()))
    np.fill_diagonal(A, 1.0)
    return 0.5 * (A + A.T)


def start(problem):
    """Returns the record of a problem, its places loaded, no row in the factor."""
    r1 = one_record(problem)
    for prepare in (
        scaled_problem.order_rows,
        scaled_problem.load_scaled_problem,
        factor.clear_factor_matrix,
        scaled_problem.set_zero_solution,
    ):
        prepare(r1)
    return r1


def free_rows(rng):
    """Returns (record, A) of N rows without bounds."""
    A = correlations(rng)
    return start(Problem(A, np.zeros(N), lo=-np.inf, hi=np.inf)), A


def add(r1, p):
    """Inserts place p into the factor."""
    if r1.one.nfactor[0] == factor.eights_per_row(r1) * 8:
        factor.refactor(r1)
    factor.gather_matrix_row(r1, p, r1.one.rhs)
    factor.substitute_forward(r1, r1.one.rhs)
    factor.append_factor_row(r1, p, r1.one.rhs, factor.pivot_of(r1, p, r1.one.rhs))
    r1.one.state[p] = scaled_problem.BETWEEN


def fill(r1):
    """Inserts all places but 8 into the factor, which is then full until it loses its gaps."""
    for p in (*range(N), 2, 4, 6):
        if r1.one.factor_row[p] >= 0:
            factor.remove_row(r1, p)
        add(r1, p)
    factor.remove_row(r1, 8)
    assert r1.one.nfactor[0] == 8 * factor.eights_per_row(r1) and r1.one.ngap[0] > 0


def solution(r1, b):
    """Returns x of the factor's rows for w = -b, by place."""
    r1.scaled.w.array[:N] = -b
    factor.gather_negative_w(r1)
    factor.substitute_forward(r1, r1.one.rhs)
    factor.substitute_backward(r1, r1.one.rhs, r1.one.y)
    x, members = np.zeros(N), r1.one.factor.array[: r1.one.nfactor[0]]
    x[members[members >= 0]] = r1.one.y.array[: r1.one.nfactor[0]][members >= 0]
    return x


def solved(A, inside, b):
    """Returns the same by definition."""
    x = np.zeros(N)
    x[inside] = np.linalg.solve(A[np.ix_(inside, inside)], b[inside])
    return x
