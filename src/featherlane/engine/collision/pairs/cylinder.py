"""Computes contacts of cylinders with planes and spheres, in all worlds at once.

plain_dot3 is a dot product without fused operations.
Source: MuJoCo 4.0.1, whose results these reproduce in degenerate poses too; each function names its counterpart.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.pairs.primitive import plane_sphere, sphere_sphere

SIDEWAYS = 0.8660254037844386  # sqrt(3) / 2: half a side of the equilateral triangle within a unit circle


@kernel
def lowest_radius(n, R, r):
    """Returns (a, s, v) of a cylinder over a plane: its unit axis downwards, n . a, and the lowest radius vector.

    v = -r (n_x x + n_y y) / |(n_x, n_y)|, from the components of n along the x and y axes of the cylinder.  All radii
    of a disk parallel to the plane are equally low: v is then along the x axis.
    n: the plane's normal; R, r: the cylinder's orientation and radius.
    Note: s a - n is the same direction, but for an almost parallel disk it is a rounding error, which has a part along
    the axis: MuJoCo's points leave the rim by 1e-5 radii at an angle of 1e-12.
    """
    x, y, z = R.columns
    slope = plain_dot3(n, z)
    up = slope > 0.0
    n_x, n_y = plain_dot3(n, x), plain_dot3(n, y)
    length2 = n_x * n_x + n_y * n_y
    parallel = length2 < MINVAL * MINVAL
    scale = -r / where(parallel, 1.0, sqrt(length2))
    return where(up, -z, z), where(up, -slope, slope), where(parallel, r * x, (scale * n_x) * x + (scale * n_y) * y)


@kernel
def plane_cylinder(height, n, c, R, r, half):
    """Returns four pairs (distance, point) of a cylinder over a plane.

    They are the lowest point of the lower rim, the point of the upper rim above it along the axis, and two points of
    the lower rim that form an equilateral triangle with the first point.

    Args:
        height: of the cylinder's centre above the plane [m].
        n: the plane's normal.
        c, R, r, half: centre, orientation, radius and half length of the cylinder.

    Source: mjc_PlaneCylinder; a point is a contact if its distance and the first point's are within the margin.
    """
    # a: the axis, downwards; slope: n . a; v: from the axis to the lowest point of the rim
    a, slope, v = lowest_radius(n, R, r)
    rise_v = plain_dot3(v, n)  # change of height along v
    rise_a = half * slope  # change of height along half a
    dist_low = height + rise_a + rise_v
    dist_high = height - rise_a + rise_v
    dist_side = height + rise_a - 0.5 * rise_v
    across = SIDEWAYS * r * normalize3(cross(v, half * a))[0]
    disk_centre = fma(half, a, c)
    side_middle = fma(-0.5, v, disk_centre)
    return (
        (dist_low, fma(-0.5 * dist_low, n, v + disk_centre)),
        (dist_high, fma(-0.5 * dist_high, n, v + fma(-half, a, c))),
        (dist_side, fma(-0.5 * dist_side, n, side_middle + across)),
        (dist_side, fma(-0.5 * dist_side, n, side_middle - across)),
    )


@kernel
def sphere_cylinder(c1, z1, r1, c2, z2, r2, half, margin):
    """Returns (touch, distance, point, normal) of sphere 1 and cylinder 2.

    The sphere may touch the side if its centre is between the planes of the disks, and a disk if its centre is within
    the cylinder's radius of the axis.  If both hold, it touches the nearer of them; if neither holds, a rim.  If the
    centre is on a rim, the normal is radial.
    c1, z1, r1: centre, z axis and radius of the sphere; c2, z2, r2, half: centre, axis, radius and half length of the
    cylinder.
    Source: mjc_SphereCylinder.
    Deviation: on a rim, MuJoCo's normal is z1 x z2, along which the shapes overlap by more than the distance.
    Note: unfused as in MuJoCo, because rounding decides whether the centre is on the axis.
    """
    v = c1 - c2
    x = plain_dot3(z2, v)  # coordinate of the sphere's centre along the axis
    axial = x * z2
    radial = v - axial
    radius2 = plain_dot3(radial, radial)
    radius = sqrt(radius2)
    between = fabs(x) < half  # the centre is between the planes of the disks
    over = radius2 < r2 * r2  # the centre is within the cylinder's radius of the axis
    disk = over & ((half - fabs(x) < r2 - radius) | (fabs(x) >= half))
    side = between & not_(disk)

    # the side is treated as a sphere on the axis, the rim as a sphere of radius 0
    end = where(x > 0.0, half, -half)
    rim = end * z2 + r2 / fmax(radius, MINVAL) * radial + c2
    centre = where(side, axial + c2, rim)
    # `sphere_sphere` has the normal first x z2 if the sphere's centre is on the rim: (radial x z2) x z2 = -radial
    first = where(side, z1, plain_cross(radial, z2))
    touch, dist, pos, n = sphere_sphere(c1, first, r1, centre, z2, where(side, r2, 0.0), margin)

    # a disk is treated as a plane
    up = where(x > 0.0, 1.0, -1.0) * z2
    flat_touch, flat_dist, flat_pos = plane_sphere(fma(end, z2, c2), up, c1, r1, margin)
    n = where(disk, -up, n)
    return (disk & flat_touch) | (not_(disk) & touch), where(disk, flat_dist, dist), where(disk, flat_pos, pos), n
