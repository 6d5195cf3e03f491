"""Rows of the LCP other than contacts: equalities, friction loss, limits, from the rows of the constraint layer.

    equality        J v' = -erp / h r, unbounded
    friction loss   J v' = 0, |x| <= loss
    limit           J v' >= -erp / h r, x >= 0; or, if it bounces, >= -bounce J v

with r the position error minus the margin.  A row without its own softness has the model's.
Symbols: k: a row of the constraint layer, one-dof (dofrow_*) or general (genrow_*);  present: mask of worlds with it;
    start, n: columns of the LCP's row, lcp.col[start], ... (rows.py);  d.primal.search: J of the next row, by dof.
    Each append_* returns the number of the new row, if not otherwise stated.  row: a `NewRow`, with its number row.r
    and row.v = J v.  INFINITE: no bound;  *_lcprow[k]: number of the LCP's row, or NO_ROW;  D = 1 / R of the row of the
    constraint layer.
Source: ODE manual, sec. "Stops and motor parameters", "Soft constraint: Constraint Force Mixing (CFM)".
"""

from featherlane.prelude import *
from featherlane.solver.dual.rows import sort_descending
from featherlane.solver.lcp.rows.rows import (
    FIRST,
    INFINITE,
    NO_ROW,
    append_jacobian_row,
    append_row_columns,
    clear_column_marks,
    clear_entries,
    first_free_column,
    has_capacity,
    report_full_rows,
    set_row,
)
from featherlane.solver.lcp.rows.softness import loss_cfm, softness


# ---- one dof -------------------------------------------------------------------------------------------------------
@kernel
def append_dof_row(m, d, i, J):
    """Appends a row with one entry, J at dof i; returns a `NewRow` for `set_row`.  The caller checks the capacity."""
    start = first_free_column(d)
    # no second body: every mark is FIRST, and only prevents that a dof is listed twice
    n = append_row_columns(m, d, i, FIRST, start, n=0)
    clear_entries(d, start, n)  # d.primal.search = 0: J is 0 at the ancestors of dof i
    clear_column_marks(d, start, n)
    d.primal.search[i] = J
    return append_jacobian_row(m, d, start, n)


@kernel
def append_dof_loss(m, d, k):
    """Appends the friction loss of a dof, one-dof row k."""
    i, present = d.dofrow_dof[k], d.dofrow_present[k] > 0.0
    cfm = loss_cfm(m, m.dof_solref[i], m.dof_solimp[i], d.dofrow_D[k])
    row = append_dof_row(m, d, i, d.dofrow_J[k])
    set_row(m, d, row, present, c=0.0, cfm=cfm, bounds=(d.dofrow_lo[k], d.dofrow_hi[k]))
    return row.r


@kernel
def joint_limit_velocity(m, j, erp, err, v):
    """Returns the target velocity of a limit of joint j: -erp / h err, or -bounce v if that is more and v < 0.

    err: error, negative beyond the limit [m, rad];  v: its rate [m/s, rad/s].
    """
    target, bounce = -(erp / timestep(m)) * err, m.jnt_stop_bounce[j]
    return where((bounce > 0.0) & (v < 0.0), fmax(target, -(bounce * v)), target)


@kernel
def append_joint_limit(m, d, k):
    """Appends the limit of a slide or hinge, one-dof row k."""
    j, present = d.dofrow_id[k], d.dofrow_present[k] > 0.0
    joint = m.joint[j]
    err, solref, solimp = d.dofrow_pos[k] - d.dofrow_margin[k], joint.solref, joint.solimp
    erp, cfm = softness(m, joint.stop_erp, joint.stop_cfm, solref, solimp, err, d.dofrow_D[k])
    row = append_dof_row(m, d, d.dofrow_dof[k], d.dofrow_J[k])
    target = joint_limit_velocity(m, j, erp, err, row.v)
    set_row(m, d, row, present, target, cfm, (0.0, INFINITE))
    return row.r


@kernel
def append_one_dof_rows(m, d):
    """Appends the one-dof rows: friction loss of dofs, limits of slides and hinges; sets dofrow_lcprow."""
    for k in range(d.ndofrow[0]):
        d.dofrow_lcprow[k] = NO_ROW
        if has_capacity(m, d, rows=1):
            if d.dofrow_type[k] == FRICTION_DOF:
                d.dofrow_lcprow[k] = append_dof_loss(m, d, k)
            else:
                d.dofrow_lcprow[k] = append_joint_limit(m, d, k)
        else:
            report_full_rows(d)


# ---- several dofs --------------------------------------------------------------------------------------------------
@kernel
def append_general_row(m, d, k):
    """Appends general row k with its J; returns a `NewRow` for `set_row`.  The caller checks the capacity."""
    start, first, n = first_free_column(d), d.genrow_dofadr[k], 0
    # from the last entry: later dofs first, so that little is left to sort.  No second body: every mark is FIRST
    for e in range(first + d.genrow_dofnum[k] - 1, first - 1, -1):
        n = append_row_columns(m, d, d.genrow_dof[e], FIRST, start, n)
    sort_descending(d.lcp.col, start, n)
    # J is 0 at ancestors without an entry
    clear_entries(d, start, n)
    clear_column_marks(d, start, n)
    for e in range(first, first + d.genrow_dofnum[k]):
        d.primal.search[d.genrow_dof[e]] = d.genrow_J[e]
    return append_jacobian_row(m, d, start, n)


@kernel
def append_equality_row(m, d, k, error_norm):
    """Appends row k of an equality; error_norm: norm of the errors of all its rows, for its impedance."""
    equality_id, present, h = d.genrow_id[k], d.genrow_present[k] > 0.0, timestep(m)
    equality = m.equality[equality_id]
    solref, solimp = equality.solref, equality.solimp
    erp, cfm = softness(m, equality.erp, equality.cfm, solref, solimp, error_norm, d.genrow_D[k])
    row = append_general_row(m, d, k)
    target, infinite = -(erp / h) * d.genrow_pos[k], INFINITE
    set_row(m, d, row, present, target, cfm, (-infinite, infinite))
    return row.r


@kernel
def equality_error_norm(d, k, previous):
    """Returns the norm of the errors of all rows of an equality, computed at its first row k; else `previous`."""
    equality_id = d.genrow_id[k]
    if k == 0 or d.genrow_type[k - 1] != EQUALITY or d.genrow_id[k - 1] != equality_id:
        square, e = 0.0, k
        while e < d.ngenrow[0] and d.genrow_type[e] == EQUALITY and d.genrow_id[e] == equality_id:
            square = fma(d.genrow_pos[e], d.genrow_pos[e], square)
            e += 1
        previous = sqrt(square)
    return previous


@kernel
def append_equality_rows(m, d):
    """Appends the rows of all equalities; sets genrow_lcprow."""
    error_norm = 0.0
    for k in range(d.ngenrow[0]):
        d.genrow_lcprow[k] = NO_ROW
        if d.genrow_type[k] == EQUALITY:
            error_norm = equality_error_norm(d, k, error_norm)
            if has_capacity(m, d, rows=1):
                d.genrow_lcprow[k] = append_equality_row(m, d, k, error_norm)
            else:
                report_full_rows(d)


@kernel
def append_tendon_loss(m, d, k):
    """Appends the friction loss of a tendon, general row k."""
    t, present = d.genrow_id[k], d.genrow_present[k] > 0.0
    cfm = loss_cfm(m, m.tendon_solref_fri[t], m.tendon_solimp_fri[t], d.genrow_D[k])
    row = append_general_row(m, d, k)
    set_row(m, d, row, present, c=0.0, cfm=cfm, bounds=(d.genrow_lo[k], d.genrow_hi[k]))
    return row.r


@kernel
def append_ball_limit(m, d, k):
    """Appends the limit of a ball joint, general row k."""
    j, present = d.genrow_id[k], d.genrow_present[k] > 0.0
    joint = m.joint[j]
    err, solref, solimp = d.genrow_pos[k] - d.genrow_margin[k], joint.solref, joint.solimp
    erp, cfm = softness(m, joint.stop_erp, joint.stop_cfm, solref, solimp, err, d.genrow_D[k])
    row = append_general_row(m, d, k)
    target = joint_limit_velocity(m, j, erp, err, row.v)
    set_row(m, d, row, present, target, cfm, (0.0, INFINITE))
    return row.r


@kernel
def append_tendon_limit(m, d, k):
    """Appends the limit of a tendon's length, general row k."""
    t, present, model_value = d.genrow_id[k], d.genrow_present[k] > 0.0, -1.0
    err = d.genrow_pos[k] - d.genrow_margin[k]
    solref, solimp = m.tendon_solref_lim[t], m.tendon_solimp_lim[t]
    # a tendon has no ERP and CFM: negative values stand for the model's
    erp, cfm = softness(m, model_value, model_value, solref, solimp, err, d.genrow_D[k])
    row = append_general_row(m, d, k)
    target = -(erp / timestep(m)) * err
    set_row(m, d, row, present, target, cfm, (0.0, INFINITE))
    return row.r


@kernel
def append_bounded_rows(m, d):
    """Appends general rows that are no equalities: friction loss and limits of tendons, limits of balls."""
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] != EQUALITY:
            if not has_capacity(m, d, rows=1):
                report_full_rows(d)
            elif d.genrow_type[k] == FRICTION_TENDON:
                d.genrow_lcprow[k] = append_tendon_loss(m, d, k)
            elif d.genrow_type[k] == LIMIT_JOINT:
                d.genrow_lcprow[k] = append_ball_limit(m, d, k)
            else:
                d.genrow_lcprow[k] = append_tendon_limit(m, d, k)
