"""Computes velocity derivatives of smooth forces for implicit integration."""

from featherlane.prelude import *
from featherlane.dynamics.actuator.control import is_disabled
from featherlane.dynamics.actuator.rate import force_rate
from featherlane.dynamics.actuator.reflected import damping
from featherlane.dynamics.sparse.outer import add_outer, add_square


@kernel
def polynomial_rate(b, c, e, v):
    """Returns d/dv of v (b + c |v| + e v^2)."""
    s = fabs(v)
    return fma(s, fma(3.0 * e, s, 2.0 * c), b)


@kernel
def damping_rate(m, d, i):
    """Returns -d(damping force) / d qvel of DoF i: b + 2 c |v| + 3 e v^2."""
    b, c, e = damping(m, d, i)
    return polynomial_rate(b, c, e, d.qvel[i])


@kernel
def add_moments(m, d, i, s, A):
    """A += s moment^T moment of actuator i, on M's pattern."""
    for o in range(m.actuator_outadr[i], m.actuator_outadr[i] + m.actuator_outnum[i]):
        first, number = m.moment_rowadr[o], m.moment_rownnz[o]
        if number == 1:
            add_square(m, d.actuator_moment, m.moment_colind, first, s, A)
        else:
            add_outer(m, d.actuator_moment, m.moment_colind, first, number, s, A)


@kernel
def add_actuator_rates(m, d):
    """qH -= h moment^T (d force / d velocity) moment, on M's pattern."""
    h = timestep(m)
    for i in range(m.nactuator):
        if not is_disabled(m, i):
            add_moments(m, d, i, -(h * force_rate(m, d, i)), d.qH)


@kernel
def add_diagonal_actuator_rates(m, d):
    """As `add_actuator_rates` for the diagonal in qHDiagInv, if actuators act on slides and hinges only."""
    h = timestep(m)
    for i in range(m.nactuator):
        if not is_disabled(m, i):
            e = m.moment_rowadr[m.actuator_outadr[i]]
            v, g = m.moment_colind[e], d.actuator_moment[e]
            d.qHDiagInv[v] = fma(-(h * force_rate(m, d, i)), g * g, d.qHDiagInv[v])
