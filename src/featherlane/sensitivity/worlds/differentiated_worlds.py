"""Worlds prepared for differentiation by the implicit function theorem: their accelerations and displacements."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.model.model import Model
from featherlane.sensitivity.columns.coordinates import Seeds
from featherlane.sensitivity.columns.system import Stages
from featherlane.sensitivity.systems.served import serves
from featherlane.sensitivity.worlds.displaced_worlds import OwnWorlds
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.world.data import Data


class DifferentiatedWorlds(OwnWorlds):
    """Holds the worlds of a `Data` or a `Batch`, prepared for passes.

    Args:
        model, source, nthread, disabled: as for `OwnWorlds`.
        stages: of the system that a step solves.
        torques: whether generalized forces are coordinates, too, after the controls.
        by_formulas: use formulas where they apply; otherwise differences of the residual.
        parameters: the `Parameters` of the model whose values are coordinates, too; None for none.

    Attributes:
        qacc, qacc_step: (nworld, nv) accelerations of forward dynamics and of the integrator.
        based: (nworld, 1, 3) reports of the passes that compute accelerations.
        every: (nworld,) indices of all worlds.
    """

    solves_columns = True

    def __init__(
        self,
        model: Model,
        source: Data | Batch,
        stages: Stages,
        torques: bool,
        nthread: int,
        disabled: int = 0,
        by_formulas: bool = True,
        parameters: Any = None,
    ):
        n = 2 * Seeds.of_model(model).input.stop
        super().__init__(model, source, n, nthread, disabled)
        self.stages, self.torques, self.formulas_wanted, self.parameters = stages, torques, by_formulas, parameters
        self.qacc, self.qacc_step = np.zeros((2, self.batch.nworld, model.nv))
        self.based = np.zeros((self.batch.nworld, 1, 3))
        self.every = np.arange(self.batch.nworld)
        self._stepped, self._steps = None, (self.qacc, self.qacc)

    _asked: Any = None

    @property
    def by_formulas(self) -> bool:
        """Returns whether formulas are requested and apply to the model in its present state."""
        own = self.model.__dict__
        key = own["revision"], own["body_gyroscopic"].tobytes()  # the answer changes with these only
        if key != self._asked:
            self._asked, self._serves = key, self.formulas_wanted and serves(self.model)
        return self._serves

    def steps(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the displacements of some worlds' coordinates, up and down, (k, ncoordinates), controls in range."""
        ctrl = self.batch.arrays.rows["ctrl"]
        limits = (
            self.model.__dict__["actuator_ctrllimited"],
            self.batch.arrays.expanded.shared_or_own("actuator_ctrlrange", chosen),
        )
        # with one world they are unchanged until its controls or their limits change
        key = [a.tobytes() for a in (ctrl, *limits)] if len(ctrl) == 1 else None
        if key is None or key != self._stepped:
            self._stepped, self._steps = key, self.displacements(chosen, self.seeds.input.stop)
        return self._steps
