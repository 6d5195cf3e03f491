"""Signorini's conditions with Coulomb's law: Newton's method on the equation of motion, W worlds at once.

    r(a) = M a - f0 - J^T f(J a - aref) = 0

with the law of rows/coulomb.py, which has no cost.  An iteration computes H, the second derivative with all friction
bounds fixed: it is symmetric, and factored as for the convex model.  The derivative of r is H - N, where N holds the
change of the bounds of slipping contacts with the normal acceleration:

    N = sum over slipping contacts of (J_T^T t) D J_n,        t the slip direction

1. p solves (H - N) p = -r by a Krylov method (generalized conjugate residuals) preconditioned with H.
2. The full step is taken if it halves |r|.
3. Otherwise the step is that of Tresca friction: H p = -r, and the minimum along p of the convex cost with fixed
   bounds.

Step 1 alone converges quadratically, but only near a solution.  Step 3 alone is the fixed point on the friction bound,
which converges linearly, and not for every mu.  A world without slip takes Newton's steps of the convex model.
A world whose acceleration is not found is counted in `not_converged`: a solution may not exist (Painleve's paradox).
Source: Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems (2008), ch. 13; Alart and Curnier,
    A mixed formulation for frictional contact problems (1991); Eisenstat, Elman and Schultz, Variational iterative
    methods for nonsymmetric systems of linear equations (1983), GCR.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric_times
from featherlane.solver.hessian.equation import substitute
from featherlane.solver.primal.direction import search_direction
from featherlane.solver.primal.history import record
from featherlane.solver.primal.line_search import FAR, line_terms, step_length
from featherlane.solver.primal.newton import PATIENCE
from featherlane.solver.primal.problem import (
    TINY,
    advance_rows,
    evaluate,
    place_rows,
    store_primal_forces,
    trace_of_inertia,
)
from featherlane.solver.primal.rounding import LARGE, LARGE32, SMALL, SMALL32, is_rounding_of_terms, size_of_forces
from featherlane.solver.primal.start import warm_start
from featherlane.solver.rows.contacts import push_bodies, turn_bodies
from featherlane.solver.rows.coulomb import slip_rate
from featherlane.solver.rows.rows import (
    body_forces_to_dofs,
    body_motion,
    clear_body_forces,
    contact_row_products,
    turn_index,
)

VECTORS = 6  # largest number of Krylov vectors, as declared
INEXACT = 0.03  # the Krylov method stops at this part of the right-hand side
HALVED = 0.5  # of the residual: a full step is taken if it leaves at most this part


@kernel
def slipping(d):
    """Returns a mask of worlds in which a contact slips."""
    found = zero(d)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            slips, _ = slip_rate(d, k)
            found = where(slips, 1.0, found)
    return found > 0.0


@kernel
def apply_bounds(m, d, x, out):
    """Computes out = H^-1 N x; overwrites search and Mv."""
    body_motion(m, d, x, d.con_motion)
    clear_body_forces(m, d)
    for i in range(m.nv):
        out[i] = zero(d)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            contact_row_products(d, k, d.con_motion, d.primal.con_z)
            _, rate = slip_rate(d, k)
            s = rate * d.primal.con_z[3 * k]
            push_bodies(d, k, (zero(d), s * d.primal.con_y[3 * k + 1], s * d.primal.con_y[3 * k + 2]))
            if d.con_dim[k] > 3:
                turn_bodies(d, k, scale3(s, load3(d.primal.con_y, 3 * turn_index(d, k))))
    body_forces_to_dofs(m, d, out)
    substitute(m, d, out)


@kernel
def product(m, d, x, y):
    """Returns x . y."""
    s = zero(d)
    for i in range(m.nv):
        s = fma(x[i], y[i], s)
    return s


@kernel
def reduce_residuals(m, d, todo, enough):
    """Adds up to VECTORS terms to krylov.x by GCR, until r . r of krylov.r is small enough; returns what is left."""
    for j in range(VECTORS):
        if not any_(todo):
            break
        o = m.nv * j
        apply_bounds(m, d, d.krylov.r, d.krylov.image)
        for i in range(m.nv):
            d.krylov.p[o + i], d.krylov.q[o + i] = d.krylov.r[i], d.krylov.r[i] - d.krylov.image[i]
        for e in range(j):
            s, t = zeros(d, 2)
            for i in range(m.nv):
                q = d.krylov.q[m.nv * e + i]
                s, t = fma(q, d.krylov.q[o + i], s), fma(q, q, t)
            s = s / where(t > 0.0, t, 1.0)
            for i in range(m.nv):
                d.krylov.p[o + i] = fma(-s, d.krylov.p[m.nv * e + i], d.krylov.p[o + i])
                d.krylov.q[o + i] = fma(-s, d.krylov.q[m.nv * e + i], d.krylov.q[o + i])
        s, t = zeros(d, 2)
        for i in range(m.nv):
            q = d.krylov.q[o + i]
            s, t = fma(q, d.krylov.r[i], s), fma(q, q, t)
        a = where(todo, s / where(t > 0.0, t, 1.0), 0.0)
        for i in range(m.nv):
            d.krylov.x[i] = where(todo, fma(a, d.krylov.p[o + i], d.krylov.x[i]), d.krylov.x[i])
            d.krylov.r[i] = where(todo, fma(-a, d.krylov.q[o + i], d.krylov.r[i]), d.krylov.r[i])
        todo = todo & (product(m, d, d.krylov.r, d.krylov.r) > enough)
    return todo


@kernel
def correct_direction(m, d, live, part, cycles):
    """Solves (1 - H^-1 N) x = p for krylov.x by GCR, from x = p = krylov.newton, in the worlds of the mask.

    Args:
        live: the mask.
        part: the method stops at this part of |p|.
        cycles: of VECTORS products each.

    Returns the mask of worlds with a larger residual.
    """
    for i in range(m.nv):
        d.krylov.x[i] = d.krylov.newton[i]
    apply_bounds(m, d, d.krylov.x, d.krylov.r)
    enough = part * part * product(m, d, d.krylov.newton, d.krylov.newton)
    todo = live & (product(m, d, d.krylov.r, d.krylov.r) > enough)
    for _ in range(cycles):
        todo = reduce_residuals(m, d, todo, enough)
    return todo


@kernel
def place_direction(m, d, chosen, x):
    """Sets search = x in the chosen worlds, 0 in the others, and its products with M and J."""
    for i in range(m.nv):
        d.primal.search[i] = where(chosen, x[i], 0.0)
    metric_times(m, d, d.primal.search, d.primal.Mv)
    place_rows(m, d, d.primal.search, d.con_motion, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_z)


@kernel
def exchange(chosen, x, v):
    """Returns (x + v, x), or (x, x) in worlds that do not move."""
    return where(chosen, x + v, x), x


@kernel
def choose(back, x, v):
    """Returns v, the value before `exchange`, in the worlds of the mask, else x."""
    return where(back, v, x)


@kernel
def try_step(m, d, live):
    """Takes the full step in the worlds of the mask; the direction's arrays hold the point before."""
    for i in range(m.nv):
        d.qacc[i], d.primal.search[i] = exchange(live, d.qacc[i], d.primal.search[i])
        d.primal.Ma[i], d.primal.Mv[i] = exchange(live, d.primal.Ma[i], d.primal.Mv[i])
    for k in range(d.ndofrow[0]):
        d.primal.dofrow_x[k], d.primal.dofrow_v[k] = exchange(live, d.primal.dofrow_x[k], d.primal.dofrow_v[k])
    for k in range(d.ngenrow[0]):
        d.primal.genrow_x[k], d.primal.genrow_v[k] = exchange(live, d.primal.genrow_x[k], d.primal.genrow_v[k])
    for k in range(3 * d.ncon_slot[0]):
        d.primal.con_y[k], d.primal.con_z[k] = exchange(live, d.primal.con_y[k], d.primal.con_z[k])
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 3:
            r = 3 * turn_index(d, k)
            for i in range(r, r + 3):
                d.primal.con_y[i], d.primal.con_z[i] = exchange(live, d.primal.con_y[i], d.primal.con_z[i])


@kernel
def take_back(m, d, back):
    """Returns to the point before `try_step` in the worlds of the mask."""
    for i in range(m.nv):
        d.qacc[i] = choose(back, d.qacc[i], d.primal.search[i])
        d.primal.Ma[i] = choose(back, d.primal.Ma[i], d.primal.Mv[i])
    for k in range(d.ndofrow[0]):
        d.primal.dofrow_x[k] = choose(back, d.primal.dofrow_x[k], d.primal.dofrow_v[k])
    for k in range(d.ngenrow[0]):
        d.primal.genrow_x[k] = choose(back, d.primal.genrow_x[k], d.primal.genrow_v[k])
    for k in range(3 * d.ncon_slot[0]):
        d.primal.con_y[k] = choose(back, d.primal.con_y[k], d.primal.con_z[k])
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 3:
            r = 3 * turn_index(d, k)
            for i in range(r, r + 3):
                d.primal.con_y[i] = choose(back, d.primal.con_y[i], d.primal.con_z[i])


@kernel
def tresca_step(m, d, chosen, enough):
    """Moves the chosen worlds to the minimum of the cost with fixed bounds, along krylov.newton; returns the length."""
    place_direction(m, d, chosen, d.krylov.newton)
    q1, q2, length = line_terms(m, d)
    a = step_length(m, d, q1, q2, enough * sqrt(length), zero(d), chosen)
    advance_rows(m, d, a)
    return a


@kernel
def coulomb_newton(m, d):
    """Iterates until every world has converged: qacc, qfrc_constraint, row forces, iterations and residual."""
    warm_start(m, d)
    scale = 1.0 / fmax(trace_of_inertia(m, d), TINY)
    tolerance = m.opt_tolerance[0]
    small, large = real(d, SMALL), real(d, LARGE)
    if single_precision(d):
        small, large = real(d, SMALL32), real(d, LARGE32)
    _, residual = evaluate(m, d)
    active = d.active[0] > 0.0
    live = (scale * residual > tolerance) & active
    niter, idle, least = zero(d), zero(d), residual
    record(d, 0, zero(d), scale * residual, niter, niter)
    for iteration in range(m.opt_iterations):
        if not any_(live):
            break
        d.primal.live[0] = where(live, 1.0, 0.0)
        search_direction(m, d)
        slips = live & slipping(d)
        if any_(slips):
            for i in range(m.nv):
                d.krylov.newton[i] = d.primal.search[i]
            correct_direction(m, d, slips, INEXACT, 1)
            for i in range(m.nv):
                d.krylov.x[i] = where(slips, d.krylov.x[i], d.krylov.newton[i])
            place_direction(m, d, live, d.krylov.x)
        else:
            for i in range(m.nv):
                d.krylov.newton[i] = d.primal.search[i]
        before = residual
        try_step(m, d, live)
        _, residual = evaluate(m, d)
        back = live & not_(residual <= HALVED * before)
        step = where(live, 1.0, zero(d))
        if any_(back):
            take_back(m, d, back)
            a = tresca_step(m, d, back, tolerance * m.opt_ls_tolerance[0] / scale)
            step = where(back, a, step)
            _, residual = evaluate(m, d)
        niter = where(live, niter + 1.0, niter)
        record(d, iteration + 1, zero(d), scale * residual, zero(d), step)
        slow = residual > HALVED * least
        done = live & not_(scale * residual > tolerance)
        unclear = live & slow & not_(done)
        if any_(unclear):
            done = done | (unclear & is_rounding_of_terms(m, d))
        live = live & not_(done)
        idle = where(live & slow, idle + 1.0, 0.0)
        live, least = live & (idle < PATIENCE) & (step > 0.0), fmin(residual, least)
    forces = size_of_forces(m, d)
    failed = (scale * residual > tolerance) & not_(residual <= small * forces)
    if any_(failed):
        failed = failed & not_(is_rounding_of_terms(m, d))
    failed = failed | ((scale * residual > tolerance) & not_(residual <= large * forces)) | not_(residual < FAR)
    d.solver_niter[0] = niter
    d.solver_residual[0] = scale * residual
    d.solver_gap[0] = zero(d)
    warn(d, NOT_CONVERGED, failed & active)
    store_primal_forces(m, d)
