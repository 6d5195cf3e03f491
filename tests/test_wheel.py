"""The wheel: tag and contents; its kernels need no compiler and give bitwise identical results."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from featherlane.engine.lanes import processor
from featherlane.engine.lanes.build import VARIANTS
from featherlane.engine.lanes.kernel import symbol
from featherlane.engine.lanes.runtime import LAYOUT_SYMBOL, PREBUILT
from featherlane.engine.simulation.tile.library import library, stages

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MOST_OF_A_LEVEL = 4 * 2**20  # bytes, compressed
LIBC_ONLY = {"memcpy", "memmove", "memset"}
LIBM = {"fma", "fmaf"}  # instructions that a processor without AVX2 does not have
LINUX = sys.platform == "linux" and platform.machine() == "x86_64"
BLOCK = 'import sys\nsys.modules.update(dict.fromkeys(["llvmlite", "llvmlite.binding"]))\n'
STEPS = """
import hashlib
import numpy as np
import featherlane as fl

rng = np.random.default_rng(7)
model, found = fl.bundled("humanoid"), hashlib.sha256()
data = fl.Data(model)
for _ in range(40):
    data.ctrl = rng.uniform(-1, 1, model.nu)
    fl.step(model, data)
found.update(data.qpos.tobytes() + data.qvel.tobytes())
for dtype in ("float64", "float32"):
    batch = fl.Batch(model, nworld=19, nthread=1, dtype=dtype)
    for _ in range(10):
        batch.ctrl = rng.uniform(-1, 1, (19, model.nu))
        batch.step(nstep=4)
    assert batch.ncon.any() and not batch.nreset.any()
    found.update(batch.qpos.tobytes() + batch.qvel.tobytes())
fl.show_config()
print(found.hexdigest())
"""


def steps(code=STEPS, home=None, **environment) -> str:
    """Returns the output of a new process that steps a humanoid on the ground, with the featherlane in `home`."""
    environment = {**os.environ, "FEATHERLANE_MODE": "auto", **environment}
    if home:
        environment["PYTHONPATH"] = os.pathsep.join([str(home), environment["PYTHONPATH"]])  # the oracle's path stays
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "steps.py")  # kernel sources must be readable
        path.write_text(code)
        done = subprocess.run(
            [sys.executable, path], capture_output=True, text=True, check=False, env=environment, timeout=900
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def levels() -> list[str]:
    """Returns the CPU levels that a wheel can hold and this machine runs."""
    return [level for level in processor.levels() if level in processor.LEVELS] if LINUX else []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Builds a wheel of this checkout as pip does, for every level that this machine runs."""
    if not LINUX:
        pytest.skip("kernels are compiled ahead of time on Linux x86-64")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    every = {**os.environ, "FEATHERLANE_LEVELS": ",".join(levels())}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=every, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    zipfile.ZipFile(wheel).extractall(home)
    return home


@pytest.mark.slow
def test_the_wheel_is_for_any_python_3_on_linux(wheel):
    assert wheel.name == f"featherlane-{PROJECT['version']}-py3-none-linux_x86_64.whl"
    (metadata,) = [n for n in zipfile.ZipFile(wheel).namelist() if n.endswith(".dist-info/WHEEL")]
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    assert "Root-Is-Purelib: false" in text and "Tag: py3-none-linux_x86_64" in text


@pytest.mark.slow
def test_the_wheel_is_small_and_holds_one_object_per_cpu_level(wheel):
    assert wheel.stat().st_size < MOST_OF_A_LEVEL * len(levels())
    files = zipfile.ZipFile(wheel).namelist()
    prebuilt = {name for name in files if name.endswith(".so")}
    names = [*levels(), "libfeatherlane"]  # kernels, and the loader of frozen worlds
    assert prebuilt == {f"featherlane/engine/lanes/prebuilt/{name}.so" for name in names}
    assert not [name for name in files if name.startswith("tests") or "__pycache__" in name]


@pytest.mark.slow
@pytest.mark.parametrize("level", levels())
def test_the_objects_need_nothing_but_memory_functions_of_libc(unpacked, level):
    if not shutil.which("readelf"):
        pytest.skip("needs readelf")
    path = unpacked / "featherlane" / "engine" / "lanes" / "prebuilt" / f"{level}.so"
    listed = subprocess.run(
        ["readelf", "-dW", "--dyn-syms", path], capture_output=True, text=True, check=True, timeout=900
    ).stdout
    of_libm = LIBM if level == "x86-64" else set()
    assert set(re.findall(r"NEEDED.*\[(.*?)\]", listed)) <= {"libc.so.6"} | ({"libm.so.6"} if of_libm else set())
    assert set(re.findall(r" UND (\w+)", listed)) <= LIBC_ONLY | of_libm
    # every stage in every variant, and the layouts
    wanted = {symbol(stage, *v, False) for stage in stages().values() for v in VARIANTS}
    assert set(re.findall(r"(?:FUNC|OBJECT) .* \d+ (\w+)$", listed, re.MULTILINE)) == wanted | {LAYOUT_SYMBOL}


@pytest.mark.slow
@pytest.mark.parametrize("level", levels())
def test_ahead_of_time_needs_no_compiler_and_equals_just_in_time_bitwise(unpacked, level):
    ahead = steps(BLOCK + STEPS, unpacked, FEATHERLANE_MODE="prebuilt", FEATHERLANE_CPU=level)
    assert re.search(r"kernels +ahead of time\n", ahead) and str(unpacked) in ahead
    just = steps(STEPS, unpacked, FEATHERLANE_MODE="jit", FEATHERLANE_CPU=level)
    assert re.search(r"kernels +just in time", just)
    assert ahead.splitlines()[-1] == just.splitlines()[-1]


SPRING = """
import featherlane as fl

def gain(m, d, i):
    return 2.0 - d.actuator_length[i] * d.actuator_length[i]

model = fl.load('''<mujoco><worldbody><body><joint name="j"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
<actuator><general name="spring" joint="j" gaintype="user"/></actuator></mujoco>''')
try:
    fl.set_user_actuator(model, gain=fl.kernel(gain) if kernel else gain)
except fl.InstallationError as error:
    print(error)
else:
    batch = fl.Batch(model, 11, nthread=2)
    batch.ctrl = 1.0
    batch.step(20)
    print(batch.qpos[:, 0].tolist())
"""


@pytest.mark.slow
@pytest.mark.skipif(not levels(), reason="kernels are compiled ahead of time for other processors")
def test_user_callbacks_need_a_compiler_or_plain_python(unpacked):
    plain = steps(BLOCK + "kernel = False" + SPRING, unpacked)
    assert steps("kernel = True" + SPRING, unpacked) == plain
    assert "featherlane[jit]" in steps(BLOCK + "kernel = True" + SPRING, unpacked)


@pytest.mark.parametrize("level", levels())
def test_every_cpu_level_gives_bitwise_equal_results(level):
    if not (PREBUILT / f"{level}.so").exists():
        pytest.skip("this installation brings no prebuilt kernels")
    assert steps(FEATHERLANE_CPU=level).splitlines()[-1] == steps().splitlines()[-1]


@pytest.mark.slow
def test_two_levels_of_a_wheel_give_bitwise_equal_results(unpacked):
    assert len({steps(BLOCK + STEPS, unpacked, FEATHERLANE_CPU=level).splitlines()[-1] for level in levels()}) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment, tag",
    [("FEATHERLANE_PLATFORM=manylinux2014_x86_64", "manylinux2014_x86_64"), ("FEATHERLANE_PURE=1", "any")],
)
def test_the_environment_chooses_the_tag(wheel, tmp_path, environment, tag):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    chosen = dict([environment.split("=")])
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True, env={**os.environ, **chosen}, timeout=900)
    (path,) = tmp_path.glob("*.whl")
    assert path.name.endswith(f"-py3-none-{tag}.whl")
    assert any(name.endswith(".so") for name in zipfile.ZipFile(path).namelist()) is (tag != "any")


@pytest.mark.skipif(not os.environ.get("FEATHERLANE_CI") or not LINUX, reason="CI installs a wheel")
def test_ci_runs_ahead_of_time_kernels():
    assert library().configuration()["kernels"] == "ahead of time"
