"""Functions of a task that are compiled into the step, against the same in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import real, sqrt
from featherlane.environments import Task, TaskEnv

N = 20


@fl.kernel
def upright(m, d, i):
    """Returns the height of the second body, its upward axis, and its speed."""
    speed = real(d, 0.0)
    for k in range(m.nv):
        speed = speed + d.qvel[k] * d.qvel[k]
    return d.xpos[2].z, d.xmat[2].zz, sqrt(speed)


class Pole(Task):
    """Balances a pole on a cart, observed by a kernel and by NumPy."""

    model = "cartpole"
    kernels = {"upright": (upright, 3)}  # noqa: RUF012
    fields = ("xpos", "xmat")

    def __init__(self, derived="gymnasium"):
        self.derived = derived

    def start(self, worlds, ids, random):
        worlds.qpos[ids] = random.uniform(ids, -0.3, 0.3, worlds.model.nq)
        worlds.qvel[ids] = random.uniform(ids, -1.0, 1.0, worlds.model.nv)

    def observation(self, worlds):
        return {
            "compiled": self.measured(worlds, "upright"),
            "frames": worlds.xpos[:, 2, 2:],
            "up": worlds.xmat[:, 2, 8:],
        }

    def reward(self, worlds, actions, before):
        return {"up": self.measured(worlds, "upright")[:, 1]}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("derived", ["gymnasium", "fresh"])
def test_task_kernels_equal_numpy(derived, dtype):
    env = TaskEnv(Pole(derived), N, nthread=1, dtype=dtype)
    seen, _ = env.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(5):
        before = env.batch.qvel.copy()
        np.testing.assert_array_equal(seen[:, :2], seen[:, 3:])
        seen, rewards, *_ = env.step(rng.uniform(-1, 1, (N, 1)))
        np.testing.assert_array_equal(rewards, seen[:, 1])
        velocity = env.batch.qvel if derived == "fresh" else before
        np.testing.assert_allclose(seen[:, 2], np.sqrt(np.square(velocity).sum(axis=1)), rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (upright, r"kernels\['bad'\]:"),
        ((np.sum, 1), r"kernels\['bad'\]:"),
        ((upright, 0), r"kernels\['bad'\]:"),
        ((upright, 2), r"sensor 'task/bad'"),
    ],
)
def test_a_function_that_is_not_a_kernel_is_refused(given, told):
    task = Pole()
    task.kernels = {"bad": given}
    with pytest.raises(fl.ModelError, match=told):
        TaskEnv(task, N)


def test_a_loaded_model_is_refused():
    task = Pole()
    task.model = fl.bundled("cartpole")
    with pytest.raises(fl.ModelError):
        TaskEnv(task, N)


@pytest.mark.parametrize(
    "source", ["cartpole", '<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>']
)
def test_sources_can_be_names_and_texts(source):
    task = Pole()
    task.model, task.kernels, task.fields = source, {"speed": (speed, 1)}, ()
    task.observation = lambda worlds: task.measured(worlds, "speed")
    task.start = lambda worlds, ids, random: worlds.qvel.__setitem__((ids, 0), 3.0)
    assert TaskEnv(task, 2).reset()[0].tolist() == [[3.0], [3.0]]


@fl.kernel
def speed(m, d, i):
    return d.qvel[0]
