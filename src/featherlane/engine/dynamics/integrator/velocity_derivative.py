"""Computes qDeriv, the velocity derivatives of smooth forces: dampers, actuators, and their sum with the bias force.

The matrix has M's pattern in both triangles: row i holds DoF i's ancestors, itself and its descendants.
FULL is this pattern in sparse/outer.py.
Source: MuJoCo, chapter Computation, integrators (the matrix -D there).
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.rate import actuator_rates
from featherlane.engine.dynamics.body.rne_derivative import add_bias_derivative
from featherlane.engine.dynamics.integrator.derivative import add_actuator_rates, add_damping_rates, add_smooth_rates
from featherlane.engine.dynamics.integrator.gyroscopic import subtract_torque_rates
from featherlane.engine.dynamics.passive.fluid_derivative import add_fluid_vel, fluid_acts
from featherlane.engine.dynamics.sparse.outer import FULL


@stage
def passive_vel(m, d):
    """Computes the velocity derivatives of damping: qDeriv <- d qfrc_passive / d qvel.

    The damping force of a dof is -v (b + c |v| + e v^2) with its velocity v and its damping coefficients b, c, e.  The
    derivative -(b + 2 c |v| + 3 e v^2) is on the diagonal.  A tendon adds J^T (the same of its rate) J with its
    Jacobian J, and a fluid its own derivatives.
    Source: MuJoCo mjd_passive_vel.
    Reads:  qvel, ten_J, ten_velocity; in a fluid cvel, cdof and the frames of bodies.
    Writes: qDeriv (nD,) [N s/m, N m s/rad].
    Scratch: in a fluid crb_drag.
    Cost:   O(nD).
    """
    clear(d.qDeriv, m.nD)
    add_damping_rates(m, d, s=1.0, A=d.qDeriv, pattern=FULL)
    if fluid_acts(m):
        add_fluid_vel(m, d, s=1.0, A=d.qDeriv)


@stage
def actuator_vel(m, d):
    """Computes the velocity derivatives of actuators: qDeriv <- d qfrc_actuator / d qvel.

    moment^T (gain's rate * control + bias's rate) moment.  An actuator whose force is clamped, or the sum on its joint,
    contributes nothing.
    Source: MuJoCo mjd_actuator_vel.
    Reads:  actuator_moment, and what `actuation` wrote.   Writes: qDeriv (nD,) [N s/m, N m s/rad]; actuator_rate.
    """
    clear(d.qDeriv, m.nD)
    if not (m.opt_disableflags & DISABLE_ACTUATION):
        actuator_rates(m, d)  # writes actuator_rate
    add_actuator_rates(m, d, s=1.0, A=d.qDeriv, pattern=FULL)


@kernel
def store_rates_without_bias(m, d):
    """qDeriv <- d (qfrc_actuator + qfrc_passive) / d qvel: D of the integrator implicitfast.

    Reads:  actuator_rate, which the stage `actuator_rates` writes.
    """
    clear(d.qDeriv, m.nD)
    add_smooth_rates(m, d, s=1.0, A=d.qDeriv, pattern=FULL)


@stage
def smooth_vel(m, d):
    """Computes the velocity derivatives of all smooth forces, for the integrator `implicit`.

    qDeriv <- d (qfrc_actuator + qfrc_passive - qfrc_bias) / d qvel.  An implicit gyroscopic torque (gyroscopic.py)
    counts as constant.
    Source: MuJoCo mjd_smooth_vel with flg_bias = 1.
    Reads:  what `rne_vel`, `passive_vel` and `actuator_vel` read.
    Writes: qDeriv (nD,) [N s/m, N m s/rad].
    Scratch: crb_rate, cdof_rate, crb_drag, actuator_rate.
    Cost:   O(nv * depth).
    """
    if not (m.opt_disableflags & DISABLE_ACTUATION):
        actuator_rates(m, d)  # writes actuator_rate
    store_rates_without_bias(m, d)  # writes qDeriv
    add_bias_derivative(m, d, s=-1.0)
    subtract_torque_rates(m, d, s=-1.0)
