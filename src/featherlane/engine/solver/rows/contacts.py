"""Sums over all contacts of a tile: cost, forces, derivatives along a line, and zone changes along a step.

Each function has a loop for pyramids, one for their rotation axes, and one for elliptic cones.  In a single loop, the
two rarer cases would take registers from the loop for pyramids, which costs 3 % of a humanoid's step.
con_basis[k], con_basis[ANGULAR, k]: normal and tangents (n, mu_1 t_1, mu_2 t_2), rotation axes; con_dim: number of
directions, 1 without friction, with rotation axes above 3; con_D = 1 / R of the normal row and of all edges of a
pyramid, con_Dt: of the friction rows of an elliptic cone.
primal.con_y and con_z hold y = J a - aref and v = J p of each contact: con_y[k] along the basis, con_y[ANGULAR, k]
along its rotation axes (rows.py); in dimension 4 those about the last two rotation axes are 0.  primal.slot lists the
contact slots in use: all, or those of worlds that a solver continues (`list_live_slots`).  a: step length.  con_wrench:
forces on bodies.  `one_sided_force(D, x)`: (force, cost) of a single row that only pushes; `cone_force`: (force along
n, s, cost).  A pyramid's angular edges are the normal plus and minus a rotation axis: `angular_edges_*` add their part.
The functions of one pyramid return (slope, curvature) over D.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.rows.cone import cone_force, cone_slope, cone_switch
from featherlane.engine.solver.rows.laws import one_sided_force, one_sided_switch
from featherlane.engine.solver.rows.pyramid import (
    angular_edges_force,
    angular_edges_slope,
    angular_edges_switch,
    pyramid_force,
    pyramid_slope,
    pyramid_switch,
)
from featherlane.engine.solver.rows.rows import ANGULAR, add_contact_force, add_contact_moment


# ---- force and cost ------------------------------------------------------------------------------------------------
@kernel
def pyramid_forces(d, k, con_y):
    """Returns (forces along normal and tangents of the basis, cost) of contact k with pyramidal friction.

    The edges of its rotation axes are not included (`angular_edges_force`).
    """
    contact = d.contact[k]
    if contact.dim > 1:
        forces, cost = pyramid_force(contact.D, con_y[k])
    else:
        normal_force, cost = one_sided_force(contact.D, con_y[k][0])
        forces = Vec3(normal_force, 0.0, 0.0)
    return forces, cost


@kernel
def cone_forces(m, d, k, con_y):
    """Returns (forces along normal and tangents of the basis, s, cost) of contact k, an elliptic cone.

    s: ratio of force to y, the same for all friction directions.  The moments about the rotation axes, which are not
    returned, are s con_y[ANGULAR, k].
    """
    if d.con_dim[k] > 1:
        normal_force, s, cost = cone_force(m, d, k, con_y)
        forces = Vec3(normal_force, s * con_y[k][1], s * con_y[k][2])
    else:
        normal_force, cost = one_sided_force(d.con_D[k], con_y[k][0])
        s = 0.0  # no friction
        forces = Vec3(normal_force, s, s)
    return forces, s, cost


@kernel
def add_contact_costs(m, d, con_y, cost):
    """Returns cost plus the sum over all contacts of their cost c(y) at y = con_y."""
    if has_pyramids(m):
        for k in range(d.ncon_slot[0]):
            _, contact_cost = pyramid_forces(d, k, con_y)
            cost = cost + contact_cost
        for k in range(d.ncon_slot[0]):
            if d.con_dim[k] > 3:
                _, _, contact_cost = angular_edges_force(d, k, con_y)
                cost = cost + contact_cost
    else:
        for k in range(d.ncon_slot[0]):
            _, _, contact_cost = cone_forces(m, d, k, con_y)
            cost = cost + contact_cost
    return cost


@kernel
def add_basis_force(d, k, f):
    """Adds forces f on the pushed body, along normal and tangents of contact k, to con_wrench of both bodies."""
    if d.con_dim[k] > 1:
        n, t1, t2 = d.con_basis[k].rows
        add_contact_force(d, k, fma(f[0], n, fma(f[1], t1, f[2] * t2)))
    else:
        add_contact_force(d, k, f[0] * d.con_basis[k].rows[0])


@kernel
def add_basis_moments(d, k, moments):
    """Adds moments on the pushed body, about the rotation axes of contact k, to con_wrench of both bodies."""
    axis0, axis1, axis2 = d.con_basis[ANGULAR, k].rows
    add_contact_moment(d, k, fma(moments[0], axis0, fma(moments[1], axis1, moments[2] * axis2)))


@kernel
def apply_contact_forces(m, d, cost):
    """Adds the forces of all contacts at primal.con_y to con_wrench of the bodies; returns cost plus their costs."""
    if has_pyramids(m):
        for k in range(d.ncon_slot[0]):
            forces, contact_cost = pyramid_forces(d, k, d.primal.con_y)
            cost = cost + contact_cost
            add_basis_force(d, k, forces)
        for k in range(d.ncon_slot[0]):
            if d.con_dim[k] > 3:
                # angular edges also push along the normal
                normal_force, moments, contact_cost = angular_edges_force(d, k, d.primal.con_y)
                cost = cost + contact_cost
                add_contact_force(d, k, normal_force * d.con_basis[k].rows[0])
                add_basis_moments(d, k, moments)
    else:
        for k in range(d.ncon_slot[0]):
            forces, s, contact_cost = cone_forces(m, d, k, d.primal.con_y)
            cost = cost + contact_cost
            add_basis_force(d, k, forces)
            if d.con_dim[k] > 3:
                add_basis_moments(d, k, s * d.primal.con_y[ANGULAR, k])
    return cost


@kernel
def contact_forces(m, d, k):
    """Returns (forces along the basis, moments about its rotation axes) of contact k at primal.con_y."""
    moments = Vec3(zeros(3))
    if has_pyramids(m):
        forces, _ = pyramid_forces(d, k, d.primal.con_y)
        if d.con_dim[k] > 3:
            normal_force, moments, _ = angular_edges_force(d, k, d.primal.con_y)
            forces = Vec3(forces[0] + normal_force, forces[1], forces[2])
    else:
        forces, s, _ = cone_forces(m, d, k, d.primal.con_y)
        if d.con_dim[k] > 3:
            moments = s * d.primal.con_y[ANGULAR, k]
    return forces, moments


@kernel
def store_contact_forces(m, d):
    """Stores con_force of all contacts: forces along the normal and the tangents, and moments about these axes.

    The basis is scaled by friction: a force f_i along mu_i t_i is mu_i f_i along t_i.  con_friction has mu_1 to mu_5.
    """
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        f, moments = contact_forces(m, d, k)
        force = Vec3(f[0], c.friction[0] * f[1], c.friction[1] * f[2])
        c.force = join(force, tuple(c.friction[2 + i] * moments[i] for i in range(3)))


# ---- along a line --------------------------------------------------------------------------------------------------
@kernel
def add_contact_slopes(m, d, a, g, h):
    """Returns (g, h) plus first and second derivative by the step length a of all contacts' cost at con_y + a con_z."""
    if has_pyramids(m):
        for e in range(d.primal.nslot[0]):
            k = d.primal.slot[e]
            slope, curvature = pyramid_slope(d, k, a)
            g, h = fma(d.con_D[k], slope, g), fma(d.con_D[k], curvature, h)
        for e in range(d.primal.nslot[0]):
            k = d.primal.slot[e]
            if d.con_dim[k] > 3:
                slope, curvature = angular_edges_slope(d, k, a)
                g, h = fma(d.con_D[k], slope, g), fma(d.con_D[k], curvature, h)
    else:
        for e in range(d.primal.nslot[0]):
            k = d.primal.slot[e]
            if d.con_dim[k] > 1:
                g, h = cone_slope(m, d, k, a, g, h)
            else:  # without friction: `pyramid_slope` of the single row
                slope, curvature = pyramid_slope(d, k, a)
                g, h = fma(d.con_D[k], slope, g), fma(d.con_D[k], curvature, h)
    return g, h


@kernel
def add_contact_rounding(m, d, reach, terms):
    """Returns `terms` plus the absolute terms of the contacts' slopes along a step of length `reach`.

    A contact that pushes at either end of the step adds D |v| (|y| + reach |v|), with |y| and |v| the sums of absolute
    values over all directions of its basis: the force depends on differences of the normal and the other directions.
    """
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        c = d.contact[k]
        y, v = d.primal.con_y[k], d.primal.con_z[k]
        # sums over the friction directions: of |v_i|, of |y_i| at the start and at the end of the step
        v_friction, y_friction, y_then = 0.0, 0.0, 0.0
        if c.dim > 1:
            for i in unrolled(range(1, 3)):
                v_friction, y_friction = v_friction + fabs(v[i]), y_friction + fabs(y[i])
                y_then = y_then + fabs(fma(reach, v[i], y[i]))
        if c.dim > 3:
            y_angular, v_angular = d.primal.con_y[ANGULAR, k], d.primal.con_z[ANGULAR, k]
            for i in unrolled(range(3)):
                v_friction, y_friction = v_friction + fabs(v_angular[i]), y_friction + fabs(y_angular[i])
                y_then = y_then + fabs(fma(reach, v_angular[i], y_angular[i]))
        # neither an edge nor a cone pushes if y_0 >= sum of |y_i|
        pushes = (y[0] < y_friction) | (fma(reach, v[0], y[0]) < y_then)
        D = c.D
        if not has_pyramids(m) and c.dim > 1:
            D = fmax(D, c.Dt)  # an elliptic contact has Dt along the friction directions
        # D |v| (|y| + reach |v|), with the normal part of each sum added here
        terms = terms + where(
            pushes, D * (fabs(v[0]) + v_friction) * fma(reach, fabs(v[0]) + v_friction, fabs(y[0]) + y_friction), 0.0
        )
    return terms


@kernel
def count_contact_switches(m, d, a):
    """Returns a positive number if an edge starts or stops pushing along the step, or a cone changes its zone; else 0.

    Contacts with D = 0 are not in the world and do not count.
    """
    total = 0.0
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        c = d.contact[k]
        y, v = d.primal.con_y[k], d.primal.con_z[k]
        if c.dim == 1:
            n = one_sided_switch(y[0], v[0], a)
        elif has_pyramids(m):
            n = pyramid_switch(y, v, a)
            if c.dim > 3:
                n = n + angular_edges_switch(d, k, a)
        else:
            n = cone_switch(d, k, a)
        total = total + where(c.D > 0.0, n, 0.0)
    return total
