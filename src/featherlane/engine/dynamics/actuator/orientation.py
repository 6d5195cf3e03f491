"""Computes orientation servos: three outputs rotate a ball, or one site against another, to a target by the short way.

    force = kp log(q* q_target) + b - kv w,    in the axes of the moving frame

The lengths of the outputs are the rotation vector of q.
i is the index of an actuator.

Affine names the values of a row biasprm: constant, by_length, by_velocity.  early_activation(m, d, i, a) is act[a], or
with `actearly` its value after the step.

Source: MuJoCo 4, actuator `orientation`.  Deviation: a torque within AT_BOUND of its bound counts as bound; MuJoCo
    compares the rounded length.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.activation import early_activation
from featherlane.engine.dynamics.actuator.parameters import Affine

AT_BOUND = 1e-6  # relative distance of a torque from its bound


@kernel
def _target(m, d, i):
    """Returns the target quaternion, from controls (quaternion or rotation vector) or activations (rotation vector)."""
    actuator = m.actuator[i]
    u = actuator.ctrladr
    # ctrlspec of an orientation servo is the chart of its controls
    if actuator.ctrlspec == CHART_QUAT:
        return Quat(d.actuator_input[u : u + 4]).unit
    # without dynamics the controls are the target, else the activations
    if actuator.dyntype == DYN_NONE:
        return rotation_vector_quat(Vec3(d.actuator_input[u : u + 3]))
    a = actuator.actadr
    return rotation_vector_quat(Vec3(early_activation(m, d, i, a + k) for k in range(3)))


@kernel
def store_orientation_torque(m, d, i):
    """actuator_force <- the torques of the three outputs of actuator i: kp log(q* q_target) + b - kv w.

    quat_sub returns log(q* q_target); the bias parameters are b and -kv.
    """
    o = m.actuator_outadr[i]
    bias = Affine(m.actuator_biasprm[i])
    error = quat_sub(_target(m, d, i), rotation_vector_quat(Vec3(d.actuator_length[o : o + 3])))
    damped = fma(bias.by_velocity, Vec3(d.actuator_velocity[o : o + 3]), bias.constant)
    d.actuator_force[o : o + 3] = fma(m.actuator_gainprm[i][0], error, damped)


@kernel
def bound_torque(m, d, i):
    """Limits the torque of the three outputs of actuator i, in actuator_force, to its range and keeps its direction."""
    o = m.actuator_outadr[i]
    torque = Vec3(d.actuator_force[o : o + 3])
    size = norm3(torque)
    bound = m.actuator_forcerange[i].upper
    scale = where(size > bound, bound / where(size > 0.0, size, 1.0), 1.0)
    d.actuator_force[o : o + 3] = scale * torque
