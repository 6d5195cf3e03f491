"""Derivatives of the forces of connects and welds.

The rows of a connect or weld have x = E'' + B E' + K d E, with E the error, E' and E'' its rates at the accelerations
of both bodies, and the forces f = -D x, all with the impedance d at r = |E|. Hence

    df = -D (dE'' + B dE' + K (d dE + E d' dr)) + f d' / (d (1 - d)) dr

For a body beyond dof k, with V, A its velocity and acceleration and v the velocity before the joint,

    by position       dV = eta + S x V,  dA = zeta + eta x V + S x A     eta = v x S, zeta and w as in smooth_rates.py
    by velocity       dV = S,            dA = w + S x V
    by acceleration   dV = 0,            dA = S

Coordinates of derivatives are POSITION, VELOCITY or ACCELERATION of one dof.  `changes` of a body are the tuple
(displacement, dV, dA) for a unit of the coordinate, motions at the com of the body's tree.  An error is 3 rows: the
anchors' distance, and for welds also the rotation.  In the record p (records.py), dof_carried = zeta and dof_rate = w
of each dof, and the column dg has the derivatives of M a + c - tau - J^T f.  cvel = V and cacc = A of each body.

Imported: anchor, the point of equality e on side 0 or 1, and fastened_body, the body there; weld_turn, (R, turn,
scale) of a weld: frame of its rotation error, the error as a quaternion q, torquescale, so that the error is
scale vec(q); half_turn, anchor_motion and turn_motion, the rates of vec(q), of a point and of the rotation error;
reference, (K, B); impedance, d at r; add_moved_force, which adds to a row of dofs the change of a wrench's generalized
forces, from its point, force and moment with their changes.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.equality import (
    Turn,
    anchor,
    anchor_motion,
    fastened_body,
    half_turn,
    is_fastening,
    turn_motion,
    weld_turn,
)
from featherlane.engine.constraint.impedance import MINVAL, impedance, reference, shortest_timeconst
from featherlane.tools.sensitivity.rates.paths import add_moved_force, before_joint, is_before

POSITION, VELOCITY, ACCELERATION = range(3)  # coordinates of a dof, the argument `by`


@kernel
def _vector(q):
    """Returns the vector part of a quaternion."""
    return Vec3(q.x, q.y, q.z)


@kernel
def _body_changes(m, d, p, b, k, by):
    """Returns (displacement, dV, dA) of body b for a unit of dof k's position, velocity or acceleration `by`."""
    # the table of the file's docstring, with zeta = dof_carried and w = dof_rate
    still = Motion(zeros(6))
    displacement, dV, dA = still, still, still
    if is_before(m, k, b):
        S, V = d.cdof[k], d.cvel[b]
        if by == POSITION:
            displacement = S
            eta = cross_motion(before_joint(m, d, k, d.cvel, d.qvel), S)
            dV = eta + cross_motion(S, V)
            dA = p.dof_carried[k] + (cross_motion(eta, V) + cross_motion(S, d.cacc[b]))
        elif by == VELOCITY:
            dV, dA = S, p.dof_rate[k] + cross_motion(S, V)
        else:
            dA = S
    return displacement, dV, dA


@kernel
def _point_changes(m, d, b, point, changes):
    """Returns changes of (place, velocity, acceleration) of a point of body b."""
    (displacement, dV, dA), r = changes, point - d.subtree_com[m.body_rootid[b]]
    dr = displacement.linear + cross(displacement.angular, r)
    _, (du, da) = split_tangents(anchor_motion(seed(d.cvel[b], dV), seed(d.cacc[b], dA), seed(r, dr)), 1)
    return dr, du, da


@kernel
def _turn_changes(m, d, e, held, first, second):
    """Returns changes for weld e: (of its rotation error, of the error's rate, of its acceleration, of q's scalar).

    Args:
        held: (R, q, scale) of `weld_turn`: frame of the error, the error as a quaternion, torquescale.
        first, second: (displacement, dV, dA) of the bodies.
    """
    (R, q, scale), b1, b2 = held, fastened_body(m, e, side=0), fastened_body(m, e, side=1)
    # R turns with the second body; q by the relative rotation: dq = (0, turn) q / 2 = (ds, dt), scalar and vector part
    (moved1, dV1, dA1), (moved2, dV2, dA2) = first, second
    turn2 = moved2.angular
    turn = R.T @ (moved1.angular - turn2)
    dt, ds = Vec3(half_turn(q, turn)), -0.5 * dot(turn, _vector(q))
    x, y, z = R.columns
    dR = Mat3(join(cross(turn2, x), cross(turn2, y), cross(turn2, z))).T
    moved = Turn(seed(R, dR), seed(q, Quat(join((ds,), dt))), scale)
    w1, w2 = seed(d.cvel[b1].angular, dV1.angular), seed(d.cvel[b2].angular, dV2.angular)
    alpha1, alpha2 = seed(d.cacc[b1].angular, dA1.angular), seed(d.cacc[b2].angular, dA2.angular)
    _, (rate, acceleration) = split_tangents(turn_motion(moved, w1, w2, alpha1, alpha2), 1)
    return scale * dt, rate, acceleration, ds


@kernel
def _row_forces(d, k):
    """Returns (D, f = -D x) of the three rows from k on, vectors; 0 where the world does not have them."""
    D = Vec3(d.row_D[k : k + 3])
    return D, Vec3(-(D[c] * d.primal.row_x[k + c]) for c in range(3))


@kernel
def _change_of_force(D, f, law, error, changes, dr):
    """Returns df of three rows with the forces f = -D x.

    law: (K, B, d, d'), stiffness, damping, impedance and its slope.
    error: E; changes: (dE, dE', dE''), with a weld also the change of q's scalar; dr: change of |E|.
    """
    K, B, d_imp, d_slope = law
    x_change = fma(B, changes[1], changes[2])  # dE'' + B dE'
    pull = fma(K * d_imp, changes[0], K * d_slope * dr * error)  # K (d dE + E d' dr)
    stiffer = d_slope * dr / fmax(d_imp * (1.0 - d_imp), MINVAL)  # 0 < d < 1; MINVAL for absent rows
    return fma(-D, x_change + pull, stiffer * f)


@kernel
def _law_at(m, e, r):
    """Returns (K, B, d, d'): stiffness, damping, impedance and its slope of connect or weld e at r = |E|."""
    solimp = m.eq_solimp[e]
    K, B = reference(m.eq_solref[e], solimp, shortest_timeconst(m))
    d_imp, d_slope = split_tangents(impedance(solimp, seed(r, 1.0)), 1)
    return K, B, d_imp, d_slope


@kernel
def _moment_and_change(held, g, dg, dtwist, ds, turn2):
    """Returns the moment of the forces g of a weld's rotation rows on its first body, and the moment's change.

    With q = (s, t) the moment is scale R (s g + t x g) / 2.  Its change in the frame R, which turns with the second
    body, is scale (dt x g + ds g + s dg + t x dg) / 2.

    Args:
        held: (R, q, scale) of `weld_turn`.
        g, dg: forces and their changes.
        dtwist, ds: scale dt, the change of the rotation error, and ds.
        turn2: rotation of the second body.
    """
    s, t, half = held.turn[0], _vector(held.turn), 0.5 * held.scale
    moment = held.R @ (half * fma(s, g, cross(t, g)))
    change = 0.5 * cross(dtwist, g) + half * fma(ds, g, fma(s, dg, cross(t, dg)))
    return moment, held.R @ change + cross(turn2, moment)


@kernel
def _add_column(m, d, p, k, e, dof, by):
    """dg += derivatives of the rows from k on, of connect or weld e.

    dof, by: the coordinate, POSITION, VELOCITY or ACCELERATION of this dof.
    """
    b1, b2, is_weld = fastened_body(m, e, side=0), fastened_body(m, e, side=1), m.eq_type[e] == EQ_WELD
    p1, p2 = anchor(m, d, e, side=0), anchor(m, d, e, side=1)
    # changes of both bodies, and of both anchors: (place, velocity, acceleration)
    first, second = _body_changes(m, d, p, b1, dof, by), _body_changes(m, d, p, b2, dof, by)
    at1, at2 = _point_changes(m, d, b1, p1, first), _point_changes(m, d, b2, p2, second)
    error, error_changes = p1 - p2, tuple(at1[c] - at2[c] for c in range(3))
    # |E|^2 and E . dE, to which a weld adds its rotation error `twist`
    square, along = dot(error, error), dot(error, error_changes[0])
    held = weld_turn(m, d, e)  # unused by a connect
    turn_changes, twist = _turn_changes(m, d, e, held, first, second), held.scale * _vector(held.turn)
    dtwist, _, _, ds = turn_changes
    if is_weld:
        square, along = square + dot(twist, twist), along + dot(twist, dtwist)
    r = sqrt(square)
    dr = along / fmax(r, MINVAL)  # without an error |E| has no slope, and dr is 0
    law = _law_at(m, e, r)
    D, f = _row_forces(d, k)  # of the anchors' rows
    df, moment, dmoment = _change_of_force(D, f, law, error, error_changes, dr), Vec3(zeros(3)), Vec3(zeros(3))
    if is_weld:
        D_turn, g = _row_forces(d, k + 3)  # of the rotation's rows
        change_of_g = _change_of_force(D_turn, g, law, twist, turn_changes, dr)
        moment, dmoment = _moment_and_change(held, g, change_of_g, dtwist, ds, second[0].angular)
    # only a position moves the axes of the dofs beyond it
    moving = dof if by == POSITION else -1
    # dg = -dtau: the second body has the opposite force, hence +f
    force, moment = seed(f, df), seed(moment, dmoment)
    add_moved_force(m, d, p.dg, b2, moving, seed(p2, at2[0]), force, moment)
    add_moved_force(m, d, p.dg, b1, moving, seed(p1, at1[0]), -force, -moment)


@kernel
def add_fastenings(m, d, p, dof, by):
    """dg += derivatives of connects and welds by the POSITION, VELOCITY or ACCELERATION `by` of a dof."""
    # k: first row of a constraint; a connect has 3, a weld 6, others are passed one by one
    k = d.ndofrow[0]
    while k < d.nrow[0]:
        e, nrow = d.row_id[k], 1
        if d.row_type[k] == EQUALITY and is_fastening(m, e):
            nrow = 3 if m.eq_type[e] == EQ_CONNECT else 6
            # other dofs do not change its forces
            if is_before(m, dof, fastened_body(m, e, side=0)) or is_before(m, dof, fastened_body(m, e, side=1)):
                _add_column(m, d, p, k, e, dof, by)
        k += nrow
