"""Walkers: commands, pushes, rough ground, frames of reference, terminations."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import featherlane as fl
import featherlane.environments
from featherlane.engine.spatial.rotation import about_z, down, heading, to_body, to_world
from featherlane.environments import Quadruped, TaskEnv

FLAT, ROUGH = ["Quadruped-v0", "HumanoidWalk-v0"], ["QuadrupedRough-v0", "HumanoidRough-v0"]
ROUNDED = 1e-12


def made(name, n=5, **settings):
    env = gym.make_vec(f"featherlane/{name}", num_envs=n, nthread=1, **settings)
    env.reset(seed=0)
    return env


def idle(env):
    return np.zeros(env.action_space.shape)


def quaternions(n=50, seed=0):
    q = np.random.default_rng(seed).normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


# ---- frames -------------------------------------------------------------------------------------------------------
def test_frames_are_the_rotation_matrices(n=50):
    q, v = quaternions(n), np.random.default_rng(1).normal(size=(n, 3))
    w, x, y, z = q.T
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    ).transpose(2, 0, 1)
    np.testing.assert_allclose(to_world(q, v), np.einsum("nij,nj->ni", R, v), atol=ROUNDED)
    np.testing.assert_allclose(to_body(q, to_world(q, v)), v, atol=ROUNDED)
    np.testing.assert_allclose(down(q), to_body(q, np.tile([0.0, 0.0, -1.0], (n, 1))), atol=ROUNDED)
    angle = np.linspace(-3, 3, n)
    np.testing.assert_allclose(heading(about_z(angle)), [np.cos(angle), np.sin(angle)], atol=ROUNDED)


@pytest.mark.parametrize("name", FLAT)
def test_the_commanded_velocity_earns_the_full_reward_for_any_heading(name):
    env = made(name, standing=0.0)
    task, worlds = env.task, env.batch
    angle = np.linspace(-3, 3, env.num_envs)
    worlds.qpos[:, 3:7] = about_z(angle)
    ahead, aside, turn = task.command.T
    worlds.qvel[:, 0] = np.cos(angle) * ahead - np.sin(angle) * aside
    worlds.qvel[:, 1] = np.sin(angle) * ahead + np.cos(angle) * aside
    worlds.qvel[:, 2:5], worlds.qvel[:, 5] = 0.0, turn
    terms = task.terms(worlds)
    for term, value in {"velocity": 1.0, "turn": 1.0, "bounce": 0.0, "roll": 0.0, "tilt": 0.0, "fall": 0.0}.items():
        np.testing.assert_allclose(terms[term], value, atol=ROUNDED, err_msg=term)
    np.testing.assert_allclose(task.observation(worlds)["velocity"][:, :2], task.command[:, :2], atol=ROUNDED)
    worlds.qvel[:, 0] += 0.5
    assert (task.terms(worlds)["velocity"] < 0.5).all()


# ---- commands and pushes ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FLAT)
def test_commands_are_resampled_after_their_duration(name, steps=30):
    env = made(name, 6, forward=(0.2, 0.4), turn=(-0.1, 0.1), standing=0.0, command_time=(0.1, 0.2))
    task, changes = env.task, np.zeros((steps, 6), bool)
    for k in range(steps):
        before, due = task.command.copy(), task.steps + 1 >= task.next_command
        env.step(idle(env))
        changes[k] = (task.command != before).any(axis=1)
        np.testing.assert_array_equal(changes[k], due)
        assert ((task.command[:, 0] >= 0.2) & (task.command[:, 0] <= 0.4)).all()
        assert (np.abs(task.command[:, 2]) <= 0.1).all()
    least, most = round(0.1 / env.dt), round(0.2 / env.dt)
    for world in changes.T:
        waits = np.diff(np.flatnonzero(world))
        assert ((least <= waits) & (waits <= most)).all()
    assert len(np.unique(changes, axis=1).T) > 1, "each world has times of its own"


def test_some_commands_are_zero_velocity():
    for share in (0.0, 1.0):
        command = made("Quadruped-v0", 20, standing=share).task.command
        assert (command == 0.0).all() == (share == 1.0)


@pytest.mark.parametrize("name", FLAT)
def test_a_push_changes_the_horizontal_velocity_of_the_worlds_that_are_due(name, push=0.7):
    env = made(name, 5, push=push, push_time=(1.0, 9.0))
    task, worlds = env.task, env.batch
    task.next_push[[1, 3]] = task.steps[[1, 3]]
    before = worlds.qvel.copy()
    task.proceed(worlds, np.arange(worlds.nworld), env.random)
    change = worlds.qvel - before
    assert (change[[1, 3], :2] != 0.0).all()
    assert (np.abs(change) <= push).all()
    change[[1, 3], :2] = 0.0
    assert not change.any()
    assert (task.next_push > task.steps).all()


def test_stride_rewards_are_given_at_touchdown():
    env = made("Quadruped-v0", 2, standing=0.0, start_noise=0.0)
    task, worlds = env.task, env.batch
    task.air_time[:] = [[0.3, 0.0, 0.0, 0.0], [0.3, 0.3, 0.0, 0.0]]
    np.testing.assert_allclose(task.strides(worlds), [0.2, 0.4])
    worlds.qpos[1, 2] += 0.2
    worlds.forward()
    np.testing.assert_allclose(task.strides(worlds), [0.2, 0.0])
    np.testing.assert_array_equal(task.stands, [[True] * 4, [False] * 4])
    task.command[:] = 0.0
    np.testing.assert_array_equal(task.strides(worlds), 0.0)


# ---- terminations -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [*FLAT, *ROUGH])
def test_lying_and_tilting_terminate_an_episode(name):
    env = made(name, 4)
    task, worlds = env.task, env.batch
    assert not task.terminated(worlds).any()
    tilt = np.radians(61)
    worlds.qpos[1, 3:7] = np.cos(tilt / 2), np.sin(tilt / 2), 0.0, 0.0
    worlds.qpos[2, 2] -= task.rest[2] - 0.5 * task.lowest
    np.testing.assert_array_equal(task.terminated(worlds), [False, True, True, False])
    np.testing.assert_array_equal(task.terms(worlds)["fall"], [0, 1, 1, 0])


@pytest.mark.parametrize("name", FLAT)
def test_a_robot_stands_with_constant_servo_targets(name):
    env = made(name, 5, start_noise=0.0)
    for _ in range(20):
        assert not env.step(idle(env))[2].any()


def test_the_humanoids_servos_are_as_strong_as_its_motors():
    bundled, model = fl.bundled("humanoid"), made("HumanoidWalk-v0", 1).batch.model
    np.testing.assert_array_equal(model.actuator_forcerange[:, 1], bundled.actuator_gear[:, 0])
    np.testing.assert_array_equal(model.actuator_ctrlrange, model.jnt_range[model.actuator_trnid[:, 0]])


# ---- ground -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ROUGH)
def test_worlds_start_above_their_own_terrain(name):
    env = made(name, 40)
    task, worlds = env.task, env.batch
    assert len(np.unique(task.tile)) > 5
    soles = worlds.site_xpos[:, task.soles]
    above = soles[:, :, 2] - task.height_at(soles[:, :, 0], soles[:, :, 1])
    assert (above > -0.005).all()
    assert (above.min(axis=1) < 2 * task.terrain_height).all()


def test_terrain_repeats_beyond_a_tile(name="QuadrupedRough-v0"):
    env = made(name, 6)
    task, worlds, side = env.task, env.batch, env.task.ground.side
    worlds.qpos[:, :2] = task.ground.centres[task.tile] + [side / 2 + 0.1, -side / 2 - 0.2]
    before, seen = worlds.qpos.copy(), task.scan(worlds)
    task.proceed(worlds, np.array([0, 2, 5]), env.random)
    moved = worlds.qpos - before
    np.testing.assert_allclose(moved[[0, 2, 5], :2], [[-side, side]] * 3, atol=ROUNDED)
    assert not moved[[1, 3, 4]].any()
    np.testing.assert_allclose(task.scan(worlds), seen, atol=ROUNDED)


def test_terrain_is_observed_if_it_is_rough_and_has_the_requested_kinds():
    flat, rough = made("Quadruped-v0", 8), made("Quadruped-v0", 8, terrain="steps", terrain_height=0.05)
    assert "ground" not in flat.task.observation(flat.batch)
    assert rough.task.observation(rough.batch)["ground"].shape == (8, 15)
    assert rough.task.ground.samples.max() <= 0.05
    assert len(rough.task.ground.centres) == rough.task.ground.levels == 4


def test_a_curriculum_follows_the_episodes_and_is_saved():
    """World 0 falls, world 1 completes its episodes, and world 2 is reset after a quarter of an episode."""
    settings = {"terrain": ("rough", "stairs"), "terrain_height": {"rough": 0.0, "stairs": 0.0}, "curriculum": True}
    env = made("Quadruped-v0", 3, max_episode_steps=40, autoreset_mode="Disabled", **settings)
    task, ground = env.task, env.task.ground
    task.limit = 40
    for expected in ([0, 1, 0], [0, 2, 0], [0, 3, 0], [0, 3, 0]):
        for _ in range(10):
            env.step(idle(env))
        env.reset(options={"reset_mask": np.array([False, False, True])})
        for _ in range(29):
            env.step(idle(env))
        env.batch.qpos[0, 3:7] = 0.0, 1.0, 0.0, 0.0  # upside down
        assert env.step(idle(env))[2].tolist() == [True, False, False]
        kept = env.checkpoint()
        env.reset()
        assert task.level.tolist() == [expected[0], expected[1], 1]
        assert (task.tile % ground.levels == task.level).all() and (task.tile < len(ground.centres)).all()
        task.level[2] = 0
    env.restore(kept)
    assert task.level.tolist() == [0, 3, 0]
    task.level[0] = 2
    task.failed[0], task.steps[0] = True, 7
    env.reset()
    assert task.level[0] == 1


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"terrain": "hills"}, "terrain: got 'hills', allowed are flat, rough, waves, steps, slopes, stairs, stones"),
        ({"terrain": None}, "terrain: got NoneType, allowed is a tuple of flat, rough, waves, steps, slopes"),
        ({"terrain_height": -1.0}, "terrain_height: got -1.0, allowed is a number from 0 to 2"),
        (
            {"forward": (1.0, 0.0)},
            "forward: got (1.0, 0.0), allowed are two numbers from -20 to 20, the smaller one first",
        ),
        ({"command_time": (0.0, 1.0)}, "command_time: got (0.0, 1.0), allowed are two numbers >= 0.02"),
        ({"push": None}, "push: got None"),
        ({"standing": 1.5}, "standing: got 1.5, allowed is a number from 0 to 1"),
        ({"action_scale": "big"}, "action_scale: got 'big'"),
        ({"start_noise": True}, "start_noise: got True"),
    ],
)
def test_wrong_options_are_refused(settings, told):
    with pytest.raises(fl.ModelError) as caught:
        made("Quadruped-v0", 1, **settings)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "attributes, error, message",
    [
        ({"keyframe": "hom"}, fl.UnknownNameError, "keyframe 'hom'; did you mean 'home'"),
        ({"feet": ("left",)}, fl.UnknownNameError, "site 'left'"),
        ({"robot": "cartpole"}, fl.ModelError, "robot: got 'cartpole', allowed is a robot whose first joint is free"),
    ],
)
def test_a_robot_without_what_a_walking_task_needs_is_refused(attributes, error, message):
    kind = type("Walk", (Quadruped,), attributes)
    with pytest.raises(error, match=message):
        TaskEnv(kind(), 2)


# ---- the humanoid's clock -----------------------------------------------------------------------------------------
def test_the_gait_reward_is_full_for_alternating_legs_and_the_requested_foot_height():
    env = made("HumanoidWalk-v0", 4, standing=0.0)
    task, worlds = env.task, env.batch
    task.phase[:] = np.pi * np.array([0.0, 0.5, 1.25, 1.5])
    np.testing.assert_allclose(task.swing(), [[0, 0], [1, 0], [0, 0.5], [0, 1]], atol=ROUNDED)
    # hip, knee and ankle of the swing leg bend, and no other servo moves
    moved = task.targets(worlds, slice(None)) - task.rest[task.driven]
    legs = [
        [worlds.model.actuator(f"{j}_{side}").id for j in ("hip_y", "knee", "ankle_y")] for side in ("left", "right")
    ]
    want = np.zeros_like(moved)
    for leg, columns in enumerate(legs):
        want[:, columns] = task.stride * task.swing()[:, leg, None] * (1.0, 2.0, -1.0)
    np.testing.assert_allclose(moved, want, atol=ROUNDED)
    worlds.writable("site_xpos")[:, task.soles, 2] = task.foot_rise * task.swing()
    terms = task.gait(worlds)
    np.testing.assert_allclose(terms["gait"], 1.0, atol=ROUNDED)
    np.testing.assert_array_equal(task.stands, task.swing() < task.foot_height / task.foot_rise)
    worlds.writable("site_xpos")[:, task.soles[0], 2] += 0.05
    assert (task.gait(worlds)["gait"] < 0.5).all()


def test_sliding_feet_are_penalized():
    env = made("HumanoidWalk-v0", 2)
    env.batch.writable("site_xpos")[:, env.task.soles, 2] = 0.0, 0.1  # the left foot is in stance
    env.batch.writable("sensordata")[:] = [[0.3, 0.4, 9.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 5.0, 5.0, 5.0]]
    np.testing.assert_allclose(env.task.gait(env.batch)["slip"], [0.25, 0.0], atol=ROUNDED)


def test_the_gait_clock_stops_after_a_swing_for_zero_commands():
    env = made("HumanoidWalk-v0", 3, standing=0.0)
    task, worlds = env.task, env.batch
    task.phase[:] = 0.9 * np.pi
    task.command[:2] = worlds.qvel[:] = 0.0
    worlds.qvel[1, 0] = 1.0  # one gets pushed
    task.next_command[:] = 1000
    for _ in range(10):
        task.proceed(worlds, np.arange(worlds.nworld), env.random)
    np.testing.assert_array_equal(task.strides_on, [False, True, True])
    assert task.phase[0] == np.pi and (task.phase[1:] > 1.1 * np.pi).all()
    assert not task.swing()[0].any() and not task.observation(worlds)["clock"][0].any()
    task.command[0] = 0.5, 0.0, 0.0
    task.proceed(worlds, np.arange(worlds.nworld), env.random)
    assert task.strides_on[0] and task.swing()[0, 1] > 0.0
