"""Second derivatives of the lengths of spatial tendons, column by column.

A segment between sites at x_0 and x_1 has the length L(y_0, y_1), y_e = R^T (x_e - c): a straight segment in the
world's frame, a path around a geom in the geom's.  With g_e = dL/dx_e, the sites are pulled by g_e and the geom by -g_e
at the same points.  A dof moves y_e by X_e - Z_e, the velocities of the site and of the frame's point there, so

    dg_e = w x g_e + sum_f H_ef (X_f - Z_f),      H the second derivatives of L, w the rotation of the frame

and the forces of both change as in moved_force.py.  With u_e the directions at both ends, l_e the lengths up to the
circle, n_e normal to u_e in the plane of the circle, and a path that touches the circle from inside at p = r rho with
the tangent t,

    straight      H = (1 - u u^T) / L for x_1 - x_0
    in the plane  H_ee = n_e n_e^T / l_e, as if the path turned about the tangent points
    inside        H -= k k^T / F,  k_e = r (n_e . t) / l_e n_e,  F = sum r^2 (n_e . t)^2 / l_e - r rho . (u_0 - u_1)
    sphere        H += second derivatives normal to the plane, where the angle between x_0 and x_1 changes
    cylinder      L^2 = P^2 + h^2, P the length in the plane, h along the axis: H = (P H_P + e e^T) / L, e = P dh - h dP
                  over L
"""

from featherlane.prelude import *
from featherlane.dynamics.tendon.length import moving_body
from featherlane.dynamics.tendon.wrap import wrap
from featherlane.sensitivity.derivative.moved_force import add_moved_force, point_motion


# ---- the two ends ----------------------------------------------------------------------------------------------------
@kernel
def _site(m, d, s):
    """Returns the position of site s."""
    return d.site_xpos[s]


@kernel
def _pull_end(m, d, p, s, b, k, frame, g, dg):
    """ten_bend += rates of the force g on site s, and of its opposite on body b of the path's frame (0: the world)."""
    x, none = _site(m, d, s), Vec3(zeros(3))
    _, moved = point_motion(m, d, m.site_bodyid[s], k, x)
    change = cross(frame, g) + dg
    add_moved_force(m, d, p.ten_bend, m.site_bodyid[s], k, (x, moved), (g, none), (change, none))
    if b > 0:
        g, change = -g, -change
        add_moved_force(m, d, p.ten_bend, b, k, (x, moved), (g, none), (change, none))


@kernel
def _moves(m, d, s, b, k):
    """Returns the velocity of site s for dof k, relative to body b."""
    x = _site(m, d, s)
    _, u = point_motion(m, d, m.site_bodyid[s], k, x)
    _, z = point_motion(m, d, b, k, x)
    return u - z


@kernel
def _straight(x, y, moves):
    """Returns the direction from x to y and its change."""
    u, length = normalize3(y - x)
    v = moves[1] - moves[0]
    return u, 1.0 / fmax(length, MINVAL) * fma(-dot(u, v), u, v)


@kernel
def _add_segment(m, d, p, s, t, k, scale):
    """Adds the straight segment between sites s and t."""
    if moving_body(m, m.site_bodyid[s]) != moving_body(m, m.site_bodyid[t]):
        u, turn = _straight(_site(m, d, s), _site(m, d, t), (_moves(m, d, s, 0, k), _moves(m, d, t, 0, k)))
        u, turn, still = scale * u, scale * turn, Vec3(zeros(3))
        _pull_end(m, d, p, s, 0, k, still, -u, -turn)
        _pull_end(m, d, p, t, 0, k, still, u, turn)


# ---- around a geom ---------------------------------------------------------------------------------------------------
@kernel
def _flat(v, axis):
    """Returns v without its component along the axis."""
    return fma(-dot(axis, v), axis, v)


@kernel
def _in_plane(n, r, first, last, moves):
    """Returns the changes of -u_0 and u_1 in the plane with normal n; `first`, `last`: (x, point on the circle)."""
    (x, a), (y, b) = first, last
    (u, l), (v, o) = normalize3(a - x), normalize3(y - b)
    across, over = cross(n, u), cross(n, v)
    rho, _ = normalize3(a)
    tangent = cross(n, rho)
    # a path around the outside is tangential: both factors are 0
    i, j = 1.0 / fmax(l, MINVAL), 1.0 / fmax(o, MINVAL)
    f, g = r * dot(across, tangent), r * dot(over, tangent)
    curved = fma(i * f, f, j * g * g) - r * dot(rho, u - v)
    along, beyond = i * dot(across, moves[0]), j * dot(over, moves[1])
    apart = a - b
    inside = dot(apart, apart) == 0.0
    shift = where(inside, fma(f, along, g * beyond) / where(inside, curved, 1.0), 0.0)
    return fma(-i * f, shift, along) * across, fma(-j * g, shift, beyond) * over


@kernel
def _off_plane(n, u, v, x, y, moves):
    """Returns the changes of -u_0 and u_1 along the normal n of the plane of x, y and the centre of the sphere."""
    aa, bb, around = fmax(dot(x, x), MINVAL), fmax(dot(y, y), MINVAL), dot(n, cross(x, u))
    across = fmax(dot(n, cross(x, y)), MINVAL)
    steep, z, w = around * dot(x, y) / across, dot(n, moves[0]), dot(n, moves[1])
    first = fma((steep - dot(u, x)) / aa, z, -(around / across * w))
    last = fma((steep + dot(v, y)) / bb, w, -(around / across * z))
    return first * n, last * n


@kernel
def _around(m, d, p, n, k, scale):
    """Adds the path around element n, a geom, between the sites before and after it."""
    s, g, t = m.wrap_objid[n - 1], m.wrap_objid[n], m.wrap_objid[n + 1]
    b, R, centre = m.geom_bodyid[g], d.geom_xmat[g], d.geom_xpos[g]
    bends, one, two, arc = wrap(m, d, s, t, g, m.wrap_type[n], m.wrap_sideid[n])
    x, y = _site(m, d, s) - centre, _site(m, d, t) - centre
    a, c = one - centre, two - centre
    moves = (_moves(m, d, s, b, k), _moves(m, d, t, b, k))
    (u, first), (v, last) = normalize3(a - x), normalize3(y - c)
    if m.wrap_type[n] == WRAP_SPHERE:
        normal, _ = normalize3(cross(x, y))
        du, dv = _in_plane(normal, m.geom_size[g][0], (x, a), (y, c), moves)
        ou, ov = _off_plane(normal, u, v, x, y, moves)
        du, dv = du + ou, dv + ov
    else:
        axis, length = R.columns[2], fmax(first + arc + last, MINVAL)
        ends = (_flat(x, axis), _flat(a, axis)), (_flat(y, axis), _flat(c, axis))
        du, dv = _in_plane(axis, m.geom_size[g][0], ends[0], ends[1], moves)
        rise = dot(axis, y - x) / length
        plane = sqrt(fmax(fma(-rise, rise, 1.0), MINVAL))
        (fu, _), (fv, _) = normalize3(_flat(u, axis)), normalize3(_flat(v, axis))
        # gradients of (rise P - plane h)
        eu, ev = fma(-rise, fu, plane * axis), fma(rise, fv, -plane * axis)
        tilt = (dot(eu, moves[0]) + dot(ev, moves[1])) / length
        du, dv = fma(tilt, eu, plane * du), fma(tilt, ev, plane * dv)
    e, turn = _straight(x, y, moves)
    u, v = scale * where(bends, u, e), scale * where(bends, v, e)
    du = scale * where(bends, du, -turn)
    dv = scale * where(bends, dv, turn)
    frame, _ = point_motion(m, d, b, k, centre)
    _pull_end(m, d, p, s, b, k, frame, -u, du)
    _pull_end(m, d, p, t, b, k, frame, v, dv)


@kernel
def add_tendon_bend(m, d, p, i, k, scale):
    """ten_bend += scale times the derivative of row i of the tendons' Jacobian by the position of dof k."""
    part, n = scale, m.tendon_adr[i]
    last = n + m.tendon_num[i] - 1
    while n < last:
        if m.wrap_type[n] == WRAP_PULLEY:
            part = scale / m.wrap_prm[n]
        elif m.wrap_type[n + 1] >= WRAP_SPHERE:
            _around(m, d, p, n + 1, k, part)
            n += 1
        elif m.wrap_type[n + 1] != WRAP_PULLEY:
            _add_segment(m, d, p, m.wrap_objid[n], m.wrap_objid[n + 1], k, part)
        n += 1
