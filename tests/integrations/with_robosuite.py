"""`use` on robosuite's environments, against MuJoCo; robosuite 1.5.2 needs MuJoCo 3.7 or older.

`test_other_mujoco.py` runs this file in a separate process.
"""

import mujoco
import numpy as np
import pytest
import robosuite

import featherlane as fl
from featherlane.integrations.robosuite import use

STEP = 1e-9  # relative, of one action from equal states with converged solvers
TASKS = [("Lift", "Panda"), ("Stack", "Sawyer"), ("Door", "Panda"), ("TwoArmLift", ["Panda", "Panda"])]


def made(task, robots, **settings):
    env = robosuite.make(
        task, robots=robots, has_renderer=False, has_offscreen_renderer=False, use_camera_obs=False, seed=0, **settings
    )
    return env


def data(env):
    return env.sim.data._data


def converged(env):
    option = env.sim.model._model.opt
    option.tolerance, option.iterations = 0.0, 100


def compare(task, robots, count=5, **settings):
    theirs, ours = made(task, robots, **settings), use(made(task, robots, **settings))
    theirs.reset(), ours.reset()
    converged(theirs), converged(ours)
    rng, (low, high) = np.random.default_rng(0), theirs.action_spec
    for _ in range(count):
        for name in ("qpos", "qvel", "qacc_warmstart"):
            getattr(data(ours), name)[:] = getattr(data(theirs), name)
        action = rng.uniform(low, high)
        expected, found = theirs.step(action), ours.step(action)
        for name, values in expected[0].items():
            np.testing.assert_allclose(found[0][name], values, rtol=0, atol=STEP, err_msg=name)
        assert found[1] == pytest.approx(expected[1], rel=STEP, abs=STEP)
        for name in ("qacc", "efc_force", "sensordata"):
            scale = max(1.0, np.abs(getattr(data(theirs), name)).max(initial=0.0))
            np.testing.assert_allclose(
                getattr(data(ours), name), getattr(data(theirs), name), rtol=0, atol=1e-8 * scale
            )


@pytest.mark.parametrize(("task", "robots"), TASKS)
def test_actions_from_equal_states_have_equal_results(task, robots):
    compare(task, robots)


def test_whole_steps_without_lite_physics():
    compare("Lift", "Panda", lite_physics=False)


def test_bad_controls_are_counted():
    counts = []
    for env in (made("Lift", "Panda"), use(made("Lift", "Panda"))):
        env.reset()
        env.step(np.full(env.action_dim, np.nan))
        counts.append([warning.number for warning in data(env).warning])
    assert counts[0] == counts[1] and counts[0][mujoco.mjtWarning.mjWARN_BADCTRL] == 25  # time steps


def test_other_objects_are_refused():
    with pytest.raises(fl.errors.ArgumentTypeError, match="int"):
        use(3)
