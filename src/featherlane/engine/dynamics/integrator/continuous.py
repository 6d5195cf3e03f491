"""Converts the acceleration of a discrete step to the continuous-time acceleration.

An implicit integrator changes the velocity by h qacc*, (M - h D) qacc* = M qacc, where D contains derivatives of the
forces that it treats implicitly.  If qacc* is known, e.g. from two velocities, qacc = M^-1 (M - h D) qacc*.
The kernels continuous_from_* compute this, the acceleration at the start of the step.

implicit_diagonal of the model is 1 if D is diagonal in every state without a fluid.  Imported kernels:

    uses_articulated(m)               whether the model solves with M by articulated bodies, and does not store M
    inertia_times(m, d, x, y)         y <- M x
    multiply_joint_space(m, A, x, y)  y <- A x, for a matrix A with M's pattern
    multiply_free_bodies              y <- (M - h D) x at separate free bodies, D with their gyroscopic derivatives
    solve_inertia(m, d, x)            x <- M^-1 x
    store_implicit_matrix(m, d)       qH <- M - h D
    store_implicit_diagonal(m, d)     qHDiagInv <- diagonal of -h D
    fluid_worlds(m)                   mask of worlds with a fluid
    fluid_acts(m)                     whether some world has a fluid, and passive forces are enabled

Source: MuJoCo, chapter Computation, integrators; its flag `invdiscrete`.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.articulated import inertia_times, uses_articulated
from featherlane.engine.dynamics.inertia.joint_space import multiply_joint_space
from featherlane.engine.dynamics.integrator.free_body import multiply_free_bodies
from featherlane.engine.dynamics.integrator.integrate import (
    store_damped_diagonal,
    store_implicit_diagonal,
    store_implicit_matrix,
    store_implicitfast_rates,
)
from featherlane.engine.dynamics.integrator.smooth import solve_inertia
from featherlane.engine.dynamics.integrator.velocity_derivative import smooth_vel
from featherlane.engine.dynamics.passive.fluid import fluid_worlds
from featherlane.engine.dynamics.passive.fluid_derivative import fluid_acts
from featherlane.engine.model.integrator import convert_to_continuous


@kernel
def multiply_with_diagonal(m, d, x, y):
    """y <- (M + diag(qHDiagInv)) x; the buffer qHDiagInv holds what an implicit integrator adds to M's diagonal."""
    inertia_times(m, d, x, y)
    for i in range(m.nv):
        y[i] = fma(d.qHDiagInv[i], x[i], y[i])


@kernel
def multiply_implicitfast(m, d, x, y):
    """y <- (M - h D) x of the integrator `implicitfast`.

    - By the matrix qH, except if the model uses articulated bodies and D is diagonal without a fluid.
    - Then by the diagonal of -h D and M x; in worlds with a fluid, whose D has other entries, by qH.
    - At separate free bodies by `multiply_free_bodies`.

    Writes: y (nv,); actuator_rate, qDeriv on request, qH or qHDiagInv; with a fluid qproduct.
    """
    store_implicitfast_rates(m, d)  # writes actuator_rate, qDeriv
    if not (uses_articulated(m) and m.implicit_diagonal):
        store_implicit_matrix(m, d)  # writes qH
        multiply_joint_space(m, d.qH, x, y)
    else:
        store_implicit_diagonal(m, d)  # writes qHDiagInv
        multiply_with_diagonal(m, d, x, y)
        if fluid_acts(m):
            has_fluid = fluid_worlds(m)
            store_implicit_matrix(m, d)  # writes qH
            multiply_joint_space(m, d.qH, x, d.qproduct)
            for i in range(m.nv):
                y[i] = where(has_fluid, d.qproduct[i], y[i])
    multiply_free_bodies(m, d, x, y)  # replaces their rows of y


@kernel
def multiply_implicit(m, d, x, y):
    """y <- (M - h D) x of the integrator `implicit`, with D = qDeriv of `smooth_vel`."""
    h = timestep(m)
    smooth_vel(m, d)  # writes qDeriv
    inertia_times(m, d, x, y)
    for i in range(m.nv):
        Dx = 0.0
        row = m.D_rowadr[i]
        for e in range(row, row + m.D_rownnz[i]):
            Dx = fma(d.qDeriv[e], x[m.D_colind[e]], Dx)
        y[i] = fma(-h, Dx, y[i])


@kernel
def _solve_acceleration(m, d):
    """qacc <- M^-1 qvec."""
    solve_inertia(m, d, d.qvec)
    copy(d.qacc, d.qvec, m.nv)


@kernel
def continuous_from_implicit(m, d):
    """qacc <- M^-1 (M - h D) qacc_step: the continuous-time acceleration of a step of `implicit`."""
    multiply_implicit(m, d, d.qacc_step, d.qvec)
    _solve_acceleration(m, d)


@kernel
def continuous_from_implicitfast(m, d):
    """qacc <- M^-1 (M - h D) qacc_step: the continuous-time acceleration of a step of `implicitfast`."""
    multiply_implicitfast(m, d, d.qacc_step, d.qvec)
    _solve_acceleration(m, d)


@kernel
def multiply_euler(m, d, x, y):
    """y <- (M + h B) x of the integrator `euler`; returns the mask of worlds with a damped DoF."""
    damped = store_damped_diagonal(m, d, articulated=1)  # qHDiagInv <- h B
    multiply_with_diagonal(m, d, x, y)
    return damped


@kernel
def continuous_from_euler(m, d):
    """qacc <- M^-1 (M + h B) qacc_step: the continuous-time acceleration of an `euler` step, in worlds with dampers."""
    if not (m.opt_disableflags & (DISABLE_EULERDAMP | DISABLE_DAMPER)):
        damped = multiply_euler(m, d, d.qacc_step, d.qvec)
        solve_inertia(m, d, d.qvec)
        for i in range(m.nv):
            d.qacc[i] = where(damped, d.qvec[i], d.qacc[i])


@stage
def continuous_acceleration(m, d):
    """qacc <- M^-1 (M - h D) qacc, with the D of the integrator; qacc_step <- the input qacc.

    Source: MuJoCo mj_inverse under `invdiscrete`.
    Reads:  qacc, qvel, M, and what the integrator's D depends on.
    Writes: qacc, qacc_step (nv,) [m/s^2, rad/s^2]; qH, qHDiagInv, qDeriv.
    Scratch: qvec, qproduct, block, block_*, aba_*, cacc, cfrc.
    Cost:   O(nv * depth^2).
    """
    copy(d.qacc_step, d.qacc, m.nv)
    # by the kernel of the model's integrator, such as `continuous_from_euler`
    convert_to_continuous(m, d)
