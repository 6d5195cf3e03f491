"""The primal problem: rows at a point, their cost and forces, the gradient, and a step.

    minimise over the acceleration a:  1/2 (a - a0)^T M (a - a0) + sum over rows of s(J a - aref)

with a0 the acceleration without constraints.  A row's force is f = clamp(-D x, lo, hi), x = J a - aref, and its cost
-f (x + f / 2D).  This rule covers equalities, friction loss, limits and the edges of friction pyramids (pyramid.py).
A contact with an elliptic cone is one row of several dimensions (cone.py).  Newton's method and conjugate gradients
minimise the cost; inverse dynamics evaluates it.  `bounded_force`, `one_sided_force`: (f, cost) of a scalar row.

Names
    point      a: qacc; M a: primal.Ma; x: primal.row_x (scalar rows), con_y (contacts).  Kernels that compute rows of
               another point take the fields to fill as arguments row_x and con_y
    direction  p: primal.search; M p: primal.Mv; J p: primal.row_v, con_z.  The argument a of a step is its length
    f0         `metric_force`: force without constraints, M a0.  Under the integrator `discrete`, M is its metric
    row_*      scalar rows, with bounds lo, hi of the force and D = 1 / R.  Row k has row_dofnum[k] entries row_J at the
               dofs row_dof, from entry row_dofadr[k] on.  The first ndofrow rows have one entry each, so entry k is
               that of row k: nfrictionrow rows of friction loss, then limits
    con_*      contacts of con_dim[k] directions: con_y[k] has values along normal and tangents, con_y[ANGULAR, k] those
               about the rotation axes, in dimensions 4 and 6.  The rotation axes have separate loops because they are
               rare
    aref       -B J v - K imp pos, with v = qvel.  Contacts: con_damping is B of the normal row, con_frictiondamping B
               of the others, con_stiffpos is K imp pos of the normal
    counts     nrow: scalar rows; ncon_slot: contact slots; nslot: entries of primal.slot
    slots      primal.slot lists the contact slots in use: all, or those of worlds that a solver continues
               (`list_live_slots`)
    bodies     con_motion and cvel: motions of all bodies, from which contact rows are computed without a Jacobian
Source: MuJoCo documentation, Computation, "Solver" (primal problem).
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.general import add_joint_force, row_product
from featherlane.engine.dynamics.inertia.articulated import uses_articulated
from featherlane.engine.dynamics.inertia.metric import metric, metric_force
from featherlane.engine.solver.rows.contacts import (
    add_contact_costs,
    apply_contact_forces,
    count_contact_switches,
    store_contact_forces,
)
from featherlane.engine.solver.rows.laws import bounded_force, bounded_switch, fold_laws, one_sided_force
from featherlane.engine.solver.rows.rows import (
    ANGULAR,
    body_forces_to_dofs,
    clear_body_forces,
    compute_angular_rows,
    compute_body_motions,
    compute_contact_rows,
)
from featherlane.engine.solver.rows.surface import add_surface_velocities
from featherlane.engine.solver.vectors import clear_vector


# ---- rows at a point -----------------------------------------------------------------------------------------------
@kernel
def compute_row_products(m, d, v, row_x, con_y):
    """Computes J v of a joint-space vector v, for all scalar rows and the contacts in primal.slot.

    Writes: row_x (scalar rows), con_y (contacts, along normal, tangents and rotation axes).
    Scratch: con_motion.
    """
    motions = d.con_motion
    compute_body_motions(m, d, v, motions)
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        compute_contact_rows(d, k, motions, con_y)
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        if d.con_dim[k] > 3:
            compute_angular_rows(d, k, motions, con_y)
    # scalar rows: first those with one entry, which is entry k of row_J and row_dof
    for k in range(d.ndofrow[0]):
        row_x[k] = d.row_J[k] * v[d.row_dof[k]]
    for k in range(d.ndofrow[0], d.nrow[0]):
        row_x[k] = row_product(d, k, v)


@kernel
def store_contact_velocities(d):
    """Computes J qvel of the contacts from the body velocities, an input of their aref.

    Writes: primal.con_z, which has no direction's rows at this time.
    """
    for k in range(d.ncon_slot[0]):
        compute_contact_rows(d, k, d.cvel, d.primal.con_z)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 3:
            compute_angular_rows(d, k, d.cvel, d.primal.con_z)


@kernel
def subtract_reference_at(m, d, row_x, con_y):
    """Subtracts aref from J a of all rows, in place.

    A contact's -aref is B J v + K imp pos along its normal, and B J v along its friction directions.
    Reads:  primal.con_z = J v of the contacts, from `store_contact_velocities`; row_x, con_y = J a.
    Writes: row_x, con_y = J a - aref.
    """
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        con_y[k][0] += fma(c.damping, d.primal.con_z[k][0], c.stiffpos)
        damping = c.frictiondamping
        if c.dim > 1:
            con_y[k][1] = fma(damping, d.primal.con_z[k][1], con_y[k][1])
            con_y[k][2] = fma(damping, d.primal.con_z[k][2], con_y[k][2])
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 3:
            con_y[ANGULAR, k] = fma(d.con_frictiondamping[k], d.primal.con_z[ANGULAR, k], con_y[ANGULAR, k])
    for k in range(d.nrow[0]):
        row_x[k] = row_x[k] - d.row_aref[k]
    if m.flg_surfacevel:  # J v above is without the velocities of moving surfaces (conveyor belts)
        add_surface_velocities(m, d, con_y)


@kernel
def compute_rows_at(m, d, a, row_x, con_y):
    """Computes x = J a - aref of all rows at the acceleration a; overwrites primal.con_z."""
    compute_row_products(m, d, a, row_x, con_y)
    store_contact_velocities(d)  # writes primal.con_z, which the next function reads
    subtract_reference_at(m, d, row_x, con_y)


@kernel
def add_bounded_cost(d, k, row_x, cost):
    """Returns cost plus that of row k at row_x[k], by the bounded law."""
    _, row_cost = bounded_force(d.row[k], row_x[k])
    return cost + row_cost


@kernel
def add_one_sided_cost(d, k, row_x, cost):
    """Returns cost plus that of row k at row_x[k], by the one-sided law."""
    _, row_cost = one_sided_force(d.row_D[k], row_x[k])
    return cost + row_cost


add_costs = fold_laws(add_bounded_cost, add_one_sided_cost)


@kernel
def sum_row_costs(m, d, row_x, con_y):
    """Returns the sum of the rows' costs at x = J a - aref: scalar rows, contacts."""
    return add_contact_costs(m, d, con_y, add_costs(d, row_x, 0.0))


@kernel
def apply_bounded_force(d, k, out, cost):
    """Adds the joint-space force of row k to out; returns cost plus that of the row, by the bounded law."""
    f, row_cost = bounded_force(d.row[k], d.primal.row_x[k])
    add_joint_force(d, k, f, out)
    return cost + row_cost


@kernel
def apply_one_sided_force(d, k, out, cost):
    """Adds the joint-space force of the one-dof, one-sided row k to out; returns cost plus that of the row."""
    f, row_cost = one_sided_force(d.row_D[k], d.primal.row_x[k])
    i = d.row_dof[k]
    out[i] = fma(d.row_J[k], f, out[i])
    return cost + row_cost


apply_forces = fold_laws(apply_bounded_force, apply_one_sided_force)


@kernel
def apply_row_forces(m, d):
    """Computes qfrc_constraint = J^T f at the current rows; returns their cost."""
    clear_vector(m, d.qfrc_constraint)
    cost = apply_forces(d, d.qfrc_constraint, 0.0)
    # contacts: forces on bodies (con_wrench), then on dofs
    clear_body_forces(m, d)
    cost = apply_contact_forces(m, d, cost)  # adds to con_wrench and to the cost
    body_forces_to_dofs(m, d, d.qfrc_constraint)
    return cost


@kernel
def evaluate(m, d):
    """Returns (cost, norm of the gradient) at the current point and rows.

    The cost is that of the rows plus 1/2 (M a - f0) . (a - a0).
    Writes: qfrc_constraint = J^T f,  primal.grad = M a - f0 - J^T f.
    """
    row_cost = apply_row_forces(m, d)  # writes qfrc_constraint
    grad_squared, gauss = zeros(2)  # |grad|^2, (M a - f0) . (a - a0)
    f0 = metric_force(m, d)
    for i in range(m.nv):
        inertial = d.primal.Ma[i] - f0[i]
        grad = inertial - d.qfrc_constraint[i]
        d.primal.grad[i] = grad
        grad_squared = fma(grad, grad, grad_squared)
        gauss = fma(inertial, d.qacc[i] - d.qacc_smooth[i], gauss)  # qacc_smooth: a0
    return row_cost + 0.5 * gauss, sqrt(grad_squared)


# ---- a step, and the stored solution -------------------------------------------------------------------------------
@kernel
def find_switching_worlds(m, d, a):
    """Returns the mask of worlds in which a row switches between free and bound along a step a p.

    A slipping contact also counts if the direction of its slip turns.  In the other worlds, the cost is quadratic along
    the step, so Newton's model of it is exact.
    """
    switches = 0.0  # sum of values that are 0 for a row without a switch, else positive
    for k in range(d.nrow[0]):
        switches = switches + bounded_switch(d.row[k], d.primal.row_x[k], d.primal.row_v[k], a)
    switches = switches + count_contact_switches(m, d, a)
    return switches > 0.0


@kernel
def step_along(a, v, x):
    """Returns x + a v, or exactly x if a is 0, whatever v: a finished world must not change, and 0 times inf is NaN."""
    return where(a == 0.0, x, fma(a, v, x))


@kernel
def advance_rows(m, d, a):
    """Moves the point by a step of length a along p: qacc += a p, Ma += a M p, x += a J p of all rows.

    Reads:  primal.search = p, Mv = M p, row_v and con_z = J p.   Writes: qacc, primal.Ma, row_x, con_y.
    """
    for i in range(m.nv):
        d.qacc[i] = step_along(a, d.primal.search[i], d.qacc[i])
        d.primal.Ma[i] = step_along(a, d.primal.Mv[i], d.primal.Ma[i])
    for k in range(d.nrow[0]):
        d.primal.row_x[k] = step_along(a, d.primal.row_v[k], d.primal.row_x[k])
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        d.primal.con_y[k] = step_along(a, d.primal.con_z[k], d.primal.con_y[k])
        if d.con_dim[k] > 3:
            d.primal.con_y[ANGULAR, k] = step_along(a, d.primal.con_z[ANGULAR, k], d.primal.con_y[ANGULAR, k])


@kernel
def replace_rows(d, chosen, other_con_y):
    """Replaces the rows of the point, in the chosen worlds, by those of another point in primal.row_v and other_con_y.

    Writes: primal.row_x, con_y.
    """
    for k in range(d.nrow[0]):
        d.primal.row_x[k] = where(chosen, d.primal.row_v[k], d.primal.row_x[k])
    for k in range(d.ncon_slot[0]):
        d.primal.con_y[k] = where(chosen, other_con_y[k], d.primal.con_y[k])
        if d.con_dim[k] > 3:
            d.primal.con_y[ANGULAR, k] = where(chosen, other_con_y[ANGULAR, k], d.primal.con_y[ANGULAR, k])


@kernel
def store_primal_forces(m, d):
    """Stores row forces at the solution: row_force and con_force.

    con_force has the contact forces along normal and tangents, and the moments about them.
    """
    for k in range(d.nrow[0]):
        # the bounded law also serves limits: their bounds are 0 and a number that no force reaches
        d.row_force[k], _ = bounded_force(d.row[k], d.primal.row_x[k])
    store_contact_forces(m, d)


@kernel
def trace_of_inertia(m, d):
    """Returns the trace of M, the scale of cost and gradient; without M, nv times the model's mean inertia."""
    trace = 0.0
    if uses_articulated(m):  # then M is not computed
        trace = m.stat_meaninertia[0] * m.nv
    else:
        A = metric(m, d)
        for i in range(m.nv):
            trace = trace + A[m.M_rowadr[i] + m.M_rownnz[i] - 1]  # A_ii is the last entry of row i
    return trace
