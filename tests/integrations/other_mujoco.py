"""Runs a file of tests in a process with another MuJoCo than the oracle, for a library that needs it.

These files (`with_*.py`) need no conftest.  By hand, in an environment with the library and its MuJoCo:

    PYTHONPATH=tests python -m pytest --noconftest -c /dev/null tests/integrations/with_dm_control.py
"""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import oracle

HERE = Path(__file__).parent
OPTIONS = ["--noconftest", "--import-mode=importlib", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:xdist"]
OPTIONS += ["-o", "junit_family=legacy"]  # the format with recorded properties


def environment(mujoco: str) -> dict[str, str]:
    """Returns environment variables of a process with this version of MuJoCo: the installed one, if it is the same."""
    try:
        installed = version("mujoco")
    except PackageNotFoundError:
        installed = None
    homes = [] if installed == mujoco else [str(oracle.unpacked("mujoco", mujoco))]
    place = str(oracle.folder())
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", place)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*homes, str(HERE.parent), *paths]), "MUJOCO_GL": "disabled"}


def python(mujoco: str, *arguments: object) -> None:
    """Runs Python with a version of MuJoCo; it must end with exit code 0."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment(mujoco), capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def run(file: str, mujoco: str, least: int, report: Path, record_property) -> None:
    """Runs the tests of a file of this folder, and checks that at least `least` of them pass and none fails.

    Args:
        file: name of the file.
        mujoco: version of MuJoCo.
        least: number of tests.
        report: of pytest, written here.
        record_property: pytest's fixture; it records how many tests passed and were skipped, for `adapters.py`.
    """
    python(mujoco, "-m", "pytest", "-q", "-rs", *OPTIONS, f"--junit-xml={report}", HERE / file)
    passed, skipped = counts(report)[0::2]
    record_property("passed", passed)
    record_property("skipped", skipped)
    assert passed >= least, f"{file}: {passed} tests passed, expected are at least {least}; skipped: {skipped}"


def counts(report: Path) -> tuple[int, int, int]:
    """Returns how many tests passed, failed and were skipped; a test that recorded such counts stands for these."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(report).iter("testcase"):
        inner = {each.get("name"): int(each.get("value", "0")) for each in case.iter("property")}
        if {child.tag for child in case} & {"failure", "error"}:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += inner.get("passed", 1)
            skipped += inner.get("skipped", 0)
    return passed, failed, skipped
