"""Computes contacts of a sphere and a box, in all worlds at once or one, in the box's frame about its centre.

Source: MuJoCo 4.0.1 mjraw_SphereBox.
"""

from featherlane.prelude import *


@kernel
def nearer_side(x, half):
    """Returns (depth, inward sign) of the nearer of the two faces across one axis, the lower of equal ones."""
    low, high = fabs(half + x), fabs(half - x)
    upper = high < low
    return where(upper, high, low), where(upper, -1.0, 1.0)


@kernel
def nearest_box_face(c, size):
    """Returns (depth, inward normal) of the face nearest to a point in the box, the first of equal ones."""
    (x, i), (y, j), (z, k) = nearer_side(c[0], size[0]), nearer_side(c[1], size[1]), nearer_side(c[2], size[2])
    second = y < x
    depth = where(second, y, x)
    third = z < depth
    n = Vec3(where(second | third, 0.0, i), where(third, 0.0, where(second, j, 0.0)), where(third, k, 0.0))
    return where(third, z, depth), n


@kernel
def sphere_box(c, r, size, margin):
    """Returns (touch, distance, point, normal) of a sphere with centre c and a box; the centre may be inside.

    Note: if the centre is inside, the margin is compared with -r, not with the depth of the nearest face.
    """
    n, gap = normalize3(clip(c, -size, size) - c)
    within = gap <= MINVAL
    depth, inward = nearest_box_face(c, size)
    n = where(within, inward, n)
    dist = where(within, -depth, gap) - r
    return gap - r <= margin, dist, fma(r + 0.5 * dist, n, c), n
