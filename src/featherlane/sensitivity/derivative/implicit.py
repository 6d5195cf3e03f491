"""Worlds whose steps are differentiated by the implicit function theorem: which go through which passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.dynamics.inertia.articulated import uses_articulated
from featherlane.model.model import Model
from featherlane.sensitivity.derivative.columns import FITS
from featherlane.sensitivity.derivative.formulas import (
    BY_WORLD,
    LOOKED_AT,
    acts_at_once,
    leaves_rest,
    rest_of_worlds,
    serves,
)
from featherlane.sensitivity.derivative.implicit_passes import DifferentiatedWorlds, Passes


def formulas_alone(model: Model) -> bool:
    """Do formulas alone serve the model, whatever its coordinates move by?"""
    asks = model.na > 0 or not acts_at_once(model) or leaves_rest(model, {})
    return serves(model, {}) and not asks and not uses_articulated(model)


class ImplicitWorlds(DifferentiatedWorlds):
    """The worlds of a data or a batch, and their derivatives; the arguments are those of `DifferentiatedWorlds`."""

    _looked_at: Any = None

    def passes(self, width: int, rest: bool) -> Passes:
        """Those through tiles of that width, of worlds with or without forces that have no formulas."""
        return self.kept((width, rest, self.by_formulas), lambda: Passes(self, width, rest))

    def groups(self) -> list[tuple[bool, np.ndarray]]:
        """Worlds that have forces without formulas, and worlds that have none; as their numbers are now."""
        model, own = self.model, self.batch.arrays.expanded
        if own.keys().isdisjoint(BY_WORLD):
            # what was found holds until these numbers change
            key = [model.revision, *(getattr(model, name).tobytes() for name in LOOKED_AT)]
            if key != self._looked_at:
                self._looked_at, self._rest = key, leaves_rest(model, {})
            return [(self._rest, self.every)]
        rest = rest_of_worlds(model, own, len(self.every))
        return [(kind, self.every[rest == kind]) for kind in (False, True) if (rest == kind).any()]

    def accelerations(self) -> np.ndarray:
        """(nworld, nv) those of forward dynamics, of worlds that fit into a tile at all."""
        (rest, _), *_ = self.groups()
        todo = self.every
        for width in dict.fromkeys((self.width, 1)):
            passes = self.passes(width, rest)
            self.runner.prepare(width)
            for first in range(0, len(todo), passes.each):
                chosen = todo[first : first + passes.each]
                passes.run_base(chosen)
            todo = todo[~(self.based[todo, 0, FITS] > 0.0)]
            if not len(todo):
                break
        return self.qacc

    def rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All worlds, pass by pass, those that do not fit into a tile together one by one.

        Returns:
            Rates of the next state (nworld, n, 2 nv + na), of the acceleration (nworld, n or 0, nv), distances to the
            nearest switch (nworld,), and the numbers of worlds that are left over.
        """
        state = acceleration = np.empty(0)
        nearest, over, nworld = np.empty(self.batch.nworld), [], self.batch.nworld
        for rest, todo in self.groups():
            for width in dict.fromkeys((self.width, 1)):
                passes, left = self.passes(width, rest), []
                for first in range(0, len(todo), passes.each):
                    chosen = todo[first : first + passes.each]
                    rates = passes.run(chosen)
                    if rates.is_kept and len(chosen) == nworld:
                        return rates.state, rates.acceleration, rates.nearest, self.every[:0]
                    if not state.size:
                        state = np.empty((nworld, *rates.state.shape[1:]))
                        acceleration = np.empty((nworld, *rates.acceleration.shape[1:]))
                    state[chosen], nearest[chosen] = rates.state, rates.nearest
                    acceleration[chosen] = rates.acceleration
                    left.append(chosen[~rates.fits])
                todo = np.concatenate(left)
                if not len(todo):
                    break
            over.append(todo)
        return state, acceleration, nearest, np.concatenate(over)
