"""The dual problem: forces f of all rows, the acceleration that they produce, and the duality gap of both.

    minimise over the admissible forces:  1/2 f^T (A + R) f + f^T b,      b = J a0 - aref,

with a0 the acceleration without constraints.  Forces are admissible within their bounds; edges of a pyramid and limits
only push; a contact with an elliptic cone has |force across| <= force along n in the basis scaled by
friction.  The forces of the primal problem at any acceleration are admissible.

At the solution the dual value is minus the primal cost.  Elsewhere their sum is the gap, which bounds the distance of
either one from its optimum:

    gap = cost(a) + 1/2 f^T (A + R) f + f^T b  >=  0.

For f the forces at a (Newton, CG) it is 1/2 g^T M^-1 g, with g the gradient.  For a = a0 + M^-1 J^T f (PGS) it is a
sum over rows (`row_gap`).  A row has x = J a - aref, its primal cost c(x), its force f(x) there, and the conjugate
cost c*(f), which is R f^2 / 2 for an admissible f.  Its part of the gap is

    c(x) + c*(f) + f x = (f - f(x)) (x + R (f + f(x)) / 2).

Names
    point      a: qacc; M a: primal.Ma; x: primal.row_x, and con_y along the basis of a contact: direction 0 is the
               normal, 1 and 2 the tangents, 3 to 5 the rotation axes (`basis_value` returns one component)
    M          `metric_factor` returns (LD, 1 / D) of M = L^T D L, with which `solve_factored` computes x <- M^-1 x, and
               `half_solve_column` x <- D^-1/2 L^-T x.  `metric_force`: f0 = M a0.  Under the integrator `discrete`, M
               is its metric
    blocks     scalar rows, then contacts: `contact_block` is that of contact k.  dual.f[q, c]: force of row c of block
               q; edges of a pyramid have one each: y_0 + y_i has number 2 i - 2, y_0 - y_i number 2 i - 1
    Y          row c of block q has the n = dofnum[q] entries dual.Y[rowadr[q] + c n ...], at the dofs
               dual.dof[dofadr[q] ...] (rows.py); dual.z = Y^T f
    rows       row_*: scalar rows, with force bounds lo, hi; con_*: contacts, con_dim[k] directions each.  D = 1 / R;
               con_Dt: D of the friction rows of an elliptic contact
    wrenches   `clear_body_forces` clears con_wrench of all bodies; `add_basis_force` and `add_basis_moments` add forces
               of a contact to those of its bodies; `body_forces_to_dofs` adds J^T of them to a joint-space vector;
               `add_joint_force` adds J^T f of a scalar row
    forces     `bounded_force` returns (force, cost) of a scalar row, `cone_force` (force along n, s, cost) of an
               elliptic cone, whose force along each friction direction i is s y_i.  `evaluate` returns (cost, gradient
               norm) of the primal problem at the current rows
    fold_rows  fold_rows(scalar, contact) is the kernel (m, d, unused, x) that passes x through both for all rows
Source: MuJoCo documentation, Computation, "Dual problem", "Algorithms" (warm start, duality gap).
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.fold import fold_rows
from featherlane.engine.constraint.general import add_joint_force
from featherlane.engine.dynamics.inertia.joint_space import inertia_rows, solve_factored
from featherlane.engine.dynamics.inertia.metric import metric_factor, metric_force
from featherlane.engine.dynamics.sparse.half_solve import half_solve_column
from featherlane.engine.solver.dual.rows import contact_block
from featherlane.engine.solver.primal.problem import compute_rows_at, evaluate
from featherlane.engine.solver.rows.cone import cone_force
from featherlane.engine.solver.rows.contacts import add_basis_force, add_basis_moments
from featherlane.engine.solver.rows.laws import TINY, bounded_force
from featherlane.engine.solver.rows.rows import basis_value, body_forces_to_dofs, clear_body_forces
from featherlane.engine.solver.vectors import clear_vector, copy_vector

EDGES = 10  # largest number of forces of a contact: edges of a pyramid of dimension 6


@kernel
def row_products(d, q, c, count):
    """Returns the products of rows c to c + count - 1 of block q with z = Y^T f: the accelerations J M^-1 J^T f."""
    n, dof_start = d.dual.dofnum[q], d.dual.dofadr[q]
    row_start = d.dual.rowadr[q] + c * n
    x = zeros(count)
    for p in range(n):
        z = d.dual.z[d.dual.dof[dof_start + p]]
        x = tuple(fma(d.dual.Y[row_start + p + r * n], z, x[r]) for r in range(count))
    return x


@kernel
def add_row_forces(d, q, c, f, count):
    """Adds forces f of rows c to c + count - 1 of block q to z = Y^T f: z += f_r times row c + r of Y."""
    n, dof_start = d.dual.dofnum[q], d.dual.dofadr[q]
    row_start = d.dual.rowadr[q] + c * n
    for p in range(n):
        i = d.dual.dof[dof_start + p]
        z = d.dual.z[i]
        for r in unrolled(range(count)):
            z = fma(d.dual.Y[row_start + p + r * n], f[r], z)
        d.dual.z[i] = z


@kernel
def has_edges(m, d, k):
    """Checks whether the forces of contact k are those of a pyramid's edges."""
    return has_pyramids(m) and d.con_dim[k] > 1


@kernel
def force_count(m, d, k):
    """Returns the number of forces of contact k: two edges for each direction but the normal, or one per direction."""
    return 2 * (d.con_dim[k] - 1) if has_edges(m, d, k) else d.con_dim[k]


@kernel
def basis_force(m, d, k, c):
    """Returns the force of contact k along direction c of its basis, from dual.f.

    Pyramid: along the normal the sum of all edges, along direction c the difference of its two edges.
    """
    q = contact_block(d, k)
    force = d.dual.f[q, c]
    if has_edges(m, d, k):
        if c > 0:  # the edges y_0 + y_c and y_0 - y_c
            force = d.dual.f[q, 2 * c - 2] - d.dual.f[q, 2 * c - 1]
        else:
            force = 0.0
            for e in range(2 * (d.con_dim[k] - 1)):
                force = force + d.dual.f[q, e]
    return force


@kernel
def regularisation_or_zero(D):
    """Returns R = 1 / D; for an absent row (D = 0) it is 0."""
    return where(D > 0.0, 1.0 / fmax(D, TINY), 0.0)


# ---- forces at a point ---------------------------------------------------------------------------------------------
@kernel
def primal_contact_force(m, d, k, e, s):
    """Returns f(x), force number e of contact k in the primal problem, at x = J a - aref in primal.con_y.

    e: number of an edge of a pyramid, else direction of the basis.
    s: `friction_factor` of the contact, used if e is a friction direction of an elliptic cone.
    """
    c = d.contact[k]
    y = d.primal.con_y[k][0]
    if has_edges(m, d, k):
        y_i = basis_value(d, d.primal.con_y, k, 1 + e // 2)  # edges 2 i - 2 and 2 i - 1 are y + y_i and y - y_i
        D = c.D
        x = y + y_i if e % 2 == 0 else y - y_i
        f = -(D * fmin(x, 0.0))
    elif e == 0:
        f = -(c.D * fmin(y, 0.0))  # the normal of a contact without friction only pushes
        if c.dim > 1:  # an elliptic cone
            f, _, _ = cone_force(m, d, k, d.primal.con_y)
    else:
        f = s * basis_value(d, d.primal.con_y, k, e)
    return f


@kernel
def friction_factor(m, d, k):
    """Returns s: the force of contact k along friction direction i is s y_i; 0 without an elliptic cone."""
    s = 0.0
    if d.con_dim[k] > 1 and not has_pyramids(m):
        _, s, _ = cone_force(m, d, k, d.primal.con_y)
    return s


@kernel
def forces_at_rows(m, d):
    """Computes dual.f, the forces of the primal problem at the current rows."""
    for k in range(d.nrow[0]):
        d.dual.f[k, 0], _ = bounded_force(d.row[k], d.primal.row_x[k])
    for k in range(d.ncon_slot[0]):
        s = friction_factor(m, d, k)  # force over y_i along each friction direction i of an elliptic cone
        for e in range(force_count(m, d, k)):
            d.dual.f[contact_block(d, k), e] = primal_contact_force(m, d, k, e, s)


@kernel
def clear_overflow_forces(m, d):
    """Sets the forces of blocks beyond the capacity to 0."""
    for q in range(d.dual.ndual[0], d.nrow[0] + d.ncon_slot[0]):
        for e in range(EDGES):
            d.dual.f[q, e] = 0.0


@kernel
def store_whitened_force(m, d):
    """Computes dual.z = Y^T f, from the blocks and dual.f."""
    clear_vector(m, d.dual.z)
    contact_start = d.nrow[0]  # first block of contacts
    for q in range(d.dual.ndual[0]):
        if q < contact_start:
            add_row_forces(d, q, c=0, f=(d.dual.f[q, 0],), count=1)
        else:
            for c in range(d.con_dim[q - contact_start]):
                add_row_forces(d, q, c, f=(basis_force(m, d, q - contact_start, c),), count=1)


@kernel
def whiten_constraint_force(m, d):
    """Computes dual.z = Y^T f from qfrc_constraint = J^T f, even if blocks are missing: z = D^-1/2 L^-T J^T f."""
    copy_vector(m, d.qfrc_constraint, d.dual.z)
    LD, inverse_D = metric_factor(m, d)
    half_solve_column(inertia_rows(m), LD, inverse_D, d.dual.z)


# ---- joint forces and accelerations --------------------------------------------------------------------------------
@kernel
def store_constraint_force(m, d):
    """Computes qfrc_constraint = J^T f, with f = dual.f."""
    clear_vector(m, d.qfrc_constraint)
    for k in range(d.nrow[0]):
        add_joint_force(d, k, d.dual.f[k, 0], d.qfrc_constraint)
    # contacts: forces on bodies (con_wrench), then on dofs
    clear_body_forces(m, d)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        normal_force = basis_force(m, d, k, c=0)
        friction1, friction2 = 0.0, 0.0
        if c.dim > 1:
            friction1, friction2 = basis_force(m, d, k, c=1), basis_force(m, d, k, c=2)
        add_basis_force(d, k, (normal_force, friction1, friction2))
        # moments about normal and tangents
        if c.dim > 3:
            torsion = basis_force(m, d, k, c=3)
            rolling1, rolling2 = 0.0, 0.0
            if c.dim > 4:
                rolling1, rolling2 = basis_force(m, d, k, c=4), basis_force(m, d, k, c=5)
            add_basis_moments(d, k, (torsion, rolling1, rolling2))
    body_forces_to_dofs(m, d, d.qfrc_constraint)


@kernel
def accelerate_by_forces(m, d):
    """Computes qacc = a0 + M^-1 J^T f, and primal.Ma = M qacc = f0 + J^T f, with f = dual.f; writes qfrc_constraint."""
    store_constraint_force(m, d)
    copy_vector(m, d.qfrc_constraint, d.qacc)
    LD, inverse_D = metric_factor(m, d)
    solve_factored(m, LD, inverse_D, d.qacc)  # qacc = M^-1 J^T f
    f0 = metric_force(m, d)
    for i in range(m.nv):
        d.qacc[i] = d.qacc_smooth[i] + d.qacc[i]
        d.primal.Ma[i] = f0[i] + d.qfrc_constraint[i]


@kernel
def store_dual_forces(m, d):
    """Stores dual.f as row_force and con_force.

    con_force has forces along normal and tangents, and moments about them.  The basis is scaled by friction: a force
    f_i along mu_i t_i is mu_i f_i along t_i.
    """
    for k in range(d.nrow[0]):
        d.row_force[k] = d.dual.f[k, 0]
    for k in range(d.ncon_slot[0]):
        contact = d.contact[k]
        contact.force = zeros(6)
        d.con_force[k][0] = basis_force(m, d, k, c=0)
        for c in unrolled(range(1, 6)):
            if c < contact.dim:
                d.con_force[k][c] = contact.friction[c - 1] * basis_force(m, d, k, c)


# ---- convergence diagnostics ---------------------------------------------------------------------------------------
@kernel
def evaluate_at_forces(m, d):
    """Returns (cost, gradient norm) of the primal problem at qacc = a0 + M^-1 J^T f, and leaves its rows in place.

    Writes: qacc, qfrc_constraint = J^T f of dual.f, primal.Ma, primal.grad and rows.  Scratch: primal.Mv.
    """
    accelerate_by_forces(m, d)
    compute_rows_at(m, d, d.qacc, d.primal.row_x, d.primal.con_y)
    # `evaluate` overwrites qfrc_constraint by the primal forces: primal.Mv keeps it
    copy_vector(m, d.qfrc_constraint, d.primal.Mv)
    cost, gradient = evaluate(m, d)
    copy_vector(m, d.primal.Mv, d.qfrc_constraint)
    return cost, gradient


@kernel
def row_gap(f, g, x, D):
    """Returns the duality gap (f - g) (x + R (f + g) / 2) of a row: force f, primal force g at x, R = 1 / D."""
    return (f - g) * fma(0.5 * regularisation_or_zero(D), f + g, x)


@kernel
def add_scalar_gap(m, d, k, unused, total):
    """Returns `total` plus the duality gap of scalar row k."""
    x = d.primal.row_x[k]
    primal_force, _ = bounded_force(d.row[k], x)
    return total + row_gap(d.dual.f[k, 0], primal_force, x, d.row_D[k])


@kernel
def add_contact_gap(m, d, k, unused, total):
    """Returns `total` plus the duality gap of contact k: the sum over its rows of (f - f(x)) (x + R (f + f(x)) / 2)."""
    q = contact_block(d, k)
    s = friction_factor(m, d, k)
    gap = 0.0
    for e in range(force_count(m, d, k)):
        primal_force = primal_contact_force(m, d, k, e, s)
        x, D = d.primal.con_y[k][0], d.con_D[k]  # J a - aref and 1 / R: those of the normal, unless e is another row
        if has_edges(m, d, k):
            y_i = basis_value(d, d.primal.con_y, k, 1 + e // 2)  # edges 2 i - 2 and 2 i - 1: y + y_i and y - y_i
            x = x + y_i if e % 2 == 0 else x - y_i
        elif e > 0:
            x = basis_value(d, d.primal.con_y, k, e)
            D = d.con_Dt[k]
        gap = gap + row_gap(d.dual.f[q, e], primal_force, x, D)
    return total + gap


add_gaps = fold_rows(add_scalar_gap, add_contact_gap)


@kernel
def dual_gap(m, d):
    """Returns the duality gap of dual.f, given the rows of `evaluate_at_forces`."""
    # the gap is not negative, but its computed sum may be, by rounding
    return fmax(add_gaps(m, d, 0, 0.0), 0.0)
