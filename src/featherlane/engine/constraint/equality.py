"""Equality constraints as general rows: two anchors (connect), a pose (weld), a joint coordinate, a tendon length.

    connect    p_1 - p_2 = 0 at the two anchors, world axes
    weld       the same, and torquescale vec(q_2* q_1 q_rel) = 0, in the frame of the second body
    joint      x_1 - x_1(0) - (a_0 + a_1 y + a_2 y^2 + a_3 y^3 + a_4 y^4) = 0 with y = x_2 - x_2(0)
    tendon     the same for two lengths

The Jacobian has entries at the dofs above either body.  The rows of a connect or weld share the impedance at the norm
of their errors; their reference includes the derivative of the Jacobian: aref = -B J v - K d r - (dJ/dt) v.  That of
a joint or tendon does not.  A row whose constraint is inactive in a world holds zeros there.
In all kernels e is the equality, k a general row (fields row_*, row.py), adr the first of its entries in row_dof
and row_J; K, B, imp are stiffness, damping and impedance d (impedance.py).  cdof: S = (S_rot, S_lin), motion axis of a
dof about the com of its tree; cvel: body motions about the same point.  `chosen_diagonal`: J M^-1 J^T of a row, or the
given estimate of it.  A body or dof above another one is nearer to the root.
Source: MuJoCo's documentation, "Computation", sec. "Equality", and the change log of 4.0.0; MuJoCo
mj_instantiateEquality, mj_Jdotv, mj_diagApprox.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from featherlane.engine.prelude import *
from featherlane.engine.constraint.diagonal import chosen_diagonal
from featherlane.engine.constraint.end_of_step import reference_at_end, step_scale
from featherlane.engine.constraint.general import assign_rows, row_product, store_row
from featherlane.engine.constraint.impedance import (
    UNBOUNDED,
    impedance,
    inverse_regularisation,
    reference,
    shortest_timeconst,
)
from featherlane.engine.constraint.joint_equality import write_joint_equality
from featherlane.engine.constraint.tendon import equality_dofs, equality_moves, write_tendon_equality
from featherlane.engine.dynamics.awake import held_awake, sleeping
from featherlane.engine.dynamics.body.newton_euler import pass_joints


# ---- the two bodies -------------------------------------------------------------------------------------------------
@kernel
def is_fastening(m, e):
    """Returns whether equality e is a connect or a weld."""
    return m.eq_type[e] == EQ_CONNECT or m.eq_type[e] == EQ_WELD


@kernel
def fastened_body(m, e, side):
    """Returns the body that equality e, a connect or weld, fastens on side 0 or 1; a site counts as its body."""
    i = m.eq_obj1id[e] if side == 0 else m.eq_obj2id[e]
    return m.site_bodyid[i] if m.eq_objtype[e] == OBJ_SITE else i


@kernel
def local_anchor(m, e, side):
    """Returns the anchor of equality e on side 0 or 1, in the frame of that body."""
    equality = m.equality[e]
    i = equality.obj1id if side == 0 else equality.obj2id
    # eq_data has NEQDATA numbers per equality: two anchors, then others.  A weld's first anchor is on the second body
    stored_anchor = side if equality.type == EQ_CONNECT else 1 - side
    if equality.objtype == OBJ_SITE:
        p = m.site_pos[i]
    else:
        first = NEQDATA * e + 3 * stored_anchor
        p = Vec3(m.eq_data[first : first + 3])
    return p


@kernel
def anchor(m, d, e, side):
    """Returns the anchor of equality e on side 0 or 1, in world axes [m]."""
    b = fastened_body(m, e, side)
    return d.xpos[b] + d.xmat[b] @ local_anchor(m, e, side)


class RotationError(NamedTuple):
    """The rotation error of a weld: scale vec(q) in the frame R of body 2."""

    R: Any  # orientation of the second body
    q: Any  # quaternion q_2* q_1 q_rel
    scale: Any  # torquescale


@kernel
def weld_rotation_error(m, d, e):
    """Returns the rotation error of weld e."""
    frame, q = orientations(m, d, e)
    return RotationError(frame.matrix, q, m.eq_data[e, 10])  # eq_data[10]: torquescale


@kernel
def orientations(m, d, e):
    """Returns (q_2, q_2* q_1 q_rel): the frame of a weld's rotation error, and the error as a quaternion."""
    q1, q2 = d.xquat[fastened_body(m, e, side=0)], d.xquat[fastened_body(m, e, side=1)]
    if m.eq_objtype[e] == OBJ_SITE:
        q1 = q1 @ m.site_quat[m.eq_obj1id[e]]
        q2 = q2 @ m.site_quat[m.eq_obj2id[e]]
    else:
        first = NEQDATA * e + 6  # eq_data[6 .. 9]: q_rel
        q1 = q1 @ Quat(m.eq_data[first : first + 4])
    return q2, q2.T @ q1


@kernel
def bias_acceleration(m, d, b):
    """Returns body b's spatial acceleration at its tree's com for qacc = 0, without gravity: sum of (dS/dt) v."""
    acc = Motion(zeros(6))
    while b > 0:  # from b up to the root: adds the terms of each body's joints
        p = m.body_parentid[b]
        _, acc = pass_joints(m, d, b, d.cvel[p], acc)  # acc += (dS/dt) v of the joints of b
        b = p
    return acc


@kernel
def anchor_motion(V, A, r):
    """Returns (velocity u = v + omega x r, acceleration a + alpha x r + omega x u) of a point of a body at arm r.

    V, A: spatial velocity (omega, v) and acceleration (alpha, a) of the body at its tree's com; r: from there [m].
    """
    u = V.linear + cross(V.angular, r)
    return u, A.linear + cross(A.angular, r) + cross(V.angular, u)


@kernel
def quaternion_vector_rate(p, y):
    """Returns vec(y p) / 2 for a quaternion p and a vector y: the rate of vec(p) if p rotates at y."""
    return 0.5 * fma(p.w, y, cross(y, Vec3(p[1:4])))


# ---- dofs -----------------------------------------------------------------------------------------------------------
@kernel
def last_dofs(m, e):
    """Returns the last dofs that move the two bodies of equality e; -1: none."""
    return m.body_lastdof[fastened_body(m, e, side=0)], m.body_lastdof[fastened_body(m, e, side=1)]


@kernel
def is_next(m, last, c, i):
    """Returns 1 if dof i is entry c of the list of dofs from the root down to dof `last` (-1: no dofs), else 0."""
    return 1 if next_dof(m, last, c) == i else 0


@kernel
def next_dof(m, last, c):
    """Returns entry c of the list of dofs from the root down to dof `last` (-1: no dofs); nv after its end."""
    return m.chain_colind[m.chain_rowadr[last] + c] if last >= 0 and c < m.chain_rownnz[last] else m.nv


@kernel
def list_dofs(m, d, adr, last1, last2):
    """Writes dofs last1, last2 (-1: none) and their ancestors to row_dof[adr ..], ascending; returns their number."""
    n, c1, c2 = 0, 0, 0  # entries written; positions in the two sorted lists, which are merged
    i = min(next_dof(m, last1, c=0), next_dof(m, last2, c=0))
    while i < m.nv:
        d.row_dof[adr + n] = i
        n += 1
        c1 += is_next(m, last1, c1, i)
        c2 += is_next(m, last2, c2, i)
        i = min(next_dof(m, last1, c1), next_dof(m, last2, c2))
    return n


# ---- Jacobians ------------------------------------------------------------------------------------------------------
@kernel
def store_column(d, adr, n, v, present):
    """Writes the vector v, the column of one dof, to three rows of n entries; adr: its entry in the first row."""
    d.row_J[adr] = where(present, v[0], 0.0)
    d.row_J[adr + n] = where(present, v[1], 0.0)
    d.row_J[adr + 2 * n] = where(present, v[2], 0.0)


@kernel
def point_columns(m, d, e, adr, n, arms, present):
    """Writes three rows from entry adr on: the Jacobian of p_1 - p_2, with arms from the coms of the bodies' trees.

    n: dofs per row, in row_dof; arms: (r_1, r_2) [m]; present: mask of worlds that have the rows.
    A dof above both bodies changes p_1 - p_2 by S_rot x (r_1 - r_2): the cancelling terms are left out.
    """
    # c1, c2: positions in the bodies' lists of dofs, from the root down to last1, last2
    c1, c2 = 0, 0
    r1, r2 = arms
    last1, last2 = last_dofs(m, e)
    for c in range(n):
        i = d.row_dof[adr + c]
        S = d.cdof[i]
        w, v = S.angular, S.linear
        on1, on2 = is_next(m, last1, c1, i), is_next(m, last2, c2, i)  # 1: dof i moves body 1, 2
        if on1 and on2:
            column = cross(w, r1 - r2)
        elif on1:
            column = v + cross(w, r1)
        else:
            column = -(v + cross(w, r2))
        store_column(d, adr + c, n, column, present)
        c1 += on1
        c2 += on2


@kernel
def rotation_columns(m, d, e, adr, n, rotation, present):
    """Writes three rows from entry adr on: the Jacobian of the error scale vec(q), whose rate is scale vec(y q) / 2.

    y = R^T (omega_1 - omega_2) is the relative angular velocity, so the entries of a dof that moves both bodies are 0.
    n: dofs per row, in row_dof; rotation: a `RotationError`; present: mask of worlds that have the rows.
    """
    # c1, c2: positions in the bodies' lists of dofs, from the root down to last1, last2
    c1, c2 = 0, 0
    last1, last2 = last_dofs(m, e)
    for c in range(n):
        i = d.row_dof[adr + c]
        on1, on2 = is_next(m, last1, c1, i), is_next(m, last2, c2, i)
        column = Vec3(zeros(3))
        if on1 != on2:  # S_rot is omega_1 or omega_2
            column = rotation.scale * quaternion_vector_rate(rotation.q, rotation.R.T @ d.cdof[i].angular)
        if on2:  # omega_2 has a minus sign in y
            column = -column
        store_column(d, adr + c, n, column, present)
        c1 += on1
        c2 += on2


# ---- rows -----------------------------------------------------------------------------------------------------------
class Response(NamedTuple):
    """The parameters of a_ref and D that the rows of one equality share."""

    stiffness: Any  # of `reference_at_end`: K d in continuous time
    damping: Any  # of `reference_at_end`: B in continuous time
    imp: Any  # impedance
    scale: Any  # factor of parts of a_ref that are constant over the step


@kernel
def equality_response(m, e, r):
    """Returns the parameters of the rows of equality e, whose errors have the norm r."""
    solimp = m.eq_solimp[e]
    K, B = reference(m.eq_solref[e], solimp, shortest_timeconst(m))
    imp = impedance(solimp, r)
    scale = step_scale(m, K, B, imp)  # 1 in continuous time
    stiffness, damping, imp = reference_at_end(m, K, B, imp)
    return Response(stiffness, damping, imp, scale)


@kernel
def store_equality_row(d, k, response, error, rate, A, present):
    """Writes row k of an equality: aref = -damping J v - stiffness error - scale (dJ/dt) v.

    response: (stiffness, damping, impedance, scale) of `equality_response`; error: position error; rate: (dJ/dt) v;
    A: estimate of J M^-1 J^T; present: mask of worlds that have the row.
    """
    v = row_product(d, k, d.qvel)
    D = inverse_regularisation(response.imp, A)
    bound = UNBOUNDED
    aref = -fma(response.damping, v, response.stiffness * error) - rate * response.scale
    store_row(d, k, present, (error, 0.0), v, D, aref, bounds=(-bound, bound))


@kernel
def rotation_error_motion(rotation, w1, w2, alpha1, alpha2):
    """Returns (t', t'') of a weld's rotation error t = scale vec(q), at angular velocities and accelerations.

    t' = scale vec(y q) / 2 and t'' = scale (vec(y' q) / 2 - |y|^2 vec(q) / 4), with y = R^T (w1 - w2) and
    y' = R^T (alpha1 - alpha2 - w2 x (w1 - w2)).
    rotation: a `RotationError`.  At the accelerations for qacc = 0, t'' is (dJ/dt) v.
    """
    R, q, scale = rotation
    relative = w1 - w2
    y = R.T @ relative
    half_rate = quaternion_vector_rate(q, R.T @ (alpha1 - alpha2 - cross(w2, relative)))
    return scale * quaternion_vector_rate(q, y), scale * (half_rate - 0.25 * dot(y, y) * Vec3(q[1:4]))


@kernel
def moves_any(d, adr, n, present):
    """Returns the mask of worlds of `present` in which one of n entries of row_J from adr on is not zero."""
    moves = false_mask(d)
    for i in range(adr, adr + n):
        moves = moves | (d.row_J[i] != 0.0)
    return moves & present


@kernel
def write_fastening_rows(m, d, k, adr, n, e, present):
    """Writes rows from k on: equality e, a connect (p_1 - p_2 = 0) or weld (also its rotation error is 0).

    Returns the mask of worlds that have them.

    adr, n: first entry and entries per row; present: mask of worlds in which e is active.  If no dof moves the two
    bodies relative to each other, a world has no rows: D would be unbounded.
    """
    b1, b2 = fastened_body(m, e, side=0), fastened_body(m, e, side=1)
    weld = m.eq_type[e] == EQ_WELD
    p1, p2 = anchor(m, d, e, side=0), anchor(m, d, e, side=1)
    # arms of the anchors from the coms of the bodies' trees
    r1 = p1 - d.subtree_com[m.body_rootid[b1]]
    r2 = p2 - d.subtree_com[m.body_rootid[b2]]
    a1, a2 = bias_acceleration(m, d, b1), bias_acceleration(m, d, b2)  # spatial accelerations at qacc = 0
    assign_rows(d, k, size=equality_row_count(m, e), adr=adr, n=n, kind=EQUALITY, ident=e)

    anchor_error = p1 - p2
    # (dJ/dt) v of the three translations: difference of the anchors' accelerations at qacc = 0
    dJv = anchor_motion(d.cvel[b1], a1, r1)[1] - anchor_motion(d.cvel[b2], a2, r2)[1]
    point_columns(m, d, e, adr, n, (r1, r2), present)
    error2 = dot(anchor_error, anchor_error)  # squared norm of all errors
    if weld:  # three rotations follow
        rotation = weld_rotation_error(m, d, e)
        rotation_error = rotation.scale * Vec3(rotation.q[1:4])
        # (dJ/dt) v of the three rotations
        _, rotation_dJv = rotation_error_motion(
            rotation, d.cvel[b1].angular, d.cvel[b2].angular, a1.angular, a2.angular
        )
        error2 = error2 + dot(rotation_error, rotation_error)
        rotation_columns(m, d, e, adr + 3 * n, n, rotation, present)
    present = moves_any(d, adr, equality_row_count(m, e) * n, present)  # of the entries of all 3 or 6 rows
    response = equality_response(m, e, sqrt(error2))
    # estimates of A: sums of the bodies' inverse weights in qpos0
    for c in range(3):
        A = chosen_diagonal(m, d, k + c, m.body_invweight0[b1].linear + m.body_invweight0[b2].linear)
        store_equality_row(d, k + c, response, anchor_error[c], dJv[c], A, present)
    for c in range(3 if weld else 0):
        A = chosen_diagonal(m, d, k + 3 + c, m.body_invweight0[b1].angular + m.body_invweight0[b2].angular)
        store_equality_row(d, k + 3 + c, response, rotation_error[c], rotation_dJv[c], A, present)
    return present


@kernel
def equality_row_count(m, e):
    """Returns the number of rows of equality e."""
    return 3 if m.eq_type[e] == EQ_CONNECT else 6 if m.eq_type[e] == EQ_WELD else 1


@kernel
def equality_awake(m, d, e):
    """Returns the mask of worlds in which one of the two bodies of equality e is awake."""
    equality = m.equality[e]
    if equality.type == EQ_JOINT:
        b1 = m.jnt_bodyid[equality.obj1id]
        b2 = 0
        if equality.obj2id >= 0:
            b2 = m.jnt_bodyid[equality.obj2id]
    else:
        b1, b2 = fastened_body(m, e, side=0), fastened_body(m, e, side=1)
    return held_awake(m, d, b1, b2)


@kernel
def write_equality_rows(m, d, row, entry):
    """Writes rows from `row` on, entries from `entry` on: equalities active in any world that depend on a dof.

    Returns the next row and the next entry.
    """
    for e in range(m.neq):
        present = d.eq_active[e] != 0.0
        if sleeping(m) and m.eq_type[e] != EQ_TENDON:  # models with sleep have no equality of tendons
            present = present & equality_awake(m, d, e)
        if any_(present):
            n = 0  # entries per row, 0 without rows
            rows = equality_row_count(m, e)
            if rows > 1:  # a connect or weld
                last1, last2 = last_dofs(m, e)
                n = list_dofs(m, d, entry, last1, last2)
                if n > 0:
                    with_rows = write_fastening_rows(m, d, row, entry, n, e, present)  # mask of worlds
                    if not any_(with_rows):  # the next equality overwrites the rows
                        n = 0
            # one row; no row for tendons whose lengths depend on no dof
            elif m.eq_type[e] == EQ_JOINT or equality_moves(m, e):
                # A: estimate of J M^-1 J^T
                if m.eq_type[e] == EQ_JOINT:
                    error, A, n = write_joint_equality(m, d, row, entry, e, present)
                else:
                    error, A, n, present = write_tendon_equality(m, d, row, entry, e, present)
                store_equality_row(d, row, equality_response(m, e, error), error, rate=0.0, A=A, present=present)
            if n > 0:
                row = row + rows
                entry = entry + n * rows
    return row, entry


def equality_capacity(model) -> tuple[int, int]:
    """Returns the maximum numbers of equality rows and of their entries: all equalities active."""
    rows = entries = 0
    for e in range(model.neq):
        size = equality_row_count(model, e)
        if model.eq_type[e] == EQ_JOINT:
            n = 1 if model.eq_obj2id[e] < 0 else 2
        elif model.eq_type[e] == EQ_TENDON:
            n = len(equality_dofs(model, e))
        else:
            bodies = [fastened_body(model, e, side) for side in range(2)]
            n = len({i for b in bodies for i in _chain(model, model.body_lastdof[b])})
        rows, entries = rows + size, entries + size * n
    return rows, entries


def _chain(model, last: int) -> list[int]:
    """Returns the dofs from the root down to dof `last`; -1: none."""
    if last < 0:
        return []
    first = int(model.chain_rowadr[last])
    return model.chain_colind[first : first + int(model.chain_rownnz[last])].tolist()
