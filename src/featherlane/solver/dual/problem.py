"""The dual problem: forces f of all rows, the acceleration that they produce, and the duality gap of both.

    minimise over the admissible forces:  1/2 f^T (A + R) f + f^T b,      b = J a0 - aref,

with a0 the acceleration without constraints.  Forces are admissible within their bounds; edges of a pyramid and limits
only push; a contact with an elliptic cone has |force across| <= force along n in the basis scaled by
friction.  The forces of the primal problem at any acceleration are admissible.

At the solution the dual value is minus the primal cost.  Elsewhere their sum is the gap, which bounds the distance of
either one from its optimum:

    gap = cost(a) + 1/2 f^T (A + R) f + f^T b  >=  0.

For f the forces at a (Newton, CG) it is 1/2 g^T M^-1 g, with g the gradient.  For a = a0 + M^-1 J^T f (PGS) it is the
sum over rows of s(x) + s*(f) + f x = (f - f(x)) (x + R (f + f(x)) / 2), with f(x) a row's force at x = J a - aref.
Source: MuJoCo documentation, Computation, "Dual problem", "Algorithms" (warm start, duality gap).
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.joint_space import solve_factored
from featherlane.dynamics.inertia.metric import metric_factor, metric_force
from featherlane.solver.dual.rows import contact_block
from featherlane.solver.primal.problem import TINY, bounded_force, compute_row_products, evaluate, subtract_reference
from featherlane.solver.rows.cone import cone_force
from featherlane.solver.rows.contacts import add_basis_force, add_turn_moments
from featherlane.solver.rows.rows import basis_value, body_forces_to_dofs, clear_body_forces


@kernel
def block_row_product(d, q, c):
    """Returns the product of row c of block q with z: (J M^-1 J^T f) along the row."""
    n, o = d.dual.dofnum[q], d.dual.dofadr[q]
    row, x = d.dual.rowadr[q] + c * n, 0.0
    for p in range(n):
        x = fma(d.dual.Y[row + p], d.dual.z[d.dual.dof[o + p]], x)
    return x


@kernel
def add_row_force(d, q, c, f):
    """Adds f y to z for row c of block q."""
    n, o = d.dual.dofnum[q], d.dual.dofadr[q]
    row = d.dual.rowadr[q] + c * n
    for p in range(n):
        i = d.dual.dof[o + p]
        d.dual.z[i] = fma(d.dual.Y[row + p], f, d.dual.z[i])


@kernel
def three_dots(d, q, c):
    """Returns `block_row_product` of rows c to c + 2 of block q: z is read once."""
    n, o = d.dual.dofnum[q], d.dual.dofadr[q]
    row = d.dual.rowadr[q] + c * n
    x, y, w = zeros(3)
    for p in range(n):
        z, e = d.dual.z[d.dual.dof[o + p]], row + p
        x, y, w = fma(d.dual.Y[e], z, x), fma(d.dual.Y[e + n], z, y), fma(d.dual.Y[e + 2 * n], z, w)
    return Vec3(x, y, w)


@kernel
def add_three(d, q, c, f):
    """Runs `add_row_force` for rows c to c + 2 of block q: z is read and written once."""
    n, o = d.dual.dofnum[q], d.dual.dofadr[q]
    row = d.dual.rowadr[q] + c * n
    for p in range(n):
        i, e = d.dual.dof[o + p], row + p
        z = fma(d.dual.Y[e + n], f[1], fma(d.dual.Y[e], f[0], d.dual.z[i]))
        d.dual.z[i] = fma(d.dual.Y[e + 2 * n], f[2], z)


@kernel
def has_edges(m, d, k):
    """Checks whether the forces of contact k are those of a pyramid's edges."""
    return has_pyramids(m) and d.con_dim[k] > 1


@kernel
def force_count(m, d, k):
    """Returns the number of forces of contact k."""
    return 2 * (d.con_dim[k] - 1) if has_edges(m, d, k) else d.con_dim[k]


@kernel
def basis_force(m, d, k, c):
    """Returns the force of contact k along basis vector c."""
    q = contact_block(d, k)
    x = d.dual.f[q, c]
    if has_edges(m, d, k):
        if c > 0:
            x = d.dual.f[q, 2 * c - 2] - d.dual.f[q, 2 * c - 1]
        else:
            x = 0.0
            for e in range(2 * (d.con_dim[k] - 1)):
                x = x + d.dual.f[q, e]
    return x


@kernel
def regularisation(D):
    """Returns R = 1 / D; 0 if the row is absent."""
    return where(D > 0.0, 1.0 / fmax(D, TINY), 0.0)


# ---- forces at a point ---------------------------------------------------------------------------------------------
@kernel
def contact_force_at(m, d, k, e, s):
    """Returns force e of contact k at primal.con_y; s is the factor of y_i for an elliptic cone."""
    c = d.contact[k]
    y = d.primal.con_y[k][0]
    if has_edges(m, d, k):
        u = basis_value(d, d.primal.con_y, k, 1 + e // 2)
        f = -(c.D * fmin(y + u if e % 2 == 0 else y - u, 0.0))
    elif e == 0:
        f = -(c.D * fmin(y, 0.0))
        if c.dim > 1:
            f, _, _ = cone_force(m, d, k, d.primal.con_y)
    else:
        f = s * basis_value(d, d.primal.con_y, k, e)
    return f


@kernel
def cone_factor(m, d, k):
    """Returns the factor of y_i for the forces of contact k across n; 0 without an elliptic cone."""
    s = 0.0
    if d.con_dim[k] > 1 and not has_pyramids(m):
        _, s, _ = cone_force(m, d, k, d.primal.con_y)
    return s


@kernel
def forces_at_rows(m, d):
    """Computes dual_f, the forces of the primal problem at the current rows."""
    for k in range(d.ndofrow[0]):
        d.dual.f[k, 0], _ = bounded_force(d.dofrow_D[k], d.primal.dofrow_x[k], d.dofrow_lo[k], d.dofrow_hi[k])
    for k in range(d.ngenrow[0]):
        f, _ = bounded_force(d.genrow_D[k], d.primal.genrow_x[k], d.genrow_lo[k], d.genrow_hi[k])
        d.dual.f[d.ndofrow[0] + k, 0] = f
    for k in range(d.ncon_slot[0]):
        s = cone_factor(m, d, k)
        for e in range(force_count(m, d, k)):
            d.dual.f[contact_block(d, k), e] = contact_force_at(m, d, k, e, s)


@kernel
def clear_overflow_forces(m, d):
    """Sets the forces of blocks beyond the capacity to 0."""
    for q in range(d.dual.ndual[0], d.ndofrow[0] + d.ngenrow[0] + d.ncon_slot[0]):
        for e in range(10):
            d.dual.f[q, e] = 0.0


@kernel
def sum_forces(m, d):
    """Computes z = Y^T f."""
    for i in range(m.nv):
        d.dual.z[i] = 0.0
    joint = d.ndofrow[0] + d.ngenrow[0]
    for q in range(d.dual.ndual[0]):
        if q < joint:
            add_row_force(d, q, 0, d.dual.f[q, 0])
        else:
            for c in range(d.con_dim[q - joint]):
                add_row_force(d, q, c, basis_force(m, d, q - joint, c))


@kernel
def whiten_forces(m, d):
    """Computes z from qfrc_constraint = J^T f if blocks are missing: z = D^-1/2 L^-T qfrc_constraint."""
    for i in range(m.nv):
        d.dual.z[i] = d.qfrc_constraint[i]
    LD, inverse = metric_factor(m, d)
    for i in range(m.nv - 1, -1, -1):
        a, x = m.M_rowadr[i], d.dual.z[i]
        for c in range(m.M_rownnz[i] - 1):
            j = m.M_colind[a + c]
            d.dual.z[j] = fma(-LD[a + c], x, d.dual.z[j])
        d.dual.z[i] = x * sqrt(inverse[i])


# ---- joint forces and accelerations --------------------------------------------------------------------------------
@kernel
def push_forces(m, d):
    """Computes qfrc_constraint = J^T f."""
    for i in range(m.nv):
        d.qfrc_constraint[i] = 0.0
    for k in range(d.ndofrow[0]):
        i = d.dofrow_dof[k]
        d.qfrc_constraint[i] = fma(d.dofrow_J[k], d.dual.f[k, 0], d.qfrc_constraint[i])
    for k in range(d.ngenrow[0]):
        o, f = d.genrow_dofadr[k], d.dual.f[d.ndofrow[0] + k, 0]
        for e in range(o, o + d.genrow_dofnum[k]):
            i = d.genrow_dof[e]
            d.qfrc_constraint[i] = fma(d.genrow_J[e], f, d.qfrc_constraint[i])
    clear_body_forces(m, d)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        f, t, s = basis_force(m, d, k, 0), 0.0, 0.0
        if c.dim > 1:
            t, s = basis_force(m, d, k, 1), basis_force(m, d, k, 2)
        add_basis_force(d, k, (f, t, s))
        if c.dim > 3:
            f, t, s = basis_force(m, d, k, 3), 0.0, 0.0
            if c.dim > 4:
                t, s = basis_force(m, d, k, 4), basis_force(m, d, k, 5)
            add_turn_moments(d, k, (f, t, s))
    body_forces_to_dofs(m, d, d.qfrc_constraint)


@kernel
def accelerate_by_forces(m, d):
    """Computes qacc = a0 + M^-1 J^T f, and M qacc."""
    push_forces(m, d)
    for i in range(m.nv):
        d.qacc[i] = d.qfrc_constraint[i]
    LD, inverse = metric_factor(m, d)
    solve_factored(m, LD, inverse, d.qacc)
    f0 = metric_force(m, d)
    for i in range(m.nv):
        d.qacc[i] = d.qacc_smooth[i] + d.qacc[i]
        d.primal.Ma[i] = f0[i] + d.qfrc_constraint[i]


@kernel
def store_dual_forces(m, d):
    """Stores row forces unchanged; contact forces along normal and tangents, moments about them."""
    for k in range(d.ndofrow[0]):
        d.dofrow_force[k] = d.dual.f[k, 0]
    for k in range(d.ngenrow[0]):
        d.genrow_force[k] = d.dual.f[d.ndofrow[0] + k, 0]
    for k in range(d.ncon_slot[0]):
        contact = d.contact[k]
        contact.force = zeros(6)
        d.con_force[k][0] = basis_force(m, d, k, 0)
        for c in unrolled(range(1, 6)):
            if c < contact.dim:
                d.con_force[k][c] = contact.friction[c - 1] * basis_force(m, d, k, c)


# ---- convergence diagnostics ---------------------------------------------------------------------------------------
@kernel
def primal_at_forces(m, d):
    """Returns (cost, gradient norm) of the primal problem at qacc = a0 + M^-1 J^T f, and leaves its rows in place."""
    accelerate_by_forces(m, d)
    compute_row_products(m, d, d.qacc, d.con_motion, d.primal.dofrow_x, d.primal.genrow_x, d.primal.con_y)
    subtract_reference(m, d, d.primal.dofrow_x, d.primal.genrow_x, d.primal.con_y)
    for i in range(m.nv):
        d.primal.Mv[i] = d.qfrc_constraint[i]
    cost, gradient = evaluate(m, d)
    for i in range(m.nv):
        d.qfrc_constraint[i] = d.primal.Mv[i]
    return cost, gradient


@kernel
def row_gap(f, g, x, D):
    """Returns the duality gap of a row with force f; g is its primal force at x."""
    return (f - g) * fma(0.5 * regularisation(D), f + g, x)


@kernel
def contact_gap(m, d, k):
    """Returns the duality gap of the forces of contact k."""
    q, s, gap = contact_block(d, k), cone_factor(m, d, k), 0.0
    for e in range(force_count(m, d, k)):
        g, x, D = contact_force_at(m, d, k, e, s), d.primal.con_y[k][0], d.con_D[k]
        if has_edges(m, d, k):
            u = basis_value(d, d.primal.con_y, k, 1 + e // 2)
            x = x + u if e % 2 == 0 else x - u
        elif e > 0:
            x, D = basis_value(d, d.primal.con_y, k, e), d.con_Dt[k]
        gap = gap + row_gap(d.dual.f[q, e], g, x, D)
    return gap


@kernel
def dual_gap(m, d):
    """Returns the duality gap of dual.f, after `primal_at_forces`."""
    gap = 0.0
    for k in range(d.ndofrow[0]):
        g, _ = bounded_force(d.dofrow_D[k], d.primal.dofrow_x[k], d.dofrow_lo[k], d.dofrow_hi[k])
        gap = gap + row_gap(d.dual.f[k, 0], g, d.primal.dofrow_x[k], d.dofrow_D[k])
    for k in range(d.ngenrow[0]):
        g, _ = bounded_force(d.genrow_D[k], d.primal.genrow_x[k], d.genrow_lo[k], d.genrow_hi[k])
        gap = gap + row_gap(d.dual.f[d.ndofrow[0] + k, 0], g, d.primal.genrow_x[k], d.genrow_D[k])
    for k in range(d.ncon_slot[0]):
        gap = gap + contact_gap(m, d, k)
    return fmax(gap, 0.0)
