"""Stores histories: the last n samples of a control or of a sensor, for interpolation at an earlier time.

A history with n samples of dim values is stored in `history` in MuJoCo's layout:

    user (1), cursor (1), times (n), samples (n, dim)

Samples form a ring buffer in order of time; the cursor is the index of the newest.  The user value is the time of
the last tick of a sensor that has a period.  Each world has a separate cursor.
Source: MuJoCo 4, "delays" of actuators and sensors; mju_historyInsert, mju_historyRead, mj_resetData.
"""

from featherlane.prelude import *

CURSOR, TIMES = 1, 2  # offsets of the cursor and of the first time
SAME_TIME = 1e-15  # times closer than this are equal [s]


@kernel
def _slot(x, n):
    """Returns a whole number x >= 0 as an index of the ring buffer; valid for any x."""
    return clip(x - n * floor(x / n), 0.0, n - 1.0)


@kernel
def _place(d, a, n, k):
    """Returns the index of sample k, counted from the oldest."""
    return _slot(_slot(d.history[a + CURSOR], n) + 1.0 + k, n)


@kernel
def _time(d, a, n, k):
    """Returns the time of sample k, counted from the oldest."""
    return gather_rows(d.history, _place(d, a, n, k) + 1.0 * (a + TIMES))


@kernel
def _find(d, a, n, t):
    """Returns index i of the sample with time[i - 1] < t <= time[i]: 0 before the oldest, n after the newest."""
    low, high = 0.0, n - 1.0
    steps = n
    while steps > 1:
        middle = floor(0.5 * (low + high))
        halves = high - low > 1.0
        later = halves & (_time(d, a, n, middle) < t)
        low, high = where(later, middle, low), where(later, high, where(halves, middle, high))
        steps = (steps + 1) // 2
    i = where(t > _time(d, a, n, n - 1.0), 1.0 * n, high)
    return where(t <= _time(d, a, n, 0.0), 0.0, i)


@kernel
def _drop_oldest(d, a, n, dim, i, mask):
    """Moves samples 1 to i - 1 one index towards the oldest, which is discarded, in worlds of the mask."""
    start = _slot(d.history[a + CURSOR], n) + 1.0
    first, values = d.history[a + TIMES], a + TIMES + n
    for k in range(n):
        moves = mask & (_slot(k - start + n, n) < i - 1.0)
        time = d.history[a + TIMES + k + 1] if k + 1 < n else first
        d.history[a + TIMES + k] = where(moves, time, d.history[a + TIMES + k])
    for c in range(dim):
        first = d.history[values + c]
        for k in range(n):
            moves = mask & (_slot(k - start + n, n) < i - 1.0)
            x = d.history[values + dim * (k + 1) + c] if k + 1 < n else first
            d.history[values + dim * k + c] = where(moves, x, d.history[values + dim * k + c])


@kernel
def insert(d, a, n, dim, t, x, first, mask):
    """Inserts the dim values x[first], ... as the sample at time t in worlds of the mask; discards the oldest sample.

    A sample with the same time is replaced.  A sample older than all others replaces the oldest.
    Source: MuJoCo mju_historyInsert.
    Reads:  x.   Writes: the history of n samples at address a.   Cost: O(n dim).
    """
    i = _find(d, a, n, t)
    inside = (i > 0.0) & (i < n)
    same = (i < n) & (fabs(t - _time(d, a, n, clip(i, 0.0, n - 1.0))) < SAME_TIME)
    between = mask & inside & not_(same)
    if any_(between):
        _drop_oldest(d, a, n, dim, i, between)
    place = _place(d, a, n, where(same, i, where(inside, i - 1.0, 0.0)))
    d.history[a + CURSOR] = where(mask & (i >= n), place, d.history[a + CURSOR])
    for k in range(n):
        here = mask & (place == k)
        d.history[a + TIMES + k] = where(here & not_(same), t, d.history[a + TIMES + k])
        for c in range(dim):
            e = a + TIMES + n + dim * k + c
            d.history[e] = where(here, x[first + c], d.history[e])


@kernel
def bracket(d, a, n, t):
    """Returns (i, mask) for the value at time t: between samples i - 1 and i, or sample i alone where the mask is set.

    Before the oldest and after the newest sample, the value is constant.
    """
    oldest, newest = _time(d, a, n, 0.0), _time(d, a, n, n - 1.0)
    i = clip(_find(d, a, n, t), 0.0, n - 1.0)
    exact = fabs(t - _time(d, a, n, i)) < SAME_TIME
    before, after = t <= oldest + SAME_TIME, t >= newest - SAME_TIME
    i = where(before, 0.0, where(after, n - 1.0, i))
    return i, before | after | exact


@kernel
def _value(d, a, n, dim, c, k):
    """Returns component c of sample k; k is clamped to the history."""
    return gather_rows(d.history, dim * _place(d, a, n, clip(k, 0.0, n - 1.0)) + 1.0 * (a + TIMES + n + c))


@kernel
def _slope(d, a, n, dim, c, k):
    """Returns the slope at sample k, from its neighbours; 0 at both ends."""
    before, after = clip(k - 1.0, 0.0, n - 1.0), clip(k + 1.0, 0.0, n - 1.0)
    span = _time(d, a, n, after) - _time(d, a, n, before)
    rise = _value(d, a, n, dim, c, after) - _value(d, a, n, dim, c, before)
    inside = (k > 0.0) & (k < n - 1.0)
    return where(inside, rise / where(span == 0.0, 1.0, span), 0.0)


@kernel
def interpolate(d, a, n, dim, c, t, at, order):
    """Returns component c of the value at time t, with at = `bracket`: zero-order hold, linear, or cubic spline.

    The spline has the slopes of Catmull and Rom, (x[k + 1] - x[k - 1]) / (t[k + 1] - t[k - 1]).
    Source: MuJoCo mju_historyRead.
    """
    i, alone = at
    high = _value(d, a, n, dim, c, i)
    low = _value(d, a, n, dim, c, i - 1.0)
    value = low
    if order != INTERP_ZOH:
        start = _time(d, a, n, clip(i - 1.0, 0.0, n - 1.0))
        span = _time(d, a, n, i) - start
        s = (t - start) / where(span == 0.0, 1.0, span)
        if order == INTERP_LINEAR:
            value = low + s * (high - low)
        else:
            s2 = s * s
            s3 = s2 * s
            first = span * _slope(d, a, n, dim, c, i - 1.0)
            last = span * _slope(d, a, n, dim, c, i)
            value = (2.0 * s3 - 3.0 * s2 + 1.0) * low + (s3 - 2.0 * s2 + s) * first
            value = value + (3.0 * s2 - 2.0 * s3) * high + (s3 - s2) * last
    return where(alone, high, value)


# ---- histories after a reset ---------------------------------------------------------------------------
@kernel
def _set_number(d, e, x, mask):
    """history[e] <- x in worlds of the mask."""
    d.history[e] = where(mask, x, d.history[e])


@kernel
def _reset(d, a, n, dim, user, mask):
    """Sets the samples to zero, the oldest first, and the user value to `user`."""
    _set_number(d, a, user, mask)
    _set_number(d, a + CURSOR, n - 1.0, mask)
    for e in range(a + TIMES + n, a + TIMES + n + n * dim):
        _set_number(d, e, 0.0, mask)


@kernel
def _reset_control(m, d, i, a, n, mask):
    """Resets the samples of the controls of actuator i: one per step before time 0."""
    _reset(d, a, n, m.actuator_ctrlnum[i], 0.0, mask)
    for k in range(n):
        _set_number(d, a + TIMES + k, (k - n) * m.opt_timestep[0], mask)


@kernel
def _reset_sensor(m, d, i, a, n, mask):
    """Resets the samples of sensor i: one per step before time 0, or one per period, at the first step from it on."""
    h, period, phase = m.opt_timestep[0], m.sensor_interval[i, 0], m.sensor_interval[i, 1]
    ticks = period > 0.0
    last = where(ticks, where(phase == 0.0, -period, phase), -h)
    _reset(d, a, n, m.sensor_dim[i], last, mask)
    for k in range(n):
        tick = last - (n - 1 - k) * period
        rounded_up = -(floor(-(tick / h)) * h)
        _set_number(d, a + TIMES + k, where(ticks, rounded_up, (k - n) * h), mask)


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
        always = true_mask(d)
        for i in range(m.nactuator):
            actuator = m.actuator[i]
            n = actuator.history[0]
            if n > 0:
                first = actuator.ctrladr
                insert(d, actuator.historyadr, n, actuator.ctrlnum, d.time[0], d.ctrl, first, always)
