"""Sums over all contacts of a tile: cost, forces, derivatives along a line, and zone changes along a step.

Each function has a loop for pyramids, one for their turns, and one for elliptic cones.  In a single loop, the two rarer
cases would take registers from the first one, 3 % of a humanoid's step.
"""

from featherlane.prelude import *
from featherlane.solver.rows.cone import cone_force, cone_slope, cone_switches
from featherlane.solver.rows.pyramid import (
    edge_switches,
    one_sided_row,
    push_slope,
    pyramid,
    turning_pyramid,
    turning_slope,
    turning_switches,
)
from featherlane.solver.rows.rows import TURN, add_contact_force, add_contact_moment


# ---- force and cost ------------------------------------------------------------------------------------------------
@kernel
def pyramid_push(d, k, con_y):
    """Returns (forces along normal and tangents of the basis, cost) of contact k, a pyramid without its turns."""
    contact = d.contact[k]
    if contact.dim > 1:
        f, c = pyramid(contact.D, con_y[k])
    else:
        g, c = one_sided_row(contact.D, con_y[k][0])
        f = Vec3(g, 0.0, 0.0)
    return f, c


@kernel
def cone_push(m, d, k, con_y):
    """Returns the forces and cost of an elliptic cone, and the factor of the turns' y_i for their moments."""
    if d.con_dim[k] > 1:
        g, s, c = cone_force(m, d, k, con_y)
        f = Vec3(g, s * con_y[k][1], s * con_y[k][2])
    else:
        g, c = one_sided_row(d.con_D[k], con_y[k][0])
        s = 0.0
        f = Vec3(g, s, s)
    return f, s, c


@kernel
def contact_cost(m, d, con_y, cost):
    """Adds the costs of all contacts."""
    if has_pyramids(m):
        for k in range(d.ncon_slot[0]):
            _, c = pyramid_push(d, k, con_y)
            cost = cost + c
        for k in range(d.ncon_slot[0]):
            if d.con_dim[k] > 3:
                _, _, c = turning_pyramid(d, k, con_y)
                cost = cost + c
    else:
        for k in range(d.ncon_slot[0]):
            _, _, c = cone_push(m, d, k, con_y)
            cost = cost + c
    return cost


@kernel
def push_bodies(d, k, f):
    """Applies forces along normal and tangents of the basis to the bodies of contact k."""
    if d.con_dim[k] > 1:
        n, u, v = d.con_basis[k].rows
        add_contact_force(d, k, fma(f[0], n, fma(f[1], u, f[2] * v)))
    else:
        add_contact_force(d, k, f[0] * d.con_basis[k].rows[0])


@kernel
def turn_bodies(d, k, t):
    """Applies moments along the turns of the basis to the bodies of contact k."""
    n, u, v = d.con_basis[TURN, k].rows
    add_contact_moment(d, k, fma(t[0], n, fma(t[1], u, t[2] * v)))


@kernel
def push_contacts(m, d, cost):
    """Adds the costs of all contacts, and their forces to the bodies'."""
    if has_pyramids(m):
        for k in range(d.ncon_slot[0]):
            f, c = pyramid_push(d, k, d.primal.con_y)
            cost = cost + c
            push_bodies(d, k, f)
        for k in range(d.ncon_slot[0]):
            if d.con_dim[k] > 3:
                g, t, c = turning_pyramid(d, k, d.primal.con_y)
                cost = cost + c
                add_contact_force(d, k, g * d.con_basis[k].rows[0])
                turn_bodies(d, k, t)
    else:
        for k in range(d.ncon_slot[0]):
            f, s, c = cone_push(m, d, k, d.primal.con_y)
            cost = cost + c
            push_bodies(d, k, f)
            if d.con_dim[k] > 3:
                turn_bodies(d, k, s * d.primal.con_y[TURN, k])
    return cost


@kernel
def contact_push(m, d, k):
    """Returns (forces along the basis, moments along its turns) of contact k."""
    t = Vec3(zeros(3))
    if has_pyramids(m):
        f, _ = pyramid_push(d, k, d.primal.con_y)
        if d.con_dim[k] > 3:
            g, t, _ = turning_pyramid(d, k, d.primal.con_y)
            f = Vec3(f[0] + g, f[1], f[2])
    else:
        f, s, _ = cone_push(m, d, k, d.primal.con_y)
        if d.con_dim[k] > 3:
            t = s * d.primal.con_y[TURN, k]
    return f, t


@kernel
def store_contact_forces(m, d):
    """Stores forces of all contacts along normal and tangents, moments about them."""
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        f, t = contact_push(m, d, k)
        force = Vec3(f[0], c.friction[0] * f[1], c.friction[1] * f[2])
        c.force = join(force, tuple(c.friction[2 + i] * t[i] for i in range(3)))


# ---- along a line --------------------------------------------------------------------------------------------------
@kernel
def pyramid_slope(d, k, a):
    """Returns the derivatives, over D, of the cost of the edges of contact k, or of its single row without friction."""
    v, v1, v2 = d.primal.con_z[k]
    y, y1, y2 = fma(a, d.primal.con_z[k], d.primal.con_y[k])
    if d.con_dim[k] > 1:
        s, t = push_slope(y + y1, v + v1, 0.0, 0.0)
        s, t = push_slope(y - y1, v - v1, s, t)
        s, t = push_slope(y + y2, v + v2, s, t)
        s, t = push_slope(y - y2, v - v2, s, t)
    else:
        s, t = push_slope(y, v, 0.0, 0.0)
    return s, t


@kernel
def contact_slope(m, d, a, g, h):
    """Adds (d/da, d2/da2) of the cost of all contacts at step length a."""
    if has_pyramids(m):
        for e in range(d.primal.nslot[0]):
            k = d.primal.slot[e]
            s, t = pyramid_slope(d, k, a)
            g, h = fma(d.con_D[k], s, g), fma(d.con_D[k], t, h)
        for e in range(d.primal.nslot[0]):
            k = d.primal.slot[e]
            if d.con_dim[k] > 3:
                s, t = turning_slope(d, k, a)
                g, h = fma(d.con_D[k], s, g), fma(d.con_D[k], t, h)
    else:
        for e in range(d.primal.nslot[0]):
            k = d.primal.slot[e]
            if d.con_dim[k] > 1:
                g, h = cone_slope(m, d, k, a, g, h)
            else:
                s, t = pyramid_slope(d, k, a)
                g, h = fma(d.con_D[k], s, g), fma(d.con_D[k], t, h)
    return g, h


@kernel
def contact_rounding(m, d, reach, s):
    """Adds the absolute terms of all contacts' slopes, if they push at an end of a step of length `reach`.

    Normal and tangential terms are added separately, since the force depends on their differences.
    """
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        c = d.contact[k]
        y, z = d.primal.con_y[k], d.primal.con_z[k]
        across, tangents, moved = 0.0, 0.0, 0.0
        if c.dim > 1:
            for i in unrolled(range(1, 3)):
                across, tangents = across + fabs(z[i]), tangents + fabs(y[i])
                moved = moved + fabs(fma(reach, z[i], y[i]))
        if c.dim > 3:
            u, w = d.primal.con_y[TURN, k], d.primal.con_z[TURN, k]
            for i in unrolled(range(3)):
                across, tangents = across + fabs(w[i]), tangents + fabs(u[i])
                moved = moved + fabs(fma(reach, w[i], u[i]))
        push = (y[0] < tangents) | (fma(reach, z[0], y[0]) < moved)
        D = c.D
        if not has_pyramids(m) and c.dim > 1:
            D = fmax(D, c.Dt)
        s = s + where(push, D * (fabs(z[0]) + across) * fma(reach, fabs(z[0]) + across, fabs(y[0]) + tangents), 0.0)
    return s


@kernel
def contact_switches(m, d, a):
    """Returns a positive number if an edge starts or stops pushing along the step, or a cone changes; else 0."""
    n = 0.0
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        c = d.contact[k]
        y, v = d.primal.con_y[k], d.primal.con_z[k]
        if c.dim == 1:
            s = edge_switches(y[0], v[0], a)
        elif has_pyramids(m):
            s = edge_switches(y[0] + y[1], v[0] + v[1], a) + edge_switches(y[0] - y[1], v[0] - v[1], a)
            s = s + edge_switches(y[0] + y[2], v[0] + v[2], a) + edge_switches(y[0] - y[2], v[0] - v[2], a)
            if c.dim > 3:
                s = s + turning_switches(d, k, a)
        else:
            s = cone_switches(d, k, a)
        n = n + where(c.D > 0.0, s, 0.0)
    return n
