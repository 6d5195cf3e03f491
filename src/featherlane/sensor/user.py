"""Sensors of the user whose functions are compiled."""

from featherlane.prelude import *


@kernel
def user_sensor(m, d, i):
    """sensor_now <- the values of sensor i, if it has a compiled function.   Source: MuJoCo mjcb_sensor."""
    function = d.user_sensor[i]
    if function != 0:
        call(function, m, d, i)
