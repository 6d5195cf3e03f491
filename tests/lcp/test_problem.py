"""A problem's errors, its bounds in effect, and its residual."""

import numpy as np
import pytest

from featherlane.lcp import OptionError, Problem, ProblemError, Solver, methods, solve, solve_batch
from scenes.lcp_problems import known_problem, stack_problem

GOOD = {"A": np.eye(3), "b": [1.0, 2.0, 3.0], "lo": [0.0, -1.0, -1.0], "hi": [np.inf, 0.5, 0.5], "findex": [-1, 0, 0]}
BAD = [
    ({"A": np.eye(2)}, r"A has the shape \(2, 2\)"),
    ({"A": [[1, 2, 0], [3, 1, 0], [0, 0, 1]]}, r"A is not symmetric: A\[0, 1\] is 2.0, A\[1, 0\] is 3.0"),
    ({"A": np.diag([1, np.nan, 1])}, r"A\[1, 1\] is nan"),
    ({"A": "eye"}, "A is 'eye'"),
    ({"b": "three"}, "b is 'three'"),
    ({"b": [[1.0]]}, r"b has the shape \(1, 1\)"),
    ({"b": [1.0, np.inf, 3.0]}, r"b\[1\] is inf"),
    ({"lo": [0.0, 0.0]}, r"lo has the shape \(2,\)"),
    ({"lo": [0.5, 0.0, 0.0]}, r"lo\[0\] is 0.5, allowed: <= 0"),
    ({"hi": [1.0, -0.5, 0.5]}, r"hi\[1\] is -0.5"),
    ({"hi": np.nan}, r"hi\[0\] is nan"),
    ({"add": [0.0, -1.0, 0.0]}, r"add\[1\] is -1.0"),
    ({"findex": [-1, 1, 0]}, r"findex\[1\] is the row itself"),
    ({"findex": [-1, 2, 0]}, r"findex\[1\] is row 2, whose own findex is 0"),
    ({"findex": [-1, 3, 0]}, r"findex\[1\] is 3"),
    ({"findex": [-2, 0, 0]}, r"findex\[0\] is -2"),
    ({"findex": [-1, 0.5, 0]}, "allowed are whole numbers"),
]


@pytest.mark.parametrize("change, message", BAD)
def test_invalid_parts_are_refused_with_their_row(change, message):
    with pytest.raises(ProblemError, match=message):
        Problem(**GOOD | change)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"J": np.ones((2, 4))}, r"J has the shape \(2, 4\)"),
        ({"Minv": np.ones(3)}, r"Minv has the shape \(3,\)"),
        ({"Minv": np.triu(np.ones((4, 4)))}, "Minv is not symmetric"),
        ({"cfm": -1e-5}, r"cfm\[0\] is -1e-05"),
    ],
)
def test_invalid_factors_are_refused(change, message):
    with pytest.raises(ProblemError, match=message):
        Problem.from_jacobian(**{"J": np.ones((3, 4)), "Minv": np.ones(4), "cfm": 0.0, "b": np.ones(3), "lo": 0.0,
                                 "hi": 1.0} | change)  # fmt: skip


def test_methods_and_options_are_refused_by_name():
    with pytest.raises(OptionError, match=r"method: got 'danzig', allowed are .*dantzig.*did you mean 'dantzig'"):
        solve(**GOOD, method="danzig")
    with pytest.raises(OptionError, match="friktion"):
        solve(**GOOD, friktion="frozen")
    with pytest.raises(OptionError, match="friction"):
        solve(**GOOD, friction="cold")
    with pytest.raises(OptionError, match="iterations"):
        solve(**GOOD, iterations=-1)
    with pytest.raises(ProblemError):
        Solver(2).solve(Problem(**GOOD))
    with pytest.raises(ProblemError, match="symmetric"):
        Solver(2).solve(Problem([[1.0, 2.0], [0.0, 1.0]], [1.0, 1.0], lo=0.0, hi=1.0, symmetric=False))
    assert "dantzig" in methods()


def test_bounds_in_effect_follow_the_solution():
    lower, upper = Problem(**GOOD, add=[7.0, 0.0, 2.0]).bounds([-4.0, 0.0, 0.0])
    np.testing.assert_array_equal(upper, [np.inf, 2.0, 4.0])
    np.testing.assert_array_equal(lower, [0.0, -2.0, -4.0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("mu", "normal"), [(1e300, 1e300), (np.inf, 1e-300), (np.inf, 0.0)])
def test_friction_limits_may_be_infinite(mu, normal):
    """An overflow of mu |f_n| is an infinite limit; without a normal force there is no friction."""
    problem, limit = (
        Problem(np.eye(2), [normal, 1.0], lo=0.0, hi=[np.inf, mu], findex=[-1, 0]),
        np.inf if normal else 0.0,
    )
    x = [normal, 1.0 if normal else 0.0]
    np.testing.assert_array_equal(problem.bounds(x), [[0.0, -limit], [np.inf, limit]])
    assert problem.residual(x) == 0.0
    batch = solve_batch(
        problem.matrix[None], problem.b[None], lo=problem.lo, hi=problem.hi, findex=problem.findex, method="pgs"
    )
    np.testing.assert_array_equal(batch.x, [x])
    np.testing.assert_array_equal([batch.lower[0], batch.upper[0]], problem.bounds(x))


@pytest.mark.filterwarnings("error")
def test_the_residual_of_values_that_overflow_is_large():
    assert Problem(np.diag([1e200, 1e200]), [1.0, 1.0], lo=0.0, hi=np.inf).residual([1e200, 1e200]) == 1.0
    assert Problem(np.diag([1e-200, 1e-300]), [1e200, 1e200], lo=0.0, hi=np.inf).residual([1.0, 1.0]) == np.inf


def test_the_residual_is_zero_only_at_a_solution(rng):
    problem, x = known_problem(rng, 12)
    assert problem.residual(x) < 1e-14
    assert problem.valid(x)
    x[3] += 0.1
    assert problem.residual(x) > 1e-3
    assert not problem.valid(x)
    assert problem.residual(np.full(12, np.nan)) == np.inf


def test_frozen_bounds_are_passed_in():
    problem = Problem(**GOOD)
    x = np.array([1.0, 0.3, 0.3])
    assert not problem.valid(x)
    assert problem.valid(x, bounds=([0.0, -0.3, -0.3], [np.inf, 0.3, 0.3]))


def test_a_product_is_the_dense_matrix(rng):
    problem = stack_problem(2, 1e-3)
    x, A = rng.standard_normal(problem.n), problem.matrix
    J, Minv, cfm = problem.product.J, problem.product.Minv, problem.product.cfm
    dense = (J * Minv) @ J.T + np.diag(cfm)
    np.testing.assert_allclose(A, dense, atol=1e-14)
    np.testing.assert_allclose(problem.multiply(x), A @ x, atol=1e-12)
    np.testing.assert_allclose(problem.diagonal(), np.diagonal(A), atol=1e-14)
    full = Problem.from_jacobian(J, np.diag(Minv), cfm=cfm, b=problem.b, lo=0.0, hi=problem.hi)
    np.testing.assert_allclose(full.multiply(x), A @ x, atol=1e-12)
    np.testing.assert_allclose(full.diagonal(), np.diagonal(A), atol=1e-14)


def test_the_sign_is_odes_and_the_default_friction_is_frozen():
    """As documented in docs/contact.md."""
    M, q = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-5.0, -6.0])
    standard = solve(M, -q, lo=0.0, hi=np.inf, method="lemke")
    np.testing.assert_allclose(standard.w, M @ standard.x + q, rtol=0, atol=1e-12)
    problem = Problem([[2.0, 0.5], [0.5, 1.0]], [1.0, 3.0], lo=[0.0, -0.5], hi=[np.inf, 0.5], findex=[-1, 0])
    default, frozen, consistent = (
        solve(problem, method="dantzig", **options)
        for options in ({}, {"friction": "frozen"}, {"friction": "consistent"})
    )
    assert default.x.tobytes() == frozen.x.tobytes()
    assert default.status.name == "SOLVED" and default.residual == 0.0 and default.upper[1] == 0.25
    assert problem.residual(default.x) == pytest.approx(1 / 48)
    assert problem.residual(default.x, (default.lower, default.upper)) == 0.0
    assert problem.residual(consistent.x) == 0.0
