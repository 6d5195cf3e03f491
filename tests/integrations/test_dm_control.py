"""The comparisons with dm_control, in a process with a MuJoCo that dm_control works with."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oracle

HERE = Path(__file__).parent
MUJOCO = "3.17.0"  # with 4.0.0 and 4.0.1, dm_control 1.0.50 fails


@pytest.mark.ci
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("dm_control", "dm_env")),
    reason="dm_control is not installed",
)
def test_tasks_and_use_agree_with_dm_control():
    home, place = oracle.unpacked("mujoco", MUJOCO), str(oracle.folder())
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", place)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(home), str(HERE.parent), *paths]),
        "MUJOCO_GL": "disabled",
    }
    plain = ["--noconftest", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", "-q", *plain, str(HERE / "with_dm_control.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    passed = re.search(r"^(\d+) passed", done.stdout, re.MULTILINE)
    assert passed and int(passed[1]) >= 130, done.stdout[-300:]
