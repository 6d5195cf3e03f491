"""What this installation runs on: for a bug report, and to see whether kernels are prebuilt."""

from __future__ import annotations

import platform
from pathlib import Path

from featherlane.lanes import cache
from featherlane.model.reader import installed
from featherlane.simulation.tile.library import library


def package_version(distribution: str) -> str:
    """The version of an installed distribution, or `not installed`."""
    from importlib.metadata import PackageNotFoundError, version  # an eighth of the package's import time

    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


def configuration() -> dict[str, str]:
    """Where the package lies, how its kernels run, and the versions it stands on, by name."""
    versions = {"numpy": "numpy", "llvmlite": "llvmlite"}
    return {
        "featherlane": f"{package_version('featherlane')}, {Path(__file__).parent}",
        **library().configuration(),
        "cache": str(cache.directory()),
        "python": f"{platform.python_version()}, {platform.platform()}",
        "mujoco": installed(),
        **{name: package_version(distribution) for name, distribution in versions.items()},
    }


def show_config() -> None:
    """Print what this installation runs on.

    The package's path; whether kernels are compiled ahead of time or just in time, and why; the CPU level and the
    widths of tiles; the cache of compiled objects; the versions of Python, MuJoCo, NumPy and llvmlite.
    """
    for name, value in configuration().items():
        print(f"{name:12s} {value}")
