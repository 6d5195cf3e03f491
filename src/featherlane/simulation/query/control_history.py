"""Reads and initializes histories of controls: the input of a delayed actuator, also before the start of a run.

Source: MuJoCo mj_readCtrl, mj_initCtrlHistory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherlane.dynamics.actuator.history import SAME_TIME, TIMES
from featherlane.errors import ModelError
from featherlane.model.arguments import one_of
from featherlane.model.assignment import real_number, reals
from featherlane.model.enums import INTERP_CUBIC, INTERP_LINEAR, INTERP_ZOH
from featherlane.model.model import Model
from featherlane.model.names import find_object
from featherlane.simulation.world.data import Data, ready

ORDERS = {"zoh": INTERP_ZOH, "linear": INTERP_LINEAR, "cubic": INTERP_CUBIC}


def read_ctrl(model: Model, data: Data, actuator: str | int, time: float | None = None, interp: str = "") -> np.ndarray:
    """Returns the controls in effect of an actuator: those of one delay before `time`, not clamped.

    Args:
        model: the model.
        data: the world.
        actuator: name or number.
        time: seconds; None for `data.time`.
        interp: `zoh`, `linear` or `cubic`, the interpolation between two samples; "" for the model's setting.

    Returns:
        (ctrlnum,) a copy [1, or the unit of the control]; of an actuator without a history its present controls.

    Raises:
        UnknownNameError: an unknown actuator.
        ModelError: an unknown `interp`; the model's sizes are not the data's.

    Source: MuJoCo mj_readCtrl.
    """
    world, i = ready(model, data), find_object(model, "actuator", actuator).id
    if interp != "":
        one_of("interp", interp, ORDERS)
    first, dim = int(model.actuator_ctrladr[i]), int(model.actuator_ctrlnum[i])
    n, order = model.actuator_history[i]
    if n <= 0:
        return world.ctrl[first : first + dim].copy()
    times, samples = _samples(model, world, i)
    t = (world.time if time is None else real_number("time", time)) - model.actuator_delay[i]
    return _interpolated(times, samples, t, ORDERS[interp] if interp else int(order))


def init_ctrl_history(
    model: Model, data: Data, actuator: str | int, values: ArrayLike, times: ArrayLike | None = None
) -> None:
    """Fills the history of an actuator's controls.

    Args:
        model: the model.
        data: the world.
        actuator: name or number.
        values: (nsample, ctrlnum), or (nsample,) of one control: samples, the oldest first.
        times: (nsample,) their times [s], ascending; None: those that the history has.

    Raises:
        UnknownNameError: an unknown actuator.
        ModelError: the actuator has no history; invalid shapes; times that do not ascend.

    Source: MuJoCo mj_initCtrlHistory.
    """
    world, view = ready(model, data), find_object(model, "actuator", actuator)
    i, label = view.id, view.name or f"#{view.id}"
    n, dim, a = int(model.actuator_history[i, 0]), int(model.actuator_ctrlnum[i]), int(model.actuator_historyadr[i])
    if n <= 0:
        raise ModelError(f"actuator {label}: it has no history; set its attribute nsample in the model")
    samples = _fitting(values, (n, dim), f"actuator {label}: values")
    when = _samples(model, world, i)[0] if times is None else _fitting(times, (n, 1), f"actuator {label}: times")[:, 0]
    if (np.diff(when) < SAME_TIME).any():
        raise ModelError(f"actuator {label}: got times that do not ascend, {when}")
    world.history[a + 1] = n - 1
    world.history[a + TIMES : a + TIMES + n] = when
    world.history[a + TIMES + n : a + TIMES + n * (1 + dim)] = samples.ravel()


def _fitting(values: ArrayLike, shape: tuple[int, int], what: str) -> np.ndarray:
    """Returns an array of that shape, which may be given as (n,) if the second size is 1."""
    array = reals(what, values, f"are numbers {shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"{what}: got a non-finite number")
    if array.shape != shape and array.shape != shape[: 2 - (shape[1] == 1)]:
        raise ModelError(f"{what}: got shape {array.shape}, allowed is {shape}")
    return array.reshape(shape)


def _samples(model: Model, world: Data, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns times (n,) and samples (n, dim) of an actuator, the oldest first."""
    n, dim, a = int(model.actuator_history[i, 0]), int(model.actuator_ctrlnum[i]), int(model.actuator_historyadr[i])
    turned = -(int(world.history[a + 1]) + 1)
    times = world.history[a + TIMES : a + TIMES + n]
    samples = world.history[a + TIMES + n : a + TIMES + n * (1 + dim)].reshape(n, dim)
    return np.roll(times, turned), np.roll(samples, turned, 0)


def _interpolated(times: np.ndarray, samples: np.ndarray, t: float, order: int) -> np.ndarray:
    """Returns the samples interpolated at time t: see `dynamics/actuator/history.py`."""
    n = len(times)
    k = int(np.clip(np.searchsorted(times, t), 0, n - 1))
    if t <= times[0] + SAME_TIME or t >= times[-1] - SAME_TIME or abs(t - times[k]) < SAME_TIME:
        return samples[0 if t <= times[0] + SAME_TIME else k].copy()
    span = times[k] - times[k - 1]
    s = (t - times[k - 1]) / span
    if order == INTERP_ZOH:
        return samples[k - 1].copy()
    if order == INTERP_LINEAR:
        return samples[k - 1] + s * (samples[k] - samples[k - 1])
    slopes = np.zeros((2, samples.shape[1]))
    for end, j in enumerate((k - 1, k)):
        if 0 < j < n - 1:
            slopes[end] = (samples[j + 1] - samples[j - 1]) / (times[j + 1] - times[j - 1])
    low, high = (2 * s - 3) * s * s + 1, (3 - 2 * s) * s * s
    bent = ((s - 2) * s + 1) * s * slopes[0] + (s - 1) * s * s * slopes[1]
    return low * samples[k - 1] + high * samples[k] + span * bent
