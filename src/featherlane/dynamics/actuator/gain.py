"""Computes forces of actuators with one output: gain times the driving value, plus bias.

gain    fixed, affine in length and velocity, muscle, dcmotor, user callback
bias    none, affine, muscle, dcmotor, user callback
pid     kp (q_ref - l) + kd (v_ref - l') + f + ki z, kp and kd in the affine bias
Source: MuJoCo, chapter Computation, actuation model; mj_fwdActuation.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.activation import early_activation
from featherlane.dynamics.actuator.control import inputs
from featherlane.dynamics.actuator.dcmotor import motor_bias, motor_gain, voltage
from featherlane.dynamics.actuator.muscle import muscle_bias, muscle_gain
from featherlane.dynamics.actuator.parameters import Affine, Muscle
from featherlane.dynamics.actuator.setpoint import nearest_setpoint
from featherlane.dynamics.actuator.user import user_bias, user_gain


@kernel
def _affine(prm, length, rate):
    """Returns an affine function of length and rate, with the parameters of a row."""
    f = Affine(prm)
    return fma(f.by_velocity, rate, fma(f.by_length, length, f.constant))


@kernel
def driver(m, d, i):
    """Returns the gain's factor: the control, the voltage of a motor without inductance, or the last activation."""
    at_once = m.actuator_gaintype[i] == GAIN_DCMOTOR and not (m.actuator_states[i] & CURRENT)
    x = 0.0
    if at_once:
        x = voltage(m, d, i)
    elif m.actuator_actnum[i] > 0:
        x = early_activation(m, d, i, m.actuator_actadr[i] + m.actuator_actnum[i] - 1)
    elif m.actuator_ctrlnum[i] > 0:
        x = d.actuator_input[m.actuator_ctrladr[i]]
    return x


@kernel
def _gain(m, d, i, length, rate):
    """Returns the gain of actuator i."""
    kind, o = m.actuator_gaintype[i], m.actuator_outadr[i]
    gain = m.actuator_gainprm[i][0]
    if kind == GAIN_AFFINE:
        gain = _affine(m.actuator_gainprm[i], length, rate)
    elif kind == GAIN_MUSCLE:
        gain = muscle_gain(m, d, o, Muscle(m.actuator_gainprm[i]))
    elif kind == GAIN_DCMOTOR:
        gain = motor_gain(m, d, i)
    elif kind == GAIN_USER:
        gain = user_gain(m, d, i)
    return gain


@kernel
def present_gain(m, d, i):
    """Returns the gain of actuator i, which has one output, at its length and velocity."""
    o = m.actuator_outadr[i]
    return _gain(m, d, i, d.actuator_length[o], d.actuator_velocity[o])


@kernel
def _setpoint_force(m, d, i):
    """Returns the force of setpoints and integral of a pid; the affine bias subtracts the length and velocity terms."""
    bias = Affine(m.actuator_biasprm[i])
    position, velocity, force, _ = inputs(m, d, i)
    position = nearest_setpoint(m, d, i, position, d.actuator_length[m.actuator_outadr[i]])
    force = fma(-bias.by_velocity, velocity, fma(-bias.by_length, position, force))
    if m.actuator_states[i] & INTEGRAL:
        z = early_activation(m, d, i, m.actuator_actadr[i] + m.actuator_actnum[i] - 1)
        force = fma(m.actuator_gainprm[i][0], z, force)
    return force


@kernel
def gain_force(m, d, i):
    """Returns the force of actuator i, which has one output, before any limit."""
    kind, bias, o = m.actuator_gaintype[i], m.actuator_biastype[i], m.actuator_outadr[i]
    length, rate = d.actuator_length[o], d.actuator_velocity[o]
    gain = 0.0
    if kind == GAIN_PID:
        f = _setpoint_force(m, d, i)
    else:
        gain = _gain(m, d, i, length, rate)
        f = gain * nearest_setpoint(m, d, i, driver(m, d, i), length)
    if bias == BIAS_AFFINE:
        f = f + _affine(m.actuator_biasprm[i], length, rate)
    elif bias == BIAS_MUSCLE:
        f = f + muscle_bias(m, d, o, Muscle(m.actuator_biasprm[i]))
    elif bias == BIAS_DCMOTOR:
        f = f + motor_bias(m, d, i, gain)
    elif bias == BIAS_USER:
        f = f + user_bias(m, d, i)
    return f


@kernel
def simple_force(m, d, i):
    """Returns the bitwise identical force for an actuator in `actuator_simple`, without tests for other types."""
    o = m.actuator_outadr[i]
    length, rate = d.actuator_length[o], d.actuator_velocity[o]
    gain = m.actuator_gainprm[i][0]
    if m.actuator_gaintype[i] == GAIN_AFFINE:
        gain = _affine(m.actuator_gainprm[i], length, rate)
    f = gain * d.actuator_input[m.actuator_ctrladr[i]]
    if m.actuator_biastype[i] == BIAS_AFFINE:
        f = f + _affine(m.actuator_biasprm[i], length, rate)
    return f
