"""Height field against a convex shape: the prisms under the shape, one after the other.

A cell of the grid is two triangular prisms between the surface and the bottom of the base, cut along the diagonal from
(row, column) to (row + 1, column + 1); columns of samples run along x, rows along y.  Each prism is a convex shape and
gives at most one point, its nearest or deepest one.
A sphere whose centre is in a prism or above it has a closed form; all else goes through the search for convex pairs.
Source: MuJoCo mjc_ConvexHField, with its order of the prisms, and its choice where there are more points than room:
    the first ones.  Deviation: depths of boxes and meshes are the least ones; MuJoCo 4.0.1 numbers no corners of a
    prism, takes a new corner for a known one and stops early, unless there is a margin.
"""

from featherlane.prelude import *
from featherlane.collision.convex.pair import closest
from featherlane.collision.convex.support import PRISM, core_radius, core_support, look_from_first
from featherlane.collision.pairs.sphere_prism import meets_sphere


@kernel
def reach(m1, d1, u):
    """How far the second shape reaches along the unit vector u from the origin of the first one's frame."""
    v = mat_t_mul_vec(load9(d1.convex.mat, 0), u)
    a, _ = core_support(m1, d1, 1, v)
    return dot3(a, v) + dot3(load3(d1.convex.pos, 0), u) + core_radius(d1, 1)


@kernel
def height(m1, field, r, c):
    """Height of a sample."""
    return m1.hfield_data[m1.hfield_adr[field] + r * m1.hfield_ncol[field] + c] * m1.hfield_size[4 * field + 2]


@kernel
def set_corner(m1, d1, field, k, r, c):
    """Corner k of the prism: a sample, and the bottom of the base below it."""
    x = m1.hfield_size[4 * field] * (2.0 * c / (m1.hfield_ncol[field] - 1) - 1.0)
    y = m1.hfield_size[4 * field + 1] * (2.0 * r / (m1.hfield_nrow[field] - 1) - 1.0)
    store3(d1.shapes.prism, 3 * k, (x, y, -m1.hfield_size[4 * field + 3]))
    store3(d1.shapes.prism, 9 + 3 * k, (x, y, height(m1, field, r, c)))


@kernel
def append_point(d1):
    """What `closest` found as one more point of the manifold."""
    k = d1.manifold.count[0]
    d1.manifold.count[0] = k + 1
    d1.manifold.dist[k] = d1.convex.dist[0]
    store3(d1.manifold.pos, 3 * k, scale3(0.5, add3(load3(d1.convex.witness, 0), load3(d1.convex.witness, 3))))
    store3(d1.manifold.normal, 3 * k, load3(d1.convex.normal, 0))


@kernel
def set_prism(m1, d1, field, r, c, half):
    """The prism under one of the two triangles of a cell, which its diagonal parts."""
    if half == 0:
        set_corner(m1, d1, field, 0, r + 1, c)
        set_corner(m1, d1, field, 1, r, c)
        set_corner(m1, d1, field, 2, r + 1, c + 1)
    else:
        set_corner(m1, d1, field, 0, r, c)
        set_corner(m1, d1, field, 1, r + 1, c + 1)
        set_corner(m1, d1, field, 2, r, c + 1)


@kernel
def top(m1, field, r, c, half):
    """Height of the highest corner of that prism."""
    if half == 0:
        other = height(m1, field, r + 1, c)
    else:
        other = height(m1, field, r, c + 1)
    return fmax(fmax(height(m1, field, r, c), height(m1, field, r + 1, c + 1)), other)


@kernel
def meet_cell(m1, d1, field, r, c, lowest):
    """The points of the two prisms of a cell, but of one whose top is all below the shape."""
    for half in range(2):
        if top(m1, field, r, c, half) >= lowest and d1.manifold.count[0] < d1.nmanifold:
            set_prism(m1, d1, field, r, c, half)
            if not meets_sphere(d1):
                closest(m1, d1)
            if d1.convex.dist[0] <= d1.shapes.limit[0]:
                append_point(d1)


@kernel
def rises_to(m1, field, rows, columns, lowest):
    """Is some sample of the cells, first and behind the last of each, that high?  Where none is no prism is made."""
    for r in range(rows[0], rows[1] + 1):
        for c in range(columns[0], columns[1] + 1):
            if height(m1, field, r, c) >= lowest:
                return 1
    return 0


@kernel
def first_cell(low, half, n):
    """The cell, of n, under a coordinate of the field's frame."""
    return whole(clip(floor((low + half) / (2.0 * half) * n), 0.0, 1.0 * n))


@kernel
def last_cell(high, half, n):
    """The number behind the last cell that begins before a coordinate."""
    return whole(clip(-floor(-(high + half) / (2.0 * half) * n), 0.0, 1.0 * n))


@stage
def height_field(m1, d1):
    """Points of the height field `shapes.data` and the second shape, at most nmanifold.

    Reads:  shapes.*, hfield_*.
    Writes: manifold.*; shapes.*, convex.*, support.* for itself.
    Cost:   O(cells under the shape's bounding box).
    """
    field, limit = d1.shapes.data[0], d1.shapes.limit[0]
    sx, sy = m1.hfield_size[4 * field], m1.hfield_size[4 * field + 1]
    d1.manifold.count[0] = 0
    look_from_first(d1)
    # the shape's bounding box in the frame of the field, wider by the limit
    o, one = zero(d1), real(d1, 1.0)
    x0, x1 = -reach(m1, d1, (-one, o, o)) - limit, reach(m1, d1, (one, o, o)) + limit
    y0, y1 = -reach(m1, d1, (o, -one, o)) - limit, reach(m1, d1, (o, one, o)) + limit
    z0, z1 = -reach(m1, d1, (o, o, -one)) - limit, reach(m1, d1, (o, o, one)) + limit
    beside = (x0 > sx) | (x1 < -sx) | (y0 > sy) | (y1 < -sy)
    above, below = z0 > m1.hfield_size[4 * field + 2], z1 < -m1.hfield_size[4 * field + 3]
    if not (beside | above | below):
        ncol, nrow = m1.hfield_ncol[field] - 1, m1.hfield_nrow[field] - 1
        d1.shapes.type[0] = PRISM
        rows = first_cell(y0, sy, nrow), last_cell(y1, sy, nrow)
        columns = first_cell(x0, sx, ncol), last_cell(x1, sx, ncol)
        if rises_to(m1, field, rows, columns, z0):
            for r in range(rows[0], rows[1]):
                for c in range(columns[0], columns[1]):
                    meet_cell(m1, d1, field, r, c, z0)
                if d1.manifold.count[0] >= d1.nmanifold:
                    break
