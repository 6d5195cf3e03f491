"""Checks whether the acceleration is accurate although the forces of the rows do not balance.

Rows may push against each other with forces that are much larger than their sum: stiff contacts, or a puck between
walls.  Each force D (J a - aref) is accurate to one rounding, but rounding dominates the sum.  Example: in robosuite's
three-fingered gripper, forces of 2e16 N have moments of 5e13 N m that cancel to 3 N m.  The acceleration is accurate
nevertheless: the stiffer the rows, the smaller the change of acceleration that changes their sum.  The total force of
all rows is also accurate if it is computed from the acceleration,

    J^T f = M a - f0.

Its error is M p, with p = -H^-1 g the step from a to the minimum.  The error of the sum is the gradient g = -H p.
The acceleration is accepted if

    |M p|_i <= SMALL max(|f0|, |M a - f0|) + TERMS EPS M_ii c_i   for each dof, and no row changes its bound along p,

    c_i = sum over rows of |J_i f| / (M_ii + sum over rows of J_i^2 D).

c_i is the acceleration of dof i that opposing rows produce; they determine it only to a few roundings of c_i.  The rows
are recomputed from a before the check, and steps p repeat until it passes.  If a rounding of g exceeds all forces, g,
thus p, is meaningless: a float32 rounding of J a - aref, 1e-5 m/s^2, may be 5e9 N.

The factor of H may have lost M by rounding, so p may be larger than computed.  Example: one row, a tendon along two
cheetahs, is 1e7 times as stiff as the inertia it acts on.  Then float32 keeps nothing of M, and free directions seem as
stiff as the rounding of the row.  The stiffness of the rows bounds how much larger p may be; if |M p| passes the test
times this bound, p is accepted.  Otherwise H^-1 is applied to the row forces, with either sign: one rounding of them
may move each dof i by only a part DIGITS of c_i.

Names
    point      a: qacc; M a: primal.Ma; J a - aref: primal.row_x (scalar rows row_*), con_y (contacts con_*).
               con_y[ANGULAR, k] has the values about the rotation axes of contact k, in dimensions 4 and 6; the last
               two rotation axes are 0 in dimension 4
    direction  p: primal.search; M p: primal.Mv; J p: primal.row_v, con_z
    tests      primal.terms: sum over rows of |J_i f| per dof; primal.contested: M_ii c_i; SMALL, TERMS, EPS: see
               rounding.py
    D, Dt      1 / R of a contact's normal row, of all edges of a pyramid; Dt: of an elliptic contact's other rows
    pair_*     Jacobian of one contact, column by column: column c belongs to dof hessian.pair_dof[c], its rows along
               (n, mu_1 t_1, mu_2 t_2) are hessian.pair_J[c], those about the rotation axes hessian.pair_J[nv + c]
    metric_*   functions of M; primal.live: 1 in worlds that take a step; FAR: stands for infinity
    forces     `bounded_force` and `one_sided_force` return (force, cost) of a row: clip(-D x, lo, hi), max(-D x, 0)
    H          `assemble_hessian` computes M + J^T D J; `substitute` replaces a vector x by H^-1 x
    counts     nrow: scalar rows; ncon_slot: contact slots
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.general import row_entries
from featherlane.engine.dynamics.inertia.metric import metric_diagonal, metric_force, metric_times
from featherlane.engine.solver.hessian.entries.within_tree import store_pair_jacobian
from featherlane.engine.solver.hessian.equation import assemble_hessian, substitute
from featherlane.engine.solver.primal.direction import search_direction
from featherlane.engine.solver.primal.history import record_iteration
from featherlane.engine.solver.primal.line_search import FAR, line_search, line_terms, slope_tolerance
from featherlane.engine.solver.primal.problem import (
    advance_rows,
    compute_rows_at,
    evaluate,
    find_switching_worlds,
    replace_rows,
    trace_of_inertia,
)
from featherlane.engine.solver.primal.rounding import TERMS, gradient_limits, larger_norm, one_rounding
from featherlane.engine.solver.rows.contacts import contact_forces
from featherlane.engine.solver.rows.laws import TINY, bounded_force, one_sided_force
from featherlane.engine.solver.rows.rows import ANGULAR, list_slots
from featherlane.engine.solver.vectors import dot_product, replace_vector

DIGITS = 1e-2  # largest accepted change of acceleration by one rounding of the row forces, as a part of c_i
SLACK = 100.0  # how much softer than the diagonal of M a direction without rows may be
STEPS = 20  # from recomputed rows: one or two are enough, unless rows alternate due to rounding


# ---- rows from the acceleration ------------------------------------------------------------------------------------
@kernel
def recompute_rows(m, d, chosen):
    """Recomputes J a - aref and M a of the chosen worlds from a: each step has added its rounding errors.

    Scratch: primal.row_v and con_warm (the recomputed rows), Mv (the recomputed M a), con_z.
    """
    compute_rows_at(m, d, d.qacc, d.primal.row_v, d.primal.con_warm)
    metric_times(m, d, d.qacc, d.primal.Mv)
    replace_vector(m, chosen, d.primal.Mv, d.primal.Ma)
    replace_rows(d, chosen, d.primal.con_warm)  # row_x, con_y <- row_v, con_warm


# ---- opposing row forces -------------------------------------------------------------------------------------------
@kernel
def add_opposing_row(d, i, J, D, f):
    """Adds a row with entry J at dof i, stiffness D and force f: |J f| to primal.terms, J^2 D to primal.contested.

    primal.contested holds M_ii + the sum of J^2 D until `store_opposing_forces` replaces it by M_ii c_i.
    """
    d.primal.terms[i] = fma(fabs(J), fabs(f), d.primal.terms[i])
    d.primal.contested[i] = fma(J * J, D, d.primal.contested[i])


@kernel
def add_opposing_edges(d, k, i, J_n, J_e, y_n, y_e):
    """Adds the two edges n + e and n - e of pyramid k, for a direction e of its basis, to primal.terms and contested.

    J_n, y_n: entry at dof i, and J a - aref, of the normal row.  J_e, y_e: those of the row along direction e.
    """
    D = d.con_D[k]
    f_plus, _ = one_sided_force(D, y_n + y_e)
    f_minus, _ = one_sided_force(D, y_n - y_e)
    add_opposing_row(d, i, J_n + J_e, D, f_plus)
    add_opposing_row(d, i, J_n - J_e, D, f_minus)


@kernel
def add_opposing_pyramid(m, d, k, c):
    """Adds |J f| and J^2 D of the edges of contact k, at column c of its Jacobian, to primal.terms and contested."""
    i, J, y = d.hessian.pair_dof[c], d.hessian.pair_J[c], d.primal.con_y[k]
    # edges between the normal and both tangents, then those between the normal and the rotation axes
    for e in unrolled(range(1, 3)):
        add_opposing_edges(d, k, i, J[0], J[e], y[0], y[e])
    if d.con_dim[k] > 3:
        J_angular, y_angular = d.hessian.pair_J[m.nv + c], d.primal.con_y[ANGULAR, k]
        add_opposing_edges(d, k, i, J[0], J_angular[0], y[0], y_angular[0])
        if d.con_dim[k] > 4:  # dimension 4 has only the spin about the normal
            for e in unrolled(range(1, 3)):
                add_opposing_edges(d, k, i, J[0], J_angular[e], y[0], y_angular[e])


@kernel
def add_opposing_cone(m, d, k, c, forces, moments):
    """Adds |J f| and J^2 D of the rows of contact k, at column c of its Jacobian, to primal.terms and contested.

    forces: along normal and tangents; moments: about the rotation axes.  Without friction, there is only the normal
    row.
    """
    contact = d.contact[k]
    i = d.hessian.pair_dof[c]
    D, Dt, dim = contact.D, contact.Dt, contact.dim
    J = d.hessian.pair_J[c]
    add_opposing_row(d, i, J[0], D, forces[0])
    if dim > 1:
        add_opposing_row(d, i, J[1], Dt, forces[1])
        add_opposing_row(d, i, J[2], Dt, forces[2])
    if dim > 3:
        J_angular = d.hessian.pair_J[m.nv + c]
        for e in unrolled(range(3)):
            add_opposing_row(d, i, J_angular[e], Dt, moments[e])


@kernel
def add_opposing_contact(m, d, k):
    """Adds |J f| and J^2 D of the rows of contact k to primal.terms and contested, column by column of its Jacobian."""
    forces, moments = contact_forces(m, d, k)
    for c in range(store_pair_jacobian(m, d, k)):  # writes hessian.pair_dof, pair_J; returns the number of columns
        if has_pyramids(m) and d.con_dim[k] > 1:
            add_opposing_pyramid(m, d, k, c)
        else:
            add_opposing_cone(m, d, k, c, forces, moments)


@kernel
def store_opposing_forces(m, d):
    """Computes primal.terms = sum over rows of |J_i f| per dof, and primal.contested = M_ii c_i.

    M_ii c_i = M_ii terms_i / (M_ii + sum over rows of J_i^2 D).
    Returns the largest ratio (M_ii + sum over rows of J_i^2 D) / M_ii of a dof.
    Reads:  the rows, cdof.
    Scratch: hessian.pair_J, hessian.pair_dof.
    Cost:   O(entries of J).
    """
    # first contested = M_ii + sum over rows of J_i^2 D, the divisor
    for i in range(m.nv):
        d.primal.terms[i], d.primal.contested[i] = 0.0, metric_diagonal(m, d, i)
    for k in range(d.nrow[0]):
        f, _ = bounded_force(d.row[k], d.primal.row_x[k])
        for e in row_entries(d, k):
            add_opposing_row(d, d.row_dof[e], d.row_J[e], d.row_D[k], f)
    for k in range(d.ncon_slot[0]):
        add_opposing_contact(m, d, k)
    # then contested = M_ii terms_i / contested = M_ii c_i
    stiffest = 0.0
    for i in range(m.nv):
        inertia = metric_diagonal(m, d, i)
        stiffest = fmax(stiffest, d.primal.contested[i] / inertia)
        d.primal.contested[i] = inertia * d.primal.terms[i] / d.primal.contested[i]
    return stiffest


# ---- accuracy checks -----------------------------------------------------------------------------------------------
@kernel
def norm_from_acceleration(m, d):
    """Returns max(|f0|, |M a - f0|); in float32, at most the largest number whose square is finite.

    f0: the forces without those of constraints (`metric_force`).
    """
    f0 = metric_force(m, d)
    constraint = 0.0  # |M a - f0|^2
    for i in range(m.nv):
        f = d.primal.Ma[i] - f0[i]
        constraint = fma(f, f, constraint)
    return larger_norm(d, dot_product(m, f0, f0), constraint)


@kernel
def is_accurate(m, d, gradient, predicted, descent_rate, stiffest):
    """Returns (accurate, certain): masks of worlds whose acceleration meets the criterion at the top of this file.

    accurate: with |M p|_i as computed.  certain: also with an upper bound of |M p|_i, because p may be larger than
    computed if the factor of H has lost M by rounding.
    gradient: norm of the gradient.
    predicted, descent_rate: results of `search_direction`, which computed p: FAR if p is not Newton's direction, and
        -p . grad, which is 0 if p = 0.
    stiffest: result of `store_opposing_forces`.
    """
    _, small, _ = gradient_limits(d)
    rounding = one_rounding(d)
    above, above_if_lost = 0.0, 0.0  # 1 if |M p|_i, or its upper bound, is above the limit of some dof i
    force_norm = norm_from_acceleration(m, d)
    # upper bound of |M p|_i: growth |M p|_i.  One rounding of the diagonal M_ii + sum of J_i^2 D is at most
    # rounding * stiffest M_ii; a direction may be SLACK times softer than the diagonal
    growth = 1.0 + SLACK * (rounding * stiffest)
    for i in range(m.nv):
        # small max(|f0|, |M a - f0|) + TERMS rounding M_ii c_i
        limit = fma(TERMS * rounding, d.primal.contested[i], small * force_norm)
        above = where(fabs(d.primal.Mv[i]) <= limit, above, 1.0)
        above_if_lost = where(growth * fabs(d.primal.Mv[i]) <= limit, above_if_lost, 1.0)
    # p is meaningful: it is Newton's direction or 0, and a rounding of the gradient does not exceed all forces
    meaningful = ((predicted < FAR) | (descent_rate == 0.0)) & (rounding * gradient <= force_norm)
    accurate = meaningful & (above == 0.0) & not_(find_switching_worlds(m, d, a=1.0))
    return accurate, accurate & (above_if_lost == 0.0)


@kernel
def factor_keeps_inertia(m, d, chosen):
    """Returns a mask of the chosen worlds whose factor of H has not lost M by rounding.

    One rounding of the row forces moves dof i by x_i = EPS H^-1 terms; it may be only a part DIGITS of c_i.
    Two sign patterns of the forces are tested: all positive, and + - - + + - - + ... by dofs.
    Reads:  the rows, cdof.
    Writes: primal.live, primal.terms, primal.contested, primal.search, primal.Mv, hessian.H and its factor.
    """
    rounding = one_rounding(d)
    above = 0.0  # 1 if some dof moves by more than the part DIGITS of c_i
    d.primal.live[0] = where(chosen, 1.0, 0.0)
    assemble_hessian(m, d)  # H of the rows in worlds with primal.live = 1
    for pattern in range(2):  # pattern of signs
        store_opposing_forces(m, d)  # writes primal.terms again, which `substitute` below overwrites, and contested
        for i in range(m.nv):
            # signs + - - + + - - + ... of the second pattern
            if pattern == 1 and (i + i // 2) % 2 == 1:
                d.primal.terms[i] = -d.primal.terms[i]
        substitute(m, d, d.primal.terms)  # terms <- H^-1 terms
        for i in range(m.nv):
            # M_ii |x_i| against M_ii c_i; dofs without a row force have c_i = 0
            moved = rounding * metric_diagonal(m, d, i) * fabs(d.primal.terms[i])
            contested = d.primal.contested[i]
            above = where((moved <= DIGITS * contested) | (contested == 0.0), above, 1.0)
    return chosen & (above == 0.0)


@kernel
def force_from_acceleration(m, d, chosen):
    """Computes qfrc_constraint = M a - f0 in the chosen worlds."""
    f0 = metric_force(m, d)
    for i in range(m.nv):
        d.qfrc_constraint[i] = where(chosen, d.primal.Ma[i] - f0[i], d.qfrc_constraint[i])


@kernel
def refine_solution(m, d, stopped, gradient, niter, n):
    """Takes Newton steps in the `stopped` worlds until their acceleration is accurate.

    Returns (mask of worlds with an accurate acceleration, norm of the gradient, iterations of each world).
    stopped: mask of worlds that stopped with a gradient that is not small.
    gradient, niter: norm of the gradient and iterations of each world.  n: iterations of the tile.
    Reads:  the point at which n iterations of the tile ended, its rows and gradient.
    Writes: in the `stopped` worlds the point, its rows, and qfrc_constraint from the acceleration; stat_*; primal.*,
            hessian.* and all other fields that a direction needs.
    Cost:   a product with J, and two or three Newton steps.
    """
    scale = 1.0 / fmax(trace_of_inertia(m, d), TINY)  # of cost and gradient in the records and the tolerance
    # masks of worlds.  accurate, certain: both results of `is_accurate`.  todo: takes the next step
    accurate = false_mask(d)
    todo = stopped
    certain = accurate
    recompute_rows(m, d, stopped)
    cost, new_gradient = evaluate(m, d)
    gradient = where(stopped, new_gradient, gradient)
    stiffest = store_opposing_forces(m, d)  # writes primal.contested, which `is_accurate` reads
    for k in range(STEPS):
        todo = todo & (niter < m.opt_iterations)
        if not any_(todo):
            break
        d.primal.live[0] = where(todo, 1.0, 0.0)
        predicted, descent_rate = search_direction(m, d)  # writes p, M p and J p
        accurate_now, certain_now = is_accurate(m, d, gradient, predicted, descent_rate, stiffest)
        accurate, certain = accurate | (todo & accurate_now), certain | (todo & certain_now)
        todo = todo & not_(accurate)
        if not any_(todo):
            break
        # step of length a to the minimum of the cost along p
        q1, q2, p_squared = line_terms(m, d)
        a = line_search(m, d, q1, q2, slope_tolerance(m, scale, p_squared), live=todo)
        advance_rows(m, d, a)
        cost_before = cost
        cost, new_gradient = evaluate(m, d)
        gradient = where(todo, new_gradient, gradient)
        niter = where(todo, niter + 1.0, niter)
        record_iteration(d, n + k + 1, scale * cost, scale * new_gradient, scale * (cost_before - cost), a)
        todo = todo & (a > 0.0)  # a step of length 0 would repeat forever
    list_slots(d)  # all contact slots again: `search_direction` left out those of other worlds
    # worlds that are accurate only if the factor of H has not lost M: `factor_keeps_inertia` checks it
    doubted = accurate & not_(certain)
    if any_(doubted):
        accurate = certain | factor_keeps_inertia(m, d, doubted)
    force_from_acceleration(m, d, stopped)
    return accurate, gradient, niter
