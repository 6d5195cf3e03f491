"""Computes contacts of a sphere and a box, in all worlds at once or one, in the box's frame about its centre.

Source: MuJoCo 4.0.1 mjraw_SphereBox.
"""

from featherlane.engine.prelude import *


@kernel
def nearer_side(x, half):
    """Returns (depth, inward sign) of the nearer one of the faces at -half and half, of equal ones that at -half.

    x: coordinate of a point between the faces; depth: distance of the point from the face [m].
    """
    low = fabs(half + x)
    high = fabs(half - x)
    upper = high < low
    return where(upper, high, low), where(upper, -1.0, 1.0)


@kernel
def nearest_box_face(c, size):
    """Returns (depth, inward normal) of the face nearest to the point c in the box; of equal ones, the first axis wins.

    size: half sides of the box.
    """
    depth_x, sign_x = nearer_side(c[0], size[0])
    depth_y, sign_y = nearer_side(c[1], size[1])
    depth_z, sign_z = nearer_side(c[2], size[2])
    is_y = depth_y < depth_x
    depth = where(is_y, depth_y, depth_x)
    is_z = depth_z < depth
    normal = Vec3(where(is_y | is_z, 0.0, sign_x), where(is_z, 0.0, where(is_y, sign_y, 0.0)), where(is_z, sign_z, 0.0))
    return where(is_z, depth_z, depth), normal


@kernel
def sphere_box(c, r, size, margin):
    """Returns (touch, distance, point, normal) of a sphere and a box; the centre may be inside.

    c, r: centre and radius of the sphere; size: half sides of the box; margin: largest distance of a contact [m].
    Note: if the centre is inside, the margin is compared with -r, not with the depth of the nearest face.
    """
    n, gap = normalize3(clip(c, -size, size) - c)
    inside = gap <= MINVAL  # the centre is in the box, so n is not the direction to its nearest point
    depth, inward = nearest_box_face(c, size)
    n = where(inside, inward, n)
    dist = where(inside, -depth, gap) - r
    return gap - r <= margin, dist, fma(r + 0.5 * dist, n, c), n
