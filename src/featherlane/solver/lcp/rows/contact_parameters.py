"""Contact parameters that only the LCP contact model uses, each world with its own values.

If one geom has a higher priority, it alone sets them.  Else restitution, its least speed and slip are the larger of the
two, and friction is a force if one of the two geoms specifies it so.  ERP and CFM are those of the geom that sets them;
if both do, the softer: the smaller ERP, the larger CFM; if none does, the model's.  The direction of
friction is the first geom's or, if it has none, the second's.
User-defined contacts keep their own parameters.
Source: ODE manual, sec. "Contact" (dSurfaceParameters); how to mix them is a choice of this project.
"""

from featherlane.prelude import *
from featherlane.collision.mixing import MINMU
from featherlane.collision.user_contacts import NO_CANDIDATE
from featherlane.constraint.surface import leading_geoms, mix_restitution, set_slip_friction, surface_velocity
from featherlane.dynamics.body.kinematics import geom_pose
from featherlane.solver.lcp.rows.softness import own_or

ALONG = 1e-6  # a friction direction is ignored if its part along the surface is less than this of its length


@kernel
def coefficient(mu):
    """Returns a coefficient of friction; the least one, which stands for 0 in mixed contacts, becomes 0."""
    return where(mu > MINMU, mu, 0.0)


@kernel
def softer_erp(a, b):
    """Returns the smaller of two ERP; negative: none."""
    return where(a < 0.0, b, where(b < 0.0, a, fmin(a, b)))


@kernel
def mix_parameters(m, d, k):
    """Sets the parameters of the detected contact k, mixed from its leading geoms g and h (see module docstring)."""
    contact = d.contact[k]
    g, h = leading_geoms(m, d, k)
    geom = m.geom[g]
    contact.erp = own_or(softer_erp(geom.erp, m.geom_erp[h]), m.opt_erp[0])
    contact.cfm = own_or(fmax(geom.cfm, m.geom_cfm[h]), m.opt_cfm[0])
    for c in range(2):
        contact.compliance[c] = fmax(geom.slip[c], m.geom_slip[h, c])
    force = geom.frictionforce != 0 or m.geom_frictionforce[h] != 0
    contact.frictionforce = 1.0 if force else 0.0
    turn_tangents(m, d, k, g, h)


@kernel
def world_direction(m, d, g):
    """Returns the friction direction of geom g in world axes; a step does not compute geom_xmat of round geoms."""
    f = m.geom_fdir[g]
    if any_((f[0] != 0.0) | (f[1] != 0.0) | (f[2] != 0.0)):
        _, R = geom_pose(m, d, g)
        f = R @ f  # from the geom's frame to the world
    return f


@kernel
def turn_tangents(m, d, k, g, h):
    """Turns the contact's first tangent to the friction direction along the surface, if there is one."""
    c = d.contact[k]
    f, second = world_direction(m, d, g), world_direction(m, d, h)
    n, p, q = c.frame.rows
    none = dot(f, f) == 0.0
    f = where(none, second, f)
    t = fma(-dot(n, f), n, f)  # the part of f along the surface
    along2, size2 = dot(t, t), dot(f, f)
    turns = (along2 > ALONG * ALONG * size2) & (c.present > 0.0)
    t = 1.0 / sqrt(where(turns, along2, 1.0)) * t
    c.frame = join(n, where(turns, t, p), where(turns, cross(n, t), q))


@kernel
def add_belt(m, d, k):
    """Adds the tangential surface velocity, geom 1 minus geom 2, to con_belt; returns that about the normal."""
    c = d.contact[k]
    spin = 0.0
    if m.flg_surfacevel:
        p = c.pos
        v1, w1 = surface_velocity(m, d, c.geom[0], p)  # linear and angular velocity
        v2, w2 = surface_velocity(m, d, c.geom[1], p)
        v, (n, t, u) = v1 - v2, c.frame.rows
        d.con_belt[k][1] += dot(t, v)
        d.con_belt[k][2] += dot(u, v)
        spin = dot(n, w1 - w2)
    return spin


@kernel
def set_contact_parameters(m, d, k):
    """Sets all parameters of contact k and turns its tangents; returns the target spin of its surfaces."""
    c = d.contact[k]
    if c.cand == NO_CANDIDATE:  # user-defined: no geoms to mix
        c.erp = own_or(c.erp, m.opt_erp[0])
        c.cfm = own_or(c.cfm, m.opt_cfm[0])
    else:
        mix_parameters(m, d, k)
        mix_restitution(m, d, k)
        set_slip_friction(m, d, k)
        c.belt = zeros(3)
    return add_belt(m, d, k)
