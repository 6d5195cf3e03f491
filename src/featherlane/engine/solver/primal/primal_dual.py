"""A primal-dual Newton iteration for Coulomb's law, W worlds at once.

    r(a) = M a - f0 - J^T f(J a - aref) = 0

with the law f of rows/coulomb.py.  The law is steep: a contact sticks only while its slip is below 1e-5 of what its
friction can stop.  So y = J a - aref does not show which contacts will stick.  The iterations keep the friction x of
each contact as a second unknown, and decide by a trial force, as Alart and Curnier do.  Let b be the normal force, and
y, x the components other than the normal:

    z = x - e (y + x / Dt)
    sticks if |z| <= b      then x = -Dt y
    slips otherwise         then x = b t - w (y - (t . y) t),    t = z / |z|,   w = b e / (|z| - b (1 - e / Dt))

e > 0 [kg] weights y against x.  These forces are linear in a, as b is in the normal acceleration.  They are the
first-order model of the equation x = projection of z to the disc |x| <= b.  An iteration

1. chooses the zone of each contact.  Of the contacts of a body, only that whose |z| is farthest beyond its bound
   changes between sticking and slipping: contacts that share a load would otherwise alternate.  In the first EARLY
   iterations, all contacts that are nearly as far beyond it change.
2. solves (H - N) p = -r for the model's residual r.  H has all b fixed: it is symmetric, and factored as for the convex
   model.  N = sum over slipping contacts of (J_T^T t) D J_n holds the change of b.  A Krylov method preconditioned with
   H solves the equation (krylov.py), the more accurately the smaller the residual.
3. takes the full step if it halves the slope r . p.  Otherwise another row switched, and the step ends at the root of
   the slope.
4. sets x to the model's force, limited to b.

Names
    con_y      y of all contacts: con_y[k] along n and the tangents, con_y[ANGULAR, k] about the rotation axes, in
               dimensions 4, 6.  The friction directions i are all but n.  con_z: J p, likewise
    coulomb.*  in the layout of con_y: friction = x, trial = z, zone = t.  The place of n has other values: w in
               zone[k][0], the violation of contact k in trial[k][0], the w of its trial force in friction[k][0]
    w, t       a contact has w > 0 in both zones, and w = 0 if it is open; t is a unit vector if it slips, else 0
    b, T       `friction_bound`: b, the normal force; T = |y| over the friction directions
    D, Dt      con_D, con_Dt: of the present problem, which may be softer than the law (coulomb.py).  coulomb.Dt: Dt of
               the law
    e          min(rho coulomb.Dt, Dt, REACH b / T), with rho = 1e-4 at first.  With e <= Dt, the factor 1 - e / Dt of x
               in z is not negative.  With e T <= REACH b, friction that overshoots lets the contact stick before the
               slip reverses
    pushes     coulomb.pushes[k]: 1 if contact k pushes in a world that continues
    con_body   con_body[k]: pushed body of contact k, and the other one, 0 if it does not move
    `friction_dot(d, k, x, y)`: sum of x_i y_i over the friction directions of contact k
    con_wrench forces on bodies; in `choose_zones`, con_wrench[body][0] is the largest violation of the body's contacts
    krylov     krylov.newton = -H^-1 r: direction with fixed bounds; krylov.x = -(H - N)^-1 r: with moving bounds
Source: Alart and Curnier, A mixed formulation for frictional contact problems (1991); Hueber, Stadler and Wohlmuth, A
    primal-dual active set algorithm for three-dimensional contact problems with Coulomb friction (2008), friction
    limited to the bound.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.metric import metric_times
from featherlane.engine.solver.primal.direction import newton_direction
from featherlane.engine.solver.primal.krylov import correct_direction, mark_slipping
from featherlane.engine.solver.primal.line_search import FAR, line_terms, step_length
from featherlane.engine.solver.primal.problem import advance_rows, compute_row_products, evaluate
from featherlane.engine.solver.primal.rounding import norm_of_forces
from featherlane.engine.solver.rows.contacts import add_basis_force, add_basis_moments
from featherlane.engine.solver.rows.coulomb import coulomb_force, friction_bound, model_friction
from featherlane.engine.solver.rows.laws import TINY
from featherlane.engine.solver.rows.rows import ANGULAR, body_forces_to_dofs, clear_body_forces, friction_dot
from featherlane.engine.solver.vectors import clear_vector, dot_product, replace_vector

EXACT, INEXACT = 1e-4, 0.03  # bounds of the accuracy: residual of the Krylov method, over its right-hand side
REACH = 1.1  # largest e T over b
EARLY = 4  # number of first iterations in which more than one contact of a body may change its zone
SHARE = 0.7  # of the body's largest violation: in these iterations, contacts with a larger violation change
FULL = 0.5  # of the start's slope: a full step is taken if its slope is at most this
CLOSE = 1e-2  # of the start's slope: a line search ends there


# ---- the model of an iteration -------------------------------------------------------------------------------------
@kernel
def store_friction_sum(d, k, out, a, x, b, y):
    """Computes out_i = a x_i + b y_i for the friction directions i of contact k; out, x, y: fields like con_y.

    With b = 0 it scales x; with a = 1 and b = 0 it copies x.  The value along n is not written.
    """
    for i in unrolled(range(1, 3)):
        out[k][i] = fma(a, x[k][i], b * y[k][i])
    if d.con_dim[k] > 3:
        out[ANGULAR, k] = fma(a, x[ANGULAR, k], b * y[ANGULAR, k])


@kernel
def clear_contact(d, k, out):
    """Sets the values of contact k in `out`, a field like con_y, to 0."""
    out[k] = zeros(3)
    if d.con_dim[k] > 3:
        out[ANGULAR, k] = zeros(3)


@kernel
def zone_before(d, k):
    """Returns (was sticking, was slipping) by coulomb.zone; neither for an open contact and in the first iteration."""
    # w > 0 in both zones; |t|^2 is 1 or 0
    pushed = d.coulomb.zone[k][0] > 0.0
    slipped = friction_dot(d, k, d.coulomb.zone, d.coulomb.zone) > 0.5
    return pushed & not_(slipped), pushed & slipped


@kernel
def store_trial_force(d, k, rho):
    """Computes the trial force z of contact k in coulomb.trial, and its w in coulomb.friction[k][0]; returns |z|.

    z = (1 - e / Dt) x - e y,   w = b e / (|z| - b (1 - e / Dt)) if |z| > b,   e = min(rho coulomb.Dt, Dt, REACH b / T)
    Dt = con_Dt is that of the present problem, coulomb.Dt that of the law.
    """
    b = friction_bound(d, k, d.primal.con_y)
    Dt = d.con_Dt[k]
    T = sqrt(friction_dot(d, k, d.primal.con_y, d.primal.con_y))
    e = fmin(rho * d.coulomb.Dt[k], Dt)
    e = where(e * T > REACH * b, REACH * b / where(T > 0.0, T, 1.0), e)
    x_factor = 1.0 - e / where(Dt > 0.0, Dt, 1.0)  # Dt is 0 in worlds without the contact
    store_friction_sum(d, k, d.coulomb.trial, x_factor, d.coulomb.friction, -e, d.primal.con_y)
    z_length = sqrt(friction_dot(d, k, d.coulomb.trial, d.coulomb.trial))
    # w is read only if |z| > b: the divisor 1 elsewhere avoids a division by 0
    d.coulomb.friction[k][0] = b * e / where(z_length > b, fma(-b, x_factor, z_length), 1.0)
    return z_length


@kernel
def store_violation(d, k, rho):
    """Stores the violation of contact k: ||z| - b| [N] if its trial force z is in another zone than before, else 0.

    Writes: the violation to coulomb.trial[k][0], and to con_wrench[body][0] of both bodies if it is their largest;
            z to coulomb.trial and its w to coulomb.friction[k][0] (`store_trial_force`).
    """
    z_length = store_trial_force(d, k, rho)
    b = friction_bound(d, k, d.primal.con_y)
    pushed, other = d.con_body[k, 0], d.con_body[k, 1]
    stuck, slipped = zone_before(d, k)
    changes_zone = (stuck & (z_length > b)) | (slipped & not_(z_length > b))
    violation = where(changes_zone, fabs(z_length - b), 0.0)
    d.coulomb.trial[k][0] = violation
    d.con_wrench[pushed][0] = fmax(d.con_wrench[pushed][0], violation)
    if other > 0:
        d.con_wrench[other][0] = fmax(d.con_wrench[other][0], violation)


@kernel
def largest_violation(d, k):
    """Returns the largest violation of the contacts of both bodies of contact k."""
    largest, other = d.con_wrench[d.con_body[k, 0]][0], d.con_body[k, 1]
    if other > 0:
        largest = fmax(largest, d.con_wrench[other][0])
    return largest


@kernel
def inverse_where(mask, x):
    """Returns 1 / x in the worlds of the mask, else 0."""
    return where(mask, 1.0 / where(mask, x, 1.0), 0.0)


@kernel
def store_zone(d, k, share):
    """Sets coulomb.zone of contact k, w and t, from its trial force z.  The first mask that is true decides:

        not pushes       b = 0: open                              w = 0,        t = 0
        keeps_sticking   waits, and was sticking                  w = Dt,       t = 0
        keeps_slipping   waits, and was slipping with x != 0      w = Dt / 2,   t = x / |x|
        slips            |z| > b                                  w of z,       t = z / |z|
        else             sticks                                   w = Dt,       t = 0

    waits: z is in another zone, but its violation is below `share` of the largest one of the contact's bodies.
    w of z: the formula at the top of this file.  It is Dt at |z| = b.  For |z| < b it is above Dt or negative, so
    `keeps_slipping` has Dt / 2.
    Reads:  the outputs of `store_violation`: trial = z, trial[k][0] = the violation, friction[k][0] = w of z, and
            con_wrench[body][0] = the largest violation of the body.
    """
    b = friction_bound(d, k, d.primal.con_y)
    Dt, violation = d.con_Dt[k], d.coulomb.trial[k][0]
    z_length = sqrt(friction_dot(d, k, d.coulomb.trial, d.coulomb.trial))
    x_length = sqrt(friction_dot(d, k, d.coulomb.friction, d.coulomb.friction))
    stuck, slipped = zone_before(d, k)
    pushes = b > 0.0
    waits = pushes & (violation > 0.0) & (violation < share * largest_violation(d, k))
    keeps_sticking = waits & stuck
    keeps_slipping = waits & slipped & (x_length > 0.0)
    slips = pushes & (z_length > b) & not_(keeps_sticking | keeps_slipping)
    w = where(slips, d.coulomb.friction[k][0], where(keeps_slipping, 0.5 * Dt, Dt))
    d.coulomb.zone[k][0] = where(pushes, w, 0.0)
    # t = z / |z|, x / |x| or 0
    z_factor = inverse_where(slips, z_length)
    x_factor = inverse_where(keeps_slipping, x_length)
    store_friction_sum(d, k, d.coulomb.zone, z_factor, d.coulomb.trial, x_factor, d.coulomb.friction)


@kernel
def choose_zones(m, d, live, rho, share):
    """Sets coulomb.zone of all contacts, w and t, from the rows and coulomb.friction.

    Of the contacts of a body, only those with at least `share` of its largest violation change their zone.
    Sets coulomb.pushes = 1 for contacts that push in a `live` world.  All other contacts get zone and friction 0.
    Scratch: con_wrench, coulomb.trial.

    Args:
        live: mask of worlds.
        rho: e over Dt of the law.
        share: part of the largest violation of a body, at most 1.
    """
    clear_body_forces(m, d)  # con_wrench[body][0]: largest violation, 0 at first
    for k in range(d.ncon_slot[0]):
        pushes = 0
        if d.con_dim[k] > 1:
            if any_(live & (friction_bound(d, k, d.primal.con_y) > 0.0)):
                pushes = 1
                store_violation(d, k, rho)
            else:
                clear_contact(d, k, d.coulomb.zone)
                clear_contact(d, k, d.coulomb.friction)
        d.coulomb.pushes[k] = pushes
    for k in range(d.ncon_slot[0]):
        if d.coulomb.pushes[k]:
            store_zone(d, k, share)


@kernel
def use_model_friction(m, d):
    """Replaces the friction of the law in primal.grad by that of the model: grad -= J^T (model - law).

    Along friction direction i, the law's friction is s y_i, the model's c t_i - w y_i (`model_friction`).  So the
    difference is c t_i - (w + s) y_i.
    Scratch: coulomb.trial (the difference), con_wrench, krylov.image (J^T of it).
    """
    clear_body_forces(m, d)
    clear_vector(m, d.krylov.image)
    for k in range(d.ncon_slot[0]):
        if d.coulomb.pushes[k]:
            c, w = model_friction(d, k)  # from coulomb.zone and y
            _, s, _ = coulomb_force(d, k, d.primal.con_y)
            store_friction_sum(d, k, d.coulomb.trial, c, d.coulomb.zone, -(w + s), d.primal.con_y)
            add_basis_force(d, k, (0.0, d.coulomb.trial[k][1], d.coulomb.trial[k][2]))
            if d.con_dim[k] > 3:
                add_basis_moments(d, k, d.coulomb.trial[ANGULAR, k])
    body_forces_to_dofs(m, d, d.krylov.image)
    for i in range(m.nv):
        d.primal.grad[i] = d.primal.grad[i] - d.krylov.image[i]


@kernel
def substitute_zone_points(d):
    """Replaces y by a point whose zones and second derivative under the law are those of the model; keeps y.

    The values along the friction directions become y_i = -(b / w) t_i: there the law slips along t with the weight
    b / |y| = w of the model, or sticks if t = 0.  H is assembled by the law at this point, so it becomes that of the
    model.
    Writes: primal.con_y; its previous values to coulomb.trial, for `restore_points`.
    """
    for k in range(d.ncon_slot[0]):
        if d.coulomb.pushes[k]:
            w = d.coulomb.zone[k][0]
            T = friction_bound(d, k, d.primal.con_y) / where(w > 0.0, w, 1.0)  # b / w = |y|; open: w = b = 0
            store_friction_sum(d, k, d.coulomb.trial, a=1.0, x=d.primal.con_y, b=0.0, y=d.primal.con_y)
            store_friction_sum(d, k, d.primal.con_y, a=-T, x=d.coulomb.zone, b=0.0, y=d.coulomb.zone)


@kernel
def restore_points(d):
    """Restores y after `substitute_zone_points`, from coulomb.trial."""
    for k in range(d.ncon_slot[0]):
        if d.coulomb.pushes[k]:
            store_friction_sum(d, k, d.primal.con_y, a=1.0, x=d.coulomb.trial, b=0.0, y=d.coulomb.trial)


@kernel
def store_friction(d):
    """Stores the model's friction c t_i - w y_i at the rows in coulomb.friction, limited to the bound.

    c, w: results of `model_friction`, with c = b + w t . y.
    """
    for k in range(d.ncon_slot[0]):
        if d.coulomb.pushes[k]:
            c, w = model_friction(d, k)
            store_friction_sum(d, k, d.coulomb.friction, c, d.coulomb.zone, -w, d.primal.con_y)
            x_length = sqrt(friction_dot(d, k, d.coulomb.friction, d.coulomb.friction))
            b = friction_bound(d, k, d.primal.con_y)
            factor = where(x_length > b, b / where(x_length > b, x_length, 1.0), 1.0)
            store_friction_sum(d, k, d.coulomb.friction, a=factor, x=d.coulomb.friction, b=0.0, y=d.coulomb.friction)


# ---- an iteration --------------------------------------------------------------------------------------------------
@kernel
def set_direction(m, d, chosen, x):
    """Sets p = primal.search to x in the chosen worlds, else to 0; computes M p (Mv) and J p (row_v, con_z)."""
    for i in range(m.nv):
        d.primal.search[i] = where(chosen, x[i], 0.0)
    metric_times(m, d, d.primal.search, d.primal.Mv)
    compute_row_products(m, d, d.primal.search, d.primal.row_v, d.primal.con_z)


@kernel
def solve_with_moving_bounds(m, d, live, accuracy):
    """Computes krylov.x = -(H - N)^-1 r, the direction with moving bounds, from primal.search = -H^-1 r.

    Writes: krylov.newton = primal.search; krylov.x, equal to it in worlds without slip.

    Args:
        live: mask of worlds in which contacts may slip.
        accuracy: residual of the Krylov method, as a part of the right-hand side.
    """
    for i in range(m.nv):
        d.krylov.newton[i], d.krylov.x[i] = d.primal.search[i], d.primal.search[i]
    slips = mark_slipping(d, live)
    if any_(slips):
        correct_direction(m, d, slips, accuracy, cycles=1)  # writes krylov.x
        replace_vector(m, not_(slips), d.krylov.newton, d.krylov.x)


@kernel
def newton_step(m, d, live, residual, rho, niter):
    """Moves the `live` worlds by one iteration; returns (norm of the law's residual, step length).

    Args:
        live: mask of worlds.
        residual: norm of the law's residual r = primal.grad.  The smaller it is, the more accurate the direction.
        rho: e over Dt of the law.
        niter: number of earlier iterations.
    """
    d.primal.live[0] = where(live, 1.0, 0.0)
    # 1. zones of the contacts
    choose_zones(m, d, live, rho, where(niter < EARLY, SHARE, 1.0))
    # 2. direction of the model, in krylov.x
    use_model_friction(m, d)  # primal.grad becomes the model's residual
    substitute_zone_points(d)  # H is assembled at these points
    newton_direction(m, d)  # writes primal.search
    accuracy = fmin(fmax(residual / fmax(norm_of_forces(m, d), TINY), EXACT), INEXACT)
    solve_with_moving_bounds(m, d, live, accuracy)
    restore_points(d)
    # 3. step along it
    set_direction(m, d, live, d.krylov.x)
    d.coulomb.fixed[0] = 0  # the line search uses the linear model, with moving bounds
    q1, q2, _ = line_terms(m, d)  # coefficients of the slope without rows
    rise = dot_product(m, d.primal.search, d.primal.grad)  # p . r: slope at the start
    # if N turns the direction uphill, the full step is taken: only a full step leads to the root of the model
    full_enough = where(rise < 0.0, -(FULL * rise), FAR)
    a = step_length(m, d, q1, q2, CLOSE * fabs(rise), full_enough, live)
    advance_rows(m, d, a)
    # 4. friction (coulomb.friction), and the law's residual
    store_friction(d)
    _, residual = evaluate(m, d)
    return residual, a
