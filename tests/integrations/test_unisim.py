"""UniSim's and UniLab's tests of Featherlane, in a process with the installed MuJoCo, which they need, and no oracle.

They run where unisim-core and UniLab are installed:

    pip install 'featherlane[unisim]' 'unilab[mujoco]==1.5.2' pytest && pytest -m "" tests/integrations/test_unisim.py
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
OPTIONS = ["--noconftest", "--import-mode=importlib", "-o", "addopts=", "-p", "no:cacheprovider", "-q"]


def passed(name: str) -> int:
    """Runs a file of tests and returns how many passed; all must pass."""
    from oracle import folder

    places = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place not in ("", str(folder()))]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([*places, str(TESTS)])}
    command = [sys.executable, "-m", "pytest", *OPTIONS, str(TESTS / "integrations" / name)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return int(re.search(r"(\d+) passed", done.stdout)[1])


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mjbatch") is None, reason="needs unisim-core[mujoco]")
def test_the_backend_of_unisim():
    assert passed("beside_unisim.py") >= 40


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("unilab") is None, reason="needs unilab[mujoco]")
def test_tasks_of_unilab():
    assert passed("beside_unilab.py") >= 7
