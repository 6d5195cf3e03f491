"""Memory of `mujoco_batch.Batch`: one state vector per simulation, whose parts are the state fields of native batches.

    state  | time | qpos ... | qvel ... | act ... | ctrl ... |      one row per simulation, as in mj_getState

Each native batch reads and writes its state fields in these rows, so no state is copied between the two layouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from featherlane import Batch
from featherlane.integrations.batch.fields import INTEGRATION, STATE


class StateRows:
    """Holds arrays with a row per simulation, which several native batches may share.

    Args:
        model: an MjModel.
        nsim: simulations.

    Attributes:
        state: (nsim, nstate) vectors of mjSTATE_INTEGRATION.
        places: the columns of each state field.
        arrays: all other arrays by name and shape of a row.
    """

    def __init__(self, model: Any, nsim: int):
        self.nsim = nsim
        self.state = np.zeros((nsim, mujoco.mj_stateSize(model, INTEGRATION)))
        self.places: dict[str, slice] = {}
        self.arrays: dict[tuple[str, tuple[int, ...]], np.ndarray] = {}
        start = 0
        for name, bit in STATE.items():
            end = start + mujoco.mj_stateSize(model, bit)
            self.places[name], start = slice(start, end), end

    def rows(self, name: str, dims: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Returns the rows (nsim, *dims) of a field; those of a state field are a view of `state`."""
        if name in self.places:
            return self.state[:, self.places[name]].reshape(self.nsim, *dims)
        if (name, dims) not in self.arrays:
            self.arrays[name, dims] = np.zeros((self.nsim, *dims), dtype)
        return self.arrays[name, dims]

    def move(self, batch: Batch, bound: Mapping[str, Any]) -> None:
        """Moves a new native batch into these rows and binds outputs; only the first one sets values."""
        kept = [(array, array.copy()) for array in (self.state, *self.arrays.values()) if self.arrays]
        sizes, dtype = batch.arrays.sizes, batch.dtype
        batch.move_into(lambda field: self.rows(field.name, field.dims(sizes), field.stored_as(dtype)))
        for name in bound:
            batch.bind(name)
        for array, values in kept:
            array[...] = values
