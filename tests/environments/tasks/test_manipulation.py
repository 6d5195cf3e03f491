"""The arm and the hand: goals, rewards, terminations."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import featherlane as fl
import featherlane.environments
from featherlane.environments.tasks.arm import SHOULDER
from featherlane.environments.tasks.arm_push import BEHIND, LOST, OVER
from featherlane.environments.tasks.arm_reach import CLEAR, GLOBE, LOWEST

ARMS = ["ArmReach-v0", "ArmPush-v0"]


def made(name, n=5, **settings):
    env = gym.make_vec(f"featherlane/{name}", num_envs=n, nthread=1, **settings)
    env.reset(seed=0)
    return env


def test_sampled_targets_are_reachable_and_free_of_obstacles():
    goals = made("ArmReach-v0", 300, goal_range=(0.5, 0.7)).batch.mocap_pos[:, 0]
    radius = np.linalg.norm(goals - SHOULDER, axis=1)
    assert (radius > 0.5 - 1e-9).all()
    assert (radius < 0.7 + 1e-9).all()
    assert (goals[:, 2] >= LOWEST).all()
    assert (np.linalg.norm(goals - GLOBE, axis=1) >= CLEAR).all()
    assert goals[:, 0].min() < -0.4
    assert goals[:, 0].max() > 0.4


def test_a_gripper_at_its_goal_earns_the_full_reward_and_success():
    env = made("ArmReach-v0", 3, info=True)
    env.batch.mocap_pos[1, 0] = env.batch.site_xpos[1, env.task.grip]
    terms = env.task.terms(env.batch)
    assert terms["distance"][1] == 0.0
    assert terms["close"][1] == 1.0
    assert (terms["close"][[0, 2]] < 1.0).all()
    infos = env.step(np.zeros(env.action_space.shape))[-1]
    np.testing.assert_array_equal(infos["success"], [False, True, False])
    assert infos["distance"][1] < env.task.reached


@pytest.mark.parametrize("name", ARMS)
def test_targets_move_at_the_requested_rate(name, rate=1.5):
    env = made(name, 3, rate=rate)
    before, action = env.batch.ctrl.copy(), np.tile([1.0, -1.0, 0.5, 0, 0, 0, 0], (3, 1))
    env.step(action)
    np.testing.assert_allclose(env.batch.ctrl - before, rate * env.dt * action, atol=1e-12)
    for _ in range(200):
        env.step(action * [1, 1, 1, 0, 0, 0, 0])
        assert (env.batch.ctrl <= env.batch.model.actuator_ctrlrange[:, 1]).all()


def test_a_puck_out_of_reach_terminates():
    env = made("ArmPush-v0", 3)
    assert not env.task.terminated(env.batch).any()
    env.batch.qpos[1, 7:9] = LOST, 0.1
    np.testing.assert_array_equal(env.task.terminated(env.batch), [False, True, False])
    np.testing.assert_array_equal(env.task.terms(env.batch)["lost"], [0, 1, 0])


def test_behind_the_puck_is_opposite_to_its_goal():
    env = made("ArmPush-v0", 4)
    puck, goal = env.task.puck(env.batch), env.task.goal(env.batch)
    back, way = env.task.behind(env.batch) - puck, puck - goal
    np.testing.assert_allclose(np.cross(back, way), 0.0, atol=1e-12)
    assert ((back * way).sum(axis=1) > 0.0).all()
    assert (np.linalg.norm(back, axis=1) < BEHIND).all()


def test_a_hand_on_the_goal_side_is_rewarded_for_moving_over_the_puck():
    """The target is raised by full height if the hand is opposite, by half at a right angle; at the goal by zero."""
    env = made("ArmPush-v0", 4)
    task, worlds = env.task, env.batch
    puck, back = task.puck(worlds), task.behind(worlds) - task.puck(worlds)
    aside = np.stack([-back[:, 1], back[:, 0], back[:, 2]], axis=1)
    hand = puck + np.stack([back[0], -back[1], aside[2], 3 * back[3]])
    worlds.writable("site_xpos")[:, task.grip] = hand
    np.testing.assert_allclose(
        task.aim(worlds) - task.behind(worlds), np.outer([0, OVER, OVER / 2, 0], [0, 0, 1]), atol=1e-4
    )
    off = np.linalg.norm(task.aim(worlds) - hand, axis=1)
    np.testing.assert_allclose(task.terms(worlds)["behind"], off)
    worlds.mocap_pos[:, 0] = puck + 0.5 * task.reached * back / np.linalg.norm(back, axis=1)[:, None]
    off = np.linalg.norm(task.aim(worlds) - hand, axis=1)
    np.testing.assert_allclose(task.terms(worlds)["behind"], 0.5 * off)


def test_the_puck_starts_and_rests_on_the_floor():
    env = made("ArmPush-v0", 20, puck_range=(0.5, 0.55), spread=0.1)
    start = env.task.puck(env.batch).copy()
    for _ in range(20):
        env.step(np.zeros(env.action_space.shape))
    np.testing.assert_allclose(env.task.puck(env.batch), start, atol=1e-3)
    assert (np.abs(np.arctan2(start[:, 1], start[:, 0])) <= 0.1).all()


def test_an_idle_hand_holds_its_ball():
    env = made("HandTurn-v0", 6)
    for _ in range(50):
        assert not env.step(np.zeros(env.action_space.shape))[2].any()
    assert (env.task.terms(env.batch)["drift"] < 0.003).all()


def test_an_open_hand_drops_its_ball():
    env = made("HandTurn-v0", 3, autoreset_mode="Disabled")
    action = np.zeros(env.action_space.shape)
    action[1] = -1.0
    for _ in range(15):
        env.revive()
        ended = env.step(action)[2]
        if ended.any():
            break
    np.testing.assert_array_equal(ended, [False, True, False])


def test_the_rotation_reward_saturates_at_the_requested_speed():
    env = made("HandTurn-v0", 4, speed=2.0)
    # a free joint's angular velocity is in the body frame, which a reset aligns with the world
    env.batch.qvel[:, -2] = [0.0, 1.0, 2.0, 5.0]
    env.batch.qvel[:, -3] = 0.1
    terms = env.task.terms(env.batch)
    np.testing.assert_allclose(terms["turn"], [0.0, 0.5, 1.0, 1.0])
    np.testing.assert_allclose(terms["wobble"], 0.01)


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("ArmReach-v0", {"goal_range": (0.0, 0.5)}, "goal_range: got (0.0, 0.5), allowed are two numbers from 0.3 to"),
        ("ArmReach-v0", {"rate": -1.0}, "rate: got -1.0, allowed is a number from 0 to 100"),
        ("ArmPush-v0", {"puck_range": 0.5}, "puck_range: got 0.5, allowed are two numbers"),
        ("ArmPush-v0", {"spread": 7.0}, "spread: got 7.0, allowed is a number from 0 to"),
        ("ArmPush-v0", {"reached": "near"}, "reached: got 'near'"),
        ("HandTurn-v0", {"speed": 0.0}, "speed: got 0.0, allowed is a number from 0.001 to 100"),
        ("HandTurn-v0", {"dropped": float("inf")}, "dropped: got inf"),
        ("HandTurn-v0", {"start_noise": 0.5}, "start_noise: got 0.5"),
    ],
)
def test_wrong_options_are_refused(name, settings, told):
    with pytest.raises(fl.ModelError) as caught:
        made(name, 1, **settings)
    assert told in str(caught.value)
