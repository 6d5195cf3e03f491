"""The tiles of a plan, run on all threads; an interrupt (Ctrl-C) ends the call, but no tile of it.

Python looks at signals between two instructions of its main thread.  To take a chunk of tiles and to run it is one
instruction here: `extend`, `starmap`, the queue's `popleft` and the compiled loop are all C.  So a chunk was run whole
or is still in the queue, and `finish` may be interrupted anywhere and called again.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, wait

from featherlane.simulation.tile.transfer import Plan

MOST_TILES = 64  # of a chunk
CHUNKS = 16  # for each thread, so that they end together


class Work:
    """Tiles 0 .. ntile - 1 of a plan that has begun.

    Args:
        plan: the plan.
        ntile: its tiles.
        nthread: threads, one of them the caller's.
        pool: gives the others.
    """

    __slots__ = ("_apart", "_done", "_left", "_number", "_others", "_plan", "_pool", "_single", "_to_start")

    def __init__(self, plan: Plan, ntile: int, nthread: int, pool: Callable[[], Executor]):
        self._plan = plan
        # plain Python that stages call is not interrupted in other threads, and could not tell anybody in this one
        self._apart = plan.workspaces[0].calls.calls_python
        if min(nthread, ntile) == 1 and not self._apart:
            self._single = iter(((0, 0, ntile),))
            return
        chunk = max(1, min(MOST_TILES, ntile // (CHUNKS * nthread)))
        self._single, self._pool = None, pool
        self._left: deque[tuple[int, int] | None] = deque((k, min(k + chunk, ntile)) for k in range(0, ntile, chunk))
        self._number = len(self._left)
        self._done: list[deque] = [deque() for _ in range(min(nthread, self._number))]
        self._to_start, self._others = iter(range(0 if self._apart else 1, len(self._done))), []

    def finish(self) -> None:
        """Run what is left, and wait for the other threads."""
        if self._single is not None:
            deque(itertools.starmap(self._plan.run[0], self._single), 0)
        else:
            self._finish_all()
        for workspace in self._plan.workspaces:
            workspace.calls.raise_errors()

    def _finish_all(self) -> None:
        try:
            for thread in self._to_start:
                self._others.append(self._pool().submit(self._run, thread))
            if not self._apart:
                self._run(0)
            for other in self._others:
                other.result()
        except Exception:
            wait(self._others)
            raise
        while sum(map(len, self._done)) < self._number:
            time.sleep(1e-4)  # for a thread that was started in the moment of an interrupt

    def _run(self, thread: int) -> None:
        """Take chunks and run them, as long as there are any."""
        left = self._left
        left.append(None)  # where this call ends
        run = functools.partial(self._plan.run[thread], thread)
        self._done[thread].extend(itertools.starmap(run, iter(left.popleft, None)))
