"""A cluster of two nodes, started on this machine by a separate program."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import featherlane as fl

pytest.importorskip("ray")
HERE, SOURCE = Path(__file__).parent, Path(fl.__path__[0])
CONSTANT = "MINVAL = 1e-15"  # of a kernel
pytestmark = pytest.mark.slow


def run(*words):
    """Returns the program's output."""
    command = [sys.executable, str(HERE / "two_nodes.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_worlds_of_a_lost_node_continue_from_a_checkpoint():
    said = run("lost")
    assert "threads [1, 1]" in said and "lost the worker" in said and "equal True" in said


def test_a_node_with_other_kernels_is_refused(tmp_path):
    shutil.copytree(SOURCE, tmp_path / "featherlane", ignore=shutil.ignore_patterns("__pycache__"))
    edited = tmp_path / "featherlane" / "spatial" / "vector.py"
    text = edited.read_text()
    assert CONSTANT in text
    edited.write_text(text.replace(CONSTANT, "MINVAL = 1e-14"))
    said = run("other", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert "refused node" in said and "different versions, kernels" in said and "(here " in said


def test_a_node_with_another_cpu_level_is_bitwise_equal():
    said = run("older", "x86-64-v3")
    assert "equal True" in said and "'x86-64-v3'" in said
