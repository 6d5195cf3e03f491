"""Runs an integration: attempts steps of all worlds that have not ended, until none is left.

The rows of the worlds always hold their last accepted states.  They change within one bytecode, so after an interrupt
(Ctrl-C) each world is at its last accepted step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from featherlane.engine.lanes import Kernel
from featherlane.engine.simulation.batch.arrays import STATE
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.world.recordings import recordings
from featherlane.tools.integration.callbacks import Callbacks, Function
from featherlane.tools.integration.events import EventSearch
from featherlane.tools.integration.result import Integration, IntegrationStatus
from featherlane.tools.integration.source import Source, copy_state
from featherlane.tools.integration.step_size import StepBounds, StepSizes
from featherlane.tools.integration.trial import Trial


class Request(NamedTuple):
    """The checked arguments of an integration of n worlds.

    Attributes:
        until: (n,) end times [s].
        times: (k,) requested times [s], ascending.
        record: names of the recorded fields.
        control: a kernel or a function that sets controls; None: they are constant.
        event: the event function, or None.
        direction: sign changes that are events: 1 increasing, -1 decreasing, 0 both.
        bounds: bounds of the steps.
        most: largest number of attempts of a world.
        velocity_time: weight of velocity errors [s].
    """

    until: np.ndarray
    times: np.ndarray
    record: list[str]
    control: Kernel | Function | None
    event: Function | None
    direction: int
    bounds: StepBounds
    most: int
    velocity_time: float


class Run:
    """Holds the progress of all worlds.

    Args:
        source: the worlds.
        request: the arguments.
    """

    def __init__(self, source: Source, request: Request):
        n, k, control = source.nworld, len(request.times), request.control
        self.source, self.request, self.n = source, request, n
        kernel = control if isinstance(control, Kernel) else None
        self.control: Function | None = None if isinstance(control, Kernel) else control
        self.trial = Trial(source, request.bounds.order, request.velocity_time, kernel)
        self.sizes = StepSizes(request.bounds, self.trial.step[:n].copy())
        dims = lambda name: DATA[name].dims(source.sizes)  # noqa: E731
        self.recorded = recordings(request.record, (n, k), None, dims, source.dtype)
        for rows in self.recorded.values():
            rows[...] = np.nan
        self.derived = [name for name in request.record if name not in STATE]
        self.callbacks, self.search = Callbacks(source), None
        self.time = source.rows["time"][:, 0]
        self.stale = np.full(n, self.control is not None)  # the controls are not those of the last accepted state
        self.place = np.zeros(n, int)  # the next requested time
        self.status = np.full(n, -1)
        self.accepted, self.rejected, self.forced = np.zeros((3, n), int)
        self.smallest, self.largest, self.error = np.full(n, np.inf), np.zeros(n), np.zeros(n)

    def go(self) -> None:
        """Integrates all worlds."""
        every = np.arange(self.n)
        self._record(every)
        if self.request.event is not None:
            value = self.callbacks.event(self.request.event, every, self.source.rows, every)
            self.search = EventSearch(value, self.request.direction)
        self._end(every)
        while (ids := np.flatnonzero(self.status < 0)).size:
            self._iterate(ids)
        self._set_controls(every)

    def result(self) -> Integration:
        """Returns the result, in the form for these worlds."""
        shown = self.source.shown
        return Integration(
            time=shown(self.time.copy()),
            status=shown(self.status),
            accepted=shown(self.accepted),
            rejected=shown(self.rejected),
            forced=shown(self.forced),
            evaluations=shown(self.trial.evaluations * (self.accepted + self.rejected)),
            smallest_step=shown(self.smallest),
            largest_step=shown(self.largest),
            error=shown(self.error),
            times=self.request.times,
            recorded={name: shown(rows) for name, rows in self.recorded.items()},
        )

    # ---- steps -------------------------------------------------------------------------------------------------------
    def _iterate(self, ids: np.ndarray) -> None:
        """Attempts one step of each of these worlds."""
        time, target = self.time[ids], self._target(ids)
        floor = self.sizes.floor(time)
        h, last = self.sizes.attempted(ids, time, target)
        if self.search is not None:
            h = self.search.attempted(ids, h, floor)
            last &= time + h >= target
        self._set_controls(ids)
        estimate = self.trial.attempt(ids, h, self._set_trial_controls if self.control is not None else None)
        error = estimate.norm
        good, forced = self.sizes.judge(ids, time, h, error)
        inside = np.zeros(len(ids), bool) if self.search is None else self.search.bracketing[ids]
        usable = good | forced | (inside & np.isfinite(error))  # inside: a part of a step that met the accuracy
        self.status[ids[~usable & (inside | (h <= floor))]] = IntegrationStatus.NON_FINITE
        self.trial.extrapolate(ids, estimate, good)
        self.trial.rows["time"][self.n + ids, 0] = np.where(last, target, time + h)
        taken, ends = self._events(ids, h, usable, floor)
        self._accept(ids, taken, h)
        kept = taken & good
        self.error[ids[kept]] = np.maximum(self.error[ids[kept]], error[kept])
        self.forced[ids[taken & forced]] += 1
        self._record(ids[taken])
        self._end(ids)
        self.status[ids[ends]] = IntegrationStatus.EVENT

    def _target(self, ids: np.ndarray) -> np.ndarray:
        """Returns the times at which the worlds' next steps have to end at the latest [s]."""
        following = np.append(self.request.times, np.inf)[self.place[ids]]
        return np.minimum(following, self.request.until[ids])

    def _accept(self, ids: np.ndarray, taken: np.ndarray, h: np.ndarray) -> None:
        """Moves worlds to the ends of their steps."""
        at, h = ids[taken], h[taken]
        copy_state(self.source, at, self.trial.rows, self.n + at)
        self.accepted[at] += 1
        self.rejected[ids[~taken]] += 1
        self.smallest[at], self.largest[at] = np.minimum(self.smallest[at], h), np.maximum(self.largest[at], h)
        self.stale[at] = self.control is not None

    def _end(self, ids: np.ndarray) -> None:
        """Ends the worlds that are at their end time, or have used all their attempts."""
        there = self.time[ids] >= self.request.until[ids]
        status = np.where(self.forced[ids] > 0, IntegrationStatus.FORCED, IntegrationStatus.REACHED)
        spent = self.accepted[ids] + self.rejected[ids] >= self.request.most
        status = np.where(there, status, np.where(spent, IntegrationStatus.STEP_LIMIT, -1))
        self.status[ids] = np.where(self.status[ids] < 0, status, self.status[ids])

    # ---- outputs and callbacks ---------------------------------------------------------------------------------------
    def _record(self, ids: np.ndarray) -> None:
        """Records the worlds that are at their next requested time."""
        following = np.append(self.request.times, np.nan)[self.place[ids]]
        at = ids[self.time[ids] == following]
        if not at.size:
            return
        if self.derived:
            self._set_controls(at)
        derived = self.callbacks.derived(self.derived, at) if self.derived else {}
        for name, rows in self.recorded.items():
            values = derived[name] if name in derived else self.source.row(name)[at]
            rows[at, self.place[at]] = values.reshape(len(at), *rows.shape[2:])
        self.place[at] += 1

    def _controls(self, ids: np.ndarray, rows: Mapping[str, np.ndarray], place: np.ndarray) -> np.ndarray:
        """Returns the control function's values for worlds in the state of these rows, (k, nu)."""
        assert self.control is not None
        return self.callbacks.controls(self.control, ids, rows, place, int(self.accepted.max()))

    def _set_controls(self, ids: np.ndarray) -> None:
        """Sets the controls of worlds in their last accepted state, if these do not belong to it yet."""
        ids = ids[self.stale[ids]]
        if ids.size:
            self.source.row("ctrl")[ids] = self._controls(ids, self.source.rows, ids)
            self.stale[ids] = False

    def _set_trial_controls(self, halves: np.ndarray) -> None:
        """Sets the controls of the second half steps."""
        self.trial.rows["ctrl"][halves] = self._controls(halves - self.n, self.trial.rows, halves)

    def _events(
        self, ids: np.ndarray, h: np.ndarray, taken: np.ndarray, floor: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns which of the taken steps are accepted, and which of them end at an event."""
        ends, event = np.zeros(len(ids), bool), self.request.event
        if event is not None and self.search is not None and taken.any():
            at, place = ids[taken], np.flatnonzero(taken)
            value = self.callbacks.event(event, at, self.trial.rows, self.n + at)
            taken = taken.copy()
            taken[place], ends[place] = self.search.judge(at, h[place], value, floor[place])
        return taken, ends


def integrated(source: Source, request: Request) -> Integration:
    """Integrates worlds, and returns the result."""
    run = Run(source, request)
    run.go()
    return run.result()
