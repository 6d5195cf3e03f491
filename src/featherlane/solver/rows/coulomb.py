"""Coulomb's law: the friction bound is the normal force, which does not depend on slip.

In the basis of the cone (cone.py), with y = J a - aref and T = |(y_1, y_2, ..)|,

    normal     f_0 = max(-D y_0, 0)
    friction   f_i = -min(Dt, f_0 / T) y_i        sticks if Dt T <= f_0, else slips

A slipping contact has the force mu f_0 opposite to its slip.  In the convex model, slip adds T to the normal reference,
which lifts sliding bodies.  Here the normal row is a spring and damper that friction does not change.

The law is not the gradient of a cost: d f_i / d y_0 = D y_i / T while it slips, but d f_0 / d y_i = 0.  With the bound
f_0 fixed it is the gradient of a convex cost (Tresca friction).  The weights below are its second derivative, with the
bound of the current point.  The solver (primal/primal_dual.py) adds the change of the bound.  It searches along a
line with the forces of its linear model, or with fixed bounds.
Source: Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems (2008), sec. 13.7 (fixed point on the
    bound); Alart and Curnier (1991), the nonsymmetric derivative.
"""

from featherlane.prelude import *
from featherlane.solver.rows.rows import TURN, others


@kernel
def bound(d, k, con_y):
    """Returns the normal force of contact k, which bounds its friction."""
    return fmax(-(d.con_D[k] * con_y[k][0]), 0.0)


@kernel
def coulomb(d, k, con_y):
    """Returns (force along n, factor of y_i for the other forces, cost with the bound fixed)."""
    y, T, f, Dt = con_y[k][0], sqrt(others(d, k, con_y, con_y)), bound(d, k, con_y), d.con_Dt[k]
    sticks = Dt * T <= f
    s = where(sticks, Dt, f / where(sticks, 1.0, T))
    across = where(sticks, 0.5 * Dt * T * T, f * (T - 0.5 * f / where(sticks, 1.0, Dt)))
    return f, -s, fma(-0.5 * f, fmin(y, 0.0), across)


@kernel
def model_friction(d, k):
    """Returns (c, w): the friction of the solver's linear model is c t_i - w y_i, see primal_dual.py."""
    w = d.coulomb.zone[k][0]
    return fma(w, others(d, k, d.coulomb.zone, d.primal.con_y), bound(d, k, d.primal.con_y)), w


@kernel
def model_slope(d, k, a, g, h):
    """Adds (s, ds/da) at step length a: s = -f . J p with the forces f of the solver's linear model."""
    w, v = d.coulomb.zone[k][0], d.primal.con_z[k][0]
    y = fma(a, v, d.primal.con_y[k][0])
    ty, tv = others(d, k, d.coulomb.zone, d.primal.con_y), others(d, k, d.coulomb.zone, d.primal.con_z)
    yv, vv = others(d, k, d.primal.con_y, d.primal.con_z), others(d, k, d.primal.con_z, d.primal.con_z)
    across, bend = fma(-ty, tv, yv), fmax(fma(-tv, tv, vv), 0.0)
    push = where(y < 0.0, d.con_D[k] * (v + tv), 0.0)
    return fma(push, y, fma(w, fma(a, bend, across), g)), fma(push, v, fma(w, bend, h))


@kernel
def tresca_slope(d, k, a, g, h):
    """Adds (d/da, d2/da2) of the contact's cost at step length a, with the bound of the start."""
    c = d.contact[k]
    D, Dt, f = c.D, c.Dt, bound(d, k, d.primal.con_y)
    v, v1, v2 = d.primal.con_z[k]
    y, y1, y2 = fma(a, d.primal.con_z[k], d.primal.con_y[k])
    yy, yv, vv = fma(y1, y1, y2 * y2), fma(y1, v1, y2 * v2), fma(v1, v1, v2 * v2)
    if c.dim > 3:
        z = d.primal.con_z[TURN, k]
        x = fma(a, z, d.primal.con_y[TURN, k])
        for i in unrolled(range(3)):
            yy, yv, vv = fma(x[i], x[i], yy), fma(x[i], z[i], yv), fma(z[i], z[i], vv)
    T = sqrt(yy)
    sticks = Dt * T <= f
    inverse = 1.0 / where(sticks, 1.0, T)
    rate, part = yv * inverse, f * inverse
    bend = fmax(fma(-rate, rate, vv), 0.0)
    Dv = where(y < 0.0, D * v, 0.0)
    return g + fma(Dv, y, where(sticks, Dt, part) * yv), h + fma(Dv, v, where(sticks, Dt * vv, part * bend))


@kernel
def coulomb_slope(d, k, a, g, h):
    """Adds `tresca_slope` or `model_slope`, as the solver has selected."""
    if d.coulomb.fixed[0] == 1:
        out = tresca_slope(d, k, a, g, h)
    else:
        out = model_slope(d, k, a, g, h)
    return out


@kernel
def coulomb_weights(d, k):
    """Returns (w, e, q, b), 1 / T, as `cone_weights`, with the bound fixed."""
    T, f, Dt = sqrt(others(d, k, d.primal.con_y, d.primal.con_y)), bound(d, k, d.primal.con_y), d.con_Dt[k]
    sticks = Dt * T <= f
    inverse = 1.0 / where(sticks, 1.0, T)
    part = f * inverse
    held = d.primal.con_y[k][0] < 0.0
    w, b = where(held, d.con_D[k], 0.0), where(sticks, where(held, Dt, 0.0), part)
    return (w, 0.0, where(sticks, 0.0, -part), b), where(sticks, 0.0, inverse)


@kernel
def slip_rate(d, k):
    """Returns (slips, D / T): a slipping contact has d f_i / d y_0 = (D / T) y_i beyond `coulomb_weights`."""
    T, f = sqrt(others(d, k, d.primal.con_y, d.primal.con_y)), bound(d, k, d.primal.con_y)
    slips = (d.con_Dt[k] * T > f) & (f > 0.0)
    return slips, where(slips, d.con_D[k] / where(slips, T, 1.0), 0.0)
