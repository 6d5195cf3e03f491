"""Tables of kernels: cases in their order, and additions by users."""

import subprocess
import sys

import numpy as np

import featherlane as fl
from featherlane.lanes import Choice, kernel

LATE = """
import featherlane as fl
from featherlane.lanes import stage
from featherlane.model.integrator import Scheme, register

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


def test_a_table_takes_the_first_case_that_fits():
    def link(number, value, others):
        @kernel
        def case(x):
            return value if x == number else others(x)

        return case

    @kernel
    def nothing(x):
        return -1

    table = Choice(link, nothing)
    assert table(3) == -1
    for number, value in ((3, 30), (4, 40), (3, 50)):
        table.add(number, value)
    assert [table(x) for x in (3, 4, 5)] == [30, 40, -1]


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
    assert fl.lanes.choice.is_extended() is False
