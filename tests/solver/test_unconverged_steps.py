"""For every end of a solver's iterations: a gradient that is neither small nor rounding is reported."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import silent

STEPS = int(os.environ.get("FEATHERLANE_SILENT_STEPS", "200000"))  # of the slow test
# stiff rows, friction loss and limits that a line search with few points does not cross
PUSHED = """<mujoco><option timestep=".004" {option}/>
  <default><joint damping=".1" armature=".01" solreflimit=".004 1"/></default><worldbody>
  <geom type="plane" size="5 5 1" friction="1 .02 .01"/>
  <body pos="0 0 .3"><freejoint/><geom type="box" size=".2 .15 .1"/>
    <body pos=".3 0 0"><joint type="ball" range="0 .4" limited="true"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/></body>
    <body pos="-.2 0 .1"><joint axis="0 1 0" range="-.5 .5" limited="true" frictionloss=".4"/>
      <geom type="capsule" size=".05" fromto="0 0 0 -.3 0 0"/>
      <body pos="-.3 0 0"><joint type="slide" axis="1 0 0" range="-.1 .1" limited="true" frictionloss="1"/>
        <geom size=".08"/></body></body></body></worldbody></mujoco>"""


def silent_steps(model, solver, cone, dtype="float64", starts=3):
    """Returns (unreported steps, reported steps, all) of 64 worlds from hard states."""
    case = silent.Case("pushed", solver, cone, dtype, 0, 0, 0.0)
    silent.configure(model, case)
    found = silent.Found(case)
    silent.Runner(model, case, found, "hard").run(int(starts * silent.HARD_STEPS) * silent.NWORLD, float("inf"))
    count = found.counts["hard"]
    return count.silent, count.reported, count.steps


@pytest.mark.parametrize("dtype", silent.LIMIT)
@pytest.mark.parametrize(
    ("solver", "cone"),
    [(solver, cone) for solver in silent.SOLVERS for cone in silent.CONES if (solver, cone) != ("Dantzig", "elliptic")],
)
def test_an_unconverged_step_is_reported(solver, cone, dtype):
    model = fl.load(mujoco.MjModel.from_xml_string(PUSHED.format(option="")))
    missed, reported, steps = silent_steps(model, solver, cone, dtype)
    assert missed == 0 and steps > 0.9 * 3 * silent.HARD_STEPS * silent.NWORLD
    assert reported < 0.5 * steps


@pytest.mark.parametrize("cone", silent.CONES)
def test_a_line_search_that_runs_out_is_no_convergence(cone):
    """A step to a higher cost counts as a gain below the tolerance."""
    model = fl.load(mujoco.MjModel.from_xml_string(PUSHED.format(option='ls_iterations="3" iterations="3"')))
    missed, reported, _ = silent_steps(model, "CG", cone)
    assert missed == 0 and reported > 0


def test_rounding_of_stiff_rows_is_no_failure():
    """A limit of D = 1e13 that holds 1e5 m/s^2: no floating-point acceleration makes the gradient small."""
    model = fl.load(mujoco.MjModel.from_xml_string(PUSHED.format(option='tolerance="0" iterations="400"')))
    model.dof_invweight0[:] = 1e-12
    model.opt.solver = "PGS"
    data = fl.Data(model)
    data.qpos[-1], data.qvel[-1] = 0.2, 30.0
    fl.forward(model, data)
    assert data.efc_D.max() > 1e12
    force = np.abs(data.qfrc_constraint).max()
    assert 1e-6 * force < np.linalg.norm(data.workspace.view("primal.grad")) < 1e-2 * force
    assert data.status["not_converged"] == 0


def test_residuals_as_large_as_the_forces_are_reported():
    """D = 1e15: rounding an acceleration changes the force by a quarter."""
    model = fl.load(mujoco.MjModel.from_xml_string(PUSHED.format(option='tolerance="0" iterations="400"')))
    model.dof_invweight0[:] = 1e-14
    model.opt.solver = "PGS"
    data = fl.Data(model)
    data.qpos[-1], data.qvel[-1] = 0.2, 30.0
    fl.forward(model, data)
    assert np.linalg.norm(data.workspace.view("primal.grad")) > 0.1 * np.linalg.norm(data.qfrc_constraint)
    assert data.status["not_converged"] == 1


@pytest.mark.parametrize("solver", ["CG", "PGS"])
def test_a_gradient_that_float32_cannot_square_is_reported(real_model, solver):
    """The fourth stage of `rk4` may require forces of 1e20 N."""
    model = fl.load(mujoco.MjModel.from_xml_path(str(real_model("gymnasium/swimmer"))))
    missed, reported, _ = silent_steps(model, solver, "elliptic", "float32")
    assert missed == 0 and reported > 0


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("robosuite/robots/ur5e/robot", "float32"),
        ("robosuite/grippers/jaco_three_finger_gripper", "float64"),
        ("metaworld/objects/window_horiz", "float32"),
    ],
)
def test_rows_that_push_against_each_other_are_solved(real_model, name, dtype):
    """Touching links with their mass on the axis, D = 5e14, and a window between their frames: only the small rest of
    their forces moves the bodies, and it is correct."""
    model = fl.load(mujoco.MjModel.from_xml_path(str(real_model(name))))
    missed, reported, _ = silent_steps(model, "Newton", "pyramidal", dtype, starts=1 / 4)
    assert missed == reported == 0


def test_stiff_rows_are_accurate_or_reported_despite_rounding(real_model):
    """In float32 a rounding error of a row's end, 1e-5 m/s^2, is 5e9 N of D = 5e14."""
    model = fl.load(mujoco.MjModel.from_xml_path(str(real_model("robosuite/grippers/jaco_three_finger_gripper"))))
    missed, reported, _ = silent_steps(model, "Newton", "pyramidal", "float32", starts=1 / 4)
    assert missed == 0 and reported > 0


@pytest.mark.slow
def test_every_unconverged_step_of_packaged_robots_is_reported(real_model):
    for wheel in silent.wheels.WHEELS:
        real_model(f"{wheel}/")
    asked = silent.parser().parse_args(["--steps", str(STEPS)])
    results = silent.survey(silent.cases(asked), asked.processes, report=print)
    print(silent.table(silent.total(results)))
    assert sum(count.silent for found in results for count in found.counts.values()) == 0
    assert not [found.error for found in results if found.error.startswith(("Traceback", "its process", "it hung"))]
