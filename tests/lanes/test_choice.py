"""Dispatch tables of kernels: cases in their order, and additions by users."""

import subprocess
import sys

import numpy as np
import pytest

from featherlane.engine.lanes import Layout, Library, Stage, choice, dispatch, kernel, stage, toolchain
from featherlane.engine.lanes.kernel import symbol
from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.lanes.record import allocated
from featherlane.engine.model.pair import manifold_points
from featherlane.engine.simulation.tile.library import library, stages

LATE = """
import featherlane as fl
from featherlane.engine.lanes import stage
from featherlane.engine.model.integrator import Scheme, register

@stage
def stay(m, d):
    pass

model = fl.load("<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>")
if {early}:
    register(Scheme(7, "stay", stay))
data = fl.Data(model)
data.qvel[:] = 1.0
fl.step(model, data)
if not {early}:
    register(Scheme(7, "stay", stay))
model.opt.integrator = "stay"
fl.step(model, data)
print(fl.show_config() or "", data.time)
"""


def added(folder, early: bool) -> subprocess.CompletedProcess:
    """Returns a process that registers an integrator before the first step, or after it."""
    program = folder / "program.py"
    program.write_text(LATE.format(early=early))
    return subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=900)


@kernel
def parity(x):
    return x % 2


@dispatch("kind")
def shifted(x, kind, y):
    return x - y


@dispatch(parity)
def is_odd(x):
    return False


shifted.add(3, kernel(lambda x, y: x + y))
shifted.add(4, kernel(lambda x, y: 2.0 * x))
shifted.add(3, kernel(lambda x, y: y))
is_odd.add(1)


@stage(p=Layout("P", (size("n", ""), Declare().real("x", "8", "1", ""), Declare().int("odd", "8", "1", ""))))
def all_cases(p):
    for k in range(p.n):
        p.x[k] = shifted(p.x[k], k, 10.0)
        p.odd[k] = is_odd(k)
    p.x[7] = shifted(p.x[7], 4, y=10.0)


@pytest.mark.parametrize("mode", ["python", "jit"])
def test_a_table_takes_the_first_case_with_the_number(mode, monkeypatch):
    """The parameter `kind` selects, and cases do not get it; a kernel's result selects; a result may be constant."""
    monkeypatch.setenv("FEATHERLANE_MODE", mode)
    p = allocated(all_cases.records["p"], {"n": 6}, 8, np.float64)
    p.arrays["x"][:] = 1.0
    Library({}).bind(all_cases, p)()
    assert p.arrays["x"][:, 0].tolist() == [-9.0, -9.0, -9.0, 11.0, 2.0, -9.0, 1.0, 2.0]
    assert p.arrays["odd"].tolist() == [0, 1, 0, 1, 0, 1, 0, 0]


def test_a_case_that_is_a_stage_is_called_and_not_inlined():
    """Otherwise each stage that calls a table would contain the code of all its cases."""
    records = library().records
    text = toolchain.lower([stages()["manifold"]], records, "f64", 1)
    called = [case for _, case in manifold_points.cases if isinstance(case, Stage)]
    assert called and all(f"@{symbol(case, 'f64', 1, False)}(" in text for case in called)
    assert set(called) <= set(stages()["manifold"].calls().values())


def test_cases_registered_before_the_first_step_are_compiled(tmp_path):
    """Ahead-of-time kernels do not include it: they would leave the state unchanged without an error."""
    run = added(tmp_path, early=True)
    assert run.returncode == 0, run.stderr
    assert "just in time" in run.stdout and "ahead of time" not in run.stdout
    assert np.isclose(float(run.stdout.split()[-1]), 0.002)  # the step of the empty integrator


def test_cases_registered_after_the_first_step_are_refused(tmp_path):
    run = added(tmp_path, early=False)
    assert run.returncode != 0 and "register it before the first step" in run.stderr


def test_built_in_cases_do_not_count_as_extensions():
    assert choice.is_extended() is False
