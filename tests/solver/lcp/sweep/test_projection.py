"""Projections: the nearest point of a box, a disc and a cone; step lengths of rows."""

import itertools

import numpy as np
import pytest

from featherlane.engine.solver.lcp.sweep import projection
from featherlane.lcp import Problem
from scenes.lcp_records import lane_record

EXACT = 1e-12
FINE = 2e-3  # between points of a grid
# a contact of 3 rows of friction, one of them without a mu; a box row; friction far from its normal
FINDEX = [-1, 0, 0, 0, -1, 0]
MU, ADD = [0.5, 0.8, 0.0, 0.4], [0.1, 0.2, 0.3, 0.05]


@pytest.fixture
def tile(rng):
    """Returns a record of 4 worlds."""
    A = np.diag([2.0, 1.0, 3.0, 1.5, 4.0, 2.5])
    hi, add = [np.inf, *MU[:3], 0.7, MU[3]], [0.0, *ADD[:3], 0.0, ADD[3]]
    p = lane_record(
        *(Problem(A, np.zeros(6), lo=[0, 0, 0, 0, -0.2, 0], hi=hi, findex=FINDEX, add=add) for _ in range(4))
    )
    p.lcp.x.array[...] = rng.standard_normal((6, 4))
    return p


def test_bounds_follow_the_normal_live(tile):
    p, x = tile, tile.lcp.x.array
    for i, k, mu, add in ((1, 0, 0.5, 0.1), (3, 0, 0.0, 0.3), (5, 0, 0.4, 0.05)):
        lo, hi = projection.row_bounds(p, p.lcp.x, i)
        np.testing.assert_allclose(hi, mu * np.abs(x[k]) + add)
        np.testing.assert_allclose(lo, -hi)
        np.testing.assert_allclose(projection.project_box(p, p.lcp.x, i, 9.0 * x[1]), np.clip(9.0 * x[1], lo, hi))
    np.testing.assert_array_equal(projection.project_box(p, p.lcp.x, 4, 9.0 * x[1]), np.clip(9.0 * x[1], -0.2, 0.7))


def test_without_load_there_is_no_friction_at_infinite_mu(tile):
    p, x = tile, tile.lcp.x.array
    x[0, :2], p.lcp.hi.array[1] = (0.0, -0.0), np.inf
    with np.errstate(invalid="ignore"):  # a kernel computes both sides of a `where`, here inf * 0
        lo, hi = projection.row_bounds(p, p.lcp.x, 1)
    np.testing.assert_array_equal(hi, [0.1, 0.1, np.inf, np.inf])
    np.testing.assert_array_equal(lo, -hi)


def test_rows_behind_their_normal_are_a_cone(tile):
    p = tile
    assert [projection.friction_count(p, k) for k in range(6)] == [3, 0, 0, 0, 0, 0]
    assert [projection.in_cone(p, i) for i in range(6)] == [False, True, True, True, False, False]
    p.lcp.hi.array[1] = 1e12
    assert projection.mu_of(p, 1)[0] == projection.ROUGHEST and projection.mu_of(p, 2)[0] == 0.8


def test_the_tip_of_a_cone_and_lengths_across_it(tile):
    p, x = tile, tile.lcp.x.array
    np.testing.assert_allclose(projection.cone_offset(p, 0, 3), min(0.1 / 0.5, 0.2 / 0.8))
    p.lcp.add.array[1] = 9.0
    np.testing.assert_allclose(projection.cone_offset(p, 0, 3), 0.2 / 0.8)
    length = projection.length_across(p, p.lcp.x, 0, 3)
    np.testing.assert_allclose(length, np.hypot(x[1] / 0.5, x[2] / 0.8))
    p.lcp.hi.array[1:4] = 0.0
    assert not projection.cone_offset(p, 0, 3).any() and not projection.length_across(p, p.lcp.x, 0, 3).any()


def test_friction_is_projected_on_the_disc(tile, rng):
    """Scaled in s = x / mu if outside; a row without mu is clipped to its bounds."""
    p, a = tile, 0.2
    for _ in range(10):
        u = p.lcp.target.array[...] = rng.standard_normal((6, 4))
        u = u.copy()
        normal = p.lcp.x[0]
        projection.project_disc(p, p.lcp.target, 0, 3, normal)
        radius, s = np.maximum(normal, 0.0) + a, u[1:3] / np.array([[0.5], [0.8]])
        s = s * np.minimum(1.0, radius / np.linalg.norm(s, axis=0))
        np.testing.assert_allclose(p.lcp.target.array[1:3], s * [[0.5], [0.8]], atol=EXACT)
        np.testing.assert_allclose(p.lcp.target.array[3], np.clip(u[3], -0.3, 0.3))
        np.testing.assert_array_equal(p.lcp.target.array[[0, 4, 5]], u[[0, 4, 5]])
        p.lcp.x.array[0] = rng.standard_normal(4)


@pytest.mark.parametrize("a", [0.0, 0.4])
def test_the_nearest_point_of_a_cone(a):
    """No point of a fine grid over |s| <= n + a, n >= 0 is nearer."""
    n, s = np.meshgrid(np.arange(0.0, 3.0, FINE), np.arange(0.0, 3.0, FINE), indexing="ij")
    inside = s <= n + a
    n, s = n[inside], s[inside]
    for x, length in itertools.product((-2.0, -0.7, -0.1, 0.0, 0.3, 1.2), (0.0, 0.2, 0.5, 1.0, 2.2)):
        m, r = projection.nearest_on_cone(np.float64(x), np.float64(length), np.float64(a))
        assert m >= 0.0 and 0.0 <= r <= m + a + EXACT
        best = np.sqrt(((n - x) ** 2 + (s - length) ** 2).min())
        assert np.hypot(m - x, r - length) <= best + EXACT
        assert best - np.hypot(m - x, r - length) <= 2 * FINE


def test_a_cone_is_projected_on_in_the_metric_of_s(tile, rng):
    p = tile
    u = p.lcp.target.array[...] = 2.0 * rng.standard_normal((6, 4))
    u = u.copy()
    projection.project_cone(p, p.lcp.target, 0, 3)
    for lane in range(4):
        s = u[1:3, lane] / [0.5, 0.8]
        n, r = projection.nearest_on_cone(u[0, lane], np.linalg.norm(s), 0.2)
        np.testing.assert_allclose(p.lcp.target.array[0, lane], n)
        np.testing.assert_allclose(p.lcp.target.array[1:3, lane], s / np.linalg.norm(s) * r * [0.5, 0.8], atol=EXACT)
        np.testing.assert_allclose(p.lcp.target.array[3, lane], np.clip(u[3, lane], -0.3, 0.3))


def test_steps_are_the_inverse_diagonal(tile):
    p = tile
    projection.set_steps(p, 0)
    np.testing.assert_allclose(p.lcp.step.array[:, 0], 1.0 / np.array([2.0, 1.0, 3.0, 1.5, 4.0, 2.5]))
    assert (projection.largest_diagonal(p) == 4.0).all()
    p.lcp.diag.array[[0, 4]] = 0.0  # a force without effect: slow decay if nothing limits it, else immediate
    projection.set_steps(p, 0)
    np.testing.assert_allclose(p.lcp.step.array[[0, 4], 0], [1 / 3.0, 1 / (3.0 * projection.FLOOR)])
    for most, expected in ((0.5, 0.5), (0.0, 1.0)):
        p.lcp.diag.array[...] = most
        assert (projection.largest_diagonal(p) == expected).all()


def test_steps_on_a_cone_are_equal_in_the_metric_of_s(tile):
    """Across: mu_i^2 / sum mu_j^2 A_jj; for whole cones the largest mu_i^2 A_ii, with mu = 1 of the normal."""
    p, A = tile, np.array([2.0, 1.0, 3.0, 1.5, 4.0, 2.5])
    square = np.array([0.25, 0.64])
    projection.set_steps(p, 1)
    np.testing.assert_allclose(p.lcp.step.array[1:3, 0], square / (square @ A[1:3]))
    np.testing.assert_allclose(p.lcp.step.array[[0, 3, 4, 5], 0], 1.0 / A[[0, 3, 4, 5]])
    projection.set_cone_steps(p)
    most = max(2.0, *(square * A[1:3]))
    np.testing.assert_allclose(p.lcp.step.array[:3, 0], np.array([1.0, *square]) / most)
    np.testing.assert_allclose(p.lcp.step.array[3:, 0], 1.0 / A[3:])
    p.lcp.diag.array[2] = 30.0
    projection.set_cone_steps(p)
    np.testing.assert_allclose(p.lcp.step.array[:3, 0], np.array([1.0, *square]) / (0.64 * 30.0))
