"""Intersects rays with shapes in closed form, in the shape's frame: hit or not, distance, and outward normal.

A ray is a point p and a unit vector v.  Functions `meet_*` return (met, x, n): a mask, the distance and the outward
normal, unless they state otherwise.  Surfaces are also hit from inside, except planes, which are one-sided.
Without a hit, the distance and the normal are undefined.
Source: MuJoCo mju_rayGeom.  Deviation: the distance of a line from a centre is that of the foot of the perpendicular,
    p - (p . v) v, where MuJoCo takes the discriminant (p . v)^2 - |p|^2 + r^2, which loses digits far from the shape.
"""

from featherlane.engine.prelude import *

FAR = 1e30  # distance without a hit


@kernel
def nearest_root(b, s):
    """Returns the smaller non-negative one of -b - s and -b + s, s >= 0; a negative number if both are negative."""
    near = -b - s
    return where(near >= 0.0, near, s - b)


@kernel
def meet_plane(p, v, size):
    """Returns (met, x, n) of the upper side of a plane, within its rectangle.

    size: half sides of the rectangle; 0 for an infinite side.
    """
    down = v[2] < -MINVAL
    x = -p[2] / where(down, v[2], -1.0)
    inside_x = (size[0] <= 0.0) | (fabs(fma(x, v[0], p[0])) <= size[0])
    inside_y = (size[1] <= 0.0) | (fabs(fma(x, v[1], p[1])) <= size[1])
    return down & inside_x & inside_y & (x >= 0.0), x, Vec3(0.0, 0.0, 1.0)


@kernel
def meet_sphere(p, v, r):
    """Returns (met, x, n) of a sphere of radius r about the origin.

    x = -p.v -+ sqrt(r^2 - |foot|^2) with foot = p - (p.v) v.
    """
    b = dot(p, v)
    foot = fma(-b, v, p)
    half_chord2 = fma(r, r, -dot(foot, foot))
    x = nearest_root(b, sqrt(fmax(half_chord2, 0.0)))
    return (half_chord2 >= 0.0) & (x >= 0.0), x, normalize3(fma(x, v, p))[0]


@kernel
def _componentwise(a, b):
    """Returns the products of components of a and b."""
    return Vec3(a[0] * b[0], a[1] * b[1], a[2] * b[2])


@kernel
def meet_ellipsoid(p, v, size):
    """Returns (met, x, n) of an ellipsoid with semi-axes `size`.

    It is a scaled unit sphere: |s (p + x v)| = 1 with s = 1 / size, multiplied component by component.
    x = -b -+ sqrt(c / a) with a = |sv|^2, b = sp.sv / a, c = 1 - |sp - b sv|^2.
    """
    sx, sy, sz = fmax(size, MINVAL)
    s = Vec3(1.0 / sx, 1.0 / sy, 1.0 / sz)
    p, v = _componentwise(p, s), _componentwise(v, s)
    a = fmax(dot(v, v), MINVAL)
    b = dot(p, v) / a
    foot = fma(-b, v, p)
    c = 1.0 - dot(foot, foot)
    x = nearest_root(b, sqrt(fmax(c, 0.0) / a))
    on_sphere = fma(x, v, p)
    return (c >= 0.0) & (x >= 0.0), x, normalize3(_componentwise(on_sphere, s))[0]


@kernel
def meet_tube(p, v, r, half):
    """Returns (met, distance) of the round side of a cylinder of radius r and half length `half`, along z.

    With the components of p and v across the axis: |p + x v|^2 = r^2, so x = -b -+ sqrt(c / a).
    """
    a = fma(v[0], v[0], v[1] * v[1])  # 0: the ray is parallel to the axis
    slanted = a >= MINVAL
    a = where(slanted, a, 1.0)
    b = fma(p[0], v[0], p[1] * v[1]) / a
    foot_x, foot_y = fma(-b, v[0], p[0]), fma(-b, v[1], p[1])
    c = fma(r, r, -fma(foot_x, foot_x, foot_y * foot_y))
    x = nearest_root(b, sqrt(fmax(c, 0.0) / a))
    return slanted & (c >= 0.0) & (x >= 0.0) & (fabs(fma(x, v[2], p[2])) <= half), x


@kernel
def meet_cap(p, v, r, half, side):
    """Returns the distance to the half sphere at one end of a capsule, FAR without a hit; side: 1 top, -1 bottom."""
    from_centre = Vec3(p.x, p.y, fma(-side, half, p.z))
    # distances of the whole sphere: x = -b -+ sqrt(r^2 - |foot|^2)
    b = dot(from_centre, v)
    foot = fma(-b, v, from_centre)
    half_chord2 = fma(r, r, -dot(foot, foot))
    half_chord = sqrt(fmax(half_chord2, 0.0))
    near = -b - half_chord
    far = half_chord - b
    # only the half beyond the end of the segment counts
    meets_near = (half_chord2 >= 0.0) & (near >= 0.0) & (side * fma(near, v[2], p[2]) >= half)
    meets_far = (half_chord2 >= 0.0) & (far >= 0.0) & (side * fma(far, v[2], p[2]) >= half)
    return where(meets_near, near, where(meets_far, far, FAR))


@kernel
def meet_capsule(p, v, r, half):
    """Returns (met, x, n) of a capsule of radius r and half length `half`, along z: round side and two half spheres."""
    met, x = meet_tube(p, v, r, half)
    x = where(met, x, FAR)
    top = meet_cap(p, v, r, half, side=1.0)
    bottom = meet_cap(p, v, r, half, side=-1.0)
    # the nearest of the three
    on_top = top < x
    x = where(on_top, top, x)
    on_bottom = bottom < x
    x = where(on_bottom, bottom, x)
    hit = fma(x, v, p)
    normal_z = where(on_bottom, hit[2] + half, where(on_top, hit[2] - half, 0.0))
    return x < FAR, x, normalize3(Vec3(hit.x, hit.y, normal_z))[0]


@kernel
def meet_disk(p, v, r, z):
    """Returns the distance to the disk of radius r at height z across the axis, FAR without a hit."""
    steep = fabs(v[2]) > MINVAL
    x = (z - p[2]) / where(steep, v[2], 1.0)
    hit_x, hit_y = fma(x, v[0], p[0]), fma(x, v[1], p[1])
    return where(steep & (x >= 0.0) & (fma(hit_x, hit_x, hit_y * hit_y) <= r * r), x, FAR)


@kernel
def meet_cylinder(p, v, r, half):
    """Returns (met, x, n) of a cylinder of radius r and half length `half`, along z: two disks and the round side."""
    bottom = meet_disk(p, v, r, -half)
    top = meet_disk(p, v, r, half)
    disk_normal = where(top < bottom, 1.0, -1.0)
    x = fmin(top, bottom)
    met, tube = meet_tube(p, v, r, half)
    around = met & (tube < x)
    x = where(around, tube, x)
    hit = fma(x, v, p)
    n = normalize3(Vec3(hit.x, hit.y, 0.0))[0]
    return x < FAR, x, Vec3(where(around, n.x, 0.0), where(around, n.y, 0.0), where(around, 0.0, disk_normal))


@kernel
def slab(p, v, lower, upper):
    """Returns (entry, exit): the distances at which a line is in the slab between two coordinates of one axis.

    The result is (-FAR, FAR) if the line is always in the slab, (FAR, -FAR) if it never is.
    p, v: the line's coordinate at distance 0, and its rate.
    """
    moving = fabs(v) > MINVAL
    inverse = 1.0 / where(moving, v, 1.0)
    t1, t2 = (lower - p) * inverse, (upper - p) * inverse
    inside = (p >= lower) & (p <= upper)
    return (
        where(moving, fmin(t1, t2), where(inside, -FAR, FAR)),
        where(moving, fmax(t1, t2), where(inside, FAR, -FAR)),
    )


@kernel
def meet_box(p, v, lower, upper):
    """Returns (met, x, n) of the box between two corners: at the entry, or at the exit if the ray starts inside."""
    lo0, hi0 = slab(p[0], v[0], lower[0], upper[0])
    lo1, hi1 = slab(p[1], v[1], lower[1], upper[1])
    lo2, hi2 = slab(p[2], v[2], lower[2], upper[2])
    enter, leave = fmax(fmax(lo0, lo1), lo2), fmin(fmin(hi0, hi1), hi2)
    outside = enter >= 0.0
    x = where(outside, enter, leave)

    # the face's axis is the first one whose slab is entered or left at x; the normal opposes v at the entry, and
    # follows v at the exit
    along = where(outside, -1.0, 1.0)
    on0 = where(outside, lo0, hi0) == x
    on1 = not_(on0) & (where(outside, lo1, hi1) == x)
    n = Vec3(
        where(on0, where(v[0] > 0.0, along, -along), 0.0),
        where(on1, where(v[1] > 0.0, along, -along), 0.0),
        where(on0 | on1, 0.0, where(v[2] > 0.0, along, -along)),
    )
    return (enter <= leave) & (x >= 0.0), x, n
