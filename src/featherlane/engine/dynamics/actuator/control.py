"""Computes the effective controls: delayed, clamped to their ranges, and all 0 in a world with an invalid control.

actuator_input has the same addresses as ctrl: ctrlnum controls of an actuator from its ctrladr on.
An actuator with a history stores samples of past controls from historyadr on; history[0] is their number, history[1]
the order of the interpolation.  `find_bracket` returns the samples around a time, and `interpolate` the value there.
i is the index of an actuator.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.history import find_bracket, interpolate

MAXVAL = 1e10  # limit of valid controls


@kernel
def is_disabled(m, i):
    """Returns whether the group of actuator i is disabled; groups beyond 30 cannot be disabled (MuJoCo's 31 bits)."""
    group = m.actuator_group[i]
    return group >= 0 and group <= 30 and ((m.opt_disableactuator >> group) & 1) == 1


@kernel
def _store_delayed_controls(m, d, i):
    """actuator_input <- the controls of an actuator with a history, delayed by its delay [s]."""
    actuator = m.actuator[i]
    # the history starts at address a and has n samples of ncontrol values
    a, n = actuator.historyadr, actuator.history[0]
    first, ncontrol = actuator.ctrladr, actuator.ctrlnum
    delay = actuator.delay
    t = d.time[0] - delay
    bracket = find_bracket(d, a, n, t)
    for c in range(ncontrol):
        delayed = interpolate(d, a, n, dim=ncontrol, c=c, t=t, bracket=bracket, order=actuator.history[1])
        d.actuator_input[first + c] = where(delay == 0.0, d.ctrl[first + c], delayed)


@kernel
def _store_controls(m, d):
    """actuator_input <- the controls; those of actuators with a history are delayed."""
    for u in range(m.nu):
        d.actuator_input[u] = d.ctrl[u]
    for i in range(m.nactuator):
        if m.actuator_history[i, 0] > 0:
            _store_delayed_controls(m, d, i)


@kernel
def limit_controls(m, d):
    """actuator_input <- the effective controls; badctrl <- 1 and all controls <- 0 if one is NaN or beyond MAXVAL.

    Source: MuJoCo mj_fwdActuation, mj_readCtrl.  Deviation: the stages of one step count as one warning.
    Reads:  ctrl, history, time.   Writes: actuator_input (nu,), badctrl (1,), warning (bad control).
    """
    delayed = m.nhistory > 0
    if delayed:
        _store_controls(m, d)  # writes actuator_input
    bad = 0.0
    for u in range(m.nu):
        x = d.actuator_input[u] if delayed else d.ctrl[u]
        if m.actuator_ctrllimited[u] and not (m.opt_disableflags & DISABLE_CLAMPCTRL):
            low, high = m.actuator_ctrlrange[u].lower, m.actuator_ctrlrange[u].upper
            x = where(x == x, clip(x, low, high), x)  # NaN stays NaN
        d.actuator_input[u] = x
        bad = where(fabs(x) <= MAXVAL, bad, 1.0)  # the comparison is false for NaN
    if any_(bad > 0.0):
        for u in range(m.nu):
            d.actuator_input[u] = where(bad > 0.0, 0.0, d.actuator_input[u])
    d.badctrl[0] = bad
    # in_stage is not 0 in the later passes of a step (several accelerations): their warnings are not counted
    if d.in_stage[0] == 0:
        d.warning[BAD_CONTROL] = d.warning[BAD_CONTROL] + bad


@kernel
def inputs(m, d, i):
    """Returns (position, velocity, feedforward, voltage): the controls of actuator i by its ctrlspec, 0 if absent.

    Bits 0 to 3 of ctrlspec select the present ones (INPUT_POS, INPUT_VEL, INPUT_FF, INPUT_VOLTAGE); these are stored
    one after the other from ctrladr on.
    """
    spec, position_adr = m.actuator_ctrlspec[i], m.actuator_ctrladr[i]
    # each address in actuator_input follows the previous one if that control is present
    velocity_adr = position_adr + (spec & 1)
    feedforward_adr = velocity_adr + ((spec >> 1) & 1)
    voltage_adr = feedforward_adr + ((spec >> 2) & 1)
    return (
        d.actuator_input[position_adr] if spec & 1 else 0.0,
        d.actuator_input[velocity_adr] if (spec >> 1) & 1 else 0.0,
        d.actuator_input[feedforward_adr] if (spec >> 2) & 1 else 0.0,
        d.actuator_input[voltage_adr] if (spec >> 3) & 1 else 0.0,
    )
