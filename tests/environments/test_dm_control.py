"""Tasks of dm_control's suite against dm_control: initial states, steps, rewards, spaces; and `tolerance`.

Tests that need dm_control are skipped if it is not installed; it imports with MuJoCo 3.17 and 4.0.1.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import featherlane as fl
import featherlane.environments as environments
from featherlane.environments.dm_control import TASKS
from featherlane.environments.dm_control.rewards import SIGMOIDS, tolerance

N = 3
NAMES = [task.name.removeprefix("dm_control.") for task in TASKS]
SAME = 1e-9  # relative, of converged solvers
FIRST = 1e-13  # of initial observations
SETTLED = 1e-7  # of states that dm_control's initialization reaches by 200 time steps
pytestmark = pytest.mark.filterwarnings("ignore:.*settotalmass:UserWarning")


class SameNumbers(np.random.RandomState):
    """Samples from a Generator, as a world of an environment with the same seed does."""

    def __new__(cls, seed):
        return super().__new__(cls)

    def __init__(self, seed):
        super().__init__(0)
        self.generator = np.random.default_rng(seed)

    def uniform(self, low=0.0, high=1.0, size=None):
        shape = np.broadcast_shapes(np.shape(low), np.shape(high)) if size is None else size
        return self.generator.random(shape or None) * np.subtract(high, low) + low

    def rand(self, *shape):
        return self.generator.random(shape or None)

    def randn(self, *shape):
        return self.generator.standard_normal(shape or None)

    def choice(self, values, p):
        return values[np.searchsorted(np.cumsum(p), self.generator.random(), side="right")]


@pytest.fixture
def suite():
    return pytest.importorskip("dm_control.suite", exc_type=ImportError)


@pytest.fixture
def models(request):
    """Skips the test if the models of dm_control are not installed."""
    from featherlane.environments.dm_control.suite_task import suite_folder

    try:
        suite_folder()
    except fl.InstallationError as error:
        pytest.skip(str(error))


def ours(name, n=N, **settings):
    return gym.make_vec(f"featherlane/dm_control.{name}", num_envs=n, nthread=1, **settings)


def theirs(suite, name, seed, exact=True):
    """Returns dm_control's environment, which samples as a world with this seed, with a converged solver."""
    env = suite.load(*name.split("-"), task_kwargs={"random": SameNumbers(seed)})
    if exact:
        env.physics.model.opt.tolerance, env.physics.model.opt.iterations = 0.0, 100
    return env


def exact(env):
    env.batch.model.opt.tolerance, env.batch.model.opt.iterations = 0.0, 100


def flat(observation):
    return np.concatenate([np.ravel(part) for part in observation.values()])


def actions(env, count, seed=0):
    space = env.single_action_space
    return np.random.default_rng(seed).uniform(space.low, space.high, (count, env.num_envs, *space.shape))


def set_state(env, world, physics):
    """Copies state and edited fields of the model into a world."""
    for field in ("qpos", "qvel", "qacc_warmstart"):
        getattr(env.batch, field)[world] = getattr(physics.data, field)
    for field, values in env.batch.expanded_fields.items():
        values[world] = getattr(physics.model, field).reshape(values[world].shape)


def test_every_benchmarking_task_exists(suite):
    assert sorted(NAMES) == sorted("-".join(pair) for pair in suite.BENCHMARKING)


@pytest.mark.parametrize("name", NAMES)
def test_spaces_and_times_are_those_of_dm_control(name, suite):
    env, reference = ours(name), theirs(suite, name, 0)
    spec = reference.action_spec()
    np.testing.assert_array_equal(env.single_action_space.low, spec.minimum.astype(np.float32))
    np.testing.assert_array_equal(env.single_action_space.high, spec.maximum.astype(np.float32))
    size = sum(int(np.prod(part.shape)) for part in reference.observation_spec().values())
    assert env.single_observation_space.shape == (size,)
    assert env.frame_skip == reference._n_sub_steps
    assert env.max_episode_steps == int(np.ceil(reference._step_limit))
    assert env.dt == pytest.approx(reference.control_timestep())


@pytest.mark.parametrize("name", NAMES)
def test_initial_states_are_those_of_dm_control_from_the_same_random_numbers(name, suite):
    env = ours(name, autoreset_mode="Disabled")
    exact(env)
    tolerance_of_first = SETTLED if name == "cheetah-run" else FIRST
    references = [theirs(suite, name, 7 + w) for w in range(N)]
    seen, _ = env.reset(seed=7)
    for _ in range(4):  # later episodes continue the random streams
        for w, reference in enumerate(references):
            expected = flat(reference.reset().observation)
            np.testing.assert_allclose(seen[w], expected, rtol=tolerance_of_first, atol=tolerance_of_first)
            assert reference.physics.data.time == env.batch.time[w] == 0.0
        seen, _ = env.reset()


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_those_of_dm_control_from_its_own_states(name, suite, steps=50):
    env = ours(name, autoreset_mode="Disabled")
    exact(env)
    env.reset(seed=0)
    references = [theirs(suite, name, w) for w in range(N)]
    for reference in references:
        reference.reset()
    for action in actions(env, steps):
        for w, reference in enumerate(references):
            set_state(env, w, reference.physics)
        seen, rewards, terminated, truncated, _ = env.step(action)
        for w, reference in enumerate(references):
            expected = reference.step(action[w])
            np.testing.assert_allclose(seen[w], flat(expected.observation), rtol=SAME, atol=SAME)
            assert rewards[w] == pytest.approx(expected.reward, rel=SAME, abs=SAME)
            assert not terminated[w] and not truncated[w] and not expected.last()


@pytest.mark.parametrize("sigmoid", SIGMOIDS)
def test_tolerance_is_that_of_dm_control(sigmoid, suite):
    from dm_control.utils import rewards

    x = np.linspace(-4, 4, 101)
    for bounds in ((0.0, 0.0), (-1.0, 0.5), (1.0, np.inf), (-np.inf, 0.3)):
        for margin in (0.0, 0.5, 2.0):
            for value in (0.1, 0.6):
                expected = rewards.tolerance(x, bounds, margin, sigmoid, value)
                np.testing.assert_allclose(tolerance(x, bounds, margin, sigmoid, value), expected, atol=1e-15)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"bounds": (1.0, 0.0)}, "bounds"),
        ({"margin": -1.0}, "margin"),
        ({"sigmoid": "step"}, "sigmoid"),
        ({"margin": 1.0, "value_at_margin": 0.0}, "value_at_margin"),
        ({"margin": 1.0, "sigmoid": "linear", "value_at_margin": 1.0}, "value_at_margin"),
    ],
)
def test_a_wrong_argument_of_tolerance_is_refused(settings, named):
    with pytest.raises(fl.ModelError, match=named):
        tolerance(np.zeros(2), **settings)


def test_worlds_are_reproducible_in_any_batch(models):
    for name in ("hopper-hop", "manipulator-bring_ball"):
        few, many = ours(name, 2), ours(name, 9)
        np.testing.assert_array_equal(few.reset(seed=3)[0], many.reset(seed=3)[0][:2])
        for action in actions(many, 10):
            one, other = few.step(action[:2]), many.step(action)
            np.testing.assert_array_equal(one[0], other[0][:2])
            np.testing.assert_array_equal(one[1], other[1][:2])


def test_episodes_are_truncated_and_never_terminate(models):
    env = ours("pendulum-swingup", max_episode_steps=5)
    env.reset(seed=0)
    for k in range(5):
        *_, terminated, truncated, _ = env.step(actions(env, 1)[0])
    assert truncated.all() and not terminated.any()


def test_without_dm_control_an_error_names_the_extra(monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "dm_control" else find(name, *a))
    with pytest.raises(fl.InstallationError, match=r"featherlane\[dm-control\]"):
        environments.make_vec("dm_control.walker-walk")
