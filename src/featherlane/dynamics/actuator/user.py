"""Actuators of the user: calls of the functions that are registered for activation, gain and bias.

Their addresses stand in the tile's record, so the stages here are the same whoever registers what.  A function stands
alone: it reads records, and writes its result where these kernels look for it.
Source: MuJoCo mjcb_act_dyn, mjcb_act_gain, mjcb_act_bias; without a function the rate is 0, the gain 1, the bias 0.
"""

from featherlane.prelude import *

ACTIVATION, GAIN, BIAS = range(3)


@kernel
def user_rates(m, d, i):
    """act_dot <- the rates of the activations of actuator i."""
    function = d.user_actuator[3 * i + ACTIVATION]
    if function != 0:
        call(function, m, d, i)


@kernel
def _term(m, d, i, which, default):
    """What the function of that kind gives for actuator i."""
    function = d.user_actuator[3 * i + which]
    d.user_term[0] = real(d, default)
    if function != 0:
        call(function, m, d, i)
    return d.user_term[0]


@kernel
def user_gain(m, d, i):
    """The gain of actuator i."""
    return _term(m, d, i, GAIN, 1.0)


@kernel
def user_bias(m, d, i):
    """The bias of actuator i."""
    return _term(m, d, i, BIAS, 0.0)
