"""What every test run checks first, prints first, and shares."""

from __future__ import annotations

import os
import platform
import zlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import mujoco
import numpy as np
import pytest

import wheels

CI = bool(os.environ.get("FEATHERLANE_CI"))
ORACLE = (4, 0, 1)  # 4.0.0 has a wrong sparse Newton factor
REPAIR = 'pip uninstall -y mujoco mujoco-core && pip install "mujoco-core>=4.0.1"'

# the distribution `mujoco` owns the files of `mujoco-core`: installing it replaces the oracle without a word from pip
assert tuple(map(int, mujoco.__version__.split(".")[:3])) >= ORACLE, (
    f"the oracle is MuJoCo {mujoco.__version__} from {mujoco.__path__[0]}, the tests need 4.0.1 or newer: {REPAIR}"
)


def pytest_sessionstart(session):
    """In CI the tests speak for the installed wheel, so a source tree in its place is an error."""
    import featherlane

    source = Path(__file__).parents[1] / "src"
    if CI and source in Path(featherlane.__file__).parents:
        raise pytest.UsageError(f"featherlane is imported from {source}, not from an installed wheel")


def pytest_report_header(config):
    import featherlane

    found = " ".join(f"{name} {_version(name)}" for name in ("numpy", "mujoco-core", "numba", "hypothesis"))
    return [
        f"featherlane: {Path(featherlane.__file__).parent}",
        f"versions: {found} python {platform.python_version()}",
    ]


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Random numbers that depend on the test's name alone, so that a failure repeats."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


@pytest.fixture(scope="session")
def real_model():
    """Function from a real model's name (`gymnasium/ant`) to its path; skips offline, and fails there in CI."""

    def path(name: str) -> Path:
        try:
            return wheels.model_path(name)
        except wheels.Unreachable as error:
            (pytest.fail if CI else pytest.skip)(str(error))

    return path
