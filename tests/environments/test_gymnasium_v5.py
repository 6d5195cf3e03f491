"""Gymnasium's MuJoCo tasks against the originals: resets, steps, rewards, terminations, infos, spaces."""

from __future__ import annotations

import inspect
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import featherlane as fl
import featherlane.environments as environments
from sampling import every

N = 3
NAMES = [task.name for task in environments.gymnasium_v5.TASKS]
SAME = 1e-9  # relative; the solvers of both sides converge to the minimum
ROUNDED = {"Humanoid-v5", "HumanoidStandup-v5", "Reacher-v5"}  # initial observations include inertias or frames
FIRST = 1e-14  # of initial observations
pytestmark = pytest.mark.filterwarnings("ignore:.*settotalmass:UserWarning", "ignore:.*bound precision.*:UserWarning")


def ours(name, n=N, **settings):
    return gym.make_vec(f"featherlane/{name}", num_envs=n, nthread=1, **settings)


def exact(options):
    """Sets Newton with tolerance 0 instead of the file's options."""
    options.tolerance, options.iterations = 0.0, 100
    options.solver = "newton" if isinstance(options, fl.results.Option) else 2


def actions(env, count, seed=0):
    space = env.single_action_space
    rng = np.random.default_rng(seed)
    return rng.uniform(space.low, space.high, (count, env.num_envs, *space.shape)).astype(np.float32)


@pytest.mark.parametrize("name", NAMES)
def test_spaces_and_keyword_arguments_equal_gymnasium(name):
    env, theirs = ours(name), gym.make(name)
    assert env.single_action_space == theirs.action_space
    assert env.single_observation_space == theirs.observation_space
    assert env.metadata["render_fps"] == theirs.metadata["render_fps"]
    assert env.spec.max_episode_steps == env.max_episode_steps == theirs.spec.max_episode_steps
    assert env.spec.reward_threshold == theirs.spec.reward_threshold
    asked = inspect.signature(type(theirs.unwrapped)).parameters
    task = env.task
    for key, parameter in asked.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        # for the camera, some versions have {} and others None
        given, default = ({} if value is None else value for value in (getattr(task, key), parameter.default))
        np.testing.assert_equal(given, default, err_msg=key)


@pytest.mark.parametrize(
    "option", [{"reset_noise_scale": np.nan}, {"ctrl_cost_weight": np.inf}, {"healthy_z_range": (2.0, 1.0)}]
)
def test_options_that_are_not_finite_or_ordered_are_refused(option):
    with pytest.raises(fl.ModelError, match=f"{next(iter(option))}: got "):
        gym.make_vec("featherlane/Ant-v5", num_envs=2, **option)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_initial_states_of_gymnasiums_vector(name):
    env, theirs = ours(name, info=True), SyncVectorEnv([lambda: gym.make(name)] * N)
    for seed in (7, None, [3, None, 11]):
        (seen, infos), (expected, expected_infos) = env.reset(seed=seed), theirs.reset(seed=seed)
        if name in ROUNDED:
            np.testing.assert_allclose(seen, expected, rtol=FIRST, atol=FIRST)
        else:
            np.testing.assert_array_equal(seen, expected)
        assert seen.dtype == expected.dtype
        same_infos(infos, expected_infos)


def same_infos(infos, expected):
    assert sorted(infos) == sorted(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(infos[key], value, rtol=SAME, atol=SAME, err_msg=key)


@pytest.mark.parametrize("name", every(3, NAMES))
def test_steps_equal_gymnasium_from_its_states(name, steps=60):
    compare_steps(name, steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_steps_equal_gymnasium_from_its_states(name):
    compare_steps(name, 200)


def compare_steps(name, steps, **settings):
    env = ours(name, info=True, autoreset_mode="Disabled", **settings)
    singles = [gym.make(name, **settings).unwrapped for _ in range(N)]
    exact(env.batch.model.opt)
    env.reset(seed=3)
    for w, single in enumerate(singles):
        exact(single.model.opt)
        single.reset(seed=3 + w)
    batch, ends = env.batch, 0
    for action in actions(env, steps):
        for w, single in enumerate(singles):
            for field in ("qpos", "qvel", "qacc_warmstart"):
                getattr(batch, field)[w] = getattr(single.data, field)
        env.revive()
        seen, rewards, terminated, _, infos = env.step(action)
        for w, single in enumerate(singles):
            expected, reward, ended, _, told = single.step(action[w])
            np.testing.assert_allclose(seen[w], expected, rtol=SAME, atol=SAME)
            assert rewards[w] == pytest.approx(reward, rel=SAME, abs=SAME)
            assert terminated[w] == ended
            assert {key for key in infos if key[:1] != "_"} == set(told)
            for key, value in told.items():
                np.testing.assert_allclose(infos[key][w], value, rtol=SAME, atol=SAME, err_msg=key)
            ends += ended
    return ends


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("Ant-v5", {"include_cfrc_ext_in_observation": False, "exclude_current_positions_from_observation": False}),
        ("Ant-v5", {"main_body": "torso", "contact_force_range": (-0.5, 2.0), "frame_skip": 2, "healthy_reward": 0.3}),
        ("HalfCheetah-v5", {"forward_reward_weight": 2.0, "ctrl_cost_weight": 0.3, "reset_noise_scale": 0.2}),
        ("Hopper-v5", {"terminate_when_unhealthy": False, "healthy_z_range": (0.9, 1.3)}),
        ("Humanoid-v5", {"include_cvel_in_observation": False, "contact_cost_range": (0.01, 0.02)}),
        ("HumanoidStandup-v5", {"include_cinert_in_observation": False, "uph_cost_weight": 3.0}),
        ("InvertedDoublePendulum-v5", {"healthy_reward": 2.0}),
        ("Pusher-v5", {"reward_near_weight": 2.0, "reward_control_weight": 0.7}),
        ("Reacher-v5", {"reward_dist_weight": 2.0}),
        ("Swimmer-v5", {"exclude_current_positions_from_observation": False, "ctrl_cost_weight": 0.1}),
        ("Walker2d-v5", {"healthy_angle_range": (-0.3, 0.3), "healthy_reward": 2.0}),
    ],
)
def test_keyword_arguments_act_as_in_gymnasium(name, settings):
    compare_steps(name, 25, **settings)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("name", ["Hopper-v5", "Walker2d-v5", "InvertedPendulum-v5", "Reacher-v5"])
def test_episodes_terminate_and_reset_as_in_gymnasiums_vector(name, mode):
    limit = 40
    env = ours(name, info=True, autoreset_mode=mode, max_episode_steps=limit)
    theirs = SyncVectorEnv([lambda: gym.make(name, max_episode_steps=limit)] * N, autoreset_mode=mode)
    exact(env.batch.model.opt)
    for single in theirs.envs:
        exact(single.unwrapped.model.opt)
    env.reset(seed=5), theirs.reset(seed=5)
    ended = 0
    for action in actions(env, 90):
        *given, infos = env.step(action)
        *expected, expected_infos = theirs.step(action)
        for one, other in zip(given, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)  # chaotic: worlds are not synchronized
            assert one.dtype == other.dtype
        assert sorted(infos) == sorted(expected_infos)
        assert sorted(infos.get("final_info", {})) == sorted(expected_infos.get("final_info", {}))
        for key in ("final_obs", "final_info"):
            if key in infos:
                np.testing.assert_array_equal(infos[f"_{key}"], expected_infos[f"_{key}"])
        ended += (given[2] | given[3]).sum()
    assert ended > N


def test_observations_belong_to_the_current_state():
    lag, fresh = ours("Reacher-v5"), ours("Reacher-v5", derived="fresh")
    lag.reset(seed=1), fresh.reset(seed=1)
    for action in actions(lag, 5):
        old, new = lag.step(action)[0], fresh.step(action)[0]
        np.testing.assert_array_equal(old[:, :8], new[:, :8])
    lag.batch.forward()
    tip = lag.batch.xpos[:, lag.task.tip] - lag.batch.xpos[:, lag.task.target]
    np.testing.assert_array_equal(new[:, 8:], tip[:, :2])
    assert (old[:, 8:] != new[:, 8:]).any()


def test_equal_seeds_give_equal_episodes_in_any_batch():
    few, many = ours("Hopper-v5", 2), ours("Hopper-v5", 20)
    both = [few.reset(seed=1)[0], many.reset(seed=1)[0][:2]]
    assert data_equivalence(*both, exact=True)
    for action in actions(many, 80):
        one, other = few.step(action[:2]), many.step(action)
        for a, b in zip(one[:4], other[:4], strict=True):
            np.testing.assert_array_equal(a, b[:2])


def test_float32_worlds_have_float32_observations():
    env = ours("Ant-v5", dtype="float32")
    seen, _ = env.reset(seed=0)
    assert seen.dtype == env.single_observation_space.dtype == np.float32 and seen in env.observation_space


def test_two_buffers_keep_the_previous_observation():
    env = ours("Swimmer-v5", copy=False)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    second = env.step(actions(env, 1)[0])[0]
    assert second is not first and second.base is None
    np.testing.assert_array_equal(first, kept)
    assert env.step(actions(env, 1)[0])[0] is first


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"ctrl_cost_wieght": 1.0},
            "Ant-v5: unknown keyword argument 'ctrl_cost_wieght'; did you mean 'ctrl_cost_weight'",
        ),
        ({"derived": "new"}, "derived: got 'new', allowed are gymnasium, fresh"),
        ({"autoreset_mode": "never"}, "autoreset_mode: got 'never', allowed"),
        ({"frame_skip": 0}, "frame_skip: got 0, allowed is a whole number >= 1"),
        ({"xml_file": "aunt.xml"}, "aunt.xml"),
        ({"main_body": "tail"}, "tail"),
        ({"render_mode": "ascii"}, "render_mode: got 'ascii', allowed are rgb_array"),
    ],
)
def test_invalid_settings_are_refused(settings, told):
    with pytest.raises(fl.ModelError) as error:
        ours("Ant-v5", **settings)
    assert told in str(error.value)


def test_an_invalid_task_is_refused():
    with pytest.raises(fl.ModelError):
        environments.make_vec("Aunt-v5")


@pytest.mark.parametrize("seed", [-1, 1.5, "a", [1, 2], [1, 2, -3], True])
def test_invalid_seeds_are_refused(seed):
    env = ours("Reacher-v5")
    with pytest.raises(fl.ModelError):
        env.reset(seed=seed)


def test_contact_forces_are_zero_after_each_reset_with_contacts():
    env = ours("HumanoidStandup-v5")
    forces = slice(-env.batch.cfrc_ext[0, 1:].size, None)
    for _ in range(2):
        seen, _ = env.reset(seed=0)
        assert env.batch.cfrc_ext.any() and not seen[:, forces].any()
        assert env.step(actions(env, 1)[0])[0][:, forces].any()


@pytest.mark.parametrize("noise", [0.1, 1.5])
def test_rail_limits_push_a_cart_from_the_first_step(noise):
    """Their initial values equal those of a forward pass: zero if no cart is at a limit."""
    env = ours("InvertedDoublePendulum-v5", 40, reset_noise_scale=noise)
    env.reset(seed=0)
    env.elapsed[:] = 1000
    env.step(np.zeros((40, 1)))
    seen = env.step(np.zeros((40, 1)))[0]  # reset by the step
    env.batch.forward()
    force = np.clip(env.batch.qfrc_constraint[:, 0], -10, 10)
    np.testing.assert_array_equal(seen[:, 8], force)
    assert (np.abs(env.batch.qpos[:, 0]) < 0.99).all() != force.any()


def test_the_file_of_half_cheetah_warns_only_as_a_file_of_the_user():
    task = environments.gymnasium_v5.HalfCheetah()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*settotalmass")
        environments.TaskEnv(task, 2)
    with pytest.warns(UserWarning, match="settotalmass"):
        environments.TaskEnv(environments.gymnasium_v5.HalfCheetah(xml_file=task.model), 2)
