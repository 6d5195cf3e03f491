"""Computes contacts of a height field and a convex shape: those with its triangles, ridges, peaks, walls and bottom.

The surface is made of triangles; the ground below it is solid down to the bottom of the base.  Contacts are pairs of a
feature of the surface and one of the shape that are locally nearest: the normal of a contact is that of a triangle, or
is between the normals of the sides of a ridge or a peak.  Edges in flat or concave ground have no contacts.
A shape on coplanar triangles thus has the contacts of a plane, whatever the size of the cells.
The search visits the triangles, edges and samples under the shape's bounding rectangle (`hfield_faces`,
`hfield_ridges`).

m1 and d1 are the model and the data of one world.  shapes.*[0] is the field, shapes.*[1] the convex shape.
A contact is at most shapes.limit away; manifold.count points are stored in manifold.pos, dist and normal.
hfield_size is (half side along x, half side along y, height of the sample value 1, depth of the base) [m].

Imported kernels:

    look_from_first(d1)              writes convex.pos and convex.mat, the second shape's pose in the frame of the first
    farthest_along(m1, d1, u)        largest coordinate of the second shape along u
    add_spare(d1)                    adds the contact of a shape in a pit, if it has no other
    cells_between                    (first, end) of the cells that meet an interval

Source: the surface, its triangles and the base are those of MuJoCo's mjc_ConvexHField.  Deviation: MuJoCo computes one
    contact for each triangular prism, of which the inner walls count as surfaces.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.broad.heights import sample_height
from featherlane.engine.collision.convex.support import look_from_first, unit_axis
from featherlane.engine.collision.pairs.hfield_contacts import NO_SPARE, add_spare
from featherlane.engine.collision.pairs.hfield_faces import (
    ON_EDGE,
    WALLS,
    collide_outer_face,
    collide_triangle,
    is_outside,
)
from featherlane.engine.collision.pairs.hfield_grid import cells_between, sample_point
from featherlane.engine.collision.pairs.hfield_plane import farthest_along
from featherlane.engine.collision.pairs.hfield_ridges import collide_outer_edge, collide_ridges


@kernel
def set_extent(m1, d1):
    """Sets relief.low and relief.high: corners of the shape's bounding box in the field's frame, enlarged by the limit.

    A negative limit does not reduce the box: what is deep in the ground may be at the shape's side.
    """
    limit = fmax(d1.shapes.limit[0], 0.0)
    high = Vec3(farthest_along(m1, d1, unit_axis(k, 1.0)) for k in range(3))
    # all shapes but hulls are symmetric about their centres
    low = 2.0 * d1.shapes.pos[1] - high
    if d1.shapes.type[1] == MESH:
        low = Vec3(-farthest_along(m1, d1, unit_axis(k, -1.0)) for k in range(3))
    d1.relief.low[0] = Vec3(low[k] - limit for k in range(3))
    d1.relief.high[0] = Vec3(high[k] + limit for k in range(3))


@kernel
def cells_under(m1, d1, field, wider):
    """Returns (rows, columns): (first, end) of the rows and columns of cells under the shape's bounding box.

    wider: distance by which the box is enlarged [m].
    """
    low, high = d1.relief.low[0], d1.relief.high[0]
    return (
        cells_between(low[1] - wider, high[1] + wider, m1.hfield_size[field][1], m1.hfield_nrow[field] - 1),
        cells_between(low[0] - wider, high[0] + wider, m1.hfield_size[field][0], m1.hfield_ncol[field] - 1),
    )


@kernel
def reach_of_feet(m1, d1, field, rows, columns):
    """Returns how far the feet of the shape's points may be beyond its bounding box, along x and y [m].

    The foot of a point is its projection on the plane of a triangle.
    The depth of a point in the ground is at most the height of the highest ground above the bottom of the box.  On a
    slope, the horizontal distance to its foot is less than the depth.
    rows, columns: (first, end) of the cells under the box.
    """
    # the box is enlarged by the limit on all sides: its bottom is too low by the limit, and its sides too far out
    limit = fmax(d1.shapes.limit[0], 0.0)
    highest = d1.relief.low[0][2]
    for r in range(rows[0], rows[1] + 1):
        for c in range(columns[0], columns[1] + 1):
            highest = fmax(highest, sample_height(m1, field, r, c))
    return fmax(highest - d1.relief.low[0][2] - 2.0 * limit, 0.0)


@kernel
def reaches_plane(d1, start, rise_x, rise_y):
    """Returns whether the shape's bounding box reaches below the plane z = start_z + slope_x x + slope_y y.

    start: a corner of the triangle in this plane; x, y: offset from it; rise_x, rise_y: the plane's rise over the side
    of a cell along x and y [m].
    """
    low, high, slack = d1.relief.low[0], d1.relief.high[0], ON_EDGE * d1.relief.cell[0]
    slope_x, slope_y = rise_x / d1.relief.cell[0], rise_y / d1.relief.cell[1]
    # the corner of the box that is deepest below the plane
    x = (high[0] if slope_x > 0.0 else low[0]) - start[0]
    y = (high[1] if slope_y > 0.0 else low[1]) - start[1]
    return low[2] - start[2] - slope_x * x - slope_y * y <= slack


@kernel
def collide_triangles(m1, d1, field, rows, columns):
    """Adds the contacts of the shape and the triangles of these cells, which are (first, end) of rows and columns.

    A triangle is skipped if it is below the shape's bounding box, or the box is above its plane.
    """
    lowest = d1.relief.low[0][2]
    for r in range(rows[0], rows[1]):
        for c in range(columns[0], columns[1]):
            # the heights of the cell's corners: the diagonal from start to end, and one more corner of each triangle
            start, end = sample_point(m1, d1, field, r, c), sample_height(m1, field, r + 1, c + 1)
            next_row, next_column = sample_height(m1, field, r + 1, c), sample_height(m1, field, r, c + 1)
            top = fmax(start[2], end)  # of the diagonal
            # half 0 has the corner in the next row, half 1 the corner in the next column
            if fmax(top, next_row) >= lowest and reaches_plane(d1, start, end - next_row, next_row - start[2]):
                collide_triangle(m1, d1, field, r, c, half=0)
            if fmax(top, next_column) >= lowest and reaches_plane(d1, start, next_column - start[2], end - next_column):
                collide_triangle(m1, d1, field, r, c, half=1)


@kernel
def collide_outside(m1, d1, field):
    """Adds the contacts of the shape with the walls, the bottom, and the edges between them (`outer_face`)."""
    for face in range(WALLS + 1):
        collide_outer_face(m1, d1, field, face)
    # the edges of the bottom, which is face WALLS
    for wall in range(WALLS):
        collide_outer_edge(m1, d1, field, wall, WALLS)
    # the vertical edges, between walls 0 and 1, across x, and walls 2 and 3, across y
    for wall in range(2):
        for other in range(2, WALLS):
            collide_outer_edge(m1, d1, field, wall, other)


@kernel
def to_field_frame(d1):
    """Stores the field's pose in relief.origin and relief.axes; sets the shape's pose in the frame of the field."""
    look_from_first(d1)  # writes convex.pos, convex.mat
    d1.relief.origin[0] = d1.shapes.pos[0]
    d1.relief.axes[0] = d1.shapes.mat[0]
    d1.shapes.pos[1] = d1.convex.pos[0]
    d1.shapes.mat[1] = d1.convex.mat[0]


@kernel
def is_off_field(m1, d1, field):
    """Returns whether the shape's bounding box is apart from the box around the field, along one of its axes."""
    low, high = d1.relief.low[0], d1.relief.high[0]
    sx, sy, top, base = m1.hfield_size[field]
    return low[0] > sx or high[0] < -sx or low[1] > sy or high[1] < -sy or low[2] > top or high[2] < -base


@stage
def surface_contacts(m1, d1):
    """Computes the contacts of the height field and the shape in relief.*, in the frame of the field.

    With relief.nearest = 1 only the nearest one is kept: each contact reduces shapes.limit to its distance.
    If the shape's centre is beyond a wall or below the bottom, the walls and the bottom have contacts, too; otherwise
    the spare contact may be added (`add_spare`).

    Reads:  shapes.*, hfield_*, hull_*, relief.nearest.
    Writes: relief.*, manifold.full, shapes.limit.
    Scratch: shapes.*, convex.*, manifold.*, feature.*, clip.*, what `closest` writes.
    Cost:   O(cells under the shape's bounding rectangle).
    """
    field = d1.shapes.data[0]
    d1.relief.count[0] = 0
    d1.relief.spare_low[0] = NO_SPARE
    to_field_frame(d1)
    d1.relief.cell[0] = 2.0 * m1.hfield_size[field][0] / (m1.hfield_ncol[field] - 1)
    d1.relief.cell[1] = 2.0 * m1.hfield_size[field][1] / (m1.hfield_nrow[field] - 1)
    set_extent(m1, d1)
    if not is_off_field(m1, d1, field):
        rows, columns = cells_under(m1, d1, field, 0.0)
        rows_of_feet, columns_of_feet = cells_under(m1, d1, field, reach_of_feet(m1, d1, field, rows, columns))
        collide_triangles(m1, d1, field, rows_of_feet, columns_of_feet)
        if is_outside(m1, d1, field):
            collide_outside(m1, d1, field)
        if d1.relief.nearest[0] == 1:
            # the limit is now the distance of the nearest triangle: fewer cells are within it
            set_extent(m1, d1)
            rows, columns = cells_under(m1, d1, field, 0.0)
        collide_ridges(m1, d1, field, rows, columns)
        if not is_outside(m1, d1, field):
            add_spare(d1)


@stage
def height_field(m1, d1):
    """Computes contact points of the height field `shapes.data` and the second shape, at most nmanifold.

    If there are more, the deepest are kept, and manifold.full is 1.

    Reads:  shapes.*, hfield_*, hull_*.
    Writes: manifold.*.
    Scratch: shapes.*, relief.*, convex.*, feature.*, clip.*, what `closest` writes.
    Cost:   O(cells under the shape's bounding rectangle).
    """
    d1.relief.nearest[0] = 0
    surface_contacts(m1, d1)
    axes, origin = d1.relief.axes[0], d1.relief.origin[0]
    for i in range(d1.relief.count[0]):
        d1.manifold.dist[i] = d1.relief.dist[i]
        d1.manifold.pos[i] = axes @ d1.relief.pos[i] + origin
        d1.manifold.normal[i] = axes @ d1.relief.normal[i]
    d1.manifold.count[0] = d1.relief.count[0]
