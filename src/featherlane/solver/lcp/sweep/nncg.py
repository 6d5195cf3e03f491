"""Nonsmooth nonlinear conjugate gradients (NNCG), W problems of one structure at once.

A projected Gauss-Seidel sweep S(x) is a step of a fixed-point iteration.  Its negative change is used as the gradient
of a function whose minimum is the fixed point, for the conjugate directions of Fletcher and Reeves:

    x+ = S(x),  d = x+ - x,   beta = d^T D d / (the same of the iteration before),   x <- x+ + beta p,  p <- beta p + d

D is the diagonal of A.  If beta exceeds 1, the sweep is kept and p = 0.  A fixed point is one of the sweeps, so the
limits are *consistent*, in pyramids or on cones (pgs.py).  The last iteration is a sweep alone: its x is within the
bounds.

A world stops after a sweep by the test of `pgs`.
Source: M. Silcowitz-Hansen, S. Niebe, K. Erleben, "A nonsmooth nonlinear conjugate gradient method for interactive
    contact force problems", The Visual Computer 26 (2010); here in the metric D, so that beta does not depend on the
    units of the rows.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.fields import PROBLEM
from featherlane.solver.lcp.method import FRICTION, ROWS, TOLERANCE, Count, Method
from featherlane.solver.lcp.sweep.order import start_order
from featherlane.solver.lcp.sweep.pgs import record_sweep, stops_after_sweep, sweep_rows
from featherlane.solver.lcp.sweep.product import sum_factored_rows
from featherlane.solver.lcp.sweep.projection import set_steps
from featherlane.solver.lcp.sweep.residual import finish

OMEGA = 1.0  # relaxation factor of the sweeps: with 1.3, towers take twice as many


@kernel
def remember_iterate(p):
    """Copies x and z before a sweep to lcp.old and lcp.z_old."""
    for i in range(p.lcp.n[0]):
        p.lcp.old[i] = p.lcp.x[i] + 0.0
    if p.lcp.dense[0] == 0:
        for j in range(p.nlcpz):
            p.lcp.z_old[j] = p.lcp.z[j] + 0.0


@kernel
def squared_change(p):
    """Returns d^T D d of the change d of x by a sweep."""
    s = 0.0
    for i in range(p.lcp.n[0]):
        d = p.lcp.x[i] - p.lcp.old[i]
        s = fma(d, d / p.lcp.step[i], s)
    return s


@kernel
def clear_conjugate_direction(p):
    """Sets the direction to 0."""
    for i in range(p.lcp.n[0]):
        p.lcp.y[i] = 0.0
    if p.lcp.dense[0] == 0:
        for j in range(p.nlcpz):
            p.lcp.z_change[j] = 0.0


@kernel
def advance(x, old, direction, i, beta, keeps, live):
    """Moves x_i by beta times the direction, and adds the change of the sweep to the direction, in live worlds."""
    p = beta * direction[i]
    q = where(keeps, p + (x[i] - old[i]), 0.0)
    x[i] = where(live & keeps, x[i] + p, x[i])
    direction[i] = where(live, q, direction[i])


@kernel
def extrapolate_sweep(p, beta, keeps, live):
    """Moves x, and z = Y^T x with it, along the conjugate direction; a world that does not keep it starts it again."""
    for i in range(p.lcp.n[0]):
        advance(p.lcp.x, p.lcp.old, p.lcp.y, i, beta, keeps, live)
    if p.lcp.dense[0] == 0:
        for j in range(p.nlcpz):
            advance(p.lcp.z, p.lcp.z_old, p.lcp.z_change, j, beta, keeps, live)


@kernel
def nncg(p, iterations, cone):
    """Iterates from lcp.x until every world has converged, at most `iterations` times.

    Reads:  the problem; lcp.parameter: tolerance (negative: no test).
    Writes: lcp.*; stat_residual if iterations are recorded.
    Cost:   per iteration a sweep of `pgs`, and a few operations per row and column of Y.
    """
    p.lcp.parameter[1] = OMEGA
    set_steps(p, cone)
    sum_factored_rows(p, p.lcp.x)
    start_order(p, quickstep=0)
    clear_conjugate_direction(p)
    record_sweep(p, 0, cone)
    count, before = 0.0, 0.0
    live = count <= 0.0
    for n in range(iterations):
        if not any_(live):
            break
        remember_iterate(p)
        far = sweep_rows(p, cone, live)
        count = count + where(live, 1.0, 0.0)
        live = live & not_(stops_after_sweep(p, far, cone, live))
        record_sweep(p, n + 1, cone)
        if n + 1 < iterations:
            size = squared_change(p)
            beta = where(before > 0.0, size / where(before > 0.0, before, 1.0), 0.0)
            extrapolate_sweep(p, beta, beta <= 1.0, live)
            before = size
    finish(p, cone)
    p.lcp.niter[0] = count


@stage(p=PROBLEM)
def solve_nncg(p, iterations, cone):
    """Solves standalone problems by `nncg`.

    Reads:  lcp.n, lcp.lo, lcp.hi, lcp.findex, lcp.b, lcp.add, lcp.parameter, lcp.x; lcp.A or lcp.Y and its pattern.
    Writes: lcp.x (nlcp,) [N, N m], lcp.w (nlcp,) [m/s^2, rad/s^2], lcp.*; stat_residual if iterations are recorded.
    """
    nncg(p, iterations, cone)


METHOD = Method(
    "nncg",
    solve_nncg,
    form=ROWS,
    numbers={"iterations": Count(1000, "largest number of sweeps"), "friction": FRICTION},
    parameters={"tolerance": TOLERANCE},
)
