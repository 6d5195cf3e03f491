"""Accelerated projected gradient descent (Nesterov) with restarts, W problems of one structure at once.

    x+ = P(y - t D^-1 (A y - b)),   y+ = x+ + beta (x+ - x),   beta = (c - 1) / (c + 2)

D is the diagonal of A.  Each world has a separate step t.  The step is taken if the curvature along it allows,
t d^T A d <= d^T D d with d = x+ - y, else the world stays and tries a shorter one; t grows a little with each step.
c counts steps; it restarts at 1 if a step leads against the gradient.  A d is the only product of a step: A x and A y
are sums of such products.  The iterate with the smallest residual is kept.

A fixed point of the iteration solves

    pyramid   the boxed LCP with consistent limits: P clips normals first, then friction at the resulting limits.
              The limits depend on x, so this minimises no function; momentum may harm, and is then switched off
    cone      Coulomb's law on the cone |s| <= x_n + a (projection.py): P projects on the whole cone, and |w_s| is added
              to the normal's w (De Saxce and Feng); otherwise sliding contacts would separate at mu times their speed

Buffers: lcp.y: y;  lcp.g: A y - b;  lcp.w: A x - b;  lcp.dx: d = x+ - y;  lcp.dw: A d;  lcp.target: x+;
    lcp.best: the best x;  lcp.step: 1 / D, on cones with one D for a contact in the metric of s (`set_cone_steps`).
`mu_of`, `length_across`: mu_i of a row, |s| of the friction rows behind a normal row.  `in_cone`: row i is one of them.
`project_box(p, x, i, u)`: u clipped to the bounds of row i at x;  `project_cone(p, u, k, count)`: projects rows of u.
Symbols: p: the record of the problems;  i: a row, of lcp.n;  lcp.findex_i: its normal row if it is friction, else -1;
    k: a normal row with `count` friction rows behind it;
    cone: 1: friction on cones, 0: pyramids.
Source: Mazhar, Heyn, Negrut, Tasora, "Using Nesterov's method to accelerate multibody dynamics with friction and
contact", ACM TOG 34 (2015), there for the cone without De Saxce's term; O'Donoghue and Candes, "Adaptive restart for
accelerated gradient schemes", 2015; De Saxce and Feng, Math. Comput. Modelling 28 (1998).
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.engine.solver.lcp.method import FRICTION, ROWS, TOLERANCE, Count, Method
from featherlane.engine.solver.lcp.sweep.product import compute_w, multiply_delassus
from featherlane.engine.solver.lcp.sweep.projection import (
    TINY,
    friction_count,
    friction_rows,
    in_cone,
    length_across,
    mu_of,
    project_box,
    project_cone,
    set_cone_steps,
    set_steps,
)
from featherlane.engine.solver.lcp.sweep.residual import finish, lcp_residual, record_residual, stopping_residual

GROWTH = 1.02  # factor after an accepted step
MARGIN = 0.95  # fraction of the longest step that the last curvature allows
LONGEST = 4.0  # largest step t, which multiplies D^-1
PATIENCE = 300.0  # steps without a smaller residual, after which momentum ends


# ---- the projected step ----------------------------------------------------------------------------------------------
@kernel
def step_box(p, i, t):
    """Sets lcp.target_i = P(y_i - t step_i g_i), the position of row i alone after a step of length t."""
    target = fma(-(t * p.lcp.step[i]), p.lcp.g[i], p.lcp.y[i])
    p.lcp.target[i] = project_box(p, p.lcp.target, i, target)


@kernel
def step_cone(p, k, count, t):
    """Sets lcp.target = P(y - t step (g + slip)), the positions of normal row k and its friction rows after a step.

    slip = |w_s|, the length of mu_i g_i over the friction rows, is added to the gradient of the normal row only.
    """
    for i in friction_rows(k, count):
        # mu_i (mu_i g_i): `length_across` divides by mu_i, so slip is the length of mu_i g_i = w_s
        p.lcp.target[i] = mu_of(p, i) * p.lcp.g[i] * mu_of(p, i)
    slip = length_across(p, p.lcp.target, k, count)
    p.lcp.target[k] = fma(-(t * p.lcp.step[k]), p.lcp.g[k] + slip, p.lcp.y[k])
    for i in friction_rows(k, count):
        p.lcp.target[i] = fma(-(t * p.lcp.step[i]), p.lcp.g[i], p.lcp.y[i])
    project_cone(p, p.lcp.target, k, count)


@kernel
def projected_step(p, t, cone):
    """lcp.target <- x+ = P(y - t D^-1 (A y - b)), lcp.dx <- d = x+ - y: the projected step of length t from y."""
    # normals first, as the limits of friction rows alone follow them; cones with their normal
    for k in range(p.lcp.n[0]):
        if p.lcp.findex[k] < 0:
            count = friction_count(p, k) if cone != 0 else 0
            if count > 0:
                step_cone(p, k, count, t)
            else:
                step_box(p, k, t)
    for i in range(p.lcp.n[0]):
        if p.lcp.findex[i] >= 0 and (cone == 0 or not in_cone(p, i)):
            step_box(p, i, t)
    for i in range(p.lcp.n[0]):
        p.lcp.dx[i] = p.lcp.target[i] - p.lcp.y[i]


@kernel
def direction_curvature(p):
    """Sets lcp.dw = A d; returns (curvature d^T A d, square d^T D d) for d in lcp.dx."""
    multiply_delassus(p, p.lcp.dx, p.lcp.dw)
    curvature, square = 0.0, 0.0
    for i in range(p.lcp.n[0]):
        d = p.lcp.dx[i]
        curvature = fma(d, p.lcp.dw[i], curvature)
        square = fma(d, d / p.lcp.step[i], square)
    return curvature, square


# ---- the new iterate -------------------------------------------------------------------------------------------------
@kernel
def goes_uphill(p):
    """Returns a mask of worlds that move from x to x+ against the projected step d: d^T D (x+ - x) < 0."""
    slope = 0.0
    for i in range(p.lcp.n[0]):
        d = p.lcp.dx[i]
        D_d = d / p.lcp.step[i]
        x_change = (p.lcp.y[i] - p.lcp.x[i]) + d  # x+ - x
        slope = fma(D_d, x_change, slope)
    return slope < 0.0


@kernel
def extrapolate(p, beta, taken):
    """Moves worlds of the mask `taken` to x+ = y + d and y+ = x+ + beta (x+ - x), with their w and g = A y+ - b."""
    for i in range(p.lcp.n[0]):
        x_new, w_new = p.lcp.y[i] + p.lcp.dx[i], p.lcp.g[i] + p.lcp.dw[i]
        y_new, g_new = fma(beta, x_new - p.lcp.x[i], x_new), fma(beta, w_new - p.lcp.w[i], w_new)
        p.lcp.x[i], p.lcp.w[i] = where(taken, x_new, p.lcp.x[i]), where(taken, w_new, p.lcp.w[i])
        p.lcp.y[i], p.lcp.g[i] = where(taken, y_new, p.lcp.y[i]), where(taken, g_new, p.lcp.g[i])


@kernel
def keep_best(p, better):
    """Copies x to lcp.best in worlds of the mask `better`."""
    if any_(better):
        for i in range(p.lcp.n[0]):
            p.lcp.best[i] = where(better, p.lcp.x[i], p.lcp.best[i])


@kernel
def start_apgd(p, cone):
    """Sets lcp.step, lcp.w = A x - b, and y, g, lcp.best to x, w, x; returns the residual of the initial x."""
    if cone != 0:
        set_cone_steps(p)
    else:
        set_steps(p, cone=0)
    compute_w(p)
    for i in range(p.lcp.n[0]):
        p.lcp.y[i], p.lcp.g[i], p.lcp.best[i] = p.lcp.x[i], p.lcp.w[i], p.lcp.x[i]
    return lcp_residual(p, p.lcp.x, p.lcp.w, cone)


@kernel
def apgd(p, iterations, cone):
    """Accelerated projected gradient descent for the LCP, from lcp.x until convergence, at most `iterations` times.

    Reads:  the problem; lcp.parameter: tolerance (negative: no test).
    Writes: lcp.x, lcp.w, lcp.status, lcp.residual, lcp.niter; stat_residual if iterations are recorded.
    Scratch: lcp.y, lcp.g, lcp.dx, lcp.dw, lcp.target, lcp.best, lcp.step, lcp.z.
    Cost:   per step one product with A.
    """
    tolerance = stopping_residual(p)
    best_residual = start_apgd(p, cone)
    t = 1.0
    c = 1.0  # steps since the last restart of the momentum
    steps = 0.0  # in each world, so far
    # steps since the residual last fell below its minimum: above PATIENCE there is no momentum, above 2 PATIENCE it is
    # tried again
    idle_steps = 0.0
    live = not_(best_residual <= tolerance)  # also true for NaN
    record_residual(p, k=0, residual=best_residual)
    for iteration in range(iterations):
        if not any_(live):
            break
        projected_step(p, t, cone)  # writes d to lcp.dx
        curvature, square = direction_curvature(p)  # writes A d to lcp.dw
        taken = live & (t * curvature <= square)  # t d^T A d <= d^T D d
        restart = goes_uphill(p) | (idle_steps > PATIENCE)  # of the momentum: beta = 0
        c = where(taken, where(restart, 1.0, c + 1.0), c)
        beta = where(restart, 0.0, (c - 1.0) / (c + 2.0))
        extrapolate(p, beta, taken)  # writes x, w, y, g
        # t grows after a taken step; else t d^T A d <= d^T D d with a margin, and t is at least a tenth shorter
        curved = curvature > TINY  # without curvature, t is not limited
        shorter = fmin(MARGIN * square / where(curved, curvature, 1.0), 0.9 * t)
        t = where(taken, fmin(GROWTH * t, LONGEST), where(curved, shorter, t))
        residual = lcp_residual(p, p.lcp.x, p.lcp.w, cone)
        record_residual(p, iteration + 1, residual)
        better = taken & (residual < best_residual)
        keep_best(p, better)
        idle_steps = where(better | (idle_steps > PATIENCE + PATIENCE), 0.0, idle_steps + 1.0)
        best_residual = where(better, residual, best_residual)
        steps = steps + where(live, 1.0, 0.0)
        live = live & not_(best_residual <= tolerance)
    for i in range(p.lcp.n[0]):
        p.lcp.x[i] = p.lcp.best[i]
    finish(p, cone)
    p.lcp.niter[0] = steps


@stage(p=PROBLEM)
def solve_apgd(p, iterations, cone):
    """Solves standalone problems by `apgd`.

    Reads:  lcp.n, lcp.lo, lcp.hi, lcp.findex, lcp.b, lcp.add, lcp.parameter, lcp.x; lcp.A or lcp.Y and its pattern.
    Writes: lcp.x (nlcp,) [N, N m], lcp.w (nlcp,) [m/s^2, rad/s^2], lcp.*; stat_residual if iterations are recorded.
    """
    apgd(p, iterations, cone)


METHOD = Method(
    "apgd",
    solve_apgd,
    form=ROWS,
    numbers={"iterations": Count(1000, "largest number of steps"), "friction": FRICTION},
    parameters={"tolerance": TOLERANCE},
)
