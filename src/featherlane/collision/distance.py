"""Computes the signed distance of two geoms in every world, for `geom_distance`.

Two convex shapes use `closest`, signed distance fields `field_distance`.  A plane uses the lowest point of the shape
(of the hull, for an SDF geom), a height field the minimum over its prisms.  A pair is computed with the lower geom type
first; the result is flipped afterwards if necessary.
"""

from featherlane.prelude import *
from featherlane.collision.convex.pair import NO_DISTANCE, closest
from featherlane.collision.convex.support import PRISM, core_radius, core_support, look_from_first
from featherlane.collision.field_distance import field_distance
from featherlane.collision.lane import write_vec3
from featherlane.collision.pairs.hfield import farthest_along, first_cell, last_cell, set_prism
from featherlane.collision.slot import load_field, load_shape


@kernel
def plane_distance(m1, d1):
    """Computes the distance of a plane and a shape: along the plane's normal, to the lowest point of the shape."""
    R, S = d1.shapes.mat[0], d1.shapes.mat[1]
    n = R.columns[2]
    d1.support.vertex[1] = 0
    u = S.T @ n
    p, _ = core_support(m1, d1, 1, -u)
    p = fma(-core_radius(d1, 1), n, S @ p + d1.shapes.pos[1])
    dist = dot(p - d1.shapes.pos[0], n)
    d1.convex.dist[0] = dist
    d1.convex.normal[0] = n
    d1.convex.witness[0] = fma(-dist, n, p)
    d1.convex.witness[1] = p


@kernel
def prism_distance(m1, d1):
    """Stores the result of `closest` if it is nearer than all previous ones; shapes.limit is the minimum so far."""
    a, b, n = d1.convex.witness[0], d1.convex.witness[1], d1.convex.normal[0]
    closest(m1, d1)
    if d1.convex.dist[0] < d1.shapes.limit[0]:
        d1.shapes.limit[0] = d1.convex.dist[0]
    else:
        d1.convex.witness[0] = a
        d1.convex.witness[1] = b
        d1.convex.normal[0] = n


@stage
def height_field_distance(m1, d1):
    """Computes the minimum over all prisms within shapes.limit.

    Reads:  shapes.*, hfield_*.
    Writes: convex.*.
    Scratch: shapes.*, support.*.
    Cost:   O(cells within the limit).
    """
    field, limit = d1.shapes.data[0], d1.shapes.limit[0]
    sx, sy = m1.hfield_size[field][0], m1.hfield_size[field][1]
    look_from_first(d1)
    x, y = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0)
    x0, x1 = -farthest_along(m1, d1, -x) - limit, farthest_along(m1, d1, x) + limit
    y0, y1 = -farthest_along(m1, d1, -y) - limit, farthest_along(m1, d1, y) + limit
    ncol, nrow = m1.hfield_ncol[field] - 1, m1.hfield_nrow[field] - 1
    d1.shapes.type[0] = PRISM
    first, last = first_cell(x0, sx, ncol), last_cell(x1, sx, ncol)
    for r in range(first_cell(y0, sy, nrow), last_cell(y1, sy, nrow)):
        for c in range(first, last):
            for half in range(2):
                set_prism(m1, d1, field, r, c, half)
                prism_distance(m1, d1)
    d1.convex.dist[0] = NO_DISTANCE
    if d1.shapes.limit[0] < limit:
        d1.convex.dist[0] = d1.shapes.limit[0]


@kernel
def store_distance(d, lane, flip):
    """Stores one world's result; beyond the limit the distance is the limit and the points are zeros."""
    dist, far = d.convex.dist[0], d.distance.limit[0]
    if dist < far:
        write_lane(d.distance.dist, 0, lane, dist)
        first, second = d.convex.witness[0], d.convex.witness[1]
        if flip:
            first, second = second, first
        write_vec3(d.distance.fromto, 0, lane, first)
        write_vec3(d.distance.fromto, 3, lane, second)
    else:
        write_lane(d.distance.dist, 0, lane, far)
        write_vec3(d.distance.fromto, 0, lane, zeros(3))
        write_vec3(d.distance.fromto, 3, lane, zeros(3))


@kernel
def measure_geoms(m, d, g, h, lane):
    """Computes the distance of geoms g and h in one world, up to distance.limit, into convex.*; true if h is first."""
    flip = m.geom_type[g] > m.geom_type[h]
    if flip:
        g, h = h, g
    load_shape(m, d, 0, g, lane)
    load_shape(m, d, 1, h, lane)
    d.shapes.limit[0] = d.distance.limit[0]
    if min(d.shapes.data[0], d.shapes.data[1]) == ABSENT_GEOM:  # the world lacks one of the geoms
        d.convex.dist[0] = d.distance.limit[0]
    elif m.geom_type[g] == PLANE:
        if m.geom_type[h] == SDF:
            d.shapes.type[1] = MESH
        plane_distance(m, d)
    elif m.geom_type[g] == HFIELD:
        height_field_distance(m, d)
    elif m.geom_type[h] == SDF:
        load_field(m, d, 0, g, lane)
        load_field(m, d, 1, h, lane)
        field_distance(m, d)
    else:
        closest(m, d)
    return flip


@stage
def geom_distance(m, d):
    """Computes the signed distance of the two geoms that each world selects, and their nearest points.

    Source: MuJoCo mj_geomDistance.
    Reads:  distance.geom (2,), distance.limit [m], geom_xpos, geom_xmat, geom_size.
    Writes: distance.dist (1,) [m], distance.fromto (6,) [m]: from the first geom's surface to the second's.
    Scratch: shapes.*, convex.*, support.*.
    """
    for lane in range(width(d)):
        g, h = whole(read_lane(d.distance.geom, 0, lane)), whole(read_lane(d.distance.geom, 1, lane))
        store_distance(d, lane, measure_geoms(m, d, g, h, lane))
