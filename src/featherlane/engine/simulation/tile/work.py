"""Runs the tiles of plans on all threads, within one bytecode of the calling thread (`team`).

After an interrupt (Ctrl-C) all tiles of a call are computed, or none.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, starmap

from featherlane.engine.simulation.tile.team import Team
from featherlane.engine.simulation.tile.transfer import Plan
from featherlane.engine.simulation.tile.uninterrupted import call_all, take_all

MOST_TILES = 64  # in a chunk
CHUNKS = 16  # per thread, so that all threads finish at about the same time
OWN = 0.75  # part of the chunks that a pinned thread takes from its own range of worlds


def work(parts: Sequence[tuple[Plan, int]], team: Team) -> None:
    """Runs all tiles of plans.  A thread that finds no more tiles of one plan continues with the next.

    Args:
        parts: plans that are ready (`Plan.begin`), each with its number of tiles.
        team: the threads.

    Raises:
        Exception: the first error of a user callback in plain Python.
    """
    ntile, apart = 0, bool(team.cpus)
    for plan, n in parts:
        ntile += n
        # an interrupt could be raised within user callbacks in plain Python, so these do not run in the main thread
        apart |= plan.workspaces[0].calls.calls_python
    is_compiled = isinstance(parts[0][0].run[0], functools.partial)  # False with bounds checks, too
    if not is_compiled or ntile == 0 or (min(team.nthread, ntile) == 1 and not apart):
        call_all([(plan.run[0], 0, 0, n) for plan, n in parts])
    else:
        _share(parts, ntile, team, apart)
    for plan, _ in parts:
        for workspace in plan.workspaces:
            workspace.calls.raise_errors()


def _share(parts: Sequence[tuple[Plan, int]], ntile: int, team: Team, apart: bool) -> None:
    """Distributes chunks of tiles over the threads, except for the caller's if `apart`.

    A pinned thread first takes chunks of the range of worlds whose rows it has placed in memory near its core.
    """
    size = max(1, min(MOST_TILES, ntile // (CHUNKS * team.nthread)))
    chunks = [[(k, min(k + size, n)) for k in range(0, n, size)] for _, n in parts]
    nthread = min(team.nthread, sum(map(len, chunks)))
    own = [_own_chunks(some, nthread if team.cpus else 0) for some in chunks]
    left = [deque([*some, *[None] * nthread]) for some in chunks]  # each thread takes one None, the end

    def run(thread: int) -> Iterator[None]:
        """Returns an iterator in C that takes chunks and runs them until none is left."""
        return chain.from_iterable(
            [
                starmap(functools.partial(plan.run[thread], thread), taken)
                for (plan, _), first, some in zip(parts, own, left, strict=True)
                for taken in (*first[thread : thread + 1], iter(some.popleft, None))
            ]
        )

    others = range(0 if apart else 1, nthread)
    team.run({k: functools.partial(take_all, run(k)) for k in others}, () if apart else run(0))


def _own_chunks(chunks: list[tuple[int, int]], nthread: int) -> list[list[tuple[int, int]]]:
    """Moves the first chunks of each thread's range out of a list, and returns them by thread."""
    n, own, left = len(chunks), [], []
    for k in range(nthread):
        first, end = n * k // nthread, n * (k + 1) // nthread
        middle = first + int(OWN * (end - first))
        own.append(chunks[first:middle])
        left += chunks[middle:end]
    if nthread:
        chunks[:] = left
    return own
