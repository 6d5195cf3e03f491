"""Publishes current sensor values to sensordata: cutoff, period and delay.

The history of sensor i holds its last history[0] samples, from historyadr on in the field `history`.  A sensor with a
period is sampled at ticks, one period apart; the first value of its history is the time of its last tick.

Imported kernels, for a history of n samples at address a:

    find_bracket(d, a, n, t)                                the samples before and after time t
    interpolate(d, a, n, dim, c, t, bracket, order)         component c of dim at time t, by the order of interpolation
    insert_sample(d, a, n, dim, t, x, first, mask)          stores x[first], ... as the sample at time t
    ignores_cutoff(kind)                                    whether the values of a sensor type are not clamped
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.history import find_bracket, insert_sample, interpolate
from featherlane.engine.model.sensor import ignores_cutoff


@kernel
def cut_off(m, d, i):
    """Clamps the values of sensor i to its cutoff if that is positive.

    Values of the data type REAL are clamped to [-cutoff, cutoff], those of POSITIVE to at most the cutoff.  Others, and
    those of sensors that ignore the cutoff, are unchanged.
    """
    sensor = m.sensor[i]
    kind, datatype, cutoff = sensor.type, sensor.datatype, sensor.cutoff
    if not ignores_cutoff(kind) and datatype in (DATATYPE_REAL, DATATYPE_POSITIVE):
        for a in range(sensor.adr, sensor.adr + sensor.dim):
            x = d.sensor_now[a]
            cut = fmin(x, cutoff)
            if datatype == DATATYPE_REAL:
                cut = clip(x, -cutoff, cutoff)
            d.sensor_now[a] = where(cutoff > 0.0, cut, x)


@kernel
def _is_due(m, d, i):
    """Returns the mask of worlds where sensor i is sampled: a period has passed since its last tick, or it has none."""
    period, last_tick = m.sensor_interval[i, 0], d.history[m.sensor_historyadr[i]]
    return not_(period > 0.0) | (last_tick + period <= d.time[0])


@kernel
def _publish_history(m, d, i):
    """sensordata of sensor i <- its current values; those of its history in worlds with a delay or between samples."""
    sensor = m.sensor[i]
    adr = sensor.adr
    nsample = sensor.history[0]  # history[1]: order of the interpolation
    history, dim = sensor.historyadr, sensor.dim
    delay = sensor.delay
    # a delayed value; between two ticks, that of the last sample
    reads_history = (delay > 0.0) | not_(_is_due(m, d, i))
    t = d.time[0] - delay
    # the samples before and after time t
    around = find_bracket(d, history, nsample, t)
    for c in range(dim):
        past = interpolate(d, history, nsample, dim, c, t, bracket=around, order=sensor.history[1])
        d.sensordata[adr + c] = where(reads_history, past, d.sensor_now[adr + c])


@stage
def publish(m, d):
    """Writes sensordata from the current values after the cutoff, or from an earlier sample.

    Source: MuJoCo's documentation, XML reference, sensor; modeling, Sensors and Delays.
    Reads:  sensor_now (nsensordata,), history, time.   Writes: sensor_now, sensordata (nsensordata,).
    """
    for i in range(m.nsensor):
        sensor = m.sensor[i]
        cut_off(m, d, i)
        if sensor.history[0] > 0:
            _publish_history(m, d, i)
        else:
            for a in range(sensor.adr, sensor.adr + sensor.dim):
                d.sensordata[a] = d.sensor_now[a]


@stage
def sample_sensors(m, d):
    """Stores the current values as samples in the histories of sensors, one per step or per period.

    Source: MuJoCo mj_advance.  Deviation: nothing is sampled if the flag `sensor` disables sensors.
    Reads:  sensor_now, time.   Writes: history.
    """
    for i in range(m.nsensor):
        sensor = m.sensor[i]
        nsample, history = sensor.history[0], sensor.historyadr
        # user sensors that are Python functions are written after the step, outside of kernels
        if nsample > 0 and (sensor.type != SENS_USER or d.user_sensor[i] != 0):
            due = _is_due(m, d, i)
            # the time of this tick: one period after the last one
            d.history[history] = where(due, d.history[history] + sensor.interval[0], d.history[history])
            insert_sample(d, history, nsample, sensor.dim, d.time[0], d.sensor_now, sensor.adr, due)
