"""Projected Gauss-Seidel on the dual problem, with momentum, W worlds at once.

A sweep visits block by block (rows.py) and sets each force to its optimum with all others fixed:

    one row      f <- clip(f - (A + R)^-1 (y + R f), lo, hi),  y = b + Y z  its acceleration
    pyramid      the same for each edge, twice around the contact, in turn from either end
    cone         along the ray through the force, then across it on the disc |t| <= f_0 (friction_disc.py), twice

Before a sweep forces are extrapolated along their last change by beta = (k - 1) / (k + 2), and projected to their
admissible set.  k counts sweeps since the last one that opposed that change, or increased the cost.  A world stops if a
sweep gains less than the tolerance; it has not converged if its residual is neither small nor rounding (rounding.py).
Source: MuJoCo documentation, Computation, "Algorithms" (PGS), and the change log of 3.11.0 (momentum with restarts,
after O'Donoghue and Candes, "Adaptive restart for accelerated gradient schemes", 2015).  Differences: A is not
formed; blocks are shuffled only in each fourth sweep (visit_order.py); a contact is visited twice in a row, which
costs no row product; a contact without force also tries its rim; and momentum restarts if the cost grows.
"""

from featherlane.prelude import *
from featherlane.constraint.row import UNBOUNDED
from featherlane.solver.dual.friction_disc import disc_triangle_index, solve_on_disc
from featherlane.solver.dual.problem import (
    accelerate_by_forces,
    add_row_force,
    add_three,
    basis_force,
    block_row_product,
    clear_overflow_forces,
    dual_gap,
    force_count,
    forces_at_rows,
    has_edges,
    primal_at_forces,
    store_dual_forces,
    sum_forces,
    three_dots,
)
from featherlane.solver.dual.rows import block_triangle_index
from featherlane.solver.dual.visit_order import is_scrambled, order_blocks, visited
from featherlane.solver.primal.history import record_iteration
from featherlane.solver.primal.problem import TINY, compute_row_products, subtract_reference, trace_of_inertia
from featherlane.solver.primal.rounding import has_large_gradient, is_rounding
from featherlane.solver.rows.rows import basis_value

ROUNDS = 2  # visits of a contact within a sweep
PATIENCE = 4.0  # sweeps without progress
TOUCHING = 1e-15  # N: a smaller normal force counts as 0


# ---- one block -----------------------------------------------------------------------------------------------------
@kernel
def row_regularization(D):
    """Returns R = 1 / D; for an absent row, a value so large that its force is 0."""
    return 1.0 / fmax(D, TINY)


@kernel
def drift(d, q, e, f, live):
    """Returns (f_new - f_start) (f_start - f_old) of a force: negative if the sweep opposes the momentum."""
    start = d.dual.f[q, e]
    d.dual.f[q, e] = where(live, f, start)
    return (f - start) * (start - d.dual.old[q, e])


@kernel
def update_row_force(d, q, b, D, lo, hi, live):
    """Updates the block of one row; returns the cost's decrease and the drift."""
    f, R = d.dual.f[q, 0], row_regularization(D)
    y, a = fma(R, f, b + block_row_product(d, q, 0)), d.dual.A[q, 0] + R
    g = clip(f - y / a, lo, hi)
    delta = where(live, g - f, 0.0)
    add_row_force(d, q, 0, delta)
    return -(delta * fma(0.5 * a, delta, y)), drift(d, q, 0, g, live)


@kernel
def load_contact(m, d, k, q):
    """Computes the accelerations along the rows of contact k, and clears their changes of force."""
    dim, first = d.con_dim[k], 0
    while first + 3 <= dim:
        x = three_dots(d, q, first)
        for c in range(3):
            d.dual.block_y[first + c] = basis_value(d, d.primal.con_warm, k, first + c) + x[c]
        first += 3
    for c in range(first, dim):
        d.dual.block_y[c] = basis_value(d, d.primal.con_warm, k, c) + block_row_product(d, q, c)
    for c in range(dim):
        d.dual.block_change[c] = 0.0


@kernel
def change_force(d, q, dim, c, delta):
    """Changes the force along row c of a contact, and updates the accelerations."""
    d.dual.block_change[c] = d.dual.block_change[c] + delta
    for e in range(dim):
        d.dual.block_y[e] = fma(d.dual.A[q, block_triangle_index(c, e)], delta, d.dual.block_y[e])


@kernel
def add_contact_change(d, q, dim):
    """Updates z by the change of a contact's forces."""
    first = 0
    while first + 3 <= dim:
        add_three(d, q, first, Vec3(d.dual.block_change[first : first + 3]))
        first += 3
    for c in range(first, dim):
        add_row_force(d, q, c, d.dual.block_change[c])


@kernel
def visit_edge(d, q, dim, e, R, live):
    """Updates edge e of a pyramid; returns the cost's decrease."""
    i, s = 1 + e // 2, 1.0 - 2.0 * (e % 2)
    f = d.dual.block_force[e]
    y = fma(R, f, fma(s, d.dual.block_y[i], d.dual.block_y[0]))
    across, mixed = d.dual.A[q, block_triangle_index(i, i)], d.dual.A[q, block_triangle_index(i, 0)]
    A = ((d.dual.A[q, 0] + across) + (2.0 * s) * mixed) + R
    delta = where(live, fmax(f - y / A, 0.0) - f, 0.0)
    d.dual.block_force[e] = f + delta
    change_force(d, q, dim, 0, delta)
    change_force(d, q, dim, i, s * delta)
    return -(delta * fma(0.5 * A, delta, y))


@kernel
def visit_pyramid(m, d, k, q, sweep, live):
    """Updates the edges of contact k; returns the cost's decrease and the drift."""
    dim, n, R = d.con_dim[k], force_count(m, d, k), row_regularization(d.con_D[k])
    load_contact(m, d, k, q)
    for e in range(n):
        d.dual.block_force[e] = d.dual.f[q, e]
    fall, against = 0.0, 0.0
    for turn in range(ROUNDS):
        for at in range(n):
            e = at if (sweep + turn) % 2 == 0 else n - 1 - at
            fall = fall + visit_edge(d, q, dim, e, R, live)
    for e in range(n):
        against = against + drift(d, q, e, d.dual.block_force[e], live)
    add_contact_change(d, q, dim)
    return fall, against


@kernel
def cone_row(d, q, c, R, Rt):
    """Returns the acceleration along row c with its regularisation."""
    return fma(R if c == 0 else Rt, d.dual.block_force[c], d.dual.block_y[c])


@kernel
def move_on_cone(d, q, dim, c, target, R, Rt, live):
    """Sets force c to its target; returns the cost's decrease."""
    delta = where(live, target - d.dual.block_force[c], 0.0)
    a = d.dual.A[q, block_triangle_index(c, c)] + (R if c == 0 else Rt)
    fall = -(delta * fma(0.5 * a, delta, cone_row(d, q, c, R, Rt)))
    d.dual.block_force[c] = d.dual.block_force[c] + delta
    change_force(d, q, dim, c, delta)
    return fall


@kernel
def set_ray(d, q, dim, R, Rt, held):
    """Sets the direction in which the force grows: along the force; at force 0 the normal, or else the steepest rim.

    The rim is used if the normal increases the cost.  At the tip of the cone the normal alone may fail: if the contact
    accelerates away from the surface and fast along it, friction reduces the cost, but needs a normal force.
    """
    s, up = 0.0, cone_row(d, q, 0, R, Rt)
    for c in range(1, dim):
        y = cone_row(d, q, c, R, Rt)
        s = fma(y, y, s)
    inverse = where(up > 0.0, 1.0 / fmax(sqrt(s), TINY), 0.0)
    for c in range(dim):
        tip = 1.0 if c == 0 else -(cone_row(d, q, c, R, Rt) * inverse)
        d.dual.block_ray[c] = where(held, d.dual.block_force[c], tip)


@kernel
def ray_length(d, q, dim, R, Rt):
    """Returns the distance along the ray to the minimum of the cost."""
    up, curvature = 0.0, 0.0
    for c in range(dim):
        v, s = d.dual.block_ray[c], 0.0
        up = fma(v, cone_row(d, q, c, R, Rt), up)
        for e in range(dim):
            s = fma(d.dual.A[q, block_triangle_index(c, e)], d.dual.block_ray[e], s)
        curvature = fma(v, fma(R if c == 0 else Rt, v, s), curvature)
    bent = curvature > 0.0
    return where(bent, -(up / where(bent, curvature, 1.0)), 0.0)


@kernel
def push_along(d, q, dim, R, Rt, live):
    """Changes the force along its ray, not beyond the tip of the cone; returns the cost's decrease."""
    held, fall = d.dual.block_force[0] > TOUCHING, 0.0
    set_ray(d, q, dim, R, Rt, held)
    x = ray_length(d, q, dim, R, Rt)
    x = fmax(x, where(held, -1.0, 0.0))
    for c in range(dim):
        start = where(held, d.dual.block_force[c], 0.0)
        fall = fall + move_on_cone(d, q, dim, c, fma(x, d.dual.block_ray[c], start), R, Rt, live)
    return fall


@kernel
def slide_across(d, q, dim, R, Rt, live):
    """Solves friction at a fixed normal force; returns the cost's decrease."""
    n = dim - 1
    for c in range(n):
        b = d.dual.block_y[c + 1]
        for e in range(n):
            b = fma(-d.dual.A[q, block_triangle_index(c + 1, e + 1)], d.dual.block_force[e + 1], b)
        d.disc.b[c] = b
        for e in range(c + 1):
            a = d.dual.A[q, block_triangle_index(c + 1, e + 1)]
            d.disc.A[disc_triangle_index(c, e)] = a + Rt if c == e else a
    r = d.dual.block_force[0]
    solve_on_disc(d, n, where(r > TOUCHING, r, 0.0))
    fall = 0.0
    for c in range(n):
        fall = fall + move_on_cone(d, q, dim, c + 1, d.disc.t[c], R, Rt, live)
    return fall


@kernel
def visit_cone(m, d, k, q, live):
    """Updates the forces of an elliptic contact; returns the cost's decrease and the drift."""
    contact = d.contact[k]
    dim, R, Rt = contact.dim, row_regularization(contact.D), row_regularization(contact.Dt)
    load_contact(m, d, k, q)
    for c in range(dim):
        d.dual.block_force[c] = d.dual.f[q, c]
    fall, against = 0.0, 0.0
    for _ in range(ROUNDS):
        fall = fall + push_along(d, q, dim, R, Rt, live)
        fall = fall + slide_across(d, q, dim, R, Rt, live)
    for c in range(dim):
        against = against + drift(d, q, c, d.dual.block_force[c], live)
    add_contact_change(d, q, dim)
    return fall, against


# ---- all blocks ----------------------------------------------------------------------------------------------------
@kernel
def visit_contact(m, d, k, q, sweep, live):
    """Updates the block of contact k; returns the cost's decrease and the drift."""
    if has_edges(m, d, k):
        fall, against = visit_pyramid(m, d, k, q, sweep, live)
    elif d.con_dim[k] > 1:
        fall, against = visit_cone(m, d, k, q, live)
    else:
        most = UNBOUNDED
        fall, against = update_row_force(d, q, d.primal.con_warm[k][0], d.con_D[k], 0.0, most, live)
    return fall, against


@kernel
def sweep_blocks(m, d, sweep, live):
    """Sweeps once over all blocks; returns the cost's decrease and the drift of all forces."""
    fall, against = 0.0, 0.0
    first, joint = d.ndofrow[0], d.ndofrow[0] + d.ngenrow[0]
    if is_scrambled(sweep):
        order_blocks(d, sweep)
    for at in range(d.dual.ndual[0]):
        q = visited(d, sweep, at)
        if q < first:
            s, t = update_row_force(d, q, d.primal.dofrow_v[q], d.dofrow_D[q], d.dofrow_lo[q], d.dofrow_hi[q], live)
        elif q < joint:
            k = q - first
            s, t = update_row_force(d, q, d.primal.genrow_v[k], d.genrow_D[k], d.genrow_lo[k], d.genrow_hi[k], live)
        else:
            s, t = visit_contact(m, d, q - joint, q, sweep, live)
        fall, against = fall + s, against + t
    return fall, against


@kernel
def extrapolated(d, q, e, beta):
    """Returns force e of block q, extrapolated along its last change; stores its previous value."""
    f = d.dual.f[q, e]
    g = fma(beta, f - d.dual.old[q, e], f)
    d.dual.old[q, e] = f
    return g


@kernel
def extrapolate_contact(m, d, k, q, beta):
    """Extrapolates the forces of contact k, and projects them to the cone."""
    n = force_count(m, d, k)
    for e in range(n):
        d.dual.f[q, e] = extrapolated(d, q, e, beta)
    if has_edges(m, d, k) or n == 1:
        for e in range(n):
            d.dual.f[q, e] = fmax(d.dual.f[q, e], 0.0)
    else:
        s, r = 0.0, fmax(d.dual.f[q, 0], 0.0)
        for e in range(1, n):
            s = fma(d.dual.f[q, e], d.dual.f[q, e], s)
        length = sqrt(s)
        # without momentum the force must not change, not even by rounding
        scale = where((length > r) & (beta > 0.0), r / fmax(length, TINY), 1.0)
        d.dual.f[q, 0] = r
        for e in range(1, n):
            d.dual.f[q, e] = scale * d.dual.f[q, e]


@kernel
def gather_momentum(m, d, beta):
    """Extrapolates all forces along their last change if beta > 0, within their admissible set; updates z."""
    first, joint = d.ndofrow[0], d.ndofrow[0] + d.ngenrow[0]
    for q in range(d.dual.ndual[0]):
        if q < first:
            d.dual.f[q, 0] = clip(extrapolated(d, q, 0, beta), d.dofrow_lo[q], d.dofrow_hi[q])
        elif q < joint:
            k = q - first
            d.dual.f[q, 0] = clip(extrapolated(d, q, 0, beta), d.genrow_lo[k], d.genrow_hi[k])
        else:
            extrapolate_contact(m, d, q - joint, q, beta)
    sum_forces(m, d)


# ---- initial forces, and the iterations ------------------------------------------------------------------------------
@kernel
def force_cost(f, b, D):
    """Returns f b + 1/2 R f^2."""
    return f * b + where(f == 0.0, 0.0, 0.5 * (f * f) * row_regularization(D))


@kernel
def dual_cost(m, d):
    """Returns 1/2 f^T (A + R) f + f^T b, with f^T A f = z^T z."""
    s, first, joint = 0.0, d.ndofrow[0], d.ndofrow[0] + d.ngenrow[0]
    for i in range(m.nv):
        s = fma(d.dual.z[i], d.dual.z[i], s)
    s = 0.5 * s
    for q in range(d.dual.ndual[0]):
        if q < first:
            s = s + force_cost(d.dual.f[q, 0], d.primal.dofrow_v[q], d.dofrow_D[q])
        elif q < joint:
            s = s + force_cost(d.dual.f[q, 0], d.primal.genrow_v[q - first], d.genrow_D[q - first])
        else:
            k = q - joint
            contact = d.contact[k]
            for c in range(contact.dim):
                s = fma(basis_force(m, d, k, c), basis_value(d, d.primal.con_warm, k, c), s)
            for e in range(force_count(m, d, k)):
                D = contact.Dt if e > 0 and not has_edges(m, d, k) else contact.D
                s = s + force_cost(d.dual.f[q, e], 0.0, D)
    return s


@kernel
def start_forces(m, d):
    """Computes b = J a0 - aref, and forces: those of the last acceleration if their cost is negative, else 0."""
    compute_row_products(m, d, d.qacc_smooth, d.con_motion, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_warm)
    subtract_reference(m, d, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_warm)
    blocks, take = d.ndofrow[0] + d.ngenrow[0] + d.ncon_slot[0], false_mask(d)
    if m.opt_disableflags & DISABLE_WARMSTART == 0:
        compute_row_products(m, d, d.qacc_warmstart, d.con_motion, d.primal.dofrow_x, d.primal.genrow_x, d.primal.con_y)
        subtract_reference(m, d, d.primal.dofrow_x, d.primal.genrow_x, d.primal.con_y)
        forces_at_rows(m, d)
        clear_overflow_forces(m, d)
        sum_forces(m, d)
        take = dual_cost(m, d) < 0.0
    for q in range(blocks):
        for e in range(10):
            f = where(take, d.dual.f[q, e], 0.0)
            d.dual.f[q, e] = f
            d.dual.old[q, e] = f
    sum_forces(m, d)


@kernel
def record_forces(m, d, k, scale, improvement, beta):
    """Records the primal cost and gradient at the forces, for the iteration statistics only."""
    if d.want_history:
        cost, gradient = primal_at_forces(m, d)
        record_iteration(d, k, scale * cost, scale * gradient, improvement, beta)


@stage
def pgs(m, d):
    """Sweeps until every world has converged: qacc, qfrc_constraint, row forces, iterations, residual and gap.

    Reads:  the blocks of `make_blocks`, qLD, qacc_smooth, qfrc_smooth, qacc_warmstart.
    Writes: dual.f (ndualmax, 10) [N, N m], qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], dofrow_force,
            genrow_force, con_force, solver_niter, solver_residual, solver_gap, warning (not converged), stat_*.
    Scratch: primal.*, cacc, cfrc, dual.*, disc.*, con_motion, con_wrench.
    Cost:   per sweep three products with Y.
    """
    scale, tolerance = 1.0 / fmax(trace_of_inertia(m, d), TINY), m.opt_tolerance[0]
    start_forces(m, d)
    record_forces(m, d, 0, scale, 0.0, 0.0)
    # a sweep's gain is quadratic in the change of forces: this is the square of a rounding
    noise = 1e-28
    if single_precision(d):
        noise = 1e-12
    niter, k, total, idle, cost = 0.0, 0.0, 0.0, 0.0, dual_cost(m, d)
    live = d.active[0] > 0.0
    for sweep in range(m.opt_iterations):
        if not any_(live):
            break
        beta = where(live & (k > 1.0), (k - 1.0) / (k + 2.0), 0.0)
        gather_momentum(m, d, beta)
        before, started = cost, dual_cost(m, d)
        fall, against = sweep_blocks(m, d, sweep, live)
        cost = started - fall
        k = where((against < 0.0) | (cost > before), 0.0, k + 1.0)
        niter, total = where(live, niter + 1.0, niter), total + fall
        record_forces(m, d, sweep + 1, scale, scale * fall, beta)
        # rounding ends progress if sweeps gain nothing of the total gain; a single one may seem to increase the cost
        idle = where(fall <= noise * total, idle + 1.0, 0.0)
        small = (scale * fall <= tolerance) & (tolerance > 0.0)
        live = live & not_(small) & (idle < PATIENCE)
    _, gradient = primal_at_forces(m, d)
    d.solver_niter[0] = niter
    d.solver_residual[0] = scale * gradient
    gap = scale * dual_gap(m, d)
    d.solver_gap[0] = gap
    left = has_large_gradient(m, d, gradient, gap)
    if any_(left):
        left = left & not_(is_rounding(m, d, gradient, left))
        # `is_rounding` has moved some worlds: restore the acceleration that belongs to the forces
        accelerate_by_forces(m, d)
    warn(d, NOT_CONVERGED, live | left)
    store_dual_forces(m, d)
