"""Constraint solve: computes the acceleration from the rows, with the solver selected in the options.

`reads_hessian`, `reads_factor`, `reads_inertia`: what the selected solver needs of H, of M's factor, and of M.
FAR stands for a number out of range.  con_overflow = 1: the caller splits the tile and solves its parts.
`make_blocks`: rows of the dual problem, which the no-slip solver also uses; `all_fit`: whether the buffers hold them;
`report_full_blocks` sets con_overflow, or counts a warning if the tile has one world.
row_D, con_D: 1 / R of scalar rows and contacts, 0 in worlds without the row.
`fold_rows(scalar, contact)`: kernel (m, d, unused, x) that passes x through both kernels for all rows.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.fold import fold_rows
from featherlane.engine.dynamics.inertia.articulated import needs_inertia
from featherlane.engine.dynamics.inertia.joint_space import crb, factor_m
from featherlane.engine.model.integrator import has_metric
from featherlane.engine.solver.dual.noslip import noslip
from featherlane.engine.solver.dual.rows import all_fit, make_blocks, report_full_blocks
from featherlane.engine.solver.hessian.equation import select_factorization, starts_from_inertia
from featherlane.engine.solver.lcp.step import solve_lcp
from featherlane.engine.solver.primal.coulomb import coulomb_newton
from featherlane.engine.solver.primal.history import record_iteration, store_diagnostics
from featherlane.engine.solver.primal.line_search import FAR
from featherlane.engine.solver.rows.rows import prepare_contacts
from featherlane.engine.solver.table import in_forces, reads_factor, reads_hessian, reads_inertia, run
from featherlane.engine.solver.vectors import clear_vector, copy_vector


@kernel
def set_unconstrained(m, d):
    """Sets the unconstrained acceleration, and diagnostics of a solve without iterations, for a tile without rows."""
    copy_vector(m, d.qacc_smooth, d.qacc)
    clear_vector(m, d.qfrc_constraint)
    store_diagnostics(d, niter=0.0, residual=0.0, gap=0.0)
    record_iteration(d, k=0, cost=0.0, gradient=0.0, improvement=0.0, step=0.0)


@kernel
def find_row(m, d, k, unused, found):
    """Returns 1 in worlds that have scalar row k, else `found`."""
    return where(d.row_D[k] != 0.0, 1.0, found)


@kernel
def find_contact(m, d, k, unused, found):
    """Returns 1 in worlds that have rows of contact k, else `found`."""
    return where(d.con_D[k] != 0.0, 1.0, found)


find_rows = fold_rows(find_row, find_contact)


@kernel
def has_constraint_rows(m, d):
    """Returns a mask of worlds with rows: a tile's slots may belong to other worlds, or to inactive contacts."""
    return find_rows(m, d, 0, 0.0) > 0.0


@kernel
def reset_worlds_without_rows(m, d, warnings_before):
    """Replaces the solver's results by those of `set_unconstrained` in worlds without rows, as if simulated alone.

    The solver treats a world without rows like any other: by rounding it may start at the last step's acceleration, and
    it counts iterations.
    In worlds with rows and a gradient that is not finite or too large, acceleration and constraint force become out of
    range: FAR is added to the acceleration, and replaces the force.
    warnings_before: the count warning[NOT_CONVERGED] before the solve.
    """
    has_rows = has_constraint_rows(m, d)  # mask
    broken = not_(d.solver_residual[0] < FAR)  # mask, also of NaN
    for i in range(m.nv):
        # + 0.0: absent rows may have changed the sign of a zero, which the addition makes positive
        d.qacc[i] = where(has_rows, d.qacc[i] + where(broken, FAR, 0.0), d.qacc_smooth[i])
        d.qfrc_constraint[i] = where(has_rows, where(broken, FAR, d.qfrc_constraint[i] + 0.0), 0.0)
    d.solver_niter[0] = where(has_rows, d.solver_niter[0], 0.0)
    d.solver_residual[0] = where(has_rows, d.solver_residual[0], 0.0)
    d.solver_gap[0] = where(has_rows, d.solver_gap[0], 0.0)
    d.warning[NOT_CONVERGED] = where(has_rows, d.warning[NOT_CONVERGED], warnings_before)


@kernel
def uses_blocks(m):
    """Checks whether the blocks of the dual problem are needed: by a solver with forces as unknowns, or by noslip."""
    return in_forces(m) or m.opt_noslip_iterations > 0


@kernel
def prepare_solver(m, d):
    """Prepares what the solver reads: the Hessian's factorization, M and its factor, the blocks of the dual problem."""
    if reads_hessian(m):
        select_factorization(m, d)
    # M is read by the solver, the blocks or the Hessian (starts_from_inertia), and the step has not computed it
    # (needs_inertia)
    if not needs_inertia(m, d) and (reads_inertia(m) or uses_blocks(m) or starts_from_inertia(m, d)):
        crb(m, d)
    # with want_all the step has factored M; under `discrete` the solver uses the metric's factor
    if d.want_all == 0 and not has_metric(m) and (reads_factor(m) or uses_blocks(m)):
        factor_m(m, d)
    if uses_blocks(m):
        make_blocks(m, d)
        if not all_fit(d):
            report_full_blocks(d)


@kernel
def run_solver(m, d):
    """Runs the solver, then the no-slip solver if it is enabled and its blocks fit."""
    if m.opt_contact_model == COULOMB:
        coulomb_newton(m, d)
    else:
        run(m, d)
    if m.opt_noslip_iterations > 0 and all_fit(d):
        noslip(m, d)


@stage
def solve(m, d):
    """Computes the constrained acceleration: qacc, qfrc_constraint, row forces; and each world's solver diagnostics.

    Reads:  M, qacc_smooth, qfrc_smooth, qacc_warmstart, cvel, all rows.
    Writes: qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], row_force, con_force,
            solver_niter, solver_residual, solver_gap, warning (not converged); stat_* if iterations are recorded;
            con_overflow, found_bad, ordered; con_D, con_Dt and row_D under coulomb.
    Scratch: hessian.*, primal.*, krylov.*, coulomb.*, graph.*, body_reached, qHDiagInv, aba_*, cacc, cfrc, con_body,
            con_arm, con_basis, con_motion, con_wrench.
    Cost:   see newton, cg, pgs.
    """
    # marks of the Hessian's factorization (hessian/choice.py), for solvers that do not set them
    d.ordered[0], d.hessian.coupled[0] = 0.0, 0.0
    if m.opt_contact_model == LCP:
        solve_lcp(m, d)
    elif d.ncon_slot[0] + d.nrow[0] == 0:
        set_unconstrained(m, d)
    else:
        prepare_contacts(m, d)
        prepare_solver(m, d)  # sets con_overflow if the tile must be split: then nothing is solved
        if d.con_overflow[0] == 0:
            warnings_before = d.warning[NOT_CONVERGED]
            run_solver(m, d)
            reset_worlds_without_rows(m, d, warnings_before)
            d.hessian.assembled[0] = 0.0  # the factor is not kept for an assembly of the next step
