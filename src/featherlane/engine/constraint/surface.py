"""Laws of contact surfaces that depend on their velocity: belts, restitution, static friction.

Belts.          sigma(p) = R (v + w x R^T (p - p_g)) is the velocity of the surface of a fixed geom at point p: v and w
                in the frame of geom g, R its orientation, p_g its centre.
Restitution.    bodies that approach at the speed s = -u . n, above a least speed, separate at the speed e s.
Static friction. mu = mu_k + (mu_s - mu_k) exp(-(|u_t| / v_s)^2), Stribeck's curve at the slip speed |u_t|.

u is the velocity of body 2's surface relative to body 1's at the contact, at the start of the step.  Restitution and
static friction hold under the contact models lcp and coulomb.  If one geom has a higher priority, it alone sets them;
else e, mu_s, v_s and the least speed are the larger of both.  An explicit pair has no static friction.
Slot fields: con_cand: the candidate pair of a detected contact, NO_CANDIDATE of a user-defined one; con_pair: the
explicit pair, -1: none; con_carrier: the two bodies; con_restitution_vel: the least speed; con_frame: rows n, t_1, t_2.
`leading`: FIRST or SECOND, the geom of higher priority, else MIX; `friction`: mixed coefficients of both geoms.
Source: MuJoCo 4, attribute surfacevel of geoms; ODE manual, sec. "Contact" (bounce); Armstrong-Helouvry, Dupont and
    Canudas de Wit, A survey of models, analysis tools and compensation methods for the control of machines with
    friction (1994), for Stribeck's curve.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.mixing import FIRST, SECOND, friction, leading, overridden
from featherlane.engine.collision.user_contacts import NO_CANDIDATE


@kernel
def surface_velocity(m, d, g, p):
    """Returns (velocity sigma(p), angular velocity R w) of the belt of geom g at point p; zeros for g = -1, no geom."""
    v, w = Vec3(zeros(3)), Vec3(zeros(3))
    if g >= 0:
        R = d.geom_xmat[g]
        first = 6 * g  # geom_surfacevel holds v, w of each geom
        w = R @ Vec3(m.geom_surfacevel[first + 3 : first + 6])
        v = R @ Vec3(m.geom_surfacevel[first : first + 3]) + cross(w, p - d.geom_xpos[g])
    return v, w


@kernel
def contact_arm(m, d, k, side):
    """Returns the contact point relative to the com of the tree of the body on side 0 or 1."""
    b = d.con_carrier[k, side]
    return d.con_pos[k] - d.subtree_com[m.body_rootid[b]]


@kernel
def _side_velocity(m, d, k, side):
    """Returns the velocity of the surface on side 0 or 1 at contact k, its belt included."""
    c = d.contact[k]
    twist = d.cvel[c.carrier[side]]
    v = twist.linear + cross(twist.angular, contact_arm(m, d, k, side))
    if m.flg_surfacevel:
        belt, _ = surface_velocity(m, d, c.geom[side], c.pos)
        v = v + belt
    return v


@kernel
def _relative_velocity(m, d, k):
    """Returns the velocity of the second surface relative to the first at contact k."""
    return _side_velocity(m, d, k, side=1) - _side_velocity(m, d, k, side=0)


@kernel
def leading_geoms(m, d, k):
    """Returns the two geoms whose parameters contact k mixes; twice the same if one has a higher priority."""
    c = d.contact[k]
    g, h = c.geom[0], c.geom[1]
    lead = leading(m, c.pair, g, h)
    if lead == FIRST:  # the first geom has the higher priority
        h = g
    elif lead == SECOND:
        g = h
    return g, h


@kernel
def mix_restitution(m, d, k):
    """Sets con_restitution and con_restitution_vel of contact k; a user-defined contact has its own values."""
    c = d.contact[k]
    if c.cand != NO_CANDIDATE:
        g, h = leading_geoms(m, d, k)
        c.restitution = fmax(m.geom_restitution[g], m.geom_restitution[h])
        c.restitution_vel = fmax(m.geom_restitution_vel[g], m.geom_restitution_vel[h])


@kernel
def bounces(m, d, k):
    """Returns the mask of worlds in which contact k rebounds, after `mix_restitution`."""
    c = d.contact[k]
    mask = false_mask(d)
    if any_(c.restitution > 0.0):
        approach = -dot(c.frame.rows[0], _relative_velocity(m, d, k))  # s = -u . n
        mask = (c.restitution > 0.0) & (approach > c.restitution_vel) & (c.present > 0.0)
    return mask


@kernel
def has_static_friction(m):
    """Returns the mask of worlds with a geom that has static friction."""
    return has_nonzero(m.geom_friction_static, m.ngeom)


@kernel
def set_slip_friction(m, d, k):
    """Sets both sliding coefficients of contact k: mu = mu_k + max(mu_s - mu_k, 0) exp(-(|u_t| / v_s)^2).

    Contacts of explicit pairs and user-defined contacts are not changed, nor is friction that the option o_friction
    replaces (`overridden`).
    """
    contact = d.contact[k]
    if contact.cand != NO_CANDIDATE and contact.pair < 0 and not overridden(m):
        g, h = leading_geoms(m, d, k)
        mu_static = fmax(m.geom_friction_static[g], m.geom_friction_static[h])
        if any_((mu_static > 0.0) & (contact.present > 0.0)):
            # not from con_friction: if rows are made twice, it already holds the result of this law
            mu = friction(m, pair_id=-1, geom1=contact.geom[0], geom2=contact.geom[1])[0]  # mu_k
            u = _relative_velocity(m, d, k)
            n = contact.frame.rows[0]
            slip = fma(-dot(n, u), n, u)  # u_t = u - (n . u) n
            inverse_speed = 1.0 / fmax(m.geom_stribeck_vel[g], m.geom_stribeck_vel[h])
            mu = fma(fmax(mu_static - mu, 0.0), exp(-(dot(slip, slip) * inverse_speed * inverse_speed)), mu)
            for c in range(2):  # both tangents
                contact.friction[c] = where(contact.present > 0.0, mu, 0.0)
