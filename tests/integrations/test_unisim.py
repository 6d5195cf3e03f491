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

import numpy as np
import pytest

from integrations.unisim_trajectories import trajectories
from scenes.unisim_scenes import ROBOT, copied

TESTS = Path(__file__).parents[1]
OPTIONS = ["--noconftest", "--import-mode=importlib", "-o", "addopts=", "-p", "no:cacheprovider", "-q"]


HAVE_UNISIM, HAVE_UNILAB = (importlib.util.find_spec(name) is not None for name in ("mjbatch", "unilab"))
SCENES = {"robot": "home"} | ({"go2": "home", "g1": "stand"} if HAVE_UNILAB else {})


def python(*arguments) -> str:
    """Runs Python without the oracle; returns its output."""
    from oracle import folder

    places = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place not in ("", str(folder()))]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([*places, str(TESTS)])}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


def passed(name: str) -> int:
    """Runs a file of tests and returns how many passed; all must pass."""
    return int(re.search(r"(\d+) passed", python("-m", "pytest", *OPTIONS, TESTS / "integrations" / name))[1])


@pytest.mark.slow
@pytest.mark.skipif(not HAVE_UNISIM, reason="needs unisim-core[mujoco]")
@pytest.mark.parametrize("name", SCENES)
def test_both_versions_of_mujoco_agree_on_the_scenes(name, tmp_path):
    """UniSim's backend uses MuJoCo 3.11, and Featherlane is compared with 4.0.1 everywhere else."""
    scene, file = tmp_path / "robot.xml", tmp_path / "states.npy"
    if name == "robot":
        scene.write_text(ROBOT)
    else:
        scene = copied(name, tmp_path / name)
    python(TESTS / "integrations" / "unisim_trajectories.py", scene, SCENES[name], file)
    np.testing.assert_allclose(np.load(file), trajectories(str(scene), SCENES[name]), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.skipif(not HAVE_UNISIM, reason="needs unisim-core[mujoco]")
def test_the_backend_of_unisim():
    assert passed("beside_unisim.py") >= 50


@pytest.mark.slow
@pytest.mark.skipif(not HAVE_UNILAB, reason="needs unilab[mujoco]")
def test_tasks_of_unilab():
    assert passed("beside_unilab.py") >= 7
