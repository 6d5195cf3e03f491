"""DART's LCP fixtures, rebuilt from their numbers, with every solver of `fl.lcp`.

Numbers: dartsim/dart, tests/common/lcpsolver (lcp_test_problems, lcp_problem_factory, lcp_test_fixtures).  Fixtures
that DART samples with the C++ generator mt19937 are sampled here with NumPy's, from the same distributions.  Its
fixtures by dimension have w = A x + b, all others w = A x - b, as here.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
from report import markdown

import featherlane as fl

INF = np.inf
FRICTION = (-1, 0, 0)
ROUNDS = 9  # timed solutions of a fixture


def standard(A, x=None, b=None) -> fl.lcp.Problem:
    """x >= 0, w >= 0 with the solution x, or with b."""
    A = np.asarray(A, float)
    return fl.lcp.Problem(A, A @ np.asarray(x, float) if b is None else b, lo=0.0, hi=INF)


def boxed(A, x, w, lo, hi, findex=None) -> fl.lcp.Problem:
    """A boxed problem with the solution (x, w)."""
    A = np.asarray(A, float)
    return fl.lcp.Problem(A, A @ np.asarray(x, float) - w, lo=lo, hi=hi, findex=findex)


def uniform(n: int, diagonal: float, other: float) -> np.ndarray:
    """A matrix with equal diagonal and equal other entries."""
    return (diagonal - other) * np.eye(n) + other


def banded(first: float, entries: tuple[float, ...]) -> np.ndarray:
    """A symmetric matrix with a diagonal and entries by row of its upper triangle."""
    n = round(0.5 * (1 + np.sqrt(1 + 8 * len(entries))))
    A = first * np.eye(n)
    A[np.triu_indices(n, 1)] = entries
    return A + np.triu(A, 1).T


def blocks(*parts) -> np.ndarray:
    """A block diagonal matrix."""
    n = sum(len(part) for part in parts)
    A, k = np.zeros((n, n)), 0
    for part in parts:
        A[k : k + len(part), k : k + len(part)] = part
        k += len(part)
    return A


def sampled(kind: str, n: int, seed: int) -> fl.lcp.Problem:
    """A sampled problem: `spd`, `ill` conditioned (1e-6 to 10^1.5), or of a mass `ratio` of 1e6."""
    rng = np.random.default_rng(seed)
    if kind == "spd":
        M = rng.uniform(-1.0, 1.0, (n, n))
        return standard(M.T @ M + np.eye(n), rng.uniform(0.1, 0.5, n))
    if kind == "ill":
        Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
        A = Q @ np.diag(np.logspace(-6.0, 1.5, n)) @ Q.T
        return standard(0.5 * (A + A.T), rng.uniform(0.1, 1.0, n))
    A = np.triu(0.01 * rng.uniform(-0.1, 0.1, (n, n)), 1)
    return standard(A + A.T + np.diag(np.logspace(-3.0, 3.0, n) + 0.05), rng.uniform(0.05, 0.6, n))


FOUR = banded(5.0, (0.5, 0.3, 0.2, 0.4, 0.3, 0.5))
SIX = banded(8.0, (0.5, 0.3, 0.2, 0.1, 0.1, 0.4, 0.3, 0.2, 0.1, 0.4, 0.3, 0.2, 0.4, 0.3, 0.5))
CONTACT = [[4.0, 0.5, 0.0], [0.5, 3.0, 0.25], [0.0, 0.25, 2.5]]
AT_BOUNDS = [[3.5, 0.4, 0.1], [0.4, 2.8, 0.0], [0.1, 0.0, 2.2]]
TWO = blocks(
    np.array([[3.0, 0.1, 0.0], [0.1, 2.5, 0.2], [0.0, 0.2, 2.2]]),
    np.array([[4.0, 0.3, 0.0], [0.3, 3.5, 0.2], [0.0, 0.2, 3.0]]),
)
ACTIVE = [
    [3.0, 0.12, 0.04, 0.08, 0.02, 0.0],
    [0.12, 2.4, 0.08, 0.01, 0.04, 0.0],
    [0.04, 0.08, 2.1, 0.0, 0.0, 0.03],
    [0.08, 0.01, 0.0, 2.8, 0.1, 0.05],
    [0.02, 0.04, 0.0, 0.1, 2.2, 0.07],
    [0.0, 0.0, 0.03, 0.05, 0.07, 2.0],
]
NEAR_SINGULAR = [
    [0.001, 0.0001, 0.0, 0.0],
    [0.0001, 1.0, 0.02, 0.0],
    [0.0, 0.02, 2.0, 0.02],
    [0.0, 0.0, 0.02, 4.0],
]
INDEFINITE = [
    [3.999, 0.9985, 1.001, -2.0],
    [0.9985, 3.998, -2.0, 0.9995],
    [1.001, -2.0, 4.002, 1.001],
    [-2.0, 0.9995, 1.001, 4.001],
]
MIXED = [[3.0, 0.2, 0.0], [0.2, 2.5, 0.1], [0.0, 0.1, 2.0]]


def fixtures() -> dict[str, fl.lcp.Problem]:
    """Returns the problems by DART's names."""
    contact = [0.0, -0.5, -0.5], [INF, 0.5, 0.5], FRICTION
    two = [0.0, -0.6, -0.6, 0.0, -0.3, -0.3], [INF, 0.6, 0.6, INF, 0.3, 0.3], (-1, 0, 0, -1, 3, 3)
    six = [0.0, -0.5, -0.5, 0.0, -0.5, -0.5], [INF, 0.5, 0.5, INF, 0.5, 0.5], (-1, 0, 0, -1, 3, 3)
    steps = 0.01 * np.arange(1, 7)
    found = {
        "1D": standard([[1.0]], b=[1.5]),
        "2D": standard([[3.12, 0.1877], [0.1877, 3.254]], b=[0.00662, 0.006711]),
        "4D": standard(FOUR, b=steps[:4]),
        "6D": standard(SIX, b=steps),
        "4D ill-formed": standard(INDEFINITE, b=[0.01008, 0.009494, 0.07234, 0.07177]),
        "trivial_1d": standard([[2.0]], [0.5]),
        "trivial_1d_at_lower": standard([[2.0]], b=[-1.0]),
        "standard_2d_spd": standard([[4.0, 1.0], [1.0, 3.0]], [0.5, 0.25]),
        "standard_4d_spd": standard(FOUR, [0.3, 0.2, 0.15, 0.1]),
        "boxed_2d_active_upper": boxed(
            [[2.0, 0.5], [0.5, 1.5]], [0.1, 0.2], np.array([0.0, -0.3]), [-1.0, 0.0], [1.0, 0.2]
        ),
        "boxed_3d_mixed_bounds": boxed(
            MIXED, [0.0, -0.5, 0.3], np.array([-0.1, 0.2, 0.0]), [-0.2, -0.5, -0.1], [0.0, 0.5, 0.5]
        ),
        "single_contact_friction": boxed(CONTACT, [1.0, 0.2, -0.1], 0.0, *contact),
        "findex_single_contact_at_bounds": boxed(AT_BOUNDS, [0.8, 0.4, -0.4], 0.0, *contact),
        "two_contacts_friction": boxed(TWO, [0.0, 0.0, 0.0, 1.2, 0.2, -0.1], 0.0, *two),
        "active_friction_index_contact": boxed(
            ACTIVE, [0.6, 0.3, -0.24, 0.35, -0.175, 0.05], np.array([0.0, -0.04, 0.0, 0.0, 0.03, 0.0]), *six
        ),
        "near_singular_4d": standard(NEAR_SINGULAR, [0.25, 0.2, 0.3, 0.15]),
        "ill_conditioned_8d": sampled("ill", 8, 2001),
        "mass_ratio_12d": sampled("ratio", 12, 2002),
    }
    for n in (12, 24, 48):
        found[f"{n}D"] = standard(blocks(*[uniform(12, 10.0, 0.3)] * (n // 12)), b=np.full(n, 0.01))
    for n in (8, 32, 128):
        found[f"random_standard_{n}d"] = sampled("spd", n, n)
    return found


def text() -> str:
    """Returns the residual of every method on every fixture."""
    methods = fl.lcp.methods()
    rows, spent = [], dict.fromkeys(methods, 0.0)
    for name, problem in fixtures().items():
        cells = []
        for method in methods:
            try:
                found, times = fl.lcp.solve(problem, method=method), []  # compiles
                for _ in range(ROUNDS):
                    start = time.process_time()
                    fl.lcp.solve(problem, method=method)
                    times.append(time.process_time() - start)
                spent[method] += statistics.median(times)
                cells.append(
                    f"{found.residual:.0e}" + ("" if found.status == fl.lcp.Status.SOLVED else " (not solved)")
                )
            except fl.lcp.ProblemError:
                cells.append("refused")
        rows.append([name, str(problem.n), *cells])
    rows.append(["all: processor time [ms]", "", *(f"{1e3 * spent[method]:.3g}" for method in methods)])
    return markdown(("fixture", "rows", *methods), rows)
