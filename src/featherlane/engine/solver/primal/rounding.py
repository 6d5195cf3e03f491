"""Classifies the gradient at the end of a solve as small, rounding, or neither; if neither, the step sets a warning.

A solver stops if its tolerance is met, or if it makes no progress.  The last gain does not bound the residual, so the
final point is checked, whatever ended the iterations.  Its gradient g = M a - f0 - J^T f is

    small      if |g| <= SMALL max(|f0|, |J^T f|), or if the gap, an upper bound of cost minus minimum, is at most NEAR
               tolerances: a solver that stops at a gain of one tolerance may leave many of them
    rounding   if |g| <= ROUNDING |g(a + e) - g|, with e one rounding of each acceleration, up and down: with stiff
               rows, no representable acceleration has a smaller gradient

A gradient above LARGE of the forces sets the warning, even at rounding level.  In float32 the rounding of one
acceleration may produce a gradient larger than all forces on other bodies, so this test would accept too much.  There,
only Newton's method may leave a gradient that is not small, up to LARGE32: it stops if every component is at rounding
level of its terms.  It continues from a gradient that is not small, and may accept the acceleration (accuracy.py).
Names: f0: `metric_force`, force without constraints;  primal.Ma = M a;  con_y[k] = J a - aref of contact k along normal
    and tangents, con_basis[k];  con_y[ANGULAR, k]: about its rotation axes, con_basis[ANGULAR, k], of which the last
    two are 0 in dimension 4;  con_wrench: forces on bodies.
    primal.search = p, Mv = M p, and J p in row_v, con_z: a direction and its products.
    Entry e of a scalar row is row_J[e] at dof row_dof[e].
    con_body[k]: body that the contact force pushes, and the other one, 0 if it does not move; con_arm: contact point
    relative to the com of their trees.
    `pyramid_forces`: (forces along the basis, cost); `angular_edges_force`: (force along the normal, moments, cost) of
    a pyramid's angular edges; `cone_forces`: (forces along the basis, s, cost), with s the moment over y of each
    rotation axis.  scale: 1 / trace of M, of gap and gradient in comparisons with the tolerance.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.general import row_entries
from featherlane.engine.dynamics.inertia.metric import metric_force, metric_times
from featherlane.engine.solver.primal.problem import advance_rows, compute_row_products, evaluate
from featherlane.engine.solver.rows.contacts import cone_forces, pyramid_forces
from featherlane.engine.solver.rows.laws import bounded_force
from featherlane.engine.solver.rows.pyramid import angular_edges_force
from featherlane.engine.solver.rows.rows import (
    ANGULAR,
    clear_body_forces,
    other_arm,
    project_body_forces,
    pushed_body_arm,
)
from featherlane.engine.solver.vectors import dot_product

SMALL, SMALL32 = 1e-6, 1e-4  # of the forces, in float64 and float32: up to this, a gradient is small
NEAR = 100.0  # tolerances: a larger gap is not small
LARGE, LARGE32 = 1e-2, 2e-3  # of the forces: a larger gradient sets the warning, even at rounding level
ROUNDING = 64.0  # roundings of each acceleration: rows and forces are sums of many terms
TERMS = 16.0  # roundings of each term of the gradient
LARGEST_NORM32 = 1e19  # [N, N m] the square of a larger norm is infinite in float32
EPS, EPS32 = 2.3e-16, 1.2e-7  # relative rounding of float64 and float32
COST_EPS, COST_EPS32 = 1e-15, 5e-7  # relative rounding of a cost, a sum of many terms


@kernel
def one_rounding(d):
    """Returns the relative rounding error of the tile's precision."""
    return EPS32 if single_precision(d) else EPS


@kernel
def gradient_limits(d):
    """Returns (relative rounding of a cost, SMALL, LARGE) for the tile's precision.

    SMALL and LARGE are the gradients that are small and large, as parts of the forces.
    """
    if single_precision(d):
        return COST_EPS32, SMALL32, LARGE32
    return COST_EPS, SMALL, LARGE


@kernel
def larger_norm(d, smooth_squared, constraint_squared):
    """Returns the larger norm of two force vectors, given their squares, limited to what float32 can square."""
    norm = sqrt(fmax(smooth_squared, constraint_squared))
    return fmin(norm, LARGEST_NORM32) if single_precision(d) else norm


@kernel
def norm_of_forces(m, d):
    """Returns max(|f0|, |J^T f|), limited to what float32 can square."""
    f0 = metric_force(m, d)
    return larger_norm(d, dot_product(m, f0, f0), dot_product(m, d.qfrc_constraint, d.qfrc_constraint))


# ---- the terms of the gradient -------------------------------------------------------------------------------------
@kernel
def absolute_force(f, b0, b1, b2):
    """Returns the absolute terms of the force sum of f_i b_i, along the world's axes: sum of |f_i| |b_i|."""
    f0, f1, f2 = fabs(f)
    return fma(f0, fabs(b0), fma(f1, fabs(b1), f2 * fabs(b2)))


@kernel
def add_absolute_wrench(d, b, r, f, moment):
    """Adds a wrench of absolute terms to con_wrench of body b: moment + r x f with all signs +, and f.

    r: arm of the force [m].  f, moment: absolute terms along the world's axes [N], [N m].
    """
    x, y, z = fabs(r)
    terms = (
        fma(y, f.z, fma(z, f.y, moment.x)),
        fma(z, f.x, fma(x, f.z, moment.y)),
        fma(x, f.y, fma(y, f.x, moment.z)),
    )
    d.con_wrench[b] += Force(join(terms, f))


@kernel
def absolute_contact_force(m, d, k):
    """Returns (absolute forces, absolute moments) of contact k, along the world's axes.

    Opposite edges of a pyramid cancel across the normal; each has at most the normal force.  So the absolute force
    along a friction direction is the normal force.
    """
    c = d.contact[k]
    moments = Vec3(zeros(3))
    # along the basis of the contact
    if has_pyramids(m):
        forces, _ = pyramid_forces(d, k, d.primal.con_y)
        forces = Vec3(forces[0], forces[0], forces[0])
        if c.dim > 3:  # angular edges also push along the normal
            normal_force, _, _ = angular_edges_force(d, k, d.primal.con_y)
            forces = Vec3(forces[0] + normal_force, forces[1], forces[2])
            moments = Vec3(normal_force, normal_force, normal_force)
    else:
        forces, s, _ = cone_forces(m, d, k, d.primal.con_y)
        if c.dim > 3:
            moments = s * d.primal.con_y[ANGULAR, k]  # s: moment over y of each rotation axis
    # along the world's axes
    b0, b1, b2 = d.con_basis[k].rows
    if c.dim > 1:
        forces = absolute_force(forces, b0, b1, b2)
    else:
        forces = forces[0] * fabs(b0)  # the normal force is not negative
    if c.dim > 3:
        b0, b1, b2 = d.con_basis[ANGULAR, k].rows
        moments = absolute_force(moments, b0, b1, b2)
    return forces, moments


@kernel
def is_rounding_of_terms(m, d):
    """Returns a mask of worlds in which each component of the gradient is at most TERMS roundings of its terms.

    The sum of terms is |M a| + |f0| + |J|^T |f|, with the absolute values of each edge, arm and axis.  The gradient of
    opposing contacts is a difference of large terms; if it is only their rounding, another step gains nothing.
    Reads:  the rows, primal.Ma and primal.grad at a point.   Writes: con_wrench, primal.terms.   Cost: as one gradient.
    """
    f0 = metric_force(m, d)
    for i in range(m.nv):
        d.primal.terms[i] = fabs(d.primal.Ma[i]) + fabs(f0[i])
    for k in range(d.nrow[0]):
        f, _ = bounded_force(d.row[k], d.primal.row_x[k])
        for e in row_entries(d, k):
            i = d.row_dof[e]
            d.primal.terms[i] = fma(fabs(d.row_J[e]), fabs(f), d.primal.terms[i])
    # contacts: absolute wrenches of bodies, composed toward the root, times |S_i|
    clear_body_forces(m, d)
    for k in range(d.ncon_slot[0]):
        force, moment = absolute_contact_force(m, d, k)
        pushed, other = d.con_body[k, 0], d.con_body[k, 1]
        add_absolute_wrench(d, pushed, pushed_body_arm(d, k), force, moment)
        if other > 0:
            add_absolute_wrench(d, other, other_arm(d, k), force, moment)
    project_body_forces(m, d, d.primal.terms, absolute=1)
    rounding = TERMS * one_rounding(d)
    above = 0.0  # 1 if a component is larger than its roundings
    for i in range(m.nv):
        above = where(fabs(d.primal.grad[i]) <= rounding * d.primal.terms[i], above, 1.0)
    return above == 0.0


# ---- the final gradient --------------------------------------------------------------------------------------------
@kernel
def is_small(m, d, gradient, gap):
    """Returns a mask of worlds in which the norm of the gradient, or the gap, scaled by 1 / trace of M, is small."""
    _, small, _ = gradient_limits(d)
    return (gap <= NEAR * m.opt_tolerance[0]) | (gradient <= small * norm_of_forces(m, d))


@kernel
def gradient_change_by_rounding(m, d, chosen):
    """Returns |g(a + e) - g| of the chosen worlds, with e one rounding of each acceleration, up or down.

    Reads:  the point a, its rows and its gradient primal.grad.
    Writes: the chosen worlds stay at a + e, with their rows, forces and gradient.
    Scratch: primal.search (e) and its products, primal.grad_kept (g).
    """
    change = 0.0
    for i in range(m.nv):
        # EPS is float64's: `is_rounding` does not call this kernel in float32
        e = EPS * fmax(fabs(d.qacc[i]), fabs(d.qacc_smooth[i]))
        # signs + - - + ... so that neighbouring dofs do not all move the same way
        d.primal.search[i] = where(chosen, e if (i + i // 2) % 2 == 0 else -e, 0.0)
        d.primal.grad_kept[i] = d.primal.grad[i]  # g(a)
    # a full step along e
    metric_times(m, d, d.primal.search, d.primal.Mv)
    compute_row_products(m, d, d.primal.search, d.primal.row_v, d.primal.con_z)
    advance_rows(m, d, where(chosen, 1.0, 0.0))
    evaluate(m, d)  # writes primal.grad
    for i in range(m.nv):
        x = d.primal.grad[i] - d.primal.grad_kept[i]
        change = fma(x, x, change)
    return sqrt(change)


@kernel
def has_large_gradient(m, d, gradient, gap):
    """Returns a mask of active worlds in which the gradient is not small.

    gradient: its norm.  gap: duality gap, scaled by 1 / trace of M.
    """
    return (d.active[0] > 0.0) & not_(is_small(m, d, gradient, gap))


@kernel
def is_rounding(m, d, gradient, chosen):
    """Returns a mask of worlds whose gradient is rounding and below LARGE of the forces.

    gradient: its norm.  The chosen worlds move by one rounding: see `gradient_change_by_rounding`.  In float32 the mask
    is false, because this test would accept too much.
    """
    if single_precision(d):
        found = gradient < 0.0  # false in all worlds
    else:
        large = gradient > LARGE * norm_of_forces(m, d)
        found = (gradient <= ROUNDING * gradient_change_by_rounding(m, d, chosen)) & not_(large)
    return found


@kernel
def is_unexplained(m, d, gradient, gap):
    """Returns a mask of worlds whose gradient is neither small nor rounding.

    gradient: its norm.  gap: duality gap, scaled by 1 / trace of M.
    Reads:  qacc, primal.Ma, rows and gradient at the end of a primal solve.
    Writes: worlds whose gradient is not small move by one rounding: qacc, primal.*, rows, qfrc_constraint.
    Cost:   a product with J and a gradient if some world's gradient is not small, else two sums over nv.
    """
    unexplained = has_large_gradient(m, d, gradient, gap)
    if any_(unexplained):
        unexplained = unexplained & not_(is_rounding(m, d, gradient, unexplained))
    return unexplained
