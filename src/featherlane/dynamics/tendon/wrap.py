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

from featherlane.prelude import *

HALF_PI, TWO_PI = 1.5707963267948966, 6.283185307179586
STEPS, RESIDUAL = 20, 1e-6  # of Newton's method
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
    """Returns the mask of worlds where the segment from a to b is within r of the origin."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    square = fma(dx, dx, dy * dy)
    s = clip(-fma(dx, a[0], dy * a[1]) / fmax(square, MINVAL), 0.0, 1.0)
    near = (fma(s, dx, a[0]), fma(s, dy, a[1]))
    return (dot2(near, near) <= r * r) & (square >= MINVAL)


@kernel
def _on_surface(a, r, slack):
    """Returns (mask: a is not inside the circle, a); if inside by at most `slack`, a is moved onto the circle."""
    square, inner = dot2(a, a), fmax(r - slack, 0.0)
    outside = square >= inner * inner
    near = outside & (square < r * r)
    s = r / sqrt(fmax(square, MINVAL))
    return outside, where2(near, (s * a[0], s * a[1]), a)


@kernel
def _tangent_point(a, r, square, turn):
    """Returns the tangent point from a on the circle that the tendon follows to the left (turn = 1) or right (-1)."""
    s = r / fmax(square, MINVAL)
    along, across = s * r, s * (turn * sqrt(fmax(square - r * r, 0.0)))
    return fma(along, a[0], -(across * a[1])), fma(along, a[1], across * a[0])


@kernel
def _turn(a, b, side, sided):
    """Returns (+1 left or -1 right, mask: more than half a circle), the direction of the path from a to b around 0."""
    c = cross2(a, b)
    turn = where(c < 0.0, -1.0, 1.0)
    far = (c < 0.0) & (c > 0.0)
    if sided:
        first, second = cross2(a, side), cross2(side, b)
        far = ((first > 0.0) & (second > 0.0) & (c < 0.0)) | ((first < 0.0) & (second < 0.0) & (c > 0.0))
        turn = where(far, -turn, turn)
    return turn, far


@kernel
def round_circle(a, b, r, outside, side, sided):
    """Returns (mask, p, q, arc): whether the path from a to b follows the circle, from p to q; sided: by `side`.

    A segment with an end on the circle meets it by rounding, so phi also decides: it is negative if the end points are
    closer than their tangents, and the segment has the direction of the path.

    Args:
        outside: mask of worlds where neither end is inside the circle.
    """
    aa, bb = dot2(a, a), dot2(b, b)
    turn, far = _turn(a, b, side, sided)
    p, q = _tangent_point(a, r, aa, turn), _tangent_point(b, r, bb, -turn)
    phi = turn * atan2(cross2(p, q), dot2(p, q))
    turned = (far & (phi < 0.0)) | (phi < -HALF_PI)  # by rounding, if the end points are opposite
    wraps = outside & (r >= MINVAL) & (far | (_meets_circle(a, b, r) & ((phi >= 0.0) | turned)))
    phi = where(turned, phi + TWO_PI, fmax(phi, 0.0))
    return wraps, p, q, r * phi


@kernel
def _incidence(A, B, gamma):
    """Returns asin(z) of the point that the tendon touches from inside, at the end of MuJoCo's iteration."""
    angle, s, c, k = HALF_PI, 1.0, 0.0, 0
    live = gamma > 0.0
    while k <= STEPS and any_(live):
        f = asin(A * s) + asin(B * s) - 2.0 * angle + gamma
        slope = A * c / sqrt(fmax(fma(-A * s, A * s, 1.0), MINVAL)) - 2.0
        slope = fmin(slope + B * c / sqrt(fmax(fma(-B * s, B * s, 1.0), MINVAL)), -MINVAL)
        live = live & (fabs(f) > RESIDUAL)
        angle = where(live, angle - f / slope, angle)
        s, c = sincos(angle)
        k += 1
    return angle, s


@kernel
def through_circle(a, b, r):
    """Returns (mask, p): whether a tendon that must pass inside is bent, and where it touches the circle."""
    la, lb = sqrt(dot2(a, a)), sqrt(dot2(b, b))
    bends = (la > r) & (lb > r) & (r >= MINVAL) & not_(_meets_circle(a, b, r))
    A, B = where(bends, r / fmax(la, MINVAL), 0.5), where(bends, r / fmax(lb, MINVAL), 0.5)
    c = cross2(a, b)
    gamma = where(bends, atan2(fabs(c), dot2(a, b)), 0.0)
    angle, z = _incidence(A, B, gamma)
    # turned to the left from the end point on the right
    left = c > 0.0
    u = where2(left, a, b)
    s = r / fmax(where(left, la, lb), MINVAL)
    sin, cos = sincos(angle - asin(where(left, A, B) * z))
    return bends, (s * (cos * u[0] - sin * u[1]), s * (sin * u[0] + cos * u[1]))


# ---- three dimensions ------------------------------------------------------------------------------------------------
@kernel
def _other_normal(a):
    """Returns a normal of the unit vector a: a x (1, 1, 1) with 0 at the largest component of a."""
    x, y, z = fabs(a[0]), fabs(a[1]), fabs(a[2])
    second, third = (y > x) & (y > z), (z > x) & (z > y)
    e = (where(second | third, 1.0, 0.0), where(second, 0.0, 1.0), where(third, 0.0, 1.0))
    n, _ = normalize3(cross(a, e))
    return n


@kernel
def _plane(p, q):
    """Returns two unit vectors that span the plane of p, q and the origin: along p, and towards q."""
    first, _ = normalize3(p)
    n, size = normalize3(cross(p, q))
    aligned = size < MINVAL
    if any_(aligned):
        o = _other_normal(first)
        n = where(aligned, o, n)
    second, _ = normalize3(cross(n, first))
    return first, second


@kernel
def _axes(p, q, kind):
    """Returns the plane of the problem in the frame of the geom."""
    if kind == WRAP_SPHERE:
        x, y = _plane(p, q)
    else:
        x, y = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0)
    return x, y


@kernel
def _raise(p, q, a, u, v, b, arc):
    """Returns, for a cylinder, the heights of both contact points, proportional to the path, and the helix length.

    p, q: the end points;  a, b: their projections;  u, v: the points on the circle.
    """
    first = sqrt(dot2((a[0] - u[0], a[1] - u[1]), (a[0] - u[0], a[1] - u[1])))
    last = sqrt(dot2((b[0] - v[0], b[1] - v[1]), (b[0] - v[0], b[1] - v[1])))
    whole, rise = fmax(first + arc + last, MINVAL), q[2] - p[2]
    z, w = fma(rise, first / whole, p[2]), fma(rise, (first + arc) / whole, p[2])
    return z, w, sqrt(fma(arc, arc, (w - z) * (w - z)))


@kernel
def wrap(m, d, start, end, g, kind, side):
    """Returns (mask, first, last, length): whether the tendon bends at geom g, between which points, and the length.

    Args:
        start, end: the sites before and after the geom.
        g: a sphere or a cylinder, which is treated as infinitely long.
        kind: mjtWrap.
        side: its side site, or -1.

    The tendon is wrapped in the plane with the axes e1 and e2 of the geom's frame: a, b, u, v are points of this plane.
    """
    R, centre, r = d.geom_xmat[g], d.geom_xpos[g], m.geom_size[g][0]
    rounding = ROUNDING32 if single_precision(d) else ROUNDING
    p = R.T @ (d.site_xpos[start] - centre)
    q = R.T @ (d.site_xpos[end] - centre)
    e1, e2 = _axes(p, q, kind)
    slack = fma(TYPED, r, rounding * (norm3(centre) + fmax(norm3(p), norm3(q))))
    first_out, a = _on_surface((dot(p, e1), dot(p, e2)), r, slack)
    last_out, b = _on_surface((dot(q, e1), dot(q, e2)), r, slack)
    s = p  # not used without a side site
    if side >= 0:
        s = R.T @ (d.site_xpos[side] - centre)
    bends, u, v, arc = round_circle(a, b, r, first_out & last_out, (dot(s, e1), dot(s, e2)), 1 if side >= 0 else 0)
    if side >= 0:
        inside = norm3(s) < r - slack
        if any_(inside):
            within, t = through_circle(a, b, r)
            bends = (inside & within) | (not_(inside) & bends)
            u, v, arc = where2(inside, t, u), where2(inside, t, v), where(inside, 0.0, arc)
    bends = bends & (norm3(p) >= MINVAL) & (norm3(q) >= MINVAL)
    first, last = fma(u[0], e1, u[1] * e2), fma(v[0], e1, v[1] * e2)
    if kind == WRAP_CYLINDER:
        z, w, arc = _raise(p, q, a, u, v, b, arc)
        first, last = Vec3(first.x, first.y, z), Vec3(last.x, last.y, w)
    return bends, R @ first + centre, R @ last + centre, arc
