"""MuJoCo's warning counters of many simulations, from Featherlane's status codes."""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.integrations.batch.worlds import Worlds
from featherlane.model.status import STATUS

KINDS = mujoco.mjtWarning
COUNTED = {
    "contacts_full": int(KINDS.mjWARN_CONTACTFULL),
    "rows_full": int(KINDS.mjWARN_CNSTRFULL),
    "bad_control": int(KINDS.mjWARN_BADCTRL),
}
COLUMNS = {name: STATUS.index(name) for name in (*COUNTED, "non_finite")}
LARGEST = 1e10  # a larger value of a state is bad


class Warnings:
    """Counts warnings.

    Args:
        worlds: the simulations.
        nq: coordinates of a state.

    Attributes:
        numbers: (nsim, mjNWARNING, 2) int32: 0 in place of the last information, and the number of each warning.
    """

    def __init__(self, worlds: Worlds, nq: int):
        self.numbers = np.zeros((worlds.nsim, int(KINDS.mjNWARNING), 2), np.int32)
        self._worlds, self._nq, self._seen = worlds, nq, np.zeros((worlds.nsim, len(STATUS)))
        places, state = worlds.rows.places, worlds.rows.state
        self._checked = state[:, places["qpos"].start : places["qvel"].stop]
        # contiguous memory is scanned about four times as fast
        self._scanned = state if state.size <= 4 * self._checked.size + 32 * worlds.nsim else self._checked

    def scan(self) -> np.ndarray | None:
        """Returns (2, nsim): the position, the velocity is bad; None if all are good."""
        seen = self._scanned
        if not seen.size or (seen.max() < LARGEST and seen.min() > -LARGEST):
            return None
        good = np.abs(self._checked) <= LARGEST
        return ~np.stack([good[:, : self._nq].all(1), good[:, self._nq :].all(1)])

    def count(self, bad: np.ndarray | None, stepped: bool = True) -> None:
        """Counts the warnings of a call.

        Args:
            bad: what `scan` returned before the call.
            stepped: whether the call was a step; a forward pass does not check the acceleration.
        """
        counts = self._worlds.base.rows["warning"]
        if np.array_equal(counts, self._seen):
            return
        new = {name: counts[:, column] - self._seen[:, column] for name, column in COLUMNS.items()}
        self._seen[...] = counts
        reset = np.flatnonzero(new["non_finite"] > 0)
        if stepped and reset.size:
            self.restart(reset, bad)
        for name, kind in COUNTED.items():
            self.numbers[:, kind, 1] += new[name].astype(np.int32)

    def restart(self, sims: np.ndarray, bad: np.ndarray | None) -> None:
        """Counts one bad value of simulations; all counts of a simulation start again, as in MuJoCo's reset."""
        causes = np.full(len(self.numbers), int(KINDS.mjWARN_BADQACC))
        if bad is not None:
            causes[bad[1]] = int(KINDS.mjWARN_BADQVEL)
            causes[bad[0]] = int(KINDS.mjWARN_BADQPOS)
        self.numbers[sims] = 0
        self.numbers[sims, causes[sims], 1] = 1

    def clear(self, chosen: np.ndarray) -> None:
        """Sets the counts of simulations to zero."""
        self._seen[chosen], self.numbers[chosen] = 0.0, 0
