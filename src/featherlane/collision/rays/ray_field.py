"""Intersects rays with signed distance fields (SDF geoms): marches along all rays in the same loop.

A ray advances by the distance that the field reports, but at least by a fixed part of the geom's box, until the sign of
the field changes.  The crossing is then refined by the Illinois method.
Source: Hart, Sphere tracing (1996); MuJoCo mj_raySdf: surfaces are hit from inside, too, and a ray that starts on the
    surface hits it there.  Deviations: MuJoCo stops at the first distance below 1e-7 m and after 40 advances, even if a
    grazing ray has not arrived; it advances by the field outside of an octree's box, which exceeds the distance to the
    surface there; its normal is the gradient by the place in the octree's leaf; and its distances ignore the length of
    the ray's direction.
"""

from featherlane.prelude import *
from featherlane.collision.rays.ray_shape import slab
from featherlane.collision.signed_distance import signed_distance
from featherlane.model.signed_distance import OCTREE

PARTS = 8192.0  # least advance: the diagonal of the geom's box, divided by this number
PADDING = 1.01  # scale of the box: the surface of a field may lie outside of the box of its mesh
TOUCH = 1e-7  # m: a ray that starts nearer to the surface hits it at its origin
ROOTS, PRECISE = 30, 1e-13  # steps of the Illinois method; field at which it ends [m]


@kernel
def field_at(m, d, g, size, point):
    """Returns the field of geom g at a point of its frame."""
    value, _ = signed_distance(m, d, m.geom_field[g], d.ray.field[1], size, point, exact=1)
    return value


@kernel
def padded_box(m, g):
    """Returns the lower and the upper corner of the box around geom g in its frame, and the box's diagonal."""
    box = m.geom_aabb[g]
    half = PADDING * box.half
    return box.centre - half, box.centre + half, 2.0 * norm3(half)


@kernel
def refined(m, d, g, size, ray, bracket, crossed):
    """Returns the distance along each ray at which the field is zero, between the ends of a bracket.

    Args:
        ray: (point, direction) in the geom's frame.
        bracket: (a, field at a, b, field at b): the fields have different signs.
        crossed: mask of the rays.
    """
    p, v = ray
    a, fa, b, fb = bracket
    running = crossed & (fabs(fb) > PRECISE)
    for _ in range(ROOTS):
        if not any_(running):
            break
        slope = fb - fa
        c = b - fb * (b - a) / where(running & (slope != 0.0), slope, 1.0)
        fc = field_at(m, d, g, size, fma(c, v, p))
        turned = fc * fb < 0.0
        a, fa = where(running & turned, b, a), where(running, where(turned, fb, 0.5 * fa), fa)
        b, fb = where(running, c, b), where(running, fc, fb)
        running = running & (fabs(fb) > PRECISE)
    return b


@stage
def march(m, d):
    """Finds the first surface of the field `ray.field` on each ray, within the geom's box.

    Reads:  ray.field, ray.near, ray.local_point [m], ray.local_direction (unit), ray.distance, geom_aabb, geom_size.
    Writes: ray.met (1: a hit nearer than before), ray.local_distance [m] and ray.local_normal of this hit.
    Frame: the geom's.   Cost: O(advances of the longest march).
    """
    g = d.ray.field[0]
    p, v = d.ray.local_point[0], d.ray.local_direction[0]
    size, (lower, upper, diagonal) = m.geom_size[g], padded_box(m, g)
    enter, leave = 0.0, d.ray.distance[0]
    for k in unrolled(range(3)):
        low, high = slab(p[k], v[k], lower[k], upper[k])
        enter, leave = fmax(enter, low), fmin(leave, high)
    running, least = (d.ray.near[0] > 0.0) & (enter <= leave), diagonal / PARTS
    a = where(running, enter, 0.0)
    fa = field_at(m, d, g, size, fma(a, v, p))
    touches, crossed = running & (a == 0.0) & (fabs(fa) <= TOUCH), false_mask(d)
    running, side, b, fb = running & not_(touches), where(fa < 0.0, -1.0, 1.0), a, fa
    while any_(running):
        end = fmin(a + fmax(fabs(fa), least), leave)
        value = field_at(m, d, g, size, fma(end, v, p))
        b, fb = where(running, end, b), where(running, value, fb)
        change = running & (side * fb <= 0.0)
        crossed = crossed | change
        running = running & not_(change) & (end < leave)
        a, fa = where(running, b, a), where(running, fb, fa)
    x = refined(m, d, g, size, (p, v), (a, fa, b, fb), crossed)
    _, n = signed_distance(m, d, m.geom_field[g], d.ray.field[1], size, fma(x, v, p), exact=1)
    met = (touches | crossed) & (x < d.ray.distance[0])
    d.ray.met[0] = where(met, 1.0, d.ray.met[0])
    d.ray.local_distance[0] = where(met, x, d.ray.local_distance[0])
    d.ray.local_normal[0] = where(met, normalize3(n)[0], d.ray.local_normal[0])


@kernel
def meet_field(m, d, g, near, p, v):
    """Returns (met, distance, outward normal) of rays in the frame of SDF geom g; near: mask of the rays.

    Worlds whose geom has another mesh are marched through one by one.
    """
    d.ray.field[0], d.ray.field[1] = g, m.geom_fieldadr[g]
    d.ray.local_point[0] = p
    d.ray.local_direction[0] = v
    d.ray.met[0], d.ray.local_distance[0] = 0.0, 0.0
    if m.nvariant > 0 and m.geom_field[g] == OCTREE:
        for lane in range(width(d)):
            if has(near, lane):
                d.ray.field[1], d.ray.near[0] = whole(read_lane(m.geom_variant, g, lane)), 0.0
                write_lane(d.ray.near, 0, lane, 1.0)
                march(m, d)
    else:
        d.ray.near[0] = where(near, 1.0, 0.0)
        march(m, d)
    return d.ray.met[0] > 0.0, d.ray.local_distance[0], d.ray.local_normal[0]
