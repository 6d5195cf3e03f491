"""Rows as slots of a tile: a slot exists where any world has the row, and a world that lacks it holds zeros there.

    one-dof rows   friction loss by dof, then limits of slides and hinges: by joint, lower side first
    general rows   limits of balls: three Jacobian entries
    contacts       no Jacobian is kept: a contact's rows follow from its frame, and share what is kept of them

The force of a row is clip(-D (J qacc - aref), lo, hi) and acts along J.  Within each class the order is MuJoCo's.
"""

from __future__ import annotations

from ..dynamics.flags import (
    BALL,
    DISABLE_CONSTRAINT,
    DISABLE_CONTACT,
    DISABLE_FRICTIONLOSS,
    DISABLE_LIMIT,
    PYRAMIDAL,
    SLIDE,
)
from ..lanes import any_, atan2, fabs, fma, fmax, kernel, real, stage, where
from ..spatial.quaternion import quat_normalize
from ..spatial.vector import dot3, load2, load3, load4, load5, normalize3
from .impedance import MINVAL, friction_reference, impedance, inverse_regularisation, reference, shortest_timeconst

# mjtConstraint
FRICTION_DOF, LIMIT_JOINT = 1, 3
CONTACT_FRICTIONLESS, CONTACT_PYRAMIDAL, CONTACT_ELLIPTIC = 5, 6, 7

UNBOUNDED = 1e30  # N: a force without an upper bound; finite, so that no product with 0 is NaN


# ---- one dof -----------------------------------------------------------------------------------------


@kernel
def friction_row(m, d, k, i, present, shortest):
    """Row k: the friction loss of dof i.  Its position error is 0, so it has damping and no stiffness."""
    solimp, v = load5(m.dof_solimp, 5 * i), d.qvel[i]
    _, B = reference(load2(m.dof_solref, 2 * i), solimp, shortest)
    D = inverse_regularisation(impedance(solimp, real(d, 0.0)), m.dof_invweight0[i])
    loss = m.dof_frictionloss[i]

    d.dofrow_dof[k] = i
    d.dofrow_type[k] = FRICTION_DOF
    d.dofrow_id[k] = i
    d.dofrow_present[k] = where(present, 1.0, 0.0)
    d.dofrow_J[k] = where(present, 1.0, 0.0)
    d.dofrow_pos[k] = real(d, 0.0)
    d.dofrow_margin[k] = real(d, 0.0)
    d.dofrow_vel[k] = where(present, v, 0.0)
    d.dofrow_D[k] = where(present, D, 0.0)
    d.dofrow_aref[k] = where(present, -(B * v), 0.0)
    d.dofrow_lo[k] = where(present, -loss, 0.0)
    d.dofrow_hi[k] = where(present, loss, 0.0)


@kernel
def limit_row(m, d, k, j, sign, dist, present, shortest):
    """Row k: a limit of the slide or hinge j; sign is +1 at the lower side and -1 at the upper one."""
    i, solimp = m.jnt_dofadr[j], load5(m.jnt_solimp, 5 * j)
    margin, v = m.jnt_margin[j], sign * d.qvel[i]
    r = dist - margin
    K, B = reference(load2(m.jnt_solref, 2 * j), solimp, shortest)
    imp = impedance(solimp, r)
    D = inverse_regularisation(imp, m.dof_invweight0[i])

    d.dofrow_dof[k] = i
    d.dofrow_type[k] = LIMIT_JOINT
    d.dofrow_id[k] = j
    d.dofrow_present[k] = where(present, 1.0, 0.0)
    d.dofrow_J[k] = where(present, sign, 0.0)
    d.dofrow_pos[k] = where(present, dist, 0.0)
    d.dofrow_margin[k] = where(present, margin, 0.0)
    d.dofrow_vel[k] = where(present, v, 0.0)
    d.dofrow_D[k] = where(present, D, 0.0)
    d.dofrow_aref[k] = where(present, -fma(B, v, K * imp * r), 0.0)
    d.dofrow_lo[k] = real(d, 0.0)
    d.dofrow_hi[k] = where(present, UNBOUNDED, 0.0)


@kernel
def limit_rows(m, d, k, j, shortest):
    """Rows from k on: the limits of joint j that any world is within the margin of.  Returns the next row."""
    q = d.qpos[m.jnt_qposadr[j]]
    for side in range(2):
        sign = 1.0 - 2.0 * side
        dist = sign * (q - m.jnt_range[2 * j + side])
        near = dist < m.jnt_margin[j]
        if any_(near):
            limit_row(m, d, k, j, sign, dist, near, shortest)
            k += 1
    return k


@stage
def make_dof_rows(m, d):
    """One-dof rows: friction loss of every dof that has it, then limits of slides and hinges.

    Source: MuJoCo's documentation, "Computation", sec. "Constraint model".
    Reads:  qpos (nq,), qvel (nv,).   Writes: nfrictionrow, ndofrow, dofrow_* (ndofrowmax,).
    """
    n, off, shortest = 0, m.opt_disableflags, shortest_timeconst(m)
    if off & (DISABLE_CONSTRAINT | DISABLE_FRICTIONLOSS) == 0:
        for i in range(m.nv):
            present = m.dof_frictionloss[i] > 0.0
            if any_(present):
                friction_row(m, d, n, i, present, shortest)
                n += 1
    d.nfrictionrow[0] = n
    if off & (DISABLE_CONSTRAINT | DISABLE_LIMIT) == 0:
        for j in range(m.njnt):
            if m.jnt_limited[j] != 0 and m.jnt_type[j] >= SLIDE:
                n = limit_rows(m, d, n, j, shortest)
    d.ndofrow[0] = n


# ---- balls -------------------------------------------------------------------------------------------


@kernel
def ball_axis_angle(q):
    """(unit axis, angle in [0, pi]) of a rotation; the axis is (1, 0, 0) where there is none."""
    u, s = normalize3((q[1], q[2], q[3]))
    # q and -q are one rotation: take the one with w >= 0
    turn = where((q[0] < 0.0) & (s >= MINVAL), -1.0, 1.0)
    return (turn * u[0], turn * u[1], turn * u[2]), 2.0 * atan2(s, fabs(q[0]))


@kernel
def ball_row(m, d, k, j, axis, dist, present, shortest):
    """Row k: the limit of the ball j, J = -axis: the angle must not grow."""
    i, solimp, margin = m.jnt_dofadr[j], load5(m.jnt_solimp, 5 * j), m.jnt_margin[j]
    r, v = dist - margin, -dot3(axis, load3(d.qvel, i))
    K, B = reference(load2(m.jnt_solref, 2 * j), solimp, shortest)
    imp = impedance(solimp, r)
    D = inverse_regularisation(imp, m.dof_invweight0[i])

    d.genrow_dofadr[k] = 3 * k
    d.genrow_dofnum[k] = 3
    for c in range(3):
        d.genrow_dof[3 * k + c] = i + c
    d.genrow_J[3 * k] = where(present, -axis[0], 0.0)
    d.genrow_J[3 * k + 1] = where(present, -axis[1], 0.0)
    d.genrow_J[3 * k + 2] = where(present, -axis[2], 0.0)
    d.genrow_type[k] = LIMIT_JOINT
    d.genrow_id[k] = j
    d.genrow_present[k] = where(present, 1.0, 0.0)
    d.genrow_pos[k] = where(present, dist, 0.0)
    d.genrow_margin[k] = where(present, margin, 0.0)
    d.genrow_vel[k] = where(present, v, 0.0)
    d.genrow_D[k] = where(present, D, 0.0)
    d.genrow_aref[k] = where(present, -fma(B, v, K * imp * r), 0.0)
    d.genrow_lo[k] = real(d, 0.0)
    d.genrow_hi[k] = where(present, UNBOUNDED, 0.0)


@stage
def make_ball_rows(m, d):
    """General rows: limits of ball joints, one row each; the larger entry of the range bounds the angle.

    Source: MuJoCo's documentation, "XML reference", body/joint/range.
    Reads:  qpos (nq,), qvel (nv,).   Writes: ngenrow, genrow_* (ngenrowmax,), genrow_dof and genrow_J (ngenJmax,).
    """
    n = 0
    if m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_LIMIT) == 0:
        shortest = shortest_timeconst(m)
        for j in range(m.njnt):
            if m.jnt_limited[j] != 0 and m.jnt_type[j] == BALL:
                axis, angle = ball_axis_angle(quat_normalize(load4(d.qpos, m.jnt_qposadr[j])))
                dist = fmax(m.jnt_range[2 * j], m.jnt_range[2 * j + 1]) - angle
                near = dist < m.jnt_margin[j]
                if any_(near):
                    ball_row(m, d, n, j, axis, dist, near, shortest)
                    n += 1
    d.ngenrow[0] = n


# ---- contacts ----------------------------------------------------------------------------------------


@kernel
def contact_row(m, d, k, A, condim, shortest):
    """D, damping and stiffness of the contact slot k; A is the sum of its bodies' inverse masses.

    An elliptic cone has R_n = (1 - d) / d A along the normal, R_1 = R_n / impratio along the first tangent and
    R_i = R_1 mu_1^2 / mu_i^2 in the other directions of friction, turns included: one Dt = 1 / (R_i mu_i^2) tells all.
    A pyramid has A (1 + mu_1^2) in place of A, and each of its edges gets R = 2 mu_1^2 R_1, which gives both cones the
    same friction; its friction has no reference of its own.
    """
    solimp, mu = load5(d.con_solimp, 5 * k), d.con_friction[5 * k]
    r = d.con_dist[k] - d.con_includemargin[k]
    present = (d.con_present[k] > 0.0) & (r < 0.0)
    K, B = reference(load2(d.con_solref, 2 * k), solimp, shortest)
    imp = impedance(solimp, r)
    Dt, slip, friction_B = real(d, 0.0), real(d, 0.0), B
    if condim == 1:
        D = inverse_regularisation(imp, A)
    else:
        mu2, impratio = where(present, mu * mu, 1.0), fmax(m.opt_impratio[0], MINVAL)
        if m.opt_cone == PYRAMIDAL:
            D = inverse_regularisation(imp, fma(mu2, A, A)) * impratio / (2.0 * mu2)
        else:
            D = inverse_regularisation(imp, A)
            Dt, slip = D * (impratio / mu2), D / (1.0 + mu2 / impratio)
            friction_B = friction_reference(load2(d.con_solreffriction, 2 * k), B, solimp, shortest)
    d.con_D[k] = where(present, D, 0.0)
    d.con_Dt[k] = where(present, Dt, 0.0)
    d.con_slip[k] = where(present, slip, 0.0)
    d.con_damping[k] = where(present, B, 0.0)
    d.con_frictiondamping[k] = where(present, friction_B, 0.0)
    d.con_stiffpos[k] = where(present, K * imp * r, 0.0)


@stage
def make_contact_rows(m, d):
    """What the rows of each contact share: their D, and aref = -con_damping (J v) - con_stiffpos.

    An elliptic cone's friction rows have aref = -con_frictiondamping (J v), for they have no position.

    A contact in the gap (dist >= includemargin) and one whose bodies are welded to each other have no rows.
    Source: MuJoCo's documentation, "Computation", sec. "Friction cones" and "Diagonal regularizer".
    Reads:  con_* (nconmax,).   Writes: con_D, con_Dt, con_slip, con_damping, con_frictiondamping, con_stiffpos.
    """
    shortest = shortest_timeconst(m)
    enabled = m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_CONTACT) == 0
    for k in range(d.ncon_slot[0]):
        b1, b2 = d.con_carrier[2 * k], d.con_carrier[2 * k + 1]
        if enabled and m.body_weldid[b1] != m.body_weldid[b2]:
            A = m.body_invweight0[2 * b1] + m.body_invweight0[2 * b2]
            contact_row(m, d, k, A, d.con_dim[k], shortest)
        else:
            d.con_D[k] = real(d, 0.0)
            d.con_Dt[k] = real(d, 0.0)
            d.con_slip[k] = real(d, 0.0)
            d.con_damping[k] = real(d, 0.0)
            d.con_frictiondamping[k] = real(d, 0.0)
            d.con_stiffpos[k] = real(d, 0.0)


@stage
def make_rows(m, d):
    """All rows of the tile: one-dof rows, general rows, contacts."""
    make_dof_rows(m, d)
    make_ball_rows(m, d)
    make_contact_rows(m, d)


def row_capacity(model) -> dict[str, int]:
    """The most rows that a model can have: sizes ndofrowmax, ngenrowmax and ngenJmax of a tile.

    Every dof may have friction loss (it is edited between steps), a slide or hinge has two limits, a ball has one.
    """
    kinds = model.jnt_type[model.jnt_limited != 0]
    balls, others = int((kinds == BALL).sum()), int((kinds >= SLIDE).sum())
    return {"ndofrowmax": int(model.nv) + 2 * others, "ngenrowmax": balls, "ngenJmax": 3 * balls}
