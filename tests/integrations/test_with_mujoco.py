"""Environments with an installed MuJoCo: installing Featherlane leaves it unchanged, and works with it.

Each is a fresh virtual environment.  `FEATHERLANE_WHEEL` names the wheel to install; by default one without
kernels is built, which come from `FEATHERLANE_CACHE` or the compiler.  `pytest -m slow -s` shows the output.
"""

import base64
import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import oracle

ROOT = Path(__file__).parents[2]
MODULE = """
import json, mujoco
from importlib.metadata import distributions
owners = ("mujoco", "mujoco-core", "mujoco-studio")
found = {d.name: d.version for d in distributions() if d.name in owners}
print(json.dumps([mujoco.__version__, found]))
"""
SUITE = """
from dm_control import suite
print(suite.load("cartpole", "swingup").reset())
"""
ENVIRONMENT = """
import gymnasium
environment = gymnasium.make("Ant-v5")
environment.reset(seed=0)
print(environment.step(environment.action_space.sample())[1])
"""
SHOWN = 16  # lines of a command's output
EXTRAS = "view,gym"
# packages installed first, the robots that then run, and user code that must still run
CASES = {
    "nothing": ([], "gymnasium/ant", ""),
    "mujoco 3.6": (["mujoco==3.6.*"], "gymnasium/ant", ""),
    "mujoco 3.11": (["mujoco==3.11.*"], "dm_control/quadruped", ""),
    "mujoco 3.14": (["mujoco==3.14.*"], "gymnasium/ant", ""),
    "mujoco 3.17": (["mujoco==3.17.*"], "gymnasium/ant", ""),
    "mujoco 4.0.0 with gymnasium": (["mujoco==4.0.0", "gymnasium[mujoco]>=1.1"], "gymnasium/ant", ENVIRONMENT),
    "mujoco 3.12 with dm_control": (["mujoco==3.12.*", "dm_control==1.0.45"], "dm_control/quadruped", SUITE),
}


def told(*command, **environment) -> str:
    """Returns the output of a command that must succeed, without the oracle on its path."""
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONWARNINGS": "ignore", **environment}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, env=environment, timeout=3600
    )
    lines = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("WARNING")]
    print("$", *command, *[f"\n  {line}" for line in lines[:SHOWN]], flush=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def installed(*command) -> None:
    """Runs pip; skips if the index is unreachable, fails in CI."""
    try:
        told(*command)
    except AssertionError as error:
        if "No matching distribution" not in str(error) and "onnection" not in str(error):
            raise
        (pytest.fail if os.environ.get("FEATHERLANE_CI") else pytest.skip)(str(error))


def changed_files(site: Path, distributions: dict[str, str]) -> list[str]:
    """Returns files of distributions that differ from their records."""
    wrong = []
    for name, version in distributions.items():
        record = site / f"{name.replace('-', '_')}-{version}.dist-info" / "RECORD"
        for path, digest, _ in csv.reader(record.read_text().splitlines()):
            if digest and not path.endswith(".pyc"):
                kind, _, value = digest.partition("=")
                content = (site / path).read_bytes() if (site / path).exists() else b""
                if base64.urlsafe_b64encode(hashlib.new(kind, content).digest()).rstrip(b"=").decode() != value:
                    wrong.append(path)
    return wrong


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Returns the arguments of `pip install`."""
    given = os.environ.get("FEATHERLANE_WHEEL")
    if given:
        return f"{given}[{EXTRAS}]"
    folder = tmp_path_factory.mktemp("wheel")
    told(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, FEATHERLANE_PURE="1")
    (path,) = folder.glob("*.whl")
    return f"{path}[jit,{EXTRAS}]"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_installed_mujoco_is_kept_and_used(name, wheel, real_model, tmp_path):
    before, robot, users = CASES[name]
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin" / "python"
    if before:
        installed(python, "-m", "pip", "install", "--quiet", *before)
        there = json.loads(told(python, "-c", MODULE))
    installed(python, "-m", "pip", "install", "--quiet", wheel)
    version, found = json.loads(told(python, "-c", MODULE))
    if before:
        assert [version, found] == there
    site = next((tmp_path / "lib").glob("python*/site-packages"))
    assert found and not changed_files(site, found)
    told(python, "-m", "pip", "check")
    featherlane = tmp_path / "bin" / "featherlane"
    assert version in told(featherlane, "--version")
    for source in ("humanoid", real_model(robot)):
        result = json.loads(told(featherlane, "simulate", source, "--seconds", "0.5", "--json"))
        assert result["steps"] and not result["status"]["non_finite"] and not result["worlds_reset"]
    if users:
        told(python, "-c", users)


@pytest.mark.slow
def test_mixed_mujoco_installations_are_reported_with_the_fix(tmp_path):
    """The result of installing `mujoco-core` into an environment with MuJoCo 3."""
    for home in (oracle.unpacked("mujoco", "3.17.0"), oracle.folder()):
        shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])}
    command = [sys.executable, "-m", "featherlane", "simulate", "pendulum"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=3600)
    assert done.returncode == 2 and "mujoco 3.17.0 and mujoco-core 4.0.1" in done.stderr, done.stderr
    assert "pip uninstall -y mujoco mujoco-core mujoco-studio && pip install 'mujoco==3.17.0'" in done.stderr
