"""Vector environments against the facts that Gymnasium's tests assert of a `VectorEnv`, in our assertions.

Source: Gymnasium, tests/vector and tests/wrappers/vector: the asserted facts.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from packaging.version import Version

import featherlane as fl
from featherlane import environments
from featherlane.environments import Task, TaskEnv
from scenes.counting import Count

N = 3
TASKS = "Hopper-v5", "InvertedPendulum-v5", "Pusher-v5"  # one that falls soon, one that is truncated
LIMIT = 7
MODES = list(AutoresetMode)
RESETTING = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*settotalmass:UserWarning", "ignore:.*precision.*:UserWarning", "ignore:.*observation space m.*infinity"
)


def ours(name, n=N, **settings):
    return gym.make_vec(f"featherlane/{name}", num_envs=n, nthread=1, **settings)


def singles(name, n=N, mode=AutoresetMode.NEXT_STEP, wrapper=lambda env: env, **settings):
    """Returns Gymnasium's vector of single environments of the same task."""
    each = lambda: wrapper(gym.make(f"featherlane/{name}", **settings))  # noqa: E731
    return SyncVectorEnv([each] * n, autoreset_mode=mode)


PAID = np.array([[1.0], [2.0], [3.0]], np.float32)


def counted(env):
    """Returns the results of one step with the actions 1, 2, 3."""
    seen, rewards, terminations, truncations, infos = env.step(PAID)
    assert not truncations.any()
    return seen[:, 0].tolist(), rewards.tolist(), terminations.tolist(), infos


def test_next_step_mode_resets_in_the_step_after_termination():
    env = TaskEnv(Count([2, 3, 3]), N, nthread=1)
    seen, infos = env.reset()
    assert seen[:, 0].tolist() == [0, 0, 0] and infos == {}
    assert counted(env) == ([1, 1, 1], [1, 2, 3], [False, False, False], {})
    assert counted(env) == ([2, 2, 2], [1, 2, 3], [True, False, False], {})
    assert counted(env) == ([0, 3, 3], [0, 2, 3], [False, True, True], {})
    assert counted(env) == ([1, 0, 0], [1, 0, 0], [False, False, False], {})


def test_same_step_mode_resets_and_returns_the_final_observation():
    env = TaskEnv(Count([2, 3, 3]), N, autoreset_mode="SameStep", nthread=1)
    env.reset()
    assert counted(env) == ([1, 1, 1], [1, 2, 3], [False, False, False], {})
    for expected, final, ended in (
        (([0, 2, 2], [1, 2, 3]), [2, None, None], [True, False, False]),
        (([1, 0, 0], [1, 2, 3]), [None, 3, 3], [False, True, True]),
        (([0, 1, 1], [1, 2, 3]), [2, None, None], [True, False, False]),
    ):
        *results, terminations, infos = counted(env)
        assert tuple(results) == expected and terminations == ended
        assert [None if last is None else last.tolist() for last in infos["final_obs"]] == [
            None if last is None else [last] for last in final
        ]
        assert infos["_final_obs"].tolist() == infos["_final_info"].tolist() == ended and infos["final_info"] == {}
        assert infos["final_obs"].dtype == object
        assert all(infos["final_obs"][w] in env.single_observation_space for w in np.flatnonzero(ended))


def test_without_autoreset_a_mask_selects_the_worlds_to_reset():
    env = TaskEnv(Count([2, 3, 3]), N, autoreset_mode="Disabled", nthread=1)
    env.reset()
    counted(env)
    *_, ended, infos = counted(env)
    assert ended == [True, False, False] and infos == {}
    assert env.reset(options={"reset_mask": np.array(ended)})[0][:, 0].tolist() == [0, 2, 2]
    seen, rewards, ended, infos = counted(env)
    assert (seen, rewards, ended, infos) == ([1, 3, 3], [1, 2, 3], [False, True, True], {})
    assert env.reset(options={"reset_mask": np.array(ended)})[0][:, 0].tolist() == [1, 0, 0]
    assert counted(env) == ([2, 1, 1], [1, 2, 3], [True, False, False], {})
    with pytest.raises(gym.error.ResetNeeded):
        counted(env)


def test_calls_before_the_first_reset_are_refused():
    env = environments.make_vec("featherlane/Humanoid-v5", num_envs=3)
    policy = fl.policies.MLP([np.zeros(env.action_space.shape[1:] + env.observation_space.shape[1:])])
    for call in (lambda: env.step(env.action_space.sample()), lambda: env.rollout(2, policy)):
        env.reset(options={"reset_mask": np.array([True, False, False])})
        with pytest.raises(gym.error.ResetNeeded, match="world 1 was not reset"):
            call()
    env.reset(options={"reset_mask": np.array([False, True, True])})
    assert np.isfinite(env.rollout(2, policy).observations).all()


@pytest.mark.parametrize("mode", RESETTING)
@pytest.mark.parametrize("name", TASKS)
def test_a_vector_equals_gymnasiums_vector_of_single_worlds(name, mode):
    """Bitwise identical: spaces, observations, rewards, terminations, infos with final ones."""
    env, theirs = (
        ours(name, autoreset_mode=mode, info=True, max_episode_steps=LIMIT),
        singles(name, mode=mode, max_episode_steps=LIMIT),
    )
    for space in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(env, space) == getattr(theirs, space)
    assert env.num_envs == theirs.num_envs
    (seen, infos), (expected, expected_infos) = env.reset(seed=5), theirs.reset(seed=5)
    np.testing.assert_array_equal(seen, expected)
    assert data_equivalence(infos, expected_infos)
    env.action_space.seed(5)
    for _ in range(3 * LIMIT):
        actions = env.action_space.sample()
        assert actions in theirs.action_space
        results, expected = env.step(actions), theirs.step(actions)
        for one, other in zip(results[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        assert data_equivalence(listed(results[4]), listed(expected[4]))


def listed(infos):
    """Returns the contents of infos, without the order and kind of arrays of objects."""
    told = {}
    for name, value in sorted(infos.items()):
        objects = isinstance(value, np.ndarray) and value.dtype == object
        told[name] = listed(value) if isinstance(value, dict) else list(value) if objects else value
    return told


@pytest.mark.parametrize("mode", RESETTING)
def test_infos_become_lists_of_each_world_as_gymnasiums_do(mode):
    wrap = wrappers.vector.DictInfoToList
    env = wrap(ours("Hopper-v5", autoreset_mode=mode, info=True, max_episode_steps=LIMIT))
    theirs = wrap(singles("Hopper-v5", mode=mode, max_episode_steps=LIMIT))
    assert data_equivalence(env.reset(seed=0)[1], theirs.reset(seed=0)[1])
    env.action_space.seed(0)
    for _ in range(2 * LIMIT):
        actions = env.action_space.sample()
        for ours_told, told in zip(env.step(actions)[4], theirs.step(actions)[4], strict=True):
            assert sorted(ours_told) == sorted(told)
            for name, value in told.items():
                assert data_equivalence(ours_told[name], value), name


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("said", ["enum", "value", "registered"])
def test_the_metadata_contain_the_autoreset_mode(mode, said):
    if said == "registered":
        env = ours("Hopper-v5", autoreset_mode=mode.value)
    else:
        env = TaskEnv(Count([2, 3, 3]), N, autoreset_mode=mode if said == "enum" else mode.value)
    assert env.metadata["autoreset_mode"] is mode
    assert "autoreset_mode" not in TaskEnv.metadata, "metadata of the class are others' too"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_of_a_step_have_documented_types_and_shapes(dtype):
    env = ours("Hopper-v5", 8, dtype=dtype)
    seen, infos = env.reset()
    assert isinstance(infos, dict)
    for actions in (env.action_space.sample(), [env.single_action_space.sample() for _ in range(8)]):
        seen, rewards, terminations, truncations, infos = env.step(actions)
        assert isinstance(env.observation_space, gym.spaces.Box) and seen in env.observation_space
        assert seen.dtype == env.observation_space.dtype == dtype
        assert seen.shape == (8, *env.single_observation_space.shape) == env.observation_space.shape
        assert rewards.shape == (8,) and isinstance(rewards[0], float | np.floating)
        for ended in (terminations, truncations):
            assert ended.shape == (8,) and ended.dtype == np.bool_
        assert isinstance(infos, dict)


def test_seeds_are_returned_and_kept():
    env = ours("Hopper-v5")
    assert len(set(env.np_random_seed)) == N
    env.reset(seed=42)
    assert env.np_random_seed == (42, 43, 44)
    env.reset()
    assert env.np_random_seed == (42, 43, 44)
    assert len(env.np_random) == N


def test_equal_space_seeds_sample_equal_actions():
    one, other = ours("Hopper-v5"), ours("Hopper-v5")
    for env in (one, other):
        env.action_space.seed(9)
    for _ in range(5):
        np.testing.assert_array_equal(one.action_space.sample(), other.action_space.sample())


def test_some_worlds_are_reset_with_a_seed_and_the_others_are_unchanged():
    env = ours("Hopper-v5", autoreset_mode="Disabled")
    first, _ = env.reset(seed=[0, 1, 2])
    for _ in range(3):
        seen, *_ = env.step(np.zeros(env.action_space.shape, np.float32))
    again, _ = env.reset(seed=[0, 1, 0], options={"reset_mask": np.array([True, True, False])})
    np.testing.assert_array_equal(again[:2], first[:2])
    np.testing.assert_array_equal(again[2], seen[2])


@pytest.mark.parametrize("mask", [[True], [True] * 4, [[True] * 3], [False] * 3, [1, 1, 0], [1.0, 1.0, 0.0]])
def test_an_invalid_mask_is_refused_and_no_world_is_reset(mask):
    env = ours("Hopper-v5", autoreset_mode="Disabled")
    env.reset(seed=0)
    state = env.batch.qpos.copy()
    with pytest.raises(fl.ModelError):
        env.reset(options={"reset_mask": np.array(mask)})
    np.testing.assert_array_equal(env.batch.qpos, state)


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_number_of_actions_is_refused_and_no_world_steps(mode):
    env = ours("Hopper-v5", autoreset_mode=mode)
    env.reset(seed=0)
    state, actions = env.batch.qpos.copy(), env.action_space.sample()
    for wrong in (actions[:2], np.concatenate([actions, actions[:1]]), actions[:, :2], actions[None], 0, None, "abc"):
        with pytest.raises(fl.ModelError):
            env.step(wrong)
    np.testing.assert_array_equal(env.batch.qpos, state)
    assert all(len(result) == N for result in env.step(actions)[:4])


@pytest.mark.parametrize(
    ("name", "settings", "mode"),
    [
        *(("RecordEpisodeStatistics", {}, mode) for mode in RESETTING),
        *(("ClipReward", {"min_reward": -0.25, "max_reward": 0.75}, mode) for mode in RESETTING),
        *(("ClipAction", {}, mode) for mode in RESETTING),
        *(("RescaleAction", {"min_action": np.float32(-2), "max_action": np.float32(2)}, mode) for mode in RESETTING),
        # Gymnasium's observation wrappers do not support SAME_STEP
        ("DtypeObservation", {"dtype": np.float32}, AutoresetMode.NEXT_STEP),
        ("FlattenObservation", {}, AutoresetMode.NEXT_STEP),
        ("ReshapeObservation", {"shape": (11, 1)}, AutoresetMode.NEXT_STEP),
    ],
)
def test_vector_wrappers_equal_wrappers_of_single_worlds(name, settings, mode):
    vector = getattr(wrappers.vector, name)(
        ours("Hopper-v5", autoreset_mode=mode, info=True, max_episode_steps=LIMIT), **settings
    )
    wrapped = singles(
        "Hopper-v5", N, mode, lambda env: getattr(wrappers, name)(env, **settings), max_episode_steps=LIMIT
    )
    assert vector.action_space == wrapped.action_space and vector.observation_space == wrapped.observation_space
    np.testing.assert_array_equal(vector.reset(seed=1)[0], wrapped.reset(seed=1)[0])
    vector.action_space.seed(1)
    for _ in range(2 * LIMIT):
        actions = vector.action_space.sample()
        for one, other in zip(vector.step(actions)[:4], wrapped.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", MODES)
def test_statistics_of_episodes_are_right_in_every_mode(mode, length=3, steps=25):
    if mode is AutoresetMode.SAME_STEP and Version(gym.__version__) < Version("1.4"):
        pytest.skip("before 1.4, Gymnasium's wrapper loses a step of each episode in this mode")
    env = wrappers.vector.RecordEpisodeStatistics(TaskEnv(Count([length] * N), N, autoreset_mode=mode, nthread=1))
    env.reset()
    seen = 0
    for _ in range(steps):
        _, _, ended, _, infos = env.step(PAID)
        if ended.any():
            seen += 1
            assert infos["episode"]["l"].tolist() == [length] * N
            assert infos["episode"]["r"].tolist() == (length * PAID[:, 0]).tolist()
            if mode is AutoresetMode.DISABLED:
                env.reset(options={"reset_mask": ended})
    assert seen == steps // (length + (mode is AutoresetMode.NEXT_STEP))


def test_a_specification_recreates_the_environment():
    env = ours("Hopper-v5", forward_reward_weight=2.0, autoreset_mode="SameStep", max_episode_steps=LIMIT)
    again = gym.make_vec(pickle.loads(pickle.dumps(env.spec)))
    assert again.num_envs == N and again.max_episode_steps == LIMIT and again.metadata == env.metadata
    for one in (env, again):
        one.reset(seed=0)
    np.testing.assert_array_equal(*(one.step(np.ones(one.action_space.shape, np.float32))[1] for one in (env, again)))


def test_without_a_mode_nothing_is_rendered_and_closing_twice_does_no_harm():
    env = ours("Hopper-v5")
    assert env.render_mode is None and env.unwrapped is env
    env.reset()
    assert env.render() is None
    env.close()
    env.close()
    assert env.closed


@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
def test_calls_of_a_closed_environment_are_refused(make):
    env = make("featherlane/Hopper-v5").unwrapped
    env.reset()
    env.close()
    for call in (lambda: env.step(env.action_space.sample()), env.reset, env.render):
        with pytest.raises(gym.error.ClosedEnvironmentError):
            call()


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_faults_of_a_single_world_are_reported():
    env = gym.make("featherlane/Hopper-v5").unwrapped
    for _ in range(2):  # also in the first step after a reset
        env.reset(seed=0)
        env.batch.qvel[0, 0] = np.nan
        seen, reward, terminated, truncated, infos = env.step(np.zeros(3))
        assert np.isfinite(seen).all() and (reward, terminated, truncated) == (0.0, True, False)
        assert infos["bad_world"]
    env.reset()
    assert "bad_world" not in env.step(np.zeros(3))[-1]
    with pytest.raises(fl.ModelError, match="actions: got NaN in world 0, column 1"):
        env.step(np.array([0.0, np.nan, 0.0]))
    env.task.forward_reward_weight = np.inf
    with pytest.raises(fl.ModelError, match=r"reward: got .* in world 0, allowed are finite numbers"):
        env.step(np.zeros(3))


def test_results_of_a_single_world_are_copies():
    env = gym.make("featherlane/Humanoid-v5").unwrapped
    env.reset(seed=0)
    seen, _, _, _, infos = env.step(env.action_space.sample())
    kept = seen.copy(), {name: np.copy(value) for name, value in infos.items()}
    env.step(env.action_space.sample())
    np.testing.assert_array_equal(seen, kept[0])
    assert all(np.array_equal(infos[name], value) for name, value in kept[1].items())
    assert infos["tendon_length"].shape == (2,) and np.ndim(infos["x_velocity"]) == 0


# tasks of dm_control, robosuite and LIBERO are checked where these libraries are installed
OWN = sorted(name for name in environments.tasks() if not name.startswith(("dm_control.", "robosuite.", "libero_")))


@pytest.mark.parametrize("name", OWN)
@pytest.mark.filterwarnings("ignore:.*For Box action spaces")
def test_one_world_of_every_registered_task_passes_gymnasiums_check(name):
    check_env(gym.make(f"featherlane/{name}").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", sorted(environments.tasks()))
def test_no_option_of_a_task_has_the_name_of_an_argument_of_the_environment(name):
    """`gymnasium.make_vec(name, num_envs, **options)` could not pass it."""
    options = {f.name for f in dataclasses.fields(environments.tasks()[name])}
    assert not options & {*inspect.signature(TaskEnv).parameters}


def test_a_reset_within_a_step_keeps_the_previous_observation():
    """With two buffers, the observation used by a policy stays until the end of the next step, also after a reset."""
    env = TaskEnv(Count([2, 3, 3]), N, autoreset_mode="SameStep", nthread=1, copy=False)
    before, _ = env.reset()
    for _ in range(6):
        kept = before.copy()
        seen, *_ = env.step(PAID)
        assert seen is not before
        np.testing.assert_array_equal(before, kept)
        before = seen


def test_assigned_elapsed_steps_count_towards_the_limit():
    env = TaskEnv(Count([99] * N), N, max_episode_steps=5, nthread=1)
    env.reset()
    env.elapsed[:] = [0, 3, 4]
    assert env.step(PAID)[3].tolist() == [False, False, True]
    assert env.step(PAID)[3].tolist() == [False, True, False]
    assert env.elapsed.tolist() == [2, 5, 0]


class Swinging(Task):
    """Starts a pole on a cart at random; the observation is the positions of its parts."""

    model, fields, max_episode_steps = "cartpole", ("xpos",), 2

    def observation(self, worlds):
        return worlds.xpos[:, 2].copy()

    def reward(self, worlds, actions, before):
        return self.dt * self.ended_before

    def terminated(self, worlds):
        self.ended_before = np.arange(worlds.nworld) == 1  # `reward` is called after this
        return self.ended_before

    def start(self, worlds, ids, random):
        worlds.qpos[ids] = random.normal(ids, worlds.model.nq)


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("mode", RESETTING)
def test_derived_fields_are_computed_before_initial_observations(mode, forward):
    def is_fresh(seen):
        env.batch.forward()
        return (seen == env.batch.xpos[:, 2]).all(axis=1).tolist()

    env = TaskEnv(Swinging(), N, nthread=1, autoreset_mode=mode)
    env.task.forward_at_start = forward
    assert is_fresh(env.reset(seed=1)[0]) == [True] * N
    seen, rewards, *_ = env.step(env.action_space.sample())
    assert rewards.tolist() == [0.0, env.dt, 0.0]
    if mode is AutoresetMode.NEXT_STEP:
        seen = env.step(env.action_space.sample())[0]
    assert is_fresh(seen) == [False, forward, False]


class Massed(Task):
    """Starts with a per-world mass, gravity and position, through arrays that it keeps."""

    model, fields = "pendulum", ("xpos",)

    def prepare(self, worlds):
        self.kept = {"mass": worlds.expand("body_mass")[:, 1:], "lists": [worlds.expand("opt.gravity")]}
        self.place, self.height, self.time = worlds.qpos, worlds.bind("xpos")[:, 1, 2], worlds.time

    def start(self, worlds, ids, random):
        self.kept["mass"][ids] = random.uniform(ids, 0.5, 2.0, self.kept["mass"].shape[1])
        self.kept["lists"][0][ids, 2] = random.uniform(ids, -20.0, -1.0, 1)[:, 0]
        self.place[ids] = 0.5

    def observation(self, worlds):
        return {"height": self.height[:, None], "time": self.time[:, None], "speed": worlds.qvel}

    def reward(self, worlds, actions, before):
        return self.height.copy()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_arrays_held_by_a_copied_task_refer_to_the_copied_worlds(copied):
    env = TaskEnv(Massed(), N, max_episode_steps=3)
    env.reset(seed=1)
    other = copied(env)
    before = {name: rows.copy() for name, rows in env.batch.checkpoint().items()}
    for _ in range(8):
        action = np.zeros(other.action_space.shape, np.float32)
        seen = other.step(action)
    masses = other.batch.expanded("body_mass")[:, 1]
    assert (masses != before["model.body_mass"][:, 1]).all()  # sampled again
    for name, rows in env.batch.checkpoint().items():
        np.testing.assert_array_equal(rows, before[name], err_msg=name)  # the original did not change
    for _ in range(8):
        expected = env.step(action)
    for one, two in zip(seen[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(one, two)
    other.task.kept["mass"][0] = -1.0
    with pytest.raises(fl.ModelError):
        other.step(action)


# ---- delayed actuators -----------------------------------------------------------------------------------------------
class Delayed(Task):
    """Starts at rest at the target of a delayed position actuator."""

    model = """<mujoco><option timestep=".002" gravity="0 0 0"/><worldbody><body><joint axis="0 1 0" name="j"/>
        <geom size=".1" mass="1" pos=".3 0 0"/></body></worldbody><actuator>
        <position joint="j" kp="100" kv="5" delay=".016" nsample="12"/></actuator></mujoco>"""
    frame_skip, max_episode_steps, fills = 4, 3, False

    def observation(self, worlds):
        return worlds.qpos.copy()

    def reward(self, worlds, actions, before):
        return np.zeros(worlds.nworld)

    def start(self, worlds, ids, random):
        worlds.qpos[ids] = worlds.ctrl[ids] = 1.0 + ids[:, None]
        if self.fills:
            fl.init_ctrl_history(worlds.model, worlds, 0, None, np.full(12, 0.5), ids=ids)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("several", [False, True])
def test_an_episode_starts_with_the_controls_of_its_start_in_effect(mode, several):
    task = Delayed()
    if several:
        task.model = [(fl.load(Delayed.model), 1), (fl.load(Delayed.model), 2)]
    env = TaskEnv(task, 3, autoreset_mode=mode)
    targets = 1.0 + np.arange(3)[:, None]
    observations = [env.reset(seed=0)[0], *(env.step(targets)[0] for _ in range(9))]
    np.testing.assert_array_equal(observations, np.broadcast_to(targets, (10, 3, 1)))


def test_a_history_that_start_fills_remains():
    task = Delayed()
    task.fills = True
    env = TaskEnv(task, 2)
    env.reset(seed=0)
    assert (fl.read_ctrl(env.batch.model, env.batch, 0) == 0.5).all()


class Sensed(Task):
    """Observes the delayed and periodic sensors of a driven pendulum on a spring, which starts in motion."""

    delays = 'delay=".016" nsample="12"', 'delay=".011" nsample="8" interp="linear"', 'interval=".01 -.004" nsample="2"'
    scene = """<mujoco><option timestep=".002"/><worldbody><body><joint axis="0 1 0" name="j" stiffness="3"/>
        <geom size=".1" mass="1" pos=".3 0 0"/><site name="tip" pos=".3 0 0"/></body></worldbody><actuator>
        <position name="servo" joint="j" kp="100" kv="5" {0}/></actuator><sensor><jointpos joint="j" {0}/>
        <accelerometer site="tip" {1}/><gyro site="tip" {2}/><jointvel joint="j" cutoff="2" {0}/><clock/>
        <actuatorfrc actuator="servo"/></sensor></mujoco>"""
    model, fields = scene.format(*delays), ("sensordata",)
    frame_skip = 3

    def observation(self, worlds):
        return worlds.sensordata.copy()

    def reward(self, worlds, actions, before):
        return np.zeros(worlds.nworld)

    def start(self, worlds, ids, random):
        worlds.qpos[ids], worlds.qvel[ids] = 0.5 + ids[:, None], 3.0 - ids[:, None]
        worlds.ctrl[ids] = 1.0


def held_in_mujoco(world):
    """Returns MuJoCo's model and data, whose histories hold the control and the sensors of the start of a world."""
    undelayed = mujoco.MjModel.from_xml_string(Sensed.scene.format("", "", ""))
    model = mujoco.MjModel.from_xml_string(Sensed.model)
    now, data = mujoco.MjData(undelayed), mujoco.MjData(model)
    for each in (now, data):
        each.qpos, each.qvel, each.ctrl = 0.5 + world, 3.0 - world, 1.0
    mujoco.mj_forward(undelayed, now)
    mujoco.mj_initCtrlHistory(model, data, 0, None, np.ones(12))
    for i, sensor in enumerate(zip(model.sensor_history[:, 0], model.sensor_adr, model.sensor_dim, strict=True)):
        n, first, dim = map(int, sensor)
        if n:
            values = np.tile(now.sensordata[first : first + dim], (n, 1))
            phase = data.history[model.sensor_historyadr[i]]
            mujoco.mj_initSensorHistory(model, data, i, None, values, phase)
    mujoco.mj_forward(model, data)
    assert data.sensordata == pytest.approx(now.sensordata, abs=1e-12), "a constant history gives the present values"
    return model, data


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("forward", [True, False])
def test_an_episode_starts_with_the_sensors_of_its_start_and_continues_as_in_mujoco(mode, several, forward):
    task = Sensed()
    task.max_episode_steps, task.forward_at_start = 8, forward
    if several:
        task.model = [(fl.load(Delayed.model), 1), (fl.load(Sensed.model), 2)]
    env = TaskEnv(task, 3, autoreset_mode=mode)
    first = 9 if mode == "NextStep" else 8  # steps of an episode
    seen = [env.reset(seed=0)[0], *(env.step(np.ones((3, 1)))[0] for _ in range(2 * first))]
    for world in range(int(several), 3):
        model, data = held_in_mujoco(world)
        expected = [data.sensordata.copy()]
        for _ in range(7):
            mujoco.mj_step(model, data, 3)
            expected.append(data.sensordata.copy())
        for start in (0, first, 2 * first) if forward else (0,):
            found = [rows[world] for rows in seen[start : start + 8]]
            assert np.allclose(found, expected[: len(found)], rtol=0, atol=1e-9), f"world {world}, step {start}"
        assert forward or np.allclose(seen[first + 1][world], expected[1], rtol=0, atol=1e-9)


def test_a_sensor_whose_history_start_fills_keeps_it():
    class Filled(Sensed):
        def start(self, worlds, ids, random):
            super().start(worlds, ids, random)
            fl.init_sensor_history(worlds.model, worlds, 0, None, np.full(12, 0.25), ids=ids)

    env = TaskEnv(Filled(), 2)
    seen, _ = env.reset()
    _, data = held_in_mujoco(0)
    assert seen[:, 0].tolist() == [0.25, 0.25] and np.allclose(seen[0, 1:], data.sensordata[1:], atol=1e-9)


def test_the_filled_histories_of_a_world_are_those_of_the_world_alone():
    """In float32, with more worlds than a tile, of which some are reset."""
    many, alone = (
        TaskEnv(Sensed(), 19, autoreset_mode="Disabled", dtype="float32"),
        TaskEnv(Sensed(), 1, dtype="float32"),
    )
    seen, first = many.reset()[0], alone.reset()[0]
    many.step(np.ones((19, 1)))
    before = many.batch.history.copy()
    again = many.reset(options={"reset_mask": np.arange(19) % 3 == 0})[0]
    assert (first[0] == seen[0]).all() and (first[0] == again[0]).all() and seen[0, 0] == np.float32(0.5)
    assert (many.batch.history[0] == alone.batch.history[0]).all()
    assert (many.batch.history[1] == before[1]).all() and (many.batch.history[3] != before[3]).any()


def test_the_histories_of_disabled_sensors_remain_empty():
    env = TaskEnv(Sensed(), 2)
    env.reset()
    env.step(np.ones((2, 1)))
    env.batch.model.opt.disableflags = "sensor"
    env.reset()
    assert not fl.read_sensor(env.batch.model, env.batch, 0).any() and fl.read_ctrl(env.batch.model, env.batch, 0).all()


@pytest.mark.parametrize(
    "task, message",
    [
        (Count, r"task: got the class Count, allowed is an object: Count\(...\)"),
        (Task(), "task: Task does not set the attribute model, allowed is a Model, a bundled name"),
    ],
)
def test_wrong_tasks_are_refused(task, message):
    with pytest.raises((fl.ModelError, TypeError), match=message):
        TaskEnv(task, 2)


@pytest.mark.parametrize("name", ["fields", "info_fields"])
def test_one_name_in_place_of_a_tuple_of_fields_is_refused(name):
    task = Count()
    setattr(task, name, "xpos")
    with pytest.raises(fl.ModelError, match=f"task.{name}: got str, allowed is a tuple of names"):
        TaskEnv(task, 2)


@pytest.mark.parametrize("mode", RESETTING)
def test_a_task_gets_the_actions_of_the_worlds_that_move(mode):
    """The world whose episode has ended takes no step in the step after it, except in the mode SAME_STEP."""
    calls = []

    class Recording(Count):
        def act(self, worlds, actions, ids):
            calls.append((ids.tolist(), actions[:, 0].tolist()))
            super().act(worlds, actions, ids)

        def proceed(self, worlds, ids, random):
            calls[-1] += (ids.tolist(),)

    env = TaskEnv(Recording([1, 3, 3]), N, autoreset_mode=mode, nthread=1)
    env.reset()
    env.step(PAID), env.step(PAID)
    moved = [1, 2] if mode is AutoresetMode.NEXT_STEP else [0, 1, 2]
    assert calls == [([0, 1, 2], [1, 2, 3], [0, 1, 2]), (moved, [i + 1 for i in moved], moved)]
    assert env.batch.ctrl[1:, 0].tolist() == [2, 3]
