"""Dantzig's method for W dense problems of one structure, one after the other, by the pivots of a single problem."""

from featherlane.prelude import *
from featherlane.solver.lcp.pivot.dantzig import solve_dantzig


@kernel
def load_lane(p, lane):
    """The problem of one world, in one_*."""
    n = p.lcp_n[0]
    stride = (n + 7) // 8 * 8
    p.one_n[0] = n
    for i in range(n):
        for j in range(n):
            p.one_A[i * stride + j] = read_lane(p.lcp_A, i * n + j, lane)
        p.one_findex[i] = p.lcp_findex[i]
        p.one_b[i] = read_lane(p.lcp_b, i, lane)
        p.one_lo[i] = read_lane(p.lcp_lo, i, lane)
        p.one_hi[i] = read_lane(p.lcp_hi, i, lane)
        p.one_add[i] = read_lane(p.lcp_add, i, lane)


@kernel
def store_lane(p, lane):
    """What was found for one world; bounds in effect go to lcp_y and lcp_g."""
    for i in range(p.lcp_n[0]):
        write_lane(p.lcp_x, i, lane, p.one_x[i])
        write_lane(p.lcp_w, i, lane, p.one_w[i])
        write_lane(p.lcp_y, i, lane, p.one_lower[i])
        write_lane(p.lcp_g, i, lane, p.one_upper[i])
    write_lane(p.lcp_status, 0, lane, 1.0 * p.one_status[0])
    write_lane(p.lcp_niter, 0, lane, 1.0 * p.one_niter[0])
    write_lane(p.lcp_residual, 0, lane, p.one_residual[0])


@stage
def solve_lane_by_lane(p, policy, passes, start):
    """Every world's problem, with the options of Dantzig's method.

    Reads:  lcp_n, lcp_A, lcp_b, lcp_lo, lcp_hi, lcp_findex, lcp_add.
    Writes: lcp_x (nlcp,) [N, N m], lcp_w (nlcp,) [m/s^2, rad/s^2], the bounds in effect in lcp_y and lcp_g, lcp_niter,
            lcp_status, lcp_residual; one_n, one_A, one_b, one_lo, one_hi, one_findex, one_add; what `solve_dantzig`
            writes.
    """
    for lane in range(width(p)):
        load_lane(p, lane)
        solve_dantzig(p, policy, passes, start)
        store_lane(p, lane)
