"""A step's forces under the LCP contact model: builds the rows, runs a solver, and stores its solution.

An iterative solver starts from x = 0, as in ODE: forces are not part of the state, and a world's step depends on
its state alone.
lcp.x: forces of the lcp.n rows;  *_lcprow: the row of a constraint row;  lcp.z = Y^T x, from which accelerations follow
(rows/metric.py);  one.*: buffers of one dense problem, with capacity for nlcpone rows;  con_overflow = 1: the caller
splits the tile.
cone: 1: friction on cones, 0: pyramids.
`apgd`, `lcp_pgs` set lcp.x, niter, status, residual, from the start in lcp.x;  `finish` sets status, residual of lcp.x;
`solve_islands` solves each island of each world by the dense solver `dantzig`;  `make_lcp` builds the rows.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.islands import solve_islands
from featherlane.engine.solver.lcp.rows.assembly import make_lcp
from featherlane.engine.solver.lcp.rows.link import link_forces
from featherlane.engine.solver.lcp.rows.metric import accelerate_by_rows, sum_solution_rows
from featherlane.engine.solver.lcp.rows.rows import is_present
from featherlane.engine.solver.lcp.status import UNSETTLED
from featherlane.engine.solver.lcp.sweep.apgd import apgd
from featherlane.engine.solver.lcp.sweep.pgs import lcp_pgs
from featherlane.engine.solver.lcp.sweep.residual import ROUNDING32, finish, record_residual
from featherlane.engine.solver.primal.history import store_diagnostics


@kernel
def store_lcp_forces(d):
    """Copies lcp.x to row_force and con_force of the constraint layer; forces without a row of the LCP are 0."""
    # row_lcprow, con_lcprow: the row of the LCP, negative: none
    for k in range(d.nrow[0]):
        d.row_force[k] = d.lcp.x[d.row_lcprow[k]] if d.row_lcprow[k] >= 0 else 0.0
    for k in range(d.ncon_slot[0]):
        first = d.con_lcprow[k]
        # normal, tangents, moments about them: the rows of a contact follow each other
        for c in unrolled(range(6)):
            d.con_force[k][c] = d.lcp.x[first + c] if first >= 0 and c < d.con_dim[k] else 0.0


@stage
def iterate(m, d):
    """Solves for lcp.x by the iterative solver that the options select; by pgs if they select a dense solver.

    A registered solver is called by its address, lcp_function, which the simulation sets.  It writes lcp.x, lcp.niter.

    Reads:  the rows of `make_lcp`, lcp.x.
    Writes: lcp.x (nlcp,) [N, N m], lcp.*; stat_residual if iterations are recorded; what `solve_apgd` and `solve_pgs`
            write.
    """
    # the solvers read tolerance and relaxation from lcp.parameter
    d.lcp.parameter[0], d.lcp.parameter[1] = m.opt_lcp_tolerance[0], m.opt_lcp_relaxation[0]
    if m.opt_lcp_solver == APGD:
        apgd(d, m.opt_lcp_iterations, cone=m.opt_lcp_cone)
    elif m.opt_lcp_solver == REGISTERED:
        call(d.lcp_function[0], m, d, m.opt_lcp_iterations)
        finish(d, cone=0)  # registered solvers support pyramids only
    else:
        # quickstep=0: rows in their order, without ODE's shuffling
        lcp_pgs(d, m.opt_lcp_iterations, quickstep=0, cone=m.opt_lcp_cone)


@kernel
def is_dense_solver(m):
    """Checks whether the options select a solver that solves a dense problem per island."""
    return m.opt_lcp_solver == DANTZIG


@kernel
def find_forces(m, d):
    """Solves for lcp.x from x = 0, and sets lcp.niter, lcp.status and lcp.residual."""
    for row in range(d.lcp.n[0]):
        d.lcp.x[row] = 0.0
    d.lcp.niter[0], d.lcp.status[0], d.lcp.residual[0] = zeros(3)
    if d.lcp.n[0] > 0:
        # a dense problem has at most nlcpone rows.  If the tile has more rows, an island may exceed this: the iterative
        # solver then solves all rows first, and islands that exceed nlcpone keep its x
        if not is_dense_solver(m) or d.lcp.n[0] > d.nlcpone:
            iterate(m, d)
        if is_dense_solver(m):
            solve_islands(m, d)
    else:
        record_residual(d, k=0, residual=0.0)


@kernel
def has_lcp_rows(d):
    """Returns a mask of worlds in which a row can have a force."""
    found = 0.0
    for row in range(d.lcp.n[0]):
        found = where(is_present(d, row), 1.0, found)
    return found > 0.0


@kernel
def report(m, d):
    """Stores the solver diagnostics, and counts worlds that have not converged in `warning`.

    A world without rows has 0 iterations: the sweeps were for the other worlds of the tile.
    """
    # Coulomb's law minimises no cost, so there is no duality gap
    store_diagnostics(d, where(has_lcp_rows(d), d.lcp.niter[0], 0.0), d.lcp.residual[0], gap=0.0)
    # UNSETTLED friction limits do not show in the residual, which is that of the limits in effect
    unsettled = d.lcp.status[0] == 1.0 * UNSETTLED
    tolerance = m.opt_lcp_tolerance[0]
    if single_precision(d):
        tolerance = fmax(tolerance, ROUNDING32)
    # counted: unsolved worlds with unsettled friction, or with a residual above the tolerance or NaN; not lanes without
    # a world
    unsolved = d.lcp.status[0] > 0.0
    failed = unsolved & (unsettled | not_(d.lcp.residual[0] <= tolerance)) & (d.active[0] > 0.0)
    warn(d, NOT_CONVERGED, failed)


@stage
def solve_lcp(m, d):
    """Computes acceleration and forces under the LCP contact model: v' = v + h qacc.

    Reads:  the inputs of `make_lcp`.
    Writes: qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], row_force, con_force;
            solver_niter, solver_residual, solver_gap, warning (not converged); stat_residual if iterations are
            recorded; link_force; the outputs of `make_lcp`, `iterate`, `solve_islands`: lcp.*.
    Scratch: lcp.*.
    Cost:   of the solver; see dantzig, pgs, apgd.
    """
    make_lcp(m, d)
    if d.con_overflow[0] == 0:
        find_forces(m, d)
        sum_solution_rows(m, d)
        accelerate_by_rows(m, d)
        store_lcp_forces(d)
        link_forces(m, d)
        report(m, d)
