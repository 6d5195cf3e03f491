"""The Python side needs no module or function that only POSIX systems have."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("no_posix.py")
LIBRARIES = "numpy mujoco typer rich.console multiprocessing.pool concurrent.futures.process asyncio subprocess".split()
EXTRAS = "gymnasium matplotlib.pyplot ray torch jax viser trimesh imageio llvmlite.binding mkdocs".split()


@pytest.mark.ci
def test_everything_is_imported_and_steps_without_posix():
    extras = [name for name in EXTRAS if importlib.util.find_spec(name.partition(".")[0])]
    command = [sys.executable, str(PROGRAM), *LIBRARIES, *extras]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) > 300
