"""Derivatives of the forces of an LCP: a linear system over the free rows.

With w = A x - b the slack of the rows, rows between their bounds keep w = 0, and rows at a bound keep their x.  If
the bound of friction follows a normal force, sliding friction has x = +-mu x_n:

    (A_FF + A_FS s) dx_F = -dw_F,      dx_S = s dx_n

with dw the change at fixed forces, F the free rows, S the sliding friction and s its slope, +-mu.  If limits are frozen
at the normal forces without friction, these forces have a separate system over the rows that are free without friction,
and the change of the limits is on the right-hand side.
A row that depends linearly on others, up to rounding, has no force rate.

The record p (lcp_rates.py) has for each row: row_free (1: between its bounds), row_slope (s), row_dx, row_pivot.
row_matrix is n x n by rows: entry (i, j) is row_matrix[i n + j].  lcp.findex[i] is the normal row that bounds the
friction row i, -1 for other rows; its bounds are +-(hi x_n + add), with hi = mu.  cfm is the softness of each row.
Source: R. Cottle, J.-S. Pang, R. Stone, "The Linear Complementarity Problem" (1992), sec. 7.2, on how solutions depend
    on the data.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.unsymmetric import dense_rows, factor_unsymmetric, solve_unsymmetric
from featherlane.engine.solver.lcp.sweep.projection import in_cone, mu_of
from featherlane.tools.sensitivity.systems.lcp_cone import nearest_on_cones, project_system_on_cones
from featherlane.tools.sensitivity.systems.switching import FAR


# ---- which rows are free ---------------------------------------------------------------------------------------------
@kernel
def _bounds(d, loads, i):
    """Returns the (lower, upper) bound of the force of row i.

    loads: forces of all rows; those of normal rows set the bounds of friction.
    """
    normal = d.lcp.findex[i]
    if normal >= 0:
        load = fabs(loads[normal])
        # mu |x_n| + add; without a normal force it is `add`, even if mu is infinite
        hi = where(load > 0.0, d.lcp.hi[i] * where(load > 0.0, load, 1.0), 0.0) + d.lcp.add[i]
        lo = -hi
    else:
        lo, hi = d.lcp.lo[i] + 0.0, d.lcp.hi[i] + 0.0  # + 0.0: -0 becomes 0
    return lo, hi


@kernel
def _unbounded_force(d, x, w, i):
    """Returns the force that row i would have without bounds if the other rows kept theirs.

    x: forces of all rows; w: their slack.
    """
    diag = d.lcp.diag[i]
    return x[i] - w[i] / where(diag > 0.0, diag, 1.0)


@kernel
def sort_rows(d, p, x, loads, w, friction):
    """Computes row_free (1: lo < x - w / A_ii < hi) and row_slope (+-mu of sliding friction, else 0) of all rows.

    Args:
        x, w: forces and slack of all rows.
        loads: forces of all rows; those of normal rows set the bounds of friction.
        friction: 0: friction rows are fixed, as in the problem without friction.
    """
    for i in range(d.lcp.n[0]):
        normal = d.lcp.findex[i]
        lo, hi = _bounds(d, loads, i)
        unbounded = _unbounded_force(d, x, w, i)
        # masks: the bounds differ; the force is at its upper bound; at its lower bound
        movable, above, below = lo < hi, unbounded >= hi, unbounded <= lo
        if normal >= 0 and friction == 0:
            movable = false_mask(d)
        p.row_free[i] = where(movable & not_(above | below), 1.0, 0.0)
        slope = 0.0
        if normal >= 0:
            # sliding friction x = +-mu x_n
            mu = where(movable, d.lcp.hi[i], 0.0)
            slope = where(above, mu, where(below, -mu, 0.0))
        p.row_slope[i] = slope


@kernel
def nearest_switch(d, x, loads, w, size, cones):
    """Returns the distance to the next change of the free rows: min |x_i - w_i / A_ii - bound| / size, at most FAR.

    Args:
        x, w: forces and slack of all rows.
        loads: forces of all rows; those of normal rows set the bounds of friction.
        size: size of the forces.
        cones: whether friction is bounded by round cones.
    """
    least = FAR
    for i in range(d.lcp.n[0]):
        lo, hi = _bounds(d, loads, i)
        unbounded = _unbounded_force(d, x, w, i)
        movable, outside = lo < hi, (unbounded >= hi) | (unbounded <= lo)
        # distance from the nearest bound
        beyond = where(unbounded >= hi, unbounded - hi, lo - unbounded)
        within = fmin(unbounded - lo, hi - unbounded)
        distance = where(outside, beyond, within) / size
        # in_cone: row i is friction on a round cone; if mu > 0, `nearest_on_cones` treats it
        if cones and in_cone(d, i):
            movable = movable & (mu_of(d, i) <= 0.0)
        least = where(movable, fmin(least, fabs(distance)), least)
    if cones:
        least = nearest_on_cones(d, x, w, size, least)
    return least


# ---- the system ------------------------------------------------------------------------------------------------------
@kernel
def _set_delassus_row(m, d, p, i):
    """row_matrix[i, :] <- row i of A = Y Y^T without softness; Y has sparse rows over the dofs.

    Row i of Y has the entries Y[rowadr + c] at the dofs col[coladr + c], c < colnum.   Scratch: row_entries, a dense
    row of Y.
    """
    n = d.lcp.n[0]
    for v in range(m.nv):
        p.row_entries[v] = 0.0
    for c in range(d.lcp.colnum[i]):
        p.row_entries[d.lcp.col[d.lcp.coladr[i] + c]] = d.lcp.Y[d.lcp.rowadr[i] + c]
    # A_ij: sum over the dofs of row j of Y_j times Y_i
    for j in range(n):
        coladr, rowadr, product = d.lcp.coladr[j], d.lcp.rowadr[j], 0.0
        for c in range(d.lcp.colnum[j]):
            product = fma(d.lcp.Y[rowadr + c], p.row_entries[d.lcp.col[coladr + c]], product)
        p.row_matrix[i * n + j] = product


@kernel
def form_system(m, d, p, follows, cones):
    """row_matrix <- A + cfm over the free rows, and the unit matrix over the rows that are not free.

    Args:
        follows: 1: sliding friction follows its normal force, so A_FS s is added to the normals' columns.
        cones: 1: sliding friction lies on a round cone.
    """
    n = d.lcp.n[0]
    for i in range(n):
        _set_delassus_row(m, d, p, i)
        start = i * n
        p.row_matrix[start + i] = p.row_matrix[start + i] + d.lcp.cfm[i]
        if follows:
            # column of the normal += column j times s_j: dx_j = s_j dx_n
            for j in range(n):
                normal = d.lcp.findex[j]
                if normal >= 0:
                    p.row_matrix[start + normal] = fma(
                        p.row_matrix[start + j], p.row_slope[j], p.row_matrix[start + normal]
                    )
    if cones:
        project_system_on_cones(d, p)
    for i in range(n):
        free, start = p.row_free[i] > 0.0, i * n
        for j in range(n):
            both = free & (p.row_free[j] > 0.0)
            p.row_matrix[start + j] = where(both, p.row_matrix[start + j], 1.0 if i == j else 0.0)


@kernel
def factor_system(d, p):
    """row_matrix <- its factors; row_pivot <- 1 / pivot, 0 for a row that depends linearly on later rows."""
    factor_unsymmetric(dense_rows(d.lcp.n[0]), dense=1, A=p.row_matrix, inverse=p.row_pivot)


@kernel
def solve_system(d, p):
    """row_dx, a right-hand side, <- derivatives of the free rows' forces; 0 for rows that are not free."""
    for i in range(d.lcp.n[0]):
        p.row_dx[i] = where(p.row_free[i] > 0.0, p.row_dx[i], 0.0)
    # rows and columns of fixed forces are those of the unit matrix
    solve_unsymmetric(dense_rows(d.lcp.n[0]), dense=1, A=p.row_matrix, inverse=p.row_pivot, x=p.row_dx)


@kernel
def follow_normals(d, p, normals, first):
    """row_dx of friction rows that are not free <- s dx_n, the slope times the derivative of the normal force.

    normals: derivatives of the forces of all rows, from entry `first` on.
    """
    for i in range(d.lcp.n[0]):
        normal = d.lcp.findex[i]
        if normal >= 0:
            p.row_dx[i] = where(p.row_free[i] > 0.0, p.row_dx[i], p.row_slope[i] * normals[first + normal])
