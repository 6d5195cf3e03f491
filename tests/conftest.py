"""Configures every test run: initial checks, the printed header, markers and shared fixtures."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import zlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import hypothesis
import numpy as np
import pytest

import featherlane
import oracle
from featherlane.engine.lanes.cores import cores
from robots import wheels

HOME = Path(featherlane.__path__[0])
CI = bool(os.environ.get("FEATHERLANE_CI"))
MARKED = ("viewer", "environments", "distributed", "integrations")  # folders that have a marker
WORKER = 4 << 30  # bytes for a test process
ONE_PROCESS = ("distributed",)  # folders whose tests share a fixture that takes seconds to create

hypothesis.settings.register_profile("untimed", deadline=None)  # no test asserts a time
hypothesis.settings.load_profile("untimed")

# before any test imports mujoco: the oracle's version does not depend on the installed one
try:
    ORACLE = oracle.use()
except (wheels.Unreachable, RuntimeError) as error:
    pytest.exit(
        f"no oracle: {error}\nThe tests compare with MuJoCo {oracle.VERSION} from the wheel of {oracle.PROJECT}, which "
        f"is downloaded once, into {wheels.cache_folder()} (FEATHERLANE_WHEEL_CACHE).",
        returncode=pytest.ExitCode.USAGE_ERROR,
    )


def memory() -> int:
    """Returns the machine's memory, or the limit of the control group, in bytes; if unknown, enough for 8 processes."""
    found = [8 * WORKER]
    with contextlib.suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError, ValueError):  # "max": no limit
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found)


def pytest_configure(config):
    """Removes settings that a test process inherits and a user's shell does not have.

    A shell makes background jobs ignore Ctrl-C, and tests of it would wait forever.  xdist sets COLUMNS to 80.
    """
    os.environ.pop("COLUMNS", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config) -> int:
    """Returns one process per core and per 4 GB of memory, at most 8 and at most one per named file.

    A process takes up to 3.9 GB.  A single file starts sooner without processes.
    """
    named = {name.partition("::")[0] for name in config.args}
    most = max(1, min(cores(), memory() // WORKER, 8))
    count = most if any(Path(name).is_dir() for name in named) else min(most, len(named))
    return count if count > 1 else 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Runs a file in one process, which loads its models and kernels once; likewise a folder of ONE_PROCESS."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return next((folder for folder in ONE_PROCESS if file.startswith(f"tests/{folder}/")), file)

    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Adds the folder's marker in the folders of MARKED, and `slow` to tests marked `ci`.

    Long tests may diverge in some cases: their warnings are printed, and no errors.
    """
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in MARKED:
            item.add_marker(folder)
        if item.get_closest_marker("ci"):
            item.add_marker("slow")
        elif item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.filterwarnings("default::UserWarning", "default::RuntimeWarning"), append=False)


def pytest_collection_finish(session):
    """Excludes objects left by imports and test collection from garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_sessionstart(session):
    """In CI the tests check the installed wheel, so importing a source tree instead is an error."""
    source = Path(__file__).parents[1] / "src"
    if CI and source in HOME.parents:
        raise pytest.UsageError(f"featherlane is imported from {source}, not from an installed wheel")


def pytest_report_header(config):
    found = ", ".join(f"{name} {_version(name)}" for name in ("numpy", "mujoco-core", "llvmlite", "hypothesis"))
    return [f"featherlane: {HOME}", f"oracle: {ORACLE}", f"versions: {found}", *_configuration()]


def _configuration() -> list[str]:
    """Returns the lines of `fl.show_config()`: kernels compiled ahead of time or just in time, CPU level."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        getattr(featherlane, "show_config", lambda: None)()
    return printed.getvalue().splitlines()


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Returns a random generator seeded by the test's name alone, so that a failure is reproducible."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


@pytest.fixture(scope="session")
def real_model():
    """Returns a function from a real model's name (`gymnasium/ant`) to its path; offline it skips, in CI it fails."""

    def path(name: str) -> Path:
        try:
            return wheels.model_path(name)
        except wheels.Unreachable as error:
            (pytest.fail if CI else pytest.skip)(str(error))

    return path
