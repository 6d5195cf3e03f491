"""Tests whether a geom lies in the line of sight of a contact within the step, one world at a time.

Pairs are swept separately, so a fast geom would also get a contact with what lies behind its first obstacle.  Three
segments are tested: the path of each contact point from the start of the step to the impact, and the line between the
two points at impact.  A geom that may touch the moving one, and does not touch it yet, hides a contact if it meets a
segment.
`lane` is the index of a world in the tile.
shapes.*, line.* (a ray and its nearest hit) and the distance convex.dist belong to one world.  The explicit pairs
are m.pair_geom1 and m.pair_geom2; sweep.tolerance is the tolerance of a distance.

Imported kernels:

    is_listed, may_touch              whether a sorted list has a pair; whether two geoms pass the filters of pairs
    margin_and_gap                    (margin, gap) of a pair
    load_shape(m, d, side, g, lane)   copies a geom of one world to shapes.*
    measure_distance(m, d)            writes convex.* of the two shapes
    meet_shape(type, p, v, size)      (met, distance, normal) of the ray p + x v and a shape, in its frame

Source: MuJoCo 4.0.1, chapter "Speculative contacts", sec. "Line-of-sight raycasting"; the tested segments and the
    margins at their ends were found by experiment with 4.0.1.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.broad.box_tree import is_listed, may_touch
from featherlane.engine.collision.mixing import margin_and_gap
from featherlane.engine.collision.rays.ray_mesh import meet_mesh
from featherlane.engine.collision.rays.shapes import meet_shape
from featherlane.engine.collision.slot import load_shape
from featherlane.engine.collision.sweep.impact import measure_distance

END = 1e-5  # part of the segment at either end, and height over a plane [m], that do not count
SHORTEST = 1e-30  # squared length below which a segment is a point


@kernel
def is_near_sphere(m, d, geom, lane, centre, half_length):
    """Returns whether a segment, given by its centre and half length, comes near a geom's bounding sphere.

    Always true for planes, which have the radius 0.
    """
    radius = read_lane(m.geom_rbound, geom, lane)
    offset = read_lane(d.geom_xpos, geom, lane) - centre
    return radius <= 0.0 or dot(offset, offset) <= (half_length + radius) * (half_length + radius)


@kernel
def may_hide(m, geom, other, obstacle):
    """Returns whether the geom `obstacle` may hide a contact of the pair (geom, other) from `geom`.

    It may if it can touch `geom`, and is welded neither to the body of `geom` nor to that of `other`.  However, if
    `other` is fixed to the world, obstacles that are fixed to the world may hide it.  The geoms of an explicit pair
    (named_geom) can touch regardless of the filters.
    """
    # the bodies that the three geoms move with, 0 for the world
    weld1, weld2, weld = tuple(m.body_weldid[m.geom_bodyid[i]] for i in (geom, other, obstacle))
    # `meets_segment` supports these types
    candidate = m.geom_type[obstacle] == PLANE or SPHERE <= m.geom_type[obstacle] <= MESH
    candidate = candidate and obstacle not in (geom, other) and weld != weld1 and (weld2 == 0 or weld != weld2)
    return candidate and (
        is_listed(m.named_geom, m.nnamed, min(geom, obstacle), max(geom, obstacle)) or may_touch(m, geom, obstacle)
    )


@kernel
def meets_segment(m, d, geom, lane, start, end):
    """Returns whether the segment from start to end, in world axes, meets a geom.

    The part END of its length at either end does not count, and neither do points within END of a plane.
    """
    load_shape(m, d, 0, geom, lane)
    mat, centre = d.shapes.mat[0], d.shapes.pos[0]
    along = end - start
    start = mat.T @ (start - centre)
    along = mat.T @ along
    if m.geom_type[geom] == PLANE:
        start_height = start[2]
        end_height = start[2] + along[2]
        return start_height * end_height <= 0.0 and (fabs(start_height) > END or fabs(end_height) > END)
    direction, length = normalize3(along)
    start = fma(END, along, start)
    length = (1.0 - 2.0 * END) * length
    if m.geom_type[geom] == MESH:
        # meet_mesh reads line.*, and sets line.hit to 1 for a hit nearer than line.distance
        d.line.point[0] = start
        d.line.direction[0] = direction
        d.line.distance[0] = length
        d.line.hit[0] = 0
        meet_mesh(m, d)
        return d.line.hit[0] != 0
    hit, distance, _ = meet_shape(m.geom_type[geom], start, direction, d.shapes.size[0])
    return any_(hit & (distance <= length))


@kernel
def explicit_pair(m, geom1, geom2):
    """Returns the index of the explicit pair of two geoms, or -1."""
    for k in range(m.npair):
        first, second = m.pair_geom1[k], m.pair_geom2[k]
        if (first == geom1 and second == geom2) or (first == geom2 and second == geom1):
            return k
    return -1


@kernel
def is_touching(m, d, geom1, geom2, lane):
    """Returns whether two geoms are within their margin at the start of the step; false for two planes."""
    if m.geom_type[geom1] == PLANE and m.geom_type[geom2] == PLANE:
        return False
    margin, _ = margin_and_gap(m, explicit_pair(m, geom1, geom2), geom1, geom2)
    d.narrow.limit[0] = margin  # stored because `read_lane` reads one world's value from a field
    # a plane is the first shape
    first, second = (geom2, geom1) if m.geom_type[geom2] == PLANE else (geom1, geom2)
    load_shape(m, d, 0, first, lane)
    load_shape(m, d, 1, second, lane)
    limit = read_lane(d.narrow.limit, 0, lane) + d.sweep.tolerance[0]
    d.shapes.limit[0] = limit
    measure_distance(m, d)  # writes convex.dist
    return any_(d.convex.dist[0] <= limit)


@stage
def check_line_of_sight(m, d, geom, other, lane):
    """Tests whether an obstacle meets the segment in sweep.line, along which a geom of a swept pair moves.

    Args:
        geom: geom of the pair that moves along the segment.
        other: the other geom of the pair.

    Reads:  sweep.line (2, 3) [m], sweep.tolerance; geom_xpos, geom_xmat.
    Writes: sweep.hidden: 1 or unchanged.
    Scratch: shapes.*, line.*, narrow.limit, what `closest` writes.
    Cost:   O(ngeom).
    """
    start, end = d.sweep.line[0], d.sweep.line[1]
    along = end - start
    if dot(along, along) >= SHORTEST:
        centre = fma(0.5, along, start)
        half_length = 0.5 * norm3(along)
        for obstacle in range(m.ngeom):
            if (
                may_hide(m, geom, other, obstacle)
                # only models with variants have worlds without a geom
                and not (m.nvariant > 0 and read_lane(m.geom_variant, obstacle, lane) == ABSENT_GEOM)
                and is_near_sphere(m, d, obstacle, lane, centre, half_length)
                and meets_segment(m, d, obstacle, lane, start, end)
                and not is_touching(m, d, geom, obstacle, lane)
            ):
                d.sweep.hidden[0] = 1
                break
