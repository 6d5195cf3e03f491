"""`featherlane.integrations.mujoco_rollout` against `mujoco.rollout`: MuJoCo's tests, and cases that they lack."""

import importlib.util
import re
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mujoco import rollout as theirs

import exam
import featherlane as fl
from featherlane.integrations import mujoco_rollout as ours

FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
# tests of MuJoCo that fail, with the reason
FAILS = {"test_intercept_mj_errors": "an invalid solver is a ModelError, raised before a step, and not a FatalError"}
TWO_LINKS = """<mujoco>
  <worldbody>
    <body>
      <joint name="a" axis="0 1 0"/>
      <geom size=".05" fromto="0 0 0 0 0 -1" type="capsule"/>
      <body pos="0 0 -1">
        <joint name="b" axis="0 1 0"/>
        <geom size=".05" fromto="0 0 0 0 0 -1" type="capsule"/>
      </body>
    </body>
  </worldbody>
  <actuator> <motor joint="a"/> </actuator>
  <sensor> <jointpos joint="b"/> <jointvel joint="a"/> </sensor>
</mujoco>"""


def states(model, n, rng):
    """Returns random states (n, nstate) near the default."""
    data, out = mujoco.MjData(model), np.zeros((n, mujoco.mj_stateSize(model, FULL)))
    for row in out:
        mujoco.mj_resetData(model, data)
        data.qvel = rng.normal(0, 0.5, model.nv)
        mujoco.mj_getState(model, data, row, FULL)
    return out


def both(model, data, *arguments, **how):
    """Returns results of MuJoCo and of Featherlane."""
    return theirs.rollout(model, data, *arguments, **how), ours.rollout(model, data, *arguments, **how)


def close(pair, rtol=1e-9):
    for reference, found in zip(*pair, strict=True):
        np.testing.assert_allclose(
            found, reference, rtol=rtol, atol=rtol * max(1.0, np.abs(reference).max(initial=0.0))
        )


@pytest.mark.skipif(importlib.util.find_spec("absl") is None, reason="MuJoCo's tests need absl-py")
def test_the_tests_of_mujoco_pass():
    done = exam.run("rollout")
    failed = set(re.findall(r"^(?:FAIL|ERROR): (\w+)", done.stderr, re.MULTILINE))
    number = re.search(r"^Ran (\d+) tests", done.stderr, re.MULTILINE)
    assert failed == set(FAILS), done.stderr[-3000:]
    assert number and int(number[1]) >= 60


@pytest.mark.parametrize("nthread", [1, 2])
def test_a_robot_moves_as_under_mujoco(nthread, rng):
    model = fl.bundled("quadruped").mj_model
    data = [mujoco.MjData(model) for _ in range(nthread)]
    control = rng.uniform(-1, 1, (6, 20, model.nu))
    close(both(model, data, states(model, 6, rng), control), 1e-7)


def test_an_edit_of_a_model_takes_effect(rng):
    model = mujoco.MjModel.from_xml_string(TWO_LINKS)
    start, data = states(model, 3, rng), mujoco.MjData(model)
    with ours.Rollout() as made:
        first = made.rollout(model, data, start, nstep=10)[0].copy()
        model.body_mass[1] *= 3.0
        second = made.rollout(model, data, start, nstep=10)[0]
        assert not np.array_equal(first, second)
        close((theirs.rollout(model, data, start, nstep=10), made.rollout(model, data, start, nstep=10)))


def test_each_rollout_has_its_own_model(rng):
    models = []
    for k in range(4):
        models.append(mujoco.MjModel.from_xml_string(TWO_LINKS))
        models[k].body_mass[1:] *= 1.0 + k % 3
    close(both(models, mujoco.MjData(models[0]), states(models[0], 4, rng), nstep=15))


def test_inputs_and_warm_starts(rng):
    model = fl.bundled("humanoid").mj_model
    spec = mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_QFRC_APPLIED
    control = rng.uniform(-1, 1, (2, 5, mujoco.mj_stateSize(model, spec)))
    warm = rng.normal(0, 1, (2, model.nv))
    start = states(model, 2, rng)
    close(both(model, mujoco.MjData(model), start, control, control_spec=int(spec), initial_warmstart=warm), 1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_a_rollout_with_a_non_finite_state_repeats_its_last_state(bad, rng):
    model = mujoco.MjModel.from_xml_string(TWO_LINKS)
    start = states(model, 3, rng)
    start[1, 1] = bad
    pair = both(model, mujoco.MjData(model), start, nstep=6)
    close(pair)
    assert (pair[1][0][1] == pair[1][0][1, 0]).all()


def test_data_is_not_written(rng):
    model = mujoco.MjModel.from_xml_string(TWO_LINKS)
    data = mujoco.MjData(model)
    before = data.qpos.copy(), data.time
    ours.rollout(model, data, states(model, 2, rng), nstep=3)
    assert np.array_equal(data.qpos, before[0]) and data.time == before[1]


@pytest.mark.parametrize(
    "arguments, how, message",
    [
        ((np.zeros((2, 7)),), {}, "trailing dimension of initial_state must be 5, got 7"),
        ((np.zeros((2, 5)), np.zeros((3, 4, 1))), {}, "dimension 0 inferred as 2 but control has 3"),
        ((np.zeros((2, 5)), "left"), {}, "control must be a numpy array or float"),
        ((np.zeros((2, 5)),), {"control_spec": 2}, "control_spec can only contain bits in mjSTATE_USER"),
        ((np.zeros((2, 5)),), {"nstep": -1}, "nstep must be non-negative"),
        ((np.zeros((2, 5)),), {"nstep": 2.5}, "nstep must be an integer"),
        ((np.zeros((2, 5)),), {"chunk_size": 0}, "chunk_size must be a positive integer"),
    ],
)
def test_wrong_arguments_raise_the_errors_of_mujoco(arguments, how, message):
    model = mujoco.MjModel.from_xml_string(TWO_LINKS)
    for function in (theirs.rollout, ours.rollout):
        with pytest.raises(ValueError, match=re.escape(message)):
            function(model, mujoco.MjData(model), *arguments, **how)


def test_batches_of_earlier_calls_are_released(rng):
    """A controller that edits its model before each call must not collect a batch for each edit."""
    model = mujoco.MjModel.from_xml_string(TWO_LINKS)
    start, data = states(model, 2, rng), mujoco.MjData(model)
    with ours.Rollout() as made:
        kept = set()
        for k in range(4):
            model.body_mass[1] = 1.0 + k
            made.rollout(model, data, start, nstep=2)
            kept.add(len(made._rolled))
        assert kept == {1}


def loaded_example():
    path = Path(__file__).parents[2] / "examples" / "mppi.py"
    spec = importlib.util.spec_from_file_location("mppi", path)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


@pytest.mark.ci
def test_a_sampling_controller_runs_with_both_imports():
    """The MPPI example swings up a cart-pole; with MuJoCo's module it takes the same path."""
    example, path = loaded_example(), {}
    for module in (theirs, ours):
        example.rollout = module
        path[module] = example.main(nstep=60).qpos.copy()
    np.testing.assert_allclose(path[ours], path[theirs], rtol=0, atol=1e-6)
    assert np.cos(example.main().qpos[1]) > 0.9
