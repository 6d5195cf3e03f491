"""A step's forces under the contact model lcp: the rows, a solver, and what follows from its solution."""

from __future__ import annotations

from ...lanes import clip, fabs, fma, kernel, real, stage
from ..history import record
from .assembly import make_lcp
from .metric import accelerate, sum_rows


@kernel
def store_forces(d):
    """Forces of the rows of the constraint layer; of contacts along normal and tangents, moments about them."""
    zero = real(d, 0.0)
    for k in range(d.ndofrow[0]):
        d.dofrow_force[k] = d.lcp_x[d.dofrow_lcprow[k]] if d.dofrow_lcprow[k] >= 0 else zero
    for k in range(d.ngenrow[0]):
        d.genrow_force[k] = d.lcp_x[d.genrow_lcprow[k]] if d.genrow_lcprow[k] >= 0 else zero
    for k in range(d.ncon_slot[0]):
        r = d.con_lcprow[k]
        for c in range(6):
            d.con_force[6 * k + c] = d.lcp_x[r + c] if r >= 0 and c < d.con_dim[k] else zero


@kernel
def row_times(d, r):
    """y_r . z."""
    o, e, s = d.lcp_coladr[r], d.lcp_rowadr[r], real(d, 0.0)
    for p in range(d.lcp_colnum[r]):
        s = fma(d.lcp_Y[e + p], d.lcp_z[d.lcp_col[o + p]], s)
    return s


@kernel
def sweep(d):
    for r in range(d.lcp_n[0]):
        o, e, x = d.lcp_coladr[r], d.lcp_rowadr[r], d.lcp_x[r]
        lo, hi = d.lcp_lo[r], d.lcp_hi[r]
        if d.lcp_findex[r] >= 0:
            hi = fma(hi, fabs(d.lcp_x[d.lcp_findex[r]]), d.lcp_add[r])
            lo = -hi
        y = x + (d.lcp_b[r] - row_times(d, r) - d.lcp_cfm[r] * x) / d.lcp_diag[r]
        y = clip(y, lo, hi)
        d.lcp_x[r] = y
        for p in range(d.lcp_colnum[r]):
            i = d.lcp_col[o + p]
            d.lcp_z[i] = fma(d.lcp_Y[e + p], y - x, d.lcp_z[i])


@stage
def solve_lcp(m, d):
    make_lcp(m, d)
    zero = real(d, 0.0)
    if d.con_overflow[0] == 0:
        for r in range(d.lcp_n[0]):
            d.lcp_x[r] = zero
        sum_rows(m, d)
        for _ in range(m.opt_lcp_iterations):
            sweep(d)
        sum_rows(m, d)
        accelerate(m, d)
        store_forces(d)
        d.solver_niter[0] = real(d, 1.0 * m.opt_lcp_iterations)
        d.solver_residual[0] = zero
        d.solver_gap[0] = zero
        record(d, 0, zero, zero, zero, zero)
