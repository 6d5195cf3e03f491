"""Environments whose worlds have different models: `fl.variants`, and robots of different sizes."""

import copy
import pickle

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import kernel
from featherlane.environments import BatchEnv, RandomStreams, Task, TaskEnv

LENGTHS = [0.5, 0.7, 0.5, 0.4]
N = len(LENGTHS)


def lengthen(spec, length):
    spec.geom("upper_rod").fromto = [0, 0, 0, 0, 0, -length]
    spec.body("lower").pos = [0, -0.05, -length]


class Balance(Task):
    """Keep the tip of a double pendulum high."""

    frame_skip, fields, max_episode_steps = 5, ("site_xpos",), 30

    def __init__(self, model):
        self.model = model

    def prepare(self, worlds):
        self.mass = [group.expand("body_mass") for group in getattr(worlds, "groups", [worlds])]
        self.position = worlds.qpos

    def observation(self, worlds):
        return {"position": self.position, "velocity": worlds.qvel}

    def reward(self, worlds, actions, before):
        return worlds.site_xpos[:, 0, 2]

    def terminated(self, worlds):
        return np.abs(worlds.qvel[:, 1]) > 12.0

    def start(self, worlds, ids, random: RandomStreams):
        worlds.qpos[ids] = random.uniform(ids, -0.3, 0.3, 2)


def actions(env, count):
    return np.random.default_rng(0).uniform(-1, 1, (count, *env.action_space.shape))


def env_of_variants(mode="NextStep"):
    found = fl.variants("double_pendulum", LENGTHS, lengthen)
    return TaskEnv(Balance(found), N, autoreset_mode=mode, nthread=1), found


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_worlds_of_variants_equal_environments_of_each_variant(mode):
    env, found = env_of_variants(mode)
    seeds = list(range(10, 10 + N))
    observations, _ = env.reset(seed=seeds)
    starts = np.cumsum([0] + [n for _, n in found.models])
    alone = [TaskEnv(Balance(model), n, autoreset_mode=mode, nthread=1) for model, n in found.models]
    expected = [one.reset(seed=seeds[a : a + one.num_envs])[0] for one, a in zip(alone, starts, strict=False)]
    np.testing.assert_array_equal(observations, np.concatenate(expected))
    for action in actions(env, 50):  # beyond the end of the first episodes
        found_results = env.step(action)
        results = [one.step(action[a : a + one.num_envs]) for one, a in zip(alone, starts, strict=False)]
        for k in range(4):
            np.testing.assert_array_equal(found_results[k], np.concatenate([result[k] for result in results]))


def test_variants_differ():
    env, found = env_of_variants()
    env.reset(seed=[5] * N)
    rewards = env.step(np.zeros((N, env.single_action_space.shape[0])))[1][found.place]
    assert rewards[0] == rewards[2] and len(set(rewards)) == 3


def test_copies_continue_bit_for_bit():
    env, _ = env_of_variants()
    env.reset(seed=0)
    for action in actions(env, 5):
        env.step(action)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert np.may_share_memory(other.task.position, other.batch.qpos)
        assert np.may_share_memory(other.task.mass[1], other.batch.groups[1].expanded("body_mass"))
        reference = copy.deepcopy(env)
        for action in actions(env, 10):
            for a, b in zip(reference.step(action)[:4], other.step(action)[:4], strict=True):
                np.testing.assert_array_equal(a, b)


def test_robots_of_different_sizes_have_padded_fields():
    single = fl.bundled("pendulum")
    single.opt.timestep = fl.bundled("quadruped").opt.timestep
    models = [(fl.bundled("quadruped"), 2), (single, 3)]
    env = BatchEnv(
        models, 5, observation=lambda batch: batch.qpos, reward=lambda batch, before: batch.qvel[:, 0], frame_skip=2
    )
    nu = [model.nu for model, _ in models]
    assert env.single_action_space.shape == (max(nu),)
    env.reset(seed=0)
    observations = env.step(np.ones((5, max(nu))))[0]
    assert observations.shape == (5, models[0][0].nq) and not observations[2:, 1:].any()
    assert not env.batch.ctrl[2:, nu[1] :].any() and env.batch.ctrl[2:, : nu[1]].all()
    alone = fl.Batch(models[1][0], 3)
    alone.ctrl = 1.0
    alone.step(2)
    np.testing.assert_array_equal(observations[2:, :1], alone.qpos)


def test_a_diverged_world_ends_its_episode():
    env, _ = env_of_variants()
    env.reset(seed=0)
    env.batch.qvel[3, 0] = np.nan
    with pytest.warns(fl.NonFiniteWarning):
        results = env.step(np.zeros(env.action_space.shape))
    assert results[2].tolist() == [False, False, False, True] and results[4]["bad_world"][3]


@kernel
def height(m, d, i):
    d.sensor_now[m.sensor_adr[i]] = d.qpos[0]


def test_wrong_models_are_refused():
    found = fl.variants("double_pendulum", LENGTHS, lengthen)
    with pytest.raises(fl.ModelError, match="num_envs: got 3, allowed is 4"):
        TaskEnv(Balance(found), 3)
    fast = fl.load(fl.bundled("double_pendulum").mj_model)
    fast.opt.timestep = 0.001
    with pytest.raises(fl.ModelError, match="time step"):
        TaskEnv(Balance([(fl.bundled("double_pendulum"), 1), (fast, 1)]), 2)
    task = Balance(found)
    task.kernels = {"height": (height, 1)}
    with pytest.raises(fl.ModelError, match="kernels"):
        TaskEnv(task, N)
    with pytest.raises(fl.errors.ArgumentTypeError, match="pairs"):
        TaskEnv(Balance([fl.bundled("double_pendulum")]), 1)
