"""Ctrl-C while the package is imported: one line for the command line, KeyboardInterrupt for programs."""

import subprocess
import sys

import pytest

# Ctrl-C at the first import of the package after `startup`
INTERRUPT = """
import sys
class Interrupting:
    def find_spec(name, path, target=None):
        if name == "featherlane.engine.lanes":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting)
sys.argv[0] = {name!r}
import featherlane
"""


@pytest.mark.ci
@pytest.mark.parametrize("name, short", [("/usr/bin/featherlane", True), ("-m", True), ("train.py", False)])
def test_ctrl_c_during_the_import_of_the_command_line_prints_one_line(name, short):
    command = [sys.executable, "-c", INTERRUPT.format(name=name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode != 0
    assert (done.stderr == "featherlane: interrupted\n") is short
    assert ("Traceback" in done.stderr) is not short


@pytest.mark.ci
def test_a_step_runs_without_docstrings():
    """`python -OO` removes docstrings; public functions of stages generate theirs from them."""
    model = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    program = f"import featherlane as fl\nm = fl.load({model!r})\nd = fl.Data(m)\nfl.step(m, d)\nprint(d.time)"
    done = subprocess.run(
        [sys.executable, "-OO", "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.stdout, done.returncode) == ("0.002\n", 0), done.stderr
