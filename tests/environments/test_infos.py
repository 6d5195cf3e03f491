"""Infos in the format of Gymnasium's vector environments: values and masks of the worlds that have them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from featherlane.environments.infos import add_infos, part_of

N = 4


def gymnasiums(worlds: dict[int, dict]) -> dict:
    """Returns what Gymnasium's vector environments collect from the infos of single environments."""
    env, infos = gym.vector.VectorEnv(), {}
    env.num_envs = N
    for world, info in worlds.items():
        infos = env._add_info(infos, info, world)
    return infos


def same(infos: dict, expected: dict) -> None:
    assert infos.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(infos[name], value)


def test_infos_of_disjoint_worlds_equal_gymnasiums():
    values, others = {"x": np.arange(4.0), "p": np.arange(8.0).reshape(4, 2)}, {"x": -np.arange(4.0)}
    mask, rest = np.array([True, False, True, False]), np.array([False, True, False, False])
    infos = add_infos(others, rest, add_infos(values, mask, {}))
    expected = {w: {"x": values["x"][w], "p": values["p"][w]} for w in (0, 2)} | {1: {"x": others["x"][1]}}
    same(infos, gymnasiums(expected))


def test_infos_of_all_worlds_are_copies():
    value = np.arange(4.0)
    infos = add_infos({"x": value}, np.ones(N, bool), {})
    value[:] = 9.0
    same(infos, {"x": np.arange(4.0), "_x": np.ones(N, bool)})


def test_no_world_adds_no_infos():
    assert add_infos({"x": np.arange(4.0)}, np.zeros(N, bool), {}) == {}


def test_a_part_holds_the_masked_worlds_only():
    infos = add_infos({"x": np.arange(1.0, 5.0)}, np.array([True, True, True, False]), {})
    same(part_of(infos, np.array([False, True, False, True])), gymnasiums({1: {"x": 2.0}}))
    assert part_of(infos, np.array([False, False, False, True])) == {}
