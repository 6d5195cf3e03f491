"""Tactile sensors: depth and sliding speed at points of a surface; touch grids: contact forces by direction.

Source: MuJoCo's documentation, XML reference, sensor/tactile; MuJoCo's plugin `mujoco.sensor.touch_grid`.
"""

from featherlane.prelude import *
from featherlane.collision.signed_distance import signed_distance
from featherlane.sensor.contact import force_of


# ---- tactile ---------------------------------------------------------------------------------------------------------
@kernel
def _touches(m, d, weld, g):
    """Returns the mask of worlds in which geom g has a contact with a geom of the rigid group `weld`."""
    touching = false_mask(d)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        g1, g2 = c.geom[0], c.geom[1]
        if g1 == g or g2 == g:
            b = c.carrier[0] if g2 == g else c.carrier[1]
            if m.body_weldid[b] == weld:
                touching = touching | (c.present > 0.0)
    return touching


@kernel
def _velocity_at(m, d, b, point):
    """Returns the velocity of the point of body b that is at `point` [m/s]."""
    w, v = d.cvel[b].angular, d.cvel[b].linear
    return v + cross(w, point - d.subtree_com[m.body_rootid[b]])


@kernel
def _add_geom(m, d, i, g, mask):
    """Adds what the points of sensor i measure of geom g, in worlds of the mask."""
    sensor = m.sensor[i]
    geom = m.geom[g]
    own, n, out = sensor.refid, sensor.dim // 3, d.sensor_now
    a, first, weld = sensor.adr, sensor.taxel, m.body_weldid[m.geom_bodyid[own]]
    R, S, size = d.geom_xmat[own], d.geom_xmat[g], geom.size
    pos, other, body = d.geom_xpos[own], d.geom_xpos[g], geom.bodyid
    for j in range(n):
        t = first + j
        point = pos + R @ m.taxel_pos[t]
        local = S.T @ (point - other)
        dist, _ = signed_distance(m, d, geom.field, geom.fieldadr, size, local, exact=0)
        inside, depth = mask & (dist < 0.0), -dist
        if any_(inside):
            sliding = _velocity_at(m, d, weld, point) - _velocity_at(m, d, body, point)
            sliding = R.T @ sliding
            out[a + j] = where(inside, fmax(out[a + j], depth), out[a + j])
            for c in unrolled(range(2)):
                s = 6 * t + 3 * c
                side = Vec3(m.taxel_tangent[s : s + 3])
                k = a + (c + 1) * n + j
                out[k] = where(inside, out[k] + fabs(dot(sliding, side)), out[k])


@kernel
def tactile(m, d, i):
    """Writes sensor i: for each point its largest depth [m] in a geom that touches the sensor's rigid group, and sums
    of sliding speeds [m/s] along its two tangents.

    Height fields, and meshes without an octree, have no depth.
    Source: MuJoCo's documentation, XML reference, sensor/tactile; depths by `signed_distance`.  Deviation: MuJoCo 4.0.1
        reads beyond an array for SDF geoms without a plugin.
    Reads:  con_*, geom_xpos, geom_xmat, cvel, subtree_com.   Writes: sensor_now of the active worlds.
    """
    sensor = m.sensor[i]
    active = d.active[0] > 0.0
    for k in range(sensor.adr, sensor.adr + sensor.dim):
        d.sensor_now[k] = where(active, 0.0, d.sensor_now[k])
    weld = m.body_weldid[m.geom_bodyid[sensor.refid]]
    # in the order of geoms, so that sums do not depend on the contacts of other worlds
    for g in range(m.ngeom):
        touching = active & _touches(m, d, weld, g)
        if m.geom_field[g] >= 0 and any_(touching):
            _add_geom(m, d, i, g, touching)


# ---- touch grid ------------------------------------------------------------------------------------------------------
@kernel
def _cell(m, first, n, x):
    """Returns the cell of x among n cells with edges from `first` on; -1: none.  Its upper edge belongs to a cell."""
    k = 0
    while k <= n and x > m.grid_edge[first + k]:
        k += 1
    return -1 if k > n else k - 1


@kernel
def _add_contact(m, d, i, k, lane):
    """Adds the force and torque of contact k to the cell of its direction."""
    sensor = m.sensor[i]
    s, columns, rows = sensor.objid, sensor.grid[0], sensor.grid[1]
    first, weld = sensor.grid[3], m.body_weldid[m.site_bodyid[s]]
    R, S = read_lane(d.con_frame, k, lane), read_lane(d.site_xmat, s, lane)
    force, torque = force_of(m, d, k, lane)
    # the force acts on the second body
    sign = 1.0 if m.body_weldid[d.con_carrier[k, 1]] == weld else -1.0
    force = sign * (S.T @ (R.T @ force))
    torque = sign * (S.T @ (R.T @ torque))
    x, y, z = S.T @ (read_lane(d.con_pos, k, lane) - read_lane(d.site_xpos, s, lane))
    column = _cell(m, first, columns, atan2(x, -z))
    row = _cell(m, first + columns + 1, rows, atan2(y, sqrt(fma(x, x, z * z))))
    if column >= 0 and row >= 0:
        channels = (force.z, force.x, force.y, torque.z, torque.x, torque.y)
        for c in unrolled(range(6)):
            if c < sensor.grid[2]:
                a = sensor.adr + columns * (rows * c + row) + column
                write_lane(d.sensor_now, a, lane, read_lane(d.sensor_now, a, lane) + channels[c])


@stage
def touch_grid(m, d, i):
    """Writes sensor i: sums of contact forces [N] and torques [N m] on the site's rigid group, by their direction.

    The cells of a channel are directions from the site: azimuth from -z towards x, elevation towards y.  Channels are
    the forces along z, x and y of the site, then the torques.
    Source: MuJoCo's plugin `mujoco.sensor.touch_grid`.
    Reads:  con_*, con_force, site_xpos, site_xmat.   Writes: sensor_now.
    """
    sensor = m.sensor[i]
    active, weld = d.active[0] > 0.0, m.body_weldid[m.site_bodyid[sensor.objid]]
    for k in range(sensor.adr, sensor.adr + sensor.dim):
        d.sensor_now[k] = where(active, 0.0, d.sensor_now[k])
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        if m.body_weldid[c.carrier[0]] == weld or m.body_weldid[c.carrier[1]] == weld:
            for lane in range(width(d)):
                if has(active & (c.present > 0.0), lane):
                    _add_contact(m, d, i, k, lane)


@kernel
def plugin_sensor(m, d, i):
    """Writes sensor i if its plugin is the touch grid."""
    if m.sensor_grid[i, 0] > 0:
        touch_grid(m, d, i)
