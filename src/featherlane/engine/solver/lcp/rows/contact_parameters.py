"""Contact parameters that only the LCP contact model uses, each world with its own values.

If one geom has a higher priority, it alone sets them.  Else restitution, its least speed and slip are the larger of the
two, and friction is a force if one of the two geoms specifies it so.  ERP and CFM are those of the geom that sets them.
If both geoms set them, the softer values apply: the smaller ERP, the larger CFM.  If none does, they are the model's.
The direction of friction is the first geom's or, if it has none, the second's.
User-defined contacts keep their own parameters; their con_cand is NO_CANDIDATE, as they come from no pair of geoms.
Symbols: k: a contact;  g: the geom that sets its parameters;  h: the other one, or g again if g alone sets them.
    con_belt: required velocity of body 2 relative to body 1 along normal and tangents, by moving surfaces [m/s];
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

ALONG = 1e-6  # least length of a friction direction's part along the surface, relative to its length


@kernel
def friction_without_minimum(mu):
    """Returns mu, or 0 if mu is at most MINMU, because mixing raises a coefficient of 0 to MINMU."""
    return where(mu > MINMU, mu, 0.0)


@kernel
def softer_erp(a, b):
    """Returns the smaller of two ERPs; a negative one is not set, and the other is returned."""
    return where(a < 0.0, b, where(b < 0.0, a, fmin(a, b)))


@kernel
def mix_parameters(m, d, k):
    """Sets con_erp, con_cfm, con_compliance, con_frictionforce and tangents of contact k, mixed from its geoms."""
    contact = d.contact[k]
    g, h = leading_geoms(m, d, k)
    geom = m.geom[g]
    contact.erp = own_or_model_value(softer_erp(geom.erp, m.geom_erp[h]), m.opt_erp[0])
    contact.cfm = own_or_model_value(fmax(geom.cfm, m.geom_cfm[h]), m.opt_cfm[0])
    for c in range(2):
        contact.compliance[c] = fmax(geom.slip[c], m.geom_slip[h, c])
    is_force = geom.frictionforce != 0 or m.geom_frictionforce[h] != 0
    contact.frictionforce = 1.0 if is_force else 0.0
    turn_tangents(m, d, k, g, h)


@kernel
def world_direction(m, d, g):
    """Returns the friction direction of geom g in world axes, 0 without one."""
    direction = m.geom_fdir[g]
    if any_((direction[0] != 0.0) | (direction[1] != 0.0) | (direction[2] != 0.0)):
        _, R = geom_pose(m, d, g)  # a step does not compute geom_xmat of round geoms
        direction = R @ direction
    return direction


@kernel
def turn_tangents(m, d, k, g, h):
    """Turns the first tangent of contact k to the friction direction of geom g, or of h if g has none.

    The direction is projected to the contact's tangent plane.  The tangents stay if no geom has a direction, or if its
    projection is almost 0.
    """
    c = d.contact[k]
    direction, direction_h = world_direction(m, d, g), world_direction(m, d, h)
    n, old_t1, old_t2 = c.frame.rows
    without = dot(direction, direction) == 0.0  # worlds in which geom g has no direction
    direction = where(without, direction_h, direction)
    tangent = fma(-dot(n, direction), n, direction)
    tangent_square, direction_square = dot(tangent, tangent), dot(direction, direction)
    turns = (tangent_square > ALONG * ALONG * direction_square) & (c.present > 0.0)
    tangent = 1.0 / sqrt(where(turns, tangent_square, 1.0)) * tangent
    c.frame = join(n, where(turns, tangent, old_t1), where(turns, cross(n, tangent), old_t2))


@kernel
def add_belt(m, d, k):
    """Adds the tangential part of v1 - v2 of moving surfaces to con_belt; returns w1 - w2 about the normal [rad/s].

    v, w: linear and angular velocity of a surface relative to its body, 0 for geom -1 (none).  The surfaces stick if
    body 2 moves relative to body 1 by v1 - v2.
    """
    c = d.contact[k]
    spin = 0.0
    if m.flg_surfacevel:
        position = c.pos
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
    """Sets the parameters of contact k; returns the target angular velocity of body 2 about the normal [rad/s].

    User-defined contact: it keeps its parameters; a negative con_erp or con_cfm becomes the model's.
    Detected contact: `mix_parameters` sets con_erp, con_cfm, con_compliance, con_frictionforce and turns the tangents;
        con_restitution, con_restitution_vel and the sliding coefficients of con_friction follow; con_belt begins at 0.
    Both: the velocities of moving surfaces are added to con_belt.
    The target is relative to body 1.
    """
    c = d.contact[k]
    if c.cand == NO_CANDIDATE:  # user-defined
        c.erp = own_or_model_value(c.erp, m.opt_erp[0])
        c.cfm = own_or_model_value(c.cfm, m.opt_cfm[0])
    else:
        mix_parameters(m, d, k)
        mix_restitution(m, d, k)
        set_slip_friction(m, d, k)
        c.belt = zeros(3)
    return add_belt(m, d, k)
