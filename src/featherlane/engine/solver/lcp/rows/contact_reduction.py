"""Contact reduction: rows are made for contacts that touch, except points that lie between others of their pair.

If the edges of two boxes run along each other, rounding decides whether their crossing is also a contact point.
Between rigid bodies such a point is redundant: its neighbours already prevent penetration.  Between soft ones it
would add a spring, and a stack would start to lean.  So if a pair has more than 4 points, a point is dropped if it lies
on the line between two others, at the depth interpolated there, or if it coincides with an earlier one.

User-defined contacts are not reduced: their con_cand, the candidate pair of a contact, is NO_CANDIDATE.
con_D marks contacts: it is > 0 in worlds in which the contact has rows, else 0.  Only its sign
counts here.  con_carrier: the two bodies of a contact;  `sweeping`: contacts within the step are predicted, too;
`touching_distance`: a geom's part of the gap at which contacts touch.

A detected contact touches up to a gap of 1e-6 of its geoms' bounding radii; in float32 more, see `touching_distance`.
Between resting bodies, rounding makes the distance of each point 0 or slightly positive.  Without rows there, a box
would fall on its other corners, by g h^2 in a step, and be pushed up again; a tower walked by 6 mm in 20 s or fell.
Source: the idea of manifold reduction, as in Bullet and Box2D; this rule is a choice of this project.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.mixing import touching_distance
from featherlane.engine.collision.motion import sweeping
from featherlane.engine.collision.user_contacts import NO_CANDIDATE

ENOUGH = 4.0  # points of a pair: with at most this many, none is dropped
CLOSE = 1e-6  # distances up to this, relative to the larger bounding radius, count as 0
ALIKE = 1e-6  # largest 1 - cosine of two normals that count as equal


@kernel
def mark_acting(m, d):
    """Sets con_D > 0 in worlds in which contact k acts, else 0, for all contacts.

    A contact acts if contacts are enabled, its bodies are not welded to each other, and it touches or, with `sweeping`,
    is predicted within the step.
    """
    enabled = m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_CONTACT) == 0
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        first, second = c.carrier[0], c.carrier[1]
        # welded bodies cannot move relative to each other
        if enabled and m.body_weldid[first] != m.body_weldid[second]:
            reach = c.includemargin
            if c.cand != NO_CANDIDATE:
                reach = reach + (touching_distance(m, d, c.geom[0]) + touching_distance(m, d, c.geom[1]))
            acts = c.dist <= reach
            if sweeping(m):  # a contact that is predicted within the step acts, too
                acts = acts | (c.speculative > 0.0)
            acts = acts & (c.present > 0.0)  # present: worlds that have the contact
            # con_D stays 1 / R if that is known, else it becomes 1: only its sign counts
            c.D = where(acts, where(c.D > 0.0, c.D, 1.0), 0.0)
        else:
            c.D = 0.0


@kernel
def act_along_one_normal(d, k, a):
    """Returns a mask of worlds in which contacts k and a both act, along one normal."""
    cosine = dot(d.con_frame[k].rows[0], d.con_frame[a].rows[0])
    return (d.con_D[k] > 0.0) & (d.con_D[a] > 0.0) & (cosine > 1.0 - ALIKE)


@kernel
def coincides(d, k, a, close):
    """Returns a mask of worlds in which contact k is at most `close` [m] from contact a, along the same normal."""
    apart = d.con_pos[k] - d.con_pos[a]
    return act_along_one_normal(d, k, a) & (dot(apart, apart) <= close * close)


@kernel
def lies_between(d, k, a, b, close):
    """Returns a mask of worlds in which contact k lies between contacts a and b, along the same normal.

    Its point is within `close` [m] of the line from a to b, and its distance within `close` of that interpolated there.
    line = b - a, to_k = k - a;  k is on it: 0 < line . to_k < line^2 and |line x to_k| <= close |line|
    """
    c = d.contact[a]
    start = c.pos
    line, to_k = d.con_pos[b] - start, d.con_pos[k] - start
    square, along = dot(line, line), dot(line, to_k)
    across = cross(line, to_k)
    fraction = along / where(square > 0.0, square, 1.0)
    # con_dist interpolated between a and b, minus that of k
    difference = fma(fraction, d.con_dist[b] - c.dist, c.dist) - d.con_dist[k]
    on_line = (dot(across, across) <= close * close * square) & (along > 0.0) & (along < square)
    return act_along_one_normal(d, k, a) & act_along_one_normal(d, k, b) & on_line & (fabs(difference) <= close)


@kernel
def reduce_pair_points(m, d, first, end):
    """Sets con_D = 0 of redundant points of a pair, slots first to end - 1, in worlds with more than ENOUGH points."""
    acting = 0.0
    for k in range(first, end):
        acting = acting + where(d.con_D[k] > 0.0, 1.0, 0.0)
    many = acting > ENOUGH
    if any_(many):
        geom1, geom2 = d.con_geom[first, 0], d.con_geom[first, 1]
        close = CLOSE * fmax(m.geom_rbound[geom1], m.geom_rbound[geom2])
        for k in range(first, end):
            redundant = false_mask(d)
            # points that are already dropped have con_D = 0, and make no other point redundant
            for a in range(first, end):
                if a < k:  # of two points that coincide, the first one stays
                    redundant = redundant | coincides(d, k, a, close)
                for b in range(a + 1, end):
                    if k not in (a, b):
                        redundant = redundant | lies_between(d, k, a, b, close)
            d.con_D[k] = where(many & redundant, 0.0, d.con_D[k])


@kernel
def same_pair(d, slot, other):
    """Checks whether two slots hold points of one pair.

    con_cand is the number of the pair in the list of candidates.  In models with very many geoms, a tree finds pairs
    instead, and several have the same con_cand: so the explicit pairs (con_pair) and the geoms are compared, too.
    """
    c = d.contact[other]
    return (
        d.con_cand[slot] == c.cand
        and d.con_pair[slot] == c.pair
        and d.con_geom[slot, 0] == c.geom[0]
        and d.con_geom[slot, 1] == c.geom[1]
    )


@kernel
def mark_contacts_with_rows(m, d):
    """Sets con_D > 0 if a contact has rows, else 0: it touches, and is not redundant among the points of its pair."""
    mark_acting(m, d)
    first = 0
    nslot = d.ncon_slot[0]
    # slots first to end - 1 hold one pair
    while first < nslot:
        end = first + 1
        while end < nslot and same_pair(d, end, first):
            end += 1
        # user-defined contacts are not reduced; with at most ENOUGH = 4 slots, no point is dropped
        if d.con_cand[first] != NO_CANDIDATE and end - first > 4:
            reduce_pair_points(m, d, first, end)
        first = end
