"""A proximal-point method for Coulomb's law, for worlds that the primal-dual method does not solve.

Contact forces f of the last problem become the proximal forces p, and the law of the next problem is that of a softer
contact about them:

    y + f / D + c (f - p) = 0    if the contact sticks,      c = (1 / s - 1) / Dt,    0 < s <= 1

The normal force does the same.  So the law is unchanged, with D / (1 + c D), s Dt and y - c p in place of D, Dt and y.
The softer the contact, the easier the problem; its solution is the next starting point (coulomb.py sets the problems).

An iteration uses the law itself: H and N at the zones of y, and the full step if it halves |r|.  Otherwise the step is
that of Tresca friction: H v = -r, and the minimum along v of the convex cost with fixed bounds.  It needs more
iterations than primal_dual.py, but does not alternate between zones.
Names: a point a is qacc, Ma = M a and the rows y = J a - aref in row_x (scalar rows), con_y (contacts).  A direction v
is search, Mv = M v and the rows J v in row_v, con_z.  All but qacc are in d.primal.  con_y[ANGULAR, k] holds the values
of contact k about its rotation axes, the normal and tangents (dimensions 4 and 6).
Source: Rockafellar, Monotone operators and the proximal point algorithm (1976); Acary and Brogliato, Numerical Methods
    for Nonsmooth Dynamical Systems (2008), sec. 13.7, Tresca friction as a fixed point on the bound.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.primal.direction import newton_direction
from featherlane.engine.solver.primal.line_search import cost_slope, line_terms, step_length
from featherlane.engine.solver.primal.primal_dual import INEXACT, set_direction, solve_with_moving_bounds
from featherlane.engine.solver.primal.problem import advance_rows, evaluate, replace_rows
from featherlane.engine.solver.rows.contacts import contact_forces
from featherlane.engine.solver.rows.rows import ANGULAR
from featherlane.engine.solver.vectors import replace_vector

STRICT = 1e-8  # of the start's slope: the line search of a Tresca step ends there
HALVED = 0.5  # a full step is taken if it leaves at most this part of the residual


# ---- an iteration --------------------------------------------------------------------------------------------------
@kernel
def step_and_keep(chosen, x, v):
    """Returns (x after a full step v in the chosen worlds, x before it)."""
    return where(chosen, x + v, x), x


@kernel
def try_step(m, d, live):
    """Takes the full step along primal.search in the worlds of the mask `live`, and keeps the point before it.

    Afterwards, the fields of the direction hold the point before the step: search = a, Mv = M a, row_v and con_z = y.
    """
    for i in range(m.nv):
        d.qacc[i], d.primal.search[i] = step_and_keep(live, d.qacc[i], d.primal.search[i])
        d.primal.Ma[i], d.primal.Mv[i] = step_and_keep(live, d.primal.Ma[i], d.primal.Mv[i])
    for k in range(d.nrow[0]):
        d.primal.row_x[k], d.primal.row_v[k] = step_and_keep(live, d.primal.row_x[k], d.primal.row_v[k])
    for k in range(d.ncon_slot[0]):
        d.primal.con_y[k], d.primal.con_z[k] = step_and_keep(live, d.primal.con_y[k], d.primal.con_z[k])
        if d.con_dim[k] > 3:
            y, y_before = step_and_keep(live, d.primal.con_y[ANGULAR, k], d.primal.con_z[ANGULAR, k])
            d.primal.con_y[ANGULAR, k], d.primal.con_z[ANGULAR, k] = y, y_before


@kernel
def undo_step(m, d, back):
    """Returns to the point before `try_step`, kept in the fields of the direction, in the worlds of the mask `back`."""
    replace_vector(m, back, d.primal.search, d.qacc)
    replace_vector(m, back, d.primal.Mv, d.primal.Ma)
    replace_rows(d, back, d.primal.con_z)  # row_x, con_y <- row_v, con_z


@kernel
def tresca_step(m, d, chosen):
    """Moves the chosen worlds to the minimum of the cost with fixed bounds, along krylov.newton = -H^-1 r.

    Returns the length of the step.
    """
    set_direction(m, d, chosen, d.krylov.newton)  # stored by `solve_with_moving_bounds`
    d.coulomb.fixed[0] = 1  # the line search keeps the friction bounds fixed
    q1, q2, _ = line_terms(m, d)  # slope and curvature of the cost without rows
    start_slope, _ = cost_slope(m, d, a=0.0, q1=q1, q2=q2)
    a = step_length(m, d, q1, q2, STRICT * fabs(start_slope), full_enough=0.0, live=chosen)
    advance_rows(m, d, a)
    return a


@kernel
def proximal_step(m, d, live, residual):
    """Moves the `live` worlds by one iteration on the law itself; returns (norm of the residual, step length).

    The full step of Newton's method is taken if it halves the residual, otherwise a Tresca step.

    Args:
        live: mask of worlds.
        residual: norm of the residual r = primal.grad at the present point.
    """
    d.primal.live[0] = where(live, 1.0, 0.0)
    newton_direction(m, d)  # primal.search = -H^-1 r: friction bounds are fixed
    # krylov.newton = primal.search;  krylov.x = -(H - N)^-1 r: N has the changes of friction by moving bounds
    solve_with_moving_bounds(m, d, live, accuracy=INEXACT)
    set_direction(m, d, live, d.krylov.x)  # writes primal.search and its products
    residual_before = residual
    try_step(m, d, live)
    _, residual = evaluate(m, d)
    back = live & not_(residual <= HALVED * residual_before)
    step = where(live, 1.0, 0.0)
    if any_(back):
        undo_step(m, d, back)
        a = tresca_step(m, d, back)
        step = where(back, a, step)
        _, residual = evaluate(m, d)
    return residual, step


# ---- proximal forces -----------------------------------------------------------------------------------------------
@kernel
def store_solution(m, d, solved, proximal):
    """Stores the point in coulomb.good in the `solved` worlds, and contact forces in coulomb.force in `proximal` ones.

    coulomb.force has the proximal forces of the next problem along normal and tangents, and moments about the rotation
    axes.
    """
    replace_vector(m, solved, d.qacc, d.coulomb.good)
    if any_(proximal):
        for k in range(d.ncon_slot[0]):
            forces, moments = contact_forces(m, d, k)
            d.coulomb.force[k] = where(proximal, forces, d.coulomb.force[k])
            if d.con_dim[k] > 3:
                d.coulomb.force[ANGULAR, k] = where(proximal, moments, d.coulomb.force[ANGULAR, k])


@kernel
def begin_proximal(m, d, chosen):
    """Stores the point in coulomb.start, and sets the proximal forces coulomb.force to 0, in the chosen worlds."""
    replace_vector(m, chosen, d.qacc, d.coulomb.start)
    no_force = Vec3(zeros(3))
    for k in range(d.ncon_slot[0]):
        d.coulomb.force[k] = where(chosen, no_force, d.coulomb.force[k])
        if d.con_dim[k] > 3:
            d.coulomb.force[ANGULAR, k] = where(chosen, no_force, d.coulomb.force[ANGULAR, k])
