"""Converts the acceleration of a discrete step to the continuous-time acceleration.

An implicit integrator changes the velocity by h qacc*, (M - h D) qacc* = M qacc, where D contains derivatives of the
forces that it treats implicitly.  If qacc* is known, e.g. from two velocities, qacc = M^-1 (M - h D) qacc*.
Source: MuJoCo, chapter Computation, integrators; its flag `invdiscrete`.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.articulated import inertia_times, uses_articulated
from featherlane.dynamics.inertia.joint_space import multiply_joint_space
from featherlane.dynamics.integrator.free_body import multiply_free_bodies
from featherlane.dynamics.integrator.integrate import (
    damped_diagonal,
    implicit_diagonal,
    implicit_matrix,
    implicitfast_rates,
)
from featherlane.dynamics.integrator.smooth import solve_inertia
from featherlane.dynamics.integrator.velocity_derivative import smooth_vel
from featherlane.dynamics.passive.fluid import in_medium
from featherlane.dynamics.passive.fluid_derivative import medium_counts
from featherlane.model.integrator import to_the_moment


@kernel
def times_diagonal(m, d, x, y):
    """y <- (M + diag(qHDiagInv)) x."""
    inertia_times(m, d, x, y)
    for i in range(m.nv):
        y[i] = fma(d.qHDiagInv[i], x[i], y[i])


@kernel
def times_fast(m, d, x, y):
    """y <- (M - h D) x of the integrator `implicitfast`."""
    implicitfast_rates(m, d)
    if not (uses_articulated(m) and m.implicit_diagonal):
        implicit_matrix(m, d)
        multiply_joint_space(m, d.qH, x, y)
    else:
        implicit_diagonal(m, d)
        times_diagonal(m, d, x, y)
        if medium_counts(m):
            medium = in_medium(m)
            implicit_matrix(m, d)
            multiply_joint_space(m, d.qH, x, d.qproduct)
            for i in range(m.nv):
                y[i] = where(medium, d.qproduct[i], y[i])
    multiply_free_bodies(m, d, x, y)


@kernel
def times_implicit(m, d, x, y):
    """y <- (M - h D) x of the integrator `implicit`."""
    h = timestep(m)
    smooth_vel(m, d)
    inertia_times(m, d, x, y)
    for i in range(m.nv):
        s, a = 0.0, m.D_rowadr[i]
        for e in range(a, a + m.D_rownnz[i]):
            s = fma(d.qDeriv[e], x[m.D_colind[e]], s)
        y[i] = fma(-h, s, y[i])


@kernel
def _undo_inertia(m, d):
    """qacc <- M^-1 qvec."""
    solve_inertia(m, d, d.qvec)
    for i in range(m.nv):
        d.qacc[i] = d.qvec[i]


@kernel
def moment_of_implicit(m, d):
    """Computes the continuous-time acceleration from that of a step of `implicit`."""
    times_implicit(m, d, d.qacc_step, d.qvec)
    _undo_inertia(m, d)


@kernel
def moment_of_implicitfast(m, d):
    """Computes the continuous-time acceleration from that of a step of `implicitfast`."""
    times_fast(m, d, d.qacc_step, d.qvec)
    _undo_inertia(m, d)


@kernel
def times_euler(m, d, x, y):
    """y <- (M + h B) x of the integrator `euler`; returns the mask of worlds with a damped DoF."""
    damped = damped_diagonal(m, d, articulated=1)
    times_diagonal(m, d, x, y)
    return damped


@kernel
def moment_of_euler(m, d):
    """Computes the continuous-time acceleration from that of a step of `euler`, in worlds with dampers."""
    if not (m.opt_disableflags & (DISABLE_EULERDAMP | DISABLE_DAMPER)):
        damped = times_euler(m, d, d.qacc_step, d.qvec)
        solve_inertia(m, d, d.qvec)
        for i in range(m.nv):
            d.qacc[i] = where(damped, d.qvec[i], d.qacc[i])


@stage
def continuous_acceleration(m, d):
    """qacc <- M^-1 (M - h D) qacc, with the D of the integrator; qacc_step <- the input qacc.

    Source: MuJoCo mj_inverse under `invdiscrete`.
    Reads:  qacc, qvel, M, and what the integrator's D depends on.
    Writes: qacc, qacc_step (nv,) [m/s^2, rad/s^2]; qH, qHDiagInv, qDeriv.
    Scratch: qvec, qproduct, block, aba_*, cacc, cfrc.
    Cost:   O(nv * depth^2).
    """
    for i in range(m.nv):
        d.qacc_step[i] = d.qacc[i]
    to_the_moment(m, d)
