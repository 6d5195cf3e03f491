"""The metric of the constraint solve: the joint-space inertia M, or that of an integrator whose time step the solve is.

    1/2 (a - a0)^T A (a - a0) + s(J a - aref),      A a0 = f0

Rows and solvers ask here for A, its factor and the force f0, and so do not know which they have: M, its factor and
qfrc_smooth; or Mhat, the factor in qH and qHDiagInv, and qfrc_step of the integrator `discrete`
(integrator/discrete.py).
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.articulated import articulated_multiply, articulated_solve, uses_articulated
from featherlane.dynamics.inertia.joint_space import multiply, solve
from featherlane.model.integrator import has_metric


@kernel
def metric(m, d):
    """A, on M's pattern."""
    return d.Mhat if has_metric(m) else d.M


@kernel
def metric_factor(m, d):
    """(L and D, 1 / D) of A = L^T D L."""
    LD = d.qH if has_metric(m) else d.qLD
    inverse = d.qHDiagInv if has_metric(m) else d.qLDiagInv
    return LD, inverse


@kernel
def metric_force(m, d):
    """f0: the force without constraints."""
    return d.qfrc_step if has_metric(m) else d.qfrc_smooth


@kernel
def metric_times(m, d, x, y):
    """y <- A x, the model's way."""
    if uses_articulated(m):
        articulated_multiply(m, d, x, y)
    else:
        multiply(m, metric(m, d), x, y)


@kernel
def inverse_metric_times(m, d, x):
    """x <- A^-1 x by recursion, or by the factor that the acceleration without constraints left.

    The model chooses the way: what is asked of a step shows in no bit.
    """
    if uses_articulated(m):
        for i in range(m.nv):
            d.qHDiagInv[i] = zero(d)
        articulated_solve(m, d, d.qHDiagInv, x)
    elif d.want_all and not has_metric(m):
        solve(m, d.qLD, d.qLDiagInv, x)
    else:
        solve(m, d.qH, d.qHDiagInv, x)


@kernel
def metric_diagonal(m, d, i):
    """A_ii; where M is not computed, the mean of the model's."""
    if uses_articulated(m):
        x = m.stat_meaninertia[0]
    else:
        x = metric(m, d)[m.M_rowadr[i] + m.M_rownnz[i] - 1]
    return x
