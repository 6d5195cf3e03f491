"""Rows for the terms that tendons and similar elements add to M in the metric of the integrator `discrete`.

The metric is M + h D + h^2 K.  Joints add to its diagonal.  A tendon with a spring or a damper, and an actuator for
which `is_coupling` holds, add s J^T J, which may couple dofs that are not coupled in M.  In the solver's cost it is

    1/2 s (J a)^2:    a row with D = s, a_ref = 0 and no bounds.

So it is one of the general rows.  As in MuJoCo, only diagonal terms enter the matrix that corrects the diagonal
approximation.  Its force, -s J a, is an inertial force and not a constraint force: `release_metric` subtracts it
again.  The solver PGS has no such rows.
`has_metric(m)`: the model uses this integrator.  `tendon_metric`, `actuator_metric`: s of a tendon, of an actuator.
k: a general row (fields row_*, row.py); adr: its first entry in row_dof and row_J.  ten_J, actuator_moment: sparse
matrices with the rows J of tendons and of actuator outputs; *_rowadr, *_rownnz, *_colind: their layout.
Source: MuJoCo 4, chapter Computation, "Discrete-time" (couplings that are applied without a factor).
"""

from __future__ import annotations

from featherlane.engine.prelude import *
from featherlane.engine.constraint.general import add_joint_force, assign_rows, row_product, store_row
from featherlane.engine.constraint.impedance import UNBOUNDED
from featherlane.engine.dynamics.actuator.control import is_disabled
from featherlane.engine.dynamics.integrator.discrete import (
    actuator_metric,
    has_actuator_metric,
    has_tendon_metric,
    is_coupling,
    tendon_metric,
)
from featherlane.engine.model.integrator import has_metric


@kernel
def _write_metric_row(d, k, adr, J, dof, first, n, s):
    """Writes row k with D = s and, from adr on, the n entries J[first ..] of a sparse matrix.

    dof: column indices of the matrix; s: factor of J^T J in the metric, 0 in worlds that do not have the row.
    """
    present = s > 0.0
    bound = UNBOUNDED
    for e in range(n):
        d.row_dof[adr + e] = dof[first + e]
        d.row_J[adr + e] = where(present, J[first + e], 0.0)
    assign_rows(d, k, size=1, adr=adr, n=n, kind=METRIC, ident=0)
    v = row_product(d, k, d.qvel)
    store_row(d, k, present, error=(0.0, 0.0), vel=v, D=s, aref=0.0, bounds=(-bound, bound))


@kernel
def write_metric_rows(m, d, k, adr):
    """Writes a row with cost 1/2 s (J a)^2 for each tendon and each coupling actuator: the term s J^T J of the metric.

    Rows from k on, entries from adr on; an actuator has one row per output.  Returns the next row.
    """
    if has_metric(m):
        if has_tendon_metric(m):
            for i in range(m.ntendon):
                s = tendon_metric(m, d, i)
                n = m.ten_J_rownnz[i]
                if n > 0 and any_(s > 0.0):  # else the length depends on no dof, or no world has the term
                    _write_metric_row(d, k, adr, d.ten_J, m.ten_J_colind, m.ten_J_rowadr[i], n, s)
                    k = k + 1
                    adr = adr + n
        if has_actuator_metric(m):
            for i in range(m.nactuator):
                # the term of another actuator has M's pattern: Mhat contains it
                if is_coupling(m, i) and not is_disabled(m, i):
                    s = actuator_metric(m, d, i)
                    for q in actuator_outputs(m, i):
                        n = m.moment_rownnz[q]
                        if n > 0 and any_(s > 0.0):
                            _write_metric_row(d, k, adr, d.actuator_moment, m.moment_colind, m.moment_rowadr[q], n, s)
                            k = k + 1
                            adr = adr + n
    return k


@kernel
def release_metric(m, d):
    """Subtracts the forces of metric rows from qfrc_constraint: -s J^T (J a) is an inertial force.

    Reads: primal.row_x = J a - a_ref, with a_ref = 0.
    """
    if has_metric(m):
        for k in range(d.ndofrow[0], d.nrow[0]):
            if d.row_type[k] == METRIC:
                # minus the row's force, which is -D (J a)
                add_joint_force(d, k, d.row_D[k] * d.primal.row_x[k], d.qfrc_constraint)


def metric_capacity(model) -> tuple[int, int]:
    """Returns the maximum numbers of metric rows and of their entries: of all tendons and outputs."""
    return model.ntendon + model.nout, model.nJten + model.nmoment
