"""Observes worlds that another owner steps, without changing them.

A batch calls its watcher at the end of a call, in the calling thread, when no row is being written; the watcher copies
the drawn rows, at a limited rate.  A `Data`, and an idle batch, are read from the page's thread; a copy is discarded
if a call started during it.  The source is never written and never waits.
"""

from __future__ import annotations

import copy
import time
from itertools import pairwise

import numpy as np

from featherlane import Batch, Data, MixedBatch
from featherlane.apps.viewer.session import Session
from featherlane.apps.viewer.source import Source
from featherlane.extension import batch_of

RATE = 30.0  # most copies per second
MOST_BYTES = 4 << 20  # size of a copy of all worlds, at most; above it, only the drawn worlds are copied
IDLE = 0.2  # time without a call after which a batch is read from the page's thread [s]
TRIES = 20  # attempts to read without a concurrent write
MODEL_SECONDS = 0.5  # interval between checks of the model [s]


class Watch(Source):
    """The newest available copy of worlds; of a `MixedBatch`, those of one group, `choice`."""

    batch: Batch  # copies for drawing, with a copy of the model

    def __init__(self, worlds: Batch | MixedBatch | Data, choice: int = 0):
        self.worlds, self.choice = worlds, choice
        self.starts: list[int] = worlds.starts.tolist() if isinstance(worlds, MixedBatch) else [0]
        spans = enumerate(pairwise(self.starts))
        self.choices = tuple(f"{k}: worlds {first} to {last - 1}" for k, (first, last) in spans)
        source = self.source
        model, n = copy.deepcopy(source.model), source.nworld
        self.batch = Batch(model, n, nthread=1, dtype=source.dtype, given_contacts=source.ngiven)
        self.batch.mute()
        self.drawn = np.arange(self.nworld)  # if not all worlds fit, these are copied
        self.rate = RATE  # most copies per second
        self._latest: tuple[np.ndarray | None, dict[str, np.ndarray]] | None = None
        self._next = self._called = self._model_seen = 0.0
        self._look()
        self.tick()
        self._next = 0.0

    @property
    def source(self) -> Batch:
        """Returns the observed worlds."""
        return self.worlds.groups[self.choice] if isinstance(self.worlds, MixedBatch) else batch_of(self.worlds)

    def choose(self, choice: int) -> Watch:
        return Watch(self.worlds, choice)

    def description(self, world: int) -> str:
        here = super().description(world)
        if self.choices:
            here += f" (world {self.starts[self.choice] + world} of {self.starts[-1]} of all models)"
        return f"{here}, live"

    # ---- start and stop ----------------------------------------------------------------------------------------------
    def attach(self) -> None:
        """Starts observing: the batch calls the watcher from now on."""
        self.source.watch(self.copy_now)

    def detach(self) -> None:
        """Stops observing: the batch no longer calls the watcher."""
        self.source.watch(None)

    def whole(self, seconds: float = 1.0) -> None:
        """Copies all worlds, drawn or not, into `batch`; waits for a copy for at most `seconds`."""
        drawn, self.drawn = self.drawn, np.arange(self.nworld)
        self._latest, end = None, time.perf_counter() + seconds
        while not self.tick() and time.perf_counter() < end:
            time.sleep(1e-3)
        self.drawn = drawn

    def session(self) -> Session:
        """Returns a session that continues from the present state."""
        self.whole()
        return Session.from_batch(self.batch)

    def tick(self, now: float | None = None) -> bool:
        """Moves the newest copy into `batch`, and returns whether there was a new one."""
        now = time.perf_counter() if now is None else now
        if self._latest is None and now - self._called > IDLE and now >= self._next:
            self._look()
        latest, self._latest = self._latest, None
        if latest is None:
            return False
        ids, rows = latest
        at = slice(None) if ids is None else ids
        for name, value in rows.items():
            self.batch.row_memory(name)[at] = value
        if now - self._model_seen > MODEL_SECONDS:
            self._model_seen = now
            self._take_model()
        return True

    # ---- copies ------------------------------------------------------------------------------------------------------
    def copy_now(self) -> None:
        """Copies rows after a call, in the thread of the batch's user, unless the last copy is too recent."""
        now = self._called = time.perf_counter()
        if now >= self._next:
            self._next = now + 1.0 / self.rate
            self._latest = self._copied()

    def _look(self) -> None:
        """Copies rows in the page's thread while no call runs, or keeps the best of several attempts."""
        self._next = time.perf_counter() + 1.0 / self.rate
        seen = lambda: (self.source.is_busy, self.source.rows["time"].tobytes())  # noqa: E731
        for _ in range(TRIES):
            before, copied = seen(), self._copied()
            if before == seen() and not before[0]:
                self._latest = copied
                return
            time.sleep(1e-3)

    def _copied(self) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
        """Returns the copied worlds, None for all, and their rows."""
        rows = dict(self.source.rows)
        if sum(a.nbytes for a in rows.values()) <= MOST_BYTES:
            return None, {name: a.copy() for name, a in rows.items()}
        drawn = self.drawn
        return drawn, {name: a[drawn] for name, a in rows.items()}

    def _take_model(self) -> None:
        """Copies edited model fields, and model fields that differ between worlds."""
        own, theirs = self.model, self.source.model
        sizes = own.size_values()
        edited = {name: value for name, value in theirs.size_values().items() if sizes[name] != value}
        edited |= {name: rows for name, rows in theirs.rows.items() if not np.array_equal(rows, own.rows[name])}
        own.take_constants(edited)
        for name, rows in tuple(self.source.expanded_fields.items()):
            if not np.array_equal(self.batch.expanded_fields.get(name, ()), rows):
                self.batch.expand(name)[...] = rows
