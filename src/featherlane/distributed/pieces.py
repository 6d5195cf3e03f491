"""Pieces of calls under way: sent to all workers at once, and collected oldest first.

A call without a result sends its pieces and returns; a call with a result waits for all earlier pieces.  If a worker
fails in a piece, the piece and all later requests are undone in all workers, so that all worlds are at the same step
when a call ends.

An exception at any bytecode (a second Ctrl-C, a signal handler that raises) undoes the pieces of the present call that
not all workers have completed.  `_unfinished` is set while this is pending: it is done at once, or by the next call if
another exception prevents it.
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
from featherlane.distributed.world_assignment import Part
from featherlane.errors import CallError, ModelError, warn_of_full, warn_of_non_finite
from featherlane.model.enums import Disable
from featherlane.model.model import Model
from featherlane.simulation.batch.runner import NAMED
from featherlane.simulation.tile.call_lock import Turn, hold
from featherlane.simulation.tile.capacity import capacities

PIECE_SECONDS = 0.5  # approximate duration of a piece
AT_ONCE = 20_000  # steps of worlds in a piece until their duration is measured
DEPTH = 2  # multiple of a piece's steps under way: while one piece is in transit, the next one is computed
MOST_PIECES = 16  # most short pieces under way
CHUNK = 64 << 20  # largest size of a piece's inputs and recordings per worker [bytes]
INPUTS = 256 << 20  # largest size of inputs that are kept for repetition, per worker [bytes]
REQUESTS = 20_000  # largest number of requests that are kept
POSTED = 100  # most orders that wait for the next request
BEFORE = (
    "an earlier call, which returned before its steps were done, caused this error; all later steps are undone, too"
)

T = TypeVar("T")


class Pieces:
    """The workers of a batch, and the pieces under way."""

    model: Model
    starts: np.ndarray
    is_remote: bool
    _workers: list[Any]
    _edits: ModelEdits
    _fields: Fields
    _turn: Turn
    _every: int  # number of steps between checkpoints
    _folder: str | None
    _name: str  # base name of checkpoint files
    _under: deque[Piece]
    _call: int  # number of the present or last call
    _unfinished: int | None  # first call with pieces that may have to be undone
    _at_once: int  # approximate number of world steps in PIECE_SECONDS
    _warned: set[str]  # the attributes of a report about which a warning was emitted
    _counted: dict[str, dict[int, tuple[tuple[int, ...], int]]]  # worlds by attribute and worker, as in its reports

    def __init__(self, every: int, folder: str | None, name: str):
        own = self.__dict__
        own["_every"], own["_folder"], own["_name"] = every, folder, name
        own["_turn"], own["_under"], own["_call"], own["_unfinished"] = Turn("batch"), deque(), 0, None
        own["_warned"], own["_counted"], own["_at_once"] = set(), {"bad": {}, "full": {}}, AT_ONCE

    def _run(self, body: Callable[[Held], T]) -> T:
        """Runs a call; only one call can run at a time.

        Args:
            body: function of the call; its argument reports whether a Ctrl-C has come.

        Raises:
            RuntimeError: the batch is closed, or another call is running.
        """
        if not self._workers:
            raise CallError("the batch is closed")
        return hold((self._turn,), self._in_turn, body)

    def _in_turn(self, body: Callable[[Held], Any]) -> Any:
        if not self.is_remote:  # a local batch handles interrupts between its pieces
            return self._whole(body, Held())
        with Held() as held:
            return self._whole(body, held)

    def _whole(self, body: Callable[[Held], T], held: Held) -> T:
        """Completes a call, or returns to the end of its last complete piece."""
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
        """Undoes the requests of an unfinished call and of later ones; it can be interrupted and repeated."""
        call = self._unfinished
        if call is None:
            return
        if self.is_remote:
            for worker in self._workers:
                worker.undo(call)
        # edits of the model may have been among them
        self._edits.forget()
        self._fields.forget()
        own = self.__dict__
        own["_under"] = deque(piece for piece in self._under if piece.call < call and not piece.is_done)
        own["_unfinished"] = None

    # ---- requests ----------------------------------------------------------------------------------------------------
    def _issue(
        self,
        sent: Iterable[tuple[Part, Sequence[Order]]],
        changes: bool = True,
        take: Take | None = None,
        size: Size | None = None,
        stays: bool = False,
    ) -> None:
        """Sends orders to workers without waiting.

        Args:
            sent: orders by worker.
            changes: whether the orders change persistent state.
            take: function that receives each worker's result.
            size: size of the piece; None if negligible.
            stays: whether results are returned as references.
        """
        size = size or Size()
        self._await_capacity(size)
        piece = Piece(self._call, size, take)
        self._under.append(piece)
        for part, orders in sent:
            worker = self._workers[part.worker]
            piece.requests.append((part, worker.submit(piece, orders, changes, stays)))
            if self.is_remote:
                worker.steps += size.nstep
        self._keep_where_due()

    def _await_capacity(self, size: Size) -> None:
        """Waits until there is capacity for a piece of this size."""
        while self._under:
            sizes = [size, *(piece.size for piece in self._under)]
            steps, nbytes = sum(s.nstep * s.number for s in sizes), sum(s.nbytes for s in sizes)
            if len(sizes) <= MOST_PIECES and steps <= DEPTH * self._at_once and nbytes <= DEPTH * CHUNK:
                break
            self._collect_oldest()

    def _post(self, sent: Iterable[tuple[Part, Sequence[Order]]]) -> None:
        """Queues orders that cannot fail, to be sent with the next ones."""
        full = []
        for part, orders in sent:
            worker = self._workers[part.worker]
            if worker.post(orders, self._call) >= POSTED:
                full.append((part, [("nothing", ())]))
        if full:
            self._issue(full)

    def _collect_all(self) -> None:
        """Waits for all pieces except the last checkpoints, which may arrive during later computation."""
        while not all(isinstance(piece, Checkpoints) for piece in self._under):
            self._collect_oldest()

    def _settle(self) -> None:
        """Sends all queued orders and waits for them."""
        if self.is_remote:
            waiting = [k for k, worker in enumerate(self._workers) if worker.nposted]
            self._issue([(Part(k, None, slice(None)), [("nothing", ())]) for k in waiting])
        while self._under:
            self._collect_oldest()

    # ---- answers -----------------------------------------------------------------------------------------------------
    def _collect_oldest(self) -> None:
        """Waits for the answers to the oldest piece."""
        piece = self._under[0]
        try:
            answers = [
                (part, request, *self._workers[part.worker].collect(request)) for part, request in piece.requests
            ]
        except (RuntimeError, ModelError):  # from `collect`; signal handlers raise others
            self.__dict__["_unfinished"] = piece.call
            raise
        self._check(piece, answers)
        for part, _, report, result in answers:
            for name, worlds in self._counted.items():
                if getattr(report, name)[1]:
                    worlds[part.worker] = getattr(report, name)
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
                report.error.add_note(f"in the worker whose first world is {self.starts[part.worker]}")
                if piece.call != self._call:
                    report.error.add_note(BEFORE)
                raise report.error

    # ---- pieces of long calls ----------------------------------------------------------------------------------------
    def _steps_at_once(self, nstep: int, number: int, nbytes: int) -> int:
        """Computes the number of steps in a piece."""
        if not self.is_remote:
            return nstep  # a local batch divides the call itself
        share = max(1, number // len(self._workers))
        limit = nstep if not nbytes else CHUNK // (nbytes * share)
        return max(1, min(nstep, self._at_once // number, limit))

    def _learn(self, steps: int, seconds: float) -> None:
        """Updates the number of world steps in PIECE_SECONDS."""
        # the duration of a much smaller piece is mostly overhead
        if 2 * steps >= self._at_once or seconds > PIECE_SECONDS:
            self.__dict__["_at_once"] = max(1, int(steps * PIECE_SECONDS / max(seconds, 1e-9)))

    # ---- checkpoints -------------------------------------------------------------------------------------------------
    def _keep_where_due(self) -> None:
        """Requests the checkpoints that are due."""
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

    # ---- failures ----------------------------------------------------------------------------------------------------
    def _warn_of_failed(self) -> None:
        """Warns once of worlds with non-finite values, and once of worlds that lost contacts or rows."""
        for name, found in self._counted.items():
            if name in self._warned or not found:
                continue
            self._warned.add(name)
            number = sum(n for _, n in found.values())
            first = [int(self.starts[k]) + world for k, (worlds, _) in sorted(found.items()) for world in worlds][
                :NAMED
            ]
            more = f" and {number - len(first)} more" * (number > len(first))
            who = f"world {first[0]}" if number == 1 else f"worlds {', '.join(map(str, first))}{more} each"
            if name == "bad":
                warn_of_non_finite(who, not self.model.opt_disableflags & Disable.AUTORESET, "batch", 3)
            else:
                warn_of_full(who, capacities(self.model)["nconmax"], "batch", 3)
