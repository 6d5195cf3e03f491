"""Intersects rays with signed distance fields (SDF geoms): marches along all rays in the same loop.

A ray advances by the distance that the field reports, but at least by a fixed part of the geom's box, until the sign of
the field changes.  The crossing is then refined by the Illinois method.
The field OCTREE is that of a mesh.
ray.field is the SDF geom, and where its data are: the mesh of its octree, or the first of its plugin's parameters.
ray.local_point and ray.local_direction are the rays in the geom's frame; ray.local_distance and ray.local_normal are
their hits, in worlds where ray.met is 1.
slab(p, v, lower, upper) has the distances at which a line enters and leaves a slab of one axis.
Source: Hart, Sphere tracing (1996); MuJoCo mj_raySdf: surfaces are hit from inside, too, and a ray that starts on the
    surface hits it there.  Deviations: MuJoCo stops at the first distance below 1e-7 m and after 40 advances, even if a
    grazing ray has not arrived; it advances by the field outside of an octree's box, which exceeds the distance to the
    surface there; its normal is the gradient by the place in the octree's leaf; and its distances ignore the length of
    the ray's direction.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.ray_shape import slab
from featherlane.engine.collision.signed_distance import signed_distance
from featherlane.engine.model.signed_distance import OCTREE

PARTS = 8192.0  # least advance: the diagonal of the geom's box, divided by this number
PADDING = 1.01  # scale of the box: the surface of a field may lie outside of the box of its mesh
TOUCH = 1e-7  # m: a ray that starts nearer to the surface hits it at its origin
ROOTS, PRECISE = 30, 1e-13  # steps of the Illinois method; field at which it ends [m]


@kernel
def field_at(m, d, g, size, point):
    """Returns the field of geom g at a point of its frame [m]; size: geom_size of g.

    exact=1: inside a box the field is the distance to the nearest face.
    """
    value, _ = signed_distance(m, m.geom_field[g], d.ray.field[1], size, point, exact=1)
    return value


@kernel
def refine_crossing(m, d, g, size, ray, bracket, crossed):
    """Returns the distance along each ray at which the field is zero, between the ends of a bracket.

    Illinois method: the secant's zero replaces the end.  If the field has different signs at the zero and at the old
    end, the old end becomes the start; otherwise the start remains, and the field there is halved.

    Args:
        size: geom_size of the SDF geom g.
        ray: (point, direction) in the geom's frame.
        bracket: (start, field at start, end, field at end): the fields have different signs.
        crossed: mask of the rays.
    """
    p, v = ray
    start, f_start, end, f_end = bracket
    running = crossed & (fabs(f_end) > PRECISE)
    for _ in range(ROOTS):
        if not any_(running):
            break
        slope = f_end - f_start
        guess = end - f_end * (end - start) / where(running & (slope != 0.0), slope, 1.0)
        f_guess = field_at(m, d, g, size, fma(guess, v, p))
        crosses = f_guess * f_end < 0.0  # the field is zero between guess and end
        next_start = where(running & crosses, end, start)
        start = next_start
        f_start = where(running, where(crosses, f_end, 0.5 * f_start), f_start)
        end, f_end = where(running, guess, end), where(running, f_guess, f_end)
        running = running & (fabs(f_end) > PRECISE)
    return end


@stage
def march(m, d):
    """Finds the first surface of the field `ray.field` on each ray, within the geom's box.

    Reads:  ray.field, ray.near, ray.local_point [m], ray.local_direction (unit), ray.distance, geom_aabb, geom_size.
    Writes: ray.met (1: a hit nearer than before), ray.local_distance [m] and ray.local_normal of this hit.
    Frame: the geom's.   Cost: O(advances of the longest march).
    """
    # a point of the ray is p + x v; enter, leave, start, end and next_x are distances x, f_* the fields there
    g = d.ray.field[0]
    p, v = d.ray.local_point[0], d.ray.local_direction[0]
    size = m.geom_size[g]
    box = m.geom_aabb[g]
    half = PADDING * box.half
    lower, upper = box.centre - half, box.centre + half
    enter = 0.0
    leave = d.ray.distance[0]
    for k in unrolled(range(3)):
        low, high = slab(p[k], v[k], lower[k], upper[k])
        enter, leave = fmax(enter, low), fmin(leave, high)
    running = (d.ray.near[0] > 0.0) & (enter <= leave)
    least_advance = 2.0 * norm3(half) / PARTS  # of the box's diagonal
    start = where(running, enter, 0.0)
    f_start = field_at(m, d, g, size, fma(start, v, p))
    # touches: rays that start on the surface; crossed: rays that have crossed it
    touches = running & (start == 0.0) & (fabs(f_start) <= TOUCH)
    crossed = false_mask(d)
    running = running & not_(touches)
    start_sign = where(f_start < 0.0, -1.0, 1.0)
    end, f_end = start, f_start
    # advance from `start` to `end` until the field changes its sign
    while any_(running):
        next_x = fmin(start + fmax(fabs(f_start), least_advance), leave)
        f_next = field_at(m, d, g, size, fma(next_x, v, p))
        end, f_end = where(running, next_x, end), where(running, f_next, f_end)
        change = running & (start_sign * f_end <= 0.0)
        crossed = crossed | change
        running = running & not_(change) & (next_x < leave)
        start, f_start = where(running, end, start), where(running, f_end, f_start)
    x = refine_crossing(m, d, g, size, (p, v), (start, f_start, end, f_end), crossed)
    _, n = signed_distance(m, m.geom_field[g], d.ray.field[1], size, fma(x, v, p), exact=1)
    met = (touches | crossed) & (x < d.ray.distance[0])
    d.ray.met[0] = where(met, 1.0, d.ray.met[0])
    d.ray.local_distance[0] = where(met, x, d.ray.local_distance[0])
    d.ray.local_normal[0] = where(met, normalize3(n)[0], d.ray.local_normal[0])


@kernel
def meet_field(m, d, g, near, p, v):
    """Returns (met, distance, outward normal) of rays (p, v) in the frame of SDF geom g; near: mask of the rays.

    In a model with variants the geom may have another mesh, and so another octree, in each world: then the rays are
    marched one by one.
    Writes: ray.field, ray.near, ray.local_*, ray.met, for `march`.
    """
    d.ray.field[0], d.ray.field[1] = g, m.geom_fieldadr[g]
    d.ray.local_point[0] = p
    d.ray.local_direction[0] = v
    d.ray.met[0], d.ray.local_distance[0] = 0.0, 0.0
    # geom_variant: the world's mesh, by which its octree is found
    if m.nvariant > 0 and m.geom_field[g] == OCTREE:
        for lane in range(width(d)):
            if has(near, lane):
                d.ray.field[1] = whole(read_lane(m.geom_variant, g, lane))
                d.ray.near[0] = 0.0
                write_lane(d.ray.near, 0, lane, 1.0)
                march(m, d)
    else:
        d.ray.near[0] = where(near, 1.0, 0.0)
        march(m, d)
    return d.ray.met[0] > 0.0, d.ray.local_distance[0], d.ray.local_normal[0]
