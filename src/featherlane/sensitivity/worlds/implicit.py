"""Worlds whose steps are differentiated by the implicit function theorem, and the passes that each world takes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from featherlane.sensitivity.rates.records import FITS
from featherlane.sensitivity.systems.served import DAMPING, FLUID, differences_lag, lags_of_worlds
from featherlane.sensitivity.worlds.differentiated_worlds import DifferentiatedWorlds
from featherlane.sensitivity.worlds.implicit_passes import Passes


class ImplicitWorlds(DifferentiatedWorlds):
    """Holds worlds of a `Data` or a `Batch` and their derivatives; arguments as for `DifferentiatedWorlds`."""

    _looked_at: Any = None

    def passes(self, width: int, lag: bool) -> Passes:
        """Returns the passes through tiles of that width; lag: for worlds whose correction p is differenced."""
        return self.kept((width, lag, self.by_formulas), lambda: Passes(self, width, lag))

    def groups(self) -> list[tuple[bool, np.ndarray]]:
        """Groups the worlds by whether their correction p is differenced, for their present parameters."""
        model, own = self.model, self.batch.arrays.expanded
        if own.keys().isdisjoint((*FLUID, *DAMPING)):
            # the result is valid until these parameters change
            key = [model.revision, *(getattr(model, name).tobytes() for name in (*FLUID, *DAMPING))]
            if key != self._looked_at:
                self._looked_at, self._lag = key, differences_lag(model)
            return [(self._lag, self.every)]
        lags = lags_of_worlds(model, own, len(self.every))
        return [(kind, self.every[lags == kind]) for kind in (False, True) if (lags == kind).any()]

    def accelerations(self) -> np.ndarray:
        """Returns (nworld, nv) of forward dynamics, for the worlds that fit into a tile."""
        (lag, _), *_ = self.groups()

        def run(chosen: np.ndarray, width: int) -> np.ndarray:
            self.passes(width, lag).run_base(chosen)
            return chosen[~(self.based[chosen, 0, FITS] > 0.0)]

        self.narrowing(self.every, self.passes(self.width, lag).each, run)
        return self.qacc

    def rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Computes the rates of all worlds, pass by pass; worlds that do not fit into a tile together run one by one.

        Returns:
            Rates of the next state (nworld, n, 2 nv + na), of the acceleration (nworld, n or 0, nv), distances to the
            nearest switch (nworld,), and the indices of the remaining worlds.
        """
        nworld, found = self.batch.nworld, []

        def run(wide: Passes, chosen: np.ndarray, width: int) -> np.ndarray:
            passes = wide if wide.width == width else self.passes(width, wide.lags)
            rates = passes.run(chosen)
            parts = rates.state, rates.acceleration, rates.nearest
            if rates.is_kept and len(chosen) == nworld:
                found[:] = parts
                return chosen[:0]
            found[:] = found or [np.empty((nworld, *a.shape[1:])) for a in parts]
            for total, a in zip(found, parts, strict=True):
                total[chosen] = a
            return chosen[~rates.fits]

        over = []
        for lag, todo in self.groups():
            wide = self.passes(self.width, lag)
            over.append(self.narrowing(todo, wide.each, partial(run, wide)))
        state, acceleration, nearest = found
        return state, acceleration, nearest, over[0] if len(over) == 1 else np.concatenate(over)
