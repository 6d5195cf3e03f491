"""Coulomb's law: the friction bound is the normal force, which does not depend on slip.

In the basis of the cone (cone.py), with y = J a - aref and T = |(y_1, y_2, ..)|,

    normal     f_0 = max(-D y_0, 0)
    friction   f_i = -min(Dt, f_0 / T) y_i        sticks if Dt T <= f_0, else slips

A slipping contact has the force mu f_0 opposite to its slip.  In the convex model, slip adds T to the normal reference,
which lifts sliding bodies.  Here the normal row is a spring and damper that friction does not change.

The law is not the gradient of a cost: d f_i / d y_0 = D y_i / T while it slips, but d f_0 / d y_i = 0.  With the bound
f_0 fixed it is the gradient of a convex cost (Tresca friction).  The weights below are its second derivative, with the
bound of the current point.
Names: con_y[k], con_y[ANGULAR, k]: y along n and the tangents, and about the rotation axes; con_z: J p of the step, in
the same layout.  y, v: values along n; y_i, v_i: along the friction directions, all but n; T as above; D, Dt: con_D,
con_Dt; f_0: the bound.
Sums over the friction directions are yy = sum of y_i^2, yv = sum of y_i v_i, vv = sum of v_i^2.  coulomb.zone[k] holds
the solver's linear model: w in its place of n, and the slip direction t in those of the friction directions.
The solver (primal/primal_dual.py) adds the change of the bound.  It searches along a line with the forces of its linear
model, or with fixed bounds.
Source: Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems (2008), sec. 13.7 (fixed point on the
    bound); Alart and Curnier (1991), the nonsymmetric derivative.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.rows.rows import friction_dot, line_sums


@kernel
def friction_bound(d, k, con_y):
    """Returns the normal force of contact k, which bounds its friction."""
    return fmax(-(d.con_D[k] * con_y[k][0]), 0.0)


@kernel
def coulomb_force(d, k, con_y):
    """Returns (force f_0 along n, factor s, cost with the bound fixed): the force along friction direction i is s y_i.

    s = -min(Dt, f_0 / T).
    cost = -f_0 min(y_0, 0) / 2, plus Dt T^2 / 2 if it sticks, f_0 (T - f_0 / (2 Dt)) if it slips.
    """
    y = con_y[k][0]
    T = sqrt(friction_dot(d, k, con_y, con_y))
    f_0 = friction_bound(d, k, con_y)
    Dt = d.con_Dt[k]
    sticks = Dt * T <= f_0
    minus_s = where(sticks, Dt, f_0 / where(sticks, 1.0, T))  # if it slips, T > 0 and Dt > 0
    friction_cost = where(sticks, 0.5 * Dt * T * T, f_0 * (T - 0.5 * f_0 / where(sticks, 1.0, Dt)))
    return f_0, -minus_s, fma(-0.5 * f_0, fmin(y, 0.0), friction_cost)


@kernel
def model_friction(d, k):
    """Returns (c, w): the friction of the solver's linear model is c t_i - w y_i, see primal_dual.py.

    c = f_0 + w t . y.
    """
    w = d.coulomb.zone[k][0]
    c = fma(w, friction_dot(d, k, d.coulomb.zone, d.primal.con_y), friction_bound(d, k, d.primal.con_y))
    return c, w


@kernel
def model_slope(d, k, a, g, h):
    """Returns (g + s, h + ds/da) at step length a: s = -f . J p with the forces f of the solver's linear model.

    f_0 = max(-D (y + a v), 0) and f_i = (f_0 + w t.u) t_i - w u_i, with u_i = y_i + a v_i.  So if f_0 > 0,
        s = D (v + t.v) (y + a v) + w (yv - t.y t.v + a (vv - (t.v)^2)),
        ds/da = D (v + t.v) v + w (vv - (t.v)^2);
    if f_0 = 0, the terms with D are 0.
    In the code ty, tv are t.y, t.v, sums over the friction directions; y is already y + a v; push = D (v + t.v), or 0
    if f_0 = 0; across = yv - t.y t.v, and d_across = vv - (t.v)^2.
    """
    w, v = d.coulomb.zone[k][0], d.primal.con_z[k][0]
    y = fma(a, v, d.primal.con_y[k][0])
    ty, tv = friction_dot(d, k, d.coulomb.zone, d.primal.con_y), friction_dot(d, k, d.coulomb.zone, d.primal.con_z)
    yv, vv = friction_dot(d, k, d.primal.con_y, d.primal.con_z), friction_dot(d, k, d.primal.con_z, d.primal.con_z)
    across = fma(-ty, tv, yv)
    d_across = fmax(fma(-tv, tv, vv), 0.0)
    push = where(y < 0.0, d.con_D[k] * (v + tv), 0.0)
    # both are sums of the part of the friction across t, and the part of the normal force
    slope = fma(push, y, fma(w, fma(a, d_across, across), g))
    curvature = fma(push, v, fma(w, d_across, h))
    return slope, curvature


@kernel
def tresca_slope(d, k, a, g, h):
    """Returns (g, h) plus the derivatives of contact k's cost at step length a, with the bound f_0 at the line's start.

    normal:  g += D y v,          h += D v^2           if y < 0
    sticks:  g += Dt yv,          h += Dt vv
    slips:   g += f_0 yv / T,     h += f_0 (vv - (yv / T)^2) / T
    Here y, y_i are those at step length a; dT = yv / T, across = vv - dT^2, f_over_T = f_0 / T, Dv = D v if y < 0.
    """
    c = d.contact[k]
    D, Dt = c.D, c.Dt
    f_0 = friction_bound(d, k, d.primal.con_y)
    y, v, yy, yv, vv = line_sums(d, k, a)
    T = sqrt(yy)
    sticks = Dt * T <= f_0
    inverse_T = 1.0 / where(sticks, 1.0, T)
    dT, f_over_T = yv * inverse_T, f_0 * inverse_T
    across = fmax(fma(-dT, dT, vv), 0.0)
    Dv = where(y < 0.0, D * v, 0.0)
    g = g + fma(Dv, y, where(sticks, Dt, f_over_T) * yv)
    h = h + fma(Dv, v, where(sticks, Dt * vv, f_over_T * across))
    return g, h


@kernel
def coulomb_slope(d, k, a, g, h):
    """Returns (g, h) of `tresca_slope` if the friction bounds are fixed (coulomb.fixed = 1), else of `model_slope`."""
    return tresca_slope(d, k, a, g, h) if d.coulomb.fixed[0] == 1 else model_slope(d, k, a, g, h)


@kernel
def coulomb_weights(d, k):
    """Returns ((w, e, q, b), 1 / T) in the form of `convex_weights` of cone.py, with the bound fixed.

    Form: w n n^T - e (n t^T + t n^T) + q t t^T + b I.
        all:     w = D if y < 0 (the contact pushes), else 0;  e = 0
        sticks:  b = Dt if it pushes;  q = 0
        slips:   b = f_0 / T,  q = -b, so that b I + q t t^T acts across the slip
    """
    T = sqrt(friction_dot(d, k, d.primal.con_y, d.primal.con_y))
    f_0 = friction_bound(d, k, d.primal.con_y)
    Dt = d.con_Dt[k]
    sticks = Dt * T <= f_0
    inverse_T = 1.0 / where(sticks, 1.0, T)
    f_over_T = f_0 * inverse_T
    pushes = d.primal.con_y[k][0] < 0.0
    w = where(pushes, d.con_D[k], 0.0)
    b = where(sticks, where(pushes, Dt, 0.0), f_over_T)
    return (w, 0.0, where(sticks, 0.0, -f_over_T), b), where(sticks, 0.0, inverse_T)


@kernel
def slip_rate(d, k):
    """Returns (mask of worlds in which contact k slips, rate D / T there, else 0).

    d f_i / d y_0 = (D / T) y_i is the part of the derivative that `coulomb_weights` leaves out.
    """
    T = sqrt(friction_dot(d, k, d.primal.con_y, d.primal.con_y))
    f_0 = friction_bound(d, k, d.primal.con_y)
    slips = (d.con_Dt[k] * T > f_0) & (f_0 > 0.0)
    return slips, where(slips, d.con_D[k] / where(slips, T, 1.0), 0.0)
