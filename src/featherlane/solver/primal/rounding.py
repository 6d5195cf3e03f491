"""Classifies the gradient at the end of a solve as small, rounding, or neither; if neither, the step sets a warning.

A solver stops if its tolerance is met, or if it makes no progress.  The last gain does not bound the residual, so the
final point is checked, whatever ended the iterations.  Its gradient g = M a - f0 - J^T f is

    small      if |g| <= SMALL max(|f0|, |J^T f|), or if the gap, an upper bound of the cost above its minimum, is at
               most NEAR tolerances: steps that gain one tolerance each leave some of them
    rounding   if |g| <= ROUNDING |g(a + e) - g|, with e one rounding of each acceleration, up and down: with stiff
               rows, no representable acceleration has a smaller gradient

A gradient above LARGE of the forces sets the warning, even at rounding level.  In float32 the rounding of one
acceleration may produce a gradient larger than all forces on other bodies, so this test would accept too much.  There,
only Newton's method may leave a gradient that is not small, up to LARGE32: it stops if every component is at rounding
level of its terms.  It continues from a gradient that is not small, and may accept the acceleration (accuracy.py).
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.metric import metric_force, metric_times
from featherlane.solver.primal.problem import advance_rows, bounded_force, evaluate, place_rows
from featherlane.solver.rows.contacts import cone_push, pyramid_push
from featherlane.solver.rows.pyramid import turning_pyramid
from featherlane.solver.rows.rows import TURN, clear_body_forces, other_arm, pushed_body_arm

SMALL, SMALL32 = 1e-6, 1e-4  # of the forces, in float64 and float32
NEAR = 100.0  # tolerances
LARGE, LARGE32 = 1e-2, 2e-3  # of the forces: a gradient above this sets the warning, even at rounding level
ROUNDING = 64.0  # accelerations, rows and forces are sums of many terms
TERMS = 16.0  # roundings of each term of the gradient
SQUARED = 1e19  # [N, N m] norms above are infinite in float32
EPS, EPS32 = 2.3e-16, 1.2e-7


@kernel
def one_rounding(d):
    """Returns the relative rounding error of the tile's precision."""
    rounding = EPS
    if single_precision(d):
        rounding = EPS32
    return rounding


@kernel
def size_of_forces(m, d):
    """Returns max(|f0|, |J^T f|), limited to what float32 can square."""
    smooth, constraint, f0 = 0.0, 0.0, metric_force(m, d)
    for i in range(m.nv):
        smooth = fma(f0[i], f0[i], smooth)
        constraint = fma(d.qfrc_constraint[i], d.qfrc_constraint[i], constraint)
    size = sqrt(fmax(smooth, constraint))
    if single_precision(d):
        size = fmin(size, SQUARED)
    return size


# ---- the terms of the gradient -------------------------------------------------------------------------------------
@kernel
def spread_over(f, n, u, v):
    """Returns |f_0| |n| + |f_1| |u| + |f_2| |v|, along each axis."""
    x, y, z = fabs(f)
    return fma(x, fabs(n), fma(y, fabs(u), z * fabs(v)))


@kernel
def add_sizes(d, b, r, f, t):
    """Adds the absolute terms of a wrench: force f at arm r on body b, and moment t."""
    x, y, z = fabs(r)
    moment = (fma(y, f.z, fma(z, f.y, t.x)), fma(z, f.x, fma(x, f.z, t.y)), fma(x, f.y, fma(y, f.x, t.z)))
    d.con_wrench[b] += Force(join(moment, f))


@kernel
def sizes_of_contact(m, d, k):
    """Returns (absolute forces, absolute moments) of contact k, along the world's axes.

    The edges of a pyramid oppose each other across the normal, by at most the normal force.
    """
    c = d.contact[k]
    t = Vec3(zeros(3))
    if has_pyramids(m):
        f, _ = pyramid_push(d, k, d.primal.con_y)
        f = Vec3(f[0], f[0], f[0])
        if c.dim > 3:
            g, _, _ = turning_pyramid(d, k, d.primal.con_y)
            f, t = Vec3(f[0] + g, f[1], f[2]), Vec3(g, g, g)
    else:
        f, s, _ = cone_push(m, d, k, d.primal.con_y)
        if c.dim > 3:
            t = s * d.primal.con_y[TURN, k]
    n, u, v = d.con_basis[k].rows
    if c.dim > 1:
        f = spread_over(f, n, u, v)
    else:
        f = f[0] * fabs(n)
    if c.dim > 3:
        n, u, v = d.con_basis[TURN, k].rows
        t = spread_over(t, n, u, v)
    return f, t


@kernel
def is_rounding_of_terms(m, d):
    """Returns a mask of worlds whose gradient is, per component, at most `TERMS` roundings of each of its terms.

    The sum of terms is |M a| + |f0| + |J|^T |f|, with edges, arms and axes separate.  The gradient of opposing contacts
    is a difference of large terms; if it is only their rounding, another step gains nothing.
    Reads:  the rows, primal.Ma and primal.grad at a point.   Writes: con_wrench, primal.terms.   Cost: as one gradient.
    """
    f0 = metric_force(m, d)
    for i in range(m.nv):
        d.primal.terms[i] = fabs(d.primal.Ma[i]) + fabs(f0[i])
    for k in range(d.ndofrow[0]):
        f, _ = bounded_force(d.dofrow_D[k], d.primal.dofrow_x[k], d.dofrow_lo[k], d.dofrow_hi[k])
        i = d.dofrow_dof[k]
        d.primal.terms[i] = fma(fabs(d.dofrow_J[k]), fabs(f), d.primal.terms[i])
    for k in range(d.ngenrow[0]):
        f, _ = bounded_force(d.genrow_D[k], d.primal.genrow_x[k], d.genrow_lo[k], d.genrow_hi[k])
        o = d.genrow_dofadr[k]
        for e in range(o, o + d.genrow_dofnum[k]):
            i = d.genrow_dof[e]
            d.primal.terms[i] = fma(fabs(d.genrow_J[e]), fabs(f), d.primal.terms[i])
    clear_body_forces(m, d)
    for k in range(d.ncon_slot[0]):
        f, t = sizes_of_contact(m, d, k)
        b, other = d.con_body[k, 0], d.con_body[k, 1]
        add_sizes(d, b, pushed_body_arm(d, k), f, t)
        if other > 0:
            add_sizes(d, other, other_arm(d, k), f, t)
    for k in range(m.nbody - 1):
        b = m.nbody - 1 - k
        if d.body_reached[b]:
            w, p = d.con_wrench[b], m.body_parentid[b]
            if d.body_reached[p]:
                d.con_wrench[p] += w
            for i in range(m.body_dofadr[b], m.body_dofadr[b] + m.body_dofnum[b]):
                s, x = fabs(d.cdof[i]), d.primal.terms[i]
                for j in unrolled(range(6)):
                    x = fma(s[j], w[j], x)
                d.primal.terms[i] = x
    rounding, above = TERMS * one_rounding(d), 0.0
    for i in range(m.nv):
        above = where(fabs(d.primal.grad[i]) <= rounding * d.primal.terms[i], above, 1.0)
    return above == 0.0


# ---- the final gradient --------------------------------------------------------------------------------------------
@kernel
def is_small(m, d, gradient, gap):
    """Returns a mask of worlds whose gradient norm is small, or whose gap, scaled by 1 / trace M, is small."""
    small = SMALL
    if single_precision(d):
        small = SMALL32
    return (gap <= NEAR * m.opt_tolerance[0]) | (gradient <= small * size_of_forces(m, d))


@kernel
def change_by_rounding(m, d, chosen):
    """Returns |g(a + e) - g| of the chosen worlds, after `evaluate`; they stay at a + e, with their rows and forces."""
    change = 0.0
    for i in range(m.nv):
        e = EPS * fmax(fabs(d.qacc[i]), fabs(d.qacc_smooth[i]))
        d.primal.search[i] = where(chosen, e if (i + i // 2) % 2 == 0 else -e, 0.0)
        d.primal.grad_kept[i] = d.primal.grad[i]
    metric_times(m, d, d.primal.search, d.primal.Mv)
    place_rows(m, d, d.primal.search, d.con_motion, d.primal.dofrow_v, d.primal.genrow_v, d.primal.con_z)
    advance_rows(m, d, where(chosen, 1.0, 0.0))
    evaluate(m, d)
    for i in range(m.nv):
        x = d.primal.grad[i] - d.primal.grad_kept[i]
        change = fma(x, x, change)
    return sqrt(change)


@kernel
def is_left(m, d, gradient, gap):
    """Returns a mask of active worlds with a gradient, of this norm, that is not small; the gap is scaled."""
    return (d.active[0] > 0.0) & not_(is_small(m, d, gradient, gap))


@kernel
def is_rounding(m, d, gradient, chosen):
    """Returns a mask of worlds whose gradient, of this norm, is rounding and below LARGE of the forces.

    The chosen worlds move by one rounding: see `change_by_rounding`.  In float32 this is not tested.
    """
    if single_precision(d):
        found = gradient < 0.0
    else:
        large = gradient > LARGE * size_of_forces(m, d)
        found = (gradient <= ROUNDING * change_by_rounding(m, d, chosen)) & not_(large)
    return found


@kernel
def unexplained(m, d, gradient, gap):
    """Returns a mask of worlds whose gradient is neither small nor rounding; tested worlds move by one rounding.

    Reads:  qacc, primal.Ma, rows and gradient at the end of a primal solve, whose norm and scaled gap are given.
    Writes: qacc, primal.*, rows, qfrc_constraint and primal.* of worlds whose gradient is not small.
    Cost:   a product with J and a gradient where some world's is not small, else two sums over nv.
    """
    left = is_left(m, d, gradient, gap)
    if any_(left):
        left = left & not_(is_rounding(m, d, gradient, left))
    return left
