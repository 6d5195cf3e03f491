"""The elliptic friction cone: a contact separates, sticks or slips.

In the basis scaled by friction (n, mu_1 t_1, mu_2 t_2, and for dimensions 4 and 6 the turns mu_3 n, mu_4 t_1, mu_5 t_2)
the directions other than n are equivalent.  With y = J a - aref and T = |(y_1, y_2, ..)| there are three zones,

    separates  y_0 >= T           cost 0                        force 0
    sticks   D y_0 + Dt T <= 0    cost D y_0^2 / 2 + Dt T^2 / 2    force (-D y_0, -Dt y_i)
    slips    between              cost E (T - y_0)^2 / 2          force E (T - y_0) (1, -y_i / T)

with Dt = D / mu^2 and E = D / (1 + mu^2), mu = mu_1 / sqrt(impratio).  Cost and force are continuous across zones.
A slipping contact's force is on the cone |force along the others| = force along n.  Its second derivative is positive
semidefinite because T > y_0.  With p = (1, -y_i / T) and the projection Q orthogonal to y_i / T, it is
    E (p p^T + (1 - y_0 / T) Q).

Source: MuJoCo documentation, Computation, "Primal problem" and "Friction cones"; MuJoCo scales by mu as well, which the
choice of Dt and E makes unnecessary.
Note:   a world without the contact has y = 0 and D = Dt = E = 0: it separates, and divisors are set to 1.
"""

from featherlane.prelude import *
from featherlane.solver.rows.coulomb import coulomb, coulomb_slope, coulomb_weights
from featherlane.solver.rows.rows import TURN, others

# a step that turns the slip direction by less than this, squared, is exact to float32 resolution
STRAIGHT = 1e-6


@kernel
def zone(d, k, y, T):
    """Returns (sticks, slips), masks at y along n and T across it; both 0 if the contact separates."""
    parts = y >= T
    sticks = not_(parts) & (fma(d.con_D[k], y, d.con_Dt[k] * T) <= 0.0)
    return sticks, not_(parts | sticks)


@kernel
def convex_cone(d, k, con_y):
    """Returns (force along n, factor of y_i for the other forces, cost)."""
    contact = d.contact[k]
    y, T = con_y[k][0], sqrt(others(d, k, con_y, con_y))
    D, Dt, E = contact.D, contact.Dt, contact.slip
    sticks, slips = zone(d, k, y, T)
    depth = T - y
    f, c = E * depth, 0.5 * E * depth * depth
    s = -f / where(slips, T, 1.0)
    f = where(slips, f, where(sticks, -(D * y), 0.0))
    s = where(slips, s, where(sticks, -Dt, 0.0))
    return f, s, where(slips, c, where(sticks, 0.5 * fma(D * y, y, Dt * T * T), 0.0))


@kernel
def cone_force(m, d, k, con_y):
    """Returns (force along n, factor of y_i for the other forces, cost), by the contact model's law."""
    if m.opt_contact_model == COULOMB:
        out = coulomb(d, k, con_y)
    else:
        out = convex_cone(d, k, con_y)
    return out


@kernel
def convex_slope(d, k, a, g, h):
    """Adds (d/da, d2/da2) of the contact's cost at step length a.

    Along the line T' = y.v / T and T'' = (v.v - T'^2) / T, over the directions other than n.
    """
    c = d.contact[k]
    v, v1, v2 = d.primal.con_z[k]
    y, y1, y2 = fma(a, d.primal.con_z[k], d.primal.con_y[k])
    yy, yv, vv = fma(y1, y1, y2 * y2), fma(y1, v1, y2 * v2), fma(v1, v1, v2 * v2)
    if c.dim > 3:
        z = d.primal.con_z[TURN, k]
        x = fma(a, z, d.primal.con_y[TURN, k])
        for i in unrolled(range(3)):
            yy, yv, vv = fma(x[i], x[i], yy), fma(x[i], z[i], yv), fma(z[i], z[i], vv)
    T, D, Dt, E = sqrt(yy), c.D, c.Dt, c.slip
    sticks, slips = zone(d, k, y, T)
    length = where(slips, T, 1.0)
    rate = yv / length
    bend = fmax(vv - rate * rate, 0.0) / length
    depth, sink = T - y, rate - v
    g1 = where(slips, E * depth * sink, where(sticks, fma(D * y, v, Dt * yv), 0.0))
    h1 = where(slips, E * fma(sink, sink, depth * bend), where(sticks, fma(D * v, v, Dt * vv), 0.0))
    return g + g1, h + h1


@kernel
def cone_slope(m, d, k, a, g, h):
    """Adds (d/da, d2/da2) of the contact's cost at step length a, by the contact model's law."""
    if m.opt_contact_model == COULOMB:
        out = coulomb_slope(d, k, a, g, h)
    else:
        out = convex_slope(d, k, a, g, h)
    return out


@kernel
def cone_switches(d, k, a):
    """Returns a positive number if the contact changes its zone, or slips and turns, between y and y + a v; else 0."""
    v, v1, v2 = d.primal.con_z[k]
    y, y1, y2 = d.primal.con_y[k]
    u1, u2 = fma(a, v1, y1), fma(a, v2, y2)
    yy, yv, vv, uu = fma(y1, y1, y2 * y2), fma(y1, v1, y2 * v2), fma(v1, v1, v2 * v2), fma(u1, u1, u2 * u2)
    if d.con_dim[k] > 3:
        x, z = d.primal.con_y[TURN, k], d.primal.con_z[TURN, k]
        u = fma(a, z, x)
        for i in unrolled(range(3)):
            yy, yv = fma(x[i], x[i], yy), fma(x[i], z[i], yv)
            vv, uu = fma(z[i], z[i], vv), fma(u[i], u[i], uu)
    sticks, slips = zone(d, k, y, sqrt(yy))
    sticks_then, slips_then = zone(d, k, fma(a, v, y), sqrt(uu))
    n = fabs(where(sticks, 1.0, 0.0) - where(sticks_then, 1.0, 0.0))
    n = n + fabs(where(slips, 1.0, 0.0) - where(slips_then, 1.0, 0.0))
    # the step across the slip, times the step, over T^2: the force's change beyond its linear model
    size = where(slips, yy, 1.0)
    across = fmax(vv - yv * yv / size, 0.0)
    return n + where(slips & (a * a * sqrt(across) * sqrt(vv) > STRAIGHT * size), 1.0, 0.0)


@kernel
def convex_weights(d, k):
    """Returns (w, e, q, b), 1 / T: the second derivative is w n n^T - e (n t^T + t n^T) + q t t^T + b I, t = y_i / T.

    I is over the directions other than n; e and q are 0 if the contact does not slip.
    """
    c = d.contact[k]
    y, T = d.primal.con_y[k][0], sqrt(others(d, k, d.primal.con_y, d.primal.con_y))
    D, E = c.D, c.slip
    sticks, slips = zone(d, k, y, T)
    inverse = 1.0 / where(slips, T, 1.0)
    part = E * y * inverse
    w = where(slips, E, where(sticks, D, 0.0))
    b = where(slips, E - part, where(sticks, c.Dt, 0.0))
    return (w, where(slips, E, 0.0), where(slips, part, 0.0), b), inverse


@kernel
def cone_weights(m, d, k):
    """Returns `convex_weights`, or those of Coulomb's law."""
    if m.opt_contact_model == COULOMB:
        out = coulomb_weights(d, k)
    else:
        out = convex_weights(d, k)
    return out


@kernel
def is_held(m, d, k):
    """Returns whether the contact sticks or slips."""
    reach = 0.0
    if m.opt_contact_model != COULOMB:
        reach = sqrt(others(d, k, d.primal.con_y, d.primal.con_y))
    return (d.primal.con_y[k][0] < reach) & (d.con_D[k] > 0.0)
