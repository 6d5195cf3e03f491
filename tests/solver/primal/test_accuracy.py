"""Whether an acceleration with unbalanced row forces is accurate, compared with the minimum in long double."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.solver.primal.accuracy import (
    SLACK,
    force_from_acceleration,
    is_accurate,
    norm_from_acceleration,
    recompute_rows,
    store_opposing_forces,
)
from featherlane.engine.solver.primal.line_search import FAR
from featherlane.engine.solver.primal.problem import evaluate
from featherlane.engine.solver.primal.rounding import EPS, SMALL, TERMS
from oracles.precise import Precise
from oracles.uncompiled import call
from sampling import in_ci
from scenes.held import CARRIED, FINGERS, JAMMED, PUCK, TIED
from scenes.states import kicked
from scenes.touching import each, go_along, go_to, near, touching, vectors

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="long doubles are doubles here: nothing tells what is right"
)
EXACT = 1e-10  # relative: sums of a hundred terms
BELOW, ABOVE = 0.999, 1.001
NWORLD, STEPS = 24, 30
LIMIT = {"float64": 1e-6, "float32": 1e-4}  # of the forces
ROUNDED = 16.0  # rounding errors of each term of a row


# ---- kernel by kernel ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_recomputed_rows_belong_to_the_acceleration(cone, rng):
    s = touching(cone)
    chosen, names = np.arange(s.width) % 3 != 0, ("primal.con_y", "primal.row_x", "primal.Ma")
    a = near(s, rng)
    go_to(s, a)
    expected = {name: s.a[name].copy() for name in names}
    for name in names:
        s.a[name][...] += 1.0
    call(recompute_rows, s.m, s.d, chosen)
    counts = {
        "primal.con_y": 3 * s.a["ncon_slot"][0],
        "primal.row_x": s.a["nrow"][0],
        "primal.Ma": s.nv,
    }
    for name, n in counts.items():
        assert n > 0
        np.testing.assert_array_equal(s.a[name][:n, chosen], expected[name][:n, chosen])
        np.testing.assert_array_equal(s.a[name][:n, ~chosen], expected[name][:n, ~chosen] + 1.0)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contested_acceleration_is_row_force_over_stiffness(cone, rng):
    s = touching(cone)
    a = near(s, rng)
    go_to(s, a)
    call(store_opposing_forces, s.m, s.d)

    def contested(p, x):
        stiff = np.diag(p.M) + (p.J**2).T @ p.D
        return np.diag(p.M) * (np.abs(p.J).T @ np.abs(p.force(x))) / stiff

    found, expected = s.a["primal.contested"][: s.nv].T, each(s, a, contested)
    np.testing.assert_array_equal(found == 0, expected == 0)
    ratio = found[expected > 0] / expected[expected > 0]
    assert ratio.min() > 0.1 and ratio.max() < 10


def test_the_force_from_the_acceleration_equals_that_of_the_rows_at_the_minimum():
    s = touching()
    best = np.array([p.minimum() for p in s.problems]).T
    go_to(s, best)
    call(evaluate, s.m, s.d)
    rows = s.a["qfrc_constraint"][: s.nv].copy()
    chosen = np.arange(s.width) % 2 == 0
    s.a["qfrc_constraint"][: s.nv] = 7.0
    call(force_from_acceleration, s.m, s.d, chosen)
    found = s.a["qfrc_constraint"][: s.nv]
    assert np.abs(found - rows)[:, chosen].max() <= EXACT * np.abs(rows).max()
    assert (found[:, ~chosen] == 7.0).all()
    size = each(s, best, lambda p, x: max(np.linalg.norm(p.M @ p.a0), np.linalg.norm(p.J.T @ p.force(x))))
    np.testing.assert_allclose(call(norm_from_acceleration, s.m, s.d), size, rtol=1e-9)


def test_a_small_next_step_marks_a_solution_as_accurate(rng):
    """Tests each dof separately; not a zero direction, nor if rounding of the gradient hides the forces."""
    s = touching()
    best = np.array([p.minimum() for p in s.problems]).T
    go_to(s, best)
    call(store_opposing_forces, s.m, s.d)
    forces, zero, one = call(norm_from_acceleration, s.m, s.d), np.zeros(s.width), np.ones(s.width)
    bound = SMALL * forces + TERMS * EPS * s.a["primal.contested"][: s.nv]
    for part, right in ((BELOW, True), (ABOVE, False), (np.nan, False)):
        go_along(s, 1e-12 * vectors(s, rng))
        s.a["primal.Mv"][: s.nv] = BELOW * bound * rng.choice([-1, 1], bound.shape)
        s.a["primal.Mv"][3] = part * bound[3]
        np.testing.assert_array_equal(call(is_accurate, s.m, s.d, zero, one, one, zero), (right * one, right * one))
    s.a["primal.Mv"][: s.nv] = 0.0
    for gradient, promise, fall, right in (
        (BELOW / EPS * forces, one, one, True),
        (ABOVE / EPS * forces, one, one, False),
        (zero, FAR * one, one, False),
        (zero, FAR * one, zero, True),  # a gradient of zero has no direction
    ):
        np.testing.assert_array_equal(call(is_accurate, s.m, s.d, gradient, promise, fall, zero)[0], right)


def test_a_row_that_switches_along_the_step_leaves_accuracy_unknown(rng):
    s = touching()
    best = np.array([p.minimum() for p in s.problems]).T
    go_to(s, best)
    call(store_opposing_forces, s.m, s.d)
    go_along(s, 1e4 * vectors(s, rng))
    s.a["primal.Mv"][: s.nv] = 0.0
    zero, one = np.zeros(s.width), np.ones(s.width)
    right, sure = call(is_accurate, s.m, s.d, zero, one, one, zero)
    assert not right[:-1].any() and not sure[:-1].any()


def test_accuracy_accounts_for_rounding_in_the_factor():
    s = touching()
    best = np.array([p.minimum() for p in s.problems]).T
    go_to(s, best)
    stiffest = call(store_opposing_forces, s.m, s.d)
    stiff = each(s, best, lambda p, x: ((p.J**2).T @ p.D / np.diag(p.M)).max())
    assert (stiffest > 0.1 * stiff).all() and (stiffest < 10 * (1 + stiff)).all()
    forces, zero, one = call(norm_from_acceleration, s.m, s.d), np.zeros(s.width), np.ones(s.width)
    go_along(s, np.zeros((s.nv, s.width)))
    s.a["primal.Mv"][: s.nv] = 0.1 * SMALL * forces
    for times, expected in ((0.5, True), (20.0, False)):
        stiffness = (times * 10 - 1) / (SLACK * EPS) * one
        right, sure = call(is_accurate, s.m, s.d, zero, one, one, stiffness)
        assert right.all()
        np.testing.assert_array_equal(sure, expected)


# ---- steps ---------------------------------------------------------------------------------------------------------
def moved(xml, cone, dtype, spread):
    """Yields (model, its worlds after each step of random controls)."""
    model, rng = fl.load(xml.format(cone=cone)), np.random.default_rng(0)
    batch = fl.Batch(model, NWORLD, nthread=1, dtype=dtype)
    for w in range(NWORLD):
        batch.qpos[w], qvel = kicked(model, rng, spread)
        batch.qvel[w] = 0.1 * qvel
    for _ in range(STEPS):
        batch.ctrl[:] = rng.uniform(-1, 1, (NWORLD, model.nu))
        yield model, batch
        batch.step()


def error(model, state, dtype):
    """Returns (error of one world's acceleration and force, over the limit; gradient over forces; reported?)."""
    one = fl.Batch(model, 1, nthread=1, dtype=dtype)
    for name in ("qacc", "qfrc_constraint", "M"):
        one.bind(name)
    fl.set_state(model, one, state[None], fl.State.INTEGRATION)
    one.forward()
    ((workspace,),) = one.runner.plans.workspaces.values()  # rows in the batch's precision: a `Data` has float64 only
    problem = Precise(model, workspace.arrays)
    best = problem.minimum(one.qacc[0])
    net = problem.net(best)
    size = np.sqrt(max(problem.f0 @ problem.f0, net @ net))
    allowed = LIMIT[dtype] * size + ROUNDED * problem.rounding(best, np.finfo(dtype).eps)
    errors = [np.abs(x - net) / allowed for x in (problem.net(one.qacc[0]), one.qfrc_constraint[0])]
    gradient = np.linalg.norm(workspace.arrays["primal.grad"][: model.nv, 0].astype(float)) / float(size)
    return float(np.max(errors)), gradient, one.status["not_converged"][0]


@pytest.mark.parametrize(
    ("xml", "spread", "dtype", "cone"),
    [
        (FINGERS, 0.02, "float64", "elliptic"),
        in_ci(FINGERS, 0.02, "float64", "pyramidal"),
        in_ci(CARRIED, 0.02, "float64", "elliptic"),
        (CARRIED, 0.02, "float64", "pyramidal"),
        (PUCK, 1e-4, "float32", "elliptic"),
        in_ci(PUCK, 1e-4, "float32", "pyramidal"),
        in_ci(JAMMED, 1e-4, "float32", "elliptic"),
        (JAMMED, 1e-4, "float32", "pyramidal"),
    ],
)
def test_acceleration_and_force_are_accurate_despite_unbalanced_rows(xml, spread, dtype, cone):
    unbalanced = 0
    for k, (model, batch) in enumerate(moved(xml, cone, dtype, spread)):
        for state in fl.get_state(model, batch, fl.State.INTEGRATION)[k % 2 :: NWORLD if k % 10 else 2]:
            wrong, gradient, told = error(model, state, dtype)
            assert wrong < 1 and not told
            unbalanced += gradient > 2 * LIMIT[dtype]
    assert unbalanced > 5 and batch.status["not_converged"].sum() == 0


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_unknown_accuracy_in_float32_is_reported_and_the_motion_is_correct(cone):
    """Rows end at 1e-5 m/s^2, which is 5e9 N; the step uses the acceleration, which is accurate."""
    last = {}
    for dtype in ("float64", "float32"):
        *_, (_, batch) = moved(FINGERS, cone, dtype, 0.02)
        last[dtype] = np.array(batch.qvel, float)
    assert batch.status["not_converged"].sum() > 0 and batch.nreset.sum() == 0
    # the finger rotates by less than 1 rad/s; rounding alone would give 1e8
    np.testing.assert_allclose(last["float32"], last["float64"], atol=1.0)


def test_a_rope_too_stiff_for_float32_is_accurate_or_reported():
    """Its row has D = 1e15: in float32 the factor of H has lost the directions that the rope leaves free."""
    model, worlds = fl.load(TIED), 256
    batches = {dtype: fl.Batch(model, worlds, nthread=1, dtype=dtype) for dtype in ("float64", "float32")}
    rng = np.random.default_rng(0)
    qpos, qvel = 0.5 * rng.normal(size=(worlds, model.nq)), 30 * rng.normal(size=(worlds, model.nv))
    qpos[:, 0] += 1.2
    for batch in batches.values():
        batch.bind("qacc")
        batch.qpos[:], batch.qvel[:] = qpos, qvel
        batch.forward()
    right, found = (np.array(batch.qacc, float) for batch in batches.values())
    told = batches["float32"].status["not_converged"] > 0
    wrong = np.abs(found - right).max(axis=1) > 1e-3 * np.abs(right).max(axis=1)
    assert batches["float64"].status["not_converged"].sum() == 0
    assert wrong.sum() > 50 and not (wrong & ~told).any()


def test_a_step_of_length_zero_ends_the_refinement():
    """It would repeat until the limit: 69 % of these solves took more than 20 iterations, with the same result."""
    niter = [np.array(batch.solver_niter) for _, batch in moved(CARRIED, "pyramidal", "float32", 0.02)]
    assert 0.2 < np.mean(np.array(niter[1:]) > 20) < 0.5


def test_accuracy_of_a_world_does_not_depend_on_the_batch():
    """The other worlds are far from the palm, and need no iterations."""
    model = fl.load(FINGERS.format(cone="pyramidal"))
    batch = fl.Batch(model, 8, nthread=1)
    batch.qvel[:, 0] = np.linspace(-0.1, 0.1, 8)
    batch.qpos[1::2, 0] = 1.5
    alone = [fl.Batch(model, 1, nthread=1) for _ in range(8)]
    for w, one in enumerate(alone):
        one.qpos[0], one.qvel[0] = batch.qpos[w], batch.qvel[w]
    for _ in range(20):
        batch.step()
        for w, one in enumerate(alone):
            one.step()
            np.testing.assert_array_equal(batch.qvel[w], one.qvel[0])
            assert batch.solver_niter[w] == one.solver_niter[0]
            assert batch.solver_residual[w] == one.solver_residual[0]


def test_the_limit_of_iterations_holds_and_its_history_is_whole():
    model = fl.load(FINGERS.format(cone="pyramidal"))
    data = fl.Data(model)
    data.record_solver, data.ctrl[0] = True, 0.5
    fl.forward(model, data)
    needed = data.solver_niter
    assert needed > 1 and data.status["not_converged"] == 0
    assert len(data.solver_history) == needed + 1 and (data.solver_history.cost[1:] > 0).all()
    for n in range(1, needed):
        model.opt.iterations = n
        fl.reset_data(model, data)
        data.ctrl[0] = 0.5
        fl.forward(model, data)
        assert data.solver_niter <= n
