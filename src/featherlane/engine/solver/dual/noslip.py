"""The no-slip solver (`noslip`): after any solver, solves friction again without its regularisation.

Normal forces, limits and equalities stay fixed.  PGS sweeps over the forces of friction loss, the difference of each
pair of opposite pyramid edges, and the tangential forces of an elliptic cone, with A in place of A + R.
The result minimises no single cost: residual and gap are the main solver's, from before this pass.

Names
    dual.f[q, c]  force of row c of block q; edges of a pyramid have one each: y_0 + y_i has number 2 i - 2, y_0 - y_i
                  number 2 i - 1.  Blocks are the scalar rows, then the contacts
    y, A          y = J a - aref of a row; dual.A[q]: diagonal block of A, a packed lower triangle, A of a row at 0
    products      `row_products(d, q, c, count)`: (Y z) of rows c, c + 1, ... of block q; `add_row_forces` adds to z;
                  `has_edges`: the contact is a pyramid; `force_count`: number of its forces
    b             J a0 - aref of all rows, stored by `noslip` in primal.row_v and con_warm; y = b + Y z with z = Y^T f
    contacts      `load_contact` computes y of a contact in dual.block_y; `change_force` updates it by a change of one
                  force; `add_contact_change` adds all changes to z.  con_dim[k]: number of directions.
                  `solve_friction` sets dual.block_force of an elliptic contact, the friction at a fixed normal force
    in_forces     checks whether the main solver has forces as unknowns (PGS); then dual.f has its forces
    dual.start    the main solver's acceleration, which derivatives read; dual.nsweep: number of sweeps
    rows          row_*: scalar rows, with force bounds lo, hi; con_*: contacts; D = 1 / R
    live          mask of worlds that continue
    fold_rows     fold_rows(scalar, contact) is the kernel (m, d, s, x) that passes x through both for all rows
Source: MuJoCo documentation, Computation, "Algorithms" (NoSlip).
Note:   friction directions without mobility: see friction_disc.py.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.fold import fold_rows
from featherlane.engine.dynamics.sparse.packed_factor import triangle_index
from featherlane.engine.model.solver import in_forces
from featherlane.engine.solver.dual.block_update import add_contact_change, change_force, load_contact, solve_friction
from featherlane.engine.solver.dual.problem import (
    accelerate_by_forces,
    add_row_forces,
    force_count,
    forces_at_rows,
    has_edges,
    regularisation_or_zero,
    row_products,
    store_dual_forces,
    store_whitened_force,
    whiten_constraint_force,
)
from featherlane.engine.solver.dual.rows import contact_block
from featherlane.engine.solver.primal.problem import compute_rows_at, trace_of_inertia
from featherlane.engine.solver.rows.laws import TINY
from featherlane.engine.solver.vectors import copy_vector

MINVAL = 1e-15  # 1/kg: a smaller A counts as 0
INVERSE = 1  # position of 1 / A in dual.A of a scalar row, which otherwise needs only position 0, A


@kernel
def solve_friction_row(d, q, b, lo, hi, live):
    """Updates the force of a row of friction loss, block q: f <- clip(f - y / A, lo, hi); returns the cost's decrease.

    b: J a0 - aref of the row, so that y = b + Y z.  lo, hi: bounds of the force.
    """
    f = d.dual.f[q, 0]
    y = b + row_products(d, q, c=0, count=1)[0]
    A = fmax(d.dual.A[q, 0], MINVAL)
    delta = where(live, clip(fma(-y, d.dual.A[q, INVERSE], f), lo, hi) - f, 0.0)
    d.dual.f[q, 0] = f + delta
    add_row_forces(d, q, c=0, f=(delta,), count=1)
    return -(delta * fma(0.5 * A, delta, y))


@kernel
def solve_edge_pair(d, q, dim, i, live):
    """Updates the forces of the edges n + i and n - i of a pyramid; returns the cost's decrease.

    Their sum is fixed, and their difference t, the friction along direction i, has |t| <= sum:
    t <- clip(t - y_i / A_ii, -sum, sum), and 0 for a direction without mobility.
    """
    # forces of the edges n + i and n - i
    plus, minus, y = d.dual.f[q, 2 * i - 2], d.dual.f[q, 2 * i - 1], d.dual.block_y[i]
    total = plus + minus
    t = plus - minus
    A = d.dual.A[q, triangle_index(i, i)]
    moves = A > MINVAL  # mask: the direction has mobility
    t_new = where(moves, clip(t - y / where(moves, A, 1.0), -total, total), 0.0)
    delta = where(live, t_new - t, 0.0)
    # plus + minus = total, plus - minus = t_new
    d.dual.f[q, 2 * i - 2] = where(live, 0.5 * (total + t_new), plus)
    d.dual.f[q, 2 * i - 1] = where(live, 0.5 * (total - t_new), minus)
    change_force(d, q, dim, i, delta)
    return -(delta * fma(0.5 * A, delta, y))


@kernel
def solve_cone_friction(d, q, dim, live):
    """Minimises 1/2 f^T A f + f^T y over friction |t| <= f_0 of an elliptic contact, block q; returns the decrease."""
    for c in range(dim):
        d.dual.block_force[c] = d.dual.f[q, c]
    decrease = solve_friction(d, q, dim, R=0.0, Rt=0.0, live=live)  # updates dual.block_force
    for c in range(1, dim):
        d.dual.f[q, c] = d.dual.block_force[c]
    return decrease


@kernel
def has_force(m, d, k, q):
    """Returns the mask of worlds in which contact k, block q, has a force.  Without force, friction has the bound 0."""
    found = d.dual.f[q, 0] != 0.0
    for e in range(1, force_count(m, d, k)):
        found = found | (d.dual.f[q, e] != 0.0)
    return found


@kernel
def solve_contact_friction(m, d, k, q, live):
    """Minimises 1/2 f^T A f + f^T y over the friction of contact k, block q; returns the decrease.

    The normal force is fixed.
    """
    dim = d.con_dim[k]
    decrease = 0.0
    load_contact(m, d, k, q)  # writes dual.block_y, clears dual.block_change
    if has_edges(m, d, k):
        for i in range(1, dim):
            decrease = decrease + solve_edge_pair(d, q, dim, i, live)
    else:
        decrease = solve_cone_friction(d, q, dim, live)
    add_contact_change(d, q, dim)  # updates dual.z
    return decrease


@kernel
def add_scalar_regularisation(m, d, k, unused, fRf):
    """Returns fRf, a part of the sum f^T R f, plus the term of scalar row k."""
    f = d.dual.f[k, 0]
    return fma(f * regularisation_or_zero(d.row_D[k]), f, fRf)


@kernel
def add_contact_regularisation(m, d, k, unused, fRf):
    """Returns fRf, a part of the sum f^T R f, plus the terms of contact k."""
    for e in range(force_count(m, d, k)):
        f = d.dual.f[contact_block(d, k), e]
        # friction rows of an elliptic cone have Dt
        D = d.con_Dt[k] if e > 0 and not has_edges(m, d, k) else d.con_D[k]
        fRf = fma(f * regularisation_or_zero(D), f, fRf)
    return fRf


add_regularisation = fold_rows(add_scalar_regularisation, add_contact_regularisation)


@kernel
def regularisation_cost(m, d):
    """Returns 1/2 f^T R f: the part of the cost that R contributes."""
    return 0.5 * add_regularisation(m, d, 0, 0.0)


@kernel
def solve_row(m, d, k, live, decrease):
    """Updates the force of scalar row k if it is friction loss; returns `decrease` plus that of the cost."""
    if d.row_type[k] in (FRICTION_DOF, FRICTION_TENDON):
        decrease = decrease + solve_friction_row(d, k, d.primal.row_v[k], d.row_lo[k], d.row_hi[k], live)
    return decrease


@kernel
def solve_contact(m, d, k, live, decrease):
    """Updates the friction of contact k; returns `decrease` plus that of the cost."""
    # a contact without friction rows, or without force, has no friction to solve
    if d.con_dim[k] > 1 and any_(live & has_force(m, d, k, contact_block(d, k))):
        decrease = decrease + solve_contact_friction(m, d, k, contact_block(d, k), live)
    return decrease


sweep_friction = fold_rows(solve_row, solve_contact)  # of (m, d, live, 0.0): returns the cost's decrease


@stage
def noslip(m, d):
    """Sweeps until every world gains less than opt_noslip_tolerance, then updates qacc, qfrc_constraint and row forces.

    Reads:  the blocks of `make_blocks`, the forces of PGS, or the rows and qfrc_constraint of another solver,
            qacc_smooth.
    Writes: dual.*, qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], row_force, con_force;
            dual.start, dual.nsweep.
    Scratch: primal.*, disc.*, con_motion, con_wrench.
    Cost:   per sweep two products with Y.
    """
    scale = 1.0 / fmax(trace_of_inertia(m, d), TINY)  # of costs
    if in_forces(m):  # the main solver has forces as unknowns: dual.f has them
        store_whitened_force(m, d)  # writes dual.z from dual.f
    else:
        forces_at_rows(m, d)  # writes dual.f
        whiten_constraint_force(m, d)  # writes dual.z
    # b = J a0 - aref
    compute_rows_at(m, d, d.qacc_smooth, d.primal.row_v, d.primal.con_warm)
    for k in range(d.nrow[0]):  # 1 / A of rows with friction loss: sweeps need no division
        if d.row_type[k] in (FRICTION_DOF, FRICTION_TENDON):
            d.dual.A[k, INVERSE] = 1.0 / fmax(d.dual.A[k, 0], MINVAL)
    copy_vector(m, d.qacc, d.dual.start)
    d.dual.nsweep[0] = 0.0
    live = d.active[0] > 0.0
    # the cost of R is omitted from now on: it counts as decrease of the first sweep
    omitted_cost = regularisation_cost(m, d)
    for _ in range(m.opt_noslip_iterations):
        if not any_(live):
            break
        decrease = sweep_friction(m, d, live, 0.0) + omitted_cost
        d.dual.nsweep[0] = where(live, d.dual.nsweep[0] + 1.0, d.dual.nsweep[0])
        omitted_cost = 0.0
        live = live & (scale * decrease >= m.opt_noslip_tolerance[0])
    accelerate_by_forces(m, d)  # writes qacc, qfrc_constraint
    store_dual_forces(m, d)
