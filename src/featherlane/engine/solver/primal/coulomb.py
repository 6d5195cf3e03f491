"""Signorini's conditions with Coulomb's law, W worlds at once: the sequence of problems of a step.

    r(a) = M a - f0 - J^T f(J a - aref) = 0

with the law f of rows/coulomb.py, which has no cost.  The problem of stiffness s, 0 < s <= 1, has softer contacts and
friction loss; with s = 1 it is the law.  The solver starts like Newton's method on the convex model, with the friction
bounds of the last acceleration.  A world is solved by a sequence of problems:

1. the law with Dt, and D of friction loss, reduced by SOFT, to ROUGH of the forces, by the primal-dual Newton method
   (primal_dual.py): it finds the zones of the contacts.  It is skipped if the residual of the law is below CLOSE of the
   forces at the start
2. the law itself, by the same method
3. if one of them is not solved: proximal points (proximal.py).  s increases from FIRST; the last problem, s = 1, is
   the law.  If a problem is not solved, a softer one follows.  Below SOFTEST the world is given up

If the residual does not fall, rho falls: the factor e of y in the trial force of the primal-dual method, over Dt of the
law.

The law has a solution for every mu and every state: it is the variational inequality f in K, F(f) . (g - f) >= 0 for
all g in K, whose map F(f) = (A + R) f + b + |slip| n is continuous, and coercive because slip only increases F . f.
Names
    point        a: qacc; y = J a - aref: primal.con_y.  y_i: along the friction directions, all but the normal.
                 Of con_y and fields of d.coulomb, x[ANGULAR, k] has the values about the rotation axes (dimensions 4
                 and 6)
    D, Dt        1 / R of a contact's normal and friction rows.  coulomb.D, Dt, row_D are those of the law (row_D of
                 friction loss); con_D, con_Dt, row_D are those of the present problem
    coulomb.*    warm, start, good: accelerations at the start, before the proximal problems, and of the last solved
                 problem; friction: x of primal_dual.py; force: proximal forces; zone[k][0]: 0 if contact k has no zone
    residual     |r|, with r in d.primal.grad.  `evaluate` computes r and returns (cost, |r|).
                 SMALL, LARGE: parts of the forces, max(|f0|, |J^T f|) = `norm_of_forces`;
                 `is_rounding_of_terms`: mask of worlds whose r is rounding of its terms; FAR: a number out of range
Source: Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems (2008), ch. 13; Hartman and Stampacchia,
    On some non-linear elliptic differential-functional equations (1966), existence.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.primal.accuracy import recompute_rows
from featherlane.engine.solver.primal.history import record_iteration, store_diagnostics
from featherlane.engine.solver.primal.line_search import FAR
from featherlane.engine.solver.primal.primal_dual import newton_step
from featherlane.engine.solver.primal.problem import evaluate, store_primal_forces, trace_of_inertia
from featherlane.engine.solver.primal.proximal import begin_proximal, proximal_step, store_solution
from featherlane.engine.solver.primal.rounding import gradient_limits, is_rounding_of_terms, norm_of_forces
from featherlane.engine.solver.primal.start import start_newton
from featherlane.engine.solver.rows.coulomb import coulomb_force
from featherlane.engine.solver.rows.laws import TINY
from featherlane.engine.solver.rows.rows import ANGULAR
from featherlane.engine.solver.vectors import copy_vector, replace_vector

RHO = 1e-4  # rho at the start of a problem
STALLED = 5  # consecutive iterations without progress, after which rho falls
SLOWER = 0.5  # factor of rho in each of the following iterations
HALVED = 0.5  # an iteration makes progress if it leaves at most this part of the least residual
IMPATIENT = 10  # consecutive iterations without progress, after which a problem is given up
# A problem is also given up if its residual exceeds GROWN times the residual at its start, and GROWN times ROUGH of
# the forces at its start: next to huge forces, any residual seems small
GROWN = 100.0

# s, the stiffness of a problem as a part of that of the law
SOFT = 1e-3  # of the problem that finds the zones
FIRST = 1e-4  # of the first proximal problem
SOFTEST = 1e-13  # a world is given up if s would be smaller
STIFFER, SOFTER = 4.0, 0.04  # factors of s after a solved and after an unsolved proximal problem
CLOSE = 0.1  # of the forces: with a smaller residual at the start, the first problem is the law
# parts of the forces: a problem before the law is solved if its residual is at most ROUGH, or PART if it is proximal
ROUGH, PART = 0.3, 1e-3


# ---- criteria ------------------------------------------------------------------------------------------------------
@kernel
def is_unsolved(m, d, scale, residual):
    """Returns the mask of worlds whose residual shows that the law is not solved, in one of three cases.

        unexplained    above the tolerance and SMALL of the forces, and not rounding of its terms
        is_large       above the tolerance and LARGE of the forces, even if it is rounding
        out_of_range   not below FAR, or NaN
    scale: of the residual in the test of the tolerance.
    """
    _, small, large = gradient_limits(d)
    forces = norm_of_forces(m, d)
    above_tolerance = scale * residual > m.opt_tolerance[0]
    unexplained = above_tolerance & not_(residual <= small * forces)
    if any_(unexplained):  # the costly test of rounding
        unexplained = unexplained & not_(is_rounding_of_terms(m, d))
    is_large = above_tolerance & not_(residual <= large * forces)
    out_of_range = not_(residual < FAR)  # also NaN
    return unexplained | is_large | out_of_range


@kernel
def give_up_residual(m, d, start_residual):
    """Returns the residual above which a problem with this residual at its start is given up."""
    return GROWN * fmax(start_residual, ROUGH * norm_of_forces(m, d))


# ---- problems ------------------------------------------------------------------------------------------------------
@kernel
def store_problem(m, d):
    """Stores the point in coulomb.warm, start and good, and the law's D, Dt and row_D, which problems change.

    Writes: coulomb.warm, start, good, D, Dt, row_D.
    """
    copy_vector(m, d.qacc, d.coulomb.warm)
    copy_vector(m, d.qacc, d.coulomb.start)
    copy_vector(m, d.qacc, d.coulomb.good)
    for k in range(d.ncon_slot[0]):
        d.coulomb.D[k], d.coulomb.Dt[k] = d.con_D[k], d.con_Dt[k]
    for k in range(d.nrow[0]):
        d.coulomb.row_D[k] = d.row_D[k]


@kernel
def soften_losses(m, d, chosen, stiffness):
    """Sets D of friction loss to `stiffness` times that of the law, in the `chosen` worlds."""
    for k in range(d.nrow[0]):
        if d.row_type[k] in (FRICTION_DOF, FRICTION_TENDON):
            d.row_D[k] = where(chosen, stiffness * d.coulomb.row_D[k], d.row_D[k])


@kernel
def set_problem(m, d, chosen, back, shifted, stiffness):
    """Sets the problem of stiffness s in the `chosen` worlds; returns the norm of the residual of all worlds.

    A contact with friction gets the compliance c = (1 / s - 1) / Dt: D / (1 + c D), s Dt and y - c p take the place of
    D, Dt and y, with the proximal forces p = coulomb.force.  Friction loss has s D in place of D.  Other rows keep D.

    Args:
        chosen: mask of worlds that get the problem.
        back: mask of worlds that first go to the point coulomb.good.
        shifted: mask of worlds with proximal forces, a part of `back`: c p is subtracted from recomputed y.  In all
            other worlds p = 0.
        stiffness: s of each world.

    Writes: con_D, con_Dt, row_D, coulomb.zone[k][0]; in `back` qacc and its rows; in `shifted` primal.con_y.
    """
    if any_(back):
        replace_vector(m, back, d.coulomb.good, d.qacc)
        recompute_rows(m, d, back)
    soften_losses(m, d, chosen, stiffness)
    for k in range(d.ncon_slot[0]):
        contact = d.contact[k]
        if contact.dim > 1:
            D, Dt = d.coulomb.D[k], d.coulomb.Dt[k]
            # Dt is 0 in worlds without the contact: c = 0 there
            c = where(Dt > 0.0, (1.0 / stiffness - 1.0) / where(Dt > 0.0, Dt, 1.0), 0.0)
            contact.D = where(chosen, D / fma(c, D, 1.0), contact.D)
            contact.Dt = where(chosen, stiffness * Dt, contact.Dt)
            d.coulomb.zone[k][0] = where(chosen, 0.0, d.coulomb.zone[k][0])  # no zone before the first iteration
            if any_(shifted):
                y = d.primal.con_y[k]
                d.primal.con_y[k] = where(shifted, fma(-c, d.coulomb.force[k], y), y)
                if contact.dim > 3:
                    y = d.primal.con_y[ANGULAR, k]
                    d.primal.con_y[ANGULAR, k] = where(shifted, fma(-c, d.coulomb.force[ANGULAR, k], y), y)
    _, residual = evaluate(m, d)
    return residual


@kernel
def start_friction(d, chosen):
    """Sets coulomb.friction in the `chosen` worlds to the friction of the law, ratio y_i along friction direction i."""
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            _, ratio, _ = coulomb_force(d, k, d.primal.con_y)  # ratio: friction over y_i
            for i in unrolled(range(1, 3)):
                d.coulomb.friction[k][i] = where(chosen, ratio * d.primal.con_y[k][i], d.coulomb.friction[k][i])
            if d.con_dim[k] > 3:
                friction, y = d.coulomb.friction[ANGULAR, k], d.primal.con_y[ANGULAR, k]
                d.coulomb.friction[ANGULAR, k] = where(chosen, ratio * y, friction)


@kernel
def next_problem(m, d, solved, given_up, proximal, stiffness):
    """Sets the next problem in the worlds of the masks `solved` and `given_up`.

    Returns (mask `proximal`, stiffness s, residual of all worlds) of the next problems.

    Args:
        solved: worlds that solved a problem before the law.  The next problem is stiffer.
        given_up: worlds that gave a problem up.  The next problem is a softer proximal one.
        proximal: worlds whose last problem was a proximal one.
        stiffness: s of each world's problem.
    """
    store_solution(m, d, solved, solved & proximal)  # writes coulomb.good, and coulomb.force of proximal problems
    first_proximal = given_up & not_(proximal)
    if any_(first_proximal):
        begin_proximal(m, d, first_proximal)  # writes coulomb.start, and 0 to coulomb.force
    # s after a solution: larger if the problem was proximal, else 1: the law follows the problem that finds the zones.
    # s after a failure: smaller if the problem was proximal, else that of the first proximal problem
    stiffer = where(proximal, fmin(STIFFER * stiffness, 1.0), 1.0)
    softer = where(proximal, SOFTER * stiffness, FIRST)
    stiffness = where(solved, stiffer, where(given_up, softer, stiffness))
    proximal = proximal | given_up
    continues = (solved | given_up) & (stiffness > SOFTEST)
    # the law starts at the present point; proximal problems start at the last solution, with its forces
    from_solution = continues & proximal
    residual = set_problem(m, d, chosen=continues, back=from_solution, shifted=from_solution, stiffness=stiffness)
    start_friction(d, continues & given_up)
    return proximal, stiffness, residual


@kernel
def leave_unsolved(m, d, unsolved, proximal, initial_residual):
    """Moves unsolved worlds to the point before the proximal problems, or to the start if its residual is smaller.

    Args:
        unsolved: mask of unsolved worlds.
        proximal: mask of worlds with proximal problems.  Without one, a world stays at the present point.
        initial_residual: residual of the law at the start.

    Returns the residual of the law of all worlds.
    """
    # coulomb.good: the point to which `set_problem` moves the worlds of `back`
    for i in range(m.nv):
        d.coulomb.good[i] = where(proximal, d.coulomb.start[i], d.qacc[i])
    residual = set_problem(m, d, chosen=unsolved, back=unsolved, shifted=false_mask(d), stiffness=1.0)
    worse = unsolved & not_(residual <= initial_residual)
    if any_(worse):
        copy_vector(m, d.coulomb.warm, d.coulomb.good)
        residual = set_problem(m, d, chosen=worse, back=worse, shifted=false_mask(d), stiffness=1.0)
    return residual


# ---- the iterations --------------------------------------------------------------------------------------------------
@kernel
def first_problem(m, d, live, residual):
    """Sets the first problem in the `live` worlds: the one that finds the zones, or the law if its residual is small.

    residual: that of the law at the start.  Returns (stiffness s, residual) of the problems.
    """
    stiffness = 1.0
    if any_(live):
        store_problem(m, d)
        stiffness = where(live & not_(residual <= CLOSE * norm_of_forces(m, d)), SOFT, stiffness)
        none = false_mask(d)
        residual = set_problem(m, d, chosen=live, back=none, shifted=none, stiffness=stiffness)
        start_friction(d, live)
    return stiffness, residual


@kernel
def iterate_problem(m, d, live, proximal, residual, rho, niter):
    """Moves the `live` worlds by one iteration: of the proximal method in `proximal` worlds, else the primal-dual one.

    residual: norm of the problem's residual.  rho: e of the trial force over Dt of the law (primal_dual.py).
    niter: earlier iterations.   Returns (residual, length of the step).
    """
    step = 0.0
    by_proximal = live & proximal
    if any_(live & not_(by_proximal)):
        residual, step = newton_step(m, d, live & not_(by_proximal), residual, rho, niter)
    if any_(by_proximal):
        residual, proximal_length = proximal_step(m, d, by_proximal, residual)
        step = where(by_proximal, proximal_length, step)
    return residual, step


@kernel
def has_solved(m, d, scale, residual, proximal, is_law, stalled, hopeless):
    """Returns the mask of worlds that have solved their problem.

    - Any problem: the residual is below the tolerance.
    - The law, in worlds without progress (`stalled`): the residual is rounding of its terms, and not large.
    - The law, in worlds that would give it up (`hopeless`): the residual is small or rounding, and not large.
    - A problem before the law: the residual is at most ROUGH of the forces, or PART if the problem is proximal.

    scale: of the residual in the test of the tolerance.  is_law: mask of worlds whose problem is the law.
    """
    solved = scale * residual <= m.opt_tolerance[0]
    _, _, large = gradient_limits(d)
    stalled_law = stalled & is_law & not_(solved) & (residual <= large * norm_of_forces(m, d))
    if any_(stalled_law):
        solved = solved | (stalled_law & is_rounding_of_terms(m, d))
    hopeless_law = hopeless & is_law
    if any_(hopeless_law & not_(solved)):
        solved = solved | (hopeless_law & not_(is_unsolved(m, d, scale, residual)))
    accurate_enough = where(proximal, PART, ROUGH) * norm_of_forces(m, d)
    return solved | (not_(is_law) & (residual <= accurate_enough))


@kernel
def coulomb_newton(m, d):
    """Solves M a = f0 + J^T f with Coulomb's law f(J a - aref) in every world; also forces, iterations and residual.

    Each world solves a sequence of problems of stiffness s <= 1, the last of which, s = 1, is the law.
    Numbers of each world:
        stiffness: s of its problem, 1 of the law.
        residual: norm of its problem's residual.  start_residual: that at the problem's start.
        initial_residual: norm of the law's residual at the start of the solve.
        least: least residual of its problem.  too_large: residual above which the problem is given up.
        niter: iterations.  idle: consecutive iterations without progress.  step: length of the last step.
        rho: e of the trial force over Dt of the law (primal_dual.py).
    Masks of worlds:
        live: takes the next step.  unsolved: has not solved the law; it is not live if it has given up.
        proximal: its problem is a proximal one.
        slow: this iteration made no progress (HALVED).  hopeless: further iterations do not solve its problem.
    """
    d.coulomb.fixed[0] = 1  # the next line search keeps the friction bounds fixed
    start_newton(m, d)
    scale = 1.0 / fmax(trace_of_inertia(m, d), TINY)
    tolerance = m.opt_tolerance[0]
    _, initial_residual = evaluate(m, d)
    active = d.active[0] > 0.0
    live = (scale * initial_residual > tolerance) & active
    unsolved = live
    proximal, niter = false_mask(d), 0.0
    # the law has no cost, and the start no step: niter is 0 in every world
    record_iteration(d, k=0, cost=0.0, gradient=scale * initial_residual, improvement=niter, step=niter)
    stiffness, residual = first_problem(m, d, live, initial_residual)
    idle, rho = 0.0, RHO
    least = residual
    too_large = give_up_residual(m, d, residual)
    # twice the iterations of the convex problem: a step solves a sequence of problems
    for iteration in range(2 * m.opt_iterations):
        if not any_(live):
            break
        residual, step = iterate_problem(m, d, live, proximal, residual, rho, niter)
        niter = where(live, niter + 1.0, niter)
        record_iteration(d, iteration + 1, cost=0.0, gradient=scale * residual, improvement=0.0, step=step)

        # progress.  Comparisons with a residual that is NaN are false: the problem is unsolved
        slow = not_(residual <= HALVED * least)
        least = fmin(residual, least)
        idle = where(slow, idle + 1.0, 0.0)
        rho = where(idle >= STALLED, SLOWER * rho, rho)  # smaller steps between sticking and slipping
        hopeless = live & ((idle >= IMPATIENT) | not_(step > 0.0) | not_(residual <= too_large))

        # problems that end
        is_law = stiffness >= 1.0
        solved = live & has_solved(m, d, scale, residual, proximal, is_law, live & slow, hopeless)
        given_up = hopeless & not_(solved)
        finished = solved & is_law
        live, unsolved = live & not_(finished), unsolved & not_(finished)

        # problems that begin, in worlds whose last problem was solved or given up
        ended = (solved & not_(is_law)) | given_up
        if any_(ended):
            to_stiffer = solved & not_(is_law)
            proximal, stiffness, start_residual = next_problem(m, d, to_stiffer, given_up, proximal, stiffness)
            live = live & (stiffness > SOFTEST)
            begins = live & ended
            # the law may be solved at the start
            finished = begins & not_(stiffness < 1.0) & (scale * start_residual <= tolerance)
            live, unsolved = live & not_(finished), unsolved & not_(finished)
            residual = start_residual
            least = where(begins, start_residual, least)
            too_large = where(begins, give_up_residual(m, d, start_residual), too_large)
            idle = where(begins, 0.0, idle)
            rho = where(begins, RHO, rho)
    failed = active & not_(residual < FAR)
    if any_(unsolved):
        residual = leave_unsolved(m, d, unsolved, proximal, initial_residual)
        failed = failed | (unsolved & is_unsolved(m, d, scale, residual))
    store_diagnostics(d, niter, scale * residual, gap=0.0)  # the law has no cost
    warn(d, NOT_CONVERGED, failed)
    store_primal_forces(m, d)
