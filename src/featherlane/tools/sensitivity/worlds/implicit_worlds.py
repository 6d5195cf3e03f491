"""Worlds whose steps are differentiated by the implicit function theorem; passes.py has the passes through tiles."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.world.data import Data
from featherlane.tools.sensitivity.columns.system import Stages
from featherlane.tools.sensitivity.rates.coordinates import Seeds
from featherlane.tools.sensitivity.rates.records import FITS
from featherlane.tools.sensitivity.systems.served import (
    DAMPING,
    FLUID,
    differences_lag,
    lags_of_worlds,
    noslip_capacity,
    serves,
)
from featherlane.tools.sensitivity.worlds.displaced_worlds import OwnWorlds
from featherlane.tools.sensitivity.worlds.passes import Passes


class ImplicitWorlds(OwnWorlds):
    """Holds the worlds of a `Data` or a `Batch`, and the derivatives of their steps.

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
        super().__init__(model, source, 2 * Seeds.of_model(model).input.stop, nthread, disabled)
        self.stages, self.torques, self.formulas_wanted, self.parameters = stages, torques, by_formulas, parameters
        self.qacc, self.qacc_step = np.zeros((2, self.batch.nworld, model.nv))
        self.based, self.every = np.zeros((self.batch.nworld, 1, 3)), np.arange(self.batch.nworld)

    @property
    def by_formulas(self) -> bool:
        """Returns whether formulas are requested and apply to the model in its present state."""
        # the answer changes with these bytes and the revision only
        key = self.model.__dict__["body_gyroscopic"].tobytes()
        return self.kept(key, lambda: self.formulas_wanted and serves(self.model))

    def passes(self, width: int, lags: bool) -> Passes:
        """Returns the passes through tiles of that width; lags: for worlds whose correction p is differenced."""
        return self.kept((width, lags, self.by_formulas), lambda: Passes(self, width, lags))

    def groups(self) -> list[tuple[bool, np.ndarray]]:
        """Groups the worlds by whether their correction p is differenced, for their present parameters."""
        model, own, names = self.model, self.batch.arrays.expanded, (*FLUID, *DAMPING)
        if own.keys().isdisjoint(names):
            key = tuple(getattr(model, name).tobytes() for name in names)
            return [(self.kept(key, lambda: differences_lag(model)), self.every)]
        lags = lags_of_worlds(model, own, len(self.every))
        return [(kind, self.every[lags == kind]) for kind in (False, True) if (lags == kind).any()]

    def sizes(self, width: int, lags: bool, ncol: int) -> dict[str, int]:
        """Returns sizes of the record of a pass by formulas, through tiles of a width."""
        return {
            "differences_p": int(lags),
            "rate_steps": int(not self.torques),
            "nslipmax": noslip_capacity(self.model),
        }

    def accelerations(self) -> np.ndarray:
        """Returns (nworld, nv) of forward dynamics, for the worlds that fit into a tile."""
        (lags, _), *_ = self.groups()

        def run(chosen: np.ndarray, width: int) -> np.ndarray:
            self.passes(width, lags).run_base(chosen)
            return chosen[~(self.based[chosen, 0, FITS] > 0.0)]

        self.narrowing(self.every, self.passes(self.width, lags).each, run)
        return self.qacc

    def rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Computes the rates of all worlds, pass by pass; worlds that do not fit into a tile together run one by one.

        Returns:
            Rates of the next state (nworld, n, 2 nv + na), of the acceleration (nworld, n or 0, nv), distances to the
            nearest switch (nworld,), and the indices of the remaining worlds.
        """
        found: list[np.ndarray] = []
        groups = self.groups()
        over = [self.collect(found, todo, self.passes(self.width, lags).each, partial(self._run, lags))
                for lags, todo in groups]  # fmt: skip
        state, acceleration, nearest = found
        return state, acceleration, nearest, np.concatenate(over)

    def _run(self, lags: bool, chosen: np.ndarray, width: int) -> tuple[np.ndarray, ...]:
        return self.passes(width, lags).run(chosen)[:4]
