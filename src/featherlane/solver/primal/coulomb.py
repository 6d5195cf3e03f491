"""Signorini's conditions with Coulomb's law, W worlds at once: the sequence of problems of a step.

    r(a) = M a - f0 - J^T f(J a - aref) = 0

with the law f of rows/coulomb.py, which has no cost.  The solver starts like Newton's method on the convex model, with
the friction bounds of the last acceleration.  A world is solved by a sequence of problems:

1. the law with Dt, and D of friction loss, reduced by SOFT, to ROUGH of the forces, by the primal-dual Newton method
   (primal_dual.py): it finds the zones of the contacts.  It is skipped if the residual of the law is below CLOSE of the
   forces at the start
2. the law itself, by the same method
3. if one of them is not solved: proximal points (proximal.py).  s increases from FIRST; the last problem, s = 1, is
   the law.  If a problem is not solved, a softer one follows

If the residual does not fall, rho of the primal-dual method falls.

The law has a solution for every mu and every state: it is the variational inequality f in K, F(f) . (g - f) >= 0 for
all g in K, whose map F(f) = (A + R) f + b + |slip| n is continuous, and coercive because slip only increases F . f.
Of the fields in d.coulomb and of con_y, x[TURN, k] holds the values of contact k along its turns, in dimensions 4, 6.
coulomb.warm, start, good: accelerations at the start, before the proximal problems, and of the last solved problem.
coulomb.D, Dt, row_D: D and Dt of the law, of contacts and friction loss; con_D, con_Dt, row_D are those of the present
problem.
SMALL, LARGE, `norm_of_forces`, `is_rounding_of_terms`: see rounding.py; FAR stands for a number out of range.
Source: Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems (2008), ch. 13; Hartman and Stampacchia,
    On some non-linear elliptic differential-functional equations (1966), existence.
"""

from featherlane.prelude import *
from featherlane.solver.primal.accuracy import recompute_rows
from featherlane.solver.primal.history import record_iteration
from featherlane.solver.primal.line_search import FAR
from featherlane.solver.primal.primal_dual import newton_step
from featherlane.solver.primal.problem import evaluate, store_primal_forces, trace_of_inertia
from featherlane.solver.primal.proximal import begin_proximal, proximal_step, store_solution
from featherlane.solver.primal.rounding import LARGE, LARGE32, SMALL, SMALL32, is_rounding_of_terms, norm_of_forces
from featherlane.solver.primal.start import start_newton
from featherlane.solver.rows.coulomb import coulomb_force
from featherlane.solver.rows.laws import TINY
from featherlane.solver.rows.rows import TURN

RHO = 1e-4  # rho over Dt
SLOWER, STALLED = 0.5, 5  # factor of rho in each iteration after so many that do not halve the residual
HALVED = 0.5  # an iteration makes progress if it leaves at most this part of the least residual
IMPATIENT = 10  # consecutive iterations without progress that end a problem
GROWN = 100.0  # times the first residual or ROUGH: a larger one ends a problem, as huge forces may solve it, too

# s, the stiffness of a problem as a part of that of the law
SOFT = 1e-3  # of the problem that finds the zones
FIRST, SOFTEST = 1e-4, 1e-13  # of the first proximal problem, and the smallest one
STIFFER, SOFTER = 4.0, 0.04  # factors of s after a solved and after an unsolved proximal problem
CLOSE = 0.1  # of the forces: with a smaller residual at the start, the first problem is the law
ROUGH, PART = 0.3, 1e-3  # of the forces: residual of a solved problem if it is not the last one; of proximal ones


# ---- criteria ------------------------------------------------------------------------------------------------------
@kernel
def is_unsolved(m, d, scale, residual):
    """Returns the mask of worlds with a residual that is neither below the tolerance, nor small, nor rounding."""
    small, large = SMALL, LARGE
    if single_precision(d):
        small, large = SMALL32, LARGE32
    forces, above = norm_of_forces(m, d), scale * residual > m.opt_tolerance[0]
    failed = above & not_(residual <= small * forces)
    if any_(failed):
        failed = failed & not_(is_rounding_of_terms(m, d))
    return failed | (above & not_(residual <= large * forces)) | not_(residual < FAR)


@kernel
def give_up_residual(m, d, first):
    """Returns the residual above which a problem with this first residual is given up."""
    return GROWN * fmax(first, ROUGH * norm_of_forces(m, d))


# ---- problems ------------------------------------------------------------------------------------------------------
@kernel
def store_problem(m, d):
    """Stores the point (coulomb.warm, start, good), and D and Dt of the law, which problems change.

    Writes: also coulomb.D, Dt of contacts, coulomb.row_D of friction loss.
    """
    for i in range(m.nv):
        d.coulomb.warm[i], d.coulomb.start[i], d.coulomb.good[i] = d.qacc[i], d.qacc[i], d.qacc[i]
    for k in range(d.ncon_slot[0]):
        d.coulomb.D[k], d.coulomb.Dt[k] = d.con_D[k], d.con_Dt[k]
    for k in range(d.nrow[0]):
        d.coulomb.row_D[k] = d.row_D[k]


@kernel
def soften_losses(m, d, chosen, stiffness):
    """Sets D of friction loss to `stiffness` times that of the law, in the worlds of the mask."""
    for k in range(d.nrow[0]):
        if d.row_type[k] in (FRICTION_DOF, FRICTION_TENDON):
            d.row_D[k] = where(chosen, stiffness * d.coulomb.row_D[k], d.row_D[k])


@kernel
def place_problem(m, d, chosen, back, shifted, stiffness):
    """Sets the law of a problem in the worlds of the first mask; returns the residual of all worlds.

    With the compliance c = (1 / s - 1) / Dt of contact k, its law has D / (1 + c D), s Dt, y - c p, with the proximal
    forces p = coulomb.force.  Friction loss has s D.

    Args:
        chosen: the mask.
        back: worlds that go to the point coulomb.good.
        shifted: worlds with proximal forces; these are also in `back`.
        stiffness: s.
    """
    if any_(back):
        for i in range(m.nv):
            d.qacc[i] = where(back, d.coulomb.good[i], d.qacc[i])
        recompute_rows(m, d, back)
    soften_losses(m, d, chosen, stiffness)
    for k in range(d.ncon_slot[0]):
        contact = d.contact[k]
        if contact.dim > 1:
            D, Dt = d.coulomb.D[k], d.coulomb.Dt[k]
            c = where(Dt > 0.0, (1.0 / stiffness - 1.0) / where(Dt > 0.0, Dt, 1.0), 0.0)
            contact.D = where(chosen, D / fma(c, D, 1.0), contact.D)
            contact.Dt = where(chosen, stiffness * Dt, contact.Dt)
            d.coulomb.zone[k][0] = where(chosen, 0.0, d.coulomb.zone[k][0])  # no zone before the first iteration
            if any_(shifted):
                y = d.primal.con_y[k]
                d.primal.con_y[k] = where(shifted, fma(-c, d.coulomb.force[k], y), y)
                if contact.dim > 3:
                    y = d.primal.con_y[TURN, k]
                    d.primal.con_y[TURN, k] = where(shifted, fma(-c, d.coulomb.force[TURN, k], y), y)
    _, residual = evaluate(m, d)
    return residual


@kernel
def start_friction(d, chosen):
    """Sets coulomb.friction in the worlds of the mask to that of the law, s y_i."""
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            _, s, _ = coulomb_force(d, k, d.primal.con_y)  # s: friction over y_i
            for i in unrolled(range(1, 3)):
                d.coulomb.friction[k][i] = where(chosen, s * d.primal.con_y[k][i], d.coulomb.friction[k][i])
            if d.con_dim[k] > 3:
                friction, y = d.coulomb.friction[TURN, k], d.primal.con_y[TURN, k]
                d.coulomb.friction[TURN, k] = where(chosen, s * y, friction)


@kernel
def next_problem(m, d, won, lost, proximal, stiffness):
    """Sets the next problem in the worlds of the masks; returns (proximal, stiffness, residual of all worlds).

    Args:
        won: worlds that solved a problem that is not the last one.
        lost: worlds that did not solve a problem.
        proximal: worlds with proximal problems.
        stiffness: s.
    """
    store_solution(m, d, won, won & proximal)  # writes coulomb.good, coulomb.force
    begins = lost & not_(proximal)
    if any_(begins):
        begin_proximal(m, d, begins)
    # s = 1 after the problem that finds the zones; proximal problems get harder after success, easier after failure
    harder = where(proximal, fmin(STIFFER * stiffness, 1.0), 1.0)
    easier = where(proximal, SOFTER * stiffness, FIRST)
    stiffness = where(won, harder, where(lost, easier, stiffness))
    proximal = proximal | lost
    continues = (won | lost) & (stiffness > SOFTEST)
    shifted = continues & proximal
    residual = place_problem(m, d, continues, continues & (lost | shifted), shifted, stiffness)
    start_friction(d, continues & lost)
    return proximal, stiffness, residual


@kernel
def leave_unsolved(m, d, left, proximal, first):
    """Places unsolved worlds at the point before the proximal problems, or at the start if its residual is smaller.

    Args:
        left: the mask.
        proximal: worlds with proximal problems.
        first: residual of the law at the start.

    Returns the residual of the law of all worlds.
    """
    for i in range(m.nv):
        d.coulomb.good[i] = where(proximal, d.coulomb.start[i], d.qacc[i])
    residual = place_problem(m, d, left, left, false_mask(d), stiffness=1.0)
    worse = left & not_(residual <= first)
    if any_(worse):
        for i in range(m.nv):
            d.coulomb.good[i] = d.coulomb.warm[i]
        residual = place_problem(m, d, worse, worse, false_mask(d), stiffness=1.0)
    return residual


@kernel
def coulomb_newton(m, d):
    """Iterates until every world has converged: qacc, qfrc_constraint, row forces, iterations and residual.

    Numbers of each world:
        residual: norm of its problem's residual.  first: that at the problem's start.  initial: the law's at the start.
        stiffness: s of its problem, 1 of the law.  rho: see `choose_zones`.
        niter: iterations.  idle: consecutive ones without progress.  least, most: least residual, the one to give up.
    Masks of worlds:
        live: takes the next step.  left: has not solved the law.  proximal: has proximal problems.
        last: its problem is the law.  won, lost: it has solved its problem, or given it up.
    """
    d.coulomb.fixed[0] = 1  # the next line search keeps the friction bounds fixed
    start_newton(m, d)
    scale, tolerance, large = 1.0 / fmax(trace_of_inertia(m, d), TINY), m.opt_tolerance[0], LARGE
    if single_precision(d):
        large = LARGE32
    _, residual = evaluate(m, d)
    active, initial = d.active[0] > 0.0, residual
    live = (scale * residual > tolerance) & active
    left, proximal, niter, idle, stiffness = live, false_mask(d), 0.0, 0.0, 1.0
    # niter is 0; the law has no cost
    record_iteration(d, k=0, cost=0.0, gradient=scale * residual, improvement=niter, step=niter)
    if any_(live):
        store_problem(m, d)
        stiffness = where(live & not_(residual <= CLOSE * norm_of_forces(m, d)), SOFT, stiffness)
        residual = place_problem(m, d, live, proximal, proximal, stiffness)
        start_friction(d, live)
    rho, least, most = RHO, residual, give_up_residual(m, d, residual)
    # twice the iterations of the convex problem: a step solves a sequence of problems
    for iteration in range(2 * m.opt_iterations):
        if not any_(live):
            break
        # one iteration of each world's method
        step, by_proximal = 0.0, live & proximal
        if any_(live & not_(by_proximal)):
            residual, step = newton_step(m, d, live & not_(by_proximal), residual, rho, niter)
        if any_(by_proximal):
            residual, proximal_length = proximal_step(m, d, by_proximal, residual)
            step = where(by_proximal, proximal_length, step)
        niter = where(live, niter + 1.0, niter)
        record_iteration(d, iteration + 1, cost=0.0, gradient=scale * residual, improvement=0.0, step=step)
        # comparisons with a residual that is not a number are false: the problem is unsolved
        slow, last = not_(residual <= HALVED * least), stiffness >= 1.0
        idle, least = where(slow, idle + 1.0, 0.0), fmin(residual, least)
        # no progress: smaller steps between sticking and slipping
        rho = where(idle >= STALLED, SLOWER * rho, rho)
        # is the problem solved (good), or given up (spent)?
        good = scale * residual <= tolerance
        unclear = live & last & slow & not_(good) & (residual <= large * norm_of_forces(m, d))
        if any_(unclear):
            good = good | (unclear & is_rounding_of_terms(m, d))
        spent = live & ((idle >= IMPATIENT) | not_(step > 0.0) | not_(residual <= most))
        if any_(spent & last & not_(good)):
            good = good | (spent & last & not_(is_unsolved(m, d, scale, residual)))
        # problems before the last one are solved less accurately
        enough = where(proximal, PART, ROUGH) * norm_of_forces(m, d)
        won = live & (good | (not_(last) & (residual <= enough)))
        lost = spent & not_(won)
        live, left = live & not_(won & last), left & not_(won & last)
        won = won & not_(last)
        if any_(won | lost):
            proximal, stiffness, first = next_problem(m, d, won, lost, proximal, stiffness)
            live = live & (stiffness > SOFTEST)
            # moves: worlds with a new problem; it may be solved at its start
            moves = live & (won | lost)
            solved = moves & not_(stiffness < 1.0) & (scale * first <= tolerance)
            live, left = live & not_(solved), left & not_(solved)
            residual = first
            idle, rho = where(moves, 0.0, idle), where(moves, RHO, rho)
            least, most = where(moves, first, least), where(moves, give_up_residual(m, d, first), most)
    failed = active & not_(residual < FAR)
    if any_(left):
        residual = leave_unsolved(m, d, left, proximal, initial)
        failed = failed | (left & is_unsolved(m, d, scale, residual))
    d.solver_niter[0] = niter
    d.solver_residual[0] = scale * residual
    d.solver_gap[0] = 0.0
    warn(d, NOT_CONVERGED, failed)
    store_primal_forces(m, d)
