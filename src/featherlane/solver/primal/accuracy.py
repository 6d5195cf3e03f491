"""Checks whether the acceleration is accurate although the forces of the rows do not balance.

Rows may push against each other with forces that are much larger than their sum: stiff contacts, or a puck between
walls.  Each force D (J a - aref) is accurate to one rounding, but rounding dominates the sum.  Example: in robosuite's
three-fingered gripper, forces of 2e16 N have moments of 5e13 N m that cancel to 3 N m.  The acceleration is accurate
nevertheless: the stiffer the rows, the smaller the change of acceleration that changes their sum.  The total force of
all rows is accurate, too, if it is computed from the acceleration,

    J^T f = M a - f0.

Its error is M p, with p = -H^-1 g the step from a to the minimum.  The error of the sum is the gradient g = -H p.
The acceleration is accepted if

    |M p|_i <= SMALL max(|f0|, |M a - f0|) + TERMS EPS M_ii c_i   for each dof, and no row changes its bound along p,

    c_i = sum over rows of |J_i f| / (M_ii + sum over rows of J_i^2 D).

c_i is the acceleration of dof i that opposing rows produce; they determine it only to a few roundings of c_i.  The rows
are recomputed from a before the check, and steps p repeat until it passes.  If a rounding of g exceeds all forces, g,
thus p, is meaningless: a float32 rounding of J a - aref, 1e-5 m/s^2, may be 5e9 N.

The same holds if the factor of H has lost M.  Example: one row, a tendon along two cheetahs, is 1e7 times as stiff as
the inertia it acts on.  Then float32 keeps nothing of M, and free directions seem as stiff as the rounding of the row.
The stiffness of the rows bounds how much larger p may be than computed; if that bound is acceptable, p is.  Otherwise
the row forces, with either sign, are applied to H: one rounding of them may move each dof by only a part of its c.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric_diagonal, metric_force, metric_times
from featherlane.solver.hessian.entries.within_tree import store_pair_jacobian
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
from featherlane.solver.rows.pyramid import one_sided_row
from featherlane.solver.rows.rows import TURN, list_slots

DIGITS = 1e-2  # largest accepted motion due to a rounding of the row forces, as a part of c_i
SLACK = 100.0  # how much softer than the diagonal of M a direction without rows may be
STEPS = 20  # from recomputed rows: one or two are enough, unless rows alternate due to rounding


# ---- rows from the acceleration ------------------------------------------------------------------------------------
@kernel
def make_rows_anew(m, d, chosen):
    """Recomputes J a - aref and M a of the chosen worlds from a: each step has added its rounding errors."""
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
    for k in range(d.ncon_slot[0]):
        d.primal.con_y[k] = where(chosen, d.primal.con_warm[k], d.primal.con_y[k])
        if d.con_dim[k] > 3:
            d.primal.con_y[TURN, k] = where(chosen, d.primal.con_warm[TURN, k], d.primal.con_y[TURN, k])


# ---- opposing row forces -------------------------------------------------------------------------------------------
@kernel
def add_row(d, i, J, D, f):
    """Adds a row with entry J at dof i, stiffness D and force f: |J f| to `terms`, J^2 D to `contested`."""
    d.primal.terms[i] = fma(fabs(J), fabs(f), d.primal.terms[i])
    d.primal.contested[i] = fma(J * J, D, d.primal.contested[i])


@kernel
def add_edges(d, k, i, J, K, y, u):
    """Adds the two edges of a pyramid between the normal and another direction; J and K are their entries at dof i."""
    D = d.con_D[k]
    f, _ = one_sided_row(D, y + u)
    g, _ = one_sided_row(D, y - u)
    add_row(d, i, J + K, D, f)
    add_row(d, i, J - K, D, g)


@kernel
def add_pyramid(m, d, k, c):
    """Adds the edges of contact k at column c of its Jacobian."""
    i, J, y = d.hessian.pair_dof[c], d.hessian.pair_J[c], d.primal.con_y[k]
    for e in unrolled(range(1, 3)):
        add_edges(d, k, i, J[0], J[e], y[0], y[e])
    if d.con_dim[k] > 3:
        K, u = d.hessian.pair_J[m.nv + c], d.primal.con_y[TURN, k]
        add_edges(d, k, i, J[0], K[0], y[0], u[0])
        if d.con_dim[k] > 4:
            for e in unrolled(range(1, 3)):
                add_edges(d, k, i, J[0], K[e], y[0], u[e])


@kernel
def add_cone_rows(m, d, k, c, f, t):
    """Adds the rows of contact k, with forces f and moments t, at column c of its Jacobian."""
    contact = d.contact[k]
    i, D, Dt, n = d.hessian.pair_dof[c], contact.D, contact.Dt, contact.dim
    J = d.hessian.pair_J[c]
    add_row(d, i, J[0], D, f[0])
    if n > 1:
        add_row(d, i, J[1], Dt, f[1])
        add_row(d, i, J[2], Dt, f[2])
    if n > 3:
        J = d.hessian.pair_J[m.nv + c]
        for e in unrolled(range(3)):
            add_row(d, i, J[e], Dt, t[e])


@kernel
def add_contact_rows(m, d, k):
    """Adds the rows of contact k."""
    f, t = contact_push(m, d, k)
    for c in range(store_pair_jacobian(m, d, k)):
        if has_pyramids(m) and d.con_dim[k] > 1:
            add_pyramid(m, d, k, c)
        else:
            add_cone_rows(m, d, k, c, f, t)


@kernel
def find_contested(m, d):
    """Computes terms = sum over rows of |J_i f| per dof, and contested = M_ii c_i, the part due to inertia.

    Returns the largest ratio of a dof's stiffness by rows to its inertia.
    Reads:  the rows, cdof.
    Scratch: hessian.pair_J, hessian.pair_dof.
    Cost:   O(entries of J).
    """
    for i in range(m.nv):
        d.primal.terms[i], d.primal.contested[i] = 0.0, 0.0 + metric_diagonal(m, d, i)
    for k in range(d.ndofrow[0]):
        f, _ = bounded_force(d.dofrow_D[k], d.primal.dofrow_x[k], d.dofrow_lo[k], d.dofrow_hi[k])
        add_row(d, d.dofrow_dof[k], d.dofrow_J[k], d.dofrow_D[k], f)
    for k in range(d.ngenrow[0]):
        f, _ = bounded_force(d.genrow_D[k], d.primal.genrow_x[k], d.genrow_lo[k], d.genrow_hi[k])
        for e in range(d.genrow_dofadr[k], d.genrow_dofadr[k] + d.genrow_dofnum[k]):
            add_row(d, d.genrow_dof[e], d.genrow_J[e], d.genrow_D[k], f)
    for k in range(d.ncon_slot[0]):
        add_contact_rows(m, d, k)
    stiffest = 0.0
    for i in range(m.nv):
        inertia = metric_diagonal(m, d, i)
        stiffest = fmax(stiffest, d.primal.contested[i] / inertia)
        d.primal.contested[i] = inertia * d.primal.terms[i] / d.primal.contested[i]
    return stiffest


# ---- accuracy checks -----------------------------------------------------------------------------------------------
@kernel
def size_from_acceleration(m, d):
    """Returns max(|f0|, |M a - f0|), limited to what float32 can square."""
    smooth, constraint, f0 = 0.0, 0.0, metric_force(m, d)
    for i in range(m.nv):
        x = d.primal.Ma[i] - f0[i]
        smooth, constraint = fma(f0[i], f0[i], smooth), fma(x, x, constraint)
    size = sqrt(fmax(smooth, constraint))
    if single_precision(d):
        size = fmin(size, SQUARED)
    return size


@kernel
def is_right(m, d, gradient, promise, fall, stiffest):
    """Returns (mask: is the acceleration accurate?, mask: is it accurate whatever the factor of H has lost?).

    The step is that of `search_direction`, for a gradient of this norm.  `promise` is the predicted decrease of cost
    along the step, `fall` the slope of the cost along it.
    """
    small, rounding, above, beyond = SMALL, one_rounding(d), 0.0, 0.0
    if single_precision(d):
        small = SMALL32
    forces, lost = size_from_acceleration(m, d), 1.0 + SLACK * (rounding * stiffest)
    for i in range(m.nv):
        size = fma(TERMS * rounding, d.primal.contested[i], small * forces)
        above = where(fabs(d.primal.Mv[i]) <= size, above, 1.0)
        beyond = where(lost * fabs(d.primal.Mv[i]) <= size, beyond, 1.0)
    known = ((promise < FAR) | (fall == 0.0)) & (rounding * gradient <= forces)
    right = known & (above == 0.0) & not_(set_switches(m, d, 1.0))
    return right, right & (beyond == 0.0)


@kernel
def is_well_known(m, d, chosen):
    """Returns a mask of the chosen worlds whose factor of H resolves more than the rounding of its stiffest rows.

    Two sign patterns of the forces are tested.
    Reads:  the rows, cdof.
    Writes: primal.live, primal.terms, primal.contested, primal.search, primal.Mv, hessian.H and its factor.
    """
    rounding, above = one_rounding(d), 0.0
    d.primal.live[0] = where(chosen, 1.0, 0.0)
    assemble_hessian(m, d)
    for pattern in range(2):
        find_contested(m, d)
        for i in range(m.nv):
            if pattern == 1 and (i + i // 2) % 2 == 1:
                d.primal.terms[i] = -d.primal.terms[i]
        substitute(m, d, d.primal.terms)
        for i in range(m.nv):
            moved, contested = rounding * metric_diagonal(m, d, i) * fabs(d.primal.terms[i]), d.primal.contested[i]
            above = where((moved <= DIGITS * contested) | (contested == 0.0), above, 1.0)
    return chosen & (above == 0.0)


@kernel
def force_from_acceleration(m, d, chosen):
    """Computes qfrc_constraint = M a - f0 in the chosen worlds."""
    f0 = metric_force(m, d)
    for i in range(m.nv):
        d.qfrc_constraint[i] = where(chosen, d.primal.Ma[i] - f0[i], d.qfrc_constraint[i])


@kernel
def refine_solution(m, d, left, gradient, niter, n):
    """Takes further steps in the `left` worlds; returns (mask: accurate?, norm of the gradient, iterations).

    Reads:  the point at which n iterations of the tile ended, its rows and gradient.
    Writes: in the `left` worlds the point, its rows, and qfrc_constraint from the acceleration; stat_*; primal.*,
            hessian.* and all other fields that a direction needs.
    Cost:   a product with J, and two or three Newton steps.
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
        todo = todo & (a > 0.0)  # a step of length 0 would repeat forever
    list_slots(d)
    doubted = right & not_(sure)
    if any_(doubted):
        right = sure | is_well_known(m, d, doubted)
    force_from_acceleration(m, d, left)
    return right, gradient, niter
