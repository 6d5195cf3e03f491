"""Reads and initializes histories: of a delayed actuator's controls, and of a delayed or periodic sensor's values.

Source: MuJoCo mj_readCtrl, mj_initCtrlHistory, mj_readSensor, mj_initSensorHistory.
"""

from __future__ import annotations

from typing import NamedTuple

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


class _History(NamedTuple):
    """Describes the history of an actuator or a sensor.

    Attributes:
        id: number of the element.
        label: its kind and name, for errors.
        n: samples; 0 without a history.
        order: interpolation.
        dim: values of a sample.
        first: address of the present values, in `ctrl` or `sensordata`.
        address: address in `data.history`.
        delay: of the element [s].
    """

    id: int
    label: str
    n: int
    order: int
    dim: int
    first: int
    address: int
    delay: float


def _history(model: Model, kind: str, element: str | int) -> _History:
    """Returns the history of an actuator or a sensor.

    Raises:
        UnknownNameError: an unknown element.
    """
    view = find_object(model, kind, element)
    i, (dim, first) = view.id, {"actuator": ("ctrlnum", "ctrladr"), "sensor": ("dim", "adr")}[kind]
    n, order = getattr(model, f"{kind}_history")[i]
    numbers = (int(getattr(model, f"{kind}_{name}")[i]) for name in (dim, first, "historyadr"))
    return _History(
        i, f"{kind} {view.name or f'#{i}'}", int(n), int(order), *numbers, getattr(model, f"{kind}_delay")[i]
    )


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
    world, history = ready(model, data), _history(model, "actuator", actuator)
    return _read(world, history, world.ctrl, time, interp)


def read_sensor(model: Model, data: Data, sensor: str | int, time: float | None = None, interp: str = "") -> np.ndarray:
    """Returns the values of a sensor: those of one delay before `time`.

    Args:
        model: the model.
        data: the world.
        sensor: name or number.
        time: seconds; None for `data.time`.
        interp: `zoh`, `linear` or `cubic`, the interpolation between two samples; "" for the model's setting.

    Returns:
        (dim,) a copy [1, or the unit of the sensor]; of a sensor without a history its values in `data.sensordata`.

    Raises:
        UnknownNameError: an unknown sensor.
        UnsupportedFeatureError: the sensor is not computed.
        ModelError: an unknown `interp`; the model's sizes are not the data's.

    Source: MuJoCo mj_readSensor.
    """
    world, history = ready(model, data), _history(model, "sensor", sensor)
    return _read(world, history, world.sensor_values(history.id), time, interp)


def _read(world: Data, history: _History, present: np.ndarray, time: float | None, interp: str) -> np.ndarray:
    """Returns the values of one delay before a time; without a history, the present ones."""
    if interp != "":
        one_of("interp", interp, ORDERS)
    if history.n <= 0:
        return present[history.first : history.first + history.dim].copy()
    times, samples = _samples(world, history)
    t = (world.time if time is None else real_number("time", time)) - history.delay
    return _interpolated(times, samples, t, ORDERS[interp] if interp else history.order)


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
    _fill(ready(model, data), _history(model, "actuator", actuator), values, times)


def init_sensor_history(
    model: Model,
    data: Data,
    sensor: str | int,
    values: ArrayLike,
    times: ArrayLike | None = None,
    phase: float | None = None,
) -> None:
    """Fills the history of a sensor's values.

    Args:
        model: the model.
        data: the world.
        sensor: name or number.
        values: (nsample, dim), or (nsample,) of one value: samples, the oldest first [1, or the unit of the sensor].
        times: (nsample,) their times [s], ascending; None: those that the history has.
        phase: time of the last sample of a sensor with a period [s], after which the next one is due by one period;
            None: unchanged.

    Raises:
        UnknownNameError: an unknown sensor.
        ModelError: the sensor has no history; invalid shapes; times that do not ascend; a phase that is not finite.

    Source: MuJoCo mj_initSensorHistory.
    """
    world, history = ready(model, data), _history(model, "sensor", sensor)
    last = None if phase is None else float(_fitting([phase], (1, 1), f"{history.label}: phase")[0, 0])
    _fill(world, history, values, times)
    if last is not None:
        world.history[history.address] = last


def _fill(world: Data, history: _History, values: ArrayLike, times: ArrayLike | None) -> None:
    """Writes all samples of a history, the oldest first."""
    label, n, dim, a = history.label, history.n, history.dim, history.address
    if n <= 0:
        raise ModelError(f"{label}: it has no history; set its attribute nsample in the model")
    samples = _fitting(values, (n, dim), f"{label}: values")
    when = _samples(world, history)[0] if times is None else _fitting(times, (n, 1), f"{label}: times")[:, 0]
    if (np.diff(when) < SAME_TIME).any():
        raise ModelError(f"{label}: got times that do not ascend, {when}")
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


def _samples(world: Data, history: _History) -> tuple[np.ndarray, np.ndarray]:
    """Returns times (n,) and samples (n, dim), the oldest first."""
    n, dim, a = history.n, history.dim, history.address
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
