"""Runs the Python blocks of the pages of integrations, each page in a fresh environment with its library alone.

    python tests/exam.py pages [mjbatch gymnasium ...] [--folder FOLDER]

An environment has the page's library, installed by the page's command, and a wheel of Featherlane without compiled
kernels (extra `jit`).  Environments in FOLDER are kept and used again; without it they are removed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "integrations"
TIMEOUT = 3600  # of an installation, and of a page [s]


class Needs(NamedTuple):
    """Defines what a page needs: an extra of Featherlane, and other packages; the version of `shown` is printed."""

    extra: str = ""
    others: tuple[str, ...] = ()
    shown: str = "mujoco"


PAGES = {
    "mujoco_batch": Needs(),
    "mujoco_data": Needs(),
    "mujoco_rollout": Needs(),
    "mjbatch": Needs("mjbatch", shown="mjbatch"),
    "gymnasium": Needs("gym-mujoco", shown="gymnasium"),
    "dm_control": Needs("dm-control", ("mujoco<4",), "dm-control"),
    "judo": Needs("", ("judo-rai==0.1.0",), "judo-rai"),
    "unisim": Needs("unisim", shown="unisim-core"),
    "mjlab": Needs("mjlab", shown="mjlab"),
}
RUN = """
import pathlib, sys
sys.path.append(sys.argv[1])
from pages import blocks
blocks.run(pathlib.Path(sys.argv[2]).read_text(), pathlib.Path.cwd())
from importlib.metadata import version
print(", ".join(f"{name} {version(name)}" for name in dict.fromkeys(sys.argv[3:])))
"""


def command(*words: object, folder: Path, **variables: str) -> str:
    """Runs a program without the caller's PYTHONPATH; returns its output.

    Raises:
        RuntimeError: it failed; with the end of its output.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip()[-1500:])
    return done.stdout


def wheel(folder: Path) -> Path:
    """Returns a wheel of the present source, without kernels."""
    command(
        *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT),
        folder=folder,
        FEATHERLANE_PURE="1",
    )
    return next(folder.glob("featherlane-*.whl"))


def tried(name: str, folder: Path, built: Path) -> str:
    """Makes the environment of a page in a folder, runs the page there, and returns the versions.

    Raises:
        RuntimeError: the installation or a block failed.
    """
    needs, home = PAGES[name], folder / name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(home, with_pip=True)
    extras = ",".join(filter(None, ("jit", needs.extra)))
    command(python, "-m", "pip", "install", "-q", f"{built}[{extras}]", *needs.others, folder=home)
    with tempfile.TemporaryDirectory() as work:
        page, shown = FOLDER / f"{name}.md", (needs.shown, "mujoco", "numpy", "featherlane")
        return command(python, "-c", RUN, ROOT / "tests", page, *shown, folder=Path(work)).strip().splitlines()[-1]


def main(*arguments: str) -> int:
    """Tries pages, prints a line for each, and returns the number of failures."""
    parser = argparse.ArgumentParser(description="Runs pages of integrations in separate environments.")
    parser.add_argument("pages", nargs="*", help=f"of {', '.join(PAGES)}; none for all")
    parser.add_argument("--folder", type=Path, help="of the environments, which are kept there")
    asked, failures = parser.parse_args(arguments), 0
    unknown = [name for name in asked.pages if name not in PAGES]
    if unknown:
        parser.error(f"unknown pages {unknown}, allowed are {', '.join(PAGES)}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) if asked.folder is None else asked.folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        built = wheel(Path(made))
        for name in asked.pages or PAGES:
            start = time.monotonic()
            try:
                text = f"passed with {tried(name, folder, built)}"
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failures += 1
                text = "FAILED: " + re.sub(r"\s*\n", "\n    ", str(error))
            print(f"{name}: {text} ({time.monotonic() - start:.0f} s)", flush=True)
    return failures
