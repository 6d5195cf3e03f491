"""Classification of a gradient as small or as rounding: both decisions are correct, the rest is reported."""

import numpy as np
import pytest

from featherlane.engine.solver.primal import rounding
from featherlane.engine.solver.primal.problem import evaluate
from featherlane.engine.solver.primal.rounding import (
    EPS,
    EPS32,
    NEAR,
    ROUNDING,
    SMALL,
    TERMS,
    gradient_change_by_rounding,
    has_large_gradient,
    is_rounding,
    is_rounding_of_terms,
    is_small,
    is_unexplained,
    norm_of_forces,
)
from oracles.uncompiled import call
from scenes.touching import each, go_to, near, touching, vectors

EXACT = 1e-10  # relative: sums of a hundred terms
BELOW, ABOVE = 0.999, 1.001
APART = 4.0  # edges, axes and lever arms, each alone, are at most this much larger than the rows that they form


@pytest.fixture(scope="module")
def s():
    s = touching()
    s.best = np.array([p.minimum() for p in s.problems]).T
    return s


def at(s, a):
    """Moves the tile to a point; returns (norm of the gradient, maximum of the forces' magnitudes)."""
    go_to(s, a)
    _, gradient = call(evaluate, s.m, s.d)
    forces = each(s, a, lambda p, x: max(np.linalg.norm(p.M @ p.a0), np.linalg.norm(p.J.T @ p.force(x))))
    return gradient, forces


def test_small_is_a_part_of_the_forces_or_of_the_tolerance(s, rng):
    s.model.opt.tolerance = 1e-8
    s.w.rows.refresh()
    _, forces = at(s, near(s, rng))
    np.testing.assert_allclose(call(norm_of_forces, s.m, s.d), forces, rtol=EXACT)
    far = np.full(s.width, 1.0)
    for part, said in ((BELOW, True), (ABOVE, False)):
        assert (call(is_small, s.m, s.d, part * SMALL * forces, far) == said).all()
        assert (call(is_small, s.m, s.d, forces, part * NEAR * 1e-8 * far) == said).all()
        s.a["active"][0, 3] = 0.0
        left = call(has_large_gradient, s.m, s.d, part * SMALL * forces, far)
        s.a["active"][0, 3] = 1.0
        np.testing.assert_array_equal(left, np.where(np.arange(s.width) == 3, False, not said))
    s.model.opt.tolerance = 0.0
    s.w.rows.refresh()


def test_one_rounding_of_each_acceleration_moves_the_gradient_as_the_hessian_does(s, rng):
    a = near(s, rng, 1e4)
    at(s, a)
    before, chosen = s.a["qacc"][: s.nv].copy(), np.arange(s.width) % 3 != 0
    change = call(gradient_change_by_rounding, s.m, s.d, chosen)
    moved = s.a["qacc"][: s.nv] - before
    size = EPS * np.maximum(np.abs(a), np.abs(s.a["qacc_smooth"][: s.nv]))
    assert not moved[:, ~chosen].any() and not change[~chosen].any()
    signs = np.sign(s.a["primal.search"][: s.nv])[:, chosen]
    assert ((np.abs(s.a["primal.search"][: s.nv])[:, chosen] / size[:, chosen] - 1) < EXACT).all()
    assert (signs > 0).any() and (signs < 0).any()
    for lane in np.flatnonzero(chosen):
        p, e = s.problems[lane], s.a["primal.search"][: s.nv, lane]
        expected = np.linalg.norm(p.hessian(a[:, lane]) @ e)
        assert 0.1 * expected < change[lane] < 10 * expected  # of values of 1e-16: one digit


def test_the_change_equals_that_of_the_gradient(s, rng, monkeypatch):
    """Uses rounding errors as large as the differences."""
    monkeypatch.setattr(rounding, "EPS", 1e-6)
    a = near(s, rng, 1e3)
    at(s, a)
    change = call(gradient_change_by_rounding, s.m, s.d, np.ones(s.width, bool))
    e = s.a["primal.search"][: s.nv]
    expected = each(s, a + e, lambda p, x: p.gradient(x)) - each(s, a, lambda p, x: p.gradient(x))
    np.testing.assert_allclose(change, np.linalg.norm(expected, axis=1), rtol=1e-6)
    largest = np.maximum(np.abs(a), np.abs(s.a["qacc_smooth"][: s.nv]))
    np.testing.assert_allclose(np.abs(e), 1e-6 * largest, rtol=EXACT)


def test_the_rounding_bound_is_64_roundings(s, rng):
    a = near(s, rng)
    everyone = np.ones(s.width, bool)
    at(s, a)
    change = call(gradient_change_by_rounding, s.m, s.d, everyone)
    for part, said in ((BELOW, True), (ABOVE, False)):
        at(s, a)
        assert (call(is_rounding, s.m, s.d, part * ROUNDING * change, everyone) == said).all()


def test_a_gradient_is_left_unexplained_far_from_the_minimum_and_not_at_it(s, rng):
    far, zero = np.arange(s.width) % 2 == 0, np.zeros(s.width)
    a = np.where(far, s.best + vectors(s, rng, 0.1), s.best)
    gradient, _ = at(s, a)
    before = s.a["qacc"].copy()
    told = call(is_unexplained, s.m, s.d, gradient, zero + 1.0)
    np.testing.assert_array_equal(told, far)
    # unselected worlds do not change
    np.testing.assert_array_equal(s.a["qacc"][:, ~far], before[:, ~far])
    assert np.abs(s.a["qacc"] - before).max() <= 1e-15 * np.abs(before).max()
    assert not call(is_unexplained, s.m, s.d, gradient, zero).any()  # a gap of 0: nothing is left to gain


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_terms_are_the_absolute_terms_of_the_gradient(cone, rng):
    s = touching(cone)
    a = near(s, rng)
    at(s, a)
    call(is_rounding_of_terms, s.m, s.d)
    terms = s.a["primal.terms"][: s.nv]
    for lane, p in enumerate(s.problems):
        x = a[:, lane]
        dense = np.abs(p.M @ x) + np.abs(p.M @ p.a0) + np.abs(p.J).T @ np.abs(p.force(x))
        assert (terms[:, lane] >= (1 - EXACT) * dense).all()
        assert np.linalg.norm(terms[:, lane]) <= APART * np.linalg.norm(dense)


@pytest.mark.parametrize(("dtype", "eps"), [(np.float64, EPS), (np.float32, EPS32)])
def test_rounding_of_terms_is_per_dof(dtype, eps, rng):
    s = touching(dtype=dtype)
    at(s, near(s, rng))
    call(is_rounding_of_terms, s.m, s.d)
    bound = TERMS * eps * s.a["primal.terms"][: s.nv]
    for part, said in ((BELOW, True), (ABOVE, False), (np.nan, False)):
        s.a["primal.grad"][: s.nv] = BELOW * bound * rng.choice([-1, 1], bound.shape)
        s.a["primal.grad"][3, :-1] = part * bound[3, :-1]
        told = call(is_rounding_of_terms, s.m, s.d)
        np.testing.assert_array_equal(told[:-1], said)
        assert told[-1]
