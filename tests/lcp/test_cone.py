"""Tests contacts with exact Coulomb friction for a given Delassus matrix: Coulomb's law itself, and pgs on cones."""

import numpy as np
import pytest

from featherlane import lcp

TIGHT = 1e-6  # of the forces and velocities: the residual is below 1e-8, and matrices have a condition of about 100


def contacts(count: int, mu: float, rank: int, seed: int) -> lcp.Problem:
    """Returns contacts with a random Delassus matrix of this rank; loads lie in its range, so solutions exist."""
    rng = np.random.default_rng(seed)
    J = rng.standard_normal((3 * count, rank))
    rows = np.arange(3 * count)
    findex = np.where(rows % 3 == 0, -1, rows // 3 * 3)
    b = J @ rng.standard_normal(rank)
    hi = np.where(findex < 0, np.inf, mu)
    return lcp.Problem(J @ J.T, b, lo=np.where(findex < 0, 0.0, -mu), hi=hi, findex=findex)


def breach(problem: lcp.Problem, x: np.ndarray, mu: float) -> float:
    """Returns the largest violation of Signorini's condition and Coulomb's law, contact by contact."""
    w = problem.multiply(x) - problem.b
    worst = 0.0
    for k in range(0, problem.n, 3):
        (n, *t), (u, *slip) = x[k : k + 3], w[k : k + 3]
        force, speed = np.hypot(*t), np.hypot(*slip)
        worst = max(worst, -n, -u, abs(n * u), force - mu * n)
        worst = max(worst, abs(speed * (mu * n - force)), abs(np.dot(t, slip) + force * speed))
    return worst


@pytest.mark.parametrize("count, mu, rank", [(1, 0.5, 3), (6, 0.3, 18), (6, 0.8, 12), (10, 0.2, 12), (10, 0.0, 30)])
def test_a_solution_obeys_coulombs_law(subtests, count, mu, rank):
    for seed in range(5):
        with subtests.test(seed=seed):
            problem = contacts(count, mu, rank, seed)
            found = lcp.solve_cone(problem)
            assert found.status == lcp.Status.SOLVED
            assert breach(problem, found.x, mu) < TIGHT * max(1.0, np.abs(problem.b).max(), np.abs(found.x).max()) ** 2


def test_unique_forces_are_those_of_pgs():
    problem = contacts(4, 0.2, 12, 0)
    other = lcp.solve(problem, method="pgs", friction="cone", iterations=100_000, tolerance=1e-12)
    found = lcp.solve_cone(problem, tolerance=1e-12)
    np.testing.assert_allclose(found.x, other.x, atol=1e-7 * np.abs(other.x).max())
    assert lcp.cone_residual(problem, other.x) == pytest.approx(other.residual, rel=1e-3, abs=1e-15)


def test_a_start_at_the_solution_needs_no_iterations():
    problem = contacts(6, 0.5, 18, 1)
    x = lcp.solve_cone(problem).x
    assert lcp.solve_cone(problem, x).iterations == 0


def test_a_block_slides_along_the_push():
    problem = lcp.Problem(np.eye(3), [9.81, -6.0, -8.0], lo=0.0, hi=[np.inf, 0.5, 0.5], findex=[-1, 0, 0])
    np.testing.assert_allclose(lcp.solve_cone(problem).x, 9.81 * np.array([1.0, -0.3, -0.4]), rtol=1e-7)


def test_friction_coefficients_may_differ_along_the_rows():
    """Each component is bounded by its coefficient: |(x_1 / mu_1, x_2 / mu_2)| <= x_0."""
    problem = lcp.Problem(np.eye(3), [1.0, -9.0, -0.1], lo=0.0, hi=[np.inf, 0.5, 0.2], findex=[-1, 0, 0])
    x = lcp.solve_cone(problem).x
    assert np.hypot(x[1] / 0.5, x[2] / 0.2) == pytest.approx(1.0, abs=1e-6)


def test_contacts_without_friction_rows_and_without_rows():
    frictionless = lcp.solve_cone(lcp.Problem(np.eye(2), [1.0, -1.0], lo=0.0, hi=np.inf))
    np.testing.assert_allclose(frictionless.x, [1.0, 0.0], atol=1e-8)
    assert lcp.solve_cone(lcp.Problem(np.zeros((0, 0)), [], lo=0.0, hi=np.inf)).status == lcp.Status.SOLVED


def test_an_infeasible_problem_ends_with_a_status_and_finite_forces():
    """Two opposite normals that are both pressed: no force separates them."""
    problem = lcp.Problem([[1.0, -1.0], [-1.0, 1.0]], [1.0, 1.0], lo=0.0, hi=np.inf)
    found = lcp.solve_cone(problem)
    assert found.status in (lcp.Status.INFEASIBLE, lcp.Status.ITERATIONS)
    assert np.isfinite(found.x).all() and np.isfinite(found.residual)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([[1.0]], [1.0], -1.0, 1.0), "row 0 has the bounds -1.0 to 1.0"),
        (([[-1.0]], [1.0], 0.0, np.inf), "eigenvalue -1"),
        ((np.eye(3), np.ones(3), 0.0, [0.5, np.inf, np.inf], [1, -1, -1]), r"findex\[0\] is 1"),
        ((np.eye(2), np.ones(2), 0.0, [np.inf, 0.5], [-1, 0], [0.0, 1.0]), "friction row 1"),
    ],
)
def test_other_rows_are_refused(arguments, message):
    with pytest.raises(lcp.ProblemError, match=message):
        lcp.solve_cone(lcp.Problem(**dict(zip(("A", "b", "lo", "hi", "findex", "add"), arguments, strict=False))))
