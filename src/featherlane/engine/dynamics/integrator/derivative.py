"""Computes velocity derivatives of smooth forces for implicit integration.

The kernels add to a matrix A with one of the patterns of sparse/outer.py: DIAGONAL (nv,), LOWER (nC,), the lower
triangle of M, or FULL (nD,), that of qDeriv.  `add_row` adds s J^T J on a pattern, for a sparse row J with the values
J[first : first + number], whose DoFs are at the same indices of `colind`.  diagonal_address is the address of A_ii.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.control import is_disabled
from featherlane.engine.dynamics.actuator.rate import force_by_velocity
from featherlane.engine.dynamics.actuator.reflected import damping_coefficients
from featherlane.engine.dynamics.body.force_laws import implicit_rate
from featherlane.engine.dynamics.passive.fluid_derivative import add_fluid_metric, add_fluid_vel, fluid_acts
from featherlane.engine.dynamics.sparse.outer import FULL, LOWER, add_row, diagonal_address
from featherlane.engine.dynamics.tendon.force import add_tendon_damping


@kernel
def damping_rate(m, d, i):
    """Returns -d(damping force) / d qvel of DoF i: b + 2 c |v| + 3 e v^2."""
    return implicit_rate(damping_coefficients(m, d, i), fabs(d.qvel[i]))


@kernel
def add_moments(m, d, i, s, A, pattern):
    """A += s moment^T moment of actuator i, summed over its outputs, on the pattern."""
    for o in actuator_outputs(m, i):
        add_row(m, d.actuator_moment, m.moment_colind, m.moment_rowadr[o], m.moment_rownnz[o], s, A, pattern)


@kernel
def add_damping_rates(m, d, s, A, pattern):
    """A += s d qfrc_damper / d qvel, on the pattern: minus the rates on the diagonal, and the terms of tendons."""
    if not (m.opt_disableflags & DISABLE_DAMPER):
        for i in range(m.nv):
            e = diagonal_address(m, i, pattern)
            A[e] = fma(-s, damping_rate(m, d, i), A[e])
        add_tendon_damping(m, d, s, A, pattern)


@kernel
def add_actuator_rates(m, d, s, A, pattern):
    """A += s moment^T (d force / d velocity) moment of all actuators, on the pattern.

    Reads:  actuator_rate, which the stage `actuator_rates` writes.
    """
    if not (m.opt_disableflags & DISABLE_ACTUATION):
        for i in range(m.nactuator):
            if not is_disabled(m, i):
                add_moments(m, d, i, s * force_by_velocity(m, d, i), A, pattern)


@kernel
def add_smooth_rates(m, d, s, A, pattern):
    """A += s D,  D = d (qfrc_actuator + qfrc_passive) / d qvel: every force that implicit integrators differentiate.

    All matrices of `implicit` and `implicitfast` are assembled here.  LOWER holds the symmetric part of D, FULL all of
    it (both as in MuJoCo), DIAGONAL its diagonal if D has no other entries.
    Source: MuJoCo mjd_smooth_vel with flg_bias = 0.
    Reads:  actuator_rate, which the stage `actuator_rates` writes.
    """
    add_damping_rates(m, d, s, A, pattern)
    add_actuator_rates(m, d, s, A, pattern)
    if pattern == LOWER and fluid_acts(m):
        add_fluid_metric(m, d, s, dissipative=0, A=A)
    if pattern == FULL and fluid_acts(m):
        add_fluid_vel(m, d, s, A)
