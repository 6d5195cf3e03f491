"""The ahead-of-time build: what it compiles, in how many processes, and the engine's independence of a compiler."""

import re
import subprocess
import sys

import numpy as np
import pytest

from featherlane.engine.lanes import KernelError, build, cache, toolchain
from featherlane.engine.simulation.tile import library as engine
from scenes.cells import cells, doubles, doubles_twice, library

LEVELS = ("x86-64-v3", "x86-64-v4")
TWO = (("f64", 8), ("f32", 1))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("FEATHERLANE_CACHE", str(path))
    return path


def small_stages():
    every = engine.stages()
    return [every[name] for name in ("solve_m", "mul_m")]


def test_every_variant_is_compiled_for_every_level(folder):
    assert build.compile_all(library(), [doubles, doubles_twice], TWO, LEVELS) == 4
    found = {"-".join(p.name.split("-")[:-1]) for p in folder.iterdir()}
    assert found == {
        f"fl_{s}_{f}-{c}" for s in ("doubles", "doubles_twice") for f in ("f64x8", "f32x1") for c in LEVELS
    }


def test_the_wheel_contains_single_world_and_tile_kernels_in_both_precisions():
    assert set(build.VARIANTS) == {("f64", 1), ("f64", 8), ("f32", 16)}


def test_the_front_end_runs_once_for_all_levels(monkeypatch):
    lowered, lower = [], toolchain.lower
    monkeypatch.setattr(toolchain, "lower", lambda group, *form: lowered.append(group) or lower(group, *form))
    build.compile_all(library(), [doubles], TWO[:1], LEVELS)
    assert lowered == [(doubles,)]


def test_only_missing_objects_are_compiled(folder, monkeypatch):
    build.compile_all(library(), [doubles], TWO, LEVELS)
    assert build.compile_all(library(), [doubles], TWO, LEVELS) == 0
    gone = cache.key(doubles, library().records, "f64", 8, LEVELS[0], False)
    (folder / gone).unlink()
    emitted, emit = [], toolchain.emit
    monkeypatch.setattr(toolchain, "emit", lambda code, level, *how: emitted.append(level) or emit(code, level, *how))
    assert build.compile_all(library(), [doubles], TWO, LEVELS) == 1
    assert emitted == [LEVELS[0]] and cache.has_object(gone)


def test_progress_counts_cached_objects():
    build.compile_all(library(), [doubles], TWO[:1])
    told = []
    build.compile_all(library(), [doubles, doubles_twice], TWO, progress=lambda *x: told.append(x), processes=1)
    assert [done for done, _, _ in told] == [1, 2, 3, 4] and {total for _, total, _ in told} == {4}
    assert {what for _, _, what in told} == {"", "doubles_twice f64x8", "doubles f32x1", "doubles_twice f32x1"}


def test_processes_share_the_work_and_give_the_same_objects(folder, monkeypatch):
    told = []
    build.compile_all(engine.library(), small_stages(), TWO, progress=lambda *x: told.append(x), processes=2)
    assert told[-1][:2] == (4, 4) and len({what for _, _, what in told}) == 5
    shared = {p.name: p.read_bytes() for p in folder.iterdir()}
    monkeypatch.setenv("FEATHERLANE_CACHE", str(folder.parent / "other"))
    build.compile_all(engine.library(), small_stages(), TWO, processes=1)
    assert {p.name: p.read_bytes() for p in (folder.parent / "other").iterdir()} == shared


def test_the_stages_of_a_package_share_an_object(folder):
    build.compile_all(engine.library(), small_stages(), TWO, by_package=True)
    assert sorted("-".join(p.name.split("-")[:4]) for p in folder.iterdir()) == [
        "solve_m-and-1-f32x1",
        "solve_m-and-1-f64x8",
    ]


def test_a_kernel_that_two_stages_contain_is_defined_once():
    texts = [toolchain.lower([s], engine.library().records, "f64", 8) for s in small_stages()]
    kernels = [set(re.findall(r"^define internal .*?@([\w.]+)\(", text, re.M)) for text in texts]
    both = toolchain.lower(small_stages(), engine.library().records, "f64", 8)
    defined = re.findall(r"^define internal .*?@([\w.]+)\(", both, re.M)
    assert len(defined) == len(set(defined)) and set(defined) == kernels[0] | kernels[1]


def test_derivatives_are_optimised_less_than_steps():
    every = engine.stages()
    derivatives = {s.function.__module__.rpartition(".")[0] for s in every.values() if s.is_derivative}
    parts = "adjoint", "api", "columns", "systems", "worlds"
    assert derivatives == {f"featherlane.tools.sensitivity.{part}" for part in parts}
    efforts = [toolchain.effort([s], 8) for s in (every["step"], next(s for s in every.values() if s.is_derivative))]
    assert efforts[0].level > efforts[1].level and efforts[0].inlining > efforts[1].inlining


def test_an_object_that_is_not_in_the_cache_is_named(tmp_path):
    with pytest.raises(KernelError, match="doubles_f64x8"):
        build.link_stages(library(), [doubles], TWO, LEVELS[0], tmp_path / "a.so")


def test_prebuilt_kernels_run_without_compiling(monkeypatch, capfd):
    monkeypatch.setenv("FEATHERLANE_MODE", "jit")
    build.compile_all(library(), [doubles, doubles_twice], TWO)
    monkeypatch.setattr(toolchain, "lower", None)
    d = cells("float64", 8, 2, x=np.ones(16))
    library().bind(doubles_twice, d)()
    assert np.all(d.arrays["x"] == 4) and capfd.readouterr().err == ""


def test_the_stages_need_neither_mujoco_nor_the_command_line_nor_the_compiler():
    code = """
import sys
for name in ("mujoco", "typer", "rich", "gymnasium", "llvmlite"):
    sys.modules[name] = None
from featherlane.engine.simulation.tile.library import library, stages
sys.exit(None if {"step", "run_tiles"} <= set(stages()) and library().layout_hash() else "no stages")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
