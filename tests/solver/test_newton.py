"""Newton's method: the optimum, the Hessian in use, and independence of a world from the batch."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import stage
from featherlane.engine.lanes.processor import tile_width
from featherlane.engine.model import bundled, load
from featherlane.engine.model.bundle import resolve_name
from featherlane.engine.simulation.step.forward import forward, step
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian.entries.pattern import BLOCKS, PATHS
from featherlane.engine.solver.hessian.equation import assemble_hessian
from oracles.efc import efc
from oracles.hessians import dense_hessian

OPTIMAL = 1e-9  # relative: the gradient's rounding after an exact last step
PARITY = 1e-8  # relative: difference of two solvers' steps at tolerance 0
SAME = 1e-10  # relative: one optimum from two starts
EXACT = 1e-12  # relative to the largest entry: sums of some hundred products
# trees that fall on each other: the two bodies of a contact have different coms and lever arms
HEAP = """<mujoco><option timestep="0.005"/><default><geom condim="3" friction="0.7"/></default><worldbody>
  <geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.3"><freejoint/><geom type="capsule" size="0.1" fromto="-0.3 0 0 0.3 0 0"/>
    <body pos="0.4 0 0"><joint name="a" axis="0 1 0"/><geom type="capsule" size="0.06" fromto="0 0 0 0.3 0 0"/></body>
  </body>
  <body pos="0.1 0.05 0.6"><freejoint/><geom type="capsule" size="0.1" fromto="0 -0.3 0 0 0.3 0"/>
    <body pos="0 0.4 0"><joint name="b" axis="1 0 0"/><geom type="capsule" size="0.06" fromto="0 0 0 0 0.3 0"/></body>
  </body>
  <body pos="0.1 0 0.9"><freejoint/><geom size="0.12"/></body>
</worldbody><actuator><motor joint="a" gear="20" ctrlrange="-1 1"/><motor joint="b" gear="20" ctrlrange="-1 1"/>
</actuator></mujoco>"""
MODELS = ("humanoid", "quadruped", HEAP)
STATE = (("qpos", "nq"), ("qvel", "nv"), ("ctrl", "nu"), ("qacc_warmstart", "nv"))


@stage
def assembled(m, d):
    """Assembles the Hessian at the solver's final rows."""
    d.primal.live[0] = 1.0
    assemble_hessian(m, d)


def states(model, n, rng):
    """Returns (qpos, qvel, ctrl) of a motion under random controls, n states apart."""
    w, found = Workspace(model, 1), []
    for k in range(20 * n):
        w.arrays["ctrl"][: model.nu, 0] = rng.uniform(-1, 1, model.nu)
        w.run(step)
        if k % 20 == 19:
            found.append([w.arrays[name][: w.model.size_values()[size], 0].copy() for name, size in STATE])
    return found


def put(w, lane, state):
    for (name, _), value in zip(STATE, state, strict=True):
        w.arrays[name][: value.size, lane] = value


@pytest.fixture(scope="module", params=MODELS, ids=("humanoid", "quadruped", "heap"))
def scene(request):
    model = load(resolve_name(request.param))
    model.opt.tolerance = 0
    return model, states(model, 16, np.random.default_rng(5))


def dense_inertia(w):
    """Returns M (nv, nv) from its rows."""
    model, M = w.model, np.zeros((w.model.nv, w.model.nv))
    for i in range(model.nv):
        at = slice(model.M_rowadr[i], model.M_rowadr[i] + model.M_rownnz[i])
        M[i, model.M_colind[at]] = w.arrays["M"][at, 0]
    return M + np.tril(M, -1).T


def relative(a, b):
    return np.abs(a - b).max(initial=0) / max(1.0, np.abs(b).max(initial=0))


def test_forces_and_acceleration_satisfy_the_equation_of_motion(scene):
    model, found = scene
    w = Workspace(model, 1)
    touched = 0
    for state in found:
        put(w, 0, state)
        w.run(forward)
        rows = efc(model, w.arrays)
        touched += rows.nefc
        x = rows.J @ w.arrays["qacc"][: model.nv, 0] - rows.aref
        lo = np.where(rows.type == 1, -rows.frictionloss, 0.0)
        hi = np.where(rows.type == 1, rows.frictionloss, np.inf)
        force = np.clip(-rows.D * x, lo, hi)
        total = w.arrays["qfrc_smooth"][: model.nv, 0] + rows.J.T @ force
        assert relative(dense_inertia(w) @ w.arrays["qacc"][: model.nv, 0], total) < OPTIMAL
        assert relative(w.arrays["qfrc_constraint"][: model.nv, 0], rows.J.T @ force) < OPTIMAL
        assert w.arrays["solver_residual"][0, 0] < OPTIMAL
    assert touched > 0


def test_hessian_is_inertia_plus_the_rows_that_are_free(scene):
    model, found = scene
    w = Workspace(model, 1)
    coupled = 0
    for state in found:
        put(w, 0, state)
        w.run(forward)
        rows = efc(model, w.arrays)
        if rows.nefc == 0:
            continue
        w.run(assembled)
        coupled += w.arrays["hessian.pattern"][0] in (BLOCKS, PATHS)
        H = dense_hessian(w)
        x = rows.J @ w.arrays["qacc"][: model.nv, 0] - rows.aref
        free = np.where(rows.type == 1, np.abs(rows.D * x) < rows.frictionloss, x < 0)
        expected = dense_inertia(w) + rows.J.T @ ((rows.D * free)[:, None] * rows.J)
        assert relative(H, np.tril(expected)) < EXACT
    if model.source.endswith("humanoid.xml"):
        assert coupled > 0, "no state couples two branches: the wider pattern is not tested"


def test_optimum_does_not_depend_on_the_start(scene):
    model, found = scene
    w = Workspace(model, 1)
    for state in found[:8]:
        put(w, 0, state)
        w.run(forward)
        warm = w.arrays["qacc"].copy()
        w.arrays["qacc_warmstart"][...] = np.random.default_rng(1).normal(0, 30, w.arrays["qacc_warmstart"].shape)
        w.run(forward)
        assert relative(w.arrays["qacc"], warm) < SAME
    model.opt.disableflags |= 1 << 9  # no warm start
    w.run(forward)
    model.opt.disableflags &= ~(1 << 9)
    assert relative(w.arrays["qacc"], warm) < SAME


def test_a_world_is_bitwise_equal_alone_and_in_a_tile(scene):
    model, found = scene
    alone, tile = Workspace(model, 1), Workspace(model, 8)
    for lane, state in enumerate(found[4:12]):
        put(tile, lane, state)
    tile.run(forward)
    for lane, state in enumerate(found[4:12]):
        put(alone, 0, state)
        alone.run(forward)
        for name in ("qacc", "qfrc_constraint", "solver_niter", "solver_residual"):
            assert alone.arrays[name][:, 0].tobytes() == tile.arrays[name][:, lane].tobytes(), (name, lane)


def test_float32_stops_after_as_few_iterations_as_float64():
    model = bundled("humanoid")
    found = states(model, 16, np.random.default_rng(8))
    count = {}
    for dtype in (np.float64, np.float32):
        width = tile_width(dtype)
        w, total = Workspace(model, width, dtype), 0
        for first in range(0, len(found), width):
            for lane, state in enumerate(found[first : first + width]):
                put(w, lane, state)
            w.run(forward)
            total += w.arrays["solver_niter"][0].sum()
        assert not w.arrays["warning"][3].any()
        count[dtype] = total
    assert count[np.float64] > 0
    assert abs(count[np.float32] - count[np.float64]) <= 0.1 * count[np.float64]


def test_without_rows_the_acceleration_is_the_smooth_one():
    w = Workspace(bundled("double_pendulum"), 1)
    w.run(forward)
    np.testing.assert_array_equal(w.arrays["qacc"], w.arrays["qacc_smooth"])
    assert w.arrays["solver_niter"][0, 0] == 0


def test_running_out_of_iterations_is_reported():
    model = bundled("humanoid")
    found = states(model, 16, np.random.default_rng(5))
    model.opt.iterations = 1
    w = Workspace(model, 1)
    for state in found:
        put(w, 0, state)
        w.arrays["qacc_warmstart"][...] = 0
        w.run(forward)
    assert w.arrays["warning"][3, 0] > 0
    assert np.isfinite(w.arrays["qacc"]).all()


def test_float32_descends_if_rounding_corrupts_the_hessian():
    """The rope's inertia has a condition number of 3e6: in float32 its Hessian with contact has negative pivots."""
    batch = fl.Batch(bundled("rope"), 32, nthread=1, dtype="float32")
    rng, touched = np.random.default_rng(0), 0.0
    for _ in range(60):
        batch.ctrl = rng.uniform(-1, 1, batch.ctrl.shape)
        batch.step(5)
        touched += batch.ncon.sum()
    assert touched > 0
    assert batch.nreset.sum() == 0
    assert np.isfinite(batch.qpos).all()


def test_contacts_between_trees_equal_mujoco():
    mj = mujoco.MjModel.from_xml_string(HEAP)
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_iterations = 0, 100, 100
    model, data = load(mj), mujoco.MjData(mj)
    w, between = Workspace(model, 1), 0
    for state in states(model, 32, np.random.default_rng(2)):
        put(w, 0, state)
        w.run(forward)
        data.qpos[:], data.qvel[:], data.ctrl[:], data.qacc_warmstart[:] = state
        mujoco.mj_forward(mj, data)
        trees = mj.body_treeid[mj.geom_bodyid[data.contact.geom]]
        between += int(((trees >= 0).all(axis=1) & (trees[:, 0] != trees[:, 1])).sum())
        assert w.arrays["ncon"][0, 0] == data.ncon
        assert relative(w.arrays["qacc"][: model.nv, 0], data.qacc) < PARITY
    assert between > 10


def test_a_start_at_the_optimum_needs_no_iteration():
    model = bundled("humanoid")
    w = Workspace(model, 1)
    for state in states(model, 16, np.random.default_rng(5)):
        put(w, 0, state)
        w.run(forward)
        w.arrays["qacc_warmstart"][...] = w.arrays["qacc"]
        w.run(forward)
        assert w.arrays["solver_niter"][0, 0] <= 1
