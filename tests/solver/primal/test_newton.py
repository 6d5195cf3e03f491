"""Newton's method: it converges to the minimum, and reports when it does not."""

import numpy as np
import pytest

from featherlane.engine.model import load
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.solver.hessian.equation import select_factorization
from featherlane.engine.solver.primal import newton as steps
from featherlane.engine.solver.primal.newton import newton
from oracles.convex import Convex
from oracles.uncompiled import call, record
from scenes.touching import each, touching

OPTIMAL = 1e-12  # relative to the accelerations: rounding times the condition of H
EXACT = 1e-9  # relative: an equation whose matrix has a condition number of 1e5
SINGLE = 1e-3  # relative: float32 through the condition of H, about 1e4
SOLVED = 1e-9  # relative to the forces: the final gradient in float64
JAMMED = """<mujoco><option timestep=".002" gravity="0 0 0"/><worldbody>
  <geom type="box" size=".2 .05 .2" pos="0 .1 0"/><geom type="box" size=".2 .05 .2" pos="0 -.1 0"/>
  <body><joint name="x" type="slide" axis="1 0 0" damping="1"/>
    <joint type="hinge" axis="0 0 1" armature=".01" damping=".1"/><geom size=".1" mass="1"/></body></worldbody>
  <actuator><motor joint="x"/></actuator></mujoco>"""


def ready(cone, **options):
    s = touching(cone, **options)
    call(select_factorization, s.m, s.d)
    return s


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_it_converges_and_does_not_change_inactive_worlds(cone):
    s = ready(cone)
    s.a["active"][0, 2] = 0.0
    call(newton, s.m, s.d)
    part, qacc = np.arange(s.width) != 2, s.a["qacc"][: s.nv]
    best = np.array([p.minimum() for p in s.problems]).T
    assert np.abs(qacc - best)[:, part].max() <= OPTIMAL * 100 * np.abs(best).max()
    pull = each(s, qacc, lambda p, x: p.J.T @ p.force(x)).T
    assert np.abs(s.a["qfrc_constraint"][: s.nv] - pull)[:, part].max() <= SOLVED * np.abs(pull).max()
    niter = s.a["solver_niter"][0]
    assert niter[2] == 0 and (niter[part] > 1).all() and (niter < 25).all()
    np.testing.assert_array_equal(qacc[:, 2], s.a["qacc_smooth"][: s.nv, 2])
    trace = np.array([np.trace(p.M) for p in s.problems])
    residual = each(s, qacc, lambda p, x: np.linalg.norm(p.gradient(x))) / trace
    assert np.abs(s.a["solver_residual"][0] - residual)[part].max() <= 1e-8
    assert (s.a["solver_gap"][0] >= 0).all() and s.a["solver_gap"][0][part].max() < 1e-12
    assert not s.a["warning"][3].any()


def test_it_starts_at_the_last_acceleration_and_ends_there_if_it_is_the_minimum():
    s = ready("pyramidal")
    s.a["qacc_warmstart"][: s.nv] = np.array([p.minimum() for p in s.problems]).T
    s.model.opt.tolerance = 1e-8
    s.w.rows.refresh()
    call(newton, s.m, s.d)
    assert not s.a["solver_niter"].any() and not s.a["warning"][3].any()
    np.testing.assert_array_equal(s.a["qacc"], s.a["qacc_warmstart"])


def test_an_exceeded_iteration_limit_is_reported():
    s = ready("pyramidal", iterations=2)
    call(newton, s.m, s.d)
    far = s.a["solver_niter"][0] == 2
    assert far[:-1].all()
    np.testing.assert_array_equal(s.a["warning"][3], far)


@pytest.mark.parametrize("full", [0.0, 0.5, 1e9])
def test_full_steps_reach_the_minimum(full, monkeypatch):
    """A step that increases the cost is the last one."""
    monkeypatch.setattr(steps, "FULL", full)
    s = ready("pyramidal")
    call(newton, s.m, s.d)
    best = np.array([p.minimum() for p in s.problems]).T
    assert np.abs(s.a["qacc"][: s.nv] - best).max() <= OPTIMAL * 100 * np.abs(best).max()
    assert (s.a["solver_niter"][0] < 25).all() and not s.a["warning"][3].any()


def test_its_history_contains_each_iterate(rng):
    s = ready("elliptic")
    s.d.want_history, s.d.nrecord = 1, 30
    table = record(s.width, **{name: np.zeros((30, s.width)) for name in ("cost", "gradient", "improvement", "step")})
    s.d.stat_cost, s.d.stat_gradient, s.d.stat_improvement, s.d.stat_step = (
        table.cost,
        table.gradient,
        table.improvement,
        table.step,
    )
    call(newton, s.m, s.d)
    cost, gain = table.cost.array, table.improvement.array
    trace, niter = np.array([np.trace(p.M) for p in s.problems]), s.a["solver_niter"][0].astype(int)
    smooth = s.a["qacc_smooth"][: s.nv]
    start = each(s, smooth, Convex.cost) / trace
    assert np.abs(cost[0] - start).max() <= EXACT * start.max()
    slopes = each(s, smooth, lambda p, x: np.linalg.norm(p.gradient(x))) / trace
    assert np.abs(table.gradient.array[0] - slopes).max() <= EXACT * slopes.max()
    assert not gain[0].any() and not table.step.array[0].any()
    for lane, n in enumerate(niter):
        assert np.abs(cost[:n, lane] - cost[1 : n + 1, lane] - gain[1 : n + 1, lane]).max() <= EXACT * start[lane]
        assert (gain[1 : n - 2, lane] > 0).all() and (table.step.array[1 : n + 1, lane] > 0).all()


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_float32_stops_without_row_switches(cone):
    s = ready(cone, width=16, dtype=np.float32, tolerance=1e-8)
    call(newton, s.m, s.d)
    best = s.problems[0].minimum()
    assert s.a["warning"][3, 0] == 0 and 2 < s.a["solver_niter"][0, 0] < 20
    assert np.abs(s.a["qacc"][: s.nv, 0] - best).max() <= SINGLE * np.abs(best).max()


def test_float32_stops_with_alternating_row_switches(monkeypatch):
    """Disables the test for exact steps."""
    monkeypatch.setattr(steps, "EXACT_FALL", 0.0)
    monkeypatch.setattr(steps, "line_rounding", lambda m, d, reach: np.zeros(1, np.float32))
    s = ready("pyramidal", width=16, dtype=np.float32, tolerance=1e-12)
    call(newton, s.m, s.d)
    best = s.problems[0].minimum()
    assert s.a["warning"][3, 0] == 0 and 2 < s.a["solver_niter"][0, 0] < 20
    assert np.abs(s.a["qacc"][: s.nv, 0] - best).max() <= SINGLE * np.abs(best).max()


def test_float32_stops_with_opposing_contacts():
    """Between two walls: their forces are a thousand times the force on the ball, and so is the rounding."""
    model = load(JAMMED)
    count = {}
    for dtype in ("float64", "float32"):
        batch, rng, total = Batch(model, 16, dtype=dtype), np.random.default_rng(0), 0
        for _ in range(40):
            batch.ctrl = rng.choice([-1, 1], batch.ctrl.shape) * rng.uniform(0.5, 1, batch.ctrl.shape)
            batch.step()
            total += batch.solver_niter.sum()
        assert (batch.ncon == 2).all()
        assert batch.status["not_converged"].sum() == 0
        count[dtype] = total
    assert count["float32"] <= count["float64"] + 40 * 16


def test_a_non_finite_world_is_counted_if_active():
    """A split tile is solved in parts: each part counted the iterations of the others."""
    s = ready("pyramidal")
    s.a["qfrc_smooth"][0, 1:3] = np.inf
    s.a["active"][0, 2] = 0.0
    with np.errstate(all="ignore"):
        call(newton, s.m, s.d)
    assert s.a["warning"][3, 1] == 1 and s.a["warning"][3, 2] == 0
