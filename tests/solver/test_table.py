"""The table of solvers: under MuJoCo's numbers and names, and each of its columns."""

from types import SimpleNamespace

import mujoco
import pytest

from featherlane.engine.model.solver import SOLVERS, ConvexSolver, register, takes_couplings
from featherlane.engine.solver.table import BUILT_IN, in_forces, reads_factor, reads_hessian, reads_inertia, run

QUESTIONS = {
    "reads_hessian": reads_hessian,
    "reads_inertia": reads_inertia,
    "reads_factor": reads_factor,
    "in_forces": in_forces,
    "takes_couplings": takes_couplings,
}


def test_solvers_have_mujocos_numbers_and_names():
    theirs = {int(value): name.removeprefix("mjSOL_").lower() for name, value in mujoco.mjtSolver.__members__.items()}
    assert theirs.items() <= {s.number: s.name for s in BUILT_IN}.items()
    assert all(SOLVERS[s.number] is s for s in BUILT_IN)


@pytest.mark.parametrize("solver", BUILT_IN, ids=lambda s: s.name)
def test_each_property_is_defined_for_each_solver(solver):
    m = SimpleNamespace(opt_solver=solver.number)
    for name, question in QUESTIONS.items():
        assert bool(question(m)) == getattr(solver, name), name


def test_dual_solvers_read_the_factor_and_no_hessian():
    by_name = {s.name: s for s in BUILT_IN}
    assert [s.name for s in BUILT_IN if s.reads_hessian] == ["newton"]
    assert [s.name for s in BUILT_IN if s.in_forces] == ["pgs"] == [s.name for s in BUILT_IN if not s.takes_couplings]
    assert by_name["pgs"].reads_factor and by_name["cg"].reads_factor and not by_name["newton"].reads_factor
    assert not by_name["newton"].reads_inertia  # recursion is possible


def test_the_solver_of_the_number_is_run_and_no_other(monkeypatch):
    ran = []
    for solver in BUILT_IN:
        monkeypatch.setattr(solver.solve, "function", lambda m, d, name=solver.name: ran.append(name))
    for solver in BUILT_IN:
        run(SimpleNamespace(opt_solver=solver.number), None)
        assert ran.pop() == solver.name and not ran
    run(SimpleNamespace(opt_solver=99), None)
    assert not ran


@pytest.mark.parametrize(("number", "name"), [(77, "cg"), (int(mujoco.mjtSolver.mjSOL_CG), "another")])
def test_solver_numbers_and_names_are_unique(number, name):
    with pytest.raises(ValueError, match="registered"):
        register(ConvexSolver(number, name, BUILT_IN[0].solve))
    assert len(SOLVERS) == len({s.name for s in SOLVERS.values()})
