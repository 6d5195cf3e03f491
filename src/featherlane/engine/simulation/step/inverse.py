"""Lists the passes of inverse dynamics: from a state and an acceleration to the external force.

position -> velocity -> continuous-time acceleration -> constraint -> force
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.actuation import actuation, output_velocities
from featherlane.engine.dynamics.awake import sleeping
from featherlane.engine.dynamics.integrator.continuous import continuous_acceleration
from featherlane.engine.dynamics.integrator.discrete import discrete_metric
from featherlane.engine.dynamics.integrator.smooth import energy
from featherlane.engine.model.integrator import has_conversion, has_metric
from featherlane.engine.sensor.measure import needs_energy, sensor_acc, sensor_vel
from featherlane.engine.simulation.step.consistency import inverse_constraint, inverse_force
from featherlane.engine.simulation.step.early_contacts import early_contacts, forces_need_contacts
from featherlane.engine.simulation.step.forward import forward_position, forward_velocity
from featherlane.engine.simulation.step.wake import wake_perturbed, wake_touched


@stage
def inverse(m, d):
    """Computes the external force that gives each world the acceleration qacc in its present state.

    qfrc_inverse = M qacc + C(q, v) - passive - constraint forces = qfrc_applied + J^T xfrc_applied + qfrc_actuator.
    With `invdiscrete`, qacc is the acceleration of a step, and the integrator's implicit damping is undone first.
    With the integrator `discrete` the two accelerations are equal, and its metric replaces M.
    Source: MuJoCo mj_inverse.  Deviation: with `invdiscrete` actuator forces are recomputed, because the derivatives
        of clamped forces vanish; MuJoCo uses those of the last forward pass.
    Reads:  the state, qacc.
    Writes: qfrc_inverse (nv,) [N, N m], qfrc_constraint, forces of the rows, contacts and rows, all that follows from
            position and velocity, actuator_velocity; under discrete Mhat, qH, qHDiagInv; qacc, which is restored.
    Scratch: qvec.
    """
    if sleeping(m):
        wake_perturbed(m, d)
    forward_position(m, d)
    if sleeping(m):
        wake_touched(m, d)
    if forces_need_contacts(m):
        early_contacts(m, d)
    forward_velocity(m, d)
    output_velocities(m, d)
    sensor_vel(m, d)
    is_of_step = m.opt_enableflags & ENABLE_INVDISCRETE != 0 and has_conversion(m)  # qacc is that of a time step
    if is_of_step:
        actuation(m, d)
        continuous_acceleration(m, d)  # qacc; keeps the given one in qacc_step
    elif has_metric(m):
        actuation(m, d)
        discrete_metric(m, d)  # Mhat, which replaces M under the integrator `discrete`
    inverse_constraint(m, d, store=1)
    inverse_force(m, d)
    if needs_energy(m, d):
        energy(m, d)
    sensor_acc(m, d)
    if is_of_step:  # restore the given acceleration
        copy(d.qacc, d.qacc_step, m.nv)
