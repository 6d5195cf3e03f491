"""Tests whether a point is inside a site.

The hull of mesh h has hull_polynum[h] faces from hull_polyadr[h] on, each with the normal hull_polynormal and the
vertices hull_polyvert from hull_polyvertadr on, numbered from hull_vertadr[h].  mesh_pos and mesh_quat are the pose of
the mesh's principal frame in its original frame.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.shapes import inside_shape
from featherlane.engine.dynamics.body.object_motion import object_pos


@kernel
def point_in_site(d, s, point, lane):
    """Returns a world point in the frame of site s."""
    return read_lane(d.site_xmat, s, lane).T @ (point - read_lane(d.site_xpos, s, lane))


@kernel
def inside_hull(m1, h, point):
    """Returns whether the point of one world, in the original frame of mesh h, is behind every face of its hull."""
    # the hull is in the mesh's principal frame
    p = m1.mesh_quat[h].T @ (point - m1.mesh_pos[h])
    inside = p[0] == p[0]  # false for NaN
    for f in range(m1.hull_polyadr[h], m1.hull_polyadr[h] + m1.hull_polynum[h]):
        normal = m1.hull_polynormal[f]
        # the first vertex of the face
        vertex = m1.hull_vert[m1.hull_vertadr[h] + m1.hull_polyvert[m1.hull_polyvertadr[f]]]
        inside = inside & (dot(normal, p - vertex) < 0.0)
    return inside


@kernel
def inside_site(m, d, s, point):
    """Returns 1 in worlds in which a world point is inside site s, else 0."""
    value = 0.0
    if m.site_type[s] == MESH:
        # a hull is tested world by world; ray.point and ray.distance are scratch, to read and write single lanes
        d.ray.point[0] = point
        for lane in range(width(d)):
            p = point_in_site(d, s, read_lane(d.ray.point, 0, lane), lane)
            write_lane(d.ray.distance, 0, lane, 1.0 if inside_hull(m, m.site_dataid[s], p) else 0.0)
        value = d.ray.distance[0]
    else:
        p = d.site_xmat[s].T @ (point - d.site_xpos[s])
        value = where(inside_shape(m.site_type[s], m.site_size[s], p), 1.0, value)
    return value


@kernel
def insidesite(m, d, i):
    """Writes sensor i: 1 if the origin of an object is inside a site, else 0.

    For a massless body with children that have mass, the origin is the centre of mass of its subtree.
    """
    sensor = m.sensor[i]
    kind, obj = sensor.objtype, sensor.objid  # OBJ_BODY: the inertial frame
    point = object_pos(d, kind, obj)
    if kind == OBJ_BODY and obj > 0:
        massless = (m.body_mass[obj] < MINVAL) & (m.body_subtreemass[obj] >= MINVAL)
        point = where(massless, d.subtree_com[obj], point)
    d.sensor_now[sensor.adr] = inside_site(m, d, sensor.refid, point)
