"""Makes environments for libraries that cannot be installed next to the tests' own, and runs programs there.

An environment is a folder of the module `venv`, with a wheel of the present source and the requirements of one library.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
# other modules; without bytecode each of Ray's processes compiles its modules, which takes longer than Ray waits
PYTHON = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
TIMEOUT = 3600  # of an installation, and of a program [s]
# PyTorch without CUDA is 200 MB instead of 3 GB
TORCH, TORCH_INDEX = "torch==2.13.0", "https://download.pytorch.org/whl/cpu"


def command(*words: object, folder: Path, **variables: str) -> str:
    """Runs a program without Python's variables of the caller; returns its output.

    Raises:
        RuntimeError: it failed; with the end of its output.
    """
    done = run(*words, folder=folder, **variables)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip()[-1500:])
    return done.stdout


def run(*words: object, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    """Runs a program as `command` does, and returns its outputs and exit status."""
    environment = {name: value for name, value in os.environ.items() if name not in PYTHON} | variables
    return subprocess.run(
        list(map(str, words)), cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def package(given: Path | None, folder: Path) -> Path:
    """Returns a wheel: the given one, that in the given folder, or one of the present source, built in `folder`.

    The latter has no compiled kernels, so that it is built in seconds; kernels compile on first use.

    Raises:
        RuntimeError: the folder contains no wheel or several, or the wheel cannot be built.
    """
    if given is not None:
        return built(given.absolute()) if given.is_dir() else given.absolute()
    command(
        *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT),
        folder=folder,
        FEATHERLANE_PURE="1",
    )
    return built(folder)


def built(folder: Path) -> Path:
    """Returns the wheel in a folder.

    Raises:
        RuntimeError: none or several.
    """
    found = sorted(folder.glob("featherlane-*.whl"))
    if len(found) != 1:
        raise RuntimeError(f"{folder} contains {len(found)} wheels of featherlane, allowed is one")
    return found[0]


def environment(home: Path, package: Path, extras: str, requirements: Sequence[str], alone: Sequence[str] = ()) -> Path:
    """Makes an environment, or brings a kept one up to date; returns its Python.

    Args:
        home: folder of the environment.
        package: wheel of Featherlane.
        extras: of Featherlane, separated by commas.
        requirements: of other packages.
        alone: requirements of packages that are installed without their dependencies.

    Raises:
        RuntimeError: the installation failed.
    """
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(home, with_pip=True)
    pip = (python, "-m", "pip", "install", "-q", "--no-compile")
    if TORCH in requirements:  # first and alone, so that the other packages come from the usual index
        command(*pip, "--extra-index-url", TORCH_INDEX, TORCH, folder=home)
    command(*pip, f"{package}[{extras}]", *requirements, folder=home)
    if alone:
        command(*pip, "--no-deps", *alone, folder=home)
    command(*pip, "--no-deps", "--force-reinstall", package, folder=home)  # pip keeps an older build of this version
    return python


def versions(python: Path, *names: str) -> str:
    """Returns names and versions of distributions that are installed in an environment."""
    code = "import sys; from importlib.metadata import version\n"
    code += 'print(", ".join(f"{name} {version(name)}" for name in dict.fromkeys(sys.argv[1:])))'
    return command(python, "-c", code, *names, folder=ROOT).strip()


def indented(text: str) -> str:
    """Returns lines without blank ones, indented after the first."""
    return re.sub(r"\s*\n", "\n    ", text)
