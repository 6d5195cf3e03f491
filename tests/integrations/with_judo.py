"""judo's controllers with `featherlane.integrations.mujoco_rollout`, against their run with `mujoco.rollout`.

judo-rai 0.1.0 needs MuJoCo 3.6; `test_other_mujoco.py` runs this file in a separate process.
"""

import contextlib
import io
import re
from pathlib import Path

import mujoco
import numpy as np
import pytest
from judo import MODEL_PATH
from judo.controller import make_controller
from judo.utils import mj_rollout_backend
from mujoco.rollout import Rollout

from featherlane.integrations import mujoco_rollout

SAME = 1e-8  # of controls; the engines differ by rounding
PAGE = Path(__file__).parents[2] / "docs" / "integrations" / "judo.md"
# the constructor of each of judo's tasks downloads their meshes
with_meshes = pytest.mark.skipif(not (MODEL_PATH / "meshes").exists(), reason="judo's meshes are not downloaded")


def played(task, optimizer, rollout, steps):
    """Returns the controls of a task's first steps, (steps, nu), planned with a class `Rollout`."""
    mj_rollout_backend.Rollout = rollout
    np.random.seed(0)
    controller, controls = make_controller(task, optimizer), []
    controller.task.reset()
    data = controller.task.data
    for _ in range(steps):
        controller.current_state, controller.time = np.concatenate([data.qpos, data.qvel]), data.time
        controller.update_action()
        data.ctrl[:] = controller.action(controller.time)
        controls.append(data.ctrl.copy())
        mujoco.mj_step(controller.task.model, data)
    return np.array(controls)


@pytest.fixture(autouse=True)
def class_is_restored():
    yield
    mj_rollout_backend.Rollout = Rollout


@pytest.fixture(scope="module")
def shown():
    """Returns what the example of the page prints; the task `swing_up` is registered by it."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    out = io.StringIO()
    np.random.seed(0)
    with contextlib.redirect_stdout(out):
        exec(compile(code, "page", "exec"), {})
    assert mj_rollout_backend.Rollout is mujoco_rollout.Rollout
    return out.getvalue()


def test_the_example_of_the_page_swings_the_pendulum_up(shown):
    (height,) = re.findall(r"^height of the tip: (\S+) m$", shown)
    assert float(height) > 0.45  # of 0.5


@pytest.mark.parametrize("optimizer", ["mppi", "cem", "ps"])
@pytest.mark.parametrize("task", ["swing_up", pytest.param("cartpole", marks=with_meshes)])
def test_a_task_is_controlled_as_with_mujoco(task, optimizer, shown):
    found = played(task, optimizer, mujoco_rollout.Rollout, 30)
    np.testing.assert_allclose(found, played(task, optimizer, Rollout, 30), rtol=0, atol=SAME)
    assert np.abs(found).max() > 0.0


@with_meshes
def test_a_pushed_cylinder_moves_with_featherlane():
    found = played("cylinder_push", "mppi", mujoco_rollout.Rollout, 10)
    assert np.isfinite(found).all() and np.abs(found).max() > 0.0
