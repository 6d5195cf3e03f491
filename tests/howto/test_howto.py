"""The guides of docs/extending.md, followed from outside: each in a separate process, without a kernel cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampling import every

HERE = Path(__file__).parent
TESTS = HERE.parent


@pytest.mark.parametrize("added", every(2, sorted(path.stem for path in HERE.glob("new_*.py"))))
def test_howto_extensions_run(added):
    path = os.pathsep.join([*sys.path, str(TESTS)])  # with the oracle's MuJoCo, as in this process
    environment = os.environ | {"PYTHONPATH": path}
    run = subprocess.run(
        [sys.executable, HERE / f"{added}.py"], env=environment, capture_output=True, text=True, timeout=900
    )
    assert run.returncode == 0, run.stderr
