"""States of a rollout, all or some of them stored, from which its steps are differentiated.

States between two stored ones are recomputed on demand, bitwise identical.  If one state in sqrt(n) is stored, memory
for n steps grows with sqrt(n) and each step is computed twice.
Source: Griewank and Walther, Evaluating Derivatives (2008), ch. 12 (checkpoints; here of one level).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np

from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.arrays import EVOLVING, LASTING
from featherlane.engine.simulation.batch.batch import Batch

States = dict[str, np.ndarray]  # field -> (nworld, ...)


def worlds_like(batch: Batch, times: int, nthread: int, model: Model | None = None, chosen=None) -> Batch:
    """Returns a batch with `times` copies of each world of another one, consecutive, in its present state.

    Args:
        batch: the other batch.
        times: copies of each world.
        nthread: threads of the new batch.
        model: a copy of the batch's model, to use instead of it.
        chosen: indices of the worlds to copy; None: all.
    """
    chosen = np.arange(batch.nworld) if chosen is None else chosen
    made = Batch(model or batch.model, len(chosen) * times, nthread, dtype=batch.dtype, given_contacts=batch.ngiven)
    for name, rows in batch.arrays.rows.items():
        if name in LASTING or name == "ordered":
            getattr(made, name)
            made.arrays.rows[name][...] = np.repeat(rows[chosen], times, 0)
    for name, rows in batch.arrays.expanded.items():
        made.arrays.expand(name)[...] = np.repeat(rows[chosen], times, 0)
    return made


class Trajectory:
    """Holds a rollout of all worlds of a batch.

    Args:
        model: the batch's model.
        worlds: the worlds in their initial states; they are stepped to the last state.
        control: (nworld, nstep, nu) in the batch's dtype.
        interval: steps between stored states; 1: all are stored.

    Attributes:
        last: field -> (nworld, ...), the states after the last step.
        bad: (nworld,) whether a world was reset because its state became non-finite or out of range.
    """

    def __init__(self, model: Model, worlds: Batch, control: np.ndarray, interval: int):
        self.model, self.worlds, self.control, self.interval = model, worlds, control, interval
        self.fields = [name for name in EVOLVING if self.worlds.arrays.rows[name].size]
        self.kept: list[States] = [self._copy()]
        self._recorded: States | None = None
        nstep, before = control.shape[1], self.worlds.arrays.rows["nreset"].copy()
        if interval == 1:
            self._recorded = self._steps(0, nstep)
        else:
            for first in range(0, nstep, interval):
                if first:
                    self.kept.append(self._copy())
                self.worlds.rollout(min(interval, nstep - first), control[:, first : first + interval], ())
        self.last = self._copy()
        self.bad = (self.worlds.arrays.rows["nreset"] > before)[:, 0]

    def _copy(self) -> States:
        return {name: self.worlds.arrays.rows[name].copy() for name in self.fields}

    def _steps(self, first: int, last: int) -> States:
        """Returns the states before each step from the worlds' present states on: (nworld, last - first, ...)."""
        start = self._copy()
        out = self.worlds.rollout(last - first, self.control[:, first:last], self.fields)
        after = {name: a.reshape(*a.shape[:2], *start[name].shape[1:]) for name, a in out.items()}
        return {name: np.concatenate([start[name][:, None], a[:, :-1]], 1) for name, a in after.items()}

    def states(self) -> States:
        """Returns the states before each step, (nworld, nstep, ...); all of them must be stored."""
        assert self._recorded is not None
        return self._recorded

    def segments(self) -> Iterator[tuple[int, States]]:
        """Yields (number of the first step, states before each of its steps), from the last segment to the first."""
        nstep = self.control.shape[1]
        if self._recorded is not None:
            yield 0, self._recorded
            return
        for k in range(len(self.kept) - 1, -1, -1):
            for name, rows in self.kept[k].items():
                self.worlds.arrays.rows[name][...] = rows
            first = k * self.interval
            yield first, self._steps(first, min(first + self.interval, nstep))


def root_interval(nstep: int) -> int:
    """Returns the interval for which the fewest states are in memory."""
    return max(2, isqrt(nstep - 1) + 1)
