"""The constraint solve: rows in, acceleration out, by the solver that the options name."""

from __future__ import annotations

from ..dynamics.articulated import needs_inertia
from ..dynamics.flags import NEWTON
from ..dynamics.inertia import crb
from ..lanes import kernel, real, stage
from .articulated import mark_coupled, some_coupled
from .hessian import find_pattern
from .newton import newton
from .primal import store_forces, warm_start
from .rows import prepare_contacts


@kernel
def solve_nothing(m, d):
    """No rows: the acceleration is that without constraints."""
    for i in range(m.nv):
        d.qacc[i] = d.qacc_smooth[i]
        d.qfrc_constraint[i] = real(d, 0.0)
    d.solver_niter[0] = real(d, 0.0)
    d.solver_residual[0] = real(d, 0.0)


@kernel
def complete_inertia(m, d):
    """M where the solver reads it and the step has gone without."""
    if not needs_inertia(m, d) and (m.opt_solver != NEWTON or some_coupled(d)):
        crb(m, d)


@stage
def solve(m, d):
    """Acceleration under the constraints: qacc, qfrc_constraint, row forces; iterations and residual of each world.

    Reads:  M, qacc_smooth, qfrc_smooth, qacc_warmstart, cvel, all rows.
    Writes: qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], row forces, solver_niter, solver_residual.
    Cost:   per iteration O(contacts + nv * depth^2).
    """
    if d.ncon_slot[0] + d.ndofrow[0] + d.ngenrow[0] == 0:
        solve_nothing(m, d)
    else:
        prepare_contacts(m, d)
        mark_coupled(m, d)
        complete_inertia(m, d)
        find_pattern(m, d)
        if d.con_overflow[0] == 0:
            warm_start(m, d)
            newton(m, d)
            store_forces(m, d)
            for i in range(m.nv):
                # absent rows may have turned a zero's sign: + 0 turns it back
                d.qacc[i] = d.qacc[i] + 0.0
                d.qfrc_constraint[i] = d.qfrc_constraint[i] + 0.0
