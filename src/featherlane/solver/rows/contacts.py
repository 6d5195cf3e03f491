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
from featherlane.solver.rows.rows import add_contact_force, add_contact_moment, turn_index


# ---- force and cost ------------------------------------------------------------------------------------------------
@kernel
def pyramid_push(d, k, con_y):
    """Returns (forces along normal and tangents of the basis, cost) of contact k, a pyramid without its turns."""
    if d.con_dim[k] > 1:
        f, c = pyramid(d.con_D[k], load3(con_y, 3 * k))
    else:
        g, c = one_sided_row(d.con_D[k], con_y[3 * k])
        f = (g, 0.0, 0.0)
    return f, c


@kernel
def cone_push(m, d, k, con_y):
    """Returns the forces and cost of an elliptic cone, and the factor of the turns' y_i for their moments."""
    if d.con_dim[k] > 1:
        g, s, c = cone_force(m, d, k, con_y)
        f = (g, s * con_y[3 * k + 1], s * con_y[3 * k + 2])
    else:
        g, c = one_sided_row(d.con_D[k], con_y[3 * k])
        s = 0.0
        f = (g, s, s)
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
        n, u, v = d.con_basis[k].rows[0], d.con_basis[k].rows[1], d.con_basis[k].rows[2]
        add_contact_force(d, k, fma(f[0], n, fma(f[1], u, f[2] * v)))
    else:
        add_contact_force(d, k, f[0] * d.con_basis[k].rows[0])


@kernel
def turn_bodies(d, k, t):
    """Applies moments along the turns of the basis to the bodies of contact k."""
    o = 9 * turn_index(d, k)
    u, v = load3(flat(d.con_basis), o + 3), load3(flat(d.con_basis), o + 6)
    add_contact_moment(d, k, axpy3(t[0], load3(flat(d.con_basis), o), axpy3(t[1], u, scale3(t[2], v))))


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
                turn_bodies(d, k, scale3(s, load3(d.primal.con_y, 3 * turn_index(d, k))))
    return cost


@kernel
def contact_push(m, d, k):
    """Returns (forces along the basis, moments along its turns) of contact k."""
    t = zeros(3)
    if has_pyramids(m):
        f, _ = pyramid_push(d, k, d.primal.con_y)
        if d.con_dim[k] > 3:
            g, t, _ = turning_pyramid(d, k, d.primal.con_y)
            f = (f[0] + g, f[1], f[2])
    else:
        f, s, _ = cone_push(m, d, k, d.primal.con_y)
        if d.con_dim[k] > 3:
            t = scale3(s, load3(d.primal.con_y, 3 * turn_index(d, k)))
    return f, t


@kernel
def store_contact_forces(m, d):
    """Stores forces of all contacts along normal and tangents, moments about them."""
    for k in range(d.ncon_slot[0]):
        f, t = contact_push(m, d, k)
        d.con_force[6 * k] = f[0]
        for i in range(2):
            d.con_force[6 * k + 1 + i] = d.con_friction[5 * k + i] * f[1 + i]
        for i in range(3):
            d.con_force[6 * k + 3 + i] = d.con_friction[5 * k + 2 + i] * t[i]


# ---- along a line --------------------------------------------------------------------------------------------------
@kernel
def pyramid_slope(d, k, a):
    """Returns the derivatives, over D, of the cost of the edges of contact k, or of its single row without friction."""
    y, v = fma(a, d.primal.con_z[3 * k], d.primal.con_y[3 * k]), d.primal.con_z[3 * k]
    if d.con_dim[k] > 1:
        v1, v2 = d.primal.con_z[3 * k + 1], d.primal.con_z[3 * k + 2]
        y1, y2 = fma(a, v1, d.primal.con_y[3 * k + 1]), fma(a, v2, d.primal.con_y[3 * k + 2])
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
        v, y = fabs(d.primal.con_z[3 * k]), fabs(d.primal.con_y[3 * k])
        across, tangents, moved = 0.0, 0.0, 0.0
        if d.con_dim[k] > 1:
            for i in range(3 * k + 1, 3 * k + 3):
                across, tangents = across + fabs(d.primal.con_z[i]), tangents + fabs(d.primal.con_y[i])
                moved = moved + fabs(fma(reach, d.primal.con_z[i], d.primal.con_y[i]))
        if d.con_dim[k] > 3:
            r = 3 * turn_index(d, k)
            for i in range(r, r + 3):
                across, tangents = across + fabs(d.primal.con_z[i]), tangents + fabs(d.primal.con_y[i])
                moved = moved + fabs(fma(reach, d.primal.con_z[i], d.primal.con_y[i]))
        push = (d.primal.con_y[3 * k] < tangents) | (fma(reach, d.primal.con_z[3 * k], d.primal.con_y[3 * k]) < moved)
        D = d.con_D[k]
        if not has_pyramids(m) and d.con_dim[k] > 1:
            D = fmax(D, d.con_Dt[k])
        s = s + where(push, D * (v + across) * fma(reach, v + across, y + tangents), 0.0)
    return s


@kernel
def contact_switches(m, d, a):
    """Returns a positive number if an edge starts or stops pushing along the step, or a cone changes; else 0."""
    n = 0.0
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        y, v = load3(d.primal.con_y, 3 * k), load3(d.primal.con_z, 3 * k)
        if d.con_dim[k] == 1:
            s = edge_switches(y[0], v[0], a)
        elif has_pyramids(m):
            s = edge_switches(y[0] + y[1], v[0] + v[1], a) + edge_switches(y[0] - y[1], v[0] - v[1], a)
            s = s + edge_switches(y[0] + y[2], v[0] + v[2], a) + edge_switches(y[0] - y[2], v[0] - v[2], a)
            if d.con_dim[k] > 3:
                s = s + turning_switches(d, k, a)
        else:
            s = cone_switches(d, k, a)
        n = n + where(d.con_D[k] > 0.0, s, 0.0)
    return n
