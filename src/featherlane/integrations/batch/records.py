"""Rollouts of `mujoco_batch.Batch`: inputs of each step, arrays to record into, and simulations that stop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from featherlane.extension import DATA, STATUS, roll_together
from featherlane.integrations.batch.fields import DATA_FIELDS, STATE, USER, WHOLE, template, unbindable
from featherlane.integrations.batch.worlds import Part, Worlds

Rows = Mapping[str, np.ndarray]  # by field
CTRL = int(mujoco.mjtState.mjSTATE_CTRL)
STOPPING = [STATUS.index("non_finite"), STATUS.index("bad_control")]


def places(model: Any, bits: int) -> dict[str, slice]:
    """Returns the columns of each part of a state vector, by field."""
    found, start = {}, 0
    for name, bit in STATE.items():
        if bit & bits:
            end = start + mujoco.mj_stateSize(model, bit)
            if end > start:
                found[name] = slice(start, end)
            start = end
    return found


def inputs_of(model: Any, n: int, nstep: int, control: ArrayLike | None, spec: int) -> dict[str, np.ndarray]:
    """Returns the inputs of the steps of a rollout of n simulations by field, (n, nstep, size).

    Args:
        model: an MjModel.
        n, nstep: simulations and steps.
        control, spec: as for `Batch.rollout`.
    """
    if control is None:
        return {}
    if int(spec) & ~USER:
        raise ValueError("control_spec must be a subset of mjSTATE_USER")
    given = np.broadcast_to(np.asarray(control, float), (n, nstep, mujoco.mj_stateSize(model, int(spec))))
    return {name: given[..., at] for name, at in places(model, int(spec)).items()}


class Records:
    """Holds the arrays that a rollout records into.

    Args:
        model, data: an MjModel and an MjData of it.
        n, nstep: simulations and steps.
        record, out: as for `Batch.rollout`.

    Attributes:
        out: (n, nstep, ...) by item of `record`.
        fields: names of fields to record.
    """

    def __init__(self, model: Any, data: Any, n: int, nstep: int, record: Sequence[Any], out: Mapping | None):
        if nstep < 1:
            raise ValueError("nstep must be positive")
        self.lead, self.out, self.fields = (n, nstep), {}, dict[str, None]()
        self._parts: dict[Any, dict[str, slice]] = {}
        for item in record:
            if isinstance(item, str):
                if item not in DATA_FIELDS:
                    raise unbindable(data, item)
                one = template(data, item)
                assert one is not None
                shape, dtype = (n, nstep, *one.shape), one.dtype
                self.fields[item] = None
            else:
                self._parts[item] = places(model, int(item))
                shape, dtype = (n, nstep, mujoco.mj_stateSize(model, int(item))), np.dtype(float)
                self.fields |= dict.fromkeys(self._parts[item])
            self.out[item] = _array(item, (out or {}).get(item), shape, dtype)

    def buffers(self, parts: Sequence[Part], nstep: int) -> dict[str, np.ndarray]:
        """Returns arrays that one part of a call can record into directly, by field."""
        direct = [item for item in self.out if isinstance(item, str) and item not in WHOLE and item in DATA]
        if len(parts) != 1 or len(parts[0].chosen) != self.lead[0] or nstep != self.lead[1]:
            direct = []
        return {item: self.out[item] for item in direct if self.out[item].dtype == float}

    def fill(self, at: np.ndarray | slice, found: Rows) -> None:
        """Writes recorded fields (n, nstep, ...) of the simulations at these places."""
        for item, array in self.out.items():
            if item in self._parts:
                for name, columns in self._parts[item].items():
                    shape = found[name].shape
                    array[at, :, columns] = found[name].reshape(*shape[:2], math.prod(shape[2:]))
            elif WHOLE.get(item):
                array[at] = 0
                array[at, :, 0] = found[item].reshape(found[item].shape[:2])
            elif not np.may_share_memory(found[item], array):
                array[at] = found[item].reshape(len(found[item]), *array.shape[1:])


def _array(item: Any, given: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns an array to record into, checked or new."""
    if given is None:
        return np.empty(shape, dtype)
    fits = isinstance(given, np.ndarray) and given.shape == shape and given.dtype == dtype
    if not (fits and given.flags.c_contiguous and given.flags.writeable):
        raise ValueError(f"out[{item!r}] must be a writable C-contiguous {dtype} array of shape {shape}")
    return given


# ---- running ---------------------------------------------------------------------------------------------------------
def roll(worlds: Worlds, parts: Sequence[Part], records: Records, inputs: Rows) -> None:
    """Steps the simulations of the parts, which are a whole call, and records."""
    nstep, before = records.lead[1], {part.batch: _rows(part) for part in parts}
    founds = _steps(parts, nstep, inputs, records.fields, records.buffers(parts, nstep))
    user = worlds.rows.places["userdata"]
    for part, found in zip(parts, founds, strict=True):
        last = _last_steps(found["warning"], before[part.batch]["warning"])
        if "userdata" in inputs:
            given = inputs["userdata"][part.at]
            worlds.rows.state[part.chosen, user] = given[np.arange(len(given)), last]  # -1: that of the last step
        if "userdata" in records.fields:
            rows = worlds.rows.state[part.chosen, None, user]
            given = inputs["userdata"][part.at] if "userdata" in inputs else rows
            found["userdata"] = np.array(np.broadcast_to(given, (len(rows), nstep, rows.shape[-1])))
        for step in np.unique(last[last >= 0]).tolist():
            _stop(part, step, np.flatnonzero(last == step), before[part.batch], inputs, found)
        records.fill(part.at, found)


def _rows(part: Part) -> dict[str, np.ndarray]:
    """Returns copies of the persistent rows of a part."""
    return {name: rows[part.chosen] for name, rows in part.batch.rows.items()}


def _steps(
    parts: Sequence[Part], nstep: int, inputs: Rows, names: Iterable[str], buffers: Rows
) -> list[dict[str, np.ndarray]]:
    """Advances the simulations of the parts; returns the recorded fields of each part, and `warning`."""
    rolled, founds = [], []
    for batch, chosen, at in parts:
        lead, sizes = (len(chosen), nstep), batch.arrays.sizes
        shapes = {name: (*lead, *DATA[name].dims(sizes)) for name in (*names, *inputs, "warning") if name in DATA}
        found = {}
        for name in {*names, "warning"} & shapes.keys():
            found[name] = buffers[name].reshape(shapes[name]) if name in buffers else np.empty(shapes[name])
        given = {name: a[at][:, :nstep].reshape(shapes[name]) for name, a in inputs.items() if name in shapes}
        rolled.append((batch, chosen, given or None, found))
        founds.append(found)
    roll_together(nstep, rolled)
    return founds


def _last_steps(counts: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Returns the step of each simulation's first new warning, (n,); -1: none."""
    steps = np.any(counts[..., STOPPING] > before[:, None, STOPPING], axis=-1)
    return np.where(steps.any(-1), steps.argmax(-1), -1)


def _stop(part: Part, step: int, at: np.ndarray, before: Rows, inputs: Rows, found: Rows) -> None:
    """Sets simulations to their states after a step, and repeats the records of that step."""
    sims = part.chosen[at]
    for name, rows in part.batch.rows.items():
        rows[sims] = before[name][at] if name in before else 0.0
    places = at if isinstance(part.at, slice) else part.at[at]
    _steps([Part(part.batch, sims, places)], step + 1, inputs, (), {})
    for rows in found.values():
        rows[at, step + 1 :] = rows[at, step : step + 1]
