"""Copies a contact feature to a polygon, cuts the polygon by the face of another shape, and reduces its corners.

Two polygons are stored in clip.buffer, one before and one after a cut.  All points are in contact coordinates: two
tangents and the normal, from the first shape to the second.  Features are stored in feature.*[side]: `load_corner`, and
feature.count, which is POINT, SEGMENT, DISC or the number of corners (feature.py).
d1 is the data of one world.  RIM is the number of points around a disc.
shapes.*[side] has the type, the size and the pose of each shape; convex.dist is their distance, shapes.limit the
largest one that counts.  feature.axes and feature.origin define the contact coordinates.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.feature import DISC, RIM, load_corner

BUFFER = 384  # numbers of one polygon in `clip.buffer`: 128 corners
CORNERS = 100  # maximum corners of a cut polygon


@kernel
def count_corners(d1, side):
    """Returns the number of corners of a feature; a disc has RIM corners on its rim."""
    return RIM if d1.feature.count[side] == DISC else d1.feature.count[side]


@kernel
def polygon_corner(d1, polygon, i):
    """Returns corner i of polygon 0 or 1."""
    # three coordinates per corner, BUFFER numbers per polygon
    return Vec3(d1.clip.buffer[BUFFER * polygon + 3 * i : BUFFER * polygon + 3 * i + 3])


@kernel
def set_polygon_corner(d1, polygon, i, x):
    """Stores corner i of polygon 0 or 1."""
    d1.clip.buffer[BUFFER * polygon + 3 * i : BUFFER * polygon + 3 * i + 3] = x


@kernel
def into_contact(d1, v):
    """Returns a vector in contact coordinates, given in world axes."""
    return d1.feature.axes[0] @ v


@kernel
def capsule_axis(d1, side):
    """Returns the axis of a capsule, in world axes."""
    return d1.shapes.mat[side].columns[2]


@kernel
def load_polygon(d1, side):
    """Copies the feature of a shape to polygon 0; returns its number of corners.

    A capsule is a line parallel to its axis, between its ends.  The line goes through the capsule's nearest point,
    which is moved outwards along the contact's normal by half of the limit.
    """
    count = count_corners(d1, side)
    if d1.shapes.type[side] == CAPSULE:
        count = 2
        half = d1.shapes.size[side][1]
        axis = into_contact(d1, capsule_axis(d1, side))
        centre = into_contact(d1, d1.shapes.pos[side] - d1.feature.origin[0])
        # the moved point is on the normal: at -(dist - limit) / 2 for side 0, (dist - limit) / 2 for side 1
        nearest = Vec3(0.0, 0.0, (1.0 * side - 0.5) * (d1.convex.dist[0] - d1.shapes.limit[0]))
        along = dot(nearest - centre, axis)
        set_polygon_corner(d1, 0, 0, fma(half - along, axis, nearest))
        set_polygon_corner(d1, 0, 1, fma(-half - along, axis, nearest))
    else:
        for k in range(count):
            set_polygon_corner(d1, 0, k, load_corner(d1, side, k))
    return count


@kernel
def face_normal(d1, side):
    """Returns the unit normal of the face of a shape, about which its corners are counterclockwise.

    A disc has the normal of its first three corners.  A polygon has feature.normal, which is more precise, with the
    sign of that normal.
    """
    a, b, c = load_corner(d1, side, 0), load_corner(d1, side, 1), load_corner(d1, side, 2)
    normal = normalize3(cross(b - a, c - b))[0]
    if d1.feature.count[side] == DISC:
        return normal
    stored = d1.feature.normal[side]
    return -stored if dot(stored, normal) < 0.0 else stored


@kernel
def pointing_outward(side, normal):
    """Returns normal or -normal, whichever points out of shape `side`: up for the first shape, down for the second."""
    return -normal if (1.0 - 2.0 * side) * normal[2] < 0.0 else normal


@kernel
def cut_by_plane(d1, polygon, count, point, inward):
    """Cuts a polygon by a plane, and stores the kept part as polygon 1 - polygon; returns its number of corners.

    Args:
        polygon, count: the polygon, and its number of corners.
        point, inward: a point of the plane, and its unit normal towards the part that is kept.
    """
    new_count = 0
    previous = polygon_corner(d1, polygon, 0)
    for i in range(count):
        start = previous
        end = polygon_corner(d1, polygon, i + 1 if i + 1 < count else 0)
        previous = end
        start_height, end_height = dot(start - point, inward), dot(end - point, inward)
        if new_count < CORNERS:
            start_kept, end_kept = (1 if start_height > -MINVAL else 0), (1 if end_height > -MINVAL else 0)
            # the edge crosses the plane: its crossing becomes a corner
            if start_kept != end_kept:
                t = start_height / (start_height - end_height)
                if t >= 0.0 and t <= 1.0:
                    set_polygon_corner(d1, 1 - polygon, new_count, fma(t, end - start, start))
                    new_count += 1
            if end_kept == 1:
                set_polygon_corner(d1, 1 - polygon, new_count, end)
                new_count += 1
    return new_count


@kernel
def cut_by_face(d1, side, count):
    """Cuts polygon 0 by the planes through all edges of the face of `side`; returns (polygon, count) of the kept part.

    count: number of corners of polygon 0.  A plane is parallel to the face's normal; its inner side is normal x edge.
    """
    normal = face_normal(d1, side)
    face_count = count_corners(d1, side)
    polygon = 0
    for i in range(face_count):
        start = load_corner(d1, side, i)
        end = load_corner(d1, side, i + 1 if i + 1 < face_count else 0)
        count = cut_by_plane(d1, polygon, count, start, normalize3(cross(normal, end - start))[0])
        polygon = 1 - polygon
    return polygon, count


@kernel
def keep_near(d1, polygon, count, point, normal, limit):
    """Keeps the corners of a polygon at most `limit` above the plane through a point; returns their number."""
    kept = 0
    for k in range(count):
        corner = polygon_corner(d1, polygon, k)
        if dot(corner - point, normal) <= limit:
            set_polygon_corner(d1, polygon, kept, corner)
            kept += 1
    return kept


@kernel
def keep_farthest_two(d1, polygon, count):
    """Moves the two corners of a polygon that are farthest apart to the front; returns their number."""
    largest = -1.0  # below any squared length
    first, second = 0, 1
    for i in range(count):
        for j in range(i + 1, count):
            edge = polygon_corner(d1, polygon, j) - polygon_corner(d1, polygon, i)
            if dot(edge, edge) > largest:
                largest = dot(edge, edge)
                first, second = i, j
    end1, end2 = polygon_corner(d1, polygon, first), polygon_corner(d1, polygon, second)
    set_polygon_corner(d1, polygon, 0, end1)
    set_polygon_corner(d1, polygon, 1, end2)
    return 2


@kernel
def doubled_area(d1, polygon, i0, i1, i2, i3):
    """Returns the doubled area of a quadrilateral p, q, r, s: corners i0 to i3 of a polygon.

    It is the length of the sum of its triangles' normals, (s - p) x (q - s) + (r - q) x (p - r).
    """
    p, q, r, s = tuple(polygon_corner(d1, polygon, corner) for corner in (i0, i1, i2, i3))
    return norm3(cross(s - p, q - s) + cross(r - q, p - r))


@kernel
def keep_quadrilateral(d1, polygon, count):
    """Moves the four corners of a quadrilateral of nearly largest area to the front of the polygon; returns 4.

    For each first corner i0, i3 advances as long as this enlarges the area, and after each step of i3, i2 does so, then
    i1 (rotating calipers).   best0 to best3: the corners of the largest area so far.
    """
    i1, i2, i3 = 1, 2, 3
    best0, best1, best2, best3 = 0, 1, 2, 3
    largest = doubled_area(d1, polygon, 0, i1, i2, i3)
    for i0 in range(count):
        grows = True
        while grows:
            area = doubled_area(d1, polygon, i0, i1, i2, (i3 + 1) % count)
            grows = area > largest
            if grows:
                largest = area
                i3 = (i3 + 1) % count
                area = doubled_area(d1, polygon, i0, i1, (i2 + 1) % count, i3)
                while area > largest:
                    largest = area
                    i2 = (i2 + 1) % count
                    area = doubled_area(d1, polygon, i0, i1, (i2 + 1) % count, i3)
                area = doubled_area(d1, polygon, i0, (i1 + 1) % count, i2, i3)
                while area > largest:
                    largest = area
                    i1 = (i1 + 1) % count
                    area = doubled_area(d1, polygon, i0, (i1 + 1) % count, i2, i3)
                best0, best1, best2, best3 = i0, i1, i2, i3
        # i0 advances next: i1, i2 and i3 must stay in order and different from each other
        if i1 == i0:
            i1 = (i1 + 1) % count
            if i2 == i1:
                i2 = (i2 + 1) % count
                if i3 == i2:
                    i3 = (i3 + 1) % count
    corners = tuple(polygon_corner(d1, polygon, i) for i in (best0, best1, best2, best3))
    for k in unrolled(range(4)):
        set_polygon_corner(d1, polygon, k, corners[k])
    return 4
