"""The tiles of plans, run on all threads; an interrupt (Ctrl-C) ends the call, but no tile of it.

Python looks at signals between two instructions of its main thread.  To take a chunk of tiles and to run it is one
instruction here: `extend`, `chain`, `starmap`, the queue's `popleft` and the compiled loop are all C.  So a chunk was
run whole or is still in its queue, and `finish` may be interrupted anywhere and called again.
"""

from __future__ import annotations

import functools
import itertools
import operator
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, wait

from featherlane.simulation.tile.transfer import Plan

MOST_TILES = 64  # of a chunk
CHUNKS = 16  # for each thread, so that they end together


class Work:
    """The tiles of plans that have begun; a thread that finds no more of one goes on with the next.

    Args:
        parts: plans, and how many tiles each has.
        nthread: threads, one of them the caller's.
        pool: gives the others.
        homes: numbers of workspaces that threads made, by the threads' identities.
    """

    __slots__ = (
        *("_apart", "_done", "_free", "_homes", "_left", "_number", "_others", "_plans", "_pool", "_single"),
        "_to_start",
    )

    def __init__(
        self,
        parts: Sequence[tuple[Plan, int]],
        nthread: int,
        pool: Callable[[], Executor],
        homes: Mapping[int, int] | None = None,
    ):
        self._plans, ntile = [plan for plan, _ in parts], sum(n for _, n in parts)
        # plain Python that stages call is not interrupted in other threads, and could not tell anybody in this one
        self._apart = any(plan.workspaces[0].calls.calls_python for plan in self._plans)
        if min(nthread, ntile) == 1 and not self._apart:
            self._single = iter([(plan.run[0], 0, 0, n) for plan, n in parts])
            return
        chunk = max(1, min(MOST_TILES, ntile // (CHUNKS * nthread)))
        self._single, self._pool = None, pool
        self._left: list[deque[tuple[int, int] | None]] = [
            deque((k, min(k + chunk, n)) for k in range(0, n, chunk)) for _, n in parts
        ]
        self._number = sum(map(len, self._left))
        self._done: list[deque] = [deque() for _ in range(min(nthread, self._number))]
        numbers = range(0 if self._apart else 1, len(self._done))
        self._to_start, self._others = iter(numbers), []
        self._free, self._homes = {number: number for number in numbers}, homes or {}

    def finish(self) -> None:
        """Run what is left, and wait for the other threads."""
        if self._single is not None:
            deque(itertools.starmap(operator.call, self._single), 0)
        else:
            self._finish_all()
        for plan in self._plans:
            for workspace in plan.workspaces:
                workspace.calls.raise_errors()

    def _finish_all(self) -> None:
        try:
            for _ in self._to_start:
                self._others.append(self._pool().submit(self._run_another))
            if not self._apart:
                self._run(0)
            for other in self._others:
                other.result()
        except Exception:
            wait(self._others)
            raise
        while sum(map(len, self._done)) < self._number:
            time.sleep(1e-4)  # for a thread that was started in the moment of an interrupt

    def _run_another(self) -> None:
        """What a thread of the pool does: with its own number, whose memory is near, or else with any that is free."""
        number = self._free.pop(self._homes.get(threading.get_ident(), -1), None)
        self._run(self._free.popitem()[1] if number is None else number)

    def _run(self, thread: int) -> None:
        """Take chunks and run them, as long as there are any."""
        ways = []
        for plan, left in zip(self._plans, self._left, strict=True):
            left.append(None)  # where this call ends
            run = functools.partial(plan.run[thread], thread)
            ways.append(itertools.starmap(run, iter(left.popleft, None)))
        self._done[thread].extend(itertools.chain.from_iterable(ways))
