"""The elliptic friction cone: a contact separates, sticks or slips.

In the basis scaled by friction (n, mu_1 t_1, mu_2 t_2, and for dimensions 4 and 6 the rotation axes mu_3 n, mu_4 t_1,
mu_5 t_2) the directions other than n are equivalent.  With y = J a - aref and T = |(y_1, y_2, ..)| there are three
zones,

    separates  y_0 >= T           cost 0                        force 0
    sticks   D y_0 + Dt T <= 0    cost D y_0^2 / 2 + Dt T^2 / 2    force (-D y_0, -Dt y_i)
    slips    between              cost E (T - y_0)^2 / 2          force E (T - y_0) (1, -y_i / T)

with Dt = D / mu^2 and E = D / (1 + mu^2), mu = mu_1 / sqrt(impratio).  Cost and force are continuous across zones.
A slipping contact's force is on the cone |friction| = force along n.  Its second derivative is positive
semidefinite because T > y_0.  With p = (1, -y_i / T) and the projection Q orthogonal to y_i / T, it is
    E (p p^T + (1 - y_0 / T) Q).

Names: con_y[k], con_y[ANGULAR, k]: y along n and the tangents, and about the rotation axes; con_z: J p of the step, in
the same layout.  y, v: values along n; y_i, v_i: along the friction directions, all but n; T as above; D, Dt, E: con_D,
con_Dt, con_slip.  In dimension 4 the last two rotation axes, and values along them, are 0.
Sums over the friction directions are yy = sum of y_i^2, yv = sum of y_i v_i, vv = sum of v_i^2.
The law of Coulomb (coulomb.py) has functions of the same form; opt_contact_model selects between the two.
Source: MuJoCo documentation, Computation, "Primal problem" and "Friction cones"; MuJoCo scales by mu as well, which the
choice of Dt and E makes unnecessary.
Note:   a world without the contact has y = 0 and D = Dt = E = 0: it separates, and divisors are set to 1.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.rows.coulomb import coulomb_force, coulomb_slope, coulomb_weights
from featherlane.engine.solver.rows.rows import ANGULAR, friction_dot, line_sums

# a step that turns the slip direction by less than this, squared, is exact to float32 resolution
STRAIGHT = 1e-6


@kernel
def cone_zone(d, k, y, T):
    """Returns (sticks, slips): masks of worlds by the zone of contact k; both are false if it separates.

    y: J a - aref along n.  T: its length along the friction directions.
    """
    separates = y >= T
    sticks = not_(separates) & (fma(d.con_D[k], y, d.con_Dt[k] * T) <= 0.0)
    return sticks, not_(separates | sticks)


@kernel
def convex_cone_force(d, k, con_y):
    """Returns (force along n, factor s, cost): the force along friction direction i is s y_i.

    slips       force E (T - y),  s = -E (T - y) / T,  cost E (T - y)^2 / 2
    sticks      force -D y,       s = -Dt,             cost D y^2 / 2 + Dt T^2 / 2
    separates   all are 0
    """
    contact = d.contact[k]
    y = con_y[k][0]
    T = sqrt(friction_dot(d, k, con_y, con_y))
    D, Dt, E = contact.D, contact.Dt, contact.slip
    sticks, slips = cone_zone(d, k, y, T)
    depth = T - y
    force = E * depth
    slip_cost = 0.5 * E * depth * depth
    s = -force / where(slips, T, 1.0)
    force = where(slips, force, where(sticks, -(D * y), 0.0))
    s = where(slips, s, where(sticks, -Dt, 0.0))
    cost = where(slips, slip_cost, where(sticks, 0.5 * fma(D * y, y, Dt * T * T), 0.0))
    return force, s, cost


@kernel
def cone_force(m, d, k, con_y):
    """Returns (force along n, factor s, cost) by the contact model's law: the force along direction i is s y_i."""
    return coulomb_force(d, k, con_y) if m.opt_contact_model == COULOMB else convex_cone_force(d, k, con_y)


@kernel
def convex_slope(d, k, a, g, h):
    """Returns (g, h) plus the first and second derivative of contact k's cost along the line, at step length a.

    With y, y_i at step length a, and sums over the friction directions: T' = yv / T and T'' = (vv - T'^2) / T.
        slips:   g += E (T - y) (T' - v),       h += E ((T' - v)^2 + (T - y) T'')
        sticks:  g += D y v + Dt yv,            h += D v^2 + Dt vv
    In the code dT, ddT are T', T'', and depth = T - y, d_depth = T' - v.
    """
    c = d.contact[k]
    y, v, yy, yv, vv = line_sums(d, k, a)
    T = sqrt(yy)
    D, Dt, E = c.D, c.Dt, c.slip
    sticks, slips = cone_zone(d, k, y, T)
    divisor = where(slips, T, 1.0)
    dT = yv / divisor
    ddT = fmax(vv - dT * dT, 0.0) / divisor
    depth, d_depth = T - y, dT - v
    slope = where(slips, E * depth * d_depth, where(sticks, fma(D * y, v, Dt * yv), 0.0))
    curvature = where(slips, E * fma(d_depth, d_depth, depth * ddT), where(sticks, fma(D * v, v, Dt * vv), 0.0))
    return g + slope, h + curvature


@kernel
def cone_slope(m, d, k, a, g, h):
    """Returns (g, h) plus the derivatives of contact k's cost at step length a, by the contact model's law."""
    return coulomb_slope(d, k, a, g, h) if m.opt_contact_model == COULOMB else convex_slope(d, k, a, g, h)


@kernel
def cone_switch(d, k, a):
    """Returns a positive number if contact k changes its zone between y and y + a v, or its slip turns; else 0.

    The slip turns if a^2 |v across| |v| > STRAIGHT T^2, with v over the friction directions, and `v across` its part
    orthogonal to y_i.  The left side over T^2 is the part of the force that its linear model misses.
    """
    v, v1, v2 = d.primal.con_z[k]
    y, y1, y2 = d.primal.con_y[k]
    # y, v: along n;  y1, y2, v1, v2: along the tangents;  u = y + a v: friction directions at the end of the step
    u1, u2 = fma(a, v1, y1), fma(a, v2, y2)
    yy, yv, vv, uu = fma(y1, y1, y2 * y2), fma(y1, v1, y2 * v2), fma(v1, v1, v2 * v2), fma(u1, u1, u2 * u2)
    if d.con_dim[k] > 3:
        y_angular, v_angular = d.primal.con_y[ANGULAR, k], d.primal.con_z[ANGULAR, k]
        u_angular = fma(a, v_angular, y_angular)
        for i in unrolled(range(3)):
            yy, yv = fma(y_angular[i], y_angular[i], yy), fma(y_angular[i], v_angular[i], yv)
            vv, uu = fma(v_angular[i], v_angular[i], vv), fma(u_angular[i], u_angular[i], uu)
    sticks, slips = cone_zone(d, k, y, sqrt(yy))
    sticks_then, slips_then = cone_zone(d, k, fma(a, v, y), sqrt(uu))
    # number of the masks `sticks` and `slips` that differ between both ends
    changes = fabs(where(sticks, 1.0, 0.0) - where(sticks_then, 1.0, 0.0))
    changes = changes + fabs(where(slips, 1.0, 0.0) - where(slips_then, 1.0, 0.0))
    T_squared = where(slips, yy, 1.0)
    across_squared = fmax(vv - yv * yv / T_squared, 0.0)  # |v across|^2
    turns = slips & (a * a * sqrt(across_squared) * sqrt(vv) > STRAIGHT * T_squared)
    return changes + where(turns, 1.0, 0.0)


@kernel
def convex_weights(d, k):
    """Returns ((w, e, q, b), 1 / T) of the second derivative of contact k's cost at primal.con_y.

    It is w n n^T - e (n t^T + t n^T) + q t t^T + b I, with t = y_i / T the direction of slip, and I over the friction
    directions; 0 if the contact separates.  If it slips, it is E (p p^T + (1 - y / T) Q), p = n - t, Q = I - t t^T.
        slips:   w = e = E,  q = E y / T,  b = E - q
        sticks:  w = D,      e = q = 0,    b = Dt
    """
    c = d.contact[k]
    y = d.primal.con_y[k][0]
    T = sqrt(friction_dot(d, k, d.primal.con_y, d.primal.con_y))
    D, E = c.D, c.slip
    sticks, slips = cone_zone(d, k, y, T)
    inverse_T = 1.0 / where(slips, T, 1.0)
    q = E * y * inverse_T
    w = where(slips, E, where(sticks, D, 0.0))
    b = where(slips, E - q, where(sticks, c.Dt, 0.0))
    return (w, where(slips, E, 0.0), where(slips, q, 0.0), b), inverse_T


@kernel
def cone_weights(m, d, k):
    """Returns `convex_weights`, or those of Coulomb's law (`coulomb_weights`), in the same form."""
    return coulomb_weights(d, k) if m.opt_contact_model == COULOMB else convex_weights(d, k)


@kernel
def is_held(m, d, k):
    """Returns the mask of worlds in which contact k sticks or slips: y < T; by Coulomb's law y < 0."""
    T = 0.0  # Coulomb's law: the normal force does not depend on T
    if m.opt_contact_model != COULOMB:
        T = sqrt(friction_dot(d, k, d.primal.con_y, d.primal.con_y))
    return (d.primal.con_y[k][0] < T) & (d.con_D[k] > 0.0)
