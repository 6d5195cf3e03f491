"""Touch sensors: normal forces of contacts on the site's body whose normal, from the contact point on, hits the site.

d.active is 1 in the worlds whose contacts are in the tile.  `normal_force` is the normal force of a contact without the
pull of adhesion.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.shapes import meet_shape
from featherlane.engine.dynamics.actuator.adhesion import normal_force


@kernel
def meets_site(m, d, s, point, direction):
    """Returns the mask of worlds in which a ray hits site s; a ray from inside hits it."""
    R, size = d.site_xmat[s], m.site_size[s]
    p = R.T @ (point - d.site_xpos[s])
    v = R.T @ direction
    hits, _distance, _normal = meet_shape(m.site_type[s], p, v, size)
    return hits


@kernel
def touch(m, d, i):
    """Writes sensor i: sum of normal forces [N] of contacts whose normal, from the contact point on, hits the site.

    Contacts of the site's body count if they push; the normal is taken in the direction away from this body.
    Source: MuJoCo's documentation, XML reference, sensor/touch.
    Reads:  con_*, con_force, site_xpos, site_xmat.   Writes: sensor_now of the active worlds.
    """
    s = m.sensor_objid[i]
    total = 0.0
    active = d.active[0] > 0.0
    b = m.site_bodyid[s]
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        # contacts of the site's body
        if c.carrier[0] == b or c.carrier[1] == b:
            force = normal_force(m, d, k)
            # D = 0: a contact in its gap has no row and no force
            pushes = (c.present > 0.0) & (c.D != 0.0) & (force > 0.0)
            normal = normalize3(c.frame.rows[0])[0]
            # away from the site's body: the normal points from the first body to the second
            if c.carrier[1] == b:
                normal = -normal
            hits = meets_site(m, d, s, c.pos, normal)
            total = where(pushes & hits, total + force, total)
    a = m.sensor_adr[i]
    d.sensor_now[a] = where(active, total, d.sensor_now[a])
