"""The examples in C++: a controller, and a ros2_control plugin, compiled against declarations in place of ROS."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import link, processor
from featherlane.engine.simulation.frozen.loader import SOURCE

HERE, EXAMPLES = Path(__file__).parent, Path(__file__).parents[3] / "examples"
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(processor.host()[0] != "linux", reason="frozen worlds run on Linux"),
    pytest.mark.skipif(bool(link.linking_problem()), reason="needs a C compiler"),
    pytest.mark.skipif(not shutil.which("g++"), reason="needs g++"),
]
STRICT = "-std=c++17 -Wall -Wextra -Wpedantic -Werror -O1".split()
ARM = """<mujoco><option timestep="0.001"/><worldbody><body><joint name="a" axis="0 1 0" damping=".1"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/><body pos=".3 0 0"><joint name="b" axis="0 1 0" damping=".1"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body></body></worldbody>
<actuator><motor joint="a"/><motor joint="b"/></actuator></mujoco>"""
CART = """<mujoco><option timestep="0.002"/><worldbody><body><joint name="slide" type="slide" axis="1 0 0" damping="1"/>
<geom size=".1"/><body><joint name="hinge" axis="0 1 0" damping=".1"/>
<geom type="capsule" fromto="0 0 0 0 0 .4" size=".03"/></body></body></worldbody>
<actuator><motor name="hinge" joint="hinge"/><motor name="slide" joint="slide"/></actuator></mujoco>"""


def built(out: Path, *sources: Path, folders: tuple[Path, ...] = ()) -> Path:
    """Compiles C++ programs with the loader, which is C."""
    loader = out.with_suffix(".o")
    subprocess.run([*link.compiler(), "-std=c99", "-O1", "-c", "-o", loader, SOURCE], check=True, timeout=120)
    includes = [f"-I{folder}" for folder in (SOURCE.parent, *folders)]
    done = subprocess.run(
        ["g++", *STRICT, *includes, "-o", out, *sources, loader, "-ldl"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert not done.returncode, done.stderr
    return out


def test_the_controller_holds_the_posture(tmp_path):
    program, path = built(tmp_path / "controller", EXAMPLES / "controller.cpp"), tmp_path / "arm.flz"
    fl.freeze(fl.load(ARM), path, queries=("full_m",))
    done = subprocess.run([program, path], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and float(done.stdout.split()[2]) < 1e-6, done.stdout + done.stderr
    fl.freeze(fl.load(ARM), path)
    done = subprocess.run([program, path], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (2, "the file has no query full_m\n")


def test_the_plugin_moves_as_a_data(tmp_path):
    plugin, stub = EXAMPLES / "ros2_control" / "featherlane_system.cpp", HERE / "ros2_stub"
    program = built(tmp_path / "main", HERE / "ros2_main.cpp", plugin, folders=(stub,))
    model, path = fl.load(CART), tmp_path / "cart.flz"
    digest = fl.freeze(model, path)
    done = subprocess.run([program, path, digest], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.returncode
    found = {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}
    data = fl.Data(model)
    data.ctrl = [-0.2, 0.1]
    data.step(500)
    assert list(found) == [f"{joint}/{kind}" for joint in ("slide", "hinge") for kind in ("position", "velocity")]
    np.testing.assert_array_equal(list(found.values()), np.column_stack([data.qpos, data.qvel]).ravel())
