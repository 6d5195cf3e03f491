"""Calls of `mujoco_batch.Batch`: the simulations of a call, their errors, and the arrays that each call refreshes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from featherlane.integrations.batch.arguments import check_callbacks, checked_ids, checked_number, checked_sim
from featherlane.integrations.batch.fields import WHOLE
from featherlane.integrations.batch.warnings import Warnings
from featherlane.integrations.batch.worlds import Part, Worlds


class SimulationError(RuntimeError):
    """Reports errors in some simulations of a call: these kept their state, the others ran.

    Attributes:
        ids: numbers of the simulations; `Batch.error` returns the message of each.
    """

    def __init__(self, ids: np.ndarray, message: str, ncall: int | None = None):
        self.ids = ids
        shown = ", ".join(map(str, ids[:5])) + ", ..." * (len(ids) > 5)
        of = "" if ncall is None else f" of {ncall}"
        super().__init__(f"errors in {len(ids)}{of} simulations ({shown}); simulation {ids[0]}: {message}")


class Calls:
    """Holds the simulations, and runs calls of some of them; the arguments are those of `Batch`."""

    def __init__(self, model: Any, nsim: int, nthread: int = 0, persistent: bool = False):
        if not isinstance(model, mujoco.MjModel):
            raise TypeError(f"model must be a mujoco.MjModel, got {type(model).__name__}")
        nsim, nthread = checked_number(nsim, "nsim"), checked_number(nthread, "nthread")
        if nsim < 1:
            raise ValueError("nsim must be positive")
        check_callbacks()
        if model.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_SLEEP) and not persistent:
            raise ValueError("models with sleep need a persistent batch: Batch(..., persistent=True)")
        self.model, self.persistent = model, persistent
        self._worlds = Worlds(model, nsim, min(max(nthread, 0), nsim))
        self._warnings = Warnings(self._worlds)
        self.status = np.zeros(nsim, np.int32)
        self._status, self.status = self.status, self.status.view()
        self.status.flags.writeable = False
        self._errors: dict[int, str] = {}
        self._whole: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # integer outputs of MjData, and read-only views

    @cached_property
    def template(self) -> Any:
        """Returns an MjData of the model, for shapes and types of fields."""
        return mujoco.MjData(self.model)

    @property
    def state_rows(self) -> np.ndarray:
        """Returns the state vectors; steps may not read all inputs in them, as they do after `Batch.state`."""
        return self._worlds.rows.state

    @property
    def nsim(self) -> int:
        """Returns the number of simulations."""
        return self._worlds.nsim

    @property
    def nthread(self) -> int:
        """Returns the number of threads."""
        return self._worlds.base.nthread

    @property
    def warning(self) -> np.ndarray:
        """Returns the warning counters, (nsim, mjNWARNING, 2) int32; the number is the last entry, the first is 0."""
        return self._warnings.numbers

    def error(self, sim: int) -> str:
        """Returns the message of the error of a simulation's last call, or ''."""
        return self._errors.get(checked_sim(sim, self.nsim), "")

    def chosen(self, ids: ArrayLike | None) -> np.ndarray:
        """Returns the numbers of the simulations of a call (n,) int64, checked."""
        found = checked_ids(ids, self.nsim)
        return self._worlds.every if found is None else found.astype(np.int64)

    def _call(self, chosen: np.ndarray, do: Callable[[list[Part]], None]) -> dict[int, str]:
        """Runs a function of the parts of a call; returns the messages of the simulations with errors."""
        check_callbacks()
        return self._worlds.run(chosen, do) if len(chosen) else {}

    def _finish(self, chosen: np.ndarray, failed: Mapping[int, str]) -> None:
        """Refreshes integer outputs, sets `status`, and raises the error of the failed simulations."""
        for name, (whole, _) in self._whole.items():
            rows = self._worlds.bind(name)
            if WHOLE.get(name):
                whole[:, 0] = rows.reshape(self.nsim, -1)[:, 0]
            else:
                whole[...] = rows.reshape(whole.shape)
        if self._errors:
            self._status[chosen] = 0
            self._errors = {sim: text for sim, text in self._errors.items() if self._status[sim]}
        if failed:
            ids = np.array(sorted(failed))
            self._status[ids], self._errors = 1, self._errors | dict(failed)
            raise SimulationError(ids, failed[int(ids[0])], len(chosen))
