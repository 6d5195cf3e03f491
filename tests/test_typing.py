"""Pyright in strict mode accepts a program that uses every public name; `tests/typing/whole_api.py` is the program."""

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typing"
PROGRAM = (FOLDER / "whole_api.py").read_text()
MODULES = "errors results query stages registration environments distributed lcp tree lanes".split()


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_pyright_in_strict_mode_accepts_the_whole_api():
    command = ["pyright", "--project", str(FOLDER), "--pythonpath", sys.executable]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert checked.returncode == 0, checked.stdout


def test_the_program_uses_every_public_name(subtests):
    """Functions of kernels (`featherlane.lanes`) have no types: they are compiled for each argument."""
    for module in ("featherlane", *(f"featherlane.{name}" for name in MODULES)):
        names = importlib.import_module(module)
        for name in names.__all__:
            if module.endswith("lanes") and not inspect.isclass(getattr(names, name)):
                continue
            with subtests.test(module=module, name=name):
                assert re.search(
                    rf"\b(fl|{'|'.join(MODULES)})\.{name}\b|import .*\b{name}\b|^    {name},$", PROGRAM, re.M
                )
