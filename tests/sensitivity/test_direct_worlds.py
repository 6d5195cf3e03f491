"""Derivatives of a world or a batch by formulas only: caches kept between calls do not change results."""

import copy
import pickle
import threading

import numpy as np
import pytest

import featherlane as fl
from featherlane.tools.sensitivity.api import exact
from featherlane.tools.sensitivity.worlds.direct_worlds import COPIED, SKIPPED
from scenes.states import kicked

BY_DIFFERENCES = 1e-7  # rounding of a state of order 1 over eps = 1e-6, and the spring's
TENDON = """<mujoco><worldbody>
  <body><joint name="a" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/></body>
  <body pos="0 1 0"><joint name="b" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/></body>
</worldbody><tendon>
  <fixed stiffness="2"><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed>
</tendon></mujoco>"""
BALL = "<mujoco><worldbody><body><joint type='ball'/><geom size='0.1'/></body></worldbody></mujoco>"


def moving(model, rng):
    """Returns a world of the model in a random state."""
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    return data


def in_a_batch(model, data, call, **how):
    """Returns the result for a batch of this world alone, which takes another path through Python."""
    batch = fl.Batch(model, 1)
    state = fl.get_state(model, data, fl.State.INTEGRATION)
    fl.set_state(model, batch, state, fl.State.INTEGRATION)
    return [None if x is None or isinstance(x, dict) else x[0] for x in call(model, batch, **how)]


def assert_same(model, data, call=fl.linearize, **how):
    """Bit for bit, and twice: the second time nothing is made anew."""
    for _ in range(2):
        found, expected = call(model, data, **how), in_a_batch(model, data, call, **how)
        for mine, other in zip(found, expected, strict=True):
            if other is not None:
                assert mine.shape == other.shape and mine.tobytes() == other.tobytes()


@pytest.mark.parametrize("call", [fl.linearize, fl.acceleration_derivatives])
@pytest.mark.parametrize("name", ["arm", "humanoid", "cartpole", "quadruped_elliptic"])
def test_a_data_is_bitwise_equal_to_a_batch(name, call, rng):
    model = fl.bundled(name)
    model.opt.integrator = "implicitfast"
    data = fl.Data(model)
    for _ in range(3):
        fl.step(model, data, 20)
        data.ctrl = rng.uniform(-2, 2, model.nu)  # some beyond their range
        assert_same(model, data, call)


def test_model_edits_take_effect(rng):
    model = fl.bundled("humanoid")
    data = moving(model, rng)
    model.opt.integrator = "implicitfast"
    assert_same(model, data)
    before = fl.linearize(model, data).A
    model.opt.gravity[2] = -3.0
    model.dof_damping[6:] *= 2.0
    assert_same(model, data)
    assert np.abs(fl.linearize(model, data).A - before).max() > 1e-6
    for integrator in ("euler", "rk4", "implicitfast"):
        model.opt.integrator = integrator
        assert_same(model, data)
    model.opt.integrator = "euler"
    model.opt.contact_model = "lcp"
    assert_same(model, data)


def test_springs_without_formulas_take_effect(rng):
    """A change of the model alone makes the formulas inapplicable."""
    model = fl.load(BALL)
    data = moving(model, rng)
    assert_same(model, data)
    model.jnt_stiffness[0] = 5.0
    exact = fl.linearize(model, data, method="finite_difference").A
    assert np.abs(fl.linearize(model, data).A - exact).max() < BY_DIFFERENCES


def test_dry_friction_can_be_omitted():
    model = fl.bundled("arm")
    model.opt.integrator = "implicitfast"
    model.dof_frictionloss[:] = 0.5
    data = fl.Data(model)
    fl.step(model, data, 3)
    assert_same(model, data)
    assert_same(model, data, frictionloss=False)
    assert_same(model, data)
    stuck, free = fl.linearize(model, data).A, fl.linearize(model, data, frictionloss=False).A
    assert np.abs(stuck - free).max() > 1e-3


def test_datas_of_a_model_share_memory_but_no_results(rng):
    model = fl.bundled("arm")
    datas = [moving(model, rng) for _ in range(3)]
    first = [fl.linearize(model, data) for data in datas]
    kept = [copy.deepcopy(result) for result in first]
    for data in datas:
        data.qvel = rng.normal(size=model.nv)
        fl.linearize(model, data)
    for result, expected in zip(first, kept, strict=True):
        assert np.array_equal(result.A, expected.A) and np.array_equal(result.B, expected.B)
        assert result.switching == expected.switching
    for data in (datas[0], copy.copy(datas[1]), copy.deepcopy(datas[2])):
        assert_same(data.model, data)


def test_a_data_can_switch_to_another_model():
    one, two = fl.bundled("arm"), fl.bundled("arm")
    two.body_mass[2] *= 3.0
    data = fl.Data(one)
    before = fl.linearize(one, data).A
    data.model = two
    after = fl.linearize(two, data).A
    data.model = one
    assert np.array_equal(fl.linearize(one, data).A, before) and not np.array_equal(after, before)


def test_threads_use_separate_memory():
    model = fl.bundled("humanoid")
    model.opt.integrator = "implicitfast"
    datas = [fl.Data(model) for _ in range(6)]
    for k, data in enumerate(datas):
        fl.step(model, data, 10 * (k + 1))
    expected, found = [fl.linearize(model, data).A for data in datas], [None] * len(datas)

    def work(k):
        for _ in range(20):
            found[k] = fl.linearize(model, datas[k]).A

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(datas))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("call", [fl.linearize, fl.acceleration_derivatives])
@pytest.mark.parametrize("wrong", [{"nthread": -1}, {"nthread": "two"}, {"frictionloss": 2}])
def test_a_second_call_is_checked_like_the_first(call, wrong):
    model = fl.bundled("arm")
    data = fl.Data(model)
    call(model, data)
    with pytest.raises(fl.ModelError, match=next(iter(wrong))):
        call(model, data, **wrong)
    with pytest.raises(TypeError):
        call(model, None)
    with pytest.raises(TypeError):
        call(None, data)
    model.opt.enableflags = "sleep"
    with pytest.raises(fl.UnsupportedFeatureError):
        call(model, data)


# ---- batches ---------------------------------------------------------------------------------------------------------
def moving_batch(model, rng, nworld=19, **how):
    """Returns a batch of worlds with different velocities and controls, after some steps."""
    batch = fl.Batch(model, nworld, **how)
    batch.qvel[:] = 0.1 * rng.normal(size=batch.qvel.shape)
    batch.ctrl[:] = rng.uniform(-1, 1, batch.ctrl.shape)
    batch.step(20)
    return batch


def assert_direct(monkeypatch, model, batch, call=fl.linearize, direct=True, **how):
    """Bit for bit as by `ImplicitWorlds`; `direct`: whether the batch is read directly."""
    found, answers = [], []

    def observed(*args):
        answers.append(rates(*args))
        return answers[-1]

    rates = exact.direct_rates
    for function in (observed, lambda *_: None):
        with monkeypatch.context() as patch:
            patch.setattr(exact, "direct_rates", function)
            found.append(call(model, batch, **how))
    assert (answers[0] is not None) == direct
    for mine, other in zip(*found, strict=True):
        if isinstance(mine, np.ndarray):
            assert mine.shape == other.shape and mine.tobytes() == other.tobytes()


@pytest.mark.parametrize("call", [fl.linearize, fl.acceleration_derivatives])
@pytest.mark.parametrize("nthread", [1, 2])
def test_a_batch_is_read_directly(call, nthread, rng, monkeypatch):
    model = fl.bundled("quadruped")
    batch = moving_batch(model, rng)
    for _ in range(2):
        assert_direct(monkeypatch, model, batch, call, nthread=nthread)
        batch.step(5)


def test_inputs_that_a_batch_begins_to_use_are_read(rng, monkeypatch):
    model = fl.bundled("arm")
    model.opt.integrator = "implicitfast"
    plain, pushed, pulled = (moving_batch(model, rng) for _ in range(3))
    pushed.xfrc_applied[:] = rng.normal(size=pushed.xfrc_applied.shape)
    pulled.qfrc_applied[:] = rng.normal(size=pulled.qfrc_applied.shape)
    for batch in (plain, pushed, plain, pulled, pushed):
        before = fl.linearize(model, batch).A
        assert_direct(monkeypatch, model, batch)
    pushed.xfrc_applied[:] = 0.0
    assert np.abs(fl.linearize(model, pushed).A - before).max() > 1e-6


@pytest.mark.parametrize("call", [fl.linearize, fl.acceleration_derivatives])
@pytest.mark.parametrize("copied", [True, False])
def test_results_of_a_batch_are_separate(call, copied, rng):
    """Results of few bytes are copied out of memory that the next call uses, larger ones are written in place."""
    model = fl.bundled("cartpole")
    batch = moving_batch(model, rng, nworld=19 if copied else 1000)
    first = call(model, batch)
    assert (sum(x.nbytes for x in first[:-1] if isinstance(x, np.ndarray)) <= COPIED) == copied
    kept = copy.deepcopy(first)
    batch.step(20)
    second = call(model, batch)
    arrays = ([x for x in result if isinstance(x, np.ndarray)] for result in (kept, first, second))
    for before, same, after in zip(*arrays, strict=True):
        assert before.tobytes() == same.tobytes()
        assert not np.shares_memory(same, after)
    assert first[0].tobytes() != second[0].tobytes()


def test_copies_of_a_batch_read_their_own_rows(rng):
    model = fl.bundled("cartpole")
    batch = moving_batch(model, rng)
    before = fl.linearize(model, batch).A
    for other in (copy.copy(batch), pickle.loads(pickle.dumps(batch))):
        other.step(20)
        expected = fl.linearize(other.model, other, method="finite_difference").A
        assert np.abs(fl.linearize(other.model, other).A - expected).max() < BY_DIFFERENCES
        assert fl.linearize(model, batch).A.tobytes() == before.tobytes()


def test_edits_of_the_model_reach_every_world_of_a_batch(rng, monkeypatch):
    model = fl.bundled("humanoid")
    batch = moving_batch(model, rng)
    before = fl.linearize(model, batch).A
    model.dof_damping[6:] *= 2.0
    assert_direct(monkeypatch, model, batch)
    assert np.abs(fl.linearize(model, batch).A - before).max() > 1e-6
    model.opt.integrator = "implicitfast"
    assert_direct(monkeypatch, model, batch)


def test_batches_that_tiles_cannot_load_take_the_other_path(rng, monkeypatch):
    model, other = fl.bundled("arm"), fl.bundled("cartpole")
    model.opt.integrator = other.opt.integrator = "implicitfast"
    batch = moving_batch(model, rng)
    assert_direct(monkeypatch, model, batch)
    batch.expand("dof_damping")[:] *= rng.uniform(0.5, 2.0, (19, 1))
    assert_direct(monkeypatch, model, batch, direct=False)
    assert_direct(monkeypatch, model, moving_batch(model, rng, dtype="float32"), direct=False)
    mixed = fl.MixedBatch([(model, 3), (other, 3)])
    for group, direct in zip(mixed.groups, (True, False), strict=True):  # the first has no unused entries
        assert_direct(monkeypatch, group.model, group, direct=direct)


def test_states_without_formulas_are_differenced(rng, monkeypatch):
    """The armature of a tendon has no formula; the next calls do not try formulas, and later ones do."""
    model = fl.load(TENDON)
    batch = moving_batch(model, rng)
    assert_direct(monkeypatch, model, batch)
    model.tendon_armature[0] = 0.1
    for _ in range(2):
        assert_direct(monkeypatch, model, batch, direct=False)
    model.tendon_armature[0] = 0.0
    for _ in range(SKIPPED):
        fl.linearize(model, batch)
    assert_direct(monkeypatch, model, batch)


LAGGING = """<mujoco><option timestep="0.004"/><worldbody>
  <body><joint name="a" axis="0 1 0" damping="0.1"/><geom size="0.05" pos="0.2 0 0"/>
    <body pos="0.3 0 0"><joint name="b" axis="0 1 0" stiffness="1"/><geom size="0.05" pos="0.2 0 0"/></body></body>
  </worldbody><actuator><muscle joint="a" lengthrange="-1 1" force="3"/>
    <general joint="b" dyntype="filterexact" dynprm="0.05" actearly="true"/>
    <position joint="b" kp="2" delay="0.02" nsample="8"/><motor joint="a" delay="0" nsample="4"/></actuator></mujoco>"""


def test_activations_and_delayed_controls_are_read_directly(rng, monkeypatch):
    """A delayed control acts on no state after the step."""
    model = fl.load(LAGGING)
    batch = moving_batch(model, rng)
    batch.act[:], batch.ctrl[:, 0] = rng.uniform(0.1, 0.9, batch.act.shape), rng.uniform(0.1, 0.9, 19)
    for call in (fl.linearize, fl.acceleration_derivatives):
        assert_direct(monkeypatch, model, batch, call)
    found, steps = fl.linearize(model, batch), fl.linearize(model, batch, method="finite_difference")
    assert np.abs(found.A - steps.A).max() < BY_DIFFERENCES and np.abs(found.B - steps.B).max() < BY_DIFFERENCES
    assert not found.B[:, :, 2].any() and found.B[:, 2:, [0, 1, 3]].any(1).all()
