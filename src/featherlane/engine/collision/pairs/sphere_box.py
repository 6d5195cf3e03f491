"""Computes contacts of a sphere and a box, in all worlds at once or one, in the box's frame about its centre.

Source: MuJoCo 4.0.1 mjraw_SphereBox.
"""

from featherlane.engine.prelude import *


@kernel
def nearer_side(x, half):
    """Returns (depth, inward sign) of the nearer of the faces at -half and half, the lower of equal ones.

    x: coordinate of a point between them.
    """
    low = fabs(half + x)
    high = fabs(half - x)
    upper = high < low
    return where(upper, high, low), where(upper, -1.0, 1.0)


@kernel
def nearest_box_face(c, size):
    """Returns (depth, inward normal) of the face nearest to the point c in the box, the first of equal ones.

    size: half sides of the box.
    """
    depth_x, sign_x = nearer_side(c[0], size[0])
    depth_y, sign_y = nearer_side(c[1], size[1])
    depth_z, sign_z = nearer_side(c[2], size[2])
    second = depth_y < depth_x
    depth = where(second, depth_y, depth_x)
    third = depth_z < depth
    normal = Vec3(
        where(second | third, 0.0, sign_x), where(third, 0.0, where(second, sign_y, 0.0)), where(third, sign_z, 0.0)
    )
    return where(third, depth_z, depth), normal


@kernel
def sphere_box(c, r, size, margin):
    """Returns (touch, distance, point, normal) of a sphere and a box; the centre may be inside.

    c, r: centre and radius of the sphere; size: half sides of the box; margin: largest distance of a contact [m].
    Note: if the centre is inside, the margin is compared with -r, not with the depth of the nearest face.
    """
    n, gap = normalize3(clip(c, -size, size) - c)
    within = gap <= MINVAL  # the centre is inside: it has no direction to the nearest point of the box
    depth, inward = nearest_box_face(c, size)
    n = where(within, inward, n)
    dist = where(within, -depth, gap) - r
    return gap - r <= margin, dist, fma(r + 0.5 * dist, n, c), n
