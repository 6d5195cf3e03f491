"""Controllers: control kernels with numbers of their own for each world, against NumPy, in all kinds of batches."""

import pickle

import numpy as np
import pytest

import featherlane as fl

XML = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <camera name="eye" pos="0 -2 0" xyaxes="1 0 0 0 0 1"/>
    <body><joint name="a" type="slide" axis="1 0 0" damping="1"/><geom size="0.1" mass="0.5"/></body>
    <body>
      <joint name="b" axis="0 1 0" damping="0.1"/>
      <geom size="0.1 0.2" type="capsule" pos=".2 0 0" mass="0.3"/>
    </body>
  </worldbody>
  <actuator><motor joint="a"/><motor joint="b"/></actuator>
</mujoco>
"""
SMALLER = XML.replace('<motor joint="b"/>', "")
H, N, STEPS = 0.002, 11, 40


@fl.kernel
def pid(m, d, p):
    """A PID controller of all joints."""
    for k in range(m.nu):
        error = p.goal[k] - d.qpos[k]
        p.summed[k] = p.summed[k] + 0.002 * error
        d.ctrl[k] = p.gains[0] * error + p.gains[1] * p.summed[k] - p.gains[2] * d.qvel[k]


def started(rng, dtype="float64", nthread=1):
    batch = fl.Batch(fl.load(XML), N, nthread, dtype=dtype)
    controller = fl.Controller(batch, pid, goal=2, summed=2, gains=3)
    controller.goal = rng.uniform(-1, 1, (N, 2))
    controller.gains = rng.uniform(1, 5, (N, 3))
    return batch, controller


@pytest.mark.parametrize("nthread", [1, 2])
def test_a_controller_equals_controls_between_steps(nthread, rng):
    batch, controller = started(rng, nthread=nthread)
    reference, summed = batch.copy(), np.zeros((N, 2))
    found = batch.rollout(STEPS, controller, ("qpos", "ctrl"))
    (kp, ki, kd), goal = controller.gains.T[:, :, None], controller.goal
    for k in range(STEPS):
        error = goal - reference.qpos
        summed += H * error
        reference.ctrl = kp * error + ki * summed - kd * reference.qvel
        reference.step()
        np.testing.assert_allclose(found["ctrl"][:, k], reference.ctrl, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(found["qpos"][:, k], reference.qpos, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(controller.summed, summed, rtol=1e-13)


def test_several_calls_and_chosen_worlds_have_the_bits_of_one_call(rng):
    batch, controller = started(rng)
    other, same = batch.copy(), pickle.loads(pickle.dumps(controller))
    batch.rollout(STEPS, controller)
    for ids in ([7, 2], [0, 1, 3, 4, 5, 6, 8, 9, 10]):
        other.rollout(STEPS // 2, same, ids=ids)
        other.rollout(STEPS // 2, same, ids=ids)
    for name in controller.rows:
        assert np.array_equal(controller.rows[name], same.rows[name]), name
    assert np.array_equal(batch.qpos, other.qpos) and np.array_equal(batch.qvel, other.qvel)


def test_float32_is_close(rng):
    batch, controller = started(rng)
    single, rounded = fl.Batch(batch.model, N, dtype="float32"), None
    rounded = fl.Controller(single, pid, goal=2, summed=2, gains=3)
    rounded.goal, rounded.gains = controller.goal, controller.gains
    batch.rollout(STEPS, controller)
    single.rollout(STEPS, rounded)
    assert rounded.summed.dtype == np.float32
    np.testing.assert_allclose(single.qpos, batch.qpos, atol=1e-5)
    np.testing.assert_allclose(rounded.summed, controller.summed, atol=1e-6)


def test_worlds_of_a_mixed_batch_have_the_bits_of_their_own(rng):
    models = [fl.load(XML), fl.load(SMALLER)]
    mixed = fl.MixedBatch([(models[0], 4), (models[1], 3)])
    controller = fl.Controller(mixed, pid, goal=2, summed=2, gains=3)
    controller.goal, controller.gains = rng.uniform(-1, 1, (7, 2)), rng.uniform(1, 5, (7, 3))
    separate = [fl.Batch(model, n) for model, n in zip(models, (4, 3), strict=True)]
    for batch, first in zip(separate, (0, 4), strict=True):
        own = fl.Controller(batch, pid, goal=2, summed=2, gains=3)
        for name, rows in own.rows.items():
            rows[...] = controller.rows[name][first : first + batch.nworld]
        batch.rollout(STEPS, own)
    mixed.rollout(STEPS, controller)
    assert np.array_equal(mixed.qpos, np.concatenate([batch.qpos for batch in separate]))
    assert controller.summed[0, 1] != 0 and controller.summed[4, 1] == 0  # one actuator in the second model


def test_a_failure_is_replayed_with_the_recorded_numbers(rng, tmp_path):
    batch, controller = started(rng)
    batch = fl.Batch(batch.model, N, record_failures=5)
    batch.rollout(STEPS, controller)
    controller.goal[3] = np.nan  # the control becomes NaN in the next step
    batch.rollout(1, controller)
    failure = batch.failures[0]
    assert (failure.world, failure.step, failure.nstep) == (3, STEPS, 5)
    assert np.isnan(failure.states["p.goal"][-1]).all() and np.isfinite(failure.states["p.goal"][:-1]).all()
    for replayed in (failure.replay().qpos, failure.replay_batch().qpos[0]):
        assert np.array_equal(replayed, batch.qpos[3])
    failure.save(tmp_path / "f.npz")
    loaded = fl.load_failure(tmp_path / "f.npz")
    with pytest.raises(fl.ModelError, match="the kernel 'pid'"):
        loaded.replay()
    loaded.control = pid
    assert np.array_equal(loaded.replay().qpos, batch.qpos[3])


def test_steps_of_another_control_are_not_replayed(rng):
    """A replay calls one kernel."""
    batch, controller = started(rng)
    batch = fl.Batch(batch.model, N, record_failures=5)
    batch.step(3)
    controller.goal[3] = np.nan
    batch.rollout(1, controller)
    assert batch.failures[0].nstep == 1
    assert np.array_equal(batch.failures[0].replay().qpos, batch.qpos[3])


def test_with_images_the_numbers_last(rng):
    batch, controller = started(rng)
    other, same = batch.copy(), pickle.loads(pickle.dumps(controller))
    batch.rollout(3, controller)
    other.rollout(3, same, ("qpos", fl.Camera("eye", width=8, height=8)))
    assert np.array_equal(controller.summed, same.summed) and np.array_equal(batch.qpos, other.qpos)


def test_an_index_out_of_range_is_reported(rng):
    @fl.kernel
    def beyond(m, d, p):
        d.ctrl[0] = p.goal[m.nv + 3]

    batch, _ = started(rng)
    with pytest.raises(fl.ModelError, match="beyond"):
        batch.rollout(1, fl.Controller(batch, beyond, goal=2))


def test_wrong_arguments_are_refused(rng):
    batch, controller = started(rng)
    for arguments, numbers, message in (
        ((None, pid), {"goal": 2}, "batch: got NoneType, allowed is a Batch or a MixedBatch"),
        ((batch, lambda m, d, p: None), {"goal": 2}, "function: got function, allowed is a kernel"),
        ((batch, pid), {}, "numbers: got none"),
        ((batch, pid), {"goal": 0}, "goal: got 0"),
        ((batch, pid), {"goal": 1.5}, "goal: got 1.5"),
        ((batch, pid), {"qpos": 2}, "got the name 'qpos'"),
        ((batch, pid), {"rows": 2}, "got the name 'rows'"),
    ):
        with pytest.raises(fl.ModelError, match=message):
            fl.Controller(*arguments, **numbers)
    with pytest.raises(fl.ModelError, match="goal: got"):
        controller.goal = np.zeros((N, 3))
    with pytest.raises(AttributeError, match="'gaol'; did you mean 'goal'"):
        controller.gaol = 1.0
    for other in (fl.Batch(batch.model, N + 1), fl.Batch(batch.model, N, dtype="float32")):
        with pytest.raises(fl.ModelError, match=f"a Controller of {N} worlds in float64"):
            other.rollout(1, controller)
    with pytest.raises(fl.ModelError, match=r"allowed is pid\(m, d\)"):
        batch.rollout(1, pid)
    with pytest.raises(fl.ModelError, match="no field target"):

        @fl.kernel
        def misspelt(m, d, p):
            d.ctrl[0] = p.target[0]

        batch.rollout(1, fl.Controller(batch, misspelt, goal=1))
    with pytest.raises(fl.ModelError, match="control: got a kernel"):
        fl.Data(batch.model).rollout(1, controller)
    with pytest.raises(fl.ModelError, match="control"):
        fl.integrate(batch.model, batch, 0.1, control=controller)
