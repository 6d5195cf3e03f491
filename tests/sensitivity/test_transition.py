"""Derivatives of a step and of inverse dynamics: exact for linear systems, MuJoCo's otherwise."""

import copy
import pickle
import threading

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.bundle import resolve_name
from featherlane.tools.sensitivity.worlds import displaced_worlds
from scenes.joints import XML
from scenes.states import kicked

LINEAR = 1e-9  # rounding of a state of order 1 over eps = 1e-6
FORCE = 1e-7  # rounding of forces of order 10 over eps = 1e-6
PARITY = 1e-6  # relative: the same for a solve, in both engines
# a cart on a spring and a damper that drags a second one
CARTS = """<mujoco><option timestep="0.01" gravity="0 0 0"><flag eulerdamp="{damp}"/></option><worldbody>
  <body><joint name="a" type="slide" stiffness="30" damping="2"/><geom size="0.1" mass="2"/>
    <body><joint name="b" type="slide" stiffness="5"/><geom size="0.1" mass="1" contype="0"/></body></body></worldbody>
  <actuator><motor joint="a" gear="3" ctrllimited="true" ctrlrange="-1 1"/><motor joint="b"/></actuator></mujoco>"""


def carts(damp="enable", **options):
    """Returns the model and the exact (A, B) of its semi-implicit Euler step."""
    model = fl.load(CARTS.format(damp=damp))
    h, M = model.opt.timestep, np.array([[3.0, 1.0], [1.0, 1.0]])
    K, D, G = np.diag([30.0, 5.0]), np.diag([2.0, 0.0]), np.diag([3.0, 1.0])
    inverse = np.linalg.inv(M + h * D if damp == "enable" else M)
    # v' = v + h W (-K q - D v + G u),  q' = q + h v'
    vq, vv, vu = -h * inverse @ K, np.eye(2) - h * inverse @ D, h * inverse @ G
    A = np.block([[np.eye(2) + h * vq, h * vv], [vq, vv]])
    return model, A, np.concatenate([h * vu, vu])


def relative(given, expected) -> float:
    return np.abs(given - expected).max(initial=0.0) / np.abs(expected).max(initial=1e-30)


def exact(model):
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 0.0, 100, 100
    return model


# ---- laws ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("damp", ["enable", "disable"])
@pytest.mark.parametrize("centered", [True, False])
def test_a_linear_system_has_its_matrices(damp, centered):
    model, A, B = carts(damp)
    data = fl.Data(model)
    data.qpos, data.qvel, data.ctrl = [0.2, -0.1], [0.3, 0.5], [0.4, -0.2]
    found = fl.linearize(model, data, centered=centered, method="finite_difference")
    assert np.abs(found.A - A).max() < LINEAR
    assert np.abs(found.B - B).max() < LINEAR


@pytest.mark.parametrize("actuation", [False, True])
def test_inverse_of_a_linear_system_has_its_matrices(actuation):
    """Motor forces do not depend on the state."""
    model, _, _ = carts()
    data = fl.Data(model)
    data.qpos, data.qvel, data.qacc = [0.2, -0.1], [0.3, 0.5], [1.0, 2.0]
    found = fl.inverse_derivatives(model, data, actuation=actuation, method="finite_difference")
    assert np.abs(found.DfDq - np.diag([30.0, 5.0])).max() < FORCE
    assert np.abs(found.DfDv - np.diag([2.0, 0.0])).max() < FORCE
    assert np.abs(found.DfDa - [[3.0, 1.0], [1.0, 1.0]]).max() < FORCE


@pytest.mark.parametrize("u, moves", [(1.0, True), (-1.0, True), (1.5, False)])
@pytest.mark.parametrize("centered", [True, False])
def test_control_differences_stay_in_the_range(u, moves, centered):
    """At the border the derivative is one-sided inwards; beyond it, zero."""
    model, _, B = carts()
    data = fl.Data(model)
    data.ctrl = [u, 7.0]
    found = fl.linearize(model, data, centered=centered, method="finite_difference").B
    assert np.abs(found[:, 1] - B[:, 1]).max() < LINEAR
    if moves:
        assert np.abs(found[:, 0] - B[:, 0]).max() < LINEAR
    else:
        assert not found[:, 0].any()


def test_matrices_predict_the_next_state(rng):
    """Tested in the tangent space, away from the identity, for disturbances in every direction at once."""
    model = exact(fl.load(XML))
    model.opt.disableflags |= 1  # constraints: smooth
    data, other = fl.Data(model), fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    A, B = fl.linearize(model, data, method="finite_difference")[:2]
    dx, du = 1e-5 * rng.standard_normal(2 * model.nv), 1e-5 * rng.standard_normal(model.nu)
    other.qpos = fl.integrate_pos(model, data.qpos, dx[: model.nv], 1.0)
    other.qvel, other.ctrl = data.qvel + dx[model.nv :], du
    for one in (data, other):
        fl.step(model, one)
    found = np.concatenate([fl.differentiate_pos(model, 1.0, data.qpos, other.qpos), other.qvel - data.qvel])
    assert np.abs(found - (A @ dx + B @ du)).max() < 1e-3 * np.abs(found).max()


# ---- MuJoCo --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("name, integrator", [("humanoid", "euler"), ("quadruped", "implicitfast"), (XML, "implicit")])
def test_both_equal_mujoco(name, integrator, centered, rng):
    model = exact(fl.load(resolve_name(name)))
    model.opt.integrator = integrator
    mj, data = model.to_mujoco(), fl.Data(model)
    data.qvel, data.ctrl = rng.normal(0, 0.3, model.nv), rng.uniform(-1, 1, model.nu)
    if name == XML:
        data.qpos[2] = 0.55  # on the floor
    fl.step(model, data, 150 if name != XML else 10)
    assert data.ncon > 0
    other, n = mujoco.MjData(mj), 2 * model.nv + model.na
    mujoco.mj_setState(mj, other, fl.get_state(model, data, fl.State.INTEGRATION), int(fl.State.INTEGRATION))

    A, B = np.zeros((n, n)), np.zeros((n, model.nu))
    mujoco.mjd_transitionFD(mj, other, 1e-6, centered, A, B, None, None)
    found = fl.linearize(model, data, centered=centered, method="finite_difference")
    assert relative(found.A, A) < PARITY
    assert relative(found.B, B) < PARITY

    data.qacc = other.qacc[:] = rng.normal(0, 3, model.nv)
    expected = [np.zeros((model.nv, model.nv)) for _ in range(3)]
    mujoco.mjd_inverseFD(mj, other, 1e-6, not centered, *expected, None, None, None, None)
    for ours, theirs in zip(
        fl.inverse_derivatives(
            model, data, eps=1e-6, centered=False, actuation=not centered, method="finite_difference"
        ),
        expected,
        strict=True,
    ):
        assert relative(ours, theirs) < PARITY


# ---- batches -------------------------------------------------------------------------------------------------------
def test_a_batch_is_bitwise_equal_to_its_worlds(rng, monkeypatch):
    model = fl.bundled("quadruped")
    monkeypatch.setattr(displaced_worlds, "POINTS", 150)  # some worlds at once
    batch = fl.Batch(model, 5, nthread=1)
    batch.qvel, batch.ctrl = rng.normal(0, 0.3, batch.qvel.shape), rng.uniform(-1, 1, batch.ctrl.shape)
    batch.expand("body_mass")[:] *= rng.uniform(0.8, 1.2, (5, 1))
    batch.step(100)
    assert batch.ncon.any()
    before, qacc = batch.checkpoint(), rng.standard_normal((5, model.nv))
    A, B = fl.linearize(model, batch, method="finite_difference")[:2]
    derivatives = fl.inverse_derivatives(model, batch, qacc=qacc, method="finite_difference")
    assert A.shape == (5, 2 * model.nv, 2 * model.nv)
    assert B.shape == (5, 2 * model.nv, model.nu)
    for world in range(5):
        data = batch.get_data(world)
        data.qacc = qacc[world]
        alone = fl.linearize(data.model, data, method="finite_difference")
        assert alone.A.tobytes() == A[world].tobytes()
        assert alone.B.tobytes() == B[world].tobytes()
        for one, all_ in zip(
            fl.inverse_derivatives(data.model, data, method="finite_difference"), derivatives, strict=True
        ):
            assert one.tobytes() == all_[world].tobytes()
    for name, rows in batch.checkpoint().items():
        assert rows.tobytes() == before[name].tobytes(), name


def test_derivatives_of_float32_worlds_are_computed_in_float64(rng):
    model, A, _ = carts()
    batch = fl.Batch(model, 2, nthread=1, dtype="float32")
    found = fl.linearize(model, batch, method="finite_difference").A
    assert found.dtype == np.float64
    assert np.abs(found - A).max() < LINEAR


def test_the_data_stay_as_they_are(rng):
    model, _, _ = carts()
    data = fl.Data(model)
    data.qpos, data.qfrc_applied = [0.2, 0.1], [1.0, 2.0]
    fl.forward(model, data)
    before = pickle.dumps(data)
    fl.linearize(model, data, method="finite_difference")
    fl.inverse_derivatives(model, data, method="finite_difference")
    assert pickle.dumps(data) == before


# ---- dry friction --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("batched", [False, True])
def test_dry_friction_can_be_left_out(batched):
    """At rest friction acts as a damper so stiff that the cart stands still; without it A is the carts' matrix."""
    model, A, B = carts()
    model.dof_frictionloss[:] = 0.5
    world = fl.Batch(model, 3) if batched else fl.Data(model)
    flags, revision = model.opt.disableflags, model.revision
    for _ in range(2):  # calls with and without do not share what they keep
        stuck, free = (
            fl.linearize(model, world, method="finite_difference"),
            fl.linearize(model, world, frictionloss=False, method="finite_difference"),
        )
        assert np.abs(stuck.A[..., 2:, 2:]).max() < 0.2
        assert np.abs(free.A - A).max() < LINEAR and np.abs(free.B - B).max() < LINEAR
    assert model.opt.disableflags == flags and model.revision == revision
    model.opt.disableflags = "frictionloss"
    for one, another in zip(fl.linearize(model, world, method="finite_difference")[:2], free[:2], strict=True):
        assert one.tobytes() == another.tobytes()


def test_the_bundled_cartpole_has_a_linearisation():
    """The exact matrices follow from the equations of motion: upright, at rest, without dry friction, only viscous."""
    model = fl.bundled("cartpole")
    A, B = fl.linearize(model, fl.Data(model), method="finite_difference")[:2]
    M, h = fl.query.full_m(model, settled(model)), model.opt.timestep
    damping, weight = np.diag([0.1, 0.002]), 9.81 * (0.15 * 0.45 + 0.05 * 0.9)
    inverse = np.linalg.inv(M + h * damping)
    vq, vv = h * inverse @ np.diag([0.0, weight]), inverse @ M
    assert np.abs(A - np.block([[np.eye(2) + h * vq, h * vv], [vq, vv]])).max() < 1e-7
    assert np.abs(B[2:, 0] - 12.0 * h * inverse[:, 0]).max() < 1e-7


def settled(model):
    data = fl.Data(model)
    fl.forward(model, data)
    return data


# ---- repeated calls ------------------------------------------------------------------------------------------------
def test_buffers_are_allocated_once(monkeypatch):
    """A second call, with another `Data`, creates no batch; copied and pickled models drop the cache."""
    model, A, _ = carts()
    made, init = [], fl.Batch.__init__
    monkeypatch.setattr(fl.Batch, "__init__", lambda self, *args, **more: made.append(init(self, *args, **more)))
    for _ in range(3):
        assert np.abs(fl.linearize(model, fl.Data(model), method="finite_difference").A - A).max() < LINEAR
    assert len(made) == 1
    assert not [name for name in copy.deepcopy(model).__dict__ if name.startswith("_moved")]


@pytest.mark.parametrize("nthread", [0, 1, 2, 5])
def test_threads_change_no_bit(nthread, rng):
    model = fl.bundled("humanoid")
    data = fl.Data(model)
    fl.step(model, data, 100)
    expected = fl.linearize(model, data, nthread=1, method="finite_difference")
    found = [None] * 4

    def work(k):
        for _ in range(3):
            found[k] = fl.linearize(
                model, data if k == 0 else copy.copy(data), nthread=nthread, method="finite_difference"
            )

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        assert one.A.tobytes() == expected.A.tobytes() and one.B.tobytes() == expected.B.tobytes()


def test_a_call_uses_the_current_model_and_state():
    model, A, _ = carts()
    data = fl.Data(model)
    fl.linearize(model, data, method="finite_difference")
    model.dof_damping[0] = 0.0
    data.ctrl = 1.0  # at the border of its range
    found, fresh = fl.linearize(model, data, method="finite_difference"), copy.deepcopy(model)
    other = fl.Data(fresh)
    other.ctrl = 1.0
    assert np.abs(found.A - A).max() > 0.005
    for one, another in zip(found[:2], fl.linearize(fresh, other, method="finite_difference")[:2], strict=True):
        assert one.tobytes() == another.tobytes()
    model.opt.integrator, data.ctrl = "implicit", 0.0
    fresh.opt.integrator, other.ctrl = "implicit", 0.0
    for one, another in zip(
        fl.linearize(model, data, method="finite_difference")[:2],
        fl.linearize(fresh, other, method="finite_difference")[:2],
        strict=True,
    ):
        assert one.tobytes() == another.tobytes()


def test_results_of_one_call_outlive_the_next():
    model, A, B = carts()
    data = fl.Data(model)
    first = fl.linearize(model, data, method="finite_difference")
    data.ctrl = 5.0
    fl.linearize(model, data, method="finite_difference")
    assert np.abs(first.A - A).max() < LINEAR and np.abs(first.B - B).max() < LINEAR


def test_a_pile_that_is_solved_world_by_world_has_the_same_derivatives(rng):
    """After a split, its points use tiles of one world: see `Batch._parts`."""
    model = fl.bundled("pile")
    data = fl.Data(model)
    data.qpos[2::7] *= 0.5
    data.workspace.arrays["ordered"][...] = 0
    found = [fl.linearize(model, data, centered=False, nthread=1, method="finite_difference").A]
    data.workspace.arrays["ordered"][...] = 1
    found.append(fl.linearize(model, data, centered=False, nthread=1, method="finite_difference").A)
    assert found[0].tobytes() == found[1].tobytes()


def test_invalid_arguments_are_named():
    model, _, _ = carts()
    data = fl.Data(model)
    with pytest.raises(fl.ModelError, match="eps"):
        fl.linearize(model, data, eps=0, method="finite_difference")
    with pytest.raises(fl.ModelError, match="qacc"):
        fl.inverse_derivatives(model, data, qacc=np.zeros(3), method="finite_difference")
    with pytest.raises(fl.ModelError):
        fl.linearize(fl.bundled("pendulum"), fl.Batch(model, 2, nthread=1), method="finite_difference")
    with pytest.raises(fl.errors.ArgumentTypeError):
        fl.linearize(model, "data", method="finite_difference")
