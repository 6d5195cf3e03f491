"""Computes contacts of a convex shape with the triangles, the walls and the bottom of a height field.

A triangle has the contact points of its plane (`plane_points`) whose feet are on it: the foot of a point is its
projection on the plane.  On coplanar triangles, these are together the contact points of the plane.
A point in a valley is below the planes of both triangles, and its foot may be beyond their common edge, in the ground.
It belongs to both.
A point below a ridge may be deep below one triangle and close to the surface of another one.  Of the two, the shape
leaves the ground on the side where it is less deep: the other contact is dropped.
A wall counts if the shape's centre is beyond it, the bottom if the centre is below it.  All other shapes are pushed up,
however deep they are.
All points are in the frame of the field.  shapes.*[1] is the convex shape; shapes.pos[0] and shapes.mat[0] are used as
the pose of a plane.  relief.* has the contacts found.  m1 and d1 are the model and the data of one world.

Imported kernels:

    core_radius(d1, side)          radius around the core of a shape: of a sphere or a capsule, else 0
    add_contact(d1, dist, pos, n)  adds a contact to relief.*
    keep_spare                     keeps a point in the ground for a shape without another contact
    plane_points(m1, d1)           writes manifold.* of the shape and the plane
    height_over(m1, d1, p, n)      height of the shape's lowest point over a plane
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import core_radius, unit_axis
from featherlane.engine.collision.pairs.hfield_contacts import add_contact, keep_spare
from featherlane.engine.collision.pairs.hfield_grid import (
    across_triangle_edge,
    cells_between,
    has_sample,
    rounding_of_heights,
    sample_point,
    surface_height,
    triangle_points,
)
from featherlane.engine.collision.pairs.hfield_plane import height_over, plane_points

ON_EDGE = 1e-9  # of a cell: a foot outside a triangle by less is on its edge
SHALLOWER = 1e-9  # relative difference of two depths that is rounding
WALLS = 4  # number of walls, which are the faces 0 to WALLS - 1; face WALLS is the bottom


# ---- the walls and the bottom ----------------------------------------------------------------------------------------
@kernel
def outer_face(m1, field, face):
    """Returns (point, outward normal) of a wall or of the bottom.

    face: 0 and 1 are the walls at the end of the axes +x and -x, 2 and 3 those of +y and -y; WALLS is the bottom.
    """
    axis, sign = face // 2, 1.0 - 2.0 * (face % 2)
    extent = m1.hfield_size[field][0] if axis == 0 else m1.hfield_size[field][1]
    if face == WALLS:
        axis, sign, extent = 2, -1.0, m1.hfield_size[field][3]
    normal = unit_axis(axis, sign)
    return extent * normal, normal


@kernel
def faces_shape(m1, d1, field, face):
    """Returns whether the shape's centre is on the outer side of a wall or of the bottom."""
    p, n = outer_face(m1, field, face)
    return dot(d1.shapes.pos[1] - p, n) > 0.0


@kernel
def is_outside(m1, d1, field):
    """Returns whether the shape's centre is beyond a wall or below the bottom."""
    half_x, half_y, _, base = m1.hfield_size[field]
    x, y, z = d1.shapes.pos[1]
    return fabs(x) > half_x or fabs(y) > half_y or z < -base


@kernel
def is_on_outer_face(m1, field, face, foot):
    """Returns whether a point of the plane of a wall or of the bottom is on the field's surface.

    On a wall, the point is between the bottom and the height of the ground above it.
    """
    half_x, half_y, base = m1.hfield_size[field][0], m1.hfield_size[field][1], m1.hfield_size[field][3]
    most_x, most_y = (1.0 + ON_EDGE) * half_x, (1.0 + ON_EDGE) * half_y
    inside = fabs(foot[0]) <= most_x and fabs(foot[1]) <= most_y
    if face != WALLS:
        inside = inside and foot[2] >= -base and foot[2] <= surface_height(m1, field, foot[0], foot[1])
    return inside


@kernel
def is_below_surface(m1, field, q, slack):
    """Returns whether a point q between the walls is below the surface, or at most `slack` above it [m].

    A point below the bottom counts as below the surface: only a shape whose centre is below the bottom leaves there.
    """
    half_x, half_y = m1.hfield_size[field][0], m1.hfield_size[field][1]
    inside = fabs(q[0]) <= half_x and fabs(q[1]) <= half_y
    return inside and q[2] <= surface_height(m1, field, q[0], q[1]) + slack


# ---- the way out of the ground ---------------------------------------------------------------------------------------
@kernel
def is_above_triangle(a, b, c, n, q):
    """Returns whether the projection of a point along the triangle's normal n is inside the triangle."""
    return (
        dot(cross(n, b - a), q - a) >= 0.0 and dot(cross(n, c - b), q - b) >= 0.0 and dot(cross(n, a - c), q - c) >= 0.0
    )


@kernel
def leaves_elsewhere(m1, d1, field, q, depth, shape_depth):
    """Returns whether the shape leaves the ground through another face: its contact with the given face is dropped.

    It does if the other face is nearer to a point in the ground, and the whole shape is less deep below its plane.
    It also does if the point is beyond a wall, or below the bottom, that the shape's centre faces: it is not in the
    ground.

    Args:
        q: the point, in the ground below the given face.
        depth: its depth below this face [m].
        shape_depth: depth of the whole shape below this face [m].
    """
    # limits of the other face's depths: those of another face of the same plane differ by rounding only
    near = (1.0 - SHALLOWER) * depth - 4.0 * rounding_of_heights(m1, field)
    shallow = (1.0 - SHALLOWER) * shape_depth
    leaves = False
    for face in range(WALLS + 1 if is_outside(m1, d1, field) else 0):
        if faces_shape(m1, d1, field, face):
            p, n = outer_face(m1, field, face)
            below = dot(p - q, n)
            if below < 0.0:
                leaves = True  # the point is not in the ground
            elif below < near and is_on_outer_face(m1, field, face, fma(below, n, q)):
                leaves = leaves or -height_over(m1, d1, p, n) < shallow
    # triangles whose plane is nearer than the given face are within `depth` of the point
    half_x, half_y = m1.hfield_size[field][0], m1.hfield_size[field][1]
    rows = cells_between(q[1] - depth, q[1] + depth, half_y, m1.hfield_nrow[field] - 1)
    columns = cells_between(q[0] - depth, q[0] + depth, half_x, m1.hfield_ncol[field] - 1)
    for r in range(rows[0], rows[1]):
        for c in range(columns[0], columns[1]):
            for half in range(2):
                a, b, corner = triangle_points(m1, d1, field, r, c, half)
                n, _ = normalize3(cross(b - a, corner - a))
                below = dot(a - q, n)
                if below >= 0.0 and below < near and is_above_triangle(a, b, corner, n, q):
                    leaves = leaves or -height_over(m1, d1, a, n) < shallow
    return leaves


# ---- one face --------------------------------------------------------------------------------------------------------
@kernel
def set_plane(d1, p, n):
    """Sets the first shape to the plane through p across n; only the z axis of its orientation is set."""
    d1.shapes.pos[0] = p
    d1.shapes.mat[0] = Mat3(0.0, 0.0, n[0], 0.0, 0.0, n[1], 0.0, 0.0, n[2])


@kernel
def turn(a, b, q):
    """Returns a positive number if q is to the left of the line from a to b, seen from above."""
    return (b[0] - a[0]) * (q[1] - a[1]) - (b[1] - a[1]) * (q[0] - a[0])


@kernel
def is_within_edge(m1, d1, field, opposite, corners, n, foot, q, slack):
    """Returns whether a contact point belongs to a triangle, as far as one of its edges decides.

    It belongs to the triangle in two cases:

    - Its foot is not beyond the edge.
    - The edge is a valley, q is below the planes of both of its triangles and, seen from above, within the other two
      edges of the neighbour.

    Args:
        opposite: (row, column) of the neighbour's third corner.
        corners: start and end of the edge, and the triangle's third corner.
        n: the triangle's normal.
        foot, q: the point's foot and the point of the shape's core.
        slack: distance by which the foot may be beyond the edge [m].
    """
    start, end, third = corners
    edge = end - start
    length = fabs(edge[0]) + fabs(edge[1]) + fabs(edge[2])  # at most sqrt(3) times the length, without a root
    within = dot(cross(n, edge), foot - start) >= -slack * length
    if not within and has_sample(m1, field, opposite[0], opposite[1]) and dot(q - start, n) < 0.0:
        other = sample_point(m1, d1, field, opposite[0], opposite[1])
        fold = other[2] + third[2] - start[2] - end[2]
        if fold > rounding_of_heights(m1, field):  # the edge is a valley
            # the neighbour is (end, start, other), counterclockwise from above
            up = cross(start - end, other - end)
            within = dot(up, q - end) < 0.0 and turn(start, other, q) >= 0.0 and turn(other, end, q) >= 0.0
    return within


@kernel
def add_unless_leaving_elsewhere(m1, d1, field, shape_depth, i):
    """Adds contact point i of manifold.* unless the shape leaves the ground through another face.

    A shape whose core is in the air does not: the core is nearest to this face.
    shape_depth: depth of the whole shape below the plane of the contact [m].
    """
    dist, pos, n = d1.manifold.dist[i], d1.manifold.pos[i], d1.manifold.normal[i]
    radius = core_radius(d1, side=1)
    leaves = False
    # dist + radius: distance of the point of the core
    if dist + radius < 0.0:
        leaves = leaves_elsewhere(m1, d1, field, fma(0.5 * dist + radius, n, pos), -(dist + radius), shape_depth)
    if not leaves:
        add_contact(d1, dist, pos, n)


@stage
def collide_triangle(m1, d1, field, r, c, half):
    """Adds the contacts of the shape and a triangle of cell (r, c) to relief.*.

    A contact point of the triangle's plane (`plane_points`) is added if all of this holds:

    - It belongs to the triangle (`is_within_edge`).
    - It is above the plane, or in the ground: a point below the plane of a steep triangle may be above the surface.
    - The shape does not leave the ground through another face (`add_unless_leaving_elsewhere`).

    A point below the plane and in the ground is also kept as a spare contact, for any position of its foot
    (`keep_spare`).
    half: 0 or 1, which triangle of the cell (`triangle_points`).

    Reads:  shapes.*, hfield_*, hull_*.   Writes: relief.*, shapes.limit.   Scratch: manifold.*, shapes.pos, shapes.mat.
    """
    a, b, corner = triangle_points(m1, d1, field, r, c, half)
    n, _ = normalize3(cross(b - a, corner - a))
    lowest = height_over(m1, d1, a, n)
    if lowest <= d1.shapes.limit[0]:
        set_plane(d1, a, n)
        plane_points(m1, d1)
        # the feet of points on triangles that are coplanar up to rounding may miss both by their height times the fold
        cell = fmin(b[0] - a[0], corner[1] - a[1])
        height = fabs(dot(d1.shapes.pos[1] - a, n))
        slack = fma(ON_EDGE, cell, 4.0 * rounding_of_heights(m1, field) / cell * height)
        for i in range(d1.manifold.count[0]):
            dist, pos = d1.manifold.dist[i], d1.manifold.pos[i]
            # foot: the projection on the plane; q: the shape's point, of a sphere or a capsule the one in the core
            foot, q = fma(-0.5 * dist, n, pos), fma(0.5 * dist + core_radius(d1, side=1), n, pos)
            within = True
            for k, corners in ((0, (a, b, corner)), (1, (b, corner, a)), (2, (corner, a, b))):
                opposite = across_triangle_edge(r, c, half, k)
                within = within and is_within_edge(m1, d1, field, opposite, corners, n, foot, q, slack)
            # a point below the plane of a steep triangle may still be above the surface
            inside = dot(q - a, n) < 0.0
            buried = inside and is_below_surface(m1, field, q, slack)
            if within and (buried or not inside):
                add_unless_leaving_elsewhere(m1, d1, field, -lowest, i)
            if buried:
                keep_spare(d1, dist, pos, n, lowest)


@stage
def collide_outer_face(m1, d1, field, face):
    """Adds the contacts of the shape and a wall or the bottom to relief.*, if the shape's centre is on its outer side.

    A contact point of the face's plane (`plane_points`) is added if all of this holds:

    - Its foot is on the face (`is_on_outer_face`).
    - It is on the outer side of the face, or in the ground: on the inner side of a wall, it may be above lower ground.
    - The shape does not leave the ground through another face (`add_unless_leaving_elsewhere`).

    face: as in `outer_face`.

    Reads:  shapes.*, hfield_*, hull_*.   Writes: relief.*, shapes.limit.   Scratch: manifold.*, shapes.pos, shapes.mat.
    """
    if faces_shape(m1, d1, field, face):
        p, n = outer_face(m1, field, face)
        lowest = height_over(m1, d1, p, n)
        if lowest <= d1.shapes.limit[0]:
            set_plane(d1, p, n)
            plane_points(m1, d1)
            for i in range(d1.manifold.count[0]):
                dist, pos = d1.manifold.dist[i], d1.manifold.pos[i]
                # as in `collide_triangle`
                foot, q = fma(-0.5 * dist, n, pos), fma(0.5 * dist + core_radius(d1, side=1), n, pos)
                within = is_on_outer_face(m1, field, face, foot)
                # on the inner side
                if within and dot(q - p, n) < 0.0:
                    within = is_below_surface(m1, field, q, rounding_of_heights(m1, field))
                if within:
                    add_unless_leaving_elsewhere(m1, d1, field, -lowest, i)
