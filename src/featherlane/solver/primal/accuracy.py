"""Is the acceleration right, where the forces of the rows do not balance?

Rows may push against each other by far more than they leave: contacts of bodies that hardly yield, a puck between
walls.  Their forces, D (J a - aref), are right to a rounding each, and their sum is what rounding leaves of it: in
robosuite's three-fingered gripper 2e16 N, whose moments of 5e13 N m leave 3.  The acceleration that makes them is
right all the same, for the stiffer rows are, the less it takes to change their sum.  So is the force of all rows
together, if it is taken from the acceleration,

    J^T f = M a - f0,

whose error is M p, with p = -H^-1 g the step from a to the minimum, where that of the sum is the gradient, g = -H p.
It is right where

    |M p|_i <= SMALL max(|f0|, |M a - f0|) + TERMS EPS M_ii c_i   for each dof, and no row changes its bound along p,

    c_i = sum over rows of |J_i f| / (M_ii + sum over rows of J_i^2 D),

the acceleration by which the rows contest dof i: they do not know it better than to a few roundings of that.  The rows
are made anew from a before, and p is taken as often as it takes.  Where a rounding of g is more than all forces, g does
not show them, and p tells nothing: a float32 rounding of a row's end, 1e-5 m/s^2, may be 5e9 N.

Nor does p where the factor of H has lost M: one row that is 1e7 times as stiff as what it holds, a tendon along two
cheetahs, leaves of M in float32 nothing, and what it does not hold seems as stiff as its rounding is.  How stiff the
rows are says how much larger p may be than it seems: if not even that is too large it does no harm.  Else forces as the
rows contest them, of either sign, are put on H: a rounding of them has to move no dof by more than a part of its c.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric_diagonal, metric_force, metric_times
from featherlane.solver.hessian.entries.within_tree import pair_jacobian
from featherlane.solver.hessian.equation import assemble_hessian, substitute
from featherlane.solver.primal.direction import search_direction
from featherlane.solver.primal.history import record
from featherlane.solver.primal.line_search import FAR, line_search, line_terms
from featherlane.solver.primal.problem import (
    TINY,
    advance_rows,
    bounded_force,
    contact_velocities,
    evaluate,
    place_rows,
    set_switches,
    subtract_reference_at,
    trace_of_inertia,
)
from featherlane.solver.primal.rounding import SMALL, SMALL32, SQUARED, TERMS, one_rounding
from featherlane.solver.rows.contacts import contact_push
from featherlane.solver.rows.pyramid import push
from featherlane.solver.rows.rows import turn

DIGITS = 1e-2  # of what the rows contest, the most by which a rounding of their forces may move the bodies
SLACK = 100.0  # by which what no row holds may be softer than the diagonal of M is
STEPS = 20  # from rows made anew: one or two are enough, but where rows take turns in rounding


# ---- rows from the acceleration ------------------------------------------------------------------------------------
@kernel
def make_rows_anew(m, d, chosen):
    """J a - aref and M a of the chosen worlds from a itself: each step has left its roundings in them."""
    contact_velocities(d)
    place_rows(m, d, d.qacc, d.con_motion, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_warm)
    subtract_reference_at(m, d, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_warm)
    metric_times(m, d, d.qacc, d.primal.Mv)
    for i in range(m.nv):
        d.primal.Ma[i] = where(chosen, d.primal.Mv[i], d.primal.Ma[i])
    for k in range(d.ndofrow[0]):
        d.primal.dofrow_x[k] = where(chosen, d.primal.dofrow_v[k], d.primal.dofrow_x[k])
    for k in range(d.ngenrow[0]):
        d.primal.genrow_x[k] = where(chosen, d.primal.genrow_v[k], d.primal.genrow_x[k])
    for k in range(3 * d.ncon_slot[0]):
        d.primal.con_y[k] = where(chosen, d.primal.con_warm[k], d.primal.con_y[k])
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 3:
            r = 3 * turn(d, k)
            for i in range(r, r + 3):
                d.primal.con_y[i] = where(chosen, d.primal.con_warm[i], d.primal.con_y[i])


# ---- what the rows contest -----------------------------------------------------------------------------------------
@kernel
def add_row(d, i, J, D, f):
    """A row's entry J at dof i, its stiffness and its force: |J f| into Mgrad, J^2 D into primal.Mgrad_old."""
    d.primal.Mgrad[i] = fma(fabs(J), fabs(f), d.primal.Mgrad[i])
    d.primal.Mgrad_old[i] = fma(J * J, D, d.primal.Mgrad_old[i])


@kernel
def add_edges(d, k, i, J, K, y, u):
    """The two edges of a pyramid between the normal and another direction, whose entries at dof i are J and K."""
    D = d.con_D[k]
    f, _ = push(D, y + u)
    g, _ = push(D, y - u)
    add_row(d, i, J + K, D, f)
    add_row(d, i, J - K, D, g)


@kernel
def add_pyramid(m, d, k, c):
    """The edges of contact k at column c of its Jacobian."""
    i, J, y = d.hessian.pair_dof[c], d.hessian.pair_J[3 * c], d.primal.con_y[3 * k]
    for e in range(1, 3):
        add_edges(d, k, i, J, d.hessian.pair_J[3 * c + e], y, d.primal.con_y[3 * k + e])
    for e in range(d.con_dim[k] - 3):
        add_edges(d, k, i, J, d.hessian.pair_J[3 * (m.nv + c) + e], y, d.primal.con_y[3 * turn(d, k) + e])


@kernel
def add_cone(m, d, k, c, f, t):
    """The rows of contact k, with forces f and moments t, at column c of its Jacobian."""
    i, D, Dt, n = d.hessian.pair_dof[c], d.con_D[k], d.con_Dt[k], d.con_dim[k]
    add_row(d, i, d.hessian.pair_J[3 * c], D, f[0])
    if n > 1:
        add_row(d, i, d.hessian.pair_J[3 * c + 1], Dt, f[1])
        add_row(d, i, d.hessian.pair_J[3 * c + 2], Dt, f[2])
    if n > 3:
        r = 3 * (m.nv + c)
        add_row(d, i, d.hessian.pair_J[r], Dt, t[0])
        add_row(d, i, d.hessian.pair_J[r + 1], Dt, t[1])
        add_row(d, i, d.hessian.pair_J[r + 2], Dt, t[2])


@kernel
def add_contact(m, d, k):
    """The rows of contact k."""
    f, t = contact_push(m, d, k)
    for c in range(pair_jacobian(m, d, k)):
        if m.opt_cone == PYRAMIDAL and d.con_dim[k] > 1:
            add_pyramid(m, d, k, c)
        else:
            add_cone(m, d, k, c, f, t)


@kernel
def find_contested(m, d):
    """Mgrad <- the forces that the rows contest at each dof, primal.Mgrad_old <- the part by its own inertia, M_ii c_i.

    Returns how many times as stiff as its inertia the rows make a dof, at most.
    Reads:  the rows, cdof.   Writes: hessian.pair_J, hessian.pair_dof for itself.   Cost: O(entries of J).
    """
    for i in range(m.nv):
        d.primal.Mgrad[i], d.primal.Mgrad_old[i] = zero(d), zero(d) + metric_diagonal(m, d, i)
    for k in range(d.ndofrow[0]):
        f, _ = bounded_force(d.dofrow_D[k], d.primal.dofrow_x[k], d.dofrow_lo[k], d.dofrow_hi[k])
        add_row(d, d.dofrow_dof[k], d.dofrow_J[k], d.dofrow_D[k], f)
    for k in range(d.ngenrow[0]):
        f, _ = bounded_force(d.genrow_D[k], d.primal.genrow_x[k], d.genrow_lo[k], d.genrow_hi[k])
        for e in range(d.genrow_dofadr[k], d.genrow_dofadr[k] + d.genrow_dofnum[k]):
            add_row(d, d.genrow_dof[e], d.genrow_J[e], d.genrow_D[k], f)
    for k in range(d.ncon_slot[0]):
        add_contact(m, d, k)
    stiffest = zero(d)
    for i in range(m.nv):
        inertia = metric_diagonal(m, d, i)
        stiffest = fmax(stiffest, d.primal.Mgrad_old[i] / inertia)
        d.primal.Mgrad_old[i] = inertia * d.primal.Mgrad[i] / d.primal.Mgrad_old[i]
    return stiffest


# ---- right ---------------------------------------------------------------------------------------------------------
@kernel
def size_from_acceleration(m, d):
    """max(|f0|, |M a - f0|), or what float32 can square, if that is less."""
    smooth, constraint, f0 = zero(d), zero(d), metric_force(m, d)
    for i in range(m.nv):
        x = d.primal.Ma[i] - f0[i]
        smooth, constraint = fma(f0[i], f0[i], smooth), fma(x, x, constraint)
    size = sqrt(fmax(smooth, constraint))
    if single_precision(d):
        size = fmin(size, SQUARED)
    return size


@kernel
def is_right(m, d, gradient, promise, fall, stiffest):
    """(mask: is the acceleration right, by the step that `search_direction` found for a gradient of this norm?,
    mask: is it whatever the factor of H has lost?)

    It is given what the step promises to gain and how steeply the cost falls along it, too.
    """
    small, rounding, above, beyond = real(d, SMALL), one_rounding(d), zero(d), zero(d)
    if single_precision(d):
        small = real(d, SMALL32)
    forces, lost = size_from_acceleration(m, d), 1.0 + SLACK * (rounding * stiffest)
    for i in range(m.nv):
        size = fma(TERMS * rounding, d.primal.Mgrad_old[i], small * forces)
        above = where(fabs(d.primal.Mv[i]) <= size, above, 1.0)
        beyond = where(lost * fabs(d.primal.Mv[i]) <= size, beyond, 1.0)
    known = ((promise < FAR) | (fall == 0.0)) & (rounding * gradient <= forces)
    right = known & (above == 0.0) & not_(set_switches(m, d, real(d, 1.0)))
    return right, right & (beyond == 0.0)


@kernel
def is_well_known(m, d, chosen):
    """Mask: of the chosen worlds, does the factor of H know more than the rounding of its stiffest rows?

    Two patterns of signs are asked.
    Reads:  the rows, cdof.
    Writes: primal.live, primal.Mgrad, primal.Mgrad_old, primal.search, primal.Mv, hessian.H and its factor.
    """
    rounding, above = one_rounding(d), zero(d)
    d.primal.live[0] = where(chosen, 1.0, zero(d))
    assemble_hessian(m, d)
    for pattern in range(2):
        find_contested(m, d)
        for i in range(m.nv):
            if pattern == 1 and (i + i // 2) % 2 == 1:
                d.primal.Mgrad[i] = -d.primal.Mgrad[i]
        substitute(m, d, d.primal.Mgrad)
        for i in range(m.nv):
            moved, contested = rounding * metric_diagonal(m, d, i) * fabs(d.primal.Mgrad[i]), d.primal.Mgrad_old[i]
            above = where((moved <= DIGITS * contested) | (contested == 0.0), above, 1.0)
    return chosen & (above == 0.0)


@kernel
def force_from_acceleration(m, d, chosen):
    """qfrc_constraint = M a - f0 in the chosen worlds."""
    f0 = metric_force(m, d)
    for i in range(m.nv):
        d.qfrc_constraint[i] = where(chosen, d.primal.Ma[i] - f0[i], d.qfrc_constraint[i])


@kernel
def refine(m, d, left, gradient, niter, n):
    """(mask: is the acceleration right, norm of the gradient, iterations): steps of the worlds left, until it is.

    Reads:  the point at which n iterations of the tile ended, its rows and gradient.
    Writes: of the worlds left the point, its rows, and qfrc_constraint by the acceleration; stat_*; primal.*, hessian.*
            and all else that a direction needs.
    Cost:   a product with J, and two or three of Newton's steps.
    """
    tolerance, scale = m.opt_tolerance[0], 1.0 / fmax(trace_of_inertia(m, d), TINY)
    right, todo = false_mask(d), left
    sure = right
    make_rows_anew(m, d, left)
    cost, again = evaluate(m, d)
    gradient = where(left, again, gradient)
    stiffest = find_contested(m, d)
    for k in range(STEPS):
        todo = todo & (niter < m.opt_iterations)
        if not any_(todo):
            break
        d.primal.live[0] = where(todo, 1.0, 0.0)
        promise, fall = search_direction(m, d)
        now, surely = is_right(m, d, gradient, promise, fall, stiffest)
        right, sure = right | (todo & now), sure | (todo & surely)
        todo = todo & not_(right)
        if not any_(todo):
            break
        q1, q2, length = line_terms(m, d)
        a = line_search(m, d, q1, q2, tolerance * m.opt_ls_tolerance[0] * sqrt(length) / scale, todo)
        advance_rows(m, d, a)
        before = cost
        cost, again = evaluate(m, d)
        gradient, niter = where(todo, again, gradient), where(todo, niter + 1.0, niter)
        record(d, n + k + 1, scale * cost, scale * again, scale * (before - cost), a)
    doubted = right & not_(sure)
    if any_(doubted):
        right = sure | is_well_known(m, d, doubted)
    force_from_acceleration(m, d, left)
    return right, gradient, niter
