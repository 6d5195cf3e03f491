"""The line search: the slope is the cost's, and its root is found for any active-set changes on the line."""

from types import SimpleNamespace

import numpy as np
import pytest

from featherlane.engine.solver.primal import line_search as room
from featherlane.engine.solver.primal.line_search import (
    bounded_row_rounding,
    cost_slope,
    line_rounding,
    line_search,
    line_terms,
    step_length,
)
from oracles.uncompiled import call, record
from scenes.touching import each, go_along, go_to, near, touching, vectors

EXACT = 1e-10  # relative: sums of a hundred terms
FOUND = 1e-9  # relative: of the slope at the start


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def s(request):
    return touching(request.param)


def line(s, rng, size=5.0):
    """Returns a descent line: (start, direction, q1, q2)."""
    a, p = near(s, rng), vectors(s, rng, size)
    uphill = (each(s, a, lambda q, x: q.gradient(x)).T * p).sum(0) > 0
    p = np.where(uphill, -p, p)
    go_to(s, a)
    go_along(s, p)
    return a, p, *call(line_terms, s.m, s.d)


def slopes(s, a, p, length):
    return np.array([q.gradient(x + t * y) @ y for q, x, y, t in zip(s.problems, a.T, p.T, length, strict=True)])


def test_the_slope_equals_that_of_the_cost(s, rng):
    a, p, q1, q2, squared = line(s, rng)
    np.testing.assert_allclose(squared, (p * p).sum(0), rtol=EXACT)
    for t in (0.0, 0.02, 1.0):
        g, h = call(cost_slope, s.m, s.d, t, q1, q2)
        expected = slopes(s, a, p, np.full(s.width, t))
        assert np.abs(g - expected).max() <= EXACT * np.abs(expected).max()
        bend = np.array(
            [y @ q.hessian(x + t * y) @ y for q, x, y in zip(s.problems, a.T, p.T, strict=True)],
        )
        assert np.abs(h - bend).max() <= EXACT * np.abs(bend).max()


@pytest.mark.parametrize("size", [0.01, 5.0, 1e3])
def test_the_root_equals_the_definition(s, size, rng):
    """An inactive world, or one at its minimum, has step length 0."""
    a, p, q1, q2, _ = line(s, rng, size)
    live = np.arange(s.width) != 2
    t = call(line_search, s.m, s.d, q1, q2, np.zeros(s.width), live)
    start, end = (np.abs(slopes(s, a, p, length)) for length in (np.zeros(s.width), t))
    assert t[2] == 0.0 and (t[live] > 0).all()
    assert (end[live] <= FOUND * start[live]).all()


def test_a_sufficient_decrease_ends_the_search(s, rng):
    a, p, q1, q2, _ = line(s, rng)
    first = np.abs(slopes(s, a, p, np.ones(s.width)))
    t = call(line_search, s.m, s.d, q1, q2, first * 1.001, np.ones(s.width, bool))
    np.testing.assert_array_equal(t, 1.0)
    t = call(line_search, s.m, s.d, q1, q2, first * 0.5, np.ones(s.width, bool))
    assert (t != 1.0).all()
    assert (np.abs(slopes(s, a, p, t)) <= 0.5 * first * (1 + EXACT)).all()


def test_a_full_step_is_taken_where_its_slope_is_good(s, rng):
    a, p, q1, q2, _ = line(s, rng)
    first, live = np.abs(slopes(s, a, p, np.ones(s.width))), np.arange(s.width) != 1
    good, none = first * np.where(np.arange(s.width) % 2, 0.999, 1.001), np.zeros(s.width)
    t, whole = (call(step_length, s.m, s.d, q1, q2, none, g, live) for g in (good, none))
    np.testing.assert_array_equal(t, np.where(first <= good, live * 1.0, whole))
    np.testing.assert_array_equal(whole, call(line_search, s.m, s.d, q1, q2, none, live))
    assert (whole[live] != 1).all()


def counted(monkeypatch):
    """Returns a list of the slopes that the search evaluates from now on."""
    seen, whole = [], room.cost_slope
    monkeypatch.setattr(room, "cost_slope", lambda *given, **named: (seen.append(1), whole(*given, **named))[1])
    return seen


def test_few_evaluations_suffice(s, monkeypatch, rng):
    _, _, q1, q2, _ = line(s, rng)
    start, seen = np.abs(call(cost_slope, s.m, s.d, 0.0, q1, q2)[0]), counted(monkeypatch)
    call(line_search, s.m, s.d, q1, q2, 1e-6 * start, np.ones(s.width, bool))
    assert len(seen) <= 12
    seen.clear()
    # rounding ends it
    call(line_search, s.m, s.d, q1, q2, np.zeros(s.width), np.ones(s.width, bool))
    assert len(seen) <= 15


def test_a_parabola_takes_two_evaluations(monkeypatch):
    m, d = bent(np.ones(1), np.full(1, 9.0), np.zeros(1), 10)
    seen = counted(monkeypatch)
    t = call(line_search, m, d, np.full(1, -3.0), np.full(1, 4.0), np.full(1, 1e-9), np.ones(1, bool))
    assert t[0] == 0.75 and len(seen) == 2


def bent(D, x, v, evaluations):
    """Returns a record of one-sided rows of one dof, one world: a piecewise linear slope, on a line of curvature 1."""
    n, zero = len(D), np.zeros(1)
    d = record(
        1,
        nfrictionrow=[0],
        ndofrow=[n],
        nrow=[n],
        row_D=D,
        primal={"row_x": x, "row_v": v, "nslot": [0]},
    )
    d.row_lo, d.row_hi = record(1, x=zero.repeat(n)).x, record(1, x=np.full(n, 1e30)).x
    d.primal.Ma = d.primal.search = d.qfrc_constraint = d.qfrc_smooth = record(1, x=zero).x
    m = record(1, nv=1, opt_ls_iterations=evaluations, opt_cone=0, opt_integrator=0, opt_contact_model=0)
    return m, d


@pytest.mark.parametrize(("count", "evaluations"), [(3, 100), (40, 4)])
def test_few_evaluations_end_below_the_start(count, evaluations, rng):
    """Rows of very different stiffness: more pieces than evaluations, or fewer."""
    for _ in range(20):
        D, x = 10.0 ** rng.uniform(-3, 8, count), rng.uniform(0, 2, count)
        m, d = bent(D, x, np.full(count, -1.0), evaluations)
        q1, q2 = np.full(1, -3.0), np.ones(1)
        t = call(line_search, m, d, q1, q2, np.zeros(1), np.ones(1, bool))

        def cost(u, D=D, x=x):
            return -3.0 * u + 0.5 * u * u + 0.5 * (D * np.minimum(x - u, 0) ** 2).sum()

        assert t[0] > 0 and cost(t[0]) < 0
        scan = np.linspace(0, 3, 3001)
        assert cost(t[0]) <= min(map(cost, scan)) * (0.5 if evaluations < count else 1 - 1e-9)


def test_the_rounding_of_a_bounded_row_is_that_of_its_larger_force():
    x = np.array([-3.0, -0.25, 0.25, 3.0])
    size = call(bounded_row_rounding, SimpleNamespace(D=2.0, lo=-1.0, hi=1.0), x, -0.5, 1.0)
    np.testing.assert_allclose(
        size, 0.5 * np.maximum(np.clip(2 * np.abs(x), 0, 1), np.clip(np.abs(2 * (x - 0.5)), 0, 1))
    )


def test_rounding_of_a_slope_is_of_the_size_of_its_terms(s, rng):
    """At most as large as the last bits of the largest term: the search stops there, and not before."""
    a, p, *_ = line(s, rng)
    s.a["qfrc_constraint"][: s.nv] = each(s, a, lambda q, x: q.J.T @ q.force(x)).T
    f0 = np.array([q.M @ q.a0 for q in s.problems]).T
    dofs = (np.abs(p) * (np.abs(s.a["primal.Ma"][: s.nv]) + np.abs(f0) + np.abs(s.a["qfrc_constraint"][: s.nv]))).sum(0)
    for reach in (0.0, 1.0):
        rows = np.zeros(s.width)
        for lane, q in enumerate(s.problems):
            x, v = q.J @ a[:, lane] - q.aref, q.J @ p[:, lane]
            single = q.type <= 4
            f = np.maximum(*(np.abs(np.clip(-q.D * y, q.lo, q.hi)) for y in (x, x + reach * v)))
            rows[lane] = (np.abs(v) * f)[single].sum()
        size = call(line_rounding, s.m, s.d, reach) / 1.1e-16
        assert (size >= (dofs + rows) * (1 - EXACT)).all()
        assert abs(size[-1] - dofs[-1] - rows[-1]) <= EXACT * size[-1]  # no contact there
        assert (size <= 1e6 * (dofs + rows)).all()


def test_an_ascending_line_takes_no_step_and_ends_early(monkeypatch):
    """Rounding may reverse a direction: bisection would then use all of its iterations."""
    m, d = bent(np.ones(1), np.full(1, 9.0), np.zeros(1), 50)
    seen = counted(monkeypatch)
    t = call(line_search, m, d, np.full(1, 0.3), np.full(1, 4.0), np.full(1, 1e-9), np.ones(1, bool))
    assert t[0] == 0.0 and len(seen) == 10


def test_a_slightly_ascending_line_ends_at_its_start():
    m, d = bent(np.ones(1), np.full(1, 9.0), np.zeros(1), 50)
    t = call(line_search, m, d, np.full(1, 1e-10), np.full(1, 4.0), np.full(1, 1e-9), np.ones(1, bool))
    assert 0.0 < t[0] < 1e-9


@pytest.mark.parametrize("root", [1e-4, 1e-6])
def test_a_root_next_to_the_start_is_found(root, monkeypatch):
    """Beyond the root, each further row is stiffer, so that Newton's return takes many iterations."""
    bends = root * 2.0 ** np.arange(1, 16)
    m, d = bent(2.0 ** np.arange(15), bends, -np.ones(15), 50)
    seen = counted(monkeypatch)
    t = call(line_search, m, d, np.full(1, -root), np.ones(1), np.zeros(1), np.ones(1, bool))
    np.testing.assert_allclose(t, root, rtol=1e-9)
    assert len(seen) > 10
