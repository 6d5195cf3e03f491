"""Start of the iterations: the cheaper of two points, and the lowest of the line through them."""

import numpy as np
import pytest

from featherlane.model.enums import DISABLE_WARMSTART, PYRAMIDAL
from featherlane.solver.primal import start
from featherlane.solver.primal.problem import evaluate
from featherlane.solver.primal.start import SHORT, start_lowest, warm_start
from oracles.uncompiled import call
from scenes.touching import each, near, touching, vectors

EXACT = 1e-10  # relative: sums of a hundred terms, with J, D and aref of MuJoCo's


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def s(request):
    return touching(request.param)


def close(a, b):
    assert np.abs(a - b).max() <= EXACT * np.abs(b).max()


def costs(s, points):
    return each(s, points, lambda p, x: p.cost(x))


def smooth(s):
    return np.array([p.a0 for p in s.problems]).T


def put(s, which, rng):
    """Sets previous accelerations: close to the optimum in every other world, far off in the rest."""
    warm = np.array([p.minimum() for p in s.problems]).T + 0.1 * vectors(s, rng)
    warm[:, which::2] = near(s, rng, 1e3)[:, which::2]
    s.a["qacc_warmstart"][: s.nv] = warm
    return warm


def belongs(s, a):
    """Checks that the rows and M a belong to the point."""
    cost, _ = call(evaluate, s.m, s.d)
    close(cost, costs(s, a))
    close(s.a["primal.Ma"][: s.nv].T, each(s, a, lambda p, x: p.M @ x))


@pytest.mark.parametrize("which", [0, 1])
def test_the_cheaper_point_is_taken(s, which, rng):
    warm = put(s, which, rng)
    call(warm_start, s.m, s.d)
    a = s.a["qacc"][: s.nv].copy()
    cheaper = costs(s, warm) < costs(s, smooth(s))
    assert cheaper.any() and not cheaper.all()
    np.testing.assert_array_equal(a[:, cheaper], warm[:, cheaper])
    close(a, np.where(cheaper, warm, smooth(s)))
    belongs(s, a)
    # and the direction to the other one
    close(s.a["primal.search"][: s.nv], np.where(cheaper, smooth(s) - warm, warm - smooth(s)))


@pytest.mark.parametrize("which", [0, 1])
def test_no_point_of_the_line_is_lower(s, which, monkeypatch, rng):
    warm, free = put(s, which, rng), smooth(s)
    call(start_lowest, s.m, s.d)
    cheaper = np.minimum(costs(s, warm), costs(s, free))
    assert (costs(s, s.a["qacc"][: s.nv]) <= cheaper * (1 + EXACT)).all()
    monkeypatch.setattr(start, "EVALUATIONS", 50)
    call(start_lowest, s.m, s.d)
    a = s.a["qacc"][: s.nv].copy()
    if s.m.opt_cone == PYRAMIDAL:
        scan = np.linspace(0, 1, 1001)
        lowest = np.min([costs(s, free + t * (warm - free)) for t in scan], axis=0)
        assert (costs(s, a) <= lowest * (1 + SHORT)).all()
        along = ((a - free) * (warm - free)).sum(0) / ((warm - free) ** 2).sum(0)
        close(a, free + along * (warm - free))
        assert ((along != 0) & (along != 1)).any()
    else:
        close(a, np.where(costs(s, warm) < costs(s, free), warm, free))
    belongs(s, a)


def test_a_non_finite_last_acceleration_is_ignored(s):
    s.a["qacc_warmstart"][: s.nv] = np.array([p.minimum() for p in s.problems]).T
    s.a["qacc_warmstart"][:3, 1] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        call(start_lowest, s.m, s.d)
    np.testing.assert_array_equal(s.a["qacc"][: s.nv, 1], s.a["qacc_smooth"][: s.nv, 1])


def test_an_inactive_world_does_not_change(s, rng):
    put(s, 0, rng)
    s.a["active"][0, 3] = 0.0
    call(warm_start, s.m, s.d)
    before = s.a["qacc"][: s.nv].copy()
    call(start_lowest, s.m, s.d)
    s.a["active"][0, 3] = 1.0
    np.testing.assert_array_equal(s.a["qacc"][: s.nv, 3], before[:, 3])


def test_without_warm_starts_it_is_the_acceleration_without_constraints(s, rng):
    put(s, 0, rng)
    flags = s.m.opt_disableflags
    s.m.opt_disableflags = flags | DISABLE_WARMSTART
    call(start_lowest, s.m, s.d)
    s.m.opt_disableflags = flags
    np.testing.assert_array_equal(s.a["qacc"], s.a["qacc_smooth"])
