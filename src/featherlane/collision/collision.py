"""The collision pass: contacts of a tile, as slots that its worlds share.

A slot is a contact point of a candidate pair that some world has.  Worlds that lack it hold zeros there, and 1e10 as
its distance.  Slots come in the order of the candidates, then of a pair's points, so the contacts of one world come in
MuJoCo's order whatever its company.
"""

from __future__ import annotations

from featherlane.dynamics.flags import DISABLE_CONSTRAINT, DISABLE_CONTACT
from featherlane.lanes import any_, kernel, lane_index, real, stage, where, width
from featherlane.model.candidates import (
    CAPSULE_CAPSULE,
    PLANE_BOX,
    PLANE_CAPSULE,
    PLANE_SPHERE,
    SPHERE_CAPSULE,
    SPHERE_SPHERE,
)
from featherlane.spatial.vector import axpy3, dot3, load3, load9, scale3, store3, sub3

from .frame import frame_along, frame_of
from .mixing import friction, margin_and_gap, reference_and_impedance
from .primitive import (
    capsule_segments,
    corner_height,
    half_axis_heights,
    plane_box,
    plane_sphere,
    select3,
    sphere_capsule,
    sphere_sphere,
)

NO_CONTACT = 1e10  # distance in a world that lacks the slot's contact


@kernel
def z_axis(d, g):
    """Third column of the geom's orientation: a plane's normal, a capsule's axis."""
    return d.geom_xmat[9 * g + 2], d.geom_xmat[9 * g + 5], d.geom_xmat[9 * g + 8]


@kernel
def is_plane(m, p):
    """Is the first geom of candidate pair p a plane?"""
    f = m.cand_function[p]
    return f in (PLANE_SPHERE, PLANE_CAPSULE, PLANE_BOX)


# ---- which pairs are near -------------------------------------------------------------------------------


@kernel
def is_near(m, d, p):
    """Mask: do the bounding spheres of the pair come within margin and gap?  A plane's is its half space."""
    g, h, e = m.cand_geom1[p], m.cand_geom2[p], m.cand_pair[p]
    v = sub3(load3(d.geom_xpos, 3 * h), load3(d.geom_xpos, 3 * g))
    if e < 0:
        reach = d.geom_reach[g] + d.geom_reach[h]
    else:
        reach = m.geom_rbound[g] + m.geom_rbound[h] + (m.pair_margin[e] + m.pair_gap[e])
    if is_plane(m, p):
        near = dot3(v, z_axis(d, g)) <= reach
    else:
        near = dot3(v, v) <= reach * reach
    return near & (d.active[0] > 0.0)


@kernel
def near_pairs(m, d):
    """List the candidate pairs that are near in some world; returns how many there are."""
    for g in range(m.ngeom):
        d.geom_reach[g] = m.geom_rbound[g] + (m.geom_margin[g] + m.geom_gap[g])

    # every pair is written, and kept by moving on: no branch to mispredict
    n = 0
    for p in range(m.ncand):
        d.cand_near[n] = p
        n += any_(is_near(m, d, p))
    return n


# ---- slots ----------------------------------------------------------------------------------------------


@kernel
def append(m, d, p, touch, dist, pos, frame):
    """Add a slot if the point touches in some world; where no slot is left, the overflow is noted."""
    if any_(touch):
        k, zero = d.ncon_slot[0], real(d, 0.0)
        if k < d.nconmax:
            d.con_cand[k] = p
            d.con_present[k] = where(touch, real(d, 1.0), zero)
            d.con_dist[k] = where(touch, dist, NO_CONTACT)
            store3(d.con_pos, 3 * k, select3(touch, pos, (zero, zero, zero)))
            for i in range(9):
                d.con_frame[9 * k + i] = where(touch, frame[i], zero)
            d.ncon_slot[0] = k + 1
        else:
            d.con_overflow[0] = 1


@kernel
def set_parameters(m, d, p, first):
    """Margin, friction, solref and solimp of the pair's slots, `first` and after."""
    if d.ncon_slot[0] > first:
        zero = real(d, 0.0)
        margin, _ = margin_and_gap(m, p)
        mu = friction(m, p)
        ref, imp = reference_and_impedance(m, p)
        for k in range(first, d.ncon_slot[0]):
            has = d.con_present[k] > 0.0
            d.con_includemargin[k] = where(has, margin, zero)
            for i in range(5):
                d.con_friction[5 * k + i] = where(has, mu[i], zero)
                d.con_solimp[5 * k + i] = where(has, imp[i], zero)
            for i in range(2):
                d.con_solref[2 * k + i] = where(has, ref[i], zero)
            d.ncon[0] = d.ncon[0] + d.con_present[k]


# ---- the points of one pair -------------------------------------------------------------------------------


@kernel
def plane_sphere_points(m, d, p, near, limit):
    """Up to one point."""
    g, h = m.cand_geom1[p], m.cand_geom2[p]
    n = z_axis(d, g)
    touch, dist, pos = plane_sphere(load3(d.geom_xpos, 3 * g), n, load3(d.geom_xpos, 3 * h), m.geom_size[3 * h], limit)
    append(m, d, p, near & touch, dist, pos, frame_of(n))


@kernel
def plane_capsule_points(m, d, p, near, limit):
    """Up to two points: the caps at the positive and at the negative end of the axis, along which the frame lies."""
    g, h = m.cand_geom1[p], m.cand_geom2[p]
    o, n = load3(d.geom_xpos, 3 * g), z_axis(d, g)
    c, a = load3(d.geom_xpos, 3 * h), z_axis(d, h)
    r, half = m.geom_size[3 * h], m.geom_size[3 * h + 1]
    frame = frame_along(n, a)
    for end in range(2):
        touch, dist, pos = plane_sphere(o, n, axpy3((1.0 - 2.0 * end) * half, a, c), r, limit)
        append(m, d, p, near & touch, dist, pos, frame)


@kernel
def plane_box_points(m, d, p, near, limit):
    """Up to four points: corners in the order of their numbers."""
    g, h = m.cand_geom1[p], m.cand_geom2[p]
    n, c = z_axis(d, g), load3(d.geom_xpos, 3 * h)
    R, size = load9(d.geom_xmat, 9 * h), load3(m.geom_size, 3 * h)
    height, axis = dot3(sub3(c, load3(d.geom_xpos, 3 * g)), n), half_axis_heights(R, size, n)
    frame = frame_of(n)
    corners = plane_box(height, axis, limit, real(d, -1.0))
    for i in range(4):
        corner = corners[i]

        # bits of the number -> signs of the axes
        z = corner >= 4.0
        rest = where(z, corner - 4.0, corner)
        y = rest >= 2.0
        x = where(y, rest - 2.0, rest) >= 1.0
        sx, sy, sz = where(x, 1.0, -1.0), where(y, 1.0, -1.0), where(z, 1.0, -1.0)
        dist = height + corner_height(sx, sy, sz, axis)
        pos = axpy3(sx * size[0], (R[0], R[3], R[6]), c)
        pos = axpy3(sy * size[1], (R[1], R[4], R[7]), pos)
        pos = axpy3(sz * size[2], (R[2], R[5], R[8]), pos)
        append(m, d, p, near & (corner >= 0.0), dist, axpy3(-0.5 * dist, n, pos), frame)


@kernel
def sphere_points(m, d, p, near, limit):
    """Up to one point of a sphere with a sphere or a capsule."""
    g, h = m.cand_geom1[p], m.cand_geom2[p]
    c1, z1, r1 = load3(d.geom_xpos, 3 * g), z_axis(d, g), m.geom_size[3 * g]
    c2, z2, r2 = load3(d.geom_xpos, 3 * h), z_axis(d, h), m.geom_size[3 * h]
    if m.cand_function[p] == SPHERE_SPHERE:
        touch, dist, pos, n = sphere_sphere(c1, z1, r1, c2, z2, r2, limit)
    else:
        touch, dist, pos, n = sphere_capsule(c1, z1, r1, c2, z2, r2, m.geom_size[3 * h + 1], limit)
    append(m, d, p, near & touch, dist, pos, frame_of(n))


@kernel
def capsule_capsule_points(m, d, p, near, limit):
    """One point of crossing capsules, up to two of parallel ones."""
    g, h = m.cand_geom1[p], m.cand_geom2[p]
    c1, z1, r1 = load3(d.geom_xpos, 3 * g), z_axis(d, g), m.geom_size[3 * g]
    c2, z2, r2 = load3(d.geom_xpos, 3 * h), z_axis(d, h), m.geom_size[3 * h]
    a1, a2 = scale3(m.geom_size[3 * g + 1], z1), scale3(m.geom_size[3 * h + 1], z2)
    parallel, x1, x2, y1, y2 = capsule_segments(c1, a1, c2, a2)
    touch, dist, pos, n = sphere_sphere(axpy3(x1, a1, c1), z1, r1, axpy3(x2, a2, c2), z2, r2, limit)
    append(m, d, p, near & touch, dist, pos, frame_of(n))
    if any_(near & parallel):
        touch, dist, pos, n = sphere_sphere(axpy3(y1, a1, c1), z1, r1, axpy3(y2, a2, c2), z2, r2, limit)
        append(m, d, p, near & parallel & touch, dist, pos, frame_of(n))


@kernel
def points(m, d, p):
    """Append the contact points of one pair."""
    f, near = m.cand_function[p], is_near(m, d, p)
    margin, gap = margin_and_gap(m, p)
    if f == PLANE_SPHERE:
        plane_sphere_points(m, d, p, near, margin + gap)
    elif f == PLANE_CAPSULE:
        plane_capsule_points(m, d, p, near, margin + gap)
    elif f == PLANE_BOX:
        plane_box_points(m, d, p, near, margin + gap)
    elif f in (SPHERE_SPHERE, SPHERE_CAPSULE):
        sphere_points(m, d, p, near, margin + gap)
    elif f == CAPSULE_CAPSULE:
        capsule_capsule_points(m, d, p, near, margin + gap)


# ---- the pass -------------------------------------------------------------------------------------------


@kernel
def settle_overflow(d):
    """A world that is alone keeps the contacts that fit and is warned; else the overflow stands, to split the tile."""
    if d.con_overflow[0] == 1:
        n, active = 0, d.active[0] > 0.0
        for k in range(width(d)):
            n += any_(active & (lane_index(d) == k))
        if n == 1:
            d.con_overflow[0] = 0
            d.warning[0] = d.warning[0] + where(active, real(d, 1.0), real(d, 0.0))


@stage
def collision(m, d):
    """Contacts of all active worlds, with their parameters.

    Bounding spheres list the pairs that are near in some world; their points are appended as slots, in order, until
    nconmax is reached.  Then con_overflow says that the tile has to be split; a world that is alone keeps its first
    contacts and counts a warning.
    Source: MuJoCo mj_collision.
    Reads:  geom_xpos, geom_xmat, active.   Writes: ncon_slot, con_overflow, ncon, con_* (nconmax), warning;
                                                    geom_reach (ngeom,) and cand_near (ncand,) for itself.
    Frame: world.                           Cost: O(ncand), and the pairs that are near.
    """
    d.ncon_slot[0] = 0
    d.con_overflow[0] = 0
    d.ncon[0] = real(d, 0.0)
    if not m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_CONTACT):
        for i in range(near_pairs(m, d)):
            p, first = d.cand_near[i], d.ncon_slot[0]
            points(m, d, p)
            set_parameters(m, d, p, first)
            if d.con_overflow[0] == 1:
                break
        settle_overflow(d)
