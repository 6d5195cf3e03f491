"""Reads and initializes histories: of a delayed actuator's controls, and of a delayed or periodic sensor's values.

All functions take a `Data`, or a `Batch` and the numbers of its worlds.  Results of a batch have a leading axis of the
worlds, and arguments may have it.

Source: MuJoCo mj_readCtrl, mj_initCtrlHistory, mj_readSensor, mj_initSensorHistory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.dynamics.actuator.history import CURSOR, SAME_TIME, TIMES
from featherlane.engine.model.arguments import one_of
from featherlane.engine.model.assignment import reals
from featherlane.engine.model.enums import INTERP_CUBIC, INTERP_LINEAR, INTERP_ZOH, Disable
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import find_object
from featherlane.engine.simulation.batch.arrays import chosen_worlds
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.mixed import MixedBatch
from featherlane.engine.simulation.batch.one_world import checked_worlds
from featherlane.engine.simulation.query.sensors import PresentSensors
from featherlane.engine.simulation.world.data import Data
from featherlane.errors import ModelError
from featherlane.tools.integration.source import Source

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
        delay: of the element in each world of the call, (n,) [s].
    """

    id: int
    label: str
    n: int
    order: int
    dim: int
    first: int
    address: int
    delay: np.ndarray


class _Worlds:
    """Holds the worlds of a call: a `Data`, or chosen worlds of a `Batch`.

    Args:
        model: the model.
        data: the `Data` or the `Batch`.
        ids: worlds of the batch; None for all.

    Attributes:
        source: the worlds of `data`.
        at: (n,) the worlds of the call.
        is_batch: whether `data` is a `Batch`.
    """

    def __init__(self, model: Model, data: Data | Batch, ids: ArrayLike | None):
        self.model, self.source = model, Source(checked_worlds(model, data))
        self.is_batch = not self.source.is_one
        if self.source.is_one and ids is not None:
            raise ModelError("ids: got worlds of a Data, allowed is None, or worlds of a Batch")
        self.at = chosen_worlds(ids, self.source.nworld)

    def history(self, kind: str, element: str | int) -> _History:
        """Returns the history of an actuator or a sensor.

        Raises:
            UnknownNameError: an unknown element.
        """
        model, view = self.model, find_object(self.model, kind, element)
        i, (dim, first) = view.id, {"actuator": ("ctrlnum", "ctrladr"), "sensor": ("dim", "adr")}[kind]
        n, order = getattr(model, f"{kind}_history")[i]
        numbers = (int(getattr(model, f"{kind}_{name}")[i]) for name in (dim, first, "historyadr"))
        own = self.source.expanded.get(f"{kind}_delay")
        delay = np.full(len(self.at), getattr(model, f"{kind}_delay")[i]) if own is None else own[self.at, i]
        return _History(i, f"{kind} {view.name or f'#{i}'}", int(n), int(order), *numbers, delay.astype(float))

    def shown(self, values: np.ndarray) -> np.ndarray:
        """Returns values (n, ...) in the form for these worlds."""
        return values if self.is_batch else values[0]


def read_ctrl(
    model: Model,
    data: Data | Batch,
    actuator: str | int,
    time: ArrayLike | None = None,
    interp: str = "",
    *,
    ids: ArrayLike | None = None,
) -> np.ndarray:
    """Returns the delayed controls of an actuator: those at `time` minus the delay, not clamped.

    Args:
        model: the model.
        data: the world, or a batch of the model.
        actuator: name or number.
        time: seconds, of a batch also (n,); None for `data.time`.
        interp: `zoh`, `linear` or `cubic`, the interpolation between two samples; "" for the model's setting.
        ids: worlds of the batch, n of them; None for all.

    Returns:
        (ctrlnum,), of a batch (n, ctrlnum): a copy [1, or the unit of the control]; of an actuator without a history
        its present controls.

    Raises:
        UnknownNameError: an unknown actuator.
        ModelError: an unknown `interp`; the model is not that of the worlds; invalid times or ids.

    Source: MuJoCo mj_readCtrl.
    """
    worlds = _Worlds(model, data, ids)
    return _read(worlds, worlds.history("actuator", actuator), worlds.source.row("ctrl"), time, interp)


def read_sensor(
    model: Model,
    data: Data | Batch,
    sensor: str | int,
    time: ArrayLike | None = None,
    interp: str = "",
    *,
    ids: ArrayLike | None = None,
) -> np.ndarray:
    """Returns the delayed values of a sensor: those at `time` minus the delay.

    Args:
        model: the model.
        data: the world, or a batch of the model.
        sensor: name or number.
        time: seconds, of a batch also (n,); None for `data.time`.
        interp: `zoh`, `linear` or `cubic`, the interpolation between two samples; "" for the model's setting.
        ids: worlds of the batch, n of them; None for all.

    Returns:
        (dim,), of a batch (n, dim): a copy [1, or the unit of the sensor]; of a sensor without a history its values in
        `data.sensordata`.

    Raises:
        UnknownNameError: an unknown sensor.
        UnsupportedFeatureError: the sensor is not computed.
        ModelError: an unknown `interp`; the model is not that of the worlds; invalid times or ids.

    Source: MuJoCo mj_readSensor.
    """
    worlds = _Worlds(model, data, ids)
    history = worlds.history("sensor", sensor)
    present = None
    if history.n <= 0 or not worlds.is_batch:
        present = np.reshape(data.sensor_values(history.id), (worlds.source.nworld, -1))
    return _read(worlds, history, present, time, interp)


def _read(worlds: _Worlds, history: _History, present: Any, time: ArrayLike | None, interp: str) -> np.ndarray:
    """Returns the values of one delay before a time; without a history, the present ones."""
    if interp != "":
        one_of("interp", interp, ORDERS)
    if history.n <= 0:
        return worlds.shown(present[worlds.at, history.first : history.first + history.dim])
    times, samples = _samples(worlds, history)
    if time is None:
        at = worlds.source.rows["time"].reshape(-1)[worlds.at]
    else:
        n = len(worlds.at)
        allowed = f"are times () or ({n},) [s]" if worlds.is_batch else "is a time [s]"
        at = reals("time", time, allowed)
        if at.shape not in ((), (n,) if worlds.is_batch else ()) or not np.isfinite(at).all():
            raise ModelError(f"time: got {time!r}, allowed {allowed}, finite")
    return worlds.shown(_interpolated(times, samples, at - history.delay, ORDERS[interp] if interp else history.order))


def init_ctrl_history(
    model: Model,
    data: Data | Batch,
    actuator: str | int,
    times: ArrayLike | None,
    values: ArrayLike,
    *,
    ids: ArrayLike | None = None,
) -> None:
    """Fills the history of an actuator's controls.

    Args:
        model: the model.
        data: the world, or a batch of the model.
        actuator: name or number.
        times: (nsample,) times of the samples [s], ascending, of a batch also (n, nsample); None: the history's.
        values: (nsample, ctrlnum), or (nsample,) of one control: samples, the oldest first; of a batch, with a leading
            axis of n, those of each world.
        ids: worlds of the batch, n of them; None for all.

    Raises:
        UnknownNameError: an unknown actuator.
        ModelError: the actuator has no history; invalid shapes; times that do not ascend.

    Source: MuJoCo mj_initCtrlHistory.
    """
    worlds = _Worlds(model, data, ids)
    _fill(worlds, worlds.history("actuator", actuator), values, times)


def init_sensor_history(
    model: Model,
    data: Data | Batch,
    sensor: str | int,
    times: ArrayLike | None,
    values: ArrayLike,
    phase: ArrayLike | None = None,
    *,
    ids: ArrayLike | None = None,
) -> None:
    """Fills the history of a sensor's values.

    Args:
        model: the model.
        data: the world, or a batch of the model.
        sensor: name or number.
        times: (nsample,) times of the samples [s], ascending, of a batch also (n, nsample); None: the history's.
        values: (nsample, dim), or (nsample,) of one value: samples, the oldest first [1, or the unit of the sensor]; of
            a batch, with a leading axis of n, those of each world.
        phase: time of the last sample of a sensor with a period [s], after which the next one is due by one period;
            of a batch also (n,); None: unchanged.
        ids: worlds of the batch, n of them; None for all.

    Raises:
        UnknownNameError: an unknown sensor.
        ModelError: the sensor has no history; invalid shapes; times that do not ascend; a phase that is not finite.

    Source: MuJoCo mj_initSensorHistory.
    """
    worlds = _Worlds(model, data, ids)
    history = worlds.history("sensor", sensor)
    last = None if phase is None else _fitting(worlds, phase, (), f"{history.label}: phase")
    _fill(worlds, history, values, times)
    if last is not None:
        worlds.source.row("history")[worlds.at, history.address] = last


def hold_histories(batch: Batch | MixedBatch, ids: np.ndarray) -> None:
    """Fills the histories of worlds that were just reset, as if their controls and their states had been constant.

    The samples of an actuator are its present controls.  Those of a sensor are its values in the present state, which
    forward dynamics compute.  A history that is not zero is unchanged: it was filled after the reset.

    Args:
        batch: the worlds; a `MixedBatch` has its own number for each.
        ids: (n,) numbers of the worlds.
    """
    if isinstance(batch, MixedBatch):
        for k in np.unique(batch.group[ids]):
            hold_histories(batch.groups[k], ids[batch.group[ids] == k] - batch.starts[k])
        return
    model, rows = batch.model, batch.rows["history"]
    actuators = model.actuator_history[:, 0], model.actuator_ctrlnum, model.actuator_ctrladr, model.actuator_historyadr
    _hold(rows, ids, lambda: batch.rows["ctrl"][ids], zip(*actuators, strict=True))
    if not model.opt.disableflags & Disable.SENSOR:
        sensors = model.sensor_history[:, 0], model.sensor_dim, model.sensor_adr, model.sensor_historyadr
        now = PresentSensors(model, len(ids), batch.dtype)
        _hold(rows, ids, lambda: batch.query(now, ids), zip(*sensors, strict=True))


def _hold(rows: np.ndarray, ids: np.ndarray, present: Callable[[], np.ndarray], elements: Iterable[tuple]) -> None:
    """Fills histories in the worlds `ids` with present values (len(ids), k), which are computed if they are needed.

    Args:
        rows: (nworld, nhistory) histories.
        ids: the worlds.
        present: function that returns the values.
        elements: number of samples, number of values, first value, and address of the history, of each element.
    """
    values = None
    for n, dim, first, address in elements:
        samples = slice(address + TIMES + n, address + TIMES + n * (1 + dim))
        empty = ~rows[ids, samples].any(axis=1) if n > 0 else np.zeros(0, bool)
        if empty.any():
            values = present() if values is None else values
            rows[ids[empty], samples] = np.tile(values[empty, first : first + dim], n)


# ---- rows of the worlds ----------------------------------------------------------------------------------------------
def _fill(worlds: _Worlds, history: _History, values: ArrayLike, times: ArrayLike | None) -> None:
    """Writes all samples of a history, the oldest first."""
    label, n, dim, a = history.label, history.n, history.dim, history.address
    if n <= 0:
        raise ModelError(f"{label}: it has no history; set its attribute nsample in the model")
    samples = _fitting(worlds, values, (n, dim), f"{label}: values")
    when = _samples(worlds, history)[0] if times is None else _fitting(worlds, times, (n,), f"{label}: times")
    bad = np.flatnonzero((np.diff(when, axis=1) < SAME_TIME).any(axis=1))
    if bad.size:
        raise ModelError(f"{label}: got times that do not ascend, {when[bad[0]]}")
    rows, at = worlds.source.row("history"), worlds.at
    rows[at, a + CURSOR] = n - 1
    rows[at, a + TIMES : a + TIMES + n] = when
    rows[at, a + TIMES + n : a + TIMES + n * (1 + dim)] = samples.reshape(len(at), -1)


def _fitting(worlds: _Worlds, values: ArrayLike, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Returns arrays (n, *shape): given for all worlds, or for each; a last size of 1 may be left out."""
    n, array = len(worlds.at), reals(what, values, f"are numbers {shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"{what}: got a non-finite number")
    shapes = [shape, *([shape[:1]] if len(shape) == 2 and shape[1] == 1 else [])]
    each = [(n, *part) for part in shapes] if worlds.is_batch else []
    if array.shape not in (*shapes, *each):
        allowed = f"{shape} or {each[0]}" if each else f"{shape}"
        raise ModelError(f"{what}: got shape {array.shape}, allowed is {allowed}")
    return np.broadcast_to(array.reshape(-1, *shape), (n, *shape))


def _samples(worlds: _Worlds, history: _History) -> tuple[np.ndarray, np.ndarray]:
    """Returns times (k, n) and samples (k, n, dim) of k worlds, the oldest first."""
    n, dim, a = history.n, history.dim, history.address
    rows = worlds.source.row("history")[worlds.at].astype(float)
    order = (rows[:, a + CURSOR, None].astype(int) + 1 + np.arange(n)) % n
    times = rows[:, a + TIMES : a + TIMES + n]
    samples = rows[:, a + TIMES + n : a + TIMES + n * (1 + dim)].reshape(-1, n, dim)
    return np.take_along_axis(times, order, 1), np.take_along_axis(samples, order[..., None], 1)


def _interpolated(times: np.ndarray, samples: np.ndarray, t: np.ndarray, order: int) -> np.ndarray:
    """Returns the samples interpolated at the time t (k,) of each world: see `dynamics/actuator/history.py`."""
    n, world = times.shape[1], np.arange(len(times))

    def sample(rows: np.ndarray, j: np.ndarray) -> np.ndarray:
        return rows[world, np.clip(j, 0, n - 1)]

    k = np.clip((times < t[:, None]).sum(axis=1), 0, n - 1)
    first, last = t <= times[:, 0] + SAME_TIME, t >= times[:, -1] - SAME_TIME
    alone = first | last | (np.abs(t - sample(times, k)) < SAME_TIME)
    whole = sample(samples, np.where(first, 0, k))
    span = np.where(alone, 1.0, sample(times, k) - sample(times, k - 1))[:, None]
    s, before, after = (t - sample(times, k - 1))[:, None] / span, sample(samples, k - 1), sample(samples, k)
    if order == INTERP_ZOH:
        between = before
    elif order == INTERP_LINEAR:
        between = before + s * (after - before)
    else:
        slopes = []
        for j in (k - 1, k):
            inside = (j > 0) & (j < n - 1)
            width = np.where(inside, sample(times, j + 1) - sample(times, j - 1), 1.0)[:, None]
            slopes.append(np.where(inside[:, None], (sample(samples, j + 1) - sample(samples, j - 1)) / width, 0.0))
        low, high = (2 * s - 3) * s * s + 1, (3 - 2 * s) * s * s
        bent = ((s - 2) * s + 1) * s * slopes[0] + (s - 1) * s * s * slopes[1]
        between = low * before + high * after + span * bent
    return np.where(alone[:, None], whole, between)
