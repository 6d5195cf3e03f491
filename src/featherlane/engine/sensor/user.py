"""User sensors with compiled functions."""

from featherlane.engine.prelude import *


@kernel
def user_sensor(m, d, i):
    """Writes sensor i with its compiled function, if it has one.   Source: MuJoCo mjcb_sensor."""
    function = d.user_sensor[i]
    if function != 0:
        call(function, m, d, i)
