"""Armature and damping of actuators, as seen by the dofs of their joint: times the square of the gear.

A joint knows whether one actuator, several (-2) or none (-1) contribute.
Source: MuJoCo 4, attributes armature and damping of actuators.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.transmission import drives_joint


@kernel
def _gear_squared(m, k):
    """Square of the actuator's first gear."""
    g = m.actuator_gear[6 * m.actuator_outadr[k]]
    return g * g


@kernel
def reflected_armature(m, d, i):
    """Inertia [kg, kg m^2] that actuators add to dof i."""
    j = m.dof_jntid[i]
    total = zero(d)
    if m.jnt_actuatorid[j] != -1:
        for k in range(m.nactuator):
            if drives_joint(m, k) and m.actuator_trnid[2 * k] == j:
                total = fma(m.actuator_armature[k], _gear_squared(m, k), total)
    return total


@kernel
def is_reflected(m, d, j):
    """Mask: worlds in which an actuator has armature or damping at joint j."""
    found = zero(d)
    for k in range(m.nactuator):
        if drives_joint(m, k) and m.actuator_trnid[2 * k] == j:
            b, c, e = m.actuator_damping[k], m.actuator_dampingpoly[2 * k], m.actuator_dampingpoly[2 * k + 1]
            acts = (m.actuator_armature[k] != 0.0) | (b != 0.0) | (c != 0.0) | (e != 0.0)
            found = where(acts, 1.0, found)
    return found > 0.0


@kernel
def damping(m, d, i):
    """(b, c, e): the damping force of dof i is -v (b + c |v| + e v^2), its own and its actuators' together."""
    j = m.dof_jntid[i]
    b, c, e = m.dof_damping[i], m.dof_dampingpoly[2 * i], m.dof_dampingpoly[2 * i + 1]
    if m.jnt_actuatorid[j] != -1:
        for k in range(m.nactuator):
            if drives_joint(m, k) and m.actuator_trnid[2 * k] == j:
                s = _gear_squared(m, k)
                b = fma(m.actuator_damping[k], s, b)
                c = fma(m.actuator_dampingpoly[2 * k], s, c)
                e = fma(m.actuator_dampingpoly[2 * k + 1], s, e)
    return b, c, e
