"""Signorini's conditions with Coulomb's law: Newton's method on the equation of motion, W worlds at once.

    r(a) = M a - f0 - J^T f(J a - aref) = 0

with the law of rows/coulomb.py, which has no cost.  An iteration computes H, the second derivative with all friction
bounds fixed: it is symmetric, and factored as for the convex model.  The derivative of r is H - N, where N holds the
change of the bounds of slipping contacts with the normal acceleration:

    N = sum over slipping contacts of (J_T^T t) D J_n,        t the slip direction

1. p solves (H - N) p = -r by a Krylov method preconditioned with H (krylov.py).
2. The full step is taken if it halves |r|.
3. Otherwise the step is that of Tresca friction: H p = -r, and the minimum along p of the convex cost with fixed
   bounds.

Step 1 alone converges quadratically, but only near a solution.  Step 3 alone is the fixed point on the friction bound,
which converges linearly, and not for every mu.  A world without slip takes Newton's steps of the convex model.

A world that these steps do not solve is solved by proximal points.  Contact forces f of the last problem become the
proximal forces p, and the law of the next problem is that of a softer contact about them:

    y + f / D + c (f - p) = 0    if the contact sticks,      c = (1 / s - 1) / Dt,    0 < s <= 1

The normal force does the same.  So the law is unchanged, with D / (1 + c D), s Dt and y - c p in place of D, Dt and y.
The softer the contact, the easier the problem; its solution is the next starting point.  s increases from 1e-5, and
the last problem, s = 1, is the original one.  If a problem is not solved, a softer one follows.

The law has a solution for every mu and every state: it is the variational inequality f in K, F(f) . (g - f) >= 0 for
all g in K, whose map F(f) = (A + R) f + b + |slip| n is continuous, and coercive because slip only increases F . f.
Source: Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems (2008), ch. 13; Alart and Curnier,
    A mixed formulation for frictional contact problems (1991); Rockafellar, Monotone operators and the proximal point
    algorithm (1976); Hartman and Stampacchia, On some non-linear elliptic differential-functional equations (1966),
    existence.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric_times
from featherlane.solver.primal.accuracy import make_rows_anew
from featherlane.solver.primal.direction import newton_direction
from featherlane.solver.primal.history import record
from featherlane.solver.primal.krylov import correct_direction, slipping
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
from featherlane.solver.rows.contacts import contact_push
from featherlane.solver.rows.rows import turn_index

INEXACT = 0.03  # the Krylov method stops at this part of the right-hand side
HALVED = 0.5  # of the residual: a full step is taken if it leaves at most this part

# proximal points: s, the stiffness of a problem as a part of that of the law
FIRST, SOFTEST = 1e-5, 1e-13  # of the first problem, and the smallest one
STIFFER, SOFTER = 4.0, 0.04  # factors of s after a solved and after an unsolved problem
PART = 1e-3  # of the forces: residual of a solved problem, if it is not the last one
IMPATIENT = 6  # consecutive iterations that do not halve the residual of an unsolved problem


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
def coulomb_step(m, d, live, residual, enough):
    """Moves the worlds of the mask by one iteration; returns (norm of the residual, step length).

    Args:
        live: the mask.
        residual: the norm of the residual at the present point.
        enough: the line search stops at this slope for a direction of length 1.
    """
    d.primal.live[0] = where(live, 1.0, 0.0)
    newton_direction(m, d)
    for i in range(m.nv):
        d.krylov.newton[i], d.krylov.x[i] = d.primal.search[i], d.primal.search[i]
    slips = live & slipping(d)
    if any_(slips):
        correct_direction(m, d, slips, INEXACT, 1)
        for i in range(m.nv):
            d.krylov.x[i] = where(slips, d.krylov.x[i], d.krylov.newton[i])
    place_direction(m, d, live, d.krylov.x)
    before = residual
    try_step(m, d, live)
    _, residual = evaluate(m, d)
    back = live & not_(residual <= HALVED * before)
    step = where(live, 1.0, zero(d))
    if any_(back):
        take_back(m, d, back)
        a = tresca_step(m, d, back, enough)
        step = where(back, a, step)
        _, residual = evaluate(m, d)
    return residual, step


@kernel
def is_unsolved(m, d, scale, residual):
    """Returns the mask of worlds with a residual that is neither below the tolerance, nor small, nor rounding."""
    small, large = real(d, SMALL), real(d, LARGE)
    if single_precision(d):
        small, large = real(d, SMALL32), real(d, LARGE32)
    forces, above = size_of_forces(m, d), scale * residual > m.opt_tolerance[0]
    failed = above & not_(residual <= small * forces)
    if any_(failed):
        failed = failed & not_(is_rounding_of_terms(m, d))
    return failed | (above & not_(residual <= large * forces)) | not_(residual < FAR)


# ---- proximal points -----------------------------------------------------------------------------------------------
@kernel
def keep_problem(m, d):
    """Stores the point and the stiffnesses of the contacts; proximal forces are 0."""
    for i in range(m.nv):
        d.proximal.start[i], d.proximal.good[i] = d.qacc[i], d.qacc[i]
    for k in range(d.ncon_slot[0]):
        d.proximal.D[k], d.proximal.Dt[k] = d.con_D[k], d.con_Dt[k]
        store3(d.proximal.force, 3 * k, zeros(d, 3))
        store3(d.proximal.force, 3 * turn_index(d, k), zeros(d, 3))


@kernel
def keep_solution(m, d, chosen):
    """Stores the point and its contact forces in the worlds of the mask."""
    for i in range(m.nv):
        d.proximal.good[i] = where(chosen, d.qacc[i], d.proximal.good[i])
    for k in range(d.ncon_slot[0]):
        f, t = contact_push(m, d, k)
        for i in range(3):
            d.proximal.force[3 * k + i] = where(chosen, f[i], d.proximal.force[3 * k + i])
        if d.con_dim[k] > 3:
            for i in range(3):
                r = 3 * turn_index(d, k) + i
                d.proximal.force[r] = where(chosen, t[i], d.proximal.force[r])


@kernel
def place_problem(m, d, chosen, stiffness):
    """Sets point, rows and law of the proximal problem in the worlds of the mask; returns the residual of all worlds.

    With the compliance c = (1 / stiffness - 1) / Dt of contact k, its law has D / (1 + c D), Dt stiffness, y - c p.
    """
    for i in range(m.nv):
        d.qacc[i] = where(chosen, d.proximal.good[i], d.qacc[i])
    make_rows_anew(m, d, chosen)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            D, Dt = d.proximal.D[k], d.proximal.Dt[k]
            c = where(chosen & (Dt > 0.0), (1.0 / stiffness - 1.0) / where(Dt > 0.0, Dt, 1.0), 0.0)
            d.con_D[k] = where(chosen, D / fma(c, D, 1.0), d.con_D[k])
            d.con_Dt[k] = where(chosen, stiffness * Dt, d.con_Dt[k])
            for i in range(3 * k, 3 * k + 3):
                d.primal.con_y[i] = where(chosen, fma(-c, d.proximal.force[i], d.primal.con_y[i]), d.primal.con_y[i])
            if d.con_dim[k] > 3:
                r = 3 * turn_index(d, k)
                for i in range(r, r + 3):
                    y = d.primal.con_y[i]
                    d.primal.con_y[i] = where(chosen, fma(-c, d.proximal.force[i], y), y)
    _, residual = evaluate(m, d)
    return residual


@kernel
def proximal_points(m, d, left, n):
    """Solves the worlds of the mask by proximal points; returns (norm of the residual, iterations) of all worlds.

    Args:
        left: the mask; a world that is not solved returns to its point.
        n: iterations of the tile so far, which are recorded.
    """
    scale, tolerance = 1.0 / fmax(trace_of_inertia(m, d), TINY), m.opt_tolerance[0]
    keep_problem(m, d)
    stiffness = real(d, FIRST)
    residual = place_problem(m, d, left, stiffness)
    live, solved, least = left, false_mask(d), residual
    niter, idle = zeros(d, 2)
    for iteration in range(m.opt_iterations):
        if not any_(live):
            break
        residual, step = coulomb_step(m, d, live, residual, tolerance * m.opt_ls_tolerance[0] / scale)
        niter = where(live, niter + 1.0, niter)
        record(d, n + iteration + 1, zero(d), scale * residual, zero(d), step)
        idle, least = where(residual > HALVED * least, idle + 1.0, 0.0), fmin(residual, least)
        spent = live & ((idle >= IMPATIENT) | not_(step > 0.0))
        last, good = stiffness >= 1.0, scale * residual <= tolerance
        if any_(spent & last & not_(good)):
            good = good | (spent & last & not_(is_unsolved(m, d, scale, residual)))
        won = live & (good | (not_(last) & (residual <= PART * size_of_forces(m, d))))
        lost, solved = spent & not_(won), solved | (won & last)
        won, live = won & not_(last), live & not_(solved)
        if any_(won | lost):
            keep_solution(m, d, won)
            stiffness = where(won, fmin(STIFFER * stiffness, 1.0), where(lost, SOFTER * stiffness, stiffness))
            live = live & (stiffness > SOFTEST)
            moves = live & (won | lost)
            residual = place_problem(m, d, moves, stiffness)
            idle, least = where(moves, 0.0, idle), where(moves, residual, least)
    left = left & not_(solved)
    if any_(left):
        for i in range(m.nv):
            d.proximal.good[i] = d.proximal.start[i]
        residual = place_problem(m, d, left, real(d, 1.0))
    return residual, niter


@kernel
def coulomb_newton(m, d):
    """Iterates until every world has converged: qacc, qfrc_constraint, row forces, iterations and residual."""
    warm_start(m, d)
    scale, tolerance = 1.0 / fmax(trace_of_inertia(m, d), TINY), m.opt_tolerance[0]
    _, residual = evaluate(m, d)
    active = d.active[0] > 0.0
    live = (scale * residual > tolerance) & active
    n, niter, idle, least = 0, zero(d), zero(d), residual
    record(d, 0, zero(d), scale * residual, niter, niter)
    for iteration in range(m.opt_iterations):
        if not any_(live):
            break
        residual, step = coulomb_step(m, d, live, residual, tolerance * m.opt_ls_tolerance[0] / scale)
        niter, n = where(live, niter + 1.0, niter), iteration + 1
        record(d, n, zero(d), scale * residual, zero(d), step)
        slow = residual > HALVED * least
        done = live & not_(scale * residual > tolerance)
        unclear = live & slow & not_(done)
        if any_(unclear):
            done = done | (unclear & is_rounding_of_terms(m, d))
        live = live & not_(done)
        idle = where(live & slow, idle + 1.0, 0.0)
        live, least = live & (idle < PATIENCE) & (step > 0.0), fmin(residual, least)
    failed = is_unsolved(m, d, scale, residual) & active
    if any_(failed):
        residual, more = proximal_points(m, d, failed, n)
        niter = niter + more
        failed = failed & is_unsolved(m, d, scale, residual)
    d.solver_niter[0] = niter
    d.solver_residual[0] = scale * residual
    d.solver_gap[0] = zero(d)
    warn(d, NOT_CONVERGED, failed)
    store_primal_forces(m, d)
