"""Tactile sensors: depth and sliding speed at points of a surface; touch grids: contact forces by direction.

m.taxel_pos and m.taxel_tangent are the points of tactile sensors and two tangents there, in the geom's frame.
d.active is 1 in the worlds whose contacts are in the tile; other worlds keep their values.
force_of returns (force, moment) of a contact in its frame, motion_at(m, d, d.cvel[b], b, point) the motion of body b at
a point, signed_distance (distance, gradient), with a distance below 0 inside of the geom.
Source: MuJoCo's documentation, XML reference, sensor/tactile; MuJoCo's plugin `mujoco.sensor.touch_grid`.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.signed_distance import signed_distance
from featherlane.engine.dynamics.body.object_motion import motion_at
from featherlane.engine.sensor.contact import force_of

COLUMNS, ROWS, CHANNELS, FIRST_EDGE = range(4)  # numbers of sensor.grid: cells, channels, the first of grid_edge


@kernel
def _clear_values(m, d, i, active):
    """Sets the values of sensor i to 0 in the active worlds."""
    sensor = m.sensor[i]
    for k in range(sensor.adr, sensor.adr + sensor.dim):
        d.sensor_now[k] = where(active, 0.0, d.sensor_now[k])


# ---- tactile ---------------------------------------------------------------------------------------------------------
@kernel
def _touching_worlds(m, d, weld, g):
    """Returns the mask of worlds in which geom g has a contact with a geom of the rigid group `weld`.

    A rigid group is the bodies that are welded to body `weld`.
    """
    touching = false_mask(d)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        g1, g2 = c.geom[0], c.geom[1]
        if g1 == g or g2 == g:
            other_body = c.carrier[0] if g2 == g else c.carrier[1]
            if m.body_weldid[other_body] == weld:
                touching = touching | (c.present > 0.0)
    return touching


@kernel
def _add_geom(m, d, i, g, mask):
    """Adds the depths [m] and sliding speeds [m/s] of sensor i's points in geom g to its values, in worlds of the mask.

    The values are the largest depth of each of the n points, then the sums of their sliding speeds along tangent 0,
    then along tangent 1.
    """
    sensor = m.sensor[i]
    geom = m.geom[g]
    surface = sensor.refid  # the geom with the points
    n = sensor.dim // 3
    out = d.sensor_now
    adr = sensor.adr
    first = sensor.taxel  # the sensor's first point in the list of all sensors' points
    weld = m.body_weldid[m.geom_bodyid[surface]]  # the body to which that of the surface is welded: they move as one
    surface_R, geom_R = d.geom_xmat[surface], d.geom_xmat[g]
    size = geom.size
    surface_pos, geom_pos = d.geom_xpos[surface], d.geom_xpos[g]
    body = geom.bodyid
    for j in range(n):
        t = first + j
        point = surface_pos + surface_R @ m.taxel_pos[t]
        local = geom_R.T @ (point - geom_pos)
        # exact=0: inside a box MuJoCo's field, not the distance to the nearest face
        distance, _ = signed_distance(m, geom.field, geom.fieldadr, size, local, exact=0)
        inside = mask & (distance < 0.0)
        depth = -distance
        if any_(inside):
            # velocity of the point minus that of geom g there
            surface_vel = motion_at(m, d, d.cvel[weld], weld, point).linear
            sliding = surface_R.T @ (surface_vel - motion_at(m, d, d.cvel[body], body, point).linear)
            out[adr + j] = where(inside, fmax(out[adr + j], depth), out[adr + j])
            for c in unrolled(range(2)):
                first_entry = 6 * t + 3 * c  # taxel_tangent: two vectors for each point
                tangent = Vec3(m.taxel_tangent[first_entry : first_entry + 3])
                k = adr + (c + 1) * n + j  # the depths come first
                out[k] = where(inside, out[k] + fabs(dot(sliding, tangent)), out[k])


@kernel
def tactile(m, d, i):
    """Writes sensor i: for each point its largest depth [m] in a geom that touches the sensor's rigid group, and sums
    of sliding speeds [m/s] along its two tangents.

    Height fields, and meshes without an octree, have no depth.
    Source: MuJoCo's documentation, XML reference, sensor/tactile; depths by `signed_distance`.  Deviation: MuJoCo 4.0.1
        reads beyond an array for SDF geoms without a plugin.
    Reads:  con_*, geom_xpos, geom_xmat, cvel, subtree_com.   Writes: sensor_now of the active worlds.
    """
    active = d.active[0] > 0.0
    weld = m.body_weldid[m.geom_bodyid[m.sensor_refid[i]]]
    _clear_values(m, d, i, active)
    # in the order of geoms, so that sums do not depend on the contacts of other worlds
    for g in range(m.ngeom):
        touching = active & _touching_worlds(m, d, weld, g)
        # geoms without a distance field (-1) have no depth
        if m.geom_field[g] >= 0 and any_(touching):
            _add_geom(m, d, i, g, touching)


# ---- touch grid ------------------------------------------------------------------------------------------------------
@kernel
def _find_cell(m1, first, n, x):
    """Returns the cell of x among n cells whose n + 1 edges are grid_edge[first ...]; -1: none.

    A cell includes its upper edge, but not its lower one.
    """
    edge = 0
    while edge <= n and x > m1.grid_edge[first + edge]:
        edge += 1
    return -1 if edge > n else edge - 1


@kernel
def _add_contact(m, d, i, k, lane):
    """Adds the force and torque of contact k of one world to the cell of its direction.

    i: the sensor, whose values are by channel, row and column, column fastest.
    """
    sensor = m.sensor[i]
    site, columns, rows = sensor.objid, sensor.grid[COLUMNS], sensor.grid[ROWS]
    first, weld = sensor.grid[FIRST_EDGE], m.body_weldid[m.site_bodyid[site]]
    con_R, site_R = read_lane(d.con_frame, k, lane), read_lane(d.site_xmat, site, lane)
    force, torque = force_of(m, d, k, lane)
    # the force acts on the second body
    sign = 1.0 if m.body_weldid[d.con_carrier[k, 1]] == weld else -1.0
    force = sign * (site_R.T @ (con_R.T @ force))
    torque = sign * (site_R.T @ (con_R.T @ torque))
    x, y, z = site_R.T @ (read_lane(d.con_pos, k, lane) - read_lane(d.site_xpos, site, lane))
    # azimuth and elevation; the edges of rows follow the columns + 1 edges of columns
    column = _find_cell(m, first, columns, atan2(x, -z))
    row = _find_cell(m, first + columns + 1, rows, atan2(y, sqrt(fma(x, x, z * z))))
    # directions outside of the grid are not counted
    if column >= 0 and row >= 0:
        channels = (force.z, force.x, force.y, torque.z, torque.x, torque.y)
        for c in unrolled(range(6)):
            if c < sensor.grid[CHANNELS]:
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
    active = d.active[0] > 0.0
    weld = m.body_weldid[m.site_bodyid[m.sensor_objid[i]]]
    _clear_values(m, d, i, active)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        if m.body_weldid[c.carrier[0]] == weld or m.body_weldid[c.carrier[1]] == weld:
            for lane in range(width(d)):
                if has(active & (c.present > 0.0), lane):
                    _add_contact(m, d, i, k, lane)


@kernel
def plugin_sensor(m, d, i):
    """Writes sensor i if its plugin is the touch grid."""
    if m.sensor_grid[i, COLUMNS] > 0:
        touch_grid(m, d, i)
