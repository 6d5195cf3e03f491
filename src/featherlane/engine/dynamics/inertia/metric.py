"""Provides the metric A of the constraint solve: the joint-space inertia M, or the metric of the integrator `discrete`.

    1/2 (a - a0)^T A (a - a0) + s(J a - aref),      A a0 = f0,     s the cost of the constraint rows

Rows and solvers obtain A, its factor and the force f0 here, so they are independent of the metric.  It is M, its factor
and qfrc_smooth; or Mhat, with the factor in qH and qHDiagInv, and qfrc_step, for the integrator `discrete`
(integrator/discrete.py).  `has_metric(m)` checks whether the model's integrator has a metric other than M: only
`discrete`.  `articulated_solve(m, d, extra, x)` computes x <- (M + diag(extra))^-1 x.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.articulated import articulated_multiply, articulated_solve, uses_articulated
from featherlane.engine.dynamics.inertia.joint_space import multiply_joint_space, solve_factored
from featherlane.engine.model.integrator import has_metric


@kernel
def metric(m, d):
    """Returns A, on M's pattern."""
    return d.Mhat if has_metric(m) else d.M


@kernel
def metric_factor(m, d):
    """Returns (LD, inverse) of A = L^T D L: L below the diagonal with D on it, and 1 / D."""
    LD = d.qH if has_metric(m) else d.qLD
    inverse = d.qHDiagInv if has_metric(m) else d.qLDiagInv
    return LD, inverse


@kernel
def metric_force(m, d):
    """Returns f0: the force without constraints."""
    return d.qfrc_step if has_metric(m) else d.qfrc_smooth


@kernel
def metric_times(m, d, x, y):
    """y <- A x; by recursion over bodies if the model uses articulated bodies, else by the stored matrix."""
    if uses_articulated(m):
        articulated_multiply(m, d, x, y)
    else:
        multiply_joint_space(m, metric(m, d), x, y)


@kernel
def inverse_metric_times(m, d, x):
    """x <- A^-1 x: by the recursion of articulated bodies, or by the factor of the unconstrained acceleration.

    The model alone selects the method, so results are bitwise identical for any requested outputs.
    Reads:  the factor (qLD, qLDiagInv) that `factor_m` stored for requested outputs, else (qH, qHDiagInv), which the
            unconstrained acceleration left.   Writes: x (nv,); with articulated bodies qHDiagInv, cacc, cfrc, aba_*.
    """
    if uses_articulated(m):
        # extra = 0 is stored in qHDiagInv: no values are added to M's diagonal
        for i in range(m.nv):
            d.qHDiagInv[i] = 0.0
        articulated_solve(m, d, d.qHDiagInv, x)
    elif d.want_all and not has_metric(m):  # want_all: all outputs are requested, so `factor_m` has run
        solve_factored(m, d.qLD, d.qLDiagInv, x)
    else:
        solve_factored(m, d.qH, d.qHDiagInv, x)


@kernel
def metric_diagonal(m, d, i):
    """Returns A_ii, the last entry of row i; with articulated bodies, without M, the mean inertia of the model."""
    if uses_articulated(m):
        diagonal = m.stat_meaninertia[0]
    else:
        diagonal = metric(m, d)[m.M_rowadr[i] + m.M_rownnz[i] - 1]
    return diagonal
