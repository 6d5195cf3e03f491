"""The convex cost at the returned acceleration, in extended precision, against that of the minimum.

The excess is scaled as the tolerance of the solvers: divided by the mean inertia and the number of DoFs.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model import bundled_names
from oracles.convex import Convex
from oracles.precise import LONG, Precise
from sampling import in_ci, pairwise
from scenes.states import kicked

pytestmark = pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="long doubles are doubles here")
NWORLD, SETTLE = 8, 20
ALL = tuple(name for name in bundled_names() if name != "pile")  # ten seconds in long doubles
MODELS = ("quadruped", "hand", "box_stack", "humanoid")
EXCESS = {"float64": 1e-14, "float32": 1e-7}  # of Newton's method: rounding of the rows
ENOUGH = {"cg": 1e-6, "pgs": 1e-5}  # a hundred and a thousand times the tolerance: their last steps are short
SAME = 1e-9  # m
OF_MUJOCO = 1e-12  # MuJoCo's contacts differ from ours by rounding, times their stiffness


def settled(name, solver, cone, dtype):
    """Returns (model, worlds some steps after random states)."""
    model = fl.bundled(name)
    model.opt.solver, model.opt.cone, model.opt.iterations = solver, cone, 1000
    batch, rng = fl.Batch(model, NWORLD, nthread=1, dtype=dtype), np.random.default_rng(0)
    for w in range(NWORLD):
        batch.qpos[w], qvel = kicked(model, rng, 0.05)
        batch.qvel[w] = 0.5 * qvel
    batch.step(SETTLE)
    return model, batch


def scaled(model, x) -> float:
    return float(x) / (float(np.ravel(model.stat_meaninertia)[0]) * model.nv)


def solved(model, state, dtype):
    """Returns (the problem of one world in extended precision, the acceleration that the solver returns)."""
    one = fl.Batch(model, 1, nthread=1, dtype=dtype)
    one.bind("qacc")
    one.bind("M")
    fl.set_state(model, one, state[None], fl.State.INTEGRATION)
    one.forward()
    ((workspace,),) = one.runner.plans.workspaces.values()
    return Precise(model, workspace.arrays), one.qacc[0].astype(LONG)


def excess(model, problem, a) -> float:
    """Returns the scaled cost above the minimum."""
    return scaled(model, problem.cost(a) - problem.cost(problem.minimum(a)))


@pytest.mark.parametrize(("name", "cone", "dtype"), pairwise(MODELS, ("pyramidal", "elliptic"), ("float64", "float32")))
def test_newtons_acceleration_has_the_least_cost(name, cone, dtype):
    model, batch = settled(name, "newton", cone, dtype)
    for state in fl.get_state(model, batch, fl.State.INTEGRATION)[:3]:
        found = excess(model, *solved(model, state, dtype))
        assert -EXCESS["float64"] < found < EXCESS[dtype]


@pytest.mark.parametrize("solver", list(ENOUGH))
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("name", ["quadruped", in_ci("hand"), in_ci("box_stack")])
def test_the_cost_of_iterative_solvers_is_near_the_least(name, cone, solver):
    model, batch = settled(name, solver, cone, "float64")
    for state in fl.get_state(model, batch, fl.State.INTEGRATION)[:3]:
        assert excess(model, *solved(model, state, "float64")) < ENOUGH[solver]


def problem_of_mujoco(mj, data) -> Precise:
    """Returns MuJoCo's problem in extended precision: no row of it is computed by the engine."""
    problem = Precise.__new__(Precise)
    Convex.__init__(problem, mj, data)
    for name in ("M", "a0", "J", "aref", "D"):
        setattr(problem, name, getattr(problem, name).astype(LONG))
    return problem


def same_contacts(ours, theirs) -> bool:
    """Returns whether all contact points agree; rounding selects those of coplanar faces."""
    return len(ours) == len(theirs) and all(
        np.abs(a.pos - b.pos).max() < SAME for a, b in zip(ours, theirs, strict=True)
    )


def check_mujocos_cost(name, cone, worlds):
    model, batch = settled(name, "newton", cone, "float64")
    mj = model.to_mujoco()
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    theirs, ours, compared = mujoco.MjData(mj), fl.Data(model), 0
    for w in range(NWORLD):
        ours.qpos[:], ours.qvel[:] = theirs.qpos[:], theirs.qvel[:] = batch.qpos[w], batch.qvel[w]
        mujoco.mj_forward(mj, theirs)
        fl.forward(model, ours)
        if theirs.nefc and same_contacts(ours.contact, theirs.contact):
            compared += 1
            problem = problem_of_mujoco(mj, theirs)
            found = excess(model, problem, np.array(ours.qacc).astype(LONG))
            assert found < OF_MUJOCO
        if compared == worlds:
            break
    return compared


@pytest.mark.parametrize(("name", "cone"), pairwise(MODELS, ("pyramidal", "elliptic")))
def test_the_acceleration_has_the_least_cost_of_mujocos_problem(name, cone):
    assert check_mujocos_cost(name, cone, 2) or name == "hand"


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("name", ALL)
def test_the_acceleration_has_the_least_cost_of_mujocos_problem_in_all_models(name, cone):
    check_mujocos_cost(name, cone, NWORLD)
