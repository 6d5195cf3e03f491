"""Start of the iterations: the cheaper of two points, and a point of the line through them."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes.processor import tile_width
from featherlane.engine.model.enums import DISABLE_WARMSTART
from featherlane.engine.solver.primal.problem import evaluate
from featherlane.engine.solver.primal.start import BEYOND, SHORT, start_newton, warm_start
from oracles.uncompiled import call
from scenes.touching import each, near, touching, vectors

SLOPE = 1e-4  # of the step: second derivatives by differences
LINKS = """<mujoco><worldbody><geom type="plane" size="9 9 1"/><body pos="0 0 0.09"><freejoint/><geom size="0.1"/>
<body pos="0 0 0.1"><joint name="hinge" axis="0 1 0"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0"/></body></body>
</worldbody><actuator><motor joint="hinge" gear="3"/></actuator></mujoco>"""
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


@pytest.mark.parametrize("which", [0, 1])
def test_newton_starts_one_newton_step_along_the_line(s, which, rng):
    warm, free = put(s, which, rng), smooth(s)
    call(start_newton, s.m, s.d)
    a = s.a["qacc"][: s.nv].copy()
    belongs(s, a)
    for w, p in enumerate(s.problems):
        x, v = warm[:, w], free[:, w] - warm[:, w]
        step = 1e-6  # of the distance: the slope is linear there, unless a row switches
        low, high = (p.gradient(x + t * v) @ v for t in (-step, step))
        found = (a[:, w] - x) @ v / (v @ v)
        close(a[:, w], x + found * v)
        expected = np.clip(-(low + high) / (high - low) * step, -BEYOND, 1 + BEYOND)
        assert abs(found - (expected if abs(expected) > SHORT else 0.0)) < SLOPE


def test_two_equal_points_are_the_start(s):
    free = s.a["qacc_smooth"][: s.nv].copy()
    s.a["qacc_warmstart"][: s.nv] = free
    call(start_newton, s.m, s.d)
    np.testing.assert_array_equal(s.a["qacc"][: s.nv], free)


def test_a_non_finite_last_acceleration_is_ignored(s):
    s.a["qacc_warmstart"][: s.nv] = np.array([p.minimum() for p in s.problems]).T
    s.a["qacc_warmstart"][:3, 1] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        call(start_newton, s.m, s.d)
    np.testing.assert_array_equal(s.a["qacc"][: s.nv, 1], s.a["qacc_smooth"][: s.nv, 1])


def test_without_warm_starts_it_is_the_acceleration_without_constraints(s, rng):
    put(s, 0, rng)
    flags = s.m.opt_disableflags
    s.m.opt_disableflags = flags | DISABLE_WARMSTART
    call(start_newton, s.m, s.d)
    s.m.opt_disableflags = flags
    np.testing.assert_array_equal(s.a["qacc"], s.a["qacc_smooth"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_do_not_push_need_no_iteration(dtype, rng):
    """The first world stands on the ground, so the tile iterates; the others leave it at 2 m/s."""
    batch = fl.Batch(fl.load(LINKS), tile_width(dtype), dtype=dtype)
    batch.qpos[1:, 2], batch.qvel[1:, 2] = 0.05, 2.0
    control = rng.uniform(-1, 1, (batch.nworld, 10, 1))
    out = batch.rollout(10, control=control, record=("solver_niter", "qacc", "qacc_smooth"))
    data = batch.get_data(1)
    fl.forward(batch.model, data)
    assert data.nefc > 0 and out["solver_niter"][0].min() > 0
    assert (out["solver_niter"][1:] == 0).all()
    np.testing.assert_array_equal(out["qacc"][1:], out["qacc_smooth"][1:])
