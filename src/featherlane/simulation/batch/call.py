"""Calls that step the worlds of one batch or of several batches, in pieces.

Each batch of a call has a `Share` in it.  All shares use the same threads.  A piece runs within one bytecode of the
calling thread (`tile.work`), so an interrupt (Ctrl-C) finds the worlds of all shares at the same step.  The Python code
around a piece only prepares it and changes no world.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.simulation.tile.turn import hold
from featherlane.simulation.tile.work import work
from featherlane.simulation.user.function import UserFunction

PIECE_SECONDS = 0.2  # how long an interrupt waits, about
AT_ONCE = 1000  # steps of worlds that run at once before anybody knows how long they take


class Share(NamedTuple):
    """What a call asks of a batch.

    Attributes:
        batch: the batch (`Running`).
        chosen: its worlds that move, by number.
        extra: transfers of the call, by kind; None: those of plain steps.
        control: the kernel that steps call.
    """

    batch: Any
    chosen: np.ndarray
    extra: Any
    control: UserFunction | None = None


def run(owner, nstep: int, shares: Sequence[Share]) -> None:
    """All worlds of the shares take nstep steps, or a forward pass where it is 0.

    Args:
        owner: whose call it is: remembers in `_at_once` how many steps of worlds take PIECE_SECONDS.
        nstep: steps.
        shares: of each batch, at least one.

    Raises:
        RuntimeError: another call of one of the batches is under way.
    """
    hold([share.batch._turn for share in shares], _run, owner, nstep, shares)


def _run(owner, nstep: int, shares: Sequence[Share]) -> None:
    """The call, while no other one works on the batches."""
    for share in shares:
        share.batch._ready()
    recorded = any(share.batch._recorder is not None for share in shares)
    number = sum(len(share.chosen) for share in shares)
    if nstep == 0 or (not recorded and nstep * number <= owner._at_once):
        _advance(nstep, shares)
    else:
        _advance_in_pieces(owner, nstep, shares, number)


def _advance_in_pieces(owner, nstep: int, shares: Sequence[Share], number: int) -> None:
    """The steps of a long call, or of one that is recorded."""
    done = 0
    while done < nstep:
        n = _piece(owner, nstep - done, shares, number)
        parts = [share._replace(extra=_part(share.extra, done, n, nstep)) for share in shares]
        recorded, start = [share for share in parts if share.batch._recorder is not None], time.perf_counter()
        for share in recorded:
            given, kernel = (share.extra or {}).get("control", []), share.control.function if share.control else None
            share.batch._recorder.before(share.batch, share.chosen, given, kernel)
        _advance(n, parts)
        for share in recorded:
            share.batch._recorder.after(share.batch, share.chosen, n)
        done += n
        seconds = time.perf_counter() - start
        owner.__dict__["_at_once"] = max(1, int(n * number * PIECE_SECONDS / max(seconds, 1e-9)))


def _piece(owner, nstep: int, shares: Sequence[Share], number: int) -> int:
    """How many of nstep steps worlds take at once."""
    room = [s.batch._recorder.piece(nstep, s.batch) for s in shares if s.batch._recorder is not None]
    return min(room) if room else min(nstep, max(1, owner._at_once // number))


def _part(extra, start: int, n: int, nstep: int):
    """The transfers of n steps of a call of nstep steps."""
    if extra is None or n == nstep:
        return extra
    per_step = {
        kind: [t._replace(array=t.array[:, start : start + n]) for t in extra.get(kind, ())]
        for kind in ("control", "record")
    }
    return extra | per_step


def _advance(nstep: int, shares: Sequence[Share]) -> None:
    """All worlds of a call take nstep steps, or a forward pass."""
    parts = []
    for share in shares:
        parts += share.batch._begin(nstep, share.chosen, share.extra, share.control)
    work(parts, shares[0].batch._team)
    for share in shares:
        share.batch._after(share.chosen)
