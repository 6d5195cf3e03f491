"""Computes contacts of pairs of shapes with a closed form: distance, contact point and normal.

A contact point lies halfway between the two surfaces; its normal points from the first shape to the second; its
distance is negative where they overlap.  `margin` is the maximum distance of a contact point; in worlds without a
contact the point is undefined.  A shape is given by its centre c, the z axis of its frame (a plane's normal n, a
capsule's axis) and sizes, such as its radius r; c1, z1, r1 are those of the first shape, c2, z2, r2 of the second.
Source: MuJoCo 4.0.1, whose results these reproduce in degenerate poses too; each function names its counterpart.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.frame import frame_along

# distance, relative to the radii, below which centres may coincide; and relative to their coordinates, below which they
# do.  These are about the square roots of the rounding errors: at this distance, its direction has an equal error
CLOSE, SINGLE, DOUBLE = 1e-3, 2.0**-12, 2.0**-26
PARALLEL = 1e-8  # squared sine of the angle below which the axes of two capsules are parallel


@kernel
def plane_sphere(p, n, c, r, margin):
    """Returns (touch, distance, point) of the plane through p with normal n, and a sphere of centre c and radius r.

    Source: mjc_PlaneSphere.
    """
    height = dot(c - p, n)
    dist = height - r
    return height <= margin + r, dist, fma(-fma(0.5, dist, r), n, c)


@kernel
def half_axis_heights(R, size, n):
    """Returns the components of a box's half axes along the normal: n . (R diag(size))."""
    return Vec3(size[c] * dot(R.columns[c], n) for c in range(3))


@kernel
def corner_height(sx, sy, sz, h):
    """Returns the height of a box's corner over its centre [m].

    sx, sy, sz: signs of the corner's coordinates; h: components of the half axes along the plane's normal.
    """
    return sx * h[0] + sy * h[1] + sz * h[2]


@kernel
def plane_box(height, h, margin):
    """Returns the indices 0..7 of the first four touching corners, -1 for missing ones.

    Bit k of an index is 1 if the corner is on the positive side of axis k.  A corner touches if it is within the margin
    and not above the box's centre.

    Args:
        height: of the box's centre above the plane [m].
        h: components of the half axes along the normal (`half_axis_heights`).

    Source: mjc_PlaneBox.
    """
    first, second, third, fourth = -1.0, -1.0, -1.0, -1.0
    count = 0.0  # touching corners so far
    for i in range(8):
        # the signs -1 or 1 of bits 0, 1, 2 of i; rise: height of the corner over the box's centre
        rise = corner_height(2.0 * (i & 1) - 1.0, 1.0 * (i & 2) - 1.0, 0.5 * (i & 4) - 1.0, h)
        touch = (height + rise <= margin) & (rise <= 0.0)
        first = where(touch & (count == 0.0), i, first)
        second = where(touch & (count == 1.0), i, second)
        third = where(touch & (count == 2.0), i, third)
        fourth = where(touch & (count == 3.0), i, fourth)
        count = where(touch, count + 1.0, count)
    return first, second, third, fourth


@kernel
def sphere_sphere(c1, z1, r1, c2, z2, r2, margin):
    """Returns (touch, distance, point, normal) of two spheres.

    The normal of concentric spheres is z1 x z2, or the part of the x axis across z2 if this product is 0.  The spheres
    may be parts of capsules, or of the side of a cylinder, with the axes z1 and z2: the normal is orthogonal to these.
    Source: mjc_SphereSphere.
    Deviation: MuJoCo takes the x axis itself, along which capsules may overlap by more than the distance.
    """
    offset = c2 - c1
    reach = margin + r1 + r2
    touch = (dot(offset, offset) <= reach * reach) & (reach >= 0.0)
    n, length = normalize3(offset)
    # centres coincide if their distance is within the rounding of their coordinates.  The sum of coordinates is only
    # computed if some centres are close, which is rare
    close = length < CLOSE * (r1 + r2)
    if any_(close):
        coinciding = SINGLE if single_precision(length) else DOUBLE
        concentric = close & (length < coinciding * (fabs(c1[0]) + fabs(c1[1]) + fabs(c1[2]) + r1 + r2))
        n = where(concentric, frame_along(z2, plain_cross(z1, z2)).rows[1], n)
    dist = length - r1 - r2
    return touch, dist, fma(fma(0.5, dist, r1), n, c1), n


@kernel
def sphere_capsule(c1, z1, r1, c2, z2, r2, half, margin):
    """Returns (touch, distance, point, normal) of sphere 1 and capsule 2, from the nearest point of its segment.

    half: half the length of the segment.   Source: mjc_SphereCapsule.
    """
    x = clip(dot(z2, c1 - c2), -half, half)
    return sphere_sphere(c1, z1, r1, fma(x, z2, c2), z2, r2, margin)


@kernel
def clip_to_segments(ma, mb, mc, u, v, x1, x2):
    """Returns (x1, x2): the coordinates, in -1..1, of the nearest points of two segments.

    x1, x2: those of the nearest points of their lines, which solve ma x1 + mb x2 = u, mb x1 + mc x2 = v.  x1 is clipped
    and x2 recomputed, then x2 is clipped and x1 recomputed.
    """
    # the second line's point nearest to x1 is (v - mb x1) / mc, the first line's nearest to x2 is (u - mb x2) / ma
    x2 = where(x1 > 1.0, (v - mb) / mc, where(x1 < -1.0, (v + mb) / mc, x2))
    x1 = clip(x1, -1.0, 1.0)
    x1 = where(x2 > 1.0, clip((u - mb) / ma, -1.0, 1.0), where(x2 < -1.0, clip((u + mb) / ma, -1.0, 1.0), x1))
    return x1, clip(x2, -1.0, 1.0)


@kernel
def overlap_end(x1, within, end2, mb, mc, v):
    """Returns (x1, x2): the coordinates, on both segments, of one end of the overlap of two parallel segments.

    In worlds of the mask `within`, the overlap ends at an end of the second segment: end2 = -1 or 1, with the
    coordinate x1 on the first segment.  In all other worlds, x1 is outside of the first segment: the overlap ends at
    the end of the first segment, which has the projection x2 = (v - mb x1) / mc on the second.
    """
    x1 = clip(x1, -1.0, 1.0)
    return x1, where(within, end2, clip((v - mb * x1) / mc, -1.0, 1.0))


@kernel
def capsule_segments(c1, a1, c2, a2):
    """Returns (parallel, x1, x2, y1, y2): the nearest points of two segments, in units of the half axes a1 and a2.

    Crossing segments have one pair (x1, x2) of nearest points.  Parallel ones have two, the ends of their overlap, in
    the direction of a1: (x1, x2) and (y1, y2), which coincide without an overlap.
    The points minimize |offset + x1 a1 - x2 a2|^2:  ma x1 + mb x2 = u,  mb x1 + mc x2 = v.
    Source: mjraw_CapsuleCapsule of MuJoCo 4.0.1; the rule for parallel axes was measured on its results.
    Note: for near-parallel axes, cross products avoid the cancellation of |a1|^2 |a2|^2 - (a1 . a2)^2.
    """
    offset = c1 - c2
    ma = dot(a1, a1)
    mb = -dot(a1, a2)
    mc = dot(a2, a2)
    u = -dot(a1, offset)
    v = dot(a2, offset)

    # nearest points of the lines: x1 = -(offset x a2) . w / |w|^2, x2 = -(offset x a1) . w / |w|^2
    w = cross(a1, a2)
    det = dot(w, w)
    parallel = det < PARALLEL * ma * mc
    inverse = 1.0 / where(parallel, 1.0, det)
    x1, x2 = -dot(cross(offset, a2), w) * inverse, -dot(cross(offset, a1), w) * inverse
    x1, x2 = clip_to_segments(ma, mb, mc, u, v, x1, x2)
    y1, y2 = x1, x2

    # the ends of a parallel second segment have the coordinates (u +- |mb|) / ma on the first
    if any_(parallel):
        # end: coordinate of the second segment's lower end along a1, -1, or 1 for antiparallel segments (mb > 0);
        # the comparisons tell whether an end of the second segment is within the first
        reach = fabs(mb)
        end = where(mb > 0.0, 1.0, -1.0)
        lo = (u - reach) / ma
        hi = (u + reach) / ma
        lo1, lo2 = overlap_end(lo, lo > -1.0, end, mb, mc, v)
        hi1, hi2 = overlap_end(hi, hi < 1.0, -end, mb, mc, v)
        x1, x2 = where(parallel, lo1, x1), where(parallel, lo2, x2)
        y1, y2 = where(parallel, hi1, y1), where(parallel, hi2, y2)
    return parallel, x1, x2, y1, y2
