"""The AArch64 wheel runs under QEMU, with the bits recorded on x86-64."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCENES = ("actuators Euler", "lcp.solve_batch pgs")  # in both precisions, of one world and of tiles
WHEEL = os.environ.get("FEATHERLANE_AARCH64_WHEEL", "")
MISSING = [name for name in ("qemu-aarch64-static", "debootstrap") if not shutil.which(name)]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)} (Debian packages)"),
    pytest.mark.skipif(not WHEEL, reason="FEATHERLANE_AARCH64_WHEEL names no wheel; .ci/wheels builds it"),
]


@pytest.fixture
def folder(tmp_path):
    """FEATHERLANE_AARCH64_ROOT, which keeps the emulated system, or a temporary folder."""
    return Path(os.environ.get("FEATHERLANE_AARCH64_ROOT") or tmp_path)


def test_the_wheel_gives_the_recorded_bits_under_emulation(folder):
    command = [HERE / "aarch64", folder, WHEEL, *SCENES]
    chosen = os.environ | {"PYTHON": sys.executable}
    done = subprocess.run(command, env=chosen, capture_output=True, text=True, check=False, timeout=1800)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert re.fullmatch(rf"aarch64: bits of {len(SCENES)} of {len(SCENES)} scenes equal, \d+ s", lines[-1])
    assert any("world-steps/s" in line for line in lines)  # featherlane simulate humanoid
