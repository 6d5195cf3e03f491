"""The primal problem: rows at a point, their cost and forces, the gradient, and a step.

    minimise over the acceleration a:  1/2 (a - a0)^T M (a - a0) + sum over rows of s(J a - aref)

with a0 the acceleration without constraints.  A row's force is f = clamp(-D x, lo, hi), x = J a - aref, and its cost
-f (x + f / 2D).  This rule covers equalities, friction loss, limits and the edges of friction pyramids (pyramid.py).
A contact with an elliptic cone is one row of several dimensions (cone.py).  Newton's method and conjugate gradients
minimise the cost; inverse dynamics evaluates it.
Source: MuJoCo documentation, Computation, "Solver" (primal problem).
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.articulated import uses_articulated
from featherlane.dynamics.inertia.metric import metric_diagonal, metric_force
from featherlane.solver.rows.contacts import contact_cost, contact_switches, push_contacts, store_contact_forces
from featherlane.solver.rows.pyramid import one_sided_row
from featherlane.solver.rows.rows import (
    TURN,
    body_forces_to_dofs,
    body_motion,
    clear_body_forces,
    contact_row_products,
    turning_rows,
)
from featherlane.solver.rows.surface import add_surface_velocities

TINY = 1e-30


# ---- rows at a point -----------------------------------------------------------------------------------------------
@kernel
def place_rows(m, d, v, w, dof_x, gen_x, con_y):
    """Computes J v for all rows: one-dof rows, general rows, contact bases; w is a work array for body motions."""
    body_motion(m, d, v, w)
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        contact_row_products(d, k, w, con_y)
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        if d.con_dim[k] > 3:
            turning_rows(d, k, w, con_y)
    for k in range(d.ndofrow[0]):
        dof_x[k] = d.dofrow_J[k] * v[d.dofrow_dof[k]]
    for k in range(d.ngenrow[0]):
        x = 0.0
        o = d.genrow_dofadr[k]
        for c in range(o, o + d.genrow_dofnum[k]):
            x = fma(d.genrow_J[c], v[d.genrow_dof[c]], x)
        gen_x[k] = x


@kernel
def contact_velocities(d):
    """Computes con_z = J v of the contacts from body velocities, an input of their aref."""
    for k in range(d.ncon_slot[0]):
        contact_row_products(d, k, d.cvel, d.primal.con_z)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 3:
            turning_rows(d, k, d.cvel, d.primal.con_z)


@kernel
def subtract_reference_at(m, d, dof_x, gen_x, con_y):
    """Computes x = J a - aref; aref is -B J v - K imp pos of a normal, else -B J v, with J v in primal.con_z."""
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        con_y[k][0] += fma(c.damping, d.primal.con_z[k][0], c.stiffpos)
        b = c.frictiondamping
        if c.dim > 1:
            con_y[k][1] = fma(b, d.primal.con_z[k][1], con_y[k][1])
            con_y[k][2] = fma(b, d.primal.con_z[k][2], con_y[k][2])
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 3:
            con_y[TURN, k] = fma(d.con_frictiondamping[k], d.primal.con_z[TURN, k], con_y[TURN, k])
    for k in range(d.ndofrow[0]):
        dof_x[k] = dof_x[k] - d.dofrow_aref[k]
    for k in range(d.ngenrow[0]):
        gen_x[k] = gen_x[k] - d.genrow_aref[k]
    if m.flg_surfacevel:
        add_surface_velocities(m, d, con_y)


@kernel
def subtract_reference(m, d, dof_x, gen_x, con_y):
    """Computes J v in primal.con_z, then x = J a - aref as `subtract_reference_at`."""
    contact_velocities(d)
    subtract_reference_at(m, d, dof_x, gen_x, con_y)


@kernel
def bounded_force(D, x, lo, hi):
    """Returns (force, cost) of a row."""
    f = clip(-(D * x), lo, hi)
    return f, -(f * fma(0.5 * f, 1.0 / fmax(D, TINY), x))


@kernel
def sum_row_costs(m, d, dof_x, gen_x, con_y):
    """Returns the sum of the rows' costs."""
    cost = 0.0
    for k in range(d.nfrictionrow[0]):
        _, c = bounded_force(d.dofrow_D[k], dof_x[k], d.dofrow_lo[k], d.dofrow_hi[k])
        cost = cost + c
    for k in range(d.nfrictionrow[0], d.ndofrow[0]):
        _, c = one_sided_row(d.dofrow_D[k], dof_x[k])
        cost = cost + c
    for k in range(d.ngenrow[0]):
        _, c = bounded_force(d.genrow_D[k], gen_x[k], d.genrow_lo[k], d.genrow_hi[k])
        cost = cost + c
    return contact_cost(m, d, con_y, cost)


@kernel
def push_rows(m, d):
    """Computes qfrc_constraint = J^T f at the current rows; returns their cost."""
    cost = 0.0
    for i in range(m.nv):
        d.qfrc_constraint[i] = 0.0
    for k in range(d.nfrictionrow[0]):
        f, c = bounded_force(d.dofrow_D[k], d.primal.dofrow_x[k], d.dofrow_lo[k], d.dofrow_hi[k])
        cost = cost + c
        i = d.dofrow_dof[k]
        d.qfrc_constraint[i] = fma(d.dofrow_J[k], f, d.qfrc_constraint[i])
    for k in range(d.nfrictionrow[0], d.ndofrow[0]):
        f, c = one_sided_row(d.dofrow_D[k], d.primal.dofrow_x[k])
        cost = cost + c
        i = d.dofrow_dof[k]
        d.qfrc_constraint[i] = fma(d.dofrow_J[k], f, d.qfrc_constraint[i])
    for k in range(d.ngenrow[0]):
        f, c = bounded_force(d.genrow_D[k], d.primal.genrow_x[k], d.genrow_lo[k], d.genrow_hi[k])
        cost = cost + c
        o = d.genrow_dofadr[k]
        for e in range(o, o + d.genrow_dofnum[k]):
            i = d.genrow_dof[e]
            d.qfrc_constraint[i] = fma(d.genrow_J[e], f, d.qfrc_constraint[i])
    clear_body_forces(m, d)
    cost = push_contacts(m, d, cost)
    body_forces_to_dofs(m, d, d.qfrc_constraint)
    return cost


@kernel
def evaluate(m, d):
    """Returns (cost, norm of the gradient) at the current rows; qfrc_constraint = J^T f, grad = M a - f0 - J^T f.

    The cost is that of the rows and 1/2 (M a - f0) . (a - a0).
    """
    cost, (s, c), f0 = push_rows(m, d), zeros(2), metric_force(m, d)
    for i in range(m.nv):
        y = d.primal.Ma[i] - f0[i]
        x = y - d.qfrc_constraint[i]
        d.primal.grad[i] = x
        s, c = fma(x, x, s), fma(y, d.qacc[i] - d.qacc_smooth[i], c)
    return cost + 0.5 * c, sqrt(s)


# ---- a step, and the stored solution -------------------------------------------------------------------------------
@kernel
def row_switches(D, x, v, a, lo, hi):
    """Returns a positive number if a row reaches, leaves or changes its bound between x and x + a v, else 0."""
    t, u = -(D * x), -(D * fma(a, v, x))
    before = where(t > lo, 1.0, 0.0) + where(t < hi, 0.0, 1.0)
    after = where(u > lo, 1.0, 0.0) + where(u < hi, 0.0, 1.0)
    return fabs(before - after)


@kernel
def set_switches(m, d, a):
    """Marks worlds in which a row switches between free and bound, or slips and turns, along a p: else it is exact."""
    n = 0.0
    for k in range(d.ndofrow[0]):
        D, x, v = d.dofrow_D[k], d.primal.dofrow_x[k], d.primal.dofrow_v[k]
        n = n + row_switches(D, x, v, a, d.dofrow_lo[k], d.dofrow_hi[k])
    for k in range(d.ngenrow[0]):
        D, x, v = d.genrow_D[k], d.primal.genrow_x[k], d.primal.genrow_v[k]
        n = n + row_switches(D, x, v, a, d.genrow_lo[k], d.genrow_hi[k])
    n = n + contact_switches(m, d, a)
    return n > 0.0


@kernel
def moved(a, v, x):
    """Returns x + a v, or exactly x if a is 0, whatever v: a finished world must not change, and 0 times inf is NaN."""
    return where(a == 0.0, x, fma(a, v, x))


@kernel
def advance_rows(m, d, a):
    """Moves the point and its rows by a p."""
    for i in range(m.nv):
        d.qacc[i] = moved(a, d.primal.search[i], d.qacc[i])
        d.primal.Ma[i] = moved(a, d.primal.Mv[i], d.primal.Ma[i])
    for k in range(d.ndofrow[0]):
        d.primal.dofrow_x[k] = moved(a, d.primal.dofrow_v[k], d.primal.dofrow_x[k])
    for k in range(d.ngenrow[0]):
        d.primal.genrow_x[k] = moved(a, d.primal.genrow_v[k], d.primal.genrow_x[k])
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        d.primal.con_y[k] = moved(a, d.primal.con_z[k], d.primal.con_y[k])
        if d.con_dim[k] > 3:
            d.primal.con_y[TURN, k] = moved(a, d.primal.con_z[TURN, k], d.primal.con_y[TURN, k])


@kernel
def store_primal_forces(m, d):
    """Stores row forces at the solution; contact forces along normal and tangents, moments about them."""
    for k in range(d.ndofrow[0]):
        # a limit's bounds are 0 and a number that no force reaches: it is a bounded row, too
        d.dofrow_force[k], _ = bounded_force(d.dofrow_D[k], d.primal.dofrow_x[k], d.dofrow_lo[k], d.dofrow_hi[k])
    for k in range(d.ngenrow[0]):
        d.genrow_force[k], _ = bounded_force(d.genrow_D[k], d.primal.genrow_x[k], d.genrow_lo[k], d.genrow_hi[k])
    store_contact_forces(m, d)


@kernel
def trace_of_inertia(m, d):
    """Returns the trace of M, or of the model's inertia if M is not computed: the scale of cost and gradient."""
    s = 0.0
    if uses_articulated(m):
        s = m.stat_meaninertia[0] * m.nv
    else:
        for i in range(m.nv):
            s = s + metric_diagonal(m, d, i)
    return s
