"""Computes the reflected armature and damping of actuators at the DoFs of their joint: times the gear squared.

Each joint stores its contributing actuator in jnt_actuatorid, or -2 for several and -1 for none.
Source: MuJoCo 4, attributes armature and damping of actuators.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.transmission import drives_joint


@kernel
def gear_squared(m, k):
    """Returns the square of the first gear of actuator k."""
    gear = m.actuator_gear[m.actuator_outadr[k]][0]
    return gear * gear


@kernel
def add_reflected_damping(m, k, coefficients):
    """Returns (b, c, e) of a damping force -v (b + c |v| + e v^2), plus gear squared times those of actuator k."""
    b, c, e = coefficients
    actuator = m.actuator[k]
    gear2 = gear_squared(m, k)
    b = fma(actuator.damping, gear2, b)
    c = fma(actuator.dampingpoly.second, gear2, c)
    return b, c, fma(actuator.dampingpoly.third, gear2, e)


@kernel
def reflected_armature(m, i):
    """Returns the inertia [kg, kg m^2] that actuators add to DoF i: sum of armature times gear squared."""
    j = m.dof_jntid[i]
    total = 0.0
    # -1: no actuator has armature or damping at the joint
    if m.jnt_actuatorid[j] != -1:
        for k in range(m.nactuator):
            if drives_joint(m, k) and m.actuator_trnid[k, 0] == j:
                total = fma(m.actuator_armature[k], gear_squared(m, k), total)
    return total


@kernel
def has_reflected_terms(m, j):
    """Returns the mask of worlds where an actuator has armature or damping at joint j.

    b, c, e: the coefficients of the damping force -v (b + c |v| + e v^2).
    """
    found = 0.0
    for k in range(m.nactuator):
        actuator = m.actuator[k]
        if drives_joint(m, k) and actuator.trnid[0] == j:
            b, c, e = actuator.damping, actuator.dampingpoly.second, actuator.dampingpoly.third
            has_term = (actuator.armature != 0.0) | (b != 0.0) | (c != 0.0) | (e != 0.0)
            found = where(has_term, 1.0, found)
    return found > 0.0


@kernel
def damping_coefficients(m, d, i):
    """Returns (b, c, e): the damping force of DoF i is -v (b + c |v| + e v^2), of the joint and its actuators."""
    j = m.dof_jntid[i]
    coefficients = m.dof_damping[i], m.dof_dampingpoly[i].second, m.dof_dampingpoly[i].third
    # -1: no actuator has armature or damping at the joint
    if m.jnt_actuatorid[j] != -1:
        for k in range(m.nactuator):
            if drives_joint(m, k) and m.actuator_trnid[k, 0] == j:
                coefficients = add_reflected_damping(m, k, coefficients)
    return coefficients
