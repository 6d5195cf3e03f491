"""The tiles of plans, run on all threads in one instruction of the caller's: see `team`.

An interrupt (Ctrl-C) finds all tiles of a call run, or none.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, starmap

from featherlane.simulation.tile.team import Team
from featherlane.simulation.tile.transfer import Plan
from featherlane.simulation.tile.uninterrupted import call_all, take_all

MOST_TILES = 64  # of a chunk
CHUNKS = 16  # for each thread, so that they end together


def work(parts: Sequence[tuple[Plan, int]], team: Team) -> None:
    """Run all tiles of plans that have begun; a thread that finds no more of one plan goes on with the next.

    Args:
        parts: plans, and how many tiles each has.
        team: the threads.

    Raises:
        Exception: the first error of plain Python that stages call.
    """
    plans, ntile = [plan for plan, _ in parts], sum(n for _, n in parts)
    # signals interrupt the main thread: plain Python that stages call runs in other threads
    apart = any(plan.workspaces[0].calls.calls_python for plan in plans)
    is_compiled = isinstance(plans[0].run[0], functools.partial)  # and not checked, which Python does after each call
    if not is_compiled or ntile == 0 or (min(team.nthread, ntile) == 1 and not apart):
        call_all([(plan.run[0], 0, 0, n) for plan, n in parts])
    else:
        _share(parts, ntile, team, apart)
    for plan in plans:
        for workspace in plan.workspaces:
            workspace.calls.raise_errors()


def _share(parts: Sequence[tuple[Plan, int]], ntile: int, team: Team, apart: bool) -> None:
    """Chunks of tiles to the threads; apart: none to the caller's."""
    size = max(1, min(MOST_TILES, ntile // (CHUNKS * team.nthread)))
    chunks = [[(k, min(k + size, n)) for k in range(0, n, size)] for _, n in parts]
    nthread = min(team.nthread, sum(map(len, chunks)))
    left = [deque([*some, *[None] * nthread]) for some in chunks]  # each thread takes one None, where its plan ends

    def run(thread: int) -> Iterator[None]:
        """Take chunks and run them, as long as there are any: all of it in C."""
        return chain.from_iterable(
            [
                starmap(functools.partial(plan.run[thread], thread), iter(some.popleft, None))
                for (plan, _), some in zip(parts, left, strict=True)
            ]
        )

    others = range(0 if apart else 1, nthread)
    team.run({k: functools.partial(take_all, run(k)) for k in others}, () if apart else run(0))
