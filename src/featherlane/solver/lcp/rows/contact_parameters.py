"""Parameters that contacts have under the contact model lcp alone, each world from its own numbers.

The geom of higher priority, if there is one, sets them alone.  Else restitution, its least speed and slip are the
larger of the two, and friction is a force where one of the two says so.  ERP and CFM are those of the geom that has its
own, and where both do the softer: the smaller ERP, the larger CFM; where none does, the model's.  The direction of
friction is the first geom's, or where it has none the second's.
What the caller gives with a contact is that contact's own.
Source: ODE manual, sec. "Contact" (dSurfaceParameters); how to mix them is a choice of this project.
"""

from featherlane.prelude import *
from featherlane.collision.given import NO_CANDIDATE
from featherlane.collision.mixing import FIRST, MINMU, SECOND, leading
from featherlane.dynamics.body.kinematics import geom_pose
from featherlane.solver.lcp.rows.softness import own_or
from featherlane.solver.rows.surface import surface_velocity

ALONG = 1e-6  # a direction of friction with less than this of its length along the surface is none


@kernel
def coefficient(mu):
    """A coefficient of friction: the least one, which stands for 0 where contacts are mixed, is none."""
    return where(mu > MINMU, mu, 0.0)


@kernel
def softer_erp(a, b):
    """The smaller of two ERP, negative: none."""
    return where(a < 0.0, b, where(b < 0.0, a, fmin(a, b)))


@kernel
def mix_parameters(m, d, k):
    """The parameters of a detected contact, mixed from its two geoms."""
    g, h = d.con_geom[2 * k], d.con_geom[2 * k + 1]
    lead = leading(m, d.con_pair[k], g, h)
    if lead == FIRST:
        h = g
    elif lead == SECOND:
        g = h
    d.con_erp[k] = own_or(softer_erp(m.geom_erp[g], m.geom_erp[h]), m.opt_erp[0])
    d.con_cfm[k] = own_or(fmax(m.geom_cfm[g], m.geom_cfm[h]), m.opt_cfm[0])
    d.con_restitution[k] = fmax(m.geom_restitution[g], m.geom_restitution[h])
    d.con_restitution_vel[k] = fmax(m.geom_restitution_vel[g], m.geom_restitution_vel[h])
    for c in range(2):
        d.con_compliance[2 * k + c] = fmax(m.geom_slip[2 * g + c], m.geom_slip[2 * h + c])
    force = m.geom_frictionforce[g] != 0 or m.geom_frictionforce[h] != 0
    d.con_frictionforce[k] = real(d, 1.0 if force else 0.0)
    turn_tangents(m, d, k, g, h)


@kernel
def world_direction(m, d, g):
    """The direction of friction of geom g in world axes; where geoms are round a step makes no full geom_xmat."""
    f = load3(m.geom_fdir, 3 * g)
    if any_((f[0] != 0.0) | (f[1] != 0.0) | (f[2] != 0.0)):
        _, R = geom_pose(m, d, g)
        f = mat_mul_vec(R, f)
    return f


@kernel
def turn_tangents(m, d, k, g, h):
    """The contact's first tangent <- the direction of friction along the surface, where there is one."""
    n, f, second = load3(d.con_frame, 9 * k), world_direction(m, d, g), world_direction(m, d, h)
    none = dot3(f, f) == 0.0
    f = (where(none, second[0], f[0]), where(none, second[1], f[1]), where(none, second[2], f[2]))
    t = axpy3(-dot3(n, f), n, f)
    length, size = dot3(t, t), dot3(f, f)
    turns = (length > ALONG * ALONG * size) & (d.con_present[k] > 0.0)
    t = scale3(1.0 / sqrt(where(turns, length, 1.0)), t)
    u = cross(n, t)
    for c in range(3):
        d.con_frame[9 * k + 3 + c] = where(turns, t[c], d.con_frame[9 * k + 3 + c])
        d.con_frame[9 * k + 6 + c] = where(turns, u[c], d.con_frame[9 * k + 6 + c])


@kernel
def add_belt(m, d, k):
    """con_belt += what the surfaces' own motion makes of J v = 0; returns the spin that it makes."""
    spin = zero(d)
    if m.flg_surfacevel:
        p = load3(d.con_pos, 3 * k)
        v1, w1 = surface_velocity(m, d, d.con_geom[2 * k], p)
        v2, w2 = surface_velocity(m, d, d.con_geom[2 * k + 1], p)
        v = sub3(v1, v2)
        d.con_belt[3 * k + 1] = d.con_belt[3 * k + 1] + dot3(load3(d.con_frame, 9 * k + 3), v)
        d.con_belt[3 * k + 2] = d.con_belt[3 * k + 2] + dot3(load3(d.con_frame, 9 * k + 6), v)
        spin = dot3(load3(d.con_frame, 9 * k), sub3(w1, w2))
    return spin


@kernel
def set_parameters(m, d, k):
    """All parameters of contact k, whose tangents turn with them; returns the spin that its surfaces seek."""
    if d.con_cand[k] == NO_CANDIDATE:
        d.con_erp[k] = own_or(d.con_erp[k], m.opt_erp[0])
        d.con_cfm[k] = own_or(d.con_cfm[k], m.opt_cfm[0])
    else:
        mix_parameters(m, d, k)
        store3(d.con_belt, 3 * k, zeros(d, 3))
    return add_belt(m, d, k)
