"""Computes the histories of delayed controls and sensors after a reset: zeros, at the times of the preceding steps."""

from __future__ import annotations

import numpy as np


def empty_history(model, timestep=None, interval=None) -> np.ndarray:
    """Returns `history` after a reset.

    Args:
        model: the model.
        timestep: (n,) time step of each world [s]; None: the model's, for one world.
        interval: (n, nsensor, 2) or (1, nsensor, 2) period and phase of sensors [s]; None: the model's.

    Returns:
        (n, nhistory): per history user, cursor, times, samples, in the format of `dynamics/actuator/history.py`.

    Source: MuJoCo mj_resetData.
    """
    h = np.atleast_1d(model.opt_timestep if timestep is None else timestep)
    interval = np.broadcast_to(model.sensor_interval if interval is None else interval, (len(h), model.nsensor, 2))
    out = np.zeros((len(h), model.nhistory))
    for (n, _), a in zip(model.actuator_history, model.actuator_historyadr, strict=True):
        if n > 0:  # MuJoCo treats a negative number as none
            out[:, a + 1] = n - 1
            out[:, a + 2 : a + 2 + n] = _steps(n, h)
    for i, ((n, _), a) in enumerate(zip(model.sensor_history, model.sensor_historyadr, strict=True)):
        if n > 0:  # MuJoCo treats a negative number as none
            period, phase = interval[:, i].T
            last = np.where(period > 0, np.where(phase == 0, -period, phase), -h)
            ticks = last[:, None] - (n - 1 - np.arange(n)) * period[:, None]
            times = np.where(period[:, None] > 0, np.ceil(ticks / h[:, None]) * h[:, None], _steps(n, h))
            out[:, a], out[:, a + 1], out[:, a + 2 : a + 2 + n] = last, n - 1, times
    return out


def _steps(n: int, h: np.ndarray) -> np.ndarray:
    """Returns the times of the n steps before time 0, (len(h), n)."""
    return (np.arange(n) - n) * h[:, None]
