"""Rows as slots of a tile: a slot exists if any world has the row; it holds zeros for the other worlds.

    scalar rows    one row each, with stored Jacobian entries:
        one-dof rows   friction loss by dof, then limits of slides and hinges: by joint, lower side first
        general rows   equality constraints, friction loss of tendons, limits of balls and tendons, terms of the metric
                       of the integrator discrete: entries at several dofs
    contacts       no stored Jacobian: a contact's rows are computed from its frame and share its slot's fields

The force of a row is clip(-D (J qacc - aref), lo, hi) and acts along J.  Within each class the order is MuJoCo's.
Fields: row_* of scalar rows, con_* of contacts; d.row[k] has the row_* of row k, d.contact[k] the con_* of slot k.
    row_pos, row_margin, row_vel: position error, margin, velocity J qvel;  row_D = 1 / R;  row_lo, row_hi: bounds of
    the force;  row_J, row_dof: entries of J and their dofs;  row_present: 1 in worlds that have the row
    con_dist, con_includemargin: distance and margin [m];  con_frame: rows n, t_1, t_2;  con_friction: mu_1 to mu_5
Parameters of a row (impedance.py): K, B, imp: stiffness [1/s^2], damping [1/s] and impedance d of
aref = -B v - K d r;  r: position error less the margin;  A: estimate of J M^-1 J^T;  STICK: stiffness of rigid rows.
    `impedance`: d at r;  `reference`: (K, B) of a solref;  `limit_to_step`: (K, B) limited by the time step;
    `limit_reference`: (stiffness, damping, d) of a limit, from all of these;
    `wants_exact`: the flag `diagexact` is set: A is J M^-1 J^T in this state;  `loss_parameters`: (D, B) of friction;
    `reference_at_end`: (stiffness K d, damping, d) with aref = -damping v - stiffness r, where under the integrator
    `discrete` the row acts at the end of the step;  `inverse_regularisation`: D = d / ((1 - d) A)
"""

from __future__ import annotations

from featherlane.engine.prelude import *
from featherlane.engine.collision.motion import sweeping
from featherlane.engine.constraint.ball import write_ball_limits
from featherlane.engine.constraint.contact_inertia import contact_inertia
from featherlane.engine.constraint.diagonal import exact_dof_diagonal, wants_exact
from featherlane.engine.constraint.end_of_step import (
    factor_backbone,
    limit_reference,
    limit_to_step,
    reference_at_end,
    rescale_rows,
)
from featherlane.engine.constraint.equality import equality_capacity, write_equality_rows
from featherlane.engine.constraint.fold import fold_rows
from featherlane.engine.constraint.friction_loss import loss_parameters
from featherlane.engine.constraint.general import assign_dof_row, store_row
from featherlane.engine.constraint.impedance import (
    MINVAL,
    STICK,
    UNBOUNDED,
    friction_reference,
    impedance,
    inverse_regularisation,
    reference,
    shortest_timeconst,
)
from featherlane.engine.constraint.metric_rows import metric_capacity, write_metric_rows
from featherlane.engine.constraint.surface import bounces, mix_restitution, set_slip_friction
from featherlane.engine.constraint.tendon import tendon_capacity, write_tendon_frictions, write_tendon_limits
from featherlane.engine.dynamics.awake import sleeping, tree_awake
from featherlane.engine.dynamics.inertia.joint_space import factor
from featherlane.engine.model.integrator import has_metric

__all__ = [
    "CONTACT_ELLIPTIC",
    "CONTACT_FRICTIONLESS",
    "CONTACT_PYRAMIDAL",
    "EQUALITY",
    "FRICTION_DOF",
    "LIMIT_JOINT",
    "UNBOUNDED",
    "make_contact_rows",
    "make_dof_rows",
    "make_general_rows",
    "make_rows",
    "row_capacity",
]


# ---- one dof -----------------------------------------------------------------------------------------


@kernel
def dof_inverse_inertia(m, d, i):
    """Returns A of a row on the single dof i: (M^-1)_ii in qpos0, or in this state."""
    return exact_dof_diagonal(m, d, i) if wants_exact(m) else m.dof_invweight0[i]


@kernel
def write_dof_friction(m, d, k, i, present, shortest):
    """Writes row k: the friction loss of dof i.  Its position error is 0, so it has damping but no stiffness.

    present: mask of worlds that have the row; shortest: least time constant [s], of `shortest_timeconst`.
    """
    v, loss = d.qvel[i], m.dof_frictionloss[i]
    D, B = loss_parameters(m, m.dof_solref[i], m.dof_solimp[i], shortest, dof_inverse_inertia(m, d, i))
    assign_dof_row(d, k, i, FRICTION_DOF, ident=i)
    d.row_J[k] = where(present, 1.0, 0.0)
    store_row(d, k, present, error=(0.0, 0.0), vel=v, D=D, aref=-(B * v), bounds=(-loss, loss))


@kernel
def write_joint_limit(m, d, k, j, sign, dist, present, shortest):
    """Writes row k: a limit of the slide or hinge j, with J = sign.

    sign: +1 for the lower side, -1 for the upper one; dist: distance to the limit [m, rad]; present: mask of worlds
    that have the row; shortest: least time constant [s], of `shortest_timeconst`.
    """
    joint = m.joint[j]
    i = joint.dofadr
    r = dist - joint.margin
    v = sign * d.qvel[i]
    stiffness, damping, imp = limit_reference(m, joint.solref, joint.solimp, r, shortest)
    D = inverse_regularisation(imp, dof_inverse_inertia(m, d, i))
    aref = -fma(damping, v, stiffness * r)
    assign_dof_row(d, k, i, LIMIT_JOINT, ident=j)
    d.row_J[k] = where(present, sign, 0.0)
    store_row(d, k, present, (dist, joint.margin), v, D, aref, bounds=(0.0, UNBOUNDED))  # the limit only pushes


@kernel
def write_joint_limits(m, d, k, j, shortest):
    """Writes rows from k on: the limits q - lower >= 0 and upper - q >= 0 of joint j that are within the margin.

    In worlds beyond the margin, a row that another world has is absent.  Returns the next row.

    shortest: least time constant [s], of `shortest_timeconst`.
    """
    joint = m.joint[j]
    q = d.qpos[joint.qposadr]
    for side in range(2):
        sign = 1.0 - 2.0 * side  # +1 for the lower side, -1 for the upper one
        dist = sign * (q - joint.range[side])  # q - lower side, or upper side - q
        near = dist < joint.margin
        if sleeping(m):  # a sleeping tree has no rows
            near = near & tree_awake(d, m.dof_treeid[joint.dofadr])
        if any_(near):
            write_joint_limit(m, d, k, j, sign, dist, near, shortest)
            k += 1
    return k


@stage
def make_dof_rows(m, d):
    """Makes one-dof rows: friction loss of every dof that has it, then limits of slides and hinges.

    Source: MuJoCo's documentation, "Computation", sec. "Constraint model".
    Reads:  qpos (nq,), qvel (nv,).
    Writes: nfrictionrow, ndofrow, row_* (nrowmax,), row_dof and row_J (nrowJmax,).
    Scratch: exact.*, primal.*.
    """
    k = 0
    disabled = m.opt_disableflags
    shortest = shortest_timeconst(m)
    if disabled & (DISABLE_CONSTRAINT | DISABLE_FRICTIONLOSS) == 0:
        for i in range(m.nv):
            present = m.dof_frictionloss[i] > 0.0
            if sleeping(m):  # a sleeping tree has no rows
                present = present & tree_awake(d, m.dof_treeid[i])
            if any_(present):
                write_dof_friction(m, d, k, i, present, shortest)
                k += 1
    d.nfrictionrow[0] = k
    if disabled & (DISABLE_CONSTRAINT | DISABLE_LIMIT) == 0:
        for j in range(m.njnt):
            if m.jnt_limited[j] != 0 and is_scalar(m.jnt_type[j]):
                k = write_joint_limits(m, d, k, j, shortest)
    d.ndofrow[0] = k


# ---- general rows ------------------------------------------------------------------------------------


@stage
def make_general_rows(m, d):
    """Makes general rows: equalities, friction loss of tendons, limits of balls and tendons, terms of the metric.

    They follow the one-dof rows, each of which has one entry.
    Reads:  ndofrow, qpos (nq,), qvel (nv,), eq_active (neq,), xpos, xquat, xmat, cdof, cvel, subtree_com, ten_length,
            ten_J.
    Writes: nrow, row_* (nrowmax,), row_dof and row_J (nrowJmax,).
    Scratch: exact.*, primal.*.
    """
    row, entry = d.ndofrow[0], d.ndofrow[0]  # next row, and next entry in row_dof and row_J
    disabled = m.opt_disableflags
    if disabled & (DISABLE_CONSTRAINT | DISABLE_EQUALITY) == 0:
        row, entry = write_equality_rows(m, d, row, entry)
    if disabled & (DISABLE_CONSTRAINT | DISABLE_FRICTIONLOSS) == 0:
        row, entry = write_tendon_frictions(m, d, row, entry)
    if disabled & (DISABLE_CONSTRAINT | DISABLE_LIMIT) == 0:
        row, entry = write_ball_limits(m, d, row, entry)
        row, entry = write_tendon_limits(m, d, row, entry)
    d.nrow[0] = write_metric_rows(m, d, row, entry)


# ---- contacts ----------------------------------------------------------------------------------------


@kernel
def acts(m, d, k, r):
    """Returns the mask of worlds in which contact k acts; r: its distance minus its margin [m].

    A contact acts if it is within its margin, or adhesive and in the gap, or predicted within the step (`speculative`).
    """
    mask = r < 0.0
    if m.flg_adhesion:
        mask = mask | (d.con_adhesion[k] != 0.0)
    if sweeping(m):  # the flag `speculative`: contacts are also detected within the step
        mask = mask | (d.con_speculative[k] > 0.0)
    return mask


@kernel
def cone_friction_row(m, d, k, D, A, mu2, imp, B, shortest):
    """Returns (Dt, slip, damping) of the friction rows of contact k with an elliptic cone.

    R_1 = R_n / impratio along the first tangent, and R_i = R_1 mu_1^2 / mu_i^2 along the other friction directions,
    rotations included.  So all have the same Dt = 1 / (R_i mu_i^2).  slip = D / (1 + mu^2), mu = mu_1 / sqrt(impratio):
    the stiffness E of a sliding contact, whose cost is E (T - y)^2 / 2 (solver/rows/cone.py).
    Under Coulomb's law Dt = STICK / (A mu_1^2), slip = 0, and the damping is 1 / h unless the contact has a
    solreffriction: friction stops the slip in one step, as far as its bound permits.
    D, A, imp: of the normal row;  mu2: mu_1^2;  B: damping of its solref;  shortest: as in `reference`.
    """
    c = d.contact[k]
    impratio = fmax(m.opt_impratio[0], MINVAL)
    if m.opt_contact_model == COULOMB:
        Dt = STICK / (fmax(A, MINVAL) * mu2)
        slip = 0.0
        damping = friction_reference(c.solreffriction, 1.0 / timestep(m), c.solimp, shortest)
    else:
        Dt = D * (impratio / mu2)
        slip = D / (1.0 + mu2 / impratio)
        damping = friction_reference(c.solreffriction, B, c.solimp, shortest)
        _, damping, _ = reference_at_end(m, K=0.0, B=damping, imp=imp)  # K = 0: friction has no position error
    return Dt, slip, damping


@kernel
def rebound_row(m, d, k, A, D, damping, stiffpos):
    """Returns (D, damping, stiffpos) of contact k's normal row: in worlds in which it rebounds, a rigid row.

    Its a_ref is -(1 + e) J v / h, with the restitution e and the time step h: the step multiplies J v by -e.
    A: estimate of J M^-1 J^T.  D, damping, stiffpos: values without rebound, returned for all other worlds.
    """
    hits = bounces(m, d, k)  # mask: e > 0 and the approach is fast enough
    D = where(hits, STICK / fmax(A, MINVAL), D)
    damping = where(hits, (1.0 + d.con_restitution[k]) / timestep(m), damping)
    return D, damping, where(hits, 0.0, stiffpos)


@kernel
def compute_contact_row(m, d, k, shortest):
    """Computes D, damping and stiffness of contact slot k; shortest: least time constant [s], of `shortest_timeconst`.

    - Normal row: R_n = (1 - d) / d A and aref = -damping v - stiffpos, stiffpos = K d r.
    - Friction of an elliptic cone: `cone_friction_row`.
    - Pyramid: A (1 + mu_1^2) in place of A, and R = 2 mu_1^2 R_n / impratio of each edge, so that both cones have the
      same friction.  Its friction has no separate reference.
    - Coulomb's law: friction and restitution are mixed first, and `rebound_row` replaces the normal row.
    - A contact that does not act (`acts`) has zeros.
    Writes: con_D, con_Dt, con_slip, con_damping, con_frictiondamping, con_stiffpos; under Coulomb's law also
            con_restitution, con_restitution_vel, con_friction.
    """
    c = d.contact[k]
    if m.opt_contact_model == COULOMB:  # the convex model has no restitution and no static friction
        mix_restitution(m, d, k)  # writes con_restitution, con_restitution_vel
        set_slip_friction(m, d, k)  # writes con_friction
    r = c.dist - c.includemargin
    present = (c.present > 0.0) & acts(m, d, k, r)
    imp = impedance(c.solimp, r)
    authored = reference(c.solref, c.solimp, shortest)  # (K, B) of the solref
    K, B = limit_to_step(m, timestep(m), c.solref, imp, authored)
    stiffness, damping, imp = reference_at_end(m, K, B, imp)
    stiffpos = stiffness * r
    # 1 for an absent contact, which may have mu = 0: divisions by mu^2 follow
    mu2 = where(present, c.friction[0] * c.friction[0], 1.0)
    A = contact_inertia(m, d, k, c.dim, mu2)
    D = inverse_regularisation(imp, A)
    Dt, slip = 0.0, 0.0
    friction_damping = damping
    if c.dim > 1 and has_pyramids(m):
        D = D * fmax(m.opt_impratio[0], MINVAL) / (2.0 * mu2)
    elif c.dim > 1:
        # without `limit_to_step`, which limits a stiffness: friction has none
        _, friction_B = authored
        Dt, slip, friction_damping = cone_friction_row(m, d, k, D, A, mu2, imp, friction_B, shortest)
    if m.opt_contact_model == COULOMB:
        D, damping, stiffpos = rebound_row(m, d, k, A, D, damping, stiffpos)
    c.D = where(present, D, 0.0)
    c.Dt = where(present, Dt, 0.0)
    c.slip = where(present, slip, 0.0)
    c.damping = where(present, damping, 0.0)
    c.frictiondamping = where(present, friction_damping, 0.0)
    c.stiffpos = where(present, stiffpos, 0.0)


@stage
def make_contact_rows(m, d):
    """Computes the fields shared by the rows of each contact: D, and aref = -con_damping (J v) - con_stiffpos.

    An elliptic cone's friction rows have no position error and aref = -con_frictiondamping (J v).
    A contact has no rows if it is in the gap (dist >= includemargin) and neither adhesive nor predicted within the step
    (`acts`), or if its bodies are welded to each other.
    Source: MuJoCo's documentation, "Computation", sec. "Friction cones" and "Diagonal regularizer".
    Reads:  con_* (nconmax,), cvel; xipos under coulomb.
    Writes: con_D, con_Dt, con_slip, con_damping, con_frictiondamping, con_stiffpos; under coulomb con_restitution,
            con_restitution_vel, con_friction.
    Scratch: exact.*, primal.*.
    """
    shortest = shortest_timeconst(m)
    enabled = m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_CONTACT) == 0
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        b1, b2 = c.carrier[0], c.carrier[1]
        # bodies welded to each other cannot move relative to each other
        if enabled and m.body_weldid[b1] != m.body_weldid[b2]:
            compute_contact_row(m, d, k, shortest)
        else:
            c.D, c.Dt, c.slip, c.damping, c.frictiondamping, c.stiffpos = zeros(6)


@kernel
def add_adhesion_reference(m, d):
    """Adds R adhesion to aref of the normals of adhesive contacts, divided among the edges of a pyramid.

    aref = -B J v - con_stiffpos and R = 1 / D, so con_stiffpos is reduced by R adhesion.  The row then balances the
    adhesive force without additional penetration: its force minus the adhesion lies in a friction cone that is shifted
    down along the normal.
    Source: MuJoCo 4, chapter Computation, "Adhesion".
    """
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        D = c.D
        edges = 1.0
        if has_pyramids(m) and c.dim > 1:
            edges = 2.0 * (c.dim - 1)
        pulls = (D > 0.0) & (c.adhesion != 0.0)
        # R adhesion of the normal, or of each edge
        bias = c.adhesion / (edges * where(pulls, D, 1.0))
        c.stiffpos = where(pulls, c.stiffpos - bias, c.stiffpos)


@kernel
def contact_row_count(m, d, k):
    """Returns the number of rows of contact k in worlds in which it has rows."""
    dim = d.con_dim[k]
    return 2 * (dim - 1) if dim > 1 and has_pyramids(m) else dim


@kernel
def count_row(m, d, k, unused, count):
    """Returns `count` plus 1 in worlds that have scalar row k; rows of the metric are no constraint rows."""
    if d.row_type[k] != METRIC:
        count += d.row_present[k]
    return count


@kernel
def count_contact(m, d, k, unused, count):
    """Returns `count` plus the number of rows of contact k."""
    has_rows = (d.con_present[k] > 0.0) & (d.con_D[k] != 0.0)
    return count + where(has_rows, 1.0 * contact_row_count(m, d, k), 0.0)


count_rows = fold_rows(count_row, count_contact)


@stage
def make_rows(m, d):
    """Makes all rows of the tile: one-dof rows, general rows, contacts.

    Reads:  what `make_dof_rows`, `make_general_rows` and `make_contact_rows` read; under discrete M, Mhat.
    Writes: what `make_dof_rows`, `make_general_rows` and `make_contact_rows` write; under discrete what `rescale_rows`
            does, and qH, qHDiagInv; nefc.
    """
    exact = wants_exact(m)
    discrete = has_metric(m)
    if exact and discrete:
        factor_backbone(m, d)  # the exact diagonals below are J qH^-1 J^T of this factor
    make_dof_rows(m, d)
    make_general_rows(m, d)
    make_contact_rows(m, d)
    if exact and discrete:
        factor(m, d.Mhat, d.qH, d.qHDiagInv)  # the solver reads the factor of the whole metric
    elif discrete:
        rescale_rows(m, d)  # estimates of D with M become estimates with the metric
    if m.flg_adhesion:
        add_adhesion_reference(m, d)
    d.nefc[0] = count_rows(m, d, 0, 0.0)


def row_capacity(model) -> dict[str, int]:
    """Returns the maximum numbers of rows of a model: sizes nrowmax and nrowJmax of a tile; ndofrowmax: one-dof rows.

    Every dof and tendon may have friction loss (editable between steps); a slide, hinge or tendon has two limits, a
    ball has one.  All equalities may be active.
    """
    kinds = model.jnt_type[model.jnt_limited != 0]
    balls, others = int(is_ball(kinds).sum()), int(is_scalar(kinds).sum())
    parts = (equality_capacity(model), tendon_capacity(model), metric_capacity(model))
    rows, entries = (sum(counts) for counts in zip(*parts, strict=True))
    one = int(model.nv) + 2 * others
    return {"nrowmax": one + rows + balls, "ndofrowmax": one, "nrowJmax": one + entries + 3 * balls}
