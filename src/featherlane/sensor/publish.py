"""From the values of a moment to what a sensor shows: cutoff, period and delay."""

from __future__ import annotations

from featherlane.lanes import clip, fmin, kernel, stage, where

from .kinds import CONTACT, GEOMFROMTO, POSITIVE, REAL


@kernel
def cut_off(m, d, i):
    """Values of sensor i within its cutoff, on both sides or above; of a contact or a segment as they are."""
    kind, datatype, cutoff = m.sensor_type[i], m.sensor_datatype[i], m.sensor_cutoff[i]
    if kind not in (CONTACT, GEOMFROMTO) and datatype in (REAL, POSITIVE):
        for a in range(m.sensor_adr[i], m.sensor_adr[i] + m.sensor_dim[i]):
            x = d.sensor_now[a]
            cut = fmin(x, cutoff)
            if datatype == REAL:
                cut = clip(x, -cutoff, cutoff)
            d.sensor_now[a] = where(cutoff > 0.0, cut, x)


@stage
def publish(m, d):
    """sensordata <- the values of this moment, cut off.

    Source: MuJoCo's documentation, XML reference, sensor; modeling, Sensors and Delays.
    Reads:  sensor_now (nsensordata,).   Writes: sensor_now, sensordata (nsensordata,).
    """
    for i in range(m.nsensor):
        cut_off(m, d, i)
    for a in range(m.nsensordata):
        d.sensordata[a] = d.sensor_now[a]
