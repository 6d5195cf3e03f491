"""Signorini's conditions with Coulomb's law: a primal-dual Newton method, W worlds at once.

    r(a) = M a - f0 - J^T f(J a - aref) = 0

with the law f of rows/coulomb.py.  The law has no cost, and it is steep: a contact sticks only while its slip is below
1e-5 of what its friction can stop.  So y = J a - aref does not show which contacts will stick.  The iterations keep the
friction x of each contact as a second unknown, and decide by a trial force, as Alart and Curnier do.  Let b be the
normal force, and y, x the components other than the normal:

    z = x - rho (y + x / Dt)
    sticks if |z| <= b      then x = -Dt y
    slips otherwise         then x = b t - w (y - (t . y) t),    t = z / |z|,   w = b rho / (|z| - b (1 - rho / Dt))

These forces are linear in a, as b is in the normal acceleration.  They are the first-order model of the equation
x = projection of z to the disc |x| <= b.  An iteration

1. chooses the zone of each contact.  Of the contacts of a body, only that whose |z| is farthest beyond its bound
   changes between sticking and slipping: contacts that share a load would otherwise alternate.
2. solves (H - N) p = -r for the model's residual r.  H has all b fixed: it is symmetric, and factored as for the convex
   model.  N = sum over slipping contacts of (J_T^T t) D J_n holds the change of b.  A Krylov method preconditioned with
   H solves the equation (krylov.py), the more accurately the smaller the residual.
3. takes the full step if it halves the slope r . p.  Otherwise another row switched, and the step ends at the root of
   the slope.
4. sets x to the model's force, limited to b.

rho is the inverse of a tenth of the inverse mass that defines Dt; it is smaller where rho y would exceed REACH b,
so friction that overshoots lets the contact stick before the slip reverses.  If the residual does not fall, rho falls.

The first problem has either the law or one with Dt reduced by SOFT, whichever has the smaller residual at the start.
The softer law finds the zones; its forces are the start for the law itself.

A world that is not solved by this is solved by proximal points.  Contact forces f of the last problem become the
proximal forces p, and the law of the next problem is that of a softer contact about them:

    y + f / D + c (f - p) = 0    if the contact sticks,      c = (1 / s - 1) / Dt,    0 < s <= 1

The normal force does the same.  So the law is unchanged, with D / (1 + c D), s Dt and y - c p in place of D, Dt and y.
The softer the contact, the easier the problem; its solution is the next starting point.  s increases from 1e-4, and
the last problem, s = 1, is the original one.  If a problem is not solved, a softer one follows.  Its iterations use the
law itself: H and N at the zones of y, and the full step if it halves |r|.  Otherwise the step is that of Tresca
friction: H p = -r, and the minimum along p of the convex cost with fixed bounds.  It needs more iterations, but does
not alternate between zones.

The law has a solution for every mu and every state: it is the variational inequality f in K, F(f) . (g - f) >= 0 for
all g in K, whose map F(f) = (A + R) f + b + |slip| n is continuous, and coercive because slip only increases F . f.
Source: Alart and Curnier, A mixed formulation for frictional contact problems (1991); Hueber, Stadler and Wohlmuth, A
    primal-dual active set algorithm for three-dimensional contact problems with Coulomb friction (2008), friction
    limited to the bound; Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems (2008), ch. 13;
    Rockafellar, Monotone operators and the proximal point algorithm (1976); Hartman and Stampacchia, On some
    non-linear elliptic differential-functional equations (1966), existence.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric_times
from featherlane.solver.primal.accuracy import make_rows_anew
from featherlane.solver.primal.direction import newton_direction
from featherlane.solver.primal.history import record
from featherlane.solver.primal.krylov import correct_direction, slipping
from featherlane.solver.primal.line_search import FAR, line_terms, slope, step_length
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
from featherlane.solver.rows.contacts import contact_push, push_bodies, turn_bodies
from featherlane.solver.rows.coulomb import bound, coulomb, model_friction
from featherlane.solver.rows.rows import body_forces_to_dofs, clear_body_forces, others, turn_index

EXACT, INEXACT = 1e-3, 0.03  # the Krylov method stops at this part of the right-hand side; bounds of the part
RHO, REACH = 1e-4, 1.2  # rho over Dt, and the largest rho |y| over b
SLOWER, STALLED = 0.5, 5  # factor of rho in each iteration after so many that do not halve the residual
FULL = 0.5  # of the start's slope: a full step is taken if its slope is at most this
CLOSE, STRICT = 1e-2, 1e-8  # of the start's slope: a line search ends there; of a Tresca step
HALVED = 0.5  # an iteration makes progress if it leaves at most this part of the least residual
IMPATIENT = 10  # consecutive iterations without progress that end a problem
GROWN = 100.0  # times the first residual or ROUGH: a larger one ends a problem, as huge forces may solve it, too

# s, the stiffness of a problem as a part of that of the law
SOFT = 1e-3  # of the problem that finds the zones
FIRST, SOFTEST = 1e-4, 1e-13  # of the first proximal problem, and the smallest one
STIFFER, SOFTER = 4.0, 0.04  # factors of s after a solved and after an unsolved proximal problem
ROUGH, PART = 0.1, 1e-3  # of the forces: residual of a solved problem if it is not the last one; of proximal ones

# the problems of a world, in this order
LAW, ZONES, PROXIMAL = 0.0, 1.0, 2.0


# ---- the model of an iteration -------------------------------------------------------------------------------------
@kernel
def set_tangents(d, k, out, a, x, b, y):
    """Computes out_i = a x_i + b y_i for the directions of contact k other than n."""
    for i in range(3 * k + 1, 3 * k + 3):
        out[i] = fma(a, x[i], b * y[i])
    if d.con_dim[k] > 3:
        r = 3 * turn_index(d, k)
        for i in range(r, r + 3):
            out[i] = fma(a, x[i], b * y[i])


@kernel
def zone_before(d, k):
    """Returns (was sticking, was slipping) by proximal.zone; neither for an open contact and in the first iteration."""
    held, slid = d.proximal.zone[3 * k] > 0.0, others(d, k, d.proximal.zone, d.proximal.zone) > 0.5
    return held & not_(slid), held & slid


@kernel
def set_trial(d, k, rho):
    """Computes the trial force z of contact k; returns (rho, 1 - rho / Dt, |z|), all of the contact."""
    b, Dt = bound(d, k, d.primal.con_y), d.con_Dt[k]
    T = sqrt(others(d, k, d.primal.con_y, d.primal.con_y))
    e = fmin(rho * d.proximal.Dt[k], Dt)
    e = where(e * T > REACH * b, REACH * b / where(T > 0.0, T, 1.0), e)
    part = 1.0 - e / where(Dt > 0.0, Dt, 1.0)
    set_tangents(d, k, d.proximal.trial, part, d.proximal.friction, -e, d.primal.con_y)
    return e, part, sqrt(others(d, k, d.proximal.trial, d.proximal.trial))


@kernel
def add_violation(d, k, rho):
    """Stores by how much the trial force of contact k crosses the bound if its zone changes, and the body's largest."""
    _, _, size = set_trial(d, k, rho)
    b, body, other = bound(d, k, d.primal.con_y), 6 * d.con_body[2 * k], 6 * d.con_body[2 * k + 1]
    stuck, slid = zone_before(d, k)
    v = where((stuck & (size > b)) | (slid & not_(size > b)), fabs(size - b), zero(d))
    d.proximal.trial[3 * k] = v
    d.con_wrench[body] = fmax(d.con_wrench[body], v)
    if other > 0:
        d.con_wrench[other] = fmax(d.con_wrench[other], v)


@kernel
def choose_zones(m, d, rho):
    """Sets proximal.zone from the rows and proximal.friction: w, and t for a slipping contact or 0.

    Of the contacts of a body, only that with the largest violation changes between sticking and slipping.

    Args:
        rho: factor of Dt.
    """
    clear_body_forces(m, d)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            add_violation(d, k, rho)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            b, Dt, v, other = bound(d, k, d.primal.con_y), d.con_Dt[k], d.proximal.trial[3 * k], d.con_body[2 * k + 1]
            e, part, size = set_trial(d, k, rho)
            stuck, slid = zone_before(d, k)
            most = d.con_wrench[6 * d.con_body[2 * k]]
            if other > 0:
                most = fmax(most, d.con_wrench[6 * other])
            before = sqrt(others(d, k, d.proximal.friction, d.proximal.friction))
            waits = (v < most) & (v > 0.0) & (b > 0.0)
            sticks, slides = waits & stuck, waits & slid & (before > 0.0)
            slips = (size > b) & (b > 0.0) & not_(sticks | slides)
            w = where(slips, b * e / where(slips, fma(-b, part, size), 1.0), where(slides, 0.5 * Dt, Dt))
            d.proximal.zone[3 * k] = where(b > 0.0, w, 0.0)
            turn = where(slips, 1.0 / where(slips, size, 1.0), 0.0)
            stay = where(slides, 1.0 / where(slides, before, 1.0), 0.0)
            set_tangents(d, k, d.proximal.zone, turn, d.proximal.trial, stay, d.proximal.friction)


@kernel
def use_model(m, d):
    """Replaces the friction of the law in primal.grad by that of the model."""
    clear_body_forces(m, d)
    for i in range(m.nv):
        d.krylov.image[i] = zero(d)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            along, w = model_friction(d, k)
            _, s, _ = coulomb(d, k, d.primal.con_y)  # the law's friction is s y
            set_tangents(d, k, d.proximal.trial, along, d.proximal.zone, -(w + s), d.primal.con_y)
            push_bodies(d, k, (zero(d), d.proximal.trial[3 * k + 1], d.proximal.trial[3 * k + 2]))
            if d.con_dim[k] > 3:
                turn_bodies(d, k, load3(d.proximal.trial, 3 * turn_index(d, k)))
    body_forces_to_dofs(m, d, d.krylov.image)
    for i in range(m.nv):
        d.primal.grad[i] = d.primal.grad[i] - d.krylov.image[i]


@kernel
def show_zones(d):
    """Replaces y by a point whose zones and second derivative under the law are those of the model; keeps y."""
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            w = d.proximal.zone[3 * k]
            T = bound(d, k, d.primal.con_y) / where(w > 0.0, w, 1.0)
            set_tangents(d, k, d.proximal.trial, 1.0, d.primal.con_y, 0.0, d.primal.con_y)
            set_tangents(d, k, d.primal.con_y, -T, d.proximal.zone, 0.0, d.proximal.zone)


@kernel
def hide_zones(d):
    """Restores y after `show_zones`."""
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            set_tangents(d, k, d.primal.con_y, 1.0, d.proximal.trial, 0.0, d.proximal.trial)


@kernel
def keep_friction(d):
    """Stores the model's friction at the rows, limited to the bound."""
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            along, w = model_friction(d, k)
            set_tangents(d, k, d.proximal.friction, along, d.proximal.zone, -w, d.primal.con_y)
            size, b = sqrt(others(d, k, d.proximal.friction, d.proximal.friction)), bound(d, k, d.primal.con_y)
            part = where(size > b, b / where(size > b, size, 1.0), 1.0)
            set_tangents(d, k, d.proximal.friction, part, d.proximal.friction, 0.0, d.proximal.friction)


# ---- an iteration --------------------------------------------------------------------------------------------------
@kernel
def place_direction(m, d, chosen, x):
    """Sets search = x in the chosen worlds, 0 in the others, and its products with M and J."""
    for i in range(m.nv):
        d.primal.search[i] = where(chosen, x[i], 0.0)
    metric_times(m, d, d.primal.search, d.primal.Mv)
    place_rows(m, d, d.primal.search, d.con_motion, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_z)


@kernel
def bend_direction(m, d, live, part):
    """Computes krylov.x = (H - N)^-1 H krylov.newton in the worlds of the mask, with krylov.newton = search.

    Args:
        live: the mask.
        part: accuracy, see `correct_direction`.
    """
    for i in range(m.nv):
        d.krylov.newton[i], d.krylov.x[i] = d.primal.search[i], d.primal.search[i]
    slips = live & slipping(d)
    if any_(slips):
        correct_direction(m, d, slips, part, 1)
        for i in range(m.nv):
            d.krylov.x[i] = where(slips, d.krylov.x[i], d.krylov.newton[i])


@kernel
def newton_step(m, d, live, residual, rho):
    """Moves the worlds of the mask by one iteration; returns (norm of the law's residual, step length).

    Args:
        live: the mask.
        residual: norm of the law's residual; as a part of the forces, it is the accuracy of the direction.
        rho: factor of Dt, see `choose_zones`.
    """
    d.primal.live[0] = where(live, 1.0, 0.0)
    choose_zones(m, d, rho)
    use_model(m, d)
    show_zones(d)
    newton_direction(m, d)
    bend_direction(m, d, live, fmin(fmax(residual / fmax(size_of_forces(m, d), TINY), EXACT), INEXACT))
    hide_zones(d)
    place_direction(m, d, live, d.krylov.x)
    d.proximal.fixed[0] = 0
    q1, q2, _ = line_terms(m, d)
    rise, _ = slope(m, d, zero(d), q1, q2)
    # if N turns the direction uphill, only the full step is known to lead to the root of the model
    a = step_length(m, d, q1, q2, CLOSE * fabs(rise), where(rise < 0.0, -(FULL * rise), FAR), live)
    advance_rows(m, d, a)
    keep_friction(d)
    _, residual = evaluate(m, d)
    return residual, a


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
def tresca_step(m, d, chosen):
    """Moves the chosen worlds to the minimum of the cost with fixed bounds, along krylov.newton; returns the length."""
    place_direction(m, d, chosen, d.krylov.newton)
    d.proximal.fixed[0] = 1
    q1, q2, _ = line_terms(m, d)
    rise, _ = slope(m, d, zero(d), q1, q2)
    a = step_length(m, d, q1, q2, STRICT * fabs(rise), zero(d), chosen)
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
    bend_direction(m, d, live, real(d, INEXACT))
    place_direction(m, d, live, d.krylov.x)
    before = residual
    try_step(m, d, live)
    _, residual = evaluate(m, d)
    back = live & not_(residual <= HALVED * before)
    step = where(live, 1.0, zero(d))
    if any_(back):
        take_back(m, d, back)
        a = tresca_step(m, d, back)
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


@kernel
def largest_residual(m, d, first):
    """Returns the residual above which a problem with this first residual is given up."""
    return GROWN * fmax(first, ROUGH * size_of_forces(m, d))


# ---- problems ------------------------------------------------------------------------------------------------------
@kernel
def keep_problem(m, d):
    """Stores the point and the stiffnesses of the contacts."""
    for i in range(m.nv):
        d.proximal.start[i], d.proximal.good[i] = d.qacc[i], d.qacc[i]
    for k in range(d.ncon_slot[0]):
        d.proximal.D[k], d.proximal.Dt[k] = d.con_D[k], d.con_Dt[k]


@kernel
def keep_solution(m, d, won, chosen):
    """Stores the point in the worlds of the first mask, and its contact forces in those of the second one."""
    for i in range(m.nv):
        d.proximal.good[i] = where(won, d.qacc[i], d.proximal.good[i])
    if any_(chosen):
        for k in range(d.ncon_slot[0]):
            f, t = contact_push(m, d, k)
            for i in range(3):
                d.proximal.force[3 * k + i] = where(chosen, f[i], d.proximal.force[3 * k + i])
            if d.con_dim[k] > 3:
                for i in range(3):
                    r = 3 * turn_index(d, k) + i
                    d.proximal.force[r] = where(chosen, t[i], d.proximal.force[r])


@kernel
def begin_proximal(m, d, chosen):
    """Stores the point, and sets the proximal forces to 0, in the worlds of the mask."""
    for i in range(m.nv):
        d.proximal.start[i] = where(chosen, d.qacc[i], d.proximal.start[i])
    for k in range(d.ncon_slot[0]):
        for i in range(3 * k, 3 * k + 3):
            d.proximal.force[i] = where(chosen, 0.0, d.proximal.force[i])
        if d.con_dim[k] > 3:
            r = 3 * turn_index(d, k)
            for i in range(r, r + 3):
                d.proximal.force[i] = where(chosen, 0.0, d.proximal.force[i])


@kernel
def place_problem(m, d, chosen, back, shifted, stiffness):
    """Sets the law of a problem in the worlds of the first mask; returns the residual of all worlds.

    With the compliance c = (1 / stiffness - 1) / Dt of contact k, its law has D / (1 + c D), Dt stiffness, y - c p.

    Args:
        chosen: the mask.
        back: worlds that go to the point proximal.good.
        shifted: worlds with proximal forces; these are also in `back`.
        stiffness: s.
    """
    if any_(back):
        for i in range(m.nv):
            d.qacc[i] = where(back, d.proximal.good[i], d.qacc[i])
        make_rows_anew(m, d, back)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            D, Dt = d.proximal.D[k], d.proximal.Dt[k]
            c = where(Dt > 0.0, (1.0 / stiffness - 1.0) / where(Dt > 0.0, Dt, 1.0), 0.0)
            d.con_D[k] = where(chosen, D / fma(c, D, 1.0), d.con_D[k])
            d.con_Dt[k] = where(chosen, stiffness * Dt, d.con_Dt[k])
            d.proximal.zone[3 * k] = where(chosen, 0.0, d.proximal.zone[3 * k])
            if any_(shifted):
                for i in range(3 * k, 3 * k + 3):
                    y = d.primal.con_y[i]
                    d.primal.con_y[i] = where(shifted, fma(-c, d.proximal.force[i], y), y)
                if d.con_dim[k] > 3:
                    r = 3 * turn_index(d, k)
                    for i in range(r, r + 3):
                        y = d.primal.con_y[i]
                        d.primal.con_y[i] = where(shifted, fma(-c, d.proximal.force[i], y), y)
    _, residual = evaluate(m, d)
    return residual


@kernel
def start_friction(d, chosen):
    """Sets friction in the worlds of the mask to that of the law."""
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            _, s, _ = coulomb(d, k, d.primal.con_y)
            for i in range(3 * k + 1, 3 * k + 3):
                d.proximal.friction[i] = where(chosen, s * d.primal.con_y[i], d.proximal.friction[i])
            if d.con_dim[k] > 3:
                r = 3 * turn_index(d, k)
                for i in range(r, r + 3):
                    d.proximal.friction[i] = where(chosen, s * d.primal.con_y[i], d.proximal.friction[i])


@kernel
def first_problem(m, d, live, residual):
    """Selects the law or the softer one, by the smaller residual; returns (mask of the softer one, residual)."""
    none = false_mask(d)
    softer = place_problem(m, d, live, none, none, real(d, SOFT))
    soft = live & (softer < residual)
    back = live & not_(soft)
    if any_(back):
        softer = place_problem(m, d, back, none, none, real(d, 1.0))
    start_friction(d, live)
    return soft, softer


@kernel
def next_problem(m, d, won, lost, kind, stiffness):
    """Sets the next problem in the worlds of the masks; returns (kind, stiffness, residual of all worlds).

    Args:
        won: worlds that solved a problem that is not the last one.
        lost: worlds that did not solve a problem.
        kind: LAW, ZONES or PROXIMAL.
        stiffness: s.
    """
    first, second, third = kind == LAW, kind == ZONES, kind == PROXIMAL
    keep_solution(m, d, won, won & third)
    begin = lost & second
    if any_(begin):
        begin_proximal(m, d, begin)
    harder = where(third, fmin(STIFFER * stiffness, 1.0), 1.0)
    easier = where(first, SOFT, where(second, FIRST, SOFTER * stiffness))
    stiffness = where(won, harder, where(lost, easier, stiffness))
    kind = where(lost, fmin(kind + 1.0, PROXIMAL), kind)
    moves = (won | lost) & (stiffness > SOFTEST)
    shifted = moves & (kind == PROXIMAL)
    residual = place_problem(m, d, moves, moves & (lost | shifted), shifted, stiffness)
    start_friction(d, moves & lost)
    return kind, stiffness, residual


@kernel
def coulomb_newton(m, d):
    """Iterates until every world has converged: qacc, qfrc_constraint, row forces, iterations and residual."""
    warm_start(m, d)
    scale, tolerance, large = 1.0 / fmax(trace_of_inertia(m, d), TINY), m.opt_tolerance[0], real(d, LARGE)
    if single_precision(d):
        large = real(d, LARGE32)
    _, residual = evaluate(m, d)
    active = d.active[0] > 0.0
    live = (scale * residual > tolerance) & active
    left, soft, niter, idle = live, false_mask(d), zero(d), zero(d)
    record(d, 0, zero(d), scale * residual, niter, niter)
    if any_(live):
        keep_problem(m, d)
        soft, residual = first_problem(m, d, live, residual)
    kind, stiffness = where(soft, ZONES, real(d, LAW)), where(soft, SOFT, real(d, 1.0))
    rho, least, most = real(d, RHO), residual, largest_residual(m, d, residual)
    for iteration in range(2 * m.opt_iterations):
        if not any_(live):
            break
        step, third = zero(d), live & (kind == PROXIMAL)
        if any_(live & not_(third)):
            residual, step = newton_step(m, d, live & not_(third), residual, rho)
        if any_(third):
            residual, now = proximal_step(m, d, third, residual)
            step = where(third, now, step)
        niter = where(live, niter + 1.0, niter)
        record(d, iteration + 1, zero(d), scale * residual, zero(d), step)
        slow, last = residual > HALVED * least, stiffness >= 1.0
        idle, least = where(slow, idle + 1.0, 0.0), fmin(residual, least)
        rho = where(idle >= STALLED, SLOWER * rho, rho)
        good = not_(scale * residual > tolerance)
        unclear = live & last & slow & not_(good) & (residual <= large * size_of_forces(m, d))
        if any_(unclear):
            good = good | (unclear & is_rounding_of_terms(m, d))
        spent = live & ((idle >= IMPATIENT) | not_(step > 0.0) | (residual > most))
        if any_(spent & last & not_(good)):
            good = good | (spent & last & not_(is_unsolved(m, d, scale, residual)))
        enough = where(kind == PROXIMAL, PART, real(d, ROUGH)) * size_of_forces(m, d)
        won = live & (good | (not_(last) & (residual <= enough)))
        lost = spent & not_(won)
        live, left = live & not_(won & last), left & not_(won & last)
        won = won & not_(last)
        if any_(won | lost):
            kind, stiffness, first = next_problem(m, d, won, lost, kind, stiffness)
            live = live & (stiffness > SOFTEST)
            moves = live & (won | lost)
            residual = first
            idle, rho = where(moves, 0.0, idle), where(moves, RHO, rho)
            least, most = where(moves, first, least), where(moves, largest_residual(m, d, first), most)
    failed = active & not_(residual < FAR)
    if any_(left):
        # an unsolved world returns to the point before the proximal problems
        for i in range(m.nv):
            d.proximal.good[i] = where(kind == PROXIMAL, d.proximal.start[i], d.qacc[i])
        residual = place_problem(m, d, left, left, false_mask(d), real(d, 1.0))
        failed = failed | (left & is_unsolved(m, d, scale, residual))
    d.solver_niter[0] = niter
    d.solver_residual[0] = scale * residual
    d.solver_gap[0] = zero(d)
    warn(d, NOT_CONVERGED, failed)
    store_primal_forces(m, d)
