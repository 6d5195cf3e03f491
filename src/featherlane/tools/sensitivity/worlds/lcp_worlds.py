"""Worlds under the contact model lcp whose steps are differentiated."""

from __future__ import annotations

from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.world.data import Data
from featherlane.tools.sensitivity.columns.system import Stages
from featherlane.tools.sensitivity.worlds.implicit_worlds import ImplicitWorlds

GAP = 1e-4  # m: distance within which contacts may open at displaced poses without being lost
ROWS, ROWS_ALONE = 192, 1200  # rows of the LCPs of a tile of several worlds together, and of one world
GAPS = ("geom_gap", "pair_gap")


class LcpWorlds(ImplicitWorlds):
    """Holds the worlds of a `Data` or a `Batch` under the contact model lcp, and their derivatives.

    One stage computes the whole derivative; worlds that do not fit into its memory remain.
    Args as for `ImplicitWorlds`.
    """

    by_formulas = True  # type: ignore[assignment]

    def __init__(
        self, model: Model, source: Data | Batch, stages: Stages, torques: bool, nthread: int, disabled: int = 0
    ):
        super().__init__(model, source, stages, torques, nthread, disabled)
        self._gaps = [name for name in GAPS if getattr(model, name).size]
        self._own_gaps = [name for name in self._gaps if name not in self.batch.arrays.expanded]
        for name in self._gaps:
            self.batch.arrays.expand(name)

    def load(self, source: Data | Batch) -> None:
        """Copies the state of the world, or of all worlds; inactive contacts slightly beyond their gap are kept."""
        super().load(source)
        for name in self._own_gaps:
            self.batch.arrays.expanded[name][...] = getattr(self.model, name)
        for name in self._gaps:
            self.batch.arrays.expanded[name][...] += GAP

    def groups(self):
        """Returns all worlds: their integrators have no correction p."""
        return [(False, self.every)]

    def sizes(self, width: int, lags: bool, ncol: int) -> dict[str, int]:
        own = self.plans.prepare(width)[0].sizes
        nrow = max(1, min(int(own["nlcp"]), ROWS if width > 1 else ROWS_ALONE))
        return {
            "differences_p": 0,
            "rate_steps": 1,
            "nslipmax": 0,
            "rate_nrow": nrow,
            "rate_npair": nrow * nrow,
            "rate_ncol": ncol,
            "rate_ncolrow": ncol * nrow,
            "rate_ncoldof": ncol * int(own["nv"]),
            "rate_ncolact": ncol * int(own["na"]),
        }
