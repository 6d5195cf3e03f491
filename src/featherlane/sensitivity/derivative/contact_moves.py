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
from featherlane.sensitivity.derivative.points import copy
from featherlane.solver.rows.rows import moving_body

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
    """Returns the twist s along one of six axes: (rotation, translation)."""
    return tuple(tuple(s if axis == c + first else 0.0 for c in range(3)) for first in (0, 3))


@kernel
def _turn_geom(d, p, g, w):
    """geom_xmat of geom g <- the stored one, turned by w."""
    for c in range(3):
        a = 9 * g + c
        e = (p.geom_mat[a], p.geom_mat[a + 3], p.geom_mat[a + 6])
        flat(d.geom_xmat)[a], flat(d.geom_xmat)[a + 3], flat(d.geom_xmat)[a + 6] = add3(e, cross(w, e))


@kernel
def _displace(m, d, p, axis, step):
    """geom_xpos, geom_xmat <- the stored ones, moved by `step` of a twist: three rotations, three translations."""
    for g in range(m.ngeom):
        b, x = m.geom_bodyid[g], p.geom_pos[g]
        w, u = _along_axis(axis, 0.0 + step * body_constant(m, b))
        arm = x - d.subtree_com[m.body_rootid[b]]
        d.geom_xpos[g] = x + add3(u, cross(w, arm))
        _turn_geom(d, p, g, w)


@kernel
def _turn_all(m, d, p, axis, step):
    """geom_xpos, geom_xmat <- the stored ones, all turned about one axis through the com of the first tree."""
    centre = d.subtree_com[m.body_rootid[1]]
    w, _ = _along_axis(axis, 0.0 + step)
    for g in range(m.ngeom):
        x = p.geom_pos[g]
        d.geom_xpos[g] = x + cross(w, x - centre)
        _turn_geom(d, p, g, w)


@kernel
def _is_of_pair(d, p, s, k):
    """Returns whether detected slot s has the same pair as slot k of the world's own pose."""
    return (
        d.con_cand[s] == p.slot_cand[k]
        and d.con_geom[2 * s] == p.slot_geom[2 * k]
        and d.con_geom[2 * s + 1] == p.slot_geom[2 * k + 1]
    )


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
    point = 0.5 * add3(load3(p.slot_lower, 13 * k + 1), load3(p.slot_upper, 13 * k + 1))
    return point - d.subtree_com[m.body_rootid[p.slot_carrier[2 * k + place]]]


@kernel
def _normal(t, k):
    """Returns the contact's normal, midway between both poses."""
    return 0.5 * add3(load3(t.slot_lower, 13 * k + 4), load3(t.slot_upper, 13 * k + 4))


@kernel
def _twist(axis, s, arm):
    """Returns (rotation, translation at the contact) of a body's twist."""
    w, u = _along_axis(axis, s)
    return w, add3(u, cross(w, arm))


@kernel
def _store_move(t, k, axis, dist, pos, turned):
    """Stores column `axis` of the contact's map: 7 rows of 6."""
    a = 42 * k + axis
    t.slot_moves[a] = dist
    for c in range(3):
        t.slot_moves[a + 6 + 6 * c] = pos[c]
        t.slot_moves[a + 24 + 6 * c] = turned[c]


@kernel
def moved_by(t, k, w, u):
    """Returns (distance, position, turn) of contact k for the relative twist (w, u) at the contact, body 1 fixed."""
    a = 42 * k
    dist = _row(t, a, w, u)
    pos, turned = tuple(tuple(_row(t, a + first + 6 * c, w, u) for c in range(3)) for first in (6, 24))
    return dist, pos, turned


@kernel
def _row(t, a, w, u):
    s = t.slot_moves
    return fma(s[a], w[0], fma(s[a + 1], w[1], fma(s[a + 2], w[2], dot3(load3(s, a + 3), u))))


@kernel
def _from_own(d, p, s, k):
    """Returns the squared distance of detected slot s from slot k at the world's own pose."""
    between = sub3(d.con_pos[s], load3(p.slot_own, 13 * k + 1))
    return dot(between, between)


@kernel
def _choose(d, k, s, chosen, to):
    """Geometry k of `to` <- that of detected slot s, if it is chosen."""
    a, b = 13 * k, 9 * s
    to[a] = where(chosen, d.con_dist[s], to[a])
    for c in range(3):
        to[a + 1 + c] = where(chosen, flat(d.con_pos)[3 * s + c], to[a + 1 + c])
    for c in range(9):
        to[a + 4 + c] = where(chosen, flat(d.con_frame)[b + c], to[a + 4 + c])


@kernel
def _keep_geometry(d, p, k, to):
    """Geometry k of `to` <- distance, position and frame of slot k at a displaced pose; zeros if it is absent.

    Corners of a clipped polygon may be enumerated from another corner on: then the pair's nearest point is used, world
    by world.  A face may also be represented by different points: if none is near, the geometry of the world's own pose
    is used, and 1 is returned.
    """
    at, lost = p.slot_at[k], 0.0
    for e in range(13 * k, 13 * k + 13):
        to[e] = 0.0
    if at >= 0:
        far, present = _from_own(d, p, at, k), p.slot_present[k] > 0.0
        _choose(d, k, at, far == far, to)
        astray = (far > JUMP * JUMP) & present
        if any_(astray):
            for s in range(d.ncon_slot[0]):
                if s != at and _is_of_pair(d, p, s, k):
                    other = _from_own(d, p, s, k)
                    nearer = astray & (d.con_present[s] > 0.0) & (other < far)
                    far = where(nearer, other, far)
                    _choose(d, k, s, nearer, to)
            lost = where(astray & (far > JUMP * JUMP), 1.0, lost)
            for e in range(13 * k, 13 * k + 13):
                to[e] = where(lost > 0.0, p.slot_own[e], to[e])
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
    turned = zeros(3)
    for c in range(3):
        e, f = load3(p.slot_lower, 13 * k + 4 + 3 * c), load3(p.slot_upper, 13 * k + 4 + 3 * c)
        turned = add3(turned, 0.5 * scale * cross(e, sub3(f, e)))
    return turned


@kernel
def _pair_moves(m, p, k):
    """Returns whether both bodies of slot k move."""
    return moving_body(m, p.slot_carrier[2 * k]) > 0 and moving_body(m, p.slot_carrier[2 * k + 1]) > 0


@kernel
def _find_at(m, d, p, n):
    """Detects the slots at the pose of geom_xpos and geom_xmat."""
    collision(m, d)
    _find_slots(d, p, n)


@kernel
def _follows_normal(t, k):
    """Returns the mask: the tangents of slot k depend on its normal only, however the bodies are turned."""
    n, tangent = load3(t.slot_own, 13 * k + 4), load3(t.slot_own, 13 * k + 7)
    frame = frame_of(n)
    off = sub3(tangent, (frame[3], frame[4], frame[5]))
    return not_((dot(off, off) > SAME * SAME) & (t.slot_present[k] > 0.0))


@kernel
def _spins(m, d, p, n):
    """slot_spin <- spin of frames between moving bodies about their normals, relative to a turn of the whole scene."""
    strays = 0
    for k in range(n):
        spin = zeros(3)
        if _pair_moves(m, p, k):
            normal, tangent = load3(p.slot_own, 13 * k + 4), load3(p.slot_own, 13 * k + 7)
            if p.slot_cand[k] != NO_CANDIDATE:
                spin = turning_tangent(normal, tangent)
                strays = 1 if any_(not_(_follows_normal(p, k))) else strays
            spin = sub3(spin, normal)
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
                spin = dot3(normal, _frame_turn(p, k, scale)) - normal[axis]
                flat(p.slot_spin)[a] = where(_follows_normal(p, k), flat(p.slot_spin)[a], spin)


@kernel
def _moved_by_translation(t, k, u):
    """Returns `moved_by` without rotation."""
    a, s = 42 * k + 3, t.slot_moves
    pos, turned = tuple(tuple(dot3(load3(s, a + first + 6 * c), u) for c in range(3)) for first in (6, 24))
    return dot3(load3(s, a), u), pos, turned


@kernel
def _difference(m, d, p, k, axis, scale):
    """Computes column `axis` of the map of contact k, from its upper pose and the present lower one."""
    one, two = p.slot_carrier[2 * k], p.slot_carrier[2 * k + 1]
    c1, c2 = body_constant(m, one), body_constant(m, two)
    dist = (p.slot_upper[13 * k] - p.slot_lower[13 * k]) * scale
    pos = scale * sub3(load3(p.slot_upper, 13 * k + 1), load3(p.slot_lower, 13 * k + 1))
    turned = _frame_turn(p, k, scale)
    # motion common to both bodies: body 1 moves everything along, and body 2 has the remaining motion
    one_s, two_s = 0.0 + c1, 0.0 + c2
    w1, u1 = _twist(axis, one_s, _arm(m, d, p, k, 0))
    _, u2 = _twist(axis, two_s, _arm(m, d, p, k, 1))
    pos, turned = pos - u1, sub3(turned, w1)
    u = u2 - u1
    still = moving_body(m, one) == 0 and moving_body(m, two) == 0
    apart = 0.0 if still or m.body_weldid[one] == m.body_weldid[two] else 1.0
    inverse = apart / (c2 - c1 + (1.0 - apart))
    if axis < 3:
        turned = fma(-c1 * flat(p.slot_spin)[3 * k + axis], _normal(p, k), turned)
        # the columns of translations are already computed
        known, moved, turn_of = _moved_by_translation(p, k, u)
        dist, pos, turned = dist - known, sub3(pos, moved), sub3(turned, turn_of)
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
        copy(flat(d.geom_xpos), 3 * m.ngeom, flat(p.geom_pos), 0)
        copy(flat(d.geom_xmat), 9 * m.ngeom, p.geom_mat, 0)
        for k in range(n):
            p.slot_cand[k], p.slot_point[k] = d.con_cand[k], d.con_point[k]
            for e in range(2 * k, 2 * k + 2):
                p.slot_geom[e], p.slot_carrier[e] = d.con_geom[e], d.con_carrier[e]
            p.slot_present[k], p.slot_gone[k] = d.con_present[k], 0.0
            _choose(d, k, k, p.slot_present[k] == p.slot_present[k], p.slot_own)
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
