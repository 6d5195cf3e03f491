"""Computes the shortest path of a tendon around a sphere or a cylinder, or through its inside, as a planar problem.

In the frame of the geom the two end points and its centre span the plane of a sphere; a cylinder is projected along its
axis.  With the end points x_0, x_1 at l_0, l_1 from the centre of a circle of radius r, the tangent points lie

    beta_i = acos(r / l_i)    from the end points towards each other,

and the arc between them is phi = |theta| - beta_0 - beta_1, where theta is the rotation angle of the path around the
centre.  Without a side site the path takes the short direction; with one, that of the path over the site's projection
on the circle.  If phi < 0 the straight segment already has that direction and the tendon does not touch the geom.

A side site inside the geom makes the tendon pass through it, touching the circle from inside at the point of the
shortest path.  With z = sin(angle of incidence) and A_i = r / l_i the condition is

    asin(A_0 z) + asin(A_1 z) - 2 asin(z) + gamma = 0,    gamma the angle between the end points.

Source: MuJoCo 4, XML reference, spatial/geom/sidesite (the path is homotopic to the polyline over the side site).
Newton's method in asin(z) from pi/2 down to a residual of 1e-6 was found by experiment with 4.0.1; its final
point affects MuJoCo's moments by 3e-7.
"""

from featherlane.engine.prelude import *
from featherlane.engine.lanes import derivative_rule

HALF_PI, TWO_PI = 1.5707963267948966, 6.283185307179586
MAX_STEPS, RESIDUAL = 20, 1e-6  # of Newton's method
TYPED = 1e-6  # radii: an end inside by less is on the surface, because a file gives its position with six digits
ROUNDING, ROUNDING32 = 1e-14, 2e-6  # of positions, relative to their size: about 40 and 30 roundings


# ---- two dimensions --------------------------------------------------------------------------------------------------
@kernel
def dot2(a, b):
    """Returns a . b."""
    return fma(a[0], b[0], a[1] * b[1])


@kernel
def cross2(a, b):
    """Returns a x b, positive if b lies to the left of a."""
    return a[0] * b[1] - a[1] * b[0]


@kernel
def where2(mask, a, b):
    """Returns a in worlds of the mask, else b."""
    return where(mask, a[0], b[0]), where(mask, a[1], b[1])


@kernel
def _meets_circle(a, b, r):
    """Returns the mask of worlds where the segment from a to b is within r of the origin.

    The nearest point is a + s (b - a), s = -(b - a) . a / |b - a|^2 clipped to [0, 1].
    """
    dx, dy = b[0] - a[0], b[1] - a[1]
    square = fma(dx, dx, dy * dy)
    s = clip(-fma(dx, a[0], dy * a[1]) / fmax(square, MINVAL), 0.0, 1.0)
    nearest = (fma(s, dx, a[0]), fma(s, dy, a[1]))
    return (dot2(nearest, nearest) <= r * r) & (square >= MINVAL)  # ends that coincide have no segment


@kernel
def _on_surface(a, r, slack):
    """Returns (mask: a is not inside the circle of radius r, a); if inside by at most `slack`, a is moved onto it."""
    square = dot2(a, a)
    inner = fmax(r - slack, 0.0)
    is_outside = square >= inner * inner
    is_moved = is_outside & (square < r * r)
    s = r / sqrt(fmax(square, MINVAL))
    return is_outside, where2(is_moved, (s * a[0], s * a[1]), a)


@kernel
def _tangent_point(a, r, square, direction):
    """Returns the tangent point from a on the circle that the tendon follows to the left (direction = 1) or right (-1).

    It is (r / |a|^2) (r a + direction sqrt(|a|^2 - r^2) a_perp), where a_perp is a rotated by 90 degrees to the left;
    square: |a|^2.
    """
    s = r / fmax(square, MINVAL)
    along = s * r
    across = s * (direction * sqrt(fmax(square - r * r, 0.0)))
    return fma(along, a[0], -(across * a[1])), fma(along, a[1], across * a[0])


@kernel
def _path_direction(a, b, side, has_side):
    """Returns (direction, far) of the path from a to b around the origin.

    direction: 1 to the left, -1 to the right;  far: mask of worlds where the path bends by more than pi.
    With a side point (has_side = 1) the path has the direction of a, side, b; it is the far one if `side` is not on the
    short arc.
    """
    ab = cross2(a, b)
    direction = where(ab < 0.0, -1.0, 1.0)
    far = (ab < 0.0) & (ab > 0.0)  # an empty mask
    if has_side:
        a_side, side_b = cross2(a, side), cross2(side, b)
        left = (a_side > 0.0) & (side_b > 0.0)
        far = (left & (ab < 0.0)) | ((a_side < 0.0) & (side_b < 0.0) & (ab > 0.0))
        direction = where(far, -direction, direction)
    return direction, far


@kernel
def round_circle(a, b, r, outside, side, has_side):
    """Returns (mask, p, q, arc): whether the path from a to b follows the circle, from p to q, and the arc's length.

    phi, in (-pi, pi], is the angle from p to q in the direction of the path.  The path follows the circle
    - if it is the far one (`_path_direction`), which may bend by more than pi: 2 pi is added to phi < 0;
    - or if the straight segment meets the circle and phi >= 0;
    - or if it does and phi < -pi / 2: half a turn, beyond pi by rounding, to which 2 pi is added.
    With another phi < 0 the segment leaves the circle from an end on it, and meets it by rounding only.

    Args:
        a, b: the end points in the plane of the circle with radius r about 0.
        outside: mask of worlds where neither end is inside the circle.
        side: a point that selects the direction around the circle, if `has_side`.
    """
    aa, bb = dot2(a, a), dot2(b, b)
    direction, far = _path_direction(a, b, side, has_side)
    p = _tangent_point(a, r, aa, direction)
    q = _tangent_point(b, r, bb, -direction)
    phi = direction * atan2(cross2(p, q), dot2(p, q))
    beyond_pi = (far & (phi < 0.0)) | (phi < -HALF_PI)
    wraps = outside & (r >= MINVAL) & (far | (_meets_circle(a, b, r) & ((phi >= 0.0) | beyond_pi)))
    phi = where(beyond_pi, phi + TWO_PI, fmax(phi, 0.0))
    return wraps, p, q, r * phi


@kernel
def _incidence(A, B, gamma):
    """Returns (angle, z = sin(angle)) of incidence at the point that the tendon touches from inside.

    Newton's method for f(angle) = asin(A z) + asin(B z) - 2 angle + gamma = 0 from pi/2 on, as far as MuJoCo iterates.
    A, B: A_0, A_1 of the module docstring, r over the distance of each end;  gamma: the angle between the end points.
    """
    angle, z, cosine, step = HALF_PI, 1.0, 0.0, 0
    iterates = gamma > 0.0
    while step <= MAX_STEPS and any_(iterates):
        f = asin(A * z) + asin(B * z) - 2.0 * angle + gamma
        # df/dangle = sum of A cos / sqrt(1 - A^2 z^2) - 2, which is negative; the bounds guard root and division
        slope = A * cosine / sqrt(fmax(fma(-A * z, A * z, 1.0), MINVAL)) - 2.0
        slope = fmin(slope + B * cosine / sqrt(fmax(fma(-B * z, B * z, 1.0), MINVAL)), -MINVAL)
        iterates = iterates & (fabs(f) > RESIDUAL)
        angle = where(iterates, angle - f / slope, angle)
        z, cosine = sincos(angle)
        step += 1
    return angle, z


@derivative_rule(_incidence)
@kernel
def _incidence_partials(result, A, B, gamma):
    """Returns the partial derivatives of `_incidence` by A, B and gamma at f = 0, each a pair: of the angle and of z.

    d(angle)/dx = -(df/dx) / (df/dangle), and dz/dx = cos(angle) d(angle)/dx.
    """
    _, z = result
    cosine = sqrt(fmax(fma(-z, z, 1.0), 0.0))  # the angle is at most pi/2
    # the cosines of asin(A z) and asin(B z)
    cosine_A, cosine_B = sqrt(fmax(fma(-A * z, A * z, 1.0), MINVAL)), sqrt(fmax(fma(-B * z, B * z, 1.0), MINVAL))
    inverse = -1.0 / fmin(A * cosine / cosine_A + B * cosine / cosine_B - 2.0, -MINVAL)
    by_A, by_B = inverse * z / cosine_A, inverse * z / cosine_B
    return (by_A, cosine * by_A), (by_B, cosine * by_B), (inverse, cosine * inverse)


@kernel
def through_circle(a, b, r):
    """Returns (mask, p): whether a tendon from a to b that must pass inside bends, and the point p where it touches.

    It bends if both ends are outside and the straight segment does not meet the circle of radius r about 0.
    """
    a_length, b_length = sqrt(dot2(a, a)), sqrt(dot2(b, b))
    bends = (a_length > r) & (b_length > r) & (r >= MINVAL) & not_(_meets_circle(a, b, r))
    # A, B = r / l of each end, see `_incidence`; where the tendon is straight 0.5, any value that is valid there
    A, B = where(bends, r / fmax(a_length, MINVAL), 0.5), where(bends, r / fmax(b_length, MINVAL), 0.5)
    ab = cross2(a, b)
    gamma = where(bends, atan2(fabs(ab), dot2(a, b)), 0.0)
    angle, z = _incidence(A, B, gamma)
    # p: the end point on the right, rotated to the left by angle - asin(A z), at the distance r
    a_is_right = ab > 0.0
    end = where2(a_is_right, a, b)
    scale = r / fmax(where(a_is_right, a_length, b_length), MINVAL)
    sine, cosine = sincos(angle - asin(where(a_is_right, A, B) * z))
    return bends, (scale * (cosine * end[0] - sine * end[1]), scale * (sine * end[0] + cosine * end[1]))


# ---- three dimensions ------------------------------------------------------------------------------------------------
@kernel
def _any_normal(a):
    """Returns a unit vector normal to the unit vector a: along a x (1, 1, 1) with 0 at the largest component of a."""
    x, y, z = fabs(a[0]), fabs(a[1]), fabs(a[2])
    y_largest, z_largest = (y > x) & (y > z), (z > x) & (z > y)
    e = (where(y_largest | z_largest, 1.0, 0.0), where(y_largest, 0.0, 1.0), where(z_largest, 0.0, 1.0))
    normal, _ = normalize3(cross(a, e))
    return normal


@kernel
def _plane_through_origin(p, q):
    """Returns two unit vectors that span the plane of p, q and the origin: along p, and normal to p towards q."""
    e1, _ = normalize3(p)
    normal, size = normalize3(cross(p, q))
    aligned = size < MINVAL
    if any_(aligned):
        any_plane = _any_normal(e1)  # any plane through p contains q
        normal = where(aligned, any_plane, normal)
    e2, _ = normalize3(cross(normal, e1))
    return e1, e2


@kernel
def _plane_axes(p, q, kind):
    """Returns the two axes of the plane of the problem in the frame of the geom.

    The plane of a sphere (kind WRAP_SPHERE) contains the end points p, q and the centre; that of a cylinder is its x-y
    plane.
    """
    if kind == WRAP_SPHERE:
        e1, e2 = _plane_through_origin(p, q)
    else:
        e1, e2 = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0)
    return e1, e2


@kernel
def _contact_heights(p, q, a, u, v, b, arc):
    """Returns, for a cylinder, the heights of both contact points along its axis, and the length of the helix.

    The height rises from p to q in proportion to the length of the planar path a, u, v, b.
    p, q: the end points;  a, b: their projections;  u, v: the points on the circle;  arc: the length between them.
    """
    before = sqrt(dot2((a[0] - u[0], a[1] - u[1]), (a[0] - u[0], a[1] - u[1])))
    after = sqrt(dot2((b[0] - v[0], b[1] - v[1]), (b[0] - v[0], b[1] - v[1])))
    total = fmax(before + arc + after, MINVAL)
    rise = q[2] - p[2]
    u_height = fma(rise, before / total, p[2])
    v_height = fma(rise, (before + arc) / total, p[2])
    return u_height, v_height, sqrt(fma(arc, arc, (v_height - u_height) * (v_height - u_height)))


@kernel
def _through_in_worlds(inside, path, a, b, r):
    """Returns the path (mask, u, v, arc) from a to b: through the circle in worlds of the mask `inside`, else `path`.

    A path through the circle touches it in one point: u = v, and the arc is 0.
    """
    bends, u, v, arc = path
    if any_(inside):
        bends_inside, touch = through_circle(a, b, r)
        bends = (inside & bends_inside) | (not_(inside) & bends)
        u, v = where2(inside, touch, u), where2(inside, touch, v)
        arc = where(inside, 0.0, arc)
    return bends, u, v, arc


@kernel
def wrap_in_frame(p, q, s, has_side, r, slack, kind):
    """Returns the result of `wrap` in the frame of the geom, whose centre is 0: (mask, first, last, length).

    Args:
        p, q: the end points.
        s: the side site, if `has_side`.
        r: radius of the geom.
        slack: an end that is inside by less counts as on the surface [m].
        kind: mjtWrap.

    a, b are the projections of p, q on the plane with the axes e1 and e2, in which the path meets the circle at u and
    leaves it at v.
    """
    e1, e2 = _plane_axes(p, q, kind)
    a_outside, a = _on_surface((dot(p, e1), dot(p, e2)), r, slack)
    b_outside, b = _on_surface((dot(q, e1), dot(q, e2)), r, slack)
    bends, u, v, arc = round_circle(a, b, r, a_outside & b_outside, (dot(s, e1), dot(s, e2)), has_side)
    if has_side:
        # a side site inside the geom: the tendon passes through it
        bends, u, v, arc = _through_in_worlds(norm3(s) < r - slack, (bends, u, v, arc), a, b, r)
    # an end at the centre of the geom has no direction
    bends = bends & (norm3(p) >= MINVAL) & (norm3(q) >= MINVAL)
    first, last = fma(u[0], e1, u[1] * e2), fma(v[0], e1, v[1] * e2)
    if kind == WRAP_CYLINDER:
        u_height, v_height, arc = _contact_heights(p, q, a, u, v, b, arc)
        first, last = Vec3(first.x, first.y, u_height), Vec3(last.x, last.y, v_height)
    return bends, first, last, arc


@kernel
def ends_in_frame(m, d, start, end, g, side):
    """Returns (p, q, s, slack): end points and side site in the frame of geom g, and the slack of `wrap_in_frame`.

    Without a side site (-1), s is p.
    """
    R, centre, r = d.geom_xmat[g], d.geom_xpos[g], m.geom_size[g][0]
    rounding = ROUNDING32 if single_precision(d) else ROUNDING
    p = R.T @ (d.site_xpos[start] - centre)
    q = R.T @ (d.site_xpos[end] - centre)
    s = p
    if side >= 0:
        s = R.T @ (d.site_xpos[side] - centre)
    return p, q, s, fma(TYPED, r, rounding * (norm3(centre) + fmax(norm3(p), norm3(q))))


@kernel
def wrap(m, d, start, end, g, kind, side):
    """Returns (mask, first, last, length): whether the tendon bends at geom g, and its path on the geom.

    The path runs from the point `first` to `last`, in world coordinates; the length is that of its arc [m].

    Args:
        start, end: the sites before and after the geom.
        g: a sphere or a cylinder, which is treated as infinitely long.
        kind: mjtWrap.
        side: the geom's side site, or -1.
    """
    R, centre = d.geom_xmat[g], d.geom_xpos[g]
    has_side = 1 if side >= 0 else 0
    p, q, s, slack = ends_in_frame(m, d, start, end, g, side)
    bends, first, last, arc = wrap_in_frame(p, q, s, has_side, m.geom_size[g][0], slack, kind)
    return bends, R @ first + centre, R @ last + centre, arc
