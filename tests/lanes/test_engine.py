"""Object code in memory: it reaches constants and callees for any memory layout; broken code raises an error."""

import gc
import mmap
import multiprocessing
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from featherlane.engine.lanes import acos, asin, atan2, exp, log, pow_, processor, sincos, stage
from featherlane.engine.lanes.engine import Engine
from scenes.cells import cells, library

PAGE = mmap.PAGESIZE
LARGE = 1 << 32  # beyond 32 bits of an offset


@stage
def curves(d):
    """Compiles to more than a page of code and less than a page of constants."""
    for i in range(d.n):
        x, (s, c) = d.x[i], sincos(d.x[i])
        d.y[i] = exp(s) + log(c * c + 1.0) + pow_(x, s) + atan2(s, x) + asin(s) + acos(c)


@stage
def calls(d):
    d.y[0] = 0.0
    curves(d)


@pytest.fixture(autouse=True)
def just_in_time(monkeypatch):
    monkeypatch.setenv("FEATHERLANE_MODE", "jit")


def taken(size):
    """Returns unused addresses, without memory behind them."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)


def address(region):
    return np.frombuffer(region, np.uint8).ctypes.data


def curved(d):
    x, s, c = d.arrays["x"], np.sin(d.arrays["x"]), np.cos(d.arrays["x"])
    return np.exp(s) + np.log(c * c + 1.0) + x**s + np.arctan2(s, x) + np.arcsin(s) + np.arccos(c)


def load_far_apart():
    """Loads with one free page and nothing else free in the next 4 GiB: constants fit there, code does not."""
    stages, d = library(), cells("float64", 32, 3, x=np.linspace(0.1, 2.0, 96))
    for s in (curves, calls):
        stages.object_code(s, "f64", 32, cpu=processor.cpu_level())  # compiling needs memory, too
    held = [taken(LARGE)]
    bottom, size = address(held[0]), 1 << 30
    while size >= PAGE:  # fill every gap above
        held.append(taken(size))
        if address(held[-1]) < bottom:
            size //= 2
    page = held.pop()
    held.append(taken(LARGE))
    page.close()
    for s in (curves, calls):
        stages.bind(s, d)()
        assert np.allclose(d.arrays["y"], curved(d))
        held.append(taken(LARGE))  # between a stage and its callee


@pytest.mark.skipif(sys.platform == "win32", reason="mmap takes memory there, not addresses")
def test_large_arrays_do_not_break_relocations():
    here = Path(__file__).parent
    path = os.pathsep.join(map(str, (here, here.parent, os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-c", "import test_engine; test_engine.load_far_apart()"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr  # if it fails, LLVM ends the process


def small_cells():
    return cells("float64", 1, 2, x=np.array([0.3, 0.7]))


def test_later_objects_call_earlier_ones():
    stages, d = library(), small_cells()
    stages.bind(curves, d)()
    d.arrays["y"][:] = 0
    stages.bind(calls, d)()
    assert np.allclose(d.arrays["y"], curved(d))


@pytest.mark.parametrize("broken", [b"", b"\x7fELF", bytes(5000)])
def test_a_broken_object_raises_without_a_crash(broken):
    engine, code = Engine(), library().object_code(curves, "f64", 1, cpu=processor.cpu_level())
    with pytest.raises(RuntimeError):
        engine.load({"fl_curves_f64x1": broken}, [])
    assert "fl_curves_f64x1" not in engine
    engine.load({"fl_curves_f64x1": code}, [])
    assert engine["fl_curves_f64x1"]


def test_an_object_with_an_undefined_symbol_raises(capfd):
    code = library().object_code(calls, "f64", 1, cpu=processor.cpu_level())
    with pytest.raises(RuntimeError, match="fl_calls_f64x1"):
        Engine().load({"fl_calls_f64x1": code}, [])
    assert "fl_curves_f64x1" in capfd.readouterr().err


def test_an_engine_is_freed_with_its_last_function():
    stages, d = library(), small_cells()
    run = stages.bind(calls, d)
    engine = weakref.ref(stages._engine)  # no public attribute refers to the engine
    del stages
    gc.collect()
    run()
    assert np.allclose(d.arrays["y"], curved(d))
    del run
    gc.collect()
    assert engine() is None


def _in_a_child(stages, d, results):
    stages.bind(calls, d)()
    results.put(d.arrays["y"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, if another test imported it
def test_a_forked_child_runs_loaded_functions_and_loads_more():
    stages, d = library(), small_cells()
    stages.bind(curves, d)
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    child = fork.Process(target=_in_a_child, args=(stages, d, results))
    child.start()
    assert np.allclose(results.get(timeout=60), curved(d))
    child.join(timeout=60)
    assert child.exitcode == 0 and np.all(d.arrays["y"] == 0)
