"""Adds a solver from outside the package, as docs/extending.md explains: steepest descent in the metric of the inertia.

`test_howto.py` runs this file in a separate process, in which no stage is compiled yet.
Source: Cauchy, Methode generale pour la resolution des systemes d'equations simultanees, 1847.
"""

from __future__ import annotations

import numpy as np

import featherlane as fl
from featherlane.engine.dynamics.inertia.joint_space import solve_factored
from featherlane.engine.dynamics.inertia.metric import metric_factor, metric_times
from featherlane.engine.lanes import any_, fmax, kernel, sqrt, stage, where
from featherlane.engine.model.solver import ConvexSolver, register
from featherlane.engine.model.status import NOT_CONVERGED, warn
from featherlane.engine.solver.primal.history import primal_gap, record_iteration
from featherlane.engine.solver.primal.line_search import line_search, line_terms
from featherlane.engine.solver.primal.problem import (
    advance_rows,
    compute_row_products,
    evaluate,
    store_primal_forces,
    trace_of_inertia,
)
from featherlane.engine.solver.primal.start import warm_start
from featherlane.engine.solver.rows.laws import TINY

NUMBER = 3
XML = """<mujoco><option tolerance="1e-10"/><worldbody><geom type="plane" size="5 5 .1"/>
  <body pos="0 0 .095"><freejoint/><geom type="box" size=".1 .1 .1"/>
  <body pos=".2 0 0"><joint axis="0 1 0" range="-10 10" limited="true"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .2 0 0"/></body></body></worldbody></mujoco>"""


@kernel
def descend(m, d):
    """Computes p = -M^-1 g, and its rows."""
    LD, inverse = metric_factor(m, d)
    for i in range(m.nv):
        d.primal.search[i] = -d.primal.grad[i]
    solve_factored(m, LD, inverse, d.primal.search)
    metric_times(m, d, d.primal.search, d.primal.Mv)
    compute_row_products(m, d, d.primal.search, d.primal.row_v, d.primal.con_z)


@stage
def steepest(m, d):
    """Steps along the negative gradient, each time to the minimum on the line: x <- x - a M^-1 g(x).

    Reads:  qLD, qLDiagInv, M, qacc_smooth, qfrc_smooth, qacc_warmstart, all rows.
    Writes: qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], row_force, con_force,
            solver_niter, solver_residual, solver_gap, warning (not converged), stat_*; for itself primal.*, cacc, cfrc,
            con_motion, con_wrench, aba_inertia, aba_axis, qHDiagInv.
    Cost:   per iteration O(contacts + nv * depth).
    """
    warm_start(m, d)
    scale = 1.0 / fmax(trace_of_inertia(m, d), TINY)
    cost, gradient = evaluate(m, d)
    record_iteration(d, 0, scale * cost, scale * gradient, 0.0, 0.0)
    live, niter = (scale * gradient > m.opt_tolerance[0]) & (d.active[0] > 0.0), 0.0
    for iteration in range(m.opt_iterations):
        if not any_(live):
            break
        descend(m, d)
        q1, q2, length = line_terms(m, d)
        enough = m.opt_tolerance[0] * m.opt_ls_tolerance[0] * sqrt(length) / scale
        a = line_search(m, d, q1, q2, enough, live)
        advance_rows(m, d, a)
        before, (cost, gradient) = cost, evaluate(m, d)
        niter = where(live, niter + 1.0, niter)
        record_iteration(d, iteration + 1, scale * cost, scale * gradient, scale * (before - cost), a)
        live = live & (scale * gradient > m.opt_tolerance[0]) & (a > 0.0)
    d.solver_niter[0] = niter
    d.solver_residual[0] = scale * gradient
    d.solver_gap[0] = scale * primal_gap(m, d)
    warn(d, NOT_CONVERGED, live)
    store_primal_forces(m, d)


def fall(solver: str) -> fl.Data:
    """Returns a body on the floor, its arm at a limit, after one step; a batch is bitwise identical."""
    model = fl.load(XML)
    model.opt.solver, model.opt.iterations = solver, 20000
    data, batch = fl.Data(model), fl.Batch(model, nworld=9)
    data.qpos[7], batch.qpos[:, 7] = 0.2, 0.2
    fl.step(model, data)
    batch.step()
    np.testing.assert_array_equal(batch.qvel, np.tile(data.qvel, (9, 1)))
    assert data.ncon > 3 and data.status["not_converged"] == 0
    return data


if __name__ == "__main__":
    register(ConvexSolver(NUMBER, "steepest", steepest, reads_factor=True))
    exact, found = fall("newton"), fall("steepest")
    assert found.solver_niter > 5 * exact.solver_niter
    np.testing.assert_allclose(found.qacc, exact.qacc, rtol=0, atol=1e-5 * np.abs(exact.qacc).max())
    assert "solver=steepest" in repr(found.model.opt)
