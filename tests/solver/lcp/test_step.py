"""A step's forces: they balance the acceleration, each row gets its force, and the solver reports its status."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import APGD, DANTZIG, LCP_PGS, LcpSolver
from featherlane.engine.solver.lcp import step
from featherlane.engine.solver.lcp.rows.assembly import make_lcp
from featherlane.engine.solver.lcp.status import ITERATIONS, SOLVED, UNSETTLED
from scenes.lcp import SCENE
from scenes.lcp_records import Rows
from scenes.states import kicked

EXACT = 1e-9  # relative, of values through a mass matrix
TOLERANCE = 1e-4  # of the residual: uncompiled runs make few sweeps


def scene(rng, width=2, **options):
    model = fl.load(SCENE, links=[fl.Link("ball", "box", "upper", anchor=(0.9, 0, 0.2))])
    for name, value in ({"cfm": 1e-3, "lcp_tolerance": TOLERANCE} | options).items():
        setattr(model.opt, name, value)
    tile = Rows(model, *zip(*(kicked(model, rng, 0.05, 0.2) for _ in range(width)), strict=True))
    tile.d.qacc_smooth.array[...] = np.nan  # that of the model convex is not read
    return tile


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT * np.abs(expected).max())


@pytest.mark.parametrize("solver", ["dantzig", "pgs", "apgd"])
def test_forces_balance_the_acceleration(solver, rng):
    """Mh qacc = f + J^T x, and x is complementary under its bounds."""
    tile = scene(rng, lcp_solver=solver, lcp_iterations=60)
    assert tile.m.opt_lcp_solver == LcpSolver[solver.upper()]
    tile.d.lcp.x.array[...] = 9.0  # a solver starts without forces
    tile.run(step.solve_lcp)
    d, nv = tile.d, tile.model.nv
    for world in range(2):
        found = tile.lcp(world)
        x = d.lcp.x.array[: found.n, world]
        push = found.J.T @ x
        close(d.qfrc_constraint.array[:nv, world], push)
        close(tile.inertia(world) @ d.qacc.array[:nv, world], d.qfrc_smooth.array[:nv, world] + push)
        fixed = found.findex < 0
        gap = x - np.clip(x - (found.A @ x - found.b) / found.A.diagonal().max(), found.lo, found.hi)
        size = max(np.abs(x).max(), np.abs(found.b).max() / found.A.diagonal().max())
        residual = d.lcp.residual.array[0, world]
        assert np.abs(gap[fixed]).max() <= residual * size + EXACT * size
        assert d.solver_residual.array[0, world] == residual and d.solver_niter.array[0, world] > 0
        assert np.isfinite(d.link_force.array[:6, world]).all() and d.link_force.array[:6, world].any()
    failed = (d.lcp.status.array[0] > 0.0) & (d.lcp.residual.array[0] > TOLERANCE)
    np.testing.assert_array_equal(d.warning.array[3], failed)
    assert solver != "dantzig" or not failed.any()


def test_each_row_has_its_own_force(rng):
    tile = scene(rng)
    tile.run(make_lcp)
    d, n = tile.d, tile.d.lcp.n[0]
    x = d.lcp.x.array[:n] = rng.standard_normal((n, 2))
    for name, count in (("row", d.nrow[0]), ("con", d.ncon_slot[0])):
        rows = getattr(d, f"{name}_lcprow").array
        rows[: count // 2] = -1  # no capacity
        getattr(d, f"{name}_force").array[...] = 7.0
    step.store_lcp_forces(d)
    rows, force = d.row_lcprow.array, d.row_force.array
    for k in range(d.nrow[0]):
        np.testing.assert_array_equal(force[k], x[rows[k]] if rows[k] >= 0 else 0.0)
    for k in range(d.ncon_slot[0]):
        r, dim, expected = d.con_lcprow[k], d.con_dim[k], np.zeros((6, 2))
        if r >= 0:
            expected[:dim] = x[r : r + dim]
        np.testing.assert_array_equal(d.con_force.array[6 * k : 6 * k + 6], expected)


@pytest.mark.parametrize(("solver", "room", "iterates", "pivots"), [
    (DANTZIG, 400, False, True), (DANTZIG, 5, True, True), (LCP_PGS, 400, True, False), (APGD, 400, True, False),
])  # fmt: skip
def test_an_island_too_large_for_pivots_is_iterated_first(solver, room, iterates, pivots, rng, monkeypatch):
    called, tile = [], scene(rng)
    tile.run(make_lcp)
    tile.m.opt_lcp_solver, tile.d.nlcpone = solver, room
    monkeypatch.setattr(step, "iterate", lambda m, d: called.append("iterate"))
    monkeypatch.setattr(step, "solve_islands", lambda m, d: called.append("pivot"))
    tile.d.lcp.x.array[...], tile.d.lcp.niter.array[...], tile.d.lcp.status.array[...] = 9.0, 9.0, 1.0
    step.find_forces(tile.m, tile.d)
    assert called == iterates * ["iterate"] + pivots * ["pivot"]
    assert not tile.d.lcp.x.array[: tile.d.lcp.n[0]].any() and not tile.d.lcp.niter.array.any()
    assert not tile.d.lcp.status.array.any()
    called.clear()
    tile.d.lcp.n[0] = 0
    step.find_forces(tile.m, tile.d)
    assert called == []


@pytest.mark.parametrize("solver", ["pgs", "apgd"])
def test_an_iterative_solver_has_the_models_options(solver, rng, monkeypatch):
    tile, called = scene(rng, lcp_solver=solver, lcp_iterations=7, lcp_relaxation=1.2, lcp_cone="cone"), []
    for kernel, name in (("lcp_pgs", "pgs"), ("apgd", "apgd")):
        monkeypatch.setattr(
            step, kernel, lambda d, *numbers, name=name, **named: called.append((name, *numbers, named))
        )
    tile.run(step.iterate)
    assert called == [(solver, 7, {"quickstep": 0, "cone": 1}) if solver == "pgs" else (solver, 7, {"cone": 1})]
    assert tile.d.lcp.parameter.array[:, 0].tolist() == [TOLERANCE, 1.2]


@pytest.mark.parametrize(("status", "residual", "counted"), [
    (SOLVED, 1.0, False), (ITERATIONS, 2 * TOLERANCE, True), (ITERATIONS, 0.5 * TOLERANCE, False),
    (UNSETTLED, 0.0, True), (ITERATIONS, np.nan, True),
])  # fmt: skip
def test_worlds_that_are_not_solved_are_counted(status, residual, counted, rng):
    tile = scene(rng)
    tile.run(make_lcp)
    d = tile.d
    d.lcp.status.array[0], d.lcp.residual.array[0], d.lcp.niter.array[0] = status, residual, 5.0
    d.active.array[0], d.solver_gap.array[0] = [1.0, 0.0], 3.0
    d.lcp.lo.array[:, 1] = d.lcp.hi.array[:, 1] = d.lcp.add.array[:, 1] = 0.0  # a world without rows
    step.report(tile.m, d)
    assert d.warning.array[3].tolist() == [float(counted), 0.0]
    assert d.solver_niter.array[0].tolist() == [5.0, 0.0] and not d.solver_gap.array.any()
    assert step.has_lcp_rows(d).tolist() == [True, False]
    np.testing.assert_array_equal(d.solver_residual.array[0], residual)
    if counted and status == ITERATIONS:
        d.dtype = np.dtype(np.float32)
        d.lcp.residual.array[0], tile.m.opt_lcp_tolerance.array[0] = 1e-6, 1e-12
        step.report(tile.m, d)
        assert d.warning.array[3].tolist() == [1.0, 0.0]  # below float32's resolution


def test_a_tile_to_be_split_is_unchanged(rng):
    tile = scene(rng)
    tile.d.nlcp, tile.d.qacc.array[...] = 5, 7.0
    tile.run(step.solve_lcp)
    assert tile.d.con_overflow[0] == 1 and (tile.d.qacc.array == 7.0).all()
