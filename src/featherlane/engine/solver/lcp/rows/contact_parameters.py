"""Contact parameters that only the LCP contact model uses, each world with its own values.

If one geom has a higher priority, it alone sets them.  Else restitution, its least speed and slip are the larger of the
two, and friction is a force if one of the two geoms specifies it so.  ERP and CFM are those of the geom that sets them;
if both do, the softer: the smaller ERP, the larger CFM; if none does, the model's.  The direction of
friction is the first geom's or, if it has none, the second's.
User-defined contacts keep their own parameters; their con_cand is NO_CANDIDATE, as they come from no pair of geoms.
Symbols: k: a contact;  g: the geom that sets its parameters;  h: the other one, or g again if g alone sets them.
    `leading_geoms` returns (g, h);  `mix_restitution` sets con_restitution and con_restitution_vel;
    `set_slip_friction` sets both sliding coefficients, between static and kinetic friction by the slip velocity;
    `surface_velocity`: (linear, angular) velocity of a geom's moving surface relative to its body, in world axes;
    `geom_pose`: (position, rotation matrix) of a geom.   con_frame: rows normal, first and second tangent.
Source: ODE manual, sec. "Contact" (dSurfaceParameters); how to mix them is a choice of this project.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.mixing import MINMU
from featherlane.engine.collision.user_contacts import NO_CANDIDATE
from featherlane.engine.constraint.surface import leading_geoms, mix_restitution, set_slip_friction, surface_velocity
from featherlane.engine.dynamics.body.kinematics import geom_pose
from featherlane.engine.solver.lcp.rows.softness import own_or_model_value

ALONG = 1e-6  # a friction direction is ignored if its part along the surface is less than this of its length


@kernel
def friction_without_minimum(mu):
    """Returns a coefficient of friction, or 0 if it is MINMU, the least value of mixed contacts, which stands for 0."""
    return where(mu > MINMU, mu, 0.0)


@kernel
def softer_erp(a, b):
    """Returns the smaller of two ERP, of those that are set; a negative one is not set."""
    return where(a < 0.0, b, where(b < 0.0, a, fmin(a, b)))


@kernel
def mix_parameters(m, d, k):
    """Sets erp, cfm, compliance, frictionforce and the tangents of a detected contact, mixed from its two geoms."""
    contact = d.contact[k]
    g, h = leading_geoms(m, d, k)
    geom = m.geom[g]
    contact.erp = own_or_model_value(softer_erp(geom.erp, m.geom_erp[h]), m.opt_erp[0])
    contact.cfm = own_or_model_value(fmax(geom.cfm, m.geom_cfm[h]), m.opt_cfm[0])
    for c in range(2):
        contact.compliance[c] = fmax(geom.slip[c], m.geom_slip[h, c])
    force = geom.frictionforce != 0 or m.geom_frictionforce[h] != 0
    contact.frictionforce = 1.0 if force else 0.0
    turn_tangents(m, d, k, g, h)


@kernel
def world_direction(m, d, g):
    """Returns the friction direction of geom g in world axes; a step does not compute geom_xmat of round geoms."""
    direction = m.geom_fdir[g]
    if any_((direction[0] != 0.0) | (direction[1] != 0.0) | (direction[2] != 0.0)):
        _, R = geom_pose(m, d, g)
        direction = R @ direction  # from the geom's frame to the world
    return direction


@kernel
def turn_tangents(m, d, k, g, h):
    """Turns the contact's first tangent to the part along the surface of the friction direction of geom g, else h.

    The tangents stay if no geom has a direction, or if it is normal to the surface.
    """
    c = d.contact[k]
    direction, direction_h = world_direction(m, d, g), world_direction(m, d, h)
    n, old_t1, old_t2 = c.frame.rows
    none = dot(direction, direction) == 0.0
    direction = where(none, direction_h, direction)
    tangent = fma(-dot(n, direction), n, direction)
    square, size = dot(tangent, tangent), dot(direction, direction)
    turns = (square > ALONG * ALONG * size) & (c.present > 0.0)
    tangent = 1.0 / sqrt(where(turns, square, 1.0)) * tangent
    c.frame = join(n, where(turns, tangent, old_t1), where(turns, cross(n, tangent), old_t2))


@kernel
def add_belt(m, d, k):
    """Adds the difference of surface velocities to con_belt; returns that of the spins about the normal [rad/s].

    The surfaces stick if body 2 moves relative to body 1 by v1 - v2, surface 1 minus surface 2.
    """
    c = d.contact[k]
    spin = 0.0
    if m.flg_surfacevel:
        position = c.pos
        # linear and angular velocity of each surface
        v1, w1 = surface_velocity(m, d, c.geom[0], position)
        v2, w2 = surface_velocity(m, d, c.geom[1], position)
        v = v1 - v2
        normal, t1, t2 = c.frame.rows
        d.con_belt[k][1] += dot(t1, v)
        d.con_belt[k][2] += dot(t2, v)
        spin = dot(normal, w1 - w2)
    return spin


@kernel
def set_contact_parameters(m, d, k):
    """Sets all parameters of contact k and turns its tangents; returns the target spin about its normal [rad/s]."""
    c = d.contact[k]
    if c.cand == NO_CANDIDATE:  # user-defined: no geoms to mix
        c.erp = own_or_model_value(c.erp, m.opt_erp[0])
        c.cfm = own_or_model_value(c.cfm, m.opt_cfm[0])
    else:
        mix_parameters(m, d, k)
        mix_restitution(m, d, k)
        set_slip_friction(m, d, k)
        c.belt = zeros(3)
    return add_belt(m, d, k)
