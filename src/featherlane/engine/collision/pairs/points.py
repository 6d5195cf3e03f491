"""Computes contact points of pairs with a closed form, in all worlds at once, from the tile's geoms into its slots.

`g` and `h` are the geoms of the pair, in the order of the function's name.  `near` is the mask of worlds where the pair
is near; `limit` is margin plus gap, the maximum distance of a contact point.  `append` stores point i in worlds of
its mask.  Of geom 1 and 2, c is the centre, R the orientation, z its z axis, r the radius, in world axes; n is the
contact's normal or that of a plane, `touch` the mask of worlds with a contact.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.frame import frame_along, frame_of
from featherlane.engine.collision.pairs.box_frame import plain_mat_t_mul_vec
from featherlane.engine.collision.pairs.cylinder import plane_cylinder, sphere_cylinder
from featherlane.engine.collision.pairs.ellipsoid import plane_ellipsoid
from featherlane.engine.collision.pairs.primitive import (
    capsule_segments,
    corner_height,
    half_axis_heights,
    plane_box,
    plane_sphere,
    sphere_capsule,
    sphere_sphere,
)
from featherlane.engine.collision.pairs.sphere_box import sphere_box
from featherlane.engine.collision.slot import append


@kernel
def z_axis(d, g):
    """Returns the third column of the geom's orientation: a plane's normal, a capsule's axis."""
    return d.geom_xmat[g].columns[2]


@kernel
def plane_sphere_points(m, d, g, h, near, limit):
    """Appends up to one contact point of a plane and a sphere."""
    n = z_axis(d, g)
    touch, dist, pos = plane_sphere(d.geom_xpos[g], n, d.geom_xpos[h], m.geom_size[h][0], limit)
    append(d, 0, near & touch, dist, pos, frame_of(n))


@kernel
def plane_capsule_points(m, d, g, h, near, limit):
    """Appends up to two points of a plane and a capsule: first of the cap at the positive end of the axis.

    The first tangent of the contact frame is along the capsule.
    """
    o = d.geom_xpos[g]
    n = z_axis(d, g)
    c = d.geom_xpos[h]
    a = z_axis(d, h)
    r, half = m.geom_size[h][0], m.geom_size[h][1]
    frame = frame_along(n, a)
    for end in range(2):
        touch, dist, pos = plane_sphere(o, n, fma((1.0 - 2.0 * end) * half, a, c), r, limit)
        append(d, end, near & touch, dist, pos, frame)


@kernel
def plane_box_points(m, d, g, h, near, limit):
    """Appends up to four contact points of a plane and a box: its touching corners, by ascending index."""
    n = z_axis(d, g)
    c = d.geom_xpos[h]
    R, size = d.geom_xmat[h], m.geom_size[h]
    height = dot(c - d.geom_xpos[g], n)
    half_axis_height = half_axis_heights(R, size, n)
    u, v, w = R.columns  # the box's axes
    frame = frame_of(n)
    corners = plane_box(height, half_axis_height, limit)  # indices 0..7, -1: none
    for i in range(4):
        corner = corners[i]
        # the index 4 z_bit + 2 y_bit + x_bit is a value, so its bits are found by comparison; signs of the coordinates
        z_bit = corner >= 4.0
        rest = where(z_bit, corner - 4.0, corner)
        y_bit = rest >= 2.0
        x_bit = where(y_bit, rest - 2.0, rest) >= 1.0
        sx, sy, sz = where(x_bit, 1.0, -1.0), where(y_bit, 1.0, -1.0), where(z_bit, 1.0, -1.0)
        dist = height + corner_height(sx, sy, sz, half_axis_height)
        pos = fma(sx * size[0], u, c)
        pos = fma(sy * size[1], v, pos)
        pos = fma(sz * size[2], w, pos)
        append(d, i, near & (corner >= 0.0), dist, fma(-0.5 * dist, n, pos), frame)


@kernel
def plane_ellipsoid_points(m, d, g, h, near, limit):
    """Appends up to one contact point of a plane and an ellipsoid."""
    o = d.geom_xpos[g]
    n = z_axis(d, g)
    c, R, size = d.geom_xpos[h], d.geom_xmat[h], m.geom_size[h]
    touch, dist, pos = plane_ellipsoid(o, n, c, R, size, limit)
    append(d, 0, near & touch, dist, pos, frame_of(n))


@kernel
def plane_cylinder_points(m, d, g, h, near, limit):
    """Appends up to four points of a plane and a cylinder, none if the cylinder's lowest point is beyond the limit."""
    n = z_axis(d, g)
    c = d.geom_xpos[h]
    r, half = m.geom_size[h][0], m.geom_size[h][1]
    height = plain_dot3(c - d.geom_xpos[g], n)
    frame = frame_of(n)
    found = plane_cylinder(height, n, c, d.geom_xmat[h], r, half)
    lowest = found[0][0]
    for i in range(4):
        dist, pos = found[i]
        append(d, i, near & (lowest <= limit) & (dist <= limit), dist, pos, frame)


@kernel
def sphere_points(m, d, g, h, near, limit):
    """Appends up to one contact point of the sphere g and the sphere, capsule or cylinder h."""
    c1 = d.geom_xpos[g]
    z1 = z_axis(d, g)
    r1 = m.geom_size[g][0]
    c2 = d.geom_xpos[h]
    z2 = z_axis(d, h)
    r2, half = m.geom_size[h][0], m.geom_size[h][1]
    if m.geom_type[h] == SPHERE:
        touch, dist, pos, n = sphere_sphere(c1, z1, r1, c2, z2, r2, limit)
    elif m.geom_type[h] == CAPSULE:
        touch, dist, pos, n = sphere_capsule(c1, z1, r1, c2, z2, r2, half, limit)
    else:
        touch, dist, pos, n = sphere_cylinder(c1, z1, r1, c2, z2, r2, half, limit)
    append(d, 0, near & touch, dist, pos, frame_of(n))


@kernel
def sphere_box_points(m, d, g, h, near, limit):
    """Appends up to one contact point of a sphere and a box."""
    c, R = d.geom_xpos[h], d.geom_xmat[h]
    centre = plain_mat_t_mul_vec(R, d.geom_xpos[g] - c)
    touch, dist, pos, n = sphere_box(centre, m.geom_size[g][0], m.geom_size[h], limit)
    append(d, 0, near & touch, dist, R @ pos + c, frame_of(R @ n))


@kernel
def capsule_capsule_points(m, d, g, h, near, limit):
    """Appends up to one contact point of two crossing capsules, up to two of parallel capsules."""
    c1 = d.geom_xpos[g]
    z1 = z_axis(d, g)
    r1 = m.geom_size[g][0]
    c2 = d.geom_xpos[h]
    z2 = z_axis(d, h)
    r2 = m.geom_size[h][0]
    a1, a2 = m.geom_size[g][1] * z1, m.geom_size[h][1] * z2  # half the segments; points of these are c + x a
    parallel, x1, x2, y1, y2 = capsule_segments(c1, a1, c2, a2)
    touch, dist, pos, n = sphere_sphere(fma(x1, a1, c1), z1, r1, fma(x2, a2, c2), z2, r2, limit)
    append(d, 0, near & touch, dist, pos, frame_of(n))
    if any_(near & parallel):
        touch, dist, pos, n = sphere_sphere(fma(y1, a1, c1), z1, r1, fma(y2, a2, c2), z2, r2, limit)
        append(d, 1, near & parallel & touch, dist, pos, frame_of(n))
