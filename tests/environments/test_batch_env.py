"""A batch as a vector environment, against Gymnasium's vector of single environments and with its checks."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import ClipReward, NormalizeObservation, RecordEpisodeStatistics

import featherlane as fl
from featherlane.engine.model.enums import Disable
from featherlane.environments import BatchEnv

N, LIMIT = 6, 9
EXAMPLE = Path(__file__).parents[2] / "examples" / "vector_env.py"


def observation(batch):
    return np.concatenate([batch.qpos, batch.qvel], axis=1)


def reward(batch, before):
    return np.cos(batch.qpos[:, 1]) - 0.01 * np.abs(batch.qvel[:, 0] - before.qvel[:, 0])


def off_track(batch):
    return np.abs(batch.qpos[:, 0]) > 0.02


def start(batch, ids, rng):
    batch.qpos[ids, 1] = rng.uniform(-0.1, 0.1, len(ids))


def carts(n=N, mode=AutoresetMode.NEXT_STEP, **settings):
    settings = {"terminated": off_track, "max_episode_steps": LIMIT, **settings}
    return BatchEnv("cartpole", n, observation=observation, reward=reward, autoreset_mode=mode, **settings)


class OneWorld(gym.Env):
    """Returns a batch of one world as a single environment."""

    def __init__(self, **settings):
        self.vector = carts(1, AutoresetMode.DISABLED, **settings)
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        seen, infos = self.vector.reset(seed=seed)
        return seen[0], infos

    def step(self, action):
        seen, reward, terminated, truncated, infos = self.vector.step(action[None])
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), infos


def pushes(env, count, seed=0):
    """Returns per-world actions that drive the carts off the track at different times."""
    rng = np.random.default_rng(seed)
    bias = np.linspace(-1, 1, env.num_envs)[:, None]
    return [np.clip(bias + rng.uniform(-0.3, 0.3, (env.num_envs, 1)), -1, 1) for _ in range(count)]


@pytest.mark.filterwarnings("ignore::UserWarning")  # about unbounded observations and the missing registered spec
@pytest.mark.parametrize("settings", [{}, {"start": start}])
def test_a_single_world_passes_gymnasiums_check(settings):
    check_env(OneWorld(**settings))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_worlds_terminate_and_reset_as_in_gymnasiums_vector(mode):
    ours, theirs = carts(mode=mode), SyncVectorEnv([OneWorld] * N, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"]
    assert data_equivalence(ours.reset()[0], theirs.reset()[0], exact=True)
    terminations, truncations = np.zeros(N, int), np.zeros(N, int)
    for action in pushes(ours, 120):
        *given, infos = ours.step(action)
        *expected, expected_infos = theirs.step(action)
        for one, other in zip(given, expected, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        assert set(infos) == set(expected_infos)
        if "final_obs" in infos:
            np.testing.assert_array_equal(infos["_final_obs"], expected_infos["_final_obs"])
            for one, other in zip(infos["final_obs"], expected_infos["final_obs"], strict=True):
                np.testing.assert_array_equal(one, other)
        terminations, truncations = terminations + given[2], truncations + given[3]
    assert terminations.any() and truncations.any() and len(set(terminations)) > 2


def test_without_autoreset_worlds_wait_for_an_explicit_reset():
    env = carts(mode=AutoresetMode.DISABLED)
    env.reset()
    actions = iter(pushes(env, 40))
    while True:
        seen, _, terminated, truncated, _ = env.step(next(actions))
        done = terminated | truncated
        if done.any():
            break
    with pytest.raises(gym.error.ResetNeeded):
        env.step(next(actions))
    again, _ = env.reset(options={"reset_mask": done})
    np.testing.assert_array_equal(again[~done], seen[~done])
    np.testing.assert_array_equal(again[done], carts().reset()[0][done])
    env.step(next(actions))


def test_observations_and_actions_lie_in_their_spaces():
    env = carts(dtype="float32")
    assert env.observation_space.shape == (N, 4) and env.action_space.shape == (N, 1)
    assert env.single_observation_space.dtype == np.float32
    seen, infos = env.reset(seed=1)
    assert seen in env.observation_space and infos == {}
    seen, rewards, terminated, truncated, infos = env.step(env.action_space.sample())
    assert seen in env.observation_space
    assert rewards.shape == terminated.shape == truncated.shape == (N,)
    assert (rewards.dtype, terminated.dtype, truncated.dtype) == (float, bool, bool)


def test_the_action_space_is_the_range_of_the_controls():
    model = fl.bundled("humanoid")
    env = BatchEnv(model, 2, observation=observation, reward=reward)
    np.testing.assert_allclose(env.single_action_space.low, model.actuator_ctrlrange[:, 0], rtol=1e-6)
    np.testing.assert_allclose(env.single_action_space.high, model.actuator_ctrlrange[:, 1], rtol=1e-6)
    free = fl.load(
        '<mujoco><worldbody><body><joint name="j"/><geom size="1"/></body></worldbody>'
        '<actuator><motor joint="j"/></actuator></mujoco>'
    )
    assert np.isinf(
        BatchEnv(free, 1, observation=observation, reward=lambda batch, before: np.zeros(1)).single_action_space.high
    ).all()


def test_episodes_are_equal_for_equal_seeds_only():
    def run(seed):
        env = carts(start=start)
        return [env.reset(seed=seed), *(env.step(action) for action in pushes(env, 30))]

    assert data_equivalence(run(3), run(3), exact=True)
    assert not data_equivalence(run(3)[0], run(4)[0])


def test_results_are_not_overwritten_by_later_steps():
    env = carts()
    first = env.reset()[0]
    kept = first.copy()
    second = env.step(pushes(env, 1)[0])
    copies = [x.copy() for x in second[:4]]
    env.step(pushes(env, 1)[0])
    np.testing.assert_array_equal(first, kept)
    for one, other in zip(second[:4], copies, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_gymnasiums_wrappers_count_episodes(mode):
    env = RecordEpisodeStatistics(carts(mode=mode))
    normal = NormalizeObservation(env) if mode is AutoresetMode.NEXT_STEP else env  # the other mode is an error
    wrapped = ClipReward(normal, -1, 1)
    wrapped.reset(seed=0)
    ends = 0
    for action in pushes(env, 120):
        seen, _, terminated, truncated, infos = wrapped.step(action)
        ends += (terminated | truncated).sum()
        if (terminated | truncated).any():
            assert (infos["episode"]["l"][terminated | truncated] <= LIMIT).all()
    assert env.episode_count == ends > 0
    assert np.isfinite(seen).all()


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_a_non_finite_world_terminates_and_is_reported(mode):
    env = carts(mode=mode)
    env.reset()
    env.batch.qvel[2] = np.nan
    seen, rewards, terminated, truncated, infos = env.step(np.zeros((N, 1)))
    assert np.flatnonzero(terminated).tolist() == [2] and not truncated.any()
    assert np.isfinite(seen).all() and rewards[2] == 0.0 and (rewards[[0, 1, 3, 4, 5]] > 0).all()
    infos = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert np.flatnonzero(infos["bad_world"]).tolist() == [2]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_nan_action_is_refused_and_no_world_steps(mode):
    env = carts(mode=mode)
    env.reset()
    actions = np.zeros((N, 1))
    actions[2] = np.nan
    with pytest.raises(fl.ModelError, match="actions: got NaN in world 2"):
        env.step(actions)
    assert not env.batch.time.any() and not env.batch.ctrl.any()
    env.step(np.zeros((N, 1)))


@pytest.mark.parametrize("value", [np.inf, -1e11])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_world_with_an_out_of_range_action_terminates_and_is_reported(mode, value):
    def effort(batch, before):
        return 1.0 - np.abs(batch.ctrl[:, 0])

    model = fl.bundled("cartpole")
    model.actuator_ctrllimited[:] = False
    env = BatchEnv(model, N, observation=observation, reward=effort, frame_skip=2, autoreset_mode=mode)
    env.reset()
    actions = np.zeros((N, 1))
    actions[2] = value
    seen, rewards, terminated, truncated, infos = env.step(actions)
    assert np.flatnonzero(terminated).tolist() == [2] and not truncated.any()
    assert rewards.tolist() == [1, 1, 0, 1, 1, 1] and np.isfinite(seen).all()
    infos = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert np.flatnonzero(infos["bad_world"]).tolist() == [2]
    env.reset(options={"reset_mask": np.arange(N) == 2})
    *_, terminated, _, infos = env.step(np.zeros((N, 1)))
    assert not terminated.any() and not infos
    for _ in range(2):  # also in the first step after a reset
        *_, terminated, _, _ = env.step(actions)
        assert np.flatnonzero(terminated).tolist() == [2]
        env.reset(options={"reset_mask": np.arange(N) == 2})


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_without_autoreset_a_non_finite_world_terminates():
    model = fl.bundled("cartpole")
    model.opt.disableflags |= Disable.AUTORESET
    env = BatchEnv(model, N, observation=observation, reward=reward)
    env.reset()
    env.batch.qvel[2] = np.nan
    _, rewards, terminated, _, infos = env.step(np.zeros((N, 1)))
    assert np.flatnonzero(terminated).tolist() == np.flatnonzero(infos["bad_world"]).tolist() == [2]
    assert rewards[2] == 0.0


def test_a_nan_reward_is_refused():
    env = BatchEnv("cartpole", N, observation=observation, reward=lambda batch, before: np.log(batch.qpos[:, 0] - 1.0))
    env.reset()
    with np.errstate(invalid="ignore"), pytest.raises(fl.ModelError, match=r"reward: got .* in world 0"):
        env.step(np.zeros((N, 1)))


def test_frames_are_skipped():
    env = carts(frame_skip=3, max_episode_steps=None, terminated=None)
    env.reset()
    *_, terminated, truncated, _ = env.step(np.zeros((N, 1)))
    np.testing.assert_allclose(env.batch.time, 3 * env.batch.model.opt.timestep)
    assert not terminated.any() and not truncated.any()


@pytest.mark.parametrize(
    "settings",
    [{"frame_skip": 0}, {"frame_skip": 1.5}, {"max_episode_steps": 0}, {"n": 0}, {"dtype": "int8"}, {"nthread": -1}],
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(fl.ModelError):
        carts(**settings)


def test_results_of_another_shape_are_refused():
    with pytest.raises(fl.ModelError):
        BatchEnv("cartpole", N, observation=lambda batch: batch.qpos[:, 0], reward=reward)
    env = BatchEnv("cartpole", N, observation=observation, reward=lambda batch, before: batch.qpos)
    env.reset()
    with pytest.raises(fl.ModelError, match="reward"):
        env.step(np.zeros((N, 1)))
    with pytest.raises(fl.ModelError):
        env.step(np.zeros((N, 2)))
    with pytest.raises(fl.ModelError):
        env.reset(options={"reset_mask": np.zeros(N, bool)})


def test_the_example_runs_on_many_worlds():
    spec = importlib.util.spec_from_file_location("vector_env_example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    env = RecordEpisodeStatistics(example.humanoids(64))
    env.action_space.seed(0)
    seen, _ = env.reset(seed=0)
    assert seen in env.observation_space and len(np.unique(seen, axis=0)) == 64
    for _ in range(200):
        seen, rewards, *_, infos = env.step(env.action_space.sample())
        assert np.isfinite(seen).all() and np.isfinite(rewards).all() and "bad_world" not in infos
    assert env.episode_count >= 64


@pytest.mark.parametrize("given", [{"q": 1}, "seen", None, [[1], [2, 3]], np.zeros(N) + 1j])
def test_callback_results_must_be_numbers(given):
    with pytest.raises(fl.ModelError):
        BatchEnv("cartpole", N, observation=lambda batch: given, reward=reward)
    env = BatchEnv("cartpole", N, observation=observation, reward=lambda batch, before: given)
    env.reset()
    with pytest.raises(fl.ModelError):
        env.step(env.action_space.sample())
    with pytest.raises(fl.ModelError):
        env.step(given)


def test_callbacks_must_be_callable():
    for name in ("observation", "reward", "terminated", "start"):
        with pytest.raises(fl.ModelError):
            BatchEnv("cartpole", N, **{"observation": observation, "reward": reward, name: "qpos"})


def test_without_gymnasium_the_message_names_the_extra():
    code = "import sys; sys.modules['gymnasium'] = None; import featherlane.environments"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=900)
    assert "pip install 'featherlane[gym]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_failures_are_recorded_from_the_start_of_the_episode(mode):
    env = BatchEnv(
        "cartpole",
        N,
        observation=observation,
        reward=reward,
        autoreset_mode=mode,
        max_episode_steps=4,
        frame_skip=3,
        record_failures=30,
    )
    env.reset(seed=1)
    action, done = np.full((N, 1), 0.3), np.zeros(N, bool)
    with pytest.warns(fl.NonFiniteWarning):
        for k in range(8):
            if mode is AutoresetMode.DISABLED and done.any():
                env.reset(options={"reset_mask": done})
            env.batch.qvel[2, 0] = np.nan if k == 6 else env.batch.qvel[2, 0]
            _, _, terminated, truncated, _ = env.step(action)
            done = terminated | truncated
    (failure,) = env.batch.failures
    resting = mode is AutoresetMode.NEXT_STEP  # for one action after each episode
    assert (failure.world, failure.cause) == (2, "non_finite")
    assert failure.nstep == (1 if resting else 2) * 3 + 1
    assert failure.states["time"][0, 0] == 0.0
    assert (failure.states["ctrl"] == 0.3).all()
    assert np.isnan(failure.replay(-1).qvel[0]) and failure.replay().time == pytest.approx(0.01)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_observations_after_a_reset_are_of_the_new_state(mode):
    def seen(batch):
        return batch.xpos[:, 2].copy()

    env = BatchEnv(
        "cartpole",
        N,
        observation=seen,
        reward=reward,
        start=start,
        fields=("xpos",),
        max_episode_steps=3,
        autoreset_mode=mode,
    )
    check = fl.Batch(env.batch.model, N)
    check.bind("xpos")

    def expected():
        check.qpos = env.batch.qpos
        check.forward()
        return check.xpos[:, 2]

    assert np.array_equal(env.reset(seed=1)[0], expected())
    for _ in range(3 + (mode is AutoresetMode.NEXT_STEP)):
        last, *_ = env.step(np.ones((N, 1)))
    last = last if mode is not AutoresetMode.DISABLED else env.reset()[0]
    assert np.array_equal(last, expected()) and not env.elapsed.any()


def test_fields_that_a_reward_reads_must_be_declared():
    functions = {"observation": observation, "reward": lambda batch, before: batch.xpos[:, 2, 2]}
    env = BatchEnv("cartpole", N, **functions)
    env.reset(seed=1)
    with pytest.raises(fl.ModelError, match="xpos"):
        env.step(np.ones((N, 1)))
    env = BatchEnv("cartpole", N, **functions, fields=("xpos",))
    env.reset(seed=1)
    assert env.step(np.ones((N, 1)))[1].all()
    with pytest.raises(fl.ModelError):
        BatchEnv("cartpole", N, **functions, fields=("xposition",))
