"""Computes contacts of a height field and a convex shape from the prisms under the shape.

A cell of the grid is two triangular prisms between the surface and the bottom of the base, cut along the diagonal from
(row, column) to (row + 1, column + 1); columns of samples run along x, rows along y.  In kernels, r is a row and c a
column.  Each prism is a convex shape and yields at most one point, its nearest or deepest one.
A sphere whose centre is in a prism or above it has a closed form; other cases use the search for convex pairs.
m1 and d1 are the model and the data of one world.  shapes.*[0] is the field, shapes.*[1] the convex shape.  PRISM is a
type of shape: the current prism, with the vertices shapes.prism.
The field has hfield_nrow rows of hfield_ncol samples from 0 to 1; hfield_size is (half side along x, half side along y,
height of the sample value 1, depth of the base) [m].  A contact is at most shapes.limit away; manifold.count points are
stored in manifold.pos, dist and normal.
A core is a shape without the radius around it: of a sphere its centre, of a capsule its segment; any other shape is its
own core.

Imported kernels:

    core_support(m1, d1, side, u)  (point, vertex): farthest point of a core along u, in its frame; its index
    core_radius(d1, side)          radius around the core [m]
    look_from_first(d1)            writes convex.pos and convex.mat, the second shape's pose in the frame of the first
    closest(m1, d1)                writes convex.dist, convex.normal and the nearest points convex.witness
    collide_prism_sphere(d1)       whether the closed form applies; if so, writes the same as `closest`

Source: MuJoCo mjc_ConvexHField, with its order of the prisms.  If there are more points than capacity, the first ones
    are kept, as there.  Deviation: depths of boxes and meshes are minimal.  MuJoCo 4.0.1 does not number the corners
    of a prism, mistakes a new corner for a known one and stops early, unless there is a margin.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.broad.heights import sample_before, sample_behind, sample_height
from featherlane.engine.collision.convex.pair import closest
from featherlane.engine.collision.convex.support import PRISM, core_radius, core_support, look_from_first
from featherlane.engine.collision.pairs.sphere_prism import collide_prism_sphere


@kernel
def farthest_along(m1, d1, u):
    """Returns the largest coordinate [m] of the second shape along the unit vector u, in the first shape's frame."""
    u_in_2 = d1.convex.mat[0].T @ u
    core, _ = core_support(m1, d1, 1, u_in_2)
    return dot(core, u_in_2) + dot(d1.convex.pos[0], u) + core_radius(d1, side=1)


@kernel
def extent_along(m1, d1, u, limit):
    """Returns (lowest, highest): the second shape's extent along u in the first one's frame, enlarged by the limit."""
    return -farthest_along(m1, d1, -u) - limit, farthest_along(m1, d1, u) + limit


@kernel
def cells_between(low, high, half, n):
    """Returns (first, end) of the cells that meet the interval from low to high; `end` is not included.

    n cells extend from -half to half.
    """
    return whole(sample_before(low, half, n)), whole(sample_behind(high, half, n))


@kernel
def set_corner(m1, d1, field, k, r, c):
    """Sets corner k of the prism at the bottom of the base, and corner 3 + k at the sample of row r and column c."""
    x = m1.hfield_size[field][0] * (2.0 * c / (m1.hfield_ncol[field] - 1) - 1.0)
    y = m1.hfield_size[field][1] * (2.0 * r / (m1.hfield_nrow[field] - 1) - 1.0)
    d1.shapes.prism[k] = (x, y, -m1.hfield_size[field][3])
    d1.shapes.prism[3 + k] = (x, y, sample_height(m1, field, r, c))


@kernel
def append_point(d1):
    """Appends the point that `closest` or `collide_prism_sphere` left in convex.* to the manifold."""
    k = d1.manifold.count[0]
    d1.manifold.count[0] = k + 1
    d1.manifold.dist[k] = d1.convex.dist[0]
    d1.manifold.pos[k] = 0.5 * (d1.convex.witness[0] + d1.convex.witness[1])
    d1.manifold.normal[k] = d1.convex.normal[0]


@kernel
def set_prism(m1, d1, field, r, c, half):
    """Sets shapes.prism to the prism under one triangle of cell (r, c); half: 0 or 1, its side of the diagonal."""
    # the corners (row, column) from (r, c): (1, 0), (0, 0), (1, 1) for half 0; (0, 0), (1, 1), (0, 1) for half 1
    for k, row, column in ((0, 1 - half, 0), (1, half, half), (2, 1 - half, 1)):
        set_corner(m1, d1, field, k, r + row, c + column)


@kernel
def prism_top(m1, field, r, c, half):
    """Returns the height [m] of the highest corner of the prism of cell (r, c) that `set_prism` sets for `half`."""
    # both prisms have the ends of the diagonal; the third corner differs
    third = sample_height(m1, field, r + 1, c) if half == 0 else sample_height(m1, field, r, c + 1)
    return fmax(fmax(sample_height(m1, field, r, c), sample_height(m1, field, r + 1, c + 1)), third)


@kernel
def collide_cell(m1, d1, field, r, c, lowest):
    """Adds the contact points of the two prisms of cell (r, c), except prisms that are below the height `lowest`.

    lowest: height of the shape's lowest point less the limit, in the field's frame [m].
    """
    for half in range(2):
        if prism_top(m1, field, r, c, half) >= lowest and d1.manifold.count[0] < d1.nmanifold:
            set_prism(m1, d1, field, r, c, half)  # writes shapes.prism
            # both write convex.*
            if not collide_prism_sphere(d1):
                closest(m1, d1)
            if d1.convex.dist[0] <= d1.shapes.limit[0]:
                append_point(d1)


@kernel
def reaches_height(m1, field, rows, columns, lowest):
    """Returns 1 if a sample at the corners of these cells is at least as high as `lowest` [m], else 0.

    rows, columns: (first, end) of `cells_between`.
    """
    for r in range(rows[0], rows[1] + 1):
        for c in range(columns[0], columns[1] + 1):
            if sample_height(m1, field, r, c) >= lowest:
                return 1
    return 0


@stage
def height_field(m1, d1):
    """Computes contact points of the height field `shapes.data` and the second shape, at most nmanifold.

    Reads:  shapes.*, hfield_*.
    Writes: manifold.*.
    Scratch: shapes.*, convex.*, support.*.
    Cost:   O(cells under the shape's bounding box).
    """
    field, limit = d1.shapes.data[0], d1.shapes.limit[0]
    sx, sy = m1.hfield_size[field][0], m1.hfield_size[field][1]
    d1.manifold.count[0] = 0
    look_from_first(d1)  # convex.pos, convex.mat: the second shape in the frame of the first
    # the shape's bounding box in the frame of the field, enlarged by the limit
    x0, x1 = extent_along(m1, d1, Vec3(1.0, 0.0, 0.0), limit)
    y0, y1 = extent_along(m1, d1, Vec3(0.0, 1.0, 0.0), limit)
    z0, z1 = extent_along(m1, d1, Vec3(0.0, 0.0, 1.0), limit)
    outside = (x0 > sx) | (x1 < -sx) | (y0 > sy) | (y1 < -sy)
    above = z0 > m1.hfield_size[field][2]
    below = z1 < -m1.hfield_size[field][3]
    if not (outside | above | below):
        ncell_x, ncell_y = m1.hfield_ncol[field] - 1, m1.hfield_nrow[field] - 1
        d1.shapes.type[0] = PRISM  # the first shape of `closest`
        rows, columns = cells_between(y0, y1, sy, ncell_y), cells_between(x0, x1, sx, ncell_x)
        if reaches_height(m1, field, rows, columns, z0):
            for r in range(rows[0], rows[1]):
                for c in range(columns[0], columns[1]):
                    collide_cell(m1, d1, field, r, c, z0)
                if d1.manifold.count[0] >= d1.nmanifold:
                    break
