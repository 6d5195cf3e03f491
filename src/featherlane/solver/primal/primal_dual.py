"""A primal-dual Newton iteration for Coulomb's law, W worlds at once.

    r(a) = M a - f0 - J^T f(J a - aref) = 0

with the law f of rows/coulomb.py.  The law is steep: a contact sticks only while its slip is below 1e-5 of what its
friction can stop.  So y = J a - aref does not show which contacts will stick.  The iterations keep the friction x of
each contact as a second unknown, and decide by a trial force, as Alart and Curnier do.  Let b be the normal force, and
y, x the components other than the normal:

    z = x - rho (y + x / Dt)
    sticks if |z| <= b      then x = -Dt y
    slips otherwise         then x = b t - w (y - (t . y) t),    t = z / |z|,   w = b rho / (|z| - b (1 - rho / Dt))

These forces are linear in a, as b is in the normal acceleration.  They are the first-order model of the equation
x = projection of z to the disc |x| <= b.  An iteration

1. chooses the zone of each contact.  Of the contacts of a body, only that whose |z| is farthest beyond its bound
   changes between sticking and slipping: contacts that share a load would otherwise alternate.  In the first EARLY
   iterations, all contacts that are nearly as far beyond it change.
2. solves (H - N) p = -r for the model's residual r.  H has all b fixed: it is symmetric, and factored as for the convex
   model.  N = sum over slipping contacts of (J_T^T t) D J_n holds the change of b.  A Krylov method preconditioned with
   H solves the equation (krylov.py), the more accurately the smaller the residual.
3. takes the full step if it halves the slope r . p.  Otherwise another row switched, and the step ends at the root of
   the slope.
4. sets x to the model's force, limited to b.

rho is the inverse of a tenth of the inverse mass that defines Dt; it is smaller where rho y would exceed REACH b,
so friction that overshoots lets the contact stick before the slip reverses.
Source: Alart and Curnier, A mixed formulation for frictional contact problems (1991); Hueber, Stadler and Wohlmuth, A
    primal-dual active set algorithm for three-dimensional contact problems with Coulomb friction (2008), friction
    limited to the bound.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric_times
from featherlane.solver.primal.direction import newton_direction
from featherlane.solver.primal.krylov import correct_direction, mark_slipping, product
from featherlane.solver.primal.line_search import FAR, line_terms, step_length
from featherlane.solver.primal.problem import TINY, advance_rows, evaluate, place_rows
from featherlane.solver.primal.rounding import size_of_forces
from featherlane.solver.rows.contacts import push_bodies, turn_bodies
from featherlane.solver.rows.coulomb import bound, coulomb, model_friction
from featherlane.solver.rows.rows import TURN, body_forces_to_dofs, clear_body_forces, others

EXACT, INEXACT = 1e-4, 0.03  # the Krylov method stops at this part of the right-hand side; bounds of the part
REACH = 1.1  # largest rho |y| over b
EARLY, SHARE = 4, 0.7  # in so many first iterations, contacts with this part of the largest violation change, too
FULL = 0.5  # of the start's slope: a full step is taken if its slope is at most this
CLOSE = 1e-2  # of the start's slope: a line search ends there


# ---- the model of an iteration -------------------------------------------------------------------------------------
@kernel
def set_tangents(d, k, out, a, x, b, y):
    """Computes out_i = a x_i + b y_i for the directions of contact k other than n."""
    for i in unrolled(range(1, 3)):
        out[k][i] = fma(a, x[k][i], b * y[k][i])
    if d.con_dim[k] > 3:
        out[TURN, k] = fma(a, x[TURN, k], b * y[TURN, k])


@kernel
def clear_contact(d, k, out):
    """Sets the components of contact k to 0."""
    out[k] = zeros(3)
    if d.con_dim[k] > 3:
        out[TURN, k] = zeros(3)


@kernel
def zone_before(d, k):
    """Returns (was sticking, was slipping) by coulomb.zone; neither for an open contact and in the first iteration."""
    held, slid = d.coulomb.zone[k][0] > 0.0, others(d, k, d.coulomb.zone, d.coulomb.zone) > 0.5
    return held & not_(slid), held & slid


@kernel
def set_trial(d, k, rho):
    """Computes the trial force z of contact k, and w if it slips; returns |z|."""
    b, Dt = bound(d, k, d.primal.con_y), d.con_Dt[k]
    T = sqrt(others(d, k, d.primal.con_y, d.primal.con_y))
    e = fmin(rho * d.coulomb.Dt[k], Dt)
    e = where(e * T > REACH * b, REACH * b / where(T > 0.0, T, 1.0), e)
    part = 1.0 - e / where(Dt > 0.0, Dt, 1.0)
    set_tangents(d, k, d.coulomb.trial, part, d.coulomb.friction, -e, d.primal.con_y)
    size = sqrt(others(d, k, d.coulomb.trial, d.coulomb.trial))
    d.coulomb.friction[k][0] = b * e / where(size > b, fma(-b, part, size), 1.0)
    return size


@kernel
def add_violation(d, k, rho):
    """Stores by how much the trial force of contact k crosses the bound if its zone changes, and the body's largest."""
    size, b = set_trial(d, k, rho), bound(d, k, d.primal.con_y)
    body, other = d.con_body[k, 0], d.con_body[k, 1]
    stuck, slid = zone_before(d, k)
    v = where((stuck & (size > b)) | (slid & not_(size > b)), fabs(size - b), 0.0)
    d.coulomb.trial[k][0] = v
    d.con_wrench[body][0] = fmax(d.con_wrench[body][0], v)
    if other > 0:
        d.con_wrench[other][0] = fmax(d.con_wrench[other][0], v)


@kernel
def set_zone(d, k, share):
    """Sets coulomb.zone of contact k, from its trial force and the largest violations.

    With a violation below this share of the largest one, it stays in its zone.
    """
    c = d.contact[k]
    b, Dt, v, other = bound(d, k, d.primal.con_y), c.Dt, d.coulomb.trial[k][0], c.body[1]
    size = sqrt(others(d, k, d.coulomb.trial, d.coulomb.trial))
    stuck, slid = zone_before(d, k)
    most = d.con_wrench[c.body[0]][0]
    if other > 0:
        most = fmax(most, d.con_wrench[other][0])
    before = sqrt(others(d, k, d.coulomb.friction, d.coulomb.friction))
    waits = (v < share * most) & (v > 0.0) & (b > 0.0)
    sticks, slides = waits & stuck, waits & slid & (before > 0.0)
    slips = (size > b) & (b > 0.0) & not_(sticks | slides)
    w = where(slips, d.coulomb.friction[k][0], where(slides, 0.5 * Dt, Dt))
    d.coulomb.zone[k][0] = where(b > 0.0, w, 0.0)
    turn = where(slips, 1.0 / where(slips, size, 1.0), 0.0)
    stay = where(slides, 1.0 / where(slides, before, 1.0), 0.0)
    set_tangents(d, k, d.coulomb.zone, turn, d.coulomb.trial, stay, d.coulomb.friction)


@kernel
def choose_zones(m, d, live, rho, share):
    """Sets coulomb.zone from the rows and coulomb.friction: w, and t for a slipping contact or 0.

    Of the contacts of a body, only those with nearly the largest violation change between sticking and slipping.
    Marks the slots of contacts that push in a world of the mask; the others have zone and friction 0.

    Args:
        live: the mask.
        rho: factor of Dt.
        share: part of the largest violation of a body from which a contact changes.
    """
    clear_body_forces(m, d)
    for k in range(d.ncon_slot[0]):
        pushes = 0
        if d.con_dim[k] > 1:
            if any_(live & (bound(d, k, d.primal.con_y) > 0.0)):
                pushes = 1
                add_violation(d, k, rho)
            else:
                clear_contact(d, k, d.coulomb.zone)
                clear_contact(d, k, d.coulomb.friction)
        d.coulomb.pushes[k] = pushes
    for k in range(d.ncon_slot[0]):
        if d.coulomb.pushes[k]:
            set_zone(d, k, share)


@kernel
def use_model(m, d):
    """Replaces the friction of the law in primal.grad by that of the model."""
    clear_body_forces(m, d)
    for i in range(m.nv):
        d.krylov.image[i] = 0.0
    for k in range(d.ncon_slot[0]):
        if d.coulomb.pushes[k]:
            along, w = model_friction(d, k)
            _, s, _ = coulomb(d, k, d.primal.con_y)  # the law's friction is s y
            set_tangents(d, k, d.coulomb.trial, along, d.coulomb.zone, -(w + s), d.primal.con_y)
            push_bodies(d, k, (0.0, d.coulomb.trial[k][1], d.coulomb.trial[k][2]))
            if d.con_dim[k] > 3:
                turn_bodies(d, k, d.coulomb.trial[TURN, k])
    body_forces_to_dofs(m, d, d.krylov.image)
    for i in range(m.nv):
        d.primal.grad[i] = d.primal.grad[i] - d.krylov.image[i]


@kernel
def show_zones(d):
    """Replaces y by a point whose zones and second derivative under the law are those of the model; keeps y."""
    for k in range(d.ncon_slot[0]):
        if d.coulomb.pushes[k]:
            w = d.coulomb.zone[k][0]
            T = bound(d, k, d.primal.con_y) / where(w > 0.0, w, 1.0)
            set_tangents(d, k, d.coulomb.trial, 1.0, d.primal.con_y, 0.0, d.primal.con_y)
            set_tangents(d, k, d.primal.con_y, -T, d.coulomb.zone, 0.0, d.coulomb.zone)


@kernel
def hide_zones(d):
    """Restores y after `show_zones`."""
    for k in range(d.ncon_slot[0]):
        if d.coulomb.pushes[k]:
            set_tangents(d, k, d.primal.con_y, 1.0, d.coulomb.trial, 0.0, d.coulomb.trial)


@kernel
def keep_friction(d):
    """Stores the model's friction at the rows, limited to the bound."""
    for k in range(d.ncon_slot[0]):
        if d.coulomb.pushes[k]:
            along, w = model_friction(d, k)
            set_tangents(d, k, d.coulomb.friction, along, d.coulomb.zone, -w, d.primal.con_y)
            size, b = sqrt(others(d, k, d.coulomb.friction, d.coulomb.friction)), bound(d, k, d.primal.con_y)
            part = where(size > b, b / where(size > b, size, 1.0), 1.0)
            set_tangents(d, k, d.coulomb.friction, part, d.coulomb.friction, 0.0, d.coulomb.friction)


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
    slips = mark_slipping(d, live)
    if any_(slips):
        correct_direction(m, d, slips, part, 1)
        for i in range(m.nv):
            d.krylov.x[i] = where(slips, d.krylov.x[i], d.krylov.newton[i])


@kernel
def newton_step(m, d, live, residual, rho, niter):
    """Moves the worlds of the mask by one iteration; returns (norm of the law's residual, step length).

    Args:
        live: the mask.
        residual: norm of the law's residual; as a part of the forces, it is the accuracy of the direction.
        rho: factor of Dt, see `choose_zones`.
        niter: number of earlier iterations.
    """
    d.primal.live[0] = where(live, 1.0, 0.0)
    choose_zones(m, d, live, rho, where(niter < EARLY, SHARE, 1.0))
    use_model(m, d)
    show_zones(d)
    newton_direction(m, d)
    bend_direction(m, d, live, fmin(fmax(residual / fmax(size_of_forces(m, d), TINY), EXACT), INEXACT))
    hide_zones(d)
    place_direction(m, d, live, d.krylov.x)
    d.coulomb.fixed[0] = 0
    q1, q2, _ = line_terms(m, d)
    rise = product(m, d, d.primal.search, d.primal.grad)
    # if N turns the direction uphill, only the full step is known to lead to the root of the model
    a = step_length(m, d, q1, q2, CLOSE * fabs(rise), where(rise < 0.0, -(FULL * rise), FAR), live)
    advance_rows(m, d, a)
    keep_friction(d)
    _, residual = evaluate(m, d)
    return residual, a
