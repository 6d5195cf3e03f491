"""Computes the signed distance of two geoms in every world, for `geom_distance`.

Two convex shapes use `closest`, signed distance fields `field_distance`.  A plane uses the lowest point of the shape
(of the hull, for an SDF geom), a height field the nearest of the contacts within the limit.  A pair is computed with
the lower geom type first; the result is flipped afterwards if necessary.

m1 and d1 are the model and the data of one world.  shapes.*[0] and shapes.*[1] are the two shapes; convex.dist,
convex.normal (from the first to the second shape) and convex.witness, the two nearest points, are the result.
A core is a shape without the radius around it: of a sphere its centre, of a capsule its segment; any other shape is its
own core.  core_support(m1, d1, side, u) is (point, vertex), the core's farthest point along u in the shape's frame and
its index; core_radius(d1, side) is the radius around the core.
`lane` is the index of a world in the tile.
NO_DISTANCE is a distance beyond the limit.  relief.* has the contacts of a height field, in its frame.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.pair import NO_DISTANCE, closest
from featherlane.engine.collision.convex.support import core_radius, core_support
from featherlane.engine.collision.field_distance import field_distance
from featherlane.engine.collision.lane import write_vec3
from featherlane.engine.collision.pairs.hfield import surface_contacts
from featherlane.engine.collision.slot import load_field, load_shape


@kernel
def plane_distance(m1, d1):
    """Computes the distance of a plane, shape 0, and shape 1: the height of the shape's lowest point over the plane.

    The nearest points are this point and its projection on the plane.
    Reads: shapes.*.  Writes: convex.dist, convex.normal, convex.witness.
    """
    plane_mat, shape_mat = d1.shapes.mat[0], d1.shapes.mat[1]
    normal = plane_mat.columns[2]
    d1.support.vertex[1] = 0  # no search for a plane sets this index: it stays valid
    up = shape_mat.T @ normal
    lowest, _ = core_support(m1, d1, 1, -up)
    # the core's lowest point in world axes, moved down by the radius around the core
    lowest = fma(-core_radius(d1, side=1), normal, shape_mat @ lowest + d1.shapes.pos[1])
    dist = dot(lowest - d1.shapes.pos[0], normal)
    d1.convex.dist[0] = dist
    d1.convex.normal[0] = normal
    d1.convex.witness[0] = fma(-dist, normal, lowest)
    d1.convex.witness[1] = lowest


@stage
def height_field_distance(m1, d1):
    """Computes the distance of the height field, shape 0, and shape 1, if it is less than shapes.limit.

    It is the least distance of their contacts: a depth is measured as that of a contact.

    Reads:  shapes.*, distance.limit, hfield_*, hull_*.
    Writes: convex.dist, convex.normal, convex.witness.
    Scratch: shapes.*, relief.*, manifold.*, what `closest` writes.
    Cost:   O(cells within the limit).
    """
    d1.relief.nearest[0] = 1  # `surface_contacts` keeps only the nearest contact
    d1.shapes.limit[0] = fmin(d1.shapes.limit[0], NO_DISTANCE)  # differences of infinite bounds are not numbers
    surface_contacts(m1, d1)
    axes, dist = d1.relief.axes[0], d1.relief.dist[0]
    normal, pos = axes @ d1.relief.normal[0], axes @ d1.relief.pos[0] + d1.relief.origin[0]
    # without a contact within the limit, the points and the normal are not used
    d1.convex.dist[0] = dist if d1.relief.count[0] > 0 else d1.distance.limit[0]
    d1.convex.normal[0] = normal
    d1.convex.witness[0] = fma(-0.5 * dist, normal, pos)
    d1.convex.witness[1] = fma(0.5 * dist, normal, pos)


@kernel
def store_distance(d, lane, flip):
    """Stores the result convex.* for one world; beyond the limit, the limit as distance, and zeros for both points.

    flip: whether convex.* has the second geom first.  Writes: distance.dist, distance.fromto.
    """
    dist, limit = d.convex.dist[0], d.distance.limit[0]
    if dist < limit:
        write_lane(d.distance.dist, 0, lane, dist)
        first, second = d.convex.witness[0], d.convex.witness[1]
        if flip:
            first, second = second, first
        # fromto: three coordinates of the first point, then three of the second
        write_vec3(d.distance.fromto, 0, lane, first)
        write_vec3(d.distance.fromto, 3, lane, second)
    else:
        write_lane(d.distance.dist, 0, lane, limit)
        write_vec3(d.distance.fromto, 0, lane, zeros(3))
        write_vec3(d.distance.fromto, 3, lane, zeros(3))


@kernel
def measure_geoms(m, d, geom1, geom2, lane):
    """Computes the distance of two geoms in one world, up to distance.limit, into convex.*.

    Returns whether the geoms were exchanged, so that convex.* has geom2 first.
    """
    flip = m.geom_type[geom1] > m.geom_type[geom2]
    if flip:
        geom1, geom2 = geom2, geom1
    load_shape(m, d, 0, geom1, lane)
    load_shape(m, d, 1, geom2, lane)
    d.shapes.limit[0] = d.distance.limit[0]
    # shapes.data is the mesh or height field of each geom, -1 for none, and ABSENT_GEOM, the least value, if the world
    # lacks the geom
    if min(d.shapes.data[0], d.shapes.data[1]) == ABSENT_GEOM:
        d.convex.dist[0] = d.distance.limit[0]
    elif m.geom_type[geom1] == PLANE:
        if m.geom_type[geom2] == SDF:
            # to a plane, the distance of an SDF geom is that of its hull
            d.shapes.type[1] = MESH
        plane_distance(m, d)
    elif m.geom_type[geom1] == HFIELD:
        height_field_distance(m, d)
    elif m.geom_type[geom2] == SDF:
        load_field(m, d, 0, geom1, lane)
        load_field(m, d, 1, geom2, lane)
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
        geom1, geom2 = whole(read_lane(d.distance.geom, 0, lane)), whole(read_lane(d.distance.geom, 1, lane))
        flip = measure_geoms(m, d, geom1, geom2, lane)  # writes convex.*
        store_distance(d, lane, flip)
