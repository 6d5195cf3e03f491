"""Derivatives of the forces of connects and welds.

The rows of a connect or weld have x = E'' + B E' + K d E, with E the error, E' and E'' its rates at the accelerations
of both bodies, and the forces f = -D x, all with the impedance d at r = |E|. Hence

    df = -D (dE'' + B dE' + K (d dE + E d' dr)) + f d' / (d (1 - d)) dr

For a body beyond dof k, with V, A its velocity and acceleration and v the velocity before the joint,

    by position       dV = eta + S x V,  dA = zeta + eta x V + S x A     eta = v x S, zeta and w as in smooth_rates.py
    by velocity       dV = S,            dA = w + S x V
    by acceleration   dV = 0,            dA = S
"""

from featherlane.prelude import *
from featherlane.constraint.equality import anchor, fastened_body, half_turn, weld_turn
from featherlane.constraint.impedance import MINVAL, impedance, impedance_rate, reference, shortest_timeconst
from featherlane.sensitivity.derivative.contact_rates import before_joint, is_before
from featherlane.sensitivity.derivative.moved_force import add_moved_force

POSITION, VELOCITY, ACCELERATION = range(3)


@kernel
def is_fastening(m, e):
    """Returns whether equality e is a connect or a weld."""
    return m.eq_type[e] == EQ_CONNECT or m.eq_type[e] == EQ_WELD


@kernel
def _vector(q):
    """Returns the vector part of a quaternion."""
    return Vec3(q.x, q.y, q.z)


@kernel
def _half_turn(q, y):
    """Returns vec(y q) / 2."""
    return Vec3(half_turn(q, y))


@kernel
def _changes(m, d, p, b, k, by):
    """Returns (displacement, dV, dA) of body b for a unit of dof k's position, velocity or acceleration."""
    still = Motion(zeros(6))
    moved, dV, dA = still, still, still
    if is_before(m, k, b):
        S, V = d.cdof[k], d.cvel[b]
        if by == POSITION:
            moved = S
            eta = cross_motion(before_joint(m, d, k, d.cvel, d.qvel), S)
            dV = eta + cross_motion(S, V)
            dA = p.dof_carried[k] + (cross_motion(eta, V) + cross_motion(S, d.cacc[b]))
        elif by == VELOCITY:
            dV, dA = S, p.dof_rate[k] + cross_motion(S, V)
        else:
            dA = S
    return moved, dV, dA


@kernel
def _point_changes(m, d, b, point, changes):
    """Returns the changes of place, velocity and acceleration of a point of body b."""
    moved, dV, dA = changes
    V, A, r = d.cvel[b], d.cacc[b], point - d.subtree_com[m.body_rootid[b]]
    w, dw = V.angular, dV.angular
    dr = moved.linear + cross(moved.angular, r)
    u = V.linear + cross(w, r)
    du = dV.linear + (cross(dw, r) + cross(w, dr))
    da = dA.linear + cross(dA.angular, r) + cross(A.angular, dr)
    return dr, du, da + (cross(dw, u) + cross(w, du))


@kernel
def _turn_changes(m, d, e, held, first, second):
    """Returns the changes of the rotation error of weld e, of its rate and acceleration, and of the error's scalar.

    With y = R^T (w_1 - w_2) and z = R^T (alpha_1 - alpha_2 - w_2 x (w_1 - w_2)), the error t of the quaternion q has
    t' = vec(y q) / 2 and t'' = vec(z q) / 2 - |y|^2 t / 4.  R turns with the second body.
    """
    R, q, scale = held
    b1, b2 = fastened_body(m, e, 0), fastened_body(m, e, 1)
    w2, dw2, turn2 = d.cvel[b2].angular, second[1].angular, second[0].angular
    slip, dslip = d.cvel[b1].angular - w2, first[1].angular - dw2
    alpha = d.cacc[b1].angular - d.cacc[b2].angular - cross(w2, slip)
    dalpha = first[2].angular - second[2].angular - (cross(dw2, slip) + cross(w2, dslip))
    dslip, dalpha = dslip - cross(turn2, slip), dalpha - cross(turn2, alpha)
    y, z, rho = R.T @ slip, R.T @ alpha, R.T @ (first[0].angular - turn2)
    dy, dz, t = R.T @ dslip, R.T @ dalpha, _vector(q)
    dt, ds = _half_turn(q, rho), -0.5 * dot(rho, t)
    dq = Quat(join((ds,), dt))
    rate = _half_turn(dq, y) + _half_turn(q, dy)
    bend = fma(0.5 * dot(y, dy), t, 0.25 * dot(y, y) * dt)
    acceleration = _half_turn(dq, z) + _half_turn(q, dz) - bend
    return scale * dt, scale * rate, scale * acceleration, ds


@kernel
def _forces(d, k):
    """Returns D and the forces of the three rows from k on; 0 where the world does not have them."""
    D = Vec3(d.genrow_D[k : k + 3])
    return D, Vec3(-(D[c] * d.primal.genrow_x[k + c]) for c in range(3))


@kernel
def _change_of_force(D, f, law, error, changes, dr):
    """Returns df of three rows with the changes (of the error, its rate, its acceleration), and dr that of r."""
    K, B, imp, rate = law
    x = fma(B, changes[1], changes[2])
    pull = fma(K * imp, changes[0], K * rate * dr * error)
    stiffer = rate * dr / fmax(imp * (1.0 - imp), MINVAL)
    return fma(-D, x + pull, stiffer * f)


@kernel
def _add_column(m, d, p, k, e, dof, by):
    """dg += rates of the rows from k on, of connect or weld e."""
    b1, b2, weld = fastened_body(m, e, 0), fastened_body(m, e, 1), m.eq_type[e] == EQ_WELD
    p1, p2 = anchor(m, d, e, 0), anchor(m, d, e, 1)
    first, second = _changes(m, d, p, b1, dof, by), _changes(m, d, p, b2, dof, by)
    one, two = _point_changes(m, d, b1, p1, first), _point_changes(m, d, b2, p2, second)
    error, moves = p1 - p2, tuple(one[c] - two[c] for c in range(3))
    square, along, none = dot(error, error), dot(error, moves[0]), Vec3(zeros(3))
    held = weld_turn(m, d, e)
    turned, twist = _turn_changes(m, d, e, held, first, second), held.scale * _vector(held.turn)
    if weld:
        square, along = square + dot(twist, twist), along + dot(twist, turned[0])
    r = sqrt(square)
    solimp, dist = m.eq_solimp[e], along / fmax(r, MINVAL)
    K, B = reference(m.eq_solref[e], solimp, shortest_timeconst(m))
    law = K, B, impedance(solimp, r), impedance_rate(solimp, r)
    D, f = _forces(d, k)
    df, moment, change = _change_of_force(D, f, law, error, moves, dist), none, none
    if weld:
        E, g = _forces(d, k + 3)
        dg = _change_of_force(E, g, law, twist, turned, dist)
        # moment = scale R (s g + t x g) / 2
        s, t, half = held.turn[0], _vector(held.turn), 0.5 * held.scale
        moment = held.R @ (half * fma(s, g, cross(t, g)))
        dm = 0.5 * cross(turned[0], g) + half * fma(turned[3], g, fma(s, dg, cross(t, dg)))
        change = held.R @ dm + cross(second[0].angular, moment)
    moving = dof if by == POSITION else -1
    add_moved_force(m, d, p.dg, b2, moving, (p2, two[0]), (f, moment), (df, change))
    f, moment, df, change = -f, -moment, -df, -change
    add_moved_force(m, d, p.dg, b1, moving, (p1, one[0]), (f, moment), (df, change))


@kernel
def add_fastenings(m, d, p, dof, by):
    """dg += rates of connects and welds by the position, velocity or acceleration of a dof."""
    k = 0
    while k < d.ngenrow[0]:
        e, n = d.genrow_id[k], 1
        if d.genrow_type[k] == EQUALITY and is_fastening(m, e):
            n = 3 if m.eq_type[e] == EQ_CONNECT else 6
            if is_before(m, dof, fastened_body(m, e, 0)) or is_before(m, dof, fastened_body(m, e, 1)):
                _add_column(m, d, p, k, e, dof, by)
        k += n
