"""User-defined actuators: functions for activation, gain and bias against MuJoCo's callbacks; errors."""

import copy
import math
import os
import pickle
import sys

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane import lanes
from scenes.actuators import INTEGRATORS
from scenes.states import kicked
from scenes.user_functions import USER, bias, callbacks, gain, given, loaded, rate, rates, user_scene

COMPILED = os.environ.get("FEATHERLANE_MODE") != "python"
EVERYTHING = mujoco.mjtState.mjSTATE_INTEGRATION.value
# relative to the field's largest value; one step from the same state
TOLERANCE = {"act_dot": 1e-12, "act": 1e-12, "actuator_force": 1e-11, "qfrc_actuator": 1e-11, "qvel": 1e-10}
TOLERANCE |= {"qacc": 1e-8}
LAST_STAGE = ("qacc",)  # RK4 leaves the values of its last stage, which differ between the engines
PLAIN = 1e-12  # uncompiled, a fused multiply-add rounds twice
SINGLE = 2e-4  # relative to a value's scale in float32, after a few steps


def states(mj, rng, count):
    """Returns states of a randomly controlled trajectory in MuJoCo's layout, and its data after each step."""
    data, out, after = mujoco.MjData(mj), np.empty((count, mujoco.mj_stateSize(mj, EVERYTHING))), []
    data.qpos[:], data.qvel[:] = kicked(mj, rng)
    data.act[:] = rng.uniform(0, 0.1, mj.na)
    with callbacks():
        for k in range(count):
            data.ctrl[:] = rng.uniform(-1, 1, mj.nu)
            mujoco.mj_getState(mj, data, out[k], EVERYTHING)
            mujoco.mj_step(mj, data)
            after.append({name: getattr(data, name).copy() for name in TOLERANCE})
    return out, after


def check_parity(mj, rng, count):
    model = loaded(mj)
    data = fl.Data(model)
    for k, (state, after) in enumerate(zip(*states(mj, rng, count), strict=True)):
        fl.set_state(model, data, state, EVERYTHING)
        fl.step(model, data)
        for name, tolerance in TOLERANCE.items():
            if mj.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4 or name not in LAST_STAGE:
                bound = tolerance * max(1.0, np.abs(after[name]).max(initial=0))
                np.testing.assert_allclose(getattr(data, name), after[name], rtol=0, atol=bound, err_msg=f"{k} {name}")


@pytest.mark.covers("activation, gain, bias", lambda: map(user_scene, USER))
@pytest.mark.parametrize("name", USER)
def test_a_step_equals_mujoco_with_callbacks(name, rng):
    """Uses one integrator for each branch, in turn: the slow test covers all."""
    check_parity(user_scene(name, INTEGRATORS[list(USER).index(name) % len(INTEGRATORS)]), rng, 10)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", USER)
def test_a_step_of_every_integrator_equals_mujoco_with_callbacks(name, integrator, rng):
    check_parity(user_scene(name, integrator), rng, 300)


# ---- worlds, widths, precisions --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["gain", "activations-early", "all-several"])
def test_a_world_is_bitwise_equal_in_any_batch(name, rng):
    mj = user_scene(name)
    model = loaded(mj)
    rows, _ = states(mj, rng, 11)
    batch, data = fl.Batch(model, 11), fl.Data(model)
    fl.set_state(model, batch, rows, EVERYTHING)
    batch.step(3)
    for w, row in enumerate(rows):
        fl.set_state(model, data, row, EVERYTHING)
        fl.step(model, data, 3)
        for field in ("qpos", "qvel", "act"):
            assert np.array_equal(getattr(batch, field)[w], getattr(data, field)), (w, field)


def test_single_precision_follows(rng):
    mj = user_scene("all-several")
    model = loaded(mj)
    rows, _ = states(mj, rng, 17)
    double, single = fl.Batch(model, 17), fl.Batch(model, 17, dtype=np.float32)
    for batch in (double, single):
        fl.set_state(model, batch, rows, EVERYTHING)
        batch.step(3)
    assert np.allclose(single.qvel, double.qvel, rtol=0, atol=SINGLE * np.abs(double.qvel).max())


@pytest.mark.parametrize("name", ["all", "activations-early"])
def test_plain_python_callbacks_equal_kernels(name, rng):
    mj = user_scene(name)
    compiled, plain = loaded(mj), loaded(mj, plain=True)
    rows, _ = states(mj, rng, 11)
    batches = [fl.Batch(model, 11) for model in (compiled, plain)]
    for batch in batches:
        fl.set_state(batch.model, batch, rows, EVERYTHING)
        batch.step(3)
    data = fl.Data(plain)
    fl.set_state(plain, data, rows[4], EVERYTHING)
    fl.step(plain, data, 3)
    for field in ("qpos", "qvel", "act"):
        a, b = (getattr(batch, field) for batch in batches)
        assert np.allclose(a, b, rtol=0, atol=PLAIN * np.abs(a).max())
        assert np.array_equal(b[4], getattr(data, field))


def test_parameters_can_differ_by_world(rng):
    mj = user_scene("all")
    for plain in (False, True):
        batch = fl.Batch(loaded(mj, plain), 9)
        numbers = batch.expand("actuator_gainprm")
        numbers *= rng.uniform(0.8, 1.2, numbers.shape)
        batch.act = 0.5
        batch.step(2)
        alone = batch.get_model(4)
        data = fl.Data(alone)
        data.act = 0.5
        fl.step(alone, data, 2)
        assert np.array_equal(batch.qvel[4], data.qvel)


def test_a_batch_computes_the_fields_that_a_callback_reads(rng):
    """Steps of a batch do not compute M and the frames of sites if nothing else needs them."""

    @fl.kernel
    def heavy(m, d, i):
        return d.M[0] + d.site_xpos[0].z + d.xfrc_applied[1].my

    xml = """<mujoco><worldbody><body name="arm"><joint name="j" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
<site pos=".2 0 0"/></body></worldbody><actuator><general joint="j" gaintype="user"/></actuator></mujoco>"""
    model = fl.load(xml)
    fl.set_user_actuator(model, gain=heavy)
    batch, data = fl.Batch(model, 9), fl.Data(model)
    batch.qpos = batch.ctrl = rng.uniform(-1, 1, (9, 1))
    data.qpos = data.ctrl = batch.qpos[5]
    batch.step(2)
    fl.step(model, data, 2)
    assert np.array_equal(batch.qpos[5], data.qpos)


# ---- other calls -----------------------------------------------------------------------------------------------------
def test_step_derivatives_include_callbacks(rng):
    mj = user_scene("all")
    model, reference = loaded(mj), mujoco.MjData(mj)
    (row,), _ = states(mj, rng, 1)
    data = fl.Data(model)
    fl.set_state(model, data, row, EVERYTHING)
    found = fl.linearize(model, data, method="finite_difference")
    mujoco.mj_setState(mj, reference, row, EVERYTHING)
    A, B = np.zeros((2 * mj.nv + mj.na, 2 * mj.nv + mj.na)), np.zeros((2 * mj.nv + mj.na, mj.nu))
    with callbacks():
        mujoco.mj_forward(mj, reference)
        mujoco.mjd_transitionFD(mj, reference, 1e-6, True, A, B, None, None)
    assert np.allclose(found.A, A, rtol=0, atol=1e-6) and np.allclose(found.B, B, rtol=0, atol=1e-6)


def test_a_second_callback_replaces_the_first():
    model = loaded(user_scene("gain"))
    data = fl.Data(model)
    data.ctrl = 0.1
    fl.forward(model, data)
    before = data.actuator_force.copy()
    fl.set_user_actuator(model, "push", gain=bias)
    fl.forward(model, data)
    assert data.actuator_force[0] == before[0] and data.actuator_force[1] != before[1]


STRENGTH = 2.0


@fl.kernel
def strong(m, d, i):
    return STRENGTH


@pytest.mark.parametrize("strengths, is_kept", [((2.0, 3.0), True), ((4.0, 5.0), False)])
def test_a_global_constant_is_read_at_registration(strengths, is_kept, monkeypatch):
    model = loaded(user_scene("gain"))
    data = fl.Data(model)
    data.ctrl = 0.5
    fl.forward(model, data)
    if not is_kept:
        monkeypatch.setenv("FEATHERLANE_CACHE", "/dev/null")  # without a folder, the process keeps what it compiles
    for strength in strengths:
        monkeypatch.setattr(sys.modules[__name__], "STRENGTH", strength)
        fl.set_user_actuator(model, gain=strong)
        fl.forward(model, data)
        assert np.array_equal(data.actuator_force, [0.5 * strength] * 2)


def test_copies_and_pickles_keep_callbacks():
    model = loaded(user_scene("all"))
    data = fl.Data(model)
    data.ctrl = 0.3
    kept = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.deepcopy(data).model]
    kept.append(pickle.loads(pickle.dumps(data)).model)
    fl.step(model, data)
    for other in kept:
        again = fl.Data(other)
        again.ctrl = 0.3
        fl.step(other, again)
        assert np.array_equal(again.qvel, data.qvel)
    fl.set_user_actuator(model, gain=lambda m, d, i: 1.0)
    with pytest.raises(Exception, match="pickle"):
        pickle.dumps(model)


# ---- errors ----------------------------------------------------------------------------------------------------------
def test_a_missing_callback_raises_before_a_step():
    model = fl.load(user_scene("all"))
    data = fl.Data(model)
    fl.stages.kinematics(model, data)
    message = r"user callbacks are missing.*set_user_actuator(.|\n)*actuator 'turn': activation"
    for call in (lambda: fl.step(model, data), fl.Batch(model, 2).step, lambda: fl.forward(model, data)):
        with pytest.raises(fl.UnsupportedFeatureError, match=message):
            call()
    fl.set_user_actuator(model, "turn", **given(model))
    with pytest.raises(fl.UnsupportedFeatureError, match="push") as caught:
        fl.step(model, data)
    assert len(caught.value.features) == 3
    fl.set_user_actuator(model, "push", **given(model))
    fl.step(model, data)


@fl.kernel
def branching(m, d, i):
    return 1.0 if d.actuator_length[i] > 0.0 else 2.0


@fl.kernel
def looping(m, d, i):
    numbers = [1.0, 2.0]
    numbers.append(3.0)
    return numbers[i]


TABLE = np.array([1.0, 2.0])


def helper(x):
    return 2.0 * x


WRONG = {
    "two parameters": (fl.kernel(lambda m, d: 1.0), r"parameters \(m, d\)"),
    "default": (fl.kernel(lambda m, d, i=0: 1.0), "default argument"),
    "plain, two parameters": (lambda m, d: 1.0, r"parameters \(m, d\)"),
    "no function": (3.0, "got float"),
    "branch": (branching, r"branching cannot be compiled: .*user_actuator.py, line \d+, .*decide a branch.*where"),
    "no field": (fl.kernel(lambda m, d, i: d.qpoz[0]), "Data has no field qpoz.*'qpos'"),
    "not yet": (fl.kernel(lambda m, d, i: d.qacc[0]), "d.qacc cannot be read in this callback"),
    "plain, not yet": (lambda m, d, i: d.qacc[0], "d.qacc cannot be read in this callback"),
    "out of range": (fl.kernel(lambda m, d, i: d.qpos[99]), r"OutOfRangeError: d.qpos\[99\] of 13 rows"),
    "array": (
        fl.kernel(lambda m, d, i: TABLE[i] * d.qpos[0]),
        "a ndarray cannot be a constant of a kernel",
    ),
    "NumPy": (
        fl.kernel(lambda m, d, i: np.sin(d.qpos[0])),
        "np.sin cannot be called in a kernel.*featherlane.lanes",
    ),
    "math": (fl.kernel(lambda m, d, i: math.sin(d.qpos[0])), "math.sin cannot be called in a kernel"),
    "helper": (fl.kernel(lambda m, d, i: helper(d.qpos[0])), "helper cannot be called in a kernel.*decorator"),
    "tuple": (fl.kernel(lambda m, d, i: (1.0, 2.0)), "returned tuple"),
    "mask": (fl.kernel(lambda m, d, i: d.qpos[0] > 0.0), "returned a mask"),
    "text": (lambda m, d, i: "1", "returned str"),
    "nothing": (lambda m, d, i: None, "returned NoneType"),
    "not finite": (fl.kernel(lambda m, d, i: lanes.log(0.0 * d.qpos[0])), "returned -inf in qpos0"),
    "list": (
        looping,
        r"looping cannot be compiled: .*test_user_actuator.py, line \d+, in looping: lists are not allowed in a kernel",
    ),
    "power": (fl.kernel(lambda m, d, i: d.qpos[0] ** 2), "cannot be compiled: .*pow_"),
    "failing": (lambda m, d, i: 1 / 0, "raised an error in qpos0: ZeroDivisionError"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_invalid_callback_is_refused_with_the_actuator_name(name):
    function, message = WRONG[name]
    model = fl.load(user_scene("gain"))
    with pytest.raises(fl.ModelError, match="actuator 'push': gain: .*" + message):
        fl.set_user_actuator(model, "push", gain=function)
    assert not model.user_actuators


def written(m, d, i):
    d.qpos[0] = 1.0
    return 1.0


@pytest.mark.parametrize("function", [written, fl.kernel(written)])
def test_a_callback_must_not_write(function):
    with pytest.raises(fl.ModelError, match="read-only"):
        fl.set_user_actuator(fl.load(user_scene("gain")), gain=function)


def test_callbacks_match_their_actuators():
    model = fl.load(user_scene("gain"))
    with pytest.raises(fl.ModelError):
        fl.set_user_actuator(model, bias=bias)
    with pytest.raises(fl.ModelError):
        fl.set_user_actuator(model, "turn", activation=rate)
    with pytest.raises(fl.UnknownNameError):
        fl.set_user_actuator(model, ["tern"], gain=gain)
    with pytest.raises(fl.ModelError):
        fl.set_user_actuator(model)
    several = fl.load(user_scene("activations"))
    for function, message in ((rate, "allowed is a tuple of 2"), (lambda m, d, i: (1.0, 2.0, 3.0), "3 values")):
        with pytest.raises(fl.ModelError, match=message):
            fl.set_user_actuator(several, activation=function)
    fl.set_user_actuator(several, activation=rates)


@pytest.mark.skipif(not COMPILED, reason="uncompiled kernels need no compiler")
def test_without_a_compiler_kernels_are_refused_and_plain_python_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    model = fl.load(user_scene("gain"))
    with pytest.raises(fl.InstallationError, match=r"featherlane\[jit\]"):
        fl.set_user_actuator(model, gain=gain)
    fl.set_user_actuator(model, gain=gain.function)
    fl.step(model, fl.Data(model))


@pytest.mark.skipif(not COMPILED, reason="uncompiled kernels need no compiler")
def test_no_call_steps_without_its_callbacks(monkeypatch):
    """Registered with a compiler, used without one: each step is an error, not only the first."""

    def fails(*arguments, **named):
        raise lanes.KernelError("no compiler")

    model = loaded(user_scene("gain"))
    batch, data = fl.Batch(model, 2), fl.Data(model)
    batch.step()
    fl.set_user_actuator(model, gain=strong)
    monkeypatch.setattr(lanes.Library, "function", fails)
    for step in (batch.step, lambda: fl.step(model, data), lambda: fl.Data(model)) * 2:
        with pytest.raises(lanes.KernelError, match="no compiler"):
            step()


def test_an_error_in_plain_python_is_raised_after_the_step():
    def late(m, d, i):
        return 1 / 0 if d.time[0] > 0 else 1.0

    model = fl.load(user_scene("gain"))
    fl.set_user_actuator(model, gain=late)
    data, batch = fl.Data(model), fl.Batch(model, 3)
    for step in (lambda: fl.step(model, data), batch.step):
        step()
        with pytest.raises(ZeroDivisionError):
            step()
