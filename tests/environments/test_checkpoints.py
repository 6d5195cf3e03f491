"""Checkpoints of environments: bitwise equal continuation, the state of a task, size, and what is refused."""

from __future__ import annotations

import pickle
from collections import deque

import numpy as np
import pytest

import featherlane as fl
from featherlane import environments
from featherlane.environments import Task, TaskEnv
from scenes.counting import Count, TwoSided

N = 6
TASKS = "QuadrupedRough-v0", "HumanoidWalk-v0", "Humanoid-v5", "InvertedDoublePendulum-v5", "ArmPush-v0"
pytestmark = pytest.mark.filterwarnings("ignore:.*settotalmass:UserWarning")


def run(env, steps, seed):
    """Returns observations and rewards of random actions."""
    rng, size = np.random.default_rng(seed), env.action_space.shape
    return [env.step(rng.uniform(-0.4, 0.4, size).astype(np.float32))[:2] for _ in range(steps)]


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_restored_environment_continues_with_the_same_bits(name, mode):
    make = lambda: environments.make_vec(name, N, nthread=1, autoreset_mode=mode, max_episode_steps=9)  # noqa: E731
    env, other = make(), make()
    env.reset(seed=3)
    run(env, 12, 0)
    kept = pickle.loads(pickle.dumps(env.checkpoint()))
    expected = run(env, 15, 1)
    other.restore(kept)
    for ours, (seen, rewards) in zip(run(other, 15, 1), expected, strict=True):
        np.testing.assert_array_equal(ours[0], seen)
        np.testing.assert_array_equal(ours[1], rewards)
    env.restore(kept)
    np.testing.assert_array_equal(run(env, 15, 1)[-1][0], expected[-1][0])
    assert env.np_random_seed == other.np_random_seed == tuple(range(3, 3 + N))


class Curriculum(TwoSided):
    """Worlds have levels, which are the state of the task in every form that a task may use."""

    def prepare(self, worlds):
        self.level, self.mass = np.zeros(N, int), worlds.expand("body_mass")
        self.tables, self.recent, self.rng = {"won": np.zeros(N)}, deque(maxlen=3), np.random.default_rng(0)
        self.share, self.parts, self.nothing = 0.5, [Count(), np.zeros(2)], None

    def start(self, worlds, ids, random):
        self.level[ids] += 1
        self.tables["won"][ids] += random.uniform(ids, 0.0, 1.0, 1)[:, 0]
        self.recent.append(float(self.rng.random()))
        self.mass[ids, 1] = self.level[ids]
        self.share, self.parts[0].ends, self.late = self.share / 2, [1, 2], {"a": [1.0]}
        self.parts[1][:] += 1.0


def test_the_state_of_a_task_is_restored():
    env, other = (TaskEnv(Curriculum([2, 3, 4, 5, 6, 7]), N, nthread=1) for _ in range(2))
    env.reset(seed=0)
    run(env, 9, 0)
    task, held = other.task, (other.task.level, other.task.tables["won"], other.task.parts[0])
    other.restore(env.checkpoint())
    assert task.level.tolist() == env.task.level.tolist() and len(set(task.level)) > 1
    assert (task.tables["won"] == env.task.tables["won"]).all() and task.recent == env.task.recent
    assert (task.share, task.late, task.parts[0].ends) == (env.task.share, {"a": [1.0]}, [1, 2])
    assert task.parts[1].tolist() == env.task.parts[1].tolist() and task.recent.maxlen == 3
    assert task.rng.random() == env.task.rng.random() and task.nothing is None
    assert all(a is b for a, b in zip(held, (task.level, task.tables["won"], task.parts[0]), strict=True))
    task.mass[0, 1] = 9.0
    assert other.batch.expand("body_mass")[0, 1] == 9.0, "the array is live still"


def test_a_checkpoint_is_a_copy():
    env = TaskEnv(Curriculum(), N)
    env.reset(seed=0)
    kept = env.checkpoint()
    run(env, 3, 0)
    assert kept["task"]["level"].tolist() == [1] * N and not kept["elapsed"].any()


def test_a_rollout_after_a_restoration_has_the_same_bits():
    env, other = (environments.make_vec("Reacher-v5", N, nthread=1) for _ in range(2))
    env.reset(seed=0)
    policy = fl.policies.MLP([np.full((2, 10), 0.01)])
    env.rollout(3, policy)
    other.restore(env.checkpoint())
    np.testing.assert_array_equal(env.rollout(3, policy).observations, other.rollout(3, policy).observations)


def test_worlds_of_several_models_are_restored():
    text = "<mujoco><worldbody><body><joint type='slide' axis='0 0 1'/><geom size='{}'/></body></worldbody></mujoco>"

    class Fall(Task):
        def observation(self, worlds):
            return worlds.qpos

        def reward(self, worlds, actions, before):
            return worlds.time

    Fall.model = [(fl.load(text.format(size)), n) for size, n in ((0.1, 1), (0.2, 2))]
    env, other = TaskEnv(Fall(), 3), TaskEnv(Fall(), 3)
    env.reset(seed=0), env.step(np.zeros((3, 0)))
    other.restore(env.checkpoint())
    seen, expected = other.step(np.zeros((3, 0)))[0], env.step(np.zeros((3, 0)))[0]
    assert (seen == expected).all() and (seen < 0).all()


def test_a_checkpoint_has_no_meshes():
    rng = np.random.default_rng(0)
    points = " ".join(f"{x:.4f}" for x in rng.standard_normal(9000))
    task = Count()
    task.model = f"""<mujoco><asset><mesh name="m" vertex="{points}"/></asset><worldbody><body>
    <joint name="x" type="slide"/><geom type="mesh" mesh="m"/></body></worldbody>
    <actuator><motor joint="x"/></actuator></mujoco>"""
    env = TaskEnv(task, 2)
    env.reset()
    assert len(pickle.dumps(env.checkpoint())) < 20_000 < 30_000 < len(pickle.dumps(env))


def test_a_checkpoint_has_no_terrain():
    env = environments.make_vec("QuadrupedRough-v0", N, nthread=1)
    env.reset()
    kept = env.checkpoint()
    assert "ground" not in kept["task"] and len(pickle.dumps(kept)) < 200_000 < env.task.ground.samples.nbytes


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda kept: None, "restore: got NoneType"),
        (lambda kept: {name: value for name, value in kept.items() if name != "random"}, "does not contain 'random'"),
        (lambda kept: kept | {"kind": "Ant"}, "got a checkpoint of the task Ant, allowed is TwoSided"),
        (lambda kept: kept | {"batch": {}}, "restore: the checkpoint does not contain"),
    ],
)
def test_other_checkpoints_are_refused(change, message):
    env = TaskEnv(TwoSided(), N)
    env.reset()
    with pytest.raises(fl.ModelError, match=message):
        env.restore(change(env.checkpoint()))


def test_a_checkpoint_of_another_number_of_worlds_is_refused():
    with pytest.raises(fl.ModelError, match="restore: "):
        TaskEnv(TwoSided(), 2).restore(TaskEnv(TwoSided(), 3).checkpoint())
