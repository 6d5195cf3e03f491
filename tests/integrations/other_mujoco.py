"""Runs a file of tests in a process with another MuJoCo than the oracle, for a library that needs it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import oracle

HERE = Path(__file__).parent


def run(file: str, version: str, least: int) -> None:
    """Runs the tests of a file of this folder, and checks that at least `least` of them pass and none fails."""
    home, place = oracle.unpacked("mujoco", version), str(oracle.folder())
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", place)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(home), str(HERE.parent), *paths]),
        "MUJOCO_GL": "disabled",
    }
    plain = ["--noconftest", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", "-q", *plain, str(HERE / file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    passed = re.search(r"^(\d+) passed", done.stdout, re.MULTILINE)
    assert passed and int(passed[1]) >= least, done.stdout[-300:]
