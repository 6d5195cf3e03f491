"""Computes the effective controls: delayed, clamped to their ranges, and all 0 in a world with an invalid control."""

from featherlane.prelude import *
from featherlane.dynamics.actuator.history import find_bracket, interpolate

MAXVAL = 1e10  # limit of valid controls


@kernel
def is_disabled(m, i):
    """Returns whether the actuator's group is disabled; groups beyond 30 cannot be disabled."""
    g = m.actuator_group[i]
    return g >= 0 and g <= 30 and ((m.opt_disableactuator >> g) & 1) == 1


@kernel
def _delay_controls(m, d, i):
    """actuator_input <- the controls of an actuator with a history, delayed by its delay."""
    actuator = m.actuator[i]
    a, n, first, dim = actuator.historyadr, actuator.history[0], actuator.ctrladr, actuator.ctrlnum
    delay = actuator.delay
    t = d.time[0] - delay
    at = find_bracket(d, a, n, t)
    for c in range(dim):
        x = interpolate(d, a, n, dim, c, t, at, actuator.history[1])
        d.actuator_input[first + c] = where(delay == 0.0, d.ctrl[first + c], x)


@kernel
def _take_delayed(m, d):
    """actuator_input <- the controls; those of actuators with a history are delayed."""
    for u in range(m.nu):
        d.actuator_input[u] = d.ctrl[u]
    for i in range(m.nactuator):
        if m.actuator_history[i, 0] > 0:
            _delay_controls(m, d, i)


@kernel
def _clamped(m, x, u):
    """Returns the value x of control u, clamped to its range; NaN stays NaN."""
    if m.actuator_ctrllimited[u] and not (m.opt_disableflags & DISABLE_CLAMPCTRL):
        x = where(x == x, clip(x, m.actuator_ctrlrange[u].lower, m.actuator_ctrlrange[u].upper), x)
    return x


@kernel
def limit_controls(m, d):
    """actuator_input <- the effective controls; badctrl <- 1 and all controls <- 0 if one is NaN or beyond MAXVAL.

    Source: MuJoCo mj_fwdActuation, mj_readCtrl.  Deviation: the stages of one step count as one warning.
    Reads:  ctrl, history, time.   Writes: actuator_input (nu,), badctrl (1,), warning (bad control).
    """
    delayed = m.nhistory > 0
    if delayed:
        _take_delayed(m, d)
    bad = 0.0
    for u in range(m.nu):
        x = _clamped(m, d.actuator_input[u] if delayed else d.ctrl[u], u)
        d.actuator_input[u] = x
        bad = where(fabs(x) <= MAXVAL, bad, 1.0)
    if any_(bad > 0.0):
        for u in range(m.nu):
            d.actuator_input[u] = where(bad > 0.0, 0.0, d.actuator_input[u])
    d.badctrl[0] = bad
    if d.in_stage[0] == 0:
        d.warning[BAD_CONTROL] = d.warning[BAD_CONTROL] + bad


@kernel
def inputs(m, d, i):
    """Returns (position, velocity, feedforward, voltage): the controls of actuator i by its ctrlspec, 0 if absent."""
    spec, u = m.actuator_ctrlspec[i], m.actuator_ctrladr[i]
    v = u + (spec & 1)
    f = v + ((spec >> 1) & 1)
    e = f + ((spec >> 2) & 1)
    return (
        d.actuator_input[u] if spec & 1 else 0.0,
        d.actuator_input[v] if (spec >> 1) & 1 else 0.0,
        d.actuator_input[f] if (spec >> 2) & 1 else 0.0,
        d.actuator_input[e] if (spec >> 3) & 1 else 0.0,
    )
