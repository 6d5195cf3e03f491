"""Pieces of calls under way: asked of workers at once, answered in the order in which they were asked.

A call that has nothing to tell posts its pieces and returns; one that asks for a result waits for what was posted
before.  A piece in which something goes wrong in one worker is undone in all of them, and so is what was asked after
it: worlds are at the same step when a call ends.

An exception at any bytecode (a second Ctrl-C, a signal handler that raises) takes back the pieces of the present call
that not all workers have answered.  `_unfinished` is set as long as that has to be done: at once, or by the next call
if another exception prevents it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from featherlane.distributed.edits import Fields, ModelEdits
from featherlane.distributed.interrupt import Held
from featherlane.distributed.node import Order, Report
from featherlane.distributed.request import Checkpoints, Piece, Size, Take
from featherlane.distributed.spread import Part
from featherlane.errors import CallError, ModelError, warn_of_bad_numbers
from featherlane.model.enums import Disable
from featherlane.model.model import Model
from featherlane.simulation.batch.runner import NAMED
from featherlane.simulation.tile.turn import Turn, hold

PIECE_SECONDS = 0.5  # how long a piece of a call takes, about
AT_ONCE = 20_000  # steps of worlds in a piece, as long as nobody knows how long they take
DEPTH = 2  # times as many are under way: while one piece travels, the next one is computed
MOST_PIECES = 16  # under way; short ones
CHUNK = 64 << 20  # bytes of a piece's inputs and recordings, at most, of each worker
INPUTS = 256 << 20  # bytes of inputs that are kept to be asked again, at most, of each worker
REQUESTS = 20_000  # as many of them
POSTED = 100  # orders that wait for the next request, at most
BEFORE = "an earlier call asked for this, and did not wait; what followed the piece that failed is undone, too"

T = TypeVar("T")


class Pieces:
    """Workers, and what is under way in them."""

    model: Model
    starts: np.ndarray
    is_remote: bool
    _workers: list[Any]
    _edits: ModelEdits
    _fields: Fields
    _turn: Turn
    _every: int  # steps from one checkpoint to the next
    _folder: str | None
    _name: str  # of files in the folder
    _under: deque[Piece]
    _call: int  # number of the present one, or the last
    _unfinished: int | None  # the first call of which pieces may have to be taken back
    _at_once: int  # steps of worlds that take PIECE_SECONDS, about
    _told: bool  # of bad numbers
    _bad: dict[int, tuple[tuple[int, ...], int]]  # by worker, as its reports have them

    def __init__(self, every: int, folder: str | None, name: str):
        own = self.__dict__
        own["_every"], own["_folder"], own["_name"] = every, folder, name
        own["_turn"], own["_under"], own["_call"], own["_unfinished"] = Turn("batch"), deque(), 0, None
        own["_told"], own["_bad"], own["_at_once"] = False, {}, AT_ONCE

    def _run(self, body: Callable[[Held], T]) -> T:
        """Runs a call, one at a time.

        Args:
            body: what the call does; its argument says whether a Ctrl-C has come.

        Raises:
            RuntimeError: the batch is closed; another call is under way.
        """
        if not self._workers:
            raise CallError("the batch is closed")
        return hold((self._turn,), self._in_turn, body)

    def _in_turn(self, body: Callable[[Held], Any]) -> Any:
        if not self.is_remote:  # a local batch has interrupts between its own pieces
            return self._whole(body, Held())
        with Held() as held:
            return self._whole(body, held)

    def _whole(self, body: Callable[[Held], T], held: Held) -> T:
        """A call to its end, or back to where its last complete piece ended."""
        own = self.__dict__
        self._recover()
        own["_call"] += 1
        own["_unfinished"] = self._call
        try:
            result = body(held)
        except BaseException:
            self._recover()
            raise
        own["_unfinished"] = None
        return result

    def _recover(self) -> None:
        """Takes back the requests of an unfinished call and of later ones; it can be interrupted and repeated."""
        call = self._unfinished
        if call is None:
            return
        if self.is_remote:
            for worker in self._workers:
                worker.undo(call)
        # edits of the model may have been among it
        self._edits.forget()
        self._fields.forget()
        own = self.__dict__
        own["_under"] = deque(piece for piece in self._under if piece.call < call and not piece.is_done)
        own["_unfinished"] = None

    # ---- asking ------------------------------------------------------------------------------------------------------
    def _issue(
        self,
        asked: Iterable[tuple[Part, Sequence[Order]]],
        changes: bool = True,
        take: Take | None = None,
        size: Size | None = None,
        stays: bool = False,
    ) -> None:
        """Ask workers, and go on.

        Args:
            asked: orders by worker.
            changes: do they change anything that lasts?
            take: what to do with the result of each.
            size: how large the piece is; None: too small to count.
            stays: results are wanted as references.
        """
        size = size or Size()
        self._make_room(size)
        piece = Piece(self._call, size, take)
        self._under.append(piece)
        for part, orders in asked:
            worker = self._workers[part.worker]
            piece.requests.append((part, worker.submit(piece, orders, changes, stays)))
            if self.is_remote:
                worker.steps += size.nstep
        self._keep_where_due()

    def _make_room(self, size: Size) -> None:
        """Wait until such a piece may be under way, too."""
        while self._under:
            sizes = [size, *(piece.size for piece in self._under)]
            steps, nbytes = sum(s.nstep * s.number for s in sizes), sum(s.nbytes for s in sizes)
            if len(sizes) <= MOST_PIECES and steps <= DEPTH * self._at_once and nbytes <= DEPTH * CHUNK:
                break
            self._collect_oldest()

    def _post(self, asked: Iterable[tuple[Part, Sequence[Order]]]) -> None:
        """Orders that go with the next ones, and cannot go wrong."""
        full = []
        for part, orders in asked:
            worker = self._workers[part.worker]
            if worker.post(orders, self._call) >= POSTED:
                full.append((part, [("nothing", ())]))
        if full:
            self._issue(full)

    def _collect_all(self) -> None:
        """Wait for all that is under way, but for checkpoints asked for last: they may come while others compute."""
        while not all(isinstance(piece, Checkpoints) for piece in self._under):
            self._collect_oldest()

    def _settle(self) -> None:
        """Have all done that was posted, and wait for it."""
        if self.is_remote:
            waiting = [k for k, worker in enumerate(self._workers) if worker.nposted]
            self._issue([(Part(k, None, slice(None)), [("nothing", ())]) for k in waiting])
        while self._under:
            self._collect_oldest()

    # ---- answers -----------------------------------------------------------------------------------------------------
    def _collect_oldest(self) -> None:
        """Wait for the answers to the piece that was asked first."""
        piece = self._under[0]
        try:
            answers = [
                (part, request, *self._workers[part.worker].collect(request)) for part, request in piece.requests
            ]
        except (RuntimeError, ModelError):  # those of `collect`; others come from signal handlers
            self.__dict__["_unfinished"] = piece.call
            raise
        self._check(piece, answers)
        for part, _, report, result in answers:
            if report.nbad:
                self._bad[part.worker] = report.bad, report.nbad
            if piece.take is not None:
                piece.take(part, result)
        piece.is_done = True
        self._under.popleft()
        for part, request, _, result in answers:
            worker = self._workers[part.worker]
            if isinstance(piece, Checkpoints):
                worker.kept(request, result, self._folder is not None)
            worker.answered(request)
        if piece.size.nstep:
            self._learn(piece.size.nstep * piece.size.number, max(report.seconds for _, _, report, _ in answers))

    def _check(self, piece: Piece, answers: list[tuple[Part, Any, Report, Any]]) -> None:
        """Raises the first error of a piece."""
        for part, _, report, _ in answers:
            if report.error is not None:
                self.__dict__["_unfinished"] = piece.call
                report.error.add_note(f"in the worker with the worlds from {self.starts[part.worker]} on")
                if piece.call != self._call:
                    report.error.add_note(BEFORE)
                raise report.error

    # ---- pieces of long calls ----------------------------------------------------------------------------------------
    def _steps_at_once(self, nstep: int, number: int, nbytes: int) -> int:
        """Steps of a piece."""
        if not self.is_remote:
            return nstep  # a local batch has pieces of its own
        share = max(1, number // len(self._workers))
        room = nstep if not nbytes else CHUNK // (nbytes * share)
        return max(1, min(nstep, self._at_once // number, room))

    def _learn(self, steps: int, seconds: float) -> None:
        """How many steps of worlds take PIECE_SECONDS."""
        # a piece that is far below what could be tells of the overhead alone
        if 2 * steps >= self._at_once or seconds > PIECE_SECONDS:
            self.__dict__["_at_once"] = max(1, int(steps * PIECE_SECONDS / max(seconds, 1e-9)))

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def _keep_where_due(self) -> None:
        """Ask workers for checkpoints that are due."""
        if not self.is_remote:
            return
        kept = [part.worker for piece in self._under if isinstance(piece, Checkpoints) for part, _ in piece.requests]
        piece = Checkpoints(self._call, Size())
        for k, worker in enumerate(self._workers):
            due = worker.steps >= self._every or worker.nbytes > INPUTS or worker.requests > REQUESTS
            if due and k not in kept:
                if not piece.requests:
                    self._under.append(piece)
                piece.requests.append((Part(k, None, slice(None)), worker.keep(piece, self._folder, self._name)))

    # ---- bad numbers -------------------------------------------------------------------------------------------------
    def _tell_of_bad(self) -> None:
        """Warn of worlds whose numbers turned bad, once."""
        found = self._bad
        if self._told or not found:
            return
        self.__dict__["_told"] = True
        number = sum(n for _, n in found.values())
        first = [int(self.starts[k]) + world for k, (worlds, _) in sorted(found.items()) for world in worlds][:NAMED]
        more = f" and {number - len(first)} more" * (number > len(first))
        who = f"world {first[0]}" if number == 1 else f"worlds {', '.join(map(str, first))}{more} each"
        warn_of_bad_numbers(who, not self.model.opt_disableflags & Disable.AUTORESET, "batch", 3)
