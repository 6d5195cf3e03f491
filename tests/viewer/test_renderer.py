"""Pictures are rendered headless, for any order of imports."""

import os
import subprocess
import sys

import pytest

DRAW = """
import numpy as np
import featherlane as fl
from featherlane.tools.renderer import PICTURES, Painter, prepare_rendering

prepare_rendering(PICTURES)
model = fl.bundled("humanoid")
with Painter(model, -1, (64, 48)) as painter:
    picture = painter.picture(np.asarray(model.qpos0))
assert picture.shape == (48, 64, 3) and picture.std() > 0
"""


def drawn(code: str) -> subprocess.CompletedProcess:
    """Runs code in a process without a screen and without a selected rendering back end."""
    settings = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=settings, check=False, timeout=900
    )


def test_a_renderer_imported_earlier_draws():
    """MuJoCo selects its back end when its renderer is imported; `prepare_rendering` makes it select again."""
    pytest.importorskip("OpenGL")
    if drawn(DRAW).returncode != 0:
        pytest.skip("nothing draws here")
    done = drawn("import mujoco; mujoco.Renderer\n" + DRAW)
    assert done.returncode == 0, done.stderr
