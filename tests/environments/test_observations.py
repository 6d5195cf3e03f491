"""Groups of observations and their noise: spaces, buffers, episodes, and what is refused."""

from __future__ import annotations

import pickle

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.environments import SingleEnv, Task, TaskEnv
from scenes.counting import Count, TwoSided

N = 3
ROVER = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/><body pos="1 2 1"><freejoint/>
<geom size=".1"/><site name="s" pos=".1 0 0"/></body></worldbody><sensor><framepos objtype="site" objname="s"/>
<accelerometer site="s"/></sensor></mujoco>"""


class Quiet(TwoSided):
    """Observes groups without noise."""

    deviation = 0.0


def ones(env):
    return np.ones(env.action_space.shape, np.float32)


def run(env, steps, seed=0):
    """Returns the observations of the actor of each step, (steps + 1, n), the reset included."""
    seen = [env.reset(seed=seed)[0]["actor"][:, 0].copy()]
    for _ in range(steps):
        seen.append(env.step(ones(env))[0]["actor"][:, 0].copy())
    return np.array(seen)


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_group_is_an_array_of_its_parts(copy, dtype):
    env = TaskEnv(Quiet(), N, copy=copy, dtype=dtype)
    assert list(env.single_observation_space) == ["actor", "critic"]
    before, _ = env.reset()
    for step in range(1, 4):
        seen = env.step(ones(env))[0]
        assert env.observation_space.contains(seen) and seen["critic"].dtype == dtype
        assert (seen["critic"] == [step, 10 * step]).all() and (seen["actor"] == step).all()
        assert (before["critic"] == [step - 1, 10 * step - 10]).all(), "the previous observation stays valid"
        before = seen


def test_one_group_is_a_dict_and_parts_are_an_array():
    task = Quiet()
    task.observation = lambda worlds: {"policy": {"count": task.count(worlds)}}
    task.observation_noise = lambda worlds, ids, random: {}
    seen, _ = TaskEnv(task, N).reset()
    assert seen.keys() == {"policy"} and seen["policy"].shape == (N, 1)
    task.observation = lambda worlds: {"policy": task.count(worlds)}
    assert TaskEnv(task, N).reset()[0].shape == (N, 1)


def test_groups_and_images_are_observed_together():
    task = Quiet()
    task.model = "humanoid"
    task.cameras = (fl.Camera("front", width=4, height=3),)
    env = TaskEnv(task, N)
    seen, _ = env.reset()
    assert env.observation_space.contains(seen) and seen.keys() == {"actor", "critic", "front/depth"}


def test_a_reset_within_a_step_keeps_the_final_groups():
    env = TaskEnv(Quiet([2, 99, 99]), N, autoreset_mode="SameStep")
    env.reset()
    env.step(ones(env))
    seen, *_, infos = env.step(ones(env))
    assert seen["critic"].tolist() == [[0, 0], [2, 20], [2, 20]]
    assert {name: rows.tolist() for name, rows in infos["final_obs"][0].items()} == {"actor": [2], "critic": [2, 20]}


def test_a_single_world_observes_groups():
    env = SingleEnv(Quiet())
    assert env.observation_space.contains(env.reset()[0]) and env.step(np.ones(1))[0]["critic"].tolist() == [1, 10]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("derived", ["gymnasium", "fresh", "dm_control"])
def test_every_call_of_observation_gets_finite_fields(several, derived):
    """The first call, which infers the shapes, precedes the first reset."""
    ground, spec = fl.terrain.Terrain(("stairs",), 0.4), mujoco.MjSpec.from_string(ROVER)
    ground.add_to(spec)
    model, calls = fl.load(spec), []

    class Rover(Task):
        fields = ("site_xpos", "sensordata", "xquat", "cvel")

        def observation(self, worlds):
            calls.append(all(np.isfinite(getattr(worlds, name)).all() for name in self.fields))
            return worlds.site_xpos[:, 0, 2:] - ground.height_at(*worlds.site_xpos[:, 0, :2].T)[:, None]

        def reward(self, worlds, actions, before):
            return np.zeros(worlds.nworld)

        def terminated(self, worlds):
            return worlds.time > [0.003, 1.0, 1.0]

    task = Rover()
    task.model, task.derived = [(model, 1), (fl.load(spec), 2)] if several else model, derived
    env = TaskEnv(task, N)
    heights = [env.reset()[0], *(env.step(np.zeros((N, 0)))[0] for _ in range(4))]
    assert calls == [True] * 6 and np.isfinite(heights).all()


# ---- noise -----------------------------------------------------------------------------------------------------------
def test_noise_has_its_deviation_and_is_sampled_for_each_step():
    env = TaskEnv(TwoSided(), 400)
    noise = run(env, 20) - np.arange(21)[:, None]
    assert np.std(noise) == pytest.approx(0.5, rel=0.03) and abs(noise.mean()) < 0.02
    assert abs(np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]) < 0.05
    assert env.step(ones(env))[0]["critic"][0].tolist() == [21, 210], "the critic has none"


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_the_noise_of_a_world_does_not_depend_on_other_worlds(mode):
    """The other worlds end their episodes at other times, or are absent."""
    runs = [run(TaskEnv(TwoSided(ends), N, autoreset_mode=mode), 9) for ends in ([4, 2, 3], [4, 9, 9])]
    alone = run(TaskEnv(TwoSided([4]), 1, autoreset_mode=mode), 9)
    assert (runs[0][:, 0] == alone[:, 0]).all() and (runs[1][:, 0] == alone[:, 0]).all()
    assert (runs[0][:, 0] - np.rint(runs[0][:, 0]) != 0).all()


def test_a_reset_of_some_worlds_keeps_the_noise_of_the_others():
    env = TaskEnv(TwoSided(), N, autoreset_mode="Disabled")
    run(env, 3)
    before = env.step(ones(env))[0]["actor"]
    mask = np.array([True, False, False])
    seen, _ = env.reset(options={"reset_mask": mask})
    assert (seen["actor"][1:] == before[1:]).all() and seen["actor"][0] != before[0]


def test_noise_of_parts_and_of_whole_observations():
    task = Count()
    task.observation_noise = lambda worlds, ids, random: np.full((len(ids), 1), 0.25)
    assert TaskEnv(task, N).reset()[0].tolist() == [[0.25]] * N
    task.observation = lambda worlds: {"a": worlds.qpos, "b": worlds.qvel[:, :, None]}
    task.observation_noise = lambda worlds, ids, random: {"b": np.full((len(ids), 1, 1), 0.5)}
    assert TaskEnv(task, N, dtype="float32").reset()[0].tolist() == [[0.0, 0.5]] * N
    task.observation_noise = lambda worlds, ids, random: np.tile([1.0, 2.0], (len(ids), 1))
    assert TaskEnv(task, N, copy=False).reset()[0].tolist() == [[1.0, 2.0]] * N


def test_noise_with_the_deviations_of_the_model_is_that_of_each_world_alone():
    """The method of docs/sensors.md."""

    class Sensing(Count):
        model = ROVER.replace('objname="s"/>', 'objname="s" noise=".5"/>')
        fields = ("sensordata",)
        reward, terminated = (lambda self, worlds, *_: np.zeros(worlds.nworld)), Task.terminated

        def observation(self, worlds):
            return worlds.sensordata

        def observation_noise(self, worlds, ids, random):
            deviation = np.repeat(worlds.model.sensor_noise, worlds.model.sensor_dim)
            return deviation * random.normal(ids, worlds.model.nsensordata)

    many, alone = TaskEnv(Sensing(), 300), TaskEnv(Sensing(), 1)
    seen = many.reset(seed=0)[0]
    assert (seen[:1] == alone.reset(seed=0)[0]).all()
    assert (seen - many.batch.sensordata).std(axis=0) == pytest.approx([0.5] * 3 + [0] * 3, rel=0.15)


def test_a_part_without_noise_in_a_step_has_none():
    task = TwoSided()
    env = TaskEnv(task, N)
    run(env, 2)
    task.deviation = 0.0
    assert env.step(ones(env))[0]["actor"].tolist() == [[3.0]] * N
    task.observation_noise = lambda worlds, ids, random: {}
    assert env.step(ones(env))[0]["actor"].tolist() == [[4.0]] * N


def test_a_copied_environment_continues_with_the_same_noise():
    env = TaskEnv(TwoSided(), N)
    run(env, 3)
    other = pickle.loads(pickle.dumps(env))
    for _ in range(3):
        assert (env.step(ones(env))[0]["actor"] == other.step(ones(other))[0]["actor"]).all()


# ---- refused ---------------------------------------------------------------------------------------------------------
COUNT = np.zeros((N, 1))


@pytest.mark.parametrize(
    "observation, message",
    [
        ({"actor": {"a": COUNT}, "b": COUNT}, "got groups and the part 'b'"),
        ({"actor": {"a": COUNT}, "critic": {}}, "got no parts in group 'critic'"),
        ({}, "observation: got no parts"),
        ({"actor": {"a": COUNT[:2]}}, r"observation 'actor/a': got shape \(2, 1\)"),
        ({0: {"a": COUNT}}, "observation: got the name 0, allowed are strings"),
        ({"": {"a": COUNT}}, "observation: got the name ''"),
        ({"actor": {"": COUNT, "b": COUNT}}, "observation: got the name ''"),
        ({"actor": {"a": {"b": COUNT}}}, r"observation 'actor/a': got dict, allowed is an array \(3, k\)"),
        (None, r"observation: got NoneType, allowed is an array \(3, k\) of numbers"),
    ],
)
def test_wrong_groups_are_refused(observation, message):
    task = Count()
    task.observation = lambda worlds: observation
    with pytest.raises(fl.ModelError, match=message):
        TaskEnv(task, N)


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize(
    "first, later, message",
    [
        ({"actor": {"a": COUNT}}, {"critic": {"a": COUNT}}, "got the groups critic, allowed are actor as in the first"),
        ({"actor": {"a": COUNT}}, COUNT, "got no groups, allowed are actor as in the first call"),
        (
            {"actor": {"a": COUNT}},
            {"actor": {"b": COUNT}},
            r"observation 'actor': got 'b' \(1 columns\), allowed are 'a'",
        ),
        ({"a": COUNT, "b": COUNT}, {"b": COUNT, "a": COUNT}, "got 'b' .*, 'a' .*, allowed are 'a' .*, 'b' "),
        (COUNT, np.zeros((N, 2)), r"got an array \(2 columns\), allowed are an array \(1 columns\), as in the first"),
        (COUNT, {"actor": {"a": COUNT}}, "observation 'actor': got dict"),
    ],
)
def test_other_groups_parts_and_widths_than_in_the_first_call_are_refused(first, later, message, copy):
    task = Count()
    task.observation = lambda worlds: first
    env = TaskEnv(task, N, copy=copy)
    env.reset()
    task.observation = lambda worlds: later
    with pytest.raises(fl.ModelError, match=message):
        env.step(ones(env))


@pytest.mark.parametrize(
    "observation, noise, message",
    [
        (lambda x: x, None, "observation: got NaN in world 1, column 1, allowed are numbers"),
        (lambda x: {"a": COUNT, "b": x}, None, "observation 'b': got NaN in world 1, column 1"),
        (
            lambda x: {"actor": {"a": x}, "critic": {"a": COUNT, "b": x}},
            None,
            "observation 'actor/a': got NaN in world 1",
        ),
        (lambda x: {"critic": {"a": COUNT, "b": x}}, None, "observation 'critic/b': got NaN in world 1, column 1"),
        (lambda x: {"a": COUNT}, lambda x: {"a": x[:, 1:]}, "observation_noise 'a': got NaN in world 1, column 0"),
        (lambda x: COUNT, lambda x: x[:, 1:], "observation_noise: got NaN in world 1, column 0"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_is_refused(observation, noise, message, dtype):
    task, values = Count(), np.array([[1e30, 0.0], [-np.inf, 0.0], [np.inf, 0.0]])
    task.observation = lambda worlds: observation(values)
    if noise:
        task.observation_noise = lambda worlds, ids, random: noise(values[ids])
    env = TaskEnv(task, N, dtype=dtype)
    env.reset()
    env.step(ones(env))  # large and infinite numbers are valid
    values[1, 1] = np.nan
    for call in (env.reset, lambda: env.step(ones(env))):
        with pytest.raises(fl.ModelError, match=message):
            call()


def test_worlds_without_a_valid_state_may_observe_nan():
    """A world that has never been reset, and one that became non-finite in the step."""
    task = Count()
    task.observation = lambda worlds: np.where(np.arange(N)[:, None] == 1, np.nan, 1.0)
    env = TaskEnv(task, N, autoreset_mode="Disabled")
    assert np.isnan(env.reset(options={"reset_mask": np.array([True, False, True])})[0][1, 0])
    with pytest.raises(fl.ModelError, match="got NaN in world 1"):
        env.reset(options={"reset_mask": np.array([False, True, False])})
    env.revive()
    env.batch.qvel[1] = np.inf
    with pytest.warns(fl.NonFiniteWarning):
        seen, _, terminated, _, infos = env.step(ones(env))
    assert np.isnan(seen[1, 0]) and terminated.tolist() == infos["bad_world"].tolist() == [False, True, False]


def test_a_group_with_the_name_of_an_image_is_refused():
    task = Count()
    task.model, task.cameras = "humanoid", fl.Camera("front", width=4, height=3)
    task.observation = lambda worlds: {"front/depth": {"count": COUNT}}
    with pytest.raises(fl.ModelError, match="got the group 'front/depth'"):
        TaskEnv(task, N)


@pytest.mark.parametrize(
    "noise, message",
    [
        ({"actr": {}}, "observation_noise: group: got 'actr'"),
        ({"actor": {"cont": np.zeros((0, 1))}}, "observation_noise: part: got 'cont'"),
        ({"actor": {"count": np.zeros((0, 2))}}, r"observation_noise 'actor/count': got shape \(0, 2\)"),
        ({"actor": {"count": np.zeros((N, 1))}}, r"observation_noise 'actor/count': got shape \(3, 1\)"),
        ({"actor": {"count": 0.1}}, r"observation_noise 'actor/count'"),
        (None, "observation_noise: got NoneType, allowed is a dict by group: actor, critic"),
    ],
)
def test_wrong_noise_is_refused(noise, message):
    task = TwoSided()
    task.observation_noise = lambda worlds, ids, random: noise
    with pytest.raises(fl.ModelError, match=message):
        TaskEnv(task, N)


def test_compiled_rollouts_refuse_groups_and_noise():
    env = TaskEnv(Quiet(), N)
    env.reset()
    with pytest.raises(fl.ModelError, match="groups of observations"):
        env.rollout(1, fl.policies.MLP([np.zeros((1, 1))]))
