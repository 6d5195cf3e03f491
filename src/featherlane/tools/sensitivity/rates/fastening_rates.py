"""Derivatives of the forces of connects and welds.

The rows of a connect or weld have x = E'' + B E' + K d E, with E the error, E' and E'' its rates at the accelerations
of both bodies, and the forces f = -D x, with the impedance d at r = |E|, on which D depends, too.  All of them carry
their changes as tangents.

For a body beyond dof k, with V, A its velocity and acceleration and v the velocity before the joint,

    by position       dV = eta + S x V,  dA = zeta + eta x V + S x A     eta = v x S, zeta and w as in smooth_rates.py
    by velocity       dV = S,            dA = w + S x V
    by acceleration   dV = 0,            dA = S

Coordinates of derivatives are POSITION, VELOCITY or ACCELERATION of one dof.  `changes` of a body are the tuple
(displacement, dV, dA) for a unit of the coordinate, motions at the com of the body's tree.  An error is 3 rows: the
anchors' distance, and for welds also the rotation.  In the record p (records.py), dof_zeta = zeta and dof_w = w
of each dof, and the column dg has the derivatives of M a + c - tau - J^T f.  cvel = V and cacc = A of each body.

Imported: anchor, the point of equality e on side 0 or 1, and fastened_body, the body there; weld_rotation_error, (R, q,
scale) of a weld: frame of its rotation error, the error as a quaternion q, torquescale, so that the error is
scale vec(q); quaternion_vector_rate, anchor_motion and rotation_error_motion, the rates of vec(q), of a point and of
the rotation error; reference, (K, B); impedance, d at r; add_moved_force, which adds to a row of dofs the change of a
wrench's generalized forces, from its point, force and moment with their changes.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.equality import (
    RotationError,
    anchor,
    anchor_motion,
    fastened_body,
    is_fastening,
    quaternion_vector_rate,
    rotation_error_motion,
    weld_rotation_error,
)
from featherlane.engine.constraint.impedance import impedance, inverse_regularisation, reference, shortest_timeconst
from featherlane.tools.sensitivity.rates.paths import add_moved_force, before_joint, is_before

POSITION, VELOCITY, ACCELERATION = range(3)  # coordinates of a dof, the argument `by`


@kernel
def _vector(q):
    """Returns the vector part of a quaternion."""
    return Vec3(q.x, q.y, q.z)


@kernel
def _body_changes(m, d, p, b, k, by):
    """Returns (displacement, dV, dA) of body b for a unit of dof k's position, velocity or acceleration `by`."""
    # the table of the file's docstring, with zeta = dof_zeta and w = dof_w
    still = Motion(zeros(6))
    displacement, dV, dA = still, still, still
    if is_before(m, k, b):
        S, V = d.cdof[k], d.cvel[b]
        if by == POSITION:
            displacement = S
            eta = cross_motion(before_joint(m, d, k, d.cvel, d.qvel), S)
            dV = eta + cross_motion(S, V)
            dA = p.dof_zeta[k] + (cross_motion(eta, V) + cross_motion(S, d.cacc[b]))
        elif by == VELOCITY:
            dV, dA = S, p.dof_w[k] + cross_motion(S, V)
        else:
            dA = S
    return displacement, dV, dA


@kernel
def _moved_anchor(m, d, b, point, changes):
    """Returns (place, velocity, acceleration) of a point of body b, with their changes as tangents."""
    displacement, dV, dA = changes
    r = point - d.subtree_com[m.body_rootid[b]]
    dr = displacement.linear + cross(displacement.angular, r)
    u, a = anchor_motion(seed(d.cvel[b], dV), seed(d.cacc[b], dA), seed(r, dr))
    return seed(point, dr), u, a


@kernel
def _moved_rotation_error(m, d, e, changes1, changes2):
    """Returns the `RotationError` of weld e, its rate and its acceleration, with their changes as tangents.

    changes1, changes2: (displacement, dV, dA) of the bodies on side 0 and 1.
    """
    R, q, scale = weld_rotation_error(m, d, e)
    b1, b2 = fastened_body(m, e, side=0), fastened_body(m, e, side=1)
    # R rotates with the second body; q by the relative rotation: dq = (0, relative) q / 2, scalar and vector part
    (moved1, dV1, dA1), (moved2, dV2, dA2) = changes1, changes2
    rotation2 = moved2.angular
    relative = R.T @ (moved1.angular - rotation2)
    dq = Quat(join((-0.5 * dot(relative, _vector(q)),), Vec3(quaternion_vector_rate(q, relative))))
    x, y, z = R.columns
    dR = Mat3(join(cross(rotation2, x), cross(rotation2, y), cross(rotation2, z))).T
    moved = RotationError(seed(R, dR), seed(q, dq), scale)
    w1, w2 = seed(d.cvel[b1].angular, dV1.angular), seed(d.cvel[b2].angular, dV2.angular)
    alpha1, alpha2 = seed(d.cacc[b1].angular, dA1.angular), seed(d.cacc[b2].angular, dA2.angular)
    rate, acceleration = rotation_error_motion(moved, w1, w2, alpha1, alpha2)
    return moved, rate, acceleration


@kernel
def _law_at(m, e, r):
    """Returns (K, B, d, stiffness) of connect or weld e at r = |E|.

    stiffness: D relative to its present value, so it is 1; its tangent is the relative change of D with r.
    """
    solimp = m.eq_solimp[e]
    K, B = reference(m.eq_solref[e], solimp, shortest_timeconst(m))
    d_imp = impedance(solimp, r)
    D = inverse_regularisation(d_imp, 1.0)
    present_D, _ = split_tangents(D, 1)
    return K, B, d_imp, D / present_D


@kernel
def _force_of_rows(d, k, law, error, rate, acceleration):
    """Returns the forces f = -D x of the three rows from k on, with their changes df = -D dx + f dD / D as tangents.

    Both are 0 in worlds without the rows (D = 0).
    law: (K, B, d, stiffness) of `_law_at`; error, rate, acceleration: E, E' and E''.
    """
    K, B, d_imp, stiffness = law
    D, x = Vec3(d.row_D[k : k + 3]), Vec3(d.primal.row_x[k : k + 3])
    _, dx = split_tangents(acceleration + B * rate + K * d_imp * error, 1)
    f = Vec3(-(D[c] * x[c]) for c in range(3))
    df = Vec3(-(D[c] * dx[c]) for c in range(3))  # at fixed D
    return stiffness * seed(f, df)  # stiffness: 1 with the tangent dD / D


@kernel
def _add_column(m, d, p, k, e, dof, by):
    """dg += derivatives of the forces of connect or weld e, whose first row is k.

    dof, by: the coordinate: the POSITION, VELOCITY or ACCELERATION of a dof.
    """
    b1, b2 = fastened_body(m, e, side=0), fastened_body(m, e, side=1)
    is_weld = m.eq_type[e] == EQ_WELD
    changes1, changes2 = _body_changes(m, d, p, b1, dof, by), _body_changes(m, d, p, b2, dof, by)
    at1 = _moved_anchor(m, d, b1, anchor(m, d, e, side=0), changes1)
    at2 = _moved_anchor(m, d, b2, anchor(m, d, e, side=1), changes2)
    # (E, E', E'') of the anchors, and with a weld also of the rotation error `twist`, which a connect does not use
    error, rate, acceleration = tuple(at1[c] - at2[c] for c in range(3))
    rotation, rotation_rate, rotation_acceleration = _moved_rotation_error(m, d, e, changes1, changes2)
    twist, squared_error = rotation.scale * _vector(rotation.q), dot(error, error)
    if is_weld:
        squared_error = squared_error + dot(twist, twist)
    law = _law_at(m, e, sqrt(squared_error))  # at r = |E|
    force = _force_of_rows(d, k, law, error, rate, acceleration)
    moment = Vec3(zeros(3))
    if is_weld:
        # the forces g of the rotation's rows have the moment scale R (s g + t x g) / 2, with q = (s, t)
        g = _force_of_rows(d, k + 3, law, twist, rotation_rate, rotation_acceleration)
        moment = rotation.R @ (0.5 * rotation.scale * fma(rotation.q.w, g, cross(_vector(rotation.q), g)))
    # only a position moves the axes of the dofs beyond it
    moving = dof if by == POSITION else -1
    # tau has the force on the first body and its opposite on the second one; dg = -dtau reverses both
    add_moved_force(m, d, p.dg, b2, moving, at2[0], force, moment)
    add_moved_force(m, d, p.dg, b1, moving, at1[0], -force, -moment)


@kernel
def add_fastenings(m, d, p, dof, by):
    """dg += derivatives of connects and welds by the POSITION, VELOCITY or ACCELERATION `by` of a dof."""
    # k: first row of a constraint; a connect has 3 rows, a weld 6; rows of other constraints are skipped one by one
    k = d.ndofrow[0]
    while k < d.nrow[0]:
        e, nrow = d.row_id[k], 1
        if d.row_type[k] == EQUALITY and is_fastening(m, e):
            nrow = 3 if m.eq_type[e] == EQ_CONNECT else 6
            # only a dof that moves one of both bodies changes the forces
            if is_before(m, dof, fastened_body(m, e, side=0)) or is_before(m, dof, fastened_body(m, e, side=1)):
                _add_column(m, d, p, k, e, dof, by)
        k += nrow
