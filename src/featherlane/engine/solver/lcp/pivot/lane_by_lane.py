"""Dantzig's method for W dense problems of one structure, one after another, by the pivots of a single problem.

p: the record of the problems.  lcp.*: all problems, with a value per lane; one.*: the problem of one lane; lane: the
world's number in the tile.  Both have the rows n, A, b, bounds lo, hi, friction findex and add, the solution x, w, and
status, residual, niter (lcp/fields.py).
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.engine.solver.lcp.pivot.dantzig import solve_dantzig


@kernel
def load_lane(p, lane):
    """Copies the problem of the world in `lane` to one.*; rows of one.A are padded to a multiple of eight."""
    n = p.lcp.n[0]
    stride = (n + 7) // 8 * 8
    p.one.n[0] = n
    for i in range(n):
        for j in range(n):
            p.one.A[i * stride + j] = read_lane(p.lcp.A, i * n + j, lane)
        p.one.findex[i] = p.lcp.findex[i]
        p.one.b[i] = read_lane(p.lcp.b, i, lane)
        p.one.lo[i] = read_lane(p.lcp.lo, i, lane)
        p.one.hi[i] = read_lane(p.lcp.hi, i, lane)
        p.one.add[i] = read_lane(p.lcp.add, i, lane)


@kernel
def store_lane(p, lane):
    """Copies the solution, the bounds in effect and the diagnostics from one.* to `lane` of lcp.*."""
    for i in range(p.lcp.n[0]):
        write_lane(p.lcp.x, i, lane, p.one.x[i])
        write_lane(p.lcp.w, i, lane, p.one.w[i])
        write_lane(p.lcp.lower, i, lane, p.one.lower[i])
        write_lane(p.lcp.upper, i, lane, p.one.upper[i])
    write_lane(p.lcp.status, 0, lane, 1.0 * p.one.status[0])
    write_lane(p.lcp.niter, 0, lane, 1.0 * p.one.niter[0])
    write_lane(p.lcp.residual, 0, lane, p.one.residual[0])


@stage(p=PROBLEM)
def solve_lane_by_lane(p, policy, passes, start):
    """Solves every world's problem, with the options of Dantzig's method.

    Reads:  lcp.n, lcp.A, lcp.b, lcp.lo, lcp.hi, lcp.findex, lcp.add.
    Writes: lcp.x (nlcp,) [N, N m], lcp.w (nlcp,) [m/s^2, rad/s^2]; lcp.*, with the bounds in effect in lcp.lower and
            lcp.upper; one.*; the outputs of `solve_dantzig`.
    """
    for lane in range(width(p)):
        load_lane(p, lane)
        solve_dantzig(p, policy, passes, start)
        store_lane(p, lane)
