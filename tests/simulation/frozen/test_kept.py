"""Frozen files of earlier releases have equal bits on every target that this machine runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import featherlane as fl
from featherlane.engine.lanes import link, processor
from featherlane.engine.simulation.frozen.loader import SOURCE
from simulation.frozen.kept import emulator, index, unpacked
from simulation.frozen.test_frozen import MODELS

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(processor.host()[0] != "linux", reason="frozen worlds run on Linux"),
    pytest.mark.skipif(bool(link.linking_problem()), reason="needs a C compiler"),
]
RUNS = {"x86-64-v3", "aarch64"} & {*processor.levels()}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    return {name: unpacked(folder, name) for name in index()}


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    command = emulator(tmp_path_factory.mktemp("qemu"), HERE / "replay.c", SOURCE)
    if command is None:
        pytest.skip("needs qemu-aarch64 and aarch64-linux-gnu-gcc (Debian: qemu-user, gcc-aarch64-linux-gnu)")
    return command


def replayed(command: list[str], paths: list[Path]) -> None:
    """Runs replay.c on files, and checks that one world and a batch of each have equal bits."""
    done = subprocess.run([*command, *paths], capture_output=True, text=True, check=False, timeout=3600)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) >= len(paths), done.stdout + done.stderr
    assert all(line.endswith("aarch64 equal") for line in lines)


def test_there_are_three_files():
    assert len(index()) >= 3


@pytest.mark.skipif(not RUNS, reason="the kept files have no kernels for this processor")
@pytest.mark.parametrize("name", index())
def test_a_kept_file_has_equal_bits(name, kept):
    path, digest = kept[name]
    assert fl.thaw(path, trust=digest).self_test()
    assert fl.thaw(path, trust=digest, nworld=11).self_test()


@pytest.mark.skipif(not RUNS, reason="the kept files have no kernels for this processor")
def test_queries_of_kept_files_run(kept):
    for path, _ in kept.values():
        world = fl.thaw(path)
        world.step(10)
        world.forward()
        mass = world.query("full_m")["jac_M"]
        assert (mass == mass.T).all() and (mass.diagonal() > 0.0).all()


def test_kept_files_have_equal_bits_on_aarch64(kept, emulated):
    replayed(emulated, [path for path, _ in kept.values()])


@pytest.mark.slow
def test_models_have_equal_bits_on_aarch64(emulated, tmp_path):
    """Compiles the kernels for AArch64, which takes minutes."""
    if link.linking_problem(("linux", "aarch64")):
        pytest.skip("needs ziglang")
    paths = [tmp_path / f"{k}.flz" for k in range(len(MODELS))]
    for path, load in zip(paths, MODELS.values(), strict=True):
        fl.freeze(load(), path, targets=["aarch64"], width=(1, "batch"))
    replayed(emulated, paths)
