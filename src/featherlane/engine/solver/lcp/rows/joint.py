"""Rows of the LCP other than contacts: equalities, friction loss, limits, from the rows of the constraint layer.

    equality        J v' = -erp / h r, unbounded
    friction loss   J v' = 0, |x| <= loss
    limit           J v' >= -erp / h r, x >= 0; or, if it bounces, >= -bounce J v

with r the position error minus the margin.  A row without its own softness has the model's.
row_pos is the error of a row of the constraint layer, row_margin its margin, row_id its equality, joint, dof or tendon,
row_lo and row_hi the bounds of a friction loss, -loss and loss.
Symbols: k: a row of the constraint layer (row_*), with D = 1 / R;  present: mask of worlds with it;
    start, n: columns of the LCP's row, lcp.col[start], ... (rows.py);  d.primal.search: J of the next row, by dof.
    Each append_* returns the number of the new row, if not otherwise stated.  row: a `NewRow`, with its number row.r
    and row.v = J v.  INFINITE: no bound;  row_lcprow[k]: number of the LCP's row, or NO_ROW.
    `append_chain` lists dof i and its ancestors, `list_row` those of a row (chains.py); they return n;
    `append_jacobian_row`: the next row of the LCP, from primal.search;  `set_row`: its right-hand side and bounds.
    `row_parameters` returns (solref, solimp) of a row, `softness` its (erp, cfm), `loss_cfm` that of friction loss.
Source: ODE manual, sec. "Stops and motor parameters", "Soft constraint: Constraint Force Mixing (CFM)".
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.chains import FIRST, append_chain, list_row
from featherlane.engine.constraint.general import row_entries, row_parameters
from featherlane.engine.solver.lcp.rows.rows import (
    INFINITE,
    NO_ROW,
    append_jacobian_row,
    clear_column_marks,
    first_free_column,
    reserve_rows,
    set_row,
)
from featherlane.engine.solver.lcp.rows.softness import loss_cfm, softness


# ---- one dof -------------------------------------------------------------------------------------------------------
@kernel
def append_dof_row(m, d, i, J):
    """Appends a row whose Jacobian has one entry, J at dof i; returns a `NewRow` for `set_row`.

    Its columns are dof i and its ancestors, because its row of Y = J L^-1 D^-1/2 has entries there.  The caller checks
    the capacity.
    """
    start = first_free_column(d)
    n = append_chain(m, d.lcp.col, d.dual.mark, i, FIRST, start, n=0)
    clear_column_marks(d, start, n)  # `append_chain` has set them
    for column in range(start, start + n):  # J is 0 at the ancestors of dof i
        d.primal.search[d.lcp.col[column]] = 0.0
    d.primal.search[i] = J
    return append_jacobian_row(m, d, start, n)


# ---- rows of the constraint layer ----------------------------------------------------------------------------------
@kernel
def append_row(m, d, k):
    """Appends a row with J of row k; returns a `NewRow` for `set_row`.  The caller checks the capacity."""
    start = first_free_column(d)
    n = list_row(m, d, k, d.lcp.col, d.dual.mark, start)
    for column in range(start, start + n):  # J is 0 at ancestors that row k has no entry for
        d.primal.search[d.lcp.col[column]] = 0.0
    for e in row_entries(d, k):
        d.primal.search[d.row_dof[e]] = d.row_J[e]
    return append_jacobian_row(m, d, start, n)


@kernel
def append_equality_row(m, d, k, error_norm):
    """Appends row k of an equality; returns its number in the LCP.

    error_norm: norm of the errors of all rows of the equality, at which its impedance is evaluated.
    """
    equality_id = d.row_id[k]
    present = d.row_present[k] > 0.0
    h = timestep(m)
    equality = m.equality[equality_id]
    solref, solimp = equality.solref, equality.solimp
    erp, cfm = softness(m, equality.erp, equality.cfm, solref, solimp, error_norm, d.row_D[k])
    row = append_row(m, d, k)
    target = -(erp / h) * d.row_pos[k]
    set_row(m, d, row, present, c=target, cfm=cfm, bounds=(-INFINITE, INFINITE))
    return row.r


@kernel
def equality_error_norm(d, k, previous):
    """Returns the norm of the errors of all rows of the equality of row k.

    It is computed if k is the first of these rows.  Otherwise `previous` is returned, the norm of the row before.
    """
    equality_id = d.row_id[k]
    # the row before k belongs to another equality, or to none
    if k == 0 or d.row_type[k - 1] != EQUALITY or d.row_id[k - 1] != equality_id:
        square = 0.0
        e = k
        while e < d.nrow[0] and d.row_type[e] == EQUALITY and d.row_id[e] == equality_id:
            square = fma(d.row_pos[e], d.row_pos[e], square)
            e += 1
        previous = sqrt(square)
    return previous


@kernel
def append_equality_rows(m, d):
    """Appends the rows of all equalities; sets their row_lcprow, and that of all other rows to NO_ROW."""
    error_norm = 0.0
    for k in range(d.nrow[0]):
        d.row_lcprow[k] = NO_ROW
        if d.row_type[k] == EQUALITY:
            error_norm = equality_error_norm(d, k, error_norm)
            if reserve_rows(m, d, rows=1):
                d.row_lcprow[k] = append_equality_row(m, d, k, error_norm)


@kernel
def append_loss(m, d, k):
    """Appends row k, the friction loss of a dof or tendon; returns its number in the LCP."""
    solref, solimp = row_parameters(m, d.row_type[k], d.row_id[k])
    cfm = loss_cfm(m, solref, solimp, d.row_D[k])
    row = append_row(m, d, k)
    set_row(m, d, row, d.row_present[k] > 0.0, c=0.0, cfm=cfm, bounds=(d.row_lo[k], d.row_hi[k]))
    return row.r


@kernel
def append_limit(m, d, k):
    """Appends row k, the limit of a joint or of a tendon's length; returns its number in the LCP."""
    kind, i = d.row_type[k], d.row_id[k]
    err = d.row_pos[k] - d.row_margin[k]  # negative beyond the limit
    solref, solimp = row_parameters(m, kind, i)
    # a tendon has no ERP and CFM: negative values stand for the model's
    own_erp, own_cfm = -1.0, -1.0
    if kind == LIMIT_JOINT:
        own_erp, own_cfm = m.jnt_stop_erp[i], m.jnt_stop_cfm[i]
    erp, cfm = softness(m, own_erp, own_cfm, solref, solimp, err, d.row_D[k])
    row = append_row(m, d, k)
    target = -(erp / timestep(m)) * err
    if kind == LIMIT_JOINT:
        # bounces off with -bounce v if that is more
        bounce = m.jnt_stop_bounce[i]
        target = where((bounce > 0.0) & (row.v < 0.0), fmax(target, -(bounce * row.v)), target)
    set_row(m, d, row, d.row_present[k] > 0.0, c=target, cfm=cfm, bounds=(0.0, INFINITE))
    return row.r


@kernel
def append_bounded_rows(m, d, first):
    """Appends friction loss and limits, from row `first` of the constraint layer on; sets their row_lcprow."""
    for k in range(first, d.nrow[0]):
        kind = d.row_type[k]
        if kind != EQUALITY and reserve_rows(m, d, rows=1):
            if kind in (FRICTION_DOF, FRICTION_TENDON):
                d.row_lcprow[k] = append_loss(m, d, k)
            else:
                d.row_lcprow[k] = append_limit(m, d, k)
