"""Our tasks: properties of each of them, for every robot."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import featherlane as fl
import featherlane.environments as environments
from featherlane.environments.tasks import TASKS

NAMES = [task.name for task in TASKS]
SUM = 1e-12  # a sum of a dozen terms in a different order


def made(name, n=4, **settings):
    return gym.make_vec(f"featherlane/{name}", num_envs=n, nthread=1, **settings)


def actions(env, count, seed=0):
    """Returns actions for each world from a separate generator, so that a smaller batch gets the same ones."""
    width = env.single_action_space.shape[0]
    each = [np.random.default_rng([seed, w]).uniform(-1, 1, (count, width)) for w in range(env.num_envs)]
    return np.stack(each, axis=1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_observations_are_named_and_finite(name, dtype):
    env = made(name, dtype=dtype)
    seen, _ = env.reset(seed=0)
    parts = env.task.observation(env.batch)
    assert sum(part.shape[1] for part in parts.values()) == seen.shape[1] == env.single_observation_space.shape[0]
    for action in actions(env, 30):
        seen, rewards, *_ = env.step(action)
        assert np.isfinite(seen).all()
        assert np.isfinite(rewards).all()
        assert seen.dtype == dtype


@pytest.mark.parametrize("name", NAMES)
def test_the_reward_is_the_sum_of_its_terms(name):
    env = made(name, info=True, autoreset_mode="SameStep")
    env.reset(seed=0)
    for action in actions(env, 10):
        _, rewards, ended, _, infos = env.step(action)
        assert list(env.terms) == list(env.task.default_weights)
        np.testing.assert_allclose(rewards, sum(env.terms.values()), rtol=SUM, atol=SUM)
        for term, values in env.terms.items():
            np.testing.assert_array_equal(infos[f"reward_{term}"][~ended], values[~ended])


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_scales_only_its_term(name):
    env, other = made(name), None
    first = next(iter(env.task.default_weights))
    other = made(name, weights={first: 3.0 * env.task.default_weights[first]})
    for each in (env, other):
        each.reset(seed=4)
        for action in actions(env, 3):
            each.step(action)
    for term, values in env.terms.items():
        np.testing.assert_allclose(other.terms[term], values * (3.0 if term == first else 1.0), rtol=SUM, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_initial_states_differ_by_world_and_repeat_with_the_seed(name):
    env = made(name)
    first, _ = env.reset(seed=3)
    later, _ = env.reset()
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(first, again)
    assert (first != later).any(axis=1).all()
    assert len(np.unique(first, axis=0)) == env.num_envs
    shifted, _ = env.reset(seed=4)
    np.testing.assert_array_equal(shifted[:-1], first[1:])


@pytest.mark.parametrize("name", NAMES)
def test_an_episode_does_not_depend_on_the_batch(name, steps=40):
    """Over resets, new commands and pushes, world i of many equals world 0 of a batch with seed + i."""
    short = {"max_episode_steps": 17}
    if hasattr(environments.tasks()[name], "command_time"):
        short |= {"command_time": (0.04, 0.2), "push": 0.3, "push_time": (0.06, 0.1)}
    many = made(name, 11, **short)
    script = actions(many, steps)
    together = [many.reset(seed=20)[0]]
    paid = []
    for action in script:
        seen, rewards, *_ = many.step(action)
        together.append(seen)
        paid.append(rewards)
    for w in (0, 4, 10):
        alone = made(name, 1, **short)
        np.testing.assert_array_equal(alone.reset(seed=20 + w)[0][0], together[0][w])
        for k, action in enumerate(script):
            seen, rewards, *_ = alone.step(action[w : w + 1])
            np.testing.assert_array_equal(seen[0], together[k + 1][w], err_msg=f"world {w}, step {k}")
            assert rewards[0] == paid[k][w]


@pytest.mark.parametrize("name", NAMES)
def test_all_autoreset_modes_give_the_same_episodes(name, limit=9):
    same, single = made(name, 3, max_episode_steps=limit, autoreset_mode="SameStep"), gym.make(f"featherlane/{name}")
    script = actions(same, 3 * limit)
    seen = same.reset(seed=8)[0][1]
    expected = single.reset(seed=9)[0]
    for k, action in enumerate(script):
        np.testing.assert_array_equal(seen, expected, err_msg=f"step {k}")
        seen = same.step(action)[0][1]
        expected, _, ended, *_ = single.step(action[1])
        if ended or k % limit == limit - 1:
            expected = single.reset()[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_pickled_environment_continues_bitwise_equally(name):
    """Also over resets: its per-world models and its generators are copied."""
    own = {"mass": (0.8, 1.2), "friction": (0.7, 1.2), "gain": (0.9, 1.1), "delay": (0.0, 0.03)}
    env = made(name, **own, max_episode_steps=15)
    env.reset(seed=0)
    script = actions(env, 30)
    for action in script[:10]:
        env.step(action)
    other = pickle.loads(pickle.dumps(env))
    for action in script[10:]:
        for one, two in zip(env.step(action)[:4], other.step(action)[:4], strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*infinity")
def test_gymnasiums_own_checks_hold(name):
    check_env(gym.make(f"featherlane/{name}").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_clipped_to_one(name):
    envs = [made(name) for _ in range(2)]
    for env, scale in zip(envs, (1.0, 50.0), strict=True):
        env.reset(seed=1)
        seen = [env.step(np.clip(scale * np.sign(action), -scale, scale))[0] for action in actions(env, 5)]
        env.seen = seen
    np.testing.assert_array_equal(envs[0].seen, envs[1].seen)


@pytest.mark.parametrize("name", NAMES)
def test_models_differ_by_world_if_requested(name):
    settings = {"mass": (0.5, 2.0), "friction": (0.5, 2.0), "gain": (0.5, 2.0), "delay": (0.01, 0.05)}
    env = made(name, 5, **settings)
    env.reset(seed=0)
    batch, model = env.batch, env.batch.model
    factors = {
        "mass": batch.expanded("body_mass")[:, 1:] / model.body_mass[1:],
        "friction": batch.expanded("geom_friction")[:, :1, 0] / model.geom_friction[0, 0],
        "gain": batch.expanded("actuator_gainprm")[:, :, 0] / model.actuator_gainprm[:, 0],
        "delay": batch.expanded("actuator_delay")[:, :1],
    }
    for option, values in factors.items():
        values = values[:, np.isfinite(values[0])]
        low, high = settings[option]
        assert ((low <= values) & (values <= high)).all(), option
        assert len(np.unique(values)) == values.size, option
    stiffness = batch.expanded("actuator_biasprm")[:, :, 1] / model.actuator_biasprm[:, 1]
    np.testing.assert_allclose(stiffness, factors["gain"], rtol=SUM)
    subtree = batch.expanded("body_subtreemass")[:, 0]
    np.testing.assert_allclose(subtree, batch.expanded("body_mass").sum(axis=1), rtol=SUM)
    before = factors["gain"].copy()
    env.reset()
    assert (batch.expanded("actuator_gainprm")[:, :, 0] / model.actuator_gainprm[:, 0] != before).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_delayed_action_acts_after_its_delay(name, delay=0.05):
    """Before that, servos hold the initial posture, as if it had been the target all the time."""
    env = made(name, 1, delay=(delay, delay), mass=(1, 1), friction=(1, 1), gain=(1, 1))
    speeds = []
    for size in (0.0, 1.0):
        env.reset(seed=0)
        speeds.append([env.step(np.full((1, env.batch.model.nu), size)) and env.batch.qvel.copy() for _ in range(10)])
    late = int(np.ceil(delay / env.dt))
    still, moved = np.array(speeds)
    np.testing.assert_array_equal(still[: late - 1], moved[: late - 1])
    assert (still[late + 1 :] != moved[late + 1 :]).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"weights": {"speed": 1.0}}, "weights: term: got 'speed', allowed are"),
        ({"weights": [1.0]}, "weights: got list, allowed is a dict"),
        ({"weights": {"jerk": "much"}}, "weights['jerk']: got 'much', allowed is a finite number"),
        ({"weights": {"jerk": float("-inf")}}, "weights['jerk']: got -inf, allowed is a finite number"),
        ({"mass": 1.2}, "mass: got 1.2, allowed are two numbers from 0.05 to 20, the smaller one first"),
        ({"friction": (1.2, 0.8)}, "friction: got (1.2, 0.8)"),
        ({"gain": (0.0, 1.0)}, "gain: got (0.0, 1.0)"),
        ({"delay": (0.0, float("nan"))}, "delay: got (0.0, nan)"),
        ({"frame_skip": 0}, "frame_skip: got 0"),
        ({"derived": "stale"}, "derived: got 'stale'"),
        ({"camera": "track"}, "unknown keyword argument 'camera'"),
    ],
)
def test_wrong_options_are_refused(name, settings, told):
    with pytest.raises(fl.ModelError) as caught:
        made(name, 1, **settings)
    assert told in str(caught.value)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_option_is_explained(task):
    told = "".join(inspect.getdoc(base) or "" for base in task.__mro__ if base is not object)
    for option in dataclasses.fields(task):
        assert option.name in told, option.name


@pytest.mark.parametrize("name", NAMES)
def test_a_world_is_rendered(name):
    pytest.importorskip("OpenGL")
    env = made(name, 2, render_mode="rgb_array", render_worlds=1)
    env.reset(seed=0)
    try:
        drawn, black = env.render()
    except fl.InstallationError as error:
        pytest.skip(str(error))
    finally:
        env.close()
    assert drawn.shape == (env.task.height, env.task.width, 3)
    assert len(np.unique(drawn)) > 50
    assert not black.any()
