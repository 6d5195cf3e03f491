"""Second derivatives of the lengths of spatial tendons, column by column.

A path between sites at x_0 and x_1 has the length L(y_0, y_1), where y_e is the position of site e in a frame.  The
frame of a straight segment is the world's, y_e = x_e.  The frame of a path around a geom is the geom's, with the centre
c and the rotation R: y_e = R^T (x_e - c).

The gradient g_e = dL/dx_e is a unit vector along the path.  The row J = dL/dq of a tendon is therefore the generalized
force of forces g_e on the sites at x_e, and of the opposite forces -g_e on the geom at the same points.  The derivative
of J by a dof has two parts: the dof moves the points x_e, and it changes the forces g_e.  The changes of g_e are
tangents of the directions that `wrap_in_frame` returns for moved sites.  These directions are in the frame of the geom,
which turns with the geom's body.

MINVAL is the least divisor: it stands for a length that is 0 where a site lies on a geom or two sites coincide.
p.dJ is the row of the record p (records.py) for the derivative of a row of the tendons' Jacobian, by dof.
Imported: moved_point, (rotation of a body, a point of it with its change as tangent) by dof k; add_moved_force, which
adds to a row of dofs the change of a wrench's generalized forces, from its point, force and moment with their changes;
moving_body(m, b), the nearest body with dofs that moves body b, or 0; normalize3, (unit vector, length);
wrap_in_frame, (mask of worlds where the path bends at the geom, first and last point on it, length between them);
ends_in_frame, (end sites, side site in the frame of the geom, slack: an end inside the geom by less is on it).
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.tendon.length import moving_body
from featherlane.engine.dynamics.tendon.wrap import ends_in_frame, wrap_in_frame
from featherlane.tools.sensitivity.rates.paths import add_moved_force, moved_point


@kernel
def _moved_site(m, d, s, k):
    """Returns the position of site s, with its change by dof k as tangent."""
    _, x = moved_point(m, d, m.site_bodyid[s], k, d.site_xpos[s])
    return x


@kernel
def _add_segment(m, d, p, s, t, k, scale):
    """p.dJ += scale times the part of the straight segment between sites s and t."""
    # between sites that are fixed to each other the length is constant
    if moving_body(m, m.site_bodyid[s]) != moving_body(m, m.site_bodyid[t]):
        x, y = _moved_site(m, d, s, k), _moved_site(m, d, t, k)
        no_moment = Vec3(zeros(3))
        u, _ = normalize3(y - x)  # g_1 = u, g_0 = -u
        add_moved_force(m, d, p.dJ, m.site_bodyid[s], k, x, -scale * u, no_moment)
        add_moved_force(m, d, p.dJ, m.site_bodyid[t], k, y, scale * u, no_moment)


@kernel
def _add_pull(m, d, p, s, b, k, x, g):
    """p.dJ += changes of the force g on site s at x, and of its opposite on body b of the geom (0: the world)."""
    no_moment = Vec3(zeros(3))
    add_moved_force(m, d, p.dJ, m.site_bodyid[s], k, x, g, no_moment)
    if b > 0:
        add_moved_force(m, d, p.dJ, b, k, x, -g, no_moment)


@kernel
def _add_path(m, d, p, n, k, scale):
    """p.dJ += scale times the part of the path around element n, a geom, between the sites before and after it.

    The path is straight in worlds where it does not bend at the geom.
    """
    s, geom, t, side = m.wrap_objid[n - 1], m.wrap_objid[n], m.wrap_objid[n + 1], m.wrap_sideid[n]
    b, R, r = m.geom_bodyid[geom], d.geom_xmat[geom], m.geom_size[geom][0]
    x, y = _moved_site(m, d, s, k), _moved_site(m, d, t, k)
    # the sites in the frame of the geom: they move relative to the geom's body, by the displacement of the site (x)
    # minus that of the body's point at the same place (at_x)
    start, end, side_point, slack = ends_in_frame(m, d, s, t, geom, side)
    w, at_x = moved_point(m, d, b, k, d.site_xpos[s])
    _, at_y = moved_point(m, d, b, k, d.site_xpos[t])
    (_, dx), (_, dy) = split_tangents(x - at_x, 1), split_tangents(y - at_y, 1)
    moved_start, moved_end = seed(start, R.T @ dx), seed(end, R.T @ dy)
    # side_point has no tangent: the side site only selects the direction of the path
    bends, p0, p1, _ = wrap_in_frame(
        moved_start, moved_end, side_point, 1 if side >= 0 else 0, r, slack, m.wrap_type[n]
    )
    # directions: between the sites, to the first point p0 on the geom, from the last point p1
    (u, _), (u0, _), (u1, _) = (
        normalize3(moved_end - moved_start),
        normalize3(p0 - moved_start),
        normalize3(moved_end - p1),
    )
    # the gradients g_0, g_1 of the length, times the scale, and their changes in the frame of the geom
    g0, dg0 = split_tangents(-scale * where(bends, u0, u), 1)
    g1, dg1 = split_tangents(scale * where(bends, u1, u), 1)
    # to the world's frame, in which the geom's frame turns with w
    g0, g1 = R @ g0, R @ g1
    _add_pull(m, d, p, s, b, k, x, seed(g0, cross(w, g0) + R @ dg0))
    _add_pull(m, d, p, t, b, k, y, seed(g1, cross(w, g1) + R @ dg1))


@kernel
def add_tendon_dJ(m, d, p, i, k, scale):
    """p.dJ += scale times the derivative of row i of the tendons' Jacobian by the position of dof k.

    The tendon's elements are sites, geoms between two sites, and pulleys, which divide the length of what follows.
    """
    part_scale, n = scale, m.tendon_adr[i]
    last = n + m.tendon_num[i] - 1  # no segment begins at the last element
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
