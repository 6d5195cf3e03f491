"""Intersects rays with shapes in closed form, in the shape's frame: hit or not, distance, and outward normal.

A ray is a point p and a unit vector v.  Surfaces are also hit from inside, except planes, which are one-sided.
Without a hit, the distance and the normal are undefined.
Source: MuJoCo mju_rayGeom.  Deviation: the distance of a line from a centre is that of the foot of the perpendicular,
    p - (p . v) v, where MuJoCo takes the discriminant (p . v)^2 - |p|^2 + r^2, which loses digits far from the shape.
"""

from featherlane.prelude import *

FAR = 1e30  # distance without a hit


@kernel
def first_root(b, s):
    """Returns the smaller of -b - s and -b + s that is not negative; negative if there is none."""
    near = -b - s
    return where(near >= 0.0, near, s - b)


@kernel
def meet_plane(p, v, size):
    """Intersects the upper face of a plane, within its rectangle if that is finite."""
    down = v[2] < -MINVAL
    x = -p[2] / where(down, v[2], -1.0)
    inside_x = (size[0] <= 0.0) | (fabs(fma(x, v[0], p[0])) <= size[0])
    inside_y = (size[1] <= 0.0) | (fabs(fma(x, v[1], p[1])) <= size[1])
    zero = where(down, 0.0, 0.0)
    return down & inside_x & inside_y & (x >= 0.0), x, Vec3(zero, zero, zero + 1.0)


@kernel
def meet_sphere(p, v, r):
    """Intersects a sphere centred at the origin."""
    b = dot(p, v)
    q = fma(-b, v, p)
    c = fma(r, r, -dot(q, q))
    x = first_root(b, sqrt(fmax(c, 0.0)))
    return (c >= 0.0) & (x >= 0.0), x, normalize3(fma(x, v, p))[0]


@kernel
def _times(a, b):
    """Returns the products of components."""
    return Vec3(a[0] * b[0], a[1] * b[1], a[2] * b[2])


@kernel
def meet_ellipsoid(p, v, size):
    """Intersects an ellipsoid, as a scaled unit sphere."""
    x, y, z = fmax(size, MINVAL)
    s = Vec3(1.0 / x, 1.0 / y, 1.0 / z)
    p, v = _times(p, s), _times(v, s)
    a = fmax(dot(v, v), MINVAL)
    b = dot(p, v) / a
    q = fma(-b, v, p)
    c = 1.0 - dot(q, q)
    x = first_root(b, sqrt(fmax(c, 0.0) / a))
    on = fma(x, v, p)
    return (c >= 0.0) & (x >= 0.0), x, normalize3(_times(on, s))[0]


@kernel
def meet_tube(p, v, r, half):
    """Returns (met, distance) of the round side of a cylinder."""
    a = fma(v[0], v[0], v[1] * v[1])
    slanted = a >= MINVAL
    a = where(slanted, a, 1.0)
    b = fma(p[0], v[0], p[1] * v[1]) / a
    qx, qy = fma(-b, v[0], p[0]), fma(-b, v[1], p[1])
    c = fma(r, r, -fma(qx, qx, qy * qy))
    x = first_root(b, sqrt(fmax(c, 0.0) / a))
    return slanted & (c >= 0.0) & (x >= 0.0) & (fabs(fma(x, v[2], p[2])) <= half), x


@kernel
def meet_cap(p, v, r, half, side):
    """Returns the distance to the half sphere on one end of a capsule, FAR without a hit."""
    c = Vec3(p.x, p.y, fma(-side, half, p.z))
    b = dot(c, v)
    q = fma(-b, v, c)
    det = fma(r, r, -dot(q, q))
    s = sqrt(fmax(det, 0.0))
    near, far = -b - s, s - b
    meets_near = (det >= 0.0) & (near >= 0.0) & (side * fma(near, v[2], p[2]) >= half)
    meets_far = (det >= 0.0) & (far >= 0.0) & (side * fma(far, v[2], p[2]) >= half)
    return where(meets_near, near, where(meets_far, far, FAR))


@kernel
def meet_capsule(p, v, r, half):
    """Intersects a capsule: round side and two half spheres."""
    met, x = meet_tube(p, v, r, half)
    x = where(met, x, FAR)
    top, bottom = meet_cap(p, v, r, half, 1.0), meet_cap(p, v, r, half, -1.0)
    on_top = top < x
    x = where(on_top, top, x)
    on_bottom = bottom < x
    x = where(on_bottom, bottom, x)
    on = fma(x, v, p)
    end = where(on_bottom, on[2] + half, where(on_top, on[2] - half, 0.0))
    return x < FAR, x, normalize3(Vec3(on.x, on.y, end))[0]


@kernel
def meet_disk(p, v, r, z):
    """Returns the distance to the disk at height z across the axis, FAR without a hit."""
    steep = fabs(v[2]) > MINVAL
    x = (z - p[2]) / where(steep, v[2], 1.0)
    qx, qy = fma(x, v[0], p[0]), fma(x, v[1], p[1])
    return where(steep & (x >= 0.0) & (fma(qx, qx, qy * qy) <= r * r), x, FAR)


@kernel
def meet_cylinder(p, v, r, half):
    """Intersects a cylinder: two disks and the round side."""
    bottom, top = meet_disk(p, v, r, -half), meet_disk(p, v, r, half)
    flat = where(top < bottom, 1.0, -1.0)
    x = fmin(top, bottom)
    met, tube = meet_tube(p, v, r, half)
    around = met & (tube < x)
    x = where(around, tube, x)
    on = fma(x, v, p)
    n = normalize3(Vec3(on.x, on.y, 0.0))[0]
    return x < FAR, x, Vec3(where(around, n.x, 0.0), where(around, n.y, 0.0), where(around, 0.0, flat))


@kernel
def slab(p, v, lower, upper):
    """Returns (entry, exit) of a line and a slab between two planes; (-FAR, FAR) if always in, (FAR, -FAR) if never."""
    moving = fabs(v) > MINVAL
    s = 1.0 / where(moving, v, 1.0)
    t1, t2 = (lower - p) * s, (upper - p) * s
    inside = (p >= lower) & (p <= upper)
    return (
        where(moving, fmin(t1, t2), where(inside, -FAR, FAR)),
        where(moving, fmax(t1, t2), where(inside, FAR, -FAR)),
    )


@kernel
def meet_box(p, v, lower, upper):
    """Intersects the box between two corners: at the entry, or at the exit if the ray starts inside."""
    lo0, hi0 = slab(p[0], v[0], lower[0], upper[0])
    lo1, hi1 = slab(p[1], v[1], lower[1], upper[1])
    lo2, hi2 = slab(p[2], v[2], lower[2], upper[2])
    enter, leave = fmax(fmax(lo0, lo1), lo2), fmin(fmin(hi0, hi1), hi2)
    outside = enter >= 0.0
    x = where(outside, enter, leave)

    # the face's axis is the first whose plane lies there; the normal opposes v at the entry and follows it at the exit
    along = where(outside, -1.0, 1.0)
    on0 = where(outside, lo0, hi0) == x
    on1 = not_(on0) & (where(outside, lo1, hi1) == x)
    n = Vec3(
        where(on0, where(v[0] > 0.0, along, -along), 0.0),
        where(on1, where(v[1] > 0.0, along, -along), 0.0),
        where(on0 | on1, 0.0, where(v[2] > 0.0, along, -along)),
    )
    return (enter <= leave) & (x >= 0.0), x, n
