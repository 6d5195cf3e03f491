"""Common properties of adapters: the environments that they accept."""

from __future__ import annotations

import importlib

import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import featherlane as fl
from featherlane.environments import TaskEnv
from scenes.counting import Count

ADAPTERS = {"tensors": "TensorEnv", "stable_baselines3": "TaskVecEnv", "torchrl": "TaskEnvBase", "skrl": "TaskWrapper",
         "rsl_rl": "TaskVecEnv"}  # fmt: skip


def adapter(name):
    pytest.importorskip("torch" if name == "tensors" else name)
    return importlib.import_module(f"featherlane.environments.adapters.{name}")


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_accepts_featherlane_environments_only(name):
    around = getattr(adapter(name), ADAPTERS[name])
    env = TaskEnv(Count(), 2, autoreset_mode="Disabled" if name == "torchrl" else "SameStep", nthread=1)
    assert around(env)
    with pytest.raises(fl.ModelError):
        around(RecordEpisodeStatistics(env))
    with pytest.raises(fl.ModelError):
        around("Ant-v5")


@pytest.mark.parametrize(
    ("name", "mode", "allowed"),
    [
        ("stable_baselines3", "NextStep", "'SameStep'"),
        ("rsl_rl", "Disabled", "'SameStep'"),
        ("skrl", "Disabled", "'SameStep' or autoreset_mode='NextStep'"),
        ("torchrl", "NextStep", "'Disabled'"),
    ],
)
def test_an_unsupported_autoreset_mode_is_refused(name, mode, allowed):
    with pytest.raises(fl.ModelError, match="autoreset_mode"):
        adapter(name).make(Count(), 2, autoreset_mode=mode)


@pytest.mark.parametrize("name", ADAPTERS)
def test_tasks_are_given_by_name_or_object(name):
    make = adapter(name).make
    assert make("InvertedPendulum-v5", 2, frame_skip=3).env.frame_skip == 3
    assert make(Count(), 2, dtype="float32").env.batch.dtype == "float32"
    with pytest.raises(fl.ModelError):
        make("Aunt-v5", 2)
    with pytest.raises(fl.ModelError, match="frame_ship"):
        make("Ant-v5", 2, frame_ship=1)
