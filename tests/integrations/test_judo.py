"""judo's controllers with `featherlane.integrations.mujoco_rollout`, against their run with `mujoco.rollout`.

judo-rai 0.1.0 needs MuJoCo 3.6, the other tests need MuJoCo 4.0.1.  In an environment with judo-rai:
`pytest --noconftest -n0 -m "" tests/integrations/test_judo.py`.
"""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("judo", exc_type=ImportError)
import mujoco

if not mujoco.__version__.startswith("3.6."):
    pytest.skip(f"judo needs MuJoCo 3.6, found {mujoco.__version__}", allow_module_level=True)
from judo import MODEL_PATH
from judo.controller import make_controller
from judo.utils import mj_rollout_backend
from mujoco.rollout import Rollout

from featherlane.integrations import mujoco_rollout

SAME = 1e-8  # of controls; the engines differ by rounding
# judo downloads the meshes of other tasks at its first use
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (MODEL_PATH / "meshes").exists(), reason="judo's meshes are not downloaded"),
]


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


def test_the_example_of_the_page_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "integrations" / "judo.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    exec(compile(code, "page", "exec"), {})
    assert capsys.readouterr().out.startswith("[")
    assert mj_rollout_backend.Rollout is mujoco_rollout.Rollout


@pytest.mark.parametrize("optimizer", ["mppi", "cem", "ps"])
def test_the_cartpole_is_controlled_as_with_mujoco(optimizer):
    found = played("cartpole", optimizer, mujoco_rollout.Rollout, 30)
    np.testing.assert_allclose(found, played("cartpole", optimizer, Rollout, 30), rtol=0, atol=SAME)
    assert np.abs(found).max() > 0.0


def test_a_pushed_cylinder_moves_with_featherlane():
    found = played("cylinder_push", "mppi", mujoco_rollout.Rollout, 10)
    assert np.isfinite(found).all() and np.abs(found).max() > 0.0
