"""Contact reduction: rows are made for contacts that touch, except points that lie between others of their pair.

If the edges of two boxes run along each other, rounding decides whether their crossing is also a contact point.
Between rigid bodies such a point is redundant: its neighbours already prevent penetration.  Between soft ones it
would add a spring, and a stack would start to lean.  So if a pair has more than 4 points, one is dropped that

    lies on the line between two others, at the depth interpolated there; or coincides with an earlier one.

User-defined contacts are not reduced.

A detected contact touches up to a gap of 1e-6 of its geoms' bounding radii; in float32 more, see `touching_distance`.
Between resting bodies, rounding makes the distance of each point 0 or slightly positive.  Without rows there, a box
would fall on its other corners, by g h^2 in a step, and be pushed up again; a tower walked by 6 mm in 20 s or fell.
Source: the idea of manifold reduction, as in Bullet and Box2D; this rule is a choice of this project.
"""

from featherlane.prelude import *
from featherlane.collision.mixing import touching_distance
from featherlane.collision.motion import sweeping
from featherlane.collision.user_contacts import NO_CANDIDATE

ENOUGH = 4.0  # points of a pair: with at most this many, none is dropped
CLOSE = 1e-6  # of the larger bounding radius: smaller distances count as 0
ALIKE = 1e-6  # 1 - cosine of two normals that count as equal


@kernel
def mark_acting(m, d):
    """Sets con_D > 0 if a contact touches and its bodies are not welded to each other, else 0."""
    enabled = m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_CONTACT) == 0
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        b1, b2 = c.carrier[0], c.carrier[1]
        # welded bodies cannot move relative to each other
        if enabled and m.body_weldid[b1] != m.body_weldid[b2]:
            reach = c.includemargin
            if c.cand != NO_CANDIDATE:
                reach = reach + (touching_distance(m, d, c.geom[0]) + touching_distance(m, d, c.geom[1]))
            acts = c.dist <= reach
            if sweeping(m):  # a contact that is predicted within the step acts, too
                acts = acts | (c.speculative > 0.0)
            acts = acts & (c.present > 0.0)
            # a contact at distance 0 has no 1 / R from the convex model
            c.D = where(acts, where(c.D > 0.0, c.D, 1.0), 0.0)
        else:
            c.D = 0.0


@kernel
def alike(d, k, a):
    """Returns a mask: do points k and a both act, along one normal?"""
    n = dot(d.con_frame[k].rows[0], d.con_frame[a].rows[0])
    return (d.con_D[k] > 0.0) & (d.con_D[a] > 0.0) & (n > 1.0 - ALIKE)


@kernel
def coincides(d, k, a, close):
    """Returns a mask: does point k coincide with point a?"""
    r = d.con_pos[k] - d.con_pos[a]
    return alike(d, k, a) & (dot(r, r) <= close * close)


@kernel
def lies_between(d, k, a, b, close):
    """Returns a mask: is point k on the line from point a to point b, with its depth between theirs?"""
    c = d.contact[a]
    p = c.pos
    u, v = d.con_pos[b] - p, d.con_pos[k] - p
    # projection of k on the line: between a and b if 0 < along < square; |off| = |u| times the distance from the line
    square, along, off = dot(u, u), dot(u, v), cross(u, v)
    part = along / where(square > 0.0, square, 1.0)
    # the distance interpolated between a and b, minus that of k
    depth = fma(part, d.con_dist[b] - c.dist, c.dist) - d.con_dist[k]
    on_line = (dot(off, off) <= close * close * square) & (along > 0.0) & (along < square)
    return alike(d, k, a) & alike(d, k, b) & on_line & (fabs(depth) <= close)


@kernel
def reduce_pair_points(m, d, first, end):
    """Drops redundant points of one pair, slots first .. end - 1, point by point."""
    count = 0.0
    for k in range(first, end):
        count = count + where(d.con_D[k] > 0.0, 1.0, 0.0)
    many = count > ENOUGH
    if any_(many):
        g, h = d.con_geom[first, 0], d.con_geom[first, 1]
        close = CLOSE * fmax(m.geom_rbound[g], m.geom_rbound[h])
        for k in range(first, end):
            drop = false_mask(d)
            for a in range(first, end):
                if a < k:
                    drop = drop | coincides(d, k, a, close)
                for b in range(a + 1, end):
                    if k not in (a, b):
                        drop = drop | lies_between(d, k, a, b, close)
            d.con_D[k] = where(many & drop, 0.0, d.con_D[k])


@kernel
def same_pair(d, k, a):
    """Checks whether two slots hold points of one pair.  In a crowd con_cand is ambiguous: geoms are compared, too."""
    c = d.contact[a]
    return (
        d.con_cand[k] == c.cand
        and d.con_pair[k] == c.pair
        and d.con_geom[k, 0] == c.geom[0]
        and d.con_geom[k, 1] == c.geom[1]
    )


@kernel
def choose_contacts(m, d):
    """Sets con_D > 0 if a contact has rows."""
    mark_acting(m, d)
    k, n = 0, d.ncon_slot[0]
    while k < n:
        end = k + 1
        while end < n and same_pair(d, end, k):
            end += 1
        # user-defined contacts are not reduced; with at most ENOUGH slots, no point is dropped
        if d.con_cand[k] != NO_CANDIDATE and end - k > 4:
            reduce_pair_points(m, d, k, end)
        k = end
