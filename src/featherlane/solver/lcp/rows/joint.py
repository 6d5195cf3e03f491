"""Rows of the LCP other than contacts: equalities, friction loss, limits, from the rows of the constraint layer.

    equality        J v' = -erp / h r, unbounded
    friction loss   J v' = 0, |x| <= loss
    limit           J v' >= -erp / h r, x >= 0; or, if it bounces, >= -bounce J v

with r the position error minus the margin.  A row without its own softness has the model's.
In all kernels: start, n: the dofs of a row are lcp.col[start .. start + n - 1].  primal.search: J by dof, which
`append_jacobian_row` reads.  Its result `row` holds the number row.r of the row and row.v = J v.
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
    has_capacity,
    open_columns,
    report_full_rows,
    set_row,
)
from featherlane.solver.lcp.rows.softness import loss_softness, softness


# ---- one dof -------------------------------------------------------------------------------------------------------
@kernel
def append_dof_row(m, d, i, J):
    """Appends a row with one entry, J at dof i, as `append_jacobian_row`; the caller checks the capacity."""
    start = open_columns(d)
    # no second body: every mark is FIRST, and only prevents that a dof is listed twice
    n = append_row_columns(m, d, i, FIRST, start, n=0)
    clear_entries(d, start, n)  # primal.search = 0
    clear_column_marks(d, start, n)
    d.primal.search[i] = J
    return append_jacobian_row(m, d, start, n)


@kernel
def loss_row(m, d, k):
    """Appends friction loss of a dof, one-dof row k."""
    i, present = d.dofrow_dof[k], d.dofrow_present[k] > 0.0
    cfm = loss_softness(m, m.dof_solref[i], m.dof_solimp[i], d.dofrow_D[k])
    row = append_dof_row(m, d, i, d.dofrow_J[k])
    set_row(m, d, row, present, 0.0, cfm, (d.dofrow_lo[k], d.dofrow_hi[k]))
    return row.r


@kernel
def joint_limit_velocity(m, j, erp, err, v):
    """Returns the target velocity of a limit of joint j; err is its error (negative: beyond it), v the error's rate."""
    c, e = -(erp / timestep(m)) * err, m.jnt_stop_bounce[j]  # e: coefficient of restitution; v < 0: it closes
    return where((e > 0.0) & (v < 0.0), fmax(c, -(e * v)), c)


@kernel
def append_joint_limit(m, d, k):
    """Appends the limit of a slide or hinge, one-dof row k."""
    j, present = d.dofrow_id[k], d.dofrow_present[k] > 0.0
    joint = m.joint[j]
    err, solref, solimp = d.dofrow_pos[k] - d.dofrow_margin[k], joint.solref, joint.solimp
    erp, cfm = softness(m, joint.stop_erp, joint.stop_cfm, solref, solimp, err, d.dofrow_D[k])
    row = append_dof_row(m, d, d.dofrow_dof[k], d.dofrow_J[k])
    c = joint_limit_velocity(m, j, erp, err, row.v)
    set_row(m, d, row, present, c, cfm, (0.0, INFINITE))
    return row.r


@kernel
def dof_rows(m, d):
    """Appends friction loss of dofs, limits of slides and hinges."""
    for k in range(d.ndofrow[0]):
        d.dofrow_lcprow[k] = NO_ROW
        if has_capacity(m, d, 1):
            if d.dofrow_type[k] == FRICTION_DOF:
                d.dofrow_lcprow[k] = loss_row(m, d, k)
            else:
                d.dofrow_lcprow[k] = append_joint_limit(m, d, k)
        else:
            report_full_rows(d)


# ---- several dofs --------------------------------------------------------------------------------------------------
@kernel
def append_general_row(m, d, k):
    """Appends general row k of the constraint layer, as `append_jacobian_row`; the caller checks the capacity.

    o: its first entry in genrow_dof and genrow_J; e: an entry.
    """
    start, o, n = open_columns(d), d.genrow_dofadr[k], 0
    # from the last dof to the first: dofs and their ancestors are listed almost in descending order
    for e in range(o + d.genrow_dofnum[k] - 1, o - 1, -1):  # no second body: every mark is FIRST
        n = append_row_columns(m, d, d.genrow_dof[e], FIRST, start, n)
    sort_descending(d.lcp.col, start, n)
    clear_entries(d, start, n)  # primal.search = 0
    clear_column_marks(d, start, n)
    for e in range(o, o + d.genrow_dofnum[k]):
        d.primal.search[d.genrow_dof[e]] = d.genrow_J[e]
    return append_jacobian_row(m, d, start, n)


@kernel
def equality_row(m, d, k, size):
    """Appends row k of an equality; size: the norm of the errors of all its rows."""
    q, present, h = d.genrow_id[k], d.genrow_present[k] > 0.0, timestep(m)
    equality = m.equality[q]
    solref, solimp = equality.solref, equality.solimp
    erp, cfm = softness(m, equality.erp, equality.cfm, solref, solimp, size, d.genrow_D[k])
    row = append_general_row(m, d, k)
    c, most = -(erp / h) * d.genrow_pos[k], INFINITE
    set_row(m, d, row, present, c, cfm, (-most, most))
    return row.r


@kernel
def size_of_error(d, k, size):
    """Returns the norm of the errors of the rows of one equality, at its first row k; `size` at its other rows.

    size: the result at the row before, which belongs to the same equality unless k is a first row.
    """
    q = d.genrow_id[k]
    if k == 0 or d.genrow_type[k - 1] != EQUALITY or d.genrow_id[k - 1] != q:
        s, e = 0.0, k
        while e < d.ngenrow[0] and d.genrow_type[e] == EQUALITY and d.genrow_id[e] == q:
            s = fma(d.genrow_pos[e], d.genrow_pos[e], s)
            e += 1
        size = sqrt(s)
    return size


@kernel
def append_equality_rows(m, d):
    """Appends all equalities."""
    size = 0.0
    for k in range(d.ngenrow[0]):
        d.genrow_lcprow[k] = NO_ROW
        if d.genrow_type[k] == EQUALITY:
            size = size_of_error(d, k, size)
            if has_capacity(m, d, 1):
                d.genrow_lcprow[k] = equality_row(m, d, k, size)
            else:
                report_full_rows(d)


@kernel
def tendon_loss_row(m, d, k):
    """Appends friction loss of a tendon, general row k."""
    t, present = d.genrow_id[k], d.genrow_present[k] > 0.0
    cfm = loss_softness(m, m.tendon_solref_fri[t], m.tendon_solimp_fri[t], d.genrow_D[k])
    row = append_general_row(m, d, k)
    set_row(m, d, row, present, 0.0, cfm, (d.genrow_lo[k], d.genrow_hi[k]))
    return row.r


@kernel
def ball_limit_row(m, d, k):
    """Appends the limit of a ball, general row k."""
    j, present = d.genrow_id[k], d.genrow_present[k] > 0.0
    joint = m.joint[j]
    err, solref, solimp = d.genrow_pos[k] - d.genrow_margin[k], joint.solref, joint.solimp
    erp, cfm = softness(m, joint.stop_erp, joint.stop_cfm, solref, solimp, err, d.genrow_D[k])
    row = append_general_row(m, d, k)
    c = joint_limit_velocity(m, j, erp, err, row.v)
    set_row(m, d, row, present, c, cfm, (0.0, INFINITE))
    return row.r


@kernel
def tendon_limit_row(m, d, k):
    """Appends the limit of a tendon's length, general row k."""
    t, present, own = d.genrow_id[k], d.genrow_present[k] > 0.0, -1.0  # own: a tendon has no ERP, CFM of its own
    err = d.genrow_pos[k] - d.genrow_margin[k]
    solref, solimp = m.tendon_solref_lim[t], m.tendon_solimp_lim[t]
    erp, cfm = softness(m, own, own, solref, solimp, err, d.genrow_D[k])
    row = append_general_row(m, d, k)
    c = -(erp / timestep(m)) * err
    set_row(m, d, row, present, c, cfm, (0.0, INFINITE))
    return row.r


@kernel
def bounded_rows(m, d):
    """Appends general rows other than equalities: friction loss and limits of tendons, limits of balls."""
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] != EQUALITY:
            if not has_capacity(m, d, 1):
                report_full_rows(d)
            elif d.genrow_type[k] == FRICTION_TENDON:
                d.genrow_lcprow[k] = tendon_loss_row(m, d, k)
            elif d.genrow_type[k] == LIMIT_JOINT:
                d.genrow_lcprow[k] = ball_limit_row(m, d, k)
            else:
                d.genrow_lcprow[k] = tendon_limit_row(m, d, k)
