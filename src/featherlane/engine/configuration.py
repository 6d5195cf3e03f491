"""Reports the installation: versions, CPU, and whether kernels are prebuilt; for bug reports."""

from __future__ import annotations

import platform
from pathlib import Path

from featherlane.engine.lanes import cache
from featherlane.engine.model.reader import installed
from featherlane.engine.simulation.tile.library import library


def package_version(distribution: str) -> str:
    """Returns the version of an installed distribution, or `not installed`."""
    from importlib.metadata import PackageNotFoundError, version  # an eighth of the package's import time

    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


def configuration() -> dict[str, str]:
    """Returns the package's path, how its kernels are compiled, and the versions of its dependencies, by name."""
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
    """Prints the installation: paths, compilation mode and versions.

    The package's path; whether kernels are compiled ahead of time or just in time, and the reason; the CPU level and
    the tile widths; the cache of compiled objects; the versions of Python, MuJoCo, NumPy and llvmlite.
    """
    for name, value in configuration().items():
        print(f"{name:12s} {value}")
