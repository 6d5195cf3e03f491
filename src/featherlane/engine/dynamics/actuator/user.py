"""Calls user callbacks of actuators: activation, gain and bias.

Their addresses are stored in the tile's record, so the stages here are independent of the registered callbacks.  A
callback is self-contained: it reads records, and writes its result to a fixed field.
Source: MuJoCo mjcb_act_dyn, mjcb_act_gain, mjcb_act_bias; without a callback the rate is 0, the gain 1, the bias 0.
"""

from featherlane.engine.prelude import *

ACTIVATION, GAIN, BIAS = range(3)


@kernel
def call_user_term(m, d, i, which, default):
    """Returns the result of the callback `which` (GAIN or BIAS) for actuator i, or the default without a callback.

    The callback writes its result to user_term.
    """
    function = d.user_actuator[i, which]
    d.user_term[0] = default
    if function != 0:
        call(function, m, d, i)
    return d.user_term[0]
