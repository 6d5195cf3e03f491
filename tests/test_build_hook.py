"""The build hook: the processors that it compiles for, and its behaviour without a working C linker."""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from featherlane.engine.lanes import link, processor

ROOT = Path(__file__).parents[1]


@pytest.fixture
def hook():
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = path


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("FEATHERLANE_LEVELS", "FEATHERLANE_PLATFORM", "FEATHERLANE_PURE", "FEATHERLANE_SYMBOLS"):
        monkeypatch.delenv(name, raising=False)


def test_a_local_build_is_for_this_machine(hook):
    assert hook.wanted_levels() == [processor.cpu_level()]


def test_a_release_is_for_every_level_of_the_architecture(hook, monkeypatch):
    monkeypatch.setenv("FEATHERLANE_PLATFORM", "manylinux2014_x86_64")
    assert hook.wanted_levels() == processor.levels_of_architecture()
    monkeypatch.setenv("FEATHERLANE_LEVELS", processor.levels_of_architecture()[-1])
    assert hook.wanted_levels() == processor.levels_of_architecture()[-1:]


def test_an_unknown_level_is_named_with_those_that_exist(hook, monkeypatch):
    monkeypatch.setenv("FEATHERLANE_LEVELS", "pentium")
    with pytest.raises(
        ValueError, match=f"FEATHERLANE_LEVELS names 'pentium'.*{processor.levels_of_architecture()[0]}"
    ):
        hook.wanted_levels()


@pytest.mark.parametrize("command, why", [("no-such-compiler", "was not found"), ("false", "could not link")])
def test_without_a_compiler_that_links_the_reason_is_reported(monkeypatch, command, why):
    monkeypatch.setenv("CC", command)
    assert command in link.linking_problem() and why in link.linking_problem()


@pytest.mark.skipif(sys.platform != "linux" or bool(link.linking_problem()), reason="names are left out on Linux alone")
@pytest.mark.parametrize("kept", [False, True])
def test_names_of_kernels_are_kept_for_a_profiler(tmp_path, monkeypatch, kept):
    source = (
        "__attribute__((noinline)) static int inner(int i) { return i * i; }\nint shown(int i) { return inner(i) + 1; }"
    )
    made, out = tmp_path / "one.o", tmp_path / "one.so"
    subprocess.run(
        [*link.compiler(), "-c", "-fPIC", "-x", "c", "-", "-o", made], input=source.encode(), check=True, timeout=900
    )
    if kept:
        monkeypatch.setenv("FEATHERLANE_SYMBOLS", "1")
    link.link([str(made)], str(out), {"layout": "abc"})
    names = out.read_bytes().replace(b"\0", b" ").split()
    assert (b"inner" in names) == kept
    assert b"shown" in names


def test_other_systems_compile_on_first_use(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert "not on windows" in link.linking_problem()


@pytest.mark.parametrize(
    "tag, levels",
    [
        ("manylinux2014_aarch64", ["aarch64"]),
        ("manylinux_2_28_x86_64", ["x86-64-v4", "x86-64-v3", "x86-64"]),
        ("macosx_11_0_arm64", ["apple-m1"]),
        ("win_amd64", ["x86-64-v4", "x86-64-v3", "x86-64"]),
    ],
)
def test_a_platform_has_the_levels_of_its_architecture(hook, monkeypatch, tag, levels):
    monkeypatch.setenv("FEATHERLANE_PLATFORM", tag)
    assert hook.wanted_levels() == levels


def test_an_unknown_platform_is_refused(hook, monkeypatch):
    monkeypatch.setenv("FEATHERLANE_PLATFORM", "win_arm64")
    with pytest.raises(ValueError, match=r"FEATHERLANE_PLATFORM: got 'win_arm64', allowed are .*win_amd64"):
        hook.wanted_levels()


@pytest.mark.skipif(processor.host()[1] != "x86_64", reason="features of x86-64")
def test_numpy_detects_the_level_that_linux_lists():
    """Other systems do not list processor features in a file."""
    found = processor._flags_of_numpy()
    for needed in (processor.AVX, processor.V3, processor.V4):
        assert (needed <= found) == (needed <= processor._flags())


@pytest.mark.slow
@pytest.mark.parametrize("variable", [{"CC": "no-such-compiler"}, {"FEATHERLANE_PURE": "1"}])
def test_a_wheel_without_kernels_requires_the_compiler(tmp_path, variable):
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True, env={**os.environ, **variable}, timeout=900)
    (path,) = tmp_path.glob("*-py3-none-any.whl")
    wheel = zipfile.ZipFile(path)
    (metadata,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    needed = [line for line in wheel.read(metadata).decode().splitlines() if line.startswith("Requires-Dist: llvmlite")]
    assert any("extra" not in line for line in needed)
    assert not [name for name in wheel.namelist() if name.endswith(".so")]
