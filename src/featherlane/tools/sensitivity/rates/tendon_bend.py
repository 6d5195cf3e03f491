"""Second derivatives of the lengths of spatial tendons, column by column.

A segment between sites at x_0 and x_1 has the length L(y_0, y_1), y_e = R^T (x_e - c): a straight segment in the
world's frame, a path around a geom in the geom's.  With g_e = dL/dx_e, the sites are pulled by g_e and the geom by -g_e
at the same points.  A dof moves y_e by X_e - Z_e, the velocities of the site and of the frame's point there, so

    dg_e = w x g_e + sum_f H_ef (X_f - Z_f),      H the second derivatives of L, w the rotation of the frame

and the forces of both change as in paths.py.  With u_e the directions at both ends, l_e the lengths up to the
circle, n_e normal to u_e in the plane of the circle, and a path that touches the circle from inside at p = r rho with
the tangent t,

    straight      H = (1 - u u^T) / L for x_1 - x_0
    in the plane  H_ee = n_e n_e^T / l_e, as if the path turned about the tangent points
    inside        H -= k k^T / F,  k_e = r (n_e . t) / l_e n_e,  F = sum r^2 (n_e . t)^2 / l_e - r rho . (u_0 - u_1)
    sphere        H += second derivatives normal to the plane, where the angle between x_0 and x_1 changes
    cylinder      L^2 = P^2 + h^2, P the length in the plane, h along the axis: H = (P H_P + e e^T) / L, e = P dh - h dP
                  over L

MINVAL is the least divisor: it stands for a length that is 0 where a site lies on a geom or two sites coincide.
In kernels: s and t are the sites at both ends, k the dof, moves = (X_0 - Z_0, X_1 - Z_1).  p.ten_bend is the row of the
record p (records.py) for the derivative of a row of the tendons' Jacobian, by dof.
Imported: point_motion, (rotation, velocity) of a point of a body for a unit velocity of dof k; add_moved_force, which
adds to a row of dofs the change of a wrench's generalized forces, from (point, its displacement), (force, moment) and
the changes of both in world axes; moving_body(m, b), the nearest body with dofs that moves body b, or 0; normalize3,
(unit vector, length); wrap, (mask of worlds where the path bends at the geom, first and last point on it, length
between them).
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.tendon.length import moving_body
from featherlane.engine.dynamics.tendon.wrap import wrap
from featherlane.tools.sensitivity.rates.paths import add_moved_force, point_motion


# ---- the two ends ----------------------------------------------------------------------------------------------------
@kernel
def _add_force_on_site(m, d, p, s, b, k, frame, g, dg):
    """ten_bend += derivatives of the force g on site s, and of its opposite on body b.

    b: body of the path's frame, 0: the world; frame: rotation w of this frame by dof k; dg: change of g in this frame.
    """
    x, none = d.site_xpos[s], Vec3(zeros(3))
    _, moved = point_motion(m, d, m.site_bodyid[s], k, x)
    change = cross(frame, g) + dg  # in world axes
    add_moved_force(m, d, p.ten_bend, m.site_bodyid[s], k, (x, moved), (g, none), (change, none))
    if b > 0:
        g, change = -g, -change
        add_moved_force(m, d, p.ten_bend, b, k, (x, moved), (g, none), (change, none))


@kernel
def _relative_velocity(m, d, s, b, k):
    """Returns X - Z of site s: its velocity for a unit of dof k, minus that of body b's point there."""
    x = d.site_xpos[s]
    _, site_velocity = point_motion(m, d, m.site_bodyid[s], k, x)
    _, body_velocity = point_motion(m, d, b, k, x)
    return site_velocity - body_velocity


@kernel
def _straight_direction(x, y, moves):
    """Returns (direction u from x to y, its change (1 - u u^T) (moves[1] - moves[0]) / L)."""
    u, length = normalize3(y - x)
    apart = moves[1] - moves[0]
    return u, 1.0 / fmax(length, MINVAL) * fma(-dot(u, apart), u, apart)


@kernel
def _add_segment(m, d, p, s, t, k, scale):
    """ten_bend += scale times the part of the straight segment between sites s and t."""
    # sites that are fixed to each other: the length is constant
    if moving_body(m, m.site_bodyid[s]) != moving_body(m, m.site_bodyid[t]):
        x, y = d.site_xpos[s], d.site_xpos[t]
        # velocities in the world's frame, that of body 0
        moves = (_relative_velocity(m, d, s, 0, k), _relative_velocity(m, d, t, 0, k))
        u, du = _straight_direction(x, y, moves)
        u, du, still = scale * u, scale * du, Vec3(zeros(3))  # the world's frame does not rotate
        _add_force_on_site(m, d, p, s, 0, k, still, -u, -du)
        _add_force_on_site(m, d, p, t, 0, k, still, u, du)


# ---- around a geom ---------------------------------------------------------------------------------------------------
@kernel
def _without_axis(v, axis):
    """Returns v without its component along the axis."""
    return fma(-dot(axis, v), axis, v)


@kernel
def _in_plane(n, r, first, last, moves):
    """Returns the changes of -u_0 and u_1 in the plane with normal n.

    With f_e = r n_e . t and along_e = n_e . moves[e] / l_e they are (along_e - f_e / l_e shift) n_e.  A path inside has
    shift = (f_0 along_0 + f_1 along_1) / F, which is k . moves / F, else 0.

    Args:
        r: radius of the circle.
        first, last: (position of the site, point where the path meets the circle), from the centre of the circle.
        moves: X - Z of both sites.
    """
    (x0, p0), (x1, p1) = first, last
    (u0, l0), (u1, l1) = normalize3(p0 - x0), normalize3(x1 - p1)
    n0, n1 = cross(n, u0), cross(n, u1)
    rho, _ = normalize3(p0)
    t = cross(n, rho)
    inverse0, inverse1 = 1.0 / fmax(l0, MINVAL), 1.0 / fmax(l1, MINVAL)
    # f_e = r n_e . t; a path around the outside is tangential: both are 0
    f0, f1 = r * dot(n0, t), r * dot(n1, t)
    F = fma(inverse0 * f0, f0, inverse1 * f1 * f1) - r * dot(rho, u0 - u1)  # f_0^2 / l_0 + f_1^2 / l_1 - ...
    # H_ee (X_e - Z_e) = along_e n_e
    along0, along1 = inverse0 * dot(n0, moves[0]), inverse1 * dot(n1, moves[1])
    apart = p0 - p1
    inside = dot(apart, apart) == 0.0  # a path inside touches the circle at one point
    shift = where(inside, fma(f0, along0, f1 * along1) / where(inside, F, 1.0), 0.0)
    return fma(-inverse0 * f0, shift, along0) * n0, fma(-inverse1 * f1, shift, along1) * n1


@kernel
def _off_plane(n, u0, u1, x0, x1, moves):
    """Returns the changes of -u_0 and u_1 along the normal n of the plane of x_0, x_1 and the centre of the sphere.

    With M = n . (x_0 x u_0), A = n . (x_0 x x_1), and m_e = n . moves[e], they are

        ((M x_0 . x_1 / A - u_0 . x_0) / |x_0|^2 m_0 - M / A m_1) n
        ((M x_0 . x_1 / A + u_1 . x_1) / |x_1|^2 m_1 - M / A m_0) n

    Args:
        u0, u1: directions of the path at both ends.
        x0, x1: positions of the sites, from the centre of the sphere.
        moves: X - Z of both sites.
    """
    square0, square1, moment = fmax(dot(x0, x0), MINVAL), fmax(dot(x1, x1), MINVAL), dot(n, cross(x0, u0))
    area = fmax(dot(n, cross(x0, x1)), MINVAL)
    # steep = M x_0 . x_1 / A
    steep, move0, move1 = moment * dot(x0, x1) / area, dot(n, moves[0]), dot(n, moves[1])
    first = fma((steep - dot(u0, x0)) / square0, move0, -(moment / area * move1))
    last = fma((steep + dot(u1, x1)) / square1, move1, -(moment / area * move0))
    return first * n, last * n


@kernel
def _around_sphere(r, u0, u1, ends, moves):
    """Returns the changes of -u_0 and u_1 of a path around a sphere of radius r; arguments as below."""
    (x0, _), (x1, _) = ends
    normal, _ = normalize3(cross(x0, x1))
    in0, in1 = _in_plane(normal, r, ends[0], ends[1], moves)
    off0, off1 = _off_plane(normal, u0, u1, x0, x1, moves)
    return in0 + off0, in1 + off1


@kernel
def _around_cylinder(r, axis, length, u0, u1, ends, moves):
    """Returns the changes of -u_0 and u_1 of a path around a cylinder, with `rise` = h / L and `plane` = P / L.

    They are H X = plane (H_P X) + e (e . X) / L.

    Args:
        r, axis: radius and axis of the cylinder.
        length: L.
        u0, u1: directions of the path at both ends.
        ends: (position of the site, point where the path meets the geom) of both ends, from the geom's centre.
        moves: X - Z of both sites.
    """
    (x0, p0), (x1, p1) = ends
    first, last = (_without_axis(x0, axis), _without_axis(p0, axis)), (_without_axis(x1, axis), _without_axis(p1, axis))
    du0, du1 = _in_plane(axis, r, first, last, moves)
    rise = dot(axis, x1 - x0) / length
    plane = sqrt(fmax(fma(-rise, rise, 1.0), MINVAL))
    (flat0, _), (flat1, _) = normalize3(_without_axis(u0, axis)), normalize3(_without_axis(u1, axis))
    # e by x_0 and x_1, with the opposite sign, which cancels in e (e . X)
    e0, e1 = fma(-rise, flat0, plane * axis), fma(rise, flat1, -plane * axis)
    tilt = (dot(e0, moves[0]) + dot(e1, moves[1])) / length
    return fma(tilt, e0, plane * du0), fma(tilt, e1, plane * du1)


@kernel
def _add_path(m, d, p, n, k, scale):
    """ten_bend += scale times the part of the path around element n, a geom, between the sites before and after it.

    The path is straight in worlds where it does not bend at the geom.
    """
    s, g, t = m.wrap_objid[n - 1], m.wrap_objid[n], m.wrap_objid[n + 1]
    b, centre, r = m.geom_bodyid[g], d.geom_xpos[g], m.geom_size[g][0]
    # the path meets the geom between `first` and `last`, `arc` apart along it
    bends, first, last, arc = wrap(m, d, s, t, g, m.wrap_type[n], m.wrap_sideid[n])
    x0, x1 = d.site_xpos[s] - centre, d.site_xpos[t] - centre
    p0, p1 = first - centre, last - centre
    ends, moves = ((x0, p0), (x1, p1)), (_relative_velocity(m, d, s, b, k), _relative_velocity(m, d, t, b, k))
    # directions u_0, u_1 and lengths at both ends; du0 and du1 are the changes of -u_0 and u_1
    (u0, l0), (u1, l1) = normalize3(p0 - x0), normalize3(x1 - p1)
    if m.wrap_type[n] == WRAP_SPHERE:
        du0, du1 = _around_sphere(r, u0, u1, ends, moves)
    else:
        length, axis = fmax(l0 + arc + l1, MINVAL), d.geom_xmat[g].columns[2]
        du0, du1 = _around_cylinder(r, axis, length, u0, u1, ends, moves)
    u, du = _straight_direction(x0, x1, moves)
    u0, u1 = scale * where(bends, u0, u), scale * where(bends, u1, u)
    du0, du1 = scale * where(bends, du0, -du), scale * where(bends, du1, du)
    frame, _ = point_motion(m, d, b, k, centre)  # rotation of the geom's frame
    _add_force_on_site(m, d, p, s, b, k, frame, -u0, du0)
    _add_force_on_site(m, d, p, t, b, k, frame, u1, du1)


@kernel
def add_tendon_bend(m, d, p, i, k, scale):
    """ten_bend += scale times the derivative of row i of the tendons' Jacobian by the position of dof k.

    The tendon's elements are sites, geoms between two sites, and pulleys, which divide the length of what follows.
    """
    part_scale, n = scale, m.tendon_adr[i]
    last = n + m.tendon_num[i] - 1
    while n < last:
        if m.wrap_type[n] == WRAP_PULLEY:
            part_scale = scale / m.wrap_prm[n]
        elif m.wrap_type[n + 1] >= WRAP_SPHERE:
            # element n + 1 is a geom, between the sites n and n + 2
            _add_path(m, d, p, n + 1, k, part_scale)
            n += 1
        elif m.wrap_type[n + 1] != WRAP_PULLEY:  # no segment leads to a pulley
            _add_segment(m, d, p, m.wrap_objid[n], m.wrap_objid[n + 1], k, part_scale)
        n += 1
