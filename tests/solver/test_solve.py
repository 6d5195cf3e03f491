"""The constraint solve: the solver in use, its input, and worlds without constraints."""

import numpy as np
import pytest

from featherlane.engine.model.enums import LCP
from featherlane.engine.solver import solve as room
from featherlane.engine.solver.primal.line_search import FAR
from featherlane.engine.solver.solve import (
    has_constraint_rows,
    reset_worlds_without_rows,
    set_unconstrained,
    solve,
    uses_blocks,
)
from oracles.uncompiled import call, record
from scenes.touching import CHAIN, touching

CLOSE = 1e-8  # relative: a solver's error at tolerance 0
PARTS = (
    "solve_lcp",
    "set_unconstrained",
    "prepare_contacts",
    "select_factorization",
    "crb",
    "factor_m",
    "make_blocks",
    "report_full_blocks",
)
PARTS += ("run", "noslip", "reset_worlds_without_rows")


@pytest.fixture
def called(monkeypatch):
    """Records the calls, in order, in place of the parts."""
    log = []
    for name in PARTS:
        monkeypatch.setattr(room, name, lambda *_, name=name: log.append(name))
    monkeypatch.setattr(room, "all_fit", lambda _: True)
    return log


SOLVERS = {
    "newton": ["prepare_contacts", "select_factorization", "run", "reset_worlds_without_rows"],
    "cg": ["prepare_contacts", "run", "reset_worlds_without_rows"],
    "pgs": ["prepare_contacts", "make_blocks", "run", "reset_worlds_without_rows"],
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_step_computes_the_inputs_of_each_solver(solver, called, monkeypatch):
    s = touching(solver=solver)
    call(solve, s.m, s.d)
    assert called == SOLVERS[solver]
    # in a batch the step has not computed the factor
    called.clear()
    s.d.want_all = 0
    call(solve, s.m, s.d)
    assert ("factor_m" in called) == (solver != "newton")
    called.clear()
    s.m.opt_noslip_iterations = 3
    call(solve, s.m, s.d)
    assert {"factor_m", "make_blocks", "noslip"} <= {*called} and called.index("run") < called.index("noslip")
    assert "report_full_blocks" not in called
    called.clear()
    monkeypatch.setattr(room, "all_fit", lambda _: False)
    call(solve, s.m, s.d)
    assert "report_full_blocks" in called and "noslip" not in called


@pytest.mark.parametrize(("solver", "made"), [("newton", False), ("cg", True), ("pgs", True)])
def test_the_inertia_is_computed_if_the_step_omitted_it(solver, made, called):
    s = touching(xml=CHAIN, solver=solver, forward_dynamics="aba")
    s.d.want_all = 0
    called.clear()
    s.m.opt_enableflags = 0
    call(solve, s.m, s.d)
    assert ("crb" in called) == made


def test_without_rows_nothing_is_solved_and_hard_contacts_use_lcp_solvers(called):
    s = touching(width=1)
    s.a["ordered"][...] = s.a["hessian.coupled"][...] = 7.0
    s.m.opt_contact_model = LCP
    call(solve, s.m, s.d)
    assert called == ["solve_lcp"] and not s.a["ordered"].any() and not s.a["hessian.coupled"].any()
    s.m.opt_contact_model = 0
    for name in ("ncon_slot", "nrow"):
        called.clear()
        call(solve, s.m, s.d)
        assert "run" in called
        s.a[name][0] = 0
    called.clear()
    call(solve, s.m, s.d)
    assert called == ["set_unconstrained"]


def test_a_tile_to_be_split_is_not_solved(called, monkeypatch):
    s = touching()
    monkeypatch.setattr(room, "select_factorization", lambda _, d: d.con_overflow.__setitem__(0, 1))
    call(solve, s.m, s.d)
    assert "run" not in called and "reset_worlds_without_rows" not in called


def test_rows_are_masked_per_world():
    empty = np.zeros((2, 4))
    D = {name: empty.copy() for name in ("row_D", "con_D")}
    D["row_D"][1, 0] = D["row_D"][0, 1] = D["con_D"][1, 2] = 2.0
    d = record(4, nrow=[2], ncon_slot=[2], **D)
    np.testing.assert_array_equal(call(has_constraint_rows, None, d), [True, True, True, False])
    d = record(4, nrow=[1], ncon_slot=[1], **D)
    np.testing.assert_array_equal(call(has_constraint_rows, None, d), [False, True, False, False])


def test_worlds_without_rows_move_freely_and_non_finite_worlds_are_counted():
    """World 0 is solved, 1 has no row, 2 has a non-finite gradient."""
    names = ("solver_niter", "solver_residual", "solver_gap")
    fields = {name: np.full((1, 3), 5.0) for name in names}
    fields["solver_residual"][0, 2] = np.nan
    fields |= {"qacc": [[-0.0, 3.0, 3.0]], "qacc_smooth": [[1.0, 1.0, 1.0]], "qfrc_constraint": [[-0.0, 4.0, 4.0]]}
    fields |= {"warning": np.full((5, 3), 9.0), "row_D": [[1.0, 0.0, 1.0]]}
    d = record(3, nrow=[1], ncon_slot=[0], **{k: np.array(v) for k, v in fields.items()})
    call(reset_worlds_without_rows, record(1, nv=1), d, np.full(3, 8.0))
    np.testing.assert_array_equal(d.qacc.array[0, :2], [0.0, 1.0])
    np.testing.assert_array_equal(d.qfrc_constraint.array[0], [0.0, 0.0, FAR])
    assert d.qacc.array[0, 2] >= FAR and not np.signbit(d.qacc.array).any()
    assert not np.signbit(d.qfrc_constraint.array).any()
    for name in names:
        np.testing.assert_array_equal(getattr(d, name).array[0, :2], [5.0, 0.0])
    np.testing.assert_array_equal(d.warning.array[3], [9.0, 8.0, 9.0])


def test_trivial_problems_need_no_iteration():
    fields = {
        name: np.full((1, 2), 7.0) for name in ("solver_niter", "solver_residual", "solver_gap", "qfrc_constraint")
    }
    tables = {name: np.full((2, 2), 7.0) for name in ("stat_cost", "stat_gradient", "stat_improvement", "stat_step")}
    d = record(2, qacc=[[0.0, 0.0]], qacc_smooth=[[3.0, 4.0]], want_history=1, nrecord=2, **fields, **tables)
    call(set_unconstrained, record(1, nv=1), d)
    np.testing.assert_array_equal(d.qacc.array, d.qacc_smooth.array)
    assert not any(getattr(d, name).array.any() for name in fields)
    assert all((getattr(d, name).array == [[0, 0], [7, 7]]).all() for name in tables)


def test_blocks_are_used_by_dual_solvers_and_noslip():
    s = touching(width=1, solver="newton")
    said = []
    for solver, count in (("newton", 0), ("newton", 1), ("pgs", 0)):
        s.model.opt.solver, s.model.opt.noslip_iterations = solver, count
        s.w.rows.refresh()
        m = record(1, opt_solver=int(s.model.opt_solver), opt_noslip_iterations=count)
        said.append(bool(call(uses_blocks, m)))
    assert said == [False, True, True]


@pytest.mark.parametrize("solver", ["newton", "cg", "pgs"])
def test_every_solver_ends_at_the_minimum(solver):
    s = touching(solver=solver, iterations=2000)
    s.w.run(solve)
    best = np.array([p.minimum() for p in s.problems]).T
    assert np.abs(s.a["qacc"][: s.nv] - best).max() <= CLOSE * np.abs(best).max()
