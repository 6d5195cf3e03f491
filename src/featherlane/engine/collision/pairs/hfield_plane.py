"""Computes the contact points of a plane and a convex shape, one world at a time: for the triangles of height fields.

The points are those of the pair functions of planes: a height field that is flat has the contacts of a plane.
shapes.*[1] is the convex shape.  A plane is given by a point p and its unit normal n.  manifold.count points are
stored in manifold.pos, dist and normal; shapes.limit is the largest distance of a contact.
m1 and d1 are the model and the data of one world.

Imported kernels:

    core_support(m1, d1, side, u)  (point, vertex): farthest point of a core along u, in its frame; its index
    plane_cylinder                 four pairs (distance, point) of a cylinder over a plane
    plane_mesh(m1, d1)             writes manifold.* of the plane shapes.*[0] and the hull shapes.*[1]
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import core_support
from featherlane.engine.collision.pairs.cylinder import plane_cylinder
from featherlane.engine.collision.pairs.ellipsoid import plane_ellipsoid
from featherlane.engine.collision.pairs.plane_mesh import plane_mesh
from featherlane.engine.collision.pairs.primitive import corner_height, half_axis_heights, plane_sphere


@kernel
def farthest_along(m1, d1, u):
    """Returns the largest coordinate [m] of the convex shape along the unit vector u: max over its points of x . u."""
    R, size, kind = d1.shapes.mat[1], d1.shapes.size[1], d1.shapes.type[1]
    extent = size[0]  # from the shape's centre: a sphere's radius
    if kind == CAPSULE:
        extent = fma(size[1], fabs(dot(R.columns[2], u)), size[0])
    elif kind != SPHERE:
        u_in_shape = R.T @ u
        core, _ = core_support(m1, d1, 1, u_in_shape)
        extent = dot(core, u_in_shape)
    return extent + dot(d1.shapes.pos[1], u)


@kernel
def height_over(m1, d1, p, n):
    """Returns the height of the convex shape's lowest point over a plane, negative below it [m]."""
    return -farthest_along(m1, d1, -n) - dot(p, n)


@kernel
def add_plane_point(d1, dist, pos, n):
    """Adds a contact point to manifold.*."""
    k = d1.manifold.count[0]
    d1.manifold.dist[k] = dist
    d1.manifold.pos[k] = pos
    d1.manifold.normal[k] = n
    d1.manifold.count[0] = k + 1


@kernel
def add_box_corners(d1, p, n):
    """Adds the corners of a box that are within the limit over the plane, and not higher than the box's centre."""
    centre, R, size = d1.shapes.pos[1], d1.shapes.mat[1], d1.shapes.size[1]
    height, half_axis_height = dot(centre - p, n), half_axis_heights(R, size, n)
    for i in range(8):
        # the signs of the corner's coordinates: -1 or 1 for bits 0, 1, 2 of i
        sx, sy, sz = 2.0 * (i & 1) - 1.0, 1.0 * (i & 2) - 1.0, 0.5 * (i & 4) - 1.0
        above_centre = corner_height(sx, sy, sz, half_axis_height)
        dist = height + above_centre
        if dist <= d1.shapes.limit[0] and above_centre <= 0.0:
            corner = R @ Vec3(sx * size[0], sy * size[1], sz * size[2]) + centre
            add_plane_point(d1, dist, fma(-0.5 * dist, n, corner), n)


@kernel
def add_cylinder_points(d1, p, n):
    """Adds up to four points of a cylinder, none if its lowest point is beyond the limit."""
    centre, size = d1.shapes.pos[1], d1.shapes.size[1]
    # four pairs (distance, point), the lowest one first
    found = plane_cylinder(plain_dot3(centre - p, n), n, centre, d1.shapes.mat[1], size[0], size[1])
    lowest = found[0][0]
    for i in unrolled(range(4)):
        dist, pos = found[i]
        if lowest <= d1.shapes.limit[0] and dist <= d1.shapes.limit[0]:
            add_plane_point(d1, dist, pos, n)


@stage
def plane_points(m1, d1):
    """Computes the contact points of the convex shape and the plane of shapes.*[0], whose normal is the z axis.

    Reads:  shapes.*, hull_*.   Writes: manifold.*.
    """
    d1.manifold.count[0] = 0
    p, n = d1.shapes.pos[0], d1.shapes.mat[0].columns[2]
    kind, size, centre = d1.shapes.type[1], d1.shapes.size[1], d1.shapes.pos[1]
    limit = d1.shapes.limit[0]
    if kind == MESH:
        plane_mesh(m1, d1)
    elif kind == BOX:
        add_box_corners(d1, p, n)
    elif kind == CYLINDER:
        add_cylinder_points(d1, p, n)
    elif kind == ELLIPSOID:
        touch, dist, pos = plane_ellipsoid(p, n, centre, d1.shapes.mat[1], size, limit)
        if touch:
            add_plane_point(d1, dist, pos, n)
    else:
        # a sphere has one end, a capsule two, first the one at the positive end of the axis
        half = size[1] if kind == CAPSULE else 0.0
        for end in range(2 if kind == CAPSULE else 1):
            centre_of_end = fma((1.0 - 2.0 * end) * half, d1.shapes.mat[1].columns[2], centre)
            touch, dist, pos = plane_sphere(p, n, centre_of_end, size[0], limit)
            if touch:
                add_plane_point(d1, dist, pos, n)
