"""The no-slip solver (`noslip`): after any solver, solves friction again without its regularisation.

Normal forces, limits and equalities stay fixed.  PGS sweeps over the forces of friction loss, the difference of each
pair of opposite pyramid edges, and the tangential forces of an elliptic cone, with A in place of A + R.
The result minimises no single cost: residual and gap are the main solver's, from before this pass.
Source: MuJoCo documentation, Computation, "Algorithms" (NoSlip).
Note:   friction directions without mobility: see friction_disc.py.
"""

from featherlane.prelude import *
from featherlane.model.solver import in_forces
from featherlane.solver.dual.pgs import add_contact_change, change_force, load_contact, slide_across
from featherlane.solver.dual.problem import (
    accelerate_by_forces,
    add_row_force,
    block_row_product,
    force_count,
    forces_at_rows,
    has_edges,
    regularisation,
    store_dual_forces,
    sum_forces,
    whiten_forces,
)
from featherlane.solver.dual.rows import block_triangle_index
from featherlane.solver.primal.problem import TINY, compute_row_products, subtract_reference, trace_of_inertia

MINVAL = 1e-15  # 1/kg: a smaller A counts as 0
INVERSE = 1  # place of 1 / A in the block of a row, whose A is a scalar


@kernel
def invert_rows(d):
    """Computes 1 / A of rows with friction loss, next to their A: sweeps need no division."""
    for k in range(d.nfrictionrow[0]):
        d.dual.A[k, INVERSE] = 1.0 / fmax(d.dual.A[k, 0], MINVAL)
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] == FRICTION_TENDON:
            q = d.ndofrow[0] + k
            d.dual.A[q, INVERSE] = 1.0 / fmax(d.dual.A[q, 0], MINVAL)


@kernel
def free_row(d, q, v, lo, hi, live):
    """Solves the friction loss of a row, block q, with J a - aref = v without forces; returns the cost's decrease."""
    f, y, A = d.dual.f[q, 0], v + block_row_product(d, q, 0), fmax(d.dual.A[q, 0], MINVAL)
    delta = where(live, clip(fma(-y, d.dual.A[q, INVERSE], f), lo, hi) - f, 0.0)
    d.dual.f[q, 0] = f + delta
    add_row_force(d, q, 0, delta)
    return -(delta * fma(0.5 * A, delta, y))


@kernel
def free_pair(d, q, dim, i, live):
    """Solves opposite edges along direction i of a pyramid: their sum stays, their difference t has |t| <= sum."""
    up, down, y = d.dual.f[q, 2 * i - 2], d.dual.f[q, 2 * i - 1], d.dual.block_y[i]
    total, t = up + down, up - down
    A = d.dual.A[q, block_triangle_index(i, i)]
    moves = A > MINVAL
    best = where(moves, clip(t - y / where(moves, A, 1.0), -total, total), 0.0)
    delta = where(live, best - t, 0.0)
    d.dual.f[q, 2 * i - 2] = where(live, 0.5 * (total + best), up)
    d.dual.f[q, 2 * i - 1] = where(live, 0.5 * (total - best), down)
    change_force(d, q, dim, i, delta)
    return -(delta * fma(0.5 * A, delta, y))


@kernel
def free_cone(d, q, dim, live):
    """Solves the forces across the normal of an elliptic contact."""
    for c in range(dim):
        d.dual.block_force[c] = d.dual.f[q, c]
    fall = slide_across(d, q, dim, 0.0, 0.0, live)
    for c in range(1, dim):
        d.dual.f[q, c] = d.dual.block_force[c] + 0.0
    return fall


@kernel
def pushes(m, d, k, q):
    """Returns a mask: does contact k have a force?  Without one, it has no friction to solve."""
    found = d.dual.f[q, 0] != 0.0
    for e in range(1, force_count(m, d, k)):
        found = found | (d.dual.f[q, e] != 0.0)
    return found


@kernel
def free_contact(m, d, k, q, live):
    """Solves the friction of contact k; returns the cost's decrease."""
    dim, fall = d.con_dim[k], 0.0
    load_contact(m, d, k, q)
    if has_edges(m, d, k):
        for i in range(1, dim):
            fall = fall + free_pair(d, q, dim, i, live)
    else:
        fall = free_cone(d, q, dim, live)
    add_contact_change(d, q, dim)
    return fall


@kernel
def regularisation_cost(m, d):
    """Returns 1/2 f^T R f: the part of the cost that R contributes."""
    s, first = 0.0, d.ndofrow[0]
    for k in range(first):
        f = d.dual.f[k, 0]
        s = fma(f * regularisation(d.dofrow_D[k]), f, s)
    for k in range(d.ngenrow[0]):
        f = d.dual.f[first + k, 0]
        s = fma(f * regularisation(d.genrow_D[k]), f, s)
    for k in range(d.ncon_slot[0]):
        for e in range(force_count(m, d, k)):
            f = d.dual.f[first + d.ngenrow[0] + k, e]
            D = d.con_Dt[k] if e > 0 and not has_edges(m, d, k) else d.con_D[k]
            s = fma(f * regularisation(D), f, s)
    return 0.5 * s


@kernel
def sweep_friction(m, d, live):
    """Sweeps once over all friction; returns the cost's decrease."""
    fall, joint = 0.0, d.ndofrow[0] + d.ngenrow[0]
    for k in range(d.nfrictionrow[0]):
        fall = fall + free_row(d, k, d.primal.dofrow_v[k], d.dofrow_lo[k], d.dofrow_hi[k], live)
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] == FRICTION_TENDON:
            q = d.ndofrow[0] + k
            fall = fall + free_row(d, q, d.primal.genrow_v[k], d.genrow_lo[k], d.genrow_hi[k], live)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1 and any_(live & pushes(m, d, k, joint + k)):
            fall = fall + free_contact(m, d, k, joint + k, live)
    return fall


@stage
def noslip(m, d):
    """Sweeps until every world gains less than opt_noslip_tolerance, then updates qacc, qfrc_constraint and row forces.

    Reads:  the blocks of `make_blocks`, the forces of PGS, or the rows and qfrc_constraint of another solver,
            qacc_smooth.
    Writes: dual.*, qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], dofrow_force, genrow_force, con_force;
            dual.start, dual.nsweep.
    Scratch: primal.*, disc.*, con_motion, con_wrench.
    Cost:   per sweep two products with Y.
    """
    scale = 1.0 / fmax(trace_of_inertia(m, d), TINY)
    if in_forces(m):
        sum_forces(m, d)
    else:
        forces_at_rows(m, d)
        whiten_forces(m, d)
    compute_row_products(m, d, d.qacc_smooth, d.con_motion, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_warm)
    subtract_reference(m, d, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_warm)
    invert_rows(d)
    for i in range(m.nv):
        d.dual.start[i] = d.qacc[i]
    d.dual.nsweep[0] = 0.0
    live, first = d.active[0] > 0.0, regularisation_cost(m, d)
    for _ in range(m.opt_noslip_iterations):
        if not any_(live):
            break
        fall = sweep_friction(m, d, live) + first
        d.dual.nsweep[0] = where(live, d.dual.nsweep[0] + 1.0, d.dual.nsweep[0])
        first = 0.0
        live = live & (scale * fall >= m.opt_noslip_tolerance[0])
    accelerate_by_forces(m, d)
    store_dual_forces(m, d)
