"""The comparisons with dm_control, in a process with a MuJoCo that dm_control works with."""

import importlib.util

import pytest

from integrations import other_mujoco

MUJOCO = "3.17.0"  # with 4.0.0 and 4.0.1, dm_control 1.0.50 fails


@pytest.mark.ci
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("dm_control", "dm_env")),
    reason="dm_control is not installed",
)
def test_tasks_and_use_agree_with_dm_control():
    other_mujoco.run("with_dm_control.py", MUJOCO, least=130)
