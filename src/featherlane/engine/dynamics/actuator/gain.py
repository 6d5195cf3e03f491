"""Computes forces of actuators with one output: gain times the driving value, plus bias.

l and l' are length and velocity, z the integral of the position error; the driving value is a control or an activation.

gain    fixed, affine in length and velocity, muscle, dcmotor, user callback
bias    none, affine, muscle, dcmotor, user callback
pid     kp (q_ref - l) + kd (v_ref - l') + f + ki z, kp and kd in the affine bias

ctrladr, actadr and outadr of an actuator are the addresses of its first control, activation and output; ctrlnum and
actnum are the numbers of its controls and activations.  INTEGRAL and CURRENT are bits of its `states`: it has an
integral or a motor's current as an activation.
`nearest_setpoint(m, d, i, x, length)` returns, of the angles equivalent to x, the one nearest to `length`; it returns x
itself if actuator i is no position servo of an angle.
i is the index of an actuator, o that of its output.

Imported kernels:

    Affine, Muscle                names of the values of a row gainprm or biasprm (parameters.py)
    inputs(m, d, i)               (position, velocity, feedforward, voltage): the controls, 0 if absent
    early_activation(m, d, i, a)  act[a], or with `actearly` its value after the step
    muscle_gain, muscle_bias      -F FL FV and -F FP of an output, for the parameters of a Muscle
    motor_gain, motor_bias        force per current or voltage, and the force of the back-EMF

Source: MuJoCo, chapter Computation, actuation model; mj_fwdActuation.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.activation import early_activation
from featherlane.engine.dynamics.actuator.control import inputs
from featherlane.engine.dynamics.actuator.dcmotor import motor_bias, motor_gain, voltage
from featherlane.engine.dynamics.actuator.muscle import muscle_bias, muscle_gain
from featherlane.engine.dynamics.actuator.parameters import Affine, Muscle
from featherlane.engine.dynamics.actuator.setpoint import nearest_setpoint
from featherlane.engine.dynamics.actuator.user import BIAS, GAIN, call_user_term


@kernel
def _affine(prm, length, velocity):
    """Returns constant + by_length length + by_velocity velocity, with the parameters of a row gainprm or biasprm."""
    f = Affine(prm)
    return fma(f.by_velocity, velocity, fma(f.by_length, length, f.constant))


@kernel
def driving_value(m, d, i):
    """Returns the value by which the gain of actuator i is multiplied; 0 if there is none.

    - a motor without inductance: its voltage;
    - else with activations: the last one, `early_activation`;
    - else: the first control.
    """
    actuator = m.actuator[i]
    is_voltage_driven = actuator.gaintype == GAIN_DCMOTOR and not (actuator.states & CURRENT)
    x = 0.0
    if is_voltage_driven:
        x = voltage(m, d, i)
    elif actuator.actnum > 0:
        x = early_activation(m, d, i, actuator.actadr + actuator.actnum - 1)
    elif actuator.ctrlnum > 0:
        x = d.actuator_input[actuator.ctrladr]
    return x


@kernel
def gain_law(m, i, length, velocity):
    """Returns the gain of actuator i if it is fixed, affine or that of a muscle."""
    actuator = m.actuator[i]
    gain = actuator.gainprm[0]
    if actuator.gaintype == GAIN_AFFINE:
        gain = _affine(actuator.gainprm, length, velocity)
    elif actuator.gaintype == GAIN_MUSCLE:
        gain = muscle_gain(m, actuator.outadr, Muscle(actuator.gainprm), length, velocity)
    return gain


@kernel
def bias_law(m, i, length, velocity):
    """Returns the bias of actuator i if it is affine or that of a muscle."""
    actuator = m.actuator[i]
    if actuator.biastype == BIAS_AFFINE:
        bias = _affine(actuator.biasprm, length, velocity)
    else:
        bias = muscle_bias(m, actuator.outadr, Muscle(actuator.biasprm), length)
    return bias


@kernel
def present_gain(m, d, i):
    """Returns the gain of actuator i, which has one output, in the present state."""
    o, kind = m.actuator_outadr[i], m.actuator_gaintype[i]
    if kind == GAIN_DCMOTOR:
        gain = motor_gain(m, d, i)
    elif kind == GAIN_USER:
        gain = call_user_term(m, d, i, GAIN, default=1.0)
    else:
        gain = gain_law(m, i, d.actuator_length[o], d.actuator_velocity[o])
    return gain


@kernel
def _setpoint_force(m, d, i):
    """Returns kp q_ref + kd v_ref + f + ki z of a pid; the affine bias adds -kp l - kd l'.

    So kp and kd are minus the slopes of the bias, and gainprm[0] is ki.
    """
    actuator = m.actuator[i]
    bias = Affine(actuator.biasprm)
    position, velocity, force, _ = inputs(m, d, i)
    position = nearest_setpoint(m, d, i, position, d.actuator_length[actuator.outadr])
    force = fma(-bias.by_velocity, velocity, fma(-bias.by_length, position, force))
    if actuator.states & INTEGRAL:
        z = early_activation(m, d, i, actuator.actadr + actuator.actnum - 1)
        force = fma(actuator.gainprm[0], z, force)
    return force


@kernel
def gain_force(m, d, i):
    """Returns the force gain x + bias of actuator i, which has one output, before any limit; x: `driving_value`."""
    actuator = m.actuator[i]
    bias, o = actuator.biastype, actuator.outadr
    gain = 0.0
    length, velocity = d.actuator_length[o], d.actuator_velocity[o]
    if actuator.gaintype == GAIN_PID:
        force = _setpoint_force(m, d, i)
    else:
        gain = present_gain(m, d, i)
        force = gain * nearest_setpoint(m, d, i, driving_value(m, d, i), length)
    if bias in (BIAS_AFFINE, BIAS_MUSCLE):
        force = force + bias_law(m, i, length, velocity)
    elif bias == BIAS_DCMOTOR:
        force = force + motor_bias(m, d, i, gain)
    elif bias == BIAS_USER:
        force = force + call_user_term(m, d, i, BIAS, default=0.0)
    return force


@kernel
def simple_force(m, d, i):
    """Returns the force of actuator i with `actuator_simple`, bitwise as `gain_force`, without tests for other types.

    Such an actuator has a fixed or affine gain, no or an affine bias, and is driven by one control.
    """
    actuator = m.actuator[i]
    o = actuator.outadr
    length, velocity = d.actuator_length[o], d.actuator_velocity[o]
    gain = actuator.gainprm[0]
    if actuator.gaintype == GAIN_AFFINE:
        gain = _affine(actuator.gainprm, length, velocity)
    force = gain * d.actuator_input[actuator.ctrladr]
    if actuator.biastype == BIAS_AFFINE:
        force = force + _affine(actuator.biasprm, length, velocity)
    return force
