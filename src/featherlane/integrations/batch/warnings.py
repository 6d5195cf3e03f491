"""MuJoCo's warning counters of many simulations, from Featherlane's status codes."""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.extension import STATUS
from featherlane.integrations.batch.worlds import Worlds

KINDS = mujoco.mjtWarning
COUNTED = {
    "contacts_full": int(KINDS.mjWARN_CONTACTFULL),
    "rows_full": int(KINDS.mjWARN_CNSTRFULL),
    "bad_control": int(KINDS.mjWARN_BADCTRL),
    "singular_inertia": int(KINDS.mjWARN_INERTIA),
}
COLUMNS = {name: STATUS.index(name) for name in (*COUNTED, "non_finite")}
NO_SIMS = np.zeros(0, int)
# by the field `bad_part`: another part, qpos, qvel
CAUSES = np.array([int(KINDS.mjWARN_BADQACC), int(KINDS.mjWARN_BADQPOS), int(KINDS.mjWARN_BADQVEL)])


class Warnings:
    """Counts warnings.

    Args:
        worlds: the simulations.

    Attributes:
        numbers: (nsim, mjNWARNING, 2) int32: 0 in place of the last information, and the number of each warning.
    """

    def __init__(self, worlds: Worlds):
        self.numbers = np.zeros((worlds.nsim, int(KINDS.mjNWARNING), 2), np.int32)
        self._worlds, self._seen = worlds, np.zeros((worlds.nsim, len(STATUS)))

    def count(self, stepped: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Counts the warnings of a call.

        Args:
            stepped: whether the call was a step; a forward pass does not check the acceleration.

        Returns:
            the simulations with a bad value, and the warning of each.
        """
        counts, causes = (self._worlds.base.rows[name] for name in ("warning", "bad_part"))
        if np.array_equal(counts, self._seen):
            return NO_SIMS, NO_SIMS
        new = {name: counts[:, column] - self._seen[:, column] for name, column in COLUMNS.items()}
        self._seen[...] = counts
        sims = np.flatnonzero((new["non_finite"] > 0) & (stepped | (causes[:, 0] > 0)))
        kinds = CAUSES[causes[sims, 0].astype(int)]
        self.restart(sims, kinds)
        for name, kind in COUNTED.items():
            self.numbers[:, kind, 1] += new[name].astype(np.int32)
        return sims, kinds

    def restart(self, sims: np.ndarray, kinds: np.ndarray) -> None:
        """Counts one bad value of simulations; all counts of a simulation start again, as in MuJoCo's reset."""
        self.numbers[sims] = 0
        self.numbers[sims, kinds, 1] = 1

    def clear(self, chosen: np.ndarray) -> None:
        """Sets the counts of simulations to zero."""
        self._seen[chosen], self.numbers[chosen] = 0.0, 0
