"""L D L^T of the rows between their bounds: after any insertions and removals it equals that of the present rows."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.pivot import factor
from featherlane.lcp import Problem
from scenes.lcp_factor import SAME, N, add, free_rows, solution, solved, start


def check(r1, A, inside):
    """Checks that L D L^T is A of the factor's rows, and that its gaps are rows of the identity."""
    m, width = r1.one.nfactor[0], 8 * factor.eights_per_row(r1)
    U = r1.one.L.array[: m * width].reshape(m, width)[:, :m]
    assert not np.tril(U).any()
    L = np.eye(m) + U.T
    members = r1.one.factor.array[:m]
    there = members >= 0
    assert sorted(members[there]) == sorted(inside) and (~there).sum() == r1.one.ngap[0]
    np.testing.assert_array_equal(r1.one.factor_row.array[members[there]], np.nonzero(there)[0])
    np.testing.assert_array_equal(L[~there], np.eye(m)[~there])
    np.testing.assert_array_equal(r1.one.D.array[:m][~there], 0.0)
    Ls = L[np.ix_(there, there)]
    D = 1.0 / r1.one.D.array[:m][there]
    np.testing.assert_allclose(Ls * D @ Ls.T, A[np.ix_(members[there], members[there])], atol=SAME)


def test_rows_are_added_and_removed_in_any_order(rng):
    r1, A = free_rows(rng)
    inside: list[int] = []
    for _ in range(200):
        outside = [p for p in range(N) if p not in inside]
        if outside and (len(inside) < 3 or rng.random() < 0.55):
            inside.append(int(rng.choice(outside)))
            add(r1, inside[-1])
        else:
            factor.remove_row(r1, inside.pop(int(rng.integers(len(inside)))))
        check(r1, A, inside)
        b = rng.standard_normal(N)
        np.testing.assert_allclose(solution(r1, b), solved(A, inside, b), atol=SAME)


def test_gaps_in_the_factor_are_few_and_never_last(rng):
    r1, _ = free_rows(rng)
    for p in range(N):
        add(r1, p)
    for p in (3, 20, 11, 19, 0, 7, 5, 9):
        factor.remove_row(r1, p)
        assert 4 * r1.one.ngap[0] <= r1.one.nfactor[0] and r1.one.factor[r1.one.nfactor[0] - 1] >= 0


def test_the_pivot_is_the_schur_complement_of_a_row(rng):
    r1, A = free_rows(rng)
    inside = [3, 17, 5, 0, 11, 8, 19, 2, 14]
    for p in inside:
        add(r1, p)
    factor.gather_matrix_row(r1, 7, r1.one.rhs)
    factor.substitute_forward(r1, r1.one.rhs)
    rest = A[7, 7] - A[7, inside] @ np.linalg.solve(A[np.ix_(inside, inside)], A[inside, 7])
    np.testing.assert_allclose(factor.pivot_of(r1, 7, r1.one.rhs), rest, atol=SAME)


@pytest.mark.parametrize(("apart", "large", "independent"), [
    (0.1, 1.0, True), (1e-11, 1.0, True), (1e-15, 1.0, False), (-1e-12, 1.0, False),
    (1e-11, 1e4, False),  # a cancellation of large numbers, which leaves their rounding error
])  # fmt: skip
def test_a_row_depends_on_others_when_its_pivot_is_rounding(apart, large, independent):
    A = np.array([[1.0, large], [large, large**2 + apart]])
    r1 = start(Problem(A, np.zeros(2), lo=-np.inf, hi=np.inf))
    r1.scaled.A.array[[0, 1, 8, 9]] = A.ravel()  # unscaled
    add(r1, 0)
    factor.gather_matrix_row(r1, 1, r1.one.rhs)
    factor.substitute_forward(r1, r1.one.rhs)
    assert factor.is_independent(r1, r1.one.rhs, apart) == independent
