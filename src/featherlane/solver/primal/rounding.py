"""Is the gradient that a solve leaves small, or no more than rounding?  If neither, the step has to say so.

A solver stops where its tolerance is met, or where it gains no more.  The last gain says nothing of what is left:
whatever ended the iterations, the point itself is looked at.  Its gradient g = M a - f0 - J^T f is

    small      where |g| <= SMALL max(|f0|, |J^T f|), or where the gap, which bounds the cost above its minimum, is at
               most NEAR tolerances: steps that gain one tolerance each leave some of them
    rounding   where |g| <= ROUNDING |g(a + e) - g|, e one rounding of each acceleration, up and down: where rows are
               stiff, the accelerations that are numbers have no smaller gradient
"""

from __future__ import annotations

from featherlane.dynamics.inertia.metric import metric_force, metric_times
from featherlane.lanes import any_, fabs, fma, fmax, kernel, not_, real, single_precision, sqrt, where
from featherlane.solver.primal.problem import advance_rows, evaluate, place_rows

SMALL, SMALL32 = 1e-6, 1e-4  # of the forces, in float64 and float32
NEAR = 100.0  # tolerances
ROUNDING = 64.0  # accelerations, rows and forces are sums of many terms
EPS, EPS32 = 2.3e-16, 1.2e-7


@kernel
def size_of_forces(m, d):
    """max(|f0|, |J^T f|)."""
    smooth, constraint, f0 = real(d, 0.0), real(d, 0.0), metric_force(m, d)
    for i in range(m.nv):
        smooth = fma(f0[i], f0[i], smooth)
        constraint = fma(d.qfrc_constraint[i], d.qfrc_constraint[i], constraint)
    return sqrt(fmax(smooth, constraint))


@kernel
def is_small(m, d, gradient, gap):
    """Mask: is this norm of the gradient small, or this gap, scaled by 1 / trace M?"""
    small = real(d, SMALL)
    if single_precision(d):
        small = real(d, SMALL32)
    return (gap <= NEAR * m.opt_tolerance[0]) | (gradient <= small * size_of_forces(m, d))


@kernel
def change_by_rounding(m, d, chosen):
    """|g(a + e) - g| of the chosen worlds, after `evaluate`; these stay at a + e, with their rows and forces."""
    eps, change = real(d, EPS), real(d, 0.0)
    if single_precision(d):
        eps = real(d, EPS32)
    for i in range(m.nv):
        e = eps * fmax(fabs(d.qacc[i]), fabs(d.qacc_smooth[i]))
        d.search[i] = where(chosen, e if (i + i // 2) % 2 == 0 else -e, 0.0)
        d.Mgrad[i] = d.grad[i]
    metric_times(m, d, d.search, d.Mv)
    place_rows(m, d, d.search, d.con_motion, d.dofrow_v, d.genrow_v, d.con_z)
    advance_rows(m, d, where(chosen, 1.0, real(d, 0.0)))
    evaluate(m, d)
    for i in range(m.nv):
        x = d.grad[i] - d.Mgrad[i]
        change = fma(x, x, change)
    return sqrt(change)


@kernel
def is_left(m, d, gradient, gap):
    """Mask: active worlds with a gradient, of this norm, that is not small; the gap is scaled."""
    return (d.active[0] > 0.0) & not_(is_small(m, d, gradient, gap))


@kernel
def is_rounding(m, d, gradient, chosen):
    """Mask: is the gradient, of this norm, rounding?  The chosen worlds move by as much: see `change_by_rounding`."""
    return gradient <= ROUNDING * change_by_rounding(m, d, chosen)


@kernel
def unexplained(m, d, gradient, gap):
    """Mask: worlds whose gradient is neither small nor rounding; those asked about rounding moved by as much.

    Reads:  qacc, Ma, rows and gradient at the end of a primal solve, whose norm and scaled gap are given.
    Writes: qacc, Ma, rows, qfrc_constraint and grad of worlds whose gradient is not small; search, Mv, Mgrad.
    Cost:   a product with J and a gradient where some world's is not small, else two sums over nv.
    """
    left = is_left(m, d, gradient, gap)
    if any_(left):
        left = left & not_(is_rounding(m, d, gradient, left))
    return left
