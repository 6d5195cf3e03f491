"""The states of worlds that a profile starts from, and the settings of their batch."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from featherlane.engine.model.model import Model


class Settings(Protocol):
    """Settings of the profiled batch: precision, number of worlds and threads, steps per call."""

    @property
    def dtype(self) -> str: ...

    @property
    def worlds(self) -> int: ...

    @property
    def threads(self) -> int: ...

    @property
    def nstep(self) -> int: ...


class SettledStates(Protocol):
    """A model and one state of it for each world.

    Attributes:
        model: the model.
        states: arrays (worlds, n) by name: qpos, qvel, act, qacc_warmstart, ctrl.
        course: settings of the batch.
    """

    model: Model
    states: dict[str, np.ndarray]

    @property
    def course(self) -> Settings: ...

    def put(self, batch: Any, /) -> None:
        """Sets a batch of all worlds to the states."""

    def controls(self, call: int, /) -> np.ndarray:
        """Returns the controls of the n-th call of the benchmark, (worlds, nu)."""
        ...
