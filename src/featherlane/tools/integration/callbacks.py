"""Calls functions of users with a copy of the worlds, which they may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from featherlane.engine.model.assignment import as_real_array, described
from featherlane.engine.simulation.world.recordings import control_of_step
from featherlane.errors import ModelError
from featherlane.tools.integration.source import Source, copy_state

Function = Callable[[Any, Any], Any]  # of the time and the worlds


class Callbacks:
    """Holds a copy of the worlds.

    Args:
        source: the worlds.
    """

    def __init__(self, source: Source):
        self.source = source

    @cached_property
    def copy(self) -> Source:
        """The copy, made at its first use."""
        return self.source.copy()

    def call(self, function: Function, ids: np.ndarray, rows: Mapping[str, np.ndarray], place: np.ndarray) -> Any:
        """Returns what a function returns for the copy.

        Args:
            function: the function.
            ids: (k,) worlds whose state is set first; the others keep theirs.
            rows: rows (n, ...) of their states, by field.
            place: (k,) the rows.
        """
        copy_state(self.copy, ids, rows, place)
        time = self.source.shown(self.copy.rows["time"][:, 0].copy())
        return function(time if time.ndim else time.item(), self.copy.worlds)

    def controls(
        self, function: Function, ids: np.ndarray, rows: Mapping[str, np.ndarray], place: np.ndarray, step: int
    ) -> np.ndarray:
        """Returns the controls of worlds, (k, nu); `step` is the number of the step in errors."""
        ctrl = self.source.row("ctrl")
        given = self.call(function, ids, rows, place)
        shape = self.source.shown(ctrl).shape
        return control_of_step(given, step, shape, self.source.dtype).reshape(ctrl.shape)[ids]

    def event(
        self, function: Function, ids: np.ndarray, rows: Mapping[str, np.ndarray], place: np.ndarray
    ) -> np.ndarray:
        """Returns the values of an event function, (k,).

        Raises:
            ModelError: another shape, or NaN.
        """
        n = self.source.nworld
        given, allowed = self.call(function, ids, rows, place), f"is what broadcasts to {(n,)}, without NaN"
        values = as_real_array("event", given, allowed)
        if values.shape not in ((), (1,), (n,)) or np.isnan(values).any():
            raise ModelError(f"event: got {described(given)}, allowed {allowed}")
        return np.broadcast_to(values.astype(float), n)[ids].copy()

    def derived(self, names: list[str], ids: np.ndarray) -> dict[str, np.ndarray]:
        """Returns derived fields of worlds in their last accepted states, (k, ...) by name."""
        copy_state(self.copy, ids, self.source.rows, ids)
        for name in names:
            self.copy.bind(name)
        self.copy.forward(ids)
        return {name: self.copy.values(name, ids) for name in names}
