"""A proximal-point method for Coulomb's law, for worlds that the primal-dual method does not solve.

Contact forces f of the last problem become the proximal forces p, and the law of the next problem is that of a softer
contact about them:

    y + f / D + c (f - p) = 0    if the contact sticks,      c = (1 / s - 1) / Dt,    0 < s <= 1

The normal force does the same.  So the law is unchanged, with D / (1 + c D), s Dt and y - c p in place of D, Dt and y.
The softer the contact, the easier the problem; its solution is the next starting point (coulomb.py sets the problems).

An iteration uses the law itself: H and N at the zones of y, and the full step if it halves |r|.  Otherwise the step is
that of Tresca friction: H p = -r, and the minimum along p of the convex cost with fixed bounds.  It needs more
iterations than primal_dual.py, but does not alternate between zones.
Source: Rockafellar, Monotone operators and the proximal point algorithm (1976); Acary and Brogliato, Numerical Methods
    for Nonsmooth Dynamical Systems (2008), sec. 13.7, Tresca friction as a fixed point on the bound.
"""

from featherlane.prelude import *
from featherlane.solver.primal.direction import newton_direction
from featherlane.solver.primal.line_search import line_terms, slope, step_length
from featherlane.solver.primal.primal_dual import INEXACT, bend_direction, place_direction
from featherlane.solver.primal.problem import advance_rows, evaluate
from featherlane.solver.rows.contacts import contact_push
from featherlane.solver.rows.rows import TURN

STRICT = 1e-8  # of the start's slope: the line search of a Tresca step ends there
HALVED = 0.5  # a full step is taken if it leaves at most this part of the residual


# ---- an iteration --------------------------------------------------------------------------------------------------
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
    for k in range(d.ncon_slot[0]):
        d.primal.con_y[k], d.primal.con_z[k] = exchange(live, d.primal.con_y[k], d.primal.con_z[k])
        if d.con_dim[k] > 3:
            y, z = exchange(live, d.primal.con_y[TURN, k], d.primal.con_z[TURN, k])
            d.primal.con_y[TURN, k], d.primal.con_z[TURN, k] = y, z


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
    for k in range(d.ncon_slot[0]):
        d.primal.con_y[k] = choose(back, d.primal.con_y[k], d.primal.con_z[k])
        if d.con_dim[k] > 3:
            d.primal.con_y[TURN, k] = choose(back, d.primal.con_y[TURN, k], d.primal.con_z[TURN, k])


@kernel
def tresca_step(m, d, chosen):
    """Moves the chosen worlds to the minimum of the cost with fixed bounds, along krylov.newton; returns the length."""
    place_direction(m, d, chosen, d.krylov.newton)
    d.coulomb.fixed[0] = 1
    q1, q2, _ = line_terms(m, d)
    rise, _ = slope(m, d, 0.0, q1, q2)
    a = step_length(m, d, q1, q2, STRICT * fabs(rise), 0.0, chosen)
    advance_rows(m, d, a)
    return a


@kernel
def proximal_step(m, d, live, residual):
    """Moves the worlds of the mask by one iteration on the law itself; returns (norm of the residual, step length).

    The full step of Newton's method is taken if it halves the residual, otherwise a Tresca step.

    Args:
        live: the mask.
        residual: the norm of the residual at the present point.
    """
    d.primal.live[0] = where(live, 1.0, 0.0)
    newton_direction(m, d)
    bend_direction(m, d, live, INEXACT)
    place_direction(m, d, live, d.krylov.x)
    before = residual
    try_step(m, d, live)
    _, residual = evaluate(m, d)
    back = live & not_(residual <= HALVED * before)
    step = where(live, 1.0, 0.0)
    if any_(back):
        take_back(m, d, back)
        a = tresca_step(m, d, back)
        step = where(back, a, step)
        _, residual = evaluate(m, d)
    return residual, step


# ---- proximal forces -----------------------------------------------------------------------------------------------
@kernel
def keep_solution(m, d, won, chosen):
    """Stores the point in the worlds of the first mask, and its contact forces in those of the second one."""
    for i in range(m.nv):
        d.coulomb.good[i] = where(won, d.qacc[i], d.coulomb.good[i])
    if any_(chosen):
        for k in range(d.ncon_slot[0]):
            f, t = contact_push(m, d, k)
            d.coulomb.force[k] = where(chosen, f, d.coulomb.force[k])
            if d.con_dim[k] > 3:
                d.coulomb.force[TURN, k] = where(chosen, t, d.coulomb.force[TURN, k])


@kernel
def begin_proximal(m, d, chosen):
    """Stores the point, and sets the proximal forces to 0, in the worlds of the mask."""
    for i in range(m.nv):
        d.coulomb.start[i] = where(chosen, d.qacc[i], d.coulomb.start[i])
    none = Vec3(zeros(3))
    for k in range(d.ncon_slot[0]):
        d.coulomb.force[k] = where(chosen, none, d.coulomb.force[k])
        if d.con_dim[k] > 3:
            d.coulomb.force[TURN, k] = where(chosen, none, d.coulomb.force[TURN, k])
