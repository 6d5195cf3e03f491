"""Tensors that share the memory of the observations."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import featherlane as fl
from featherlane.environments import TaskEnv
from scenes.counting import Count, TwoSided

torch = pytest.importorskip("torch")
from featherlane.environments.adapters import tensors  # noqa: E402

N = 3


def address(values):
    return values.data_ptr() if isinstance(values, torch.Tensor) else values.ctypes.data


@pytest.mark.parametrize(("dtype", "kind"), [("float32", torch.float32), ("float64", torch.float64)])
def test_observations_are_the_two_buffers_in_turn(dtype, kind):
    env = tensors.TensorEnv(TaskEnv(Count(), N, dtype=dtype, copy=False, nthread=1), dtype=None)
    seen = [env.reset()[0]] + [env.step(torch.ones(N, 1))[0] for _ in range(3)]
    assert {one.dtype for one in seen} == {kind}
    assert address(seen[0]) == address(seen[2]) != address(seen[1]) == address(seen[3])
    assert seen[2].tolist() == [[2]] * N and seen[3].tolist() == [[3]] * N
    assert env.observations is seen[3]
    assert {address(one) for one in seen} == {address(env.env.reset()[0]), address(env.env.step(np.ones((N, 1)))[0])}


def test_the_previous_observation_survives_resets_within_a_step():
    env = tensors.make(Count([2, 3, 3]), N, dtype="float32", autoreset_mode="SameStep", nthread=1)
    before, _ = env.reset()
    for _ in range(6):
        kept = before.clone()
        after, *_ = env.step(torch.ones(N, 1))
        assert torch.equal(before, kept)
        before = after


def test_groups_of_observations_are_a_dict_of_buffers():
    env = tensors.make(TwoSided(), N, dtype="float32", nthread=1)
    seen = [env.reset()[0]] + [env.step(torch.ones(N, 1))[0] for _ in range(2)]
    assert seen[2]["critic"].tolist() == [[2, 20]] * N and env.observations is seen[2]
    for group in ("actor", "critic"):
        assert address(seen[0][group]) == address(seen[2][group]) != address(seen[1][group])


def test_float64_worlds_have_float32_tensors_by_default():
    env = tensors.make(Count(), N, nthread=1)
    seen, infos = env.reset(seed=3)
    assert seen.dtype == torch.float32 and infos == {} and env.env.np_random_seed == (3, 4, 5)
    seen, rewards, terminated, truncated, _ = env.step(torch.full((N, 1), 0.5, requires_grad=True))
    assert seen.dtype == rewards.dtype == torch.float32 and rewards.tolist() == [0.5] * N
    assert terminated.dtype == truncated.dtype == torch.bool
    assert env.mean_terms() == {"pay": 1.0, "tax": -0.5}


def test_tensors_are_on_the_requested_device():
    env = tensors.make(Count(), N, device="meta", nthread=1)
    assert env.reset()[0].device.type == "meta"
    assert {value.device.type for value in env.step(np.ones((N, 1), np.float32))[:4]} == {"meta"}


def test_steps_equal_the_environment():
    one, other = (
        TaskEnv(Count([2, 3, 3]), N, max_episode_steps=4, autoreset_mode=AutoresetMode.SAME_STEP, nthread=1)
        for _ in range(2)
    )
    env = tensors.TensorEnv(one, dtype=torch.float64)
    assert np.array_equal(env.reset()[0].numpy(), other.reset()[0])
    for step in range(8):
        actions = np.full((N, 1), step, np.float32)
        results, expected = env.step(torch.from_numpy(actions)), other.step(actions)
        for ours, theirs in zip(results[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(ours.numpy(), theirs)
        assert results[4].keys() == expected[4].keys()


@pytest.mark.parametrize("wrong", [torch.ones(N), torch.ones(N + 1, 1), torch.full((N, 1), torch.nan), None, "abc"])
def test_invalid_actions_are_refused_and_no_world_steps(wrong):
    env = tensors.make(Count(), N, nthread=1)
    env.reset()
    with pytest.raises(fl.ModelError):
        env.step(wrong)
    assert env.env.batch.time.tolist() == [0.0] * N


def test_actions_can_have_other_types():
    env = tensors.make(Count(), N, nthread=1)
    env.reset()
    for kind in (torch.bfloat16, torch.float16, torch.float64, torch.int64):
        assert env.step(torch.ones(N, 1, dtype=kind))[1].tolist() == [1.0] * N


def test_arrays_are_passed_by_dlpack():
    env = TaskEnv(Count(), N, copy=False, nthread=1)
    seen, _ = env.reset()
    assert address(torch.from_dlpack(seen)) == address(seen) == address(np.from_dlpack(seen))
