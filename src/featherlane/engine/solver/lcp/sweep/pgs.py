"""Projected Gauss-Seidel with over-relaxation (SOR), W problems of one structure at once.

A visit updates one row with all others fixed: over-relaxed by omega, then clipped to its current bounds,

    x_i <- clip(x_i - omega w_i / A_ii, lo_i, hi_i),   w_i = (A x - b)_i

With friction on a cone, the friction rows of a contact are set together after its normal: a step along the negative
gradient, then a projection to the disc of radius x_n + a (projection.py).  In both cases friction limits follow the
normals at every visit, so fixed points solve the problem with *consistent* limits, |x_t| <= mu x_n with the final x_n.
With cones, the reported bounds are those of the pyramid around each cone.

A world stops after a sweep in which no row moved by more than the tolerance, relative to the size of x, if its residual
(residual.py) is within the tolerance as well.
Symbols: p: the record of the problems;  i: a row, of lcp.n;  lcp.findex_i: its normal row if it is friction, else -1;
    k: a normal row, with `count` friction rows k + 1, k + 2, ...;
    live: mask of worlds that continue;  cone: 1: friction on cones, 0: pyramids;  lcp.step: 1 / A_ii, see
    projection.py;  lcp.parameter: tolerance, omega.
    `delassus_row_product(p, x, i)`: (A x)_i;  lcp.z = Y^T x, from which it is computed if A = Y Y^T + diag(cfm): every
    change of x updates z (`add_row_change`).   `project_box(p, x, i, u)`: u clipped to the bounds of row i at x;
    `project_disc(p, u, k, count, normal)`: projects friction rows of u in place;  `in_cone`: row i is one of them.
Source: Cottle, Pang, Stone, "The Linear Complementarity Problem", 1992, sec. 5.2 (projected SOR); with `quickstep` the
order of ODE's QuickStep (order.py), which makes 20 such sweeps from x = 0 with omega = 1.3 and no test.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.engine.solver.lcp.method import FRICTION, ROWS, TOLERANCE, Choice, Count, Method, Number
from featherlane.engine.solver.lcp.sweep.order import shuffle_order, start_order
from featherlane.engine.solver.lcp.sweep.product import (
    add_row_change,
    compute_w_from_z,
    delassus_row_product,
    sum_factored_rows,
)
from featherlane.engine.solver.lcp.sweep.projection import (
    friction_count,
    friction_rows,
    in_cone,
    project_box,
    project_disc,
    set_steps,
)
from featherlane.engine.solver.lcp.sweep.residual import (
    finish,
    lcp_residual,
    record_residual,
    solution_size,
    stopping_residual,
)


@kernel
def move_row(p, i, x, live):
    """Sets x_i to the value x in live worlds, and updates lcp.z; returns |change of x_i|, 0 in other worlds."""
    change = where(live, x - p.lcp.x[i], 0.0)
    p.lcp.x[i] = where(live, x, p.lcp.x[i])
    add_row_change(p, i, change)
    return fabs(change)


@kernel
def relaxed_row(p, i):
    """Returns x_i - omega w_i / A_ii, the over-relaxed position of row i before its projection."""
    w = delassus_row_product(p, p.lcp.x, i) - p.lcp.b[i]
    omega = p.lcp.parameter[1]
    return fma(-(omega * p.lcp.step[i]), w, p.lcp.x[i])


@kernel
def visit_disc(p, k, count, live):
    """Updates the friction rows of normal row k together; returns their largest |change|.  Overwrites lcp.target."""
    # lcp.target: first the relaxed x of each row, then its projection to the disc at the normal force x_k
    for i in friction_rows(k, count):
        p.lcp.target[i] = relaxed_row(p, i)
    project_disc(p, p.lcp.target, k, count, p.lcp.x[k])
    largest = 0.0
    for i in friction_rows(k, count):
        largest = fmax(move_row(p, i, p.lcp.target[i], live), largest)
    return largest


@kernel
def sweep_rows(p, cone, live):
    """Updates all rows once, in lcp.order; returns the largest |change of x_i|."""
    largest = 0.0
    for position in range(p.lcp.n[0]):
        i = p.lcp.order[position]
        if cone == 0 or not in_cone(p, i):
            x = project_box(p, p.lcp.x, i, relaxed_row(p, i))
            largest = fmax(move_row(p, i, x, live), largest)
        # the friction rows of a cone are visited with their normal row
        if cone != 0 and p.lcp.findex[i] < 0:
            largest = fmax(visit_disc(p, i, friction_count(p, i), live), largest)
    return largest


@kernel
def stops_after_sweep(p, largest_change, cone, live):
    """Returns a mask of live worlds that have converged: the largest change and the residual are within the tolerance.

    largest_change: largest |change of x_i| of the sweep.  Overwrites lcp.w.
    """
    tolerance = stopping_residual(p)
    stops = live & (largest_change <= tolerance * solution_size(p, p.lcp.x))
    if any_(stops):
        # with the z of the sweeps: a recomputed z would change the rounding of worlds that continue
        compute_w_from_z(p)
        stops = stops & (lcp_residual(p, p.lcp.x, p.lcp.w, cone) <= tolerance)
    return stops


@kernel
def record_sweep(p, sweep, cone):
    """Records the residual after `sweep` sweeps, if iteration statistics are on.  Overwrites lcp.w."""
    if p.want_history:
        compute_w_from_z(p)
        record_residual(p, sweep, lcp_residual(p, p.lcp.x, p.lcp.w, cone))


@kernel
def lcp_pgs(p, iterations, quickstep, cone):
    """Sweeps from lcp.x until every world has converged, at most `iterations` times.

    Reads:  the problem; lcp.parameter: tolerance (negative: no test) and omega; lcp.seed with `quickstep`.
    Writes: lcp.x, lcp.w, lcp.z, lcp.status, lcp.residual, lcp.niter; stat_residual if iterations are recorded.
    Scratch: lcp.step, lcp.order, lcp.target.
    Cost:   per sweep n^2 products of a dense A, twice the entries of Y of a factored one.
    """
    set_steps(p, cone)  # writes lcp.step
    sum_factored_rows(p, p.lcp.x)  # writes lcp.z
    start_order(p, quickstep)  # writes lcp.order
    record_sweep(p, sweep=0, cone=cone)
    sweeps = 0.0  # in each world, so far
    live = true_mask(p)
    for sweep in range(iterations):
        if not any_(live):
            break
        if quickstep != 0:
            shuffle_order(p, sweep)
        largest_change = sweep_rows(p, cone, live)  # updates lcp.x, lcp.z
        sweeps = sweeps + where(live, 1.0, 0.0)
        live = live & not_(stops_after_sweep(p, largest_change, cone, live))
        record_sweep(p, sweep + 1, cone)
    finish(p, cone)
    p.lcp.niter[0] = sweeps


@stage(p=PROBLEM)
def solve_pgs(p, iterations, quickstep, cone, seed):
    """Solves standalone problems by `lcp_pgs`; the generator that shuffles rows starts at `seed`.

    Reads:  lcp.n, lcp.lo, lcp.hi, lcp.findex, lcp.b, lcp.add, lcp.parameter, lcp.x; lcp.A or lcp.Y and its pattern.
    Writes: lcp.x (nlcp,) [N, N m], lcp.w (nlcp,) [m/s^2, rad/s^2], lcp.*; stat_residual if iterations are recorded.
    """
    p.lcp.seed[0] = seed
    lcp_pgs(p, iterations, quickstep, cone)


METHOD = Method(
    "pgs",
    solve_pgs,
    form=ROWS,
    numbers={
        "iterations": Count(1000, "largest number of sweeps"),
        "order": Choice("rows", ("rows", "quickstep"), "order of rows: given, or shuffled as in ODE's QuickStep"),
        "friction": FRICTION,
        "seed": Count(0, "seed of the order quickstep"),
    },
    parameters={
        "tolerance": TOLERANCE,
        "relaxation": Number(1.0, 0.0, 2.0, "relaxation factor omega: 1 is Gauss-Seidel, larger values over-relax"),
    },
)
