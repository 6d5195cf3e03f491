"""Projected Gauss-Seidel on the dual problem, with momentum, W worlds at once.

A sweep visits block by block (rows.py) and sets each force to its optimum with all others fixed:

    one row      f <- clip(f - (A + R)^-1 (y + R f), lo, hi),  y = b + Y z  its acceleration
    pyramid      the same for each edge, twice around the contact, in turn from either end
    cone         along the ray through the force, then across it on the disc |t| <= f_0 (friction_disc.py), twice

Before a sweep forces are extrapolated along their last change by beta = (k - 1) / (k + 2), and projected to their
admissible set.  k counts the sweeps since a sweep opposed that change, or increased the cost.  A world stops if a
sweep gains less than the tolerance; it has not converged if its residual is neither small nor rounding (rounding.py).

Names
    dual.f[q, e]  force e of block q; dual.old: the same before the momentum step; dual.z = Y^T f.  Blocks are the
                  scalar rows, then the contacts; dual.ndual: number of blocks.  A block has at most EDGES forces
    b             J a0 - aref, stored during the sweeps in primal.row_v (scalar rows) and con_warm (contacts)
    contacts      `has_edges`: the forces are those of a pyramid's edges; `force_count`: their number; `basis_force`:
                  the force along a vector of the basis; `basis_value`: such a component of a field like con_warm
    D, Dt         1 / R of a row, and of the friction rows of an elliptic contact; lo, hi: bounds of the force
    decrease      of the cost in a sweep
    drift         sum of (f_new - f_start) (f_start - f_old) over all forces: negative if the sweep opposes their last
                  change
    primal        `compute_rows_at(m, d, a, x, y)` stores J a - aref in x (scalar rows) and y (contacts);
                  `evaluate_at_forces` returns (cost, gradient norm) of the primal problem at the acceleration that
                  dual.f produces
    blocks        `update_row_force` and `visit_contact` set the forces of one block to their optimum and update dual.z;
                  they return (decrease, drift).  `visited_block` returns the block at a position of the order: from
                  `order_blocks` if `is_scrambled`, else in sequence
    residual      `has_large_gradient` returns a mask of worlds whose gradient is not small; `is_rounding` moves each
                  acceleration by one rounding, and returns a mask of worlds whose gradient is rounding by this change
    scale         1 / trace of M, of cost and gradient in comparisons with the tolerance
Source: MuJoCo documentation, Computation, "Algorithms" (PGS), and the change log of 3.11.0 (momentum with restarts,
after O'Donoghue and Candes, "Adaptive restart for accelerated gradient schemes", 2015).  Differences: A is not
formed; blocks are shuffled only in each fourth sweep (visit_order.py); a contact is visited twice in a row, which
costs no row product; a contact without force also tries its rim; and momentum restarts if the cost grows.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.dual.block_update import regularisation_or_huge, update_row_force, visit_contact
from featherlane.engine.solver.dual.problem import (
    EDGES,
    accelerate_by_forces,
    basis_force,
    clear_overflow_forces,
    dual_gap,
    evaluate_at_forces,
    force_count,
    forces_at_rows,
    has_edges,
    store_dual_forces,
    store_whitened_force,
)
from featherlane.engine.solver.dual.visit_order import is_scrambled, order_blocks, visited_block
from featherlane.engine.solver.primal.history import record_iteration, store_diagnostics
from featherlane.engine.solver.primal.problem import compute_rows_at, trace_of_inertia
from featherlane.engine.solver.primal.rounding import has_large_gradient, is_rounding
from featherlane.engine.solver.rows.laws import TINY
from featherlane.engine.solver.rows.rows import basis_value

PATIENCE = 4.0  # consecutive sweeps without progress, after which a world ends


# ---- all blocks ----------------------------------------------------------------------------------------------------
@kernel
def sweep_blocks(m, d, sweep, live):
    """Minimises the dual cost over one block of forces after the other, all once; returns (its decrease, the drift).

    sweep: its number.  live: mask of worlds that continue.  Writes: dual.f, dual.z.
    """
    decrease, drift = 0.0, 0.0
    contact_start = d.nrow[0]  # first block of contacts
    if is_scrambled(sweep):
        order_blocks(d, sweep)  # writes the order that `visited_block` reads
    for position in range(d.dual.ndual[0]):
        q = visited_block(d, sweep, position)
        if q < contact_start:
            b, D, lo, hi = d.primal.row_v[q], d.row_D[q], d.row_lo[q], d.row_hi[q]
            block_decrease, block_drift = update_row_force(d, q, b, D, lo, hi, live)
        else:
            block_decrease, block_drift = visit_contact(m, d, q - contact_start, q, sweep, live)
        decrease, drift = decrease + block_decrease, drift + block_drift
    return decrease, drift


@kernel
def extrapolate_force(d, q, e, beta):
    """Returns force e of block q, extrapolated: f + beta (f - f_old), with f_old = dual.old; stores f as dual.old."""
    f = d.dual.f[q, e]
    f_new = fma(beta, f - d.dual.old[q, e], f)
    d.dual.old[q, e] = f
    return f_new


@kernel
def extrapolate_contact(m, d, k, q, beta):
    """f <- P(f + beta (f - f_old)) for the forces f of contact k, block q; P makes them admissible.

    edges of a pyramid, or a contact without friction   f >= 0: each force is limited
    an elliptic cone                                    f_0 >= 0, then |friction| <= f_0: friction is scaled
    """
    n = force_count(m, d, k)
    for e in range(n):
        d.dual.f[q, e] = extrapolate_force(d, q, e, beta)
    if has_edges(m, d, k) or n == 1:  # each force only pushes
        for e in range(n):
            d.dual.f[q, e] = fmax(d.dual.f[q, e], 0.0)
    else:
        squares = 0.0
        normal_force = fmax(d.dual.f[q, 0], 0.0)
        for e in range(1, n):
            squares = fma(d.dual.f[q, e], d.dual.f[q, e], squares)
        friction = sqrt(squares)
        # onto the cone; without momentum (beta = 0) the force must not change, not even by rounding
        scale = where((friction > normal_force) & (beta > 0.0), normal_force / fmax(friction, TINY), 1.0)
        d.dual.f[q, 0] = normal_force
        for e in range(1, n):
            d.dual.f[q, e] = scale * d.dual.f[q, e]


@kernel
def extrapolate_forces(m, d, beta):
    """Extrapolates all forces along their last change by beta, within their admissible set; writes dual.f, old, z."""
    contact_start = d.nrow[0]  # first block of contacts
    for q in range(d.dual.ndual[0]):
        if q < contact_start:
            d.dual.f[q, 0] = clip(extrapolate_force(d, q, e=0, beta=beta), d.row_lo[q], d.row_hi[q])
        else:
            extrapolate_contact(m, d, q - contact_start, q, beta)
    store_whitened_force(m, d)  # writes dual.z


# ---- initial forces, and the iterations ------------------------------------------------------------------------------
@kernel
def force_cost(f, b, D):
    """Returns f b + 1/2 R f^2 of a force f, with R = 1 / D; the second term is 0 if f = 0, because R may be huge."""
    return f * b + where(f == 0.0, 0.0, 0.5 * (f * f) * regularisation_or_huge(D))


@kernel
def dual_cost(m, d):
    """Returns 1/2 f^T (A + R) f + f^T b of dual.f, with f^T A f = z^T z."""
    cost = 0.0
    contact_start = d.nrow[0]  # first block of contacts
    for i in range(m.nv):
        cost = fma(d.dual.z[i], d.dual.z[i], cost)
    cost = 0.5 * cost
    for q in range(d.dual.ndual[0]):
        if q < contact_start:
            cost = cost + force_cost(d.dual.f[q, 0], d.primal.row_v[q], d.row_D[q])
        else:
            k = q - contact_start
            contact = d.contact[k]
            # f^T b along the basis, then 1/2 R f^2 of each row or edge
            for c in range(contact.dim):
                cost = fma(basis_force(m, d, k, c), basis_value(d, d.primal.con_warm, k, c), cost)
            for e in range(force_count(m, d, k)):
                # friction rows of an elliptic cone have Dt
                D = contact.Dt if e > 0 and not has_edges(m, d, k) else contact.D
                cost = cost + force_cost(d.dual.f[q, e], b=0.0, D=D)
    return cost


@kernel
def start_forces(m, d):
    """Computes b = J a0 - aref, and the first forces: those of the last acceleration if their cost is negative, else 0.

    Writes: primal.row_v, con_warm (b); dual.f, dual.old, dual.z.
    """
    compute_rows_at(m, d, d.qacc_smooth, d.primal.row_v, d.primal.con_warm)
    blocks = d.nrow[0] + d.ncon_slot[0]
    warm = false_mask(d)  # worlds that start from the last forces
    if m.opt_disableflags & DISABLE_WARMSTART == 0:
        # x = J a - aref at the last acceleration, and its forces
        compute_rows_at(m, d, d.qacc_warmstart, d.primal.row_x, d.primal.con_y)
        forces_at_rows(m, d)  # writes dual.f
        clear_overflow_forces(m, d)  # blocks beyond the capacity are not solved
        store_whitened_force(m, d)  # writes dual.z, which the cost reads
        warm = dual_cost(m, d) < 0.0
    # worlds whose cost is not negative start from 0, whose cost is 0
    for q in range(blocks):
        for e in range(EDGES):
            f = where(warm, d.dual.f[q, e], 0.0)
            d.dual.f[q, e] = f
            d.dual.old[q, e] = f
    store_whitened_force(m, d)  # writes dual.z


@kernel
def record_forces(m, d, k, scale, improvement, beta):
    """Records the primal cost and gradient at the forces as point k, for the iteration statistics only.

    scale: of cost and gradient; improvement: decrease of the cost; beta: momentum of the sweep.
    """
    if d.want_history:
        cost, gradient = evaluate_at_forces(m, d)
        record_iteration(d, k, scale * cost, scale * gradient, improvement, beta)


@stage
def pgs(m, d):
    """Sweeps until every world has converged: qacc, qfrc_constraint, row forces, iterations, residual and gap.

    Reads:  the blocks of `make_blocks`, qLD, qacc_smooth, qfrc_smooth, qacc_warmstart.
    Writes: dual.f (ndualmax, 10) [N, N m], qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], row_force,
            con_force, solver_niter, solver_residual, solver_gap, warning (not converged), stat_*.
    Scratch: primal.*, cacc, cfrc, dual.*, disc.*, con_motion, con_wrench.
    Cost:   per sweep three products with Y.
    """
    scale = 1.0 / fmax(trace_of_inertia(m, d), TINY)  # of cost and gradient
    tolerance = m.opt_tolerance[0]
    start_forces(m, d)  # writes dual.f, old, z
    record_forces(m, d, k=0, scale=scale, improvement=0.0, beta=0.0)
    # a gain up to this part of the total gain is rounding: squared, because gains are quadratic in changes of forces
    noise = 1e-12 if single_precision(d) else 1e-28
    niter, idle = 0.0, 0.0  # sweeps of each world, and consecutive ones without progress
    since_restart = 0.0  # sweeps since a restart of the momentum
    total_decrease = 0.0  # decrease of the cost by all sweeps
    cost = dual_cost(m, d)
    live = d.active[0] > 0.0
    for sweep in range(m.opt_iterations):
        if not any_(live):
            break
        # Nesterov's momentum: factor of the last change of the forces, (k - 1) / (k + 2) in sweep k after a restart
        beta = where(live & (since_restart > 1.0), (since_restart - 1.0) / (since_restart + 2.0), 0.0)
        extrapolate_forces(m, d, beta)  # writes dual.f, old, z
        cost_before = cost
        cost_extrapolated = dual_cost(m, d)
        decrease, drift = sweep_blocks(m, d, sweep, live)  # updates dual.f, z
        cost = cost_extrapolated - decrease
        # a restart if the sweep opposes the momentum, or the cost has risen
        since_restart = where((drift < 0.0) | (cost > cost_before), 0.0, since_restart + 1.0)
        niter = where(live, niter + 1.0, niter)
        total_decrease = total_decrease + decrease
        record_forces(m, d, sweep + 1, scale, scale * decrease, beta)
        # no progress: the gain is rounding of the total gain.  A single sweep may seem to increase the cost
        idle = where(decrease <= noise * total_decrease, idle + 1.0, 0.0)
        gains_little = (scale * decrease <= tolerance) & (tolerance > 0.0)  # tolerance 0: no early stop
        live = live & not_(gains_little) & (idle < PATIENCE)
    _, gradient = evaluate_at_forces(m, d)
    gap = scale * dual_gap(m, d)
    store_diagnostics(d, niter, scale * gradient, gap)
    unconverged = has_large_gradient(m, d, gradient, gap)  # mask of worlds
    if any_(unconverged):
        unconverged = unconverged & not_(is_rounding(m, d, gradient, unconverged))
        # `is_rounding` has moved some worlds: restore the acceleration that belongs to the forces
        accelerate_by_forces(m, d)
    # worlds that still continue have used all sweeps
    warn(d, NOT_CONVERGED, live | unconverged)
    store_dual_forces(m, d)
