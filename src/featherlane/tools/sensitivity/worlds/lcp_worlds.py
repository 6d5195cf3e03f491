"""Worlds under the contact model lcp whose steps are differentiated, and the passes through their tiles."""

from __future__ import annotations

import numpy as np

from featherlane.engine.lanes import Stage
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.tile.transfer import Plan
from featherlane.engine.simulation.world.data import Data
from featherlane.tools.sensitivity.columns.coordinates import EPS, Seeds
from featherlane.tools.sensitivity.rates.records import FITS, NEAREST
from featherlane.tools.sensitivity.worlds.displaced_worlds import OwnWorlds, each_step

GAP = 1e-4  # m: distance within which contacts may open at displaced poses without being lost
ROWS, ROWS_ALONE = 192, 1200  # rows of the LCPs of a tile of several worlds together, and of one world
REALS = 1 << 21  # values of a pass
LEAST = 64  # worlds of a pass, so that all threads have tiles
GAPS = ("geom_gap", "pair_gap")


def _sizes(own: dict[str, int], ncol: int, width: int) -> dict[str, int]:
    """Returns sizes of the record of a thread whose workspace has the sizes `own`."""
    nrow = max(1, min(int(own["nlcp"]), ROWS if width > 1 else ROWS_ALONE))
    return {
        "rate_lag": 0,
        "rate_steps": 1,
        "nslipmax": 0,
        "rate_nrow": nrow,
        "rate_npair": nrow * nrow,
        "rate_ncol": ncol,
        "rate_ncolrow": ncol * nrow,
        "rate_ncoldof": ncol * int(own["nv"]),
        "rate_ncolact": ncol * int(own["na"]),
    }


class LcpWorlds(OwnWorlds):
    """Holds the worlds of a `Data` or a `Batch` under the contact model lcp, and their derivatives.

    Args:
        model, source, nthread, disabled: as for `OwnWorlds`.
        loop: the stage that computes the columns.
        torques: whether generalized forces are coordinates, too, after the controls.
    """

    def __init__(self, model: Model, source: Data | Batch, loop: Stage, torques: bool, nthread: int, disabled: int = 0):
        seeds = Seeds.of_model(model)
        self.loop, self.n, nx = loop, (seeds.force if torques else seeds.input).stop, seeds.state.stop
        super().__init__(model, source, 2 * self.n, nthread, disabled)
        self._own_gaps = [name for name in GAPS if name not in self.batch.arrays.expanded and getattr(model, name).size]
        for name in GAPS:
            if getattr(model, name).size:
                self.batch.arrays.expand(name)
        nworld = self.batch.nworld
        self.each = min(nworld, max(LEAST, REALS // max(self.n * nx, 1)))
        self.displacement = np.full((self.each, self.n, 1), EPS)
        self.at = np.broadcast_to(np.arange(self.n, dtype=float)[:, None], (self.each, self.n, 1)).copy()
        self.state, self.acceleration = np.zeros((self.each, self.n, nx)), np.zeros((self.each, self.n, model.nv))
        self.report = np.zeros((self.each, 3))

    def load(self, source: Data | Batch) -> None:
        """Copies the state of the world, or of all worlds; inactive contacts slightly beyond their gap are kept."""
        super().load(source)
        for name in self._own_gaps:
            self.batch.arrays.expanded[name][...] = getattr(self.model, name)
        for name in GAPS:
            if name in self.batch.arrays.expanded:
                self.batch.arrays.expanded[name][...] += GAP

    def _plan(self, width: int) -> Plan:
        """Prepares the transfers through tiles of that width."""
        workspaces = self.plans.prepare(width)
        brought = {"at": self.at, "displacement": self.displacement}
        taken = {
            "da": self.acceleration,
            "dq": self.state[..., self.seeds.position],
            "dv": self.state[..., self.seeds.velocity],
            "dact": self.state[..., self.seeds.activation],
            "report": each_step(self.report, self.n),
        }
        sizes = _sizes(workspaces[0].sizes, self.n, width)
        return self.plan_of(self.loop, self.each, brought, taken, width=width, sizes=sizes)

    def _run(self, chosen: np.ndarray, width: int) -> tuple[np.ndarray, ...]:
        """Runs a pass of at most `each` worlds; returns what `rates` does of them, and whether they fit."""
        plan, k = self.kept(width, lambda: self._plan(width)), len(chosen)
        self.plans.prepare(width)
        plan.begin(self.n, chosen, np.arange(k))
        self.go(plan, -(-k // width))
        report = self.report[:k]
        return self.state[:k], self.acceleration[:k], report[:, NEAREST], report[:, FITS] > 0.0

    def rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Computes the rates of all worlds; those that do not fit into a tile together run one by one.

        Returns:
            Rates of the next state (nworld, n, 2 nv + na), of the acceleration (nworld, n, nv), distances to the
            nearest switch (nworld,), and the indices of the remaining worlds.
        """
        nworld, found = self.batch.nworld, []
        left = self.collect(found, np.arange(nworld), self.each, self._run, self.width if nworld > 1 else 1)
        state, acceleration, nearest = found
        return state, acceleration, nearest, left
