"""Derivatives of contacts by the poses of the bodies: distance, point and frame, by twists of the relative pose.

Only the pose of one body relative to the other matters.  Each contact's distance, point and frame are differenced for
the six twists of that pose, for all contacts of a world at once.  Every body b moves by a twist about the com of its
tree, scaled by a unique number c_b, so that each touching pair has the relative twist (c_2 - c_1) T.  This takes twelve
collision detections for any number of dofs, and works for every pair of shapes.  Tangents follow the world's axes and
not the bodies: if two moving bodies touch, the frame spins about its normal when the whole scene is turned
(collision/frame.py).  If a pair's tangents follow something else, six more collision detections measure this spin.
"""

from featherlane.prelude import *
from featherlane.collision.collision import collision
from featherlane.collision.frame import frame_of, turning_tangent
from featherlane.collision.user_contacts import NO_CANDIDATE
from featherlane.sensitivity.derivative.contact_types import ContactPlace, ContactShift
from featherlane.solver.rows.rows import moving_body
from featherlane.spatial.motion import at_point

STEP = 2e-7  # m, rad: displacement of poses; nearly flat contacts change within 1e-4
SAME = 1e-10  # tolerance for equal unit vectors
JUMP = 1e-4  # m: a point that is farther away at a displaced pose is a different point


@kernel
def body_constant(m, b):
    """Returns c_b, which differs between any two bodies that can touch; 0 for fixed bodies."""
    own = 1.0 + m.body_weldid[b] * (1.0 / m.nbody)
    return own if moving_body(m, b) > 0 else 0.0


@kernel
def _along_axis(axis, s):
    """Returns the twist s along one of six axes: three rotations, three translations."""
    return Motion(s if axis == c else 0.0 for c in range(6))


@kernel
def _turn_geom(d, p, g, w):
    """geom_xmat of geom g <- the stored one, turned by w."""
    x, y, z = p.geom_mat[g].columns
    x, y, z = x + cross(w, x), y + cross(w, y), z + cross(w, z)
    d.geom_xmat[g] = Mat3(join(x, y, z)).T


@kernel
def _displace(m, d, p, axis, step):
    """geom_xpos, geom_xmat <- the stored ones, moved by `step` of a twist: three rotations, three translations."""
    for g in range(m.ngeom):
        b, x = m.geom_bodyid[g], p.geom_pos[g]
        twist = _along_axis(axis, step * body_constant(m, b))
        arm = x - d.subtree_com[m.body_rootid[b]]
        d.geom_xpos[g] = x + at_point(twist, arm).linear
        _turn_geom(d, p, g, twist.angular)


@kernel
def _turn_all(m, d, p, axis, step):
    """geom_xpos, geom_xmat <- the stored ones, all turned about one axis through the com of the first tree."""
    centre = d.subtree_com[m.body_rootid[1]]
    w = _along_axis(axis, step).angular
    for g in range(m.ngeom):
        x = p.geom_pos[g]
        d.geom_xpos[g] = x + cross(w, x - centre)
        _turn_geom(d, p, g, w)


@kernel
def _is_of_pair(d, p, s, k):
    """Returns whether detected slot s has the same pair as slot k of the world's own pose."""
    c = d.contact[s]
    return c.cand == p.slot_cand[k] and c.geom[0] == p.slot_geom[k, 0] and c.geom[1] == p.slot_geom[k, 1]


@kernel
def _same(d, p, s, k):
    """Returns whether detected slot s is slot k of the world's own pose."""
    return d.con_point[s] == p.slot_point[k] and _is_of_pair(d, p, s, k)


@kernel
def _find(d, p, k, first):
    """Returns the detected slot of slot k of the world's own pose, searching from `first` cyclically; -1: none."""
    n, at = d.ncon_slot[0], -1
    if p.slot_cand[k] == NO_CANDIDATE:
        at = k  # a contact given by the caller does not move
    else:
        c = 0
        while c < n and at < 0:
            s = (first + c) % n
            at = s if _same(d, p, s, k) else -1
            c += 1
    return at


@kernel
def _find_slots(d, p, n):
    """slot_at <- detected slots of the n slots of the worlds' own pose, -1: none; slot_known and slot_near as in
    `contact_moves`.

    A pose may have more slots or fewer, in another order: slots of the tile's other worlds are ignored.
    """
    if d.con_overflow[0]:
        p.slot_known[0] = -1.0
        for k in range(n):
            p.slot_at[k] = -1
    else:
        for s in range(d.ncon_slot[0]):
            p.slot_taken[s] = 0
        first, touching = 0, 0.0
        for k in range(n):
            at, ends = _find(d, p, k, first), p.slot_present[k] > 0.0
            touching = touching + p.slot_present[k]
            p.slot_at[k] = at
            if at >= 0:
                p.slot_near[0] = where((d.con_present[at] > 0.0) & not_(ends), 1.0, p.slot_near[0])
                ends = ends & not_(d.con_present[at] > 0.0)
                p.slot_taken[at] = 1
                first = at + 1
            p.slot_known[0] = where(ends & (p.slot_known[0] > 0.0), 0.0, p.slot_known[0])
            p.slot_gone[k] = where(ends, 1.0, p.slot_gone[k])
        for s in range(d.ncon_slot[0]):
            if p.slot_taken[s] == 0:
                p.slot_near[0] = where(d.con_present[s] > 0.0, 1.0, p.slot_near[0])
        # a world without contacts is not checked, as it would not be if it were alone
        p.slot_near[0] = where(touching > 0.0, p.slot_near[0], 0.0)


@kernel
def _arm(m, d, p, k, place):
    """Returns the contact point, midway between both poses, from the com of the tree of the body at that place."""
    point = 0.5 * (p.slot_lower[k].position + p.slot_upper[k].position)
    return point - d.subtree_com[m.body_rootid[p.slot_carrier[k, place]]]


@kernel
def _normal(t, k):
    """Returns the contact's normal, midway between both poses."""
    return 0.5 * (t.slot_lower[k].orientation.rows[0] + t.slot_upper[k].orientation.rows[0])


@kernel
def _store_move(t, k, axis, dist, pos, turned):
    """Stores column `axis` of the contact's map: 7 rows of 6."""
    change = ContactShift(join((dist,), pos, turned))
    for r in unrolled(range(7)):
        flat(t.slot_moves)[42 * k + 6 * r + axis] = change[r]


@kernel
def moved_by(t, k, twist):
    """Returns (distance, position, turn) of contact k for the relative twist at the contact, body 1 fixed."""
    change = tuple(dot(t.slot_moves[k, r], twist) for r in range(7))
    return change[0], Vec3(change[1:4]), Vec3(change[4:7])


@kernel
def _moved_by_translation(t, k, u):
    """Returns `moved_by` without rotation."""
    change = tuple(dot(t.slot_moves[k, r].translation, u) for r in range(7))
    return change[0], Vec3(change[1:4]), Vec3(change[4:7])


@kernel
def _detected(d, s):
    """Returns the geometry of detected slot s."""
    c = d.contact[s]
    return ContactPlace(join((c.dist,), c.pos, c.frame))


@kernel
def _from_own(d, p, s, k):
    """Returns the squared distance of detected slot s from slot k at the world's own pose."""
    between = d.con_pos[s] - p.slot_own[k].position
    return dot(between, between)


@kernel
def _keep_geometry(d, p, k, to):
    """Geometry k of `to` <- distance, position and frame of slot k at a displaced pose; zeros if it is absent.

    Corners of a clipped polygon may be enumerated from another corner on: then the pair's nearest point is used, world
    by world.  A face may also be represented by different points: if none is near, the geometry of the world's own pose
    is used, and 1 is returned.
    """
    at, lost = p.slot_at[k], 0.0
    to[k] = zeros(13)
    if at >= 0:
        far, present = _from_own(d, p, at, k), p.slot_present[k] > 0.0
        to[k] = where(far == far, _detected(d, at), to[k])
        astray = (far > JUMP * JUMP) & present
        if any_(astray):
            for s in range(d.ncon_slot[0]):
                if s != at and _is_of_pair(d, p, s, k):
                    other = _from_own(d, p, s, k)
                    nearer = astray & (d.con_present[s] > 0.0) & (other < far)
                    far = where(nearer, other, far)
                    to[k] = where(nearer, _detected(d, s), to[k])
            lost = where(astray & (far > JUMP * JUMP), 1.0, lost)
            to[k] = where(lost > 0.0, p.slot_own[k], to[k])
            p.slot_near[0] = where(lost > 0.0, 1.0, p.slot_near[0])
    return lost


@kernel
def _keep_upper(d, p, n):
    """slot_upper, slot_lost <- the geometry of all slots at a displaced pose."""
    for k in range(n):
        p.slot_lost[k] = _keep_geometry(d, p, k, p.slot_upper)


@kernel
def _keep_lower(d, p, k):
    """slot_lower <- the geometry of slot k at the opposite pose; returns 1 / the span between both poses, in steps.

    If it is lost at one pose, the span is that to the world's own pose; slot_jumps <- 1 if it is lost at both.
    """
    lost = p.slot_lost[k] + _keep_geometry(d, p, k, p.slot_lower)
    p.slot_jumps[0] = where(lost > 1.0, 1.0, p.slot_jumps[0])
    p.slot_gone[k] = fmax(p.slot_gone[k], 0.5 * lost)
    return where(lost == 1.0, 1.0, 0.5) / STEP


@kernel
def _frame_turn(p, k, scale):
    """Returns the turn of the frame from the lower pose to the upper one, half the sum of e x de, times the scale."""
    lower, upper, turned = p.slot_lower[k].orientation.rows, p.slot_upper[k].orientation.rows, Vec3(zeros(3))
    for c in unrolled(range(3)):
        turned = turned + 0.5 * scale * cross(lower[c], upper[c] - lower[c])
    return turned


@kernel
def _pair_moves(m, p, k):
    """Returns whether both bodies of slot k move."""
    return moving_body(m, p.slot_carrier[k, 0]) > 0 and moving_body(m, p.slot_carrier[k, 1]) > 0


@kernel
def _find_at(m, d, p, n):
    """Detects the slots at the pose of geom_xpos and geom_xmat."""
    collision(m, d)
    _find_slots(d, p, n)


@kernel
def _follows_normal(t, k):
    """Returns the mask: the tangents of slot k depend on its normal only, however the bodies are turned."""
    n, tangent, _ = t.slot_own[k].orientation.rows
    off = tangent - Vec3(frame_of(n)[3:6])
    return not_((dot(off, off) > SAME * SAME) & (t.slot_present[k] > 0.0))


@kernel
def _spins(m, d, p, n):
    """slot_spin <- spin of frames between moving bodies about their normals, relative to a turn of the whole scene."""
    strays = 0
    for k in range(n):
        spin = Vec3(zeros(3))
        if _pair_moves(m, p, k):
            normal, tangent, _ = p.slot_own[k].orientation.rows
            if p.slot_cand[k] != NO_CANDIDATE:
                spin = turning_tangent(normal, tangent)
                strays = 1 if any_(not_(_follows_normal(p, k))) else strays
            spin = spin - normal
        p.slot_spin[k] = spin
    if strays:
        _difference_spins(m, d, p, n)


@kernel
def _difference_spins(m, d, p, n):
    """Computes slot_spin of frames whose tangents follow something else, by six more collision detections."""
    for axis in range(3):
        _turn_all(m, d, p, axis, STEP)
        _find_at(m, d, p, n)
        _keep_upper(d, p, n)
        _turn_all(m, d, p, axis, -STEP)
        _find_at(m, d, p, n)
        for k in range(n):
            if _pair_moves(m, p, k) and p.slot_at[k] >= 0 and p.slot_cand[k] != NO_CANDIDATE:
                scale, normal, a = _keep_lower(d, p, k), _normal(p, k), 3 * k + axis
                spin = dot(normal, _frame_turn(p, k, scale)) - normal[axis]
                flat(p.slot_spin)[a] = where(_follows_normal(p, k), flat(p.slot_spin)[a], spin)


@kernel
def _difference(m, d, p, k, axis, scale):
    """Computes column `axis` of the map of contact k, from its upper pose and the present lower one."""
    one, two = p.slot_carrier[k, 0], p.slot_carrier[k, 1]
    c1, c2 = body_constant(m, one), body_constant(m, two)
    upper, lower = p.slot_upper[k], p.slot_lower[k]
    dist, pos = (upper.dist - lower.dist) * scale, scale * (upper.position - lower.position)
    turned = _frame_turn(p, k, scale)
    # motion common to both bodies: body 1 moves everything along, and body 2 has the remaining motion
    first = at_point(_along_axis(axis, c1), _arm(m, d, p, k, 0))
    second = at_point(_along_axis(axis, c2), _arm(m, d, p, k, 1))
    pos, turned = pos - first.linear, turned - first.angular
    u = second.linear - first.linear
    still = moving_body(m, one) == 0 and moving_body(m, two) == 0
    apart = 0.0 if still or m.body_weldid[one] == m.body_weldid[two] else 1.0
    inverse = apart / (c2 - c1 + (1.0 - apart))
    if axis < 3:
        turned = fma(-c1 * p.slot_spin[k][axis], _normal(p, k), turned)
        # the columns of translations are already computed
        known, moved, turn_of = _moved_by_translation(p, k, u)
        dist, pos, turned = dist - known, pos - moved, turned - turn_of
    _store_move(p, k, axis, dist * inverse, inverse * pos, inverse * turned)


@kernel
def contact_moves(m, d, p):
    """Computes slot_moves of all contacts, by twelve collisions at displaced poses, and then detects contacts again.

    Writes slot_known: 0 in worlds that lack one of their contacts at a displaced pose, -1 if the tile's buffer is full;
    slot_near: 1 if another contact exists at such a pose, in worlds with contacts; slot_jumps: 1 if a point is
    not near its own at both poses of a twist.
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
            for e in range(2 * k, 2 * k + 2):
                p.slot_geom[e], p.slot_carrier[e] = d.con_geom[e], d.con_carrier[e]
            p.slot_present[k], p.slot_gone[k] = c.present, 0.0
            p.slot_own[k] = _detected(d, k)
        _spins(m, d, p, n)
        for turn_of_axis in range(6):
            axis = 5 - turn_of_axis  # translations first
            _displace(m, d, p, axis, STEP)
            _find_at(m, d, p, n)
            _keep_upper(d, p, n)
            _displace(m, d, p, axis, -STEP)
            _find_at(m, d, p, n)
            for k in range(n):
                if p.slot_at[k] >= 0:
                    _difference(m, d, p, k, axis, _keep_lower(d, p, k))
                else:
                    _store_move(p, k, axis, 0.0, zeros(3), zeros(3))
        _displace(m, d, p, 0, 0.0)
        collision(m, d)
