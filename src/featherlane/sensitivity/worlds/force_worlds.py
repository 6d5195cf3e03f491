"""Worlds whose inverse dynamics are differentiated: forces by position, velocity and acceleration."""

from __future__ import annotations

import numpy as np

from featherlane.lanes import Stage
from featherlane.lanes.record import address
from featherlane.model.model import Model
from featherlane.sensitivity.rates.records import KNOWN
from featherlane.sensitivity.worlds.displaced_worlds import OwnWorlds, each_step
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.tile.transfer import Plan
from featherlane.simulation.world.data import Data

# p is not read, and there is no friction that the no-slip solver corrects
SIZES = {"rate_lag": 1, "rate_steps": 1, "nslipmax": 0}


class ForceWorlds(OwnWorlds):
    """Holds the worlds of a `Data` or a `Batch`, and the rates of forces that accelerate them.

    Args:
        model, source, nthread, disabled: as for `OwnWorlds`.
        loop: the stage that computes the columns, `inverse_columns` or `rnea_columns`.
    """

    def __init__(self, model: Model, source: Data | Batch, loop: Stage, nthread: int, disabled: int = 0):
        super().__init__(model, source, 3 * model.nv, nthread, disabled)
        self.loop, nworld = loop, self.batch.nworld
        self._qacc, self._report = np.zeros((nworld, model.nv)), np.zeros((nworld, KNOWN + 1))

    def rates(self, qacc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns (nworld, 3 nv, nv) by position, velocity and acceleration, and indices of worlds without rates."""
        nworld, nv = self.batch.nworld, self.model.nv
        out, todo = np.zeros((nworld, 3 * nv, nv)), np.arange(nworld if nv else 0)
        self._qacc[...] = qacc
        self.rows["xfrc_applied"][...] = 0.0  # inverse dynamics does not include it
        # each world takes its coordinates one after the other, never in parallel lanes
        for width in dict.fromkeys((1 if nworld == 1 else self.width, 1)):
            known = self._run(out, todo, width)
            todo, alone = todo[known <= 0.0], known < 0.0
            if not alone.any():
                break
        return out, todo

    def _run(self, out: np.ndarray, chosen: np.ndarray, width: int) -> np.ndarray:
        """Computes rates of some worlds; returns 1 where available, 0 where not, -1 where the world must run alone."""
        if len(chosen):
            plan = self.kept(width, lambda: self._plan(out, width))
            self.plans.prepare(width)
            plan.addresses("record")[0] = address(out)  # dg
            plan.begin(3 * self.model.nv, chosen, chosen)
            self.go(plan, -(-len(chosen) // width))
        return self._report[chosen, KNOWN]

    def _plan(self, out: np.ndarray, width: int) -> Plan:
        """Prepares the transfers through tiles of that width."""
        taken = {"dg": out, "report": each_step(self._report, out.shape[1])}
        return self.plan_of(self.loop, len(out), {}, taken, {"qacc": self._qacc}, width, sizes=SIZES)
