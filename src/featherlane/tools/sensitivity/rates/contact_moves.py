"""Derivatives of contacts by the poses of the bodies: distance, point and frame, by twists of the relative pose.

Only the pose of one body relative to the other matters.  Each contact's distance, point and frame are differenced for
the six twists of that pose, for all contacts of a world at once.  Every body b moves by a twist about the com of its
tree, scaled by a unique number c_b, so that each touching pair has the relative twist (c_2 - c_1) T.  This takes twelve
collision detections for any number of dofs, and works for every pair of shapes.  Tangents follow the world's axes and
not the bodies: if two moving bodies touch, the frame spins about its normal when the whole scene is turned
(collision/frame.py).  If a pair's tangents follow something else, six more collision detections measure this spin.

Fields of the record p (records.py), one row for each contact slot k of the worlds' own pose.  A collision detection at
a displaced pose may list the same contacts in other slots: slot_at[k] is the slot there.
    geom_pos, geom_mat        own pose of all geoms
    slot_cand, geom, point    the contact's candidate pair, its geoms and the number of its point; slot_present: 1 in
                              worlds that have it
    slot_lost[k]              1: no point of the pair is near the contact at the pose displaced by +STEP
    slot_gone[k]              1: the contact is absent at a displaced pose, or lost at both poses of a twist; 0.5: lost
                              at one of them; else 0
    slot_known[0]             of a world: 1: all displaced poses have its contacts, 0: one is absent, -1: the buffer is
                              full
    slot_near[0]              of a world: 1: a displaced pose has another contact, or a contact is lost there
    slot_own, upper, lower    (distance, position, frame) at the own pose, and at the poses displaced by +STEP and -STEP
    slot_moves[k]             the map (7, 6) from a relative twist to changes of distance (row 0), point (rows 1 to 3)
                              and rotation of the frame (rows 4 to 6); body 1 is fixed, body 2 moves
    slot_spin[k]              spin of the frame about its normal, for each axis of a rotation of the whole scene
Imported: moving_body(m, b), b or 0 if body b cannot move; frame_of(n), the frame of a normal n by the world's axes;
spin_of_frame(n, t), the vector whose product with a rotation is the spin of this frame about n; collision, contacts
d.con_* at the poses geom_xpos and geom_xmat.  con_present: 1 in worlds that have the detected contact.
Bodies 1 and 2 of a slot are slot_carrier[k, 0] and [k, 1].  A slot without a candidate pair (NO_CANDIDATE) has a
contact that the caller gave: it is not detected, and does not move.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.collision import collision
from featherlane.engine.collision.frame import frame_of, spin_of_frame
from featherlane.engine.collision.user_contacts import NO_CANDIDATE
from featherlane.engine.solver.rows.rows import moving_body
from featherlane.engine.spatial.motion import at_point
from featherlane.tools.sensitivity.rates.contact_types import ContactPlace, ContactShift

STEP = 2e-7  # m, rad: displacement of poses; nearly flat contacts change within 1e-4
SAME = 1e-10  # tolerance for equal unit vectors
JUMP = 1e-4  # m: a point that is farther away at a displaced pose is a different point


@kernel
def body_constant(m, b):
    """Returns c_b, which differs between any two bodies that can touch; 0 for fixed bodies.

    A moving body has 1 <= c_b < 2, equal for all bodies that are welded together, which cannot touch each other.
    """
    constant = 1.0 + m.body_weldid[b] * (1.0 / m.nbody)
    return constant if moving_body(m, b) > 0 else 0.0


@kernel
def _along_axis(axis, s):
    """Returns the twist of size s along one of six axes: 0 to 2 rotations, 3 to 5 translations."""
    return Motion(s if axis == c else 0.0 for c in range(6))


@kernel
def _displace_geoms(m, d, p, axis, step, together):
    """geom_xpos, geom_xmat <- the stored poses geom_pos, geom_mat, moved by a twist along one of six axes.

    axis: 0 to 2 rotations, 3 to 5 translations.
    together: 1: all geoms move by the same twist of size `step`, about the com of the first tree (the spin of a frame
        does not depend on this point); 0: each body b by one of size `step` c_b, about the com of its tree.
    """
    for g in range(m.ngeom):
        b, pos = m.geom_bodyid[g], p.geom_pos[g]
        twist = _along_axis(axis, step * (1.0 if together else body_constant(m, b)))
        arm = pos - d.subtree_com[m.body_rootid[1 if together else b]]
        d.geom_xpos[g] = pos + at_point(twist, arm).linear
        x, y, z = p.geom_mat[g].columns
        w = twist.angular
        # each column turns by w x column, to first order; `join` writes rows, hence the transpose
        d.geom_xmat[g] = Mat3(join(x + cross(w, x), y + cross(w, y), z + cross(w, z))).T


@kernel
def _is_of_pair(d, p, s, k):
    """Returns whether detected slot s has the same pair as slot k of the world's own pose."""
    c = d.contact[s]
    return c.cand == p.slot_cand[k] and c.geom[0] == p.slot_geom[k, 0] and c.geom[1] == p.slot_geom[k, 1]


@kernel
def _find_slot(d, p, k, next_slot):
    """Returns the detected slot of slot k of the world's own pose, or -1; the cyclic search begins at `next_slot`."""
    n, found = d.ncon_slot[0], -1
    if p.slot_cand[k] == NO_CANDIDATE:
        found = k  # a contact given by the caller is not detected, and keeps its slot
    else:
        tried = 0
        while tried < n and found < 0:
            s = (next_slot + tried) % n
            # the same point of the same pair
            found = s if d.con_point[s] == p.slot_point[k] and _is_of_pair(d, p, s, k) else -1
            tried += 1
    return found


@kernel
def _match(d, p, k, at):
    """slot_at[k] <- the detected slot `at` of slot k of the worlds' own pose, -1: none.

    Writes: slot_taken[at]; slot_near <- 1 in worlds that have the contact at this displaced pose only;
            slot_gone[k] <- 1 and slot_known <- 0 in worlds that have it at their own pose only.
    """
    # missing: worlds that have the contact at their own pose, but not at this displaced pose
    at_own = p.slot_present[k] > 0.0
    p.slot_at[k], missing = at, at_own
    if at >= 0:
        at_displaced = d.con_present[at] > 0.0
        p.slot_near[0] = where(at_displaced & not_(at_own), 1.0, p.slot_near[0])
        p.slot_taken[at], missing = 1, at_own & not_(at_displaced)
    p.slot_known[0] = where(missing & (p.slot_known[0] > 0.0), 0.0, p.slot_known[0])  # -1 stays
    p.slot_gone[k] = where(missing, 1.0, p.slot_gone[k])


@kernel
def _find_slots(d, p, n):
    """slot_at <- the detected slot of each of the n slots of the worlds' own pose, -1: none.

    A displaced pose may have more slots or fewer, in a different order.
    Writes: slot_at, slot_gone, slot_taken; slot_known and slot_near as in `contact_moves`.
    """
    if d.con_overflow[0]:  # contacts do not fit into the tile
        p.slot_known[0] = -1.0
        for k in range(n):
            p.slot_at[k] = -1
    else:
        for s in range(d.ncon_slot[0]):
            p.slot_taken[s] = 0  # 1: slot s matches a slot of the own pose
        # next_slot: where the search begins, as slots mostly keep their order; touching: number of own contacts
        next_slot, touching = 0, 0.0
        for k in range(n):
            at = _find_slot(d, p, k, next_slot)
            touching = touching + p.slot_present[k]
            _match(d, p, k, at)
            next_slot = at + 1 if at >= 0 else next_slot
        # a detected slot that matches none of the own pose is another contact
        for s in range(d.ncon_slot[0]):
            if p.slot_taken[s] == 0:
                p.slot_near[0] = where(d.con_present[s] > 0.0, 1.0, p.slot_near[0])
        # a world without contacts has slot_near = 0, as in a tile with this world alone, where n = 0
        p.slot_near[0] = where(touching > 0.0, p.slot_near[0], 0.0)


@kernel
def _arm(m, d, p, k, side):
    """Returns the arm of contact k's point from the com of the tree of body 1 (side 0) or body 2 (side 1) [m].

    The point is midway between its positions at both displaced poses.
    """
    point = 0.5 * (p.slot_lower[k].position + p.slot_upper[k].position)
    return point - d.subtree_com[m.body_rootid[p.slot_carrier[k, side]]]


@kernel
def _normal(p, k):
    """Returns the contact's normal, midway between both displaced poses."""
    return 0.5 * (p.slot_lower[k].orientation.rows[0] + p.slot_upper[k].orientation.rows[0])


@kernel
def _store_move(p, k, axis, dist, pos, rotation):
    """slot_moves[k][:, axis] <- changes of distance, point and rotation of the frame by a unit twist along the axis."""
    change = ContactShift(join((dist,), pos, rotation))
    # 42 entries for each contact: 7 rows of 6
    for r in unrolled(range(7)):
        flat(p.slot_moves)[42 * k + 6 * r + axis] = change[r]


@kernel
def moved_by(p, k, twist):
    """Returns (change of distance, displacement of the point, rotation of the frame) of contact k for a relative twist.

    The twist is that of body 2 at the contact, with body 1 fixed.
    """
    change = tuple(dot(p.slot_moves[k, r], twist) for r in range(7))
    return change[0], Vec3(change[1:4]), Vec3(change[4:7])


@kernel
def _detected_place(d, s):
    """Returns (distance, position, frame) of detected slot s, a ContactPlace."""
    c = d.contact[s]
    return ContactPlace(join((c.dist,), c.pos, c.frame))


@kernel
def _square_from_own(d, p, s, k):
    """Returns the squared distance of detected slot s from slot k at the world's own pose."""
    offset = d.con_pos[s] - p.slot_own[k].position
    return dot(offset, offset)


@kernel
def _store_place(d, p, k, places):
    """places[k] <- (distance, position, frame) of slot k at a displaced pose; returns 1 in worlds of case 4, else 0.

    places: slot_upper or slot_lower.
        1. No slot was detected (slot_at = -1): zeros.
        2. The detected point is within JUMP of the point at the own pose: the detected place.
        3. astray: it is farther away, so it is a different point; the corners of a clipped polygon may be numbered from
           a different corner on.  The pair's nearest point is used, if it is within JUMP.
        4. lost: the nearest point is farther away as well; a face may be represented by different points.  The place at
           the own pose is used, and slot_near <- 1.
    """
    at, lost = p.slot_at[k], 0.0
    places[k] = zeros(13)  # distance, position, frame
    if at >= 0:
        square, present = _square_from_own(d, p, at, k), p.slot_present[k] > 0.0
        # square == square is false for NaN, which a world without the contact may hold there
        places[k] = where(square == square, _detected_place(d, at), places[k])
        astray = (square > JUMP * JUMP) & present
        if any_(astray):
            # the pair's nearest point
            for s in range(d.ncon_slot[0]):
                if s != at and _is_of_pair(d, p, s, k):
                    other_square = _square_from_own(d, p, s, k)
                    nearer = astray & (d.con_present[s] > 0.0) & (other_square < square)
                    square = where(nearer, other_square, square)
                    places[k] = where(nearer, _detected_place(d, s), places[k])
            # no point is near
            lost = where(astray & (square > JUMP * JUMP), 1.0, lost)
            places[k] = where(lost > 0.0, p.slot_own[k], places[k])
            p.slot_near[0] = where(lost > 0.0, 1.0, p.slot_near[0])
    return lost


@kernel
def _store_lower(d, p, k):
    """slot_lower <- the place of slot k at the pose displaced by -STEP; returns 1 / the distance between both poses.

    Their distance is 2 STEP, or STEP in worlds that lost the contact at one of them: there the own pose is used.
    slot_jumps <- 1 if the contact is lost at both poses; slot_gone <- at least 0.5 if it is lost at one, 1 at both.
    Reads: slot_lost, 1 in worlds that lost it at the upper pose.  `_store_place` returns the same for the lower pose.
    """
    # number of poses at which the contact is lost
    nlost = p.slot_lost[k] + _store_place(d, p, k, p.slot_lower)
    p.slot_jumps[0] = where(nlost > 1.0, 1.0, p.slot_jumps[0])
    p.slot_gone[k] = fmax(p.slot_gone[k], 0.5 * nlost)
    return where(nlost == 1.0, 1.0, 0.5) / STEP


@kernel
def _frame_rotation(p, k, scale):
    """Returns the rotation of the frame from the lower pose to the upper one, times the scale.

    It is half the sum of e x de over the axes e of the frame, since de = rotation x e.
    """
    lower = p.slot_lower[k].orientation.rows
    upper, rotation = p.slot_upper[k].orientation.rows, Vec3(zeros(3))
    for i in unrolled(range(3)):
        rotation = rotation + 0.5 * scale * cross(lower[i], upper[i] - lower[i])
    return rotation


@kernel
def _pair_moves(m, p, k):
    """Returns whether both bodies of slot k move."""
    return moving_body(m, p.slot_carrier[k, 0]) > 0 and moving_body(m, p.slot_carrier[k, 1]) > 0


@kernel
def _detect_contacts(m, d, p, n, axis, together):
    """Detects contacts at both poses displaced along an axis; slot_upper, slot_lost <- those of the upper pose.

    Afterwards d.contact and slot_at are those of the lower pose.   together: see `_displace_geoms`.
    """
    for side in range(2):  # upper pose (+STEP), then lower pose (-STEP)
        _displace_geoms(m, d, p, axis, STEP * (1.0 - 2.0 * side), together)
        collision(m, d)
        _find_slots(d, p, n)
        if side == 0:
            for k in range(n):
                p.slot_lost[k] = _store_place(d, p, k, p.slot_upper)


@kernel
def _follows_normal(p, k):
    """Returns the mask of worlds in which the tangents of slot k are those that `frame_of` chooses for its normal.

    It includes the worlds without the contact.
    """
    normal, tangent, _ = p.slot_own[k].orientation.rows
    difference = tangent - Vec3(frame_of(normal)[3:6])  # entries 3 to 5: the first tangent
    return not_((dot(difference, difference) > SAME * SAME) & (p.slot_present[k] > 0.0))


@kernel
def _set_spins(m, d, p, n):
    """slot_spin <- spin of frames between moving bodies about their normals, relative to a rotation of the whole scene.

    A frame that rotated with the scene would spin by the normal's component of the rotation, which is subtracted.
    n: number of slots of the worlds' own pose.
    """
    strays = 0  # 1: some world has tangents that do not follow from their normal
    for k in range(n):
        spin = Vec3(zeros(3))
        if _pair_moves(m, p, k):
            normal, tangent, _ = p.slot_own[k].orientation.rows
            if p.slot_cand[k] != NO_CANDIDATE:  # the frame of a contact given by the caller does not turn
                spin = spin_of_frame(normal, tangent)  # valid for tangents that follow from the normal
                strays = 1 if any_(not_(_follows_normal(p, k))) else strays
            spin = spin - normal  # minus the normal's component of the rotation
        p.slot_spin[k] = spin
    if strays:
        _difference_spins(m, d, p, n)


@kernel
def _difference_spins(m, d, p, n):
    """Computes slot_spin of frames whose tangents do not follow from their normal, by six more collision detections."""
    for axis in range(3):
        _detect_contacts(m, d, p, n, axis, together=1)
        for k in range(n):
            # a contact given by the caller does not turn; slot_at is -1 if the lower pose lacks the contact
            if _pair_moves(m, p, k) and p.slot_at[k] >= 0 and p.slot_cand[k] != NO_CANDIDATE:
                scale, normal = _store_lower(d, p, k), _normal(p, k)
                entry = 3 * k + axis  # 3 entries for each contact
                spin = dot(normal, _frame_rotation(p, k, scale)) - normal[axis]
                flat(p.slot_spin)[entry] = where(_follows_normal(p, k), flat(p.slot_spin)[entry], spin)


@kernel
def _set_column(m, d, p, k, axis, scale):
    """slot_moves[k][:, axis] <- difference quotients of contact k between its upper pose and its lower one.

    At these poses, body 1 moved by +-STEP c_1 T and body 2 by +-STEP c_2 T, T the unit twist along the axis.
    scale: 1 / the distance between both poses.
    """
    body1, body2 = p.slot_carrier[k, 0], p.slot_carrier[k, 1]
    c1, c2 = body_constant(m, body1), body_constant(m, body2)
    upper, lower = p.slot_upper[k], p.slot_lower[k]
    dist, pos = (upper.dist - lower.dist) * scale, scale * (upper.position - lower.position)
    rotation = _frame_rotation(p, k, scale)
    # body 1 carries the contact along with motion1.  The rest is due to the motion of body 2 relative to body 1: its
    # angular part is that of (c_2 - c_1) T, hence the division by c_2 - c_1; its linear part at the contact is u
    motion1 = at_point(_along_axis(axis, c1), _arm(m, d, p, k, 0))
    motion2 = at_point(_along_axis(axis, c2), _arm(m, d, p, k, 1))
    pos, rotation = pos - motion1.linear, rotation - motion1.angular
    u = motion2.linear - motion1.linear
    fixed = moving_body(m, body1) == 0 and moving_body(m, body2) == 0
    # inverse = 1 / (c_2 - c_1); 0 for bodies without relative motion, whose c are equal (1 - relative avoids 1 / 0)
    relative = 0.0 if fixed or m.body_weldid[body1] == m.body_weldid[body2] else 1.0
    inverse = relative / (c2 - c1 + (1.0 - relative))
    if axis < 3:  # a rotation: subtract the spin of the frame that the common rotation c_1 T causes
        rotation = fma(-c1 * p.slot_spin[k][axis], _normal(p, k), rotation)
        # the column is that of a rotation about the contact: subtract the effect of u, by the translations' columns
        by_u = tuple(dot(p.slot_moves[k, r].translation, u) for r in range(7))
        dist, pos, rotation = dist - by_u[0], pos - Vec3(by_u[1:4]), rotation - Vec3(by_u[4:7])
    _store_move(p, k, axis, dist * inverse, inverse * pos, inverse * rotation)


@kernel
def contact_moves(m, d, p):
    """Computes slot_moves of all contacts, by twelve collisions at displaced poses, and then detects contacts again.

    Writes: slot_moves, slot_spin, slot_gone;
            slot_known: 0 in worlds that lack one of their contacts at a displaced pose, -1 if the buffer is full;
            slot_near: 1 if another contact exists at such a pose, in worlds with contacts;
            slot_jumps: 1 if a contact is lost at both poses of a twist (`_store_lower`).
    """
    n = d.ncon_slot[0]
    p.slot_known[0], p.slot_near[0], p.slot_jumps[0] = 1.0, 0.0, 0.0
    if n > 0:
        for g in range(m.ngeom):
            p.geom_pos[g] = d.geom_xpos[g]
            p.geom_mat[g] = d.geom_xmat[g]
        for k in range(n):
            c = d.contact[k]
            p.slot_cand[k], p.slot_point[k] = c.cand, c.point
            # both geoms and both bodies: two entries for each contact
            for e in range(2 * k, 2 * k + 2):
                p.slot_geom[e], p.slot_carrier[e] = d.con_geom[e], d.con_carrier[e]
            p.slot_present[k], p.slot_gone[k] = c.present, 0.0
            p.slot_own[k] = _detected_place(d, k)
        _set_spins(m, d, p, n)
        for done in range(6):
            axis = 5 - done  # translations first: `_set_column` subtracts their part from rotations
            _detect_contacts(m, d, p, n, axis, together=0)
            for k in range(n):
                if p.slot_at[k] >= 0:
                    _set_column(m, d, p, k, axis, _store_lower(d, p, k))
                else:  # no such contact at the displaced pose
                    _store_move(p, k, axis, dist=0.0, pos=zeros(3), rotation=zeros(3))
        # back to the own pose
        _displace_geoms(m, d, p, axis=0, step=0.0, together=0)
        collision(m, d)
