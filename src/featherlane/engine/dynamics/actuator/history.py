"""Stores histories: the last n samples of a control or of a sensor, for interpolation at an earlier time.

A history with n samples of dim values is stored in `history` in MuJoCo's layout:

    user (1), cursor (1), times (n), samples (n, dim)

Samples form a ring buffer in order of time; the cursor is the index of the newest.  The user value is the time of
the last tick of a sensor that has a period.  Each world has a separate cursor.

In the kernels a is the start of the history in the field `history`, so that times[k] is history[a + TIMES + k], and
component c of samples[k] is history[a + TIMES + n + dim k + c].  The "index" of a sample is its index in the buffer,
"sample k" counts from the oldest.  Indices and k are values, since they differ between worlds.
Source: MuJoCo 4, "delays" of actuators and sensors; mju_historyInsert, mju_historyRead, mj_resetData.
"""

from featherlane.engine.prelude import *

CURSOR, TIMES = 1, 2  # offsets of the cursor and of the first time
SAME_TIME = 1e-15  # times closer than this are equal [s]


@kernel
def _wrapped(x, n):
    """Returns the whole number x modulo n, an index of the ring buffer; clipped, so it is valid for any x >= 0."""
    return clip(x - n * floor(x / n), 0.0, n - 1.0)


@kernel
def _buffer_index(d, a, n, k):
    """Returns the index of sample k, counted from the oldest, which follows the newest in the ring buffer."""
    return _wrapped(_wrapped(d.history[a + CURSOR], n) + 1.0 + k, n)


@kernel
def _sample_time(d, a, n, k):
    """Returns the time of sample k, counted from the oldest."""
    return gather_rows(d.history, _buffer_index(d, a, n, k) + 1.0 * (a + TIMES))


@kernel
def _find_sample(d, a, n, t):
    """Returns i, a value, with time[i - 1] < t <= time[i]: 0 before the oldest sample, n after the newest.

    By bisection: time[low] < t <= time[high].  All worlds do the same number of steps.
    """
    low = 0.0
    high = n - 1.0
    remaining = n  # high - low is at most this in every world
    while remaining > 1:
        middle = floor(0.5 * (low + high))
        is_open = high - low > 1.0
        is_later = is_open & (_sample_time(d, a, n, middle) < t)
        # the half in which t lies; unchanged in worlds where high - low is 1 already
        low = where(is_later, middle, low)
        high = where(is_later, high, where(is_open, middle, high))
        remaining = (remaining + 1) // 2
    i = where(t > _sample_time(d, a, n, n - 1.0), 1.0 * n, high)
    return where(t <= _sample_time(d, a, n, k=0.0), 0.0, i)


@kernel
def _drop_oldest(d, a, n, dim, i, mask):
    """Discards the oldest sample, sample 0, in worlds of the mask: samples 1 to i - 1 become samples 0 to i - 2.

    Each sample moves to the index before its own.  So index k, if it holds one of the samples 0 to i - 2, takes the
    content of index k + 1; the last index takes that of index 0, since the buffer is a ring.
    """
    start = _wrapped(d.history[a + CURSOR], n) + 1.0  # index of the oldest
    first_time = d.history[a + TIMES]
    values = a + TIMES + n
    for k in range(n):
        sample = _wrapped(k - start + n, n)  # at index k
        moves = mask & (sample < i - 1.0)
        next_time = d.history[a + TIMES + k + 1] if k + 1 < n else first_time
        d.history[a + TIMES + k] = where(moves, next_time, d.history[a + TIMES + k])
    for c in range(dim):
        first_value = d.history[values + c]
        for k in range(n):
            sample = _wrapped(k - start + n, n)
            moves = mask & (sample < i - 1.0)
            next_value = d.history[values + dim * (k + 1) + c] if k + 1 < n else first_value
            d.history[values + dim * k + c] = where(moves, next_value, d.history[values + dim * k + c])


@kernel
def insert_sample(d, a, n, dim, t, x, first, mask):
    """Inserts the dim values x[first], ... as the sample at time t in worlds of the mask; the number n is constant.

    With i the first sample not before t:
    - t is the time of sample i: the values of sample i are replaced;
    - t is between samples i - 1 and i: samples 1 to i - 1 move to 0 to i - 2, and the new sample becomes sample i - 1;
    - t is before the oldest or after the newest sample: the new sample replaces the oldest one.
    Source: MuJoCo mju_historyInsert.
    Reads:  x.   Writes: the history of n samples at address a.   Cost: O(n dim).
    """
    i = _find_sample(d, a, n, t)
    is_inside = (i > 0.0) & (i < n)
    is_same = (i < n) & (fabs(t - _sample_time(d, a, n, clip(i, 0.0, n - 1.0))) < SAME_TIME)
    is_between = mask & is_inside & not_(is_same)
    if any_(is_between):
        _drop_oldest(d, a, n, dim, i, is_between)
    # before the oldest or after the newest sample, t replaces the oldest one, sample 0
    replaced = where(is_same, i, where(is_inside, i - 1.0, 0.0))
    index = _buffer_index(d, a, n, replaced)
    # after the newest sample: the cursor moves to the index of t, which is the newest now
    d.history[a + CURSOR] = where(mask & (i >= n), index, d.history[a + CURSOR])
    for k in range(n):
        here = mask & (index == k)
        d.history[a + TIMES + k] = where(here & not_(is_same), t, d.history[a + TIMES + k])
        for c in range(dim):
            e = a + TIMES + n + dim * k + c
            d.history[e] = where(here, x[first + c], d.history[e])


@kernel
def find_bracket(d, a, n, t):
    """Returns (i, mask) for the value at time t: between samples i - 1 and i, or sample i alone where the mask is set.

    Before the oldest and after the newest sample, the value is constant.
    """
    oldest = _sample_time(d, a, n, k=0.0)
    newest = _sample_time(d, a, n, k=n - 1.0)
    i = clip(_find_sample(d, a, n, t), 0.0, n - 1.0)
    is_exact = fabs(t - _sample_time(d, a, n, i)) < SAME_TIME
    is_before = t <= oldest + SAME_TIME
    is_after = t >= newest - SAME_TIME
    i = where(is_before, 0.0, where(is_after, n - 1.0, i))
    return i, is_before | is_after | is_exact


@kernel
def _sample_value(d, a, n, dim, c, k):
    """Returns component c of sample k; k is clamped to the history."""
    return gather_rows(d.history, dim * _buffer_index(d, a, n, clip(k, 0.0, n - 1.0)) + 1.0 * (a + TIMES + n + c))


@kernel
def _slope(d, a, n, dim, c, k):
    """Returns the slope of component c at sample k, (x[k + 1] - x[k - 1]) / (t[k + 1] - t[k - 1]); 0 at both ends."""
    before = clip(k - 1.0, 0.0, n - 1.0)
    after = clip(k + 1.0, 0.0, n - 1.0)
    span = _sample_time(d, a, n, after) - _sample_time(d, a, n, before)
    rise = _sample_value(d, a, n, dim, c, after) - _sample_value(d, a, n, dim, c, before)
    is_inside = (k > 0.0) & (k < n - 1.0)
    return where(is_inside, rise / where(span == 0.0, 1.0, span), 0.0)


@kernel
def interpolate(d, a, n, dim, c, t, bracket, order):
    """Returns component c of the value at time t: zero-order hold, linear, or cubic spline, by `order`.

    bracket: the result of `find_bracket`.
    The spline has the slopes of Catmull and Rom, (x[k + 1] - x[k - 1]) / (t[k + 1] - t[k - 1]).
    Source: MuJoCo mju_historyRead.
    """
    i, is_alone = bracket
    x1 = _sample_value(d, a, n, dim, c, i)
    x0 = _sample_value(d, a, n, dim, c, i - 1.0)
    value = x0  # zero-order hold: the earlier sample
    if order != INTERP_ZOH:
        start = _sample_time(d, a, n, clip(i - 1.0, 0.0, n - 1.0))
        span = _sample_time(d, a, n, i) - start
        s = (t - start) / where(span == 0.0, 1.0, span)
        if order == INTERP_LINEAR:
            value = x0 + s * (x1 - x0)
        else:
            # cubic Hermite polynomial, with the slopes by s
            s2 = s * s
            s3 = s2 * s
            slope0 = span * _slope(d, a, n, dim, c, i - 1.0)
            slope1 = span * _slope(d, a, n, dim, c, i)
            value = (2.0 * s3 - 3.0 * s2 + 1.0) * x0 + (s3 - 2.0 * s2 + s) * slope0
            value = value + (3.0 * s2 - 2.0 * s3) * x1 + (s3 - s2) * slope1
    return where(is_alone, x1, value)


# ---- histories after a reset ---------------------------------------------------------------------------
@kernel
def _set_number(d, e, x, mask):
    """history[e] <- x in worlds of the mask."""
    d.history[e] = where(mask, x, d.history[e])


@kernel
def _reset_samples(d, a, n, dim, user, mask):
    """Sets the samples to zero, the oldest at index 0, and the user value to `user`, in worlds of the mask."""
    _set_number(d, a, user, mask)
    _set_number(d, a + CURSOR, n - 1.0, mask)
    for e in range(a + TIMES + n, a + TIMES + n + n * dim):
        _set_number(d, e, 0.0, mask)


@kernel
def _reset_control(m, d, i, a, n, mask):
    """Resets the n samples of the controls of actuator i: one per step before time 0."""
    _reset_samples(d, a, n, m.actuator_ctrlnum[i], user=0.0, mask=mask)
    for k in range(n):
        _set_number(d, a + TIMES + k, (k - n) * m.opt_timestep[0], mask)


@kernel
def _reset_sensor(m, d, i, a, n, mask):
    """Resets the n samples of sensor i: one per step before time 0, or for a sensor with a period one per tick.

    Ticks are one period apart; the last one is at the phase, or if that is 0 one period before time 0.  The time of a
    sample is that of the first step at or after its tick.
    """
    h, period, phase = m.opt_timestep[0], m.sensor_interval[i, 0], m.sensor_interval[i, 1]
    has_period = period > 0.0
    last = where(has_period, where(phase == 0.0, -period, phase), -h)
    _reset_samples(d, a, n, m.sensor_dim[i], user=last, mask=mask)
    for k in range(n):
        tick = last - (n - 1 - k) * period
        step_time = -(floor(-(tick / h)) * h)  # ceil(tick / h) h
        _set_number(d, a + TIMES + k, where(has_period, step_time, (k - n) * h), mask)


@kernel
def reset_histories(m, d, mask):
    """Resets histories to zeros up to time 0, in worlds of the mask.

    Source: MuJoCo mj_resetData.
    Reads:  actuator_history, sensor_history, sensor_interval.   Writes: history.
    """
    if m.nhistory > 0:
        for i in range(m.nactuator):
            if m.actuator_history[i, 0] > 0:
                _reset_control(m, d, i, m.actuator_historyadr[i], m.actuator_history[i, 0], mask)
        for i in range(m.nsensor):
            if m.sensor_history[i, 0] > 0:
                _reset_sensor(m, d, i, m.sensor_historyadr[i], m.sensor_history[i, 0], mask)


# ---- controls --------------------------------------------------------------------------------------------------------
@kernel
def insert_controls(m, d):
    """Inserts the controls of this step as the newest samples of the actuators that have a history.

    Source: MuJoCo mj_advance.
    Reads:  ctrl, time.   Writes: history.
    """
    if m.nhistory > 0:
        all_worlds = true_mask(d)
        for i in range(m.nactuator):
            actuator = m.actuator[i]
            n = actuator.history[0]
            if n > 0:
                first = actuator.ctrladr
                insert_sample(d, actuator.historyadr, n, actuator.ctrlnum, d.time[0], d.ctrl, first, all_worlds)
